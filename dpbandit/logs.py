"""What a known random policy did and what came of it: the data of offline evaluation."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from dpbandit.arrays import Floats, Ints
from dpbandit.inputs import BadInput, inside, shaped
from dpbandit.protocols import ContextualSpec

_RARE = 18.0
"""An arm's count misses what the propensities promise by more with probability 2 exp(-18)."""


@dataclass(kw_only=True, eq=False)
class Logged:
    """n rounds with finitely many arms, each arm chosen at random with a known probability.

    Raises `BadInput` where shapes or ranges do not fit, where the actions were not randomised (a
    propensity of 1), and where some arm was logged far more or less often than the propensities
    say (a true log is refused with probability at most 4e-8 for each arm, by Bernstein).
    """

    spec: ContextualSpec
    """the public facts; its horizon is not used"""
    context: Floats
    """(n, *spec.context_shape)"""
    action: Ints
    """(n,), the arms that were played"""
    reward: Floats
    """(n,), what they brought, in the range of the spec"""
    propensity: Floats | float
    """(n,) or one for all: the probability with which `action` was drawn, given the context"""
    lowest: float | None = None
    """a lower bound on the probability of every arm, logged or not; None: the least propensity"""

    def __post_init__(self) -> None:
        spec, n = self.spec, len(self.action)
        action, chance = np.asarray(self.action), np.asarray(self.propensity, dtype=np.float64)
        self.context = np.asarray(self.context, dtype=np.float64)
        self.reward = np.asarray(self.reward, dtype=np.float64)
        if n == 0:
            raise BadInput("Expected at least one logged round.")
        shaped("logged contexts", self.context, (n, *spec.context_shape))
        shaped("logged actions", action, (n,))
        shaped("logged rewards", self.reward, (n,))
        shaped("propensities", chance, (n,) if chance.ndim else ())
        _refuse("whole numbers below n_actions", np.isin(action, np.arange(spec.n_actions)))
        _refuse("finite contexts", np.isfinite(self.context.reshape(n, -1)).all(axis=1))
        low, high = spec.reward_low, spec.reward_high
        _refuse(f"rewards in [{low}, {high}]", (self.reward >= low) & (self.reward <= high))
        chance = np.broadcast_to(chance, n)
        _refuse("propensities in (0, 1]", (chance > 0) & (chance <= 1))
        self.action, self.propensity = action.astype(np.int64), chance
        least = float(chance.min())
        self.lowest = least if self.lowest is None else self.lowest
        most = min(1 / spec.n_actions, least)
        if not self.lowest <= most * (1 + 1e-9):
            raise BadInput(
                f"Expected lowest={self.lowest:.4g} to be at most {most:.4g}, 1 / n_actions and "
                "every propensity: were these actions drawn at random?"
            )
        inside("lowest", self.lowest, 0, 1, ends=False)
        self._refuse_false_propensities(self.lowest)

    def _refuse_false_propensities(self, lowest: float) -> None:
        """Sums of 1 / propensity over an arm's rounds have mean n, variance n (1 / lowest - 1) or
        less and terms up to 1 / lowest; Bernstein's inequality at exp(-18)."""
        n = len(self.action)
        found = np.bincount(self.action, 1 / self.propensity, minlength=self.spec.n_actions)
        slack = sqrt(2 * _RARE * n * (1 / lowest - 1)) + _RARE / (3 * lowest)
        for arm, total in enumerate(found.tolist()):
            if abs(total - n) > slack:
                raise BadInput(
                    f"Expected the propensities to be true: by them arm {arm} was logged as in "
                    f"{total:.0f} of n={n} rounds, more than {slack:.0f} away."
                )


def _refuse(what: str, fine: npt.ArrayLike) -> None:
    fine = np.asarray(fine)
    if not fine.all():
        raise BadInput(f"Expected a log of {what}, got another in row {int((~fine).argmax())}.")
