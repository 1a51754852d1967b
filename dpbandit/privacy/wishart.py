"""Privacy cost of Wishart noise, from above, by the exact one-dimensional law of its losses.

Sheffet, "Private approximations of the 2nd-moment matrix using existing techniques in linear
regression" (2015), releases M + W, W ~ W_p(L^2 I, k), for Gram matrices M of rows z of length p,
norm L at most.

Proof of the certificate. (1) Pad every row with one more coordinate to norm exactly L, and draw
the noise one dimension larger: without the extra row and column, dropped afterwards, the matrix
has exactly the law of W_p(L^2 I, k), so a guarantee for q = p + 1 dimensions and `|z| = L` covers
the release. (2) Removing a row u of norm L moves the matrix by uu'. With a = (k - q - 1) / 2 the
density ratio at W is::

    log f(W) / f(W + uu') = 1/2 - a log(1 + 1/c)        for the data with u,
    log f(W) / f(W - uu') = -1/2 - a log(1 - 1/c)       for the data without u (infinite if c <= 1),

where c = 1 / u' W^-1 u ~ chi^2(k - q + 1) whatever the direction of u. Both laws are exact,
the same at every node and whatever was released before, hence dominate adaptively: a user whose
row lies in h nodes pays the h-fold composition. (3) Replacing is removing, then adding: for every
split s of epsilon, delta(epsilon) <= delta_remove(s) + e^s delta_add(epsilon - s).

Numbers. Every cell of the discretised loss carries its largest loss, tails come from survival
functions, and `Composition` adds them up.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from math import ceil, inf, log, sqrt

import numpy as np
import scipy

from dpbandit.base import Floats, InputError, positive, whole
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.loss_distributions import Composition, PrivacyLoss

_LOSS_CELLS = 4000
"""Number of cells of the discretised privacy loss of one tree node"""
_MAX_EPSILON = 100.0
"""Largest epsilon at which delta is computed; for larger ones this delta is an upper bound"""


@dataclass(frozen=True)
class WishartSpend:
    """Cost of a tree whose nodes have W_p(L^2 I, degrees) noise, one user in `nodes` of them."""

    degrees: float
    dim: int
    """length p of a row (context, reward)"""
    nodes: int
    note: str

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        whole("nodes", self.nodes, 0)
        positive("degrees", self.degrees)

    @property
    def mu(self) -> float | None:
        # None, as Wishart noise is not Gaussian
        return None

    @property
    def pure(self) -> float:
        # the determinant ratio has no bound
        return inf if self.nodes else 0.0

    @property
    def rho(self) -> float:
        # the density ratio is infinite with some probability
        return inf if self.nodes else 0.0

    @property
    def step(self) -> float:
        # there is no grid to share
        return inf

    def losses(self, step: float) -> None:
        # None: replacing is two steps, which do not fit one loss distribution
        return None

    def delta(self, epsilon: float) -> float:
        if self.nodes == 0 or epsilon == inf:
            return 0.0
        epsilon = min(epsilon, _MAX_EPSILON)
        removing, adding = _zero_out(self.degrees, self.dim, self.nodes)
        split = np.linspace(0, epsilon, 65)

        @cache
        def parts(i: int) -> tuple[float, float]:  # one falls, the other grows with i
            second = adding.delta(float(epsilon - split[i]))
            return removing.delta(float(split[i])), float(np.exp(split[i]) * second)

        best, between = min(sum(parts(0)), sum(parts(64))), [(0, 64)]
        while between:
            low, high = between.pop()
            if high - low > 1 and parts(high)[0] + parts(low)[1] < best:  # no split is below
                middle = (low + high) // 2
                best = min(best, sum(parts(middle)))
                between += [(low, middle), (middle, high)]
        return min(1.0, best)

    def least_epsilon(self, delta: float) -> float:
        # The least epsilon at `delta`, by bisection; infinity where none can be given
        low, high = 0.0, 1.0
        while self.delta(high) > delta:
            low, high = high, 2 * high
            if high > _MAX_EPSILON:
                return inf
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


@cache
def least_degrees(epsilon: float, delta: float, *, dim: int, nodes: int) -> int:
    """Return the least whole degrees of freedom, >= dim + 4, certified (epsilon, delta)-DP."""
    if delta < 1e-12:
        raise InputError(f"Expected delta={delta} >= 1e-12 for Wishart noise.")
    low = dim + 4  # chi^2 needs k - q + 1 >= 1 with room to spare
    if nodes == 0 or epsilon == inf:
        return low
    # In the Gaussian limit mu = 2 sqrt(nodes / 2k): start there and bracket.
    high = max(low, ceil(2 * nodes / mu_of(epsilon, delta) ** 2))

    def fits(k: int) -> bool:
        return WishartSpend(k, dim, nodes, "trial").delta(epsilon) <= delta

    if fits(low):
        return low
    while not fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


@lru_cache(maxsize=8)
def _zero_out(degrees: float, dim: int, nodes: int) -> tuple[Composition, Composition]:
    """Return the losses, rounded up, of removing and of adding a row, composed over all nodes."""
    q = dim + 1
    a, freedom = (degrees - q - 1) / 2, degrees - q + 1
    width = 24 * sqrt(0.5 / freedom) + 60 / freedom
    step = min(1e-2, 2 * width / _LOSS_CELLS)
    edges = np.arange(-ceil(width / step), ceil(width / step) + 1)

    def composed(cdf: Floats, survival: Floats) -> Composition:
        # mass of (edge i-1, edge i] sits at edge i; what lies below the grid sits at its first edge
        below, above = np.diff(cdf, prepend=0.0), -np.diff(survival, prepend=1.0)
        mass = np.where(cdf < 0.5, below, above)
        return Composition([PrivacyLoss(step, int(edges[0]), mass, float(survival[-1]), nodes)])

    loss = edges * step
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        # with the row: loss = 1/2 - a log(1 + 1/c), increasing in c and below 1/2
        c = 1 / np.expm1(np.maximum(0.5 - loss, 0.0) / a)
        removing = composed(
            np.where(loss < 0.5, scipy.special.chdtr(freedom, c), 1.0),
            np.where(loss < 0.5, scipy.special.chdtrc(freedom, c), 0.0),
        )
        # without: loss = -1/2 - a log(1 - 1/c), decreasing in c and above -1/2
        c = -1 / np.expm1(-np.maximum(loss + 0.5, 0.0) / a)
        adding = composed(
            np.where(loss > -0.5, scipy.special.chdtrc(freedom, c), 0.0),
            np.where(loss > -0.5, scipy.special.chdtr(freedom, c), 1.0),
        )
    return removing, adding


def paper_degrees(epsilon: float, delta: float, *, dim: int, levels: int) -> float:
    """Return the degrees of freedom of Shariff and Sheffet (2018) for a tree of `levels`."""
    if epsilon == inf:
        return dim + 4
    spread = 224 * levels / epsilon**2 * log(8 * levels / delta) * log(2 / delta)
    return dim + ceil(spread)
