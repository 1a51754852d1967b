"""Sparse-vector experts: keep one expert until a noisy test says that it lost too much.

`Segments` has the steps that all share; the agents below say by which numbers they are taken.
"""

from math import inf, log, log2
from typing import Any, Literal

import numpy as np

from dpbandit.agent import Inside01, Least0, Positive, started
from dpbandit.agents.experts.calibration import SparseVectorPlan, certified, least, paper
from dpbandit.agents.experts.multiplicative import Delta, Epsilon, Follower
from dpbandit.base import Bools, Floats, InputError, Ints, pick
from dpbandit.privacy import GaussianSpend, Ledger, SegmentAboveThreshold, ledger_of
from dpbandit.privacy.choices import EpochSelection, NoisyTotal
from dpbandit.specs import ExpertsSpec

Mask = Bools


class Segments(Follower):
    """The steps of `SparseVectorExperts`, and what may happen when the K draws are used up.

    At firing K + 1 x stays for good, or with `restarts` L* doubles, x is uniform, S = 0, and there
    are K draws again. With `lag`, the printed order of lines, what a test says is done one round
    later; the round in between is a segment of its own that nobody asks about.
    """

    restarts, lag = False, False
    numbers = started(SparseVectorPlan)
    tests, selections = started(SegmentAboveThreshold), started(EpochSelection)

    def play(self, plan: SparseVectorPlan, best_loss: float, draws: int | None = None) -> None:
        """Begin with L* = `best_loss`; `draws` are K, or as many as there may be with restarts."""
        T, self.numbers, self.first_belief = self.spec.horizon, plan, best_loss
        self.tests = SegmentAboveThreshold(
            self.streams,
            "tests",
            epsilon=plan.threshold_epsilon,
            query_epsilon=plan.test_epsilon,
            noise=plan.noise,
            uses=T,
        )
        K = plan.draws if draws is None else draws
        self.selections = EpochSelection(
            self.spec.n_actions, self.streams, "draws", epsilon=plan.eta, draws=K, uses=T
        )
        exact = "exact losses decide when to go, and to whom"
        spends = self.tests.spend, self.selections.spend
        self.ledger = ledger_of(plan.eta, *spends, without=exact)
        self.uniforms = self.streams.uniforms("uniform experts")
        self.expert = self.uniform()
        self.drawn = self.epoch = np.zeros(self.R, dtype=np.int64)  # since the restart; restarts
        self.frozen = self.fired_one_ago = self.fired_two_ago = np.zeros(self.R, dtype=bool)
        # with `lag`, `fired_one_ago` fired one round ago, `fired_two_ago` two rounds ago

    def learn(self, losses: Floats) -> None:
        # Take steps 2 and 3
        fired = self.fired(pick(losses, self.expert)) & ~self.frozen
        draws = fired & (self.drawn < self.numbers.draws)
        spent = fired & ~draws
        ends = spent & self.restarts
        chosen: Any = self.selections(losses, draws, self.belief, ends)
        self.expert = np.where(draws, chosen, self.expert)
        self.drawn = self.drawn + draws
        self.frozen = self.frozen | (spent & ~ends)
        self.restart(ends)

    @property
    def belief(self) -> Floats:
        """L* as it is believed now, (R,)."""
        return self.first_belief * np.exp2(self.epoch)

    def threshold(self) -> Floats:
        """L* + margin, (R,)."""
        return self.belief + self.numbers.margin

    def fired(self, loss: Floats) -> Mask:
        """Whose segment ends with this round."""
        fired: Any = self.tests(loss, self.threshold(), self.fired_two_ago)
        if self.lag:
            self.fired_two_ago, self.fired_one_ago = self.fired_one_ago, fired & ~self.fired_one_ago
            return self.fired_two_ago
        return np.asarray(fired)

    def restart(self, ends: Mask) -> None:
        """Start again with twice the L* and a uniform expert."""
        self.expert = np.where(ends, self.uniform(), self.expert)
        self.drawn = np.where(ends, 0, self.drawn)
        self.epoch = self.epoch + ends

    def uniform(self) -> Ints:
        """A uniformly random expert for each replica, (R,)."""
        return (self.uniforms() * self.spec.n_actions).astype(np.int64)


class PlannedSegments(Segments):
    """Algorithm 1 by numbers that are given."""

    plan: SparseVectorPlan
    """K, eta, margin and noise"""
    best_loss: Least0 = 0.0
    """the first L*"""
    restarts: bool = False
    """what happens at firing K + 1"""
    lag: bool = False
    """the printed order of lines"""

    def start(self) -> None:
        if not self.alone():
            self.play(self.plan, self.best_loss)


class SparseVectorExperts(Segments):
    """Follow one expert until a sparse-vector test says that it has lost too much.

    Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in
    the realizable regime", ICML 2023, Algorithm 1::

        x uniform, k = 0; for t = 1..T:
          1. play x, see all losses l_t in [0, 1]^d
          2. q = loss of x since it was drawn; fires when  q + noise > L* + margin + rho,
             fresh noise in each test, rho in each segment
          3. on firing 1..K: x with probability prop. to exp(-eta max(S_t, L*) / 2), S_t all losses
             up to now; a segment begins at t + 1. On firing K + 1: x stays for good

        calibration   K                           margin                  noise (rho; test)
        paper         6 ceil(log2 d) + 24 ln 1/b  4/eta + 8 B/eps         Lap(4/eps); Lap(8/eps)
        paper-fixed   the same                    4/eta + 16 B/eps        the same
        certified     the least that suffices     c/eta + ln(T/b)/eps1    Exp, mean 1/eps1, both

        paper:     eta = eps / 2K, or eps / sqrt(32 K ln(1/delta)),  B = ln(2 T^2 / b)
        certified: eps1 = f eps, eta = (1-f) eps / K, or as large as the accountant allows;
                   c and f have the least bound on the mean loss

    At epsilon = inf it is the lazy leader: on when x lost more than L*, to one of the best.

    Guarantee:
        epsilon-DP, or (epsilon, delta)-DP, of all experts played and of the times they change, for
        replacing one round's losses, whatever later losses are chosen by: all tests together cost
        eps1 (Lemma A of `SegmentAboveThreshold`: a round is in one segment), each draw has bounded
        range eta. `best_loss` is public: one that is read off the data voids it.

    **Regret** (certified; oblivious losses, an expert who loses at most L*): of mean at most
    `plan(spec).bound`, of order (L* + log^2 d / epsilon + log d log T / epsilon) log d.

    Differs from the paper:
        1. "certified": fewer draws, by an exact convolution in place of K = 6 log2 d + .. (see
           calibration.py), and a fifth of the noise in tests. What is printed costs 3/4 epsilon.
        2. Theorem 1 needs 16 B, see "paper-fixed".
        3. Rounds are counted from 1, a while loop without an exit gets one (x stays), tests end
           with T.
        4. A test is run before the next loss is paid; `lag` keeps the printed order.
        5. With delta > 0 eta is what the composed privacy loss allows.

    >>> from dpbandit import certify
    >>> spec = ExpertsSpec(n_actions=256, horizon=10_000)
    >>> round(certify(SparseVectorExperts(epsilon=1.0), spec).epsilon, 6)
    1.0
    >>> round(certify(SparseVectorExperts(epsilon=1.0, calibration="paper"), spec).epsilon, 2)
    0.75
    """

    epsilon: Epsilon = 1.0
    """target, > 0; inf plays without privacy"""
    delta: Delta = 0.0
    """target, in [0, 1)"""
    calibration: Literal["certified", "paper", "paper-fixed"] = "certified"
    """which constants, see above"""
    best_loss: Least0 = 0.0
    """L*, a public bound on the total loss of the best expert"""
    beta: Inside01 | None = None
    """failure probability that the threshold and K are chosen for; if None, 1/T. 0.05 plays
    better"""
    lag: bool = False
    """printed order of lines, in which tests are answered one round late"""

    def start(self) -> None:
        if not self.alone():
            self.play(self.plan(self.spec), self.best_loss)

    def plan(self, spec: ExpertsSpec) -> SparseVectorPlan:
        """K, eta, margin and noise for a problem."""
        d, T, failure = spec.n_actions, spec.horizon, self.beta or 1 / spec.horizon
        target = {"epsilon": self.epsilon, "delta": self.delta, "failure": failure}
        if self.epsilon == inf or self.calibration == "certified":
            return least(d, T, best_loss=self.best_loss, **target)
        return paper(d, T, fixed=self.calibration == "paper-fixed", **target)


class AdaptiveSparseVectorExperts(Segments):
    """Sparse-vector experts that double their guess of the best loss when it proves too small.

    Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in
    the realizable regime", ICML 2023, Algorithm 2, with another test. Certified::

        1. play Algorithm 1 (`SparseVectorExperts`) with the belief L* and all of epsilon
        2. when its K draws are used up and a test fires once more: L* doubles, x is uniform,
           and Algorithm 1 starts anew, with sums from the next round on

    As printed, nothing caps the restarts; the threshold stays that of L* = 1, S sums all losses::

        2. after each draw x:  if S(x) + Lap(K / eps0)  >  L* + sign * 5 K ln(T / beta) / eps0
           L* doubles, x is uniform, and there are K draws again

    Guarantee:
        epsilon-DP, or (epsilon, delta)-DP, of all experts played and all times of change, for
        replacing one round's losses: phases see disjoint rounds, and end with a test that has been
        paid for. So all phases cost what one does.

    **Regret.** A phase whose L* is at least the best expert's loss runs out of draws with
    probability beta at most, and one ends after a loss of (K + 1) (its threshold + noise + 1). As
    L* doubles, the total is at most 6 times the bound for the true L* in high probability.

    Differs from the paper:
        1. "paper" is Algorithm 2 as printed: a share eps0 = epsilon / (2 log2 T) for each phase, L*
           from 1, and after each draw the test above with a minus. So it always succeeds, and every
           expert that is drawn is thrown away for a uniform one; and without a cap on restarts
           there is no certified guarantee. "paper-fixed" has a plus, and 16 B in the threshold of
           Algorithm 1; still without a cap.
        2. Logarithms of T and d are to base 2, as the proofs need.
        3. c, f, K and eta are those of the first phase, thresholds follow L*.

    >>> from dpbandit import certify
    >>> spec = ExpertsSpec(n_actions=256, horizon=10_000)
    >>> round(certify(AdaptiveSparseVectorExperts(epsilon=1.0), spec).epsilon, 6)
    1.0
    >>> certify(AdaptiveSparseVectorExperts(calibration="paper"), spec).epsilon
    inf
    """

    epsilon: Epsilon = 1.0
    """target, > 0; inf plays without privacy"""
    delta: Delta = 0.0
    """target, in [0, 1); "paper" has 0 only"""
    calibration: Literal["certified", "paper", "paper-fixed"] = "certified"
    """which constants, see above"""
    first_loss: Positive | None = None
    """the first L*, > 0; if None, the margin of a threshold at L* = 0. "paper" has 1"""
    beta: Inside01 | None = None
    """failure probability of a phase; if None, 1/T"""
    lag: bool = False
    """printed order of lines, in which tests are answered one round late"""
    totals = started(NoisyTotal)

    def check(self) -> None:
        if self.calibration != "certified" and self.delta > 0:
            raise InputError(f"Expected delta={self.delta!r} to be 0 for printed constants.")

    def plan(self, spec: ExpertsSpec) -> tuple[float, SparseVectorPlan]:
        """The first L*, and the numbers of its phase (certified)."""
        d, T, failure = spec.n_actions, spec.horizon, self.beta or 1 / spec.horizon
        first, target = self.first_loss or 0.0, {"epsilon": float(self.epsilon), "failure": failure}
        if self.first_loss is None and self.epsilon < inf:
            first = certified(d, T, delta=self.delta, **target).margin
        return first, least(d, T, delta=self.delta, best_loss=first, **target)

    def start(self) -> None:
        self.restarts = self.calibration == "certified"
        if self.alone():
            return
        if self.restarts:
            first, plan = self.plan(self.spec)
            self.play(plan, first)
            return
        d, T, fixed = self.spec.n_actions, self.spec.horizon, self.calibration == "paper-fixed"
        eps0, b0 = self.epsilon / (2 * max(1.0, log2(T))), (self.beta or 1 / T) / T
        target = {"epsilon": eps0, "delta": 0.0, "failure": b0}
        plan = least(d, T, **target) if eps0 == inf else paper(d, T, fixed=fixed, **target)
        self.play(plan, 1.0, draws=T)
        self.slack = (1 if fixed else -1) * 5 * plan.draws * log(1 / b0) / eps0
        self.totals = NoisyTotal(
            d, self.streams, "doubling test", scale=plan.draws / eps0, draws=T, uses=T
        )
        note = "no certified guarantee: draws, tests and restarts without a cap"
        self.ledger = Ledger((GaussianSpend(inf, note),))

    def threshold(self) -> Floats:
        # L* + margin, (R,); as printed L* stays 1 here
        return super().threshold() if self.restarts else np.full(self.R, 1 + self.numbers.margin)

    def learn(self, losses: Floats) -> None:
        # Take the steps of Algorithm 1; as printed, test after each draw
        before = self.drawn
        super().learn(losses)
        if not self.restarts:
            draws = self.drawn > before
            totals: Any = self.totals(losses, self.expert, draws)
            self.restart(draws & (totals > self.belief + self.slack))
