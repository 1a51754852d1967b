"""Recommendation of ordered lists: a catalogue, users with tastes, four models of their clicks.

What problems of lists share: users drawn ahead, who look at a list and click.

Lists are best for one user by partial sorting, for all by sorting or greedily. `ListDiagnostics`
counts how much of a catalogue was shown in an episode, and how unlike the items of a list are.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import cos, pi, sin, sqrt
from typing import Any, Literal, cast

import numpy as np
from scipy.special import expit, logit

from dpbandit.base import (
    MOST_DIM,
    Bools,
    Floats,
    InputError,
    Ints,
    Streams,
    at_least,
    inside,
    norms,
    one_of,
    positive,
    rows,
    whole,
)
from dpbandit.envs.nonstationarity import WithAvailability
from dpbandit.losses.click_models import (
    Browsing,
    Cascade,
    ClickModel,
    DependentClicks,
    PositionBased,
    UntoldPositions,
)
from dpbandit.specs import Spec, Step, check_available
from dpbandit.specs.lists import MOST_ITEMS, Catalogue, ListSpec


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


class ListDiagnostics:
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


class ListProblem(WithAvailability, ABC):
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
        self._uniforms = streams.uniforms("clicks", 2, self._lists.length)
        self._many = max(1, ahead // R)
        self._round, self._drawn = 0, 0
        self._ahead: Floats = np.empty((0, R, self._lists.dim))
        self._here = np.ones(R, np.bool_)
        self._there = None if self._availability is None else self._availability.start(streams)
        self._mask: Bools | None = None
        self._diagnostics = ListDiagnostics(self._lists.catalogue, R)

    def context(self) -> Floats:
        """The current users' tastes u, (R, q)."""
        if self._round == self._drawn:
            self._ahead = self._users(self._many)
            self._drawn += self._many
        return self._ahead[self._round % self._many]

    def restrict(self, available: Any, absent: Any) -> None:
        super().restrict(available, absent)
        self._lists = cast(ListSpec, self.spec)

    def mask(self) -> Bools:
        """Which items are there for the current users, (R, N)."""
        if self._there is None:
            raise InputError("Expected masks to be asked for where spec.masks is not 'none'.")
        if self._mask is None:
            self._mask = self._there.take(1)[0]
        return self._mask

    def _attracts(self, attraction: Floats) -> Floats:
        """Of the items (..., N) that are scheduled in this round; 0 of the others."""
        return attraction if self._there is None else attraction * self._there.now()

    def step(self, action: Ints) -> Step:
        """Show the current users a list (R, m) and move on to the next."""
        R, model, here = self._ahead.shape[1], self._model, self._here
        lists = self._lists.validate(action, R)
        attraction = self._attraction(self._ahead[self._round % self._many])
        if self._there is not None:
            check_available(lists, self.mask())
            attraction, self._mask = attraction * self.mask(), None
        self._diagnostics.see(lists, here)
        displayed = attraction[rows(R)[:, None], lists]
        expected = model.expected(displayed) * here
        oracle = np.maximum(
            best_value(model, attraction) * here, expected
        )  # but for rounding it is
        clicks, reward = model.clicked(displayed, self._uniforms())
        self._round += 1
        return Step(reward * here, expected, oracle, oracle - expected, clicks * here[:, None])

    @property
    def coverage(self) -> Floats:
        """The share (R,) of the items there were in this episode that somebody was shown."""
        return self._diagnostics.coverage

    @property
    def intra_list_distance(self) -> Floats:
        """How unlike the items of a list were, (R,), in the mean over lists and pairs of items.

        (1 - v_i . v_j) / 2: 1/2 of lists at random where vectors are uniform on a sphere; NaN of
        lists of one item, or before the first.
        """
        return self._diagnostics.intra_list_distance

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


_MOST_COINS = 10
"""That tell users apart, for then there are 1,024 kinds of them to look at."""


@dataclass(kw_only=True, eq=False)
class ListRecommendation(ListProblem):
    """Show each user an ordered list of m of N items; a click model says what she clicks.

    Description:
        The catalogue is public: vectors v_i uniform on the unit sphere of R^taste. A user has
        u in {-1, 1}^taste, 1 in the first `common` places and fair coins in the others. The
        features of item i for her are phi = (1, u * v_i) / sqrt(2), and who looks at it clicks with
        probability logistic(logit(base_rate) + appeal sqrt(taste) v_i . (u * theta)), theta uniform
        on the unit sphere for every episode. Where she looks is said in
        `dpbandit.losses.click_models`. Memory and time are O(n_items taste) a replica.
        Synthetic: no public log of lists supports a position curve or a cascade.

        `env.unwrapped.problem.coverage` is the share of items that were shown, and
        `intra_list_distance` how unlike the items of a list were, so far in the episode.

    Action space:
        `MultiDiscrete([n_items] * length)`: an ordered list. Where a sample names an item twice,
        the Gymnasium environments keep the first and put the lowest unlisted items in the others'
        places; the problem refuses it.

    Observation space:
        `Box`, shape (taste,): u. The catalogue is `env.unwrapped.spec.catalogue.items`.

    Rewards:
        `"position"`, `"browsing"`: the number of clicks. `"cascade"`: whether there is one.
        `"dependent"`: whether she leaves satisfied. `info["clicks"]` has the clicks. The expected
        and the oracle reward in `info` are exact, but for `"browsing"`, where the sorted list
        stands for the best, for which no oracle is known (or what is played, if that is better).

    Starting state:
        A new catalogue (unless shared), a new theta and the first user.

    Arguments:
        * `n_items`, `length`, `horizon`: N, m, rounds.
        * `taste`, `common`: places of u, and how many of them all users share (by default half);
          at most 10 may be coins.
        * `clicks`: `"position"`, with weights k^-decay; `"cascade"`; `"dependent"`, who clicks at
          k leaves with probability k^-(1/2); `"browsing"`.
        * `base_rate`, `appeal`: clicks at a logit of 0, and the spread of logits.
        * `decay`: of position weights; an assumption, not a fit. `weights`: `"told"` to agents, or
          `"hidden"` from them (`"position"` only).
        * `churn`: every so many rounds a random place of the catalogue gets a new item, a public
          event; 0 is never. `drift`: everybody's theta turns by `drift` quarters of a circle.
        * `catalogue`: `"own"`, one for each replica, or `"shared"`, the same for all.
    """

    n_items: int = 1000
    length: int = 5
    taste: int = 9
    common: int | None = None
    clicks: Literal["position", "cascade", "dependent", "browsing"] = "cascade"
    base_rate: float = 0.05
    appeal: float = 0.7
    decay: float = 1.0
    weights: Literal["told", "hidden"] = "told"
    churn: int = 0
    drift: float = 0.0
    catalogue: Literal["own", "shared"] = "own"
    horizon: int = 20_000

    def __post_init__(self) -> None:
        whole("n_items", self.n_items, 2, MOST_ITEMS)
        whole("taste", self.taste, 1, MOST_DIM)
        self._common = self.taste // 2 if self.common is None else self.common
        whole("common", self._common, 0, self.taste)
        if self.taste - self._common > _MOST_COINS:
            raise InputError(
                f"Expected common={self._common} to be at least taste - {_MOST_COINS} = "
                f"{self.taste - _MOST_COINS}: all kinds of users are looked at."
            )
        inside("base_rate", self.base_rate, 0, 1, ends=False)
        positive("appeal", self.appeal)
        whole("churn", self.churn, 0)
        at_least("drift", self.drift, 0)
        one_of("catalogue", self.catalogue, ("own", "shared"))
        seed = 0 if self.catalogue == "shared" else None
        self._model = click_model(self.clicks, self.length, self.n_items, self.decay)
        self.spec = self._lists = ListSpec(
            catalogue=Catalogue(self.n_items, self.taste, seed=seed),
            clicks=self._click_model(),
            horizon=self.horizon,
            reward_unit=self._model.reward_unit,
        )

    def _click_model(self) -> ClickModel:
        """The click model as agents know it."""
        one_of("weights", self.weights, ("told", "hidden"))
        if self.weights == "told":
            return self._model
        if self.clicks != "position":
            raise InputError(
                f"Expected weights='hidden' with clicks='position' only, got {self.clicks!r}."
            )
        return UntoldPositions(self.length)

    def reset(self, streams: Streams) -> None:
        self._lists.catalogue.start(streams, churn=self.churn > 0)
        start = streams.world.normals("theta", 2, self.taste)()  # (R, 2, q)
        self._theta = start[:, 0] / norms(start[:, 0])
        aside = start[:, 1] - np.vecdot(start[:, 1], self._theta)[:, None] * self._theta
        self._aside = aside / np.maximum(norms(aside), 1e-300)
        self._coins = streams.uniforms("users", self.taste - self._common)
        if self.churn:
            self._places = streams.world.uniforms("churned places")
            self._new = streams.world.normals("churned items", self.taste)
        self._catalogue_ends = False
        self._start(streams)

    def context(self) -> Floats:
        if self._catalogue_ends:  # after everybody has learned from the round before
            self._catalogue_ends = False
            self._refill()
        return super().context()

    def step(self, action: Ints) -> Step:
        step = super().step(action)
        self._catalogue_ends = self.churn > 0 and self._round % self.churn == 0
        return step

    def best_fixed(self) -> Ints:
        # The list (R, m) for everybody, over all kinds of users, each as likely as any other.
        #
        # Exact for `"position"`; for `"cascade"` at least 1 - 1/e of the best; for the others a
        # heuristic. Under drift and churn that of the tastes and items of the round just played,
        # and of the items that were scheduled in it; in the place of one that is not there stands a
        # random item.
        types, tastes = user_types(self.taste, self._common), self._tastes()
        items, found = self._lists.catalogue.items, []
        for r, theta in enumerate(tastes):
            vectors = items[r if len(items) > 1 else 0]
            logits = sqrt(self.taste) * (types * theta) @ vectors.T
            found.append(best_fixed_list(self._model, self._attracts(self._chance(logits))))
        return np.array(found)

    def _users(self, count: int) -> Floats:
        coins = self._coins.take(count)
        shared = np.ones((*coins.shape[:2], self._common))
        return np.concatenate([shared, np.where(coins < 0.5, -1.0, 1.0)], axis=-1)

    def _tastes(self) -> Floats:
        """theta now, (R, q)."""
        turn = self.drift * pi / 2 * self._round / self.horizon
        return cos(turn) * self._theta + sin(turn) * self._aside if self.drift else self._theta

    def _attraction(self, u: Floats) -> Floats:
        logits = self._lists.catalogue.products(sqrt(self.taste) * u * self._tastes())
        return self._chance(logits)

    def _chance(self, logits: Floats) -> Floats:
        return np.asarray(expit(logit(self.base_rate) + self.appeal * logits))

    def _refill(self) -> None:
        place = (self._places() * self.n_items).astype(np.int64)
        z = self._new()
        self._lists.catalogue.refill(place, z / norms(z))
