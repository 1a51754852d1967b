"""What a known random policy did and what came of it: the data of offline evaluation."""

from dataclasses import dataclass, field
from math import sqrt
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints, clip_norm
from dpbandit.base.inputs import InputError, inside, positive, reals, shaped
from dpbandit.specs.outside import Outside, Watch
from dpbandit.specs.protocols import ContextualSpec

_RARE = 18.0
"""An arm's count misses what the propensities promise by more with probability 2 exp(-18)."""


@dataclass(kw_only=True, eq=False)
class Logged:
    """n rounds with finitely many arms, each arm chosen at random with a known probability.

    Contexts beyond the bound of the spec are clipped to it; rewards stay as they came, and private
    agents clip what they learn from.

    Raises `InputError` where shapes do not fit, where more of the contexts or of the rewards lie
    outside the bounds of the spec than its `most_outside` allows (less is said in a warning), where
    the actions were not randomised (a propensity of 1), and where some arm was logged far more or
    less often than the propensities say (a true log is refused with probability at most 4e-8 for
    each arm, by Bernstein).
    """

    spec: ContextualSpec
    """the public facts, its bounds above all, none of them read off the log; its horizon is not
    used"""
    context: Floats
    """`(n, *spec.context_shape)`"""
    action: Ints
    """(n,), the arms that were played"""
    reward: Floats
    """(n,), what they brought"""
    propensity: Floats | float
    """(n,) or one for all; the probability with which `action` was drawn, given the context"""
    lowest: float | None = None
    """a lower bound on the probability of every arm, logged or not; if None, the least propensity,
    read off the log, hence not public unless `propensity` is one number for all"""
    lowest_is_public: bool = field(init=False)
    """whether `lowest` was given, or `propensity` was one number"""
    outside: Outside = field(init=False)
    """how much did lie outside"""

    def __post_init__(self) -> None:
        action, chance = _floats("actions", self.action), _floats("propensities", self.propensity)
        self.context = _floats("contexts", self.context)
        self.reward = _floats("rewards", self.reward)
        self.lowest_is_public = self.lowest is not None or not chance.ndim
        if self.lowest is not None:
            positive("lowest", self.lowest)
        spec, n = self.spec, action.size
        if n == 0:
            raise InputError("Expected at least one logged round.")
        shaped("logged contexts", self.context, (n, *spec.context_shape))
        shaped("logged actions", action, (n,))
        shaped("logged rewards", self.reward, (n,))
        shaped("propensities", chance, (n,) if chance.ndim else ())
        _refuse("whole numbers below n_actions", np.isin(action, np.arange(spec.n_actions)))
        _refuse("finite contexts", np.isfinite(self.context.reshape(n, -1)).all(axis=1))
        _refuse("finite rewards", np.isfinite(self.reward))
        chance = np.broadcast_to(chance, n)
        _refuse("propensities in (0, 1]", (chance > 0) & (chance <= 1))
        self.action, self.propensity = action.astype(np.int64), chance
        least = float(chance.min())
        self.lowest = least if self.lowest is None else self.lowest
        most = min(1 / spec.n_actions, least)
        if not self.lowest <= most * (1 + 1e-9):
            raise InputError(
                f"Expected lowest={self.lowest:.4g} to be at most {most:.4g}, 1 / n_actions and "
                "every propensity: were these actions drawn at random?"
            )
        inside("lowest", self.lowest, 0, 1, ends=False)
        self._refuse_false_propensities(self.lowest)
        self._clip()

    def __str__(self) -> str:
        return f"{len(self.action)} rounds with {self.spec.n_actions} arms, {self.outside}"

    def _clip(self) -> None:
        """Count what is outside the bounds, and clip contexts where they are."""
        watch = Watch(self.spec, len(self.action))
        beyond = watch.see(self.context[:, None], self.reward[:, None])[:, 0]
        if beyond.any():
            bound, order = self.spec.context_bound, self.spec.context_order
            self.context = self.context.copy()  # the caller's stays as it is
            self.context[beyond] = clip_norm(self.context[beyond], bound, order)
        self.outside = watch.outside

    def _refuse_false_propensities(self, lowest: float) -> None:
        """Sums of 1 / propensity over an arm's rounds have mean n, variance n (1 / lowest - 1) or
        less and terms up to 1 / lowest; Bernstein's inequality at exp(-18)."""
        n = len(self.action)
        found = np.bincount(self.action, 1 / self.propensity, minlength=self.spec.n_actions)
        slack = sqrt(2 * _RARE * n * (1 / lowest - 1)) + _RARE / (3 * lowest)
        for arm, total in enumerate(found.tolist()):
            if abs(total - n) > slack:
                raise InputError(
                    f"Expected the propensities to be true: by them arm {arm} was logged as in "
                    f"{total:.0f} of n={n} rounds, more than {slack:.0f} away."
                )


def one_kind(name: str, names: Any) -> list[Any]:
    """A column of names, say of arms, as a list.

    Raises:
        InputError: it is no column, a name is missing (None, NaN) or neither text nor a number, or
            both occur: nobody shall guess whether 1 and "1" are the same.
    """
    try:
        column = np.asarray(names, dtype=object)
    except ValueError:  # ragged
        column = np.empty(())
    if column.ndim != 1:
        raise InputError(f"Expected {name} to hold one entry for each row.")
    found: list[Any] = column.tolist()
    for row, entry in enumerate(found):
        if not _kind(entry) or _kind(entry) != _kind(found[0]) or entry != entry:
            raise InputError(
                f"Expected {name} to be all text or all numbers, none missing, got {entry!r} in "
                f"row {row}."
            )
    return found


def _kind(entry: Any) -> str:
    if isinstance(entry, Real | np.bool_):
        return "number"
    return "text" if isinstance(entry, str) else ""


def _floats(name: str, values: Any) -> Floats:
    try:
        return reals(values)
    except ValueError:
        raise InputError(f"Expected {name} to be an array of numbers.") from None


def _refuse(what: str, fine: npt.ArrayLike) -> None:
    fine = np.asarray(fine)
    if not fine.all():
        raise InputError(f"Expected a log of {what}, got another in row {int((~fine).argmax())}.")
