"""What every log's arrays are held to, with the row of the first that is something else."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, clip_norm
from dpbandit.base.inputs import InputError, reals
from dpbandit.specs.outside import Outside, Watch
from dpbandit.specs.protocols import BanditSpec

_ROUNDING = 1e-6
"""By which probabilities may miss the sum 1."""


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
