"""What a lab says of your own answer to an exercise."""

from collections.abc import Callable, Mapping
from typing import Any

Test = Callable[[Any], Any]
"""Whether an answer is right."""


def check(
    name: str,
    scope: Mapping[str, Any],
    right: Test,
    otherwise: str,
    *further: tuple[Test, str],
) -> None:
    """Print whether the result called `name` in `scope` is right; whatever it is, never raise.

    Of several tests the first that fails is told. One that raises, or that has no single yes or
    no, counts as a no.

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
    for test, sentence in ((right, otherwise), *further):
        if not _holds(test, scope[name]):
            print(f"{name}: not yet. {sentence}")
            return
    print(f"{name}: right.")


def _holds(test: Test, answer: Any) -> bool:
    try:
        return bool(test(answer))
    except Exception:  # an answer may be anything
        return False
