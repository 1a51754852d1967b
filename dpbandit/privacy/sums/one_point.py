"""Gradients from one value each: what is summed, and what is released value by value.

Flaxman, Kalai and McMahan, "Online convex optimization in the bandit setting: gradient descent
without a gradient", SODA 2005. With u uniform on the unit sphere of a k-dimensional space::

    g = (k / zeta) f(x + zeta u) u        has mean   grad E f(x + zeta v),  v uniform in the ball,

so one number f(x + zeta u) is all that is private about a round. The direction u and the point x
are the agent's own: drawn apart from all data, or made of releases.
"""

import sys
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, clip_range
from dpbandit.base.inputs import InputError, at_least, inside, one_of, positive, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.mechanism import EVERYWHERE, Mechanism
from dpbandit.privacy.noise.laws import Gaussian, Laplace
from dpbandit.privacy.pure import LaplaceSpend
from dpbandit.privacy.spends import GaussianSpend, Spend


@dataclass(frozen=True, kw_only=True)
class OnePointEstimates:
    """The sum of (k / zeta) (clip(y, low, high) - offset) u, in k coordinates.

    Guarantee:
        Replacing one user moves it by at most (high - low) k / zeta in L2, the offset being public,
        because `|u| = 1`. That is not checked: u is the agent's own public draw, and no user has a
        hand in it. Values that are no numbers become `low`.
    """

    dim: int
    """k"""
    zeta: float
    """radius of the sphere on which the value was taken, > 0"""
    low: float
    high: float
    offset: float = 0.0
    """public; (low + high) / 2 makes estimates shortest"""
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        positive("zeta", self.zeta)
        _check_range(self.low, self.high, self.offset)

    @property
    def shape(self) -> tuple[int, ...]:
        """(k,)."""
        return (self.dim,)

    @property
    def sensitivity(self) -> float:
        """W k / zeta with W = high - low."""
        return (self.high - self.low) * self.dim / self.zeta

    @property
    def bound(self) -> float:
        """The longest estimate, M k / zeta with M the largest `|value - offset|`."""
        return largest(self.low, self.high, self.offset) * self.dim / self.zeta

    def total(self, *batch: npt.NDArray[Any]) -> Floats:
        """Values y (n, R) and directions u (n, R, k) -> (R, k)."""
        y, u = batch
        return self.estimate(clip_range(y, self.low, self.high) - self.offset, u)

    def estimate(self, values: Floats, u: Floats) -> Floats:
        """(k / zeta) sum of values (n, R) times directions (n, R, k), as they are: (R, k)."""
        # contiguous and replica by replica, so that R is not in the arithmetic
        by_replica = np.ascontiguousarray(u.transpose(1, 0, 2), dtype=np.float64)
        summed: Floats = np.vecmat(np.ascontiguousarray(values.T), by_replica)
        return self.dim / self.zeta * summed


class LocalValues(Mechanism):
    """Each value released once with noise of its own: local privacy, no accumulator to trust::

        release clip(y, low, high) - offset + noise,       noise Laplace(s W) or N(0, s^2 W^2)

    with s = `noise_multiplier` and W = high - low.

    Guarantee:
        Replacing a user moves the one value of hers by at most W, and each value is released once,
        so all releases together, for every horizon, cost what one does (parallel composition):
        epsilon = 1 / s, or mu = 1 / s with Gaussian noise.
    """

    trust = EVERYWHERE

    def __init__(
        self,
        streams: Streams,
        *,
        low: float,
        high: float,
        offset: float = 0.0,
        noise_multiplier: float,
        law: Literal["laplace", "gaussian"] = "laplace",
        uses: int = sys.maxsize,
    ) -> None:
        _check_range(low, high, offset)
        at_least("noise_multiplier", noise_multiplier, 0)
        one_of("law", law, ("laplace", "gaussian"))
        self.sensitivity, self.uses = high - low, uses
        self._low, self._high, self._offset = low, high, offset
        scale = noise_multiplier * self.sensitivity
        made: Laplace | Gaussian = Laplace(scale) if law == "laplace" else Gaussian(scale)
        self._noise = made.sampler(streams, "local noise", ())
        loss, note = 1 / noise_multiplier if noise_multiplier else inf, f"local {law} values"
        spend: Spend = LaplaceSpend(loss, count=min(1, uses), note=note)
        if law == "gaussian":
            spend = GaussianSpend(loss if uses else 0.0, note.replace("gaussian", "Gaussian"))
        self.spend = spend

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped value less the offset, (R,)."""
        (y,) = datum
        return clip_range(y, self._low, self._high) - self._offset

    def _release(self, *datum: npt.NDArray[Any]) -> Floats:
        value, noise = self.query(*datum), self._noise()
        if value.shape != noise.shape:  # broadcast, a value would be released more than once
            raise InputError(f"Expected values of shape {noise.shape}, got {value.shape}.")
        return value + noise


class LocalSums:
    """Prefix sums of one-point estimates made of locally private values: post-processing.

    A call takes what `PrefixSum` takes, a value (R,) and its direction (R, k), and returns the sum
    of all estimates so far after every `refresh_every` rounds, else None.
    """

    def __init__(
        self, values: LocalValues, estimates: OnePointEstimates, *, refresh_every: int
    ) -> None:
        whole("refresh_every", refresh_every, 1)
        self._values, self._estimates, self._every = values, estimates, refresh_every
        self._place = 0
        self._released: Floats = np.empty(0)
        self._directions: Floats = np.empty(0)
        self._sum: Floats | float = 0.0

    @property
    def spend(self) -> Spend:
        """The sum of values pays for all."""
        return self._values.spend

    def __call__(self, y: Floats, u: Floats) -> Floats | None:
        """(R,) and (R, k) -> (R, k) at the end of a batch, else None."""
        release = cast(Floats, self._values(y))  # every call releases
        if not self._released.size:
            self._released = np.zeros((self._every, *release.shape))
            self._directions = np.zeros((self._every, *u.shape))
        self._released[self._place], self._directions[self._place] = release, u
        self._place += 1
        if self._place < self._every:
            return None
        self._place = 0
        self._sum = self._sum + self._estimates.estimate(self._released, self._directions)
        return self._sum


def largest(low: float, high: float, offset: float) -> float:
    """M, the largest `|value - offset|`."""
    return max(abs(low - offset), abs(high - offset))


def _check_range(low: float, high: float, offset: float) -> None:
    if not -inf < low < high < inf:
        raise InputError(f"Expected finite low={low} < high={high}.")
    inside("offset", offset, -inf, inf, ends=False)
