"""What problems of lists share: users drawn ahead, who look at a list and click.

Lists are best for one user by partial sorting, for all by sorting or greedily. `Shown` keeps how
much of a catalogue was shown in an episode, and how unlike the items of a list are.
"""

from abc import ABC, abstractmethod

import numpy as np

from dpbandit.base import Bools, Floats, Ints, Streams, inside, one_of, rows, whole
from dpbandit.losses.click_models import (
    Browsing,
    Cascade,
    ClickModel,
    DependentClicks,
    PositionBased,
)
from dpbandit.specs.lists import Catalogue, ListSpec
from dpbandit.specs.protocols import Spec, Step


def best_value(model: ClickModel, attraction: Floats) -> Floats:
    """Of the best list for attractions (R, N), (R,): their m largest, in the order of weights."""
    m = model.length
    largest = np.partition(attraction, -m, axis=1)[:, -m:]
    placed = np.empty_like(largest)
    placed[:, model.order] = np.flip(np.sort(largest, axis=1), 1)
    return model.expected(placed)


def best_fixed_list(model: ClickModel, attraction: Floats) -> Ints:
    """One list (m,) for users of types s that are as likely as each other, attractions (S, N).

    Where expectations are linear in attractions (position-based), the m items of the largest means:
    exact. Else item by item, each the one that adds most: for a cascade at least 1 - 1/e of what
    the best list has (a submodular function), for others a heuristic.
    """
    if isinstance(model, PositionBased):
        chosen = np.argsort(-attraction.mean(axis=0), kind="stable")[: model.length]
    else:
        chosen = _greedy(model.weights[model.order], attraction)
    best = np.empty_like(chosen)
    best[model.order] = chosen
    return best


def _greedy(weights: Floats, attraction: Floats) -> Ints:
    """Item after item what adds most to the mean of 1 - prod (1 - w_k a)."""
    left, chosen = np.ones(len(attraction)), np.empty(len(weights), np.int64)
    free = np.ones(attraction.shape[1], np.bool_)
    for k, weight in enumerate(weights):
        gain = np.where(free, left @ attraction, -1.0)
        chosen[k] = gain.argmax()
        free[chosen[k]] = False
        left = left * (1 - weight * attraction[:, chosen[k]])
    return chosen


def user_types(taste: int, common: int) -> Floats:
    """All users, (2^(taste - common), taste): 1 in the common places, -1 or 1 in the others."""
    free = taste - common
    signs = 2.0 * (rows(2**free)[:, None] >> rows(free)[None, :] & 1) - 1
    return np.concatenate([np.ones((len(signs), common)), signs], axis=1)


class Shown:
    """Diagnostics of lists, for R replicas: nobody learns from them."""

    def __init__(self, catalogue: Catalogue, replicas: int) -> None:
        self._catalogue, self._clock = catalogue, catalogue.clock
        self._seen = np.zeros((replicas, catalogue.n_items), np.bool_)
        self._gone = np.zeros(replicas, np.int64)
        self._distance, self._lists = np.zeros(replicas), np.zeros(replicas, np.int64)
        self._refilled = catalogue.refilled.copy()

    def see(self, lists: Ints, here: Bools) -> None:
        """One round, lists (R, m), where anybody is `here` (R,)."""
        if self._catalogue.clock != self._clock:
            self._forget()
        self._seen[rows(len(lists))[here, None], lists[here]] = True
        v = self._catalogue.vectors(lists)
        total, m = v.sum(axis=1), lists.shape[1]
        alike = np.vecdot(total, total) - np.square(v).sum(axis=(1, 2))  # twice every pair
        self._distance += here * (1 - alike / (m * (m - 1))) / 2 if m > 1 else np.nan
        self._lists += here

    @property
    def coverage(self) -> Floats:
        """See `ListProblem.coverage`."""
        there = self._seen.shape[1] + self._catalogue.clock
        return np.asarray((self._gone + self._seen.sum(axis=1)) / there)

    @property
    def intra_list_distance(self) -> Floats:
        """See `ListProblem.intra_list_distance`."""
        return np.where(self._lists > 0, self._distance / np.maximum(self._lists, 1), np.nan)

    def _forget(self) -> None:
        """Places with new items have not been shown; what was there has, or has not."""
        new = self._catalogue.refilled != self._refilled
        self._gone += (self._seen & new).sum(axis=1)
        self._seen &= ~new
        self._clock, self._refilled = self._catalogue.clock, self._catalogue.refilled.copy()


_USERS_AHEAD = 1 << 13
"""Drawn at once for all replicas. Changes speed, never values."""


class ListProblem(ABC):
    """A problem of lists; a subclass says who the users are and what attracts them."""

    spec: Spec
    _lists: ListSpec
    """what is shown to one user"""
    _model: ClickModel
    """how users click, told to agents or not"""

    @abstractmethod
    def _users(self, count: int) -> Floats:
        """What the next users say of themselves, (count, R, q)."""

    @abstractmethod
    def _attraction(self, u: Floats) -> Floats:
        """Of every item for users (R, q), (R, N)."""

    @abstractmethod
    def best_fixed(self) -> Ints:
        """The list (R, m) for everybody."""

    def _start(self, streams: Streams, ahead: int = _USERS_AHEAD) -> None:
        R = len(streams)
        self._luck = streams.uniforms("clicks", 2, self._lists.length)
        self._many = max(1, ahead // R)
        self._round, self._drawn = 0, 0
        self._ahead: Floats = np.empty((0, R, self._lists.dim))
        self._here = np.ones(R, np.bool_)
        self._shown = Shown(self._lists.catalogue, R)

    def context(self) -> Floats:
        """The current users' tastes u, (R, q)."""
        if self._round == self._drawn:
            self._ahead = self._users(self._many)
            self._drawn += self._many
        u: Floats = self._ahead[self._round % self._many]
        return u

    def step(self, action: Ints) -> Step:
        """Show the current users a list (R, m) and move on to the next."""
        R, model, here = self._ahead.shape[1], self._model, self._here
        lists = self._lists.validate(action, R)
        attraction = self._attraction(self._ahead[self._round % self._many])
        self._shown.see(lists, here)
        shown = attraction[rows(R)[:, None], lists]
        expected = model.expected(shown) * here
        oracle = np.maximum(
            best_value(model, attraction) * here, expected
        )  # but for rounding it is
        clicks, reward = model.clicked(shown, self._luck())
        self._round += 1
        return Step(reward * here, expected, oracle, oracle - expected, clicks * here[:, None])

    @property
    def coverage(self) -> Floats:
        """The share (R,) of the items there were in this episode that somebody was shown."""
        return self._shown.coverage

    @property
    def intra_list_distance(self) -> Floats:
        """How unlike the items of a list were, (R,), in the mean over lists and pairs of items.

        (1 - v_i . v_j) / 2: 1/2 of lists at random where vectors are uniform on a sphere; NaN of
        lists of one item, or before the first.
        """
        return self._shown.intra_list_distance

    def hindsight(self) -> float:
        """0: every user has a best list of her own."""
        return 0.0


def click_model(clicks: str, length: int, n_items: int, decay: float) -> ClickModel:
    """The model of that name for lists of so many out of `n_items`.

    "position" has weights k^-decay, k from 1; "dependent" has v_k = k^-(1/2).
    """
    one_of("clicks", clicks, ("position", "cascade", "dependent", "browsing"))
    inside("decay", decay, 0, 100, ends=True)
    whole("length", length, 1, n_items - 1)
    places = np.arange(1.0, length + 1)
    if clicks == "position":
        return PositionBased(tuple((places**-decay).tolist()))
    if clicks == "dependent":
        return DependentClicks(tuple((places**-0.5).tolist()))
    return Cascade(length) if clicks == "cascade" else Browsing(length)
