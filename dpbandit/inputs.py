"""Bad input gets one clear sentence: the argument, its value, and what would be right."""

from collections.abc import Iterable
from difflib import get_close_matches
from math import isfinite, isnan


class BadInput(ValueError):
    """A user's mistake, told in one sentence. The command line prints it and exits with 2."""


def at_least(name: str, value: float, low: float) -> None:
    """Raise `BadInput` unless `value >= low`."""
    if not value >= low:
        raise BadInput(f"Expected {name}={value} >= {low}.")


def positive(name: str, value: float, *, infinite: bool = False) -> None:
    """Raise `BadInput` unless `value > 0`, and finite unless `infinite` is allowed."""
    if not value > 0 or not (infinite or isfinite(value)):
        raise BadInput(f"Expected {name}={value} > 0{'' if infinite else ' and finite'}.")


def privacy_target(epsilon: float, delta: float) -> None:
    """Raise `BadInput` unless epsilon > 0 (infinity: no privacy) and delta in [0, 1)."""
    if isnan(epsilon) or epsilon <= 0:
        raise BadInput(f"Expected epsilon={epsilon} > 0 (inf plays without privacy).")
    if not 0 <= delta < 1:
        raise BadInput(f"Expected delta={delta} in [0, 1).")


def one_of(name: str, value: object, allowed: Iterable[str]) -> None:
    """Raise `BadInput` unless `value` is one of the `allowed` words; name the nearest."""
    words = list(allowed)
    if value not in words:
        near = get_close_matches(str(value), words, n=1, cutoff=0.3)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise BadInput(f"Unknown {name}={value!r}: {hint}Choose from {', '.join(words)}.")
