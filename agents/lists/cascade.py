"""Cascading bandits without contexts, from counts of users' looks at items and clicks."""

from math import inf, log
from typing import Literal, TypeAlias

import numpy as np

from dpbandit.agent import Count
from dpbandit.agents.lists.ranked import Lists, best_lists
from dpbandit.base import Floats, InputError, Ints, privacy_target
from dpbandit.losses.click_models import Cascade
from dpbandit.privacy import (
    BLT,
    Target,
    Tree,
    certified_sum,
    exact_prefix_sum,
    ledger_of,
    no_privacy,
)
from dpbandit.privacy.clicks import ListCounts
from dpbandit.privacy.prefix_sums import Factorisation

Bound: TypeAlias = Literal["kl", "ucb1", "posterior"]
Order: TypeAlias = Literal["index", "least-examined"]
_KL_BISECTIONS = 20  # halvings of the interval for a kl-UCB bound
_PRIOR_SD, _OPTIMISM = 0.1, 0.5
"""Prior standard deviation of click rates; optimism, in posterior standard deviations."""


def ucb1(mean: Floats, looks: Floats, t: int) -> Floats:
    """Return mean + sqrt(1.5 ln t / looks), the UCB1 index of items seen by `looks` of t users."""
    return mean + np.sqrt(1.5 * log(max(t, 2)) / looks)


def kl_ucb(mean: Floats, looks: Floats, t: int) -> Floats:
    """Return the kl-UCB index, the largest q with n kl(mean, q) <= ln t + 3 ln ln t, n looks."""
    low = mean = mean.clip(0, 1)
    room = _room(looks, t)
    high = np.ones_like(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(mean > 0, mean * np.log(mean), 0.0)
        entropy += np.where(mean < 1, (1 - mean) * np.log1p(-mean), 0.0)
        for _ in range(_KL_BISECTIONS):
            q = (low + high) / 2
            inside = entropy - mean * np.log(q) - (1 - mean) * np.log1p(-q) <= room
            low, high = np.where(inside, q, low), np.where(inside, high, q)
    return low


def kl_ucb_between(mean: Floats, looks: Floats, t: int) -> tuple[Floats, Floats]:
    """Return a lower and an upper bound on `kl_ucb` in closed form.

    They follow for mean p <= q from (q - p)^2 / (q (1 - q)) >= kl(p, q) >= (q - p)^2 max(2, 1 / (2
    q)). The lower bound allows for the error of bisection in `kl_ucb`, 2^-20.
    """
    p, room = mean.clip(0, 1), _room(looks, t)
    low = (p + room / 2 + np.sqrt(room * (p * (1 - p) + room / 4))) / (1 + room)
    high = np.minimum(p + np.sqrt(room / 2), p + room + np.sqrt(room * (2 * p + room)))
    return low - 2.0 / 2**_KL_BISECTIONS, high + 1e-9


def _room(looks: Floats, t: int) -> Floats:
    return (log(max(t, 2)) + 3 * log(max(log(max(t, 2)), 1))) / looks


def posterior(looks: Floats, clicks: Floats, noise: float) -> Floats:
    """Return every item's posterior mean click rate plus half a standard deviation, (R, N).

    The prior is normal with standard deviation 0.1; its mean is the clicks of all items divided by
    their `looks`, users who saw them. `noise` is the standard deviation of the noise in a count.
    """
    n = np.maximum(looks, 1.0)
    share = clicks.sum(axis=1, keepdims=True) / np.maximum(looks.sum(axis=1, keepdims=True), 1.0)
    share = share.clip(0.01, 0.99)
    error = (share * (1 - share) * n + noise**2) / n**2
    trust = _PRIOR_SD**2 / (_PRIOR_SD**2 + error)
    return share + trust * (clicks / n - share) + _OPTIMISM * _PRIOR_SD * np.sqrt(1 - trust)


class ItemCounts(Lists):
    """Base class of agents that list the items with the largest bounds on their click rates.

    Bounds "kl" and "ucb1" put items that hardly any user looked at first. In a cascade a list's
    order changes who sees an item, not the reward; "least-examined" has rarely seen items first.
    """

    bound, order = "kl", "index"

    @property
    def noise_sd(self) -> float:
        """Standard deviation of a count's noise; items with fewer than 1 + this looks are new."""
        return 0.0

    def start(self) -> None:
        super().start()
        if not isinstance(self.spec.clicks, Cascade):
            raise InputError(
                f"Expected a cascade to count looks in, got {type(self.spec.clicks).__name__}: "
                "choose another agent for lists."
            )
        N = self.spec.n_items
        self.round = 0
        self.statistic = ListCounts(N, self.spec.length)
        self.looks, self.clicks = np.zeros((2, self.R, N))
        self.uniforms = self.streams.uniforms("ties", N)()
        self.first = 2.0 + self.uniforms
        self.lists: Ints = np.empty((0, 0), np.int64)
        self.counted: Floats | None = None
        """array `looks` from which `lists` were made, replaced when a count changes"""
        self.refilled: Ints = self.spec.catalogue.refilled.copy()

    def choose(self, u: Floats) -> Ints:
        self.round += 1
        refilled = self.spec.catalogue.refilled
        if (refilled != self.refilled).any():
            self.forget(np.broadcast_to(refilled != self.refilled, self.looks.shape))
            self.refilled = refilled.copy()
        if self.bound == "posterior" and self.counted is self.looks:
            return self.lists.copy()  # no count has changed
        lists = best_lists(self.index(), self.spec.clicks)
        if self.order == "least-examined":
            looked = np.take_along_axis(self.looks, lists, axis=1)
            rank = np.argsort(looked, axis=1, kind="stable")
            lists = np.take_along_axis(lists, rank, axis=1)
        self.lists, self.counted = lists, self.looks
        return lists.copy()

    def index(self) -> Floats:
        """Return the scores (R, N) by which items are ranked; ties are broken at random."""
        if self.bound == "posterior":
            return posterior(self.looks, self.clicks, self.noise_sd) + 1e-6 * self.uniforms
        t, width = self.round, int(self.looks.max()) + 1
        few = not self.noise_sd and (self.clicks.max() + 1) * width <= self.looks.size
        if self.bound == "kl" and few:  # pairs of counts, each of many items
            pair = (self.clicks * width + self.looks).astype(np.int64)
            known = np.flatnonzero(np.bincount(pair.ravel()))
            many = np.maximum(1.0 * (known % width), 1.0)
            bound = np.zeros(known[-1] + 1)
            bound[known] = kl_ucb(known // width / many, many, t)
            return np.where(pair == 0, self.first, bound[pair])
        looks, new = np.maximum(self.looks, 1.0), self.looks < 1 + self.noise_sd
        mean = self.clicks / looks
        if self.bound == "ucb1":
            return np.where(new, self.first, np.minimum(ucb1(mean, looks, t), 2.0))
        low, high = kl_ucb_between(mean, looks, t)
        low = np.where(new, self.first, low)
        least = np.partition(low, -self.spec.length, axis=1)[:, -self.spec.length, None]
        listed = (high >= least) & ~new  # candidates; other items need no exact bound
        low[listed] = kl_ucb(mean[listed], looks[listed], t)
        return low

    def forget(self, new: Ints) -> None:
        """Reset the counts of catalogue slots with new items, given by a public mask (R, N)."""
        self.looks = np.where(new, 0.0, self.looks)
        self.clicks = np.where(new, 0.0, self.clicks)


class CascadeUCB(ItemCounts):
    """Show the items with the largest upper confidence bounds on their click rate once seen.

    Kveton, Szepesvari, Wen and Ashkan, "Cascading bandits: learning to rank in the cascade model",
    ICML 2015, Algorithm 1: CascadeKL-UCB, with `bound="ucb1"` CascadeUCB1.

    Guarantee:
        None: exact data reaches later lists.

    Differs from the paper:
        1. Items that nobody has looked at come first, in random order.
        2. `order="least-examined"` shows the items with the fewest looks first; the order changes
           what is learned but not the reward. The default is the paper's order.
    """

    bound: Bound = "kl"
    """upper confidence bound of an item's click rate once seen"""
    order: Order = "index"
    """order of a list; largest bound first, or items that the fewest users looked at first"""

    def start(self) -> None:
        super().start()
        self.ledger = no_privacy("exact counts")

    def learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        looks, clicked = self.statistic.total(lists[None], clicks[None]).swapaxes(0, 1)
        self.looks, self.clicks = self.looks + looks, self.clicks + clicked


class PrivateCascade(ItemCounts):
    """Cascading bandit on noisy counts of looks at items and clicks, for few items, many rounds.

    After the idea of Wang, Dong, Wang, Li and Shao, "Cascading bandit under differential privacy",
    ICASSP 2022 (arXiv 2105.11126), reconstructed, as the text of its algorithms was not available.

    1. Show the m items with the largest bounds on clicks / looks, by default `posterior`. With "kl"
       and "ucb1" an item is new, and shown first, until its noisy looks exceed 1 + the noise's
       standard deviation.
    2. A user's looks and clicks enter running sums of all items at once (`ListCounts`).

    **Limits.** Every item has counts, and noise, of its own: with 200 items, T = 5,000 and epsilon
    1 it loses 1,729 and uniform lists lose 1,908. `ListFADE` learns from features of items.

    Guarantee:
        (epsilon, delta)-joint DP: the list is a function of releases, so a user moves only the
        counts of her m items, by sqrt(m + 1) in L2 and m + 1 in L1; with `noise="laplace"`
        delta = 0. Counters that are each epsilon-DP for their own item would be (m + 1) epsilon.

    Differs from the paper:
        1. Reconstructed: the paper's own algorithm may differ.
        2. The guarantee covers all of a user's items together.
        3. "kl" and "ucb1" have no bonus for noise, because such a bonus never reduced regret.
    """

    # "the list is a function of releases"
    blind = True

    epsilon: float = 1.0
    """target, > 0; inf adds no noise"""
    delta: float = 1e-5
    """target, in [0, 1); 0 only with Laplace noise"""
    noise: Literal["gaussian", "laplace"] = "gaussian"
    """distribution of the noise in the counters"""
    bound: Bound = "posterior"
    """upper bound of an item's click rate; "posterior" allows for the noise of counts, "kl" and
    "ucb1" spend many rounds on every item"""
    order: Order = "least-examined"
    """order of a list; largest bound first, or items that the fewest users looked at first"""
    refresh_every: Count | None = None
    """number of rounds between releases of all counters; if None, T / 200, at most 100"""

    @property
    def noise_sd(self) -> float:
        return self.sums.stddev

    def check(self) -> None:
        privacy_target(self.epsilon, self.delta)
        if self.noise == "gaussian" and self.delta == 0:
            raise InputError("Expected delta=0 only with noise='laplace'.")

    def start(self) -> None:
        super().start()
        T, statistic = self.spec.horizon, self.statistic
        every = self.refresh_every or max(1, min(100, T // 200))
        if self.epsilon == inf:
            self.sums = exact_prefix_sum(statistic, horizon=T, refresh_every=every)
        else:
            target = Target(self.epsilon, self.delta, T, every)
            process: Factorisation = Tree() if self.noise == "laplace" else BLT()
            self.sums = certified_sum(process, statistic, self.streams, target, law=self.noise)
        self.ledger = ledger_of(self.epsilon, self.sums.spend)
        self.before = np.zeros((self.R, *statistic.shape))  # counts of replaced items
        self.gone = np.zeros((self.R, self.spec.n_items), np.bool_)

    def learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        release = self.sums(lists, clicks)
        if release is None:
            return
        self.before = np.where(self.gone[:, None], release, self.before)
        self.gone = np.zeros_like(self.gone)
        self.looks, self.clicks = (release - self.before).swapaxes(0, 1)

    def forget(self, new: Ints) -> None:
        super().forget(new)
        self.gone |= new.astype(np.bool_)
