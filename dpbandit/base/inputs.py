"""Checks of input; errors are one sentence with the argument, its value and what is expected."""

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from math import inf, isfinite
from numbers import Integral, Real
from sys import float_info
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_ROUNDS = 10**9
"""Largest horizon, in rounds; even random play takes hours for so many."""
MOST_DIM = 100_000
"""Largest number d of features, or coordinates of a point; a d x d matrix then has 80 gigabytes."""
MOST_ACTIONS = 1_000_000
"""Largest number of arms, items or experts."""
MOST_REPLICAS = 100_000
"""Largest number of replicas of one run, whose curves then have more than a gigabyte."""
MOST_RUNS = 10_000_000
"""Largest number of runs of an audit on each of its two neighbouring data sets."""
MOST_JOBS = 1024
"""Largest number of parallel processes, more than any machine has use for."""
_LEAST_EPSILON, _LEAST_DELTA = 1e-50, 1e-300
_LARGEST_SETTING = 1e50
"""Largest absolute value of a number that users pass; powers of larger ones overflow."""


class InputError(ValueError):
    """A user's mistake, in one sentence; the command line prints it and exits with code 2."""


def installed_by(extra: str) -> str:
    """Return the command that installs an extra of dpbandit."""
    return f"pip install 'dpbandit[{extra}]' ('.[{extra}]' in a checkout)"


def not_installed(package: str, what: str, extra: str | None = None) -> InputError:
    """Return the error for an optional package that is not installed, with the pip command."""
    all_ = "" if extra is None else f", or all of the extra {extra}: {installed_by(extra)}"
    return InputError(
        f"Expected {package}, which brings {what}, to be installed: pip install {package}{all_}."
    )


def whole(name: str, value: Any, low: int, high: float = inf) -> None:
    """Raise `InputError` unless `value` is a whole number from `low` to `high`."""
    if not _is(Integral, name, value) or not low <= value <= high:
        upper = "" if high == inf else f" and <= {high}"
        raise InputError(f"Expected {name}={abbrev(value)} to be a whole number >= {low}{upper}.")


def at_least(name: str, value: Any, low: float) -> None:
    """Raise `InputError` unless `value` is a finite number >= `low`."""
    if not _is(Real, name, value) or not low <= value < inf:
        raise InputError(f"Expected {name}={abbrev(value)} to be a finite number >= {low}.")


def positive(name: str, value: Any) -> None:
    """Raise `InputError` unless `value` is a finite number > 0."""
    if not _is(Real, name, value) or not 0 < value < inf:
        raise InputError(f"Expected {name}={abbrev(value)} to be a finite number > 0.")


def inside(name: str, value: Any, low: float, high: float, *, ends: bool) -> None:
    """Raise `InputError` unless `value` is in [low, high], or in (low, high) if not `ends`."""
    fits = _is(Real, name, value, float_info.max, 0.0 if ends else float_info.min)
    if not fits or not (low <= value <= high if ends else low < value < high):
        interval = f"[{low}, {high}]" if ends else f"({low}, {high})"
        raise InputError(f"Expected {name}={abbrev(value)} to be a number in {interval}.")


def share(name: str, value: Any) -> None:
    """Raise `InputError` unless `value` lies in (0, 1]."""
    inside(name, value, 0, 1, ends=True)
    positive(name, value)


def flag(name: str, value: Any) -> None:
    """Raise `InputError` unless `value` is True or False."""
    if not isinstance(value, bool):
        raise InputError(f"Expected {name}={abbrev(value)} to be true or false.")


def shaped(name: str, array: Any, shape: tuple[int, ...]) -> None:
    """Raise `InputError` unless `array` has exactly this shape; nothing is broadcast."""
    if array.shape != shape:
        raise InputError(f"Expected {name} of shape {shape}, got {array.shape}.")


def reals(value: Any) -> npt.NDArray[np.float64]:
    """Convert `value` to an array of doubles.

    Raises `ValueError` for anything but real numbers within the range of doubles: words, dates,
    complex numbers, 10**400, masked entries.
    """
    if np.ma.is_masked(value):
        raise ValueError("something is missing")
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" and not all(map(_is_real, array.flat)):
        raise ValueError("not real numbers")
    try:
        return array.astype(np.float64)
    except (TypeError, OverflowError):
        raise ValueError("no doubles") from None


def _is_real(item: Any) -> bool:
    # NumPy registers durations as integers
    return isinstance(item, Real | Decimal | np.bool_) and not isinstance(item, np.timedelta64)


def vector(name: str, value: Any, length: int | None) -> npt.NDArray[np.float64]:
    """Convert to a vector of `length` finite numbers (None: any length), or raise `InputError`."""
    try:
        array = reals(value)
    except ValueError:  # a word, ragged rows, 10**400
        array = np.empty(0)
    fits = array.ndim == 1 and len(array) == (len(array) or 1 if length is None else length)
    if not fits or not np.isfinite(array).all():
        many = "" if length is None else f"{length} "
        raise InputError(f"Expected {name}={abbrev(value)} to be {many}numbers.")
    return array


def privacy_target(epsilon: Any, delta: Any) -> None:
    """Raise `InputError` unless epsilon > 0 (infinity: no privacy) and delta in [0, 1).

    An epsilon below 1e-50 or a delta between 0 and 1e-300 is refused: powers of it underflow.
    """
    if not _is(Real, "epsilon", epsilon, least=_LEAST_EPSILON) or not epsilon > 0:
        raise InputError(
            f"Expected epsilon={abbrev(epsilon)} to be a number > 0, or inf for no privacy."
        )
    if not _is(Real, "delta", delta, least=_LEAST_DELTA) or not 0 <= delta < 1:
        raise InputError(f"Expected delta={abbrev(delta)} to be a number in [0, 1).")


def gaussian_target(epsilon: Any, delta: Any) -> None:
    """Raise `InputError` unless Gaussian noise can meet the target: delta > 0 or epsilon = inf."""
    privacy_target(epsilon, delta)
    if delta == 0 and isfinite(epsilon):
        raise InputError(f"Expected delta={delta!r} > 0: this noise has no pure epsilon-DP.")


def noise_target(config: Any) -> None:
    """Set a config's delta if it is None, then check that its `noise` can meet (epsilon, delta).

    A delta of None becomes 1e-6 with Gaussian noise, and 0 with laws that give pure epsilon-DP.
    """
    gaussian = config.noise == "gaussian"
    if config.delta is None:
        object.__setattr__(config, "delta", 1e-6 if gaussian else 0.0)
    check = gaussian_target if gaussian else privacy_target
    check(config.epsilon, config.delta)


def printed_target(
    epsilon: float, calibration: str, *, beyond_validity: bool, most: float = 3.0
) -> None:
    """Raise `InputError` if a paper's constants are used at an epsilon its proof does not cover.

    The proof holds up to epsilon = `most`; `beyond_validity` switches the check off.
    """
    flag("beyond_validity", beyond_validity)
    if calibration == "paper" and most < epsilon < inf and not beyond_validity:
        raise InputError(
            f"Expected epsilon={epsilon!r} <= {most:g} with calibration='paper': its proof ends "
            "there. Set beyond_validity to run it and see the certificate."
        )


def one_of(
    name: str,
    value: Any,
    allowed: Iterable[str],
    *,
    short: Callable[[str], str] = str,
    see: str = "",
) -> None:
    """Raise `InputError` unless `value` is one of the `allowed` words; suggest the nearest word.

    Args:
        name: name of the argument.
        value: its value.
        allowed: valid words.
        short: maps a word to the short form that users type.
        see: command that lists the allowed words, if they are too many for a message.
    """
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        called = {short(word).lower(): short(word) for word in words}
        meant = short(value).lower() if isinstance(value, str) else ""
        near = get_close_matches(meant, called, n=1, cutoff=0.5)
        near = near or [word for word in called if meant and meant in word][:1]
        hint = f" (did you mean {called[near[0]]}?)" if near else ""
        right = f"an id that `{see}` lists" if see else f"one of {', '.join(words)}"
        raise InputError(f"Expected {name}={abbrev(value)}{hint} to be {right}.")


def named(name: str, value: Any) -> None:
    """Raise `InputError` unless `value` is a mapping whose keys are words."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(
            f"Expected {name}={abbrev(value)} to be a dictionary whose keys are names."
        )


def _is(
    kind: Any, name: str, value: Any, most: float = _LARGEST_SETTING, least: float = float_info.min
) -> bool:
    """Return True if `value` is a number of the class `kind` other than NaN.

    Raises `InputError` for an absolute value above `most`, or between 0 and `least`.
    """
    if not isinstance(value, kind) or isinstance(value, bool | np.timedelta64) or value != value:
        return False
    if isinstance(value, np.generic):
        value = value.item()  # a float32 holds no 1e50 to compare with, and |int8| no 128
    if most < abs(value) < inf:
        raise InputError(f"Expected {name}={abbrev(value)} to be at most {most:g} in size.")
    if 0 < abs(value) < least:
        raise InputError(
            f"Expected {name}={abbrev(value)} to be 0 or at least {least:.2g} in size."
        )
    if not isinstance(value, int | float):  # logarithms and formats know no fractions
        raise InputError(
            f"Expected {name}={abbrev(value)} to be an int or a float: {float(value)}."
        )
    return True


def abbrev(value: Any) -> str:
    """Abbreviate `repr(value)` to one line of at most 100 letters."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a user's `__repr__` may raise anything
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 100 else f"{text[:97]}..."


def rounded(value: float, digits: int = 3) -> str:
    """Format a number for people: few digits, commas, and no exponent between 1e-4 and 1e7.

    >>> rounded(1172.4), rounded(2.0), rounded(0.00012345), rounded(12346, 4), rounded(1.2e-7)
    ('1,170', '2', '0.000123', '12,350', '1.2e-7')
    """
    text = f"{value:.{digits - 1}e}"
    size = float(text)
    if size == 0:
        return "0"
    if not 1e-4 <= abs(size) < 1e7:  # also infinity, and NaN
        return re.sub(r"e[+]?(-?)0*", r"e\1", f"{size:.{digits}g}")
    places = max(0, digits - 1 - int(text.partition("e")[2]))
    text = f"{size:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def one_number(name: str, value: Any) -> float:
    """Return a number, or the single entry of an array, as float; else raise `InputError`."""
    try:
        return float(reals(value).item())
    except ValueError:  # also of several
        raise InputError(f"Expected {name}={abbrev(value)} to be one number.") from None


def two_numbers(name: str, value: Any) -> tuple[float, float]:
    """Return public bounds (low, high) as floats; raise `InputError` unless two numbers."""
    try:
        low, high = reals(value).tolist()
    except (TypeError, ValueError):
        raise InputError(
            f"Expected {name}={abbrev(value)} to be two finite numbers (low, high), public bounds."
        ) from None
    return low, high
