"""Recommendation with logistic clicks on fresh slates, and from real ratings.

Recommendation from real ratings: low-rank tastes fitted once to a file of your own.

Ratings files are in MovieLens format.
"""

import os
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from dpbandit.base import (
    MOST_ACTIONS,
    MOST_DIM,
    Floats,
    InputError,
    Ints,
    Streams,
    abbrev,
    inside,
    norms,
    positive,
    rows,
    text_of,
    whole,
)
from dpbandit.envs.contextual.problems import ContextualProblem, ResampledChoices, Users
from dpbandit.offline.tables import text_at
from dpbandit.specs import ContextualSpec


@dataclass(kw_only=True, eq=False)
class Recommendation(ContextualProblem):
    """Choose one of K candidate items for each arriving user; the reward is a click.

    Description:
        An episode has a catalogue of `n_items` items, unit vectors v_i in R^taste. A user arrives
        with tastes u, uniform on the sphere of radius sqrt(taste), and a slate of K distinct items
        drawn from the catalogue. The features of item i for user u are::

            phi = (1, v_i, u * v_i) / |(1, v_i, u * v_i)|             (dim = 1 + 2 taste, |phi| = 1)

        and she clicks with probability logistic(logit(base_rate) + appeal sqrt(dim) phi . theta),
        theta drawn uniformly on the unit sphere for every episode: some items are popular with all,
        some only with users of the right taste. Synthetic: no click log with usable signal can be
        shipped without a download under a clean licence.

    Action space:
        `Discrete(n_actions)`: the place on the slate.

    Observation space:
        `Box`, shape (n_actions, dim): the features phi of every candidate.

    Rewards:
        1 for a click, else 0.

    Starting state:
        A new catalogue, a new theta, the first user and her slate.

    Arguments:
        * `n_actions`: candidates on a slate. `n_items`: catalogue size, at least `n_actions`.
        * `taste`: features of users and items. `horizon`: rounds.
        * `base_rate`: clicks at phi . theta = 0. `appeal`: standard deviation of the click logit.
        * `delay`: rounds until a click is seen; the reward is 0 until then.
    """

    n_actions: int = 10
    taste: int = 4
    n_items: int = 200
    horizon: int = 10_000
    base_rate: float = 0.2
    appeal: float = 1.0
    delay: int = 0

    def __post_init__(self) -> None:
        whole("taste", self.taste, 1, MOST_DIM // 2 - 1)
        positive("appeal", self.appeal)
        inside("base_rate", self.base_rate, 0, 1, ends=False)
        self.spec = ContextualSpec(
            n_actions=self.n_actions,
            dim=1 + 2 * self.taste,
            horizon=self.horizon,
            shared=True,
            link="logistic",
            delay=self.delay,
            reward_unit="clicks",
        )
        whole("n_items", self.n_items, self.n_actions, MOST_ACTIONS)

    def _start(self, streams: Streams) -> None:
        self._items = _unit(streams.world.normals("catalogue", self.n_items, self.taste)())
        self._theta = _unit(streams.world.normals("theta", self.spec.dim)())  # (R, d)
        self._tastes = streams.normals("tastes", self.taste)
        self._slates = streams.uniforms("slates", self.n_items)
        self._uniforms = streams.uniforms("clicks")

    def _users(self, count: int) -> Users:
        u = np.sqrt(self.taste) * _unit(self._tastes.take(count))[:, :, None]  # (n, R, 1, taste)
        order = self._slates.take(count).argpartition(self.n_actions - 1, axis=-1)
        slate = order[..., : self.n_actions]  # (n, R, K)
        v = self._items[rows(self._items.shape[0])[:, None], slate]  # (n, R, K, taste)
        phi = _unit(np.concatenate([np.ones((*slate.shape, 1)), v, u * v], axis=-1))
        signal = self.appeal * np.sqrt(self.spec.dim) * np.matvec(phi, self._theta)
        click = np.asarray(expit(logit(self.base_rate) + signal))
        return Users(phi, click, 1.0 * (self._uniforms.take(count)[..., None] < click))

    def _values_per_user(self) -> int:
        return super()._values_per_user() + self.n_items


def _unit(x: Floats) -> Floats:
    return x / norms(x)


_SEPARATORS = ("::", "\t", ",")  # ratings.dat, u.data, ratings.csv
_KNOWN = {
    ("\t", ()): (1.0, 5.0),  # MovieLens 100K
    (",", ("userId", "movieId", "rating", "timestamp")): (0.5, 5.0),  # 20M and later
}
"""Scales of ratings, by separator and header."""


@dataclass(frozen=True)
class Ratings:
    """n ratings of items by users, both numbered in the order in which the file names them."""

    user: Ints
    """(n,)"""
    item: Ints
    """(n,)"""
    rating: Floats
    """(n,)"""
    items: tuple[str, ...]
    """the file's names of the items"""
    low: float
    high: float


def read_ratings(
    path: str | Path, *, low: float | None = None, high: float | None = None
) -> Ratings:
    """Read user, item, rating and (ignored) time from each line of a file.

    Fields are separated by `::` (ratings.dat), a tab (u.data) or a comma (ratings.csv), whichever
    the first line has. A first line whose third field is `rating` is a header: of ratings.csv,
    userId,movieId,rating,timestamp.

    The scale of ratings is what `low` and `high` say, or else what the format does, never what the
    ratings do:

    ====================================  =======================================================
    file                                  scale
    ====================================  =======================================================
    `u.data`, tabs                        1 to 5, by the README of MovieLens 100K
    `ratings.csv`, commas, with a header  0.5 to 5, as of 20M and later
    `ratings.dat`                         has to be said: 1 to 5 in MovieLens 1M, 0.5 to 5 in 10M
    any other                             has to be said
    ====================================  =======================================================

    Raises:
        InputError: the file cannot be read or is empty; a line has not 3 or 4 fields, no user or
            item, or a rating that is not in [low, high]; a user rates an item twice; a scale that
            is missing or empty.
    """
    path = text_of("path", path)
    lines = text_at(path, called="ratings from path={!r}").rstrip("\r\n").splitlines()
    nothing = InputError(f"Expected ratings in {path}, found none.")
    if not lines:
        raise nothing
    separator = next((s for s in _SEPARATORS if s in lines[0]), ",")
    first = tuple(field.strip() for field in lines[0].split(separator))
    header = first[2:3] == ("rating",)
    low, high = _scale(path, low, high, _KNOWN.get((separator, first if header else ())))
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    found: dict[tuple[int, int], float] = {}
    for number, line in enumerate(lines[header:], start=1 + header):
        fields = line.split(separator)
        rating = _rating(fields)
        if rating is None or not fields[0].strip() or not fields[1].strip():
            wanted = separator.join(("user", "item", "rating", "time")).replace("\t", "<tab>")
            raise InputError(f"Expected {wanted} in line {number} of {path}, got {line[:60]!r}.")
        if not low <= rating <= high:
            raise InputError(
                f"Expected a rating from low={low:g} to high={high:g} in line {number} of {path}, "
                f"got {rating:g}."
            )
        user = users.setdefault(fields[0].strip(), len(users))
        item = items.setdefault(fields[1].strip(), len(items))
        if (user, item) in found:
            raise InputError(
                f"Expected one rating of an item by a user, got a second one in line {number} of "
                f"{path}: {line[:60]!r}."
            )
        found[user, item] = rating
    if not found:
        raise nothing
    pairs = np.array(list(found), dtype=np.int64)
    stars = np.array(list(found.values()))
    return Ratings(pairs[:, 0], pairs[:, 1], stars, tuple(items), low, high)


def _scale(
    path: str | Path, low: float | None, high: float | None, known: tuple[float, float] | None
) -> tuple[float, float]:
    """What was told of it, else what is known of the format."""
    if known:
        low, high = (known[0] if low is None else low, known[1] if high is None else high)
    if low is None or high is None:
        raise InputError(
            f"Expected low={low} and high={high} to be the public scale of the ratings in {path}, "
            "which its format does not say: ratings.dat has 1 to 5 in MovieLens 1M and 0.5 to 5 in "
            "10M."
        )
    positive("high - low", high - low)
    return low, high


def _rating(fields: list[str]) -> float | None:
    """The third of 3 or 4 fields as a number, if it is one."""
    if len(fields) not in (3, 4):
        return None
    try:
        return float(fields[2])
    except ValueError:
        return None


def tastes(ratings: Ratings, rank: int) -> Floats:
    """Each user's direction of taste, (users, rank), Euclidean norm 1 (0 without any)::

        1. subtract each item's mean from its ratings; a missing rating is 0
        2. the `rank` leading left singular vectors of that users x items matrix
        3. scale each user's row to norm 1: how much somebody rates is not how she rates

    Deterministic: a fixed start vector, and the largest entry of each singular vector positive.
    Raises `InputError` unless rank is below the number of users and of items.
    """
    from scipy.sparse import csr_array  # not before: slow to import
    from scipy.sparse.linalg import svds  # not before: slow to import

    shape = (int(ratings.user.max()) + 1, len(ratings.items))
    if not rank < min(shape):
        raise InputError(
            f"Expected rank={rank} below the number of users and of items in the file, {shape}."
        )
    count = np.bincount(ratings.item)
    residual = ratings.rating - (np.bincount(ratings.item, ratings.rating) / count)[ratings.item]
    if np.abs(residual).max() < 1e-9:
        raise InputError(
            "Expected users who differ: every item has the same rating by all of them."
        )
    matrix = csr_array((residual, (ratings.user, ratings.item)), shape=shape)
    left, size, _ = svds(matrix, k=rank, v0=np.cos(np.arange(min(shape))))
    left = left[:, size.argsort()[::-1]]
    left = left * np.sign(left[np.abs(left).argmax(axis=0), np.arange(rank)])
    length = norms(left)
    return left / np.where(length > 1e-12, length, np.inf)


def item_model(ratings: Ratings, tastes: Floats, item: int, ridge: float) -> Floats:
    """An item's intercept and tastes, (1 + rank,): ridge regression over those who rated it.

    The intercept is not shrunk.
    """
    rated = ratings.item == item
    x = tastes[ratings.user[rated]]
    x = np.column_stack([np.ones(len(x)), x])
    penalty = np.diag([0.0] + [ridge] * tastes.shape[1])
    return np.linalg.solve(x.T @ x + penalty, x.T @ ratings.rating[rated])


class Fitted(NamedTuple):
    """The simulator that a file was made into."""

    context: Floats
    """(users, 1 + rank), (1, taste) / sqrt(2)"""
    like: Floats
    """(users, K), the probability that a user likes an item"""
    model: Floats
    """(K, 1 + rank), an item's stars without any taste, and what each feature of one adds"""
    items: tuple[str, ...]
    """the file's names of the K items"""
    rmse: float
    """root mean square error of the model on the ratings of these items, in stars, in sample"""
    scale: tuple[float, float]
    """the lowest and the highest rating there may be"""


@lru_cache(maxsize=4)
def _fitted(
    path: str,
    stamp: int,
    called: str,
    n_items: int,
    rank: int,
    told_low: float | None,
    told_high: float | None,
    ridge: float,
) -> Fitted:
    """The model of a file; `stamp` is when the file was changed last."""
    ratings = read_ratings(path, low=told_low, high=told_high)
    low, high = ratings.low, ratings.high
    taste = tastes(ratings, rank)
    count = np.bincount(ratings.item)
    if n_items > len(count):
        raise InputError(f"Expected {called}={n_items} <= {len(count)}, the items in {path}.")
    top = (-count).argsort(kind="stable")[:n_items]  # ties: first in the file
    x = np.column_stack([np.ones(len(taste)), taste])
    model = np.stack([item_model(ratings, taste, item, ridge) for item in top])
    stars = np.column_stack([x @ item for item in model]).clip(low, high)
    arm = np.full(len(count), -1)
    arm[top] = np.arange(n_items)
    among = arm[ratings.item] >= 0
    error = stars[ratings.user[among], arm[ratings.item[among]]] - ratings.rating[among]
    return Fitted(
        context=x / np.sqrt(2),
        like=(stars - low) / (high - low),
        model=model,
        items=tuple(ratings.items[item] for item in top),
        rmse=float(np.sqrt(np.square(error).mean())),
        scale=(low, high),
    )


@dataclass(kw_only=True, eq=False)
class Rated:
    """Settings and facts of a problem that is fitted to a file of ratings."""

    path: str | Path | None = None
    rank: int = 5
    ridge: float = 5.0
    low: float | None = None
    high: float | None = None

    def _fit(self, **n_items: int) -> Fitted:
        """Model of the most rated items; `n_items` is their number, by its argument's name.

        Raises `InputError` for a file that cannot be read, and for arguments that are none.
        """
        whole("rank", self.rank, 1, MOST_DIM)
        positive("ridge", self.ridge)
        for name, end in (("low", self.low), ("high", self.high)):
            if end is not None:
                inside(name, end, -inf, inf, ends=False)
        if self.path is None:
            raise InputError(
                "Expected path=None to be a ratings file of yours in MovieLens format "
                "(ratings.csv, u.data or ratings.dat): none is shipped."
            )
        if not isinstance(self.path, str | Path):
            raise InputError(f"Expected path={abbrev(self.path)} to be the name of a file.")
        file = Path(self.path)
        stamp = file.stat().st_mtime_ns if os.path.isfile(file) else 0  # else too long, perhaps
        ((called, count),) = n_items.items()
        told = (self.rank, self.low, self.high, self.ridge)
        self._fitted = _fitted(str(file), stamp, called, count, *told)
        return self._fitted

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items in the file."""
        return self._fitted.items

    @property
    def scale(self) -> tuple[float, float]:
        """Lowest and highest rating there may be, by the format or as told."""
        return self._fitted.scale

    @property
    def rmse(self) -> float:
        """Root mean square error of the model on these items' ratings, in stars, in sample."""
        return self._fitted.rmse


@dataclass(kw_only=True, eq=False)
class RatingsBandit(Rated, ResampledChoices):
    """Recommend one of the K most rated items of a ratings file in MovieLens format.

    Description:
        The file is turned into a simulator once. Users' tastes are the leading singular vectors of
        the users x items matrix of ratings minus item means, scaled to norm 1 for each user; an
        item's ratings are a ridge regression on the tastes of those who rated it. Users are drawn
        with replacement and like an item with the probability (model's rating - low) / (high -
        low). Rewards come from that model always, also where the file has the rating: who rated
        what was not random, and the best item is known under the model only, never in the world.
        The whole fit counts as public; what an agent's certificate protects are the simulated
        users. No file is shipped: licences of ratings mostly forbid it. See `docs/data.md`.

    Action space:
        `Discrete(n_actions)`: the item. `env.unwrapped.items[action]` is the file's name for it.

    Observation space:
        `Box`, shape (1 + rank,): (1, taste) / sqrt(2), Euclidean norm at most 1.

    Rewards:
        1 if the user likes the item, else 0.

    Arguments:
        * `path`: the file: `ratings.csv` (userId,movieId,rating,timestamp), `u.data` (tabs) or
          `ratings.dat` (`::`). Required.
        * `n_actions`: items. `rank`: features of a taste. `ridge`: penalty of an item's tastes.
        * `low`, `high`: the public scale of ratings. Left out, it is that of the file's format: 0.5
          to 5 for a `ratings.csv` with MovieLens's header, 1 to 5 for `u.data`. A `ratings.dat`, or
          anything else, does not say its scale (MovieLens 1M: 1 to 5, 10M: 0.5 to 5).
        * `horizon`: rounds. `delay`: rounds until an answer is seen; the reward is 0 until then.
    """

    _random = ("users", "likes")
    n_actions: int = 10
    horizon: int = 10_000
    delay: int = 0

    def __post_init__(self) -> None:
        whole("n_actions", self.n_actions, 2, MOST_ACTIONS)
        fit = self._fit(n_actions=self.n_actions)
        self._known, self._chances, self._margins = fit.context, fit.like, np.ones(self.n_actions)
        self.spec = ContextualSpec(
            n_actions=self.n_actions,
            dim=1 + self.rank,
            horizon=self.horizon,
            delay=self.delay,
            reward_unit="likes",
        )
