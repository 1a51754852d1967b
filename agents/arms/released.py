"""Private Thompson sampling and kl-UCB that add up the releases of batches."""

from math import ceil, inf, log
from typing import Annotated, Literal

import numpy as np

from dpbandit.agent import Delta, Epsilon, Positive, started
from dpbandit.agents.arms.play import Bools, OneArmBatches, ReleasedArms, kl_upper
from dpbandit.base import Draws, Floats, Ints, at_height, best_allowed, clip_range, rows, whole
from dpbandit.privacy.batches import gaussian_mu

_MAX_DRAWS = 1_000_000  # largest setting `draws`, the posterior draws for one policy
_LEAST_RATE = 0.03
"""Smallest rate of sales, or of no sales, by which the variance of one answer is estimated"""


class AllocationTS(ReleasedArms):
    """Thompson sampling in batches; every round of a batch draws its arm anew.

    This project's own. An arm's releases are added up, each with one noise, and with batches of
    geometric size there are O(log T) of them::

        n_a released, pending_a later rounds of arm a, s_a noisy sum, e_a releases, all 0 at first
        L = ceil(first K / epsilon), in these rounds all arms in turn, each time in random order
        after every batch, t rounds so far:
          1. for each arm a with pending_a >= max(1 / epsilon, growth n_a) and > 0:
               s_a += pending sum + Laplace(1 / epsilon);  n_a += pending_a;  e_a += 1
          2. draw, `draws` times for all arms, with nn = n_a + 2
               d_a = (s_a + 1) / nn + N(0, 1/4) / sqrt(nn) + (G - G') / (epsilon nn),
             G and G' ~ Gamma(e_a): their difference is the law of a sum of e_a Laplace variables
          3. p_a = the share of draws in which d_a is the largest
          4. L = max(ceil(growth t), ceil(first / epsilon)); play L rounds, each an arm from p

    **Price lists**: a price of margin w_a has rewards 0 and w_a. Its sum counts sales, so the noise
    is that of one sale at this price, not of the largest margin, and in step 2 the variance is
    q (1 - q) in place of 1/4, q = clip((s_a + 1) / nn, 0.03, 0.97). Draws are multiplied by w_a.

    Guarantee:
        epsilon-DP of all actions, or (epsilon, delta) with delta > 0, for replacing one user's
        whole row of rewards: batches end at public rounds, and counts of plays decide which sums
        are released, so `CountedSums` covers all. It is joint DP, too, as arms are drawn before
        users are seen. A sale is a reward divided by its price's public margin, clipped to [0, 1].

    **Regret** on users with the same law is near Thompson sampling's without privacy, plus a price
    of order K log T / epsilon; the tables are in the study. It has no proof here. If the best arm
    changes, regret is linear: no release is forgotten, so the former best arm is played for a share
    of all rounds. With one arm for each batch in step 4 regret would have a linear tail.

    **Arms that come and go** by a public schedule: in rounds without some arms, step 3 is one draw
    for the round, and the best available arm is played. Masks that users bring are refused at a
    finite epsilon, by the premise `Fact.CELL` of `CountedSums`: counts of plays would reveal them.

    **Delay**: a batch ends when the rewards of its rounds have arrived; pending counts include only
    rewards that arrived.

    >>> from dpbandit import compare
    >>> results = compare("Arms", {"private": AllocationTS()}, horizon=2000, replicas=5)
    >>> bool(results.summary().set_index("agent")["mean"]["private"] < 80)
    True
    """

    epsilon: Epsilon = 1.0
    """target, > 0; with inf it is Thompson sampling in batches, without noise"""
    delta: Delta = 0.0
    """target, in [0, 1); noise is Gaussian where delta makes it smaller than Laplace noise"""
    growth: Positive = 0.15
    """batch length divided by all rounds so far; least growth of an arm's rounds for a release"""
    first: Positive = 8.0
    """epsilon times an arm's rounds in the first batch; later batches have at least as many"""
    masks = ("public", "user")
    draws: Annotated[int, lambda name, value: whole(name, value, 1, _MAX_DRAWS)] = 4000
    """number of posterior draws of every arm; arms are played as often as they are best"""
    order = started(Draws)
    uniforms = started(Draws)

    def begin(self) -> None:
        super().begin()
        # none if they vary by customer: her sale could not be multiplied by one margin
        self.margins: Floats | None = getattr(self.spec, "margins", None)
        if self.margins is not None:
            self.low, self.high = 0.0, 1.0  # of sales, as shares of what a customer may buy

    def feed(self, reward: Floats, arm: Ints) -> None:
        if self.margins is not None:
            dollars = clip_range(reward, 0.0, float(self.margins.max()))  # against overflow
            reward = dollars / self.margins[arm]
        super().feed(reward, arm)

    def reset(self) -> None:
        self.n, self.s = np.zeros((self.R, self.K)), np.zeros((self.R, self.K))
        self.e = np.zeros((self.R, self.K))
        self.end = self.turns = max(self.K, ceil(self.first * self.K / self.epsilon))
        self.turn, self.order = 0, self.streams.uniforms("turns", self.K)
        self.uniforms, self.coins = self.streams.uniforms("arms"), self.streams.generators("draws")
        self.turn_of: Ints = np.zeros((self.R, self.K), dtype=np.int64)
        self.p: Floats = np.full((self.R, self.K), 1 / self.K)
        self.heights: Floats = self.p.cumsum(axis=1)
        self.mu = gaussian_mu(self.epsilon, self.delta)

    def choose(self) -> Ints:
        if self.t >= self.turns:
            return at_height(self.heights, self.uniforms())
        place = self.turn % self.K
        if place == 0:
            self.turn_of = self.order().argsort(axis=1)
        self.turn += 1
        return self.turn_of[:, place].copy()

    def choose_among(self, mask: Bools) -> Ints:
        # First batch: the next available arm in turn; later: the best available arm of a new draw
        if self.t < self.turns:
            place = self.turn % self.K
            if place == 0:
                self.turn_of = self.order().argsort(axis=1)
            self.turn += 1
            order = np.roll(self.turn_of, -place, axis=1)
            first = np.take_along_axis(mask, order, axis=1).argmax(axis=1)
            return np.asarray(order[rows(self.R), first])
        arm = at_height(self.heights, self.uniforms())
        for r in np.flatnonzero(~mask.all(axis=1)):
            arm[r] = best_allowed(self.scores_of(int(r), 1)[0], mask[r])
        return arm

    @property
    def rounds_to_release(self) -> Ints:
        return np.full(self.R, self.end - self.t if self.t >= self.turns else 0)

    @property
    def chances(self) -> Floats:
        return self.p

    def at_release(self) -> Bools:
        # Take the condition of step 1 where a batch ends
        if self.t < self.end:
            return self.nothing
        at_release: Bools = self.pending >= np.maximum(1 / self.epsilon, self.growth * self.n)
        self.end += max(ceil(self.growth * self.t), ceil(self.first / self.epsilon), 1)
        return at_release & (self.pending > 0)

    def take(self, release: Floats, count: Floats, at_release: Bools) -> None:
        # Take steps 1 to 3
        self.s, self.n, self.e = self.s + release, self.n + count, self.e + at_release
        for r in np.flatnonzero(at_release.any(axis=1)):
            best = self.scores_of(int(r)).argmax(axis=1)
            self.p[r] = np.bincount(best, minlength=self.K) / self.draws
        self.heights = self.p.cumsum(axis=1)

    def scores_of(self, r: int, draws: int | None = None) -> Floats:
        """Draw posterior scores of all arms of replica r, (draws, K); see step 2 of the class."""
        g, nn, e = self.coins[r], self.n[r] + 2, self.e[r]
        mean, shape = (self.s[r] + 1) / nn, (draws or self.draws, self.K)
        variance = 0.25 / nn
        if self.margins is not None:
            q = np.clip(mean, _LEAST_RATE, 1 - _LEAST_RATE)
            variance = q * (1 - q) / nn
        if self.mu > 0:
            variance = variance + e / (self.mu * nn) ** 2
        d = mean + np.sqrt(variance) * g.standard_normal(shape)
        if self.mu == 0 and self.epsilon < inf:
            noise = g.standard_gamma(e, shape) - g.standard_gamma(e, shape)
            d = d + noise / (self.epsilon * nn)
        return d if self.margins is None else d * self.margins


class KLUCBSums(OneArmBatches):
    """kl-UCB on running totals of noisy batch sums.

    This project's own; the index is from Garivier and Cappe, "The KL-UCB algorithm", COLT 2011::

        every arm in turn, then  a = argmax U_a  after every batch, t rounds so far
          1. play a for max(ceil(first / epsilon), n_a / 2) rounds
          2. s_a += sum of their rewards + Laplace(1 / epsilon);  n_a += their number;  e_a += 1
        U_a = the largest q in [m, 1] with n_a kl(m, q) <= log t,  m = clip(s_a / n_a + w_a, 0, 1)

        widths       w_a, with b = 1 / epsilon
        practice     (b / n_a) (sqrt(e_a log t) + log(t) / 2)
        proved       (b / n_a) max(sqrt(16 e_a log t), 8 log t)

    Guarantee:
        epsilon-DP of all actions, for replacing one user's whole row of rewards: a batch ends by
        its count, and its length and arm are functions of earlier releases (`CountedSums`).

    **Regret** with the proved widths is O(sum_a log T / D_a + K log T / epsilon), D_a the gaps, the
    order of the lower bound for pure DP; see the page of `kl-ucb-sums`. The default widths cover
    the noise with a probability below 1 - 1 / t^2; in practice regret is half as large.

    >>> from dpbandit import certify
    >>> round(certify(KLUCBSums(epsilon=0.5), "Arms", horizon=1000).epsilon, 9)
    0.5
    """

    epsilon: Epsilon = 1.0
    """target, > 0; inf adds no noise"""
    widths: Literal["practice", "proved"] = "practice"
    """confidence widths for the noise, as proved or smaller"""
    first: Positive = 20.0
    """epsilon times the smallest length of a batch, which is the length of an arm's first batch"""

    def reset(self) -> None:
        super().reset()
        self.n, self.s = np.zeros((self.R, self.K)), np.zeros((self.R, self.K))
        self.e = np.zeros((self.R, self.K))
        self.least = max(1, ceil(self.first / self.epsilon))
        self.length = np.full(self.R, float(self.least))

    def take(self, release: Floats, count: Floats, at_release: Bools) -> None:
        # Take step 2, and choose where a batch has ended
        self.s, self.n, self.e = self.s + release, self.n + count, self.e + at_release
        here = np.flatnonzero(at_release.any(axis=1))
        self.arm[here] = self.index(here).argmax(axis=1)
        n = self.n[rows(self.R), self.arm]
        self.length[here] = np.maximum(self.least, np.ceil(n / 2))[here]

    def index(self, here: Ints) -> Floats:
        """Return upper bounds of n replicas `here`, (n, K); infinite for arms without a release."""
        n, e, lg = np.maximum(self.n[here], 1), self.e[here], log(max(self.t, 2))
        width = np.sqrt(e * lg) + lg / 2
        if self.widths == "proved":
            width = np.maximum(np.sqrt(16 * e * lg), 8 * lg)
        m = self.s[here] / n + width / (self.epsilon * n)
        return np.where(self.n[here] > 0, kl_upper(m, lg / n), inf)
