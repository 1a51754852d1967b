"""What every log's arrays are held to, with the row of the first that is something else."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, clip_norm
from dpbandit.base.inputs import InputError, reals, shown
from dpbandit.specs.contract import Outside, Watch
from dpbandit.specs.protocols import BanditSpec, Spec

_ROUNDING = 1e-6
"""By which probabilities may miss the sum 1."""
LEAST, MOST = 1e-50, 1e50
"""Of what is divided by, and of a number's size. Nothing is known so exactly, and squares of
larger weights overflow."""


def numbers_in(name: str, values: Any) -> Floats:
    """`values` as an array of doubles; `InputError` where they are no real numbers."""
    try:
        return reals(values)
    except ValueError:
        raise InputError(f"Expected {name} to be an array of numbers.") from None


def refuse_row(what: str, fine: npt.ArrayLike, of: str = "a log") -> None:
    """Raise `InputError` with the first row that is not `fine` (n,)."""
    fine = np.asarray(fine)
    if not fine.all():
        raise InputError(f"Expected {of} of {what}, got another in row {int((~fine).argmax())}.")


def refuse_spec(spec: Any, kind: type[Spec]) -> None:
    """Raise `InputError` unless the public facts are those of such a problem."""
    if not isinstance(spec, kind):
        raise InputError(f"Expected spec={shown(spec)} to be a {kind.__name__}.")
    low, high = spec.reward_low, spec.reward_high
    if not is_wide(low, high):
        raise InputError(
            f"Expected reward_low={low:g} to be below reward_high={high:g}, both at most {MOST:g} "
            "in size."
        )


def is_wide(low: float, high: float) -> bool:
    """Whether these are the ends of a range that one can divide by."""
    return bool(max(-low, high) <= MOST and high - low >= LEAST)


def arrays_at(log: Any, rows: slice, names: Iterable[str]) -> dict[str, Any]:
    """A log's arrays at some of its rows, in the order of collection; what is None stays so.

    Raises:
        InputError: no slice such as `[:100]`, or one that runs backwards.
    """
    arrays = {name: getattr(log, name) for name in names}
    n = max(len(array) for array in arrays.values() if array is not None)
    try:
        forward = isinstance(rows, slice) and rows.indices(n)[2] > 0
    except (TypeError, ValueError):  # no whole numbers, a step of 0
        forward = False
    if not forward:
        raise InputError(
            f"Expected rows of a log as a slice, such as log[:100], forward, got {shown(rows)}."
        )
    return {name: None if array is None else array[rows] for name, array in arrays.items()}


def is_law(probabilities: Floats) -> npt.NDArray[np.bool_]:
    """Which rows (n, K) are probabilities that sum to 1."""
    fine = (probabilities >= 0).all(axis=1)  # false where there is a NaN
    return np.asarray(fine & (np.abs(probabilities.sum(axis=1) - 1) <= _ROUNDING))


def within(spec: BanditSpec, context: Floats, reward: Floats) -> tuple[Floats, Outside]:
    """Contexts `(n, ...)` clipped to their public bound, and how much lay outside its bounds."""
    watch = Watch(spec, len(reward))
    beyond = watch.see(context[:, None], reward[:, None])[:, 0]
    if beyond.any():
        context = context.copy()  # the caller's stays as it is
        context[beyond] = clip_norm(context[beyond], spec.context_bound, spec.context_order)
    return context, watch.outside
