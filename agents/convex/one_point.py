"""Bandit convex optimisation from one value a round, with noise and exploration at radius zeta::

    x = w + zeta Q u         u uniform on the unit sphere of R^k, which Q maps into the span of C
    w in C' = c0 + (1 - xi) (C - c0),   xi = zeta / r:    then x is in C, whatever u

C has centre c0 and contains a ball of radius r around it. No point outside C is played.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, prod, sqrt
from typing import Annotated, Literal, Protocol, TypeAlias, get_args

import numpy as np

from dpbandit.agent import Points, Positive, with_feedback
from dpbandit.base import (
    FIRST_DRAWN_ROUNDS,
    Floats,
    InputError,
    Streams,
    clip_range,
    gaussian_target,
    inside,
    norms,
    one_of,
    privacy_target,
)
from dpbandit.domains.domain import Domain
from dpbandit.domains.projections import nearest
from dpbandit.losses.loss import Loss
from dpbandit.privacy import (
    Gaussian,
    KNorm,
    Laplace,
    Ledger,
    LocalValues,
    Statistic,
    Tree,
    exact_prefix_sum,
    ledger_of,
    no_privacy,
)
from dpbandit.privacy.batches import LocalSums, OnePointEstimates, largest
from dpbandit.privacy.calibrated import least_multiplier, noisy_prefix_sum
from dpbandit.privacy.spends import Spend
from dpbandit.specs import ConvexSpec, Spec

NoiseId: TypeAlias = Literal["laplace", "k-norm", "gaussian", "local", "none"]
Offset: TypeAlias = Annotated[
    float, lambda name, value: inside(name, value, -1e30, 1e30, ends=True)
]
"""Type of a public number that is subtracted from values."""
MAX_SHRINK = 0.999
"""Strict upper bound on the share by which a domain shrinks, so that it does not become a point."""


def with_values(config: object, spec: Spec) -> ConvexSpec:
    """Return `spec`; raise `InputError` unless it has values, no delay and an inner radius > 0."""
    spec, name = with_feedback(config, spec, "value"), type(config).__name__
    if spec.delay:
        raise InputError(f"Expected delay={spec.delay} to be 0: {name} needs values at once.")
    if not spec.loss.domain.inner_radius > 0:
        raise InputError(
            f"{name} explores on a sphere around the centre of its domain, and "
            f"{spec.loss.domain} contains none (inner_radius = 0)."
        )
    return spec


def estimates_of(loss: Loss, zeta: float, offset: float | None) -> OnePointEstimates:
    """Return the statistic of one-point gradient estimates with radius zeta from values - offset.

    If `offset` is None it is 0 if 0 is in the range of values, else the middle of the range. Values
    near the best points are often near 0, and there estimates without an offset are short.
    """
    low, high = range_of(loss)
    if offset is None:
        offset = 0.0 if low <= 0 <= high else (low + high) / 2
    k = loss.domain.affine_dim
    return OnePointEstimates(dim=k, zeta=zeta, low=low, high=high, offset=offset)


def range_of(loss: Loss) -> tuple[float, float]:
    """Return the range (low, high) of a loss's values; raise `InputError` if they are constant."""
    low, high = loss.value_range
    if low == high:
        raise InputError(
            f"Expected {type(loss).__name__} to have more than one value, got {low} everywhere: "
            "play the centre."
        )
    return low, high


def minimiser(bound: Callable[[float], float], highest: float) -> float:
    """Return the minimiser of a function on (0, highest]."""
    from scipy.optimize import minimize_scalar  # not before: slow to import

    found = minimize_scalar(
        bound, bounds=(0, highest), method="bounded", options={"xatol": 1e-10 * highest}
    )
    return min(float(found.x), highest)


@dataclass(frozen=True)
class Exploration:
    """Sphere of radius zeta around points of a shrunken domain C', within the domain."""

    domain: Domain
    zeta: float

    def __post_init__(self) -> None:
        inside("zeta", self.zeta, 0, MAX_SHRINK * self.domain.inner_radius, ends=False)

    @property
    def xi(self) -> float:
        """Share by which the domain shrinks, zeta divided by its inner radius."""
        return self.zeta / self.domain.inner_radius

    @property
    def diameter(self) -> float:
        """Diameter of the shrunken domain."""
        return (1 - self.xi) * self.domain.diameter

    def nearest(self, q: Floats, start: Floats) -> Floats:
        """Return the points of C' nearest to q (R, N); an iterative search begins at `start`."""
        return nearest(self.domain, q, start, shrink=self.xi).point

    def directions(self, streams: Streams) -> "Directions":
        """Return random directions, a new one each round, from the stream "exploration"."""
        return Directions(self, streams)


class Directions:
    """Unit direction of the current round, from blocks of draws; `advance` ends the round.

    The size of a block changes speed, never values.
    """

    def __init__(self, exploration: Exploration, streams: Streams) -> None:
        self._exploration = exploration
        self._normals = streams.normals("exploration", exploration.domain.affine_dim)
        self._block: Floats = np.empty(0)
        self._draw()

    def advance(self) -> None:
        """Replace the current directions by those of the next round."""
        self._place += 1
        if self._place == len(self._block):
            self._draw()

    @property
    def u(self) -> Floats:
        """Unit vectors in the domain's k coordinates, (R, k)."""
        return self._block[self._place]

    @property
    def step(self) -> Floats:
        """Exploring steps of length zeta, (R, N)."""
        return self._steps[self._place]

    def _draw(self) -> None:
        count = min(self._normals.ahead, 2 * len(self._block) or FIRST_DRAWN_ROUNDS)
        g = self._normals.take(count)  # (n, R, k)
        self._block, self._place = g / norms(g), 0
        domain, zeta = self._exploration.domain, self._exploration.zeta
        self._steps = zeta * domain.embedded(self._block)


class Sums(Protocol):
    """Mechanism from values (R,) and directions (R, k) to noisy prefix sums (R, k)."""

    @property
    def spend(self) -> Spend:
        """Privacy cost of all releases together for a user."""
        ...

    def __call__(self, y: Floats, u: Floats, /) -> Floats | None:
        """Add a round; return the noisy sum so far at the end of a batch, else None."""
        ...


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Noise of one-point estimates, on the nodes of a tree or on each value::

        laplace, k-norm    tree in Fenwick form, pure epsilon
        gaussian           tree in Fenwick form, exact (epsilon, delta)
        local              Laplace noise on each value, pure epsilon, no tree
        none               exact sums

    `printed` is a scale of the nodes' noise (a standard deviation if Gaussian), used at any privacy
    cost, which the ledger states. At delta > 0 trees are calibrated by their privacy loss
    distribution; local noise always meets epsilon at delta = 0.
    """

    law: NoiseId
    epsilon: float = inf
    delta: float = 0.0
    printed: float | None = None
    """scale of a node's noise; if None, the least whose certificate meets the target"""

    def __post_init__(self) -> None:
        one_of("noise", self.law, get_args(NoiseId))
        if self.law == "gaussian":
            gaussian_target(self.epsilon, self.delta)
        privacy_target(self.epsilon, self.delta)
        if self.printed is not None and self.law in ("local", "none"):
            raise InputError(f"Expected noise={self.law!r} to be a law printed in the paper.")

    @property
    def private(self) -> bool:
        """True if noise is added."""
        return self.law != "none" and self.epsilon < inf

    def multiplier(self, vectors: Statistic, leaves: int) -> float:
        """Return a node's noise scale, in sensitivities, for a tree with this number of leaves."""
        k = prod(vectors.shape)
        if not self.private:
            return 0.0
        if self.law == "local":
            return 1 / self.epsilon * (1 + 1e-12)
        if self.printed is not None:
            growth = sqrt(k) if self.law == "laplace" else 1.0
            return self.printed / (growth * vectors.sensitivity)
        return least_multiplier(
            Tree(),
            horizon=leaves + 1,
            refresh_every=1,
            epsilon=self.epsilon,
            delta=self.delta,
            law=self.law,  # type: ignore[arg-type]
            dim=k,
        )

    def sums(
        self, estimates: OnePointEstimates, streams: Streams, *, leaves: int, batch: int = 1
    ) -> Sums:
        """Return the mechanism for `leaves` batches of `batch` rounds each."""
        horizon, multiplier = leaves * batch + 1, self.multiplier(estimates, leaves)
        if self.law == "local":
            values = LocalValues(
                streams,
                low=estimates.low,
                high=estimates.high,
                offset=estimates.offset,
                noise_multiplier=multiplier,
                uses=leaves * batch,
            )
            return LocalSums(values, estimates, refresh_every=batch)
        if self.law == "none":
            return exact_prefix_sum(estimates, horizon=horizon, refresh_every=batch)
        return noisy_prefix_sum(
            Tree(),
            estimates,
            streams,
            horizon=horizon,
            refresh_every=batch,
            noise_multiplier=multiplier,
            law=self.law,
        )

    def ledger(self, spend: Spend) -> Ledger:
        """Return the ledger of an agent whose sums cost `spend`."""
        epsilon = self.epsilon if self.private else inf
        return ledger_of(epsilon, spend, without="values without noise")

    def spread(self, vectors: Statistic, leaves: int) -> float:
        """Return a bound on the expected norm of the noise in a prefix sum; 0 for local noise."""
        if not self.private or self.law == "local":
            return 0.0
        k, scale = prod(vectors.shape), self.multiplier(vectors, leaves) * vectors.sensitivity
        law: Laplace | KNorm | Gaussian = Gaussian(scale)
        if self.law == "laplace":
            law = Laplace(scale * sqrt(k))
        elif self.law == "k-norm":
            law = KNorm(scale)
        return sqrt(leaves.bit_length() * k * law.variance(k))

    def length(self, estimates: OnePointEstimates) -> float:
        """Return a bound on the root mean square norm of an estimate, local noise included."""
        W, scale = estimates.high - estimates.low, 0.0
        if self.private and self.law == "local":
            scale = self.multiplier(estimates, 1) * W
        M = largest(estimates.low, estimates.high, estimates.offset)
        return estimates.dim * sqrt(M**2 + 2 * scale**2) / estimates.zeta


class FKM(Points):
    """Projected gradient descent on one-point estimates, by Flaxman, Kalai and McMahan.

    Flaxman, Kalai and McMahan, "Online convex optimization in the bandit setting: gradient descent
    without a gradient", SODA 2005. With M = `max |f|`, Lipschitz constant L, outer and inner
    radius R and r of the domain C in k dimensions::

        y_1 = c0, the centre of the domain C; for t = 1..T:
          1. draw u on the unit sphere, play x = y_t + zeta u, see f(x)
          2. y_{t+1} = nearest point of (1 - zeta/r) (C - c0) + c0 to  y_t - nu f(x) u

        nu = R / (M sqrt T),   zeta = T^(-1/4) sqrt( R k M r / (3 (L r + M)) ), at most r/2

    Expected regret is at most 2 T^(3/4) sqrt(3 R k M (L + M/r)) if zeta is below its cap r/2.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        Directions are in the affine hull of the domain, around its centre, and zeta is capped.

    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(5)), horizon=1024)
    >>> round(FKM().radius(spec.loss, spec.horizon), 4)
    0.1614
    """

    zeta: Positive | None = None
    """radius of exploration, below the domain's inner radius"""
    nu: Positive | None = None
    """step size, as a factor of the observed value times the direction"""
    feedback = "value"

    def fit(self) -> None:
        with_values(self, self.spec)
        range_of(self.loss)

    def begin(self) -> None:
        loss, T = self.loss, self.spec.horizon
        self.ledger = no_privacy("every value moves the next point")
        self.pace = self.nu or self.domain.outer_radius / (largest(*range_of(loss), 0.0) * sqrt(T))
        self.exploration = Exploration(self.domain, self.radius(loss, T))
        self.directions = self.exploration.directions(self.streams)

    def act(self, context: Floats) -> Floats:
        return self.point if self.resting else self.point + self.directions.step

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        value = clip_range(0.0 - feedback, *self.loss.value_range)
        step = self.domain.embedded(value[:, None] * self.directions.u)
        self.point = self.exploration.nearest(self.point - self.pace * step, self.point)
        self.directions.advance()

    def radius(self, loss: Loss, horizon: int) -> float:
        """Return the radius of exploration."""
        domain, C = loss.domain, largest(*range_of(loss), 0.0)
        R, r, k = domain.outer_radius, domain.inner_radius, domain.affine_dim
        paper = sqrt(R * k * C * r / (3 * (loss.lipschitz * r + C))) / horizon**0.25
        return self.zeta or min(paper, r / 2)
