"""Agents that follow experts by exponential weights, or follow the leader.

`Follower`, the base class of all agents for experts, comes first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import ceil, inf, log, sqrt

import numpy as np

from dpbandit.agent import Agent, Delta, Epsilon, Least0, Positive, PrivateAgent, started
from dpbandit.base import Floats, InputError, Ints, clip_range, drawn, pick, shaped
from dpbandit.privacy import (
    BoundedRangeSpend,
    Ledger,
    PrefixSum,
    PureSpend,
    Target,
    Tree,
    certified_sum,
    exact_prefix_sum,
    ledger_of,
    no_data,
    no_privacy,
)
from dpbandit.privacy.choices import CumulativeLosses, EpochSelection, ExponentialMechanism
from dpbandit.privacy.curves import zcdp_rho_of
from dpbandit.privacy.fading import growing_batches
from dpbandit.privacy.moments import ClippedEntries
from dpbandit.privacy.sparse_vector import RedrawBit, redraw_probability
from dpbandit.specs import ExpertsSpec

_BIT_SHARES = tuple(np.linspace(0.05, 0.95, 19).tolist())
"""Tried shares of epsilon for the redraw bit; the best rate hardly depends on the share."""
_RATE_MARGIN = 1 - 1e-9
"""Factor of rates, below 1 so that sums of rounded numbers stay within the privacy budget."""


def soft(scores: Floats) -> Floats:
    """Return the weights exp(score - largest score), (R, d): a softmax before normalisation."""
    return np.exp(scores - scores.max(axis=1, keepdims=True))


class Follower(Agent[ExpertsSpec]):
    """Base class of agents that follow `expert` (R,), which `learn` may replace after a round."""

    plays = ExpertsSpec
    resting = False

    def alone(self) -> bool:
        """Set `expert` to 0 and the ledger to no cost; return True if there is a single expert."""
        self.expert: Ints = np.zeros(self.R, dtype=np.int64)
        self.resting, self.ledger = self.spec.n_actions == 1, no_data()
        return self.resting

    def uniform_expert(self) -> Ints:
        """Return a uniformly random expert for each replica, (R,)."""
        everybody = np.ones((self.R, self.spec.n_actions))
        return drawn(everybody, self.streams.uniforms("first expert")())

    def act(self, context: Floats) -> Ints:
        return self.expert.copy()

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        if not self.resting:
            shaped("losses", feedback, (self.R, self.spec.n_actions))
            self.learn(feedback)

    def learn(self, losses: Floats) -> None:
        """Learn from the losses of all d experts in one round, (R, d)."""
        raise NotImplementedError


class ExponentialWeights(Follower):
    """Base class of agents that draw an expert each round with probability prop. to exp(-eta S).

    S (R, d) are running sums of the losses of d experts, exact or noisy.
    """

    sums = started(PrefixSum)

    def weigh(self, sums: PrefixSum, rate: float | None) -> None:
        """Set the mechanism of running sums, and the rate, by default sqrt(8 ln d / T)."""
        d = self.spec.n_actions
        self.sums, self.eta = sums, sqrt(8 * log(d) / self.spec.horizon) if rate is None else rate
        self.uniforms = self.streams.uniforms("experts")
        self.total: Floats = np.zeros((self.R, d))

    def act(self, context: Floats) -> Ints:
        return drawn(soft(-self.eta * self.total), self.uniforms())

    def learn(self, losses: Floats) -> None:
        total = self.sums(losses)
        if total is not None:
            self.total = total


class Hedge(ExponentialWeights):
    """Follow expert i with probability proportional to exp(-rate x its total loss).

    Freund and Schapire, "A decision-theoretic generalization of on-line learning and an application
    to boosting", JCSS 1997, with the losses' range and the horizon known::

        S = 0; for t = 1..T:
          1. follow expert i of d with probability proportional to exp(-eta S_i)
          2. S <- S + the losses l_t, clipped to [0, 1]

    Guarantee:
        None: exact losses reach later actions.

    **Regret**, in the mean: at most ln(d) / eta + eta T / 8 for every oblivious adversary, which is
    sqrt(T ln(d) / 2) at the default eta. The total loss is at most (eta L* + ln d) / (1 - e^-eta),
    L* the loss of the best expert, so that eta = 1 costs 1.6 ln d if an expert never errs.

    >>> from dpbandit import compare
    >>> agents = {"careful": Hedge(), "bold": Hedge(rate=1.0)}
    >>> results = compare("dpbandit/Experts-v0", agents, horizon=400, replicas=20, progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["bold"] < mean["careful"] < mean["Uniform"])
    True
    """

    rate: Positive | None = None
    """learning rate eta; if None, sqrt(8 ln d / T) for d experts"""

    def start(self) -> None:
        self.ledger = no_privacy("exact sums of losses")
        losses = ClippedEntries(self.spec.n_actions)
        self.weigh(exact_prefix_sum(losses, horizon=self.spec.horizon, refresh_every=1), self.rate)


class NoisyFTRL(PrivateAgent[ExpertsSpec], ExponentialWeights):
    """Hedge on noisy sums of losses: follow the leader regularised by entropy.

    After Agarwal and Singh, "The price of differential privacy for online learning", ICML 2017,
    with their entropic regulariser and Gaussian noise of a binary tree::

        S~ = 0; for t = 1..T:
          1. follow expert i with probability proportional to exp(-eta S~_i)
          2. S~ <- l_1 + .. + l_t + N_t,  l_t the d losses, N the Gaussian noise of a tree on R^d

    Guarantee:
        (epsilon, delta)-DP of all releases S~ and all actions, for replacing one round's losses:
        a round's losses lie in [0, 1]^d, so that a sum moves by at most sqrt(d) in L2, and enter at
        most bit_length(T - 1) nodes; mu-GDP with the mu of (epsilon, delta), exactly.

    **Regret** is of order sqrt(T ln d) + sigma sqrt(ln(T) ln(d)), sigma = sqrt(d ln T) / mu the
    noise of a node: the price of privacy grows with the square root of d. For agents that select
    experts (`exponential-mechanism`, `shrinking-dartboard`, sparse vectors) it grows with log d.

    Memory: O(R d log T).

    Differs from the paper:
        1. Noise is calibrated to the exact count of nodes, by Gaussian differential privacy.
        2. An expert is drawn from the paper's distribution in each round.

    >>> from dpbandit import certify
    >>> proof = certify(NoisyFTRL(epsilon=1.0), ExpertsSpec(n_actions=10, horizon=1000))
    >>> round(proof.epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; with inf the agent plays as `Hedge`"""
    delta: float = 1e-6
    """target, in (0, 1)"""
    rate: Positive | None = None
    """learning rate eta; if None, sqrt(8 ln d / T) for d experts, as without noise"""

    def start(self) -> None:
        target = Target(self.epsilon, self.delta, self.spec.horizon, refresh_every=1)
        sums = certified_sum(Tree(), ClippedEntries(self.spec.n_actions), self.streams, target)
        self.weigh(sums, self.rate)
        self.ledger = ledger_of(self.epsilon, sums.spend)


class ExponentialLeader(Follower):
    """Hedge with a learning rate so small that all its draws together are private.

    McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007, once a round::

        x uniform, S = 0; for t = 1..T:
          1. follow x
          2. S <- S + losses l_t, clipped to [0, 1];  x <- i with probability prop. to exp(-h S_i)

        h = the larger of  sqrt(2 rho / (T - 1)),  epsilon / (2 (T - 1))

    with the largest rho of zCDP that implies (epsilon, delta)-DP.

    Guarantee:
        (epsilon, delta)-DP of all actions for replacing one round's losses: a replacement moves
        each S_i by at most 1, so that a draw has bounded range 2 h, which is h^2 / 2 zCDP and
        2 h-DP; T - 1 draws depend on losses (the first does not, and round T's reach none).

    **Regret**, in the mean: at most (h L* + ln d) / (1 - e^-h) - L*, L* the loss of the
    best expert, of order ln(d) sqrt(T / (2 rho)): every draw costs privacy, though most change
    nothing. It is the baseline of `shrinking-dartboard` and the sparse vector, which draw rarely.

    Differs from the paper:
        1. The mechanism is the paper's; its use once a round on running sums, and the rate, are
           textbook composition: there is no calibration="paper".
        2. A draw costs its bounded range, in zCDP an eighth of the square of its pure cost.

    >>> from dpbandit import certify
    >>> proof = certify(ExponentialLeader(epsilon=1.0), ExpertsSpec(n_actions=9, horizon=1000))
    >>> round(proof.epsilon, 4)
    1.0
    """

    epsilon: Epsilon = 1.0
    """target, > 0; with inf the agent plays the leader, ties to the lowest index"""
    delta: Delta = 1e-6
    """target, in [0, 1)"""
    draws = started(ExponentialMechanism)

    def rate(self, draws: int) -> float:
        """Return the largest rate of weights at which this number of draws meets the target."""
        if draws == 0:
            return 0.0
        pure = self.epsilon / (2 * draws) * (1 - 1e-12)  # the plain sum is within the target
        return max(sqrt(2 * zcdp_rho_of(self.epsilon, self.delta) / draws), pure)

    def start(self) -> None:
        losses, self.left = CumulativeLosses(self.spec.n_actions), self.spec.horizon - 1
        cost = 2 * self.rate(self.left) or 1.0  # without draws any cost is valid
        self.draws = ExponentialMechanism(
            losses, self.streams, "leaders", epsilon=cost, uses=self.left
        )
        self.ledger = ledger_of(self.epsilon, self.draws.spend, without="exact leaders")
        self.expert = self.uniform_expert()

    def learn(self, losses: Floats) -> None:
        # Take step 2; the last losses reach no action
        if self.left:
            self.left -= 1
            self.expert = np.asarray(self.draws(losses))


class BatchLeader(Follower):
    """Follow the private leader of the last batch, drawn with the whole budget.

    Follow the leader with one private selection (McSherry and Talwar, FOCS 2007) a batch::

        public batches, each (1 + growth) times as long as the one before; x uniform
        in every round         follow x
        at the end of a batch  x <- i with probability prop. to exp(-epsilon S_i / 2),
                               S its losses in this batch alone, clipped to [0, 1]

    Guarantee:
        epsilon-DP of all actions for replacing one round's losses, with delta = 0: a round is in
        one batch, and moves each S_i of its draw by at most 1 (`EpochSelection`).

    **Regret.** If losses are independent over rounds and one expert is better than all others by
    `gap` in the mean, a batch of n rounds draws one of the others with probability at most d times
    the mean of exp(-epsilon n gap / 2), plus sampling error: regret of order ln(d) (1 / epsilon +
    1 / gap), for every T. There is no bound against adversaries, as a batch's best expert may be
    the next one's worst, for up to 1 / (1 + 1 / growth) of the rounds: then play `noisy-ftrl`.

    >>> from dpbandit import certify
    >>> proof = certify(BatchLeader(epsilon=1.0), ExpertsSpec(n_actions=9, horizon=1000))
    >>> round(proof.epsilon, 6), proof.ledger.delta(1.0)
    (1.0, 0.0)
    """

    epsilon: Epsilon = 1.0
    """target at delta = 0, > 0; with inf the agent plays the last batch's leader, ties at random"""
    growth: Positive = 1.0
    """relative growth of a batch over the batch before it"""
    draws = started(EpochSelection)

    def start(self) -> None:
        T, d = self.spec.horizon, self.spec.n_actions
        self.ends = growing_batches(T, first=1, growth=self.growth)
        self.draws = EpochSelection(
            d, self.streams, "leaders", epsilon=self.epsilon * _RATE_MARGIN, draws=1, uses=T
        )
        self.ledger = ledger_of(self.epsilon, self.draws.spend, without="exact leaders")
        self.round = 0
        self.expert = self.uniform_expert()

    def learn(self, losses: Floats) -> None:
        self.round += 1
        drawing = np.full(self.R, self.round in self.ends)
        fresh = np.asarray(self.draws(losses, drawing, np.zeros(self.R), drawing))
        self.expert = np.where(drawing, fresh, self.expert)


class FollowTheLeader(Follower):
    """Follow an expert with the least total loss; break ties uniformly at random.

    Step by step::

        S = 0, x uniform; for t = 1..T:
          1. follow x
          2. S <- S + the losses l_t, clipped to [0, 1]
          3. x <- uniform on the experts with the least max(S, L*), L* = `best_loss`; the lazy
             leader keeps x unless x has lost more than L* since its draw

    The lazy leader is Algorithm 1 of Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for
    private online optimization in the realizable regime", ICML 2023, at epsilon = infinity: the
    limit of their sparse vector without privacy.

    Guarantee:
        None: exact losses reach later actions.

    **Regret** if an expert never errs: ln d in the mean, whatever T, for every oblivious adversary
    (log2(d) / 2 when half of the leaders err at a time). It is T / 2 if two experts err in turns,
    so that the leader is wrong in every round: against such losses play Hedge.

    >>> from dpbandit import compare
    >>> agents = {"leader": FollowTheLeader()}
    >>> results = compare("dpbandit/Experts-v0", agents, horizon=400, replicas=20, progress=False)
    >>> bool(results.summary().set_index("agent")["mean"]["leader"] < 6)
    True
    """

    lazy: bool = False
    """True to keep an expert until its loss since the draw exceeds `best_loss`"""
    best_loss: Least0 = 0.0
    """public bound L* >= 0; total losses up to it count as equal; used if `lazy`"""

    def start(self) -> None:
        self.ledger = no_privacy("exact sums of losses")
        self.level = self.best_loss if self.lazy else 0.0
        self.uniforms = self.streams.uniforms("experts")
        self.total: Floats = np.zeros((self.R, self.spec.n_actions))
        self.suffered: Floats = np.zeros(self.R)  # loss of x since its draw
        self.expert = self.leader()

    def leader(self) -> Ints:
        """Return an expert with the least total loss, (R,); losses up to `level` are ties."""
        score = np.maximum(self.total, self.level)
        return drawn(1.0 * (score == score.min(axis=1, keepdims=True)), self.uniforms())

    def learn(self, losses: Floats) -> None:
        # Take steps 2 and 3
        losses = clip_range(losses, 0.0, 1.0)
        self.total = self.total + losses
        self.suffered = self.suffered + pick(losses, self.expert)
        leaves = (self.suffered > self.level) | (not self.lazy)
        self.expert = np.where(leaves, self.leader(), self.expert)
        self.suffered = np.where(leaves, 0.0, self.suffered)


@dataclass(frozen=True)
class DartboardPlan:
    """Public parameters of a private shrinking dartboard."""

    rate: float
    """rate h of the draws, whose weights are exp(-h x total loss)"""
    bit_epsilon: float
    """privacy cost of a round's redraw bit, at least `rate`"""
    redraws: int
    """largest number K of draws"""

    @property
    def probability(self) -> float:
        """Probability p of a redraw in a round in which the expert loses nothing."""
        return redraw_probability(self.rate, self.bit_epsilon)

    @property
    def ledger(self) -> Ledger:
        """Ledger of one redraw bit, and of all draws with bounded range 2 x `rate` each."""
        bit = PureSpend.of("a bit", [self.bit_epsilon])
        return Ledger((bit, BoundedRangeSpend.alike("draws", 2 * self.rate, self.redraws)))


class ShrinkingDartboard(Follower):
    """Lazy Hedge: redraws of the expert are so rare that few draws depend on any one user.

    The algorithm of Geulen, Voecking and Winkler, "Regret minimization for online buffering
    problems using the weighted majority algorithm", COLT 2010, made private as Asi, Feldman, Koren
    and Talwar propose ("Private online prediction from experts: separations and faster rates",
    COLT 2023)::

        x uniform, S = 0; for t = 1..T:
          1. follow x
          2. S <- S + the losses l_t, clipped to [0, 1]
          3. with probability (1 - p) e^(-h l_t(x)) keep x;
             else x <- i with probability prop. to exp(-h S_i), at most K times

    h, p and K come from `steepest_plan`: the largest h that the target allows.

    Guarantee:
        (epsilon, delta)-DP of all actions and of the rounds of draws, for replacing one round's
        losses: given earlier releases, the losses decide one bit, which costs log(1 + (1 - p) (1
        - e^-h) / p) (`RedrawBit`), and move the S of at most K draws by 1, each of bounded range 2
        h. The K-th draw is public, hence the end of draws is, too.

    **Regret.** Until the K-th draw x has exactly Hedge's law, prop. to w_x = exp(-h S_x), with Z
    the sum of the weights and primes for values after a round: if x had probability w_x / Z before
    a round, it has (1 - p) w'_x / Z + (1 - (1 - p) Z' / Z) w'_x / Z' = w'_x / Z' after it. So the
    mean regret is at most (h L* + ln d) / (1 - e^-h) - L*, with a larger h than
    `exponential-mechanism` can afford: of order T^(1/3) ln d / epsilon. K is exceeded with small
    probability only, if L* <= `best_loss`.

    Differs from the paper:
        1. h, p and K are numbers from an exact account of privacy, not orders of magnitude.
        2. After K draws x stays and no bit is drawn.

    >>> from dpbandit import certify
    >>> proof = certify(ShrinkingDartboard(), ExpertsSpec(n_actions=16, horizon=1000))
    >>> round(proof.epsilon, 2)
    1.0
    """

    epsilon: Epsilon = 1.0
    """target, > 0; with inf the leader, by lowest index, replaces an expert at its first loss"""
    delta: Delta = 1e-6
    """target, in [0, 1)"""
    best_loss: Least0 = 0.0
    """public guess L* >= 0 of the best expert's loss, which sets only the number of draws"""
    bits, draws = started(RedrawBit), started(ExponentialMechanism)

    def plan(self, spec: ExpertsSpec) -> DartboardPlan:
        """Return the rate, probability of a redraw and number of draws for a problem."""
        d, T, target = spec.n_actions, spec.horizon, {"epsilon": self.epsilon, "delta": self.delta}
        return steepest_plan(d, T, best_loss=self.best_loss, **target)

    def start(self) -> None:
        plan, rounds = self.plan(self.spec), self.spec.horizon - 1
        self.bits = RedrawBit(
            self.streams, "bits", rate=plan.rate, probability=plan.probability, uses=rounds
        )
        self.draws = ExponentialMechanism(
            CumulativeLosses(self.spec.n_actions),
            self.streams,
            "draws",
            epsilon=2 * plan.rate,
            uses=rounds,
            draws=plan.redraws,
        )
        spends = self.bits.spend, self.draws.spend
        self.ledger = ledger_of(plan.rate, *spends, without="exact leaders")
        self.rounds = rounds
        self.left: Ints = np.full(self.R, plan.redraws)
        self.expert = self.uniform_expert()

    def learn(self, losses: Floats) -> None:
        # Take steps 2 and 3; the last losses reach no action
        if self.rounds:
            self.rounds -= 1
            redraw = np.asarray(self.bits(pick(losses, self.expert), self.left > 0))
            fresh = np.asarray(self.draws(losses, redraw))
            self.expert = np.where(redraw, fresh, self.expert)
            self.left = self.left - redraw


@cache
def steepest_plan(
    n_experts: int, horizon: int, *, epsilon: float, delta: float, best_loss: float = 0.0
) -> DartboardPlan:
    """Return parameters with the largest rate h, over the share of epsilon for a redraw bit.

    K = m + 3 sqrt(m) + 3 draws, at most T - 1, where m = (T - 1) p + ln d + h L* + 2 bounds the
    expected redraws for d experts, redraw probability p and L* = `best_loss`. The share is chosen
    with draws counted as rho-zCDP (at delta = 0, 2 h K-DP) in the rest of epsilon; then h is the
    largest for which the composed privacy losses of bit and draws meet the target.

    >>> plan = steepest_plan(16, 1000, epsilon=1.0, delta=1e-6)
    >>> round(plan.rate, 3), round(plan.probability, 2)
    (0.017, 0.05)
    """
    if epsilon == inf:
        return DartboardPlan(inf, inf, horizon)

    def at(rate: float, bit: float) -> DartboardPlan:
        p = redraw_probability(rate, bit)
        m = (horizon - 1) * p + log(n_experts) + rate * best_loss + 2
        return DartboardPlan(rate, bit, min(horizon - 1, ceil(m + 3 * sqrt(m) + 3)))

    def largest(bit: float, fits: Callable[[DartboardPlan], bool]) -> DartboardPlan:
        low, high = 0.0, bit
        while high - low > 1e-4 * high and high > 1e-12:
            middle = (low + high) / 2
            low, high = (middle, high) if fits(at(middle * _RATE_MARGIN, bit)) else (low, middle)
        return at(low * _RATE_MARGIN, bit)  # as tried: ledgers jump where their grid is rounded

    def affordable(plan: DartboardPlan) -> bool:
        left, K, h = epsilon - plan.bit_epsilon, plan.redraws, plan.rate
        return 2 * h * K <= left or K * h * h / 2 <= zcdp_rho_of(left, delta)

    plans = [largest(share * epsilon, affordable) for share in _BIT_SHARES]
    bit = max(plans, key=lambda plan: plan.rate).bit_epsilon
    found = largest(bit, lambda plan: plan.ledger.delta(epsilon) <= delta)
    if found.rate == 0:
        raise InputError(
            f"Expected a larger epsilon than {epsilon!r} at delta={delta!r}: no draw is affordable."
        )
    return found
