"""Laws of noise b, of scale c or standard deviation s, drawn for all replicas at once::

    law                   density                        variance
    Laplace               exp(-|b|_1 / c)                2 c^2
    KNorm                 exp(-|b|_2 / c)                (k + 1) c^2
    Gaussian              exp(-|b|_2^2 / 2 s^2)          s^2
    OneSidedExponential   exp(-b / c), b >= 0            c^2
    Gumbel                exp(-b / c - e^(-b / c))       (pi c)^2 / 6

Every law is a value; `sampler(streams, name, shape)` opens a source that is called for the noise
of one release, `(R, *shape)`, in the units of the scale. A replica's noise depends on its own
stream alone. A block of any shape is ONE vector of k = prod(shape) coordinates: laws with a norm
protect the norm of the whole block, which is what the sensitivity of a statistic measures. A
scale of 0 is no noise, by the same code; a negative or infinite one raises `InputError`.

The privacy cost of noise is in `pure` (Laplace, KNorm), `curves` (Gaussian) and `wishart`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import pi, prod, sqrt
from typing import Protocol, TypeAlias

import numpy as np

from dpbandit.base import Floats, Source, Streams, at_least, norms, rows
from dpbandit.privacy.moments import SecondMoments

Shape: TypeAlias = tuple[int, ...]
Sampler: TypeAlias = Callable[[], Floats]


@dataclass
class Shaped(Source):
    """Source of a law's noise, made of draws of standard laws, for many releases at a time."""

    make: Callable[..., Floats]
    """function from draws (n, R, ...) of each source to noise `(n, R, *shape)`"""
    sources: tuple[Source, ...]

    def __post_init__(self) -> None:
        self.ahead = min(source.ahead for source in self.sources)

    def __call__(self) -> Floats:
        # a copy, because trees store some of the noises
        return super().__call__().copy()

    def take(self, count: int) -> Floats:
        return self.make(*(source.take(count) for source in self.sources))


class Law(Protocol):
    """Protocol of a law of noise."""

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        """Return a source of `(R, *shape)` noise from the random stream `name`."""
        ...

    def variance(self, dim: int) -> float:
        """Return the variance of one coordinate of a noise vector of length `dim`."""
        ...


@dataclass(frozen=True)
class Laplace:
    """Independent Laplace noise of scale c on every coordinate.

    Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity", TCC 2006.

    Guarantee:
        If one user moves the input by at most D_1 in l_1, in the coordinates in which the noise is
        drawn, a release is (D_1 / c)-DP. In a subspace of dimension k, D_1 is at most sqrt(k)
        times the Euclidean movement.
    """

    scale: float

    def __post_init__(self) -> None:
        at_least("scale", self.scale, 0)

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        # A source of `(R, *shape)` noise: a sign times an exponential, in half of NumPy's time
        size = streams.exponentials(f"{name} size", *shape)
        return Shaped(self._signed, (size, streams.uniforms(f"{name} sign", *shape)))

    def _signed(self, size: Floats, sign: Floats) -> Floats:
        return self.scale * np.copysign(size, sign - 0.5)

    def variance(self, dim: int) -> float:
        return 2 * self.scale**2


@dataclass(frozen=True)
class KNorm:
    """Noise b in R^k of density prop. to `exp(-|b|_2 / c)`: uniform direction, radius Gamma(k, c).

    Hardt and Talwar, "On the geometry of differential privacy", STOC 2010, the K-norm mechanism
    of the Euclidean ball; the "Gamma norm" noise of private empirical risk minimisation. In one
    dimension the law is Laplace(c).

    Guarantee:
        If one user moves the input by at most D_2 in Euclidean norm, a release is (D_2 / c)-DP by
        the triangle inequality, and far better at delta > 0: `pure.KNormSpend`.
    """

    scale: float

    def __post_init__(self) -> None:
        at_least("scale", self.scale, 0)

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        direction = streams.normals(f"{name} direction", *shape)
        return Shaped(self._scaled, (direction, streams.gammas(f"{name} radius", prod(shape))))

    def _scaled(self, direction: Floats, radius: Floats) -> Floats:
        return rescaled(direction, self.scale * radius, order=2)

    def variance(self, dim: int) -> float:
        return (dim + 1) * self.scale**2


@dataclass(frozen=True)
class Gaussian:
    """Independent noise N(0, stddev^2) on every coordinate."""

    stddev: float

    def __post_init__(self) -> None:
        at_least("stddev", self.stddev, 0)

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        return Shaped(partial(np.multiply, self.stddev), (streams.normals(name, *shape),))

    def variance(self, dim: int) -> float:
        return self.stddev**2


@dataclass(frozen=True)
class OneSidedExponential:
    """Independent exponential noise of a given mean, never negative; not private alone."""

    mean: float

    def __post_init__(self) -> None:
        at_least("mean", self.mean, 0)

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        return Shaped(partial(np.multiply, self.mean), (streams.exponentials(name, *shape),))

    def variance(self, dim: int) -> float:
        return self.mean**2


@dataclass(frozen=True)
class Gumbel:
    """Independent Gumbel noise; argmax(u + noise of scale c) has probabilities prop. to exp(u / c).

    Gumbel, "Statistical theory of extreme values", 1954: -c log of a standard exponential.

    Guarantee:
        For scores u that one user moves by at most s, releasing the argmax alone is the exponential
        mechanism (McSherry and Talwar, FOCS 2007), (2 s / c)-DP.
    """

    scale: float

    def __post_init__(self) -> None:
        at_least("scale", self.scale, 0)

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        return Shaped(self._log, (streams.exponentials(name, *shape),))

    def _log(self, exponentials: Floats) -> Floats:
        return -self.scale * np.log(exponentials + 1e-300)  # an exact 0 has probability 2^-53

    def variance(self, dim: int) -> float:
        # (pi c)^2 / 6 in any dimension; the mean is 0.5772 c
        return (pi * self.scale) ** 2 / 6


def rescaled(x: Floats, radius: Floats, *, order: float) -> Floats:
    """Return x `(n, R, *shape)`, its blocks rescaled as vectors to l_order norm `radius` (n, R)."""
    vectors = x.reshape(*radius.shape, -1)
    return np.reshape(vectors * (radius[..., None] / norms(vectors, order)), x.shape)


@dataclass(frozen=True)
class Wishart:
    """Centred Wishart noise W - k L^2 I, W ~ W_p(L^2 I, k), for the rows (x, r) of `statistic`.

    p = D + 1, D the length of x, and L^2 = C^2 + B^2, `|x| <= C`, `|r| <= B`. W is drawn by
    Bartlett's decomposition (Anderson, "An introduction to multivariate statistical analysis",
    7.2): W = L^2 A A' with A lower triangular, A_ii^2 ~ chi^2(k - i + 1), A_ij ~ N(0, 1). Each
    block gets its own matrix, without the entry of r^2; `degrees` k >= p need not be whole.
    """

    degrees: float
    statistic: SecondMoments

    @property
    def row_bound(self) -> float:
        """Largest norm of a row (context, reward)."""
        return sqrt(self.statistic.context_bound**2 + self.statistic.reward_bound**2)

    def sampler(self, streams: Streams, name: str) -> "WishartSampler":
        """Return a source of `(R, *statistic.shape)` noise from the random stream `name`."""
        return WishartSampler(self, streams, name)


class WishartSampler:
    """Source of `Wishart` noise, packed and scaled like the statistic."""

    def __init__(self, law: Wishart, streams: Streams, name: str) -> None:
        self._law, G, p = law, law.statistic.blocks, law.statistic.block_dim + 1
        self._lower = np.tril_indices(p, -1)
        self._normals = streams.normals(f"{name} normals", G, len(self._lower[0]))
        degrees = [law.degrees - i for _ in range(G) for i in range(p)]
        self._chi_squares = streams.chi_squares(f"{name} chi-squares", degrees)
        self._shape = (len(streams), G, p, p)

    def __call__(self) -> Floats:
        """Return the next node's noise in the units of the statistic, `(R, *statistic.shape)`."""
        R, G, p, _ = self._shape
        i, j = self._lower
        A = np.zeros(self._shape)
        A[..., i, j] = self._normals()
        A[..., rows(p), rows(p)] = np.sqrt(self._chi_squares().reshape(R, G, p))
        W = A @ A.transpose(0, 1, 3, 2) - self._law.degrees * np.eye(p)
        W *= self._law.row_bound**2
        D = p - 1
        statistic = self._law.statistic
        return statistic.pack(W[..., :D, :D], W[..., :D, D]) / statistic.units
