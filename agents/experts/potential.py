"""The potential of Algorithm 5: a test of how far it fell, and a draw by its weights."""

from dataclasses import dataclass
from math import inf, log
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dpbandit.agents.experts.draws import drawn, soft
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import shaped
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.pure import BoundedRangeSpend, PureSpend
from dpbandit.privacy.accounting.sequential import Sequential
from dpbandit.privacy.choices.selection import CumulativeLosses
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.noise.laws import Laplace, OneSidedExponential

PotentialNoise: TypeAlias = Literal["exponential", "laplace"]
_LAWS: dict[str, type[OneSidedExponential] | type[Laplace]] = {
    "exponential": OneSidedExponential,
    "laplace": Laplace,
}


@dataclass(frozen=True)
class PotentialPlan:
    """The public numbers of one run of Algorithm 5."""

    draws: int
    """K"""
    eta: float
    threshold: float
    """in units of the query"""
    threshold_scale: float
    """of the noise rho, fresh in each phase"""
    test_scale: float
    """of the noise of each test"""
    noise: PotentialNoise


class PotentialDraws(Mechanism):
    """Draws an expert whenever the potential fell far enough since the last one.

        log phi(t) = log of the mean over x of exp(-eta S_t(x))

        call(losses (R, d)) -> expert (R,), -1 where nothing is drawn
          1. S <- S + clip(losses), q = (log phi(t*) - log phi(t)) / eta, t* the last draw's round
          2. while draws are left: fires when  q + noise >= threshold + rho
          3. then x with probability prop. to exp(-eta S(x)); t* = t, rho fresh

    **Guarantee.** All calls together cost `tests` and `picks` for replacing one round. *Tests.* A
    round moves log phi(t) / eta by some b_t in [-1, 1], and log phi(t*) / eta by some a in [-1, 1],
    0 where t* is earlier: q_t moves by a - b_t, between -2 and 2. Put rho + a + 1 for rho: what
    did not fire does not fire, and the test that fired needs a noise larger by 1 + b_t. Both are
    shifts by 0 to 2, upwards, so one phase costs 2 / (scale of rho) + 2 / (scale of tests), with
    Laplace or one-sided exponential noise. Every round is in the sums of every later phase: K
    phases add up. *Picks.* eta S moves by eta either way, so a draw has bounded range 2 eta.

    Args:
        n_experts: d.
        streams: the random streams of the replicas.
        plan: K, eta, the threshold and the scales.
        uses: calls that will be made.
    """

    order = inf
    """the norm in which `sensitivity` is meant: one expert's loss"""

    def __init__(self, n_experts: int, streams: Streams, plan: PotentialPlan, *, uses: int) -> None:
        K, R, law = plan.draws, len(streams), _LAWS[plan.noise]
        cost = 2 / plan.threshold_scale + 2 / plan.test_scale
        self.tests = PureSpend.of(f"{K} phases of tests of the potential", [cost] * K)
        self.picks = BoundedRangeSpend.of(f"{K} draws by the potential", [2 * plan.eta] * K)
        self.spend = Sequential((self.tests, self.picks), "potential")
        self._losses = CumulativeLosses(n_experts)
        self.sensitivity, self.uses = self._losses.sensitivity, uses
        self._plan = plan
        self._threshold_noise = law(plan.threshold_scale).sampler(streams, "threshold", ())
        self._test_noise = law(plan.test_scale).sampler(streams, "tests", ())
        self._luck = streams.uniforms("draws")
        self._shape = (R, n_experts)
        self._total: Floats = np.zeros((1, n_experts))  # S, exact: never leaves here
        self._last = np.zeros(R)  # log phi(t*)
        self._left = np.full(R, K)
        self._rho = self._threshold_noise()

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped losses, (R, d)."""
        shaped("losses", datum[0], self._shape)
        return self._losses.query(datum[0])

    def _release(self, *datum: npt.NDArray[Any]) -> Any:
        plan = self._plan
        self._total = self._losses.after(self._total, self.query(*datum))
        potential = log_potential(self._total, plan.eta)
        fallen = (self._last - potential) / plan.eta
        above = fallen + self._test_noise() >= plan.threshold + self._rho
        fired = above & (self._left > 0)
        self._left = self._left - fired
        self._last = np.where(fired, potential, self._last)
        self._rho = np.where(fired, self._threshold_noise(), self._rho)
        weights = np.broadcast_to(soft(-plan.eta * self._total), self._shape)
        return np.where(fired, drawn(weights, self._luck()), -1)


def log_potential(total: Floats, eta: float) -> Floats:
    """log of the mean of exp(-eta S) over experts, (R, d) -> (R,)."""
    least = total.min(axis=1)
    shifted = np.exp(-eta * (total - least[:, None]))
    return np.asarray(-eta * least + np.log(shifted.sum(axis=1)) - log(total.shape[1]))
