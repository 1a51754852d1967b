"""Potential experts: the algorithm of a false lemma, to watch it fail."""

from dataclasses import dataclass
from math import ceil, inf, log
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dpbandit.agents.experts.draws import drawn, soft
from dpbandit.agents.experts.segments import OnlyExpert
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import MOST_ACTIONS, InputError, one_of, positive, shaped, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.accounting.pure import BoundedRangeSpend, PureSpend
from dpbandit.privacy.accounting.sequential import Sequential
from dpbandit.privacy.choices.selection import CumulativeLosses
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.noise.laws import Laplace, OneSidedExponential
from dpbandit.specs.experts import ExpertsSpec
from dpbandit.specs.protocols import Spec, fits

PotentialNoise: TypeAlias = Literal["exponential", "laplace"]
_LAWS: dict[str, type[OneSidedExponential] | type[Laplace]] = {
    "exponential": OneSidedExponential,
    "laplace": Laplace,
}


@dataclass(frozen=True, kw_only=True)
class PotentialExperts:
    """DO NOT USE: draws a new expert only when the potential of all of them has fallen.

    Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in
    the realizable regime", ICML 2023, Algorithm 5 (appendix C)::

        x uniform, t* = 0; for t = 1..T:
          1. play x, see all losses l_t in [0, 1]^d
          2. q = (log phi(t*) - log phi(t)) / eta,  phi(t) the mean of exp(-eta S_t(x))
          3. if q + noise >= threshold + rho, K times at most:
             x with probability prop. to exp(-eta S_t(x)); t* = t, rho fresh

        calibration   K            eps0                 eta               noise (rho; test)
        paper         2 ln d       eps / K              eps0 / 56 ln T    Lap(2/eps0); Lap(4/eps0)
        certified     2 ln d       K (eps0 + 2 eta)     eps0 / 8 ln T     Exp, mean 4/eps0, both
                                     = eps
        threshold     literal: 2 alpha;  corrected: 2 alpha / eta

    **It fails.** Lemma C.3, and with it Theorems 6 and 7, are false: an upper bound puts
    exp(-eta S_{t-1}) in the place of the larger exp(-eta S_{t*}). Who is drawn at t* may lose for
    ever, while her weight and with it the potential no longer move. With d = 2 and losses (0, 1)
    the potential falls by ln 2 < 2 alpha at most: half of all runs lose in all T rounds, at every
    epsilon. With d coins and one expert who never loses, a constant fraction of runs is stuck.
    With the literal threshold noise fires all tests at once, and the draws are gone in the first
    rounds. The repair tests the loss of x itself: `SparseVectorExperts`, whose proof holds for any
    base measure, `BallExperts` for the uniform law of a ball.

    Code:
        Step 1 is `Potential.act`, steps 2 and 3 are `PotentialDraws._release`, which draws by
        `drawn` (draws.py).

    Guarantee:
        As printed: epsilon. For replacing one round's losses a draw has range 2 eta, and q moves by
        up to 2, not by 1 (see `PotentialDraws`), so that "paper" costs K (3/2 eps0 + 2 eta) = 3/2
        epsilon + 2 K eta; "certified" keeps epsilon.

    Differs from the paper:
        1. Theorem 6's constants with ceil(K).
        2. "corrected": the lemmas speak of log phi, the line of code of q, which is 1 / eta times
           that.
        3. Pure DP only.

    >>> from dpbandit import certify
    >>> spec = ExpertsSpec(n_actions=16, horizon=1000)
    >>> certify(PotentialExperts(), spec).holds
    True
    >>> round(certify(PotentialExperts(calibration="paper"), spec).epsilon, 4)
    1.5052
    """

    epsilon: float = 1.0
    """target, > 0, finite"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""
    threshold_units: Literal["corrected", "literal"] = "corrected"
    """whether the threshold 2 alpha is in units of log phi or, as printed, of the query"""
    alpha: float = 1.0
    """half the fall of log phi that is tested for"""
    draws: int | None = None
    """K"""
    eta: float | None = None
    """rate of a draw; if None, by the calibration"""

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        one_of("calibration", self.calibration, ("certified", "paper"))
        one_of("threshold_units", self.threshold_units, ("corrected", "literal"))
        positive("alpha", self.alpha)
        if self.draws is not None:
            whole("draws", self.draws, 1, MOST_ACTIONS)
        if self.eta is not None:
            positive("eta", self.eta)

    def make(self, spec: Spec, streams: Streams) -> "Potential | OnlyExpert":
        """A running agent; raises `InputError` for anything but experts."""
        spec = fits(self, spec, ExpertsSpec)
        if spec.n_actions == 1:
            return OnlyExpert(len(streams))
        return Potential(spec, streams, self.plan(spec))

    def plan(self, spec: ExpertsSpec) -> "PotentialPlan":
        """K, eta, the threshold and the scales for a problem."""
        K = self.draws or ceil(2 * log(spec.n_actions))
        each, rounds = float(self.epsilon) / K, log(max(spec.horizon, 2))
        paper = self.calibration == "paper"
        if paper:
            eps0, eta = each, self.eta or each / (56 * rounds)
        else:
            eta = self.eta or each / (8 * rounds + 2)
            eps0 = (each - 2 * eta) * (1 - 1e-12)
            if eps0 <= 0:
                raise InputError(f"Expected eta={eta} < epsilon / 2 K = {each / 2}.")
        unit = 1.0 if self.threshold_units == "literal" else eta
        return PotentialPlan(
            draws=K,
            eta=eta,
            threshold=2 * self.alpha / unit,
            threshold_scale=(2 if paper else 4) / eps0,
            test_scale=4 / eps0,
            noise="laplace" if paper else "exponential",
        )


class Potential:
    """The running agent."""

    def __init__(self, spec: ExpertsSpec, streams: Streams, plan: "PotentialPlan") -> None:
        self._potential = PotentialDraws(spec.n_actions, streams, plan, uses=spec.horizon)
        self.ledger = Ledger((self._potential.tests, self._potential.picks))
        luck = streams.uniforms("first expert")()
        self.expert: Ints = (luck * spec.n_actions).astype(np.int64)

    def act(self, context: Floats) -> Ints:
        """The expert drawn last, (R,)."""
        return self.expert.copy()

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Learn from all losses of a round, (R, d)."""
        new = np.asarray(self._potential(feedback))
        self.expert = np.where(new < 0, self.expert, new)


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
    """Draws an expert whenever the potential fell far enough since the last one::

        log phi(t) = log of the mean over x of exp(-eta S_t(x))

        call(losses (R, d)) -> expert (R,), -1 where nothing is drawn
          1. S <- S + clip(losses), q = (log phi(t*) - log phi(t)) / eta, t* the last draw's round
          2. while draws are left: fires when  q + noise >= threshold + rho
          3. then x with probability prop. to exp(-eta S(x)); t* = t, rho fresh

    Guarantee:
        All calls together cost `tests` and `picks` for replacing one round. *Tests.* A round moves
        log phi(t) / eta by some b_t in [-1, 1], and log phi(t*) / eta by some a in [-1, 1], 0 where
        t* is earlier: q_t moves by a - b_t, between -2 and 2. Put rho + a + 1 for rho: what did not
        fire does not fire, and the test that fired needs a noise larger by 1 + b_t. Both are shifts
        by 0 to 2, upwards, so one phase costs 2 / (scale of rho) + 2 / (scale of tests), with
        Laplace or one-sided exponential noise. Every round is in the sums of every later phase: K
        phases add up. *Picks.* eta S moves by eta either way, so a draw has bounded range 2 eta.

    Args:
        n_experts: d.
        streams: the random streams of the replicas.
        plan: K, eta, the threshold and the scales.
        uses: calls that will be made.
    """

    order = inf
    """the norm in which `sensitivity` is meant, for one expert's loss"""

    def __init__(self, n_experts: int, streams: Streams, plan: PotentialPlan, *, uses: int) -> None:
        K, R, law = plan.draws, len(streams), _LAWS[plan.noise]
        cost = 2 / plan.threshold_scale + 2 / plan.test_scale
        self.tests = PureSpend.alike(f"{K} phases of tests of the potential", cost, K)
        self.picks = BoundedRangeSpend.alike(f"{K} draws by the potential", 2 * plan.eta, K)
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
