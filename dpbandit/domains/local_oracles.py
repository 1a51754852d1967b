"""Local linear oracles: the lowest point near x, for steps that stay near without a projection.

Garber and Hazan, "A linearly convergent variant of the conditional gradient algorithm under strong
convexity, with applications to online and stochastic optimization", SIAM J. Optimization 2016. For
x in C, a radius r and a vector g an oracle answers p in C with::

    (1)  <p, g> <= <y, g>  for every y of C within r of x,         (2)  |x - p| <= rho r.

    domain          p                                                   rho
    ball            the lowest point within r of x, in closed form      1
    box             x - r sign(g), clipped                              sqrt N
    simplex         mass sqrt(N) r / 2 goes from the dearest            sqrt(N / 2)
                    coordinates to the cheapest
    l_1 ball        the same, on its corners and 0: mass sqrt(N) r / b  2 sqrt N
    hypersimplex    as any polytope, with mu = D                        sqrt(N) D
    any polytope    mass sqrt(N) mu r / D from the dearest vertices     sqrt(N) mu
                    that make up x to the cheapest of all

mu = psi D / xi: psi the largest spectral norm of N independent rows among the inequalities, xi the
least slack that a vertex leaves in one of them; 1 and 1 where 0 <= x <= 1 are the only inequalities
and vertices are 0/1. Every answer is a function of (x, r, g), or of those so far.
"""

from abc import ABC, abstractmethod
from math import sqrt

import numpy as np

from dpbandit.base.arrays import Floats, Ints, norms, rows
from dpbandit.base.inputs import InputError, shown
from dpbandit.domains.balls import Ball
from dpbandit.domains.boxes import Box
from dpbandit.domains.domain import Domain
from dpbandit.domains.hypersimplices import Hypersimplex
from dpbandit.domains.lp_balls import LpBall
from dpbandit.domains.simplices import L1Ball, Simplex


class LocalOracle(ABC):
    """The oracle of one domain, for R replicas that start at `start` and move towards answers.

    It is told every move by `moved`, which most need not remember.
    """

    rho: float
    start: Floats
    """(N,), where x begins"""

    @abstractmethod
    def __call__(self, x: Floats, radius: Floats, g: Floats) -> Floats:
        """p, (R, N), for x and g (R, N) and radii (R,) >= 0."""

    def moved(self, share: Floats) -> None:
        """x has moved by `share` (R,) in [0, 1] of the way to the latest answer."""
        return


def local_oracle(domain: Domain, replicas: int, *, geometry: float | None = None) -> LocalOracle:
    """The oracle of `domain`; `geometry` is mu, for polytopes whose constants are not known here.

    >>> oracle = local_oracle(Simplex(3), 1)
    >>> x, g = np.array([[0.2, 0.5, 0.3]]), np.array([[0.0, 1.0, 2.0]])
    >>> oracle(x, np.array([0.4]), g).round(3)        # mass sqrt(3) 0.2 = 0.346 goes to the first
    array([[0.546, 0.454, 0.   ]])
    """
    if isinstance(domain, LpBall) and domain.p == 1:
        domain = L1Ball(domain.dim, domain.radius)
    if isinstance(domain, Ball):
        return BallOracle(domain)
    if isinstance(domain, Box):
        return BoxOracle(domain)
    if isinstance(domain, Simplex):
        return SimplexOracle(domain)
    if isinstance(domain, L1Ball):
        return L1Oracle(domain)
    if geometry is None and isinstance(domain, Hypersimplex):
        geometry = domain.diameter
    if geometry is None:
        raise InputError(
            f"No local linear oracle is known for {shown(domain)}: choose another agent or "
            "environment, or, for a polytope, give its constant by geometry=."
        )
    return PolytopeOracle(domain, replicas, geometry)


class BallOracle(LocalOracle):
    """Down by r, or the lowest point of the ball, or where both spheres meet."""

    rho = 1.0

    def __init__(self, domain: Ball) -> None:
        self._radius, self.start = domain.radius, domain.centre

    def __call__(self, x: Floats, radius: Floats, g: Floats) -> Floats:
        """The local linear oracle: see the table of `LocalOracle`."""
        R, r, size = self._radius, radius[:, None], norms(g)
        n = g / np.where(size > 0, size, 1.0)
        length = norms(x)
        e = x / np.where(length > 0, length, 1.0)
        along = np.vecdot(e, n)[:, None]
        across = n - along * e
        width = norms(across)
        c = (R**2 + length**2 - r**2) / np.where(length > 0, 2 * length, 1.0)
        h = np.sqrt(np.maximum(R**2 - c**2, 0.0))
        p = c * e - h * across / np.where(width > 0, width, 1.0)
        p = np.where(norms(x - r * n) <= R, x - r * n, p)
        return np.where(norms(x + R * n) <= r, np.where(size > 0, -R * n, x), p)


class BoxOracle(LocalOracle):
    """Coordinates do not know of each other."""

    def __init__(self, domain: Box) -> None:
        self._width, self.rho, self.start = domain.half_width, sqrt(domain.dim), domain.centre

    def __call__(self, x: Floats, radius: Floats, g: Floats) -> Floats:
        """The local linear oracle: see the table of `LocalOracle`."""
        return np.clip(x - radius[:, None] * np.sign(g), -self._width, self._width)


class SimplexOracle(LocalOracle):
    """A point is its weights on the corners."""

    def __init__(self, domain: Simplex) -> None:
        self._reach, self.rho = sqrt(domain.dim) / 2, sqrt(domain.dim / 2)
        self.start = domain.centre

    def __call__(self, x: Floats, radius: Floats, g: Floats) -> Floats:
        """The local linear oracle: see the table of `LocalOracle`."""
        removed = dearest(x, g, self._reach * radius)
        p = x - removed
        p[rows(len(p)), g.argmin(axis=-1)] += removed.sum(axis=-1)
        return p


class L1Oracle(LocalOracle):
    """`|x_i| / b` is the weight of a corner, what is left that of 0."""

    def __init__(self, domain: L1Ball) -> None:
        self._radius, self._reach = domain.radius, sqrt(domain.dim) / domain.radius
        self.rho, self.start = 2 * sqrt(domain.dim), domain.centre

    def __call__(self, x: Floats, radius: Floats, g: Floats) -> Floats:
        """The local linear oracle: see the table of `LocalOracle`."""
        held = np.abs(x) / self._radius
        slack = np.maximum(1 - held.sum(axis=-1, keepdims=True), 0.0)
        weights = np.concatenate([held, slack], axis=-1)
        cost = np.concatenate([np.sign(x) * g, np.zeros_like(slack)], axis=-1)
        removed = dearest(weights, cost, self._reach * radius)
        p = x - self._radius * np.sign(x) * removed[:, :-1]
        best, everyone = np.abs(g).argmax(axis=-1), rows(len(p))
        p[everyone, best] -= self._radius * np.sign(g[everyone, best]) * removed.sum(axis=-1)
        return p


class PolytopeOracle(LocalOracle):
    """x is kept as a mixture of vertices: at most one new one a round, fewer where they return."""

    def __init__(self, domain: Domain, replicas: int, geometry: float) -> None:
        self._domain, N = domain, domain.dim
        self._reach, self.rho = sqrt(N) * geometry / domain.diameter, sqrt(N) * geometry
        corners = domain.lowest(np.concatenate([np.eye(N), -np.eye(N)]))
        self._atoms = np.tile(corners, (replicas, 1, 1))  # (R, A, N)
        self._weights = np.full((replicas, 2 * N), 0.5 / N)
        self.start = corners.mean(axis=0)

    def __call__(self, x: Floats, radius: Floats, g: Floats) -> Floats:
        """The local linear oracle: see the table of `LocalOracle`."""
        cost = np.vecdot(self._atoms, g[:, None])
        self._removed = dearest(self._weights, cost, self._reach * radius)
        self._vertex = self._domain.lowest(g)
        # one after the other: how long the list is, by other replicas' needs, must not round
        self._mass = np.cumsum(self._removed, axis=-1)[:, -1]
        away = (self._removed[..., None] * self._atoms).sum(axis=1)
        return x + (self._mass[:, None] * self._vertex - away)

    def moved(self, share: Floats) -> None:
        """The same share of the mass moves."""
        self._weights = self._weights - share[:, None] * self._removed
        slot = self._slots()
        everyone = rows(len(slot))
        self._atoms[everyone, slot] = self._vertex
        self._weights[everyone, slot] += share * self._mass

    def _slots(self) -> Ints:
        """Where the newest vertex stands, else the first free place; the list grows if need be."""
        free = self._weights <= 0
        same = (self._atoms == self._vertex[:, None]).all(axis=-1) & ~free
        known = same.any(axis=-1)
        if not (known | free.any(axis=-1)).all():
            self._atoms = np.concatenate([self._atoms, np.zeros_like(self._atoms)], axis=1)
            self._weights = np.concatenate([self._weights, np.zeros_like(self._weights)], axis=1)
            return self._slots()
        return np.where(known, same.argmax(axis=-1), free.argmax(axis=-1))


def dearest(weights: Floats, cost: Floats, mass: Floats) -> Floats:
    """`mass` (R,), or all there is, taken from the weights (R, A) of the largest costs first."""
    order = np.argsort(-cost, axis=-1, kind="stable")
    held = np.take_along_axis(weights, order, axis=-1)
    before = np.cumsum(held, axis=-1) - held
    taken = np.clip(mass[:, None] - before, 0.0, held)
    removed = np.empty_like(taken)
    np.put_along_axis(removed, order, taken, axis=-1)
    return removed
