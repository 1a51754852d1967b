"""Statistics of purchases: products of an assortment, scores of choices, sales at prices."""

from dataclasses import dataclass, field
from math import sqrt
from typing import ClassVar

import numpy as np

from dpbandit.base import (
    AnyArray,
    Floats,
    InputError,
    Ints,
    added_up,
    clip_norm,
    clip_range,
    norms,
    positive,
    rows,
    whole,
)
from dpbandit.losses.click_models import chances, weights
from dpbandit.privacy.premises import NOTHING


@dataclass(frozen=True, kw_only=True)
class Purchases:
    """Counts of a user who was offered the set A and bought y: (1_y, 0), or (0, 1_A / sqrt(S)).

    Of independent choices from a multinomial logit b_y / z_y estimates v_y, whatever was offered
    beside it: b the purchases, z how often nothing was bought while y was offered.

    Guarantee:
        Replacing one user moves the counts by at most sqrt(2): whatever is fed, hers is a vector of
        non-negative numbers and of norm at most 1, and of two such `|a - b|^2 <= |a|^2 + |b|^2`.
        Two who bought different products are so far apart.

    >>> counts = Purchases(n_items=3, at_most=2)
    >>> counts.total(np.array([[[1, 0, 1]], [[1, 0, 1]]]), np.array([[2], [3]])).round(3)
    array([[0.   , 0.   , 1.   , 0.707, 0.   , 0.707]])
    """

    # "whatever is fed, hers is a vector of non-negative numbers"
    needs = NOTHING

    n_items: int
    """products; one at several prices is as many"""
    at_most: int
    """S, items of a set"""
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("n_items", self.n_items, 1)
        whole("at_most", self.at_most, 1, self.n_items)

    @property
    def shape(self) -> tuple[int]:
        """(2 n_items,)."""
        return (2 * self.n_items,)

    @property
    def sensitivity(self) -> float:
        """sqrt(2)."""
        return sqrt(2)

    def total(self, *batch: AnyArray) -> Floats:
        """Which items were offered, (n, R, I), which was bought, (n, R), else none: (R, 2 I)."""
        there, y = batch
        offered = there > 0
        bought = 1.0 * ((y[..., None] == rows(self.n_items)) & offered)
        none = 1.0 * ~bought.any(axis=-1, keepdims=True)
        nothing = clip_norm(offered * none / sqrt(self.at_most), 1.0)
        return added_up(np.concatenate([bought, nothing], axis=-1))

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Sums (..., 2 I) -> purchases b and times of nothing z, (..., I) each."""
        I = self.n_items  # noqa: E741
        return vectors[..., :I], vectors[..., I:] * sqrt(self.at_most)


@dataclass(frozen=True, kw_only=True)
class ChoiceScores:
    """A Newton step of a multinomial logit, one user's share of it.

    A round is (theta, x, offered, y): of the reference point, released or public, the parameter
    (R, D); then the rows of the products offered, (R, S, D), in which of these S places one is,
    (R, S), and the place of what was bought, (R,), any other number for nothing. With rows in units
    of `context_bound`, p_j the chances of the logit at theta, and nothing bought as a row of 0::

        xbar = sum p_j x_j,     H = sum p_j x_j x_j' - xbar xbar',     q = x_y - xbar + H theta

    it adds clip(H) and clip(q), shortened to Frobenius norm `information_clip` = h and to norm
    `response_clip` = c, so that sum H theta = sum q is a Newton step. In `units` the first is
    `information_weight` = w times as long, and its half-vectorisation isometric.

    Guarantee:
        Rows are clipped to norm `context_bound` (with a number that is none they become 0), what
        was bought counts only where it was offered, and q becomes 0 where it is no number. So at
        every reference point replacing one user moves the sum by at most `sensitivity` = S,
        S^2 = 2 (w h)^2 + 4 c^2: H is a covariance matrix, so positive semi-definite, which
        shortening keeps, and of two such <H, H'> = tr(H H') >= 0, hence
        `|H - H'|^2 <= |H|^2 + |H'|^2 <= 2 h^2`; and `|q - q'| <= 2 c`. Without clips `|H|` is at
        most 1, its trace, and `|x_y - xbar|` comes near 2.
    """

    # "at every reference point replacing one user moves the sum by at most `sensitivity`"
    needs = NOTHING

    dim: int
    """D, the length of a row"""
    at_most: int
    """S, places of products"""
    context_bound: float = 1.0
    information_weight: float = 1.0
    information_clip: float = 0.5
    response_clip: float = 0.75
    units: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        whole("at_most", self.at_most, 1)
        for name in ("context_bound", "information_weight", "information_clip", "response_clip"):
            positive(name, getattr(self, name))
        i, j = np.triu_indices(self.dim)
        information = np.where(i == j, 1.0, sqrt(0.5)) / self.information_weight
        object.__setattr__(self, "units", np.concatenate([np.ones(self.dim), information]))

    @property
    def shape(self) -> tuple[int]:
        """(D + D (D + 1) / 2,)."""
        return (self.dim + self.dim * (self.dim + 1) // 2,)

    @property
    def sensitivity(self) -> float:
        """sqrt(2 (w h)^2 + 4 c^2)."""
        w, h, c = self.information_weight, self.information_clip, self.response_clip
        return sqrt(2 * (w * h) ** 2 + 4 * c**2)

    def total(self, *batch: AnyArray) -> Floats:
        """(n, R, D), (n, R, S, D), (n, R, S), (n, R) -> `(R, *shape)`."""
        theta, x, there, y = batch
        offered = there > 0  # nor is what is no number
        x = clip_norm(x, self.context_bound) / self.context_bound * offered[..., None]
        with np.errstate(invalid="ignore", over="ignore"):
            p = chances(weights(np.matvec(x, theta)), offered)
            xbar = np.vecmat(p, x)
            H = (x * p[..., None]).swapaxes(-1, -2) @ x - xbar[..., :, None] * xbar[..., None, :]
            bought = 1.0 * ((y[..., None] == rows(self.at_most)) & offered)
            q = np.vecmat(bought, x) - xbar + np.matvec(H, theta)
        size = norms(H.reshape(*y.shape, -1))
        H = H * np.minimum(1, self.information_clip / np.maximum(size, 1e-9))[..., None]
        i, j = np.triu_indices(self.dim)
        return np.concatenate(
            [added_up(clip_norm(q, self.response_clip)), added_up(H[..., i, j])], axis=-1
        )

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Sums `(..., *shape)` -> responses (..., D), information (..., D, D)."""
        D = self.dim
        i, j = np.triu_indices(D)
        information = np.empty((*vectors.shape[:-1], D, D))
        information[..., i, j] = information[..., j, i] = vectors[..., D:]
        return vectors[..., :D], information


_MOST_NUMBERS = 1_000_000
"""Of one release."""


@dataclass(frozen=True, kw_only=True)
class CellSales:
    """Sales and non-sales of every price in every cell: (s 1_(c, p), (1 - s) 1_(c, p)).

    A customer is in one cell, the place of some coordinates of her context on a dyadic grid of
    [-`context_bound`, `context_bound`]; s in [0, 1] is her margin over that of the price p.

    Guarantee:
        Replacing one customer moves the counts by at most sqrt(2): whatever is fed, hers is a
        vector of non-negative numbers of norm at most 1, and of two such `|a - b|^2 <= |a|^2 +
        |b|^2`. Two buyers of different cells are so far apart.

    >>> sales = CellSales(margins=(1.0, 2.0), coordinates=(1,), depth=1)
    >>> sales.cells(np.array([[0.5, -0.1], [0.5, np.nan]]))
    array([0, 1])
    """

    # "whatever is fed, hers is a vector of non-negative numbers"
    needs = NOTHING

    margins: tuple[float, ...]
    """dollars earned by a sale at each price, > 0"""
    coordinates: tuple[int, ...]
    """of the context; no cells but one if there are none"""
    depth: int
    """how often each is halved"""
    context_bound: float = 1.0
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("depth", self.depth, 0)
        positive("context_bound", self.context_bound)
        numbers = 2.0 ** (1 + self.depth * len(self.coordinates)) * len(self.margins)
        if numbers > _MOST_NUMBERS:
            raise InputError(
                f"Expected depth={self.depth} of {len(self.coordinates)} coordinates to make fewer "
                f"cells: {numbers:.3g} numbers a release are more than {_MOST_NUMBERS:,}."
            )

    @property
    def n_cells(self) -> int:
        """2^(depth x coordinates)."""
        return 1 << (self.depth * len(self.coordinates))

    @property
    def shape(self) -> tuple[int, int, int]:
        """(2, cells, K), sales before what was not sold."""
        return 2, self.n_cells, len(self.margins)

    @property
    def sensitivity(self) -> float:
        """sqrt(2)."""
        return sqrt(2)

    def cells(self, context: Floats) -> Ints:
        """Contexts (..., d) -> cells (...); what is no number is 0, in the cell above the middle.

        Coordinates beyond the bound are moved to it.
        """
        sides = 1 << self.depth
        x = clip_norm(context[..., list(self.coordinates), None], self.context_bound)[..., 0]
        place = np.floor((x / self.context_bound + 1) / 2 * sides).astype(np.int64)
        digits = np.minimum(place, sides - 1)
        powers = sides ** np.arange(len(self.coordinates))
        return np.asarray(digits @ powers, np.int64)

    def total(self, *batch: AnyArray) -> Floats:
        """context (n, R, d), price (n, R), reward (n, R) in dollars -> (R, 2, cells, K)."""
        context, action, reward = batch
        price = action.astype(np.int64)
        margin = np.array(self.margins)[price]
        s = np.minimum(clip_range(reward, 0.0, max(self.margins)) / margin, 1.0)
        replicas, (_, C, K) = s.shape[1], self.shape
        place = (np.arange(replicas) * 2 * C + self.cells(context)) * K + price
        places = np.concatenate([place.ravel(), place.ravel() + C * K])
        answers = np.concatenate([s.ravel(), 1 - s.ravel()])
        counts = np.bincount(places, answers, minlength=replicas * 2 * C * K)
        return np.asarray(counts.reshape(replicas, *self.shape), np.float64)


class SalesCount:
    """The sum of sales in [0, 1], clipped (what is no number is 0); replacing one moves it by 1."""

    # "replacing one moves it by 1"
    needs = NOTHING

    shape: ClassVar[tuple[int, ...]] = (1,)
    sensitivity: ClassVar[float] = 1.0
    units: ClassVar[float] = 1.0

    def total(self, *batch: AnyArray) -> Floats:
        """(n, R, 1) -> (R, 1)."""
        (sold,) = batch
        return added_up(clip_range(np.where(np.isfinite(sold), sold, 0.0), 0.0, 1.0))
