"""Recommendation with logistic clicks on random slates of items, or from your file of ratings.

A low-rank model of tastes is fitted once to the ratings; files are in MovieLens format.
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
        theta drawn uniformly on the unit sphere for every episode: some items are popular with all
        users, some only with users of a certain taste. All data are synthetic.

    Action space:
        `Discrete(n_actions)`: the position on the slate.

    Observation space:
        `Box`, shape (n_actions, dim): the features phi of every candidate.

    Rewards:
        1 for a click, else 0.

    Starting state:
        A new catalogue, a new theta, the first user and her slate.

    Arguments:
        * `n_actions`: candidates on a slate. `n_items`: catalogue size, at least `n_actions`.
        * `taste`: features of users and items. `horizon`: rounds.
        * `base_rate`: click probability at phi . theta = 0. `appeal`: standard deviation of the
          click logit.
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


_SEPARATORS = ("::", "\t", ",")  # separators of fields in ratings.dat, u.data and ratings.csv
_FORMAT_SCALES = {
    ("\t", ()): (1.0, 5.0),  # MovieLens 100K
    (",", ("userId", "movieId", "rating", "timestamp")): (0.5, 5.0),  # 20M and later
}
"""Scale of ratings, (lowest, highest), by separator and header of the file"""


@dataclass(frozen=True)
class Ratings:
    """Ratings of items by users; users and items are numbered by first occurrence in the file."""

    user: Ints
    """Index of the user of each rating, (n,)"""
    item: Ints
    """Index of the item of each rating, (n,)"""
    rating: Floats
    """Ratings in stars, from `low` to `high`, (n,)"""
    items: tuple[str, ...]
    """Names of the items in the file"""
    low: float
    high: float


def read_ratings(
    path: str | Path, *, low: float | None = None, high: float | None = None
) -> Ratings:
    """Read user, item, rating and (ignored) time from each line of a file.

    Fields are separated by `::` (ratings.dat), a tab (u.data) or a comma (ratings.csv), whichever
    the first line has. A first line whose third field is `rating` is a header: of ratings.csv,
    userId,movieId,rating,timestamp.

    The scale of ratings is `low` to `high`, by default the scale of the file's format; it is never
    computed from the ratings:

    ====================================  =======================================================
    file                                  scale
    ====================================  =======================================================
    `u.data`, tabs                        1 to 5, by the README of MovieLens 100K
    `ratings.csv`, commas, with a header  0.5 to 5, since MovieLens 20M
    `ratings.dat`                         `low` and `high`: 1, 5 for MovieLens 1M, 0.5, 5 for 10M
    any other                             `low` and `high`, required
    ====================================  =======================================================

    Raises:
        InputError: the file cannot be read or is empty; a line does not have 3 or 4 fields, has no
            user or item, or a rating outside [low, high]; a user rates an item twice; the scale is
            missing or empty.
    """
    path = text_of("path", path)
    lines = text_at(path, called="ratings from path={!r}").rstrip("\r\n").splitlines()
    no_ratings = InputError(f"Expected ratings in {path}, found none.")
    if not lines:
        raise no_ratings
    separator = next((s for s in _SEPARATORS if s in lines[0]), ",")
    first = tuple(field.strip() for field in lines[0].split(separator))
    header = first[2:3] == ("rating",)
    low, high = _scale(path, low, high, _FORMAT_SCALES.get((separator, first if header else ())))
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
        raise no_ratings
    pairs = np.array(list(found), dtype=np.int64)
    stars = np.array(list(found.values()))
    return Ratings(pairs[:, 0], pairs[:, 1], stars, tuple(items), low, high)


def _scale(
    path: str | Path, low: float | None, high: float | None, known: tuple[float, float] | None
) -> tuple[float, float]:
    """Return the scale of ratings, `low` and `high`, by default the file format's, `known`."""
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
    """Return the third of 3 or 4 fields as a number; None if that is impossible."""
    if len(fields) not in (3, 4):
        return None
    try:
        return float(fields[2])
    except ValueError:
        return None


def tastes(ratings: Ratings, rank: int) -> Floats:
    """Compute each user's direction of taste, (users, rank), of Euclidean norm 1 or 0::

        1. subtract each item's mean from its ratings; a missing rating is 0
        2. take the `rank` leading left singular vectors of that users x items matrix
        3. scale each user's row to norm 1, so that it does not depend on her number of ratings

    It is deterministic: the start vector is fixed, and a singular vector's largest entry is
    positive. Raises `InputError` unless rank is below the number of users and of items.
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
    """Fit an item's intercept and coefficients of tastes, (1 + rank,), by ridge regression.

    The intercept is not penalised.
    """
    rated = ratings.item == item
    x = tastes[ratings.user[rated]]
    x = np.column_stack([np.ones(len(x)), x])
    penalty = np.diag([0.0] + [ridge] * tastes.shape[1])
    return np.linalg.solve(x.T @ x + penalty, x.T @ ratings.rating[rated])


class Fitted(NamedTuple):
    """A simulator of users and items, fitted to a file of ratings."""

    context: Floats
    """Contexts of users, (1, taste) / sqrt(2), (users, 1 + rank)"""
    like: Floats
    """Probability that a user likes an item, (users, K)"""
    model: Floats
    """Intercept of each item and its coefficients of tastes, in stars, (K, 1 + rank)"""
    items: tuple[str, ...]
    """Names of the K items in the file"""
    rmse: float
    """Root mean square error, in stars, on the ratings that the model was fitted to"""
    scale: tuple[float, float]
    """Lowest and highest possible rating"""


@lru_cache(maxsize=4)
def _fitted(
    path: str,
    stamp: int,
    called: str,
    n_items: int,
    rank: int,
    scale_low: float | None,
    scale_high: float | None,
    ridge: float,
) -> Fitted:
    """Fit the simulator of a file, once for each `stamp`, the time when the file was changed."""
    ratings = read_ratings(path, low=scale_low, high=scale_high)
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
    """Base of problems fitted to a file of ratings, with settings and properties of the fit."""

    path: str | Path | None = None
    rank: int = 5
    ridge: float = 5.0
    low: float | None = None
    high: float | None = None

    def _fit(self, **n_items: int) -> Fitted:
        """Fit the model of the most rated items.

        The only keyword argument is the number of items; error messages use the argument's name.
        Raises `InputError` for a file that cannot be read, and for invalid settings.
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
        # `isfile`, unlike `stat`, does not raise for a name that is too long
        stamp = file.stat().st_mtime_ns if os.path.isfile(file) else 0
        ((called, count),) = n_items.items()
        settings = (self.rank, self.low, self.high, self.ridge)
        self._fitted = _fitted(str(file), stamp, called, count, *settings)
        return self._fitted

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items in the file."""
        return self._fitted.items

    @property
    def scale(self) -> tuple[float, float]:
        """Lowest and highest possible rating, by the file's format or by `low` and `high`."""
        return self._fitted.scale

    @property
    def rmse(self) -> float:
        """Root mean square error, in stars, on the ratings that the model was fitted to."""
        return self._fitted.rmse


@dataclass(kw_only=True, eq=False)
class RatingsBandit(Rated, ResampledChoices):
    """Recommend one of the K most rated items of a ratings file in MovieLens format.

    Description:
        A simulator is fitted once to the file. Users' tastes are the leading singular vectors of
        the users x items matrix of ratings minus item means, scaled to norm 1 for each user; an
        item's ratings are predicted by a ridge regression on the tastes of users who rated it.
        Users are drawn with replacement and like an item with probability (model's rating - low) /
        (high - low). Rewards come from the model, even if the file has the rating: users did not
        rate items at random, and the best item is known under the model only, not in the real
        world. The fit counts as public; certificates protect the simulated users. No file is
        shipped: licences of ratings mostly forbid it. See `docs/data.md`.

    Action space:
        `Discrete(n_actions)`: the item. `env.unwrapped.items[action]` is the file's name for it.

    Observation space:
        `Box`, shape (1 + rank,): (1, taste) / sqrt(2), Euclidean norm at most 1.

    Rewards:
        1 if the user likes the item, else 0.

    Arguments:
        * `path`: the file: `ratings.csv` (userId,movieId,rating,timestamp), `u.data` (tabs) or
          `ratings.dat` (`::`). Required.
        * `n_actions`: items. `rank`: features of a taste. `ridge`: penalty of coefficients.
        * `low`, `high`: the public scale of ratings. Default: 0.5 to 5 for a `ratings.csv` with
          MovieLens's header, 1 to 5 for `u.data`. Required for other files, such as `ratings.dat`
          (MovieLens 1M: 1 to 5, 10M: 0.5 to 5).
        * `horizon`: rounds. `delay`: rounds until an answer is seen; the reward is 0 until then.
    """

    _stream_names = ("users", "likes")
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
