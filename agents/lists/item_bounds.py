"""Upper bounds on each item's attraction, from how often it was looked at and clicked."""

from math import log
from typing import Literal

import numpy as np

from dpbandit.agents.lists.ranking import ListPlayer, best_lists
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.losses.click_models import Cascade
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.specs.lists import ListSpec

Bound = Literal["kl", "ucb1"]
Order = Literal["index", "least-examined"]
_BISECTIONS = 20


def ucb1(mean: Floats, looks: Floats, t: int) -> Floats:
    """mean + sqrt(1.5 ln t / looks)."""
    return mean + np.sqrt(1.5 * log(max(t, 2)) / looks)


def kl_ucb(mean: Floats, looks: Floats, t: int) -> Floats:
    """The largest q with looks x kl(mean, q) <= ln t + 3 ln ln t, by bisection."""
    room = (log(max(t, 2)) + 3 * log(max(log(max(t, 2)), 1))) / looks
    low = mean = mean.clip(0, 1)
    high = np.ones_like(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(mean > 0, mean * np.log(mean), 0.0)
        own += np.where(mean < 1, (1 - mean) * np.log1p(-mean), 0.0)
        for _ in range(_BISECTIONS):
            q = (low + high) / 2
            inside = own - mean * np.log(q) - (1 - mean) * np.log1p(-q) <= room
            low, high = np.where(inside, q, low), np.where(inside, high, q)
    return low


class ItemCounter(ListPlayer):
    """Shows the m items with the largest bounds; those hardly looked at first, in random order.

    In a cascade the order is free for the reward, and decides what is looked at: with
    `"least-examined"` what was looked at least is shown first.
    """

    def __init__(
        self, spec: ListSpec, streams: Streams, ledger: Ledger, *, bound: Bound, order: Order
    ) -> None:
        super().__init__(spec, ledger)
        if not isinstance(spec.clicks, Cascade):
            raise InputError(
                f"Expected a cascade to count looks in, got {type(spec.clicks).__name__}: what was "
                "looked at beside other clicks is another count."
            )
        self._bound, self._order = bound, order
        self._round = 0
        self._looks, self._clicks = np.zeros((2, len(streams), spec.n_items))
        self._luck = streams.uniforms("ties", spec.n_items)()
        self._refilled: Ints = spec.catalogue.refilled.copy()

    def _choose(self, u: Floats) -> Ints:
        self._round += 1
        self._forget()
        looks = np.maximum(self._looks, 1.0)
        bound = (kl_ucb if self._bound == "kl" else ucb1)(self._clicks / looks, looks, self._round)
        bound = np.where(self._looks < self._least(), 2.0 + self._luck, np.minimum(bound, 2.0))
        lists = best_lists(bound, self._spec.clicks)
        if self._order == "least-examined":
            looked = np.take_along_axis(self._looks, lists, axis=1)
            rank = np.argsort(looked, axis=1, kind="stable")
            lists = np.take_along_axis(lists, rank, axis=1)
        return lists

    def _least(self) -> float:
        """Items with fewer looks count as never looked at."""
        return 1.0

    def _forget(self) -> None:
        """Places of the catalogue with new items, a public event, start anew."""
        refilled = self._spec.catalogue.refilled
        if (refilled != self._refilled).any():
            new = np.broadcast_to(refilled != self._refilled, self._looks.shape)
            self._refilled = refilled.copy()
            self._empty(new)

    def _empty(self, new: Floats) -> None:
        self._looks = np.where(new, 0.0, self._looks)
        self._clicks = np.where(new, 0.0, self._clicks)
