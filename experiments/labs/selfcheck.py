"""What a lab says of your own answer to an exercise."""

from collections.abc import Callable, Mapping
from typing import Any


def check(name: str, scope: Mapping[str, Any], right: Callable[[Any], Any], otherwise: str) -> None:
    """Print whether the result called `name` in `scope` is right; whatever it is, never raise.

    A test `right` that raises, or that has no single yes or no, counts as a no.

    >>> check("claim", {"claim": 13}, lambda claim: 10 < claim < 25, "It is between 10 and 25.")
    claim: right.
    >>> check("claim", {"claim": "big"}, lambda claim: 10 < claim < 25, "It is a number.")
    claim: not yet. It is a number.
    >>> check("claim", {}, lambda claim: 10 < claim < 25, "It is between 10 and 25.")
    claim: not there yet; call your result `claim`.
    """
    if name not in scope:
        print(f"{name}: not there yet; call your result `{name}`.")
        return
    try:
        holds = bool(right(scope[name]))
    except Exception:  # an answer may be anything
        holds = False
    print(f"{name}: right." if holds else f"{name}: not yet. {otherwise}")
