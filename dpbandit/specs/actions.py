"""Actions and other numbers as anybody hands them over: in range and in shape, or one sentence."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, reals, shaped
from dpbandit.base.random_streams import Draws, Streams


def prices_in_range(action: Any, replicas: int, low: float, high: float) -> Floats:
    """`action` as floats (R,); raises `InputError` where it is anything else or out of range."""
    price = _numbers(action, replicas)
    fine = (price >= low) & (price <= high)
    if not fine.all():
        raise InputError(f"Expected prices in [{low}, {high}], got {price[~fine][0]}.")
    return price


def arms_in_range(action: Any, replicas: int, n_actions: int) -> Ints:
    """`action` as whole numbers (R,) in [0, K); raises `InputError` where it is anything else."""
    given = action
    if not (isinstance(action, np.ndarray) and action.dtype == np.int64):
        numbers = given = _numbers(action, replicas)
        fine = np.isfinite(numbers) & (numbers == np.floor(numbers))
        if not fine.all():
            raise InputError(f"Expected whole numbers as actions, got {numbers[~fine][0]}.")
        action = numbers.clip(-1, n_actions).astype(np.int64)
    shaped("actions", action, (replicas,))
    if action.view(np.uint64).max() >= n_actions:  # negative numbers are huge
        wrong = given[(given < 0) | (given >= n_actions)][0]
        raise InputError(f"Expected actions in [0, {n_actions}), got {wrong:g}.")
    chosen: Ints = action
    return chosen


def finite_array(name: str, values: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """`values`, if it is an array of finite numbers of that shape; else `InputError`."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
        kind = f"one of {values.dtype}" if isinstance(values, np.ndarray) else type(values).__name__
        raise InputError(f"Expected {name} to be an array of numbers, got {kind}.")
    if values.shape != shape:
        raise InputError(f"Expected {name} of shape {shape}, got {values.shape}.")
    finite = np.isfinite(values)
    if not finite.all():
        raise InputError(f"Expected finite {name}, got {values[~finite][0]}.")
    return values


def uniform_arms(streams: Streams, n_actions: int) -> Callable[[], Ints]:
    """Draws arms (R,) in [0, K), fresh ones at every call."""
    return partial(_arms, streams.uniforms("exploration"), n_actions)  # which copies and pickles


def uniform_prices(streams: Streams, low: float, high: float) -> Callable[[], Floats]:
    """Draws prices (R,) in [low, high), fresh ones at every call."""
    return partial(_prices, streams.uniforms("exploration"), low, high)


def _arms(luck: Draws, n_actions: int) -> Ints:
    return (luck() * n_actions).astype(np.int64)


def _prices(luck: Draws, low: float, high: float) -> Floats:
    return low + (high - low) * luck()


def _numbers(action: Any, replicas: int) -> Floats:
    try:
        numbers = reals(action)
    except ValueError:
        raise InputError(f"Expected numbers as actions, got {type(action).__name__}.") from None
    shaped("actions", numbers, (replicas,))
    return numbers
