"""Running sums under continual observation: an exact sum plus the noise of the prefix.

A `PrefixSum` adds up a statistic of the users and releases the sum after every `refresh_every`
rounds. Its noise never depends on data: an agent observes S_t + N_t, sum plus noise, at release t.
A factorisation defines N_1, N_2, ... as combinations of independent noises, and draws them::

    factorisation      N_t                                                      noise law
    Tree, Padded       the nodes of a binary tree that make up [1, t]           any
    BLT                (A C^-1 z)_t, C close to the square root of prefix sums  Gaussian
    SquareRoot         the same with the square root itself, O(m) memory        Gaussian
    Banded(width)      the first `width` diagonals of the square root           Gaussian
    Exact              0                                                        none

`factors` has more factorisations. Only leaves, the rounds between two releases, that can influence
an action count: with T rounds and a release after every k of them the last useful one is number m =
(T - 1) // k; later rounds release nothing.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from math import inf, prod, sqrt
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, cast

import numpy as np
import scipy

from dpbandit.base import (
    AnyArray,
    Draws,
    Floats,
    InputError,
    Ints,
    Streams,
    rounds_in,
    shaped,
    whole,
)
from dpbandit.privacy.mechanism import Mechanism, Statistic, counted_total
from dpbandit.privacy.noise import Gaussian, KNorm, Laplace
from dpbandit.privacy.people import leaves_norm, tree_norm
from dpbandit.privacy.premises import SUMMED
from dpbandit.privacy.spends import Spend

NodeLaw: TypeAlias = Gaussian | Laplace | KNorm
NoiseLaw: TypeAlias = Literal["gaussian", "laplace", "k-norm"]
LAWS: tuple[NoiseLaw, ...] = ("gaussian", "laplace", "k-norm")  # of the noise of prefix sums
MAX_BLT_LEAVES = 10**6
"""Largest number of releases of `BLT`, for which it is within 0.42 % of the optimum"""


class PrefixNoise(Protocol):
    """Protocol of the noise N_1, N_2, ... of successive prefixes."""

    @property
    def stddev(self) -> float:
        """Standard deviation of the latest noise per coordinate, a public number."""
        ...

    def __call__(self) -> Floats:
        """Return the noise of the next release, `(R, *shape)`."""
        ...


class PrefixSum(Mechanism):
    """Mechanism of a running sum: takes raw rounds and returns noisy prefix sums.

    Args:
        statistic: the clipped function of a round that is summed.
        noise: noise of the releases, from `Factorisation.start`.
        spend: privacy cost of all releases together for one user.
        horizon: T, the number of rounds.
        refresh_every: k, rounds from one release to the next.
        order: order of the norm of the statistic's sensitivity.

    A call returns the new release `(R, *shape)`, or None in rounds without one.

    Guarantee:
        Replacing a user moves one leaf, the leaf of her round on a public clock, by at most the
        statistic's sensitivity, whatever is fed; all releases together cost `spend`, also where
        later rounds depend on earlier releases.
    """

    # "Replacing a user moves one leaf"
    needs = SUMMED

    releases_sum = True

    def __init__(
        self,
        statistic: Statistic,
        noise: PrefixNoise,
        spend: Spend,
        *,
        horizon: int,
        refresh_every: int = 1,
        order: float = 2,
    ) -> None:
        self.spend, self.sensitivity, self.uses = spend, statistic.sensitivity, horizon
        self.order = order
        self.leaves = leaves(horizon, refresh_every)
        self._statistic, self._noise, self._every = statistic, noise, refresh_every
        self._pending: list[Floats] = []
        self._counted = 0  # rounds of this leaf that came as counts
        self._exact: Floats | float = 0.0

    @property
    def stddev(self) -> float:
        return self._noise.stddev

    def query(self, *datum: AnyArray) -> Floats:
        return self._statistic.total(*(array[None] for array in datum)) / self._statistic.units

    @property
    def rounds_to_release(self) -> int:
        batch, place = divmod(self._used, self._every)
        return self._every - place if batch < self.leaves else self.uses - self._used

    def _release(self, *datum: AnyArray) -> Floats | None:
        return self._release_several(*(np.asarray(array)[None] for array in datum))

    def _release_several(self, *data: AnyArray) -> Floats | None:
        batch, last = divmod(self._used - 1, self._every)
        if batch >= self.leaves:
            return None
        if self._every == 1:
            total = self._statistic.total(*(np.asarray(a, dtype=np.float64) for a in data))
        else:
            self._collect(last + 1 - len(data[0]) - self._counted, data)
            if last < self._every - 1:
                return None
            total = self._total_pending()
            self._counted = 0
        if total.shape[1:] != self._statistic.shape:  # else noise would be broadcast, not added
            raise InputError(
                f"Expected rounds that sum to shape {('R', *self._statistic.shape)}, "
                f"got {total.shape}: check the shapes of context, action and reward."
            )
        self._exact += total
        return self._release_sum()

    def _release_counted(self, counts: Ints, *data: AnyArray) -> Floats | None:
        batch, last = divmod(self._used - 1, self._every)
        if batch >= self.leaves:
            return None
        self._exact += counted_total(self._statistic, counts, data)
        self._counted += rounds_in(counts.shape)
        if last < self._every - 1:
            return None
        if self._counted < self._every:
            self._exact += self._total_pending()
        self._counted = 0
        return self._release_sum()

    def _total_pending(self) -> Floats:
        held = self._every - self._counted
        return self._statistic.total(*(pending[:held] for pending in self._pending))

    def _release_sum(self) -> Floats:
        noise = self._noise()
        if not noise.shape:  # there is none: the same noise in two rows would cancel
            return self._exact + noise
        shaped("sum", self._exact, noise.shape)
        release: Floats = noise * self._statistic.units
        release += self._exact
        return release

    def _collect(self, place: int, data: tuple[AnyArray, ...]) -> None:
        if not self._pending:
            # float64 whatever the first user sent: her dtype must not round everybody else
            self._pending = [np.empty((self._every, *a.shape[1:])) for a in data]
        for pending, array in zip(self._pending, data, strict=True):
            pending[place : place + len(array)] = array


def leaves(horizon: int, refresh_every: int) -> int:
    """Return the number of releases that precede at least one action."""
    whole("horizon", horizon, 1)
    whole("refresh_every", refresh_every, 1)
    return (horizon - 1) // refresh_every


def mu_after(column_norm: float, noise_multiplier: float) -> float:
    """Return the mu of all releases, column norm / noise multiplier, infinite without noise."""
    if column_norm == 0:
        return 0.0
    return column_norm / noise_multiplier if noise_multiplier else inf


@dataclass(unsafe_hash=True)
class Factorisation:
    """Base class of factorisations: prefix noise N_1, N_2, ... as sums of weighted noises.

    `start` and `of` return a copy that draws the noises.

    Guarantee:
        A user moves the vector to which noise is added by at most `column_norm` times the
        sensitivity, also when the stream is adaptive (Denisov, McMahan, Rush, Smith and Thakurta,
        NeurIPS 2022).
    """

    word: ClassVar[str]
    """name of the factorisation in settings, notes and random streams"""
    laws: ClassVar[tuple[NoiseLaw, ...]] = LAWS
    bounded: ClassVar[bool] = False
    """True if the noise depends on the number of releases to come"""
    stddev = 0.0
    """standard deviation of the latest noise per coordinate, a public number"""
    source, scale, most, t = cast(Any, None), 0.0, cast("int | None", None), 0

    def nodes(self, leaves: int) -> int | None:
        """Return the number of noises that one user enters; None if noises are correlated."""
        raise NotImplementedError

    def column_norm(self, leaves: int) -> float:
        """Return the l_2 change of the noised vector by one user, per unit of her contribution."""
        return sqrt(self.nodes(leaves) or 0)

    def person_norm(self, leaves: int, every: int, cap: int, separation: int) -> float:
        """Return a bound on the l_2 change by `cap` rounds of one person, `separation` or more
        apart, with `every` rounds a leaf; group privacy where nothing better is known."""
        return cap * self.column_norm(leaves)

    def noises(self, leaves: int, releases: int | None = None) -> tuple[float, int]:
        """Return bounds on the change of one noise by a user, per unit of her contribution, and on
        the number of noises she enters, in the first `releases` that contain her (None: all)."""
        return 1.0, self.nodes(leaves) or 0

    def early_norm(self, leaves: int, releases: int) -> float:
        """Return a bound on the l_2 change by a user of the first `releases` that contain her."""
        return sqrt(self.noises(leaves, releases)[1])

    def start(
        self, law: NodeLaw, streams: Streams, shape: tuple[int, ...], leaves: int
    ) -> "Factorisation":
        """Return the noise `(R, *shape)` of `leaves` releases, its nodes drawn from `law`."""
        node = law.sampler(streams, f"{self.word} noise", shape)
        return self.of(node, stddev=sqrt(law.variance(prod(shape))), leaves=leaves)

    def of(self, source: Any, *, stddev: float, leaves: int | None = None) -> Self:
        """Return a copy that draws noise; if `bounded`, for `leaves` releases at most.

        Args:
            source: noise of one node, `(R, *shape)`; for `Correlated` noise, standard normals.
            stddev: standard deviation of a node per coordinate, or the factor of normals.
            leaves: number of releases for which the noise is calibrated.
        """
        run = copy(self)
        run.source, run.scale, run.most, run.t, run.stddev = source, stddev, leaves, 0, 0.0
        run.begin()
        return run

    def begin(self) -> None:
        """Set the state before the first release, by default none."""

    def step(self) -> int:
        """Count a release and return its number t, from 1 on."""
        if self.bounded and self.t == self.most:
            raise InputError(
                f"This {self.word} noise is calibrated for {self.most} releases, not more."
            )
        self.t += 1
        return self.t

    def __call__(self) -> Floats:
        raise NotImplementedError


class Exact(Factorisation):
    """Factorisation without noise, the non-private counterpart of all others."""

    word = "exact"

    def nodes(self, leaves: int) -> int:
        return 0

    def __call__(self) -> Floats:
        return np.zeros(())


class Tree(Factorisation):
    """Binary tree in Fenwick form, one noise per leaf.

    Chan, Shi and Song, "Private and continual release of statistics", ACM TISSEC 2011; Dwork,
    Naor, Pitassi and Rothblum, STOC 2010. With lowbit(t) = t & -t, node t covers the leaves
    (t - lowbit(t), t], and::

        N_t = z_t + N_{t - lowbit(t)}:          the sum of popcount(t) noises.

    A leaf lies in at most bit_length(m) nodes that prefixes of m leaves use (leaf 1 attains it);
    right children, which no prefix uses, are never drawn. Only the N at the bits of t are stored.
    """

    word = "tree"

    def nodes(self, leaves: int) -> int:
        return int(leaves).bit_length()  # NumPy's integers may have no such method

    def person_norm(self, leaves: int, every: int, cap: int, separation: int) -> float:
        # only left nodes have noises
        return tree_norm(leaves, cap, separation, every)

    def noises(self, leaves: int, releases: int | None = None) -> tuple[float, int]:
        # leaf 1 is the worst: the nodes of leaf t are t, t + lowbit(t), ..., each step at least
        # twice the one before, so that number i is at least t + 2^i - 1
        return 1.0, self.nodes(leaves if releases is None else min(leaves, releases))

    def begin(self) -> None:
        self.prefix: dict[int, Floats] = {}  # [lowbit of t']: N_t' for the t' that t builds on

    def __call__(self) -> Floats:
        t = self.step()
        below = t & (t - 1)  # t - lowbit(t)
        N: Floats = self.source()
        if below:
            N = N + self.prefix[below & -below]
        self.prefix[t & -t] = N
        self.stddev = sqrt(t.bit_count()) * self.scale
        return N


class Padded(Tree):
    """Tree noise padded with fresh noises, so that all m prefixes have h = bit_length(m) noises.

    Agarwal and Singh, "The price of differential privacy for online learning", ICML 2017: the
    regret proof for oblivious linear losses needs identically distributed prefixes. Padding takes
    h - popcount(t) more draws, and doubles the variance of the tree on average::

        t = 5 = 101b, h = 3:    N_5 = z[1-4] + z[5] + one fresh noise

    Padding is post-processing: its noises belong to no leaf.
    """

    word = "padded"
    bounded = True
    person_norm = Factorisation.person_norm

    def begin(self) -> None:
        super().begin()
        self.padding: Floats = np.zeros(())
        """sum of the fresh noises in the latest N_t, which protect nobody; an audit subtracts it"""

    def __call__(self) -> Floats:
        N = unpadded = super().__call__()
        height = cast(int, self.most).bit_length()
        for _ in range(height - self.t.bit_count()):
            N = N + self.source()
        self.padding, self.stddev = N - unpadded, sqrt(height) * self.scale
        return N


class Correlated(Factorisation):
    """Base class of correlated Gaussian noise: prefix sums A = B C, with Toeplitz matrices B, C."""

    laws = ("gaussian",)
    variance = 0.0
    """variance of the latest noise, divided by that of one normal"""

    def nodes(self, leaves: int) -> None: ...

    def column(self, leaves: int) -> Floats:
        """Return the first column of C, (leaves,), falling and >= 0; others are shifts of it."""
        raise NotImplementedError

    def column_norm(self, leaves: int) -> float:
        return sqrt(float(np.square(self.column(leaves)).sum()))

    def early_norm(self, leaves: int, releases: int) -> float:
        # the first column is the longest, cut off after `releases` entries
        return self.column_norm(min(leaves, releases))

    def person_norm(self, leaves: int, every: int, cap: int, separation: int) -> float:
        return leaves_norm(self.column(leaves), every, cap, separation)

    def start(
        self, law: NodeLaw, streams: Streams, shape: tuple[int, ...], leaves: int
    ) -> Factorisation:
        if not isinstance(law, Gaussian):
            raise InputError(f"Expected law={law!r} to be Gaussian for {self!r}.")
        normals = streams.normals(f"{self.word} noise", *shape)
        return self.of(normals, stddev=law.stddev, leaves=leaves)

    def grow(self, response: float) -> None:
        """Update the variance for a release that adds one more normal, of weight `response`."""
        self.variance += response**2
        self.stddev = self.scale * sqrt(self.variance)


@cache
def coefficients(count: int) -> Floats:
    """Return the read-only coefficients c_k of (1 - x)^(-1/2), c_k = c_{k-1} (2k - 1) / (2k)."""
    c = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / np.arange(1, max(1, count))]))[:count]
    c.flags.writeable = False
    return c


class SquareRoot(Correlated):
    """Square root C of prefix sums, N_t = sum_{k < t} c_k z_{t-k} for normals z, c `coefficients`.

    Henzinger, Upadhyay and Upadhyay, "Almost tight error bounds on differentially private continual
    counting", SODA 2023; Fichtenberger, Henzinger and Upadhyay, ICML 2023. The norm of c
    (`coefficients`) grows like sqrt(ln(m) / pi + 1.0662) with the number m of releases.

    All m noises are drawn at the first release and convolved one replica at a time, O(m log m):
    memory is m numbers a coordinate. `BLT` has the same noise within half a percent and stores
    five numbers; the exact root is its reference.
    """

    word = "square-root"
    bounded = True

    def column(self, leaves: int) -> Floats:
        return coefficients(leaves)

    def begin(self) -> None:
        self._prefixes: Floats = np.empty(0)  # N_1..N_m of every replica, (R, m, *shape)

    def __call__(self) -> Floats:
        i, m = self.step() - 1, cast(int, self.most)
        if i == 0:
            self._prefixes = self._drawn(m)
        self.grow(float(coefficients(m)[i]))
        return self.scale * self._prefixes[:, i]

    def _drawn(self, m: int) -> Floats:
        block = np.empty((self.source.replicas, m, *self.source.shape))
        self.source.fill(block)
        fft = scipy.fft
        length = fft.next_fast_len(2 * m - 1, real=True)
        spectrum = fft.rfft(coefficients(m), length).reshape(-1, *[1] * len(self.source.shape))
        for z in block:
            z[...] = fft.irfft(spectrum * fft.rfft(z, length, axis=0), length, axis=0)[:m]
        return block


@dataclass(unsafe_hash=True)
class Banded(Correlated):
    """Square root of prefix sums cut to `width` diagonals.

    Kalinin and Lampert, "Banded square root matrix factorization for differentially private model
    training", NeurIPS 2024. With c of `SquareRoot`::

        C_ts = c_{t-s} for t - s < width, else 0
        y_t = z_t - sum over 0 < k < width of c_k y_{t-k}       releases are S + B z, B = A C^-1
        N_t = N_{t-1} + y_t

    Memory is `width` numbers a coordinate. Width 1 is fresh noise on every leaf, a width of all
    leaves is the square root itself. Rows far apart do not share noise: users who come back after
    `width` releases or more move C x as if they were different users.
    """

    width: int
    word = "banded"

    def __post_init__(self) -> None:
        whole("width", self.width, 1)

    def column(self, leaves: int) -> Floats:
        c = coefficients(min(self.width, leaves))
        return np.pad(c, (0, leaves - len(c)))

    def begin(self) -> None:
        width = min(self.width, self.width if self.most is None else self.most)
        shape = self.source.replicas, self.source.shape
        self._c = coefficients(width)[:0:-1]  # c_{width-1}, .., c_1: beside the latest y last
        self._past: Floats = np.zeros((shape[0], max(0, width - 1), *shape[1]))
        self._impulses: Floats = np.zeros(max(0, width - 1))  # the recursion fed with 1, 0, 0, ...
        self._sum: Floats = np.zeros((shape[0], *shape[1]))
        self._response = 0.0

    def __call__(self) -> Floats:
        t = self.step()
        z = np.empty((len(self._sum), 1, *self.source.shape))
        self.source.fill(z)
        weights = self._c.reshape(-1, *[1] * len(self.source.shape))
        y = z[:, 0] - (weights * self._past).sum(axis=1)  # whatever R is
        impulse = float(t == 1) - float(self._c @ self._impulses)
        self._past, self._impulses = _pushed(self._past, y), _pushed(self._impulses, impulse, 0)
        self._sum = self._sum + y
        self._response += impulse
        self.grow(self._response)
        return self.scale * self._sum


def _pushed(past: Floats, latest: Floats | float, axis: int = 1) -> Floats:
    """Return `past` without the oldest entry of `axis` and with `latest` as the last."""
    if past.shape[axis] == 0:
        return past
    past = np.roll(past, -1, axis)
    past[(slice(None),) * axis + (-1,)] = latest
    return past


_BUFFERS: Floats = np.array(  # parameters of the five buffers of `BLT`, a row each
    [  # buf_decay, output_scale, inv_decay, inv_scale
        [0.9999987714095605, 0.0015732828412684601, 0.9999927670422909, -1.9150090502830364e-08],
        [0.9999678068130595, 0.005305572615685573, 0.9998597716263664, -1.5582637493118992e-06],
        [0.9993930757878208, 0.022858482791024832, 0.997374503100134, -0.00012611873164624493],
        [0.9886822039145352, 0.09766335481270833, 0.9519100982990796, -0.009885902243013814],
        [0.8076882151769461, 0.32888772806958194, 0.39030451190378235, -0.4462748227417692],
    ]
)
_BUF_DECAY, _OUTPUT_SCALE, _INV_DECAY, _INV_SCALE = np.ascontiguousarray(_BUFFERS.T)
_BLOCK_SIZE = 16
"""Number of releases advanced by one matrix product; fixed, as it decides a sum's last bits"""


def _block_matrix() -> Floats:
    """Return the matrix of a `BLT` block, (normals, buffers, noise) -> (noises, buffers, noise)."""
    z, buffers, N = np.split(np.eye(_BLOCK_SIZE + 6), [_BLOCK_SIZE, _BLOCK_SIZE + 5])
    prefixes = []
    for z_t in z:
        N = N + z_t + _INV_SCALE @ buffers
        buffers = _INV_DECAY[:, None] * buffers + z_t
        prefixes.append(N)
    return np.concatenate([*prefixes, buffers, N])


class BLT(Correlated):
    """Correlated Gaussian noise from a buffered linear Toeplitz factorisation, five buffers.

    McMahan, Xu and Zhang, "A hassle-free algorithm for private learning in practice: don't use
    tree aggregation, use BLTs" (2024); Dvijotham, McMahan, Pillutla, Steinke and Thakurta, FOCS
    2024. The noise is within half a percent of the optimum::

        c_0 = 1,  c_{k+1} = sum_j output_scale_j buf_decay_j^k     column of C (inv_*: of C^-1)
        N_t = N_{t-1} + z_t + sum_j inv_scale_j buf_j,    buf_j <- inv_decay_j buf_j + z_t

    computed in blocks of 16, by one small matrix product per replica.
    """

    word = "blt"
    matrix = _block_matrix()

    def column(self, leaves: int) -> Floats:
        powers = _BUF_DECAY[:, None] ** np.arange(max(0, leaves - 1))
        return np.concatenate([[1.0], _OUTPUT_SCALE @ powers])[:leaves]

    def column_norm(self, leaves: int) -> float:
        # `|c|` in closed form, by geometric sums
        if leaves > MAX_BLT_LEAVES:
            raise InputError(f"Expected at most {MAX_BLT_LEAVES} releases of a BLT, got {leaves}.")
        if leaves == 0:
            return 0.0
        decay = np.outer(_BUF_DECAY, _BUF_DECAY)
        scale = np.outer(_OUTPUT_SCALE, _OUTPUT_SCALE)
        return sqrt(1 + float((scale * (1 - decay ** (leaves - 1)) / (1 - decay)).sum()))

    def row_norm(self, leaves: int) -> float:
        """Return the noise stddev of release `leaves`, the largest so far, for unit normals."""
        impulse, variance = np.eye(_BLOCK_SIZE + 6)[0], 0.0
        for start in range(0, leaves, _BLOCK_SIZE):
            response = self.matrix @ impulse
            variance += float(np.square(response[: min(_BLOCK_SIZE, leaves - start)]).sum())
            impulse = np.concatenate([np.zeros(_BLOCK_SIZE), response[_BLOCK_SIZE:]])
        return sqrt(variance)

    def begin(self) -> None:
        self._place = _BLOCK_SIZE
        shape = self.source.replicas, _BLOCK_SIZE + 6, *self.source.shape
        self._input: Floats = np.zeros(shape)  # z, buffers, N
        self._output: Floats = np.empty(0)  # N of 16 releases, buffers, N
        self._impulse = np.eye(_BLOCK_SIZE + 6)[0]  # the recursion fed with z = 1, 0, 0, ...
        self._responses: Floats = np.empty(0)  # B_t1, whose squares add up to the variance

    def __call__(self) -> Floats:
        self.step()
        if self._place == _BLOCK_SIZE:
            self._advance()
        i = self._place
        self._place += 1
        self.grow(self._responses[i])
        return self.scale * self._output[:, i]

    def _advance(self) -> None:
        R, height = self._input.shape[:2]
        self.source.fill(self._input[:, :_BLOCK_SIZE])
        output = self.matrix @ self._input.reshape(R, height, -1)  # (R, 22, n)
        self._output = output.reshape(self._input.shape)
        self._input[:, _BLOCK_SIZE:] = self._output[:, _BLOCK_SIZE:]
        self._place = 0
        response = self.matrix @ self._impulse
        self._responses = response[:_BLOCK_SIZE]
        self._impulse = np.concatenate([np.zeros(_BLOCK_SIZE), response[_BLOCK_SIZE:]])

    @staticmethod
    def side_by_side(parts: Sequence["BLT"], normals: Draws) -> "BLT":
        """Return one noise `(R, parts, *shape)` that continues parts of equal scale and step > 0.

        Its further draws are from `normals`.
        """
        joined = copy(parts[0])
        joined.source = normals
        joined._input = np.stack([part._input for part in parts], axis=2)
        joined._output = np.stack([part._output for part in parts], axis=2)
        return joined
