"""What a convex decision set can do, and what is public about it.

A domain C is a compact convex subset of R^N. Its affine hull is centre + V with V a subspace of
dimension k; whatever is random or private about a point lives in V, in coordinates of an
orthonormal basis, so a set that is flat in R^N (a simplex, flows) costs k dimensions and not N.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams

Points: TypeAlias = Callable[[], Floats]
"""A fresh point of the domain for each replica, (R, N) a call; copies (deep, or pickled) go on
alike."""

_HUGE = 1e100
"""Entries are clipped to this: squares, sums and differences of such numbers stay finite."""


def tame(v: Floats, nan: float = 0.0) -> Floats:
    """`v` as rows of finite floats: NaN becomes `nan`, what is huger than 1e100 becomes that.

    To be read, not written on: it is `v` itself where nothing has to change.
    """
    v = np.ascontiguousarray(v, dtype=np.float64)
    if (np.abs(v) <= _HUGE).all():  # as they mostly are; false for NaN
        return v
    return np.clip(np.where(np.isnan(v), nan, v), -_HUGE, _HUGE)


def constant(values: npt.ArrayLike) -> Floats:
    """A read-only array: public facts are computed once and shared."""
    array: Floats = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


class Domain(ABC):
    """A compact convex set in R^N; subclasses are frozen dataclasses, so they hash and print.

    Everything takes and returns one row a replica, and no row depends on another.
    """

    has_projection: bool = True
    """whether `project` is there, exact; else see `dpbandit.domains.frank_wolfe_projection`"""
    dim: int
    """N, the length of a point"""

    @property
    @abstractmethod
    def centre(self) -> Floats:
        """c0, (N,), a public point of the relative interior."""

    @property
    @abstractmethod
    def diameter(self) -> float:
        """D, the largest distance between two points."""

    @property
    @abstractmethod
    def outer_radius(self) -> float:
        """R, the largest distance from the centre; R <= D <= 2 R."""

    @property
    @abstractmethod
    def inner_radius(self) -> float:
        """r, the radius of a ball of V around the centre that the domain contains."""

    @cached_property
    def basis(self) -> Floats | None:
        """Q, (N, k), orthonormal columns that span V; None where V is R^N."""
        return None

    @property
    def affine_dim(self) -> int:
        """k, the dimension of V."""
        return self.dim if self.basis is None else self.basis.shape[1]

    def coordinates(self, v: Floats) -> Floats:
        """Q' v: what V sees of a vector, (..., N) -> (..., k)."""
        return v if self.basis is None else np.vecmat(np.ascontiguousarray(v), self.basis)

    def embedded(self, u: Floats) -> Floats:
        """Q u: the vector with these coordinates, (..., k) -> (..., N)."""
        return u if self.basis is None else np.matvec(self.basis, np.ascontiguousarray(u))

    @abstractmethod
    def lowest(self, v: Floats) -> Floats:
        """The linear oracle: a point of C with the least <v, x>, (R, N) -> (R, N)."""

    def project(self, q: Floats) -> Floats:
        """The nearest point of C, (R, N) -> (R, N)."""
        raise InputError(f"{type(self).__name__} has no exact projection: use Frank-Wolfe.")

    @abstractmethod
    def contains(self, x: Floats, tolerance: float = 1e-9) -> npt.NDArray[np.bool_]:
        """Whether each point obeys all of C's inequalities up to `tolerance`, (R, N) -> (R,)."""

    @abstractmethod
    def sampler(self, streams: Streams, name: str) -> Points:
        """Points uniformly distributed on C, from the stream `name`."""
