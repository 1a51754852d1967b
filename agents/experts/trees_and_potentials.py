"""Algorithms 4 and 5 of Asi, Feldman, Koren and Talwar (ICML 2023), for comparison.

Algorithm 4 is a baseline, and Algorithm 5 fails. To follow experts, use `SparseVectorExperts`,
their Algorithm 1.
"""

from math import ceil, expm1, inf, log, log1p, log2, sqrt
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dpbandit.agent import Count, Inside01, Least0, Positive, started
from dpbandit.agents.experts.multiplicative import Follower, soft
from dpbandit.base import (
    MOST_ACTIONS,
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    Streams,
    drawn,
    noise_target,
    rows,
    shaped,
    whole,
)
from dpbandit.privacy import (
    BoundedRangeSpend,
    Laplace,
    Ledger,
    Mechanism,
    PureSpend,
    mu_of,
    no_privacy,
)
from dpbandit.privacy.batches import NodeLaw, RestartingTrees
from dpbandit.privacy.choices import CumulativeLosses, RemainingTopK
from dpbandit.privacy.curves import zcdp_rho_of
from dpbandit.privacy.ledger import Sequential
from dpbandit.privacy.noise import OneSidedExponential
from dpbandit.privacy.premises import SUMMED
from dpbandit.specs import ExpertsSpec

_RATE_MARGIN, _SCALE_MARGIN = 1 - 1e-12, 1 + 1e-12  # keep rounded costs within the budget
Draws: TypeAlias = Annotated[int, lambda name, value: whole(name, value, 1, MOST_ACTIONS)]
Law: TypeAlias = type[OneSidedExponential] | type[Laplace]


class TreePlan(NamedTuple):
    """Public parameters of a run of `BinaryTreeExperts`."""

    size: int
    """number B of experts in a set"""
    phases: int
    """largest number N of phases"""
    picks: int
    """number of experts drawn by their losses, at most `size` x (`phases` - 1)"""
    eta: float
    """bounded range of the draw of one expert"""
    scale: float
    """noise of a tree node, as a standard deviation or Laplace scale"""
    threshold: float
    """threshold tau; a phase ends once all counters of its set are above it"""
    bound: float
    """bound on the total loss with probability 1 - beta, if parameters="certified", else inf"""


class BinaryTreeExperts(Follower):
    """Follow the noisy leader of a set of B experts; when the set fails, take the next.

    Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in
    the realizable regime", ICML 2023, Algorithm 4, reconstructed from a sketch::

        A = all d experts, C = B of them, uniformly; for t = 1..T:
          1. play the x in C with the least counter c_x, see the losses l_t in [0, 1]^d
          2. c_x = losses of x since C was drawn + tree noise, for all x in C
          3. if min c_x > tau, in one of the first N - 1 phases, and A \\ C is not empty:
             A <- A \\ C, then C = B of A without replacement, weights exp(-eta max(S_t, L*) / 2),
             S_t total losses, L* = `best_loss`; below b = `beta`

        certified   a = -ln(1 - (1 - e^(-c/2)) / 2), N = ceil(ln d / a) + 1, B = ceil(log2(4 N/b)),
                    tau = L* + c/eta + err, err >= errors of all counters with probability 1 - b/2
        small       B = 4, tau = 2 sigma sqrt(log2 T), sigma the noise of a node

    If fewer than B experts are left, C is all of them.

    Guarantee:
        (epsilon, delta)-DP of all experts played, for replacing one round's losses: a round is in
        one phase's trees (`RestartingTrees`, B h numbers, h = bit_length(T - 1)) and in all (N - 1)
        B draws of an expert (`RemainingTopK`, bounded range eta each), the first set being uniform.
        Trees and draws get half of the budget each: of epsilon at delta = 0, else of zCDP (by CKS).
        The ledger composes the privacy losses of both numerically, as draws have no Gaussian DP.

    **Regret** ("certified"; oblivious losses, an expert who loses at most L*): at most N B (tau +
    err + 1) with probability 1 - b, because a phase ends only if all B experts are bad, which has
    probability 2^-B while the potential falls by less than a. The bound is useless: it is 10^6 at d
    = 256, T = 10^4, epsilon = 1. "small" has no bound, as noise also ends the phases of good sets.

    Differs from the paper:
        1. The paper has only a sketch: sets, phases, counters and all constants are our
           reconstruction, with a proof of ours, and there is no calibration="paper".
        2. "small" is an addition.

    >>> from dpbandit import certify
    >>> spec = ExpertsSpec(n_actions=16, horizon=1000)
    >>> certify(BinaryTreeExperts(epsilon=1.0), spec).holds
    True
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float | None = None
    """target, in [0, 1); if None, 1e-6 with Gaussian noise, 0 with Laplace noise"""
    noise: NodeLaw = "gaussian"
    """distribution of the noise of tree nodes"""
    parameters: Literal["certified", "small"] = "certified"
    """"certified" has sets with a proved bound on the loss, "small" has sets of 4 experts"""
    size: Count | None = None
    """number of experts in a set; if None, by `parameters`"""
    threshold: Least0 | None = None
    """noisy loss; a phase ends if all experts of its set exceed it; if None, by `parameters`"""
    phases: Count | None = None
    """largest number of phases; if None, by `parameters`"""
    best_loss: Least0 = 0.0
    """public bound L* on the total loss of the best expert"""
    c: Positive = 4.0
    """constant c of the proof, in which an expert is bad if it loses more than L* + c/eta"""
    beta: Inside01 | None = None
    """failure probability of the bound on the loss; if None, 1/T"""
    trees, picks = started(RestartingTrees), started(RemainingTopK)

    def check(self) -> None:
        noise_target(self)

    def plan(self, spec: ExpertsSpec) -> TreePlan:
        """Return the size and number of sets, rate, noise and threshold for a problem."""
        d, T = spec.n_actions, spec.horizon
        failure, h = self.beta or 1 / T, RestartingTrees.nodes(T)
        drop = -log1p(expm1(-self.c / 2) / 2)
        N = self.phases or ceil(log(d) / drop) + 1
        B = self.size or (4 if self.parameters == "small" else ceil(log2(4 * N / failure)))
        B = min(B, d)
        N = min(N, ceil(d / B))
        picks = min((N - 1) * B, d - B)
        eta, scale = self.budget(picks, B * h)
        level = log(2 * T * B * N / failure)
        if self.noise == "gaussian":
            error = scale * sqrt(2 * h * level)
        else:  # Chan, Shi and Song 2011, Lemma 2.8
            error = scale * sqrt(8 * level * max(h, level))
        tau, bound = self.best_loss + self.c / eta + error, inf
        if self.parameters == "small":
            stddev = scale * (1.0 if self.noise == "gaussian" else sqrt(2))
            tau = 2 * stddev * sqrt(log2(T))
        elif self.size is self.threshold is self.phases is None:
            bound = N * B * (tau + error + 1)
        tau = tau if self.threshold is None else self.threshold
        return TreePlan(B, N, picks, eta, scale, tau, bound)

    def budget(self, picks: int, numbers: int) -> tuple[float, float]:
        """Return each of `picks` draws' bounded range, and the noise of each of `numbers` sums."""
        if self.epsilon == inf:
            return inf, 0.0
        half = 0.5 if picks else 1.0
        if not self.delta:
            spent = half * self.epsilon
            return spent / max(picks, 1) * _RATE_MARGIN, numbers / spent * _SCALE_MARGIN
        if self.noise == "gaussian" and not picks:
            return inf, sqrt(numbers) / mu_of(self.epsilon, self.delta) * _SCALE_MARGIN
        rho = half * zcdp_rho_of(self.epsilon, self.delta)
        return sqrt(8 * rho / max(picks, 1)) * _RATE_MARGIN, sqrt(
            numbers / (2 * rho)
        ) * _SCALE_MARGIN

    def start(self) -> None:
        if self.alone():
            return
        R, d, T = self.R, self.spec.n_actions, self.spec.horizon
        self.run = plan = self.plan(self.spec)
        self.trees = RestartingTrees(
            self.streams, "counters", width=plan.size, law=self.noise, scale=plan.scale, horizon=T
        )
        self.picks = RemainingTopK(
            d,
            self.streams,
            "sets",
            k=plan.size,
            epsilon=plan.eta,
            draws=plan.phases - 1,
            uses=T,
            most=plan.picks,
            floor=self.best_loss,
        )
        self.ledger = Ledger(
            (self.picks.spend, self.trees.spend) if plan.picks else (self.trees.spend,)
        )
        if plan.scale == 0 and T > 1:
            self.ledger = no_privacy("exact counters and sums of losses")
        order = self.streams.uniforms("first set", d)().argsort(axis=1)
        self.members: Ints = order[:, : plan.size]  # experts of C
        self.counters: Floats = np.zeros((R, plan.size))
        self.phase = np.zeros(R, dtype=np.int64)
        self.begins = np.zeros(R, dtype=bool)
        self.taken = self.with_members(np.zeros((R, d), dtype=bool), np.ones(R, dtype=bool))

    def with_members(self, taken: Bools, replicas: Ints) -> Bools:
        """Return the mask `taken` (R, d) of used experts, with new sets of some replicas added."""
        taken = taken.copy()
        r, b = np.nonzero((self.members >= 0) & replicas[:, None])
        taken[r, self.members[r, b]] = True
        return taken

    def act(self, context: Floats) -> Ints:
        if self.resting:
            return super().act(context)
        return self.members[rows(self.R), self.counters.argmin(axis=1)]

    def learn(self, losses: Floats) -> None:
        # Take steps 2 and 3
        sums = self.trees(losses, self.members, self.begins)
        if sums is None:
            return
        self.counters = np.where(self.members < 0, np.inf, sums)
        over = self.counters.min(axis=1) > self.run.threshold
        self.begins = over & (self.phase < self.run.phases - 1) & ~self.taken.all(axis=1)
        chosen = np.asarray(self.picks(losses, self.begins, self.taken))
        new = self.begins[:, None]
        self.members = np.where(new, chosen, self.members)
        self.counters = np.where(new, np.where(chosen < 0, np.inf, 0.0), self.counters)
        self.phase = self.phase + self.begins
        self.taken = self.with_members(self.taken, self.begins)


class PotentialDraws(Mechanism):
    """Draws of an expert whenever the potential has fallen by a threshold since the last draw::

        log phi(t) = log of the mean over experts x of exp(-eta S_t(x)), S_t the total loss

        call(losses (R, d)) -> expert (R,), -1 in replicas without a draw
          1. S <- S + clip(losses), q = (log phi(t*) - log phi(t)) / eta, t* the last draw's round
          2. while draws are left: fires when  q + noise >= threshold + rho
          3. then x with probability prop. to exp(-eta S(x)); t* = t, rho fresh

    Guarantee:
        Calls cost `tests` and, for draws, `picks` for replacing one round. *Tests.* A round moves
        log phi(t) / eta by some b_t in [-1, 1], and log phi(t*) / eta by some a in [-1, 1], a = 0
        if t* is before it: q_t moves by a - b_t, between -2 and 2. If rho + a + 1 replaces rho,
        earlier tests still do not fire, and the test that fired needs a noise larger by 1 + b_t.
        Both are shifts by 0 to 2, upwards: tests of a draw cost 2 / (scale of rho) + 2 / (scale of
        tests), with Laplace or one-sided exponential noise. A round is in all later sums: the
        costs of K draws' tests add up. *Draws.* eta S moves by eta either way, so a draw has
        bounded range 2 eta.

    Args:
        n_experts, streams: number d of experts, and the random streams of the replicas.
        draws, eta: largest number K of draws, and their rate.
        threshold: fall of the potential at which a test fires, in units of the query q.
        scales, law: scales of the threshold's noise rho and of each test's noise, and their law.
        uses: number of calls.
    """

    # "Calls cost `tests` and, for draws, `picks` for replacing one round."
    needs = SUMMED

    order = inf
    """order of the norm of `sensitivity`; inf takes the largest change of one expert's loss"""

    def __init__(
        self,
        n_experts: int,
        streams: Streams,
        *,
        draws: int,
        eta: float,
        threshold: float,
        scales: tuple[float, float],
        law: Law,
        uses: int,
    ) -> None:
        cost = 2 / scales[0] + 2 / scales[1]
        self.tests = PureSpend.alike(f"{draws} phases of tests of the potential", cost, draws)
        self.picks = BoundedRangeSpend.alike(f"{draws} draws by the potential", 2 * eta, draws)
        self.spend = Sequential((self.tests, self.picks), "potential")
        self._losses = CumulativeLosses(n_experts)
        self.sensitivity, self.uses = self._losses.sensitivity, uses
        self._eta, self._threshold = eta, threshold
        self._threshold_noise = law(scales[0]).sampler(streams, "threshold", ())
        self._test_noise = law(scales[1]).sampler(streams, "tests", ())
        self._uniforms = streams.uniforms("draws")
        self._shape = (len(streams), n_experts)
        self._total: Floats = np.zeros((1, n_experts))  # S, exact: never leaves here
        self._last = np.zeros(len(streams))  # log phi(t*)
        self._left = np.full(len(streams), draws)
        self._rho = self._threshold_noise()

    def query(self, *datum: AnyArray) -> Floats:
        shaped("losses", datum[0], self._shape)
        return self._losses.query(datum[0])

    def _release(self, *datum: AnyArray) -> Any:
        self._total = self._losses.after(self._total, self.query(*datum))
        potential = log_potential(self._total, self._eta)
        fallen = (self._last - potential) / self._eta
        above = fallen + self._test_noise() >= self._threshold + self._rho
        fired = above & (self._left > 0)
        self._left = self._left - fired
        self._last = np.where(fired, potential, self._last)
        self._rho = np.where(fired, self._threshold_noise(), self._rho)
        weights = np.broadcast_to(soft(-self._eta * self._total), self._shape)
        return np.where(fired, drawn(weights, self._uniforms()), -1)


def log_potential(total: Floats, eta: float) -> Floats:
    """Return the log of the mean over experts of exp(-eta total loss), (R,)."""
    least = total.min(axis=1)
    shifted = np.exp(-eta * (total - least[:, None]))
    return np.asarray(-eta * least + np.log(shifted.sum(axis=1)) - log(total.shape[1]))


class PotentialExperts(Follower):
    """DO NOT USE: redraws the expert only when the potential of all experts has fallen.

    Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in
    the realizable regime", ICML 2023, Algorithm 5 (appendix C)::

        x uniform, t* = 0; for t = 1..T:
          1. play x, see the losses l_t in [0, 1]^d of all d experts, S_t their sums
          2. q = (log phi(t*) - log phi(t)) / eta,  phi(t) the mean of exp(-eta S_t(x))
          3. if q + noise >= threshold + rho, K times at most:
             x with probability prop. to exp(-eta S_t(x)); t* = t, rho fresh

        calibration   K            eps0                 eta               noise (rho; test)
        paper         2 ln d       eps / K              eps0 / 56 ln T    Lap(2/eps0); Lap(4/eps0)
        certified     2 ln d       K (eps0 + 2 eta)     eps0 / 8 ln T     Exp, mean 4/eps0, both
                                     = eps
        threshold     literal: 2 alpha;  corrected: 2 alpha / eta

    **It fails.** Lemma C.3, and with it Theorems 6 and 7, are false: an upper bound has exp(-eta
    S_{t-1}) in place of the larger exp(-eta S_{t*}). The expert drawn at t* may lose in all later
    rounds, while its weight, and with it the potential, no longer moves. With d = 2 and losses (0,
    1) the potential falls by ln 2 < 2 alpha at most: half of all runs lose in all T rounds, at
    every epsilon. With d experts that lose at random and one that never does, a constant fraction
    of runs is stuck. With the literal threshold, noise fires all tests at once, and the K draws are
    used up in the first rounds. `SparseVectorExperts` repairs this by testing the loss of x; its
    proof holds for any base measure, and `BallExperts` uses the uniform law of a ball.

    Guarantee:
        The paper claims epsilon. For replacing one round's losses a draw has range 2 eta, and q
        moves by up to 2, not by 1 (see `PotentialDraws`), so that "paper" costs K (3/2 eps0 + 2
        eta) = 3/2 epsilon + 2 K eta; "certified" keeps epsilon.

    Differs from the paper:
        1. Constants are those of Theorem 6, with K rounded up.
        2. "corrected": the lemmas have a threshold on log phi, the paper's code a threshold on q,
           which is 1 / eta times larger.
        3. Only pure DP is offered.

    >>> from dpbandit import certify
    >>> spec = ExpertsSpec(n_actions=16, horizon=1000)
    >>> certify(PotentialExperts(), spec).holds
    True
    >>> round(certify(PotentialExperts(calibration="paper"), spec).epsilon, 4)
    1.5052
    """

    epsilon: Positive = 1.0
    """target, > 0, finite"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is the smallest noise that meets epsilon and delta, "paper" the noise that the
    paper prints, whatever epsilon it meets"""
    threshold_units: Literal["corrected", "literal"] = "corrected"
    """unit of the threshold 2 x `alpha`; log potential, or for "literal" log potential / `eta`"""
    alpha: Positive = 1.0
    """half the fall of the log potential log phi at which a test fires"""
    draws: Draws | None = None
    """largest number K of draws; if None, ceil(2 ln d) for d experts"""
    eta: Positive | None = None
    """rate of the exponential weights of a draw; if None, by `calibration`"""
    potential = started(PotentialDraws)

    def start(self) -> None:
        if self.alone():
            return
        d, T, printed = self.spec.n_actions, self.spec.horizon, self.calibration == "paper"
        K = self.draws or ceil(2 * log(d))
        each, rounds = float(self.epsilon) / K, log(max(T, 2))
        eta = self.eta or (each / (56 * rounds) if printed else each / (8 * rounds + 2))
        eps0 = each if printed else (each - 2 * eta) * (1 - 1e-12)
        if eps0 <= 0:
            raise InputError(f"Expected eta={eta} < epsilon / 2 K = {each / 2}.")
        self.potential = PotentialDraws(
            d,
            self.streams,
            draws=K,
            eta=eta,
            threshold=2 * self.alpha / (1.0 if self.threshold_units == "literal" else eta),
            scales=((2 if printed else 4) / eps0, 4 / eps0),
            law=Laplace if printed else OneSidedExponential,
            uses=T,
        )
        self.ledger = Ledger((self.potential.tests, self.potential.picks))
        self.expert = (self.streams.uniforms("first expert")() * d).astype(np.int64)

    def learn(self, losses: Floats) -> None:
        # Take steps 2 and 3
        new = np.asarray(self.potential(losses))
        self.expert = np.where(new < 0, self.expert, new)
