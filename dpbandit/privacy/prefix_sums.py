"""Running sums under continual observation: exact sum inside, noise of the prefix on top.

A `PrefixSum` adds up a statistic of the users and releases the sum after every `refresh_every`
rounds. Its noise never depends on data: an agent sees S_t + N_t at release t, with N drawn ahead.
A factorisation says how noises make up N_1, N_2, ...; started, it draws them::

    factorisation      N_t                                                      noise law
    Tree, Padded       the nodes of a binary tree that make up [1, t]           any
    BLT                (A C^-1 z)_t, C close to the square root of prefix sums  Gaussian
    SquareRoot         the same with the square root itself, O(m) memory        Gaussian
    Banded(width)      its first `width` diagonals                              Gaussian
    Exact              0                                                        none

`factors` has more of them. Only leaves that can influence an action count: with T rounds and one
release after every k of them the last useful release is number m = (T - 1) // k; later rounds tick
and release nothing.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from math import inf, prod, sqrt
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, cast

import numpy as np
import scipy

from dpbandit.base import AnyArray, Draws, Floats, InputError, Streams, shaped, whole
from dpbandit.privacy.mechanism import Mechanism, Statistic
from dpbandit.privacy.noise import Gaussian, KNorm, Laplace
from dpbandit.privacy.people import leaves_norm, tree_norm
from dpbandit.privacy.premises import SUMMED
from dpbandit.privacy.spends import Spend

NodeLaw: TypeAlias = Gaussian | Laplace | KNorm
NoiseLaw: TypeAlias = Literal["gaussian", "laplace", "k-norm"]
LAWS: tuple[NoiseLaw, ...] = ("gaussian", "laplace", "k-norm")
LONGEST_BLT = 10**6
"""Releases for which the five buffers of `BLT` are within 0.42 % of the optimum."""


class PrefixNoise(Protocol):
    """The noise N_1, N_2, ... of successive prefixes: a started factorisation, or several."""

    @property
    def stddev(self) -> float:
        """Per-coordinate standard deviation of the latest N_t, a public number."""
        ...

    def __call__(self) -> Floats:
        """N_t of the next release, `(R, *shape)`."""
        ...


class PrefixSum(Mechanism):
    """The mechanism of a running sum: raw rounds go in, noisy prefix sums come out.

    Args:
        statistic: the clipped function of a round that is summed.
        noise: a started factorisation.
        spend: what all releases together cost one user.
        horizon: rounds T that will be fed.
        refresh_every: rounds k from one release to the next.
        order: the norm in which the statistic's sensitivity is meant.

    A call returns the new release `(R, *shape)`, or None in rounds without one.

    Guarantee:
        Replacing a user moves one leaf, that of her round on a public clock, by at most the
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
            self._collect(last + 1 - len(data[0]), data)
            if last < self._every - 1:
                return None
            total = self._statistic.total(*self._pending)
        if total.shape[1:] != self._statistic.shape:  # else noise would be broadcast, not added
            raise InputError(
                f"Expected rounds that sum to shape {('R', *self._statistic.shape)}, "
                f"got {total.shape}: is what the agent was told of the right shape?"
            )
        self._exact += total
        noise = self._noise()
        if noise.shape:  # else there is none: the same noise in two rows would cancel
            shaped("sum", self._exact, noise.shape)
        return self._exact + noise * self._statistic.units

    def _collect(self, place: int, data: tuple[AnyArray, ...]) -> None:
        if not self._pending:
            # float64 whatever the first user sent: her dtype must not round everybody else
            self._pending = [np.empty((self._every, *a.shape[1:])) for a in data]
        for pending, array in zip(self._pending, data, strict=True):
            pending[place : place + len(array)] = array


def leaves(horizon: int, refresh_every: int) -> int:
    """m, the number of releases that come before some action."""
    whole("horizon", horizon, 1)
    whole("refresh_every", refresh_every, 1)
    return (horizon - 1) // refresh_every


def mu_after(column_norm: float, noise_multiplier: float) -> float:
    """GDP of all releases: column norm over noise stddev / sensitivity, infinity without noise."""
    if column_norm == 0:
        return 0.0
    return column_norm / noise_multiplier if noise_multiplier else inf


@dataclass(unsafe_hash=True)
class Factorisation:
    """How noises make up N_1, N_2, ...; `start` and `of` return a copy that draws them.

    Guarantee:
        A user moves what is noised by at most `column_norm(m)` times the sensitivity, also when the
        stream is adaptive (Denisov, McMahan, Rush, Smith and Thakurta, NeurIPS 2022).
    """

    word: ClassVar[str]
    """its name in settings, notes and streams"""
    laws: ClassVar[tuple[NoiseLaw, ...]] = LAWS
    bounded: ClassVar[bool] = False
    """whether N depends on how many releases there will be"""
    stddev = 0.0
    """per-coordinate standard deviation of the latest N_t, a public number"""
    source, scale, most, t = cast(Any, None), 0.0, cast("int | None", None), 0

    def nodes(self, leaves: int) -> int | None:
        """How many noises one user is in; None: they are correlated."""
        raise NotImplementedError

    def column_norm(self, leaves: int) -> float:
        """The Euclidean norm of what she touches, in units of her own contribution."""
        return sqrt(self.nodes(leaves) or 0)

    def person_norm(self, leaves: int, every: int, cap: int, separation: int) -> float:
        """That of `cap` rounds of one person, any two `separation` apart, where `every` rounds are
        a leaf: exact, or from above; group privacy where nothing better is known."""
        return cap * self.column_norm(leaves)

    def noises(self, leaves: int, releases: int | None = None) -> tuple[float, int]:
        """How far she moves one noise, in units of her own contribution, and how many she does, in
        the first `releases` of all that show her: from above; all where nothing is known."""
        return 1.0, self.nodes(leaves) or 0

    def early_norm(self, leaves: int, releases: int) -> float:
        """The Euclidean norm of what she touches in those: exact, or from above."""
        return sqrt(self.noises(leaves, releases)[1])

    def start(
        self, law: NodeLaw, streams: Streams, shape: tuple[int, ...], leaves: int
    ) -> "Factorisation":
        """The noise `(R, *shape)` of `leaves` releases, its nodes drawn from `law`."""
        node = law.sampler(streams, f"{self.word} noise", shape)
        return self.of(node, stddev=sqrt(law.variance(prod(shape))), leaves=leaves)

    def of(self, source: Any, *, stddev: float, leaves: int | None = None) -> Self:
        """A copy that draws; where N depends on `leaves`, one release more raises `InputError`.

        Args:
            source: draws the noise of one node, `(R, *shape)`, or standard normals for what is
                correlated.
            stddev: of a node in each coordinate, or what normals are multiplied by.
            leaves: releases m that the noise was calibrated for.
        """
        run = copy(self)
        run.source, run.scale, run.most, run.t, run.stddev = source, stddev, leaves, 0, 0.0
        run.begin()
        return run

    def begin(self) -> None:
        """Nothing is remembered before the first release."""

    def step(self) -> int:
        """Count a release and return t."""
        if self.bounded and self.t == self.most:
            raise InputError(
                f"This {self.word} noise is calibrated for {self.most} releases, not more."
            )
        self.t += 1
        return self.t

    def __call__(self) -> Floats:
        raise NotImplementedError


class Exact(Factorisation):
    """No noise: the non-private counterpart of every other factorisation."""

    word = "exact"

    def nodes(self, leaves: int) -> int:
        return 0

    def __call__(self) -> Floats:
        return np.zeros(())


class Tree(Factorisation):
    """The binary tree in Fenwick form, one noise per leaf.

    Chan, Shi and Song, "Private and continual release of statistics", ACM TISSEC 2011; Dwork,
    Naor, Pitassi and Rothblum, STOC 2010. With lowbit(t) = t & -t, node t covers the leaves
    (t - lowbit(t), t], and::

        N_t = z_t + N_{t - lowbit(t)}:          the sum of popcount(t) noises.

    A leaf lies in at most bit_length(m) nodes that some prefix uses (leaf 1 attains it); the
    right children that no prefix uses are never drawn. Only the N at the bits of t are kept.
    """

    word = "tree"

    def nodes(self, leaves: int) -> int:
        return int(leaves).bit_length()  # NumPy's integers may have no such method

    def person_norm(self, leaves: int, every: int, cap: int, separation: int) -> float:
        # By `tree_norm`: left nodes alone have noises
        return tree_norm(leaves, cap, separation, every)

    def noises(self, leaves: int, releases: int | None = None) -> tuple[float, int]:
        # Of leaf 1, as if there were no more: the nodes of leaf t are t, t + lowbit(t), ..., each
        # step at least twice the one before, so that number i is at least t + 2^i - 1
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
    """Tree noise plus fresh noises, so that each N_t is a sum of exactly h = bit_length(m).

    Agarwal and Singh, "The price of differential privacy for online learning", ICML 2017: their
    regret proof for oblivious linear losses needs identically distributed prefixes, nothing else
    does. It costs noise and h - popcount(t) draws more: on average twice the variance of the tree::

        t = 5 = 101b, h = 3:    N_5 = z[1-4] + z[5] + one fresh noise

    Padding is post-processing: it belongs to no leaf.
    """

    word = "padded"
    bounded = True
    person_norm = Factorisation.person_norm

    def begin(self) -> None:
        super().begin()
        self.padding: Floats = np.zeros(())
        """the fresh noises in the latest N_t; they protect nobody, an audit may take them away"""

    def __call__(self) -> Floats:
        N = unpadded = super().__call__()
        height = cast(int, self.most).bit_length()
        for _ in range(height - self.t.bit_count()):
            N = N + self.source()
        self.padding, self.stddev = N - unpadded, sqrt(height) * self.scale
        return N


class Correlated(Factorisation):
    """Noises of all rounds are correlated, and so Gaussian: prefix sums A = B C, both Toeplitz."""

    laws = ("gaussian",)
    variance = 0.0
    """of the latest N_t, in units of that of a normal"""

    def nodes(self, leaves: int) -> None: ...

    def column(self, leaves: int) -> Floats:
        """c, the first of C, (leaves,): falling, >= 0; each of the others is it, later."""
        raise NotImplementedError

    def column_norm(self, leaves: int) -> float:
        return sqrt(float(np.square(self.column(leaves)).sum()))

    def early_norm(self, leaves: int, releases: int) -> float:
        # Of the first entries of a column, as if there were no more
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
        """Count a release whose noise has one more entry of B, the squares of which add up."""
        self.variance += response**2
        self.stddev = self.scale * sqrt(self.variance)


@cache
def coefficients(count: int) -> Floats:
    """c_0 = 1, c_k = c_{k-1} (2k - 1) / (2k), so that (1 - x)^(-1/2) = sum c_k x^k (read-only)."""
    c = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / np.arange(1, max(1, count))]))[:count]
    c.flags.writeable = False
    return c


class SquareRoot(Correlated):
    """The lower-triangular Toeplitz C with C C = A: N_t = sum over k < t of c_k z_{t-k}.

    Henzinger, Upadhyay and Upadhyay, "Almost tight error bounds on differentially private continual
    counting", SODA 2023; Fichtenberger, Henzinger and Upadhyay, ICML 2023. `|c|` grows like
    sqrt(ln(m) / pi + 1.0662).

    All m noises are drawn at the first release and convolved one replica at a time, O(m log m):
    memory is m numbers a coordinate. `BLT` has the same noise within half a percent and remembers
    five; this is what it is compared with.
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
    """The square root of prefix sums with `width` diagonals, the others 0.

    Kalinin and Lampert, "Banded square root matrix factorization for differentially private model
    training", NeurIPS 2024. With c of `SquareRoot`::

        C_ts = c_{t-s} for t - s < width, else 0
        y_t = z_t - sum over 0 < k < width of c_k y_{t-k}       releases are S + B z, B = A C^-1
        N_t = N_{t-1} + y_t

    `width` numbers a coordinate are in memory. Width 1 is fresh noise on every leaf, width m the
    square root itself. Rows far apart do not share noise: users who come back after `width`
    releases or more move C x as if they were different users.
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
    """Without the oldest entry of `axis` and with the latest."""
    if past.shape[axis] == 0:
        return past
    past = np.roll(past, -1, axis)
    past[(slice(None),) * axis + (-1,)] = latest
    return past


_BUFFERS: Floats = np.array(
    [  # buf_decay, output_scale, inv_decay, inv_scale
        [0.9999987714095605, 0.0015732828412684601, 0.9999927670422909, -1.9150090502830364e-08],
        [0.9999678068130595, 0.005305572615685573, 0.9998597716263664, -1.5582637493118992e-06],
        [0.9993930757878208, 0.022858482791024832, 0.997374503100134, -0.00012611873164624493],
        [0.9886822039145352, 0.09766335481270833, 0.9519100982990796, -0.009885902243013814],
        [0.8076882151769461, 0.32888772806958194, 0.39030451190378235, -0.4462748227417692],
    ]
)
_BUF_DECAY, _OUTPUT_SCALE, _INV_DECAY, _INV_SCALE = np.ascontiguousarray(_BUFFERS.T)
_BLOCK = 16
"""Releases advanced by one matrix product. Part of the arithmetic: never derived from R."""


def _block_matrix() -> Floats:
    """One block of the recursion as a matrix: (z of the block, buffers, N) -> (N_1.., buffers, N).

    Found by running the recursion on the columns of the identity.
    """
    z, buffers, N = np.split(np.eye(_BLOCK + 6), [_BLOCK, _BLOCK + 5])
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
    2024. Within half a percent of the best there is::

        c_0 = 1,  c_{k+1} = sum_j output_scale_j buf_decay_j^k         (C^-1 alike, with inv_*)
        N_t = N_{t-1} + z_t + sum_j inv_scale_j buf_j,    buf_j <- inv_decay_j buf_j + z_t

    in blocks of 16, one small matrix product a replica.
    """

    word = "blt"
    matrix = _block_matrix()

    def column(self, leaves: int) -> Floats:
        powers = _BUF_DECAY[:, None] ** np.arange(max(0, leaves - 1))
        return np.concatenate([[1.0], _OUTPUT_SCALE @ powers])[:leaves]

    def column_norm(self, leaves: int) -> float:
        # `|c|` over `leaves` <= 10^6 entries, in closed form
        if leaves > LONGEST_BLT:
            raise InputError(f"Expected at most {LONGEST_BLT} releases of a BLT, got {leaves}.")
        if leaves == 0:
            return 0.0
        decay = np.outer(_BUF_DECAY, _BUF_DECAY)
        scale = np.outer(_OUTPUT_SCALE, _OUTPUT_SCALE)
        return sqrt(1 + float((scale * (1 - decay ** (leaves - 1)) / (1 - decay)).sum()))

    def row_norm(self, leaves: int) -> float:
        """The stddev of N_leaves, the largest so far, in units of that of a z."""
        impulse, variance = np.eye(_BLOCK + 6)[0], 0.0
        for start in range(0, leaves, _BLOCK):
            response = self.matrix @ impulse
            variance += float(np.square(response[: min(_BLOCK, leaves - start)]).sum())
            impulse = np.concatenate([np.zeros(_BLOCK), response[_BLOCK:]])
        return sqrt(variance)

    def begin(self) -> None:
        self._place = _BLOCK
        shape = self.source.replicas, _BLOCK + 6, *self.source.shape
        self._input: Floats = np.zeros(shape)  # z, buffers, N
        self._output: Floats = np.empty(0)  # N of 16 releases, buffers, N
        self._impulse = np.eye(_BLOCK + 6)[0]  # the same recursion fed with z = 1, 0, 0, ...
        self._responses: Floats = np.empty(0)  # B_t1, whose squares add up to the variance

    def __call__(self) -> Floats:
        self.step()
        if self._place == _BLOCK:
            self._advance()
        i = self._place
        self._place += 1
        self.grow(self._responses[i])
        return self.scale * self._output[:, i]

    def _advance(self) -> None:
        R, height = self._input.shape[:2]
        self.source.fill(self._input[:, :_BLOCK])
        output = self.matrix @ self._input.reshape(R, height, -1)  # (R, 22, n)
        self._output = output.reshape(self._input.shape)
        self._input[:, _BLOCK:] = self._output[:, _BLOCK:]
        self._place = 0
        response = self.matrix @ self._impulse
        self._responses = response[:_BLOCK]
        self._impulse = np.concatenate([np.zeros(_BLOCK), response[_BLOCK:]])

    @staticmethod
    def side_by_side(parts: Sequence["BLT"], normals: Draws) -> "BLT":
        """Noises of one scale that have taken the same steps, > 0, as one: `(R, parts, *shape)`.

        What they draw from now on are the `normals`.
        """
        joined = copy(parts[0])
        joined.source = normals
        joined._input = np.stack([part._input for part in parts], axis=2)
        joined._output = np.stack([part._output for part in parts], axis=2)
        return joined
