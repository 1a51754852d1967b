"""What strangers hand over, as plain numbers: anything else gets one sentence."""

from typing import Any

import numpy as np

from dpbandit.base.inputs import BadInput


def one_number(name: str, value: Any) -> float:
    """A number, also as an array that holds just one; `BadInput` for anything else."""
    try:
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind in "US":  # float("1") would be a number
            raise ValueError
        return float(array.item())
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"Expected {name}={value!r} to be one number.") from None


def two_numbers(name: str, value: Any) -> tuple[float, float]:
    """Public bounds (low, high), as floats; `BadInput` unless they are two numbers."""
    try:
        low, high = map(float, value)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(
            f"Expected {name}={value!r} to be two finite numbers (low, high), public bounds."
        ) from None
    return low, high
