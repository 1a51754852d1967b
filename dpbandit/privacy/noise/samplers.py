"""Noise laws: small values that know how to draw themselves for all replicas at once."""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import TypeAlias

import numpy as np

from dpbandit.base.arrays import Floats, rows
from dpbandit.base.random_streams import Source, Streams
from dpbandit.privacy.moments import SecondMoments

Sampler: TypeAlias = Callable[[], Floats]


@dataclass
class Shaped(Source):
    """Draws of standard laws, made into one law's noise: `make` takes and returns whole blocks."""

    make: Callable[..., Floats]
    """(n, R, ...) each -> `(n, R, *shape)`"""
    sources: tuple[Source, ...]

    def __post_init__(self) -> None:
        self.ahead = min(source.ahead for source in self.sources)

    def __call__(self) -> Floats:
        """The next release's noise, `(R, *shape)`: a copy, because trees keep some of them."""
        return super().__call__().copy()

    def take(self, count: int) -> Floats:
        """The noise of the next `count` releases, `(count, R, *shape)`."""
        return self.make(*(source.take(count) for source in self.sources))


@dataclass(frozen=True)
class Gaussian:
    """N(0, stddev^2) on every coordinate; stddev = 0 is no noise, by the same code."""

    stddev: float

    def sampler(self, streams: Streams, name: str, shape: tuple[int, ...]) -> Shaped:
        """A source of `(R, *shape)` noise for one call site."""
        return Shaped(self._scaled, (streams.normals(name, *shape),))

    def _scaled(self, normals: Floats) -> Floats:
        return self.stddev * normals


@dataclass(frozen=True)
class Wishart:
    """Centred Wishart noise W - k L^2 I, W ~ W_p(L^2 I, k), for the rows (x, r) of `statistic`.

    p = D + 1 and L^2 = C^2 + B^2. W is drawn by Bartlett's decomposition (Anderson, "An
    introduction to multivariate statistical analysis", 7.2): W = L^2 A A' with A lower
    triangular, A_ii^2 ~ chi^2(k - i + 1), A_ij ~ N(0, 1). Each block gets its own matrix, of
    which the entries beside r^2 are kept; `degrees` k >= p, whole or not.
    """

    degrees: float
    statistic: SecondMoments

    @property
    def row_bound(self) -> float:
        """L, the largest norm of a row (x, r)."""
        return sqrt(self.statistic.context_bound**2 + self.statistic.reward_bound**2)

    def sampler(self, streams: Streams, name: str) -> "WishartSampler":
        """A source of `(R, *statistic.shape)` noise for one call site."""
        return WishartSampler(self, streams, name)


class WishartSampler:
    """Draws of `Wishart`, packed and scaled like the statistic they protect."""

    def __init__(self, law: Wishart, streams: Streams, name: str) -> None:
        self._law, G, p = law, law.statistic.blocks, law.statistic.block_dim + 1
        self._lower = np.tril_indices(p, -1)
        self._normals = streams.normals(f"{name} normals", G, len(self._lower[0]))
        degrees = [law.degrees - i for _ in range(G) for i in range(p)]
        self._chi_squares = streams.chi_squares(f"{name} chi-squares", degrees)
        self._shape = (len(streams), G, p, p)

    def __call__(self) -> Floats:
        """The next node's noise in the units of the statistic, `(R, *statistic.shape)`."""
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
