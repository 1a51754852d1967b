"""Private bandits that choose arms by divergences, or Chernoff bounds, of noisy batch sums."""

from math import ceil, inf, log
from typing import Annotated, TypeAlias

import numpy as np

from dpbandit.agent import Epsilon, Least0, Positive
from dpbandit.agents.arms.play import Bools, OneArmBatches
from dpbandit.base import Floats, Ints, at_least, flag, rows

# factor of an arm's rounds
Growth: TypeAlias = Annotated[float, lambda name, value: at_least(name, value, GROWTH_TO_SETTLE)]
Flag: TypeAlias = Annotated[bool, flag]

MEAN_MARGIN = 1e-12
"""Distance from 0 and 1 at which means are clipped, because divergences are infinite at 0 and 1."""
MAX_EXPONENT = 40.0
"""Largest exponent v searched in Chernoff's bound (`evidence`); exp(-v) is negligible beyond it."""
BISECTIONS = 20
"""Number of halvings of a search interval, until 1e-6 of its length is left."""
LEADER_SHARE = 0.5
"""Share of the leader's rounds; the leader is played in place of arms with more, if not anytime."""
GROWTH_TO_SETTLE = 1.25
"""Smallest factor by which a batch multiplies its arm's rounds, so that there are few releases."""


def bernoulli_kl(x: Floats, y: Floats) -> Floats:
    """Return the divergence kl(x, y) of Bernoulli means x and y, clipped away from 0 and 1.

    >>> round(float(bernoulli_kl(np.array(0.5), np.array(0.25))), 6)
    0.143841
    """
    x, y = (np.clip(mean, MEAN_MARGIN, 1 - MEAN_MARGIN) for mean in (x, y))
    kl: Floats = x * np.log(x / y) + (1 - x) * np.log((1 - x) / (1 - y))
    return kl


def private_divergence(x: Floats, y: Floats, epsilon: float) -> Floats:
    """Return d(x, y) = min over z of epsilon |z - x| + kl(z, y), for means x <= y in [0, 1].

    Azize et al., NeurIPS 2025: the rate at which epsilon-DP releases distinguish means x and y.
    The minimiser z has logit(z) = logit(y) - epsilon, or is x if that z would be less than x.

    >>> x, y = np.array(0.25), np.array(0.75)
    >>> round(float(private_divergence(x, y, inf) - bernoulli_kl(x, y)), 9)
    0.0
    """
    y = np.clip(y, MEAN_MARGIN, 1 - MEAN_MARGIN)
    odds = y / (1 - y) * np.exp(-epsilon)
    z = np.maximum(x, odds / (1 + odds))
    cost = epsilon * (z - x) if epsilon < inf else 0.0
    return np.asarray(cost + bernoulli_kl(z, y))


def evidence(x: Floats, y: Floats, n: Floats, e: Floats, epsilon: float) -> Floats:
    """Return Chernoff's exponent E against true mean y, for noisy means x of n rounds, e releases.

    A sum of n rewards in [0, 1] with mean at least y, and e Laplace(1 / epsilon) noises, is at most
    n x with probability at most exp(-E)::

        E = sup over 0 <= v < epsilon of
              -v n x - n log(1 - y + y exp(-v)) + e log(1 - (v / epsilon)^2)

    E is 0 where x >= y; without noise (epsilon = inf) it is n kl(x, y).
    """
    x = np.minimum(x, y)
    low, high = np.zeros(x.shape), np.full(x.shape, min(epsilon * (1 - 1e-9), MAX_EXPONENT))
    for _ in range(BISECTIONS):  # the derivative falls in v, and every v gives a valid bound
        v = (low + high) / 2
        tilted = y * np.exp(-v)
        noise_slope = 2 * v / ((epsilon - v) * (epsilon + v)) if epsilon < inf else 0.0
        rises = n * (tilted / (1 - y + tilted) - x) > e * noise_slope
        low, high = np.where(rises, v, low), np.where(rises, high, v)
    v = (low + high) / 2
    change = y * np.expm1(-v)
    # -1 if y is 1 and exp(-v) is lost in rounding
    log_tilted = np.where(change > -1, np.log1p(np.maximum(change, -1 + 1e-15)), -v)
    gain = n * (-v * x - log_tilted) + e * np.log1p(-((v / epsilon) ** 2))
    return np.maximum(gain, 0.0)


class SummedBatches(OneArmBatches):
    """Base class of agents that store each arm's rounds n, noisy sum s and releases e, all (R, K).

    Every arm has a first batch of ceil(first / epsilon) rounds; then `contest` chooses the arm of
    the next batch, and the factor by which the batch multiplies the arm's rounds.
    """

    epsilon: Epsilon = 1.0
    """target, > 0; inf adds no noise"""
    first: Positive = 16.0
    """epsilon times the number of rounds of an arm's first batch"""

    def reset(self) -> None:
        super().reset()
        self.n, self.s = np.zeros((self.R, self.K)), np.zeros((self.R, self.K))
        self.e = np.zeros((self.R, self.K))
        self.length = np.full(self.R, float(self.first_length))

    @property
    def first_length(self) -> int:
        """Rounds of an arm's first batch, at least 1."""
        return max(1, ceil(self.first / self.epsilon))

    def take(self, release: Floats, count: Floats, at_release: Bools) -> None:
        self.s, self.n, self.e = self.s + release, self.n + count, self.e + at_release
        ended = np.flatnonzero(at_release.any(axis=1))
        fresh = self.n[ended] == 0
        first = fresh.any(axis=1)
        self.arm[ended[first]] = fresh[first].argmax(axis=1)
        self.length[ended[first]] = self.first_length
        later = ended[~first]
        if later.size:
            arm, growth = self.contest(self.s[later] / self.n[later], later)
            n = self.n[later, arm]
            self.arm[later], self.length[later] = arm, np.maximum(np.ceil(growth * n) - n, 1)

    def contest(self, mean: Floats, here: Ints) -> tuple[Ints, Floats]:
        """Return the next arm and its rounds' growth factor, (n,) each, for n replicas `here`.

        `mean` (n, K) has the noisy mean of every arm; every arm has at least one release.
        """
        raise NotImplementedError


class DPKLUCB(SummedBatches):
    """kl-UCB with the divergence under epsilon-DP, on sums of batches of geometric size.

    Azize, Wu, Honda, Orabona, Ito and Basu, "Optimal regret of bandits under differential privacy",
    NeurIPS 2025 (arXiv 2505.05613), from the formulae of a summary of the paper; nothing else of it
    was read::

        every arm a for n_a = ceil(first / epsilon) rounds, then after every batch, at round t
          1. U_a = the largest y with n_a d(m_a, y) <= log t,  m_a = clip(s_a / n_a, 0, 1)
          2. play a = argmax U_a until n_a is growth times what it was
          3. s_a += sum of the batch's rewards + Laplace(1 / epsilon)
        d(x, y) = min over z in [x, y] of epsilon |z - x| + kl(z, y)

    Guarantee:
        epsilon-DP of all actions, for replacing one user's whole row of rewards: every user is in
        one batch, whose arm and length are functions of earlier releases (`CountedSums`).

    Differs from the paper:
        1. Written from a summary: constants and proofs of the paper were not seen.
        2. The length of the first batch, `first`, is ours: it was the best on separate seeds.
    """

    first: Positive = 8.0
    """epsilon times the number of rounds of an arm's first batch"""
    growth: Growth = 1.5
    """factor by which a batch multiplies the rounds of its arm, >= 1.25"""

    def contest(self, mean: Floats, here: Ints) -> tuple[Ints, Floats]:
        level = log(max(self.t, 2)) / self.n[here]
        mean = np.clip(mean, 0.0, 1.0)
        low, high = mean, np.ones_like(mean)
        for _ in range(BISECTIONS):
            y = (low + high) / 2
            close = private_divergence(mean, y, self.epsilon) <= level
            low, high = np.where(close, y, low), np.where(close, high, y)
        return low.argmax(axis=1), np.full(here.size, self.growth)


class DPIMED(SummedBatches):
    """Indexed minimum empirical divergence, with the divergence under epsilon-DP.

    Azize, Wu, Honda, Orabona, Ito and Basu, NeurIPS 2025 (arXiv 2505.05613), from the formulae of a
    summary of the paper; nothing else of it was read::

        every arm for ceil(first / epsilon) rounds, then after every batch
          1. m_a = clip(s_a / n_a, 0, 1);  play a = argmin n_a d(m_a, max m) + log n_a
             until n_a is growth times what it was
          2. s_a += sum of the batch's rewards + Laplace(1 / epsilon)
        with n_a rounds of arm a, noisy sum s_a, and the divergence d as in `dp-klucb`

    Guarantee:
        epsilon-DP of all actions, as for `dp-klucb`.

    **Regret** has a heavy tail: in rare runs noise rules out the best arm for good, because d
    treats the noises of all releases of an arm as a single one.

    Differs from the paper:
        It was written from a summary, and the length of the first batch is ours, as for `dp-klucb`.
    """

    growth: Growth = 2.0
    """factor by which a batch multiplies the rounds of its arm, >= 1.25"""

    def contest(self, mean: Floats, here: Ints) -> tuple[Ints, Floats]:
        mean = np.clip(mean, 0.0, 1.0)
        d = private_divergence(mean, mean.max(axis=1, keepdims=True), self.epsilon)
        index = self.n[here] * d + np.log(self.n[here])
        return index.argmin(axis=1), np.full(here.size, self.growth)


class RaceIMED(SummedBatches):
    """Play the arm with the least evidence against it, at a confidence level for the whole horizon.

    This project's own, after DP-IMED (`dp-imed`): its tail is lighter, its mean regret no
    higher at epsilon 1, and higher at 0.1. Arm a has n_a rounds, a noisy sum s_a of e_a releases::

        every arm for min(ceil(first / epsilon), T / (2 K)) rounds, then after every batch
          1. b = argmax s_a / n_a,  y = clip(s_b / n_b, 0, 1)
             E_a = evidence(s_a / n_a, y, n_a, e_a),  E_b = 0
          2. I_a = E_a + log n_a;  I_b = log T - slack;  a = argmin I;  a = b if 2 n_a > n_b
          3. G = lead_growth if a = b, else (log(T / n_a) - slack) / E_a, from 1.25 to 3
             play a until n_a is G times what it was
          4. s_a += sum of the batch's rewards + Laplace(1 / epsilon);  e_a += 1
        anytime: T is in no rule: I_b = log n_b, no switch to b, G = log(2 n_b / n_a) / E_a in 3

    1. Evidence uses the law of the sum of an arm's e_a noises; `dp-imed` counts them as one.
    2. An arm is given up at failure level 1 / T from the start, not at 1 / n_b.
    3. A batch is as long as the missing evidence requires, so releases are few.

    Guarantee:
        epsilon-DP of all actions, for replacing one user's whole row of rewards: every user is in
        one batch, whose arm and length are functions of T, of counts and of earlier releases
        (`CountedSums`).

    **Regret** bounds are proved in part, see the page of `race-imed`, which has the worst of 400
    runs of each instance. Runs with linear regret remain possible.

    >>> from dpbandit import certify
    >>> round(certify(RaceIMED(epsilon=0.5), "Arms", horizon=1000).epsilon, 9)
    0.5
    """

    anytime: Flag = False
    """True to play by rules that do not use the horizon"""
    slack: Least0 = 2.5
    """nats by which Chernoff's exponent is assumed to be too small; unused if anytime"""
    lead_growth: Growth = 3.0
    """factor by which a batch multiplies the leader's rounds, >= 1.25; at most this for others"""

    @property
    def first_length(self) -> int:
        length = super().first_length
        if self.anytime:
            return length
        # Half of the horizon is left to learn from the first batches
        return max(1, min(length, self.spec.horizon // (2 * self.K)))

    def contest(self, mean: Floats, here: Ints) -> tuple[Ints, Floats]:
        n, each = self.n[here], rows(here.size)
        leader = mean.argmax(axis=1)
        y = np.clip(mean[each, leader], 0.0, 1.0)[:, None]
        E = evidence(mean, y, n, self.e[here], self.epsilon)
        index = E + np.log(n)
        if self.anytime:
            index[each, leader] = np.log(n[each, leader])
        else:
            index[each, leader] = log(self.spec.horizon) - self.slack
        arm = index.argmin(axis=1)
        if self.anytime:
            missing = np.log(2 * n[each, leader] / n[each, arm])
        else:
            arm = np.where(LEADER_SHARE * n[each, leader] < n[each, arm], leader, arm)
            missing = np.log(self.spec.horizon / n[each, arm]) - self.slack
        growth = missing / np.maximum(E[each, arm], 1e-9)
        growth = np.clip(growth, GROWTH_TO_SETTLE, self.lead_growth)
        return arm, np.where(arm == leader, self.lead_growth, growth)
