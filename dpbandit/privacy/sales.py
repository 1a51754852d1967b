"""Statistics of purchases from assortments: counts of products, and scores of a choice model."""

from dataclasses import dataclass, field
from math import sqrt
from typing import ClassVar

import numpy as np

from dpbandit.base import AnyArray, Floats, added_up, clip_norm, norms, positive, rows, whole
from dpbandit.privacy.premises import NO_FACTS
from dpbandit.specs.choice import chances, weights


@dataclass(frozen=True, kw_only=True)
class Purchases:
    """Counts of purchases b by product, and of offers z without any purchase.

    A purchase of y adds 1 to b_y; a user who buys nothing of a set adds 1 to z_y of each product
    y in it, divided by sqrt(`at_most`) until `unpack`. In a multinomial logit b_y / z_y estimates
    y's attraction, for any set.

    Guarantee:
        Replacing one user moves the counts by at most sqrt(2): whatever is fed, hers is a vector of
        non-negative numbers and of norm at most 1, and `|a - b|^2 <= |a|^2 + |b|^2` for two such
        vectors. Two users who bought different products attain it.

    >>> counts = Purchases(n_items=3, at_most=2)
    >>> counts.total(np.array([[[1, 0, 1]], [[1, 0, 1]]]), np.array([[2], [3]])).round(3)
    array([[0.   , 0.   , 1.   , 0.707, 0.   , 0.707]])
    """

    # "whatever is fed, hers is a vector of non-negative numbers"
    needs = NO_FACTS

    n_items: int
    """number of products; a product at several prices counts once for each"""
    at_most: int
    """largest number of products in a set"""
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("n_items", self.n_items, 1)
        whole("at_most", self.at_most, 1, self.n_items)

    @property
    def shape(self) -> tuple[int]:
        return (2 * self.n_items,)

    @property
    def sensitivity(self) -> float:
        return sqrt(2)

    def total(self, *batch: AnyArray) -> Floats:
        # Which items were offered, (n, R, I), which was bought, (n, R), else none: (R, 2 I)
        there, y = batch
        offered = there > 0
        bought = 1.0 * ((y[..., None] == rows(self.n_items)) & offered)
        none = 1.0 * ~bought.any(axis=-1, keepdims=True)
        nothing = clip_norm(offered * none / sqrt(self.at_most), 1.0)
        return added_up(np.concatenate([bought, nothing], axis=-1))

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Return purchases b and no-purchases z, (..., items) each, of sums (..., 2 items)."""
        I = self.n_items  # noqa: E741
        return vectors[..., :I], vectors[..., I:] * sqrt(self.at_most)


@dataclass(frozen=True, kw_only=True)
class ChoiceScores:
    """Sums of responses and information for a Newton step of a multinomial logit.

    A round is (theta, x, offered, y): the reference parameter (R, D), released or public; the rows
    of the S or fewer products offered, (R, S, D); the mask (R, S) of rows that are products; and
    the row of the product bought, (R,), any other number if none was. With rows in units of
    `context_bound`, p_j the logit probabilities at theta, and no purchase as a row of 0::

        xbar = sum p_j x_j,     H = sum p_j x_j x_j' - xbar xbar',     q = x_y - xbar + H theta

    a round adds clip(H) and clip(q), shortened to Frobenius norm `information_clip` = h and to norm
    `response_clip` = c, so that sum H theta = sum q is a Newton step. In `units` the first is
    `information_weight` = w times as long, and its half-vectorisation isometric.

    Guarantee:
        Rows are clipped to norm `context_bound` (non-finite ones become 0), a purchase counts only
        if the product was offered, and q becomes 0 where it is not finite. So at
        every reference point replacing one user moves the sum by at most `sensitivity`, the root of
        2 (w h)^2 + 4 c^2: H is a covariance matrix, so positive semi-definite, which shortening
        keeps, and of two such <H, H'> = tr(H H') >= 0, hence `|H - H'|^2 <= |H|^2 + |H'|^2 <= 2
        h^2`; and `|q - q'| <= 2 c`. Without clips `|H|` is at most 1, its trace, and `|x_y - xbar|`
        comes near 2.
    """

    # "at every reference point replacing one user moves the sum by at most `sensitivity`"
    needs = NO_FACTS

    dim: int
    """length of a row of features"""
    at_most: int
    """largest number of products in a set"""
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
        return (self.dim + self.dim * (self.dim + 1) // 2,)

    @property
    def sensitivity(self) -> float:
        w, h, c = self.information_weight, self.information_clip, self.response_clip
        return sqrt(2 * (w * h) ** 2 + 4 * c**2)

    def total(self, *batch: AnyArray) -> Floats:
        # (n, R, D), (n, R, S, D), (n, R, S), (n, R) -> `(R, *shape)`
        theta, x, there, y = batch
        offered = there > 0  # NaN marks no offer
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
        """Return responses (..., D) and information (..., D, D) of sums `(..., *shape)`."""
        D = self.dim
        i, j = np.triu_indices(D)
        information = np.empty((*vectors.shape[:-1], D, D))
        information[..., i, j] = information[..., j, i] = vectors[..., D:]
        return vectors[..., :D], information
