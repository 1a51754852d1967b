"""Projections by Frank-Wolfe steps, and local linear oracles.

Projection: the nearest point of a domain or of a shrunken copy of it, exact or by Frank-Wolfe.

The shrunken copy is C' = c0 + (1 - shrink) (C - c0), c0 the centre of C. With r0 the inner radius,
points of the affine hull within shrink r0 of C' lie in C, which leaves room for exploration.

Local linear oracle: the point with the least <g, p> near x, for steps that need no projection.

Garber and Hazan, "A linearly convergent variant of the conditional gradient algorithm under strong
convexity, with applications to online and stochastic optimization", SIAM J. Optimization 2016. For
x in C, a radius r and a vector g an oracle answers p in C with::

    (1)  <p, g> <= <y, g>  for every y of C within r of x,         (2)  |x - p| <= rho r.

    domain          p                                                   rho
    ball            the lowest point within r of x, in closed form      1
    box             x - r sign(g), clipped                              sqrt N
    simplex         mass sqrt(N) r / 2 goes from the costliest          sqrt(N / 2)
                    coordinates to the cheapest
    l_1 ball        the same, on its corners and 0: mass sqrt(N) r / b  2 sqrt N
    hypersimplex    as any polytope, with mu = D                        sqrt(N) D
    any polytope    mass sqrt(N) mu r / D from the costliest vertices   sqrt(N) mu
                    that make up x to the cheapest of all

b is the l_1 ball's radius, D the diameter, mu = psi D / xi: psi the largest spectral norm of N
independent rows among the inequalities, xi the least positive slack of a vertex in one of them;
psi = xi = 1 where 0 <= x <= 1 are the only inequalities and vertices are 0/1. Every answer is a
function of (x, r, g) of this round and the rounds before.
"""

from abc import ABC, abstractmethod
from math import sqrt
from typing import NamedTuple, cast

import numpy as np

from dpbandit.base import Floats, InputError, Ints, abbrev, at_least, inside, norms, rows, whole
from dpbandit.domains.balls import Ball, Box, L1Ball, Simplex
from dpbandit.domains.domain import Domain, finite


class Nearest(NamedTuple):
    """Projections of R points, each with a bound on its error."""

    point: Floats
    """Projection on the domain, or its shrunken copy, (R, N)"""
    gap: Floats
    """Error bound of `point` x, `|x - x*|^2 <= 2 gap`, x* the exact projection; 0 if exact, (R,)"""
    calls: Ints
    """Number of linear oracle calls, (R,)"""


def nearest(
    domain: Domain,
    q: Floats,
    start: Floats,
    *,
    shrink: float = 0.0,
    tolerance: float | None = None,
    budget: int = 10_000,
) -> Nearest:
    """Return the point of the shrunken domain C' nearest to q, exact or by pairwise Frank-Wolfe.

    `tolerance` bounds the gap of `frank_wolfe`; the default 1e-6 D^2, D the diameter, means an
    error <= 0.0015 D. If the `budget` of oracle calls is small, the gap may be larger. `start`
    (R, N) is in C'.

    >>> from dpbandit.domains.balls import Ball
    >>> nearest(Ball(2), np.array([[3.0, 4.0]]), np.zeros((1, 2)), shrink=0.5).point
    array([[0.3, 0.4]])
    """
    if domain.has_projection:
        zeros = np.zeros(len(q))
        return Nearest(shrunk_projection(domain, q, shrink), zeros, zeros.astype(np.int64))
    goal = 1e-6 * domain.diameter**2 if tolerance is None else tolerance
    return pairwise_frank_wolfe(domain, q, start, shrink=shrink, tolerance=goal, budget=budget)


def shrunk_projection(domain: Domain, q: Floats, shrink: float) -> Floats:
    """Return exact projections of q on the shrunken domain, by `domain.project`, (R, N)."""
    inside("shrink", shrink, 0, 0.999, ends=True)
    if shrink == 0:
        return domain.project(q)
    c0, size = domain.centre, 1 - shrink
    return c0 + size * (domain.project(c0 + (finite(q) - c0) / size) - c0)


def frank_wolfe(
    domain: Domain, q: Floats, start: Floats, *, shrink: float = 0.0, tolerance: float, budget: int
) -> Nearest:
    """Minimise `1/2 |x - q|^2` over the shrunken domain C' by Frank-Wolfe with line search (1956).

    From x = `start` in C', at most `budget` times, each replica for itself::

      1. s = the point of C' with the least <x - q, s>
      2. gap = <x - q, x - s>; stop if gap <= tolerance
      3. x += min(1, gap / |x - s|^2) (s - x)

    After j steps the objective is within 2 D'^2 / (j + 2) of its minimum, D' the diameter of C',
    and always within the gap (Jaggi, "Revisiting Frank-Wolfe", ICML 2013). The objective is
    1-strongly convex and never increases, so `|x - x*|^2 <= 2 gap`, x* the minimiser.
    """
    _check(shrink, tolerance, budget)
    q, point = finite(q), np.array(start, dtype=np.float64)
    gaps, calls = np.full(len(q), np.inf), np.zeros(len(q), dtype=np.int64)
    live = np.arange(len(q))
    for _ in range(budget):
        x = point[live]
        slope = x - q[live]
        s = _lowest(domain, slope, shrink)
        gap = np.vecdot(slope, x - s)
        gaps[live] = gap
        calls[live] += 1
        moving = gap > tolerance
        live, x, s, gap = live[moving], x[moving], s[moving], gap[moving]
        if not len(live):
            break
        step = np.minimum(1.0, gap / np.vecdot(x - s, x - s))
        point[live] = x + step[:, None] * (s - x)
    return Nearest(point, np.maximum(gaps, 0.0), calls)


def pairwise_frank_wolfe(
    domain: Domain, q: Floats, start: Floats, *, shrink: float = 0.0, tolerance: float, budget: int
) -> Nearest:
    """Minimise like `frank_wolfe`, by pairwise steps: tens of calls give a small gap on a polytope.

    Lacoste-Julien & Jaggi, "On the global linear convergence of Frank-Wolfe optimization variants",
    NeurIPS 2015. x is a mixture of atoms, points of C'; line search moves weight, at most all of
    it, from the atom with the largest <x - q, atom> to s of `frank_wolfe`'s step 1. Plain steps
    need about D^2 / gap calls, D the diameter, if the solution is on a face, as most are.

    The first atom is the corner where `frank_wolfe` would go from `start`, not `start` itself: from
    inside a face the pairwise steps are slow. A table of 2 N + 2 atoms is usually enough on a
    polytope; when it is full, s is mixed into the lightest atom.
    """
    _check(shrink, tolerance, budget)
    if budget == 0:
        return frank_wolfe(domain, q, start, shrink=shrink, tolerance=tolerance, budget=0)
    goal, point = finite(q), np.array(start, dtype=np.float64)
    (R, N), gaps = goal.shape, np.full(len(goal), np.inf)
    calls, live = np.ones(R, dtype=np.int64), np.arange(R)
    atoms, weights = np.zeros((R, 2 * N + 2, N)), np.zeros((R, 2 * N + 2))
    x = atoms[:, 0] = _lowest(domain, point - goal, shrink)
    weights[:, 0] = 1.0
    for _ in range(budget - 1):
        slope = x - goal
        s = _lowest(domain, slope, shrink)
        gap = np.vecdot(slope, x - s)
        point[live], gaps[live] = x, gap
        calls[live] += 1
        moving = gap > tolerance
        if not moving.all():
            live, goal, x, slope = live[moving], goal[moving], x[moving], slope[moving]
            s, atoms, weights = s[moving], atoms[moving], weights[moving]
        if not len(live):
            break
        x = x + _move_weight(atoms, weights, s, slope)
    point[live] = x
    return Nearest(point, np.maximum(gaps, 0.0), calls)


def _move_weight(atoms: Floats, weights: Floats, s: Floats, slope: Floats) -> Floats:
    """Make one pairwise step in place, on atoms (R, A, N) and weights (R, A); return the change of
    the mixture x, (R, N)."""
    r = rows(len(s))
    away = np.where(weights > 0, np.matvec(atoms, slope), -np.inf).argmax(axis=-1)
    towards, held = s - atoms[r, away], weights[r, away]
    square = np.vecdot(towards, towards)
    best = -np.vecdot(slope, towards) / np.where(square > 0, square, 1.0)
    step = np.clip(best, 0.0, held)
    weights[r, away] = held - step
    same = (atoms == s[:, None]).all(axis=-1) & (weights > 0)
    known = same.any(axis=-1)
    slot = np.where(known, same.argmax(axis=-1), weights.argmin(axis=-1))
    share = step / np.maximum(weights[r, slot] + step, np.finfo(float).tiny)
    mixed = atoms[r, slot] + share[:, None] * (s - atoms[r, slot])
    atoms[r, slot] = np.where((known | (share == 1))[:, None], s, mixed)
    weights[r, slot] += step
    return step[:, None] * towards


def _lowest(domain: Domain, v: Floats, shrink: float) -> Floats:
    """Return the point x of the shrunken domain with the least <v, x>, (R, N) -> (R, N)."""
    return domain.centre + (1 - shrink) * (domain.lowest(v) - domain.centre)


def _check(shrink: float, tolerance: float, budget: int) -> None:
    inside("shrink", shrink, 0, 0.999, ends=True)
    at_least("tolerance", tolerance, 0)
    whole("budget", budget, 0)


class Proposal(NamedTuple):
    """Answer of a local oracle; for a polytope also the weights that move if it is accepted."""

    point: Floats
    """Proposed point p, (R, N)"""
    removed: Floats | None = None
    """Weight taken from each of A stored vertices, (R, A)"""
    vertex: Floats | None = None
    """Vertex to which the step moves the weight taken from stored vertices, (R, N)"""
    mass: Floats | None = None
    """Sum of the removed weights, (R,)"""


class LocalOracle(ABC):
    """Local linear oracle of one domain, for R replicas that begin at `start`.

    `accept` tells the oracle how far x moved; only `PolytopeOracle` needs to know.
    """

    rho: float
    start: Floats
    """Starting point of all replicas, (N,)"""

    @abstractmethod
    def __call__(self, x: Floats, radius: Floats, g: Floats) -> Floats:
        """Return points p near x; no point within `radius` of x has a smaller <g, p>."""

    def propose(self, x: Floats, radius: Floats, g: Floats) -> Proposal:
        """Return the points that a call returns, with the weights that `accept` needs."""
        return Proposal(self(x, radius, g))

    def accept(self, proposal: Proposal, share: Floats) -> None:
        """Record that x moved by `share` (R,) in [0, 1] of the way to the proposed point."""
        return


def local_oracle(domain: Domain, replicas: int, *, geometry: float | None = None) -> LocalOracle:
    """Return the local linear oracle of `domain`; `geometry` replaces a polytope's constant mu.

    >>> oracle = local_oracle(Simplex(3), 1)
    >>> x, g = np.array([[0.2, 0.5, 0.3]]), np.array([[0.0, 1.0, 2.0]])
    >>> oracle(x, np.array([0.4]), g).round(3)        # mass sqrt(3) 0.2 = 0.346 moves to entry 0
    array([[0.546, 0.454, 0.   ]])
    """
    if isinstance(domain.twin, L1Ball):
        domain = domain.twin
    if isinstance(domain, Ball):
        return BallOracle(domain)
    if isinstance(domain, Box):
        return BoxOracle(domain)
    if isinstance(domain, Simplex):
        return SimplexOracle(domain)
    if isinstance(domain, L1Ball):
        return L1Oracle(domain)
    geometry = domain.geometry if geometry is None else geometry
    if geometry is None:
        raise InputError(
            f"No local linear oracle is known for {abbrev(domain)}: choose another agent or "
            "environment, or, for a polytope, give its constant by geometry=."
        )
    return PolytopeOracle(domain, replicas, geometry)


class BallOracle(LocalOracle):
    """Local oracle of a ball: the lowest point, exactly, of its intersection with a ball at x."""

    rho = 1.0

    def __init__(self, domain: Ball) -> None:
        self._radius, self.start = domain.radius, domain.centre

    def __call__(self, x: Floats, radius: Floats, g: Floats) -> Floats:
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
    """Local oracle of a box: each coordinate moves by the radius against its gradient, clipped."""

    def __init__(self, domain: Box) -> None:
        self._width, self.rho, self.start = domain.half_width, sqrt(domain.dim), domain.centre

    def __call__(self, x: Floats, radius: Floats, g: Floats) -> Floats:
        return np.clip(x - radius[:, None] * np.sign(g), -self._width, self._width)


class SimplexOracle(LocalOracle):
    """Local oracle of a simplex: mass moves from the costliest coordinates to the cheapest."""

    def __init__(self, domain: Simplex) -> None:
        self._reach, self.rho = sqrt(domain.dim) / 2, sqrt(domain.dim / 2)
        self.start = domain.centre

    def __call__(self, x: Floats, radius: Floats, g: Floats) -> Floats:
        removed = largest_costs(x, g, self._reach * radius)
        p = x - removed
        p[rows(len(p)), g.argmin(axis=-1)] += removed.sum(axis=-1)
        return p


class L1Oracle(LocalOracle):
    """Local oracle of an l_1 ball: mass moves as on a simplex, between its corners and 0."""

    def __init__(self, domain: L1Ball) -> None:
        self._radius, self._reach = domain.radius, sqrt(domain.dim) / domain.radius
        self.rho, self.start = 2 * sqrt(domain.dim), domain.centre

    def __call__(self, x: Floats, radius: Floats, g: Floats) -> Floats:
        held = np.abs(x) / self._radius
        slack = np.maximum(1 - held.sum(axis=-1, keepdims=True), 0.0)
        weights = np.concatenate([held, slack], axis=-1)
        cost = np.concatenate([np.sign(x) * g, np.zeros_like(slack)], axis=-1)
        removed = largest_costs(weights, cost, self._reach * radius)
        p = x - self._radius * np.sign(x) * removed[:, :-1]
        best, everyone = np.abs(g).argmax(axis=-1), rows(len(p))
        p[everyone, best] -= self._radius * np.sign(g[everyone, best]) * removed.sum(axis=-1)
        return p


class PolytopeOracle(LocalOracle):
    """Local oracle of a polytope; x is a mixture of vertices; `accept` adds at most one."""

    def __init__(self, domain: Domain, replicas: int, geometry: float) -> None:
        self._domain, N = domain, domain.dim
        self._reach, self.rho = sqrt(N) * geometry / domain.diameter, sqrt(N) * geometry
        corners = domain.lowest(np.concatenate([np.eye(N), -np.eye(N)]))
        self._atoms = np.tile(corners, (replicas, 1, 1))  # (R, A, N)
        self._weights = np.full((replicas, 2 * N), 0.5 / N)
        self.start = corners.mean(axis=0)

    def __call__(self, x: Floats, radius: Floats, g: Floats) -> Floats:
        return self.propose(x, radius, g).point

    def propose(self, x: Floats, radius: Floats, g: Floats) -> Proposal:
        cost = np.vecdot(self._atoms, g[:, None])
        removed = largest_costs(self._weights, cost, self._reach * radius)
        vertex = self._domain.lowest(g)
        # summed one after the other, so that rounding does not depend on the length of the list
        mass = np.cumsum(removed, axis=-1)[:, -1]
        away = (removed[..., None] * self._atoms).sum(axis=1)
        return Proposal(x + (mass[:, None] * vertex - away), removed, vertex, mass)

    def accept(self, proposal: Proposal, share: Floats) -> None:
        _, removed, vertex, mass = cast(tuple[Floats, Floats, Floats, Floats], proposal)
        self._weights = self._weights - share[:, None] * removed
        slot = self._slots(vertex)
        everyone = rows(len(slot))
        self._atoms[everyone, slot] = vertex
        self._weights[everyone, slot] += share * mass

    def _slots(self, vertex: Floats) -> Ints:
        """Return the index of each vertex in the list, or of the first entry of weight 0."""
        free = self._weights <= 0
        same = (self._atoms == vertex[:, None]).all(axis=-1) & ~free
        known = same.any(axis=-1)
        if not (known | free.any(axis=-1)).all():
            self._atoms = np.concatenate([self._atoms, np.zeros_like(self._atoms)], axis=1)
            self._weights = np.concatenate([self._weights, np.zeros_like(self._weights)], axis=1)
            return self._slots(vertex)
        return np.where(known, same.argmax(axis=-1), free.argmax(axis=-1))


def largest_costs(weights: Floats, cost: Floats, mass: Floats) -> Floats:
    """Return the parts of weights (R, A) that are removed if `mass` (R,) leaves costliest first."""
    order = np.argsort(-cost, axis=-1, kind="stable")
    held = np.take_along_axis(weights, order, axis=-1)
    before = np.cumsum(held, axis=-1) - held
    taken = np.clip(mass[:, None] - before, 0.0, held)
    removed = np.empty_like(taken)
    np.put_along_axis(removed, order, taken, axis=-1)
    return removed
