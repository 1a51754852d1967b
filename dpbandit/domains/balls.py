"""Balls, boxes, simplices and spectrahedra."""

from dataclasses import dataclass, field
from functools import cached_property, partial
from math import isqrt, sqrt

import numpy as np

from dpbandit.base import MOST_DIM, Bools, Draws, Floats, Streams, norms, positive, whole
from dpbandit.domains.domain import (
    Domain,
    Points,
    constant,
    finite,
    null_basis,
    onto_simplex,
    sum_zero_basis,
)


@dataclass(frozen=True)
class Centred(Domain):
    """Set in R^dim that contains -x with every x; its diameter is twice its outer radius."""

    dim: int

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1, MOST_DIM)

    @property
    def centre(self) -> Floats:
        return np.zeros(self.dim)

    @property
    def diameter(self) -> float:
        return 2 * self.outer_radius


@dataclass(frozen=True)
class Ball(Centred):
    """The ball `{x: |x|_2 <= radius}` in R^dim, of diameter 2 radius.

    >>> import numpy as np
    >>> Ball(2).lowest(np.array([[3.0, 4.0]]))
    array([[-0.6, -0.8]])
    """

    radius: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("radius", self.radius)

    @property
    def outer_radius(self) -> float:
        return self.radius

    @property
    def inner_radius(self) -> float:
        return self.radius

    def lowest(self, v: Floats) -> Floats:
        # `-radius v / |v|`; the first unit vector where v = 0
        v = finite(v)
        length = norms(v)
        unit = np.where(length > 0, v / np.where(length > 0, length, 1.0), np.arange(self.dim) == 0)
        return -self.radius * unit

    def project(self, q: Floats) -> Floats:
        q = finite(q)
        return q * (self.radius / np.maximum(norms(q), self.radius))

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        x = finite(x, np.inf)
        return norms(x)[..., 0] <= self.radius + tolerance

    def sampler(self, streams: Streams, name: str) -> Points:
        directions = streams.normals(f"{name} direction", self.dim)
        return partial(self._drawn, directions, streams.uniforms(f"{name} length"))

    def _drawn(self, directions: Draws, lengths: Draws) -> Floats:
        g = directions()
        return self.radius * lengths()[:, None] ** (1 / self.dim) * g / norms(g)


@dataclass(frozen=True)
class Box(Centred):
    """The box [-h, h]^dim, h = half_width; outer radius h sqrt(dim), inner radius h.

    >>> import numpy as np
    >>> Box(2, 0.5).lowest(np.array([[3.0, -4.0]]))
    array([[-0.5,  0.5]])
    """

    half_width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("half_width", self.half_width)

    @property
    def outer_radius(self) -> float:
        return self.half_width * sqrt(self.dim)

    @property
    def inner_radius(self) -> float:
        return self.half_width

    def lowest(self, v: Floats) -> Floats:
        return np.where(finite(v) > 0, -self.half_width, self.half_width)

    def project(self, q: Floats) -> Floats:
        # The nearest point: every coordinate clipped
        return np.clip(finite(q), -self.half_width, self.half_width)

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        x = finite(x, np.inf)
        within: Bools = np.abs(x) <= self.half_width + tolerance
        return np.asarray(within.all(axis=-1))

    def sampler(self, streams: Streams, name: str) -> Points:
        # Independent uniform coordinates: exact
        return partial(self._drawn, streams.uniforms(name, self.dim))

    def _drawn(self, uniforms: Draws) -> Floats:
        return self.half_width * (2 * uniforms() - 1)


@dataclass(frozen=True)
class Simplex(Domain):
    """The simplex {x >= 0, sum x = 1} of mixtures of N experts; inner radius 1 / sqrt(N (N - 1)).

    >>> import numpy as np
    >>> Simplex(3).lowest(np.array([[3.0, -4.0, 0.0]]))
    array([[0., 1., 0.]])
    """

    dim: int
    diameter = sqrt(2)  # between any two corners

    def __post_init__(self) -> None:
        whole("dim", self.dim, 2, MOST_DIM)

    @cached_property
    def centre(self) -> Floats:
        return constant(np.full(self.dim, 1 / self.dim))

    @cached_property
    def basis(self) -> Floats | None:
        return sum_zero_basis(self.dim)

    @property
    def outer_radius(self) -> float:
        # sqrt((N - 1) / N), to a corner
        return sqrt((self.dim - 1) / self.dim)

    @property
    def inner_radius(self) -> float:
        # 1 / sqrt(N (N - 1)), to the middle of a facet
        return 1 / sqrt(self.dim * (self.dim - 1))

    def lowest(self, v: Floats) -> Floats:
        least = finite(v).argmin(axis=-1)
        return np.where(np.arange(self.dim) == least[..., None], 1.0, 0.0)

    def project(self, q: Floats) -> Floats:
        return onto_simplex(q)

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        x = finite(x, np.inf)
        total = np.abs(x.sum(axis=-1) - 1) <= tolerance
        return (x >= -tolerance).all(axis=-1) & total

    def sampler(self, streams: Streams, name: str) -> Points:
        # Exponentials over their sum: exact
        return partial(self._drawn, streams.exponentials(name, self.dim))

    def _drawn(self, exponentials: Draws) -> Floats:
        e = exponentials()
        return e / e.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class L1Ball(Centred):
    """The ball `{x: |x|_1 <= radius}` in R^dim; inner radius `radius / sqrt(dim)`.

    >>> import numpy as np
    >>> L1Ball(3, 2.0).lowest(np.array([[3.0, -4.0, 0.0]]))
    array([[0., 2., 0.]])
    """

    radius: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("radius", self.radius)

    @property
    def outer_radius(self) -> float:
        # The radius, to a corner
        return self.radius

    @property
    def inner_radius(self) -> float:
        # radius / sqrt(dim), to the middle of a facet
        return self.radius / sqrt(self.dim)

    def lowest(self, v: Floats) -> Floats:
        # -radius sign(v_i) e_i at the i of the largest `|v_i|`, the first of equals
        v = finite(v)
        largest = np.arange(self.dim) == np.abs(v).argmax(axis=-1)[..., None]
        return np.where(largest, np.where(v > 0, -self.radius, self.radius), 0.0)

    def project(self, q: Floats) -> Floats:
        # Inside, q; outside, the simplex's projection of `|q|` with the signs of q
        q = finite(q)
        shrunk = np.sign(q) * onto_simplex(np.abs(q), self.radius)
        return np.where(norms(q, 1) <= self.radius, q, shrunk)

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        x = finite(x, np.inf)
        return norms(x, 1)[..., 0] <= self.radius + tolerance

    def sampler(self, streams: Streams, name: str) -> Points:
        # Signed exponentials over the sum of dim + 1 of them: exact
        exponentials = streams.exponentials(f"{name} size", self.dim + 1)
        return partial(self._drawn, exponentials, streams.uniforms(f"{name} sign", self.dim))

    def _drawn(self, exponentials: Draws, signs: Draws) -> Floats:
        e = exponentials()
        size = e[:, :-1] / e.sum(axis=-1, keepdims=True)
        return self.radius * size * np.where(signs() < 0.5, -1.0, 1.0)


@dataclass(frozen=True)
class Spectrahedron(Domain):
    """Density matrices: the real symmetric d x d matrices X >= 0 of trace 1, d = order.

    A point is the upper triangle of X, row by row, with entries off the diagonal multiplied by
    sqrt(2), so that inner products and distances are those of matrices. Diameter sqrt(2), outer
    radius sqrt((d - 1) / d), inner radius 1 / sqrt(d (d - 1)), as for the simplex of eigenvalues.

    >>> domain = Spectrahedron(2)
    >>> domain.matrix(domain.lowest(np.array([[3.0, 0.0, 1.0]]))).round(3)
    array([[[0., 0.],
            [0., 1.]]])
    """

    order: int
    dim: int = field(init=False, repr=False)
    diameter = sqrt(2)  # between projectors on orthogonal lines

    def __post_init__(self) -> None:
        whole("order", self.order, 2, isqrt(MOST_DIM))
        object.__setattr__(self, "dim", self.order * (self.order + 1) // 2)

    @cached_property
    def centre(self) -> Floats:
        return constant(self.vector(np.eye(self.order) / self.order))

    @cached_property
    def basis(self) -> Floats | None:
        return null_basis(self.centre[None])

    @property
    def outer_radius(self) -> float:
        # sqrt((d - 1) / d), to the projector on any line
        return sqrt((self.order - 1) / self.order)

    @property
    def inner_radius(self) -> float:
        # 1 / sqrt(d (d - 1)); a unit matrix of trace 0 has no eigenvalue below -sqrt((d-1)/d)
        return 1 / sqrt(self.order * (self.order - 1))

    def matrix(self, x: Floats) -> Floats:
        """Return the d x d matrices that points (scaled triangles) stand for, (..., d, d)."""
        i, j = np.triu_indices(self.order)
        matrix = np.zeros((*x.shape[:-1], self.order, self.order))
        matrix[..., i, j] = matrix[..., j, i] = x / np.where(i == j, 1.0, sqrt(2))
        return matrix

    def vector(self, matrix: Floats) -> Floats:
        """Return symmetric d x d matrices as points (scaled upper triangles), (..., N)."""
        i, j = np.triu_indices(self.order)
        # rows in one piece: picked entries lie apart where there are many, and sums round otherwise
        return np.ascontiguousarray(matrix[..., i, j] * np.where(i == j, 1.0, sqrt(2)))

    def lowest(self, v: Floats) -> Floats:
        w = np.linalg.eigh(self.matrix(finite(v)))[1][..., 0]
        return self.vector(w[..., :, None] * w[..., None, :])

    def project(self, q: Floats) -> Floats:
        values, vectors = np.linalg.eigh(self.matrix(finite(q)))
        weighted = vectors * onto_simplex(values)[..., None, :]
        return self.vector(np.einsum("...ik,...jk->...ij", weighted, vectors))

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        x = finite(x, np.inf)
        values = np.linalg.eigvalsh(self.matrix(x))
        trace = np.abs(values.sum(axis=-1) - 1) <= tolerance
        return (values[..., 0] >= -tolerance) & trace

    def sampler(self, streams: Streams, name: str) -> Points:
        # G G' / tr(G G') with G a d x (d + 1) matrix of standard normals: exact.
        #
        # W = G G' with n columns has density prop. to det(W)^((n - d - 1) / 2) exp(-tr W / 2); with
        # n = d + 1 it depends on the trace alone, so given the trace W is uniform.
        return partial(self._drawn, streams.normals(name, self.order, self.order + 1))

    def _drawn(self, normals: Draws) -> Floats:
        g = normals()
        wishart = np.einsum("...ik,...jk->...ij", g, g)
        return self.vector(wishart / np.einsum("...ii->...", wishart)[..., None, None])
