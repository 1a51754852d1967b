"""Sparse-vector experts: follow one expert until a noisy test finds that it lost too much.

`Segments` has the steps; the agents below choose the parameters.
"""

from math import inf, log, log2
from typing import Any, Literal

import numpy as np

from dpbandit.agent import Delta, Epsilon, Inside01, Least0, Positive, started
from dpbandit.agents.experts.calibration import (
    SparseVectorPlan,
    best_plan,
    certified_plan,
    paper_plan,
)
from dpbandit.agents.experts.multiplicative import Follower
from dpbandit.base import Bools, Floats, InputError, Ints, pick
from dpbandit.privacy import GaussianSpend, Ledger, SegmentAboveThreshold, ledger_of
from dpbandit.privacy.choices import EpochSelection, NoisyTotal
from dpbandit.specs import ExpertsSpec


class Segments(Follower):
    """Base class with the steps of `SparseVectorExperts`, and restarts after K draws.

    If a test fires when all K draws are used, the expert stays for good; with `restarts` the bound
    L* on the best loss doubles, and K draws, sums and a uniform expert start anew. With `lag`, as
    in the paper's listing, a firing test takes effect one round later; the round in between is a
    segment that is not tested.
    """

    restarts, lag = False, False
    numbers = started(SparseVectorPlan)
    tests, selections = started(SegmentAboveThreshold), started(EpochSelection)

    def play(self, plan: SparseVectorPlan, best_loss: float, draws: int | None = None) -> None:
        """Set up mechanisms for a bound on the best loss; `draws` is by default `plan.draws`."""
        T, self.numbers, self.first_best_loss = self.spec.horizon, plan, best_loss
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
        exact = "exact losses decide when the expert changes, and to which"
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
        chosen: Any = self.selections(losses, draws, self.best_loss_now, ends)
        self.expert = np.where(draws, chosen, self.expert)
        self.drawn = self.drawn + draws
        self.frozen = self.frozen | (spent & ~ends)
        self.restart(ends)

    @property
    def best_loss_now(self) -> Floats:
        """Current bound L* on the best total loss, doubled at every restart, (R,)."""
        return self.first_best_loss * np.exp2(self.epoch)

    def threshold(self) -> Floats:
        """Return the loss since the draw above which a segment should end, (R,)."""
        return self.best_loss_now + self.numbers.margin

    def fired(self, loss: Floats) -> Bools:
        """Return the mask (R,) of replicas whose segment ends, given their experts' losses (R,)."""
        fired: Any = self.tests(loss, self.threshold(), self.fired_two_ago)
        if self.lag:
            self.fired_two_ago, self.fired_one_ago = self.fired_one_ago, fired & ~self.fired_one_ago
            return self.fired_two_ago
        return np.asarray(fired)

    def restart(self, ends: Bools) -> None:
        """Double L* and draw a uniform expert in the replicas of the mask `ends`, (R,)."""
        self.expert = np.where(ends, self.uniform(), self.expert)
        self.drawn = np.where(ends, 0, self.drawn)
        self.epoch = self.epoch + ends

    def uniform(self) -> Ints:
        """Return a uniformly random expert for each replica, (R,)."""
        return (self.uniforms() * self.spec.n_actions).astype(np.int64)


class PlannedSegments(Segments):
    """Agent that plays as `SparseVectorExperts`, with given draws, rate, margin and noise."""

    plan: SparseVectorPlan
    """parameters of the run, which are number of draws, rate, margin and noise"""
    best_loss: Least0 = 0.0
    """initial bound L* on the best total loss"""
    restarts: bool = False
    """True to restart if a test fires after the last draw, False to keep the last expert"""
    lag: bool = False
    """True if tests take effect one round late, as in the order of lines that the paper prints"""

    def start(self) -> None:
        if not self.alone():
            self.play(self.plan, self.best_loss)


class SparseVectorExperts(Segments):
    """Follow one expert until a sparse-vector test says that it has lost too much.

    Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in
    the realizable regime", ICML 2023, Algorithm 1::

        x uniform, k = 0; for t = 1..T:
          1. play x, see the losses l_t in [0, 1]^d of all d experts
          2. q = loss of x since it was drawn; fires when  q + noise > L* + margin + rho,
             noise fresh in each test, rho in each segment; L* = `best_loss`
          3. on firing 1..K: x with probability prop. to exp(-eta max(S_t, L*) / 2), S_t its total
             loss; a segment begins at t + 1. On firing K + 1: x stays for good

        calibration   K                           margin                  noise (rho; test)
        paper         6 ceil(log2 d) + 24 ln 1/b  4/eta + 8 B/eps         Lap(4/eps); Lap(8/eps)
        paper-fixed   the same                    4/eta + 16 B/eps        the same
        certified     the least that suffices     c/eta + ln(T/b)/eps1    Exp, mean 1/eps1, both

        paper:     eta = eps / 2K, or eps / sqrt(32 K ln(1/delta)),  B = ln(2 T^2 / b),  b = beta
        certified: eps1 = f eps, eta = (1-f) eps / K, or as large as the accountant allows;
                   c and f have the least bound on the mean loss

    At epsilon = inf it is the lazy leader: if x lost more than L*, a best expert replaces x.

    Guarantee:
        epsilon-DP, or (epsilon, delta)-DP, of all experts played and of the times they change, for
        replacing one round's losses, even if later losses depend on experts: all tests together
        cost eps1 (Lemma A of `SegmentAboveThreshold`: a round is in one segment), each draw has
        bounded range eta. `best_loss` is public: a value computed from the data voids this.

    **Regret** with "certified", for oblivious losses and a best loss <= L*, has a mean of at most
    `plan(spec).bound`, of order (L* + log^2 d / epsilon + log d log T / epsilon) log d.

    Differs from the paper:
        1. "certified": fewer draws, by an exact convolution in place of K = 6 log2 d + .. (see
           calibration.py), and a fifth of the noise in tests. "paper" costs 3/4 epsilon.
        2. Theorem 1 needs 16 B in the margin, as "paper-fixed" has.
        3. Rounds are counted from 1. The paper's while loop has no exit; here x stays after draw K,
           and tests end with round T.
        4. A test takes effect before the next round; `lag` keeps the order of lines in the paper.
        5. With delta > 0 eta is the largest that the composed privacy loss allows.

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
    """row of the table above for number of draws K, margin and noise"""
    best_loss: Least0 = 0.0
    """public bound L* on the total loss of the best expert"""
    beta: Inside01 | None = None
    """failure probability for threshold and K; if None, 1/T; in practice 0.05 has less regret"""
    lag: bool = False
    """True if tests take effect one round late, as in the order of lines that the paper prints"""

    def start(self) -> None:
        if not self.alone():
            self.play(self.plan(self.spec), self.best_loss)

    def plan(self, spec: ExpertsSpec) -> SparseVectorPlan:
        """Return the number of draws, rate, margin and noise for a problem."""
        d, T, failure = spec.n_actions, spec.horizon, self.beta or 1 / spec.horizon
        target = {"epsilon": self.epsilon, "delta": self.delta, "failure": failure}
        if self.epsilon == inf or self.calibration == "certified":
            return best_plan(d, T, best_loss=self.best_loss, **target)
        return paper_plan(d, T, fixed=self.calibration == "paper-fixed", **target)


class AdaptiveSparseVectorExperts(Segments):
    """Sparse-vector experts that double their guess of the best loss when it proves too small.

    Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in
    the realizable regime", ICML 2023, Algorithm 2, with another test. Certified::

        1. play Algorithm 1 (`SparseVectorExperts`) with the current L* and all of epsilon
        2. when its K draws are used up and a test fires once more: L* doubles, x is uniform,
           and Algorithm 1 starts anew, with sums from the next round on

    In the paper restarts are not capped; the threshold stays at L* = 1, and S sums all losses::

        2. after each draw x:  if S(x) + Lap(K / eps0)  >  L* + sign * 5 K ln(T / beta) / eps0
           L* doubles, x is uniform, and there are K draws again

    Guarantee:
        epsilon-DP, or (epsilon, delta)-DP, of all experts played and all times of change, for
        replacing one round's losses: phases, from restart to restart, see disjoint rounds, and the
        test that ends a phase is one of its tests. So all phases cost as much as one phase.

    **Regret.** A phase with an L* at least the best expert's loss runs out of draws with
    probability beta at most, and a phase ends after a loss of (K + 1) (its threshold + noise + 1).
    As L* doubles, the total is at most 6 times the bound for the true L* with high probability.

    Differs from the paper:
        1. "paper" is Algorithm 2 as printed: a share eps0 = epsilon / (2 log2 T) for each phase, L*
           from 1, and after each draw the test above with sign = -1. So the test always fires, and
           a uniform expert replaces every drawn expert; without a cap on restarts there is no
           certified guarantee. "paper-fixed" has sign = 1, and 16 B in Algorithm 1's threshold; it
           has no cap either.
        2. Logarithms of T and d are to base 2, as the proofs need.
        3. The constants c, f, K and eta of the first phase are used in all; thresholds follow L*.

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
    """target, in [0, 1); must be 0 for the paper's constants"""
    calibration: Literal["certified", "paper", "paper-fixed"] = "certified"
    """constants as certified, or the paper's, as printed or with the above errors corrected"""
    first_loss: Positive | None = None
    """initial bound L* on the best loss, > 0; if None, the test's margin at L* = 0, but 1 with the
    paper's constants"""
    beta: Inside01 | None = None
    """failure probability of a phase between restarts; if None, 1/T"""
    lag: bool = False
    """True if tests take effect one round late, as in the order of lines that the paper prints"""
    totals = started(NoisyTotal)

    def check(self) -> None:
        if self.calibration != "certified" and self.delta > 0:
            raise InputError(f"Expected delta={self.delta!r} to be 0 for printed constants.")

    def plan(self, spec: ExpertsSpec) -> tuple[float, SparseVectorPlan]:
        """Return the initial bound on the best loss, and the first phase's certified parameters."""
        d, T, failure = spec.n_actions, spec.horizon, self.beta or 1 / spec.horizon
        first, target = self.first_loss or 0.0, {"epsilon": float(self.epsilon), "failure": failure}
        if self.first_loss is None and self.epsilon < inf:
            first = certified_plan(d, T, delta=self.delta, **target).margin
        return first, best_plan(d, T, delta=self.delta, best_loss=first, **target)

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
        plan = best_plan(d, T, **target) if eps0 == inf else paper_plan(d, T, fixed=fixed, **target)
        self.play(plan, 1.0, draws=T)
        self.slack = (1 if fixed else -1) * 5 * plan.draws * log(1 / b0) / eps0
        self.totals = NoisyTotal(
            d, self.streams, "doubling test", scale=plan.draws / eps0, draws=T, uses=T
        )
        note = "no certified guarantee: draws, tests and restarts without a cap"
        self.ledger = Ledger((GaussianSpend(inf, note),))

    def threshold(self) -> Floats:
        # As printed, the threshold stays at L* = 1
        return super().threshold() if self.restarts else np.full(self.R, 1 + self.numbers.margin)

    def learn(self, losses: Floats) -> None:
        # Take the steps of Algorithm 1; as printed, test after each draw
        before = self.drawn
        super().learn(losses)
        if not self.restarts:
            draws = self.drawn > before
            totals: Any = self.totals(losses, self.expert, draws)
            self.restart(draws & (totals > self.best_loss_now + self.slack))
