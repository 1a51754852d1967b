"""Private cascading bandits: a bound for each item from noisy counters."""

from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from dpbandit.agents.lists.item_bounds import BOUNDS, Bound, ItemCounter, Order
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, one_of, privacy_target, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.calibrated import Target, certified_sum, exact_prefix_sum
from dpbandit.privacy.clicks import ListCounts
from dpbandit.privacy.ledger import ledger_of
from dpbandit.privacy.prefix_sums import BLT, Factorisation, Tree
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import Spec, fits


@dataclass(frozen=True, kw_only=True)
class PrivateCascade:
    """Cascading bandits on noisy counts of looks and clicks, for few items and many rounds.

    After the idea of Wang, Dong, Wang, Li and Shao, "Cascading bandit under differential privacy",
    ICASSP 2022 (arXiv 2105.11126), whose algorithms' text could not be had: reconstructed.

    1. Show the m items with the largest bounds on clicks / looks, by default `posterior`
       (item_bounds.py). With "kl" and "ucb1" items with fewer than 1 + sd noisy looks count as
       never looked at, sd the noise of a count.
    2. A user's looks and clicks enter running sums of all items at once (`ListCounts`).

    **Limits.** Every item has counts, and noise, of its own: with 200 items, T = 5,000 and epsilon
    1 it loses 1,729 where uniform lists lose 1,908. `ListFADE` learns from features of items.

    Guarantee:
        (epsilon, delta)-joint DP: the list is a function of releases, so a user moves only the
        counts of her m items, by sqrt(m + 1) in L2 and m + 1 in L1; with `noise="laplace"`
        delta = 0. Counters that are each epsilon-DP for their own item would be (m + 1) epsilon.

    Code:
        Bounds and list are `ItemCounter` (item_bounds.py), which sorts by `best_lists`
        (ranking.py); the counters are `certified_sum`.

    Differs from the paper:
        1. Reconstructed; nothing of the printed algorithm is claimed.
        2. The claim covers all of a user's items together.
        3. "kl" and "ucb1" have no bonus for noise: it never paid.
    """

    epsilon: float = 1.0
    """> 0; inf adds no noise"""
    delta: float = 1e-5
    """0 with Laplace noise"""
    noise: Literal["gaussian", "laplace"] = "gaussian"
    """of the counters"""
    bound: Bound = "posterior"
    """of an item's attraction: "posterior" trusts counts as far as their noise allows; "kl" and
    "ucb1" try every item often, which takes many rounds for each"""
    order: Order = "least-examined"
    """in which a list is shown"""
    refresh_every: int | None = None
    """rounds from one release of all counters to the next; if None, T / 200, at most 100"""

    def __post_init__(self) -> None:
        privacy_target(self.epsilon, self.delta)
        one_of("noise", self.noise, ("gaussian", "laplace"))
        one_of("bound", self.bound, BOUNDS)
        one_of("order", self.order, ("index", "least-examined"))
        if self.refresh_every is not None:
            whole("refresh_every", self.refresh_every, 1)
        if self.noise == "gaussian" and self.delta == 0:
            raise InputError("Expected delta=0 only with noise='laplace'.")

    def make(self, spec: Spec, streams: Streams) -> "PrivateCascadeAgent":
        """A running agent; raises `InputError` for anything but lists in a cascade."""
        return PrivateCascadeAgent(self, fits(self, spec, ListSpec), streams)


class PrivateCascadeAgent(ItemCounter):
    """See `PrivateCascade`."""

    def __init__(self, config: PrivateCascade, spec: ListSpec, streams: Streams) -> None:
        statistic = ListCounts(spec.n_items, spec.length)
        every = config.refresh_every or max(1, min(100, spec.horizon // 200))
        if config.epsilon == inf:
            self._sums = exact_prefix_sum(statistic, horizon=spec.horizon, refresh_every=every)
        else:
            target = Target(config.epsilon, config.delta, spec.horizon, every)
            process: Factorisation = Tree() if config.noise == "laplace" else BLT()
            self._sums = certified_sum(process, statistic, streams, target, law=config.noise)
        ledger = ledger_of(config.epsilon, self._sums.spend)
        super().__init__(spec, streams, ledger, bound=config.bound, order=config.order)
        self._before = np.zeros((len(streams), *statistic.shape))  # of items that are gone
        self._gone = np.zeros((len(streams), spec.n_items), np.bool_)

    def _learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        release = self._sums(lists, clicks)
        if release is None:
            return
        self._before = np.where(self._gone[:, None], release, self._before)
        self._gone = np.zeros_like(self._gone)
        self._looks, self._clicks = (release - self._before).swapaxes(0, 1)

    def _noise(self) -> float:
        return self._sums.stddev

    def _empty(self, new: Floats) -> None:
        super()._empty(new)
        self._gone |= new.astype(np.bool_)
