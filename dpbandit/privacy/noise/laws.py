"""Noise laws with heavier tails than a normal, or with one sign::

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

What the noise costs stands in `pure` (Laplace, KNorm) and `curves`.
"""

from dataclasses import dataclass
from math import pi, prod
from typing import Protocol

import numpy as np

from dpbandit.base.arrays import Floats, norms
from dpbandit.base.inputs import at_least
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.noise import samplers as noise
from dpbandit.privacy.noise.samplers import Shaped

Shape = tuple[int, ...]


class Law(Protocol):
    """What the laws of this file share."""

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        """A source of `(R, *shape)` noise for one call site."""
        ...

    def variance(self, dim: int) -> float:
        """Of one coordinate of a vector of `dim`."""
        ...


@dataclass(frozen=True)
class Laplace:
    """Independent Laplace noise of scale c on every coordinate.

    Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity", TCC 2006.

    Guarantee:
        If one user moves the input by at most D_1 in l_1, in the coordinates in which the noise is
        drawn, a release is (D_1 / c)-DP. Inside a subspace of dimension k that is at most sqrt(k)
        times the Euclidean movement.
    """

    scale: float

    def __post_init__(self) -> None:
        at_least("scale", self.scale, 0)

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        """A source of `(R, *shape)` noise: a sign times an exponential, in half of NumPy's time."""
        size = streams.exponentials(f"{name} size", *shape)
        return Shaped(self._signed, (size, streams.uniforms(f"{name} sign", *shape)))

    def _signed(self, size: Floats, sign: Floats) -> Floats:
        return self.scale * np.copysign(size, sign - 0.5)

    def variance(self, dim: int) -> float:
        """2 c^2 in any dimension."""
        return 2 * self.scale**2


@dataclass(frozen=True)
class KNorm:
    """Noise with density proportional to `exp(-|b|_2 / c)`: uniform direction, radius Gamma(k, c).

    Hardt and Talwar, "On the geometry of differential privacy", STOC 2010, the K-norm mechanism
    of the Euclidean ball; the "Gamma norm" noise of private empirical risk minimisation. In one
    dimension it is Laplace(c).

    Guarantee:
        If one user moves the input by at most D_2 in Euclidean norm, a release is (D_2 / c)-DP by
        the triangle inequality, and far better at delta > 0: `pure.KNormSpend`.
    """

    scale: float

    def __post_init__(self) -> None:
        at_least("scale", self.scale, 0)

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        """A source of `(R, *shape)` noise, one vector of k = prod(shape) coordinates."""
        direction = streams.normals(f"{name} direction", *shape)
        return Shaped(self._scaled, (direction, streams.gammas(f"{name} radius", prod(shape))))

    def _scaled(self, direction: Floats, radius: Floats) -> Floats:
        return rescaled(direction, self.scale * radius, order=2)

    def variance(self, dim: int) -> float:
        """`E |b|^2 / k = (k + 1) c^2`."""
        return (dim + 1) * self.scale**2


@dataclass(frozen=True)
class Gaussian(noise.Gaussian):
    """`noise.Gaussian` with its variance."""

    def __post_init__(self) -> None:
        at_least("stddev", self.stddev, 0)

    def variance(self, dim: int) -> float:
        """s^2 in any dimension."""
        return self.stddev**2


@dataclass(frozen=True)
class OneSidedExponential:
    """Independent exponential noise of the given mean: never negative, so no Guarantee alone."""

    mean: float

    def __post_init__(self) -> None:
        at_least("mean", self.mean, 0)

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        """A source of `(R, *shape)` noise."""
        return Shaped(self._scaled, (streams.exponentials(name, *shape),))

    def _scaled(self, exponentials: Floats) -> Floats:
        return self.mean * exponentials

    def variance(self, dim: int) -> float:
        """The mean squared, in any dimension."""
        return self.mean**2


@dataclass(frozen=True)
class Gumbel:
    """Independent Gumbel noise; argmax(u + Gumbel(c)) has probabilities exp(u / c) / total.

    Gumbel, "Statistical theory of extreme values", 1954: c times minus the log of an exponential.

    Guarantee:
        For scores u that one user moves by at most s, releasing the argmax alone is the exponential
        mechanism (McSherry and Talwar, FOCS 2007), (2 s / c)-DP.
    """

    scale: float

    def __post_init__(self) -> None:
        at_least("scale", self.scale, 0)

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        """A source of `(R, *shape)` noise."""
        return Shaped(self._log, (streams.exponentials(name, *shape),))

    def _log(self, exponentials: Floats) -> Floats:
        return -self.scale * np.log(exponentials + 1e-300)  # an exact 0 has probability 2^-53

    def variance(self, dim: int) -> float:
        """(pi c)^2 / 6 in any dimension; the mean is 0.5772 c."""
        return (pi * self.scale) ** 2 / 6


def rescaled(x: Floats, radius: Floats, *, order: float) -> Floats:
    """`(n, R, *shape)`, each shape one vector, with l_order norms `radius` (n, R)."""
    vectors = x.reshape(*radius.shape, -1)
    return np.reshape(vectors * (radius[..., None] / norms(vectors, order)), x.shape)
