"""Upper bounds on each item's attraction, from how often it was looked at and clicked."""

from math import log
from typing import Literal, get_args

import numpy as np

from dpbandit.agents.lists.ranking import ListPlayer, best_lists
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.losses.click_models import Cascade
from dpbandit.privacy.ledger import Ledger
from dpbandit.specs.lists import ListSpec

Bound = Literal["kl", "ucb1", "posterior"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)
Order = Literal["index", "least-examined"]
_BISECTIONS = 20
_SPREAD, _HOPE = 0.1, 0.5
"""Standard deviation of attractions, and standard deviations of optimism, of `posterior`."""


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


def posterior(looks: Floats, clicks: Floats, noise: float) -> Floats:
    """A mean and half a standard deviation of each attraction, given counts with `noise` (its sd).

    A priori attractions are normal around the clicks per look of all items, with sd 0.1.
    """
    n = np.maximum(looks, 1.0)
    share = clicks.sum(axis=1, keepdims=True) / np.maximum(looks.sum(axis=1, keepdims=True), 1.0)
    share = share.clip(0.01, 0.99)
    error = (share * (1 - share) * n + noise**2) / n**2
    trust = _SPREAD**2 / (_SPREAD**2 + error)
    return share + trust * (clicks / n - share) + _HOPE * _SPREAD * np.sqrt(1 - trust)


class ItemCounter(ListPlayer):
    """Shows the m items with the largest bounds; with "kl" and "ucb1" those hardly looked at first.

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
        lists = best_lists(self._index(), self._spec.clicks)
        if self._order == "least-examined":
            looked = np.take_along_axis(self._looks, lists, axis=1)
            rank = np.argsort(looked, axis=1, kind="stable")
            lists = np.take_along_axis(lists, rank, axis=1)
        return lists

    def _index(self) -> Floats:
        """What items are sorted by, (R, N); it breaks ties at random."""
        if self._bound == "posterior":
            return posterior(self._looks, self._clicks, self._noise()) + 1e-6 * self._luck
        looks = np.maximum(self._looks, 1.0)
        bound = (kl_ucb if self._bound == "kl" else ucb1)(self._clicks / looks, looks, self._round)
        return np.where(self._looks < 1 + self._noise(), 2.0 + self._luck, np.minimum(bound, 2.0))

    def _noise(self) -> float:
        """The sd of the noise of a count; items with fewer looks than one more count as new."""
        return 0.0

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
