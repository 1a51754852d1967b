"""What strangers hand over, as plain numbers: anything else gets one sentence."""

from typing import Any

from dpbandit.base.inputs import InputError, reals, shown


def one_number(name: str, value: Any) -> float:
    """A number, also as an array that holds just one; `InputError` for anything else."""
    try:
        return float(reals(value).item())
    except ValueError:  # also of several
        raise InputError(f"Expected {name}={shown(value)} to be one number.") from None


def two_numbers(name: str, value: Any) -> tuple[float, float]:
    """Public bounds (low, high), as floats; `InputError` unless they are two numbers."""
    try:
        low, high = reals(value).tolist()
    except (TypeError, ValueError):
        raise InputError(
            f"Expected {name}={shown(value)} to be two finite numbers (low, high), public bounds."
        ) from None
    return low, high
