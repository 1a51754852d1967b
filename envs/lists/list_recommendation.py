"""Recommendation of ordered lists of a catalogue's items, with four models of users' clicks.

`ListProblem` is the base of problems of lists; its users are drawn ahead. The best list of one user
is found by partial sorting, the best fixed list by sorting or greedily. `ListDiagnostics` measures
coverage of the catalogue in an episode, and the distance between items of a list.
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
    """Return the expected reward of the best list, (R,), given attraction probabilities (R, items).

    The best list has the most attractive items, in the order of position weights.
    """
    m = model.length
    largest = np.partition(attraction, -m, axis=1)[:, -m:]
    placed = np.empty_like(largest)
    placed[:, model.order] = np.flip(np.sort(largest, axis=1), 1)
    return model.expected(placed)


def best_fixed_list(model: ClickModel, attraction: Floats) -> Ints:
    """Find the best list for equally likely users, by attraction probabilities (users, items).

    Position-based clicks are linear in attraction probabilities: the m items of the largest means
    are best. For other models items are added greedily: for a cascade, whose reward is submodular,
    this has at least 1 - 1/e of the best expected reward; for others it is a heuristic.
    """
    if isinstance(model, PositionBased):
        chosen = np.argsort(-attraction.mean(axis=0), kind="stable")[: model.length]
    else:
        chosen = _greedy(model.weights[model.order], attraction)
    best = np.empty_like(chosen)
    best[model.order] = chosen
    return best


def _greedy(weights: Floats, attraction: Floats) -> Ints:
    """Return items, chosen one by one to increase the mean of 1 - prod(1 - weight * attraction)."""
    left, chosen = np.ones(len(attraction)), np.empty(len(weights), np.int64)
    free = np.ones(attraction.shape[1], np.bool_)
    for k, weight in enumerate(weights):
        gain = np.where(free, left @ attraction, -1.0)
        chosen[k] = gain.argmax()
        free[chosen[k]] = False
        left = left * (1 - weight * attraction[:, chosen[k]])
    return chosen


def user_types(taste: int, common: int) -> Floats:
    """Enumerate all vectors of -1 and 1 of length `taste` whose first `common` entries are 1."""
    free = taste - common
    signs = 2.0 * (rows(2**free)[:, None] >> rows(free)[None, :] & 1) - 1
    return np.concatenate([np.ones((len(signs), common)), signs], axis=1)


class ListDiagnostics:
    """Coverage and intra-list distance of displayed lists in R replicas, hidden from agents."""

    def __init__(self, catalogue: Catalogue, replicas: int) -> None:
        self._catalogue, self._clock = catalogue, catalogue.clock
        self._seen = np.zeros((replicas, catalogue.n_items), np.bool_)
        self._gone = np.zeros(replicas, np.int64)
        self._distance, self._lists = np.zeros(replicas), np.zeros(replicas, np.int64)
        self._refilled = catalogue.refilled.copy()

    def see(self, lists: Ints, here: Bools) -> None:
        """Record one round's lists (R, length) in replicas with a user, where `here` is True."""
        if self._catalogue.clock != self._clock:
            self._forget()
        self._seen[rows(len(lists))[here, None], lists[here]] = True
        v = self._catalogue.vectors(lists)
        total, m = v.sum(axis=1), lists.shape[1]
        products = np.vecdot(total, total) - np.square(v).sum(axis=(1, 2))  # twice each pair's
        self._distance += here * (1 - products / (m * (m - 1))) / 2 if m > 1 else np.nan
        self._lists += here

    @property
    def coverage(self) -> Floats:
        """Share of the episode's items that were displayed, (R,), see `ListProblem.coverage`."""
        there = self._seen.shape[1] + self._catalogue.clock
        return np.asarray((self._gone + self._seen.sum(axis=1)) / there)

    @property
    def intra_list_distance(self) -> Floats:
        """Mean distance of items of a list, (R,), see `ListProblem.intra_list_distance`."""
        return np.where(self._lists > 0, self._distance / np.maximum(self._lists, 1), np.nan)

    def _forget(self) -> None:
        """Count new items as not displayed yet, and add up displayed items that were replaced."""
        new = self._catalogue.refilled != self._refilled
        self._gone += (self._seen & new).sum(axis=1)
        self._seen &= ~new
        self._clock, self._refilled = self._catalogue.clock, self._catalogue.refilled.copy()


_USERS_AHEAD = 1 << 13
"""Number of users drawn at once, for all replicas; changes speed, never values"""
_MIN_ROUNDS_AHEAD = 64
"""Smallest number of rounds drawn at once; for fewer, calls would cost more than draws"""
_MAX_VALUES_AHEAD = 1 << 22
"""Largest number of entries of contexts (32 MB) for which `_MIN_ROUNDS_AHEAD` are drawn"""


class ListProblem(WithAvailability, ABC):
    """Base of problems of lists; a subclass draws users and computes attractions of items."""

    spec: Spec
    _lists: ListSpec
    """spec of the lists for one user"""
    _model: ClickModel
    """model by which users click; `_lists.clicks` is what agents know of it"""

    @abstractmethod
    def _users(self, count: int) -> Floats:
        """Draw the contexts of users of the next `count` rounds, (count, R, dim)."""

    @abstractmethod
    def _scores(self, u: Floats) -> Floats:
        """Return a new array of each item's score for the users with contexts `u`, (R, items)."""

    @abstractmethod
    def _chance(self, scores: Floats) -> Floats:
        """Return probabilities to attract by scores; it never falls, and is 0 at -infinity."""

    @abstractmethod
    def best_fixed(self) -> Ints:
        """Return the list (R, length) that is best on average over users."""

    def _start(self, streams: Streams) -> None:
        R, dim = len(streams), self._lists.dim
        self._uniforms = streams.uniforms("clicks", 2, self._lists.length)
        least = min(_MIN_ROUNDS_AHEAD, _MAX_VALUES_AHEAD // (R * dim))
        self._block = max(1, _USERS_AHEAD // R, least)
        self._round, self._drawn = 0, 0
        self._ahead: Floats = np.empty((0, R, dim))
        self._here = np.ones(R, np.bool_)
        self._there = None if self._availability is None else self._availability.start(streams)
        self._mask: Bools | None = None
        self._diagnostics = ListDiagnostics(self._lists.catalogue, R)

    def context(self) -> Floats:
        """Return the contexts of the current users, (R, dim)."""
        if self._round == self._drawn:
            self._ahead = self._users(self._block)
            self._drawn += self._block
        return self._ahead[self._round % self._block]

    def _attraction(self, u: Floats) -> Floats:
        """Return each item's probability to attract the users with contexts `u`, (R, items)."""
        return self._chance(self._scores(u))

    def restrict(self, available: Any, absent: Any) -> None:
        super().restrict(available, absent)
        self._lists = cast(ListSpec, self.spec)

    def mask(self) -> Bools:
        """Return the mask of items that are available to the current users, (R, items)."""
        if self._there is None:
            raise InputError("Expected spec.masks 'public' or 'user' where masks are read.")
        if self._mask is None:
            self._mask = self._there.take(1)[0]
        return self._mask

    def _attracts(self, attraction: Floats) -> Floats:
        """Return attraction probabilities, 0 for items that are not scheduled in this round."""
        return attraction if self._there is None else attraction * self._there.now()

    def step(self, action: Ints) -> Step:
        """Display lists (R, length) to the current users, draw clicks, go on to the next users."""
        R, model, here = self._ahead.shape[1], self._model, self._here
        lists = self._lists.validate(action, R)
        scores = self._scores(self._ahead[self._round % self._block])
        if self._there is not None:
            check_available(lists, self.mask())
            scores, self._mask = np.where(self.mask(), scores, -np.inf), None
        self._diagnostics.see(lists, here)
        displayed = self._chance(scores[rows(R)[:, None], lists])
        expected = model.expected(displayed) * here
        # probabilities of the displayed and of the best m items only: for all, they took most time
        scores.partition(-model.length, axis=1)
        best = best_value(model, self._chance(scores[:, -model.length :]))
        oracle = np.maximum(best * here, expected)  # at least the displayed list's, by rounding
        clicks, reward = model.clicked(displayed, self._uniforms())
        self._round += 1
        return Step(reward * here, expected, oracle, oracle - expected, clicks * here[:, None])

    @property
    def coverage(self) -> Floats:
        """Share of the items in this episode's catalogue that were displayed to a user, (R,)."""
        return self._diagnostics.coverage

    @property
    def intra_list_distance(self) -> Floats:
        """Mean of (1 - v_i . v_j) / 2 over displayed lists and pairs of their items, (R,).

        v_i is the vector of item i. The mean is about 1/2 for random lists if vectors are uniform
        on a sphere, 0 for equal vectors, and NaN for lists of one item, or before the first list.
        """
        return self._diagnostics.intra_list_distance

    def hindsight(self) -> float:
        """Return 0, as regret is measured against each user's own best list in each round."""
        return 0.0


def click_model(clicks: str, length: int, n_items: int, decay: float) -> ClickModel:
    """Return the click model named `clicks`, for lists of `length` out of `n_items` items.

    With "position" the weight of position k is k^-decay, k from 1; with "dependent" a click at
    position k ends the visit with probability k^-(1/2).
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


_MAX_RANDOM_TRAITS = 10
"""Largest number of random entries of a context, as all 2^10 kinds of users are enumerated"""


@dataclass(kw_only=True, eq=False)
class ListRecommendation(ListProblem):
    """Show each user an ordered list of m of N items; she clicks by one of four click models.

    Description:
        The catalogue is public: vectors v_i uniform on the unit sphere of R^taste. A user has a
        context u in {-1, 1}^taste, with 1 in the first `common` entries and fair coins in the
        others. The features of item i for her are phi = (1, u * v_i) / sqrt(2); if she looks at it
        she clicks with probability logistic(logit(base_rate) + appeal sqrt(taste) v_i . (u *
        theta)), theta uniform on the unit sphere for every episode. `dpbandit.losses.click_models`
        defines which positions she looks at. Memory and time are O(n_items taste) per replica.
        Users are synthetic: no public log of lists supports a position curve or a cascade.

        `env.unwrapped.problem.coverage` is the share of items that were shown so far in the
        episode, `intra_list_distance` the mean distance of items of a list.

    Action space:
        `MultiDiscrete([n_items] * length)`: an ordered list. Where a sample has an item twice, the
        Gymnasium environments replace later occurrences by the lowest unlisted items; the problem
        raises `InputError`.

    Observation space:
        `Box`, shape (taste,): the context u. The catalogue is `env.unwrapped.spec.catalogue.items`.

    Rewards:
        `"position"`, `"browsing"`: the number of clicks. `"cascade"`: 1 if there is a click.
        `"dependent"`: 1 if she leaves satisfied. `info["clicks"]` has the clicks. The expected and
        the oracle reward in `info` are exact, except for `"browsing"`: no oracle is known, and the
        better of the sorted and the displayed list takes its place.

    Starting state:
        A new catalogue (unless shared), a new theta and the first user.

    Arguments:
        * `n_items`, `length`, `horizon`: items N, list length m, rounds.
        * `taste`, `common`: number of entries of u, and of those that are 1 for all users (default:
          half); at most 10 may be random.
        * `clicks`: `"position"`, with weight k^-decay of position k; `"cascade"`; `"dependent"`, in
          which a click at position k ends the visit with probability k^-(1/2); `"browsing"`.
        * `base_rate`, `appeal`: click probability at a logit of 0, and the scale of logits.
        * `decay`: exponent of position weights; an assumption, not a fit. `weights`: `"told"` to
          agents, or `"hidden"` from them (`"position"` only).
        * `churn`: every `churn` rounds a random item is replaced by a new one, a public event; 0:
          never. `drift`: theta turns by `drift` quarters of a circle in the episode.
        * `catalogue`: `"own"`, one for each replica, or `"shared"`, one for all.
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
        if self.taste - self._common > _MAX_RANDOM_TRAITS:
            raise InputError(
                f"Expected common={self._common} to be at least taste - {_MAX_RANDOM_TRAITS} = "
                f"{self.taste - _MAX_RANDOM_TRAITS}: all kinds of users are enumerated."
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
        """Return the click model as agents know it, with or without position weights."""
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
        self._traits = streams.uniforms("users", self.taste - self._common)
        if self.churn:
            self._places = streams.world.uniforms("churned places")
            self._new = streams.world.normals("churned items", self.taste)
        self._catalogue_ends = False
        self._start(streams)

    def context(self) -> Floats:
        if self._catalogue_ends:  # only now: agents learn from a round before its items change
            self._catalogue_ends = False
            self._refill()
        return super().context()

    def step(self, action: Ints) -> Step:
        step = super().step(action)
        self._catalogue_ends = self.churn > 0 and self._round % self.churn == 0
        return step

    def best_fixed(self) -> Ints:
        # Over all kinds of users, which are equally likely. Exact for "position", for "cascade" at
        # least 1 - 1/e of the best, for others a heuristic. Under drift and churn it is that of
        # the tastes and scheduled items of the last round.
        types, tastes = user_types(self.taste, self._common), self._tastes()
        items, found = self._lists.catalogue.items, []
        for r, theta in enumerate(tastes):
            vectors = items[r if len(items) > 1 else 0]
            logits = sqrt(self.taste) * (types * theta) @ vectors.T
            found.append(best_fixed_list(self._model, self._attracts(self._chance(logits))))
        return np.array(found)

    def _users(self, count: int) -> Floats:
        uniforms = self._traits.take(count)
        shared = np.ones((*uniforms.shape[:2], self._common))
        return np.concatenate([shared, np.where(uniforms < 0.5, -1.0, 1.0)], axis=-1)

    def _tastes(self) -> Floats:
        """Return the parameter theta in the current round, (R, taste)."""
        turn = self.drift * pi / 2 * self._round / self.horizon
        return cos(turn) * self._theta + sin(turn) * self._aside if self.drift else self._theta

    def _scores(self, u: Floats) -> Floats:
        return self._lists.catalogue.products(sqrt(self.taste) * u * self._tastes())

    def _chance(self, scores: Floats) -> Floats:
        return np.asarray(expit(logit(self.base_rate) + self.appeal * scores))

    def _refill(self) -> None:
        place = (self._places() * self.n_items).astype(np.int64)
        z = self._new()
        self._lists.catalogue.refill(place, z / norms(z))
