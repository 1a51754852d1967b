"""Actions as anybody hands them over: arms and prices in range, or one sentence."""

from typing import Any

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import BadInput, shaped


def prices_in_range(action: Any, replicas: int, low: float, high: float) -> Floats:
    """`action` as floats (R,); raises `BadInput` where it is anything else or out of range."""
    price = _numbers(action, replicas)
    fine = (price >= low) & (price <= high)
    if not fine.all():
        raise BadInput(f"Expected prices in [{low}, {high}], got {price[~fine][0]}.")
    return price


def arms_in_range(action: Any, replicas: int, n_actions: int) -> Ints:
    """`action` as whole numbers (R,) in [0, K); raises `BadInput` where it is anything else."""
    given = action
    if not (isinstance(action, np.ndarray) and action.dtype == np.int64):
        numbers = given = _numbers(action, replicas)
        fine = np.isfinite(numbers) & (numbers == np.floor(numbers))
        if not fine.all():
            raise BadInput(f"Expected whole numbers as actions, got {numbers[~fine][0]}.")
        action = numbers.clip(-1, n_actions).astype(np.int64)
    shaped("actions", action, (replicas,))
    if action.view(np.uint64).max() >= n_actions:  # negative numbers are huge
        wrong = given[(given < 0) | (given >= n_actions)][0]
        raise BadInput(f"Expected actions in [0, {n_actions}), got {wrong:g}.")
    chosen: Ints = action
    return chosen


def _numbers(action: Any, replicas: int) -> Floats:
    try:
        numbers = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"Expected numbers as actions, got {type(action).__name__}.") from None
    shaped("actions", numbers, (replicas,))
    return numbers
