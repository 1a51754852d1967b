"""Noisy sums of batches or cells (such as arms), noisy values, and running sums that restart.

**Gradient estimates from one value a round.**
Flaxman, Kalai and McMahan, "Online convex optimization in the bandit setting: gradient descent
without a gradient", SODA 2005. For a loss f on k-dimensional space, zeta > 0 and u uniform on the
unit sphere::

    g = (k / zeta) f(x + zeta u) u        has mean   grad E f(x + zeta v),  v uniform in the ball,

so the only private number of a round is f(x + zeta u). The agent draws the direction u
independently of all data and computes the point x from releases.
"""

import sys
from dataclasses import dataclass
from math import inf, sqrt
from typing import ClassVar, Literal, TypeAlias, cast

import numpy as np

from dpbandit.base import (
    AnyArray,
    Floats,
    InputError,
    Ints,
    Paced,
    Streams,
    at_least,
    clip_norm,
    clip_range,
    inside,
    one_of,
    positive,
    privacy_target,
    rows,
    shaped,
    whole,
)
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.mechanism import LOCAL_TRUST, Mechanism
from dpbandit.privacy.moments import ArmRewards
from dpbandit.privacy.noise import Gaussian, Laplace, Sampler
from dpbandit.privacy.premises import NO_FACTS, SUMMED, Fact
from dpbandit.privacy.pure import LaplaceSpend
from dpbandit.privacy.spends import GaussianSpend, Spend


class BatchSum(Mechanism):
    """Mechanism that returns x_1 + ... + x_n + noise at the n-th call, and None before.

    Args:
        dim: length of a vector.
        bound: l_order norm to which vectors are clipped.
        order: order of the norm.
        users: n, the number of vectors.
        noise: function that draws the noise of the sum, (R, dim).
        spend: privacy cost of that noise for one user.

    Guarantee:
        Replacing a user moves the sum by at most 2 `bound` in l_order, whatever is fed; `spend` is
        the privacy cost of that change under the noise. Each batch has a mechanism of its own, so a
        user's cost is that of her batch alone (parallel composition).

    >>> from dpbandit.privacy.spends import GaussianSpend
    >>> total = BatchSum(1, 2.0, users=2, noise=lambda: 0.5, spend=GaussianSpend(1.0, "a batch"))
    >>> total(np.array([[9.0]])), total(np.array([[-1.0]]))
    (None, array([[1.5]]))
    """

    # "moves the sum by at most 2 `bound` in l_order, whatever is fed"
    needs = SUMMED

    releases_sum = True

    def __init__(
        self, dim: int, bound: float, *, order: float = 2, users: int, noise: Sampler, spend: Spend
    ) -> None:
        positive("bound", bound)
        whole("users", users, 1)
        self.spend, self.uses, self.order = spend, users, order
        self.sensitivity = 2 * bound
        self._noise, self._dim = noise, dim
        self._exact: Floats = np.zeros(dim)

    def query(self, *datum: AnyArray) -> Floats:
        (x,) = datum
        if x.ndim != 2 or x.shape[1] != self._dim:
            raise InputError(f"Expected vectors of shape {('R', self._dim)}, got {x.shape}.")
        return clip_norm(x, self.sensitivity / 2, self.order)

    def _release(self, *datum: AnyArray) -> Floats | None:
        self._exact = self._exact + self.query(*datum)
        if self._used < self.uses:
            return None
        noise = np.asarray(self._noise())
        if noise.shape:  # else there is none: the same noise in two rows would cancel
            shaped("sum", self._exact, noise.shape)
        return self._exact + noise


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the mu of (epsilon, delta)-DP Gaussian noise, or 0 if Laplace noise is smaller.

    >>> gaussian_mu(1.0, 1e-5), round(gaussian_mu(0.5, 0.3), 3)
    (0.0, 1.155)
    """
    mu = mu_of(epsilon, delta) if epsilon < inf else 0.0
    return mu if sqrt(2) * mu > epsilon else 0.0


class CountedSums(Mechanism):
    """Sums of K cells, such as arms; on request a cell is released with fresh noise and set to 0::

        call(value (R,), cell (R,), at_release (R, K) bool) -> (R, K), 0 where nothing is released

    A call returns None if no cell of any replica is released. Values are clipped to [low, high] and
    summed as shares of that range, (value - low) / (high - low). Noise is Laplace(1 / epsilon), or
    Gaussian of standard deviation 1 / mu if the given delta allows less noise that way.

    A simulator that plays one policy for many rounds may hand over all of them in one call: totals
    of the shares (R, K) in place of `value`, and the counts of rounds (R, K) in place of `cell`.

    Guarantee:
        If `cell` and `at_release` are functions of public coins, of counts (how many values each
        cell has got since it was emptied) and of earlier releases alone, then all releases together
        are epsilon-DP, with Gaussian noise mu-GDP, for replacing one round's value, however many
        there are and however they depend on each other. *Proof.* Given the public coins, the joint
        density of all releases is a product over releases in time. Let two streams differ in round
        t. Up to then all factors agree; round t is in one pending sum at most, that of its cell,
        and this sum is released once at most: there the factors differ by exp(epsilon `|x - x'|`)
        <= e^epsilon for shares x and x' (a Gaussian release moves by at most mu standard
        deviations). While releases agree all later rules, counts and cells agree, so that every
        other sum adds the same rounds. A rule that looks at a pending sum itself is not covered,
        and not private.

    >>> sums = CountedSums(Streams([0]), 2, low=0, high=2, epsilon=inf, uses=9)
    >>> zero, at_release = np.array([0]), np.array([[True, False]])
    >>> none = ~at_release & at_release
    >>> sums(np.array([1.0]), zero, none), sums(np.array([5.0]), zero, at_release)
    (None, array([[1.5, 0. ]]))
    """

    # "If `cell` and `at_release` are functions of public coins, of counts (how many values each
    # cell has got since it was emptied) and of earlier releases alone"
    needs = SUMMED | {Fact.CELL, Fact.PRESENCE}
    controls = (1, 2)

    def __init__(
        self,
        streams: Streams,
        cells: int,
        *,
        low: float,
        high: float,
        epsilon: float,
        delta: float = 0.0,
        uses: int,
    ) -> None:
        privacy_target(epsilon, delta)
        self._shares = ArmRewards(cells, low, high)
        self.sensitivity, self.uses = self._shares.sensitivity, uses
        epsilon *= 1 - 1e-12  # leaves room for `ledger.MOVEMENT_ROUNDING` within the target
        self.spend: Spend = LaplaceSpend(epsilon, note="Laplace sums released by counts")
        law: Laplace | Gaussian = Laplace(1 / epsilon)
        if (mu := gaussian_mu(epsilon, delta)) > 0:  # which leaves room for it
            self.spend = GaussianSpend(mu, "Gaussian sums released by counts")
            law = Gaussian(1 / mu)
        self._noise = Paced(law.sampler(streams, "noise of sums", (cells,)))
        self._pending: Floats = np.zeros((len(streams), cells))  # exact: never leaves here

    def query(self, *datum: AnyArray) -> Floats:
        value, cell, _ = datum
        if cell.ndim == 2:  # the totals of many rounds, and their counts
            return np.fmin(np.fmax(value, 0.0), cell)  # 0 for what is no number
        return self._shares.total(cell[None], value[None])

    def _release(self, *datum: AnyArray) -> Floats | None:
        self._pending += self.query(*datum)
        at_release = datum[2]
        if not np.count_nonzero(at_release):
            return None
        noise = self._noise(np.asarray(at_release.any(axis=1)))
        release = np.where(at_release, self._pending + noise, 0.0)
        self._pending[at_release] = 0.0
        return release


@dataclass(frozen=True, kw_only=True)
class OnePointEstimates:
    """Sum of gradient estimates (dim / zeta) (clip(value, low, high) - offset) u, u a unit vector.

    Guarantee:
        Replacing one user moves the sum by at most (high - low) dim / zeta in L2, the offset being
        public, because `|u| = 1`. The norm of u is not checked: u is the agent's own public draw
        and depends on no user's data. Non-finite values become `low`.
    """

    # "u is the agent's own public draw and depends on no user's data"
    needs = NO_FACTS
    controls = (1,)

    dim: int
    """number of coordinates of an estimate"""
    zeta: float
    """radius of the sphere on which the value was taken, > 0"""
    low: float
    high: float
    offset: float = 0.0
    """public number subtracted from values; (low + high) / 2 makes estimates shortest"""
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        positive("zeta", self.zeta)
        _check_range(self.low, self.high, self.offset)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def sensitivity(self) -> float:
        return (self.high - self.low) * self.dim / self.zeta

    @property
    def bound(self) -> float:
        """Largest norm of an estimate, `dim` / `zeta` times the largest `|value - offset|`."""
        return largest(self.low, self.high, self.offset) * self.dim / self.zeta

    def total(self, *batch: AnyArray) -> Floats:
        # Values y (n, R) and directions u (n, R, dim) -> (R, dim)
        y, u = batch
        return self.estimate(clip_range(y, self.low, self.high) - self.offset, u)

    def estimate(self, values: Floats, u: Floats) -> Floats:
        """Return `dim` / `zeta` times the sum over n of value (n, R) x direction (n, R, dim)."""
        # contiguous and replica by replica, so that R is not in the arithmetic
        by_replica = np.ascontiguousarray(u.transpose(1, 0, 2), dtype=np.float64)
        summed: Floats = np.vecmat(np.ascontiguousarray(values.T), by_replica)
        return self.dim / self.zeta * summed


class LocalValues(Mechanism):
    """Locally private values y, each released once with its own noise; no server is trusted::

        release clip(y, low, high) - offset + noise,       noise Laplace(s W) or N(0, s^2 W^2)

    with s = `noise_multiplier` and W = high - low.

    Guarantee:
        Replacing a user moves her one value by at most W, and each value is released once, so all
        releases together, for every horizon, cost as much as one release (parallel composition):
        epsilon = 1 / s, or mu = 1 / s with Gaussian noise.
    """

    # "each value is released once"
    needs = frozenset({Fact.ONCE})

    releases_sum = True
    trust = LOCAL_TRUST

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

    def query(self, *datum: AnyArray) -> Floats:
        (y,) = datum
        return clip_range(y, self._low, self._high) - self._offset

    def _release(self, *datum: AnyArray) -> Floats:
        value, noise = self.query(*datum), self._noise()
        if value.shape != noise.shape:  # broadcast, a value would be released more than once
            raise InputError(f"Expected values of shape {noise.shape}, got {value.shape}.")
        return value + noise


class LocalSums:
    """Prefix sums of gradient estimates from locally private values, computed by post-processing.

    A call takes a value (R,) and its direction (R, dim), a unit vector, and returns the sum of all
    estimates so far after every `refresh_every` rounds, else None, as `PrefixSum` does.
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
        """Privacy cost of all releases, equal to the cost of the noisy values."""
        return self._values.spend

    def __call__(self, y: Floats, u: Floats) -> Floats | None:
        """Add values (R,) with unit vectors (R, dim); return the sum (R, dim) at a batch's end."""
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
    """Return the largest `|value - offset|` of values in [low, high]."""
    return max(abs(low - offset), abs(high - offset))


def _check_range(low: float, high: float, offset: float) -> None:
    if not -inf < low < high < inf:
        raise InputError(f"Expected finite low={low} < high={high}.")
    inside("offset", offset, -inf, inf, ends=False)


NodeLaw: TypeAlias = Literal["gaussian", "laplace"]


class RestartingTrees(Mechanism):
    """Noisy running sums of the losses of B chosen experts, restarted per replica.

    Each chosen expert has a binary tree in Fenwick form (`prefix_sums.Tree`). In round s since the
    replica's restart (s = 1, 2, ...) its sum has noise N_s, with lowbit(s) = s & -s::

        N_s = z_s + N_{s - lowbit(s)},       z_s the round's fresh noise;

        call(losses (R, d), chosen (R, B), restart (R,) bool) -> sums (R, B)

    Losses are clipped to [0, 1], non-finite ones to 0. `chosen` holds indices of the d experts; -1
    is no expert, with loss 0. The last round's call returns None, as no action follows.

    Guarantee:
        If chosen and restart are public or functions of earlier releases (and of coins that know no
        data), and chosen changes at restarts only, then all releases together cost `spend` for
        replacing one round's losses. *Proof.* Given the releases before it, the round's B losses
        are all that differs: every other round adds the same losses to the same sums. The B losses
        enter the sums of one segment, between two restarts, in one leaf of its tree. A leaf is in
        at most h = bit_length(T - 1) nodes, as no segment has more than T - 1 leaves that are
        released; all noises z are fresh, so these are h releases of B numbers, each moved by 1 at
        most: B h Laplace mechanisms, or one Gaussian mechanism moved by sqrt(B h). Other segments
        and their chosen experts are functions of those releases. The proof holds for adaptively
        chosen losses too, by a triangular change of variables.

    Args:
        streams: the random streams of the replicas.
        name: name of the random stream of the noise.
        width: B, number of experts that are chosen at a time.
        law: law of a node's noise.
        scale: standard deviation or Laplace scale of a node's noise; 0 adds none.
        horizon: T, number of calls.

    >>> trees = RestartingTrees(Streams([0]), "t", width=1, law="laplace", scale=0.0, horizon=5)
    >>> losses, first, new = np.array([[1.0, 0.5]]), np.array([[0]]), np.array([[1]])
    >>> same, restart = np.array([False]), np.array([True])
    >>> [trees(losses, first, same).item(), trees(losses, first, same).item()]
    [1.0, 2.0]
    >>> [trees(losses, new, restart).item(), trees(losses, new, same).item()]
    [0.5, 1.0]
    """

    # "If chosen and restart are public or functions of earlier releases"
    needs = SUMMED
    controls = (1, 2)

    def __init__(
        self,
        streams: Streams,
        name: str,
        *,
        width: int,
        law: NodeLaw,
        scale: float,
        horizon: int,
    ) -> None:
        whole("width", width, 1)
        whole("horizon", horizon, 1)
        one_of("law", law, ("gaussian", "laplace"))
        at_least("scale", scale, 0)
        R, nodes = len(streams), self.nodes(horizon)
        note = f"{name}: {width} restarting trees, {law} nodes"
        ratio = 1 / scale if scale else inf
        self.spend: GaussianSpend | LaplaceSpend
        if law == "gaussian":
            self.spend = GaussianSpend(sqrt(width * nodes) * ratio if nodes else 0.0, note)
        else:
            self.spend = LaplaceSpend(ratio, width * nodes, note)
        self.sensitivity, self.uses = sqrt(width), horizon
        made = Gaussian(scale) if law == "gaussian" else Laplace(scale)
        self._noise = made.sampler(streams, name, (width,))
        self._age = np.zeros(R, dtype=np.int64)  # s
        self._sum = np.zeros((R, width))  # exact: never leaves here
        self._prefix = np.zeros((nodes + 1, R, width))  # [lowbit of s']: N_s' that s builds on

    @staticmethod
    def nodes(horizon: int) -> int:
        """Return the largest number of tree nodes that one round enters."""
        return (horizon - 1).bit_length()

    def query(self, *datum: AnyArray) -> Floats:
        losses, chosen = datum[:2]
        chosen_losses = np.take_along_axis(losses, np.maximum(chosen, 0), axis=1)
        return np.where(chosen < 0, 0.0, clip_range(chosen_losses, 0.0, 1.0))

    def _release(self, *datum: AnyArray) -> Floats | None:
        restart = datum[2]
        if self._used == self.uses:
            return None
        self._sum = np.where(restart[:, None], 0.0, self._sum) + self.query(*datum)
        self._age = np.where(restart, 0, self._age) + 1
        everyone, below = rows(len(restart)), self._age & (self._age - 1)
        before = np.where(below[:, None] > 0, self._prefix[_level(below), everyone], 0.0)
        N = self._noise() + before
        self._prefix[_level(self._age), everyone] = N
        return self._sum + N


def _level(s: Ints) -> Ints:
    """Return the index of the lowest set bit of each integer s, and 0 for s = 0."""
    return np.maximum(np.frexp((s & -s).astype(float))[1] - 1, 0).astype(np.int64)
