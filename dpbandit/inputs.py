"""Bad input gets one clear sentence: the argument, its value, and what would be right."""

from collections.abc import Iterable
from difflib import get_close_matches
from math import inf, isfinite, isnan
from numbers import Integral, Real
from typing import Any


class BadInput(ValueError):
    """A user's mistake, told in one sentence. The command line prints it and exits with 2."""


def whole(name: str, value: Any, low: int, high: float = inf) -> None:
    """Raise `BadInput` unless `value` is a whole number from `low` to `high`."""
    if not _is(Integral, value) or not low <= value <= high:
        upper = "" if high == inf else f" and <= {high}"
        raise BadInput(f"Expected {name}={value!r} to be a whole number >= {low}{upper}.")


def at_least(name: str, value: Any, low: float) -> None:
    """Raise `BadInput` unless `value` is a finite number >= `low`."""
    if not _is(Real, value) or not low <= value < inf:
        raise BadInput(f"Expected {name}={value!r} to be a finite number >= {low}.")


def positive(name: str, value: Any) -> None:
    """Raise `BadInput` unless `value` is a finite number > 0."""
    if not _is(Real, value) or not 0 < value < inf:
        raise BadInput(f"Expected {name}={value!r} to be a finite number > 0.")


def inside(name: str, value: Any, low: float, high: float, *, ends: bool) -> None:
    """Raise `BadInput` unless `value` lies in [low, high], or in (low, high) without `ends`."""
    if not _is(Real, value) or not (low <= value <= high if ends else low < value < high):
        interval = f"[{low}, {high}]" if ends else f"({low}, {high})"
        raise BadInput(f"Expected {name}={value!r} to be a number in {interval}.")


def flag(name: str, value: Any) -> None:
    """Raise `BadInput` unless `value` is True or False."""
    if not isinstance(value, bool):
        raise BadInput(f"Expected {name}={value!r} to be true or false.")


def shaped(name: str, array: Any, shape: tuple[int, ...]) -> None:
    """Raise `BadInput` unless `array` has this shape: nothing is broadcast silently."""
    if array.shape != shape:
        raise BadInput(f"Expected {name} of shape {shape}, got {array.shape}.")


def privacy_target(epsilon: Any, delta: Any) -> None:
    """Raise `BadInput` unless epsilon > 0 (infinity: no privacy) and delta in [0, 1)."""
    if not _is(Real, epsilon) or not epsilon > 0:
        raise BadInput(f"Expected epsilon={epsilon!r} to be a number > 0, or inf for no privacy.")
    if not _is(Real, delta) or not 0 <= delta < 1:
        raise BadInput(f"Expected delta={delta!r} to be a number in [0, 1).")


def gaussian_target(epsilon: Any, delta: Any) -> None:
    """A `privacy_target` that Gaussian noise can meet: delta = 0 only where epsilon = inf."""
    privacy_target(epsilon, delta)
    if delta == 0 and isfinite(epsilon):
        raise BadInput(f"Expected delta={delta!r} > 0: this noise has no pure epsilon-DP.")


def printed_target(epsilon: float, calibration: str, *, beyond_validity: bool) -> None:
    """Raise `BadInput` for printed Gaussian noise beyond epsilon = 3, where its proof ends."""
    flag("beyond_validity", beyond_validity)
    if calibration == "paper" and 3 < epsilon < inf and not beyond_validity:
        raise BadInput(
            f"Expected epsilon={epsilon!r} <= 3 with calibration='paper': its proof ends there. "
            "Set beyond_validity to run it and see the certificate."
        )


def one_of(name: str, value: Any, allowed: Iterable[str]) -> None:
    """Raise `BadInput` unless `value` is one of the `allowed` words; name the nearest."""
    words = list(allowed)
    if value not in words:
        near = get_close_matches(str(value), words, n=1, cutoff=0.5)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise BadInput(f"Expected {name}={value!r}{hint} to be one of {', '.join(words)}.")


def _is(kind: Any, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and not isnan(value)
