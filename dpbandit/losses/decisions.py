"""Losses of the decision itself: linear, quadratic, a kink plus a quadratic, negative profit."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from dpbandit.base import (
    Floats,
    InputError,
    at_least,
    clip_norm,
    clip_range,
    inside,
    norms,
    positive,
)
from dpbandit.domains.balls import Box
from dpbandit.domains.domain import Domain
from dpbandit.losses.loss import (
    Comparator,
    DataSum,
    Loss,
    QuadraticSum,
    Smoothed,
    minimise_quadratic,
    row_sums,
)


@dataclass(frozen=True)
class Linear(Loss):
    """Linear loss f(x; a) = <a, x - centre>, `|a|_2 <= 1`; `|f|` is at most the outer radius.

    The best fixed point takes one call of the linear oracle.
    """

    domain: Domain
    quadratic = True
    smoothness = 0.0
    datum_bound = 1.0
    lipschitz = 1.0

    @property
    def value_range(self) -> tuple[float, float]:
        R = self.domain.outer_radius
        return -R, R

    def admissible(self, z: Floats) -> Floats:
        # Clipped to norm 1; 0 where it is no vector of numbers
        return clip_norm(z, 1.0)

    def value(self, x: Floats, z: Floats) -> Floats:
        return np.vecdot(z, x - self.domain.centre)

    def gradient(self, x: Floats, z: Floats) -> Floats:
        return z

    def comparator(self, replicas: int) -> "_SupportFunction":
        return _SupportFunction(self.domain, replicas, self.domain.centre)


@dataclass(frozen=True)
class Experts(Loss):
    """Expected cost f(x; c) = <c, x> of a mixture x of N experts with costs c in [0, 1]^N.

    On the simplex the projected gradient is at most sqrt(N) / 2 (attained, for even N, by costs of
    which half are 0 and half 1); values lie in [0, 1].
    """

    domain: Domain
    quadratic = True
    smoothness = 0.0
    datum_bound = 1.0

    def __post_init__(self) -> None:
        N = self.domain.dim
        corners = np.eye(N)
        everywhere = self.domain.lowest(-corners)
        if not ((everywhere == corners).all() and self.domain.affine_dim == N - 1):
            raise InputError(f"Expected domain={self.domain!r} to be the simplex.")

    @property
    def lipschitz(self) -> float:
        return self.domain.dim**0.5 / 2

    @property
    def value_range(self) -> tuple[float, float]:
        return 0.0, 1.0

    def admissible(self, z: Floats) -> Floats:
        # Each cost clipped to [0, 1]; 0 where it is no number
        return clip_range(z, 0.0, 1.0)

    def value(self, x: Floats, z: Floats) -> Floats:
        return np.vecdot(z, x)

    def gradient(self, x: Floats, z: Floats) -> Floats:
        return z

    def comparator(self, replicas: int) -> "_SupportFunction":
        return _SupportFunction(self.domain, replicas, np.zeros(self.domain.dim))


class _SupportFunction:
    """Comparator of losses <a, x - origin>; it minimises <A, x - origin>, A the sum of all a."""

    def __init__(self, domain: Domain, replicas: int, origin: Floats) -> None:
        self._domain, self._origin = domain, origin
        self._total = np.zeros((replicas, domain.dim))

    def add(self, datum: Floats) -> None:
        self._total += datum

    def best(self) -> tuple[Floats, Floats]:
        x = self._domain.lowest(self._total)
        return x, np.vecdot(self._total, x - self._origin)


@dataclass(frozen=True)
class Quadratic(Loss):
    """Squared distance f(x; c) = `1/2 |x - c|^2` from a point c of the domain; curvature 1.

    Values lie in [0, D^2 / 2], gradients are at most D, the diameter. Without a projection, c is
    only clipped to the distance R from the centre, the outer radius, and 2 R replaces D. If c is
    within `reach` < R of the centre, gradients are at most R + reach. The best fixed point is the
    projection of the mean c; without a projection, Frank-Wolfe finds it to 1e-6 a round.
    """

    domain: Domain
    reach: float | None = None
    quadratic = True
    curvature = 1.0
    smoothness = 1.0

    def __post_init__(self) -> None:
        if self.reach is not None:
            positive("reach", self.reach)

    @property
    def datum_bound(self) -> float:
        return float(np.abs(self.domain.centre).max()) + self.domain.outer_radius

    @property
    def lipschitz(self) -> float:
        # The largest `|x - c|`
        R, apart = self.domain.outer_radius, self.domain.diameter
        anywhere = apart if self.domain.has_projection else 2 * R
        return anywhere if self.reach is None else min(anywhere, R + self.reach)

    @property
    def value_range(self) -> tuple[float, float]:
        return 0.0, self.lipschitz**2 / 2

    def admissible(self, z: Floats) -> Floats:
        # Clipped to the ball of V, then projected; the centre where it is no vector of numbers
        R = self.domain.outer_radius
        near = in_ball(self.domain, z, R if self.reach is None else min(R, self.reach))
        return self.domain.project(near) if self.domain.has_projection else near

    def value(self, x: Floats, z: Floats) -> Floats:
        # `1/2 |x - c|^2`
        y = x - z
        values: Floats = np.vecdot(y, y)
        values *= 0.5
        return values

    def gradient(self, x: Floats, z: Floats) -> Floats:
        return x - z

    def comparator(self, replicas: int) -> QuadraticSum:
        return QuadraticSum(self.domain, replicas, self.datum_shape, self._sums, isotropic=True)

    def _sums(self, data: Floats) -> tuple[float, Floats, Floats]:
        c = data - self.domain.centre
        flat = c.reshape(len(c), -1)
        return data.shape[1], row_sums(c), np.vecdot(flat, flat) / 2


@dataclass(frozen=True)
class TiltedQuadratic(Loss):
    """Loss f(x; a) = `1/2 |x - centre|^2 + <a, x - centre>`, `|a|_2 <= tilt`.

    Curvature 1, gradients at most R + tilt, R the outer radius; values lie in
    [s^2 / 2 - tilt s, R^2 / 2 + tilt R], s = min(tilt, R). The best fixed point is the projection
    of centre - mean a (by Frank-Wolfe to 1e-6 a round if the domain has no projection).
    """

    domain: Domain
    tilt: float = 2.0
    quadratic = True
    curvature = 1.0
    smoothness = 1.0

    def __post_init__(self) -> None:
        positive("tilt", self.tilt)

    @property
    def datum_bound(self) -> float:
        return self.tilt

    @property
    def lipschitz(self) -> float:
        return self.domain.outer_radius + self.tilt

    @property
    def value_range(self) -> tuple[float, float]:
        # From the least s^2 / 2 - tilt s to R^2 / 2 + tilt R
        R, tilt = self.domain.outer_radius, self.tilt
        s = min(tilt, R)
        return s**2 / 2 - tilt * s, R**2 / 2 + tilt * R

    def admissible(self, z: Floats) -> Floats:
        # Clipped to norm `tilt`; 0 where it is no vector of numbers
        return clip_norm(z, self.tilt)

    def value(self, x: Floats, z: Floats) -> Floats:
        y = x - self.domain.centre
        return np.vecdot(y / 2 + z, y)

    def gradient(self, x: Floats, z: Floats) -> Floats:
        return x - self.domain.centre + z

    def comparator(self, replicas: int) -> QuadraticSum:
        # The mean of the tilts: projection of centre - mean a
        return QuadraticSum(self.domain, replicas, self.datum_shape, self._sums, isotropic=True)

    def _sums(self, data: Floats) -> tuple[float, Floats, Floats]:
        return data.shape[1], -row_sums(data), np.zeros(len(data))


@dataclass(frozen=True)
class OffsetQuadratic(Loss):
    """Loss f(x; s) = `slope y_1 + curvature/2 |y|^2 - offset s`, y = x - centre, s in [-1, 1].

    The offset changes no minimiser and no regret, but it misleads one-point bandit methods: if s is
    the sign of this round's exploration direction, they ascend. (Smith and Thakurta's claim for
    strongly adaptive adversaries fails on this loss, in one dimension with offset = 3 beta slope
    for exploration of size beta.) Gradients are at most slope + `curvature` R, R the outer radius.
    """

    domain: Domain
    offset: float = 1.0
    slope: float = 1.0
    curvature: float = 1.0
    datum_shape = (1,)
    datum_bound = 1.0

    def __post_init__(self) -> None:
        at_least("offset", self.offset, 0)
        positive("slope", self.slope)
        positive("curvature", self.curvature)

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        return self.curvature

    @property
    def lipschitz(self) -> float:
        return self.slope + self.curvature * self.domain.outer_radius

    @property
    def value_range(self) -> tuple[float, float]:
        # Range of slope s + H/2 s^2 on [-R, R], and the offset
        R, H = self.domain.outer_radius, self.curvature
        s = min(R, self.slope / H)
        high = self.slope * R + H * R**2 / 2
        return H * s**2 / 2 - self.slope * s - self.offset, high + self.offset

    def admissible(self, z: Floats) -> Floats:
        # Clipped to [-1, 1]; -1 where it is no number
        return clip_range(z, -1.0, 1.0)

    def value(self, x: Floats, z: Floats) -> Floats:
        y = x - self.domain.centre
        values: Floats = self.slope * y[..., 0] + self.curvature / 2 * np.vecdot(y, y)
        return values - self.offset * z[..., 0]

    def gradient(self, x: Floats, z: Floats) -> Floats:
        # Slope e_1 + H (x - centre): the offset has none
        gradient = self.curvature * (x - self.domain.centre)
        gradient[..., 0] += self.slope
        return gradient

    def comparator(self, replicas: int) -> QuadraticSum:
        return QuadraticSum(self.domain, replicas, self.datum_shape, self._sums, isotropic=True)

    def _sums(self, data: Floats) -> tuple[float, Floats, Floats]:
        count = data.shape[1]
        c = np.zeros((len(data), self.domain.dim))
        c[:, 0] = -self.slope * count
        return self.curvature * count, c, -self.offset * row_sums(data)[:, 0]


def in_ball(domain: Domain, z: Floats, radius: float) -> Floats:
    """Clip data to the hull's ball of `radius` at the centre; non-finite rows become the centre."""
    if radius == 0:
        return np.tile(domain.centre, (*np.shape(z)[:-1], 1))
    away = np.asarray(z, dtype=np.float64) - domain.centre
    with np.errstate(over="ignore", invalid="ignore"):
        seen = domain.coordinates(away)
    return domain.centre + domain.embedded(clip_norm(seen, radius))


@dataclass(frozen=True)
class Kink(Loss):
    """Loss f(x; a) = `slope |x - a|_2 + H/2 |x - a|_2^2`, with a within `spread` of the centre.

    H is `curvature`. Gradients are at most slope + H (R + spread), R the outer radius, and values
    in [0, slope (R + spread) + H/2 (R + spread)^2]. At x = a every vector of norm <= slope is a
    subgradient; `gradient` returns slope times the first unit vector there. With spread = 0 both
    the kink and the best fixed point are the centre; else the latter is found numerically, to a
    certified suboptimality (`DataSum`).
    """

    domain: Domain
    slope: float = 1.0
    curvature: float = 1.0
    spread: float = 0.0

    def __post_init__(self) -> None:
        positive("slope", self.slope)
        at_least("curvature", self.curvature, 0)
        at_least("spread", self.spread, 0)

    @property
    def datum_bound(self) -> float:
        return float(np.abs(self.domain.centre).max()) + self.spread

    @property
    def lipschitz(self) -> float:
        return self.slope + self.curvature * self._reach

    @property
    def value_range(self) -> tuple[float, float]:
        return 0.0, self.slope * self._reach + self.curvature / 2 * self._reach**2

    @property
    def _reach(self) -> float:
        return self.domain.outer_radius + self.spread

    def admissible(self, z: Floats) -> Floats:
        # Clipped to the ball; the centre where it is no vector of numbers
        return in_ball(self.domain, z, self.spread)

    def value(self, x: Floats, z: Floats) -> Floats:
        length = norms(x - z)[..., 0]
        return (self.slope + self.curvature / 2 * length) * length

    def gradient(self, x: Floats, z: Floats) -> Floats:
        # `(slope / |x - a| + H) (x - a)`, and slope e_1 at the kink
        away = x - z
        length = norms(away)
        unit = np.where(
            length > 0, away / np.where(length > 0, length, 1.0), np.eye(self.domain.dim)[0]
        )
        return self.slope * unit + self.curvature * away

    def comparator(self, replicas: int) -> Comparator:
        if self.spread == 0:
            return _FixedKink(self.domain, replicas)
        return DataSum(self, replicas, self.datum_shape)

    def smoothed(self, x: Floats, data: Floats, mu: Floats) -> Smoothed:
        # `|v|` becomes `sqrt(|v|^2 + mu^2)`, whose gradient is shorter than 1
        v = x[:, None] - data  # (R, t, N)
        square = np.vecdot(v, v)
        length, root = np.sqrt(square), np.sqrt(square + mu[:, None] ** 2)
        slack = length * mu[:, None] ** 2 / (root * (root + length))  # |v| - <s, v>, uncancelled
        s = v / root[..., None]
        t, N, bowl = data.shape[1], self.domain.dim, self.curvature / 2 * square.sum(axis=1)
        cone = self.slope * length.sum(axis=1)
        weight = 1 / root
        scatter = np.matmul((s * weight[..., None]).swapaxes(1, 2), s)
        eye = np.eye(N)
        flat = (self.slope * weight.sum(axis=1) + self.curvature * t)[:, None, None] * eye
        return Smoothed(
            value=cone + bowl,
            smooth=self.slope * root.sum(axis=1) + bowl,
            slack=self.slope * slack.sum(axis=1),
            gradient=self.slope * s.sum(axis=1) + self.curvature * v.sum(axis=1),
            hessian=flat - self.slope * scatter,
        )


class _FixedKink:
    """Comparator of `Kink` with spread 0: the minimiser is the centre, where f is 0."""

    def __init__(self, domain: Domain, replicas: int) -> None:
        self._x, self._zeros = np.tile(domain.centre, (replicas, 1)), np.zeros(replicas)

    def add(self, datum: Floats) -> None:
        pass

    def best(self) -> tuple[Floats, Floats]:
        return self._x.copy(), self._zeros.copy()


_MAX_GOODS = 12
"""Largest number N of products, because constants are evaluated at all 2^N corners."""


@dataclass(frozen=True)
class Revenue(Loss):
    """Negative profit f(x; a) = -<p - c, a - B p> in dollars at prices p = list_prices + x.

    Units sold are a - B p; a is private, each a_i within demand_i (1 +- spread), and c are the unit
    costs. B is public, symmetric and positive definite, so the loss is convex in x, the differences
    from list prices in dollars: its curvature is 2 lambda_min(B), its smoothness 2 lambda_max(B).
    The Lipschitz constant and the range of values are exact: `|2 B p - a - B c|` and the loss are
    largest at corners; the least loss solves a quadratic program at the largest demand. The best
    fixed point solves a quadratic program in the mean demand (`QuadraticSum`).
    """

    domain: Box
    list_prices: tuple[float, ...]
    """List prices in dollars, each the middle of its product's price range"""
    effects: tuple[tuple[float, ...], ...]
    """Price effects B, units lost per dollar; off the diagonal < 0 for substitutes"""
    demand: tuple[float, ...]
    """Middle of the range of users' demand at price 0, in units of each product"""
    spread: float
    """Largest deviation of a user's demand at price 0 from `demand`, as a share, in [0, 1)"""
    unit_costs: tuple[float, ...]
    """Unit costs in dollars, below all prices"""
    quadratic = True

    def __post_init__(self) -> None:
        N, B = self.domain.dim, np.array(self.effects, dtype=np.float64)
        inside("spread", self.spread, 0, 1, ends=True)
        if N > _MAX_GOODS:
            raise InputError(f"Expected at most {_MAX_GOODS} goods, got {N}.")
        if B.shape != (N, N) or not (B == B.T).all() or not np.linalg.eigvalsh(B)[0] > 0:
            raise InputError(
                f"Expected effects={self.effects} to be a symmetric positive definite "
                f"{N} x {N} matrix: else profit is not concave."
            )
        for name in ("list_prices", "demand", "unit_costs"):
            if np.shape(getattr(self, name)) != (N,):
                raise InputError(f"Expected {name}={getattr(self, name)} to be {N} numbers.")
        if not (np.array(self.unit_costs) < self._corners.min(axis=0)).all():
            raise InputError(f"Expected unit_costs={self.unit_costs} below all prices.")
        if not self._least_units() >= -1e-9:
            raise InputError(
                f"Expected demand={self.demand} to stay positive at all prices and for all users, "
                f"got down to {self._least_units():.3g} units: lower prices, spread or effects."
            )

    @cached_property
    def _b(self) -> Floats:
        return np.array(self.effects, dtype=np.float64)

    @property
    def _low(self) -> Floats:
        return np.array(self.demand) * (1 - self.spread)

    @property
    def _high(self) -> Floats:
        return np.array(self.demand) * (1 + self.spread)

    @cached_property
    def _corners(self) -> Floats:
        """Corners of the price box, (2^N, N)."""
        half = self.domain.half_width
        return np.array(self.list_prices) + list(product((-half, half), repeat=self.domain.dim))

    @cached_property
    def _costs(self) -> Floats:
        return np.array(self.unit_costs, dtype=np.float64)

    def _least_units(self) -> float:
        return float((self._low - np.matvec(self._b, self._corners)).min())

    @cached_property
    def curvature(self) -> float:  # type: ignore[override]
        return float(2 * np.linalg.eigvalsh(self._b)[0])

    @cached_property
    def smoothness(self) -> float:  # type: ignore[override]
        return float(2 * np.linalg.eigvalsh(self._b)[-1])

    @property
    def datum_bound(self) -> float:
        return float(self._high.max())

    @cached_property
    def lipschitz(self) -> float:
        # The largest `|2 B p - a - B c|` over corners p and the demands' corners
        middle = np.matvec(self._b, 2 * self._corners - self._costs) - self.demand
        furthest = np.abs(middle) + self.spread * np.array(self.demand)
        return float(np.linalg.norm(furthest, axis=1).max())

    @cached_property
    def value_range(self) -> tuple[float, float]:
        # Dollars; the best prices with all demands high, the worst corner with all low
        high = self._loss(self._corners, self._low).max()
        c, _ = self._terms(self._high[None])
        x, gap = minimise_quadratic(
            self.domain, 2 * self._b[None], c, self.domain.centre[None], np.array([1e-12])
        )
        return float(self.value(x, self._high)[0] - max(0.0, gap[0])), float(high)

    def admissible(self, z: Floats) -> Floats:
        # Each demand clipped to its range; the lower end where it is no number
        z = np.asarray(z, dtype=np.float64)
        return np.clip(np.where(np.isfinite(z), z, self._low), self._low, self._high)

    def value(self, x: Floats, z: Floats) -> Floats:
        return self._loss(x + self.list_prices, z)

    def _loss(self, p: Floats, a: Floats) -> Floats:
        return np.vecdot(p - self._costs, np.matvec(self._b, p) - a)

    def gradient(self, x: Floats, z: Floats) -> Floats:
        p = x + self.list_prices
        return np.matvec(self._b, 2 * p - self._costs) - z

    def comparator(self, replicas: int) -> QuadraticSum:
        return QuadraticSum(self.domain, replicas, self.datum_shape, self._sums, isotropic=False)

    def _sums(self, data: Floats) -> tuple[Floats, Floats, Floats]:
        count, a = data.shape[1], row_sums(data)
        c, s = self._terms(a / count)  # both affine in a
        return np.broadcast_to(2 * count * self._b, (len(a), *self._b.shape)), count * c, count * s

    def _terms(self, z: Floats) -> tuple[Floats, Floats]:
        centre = np.broadcast_to(self.domain.centre, z.shape)
        return -self.gradient(centre, z), self.value(centre, z)
