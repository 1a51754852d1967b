"""Running sums under continual observation: exact sum inside, noise of the prefix on top.

A `PrefixSum` adds up a statistic of the users, releases the sum after every `refresh_every`
rounds, and takes its noise from one of the processes below. The noise never depends on data, so
what an agent sees at release t is S_t + N_t with N drawn ahead::

    process      N_t                                                        noise law
    TreeNoise    the nodes of a binary tree that make up [1, t]             any
    BLTNoise     (A C^-1 z)_t, C close to the square root of prefix sums    Gaussian
    ExactNoise   0                                                          none

Only leaves that can influence an action count: with T rounds and one release after every k of
them the last useful release is number m = (T - 1) // k; later rounds tick and release nothing.
"""

from collections.abc import Sequence
from math import inf, sqrt
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, shaped, whole
from dpbandit.base.random_streams import Draws
from dpbandit.privacy.accounting.spends import Spend
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.noise.samplers import Sampler
from dpbandit.privacy.statistics.moments import Statistic

LONGEST_BLT = 10**6
"""Releases for which the five buffers below are within 0.42 % of the optimum."""


class PrefixNoise(Protocol):
    """The noise N_1, N_2, ... of successive prefixes."""

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
        noise: one of the processes of this file.
        spend: what all releases together cost one user.
        horizon: rounds T that will be fed.
        refresh_every: rounds k from one release to the next.
        order: the norm in which the statistic's sensitivity is meant.

    A call returns the new release `(R, *shape)`, or None in rounds without one.
    """

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
        """Noise of the latest release in the statistic's units, a public number."""
        return self._noise.stddev

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped statistic of one round in its units, `(R, *shape)`."""
        return self._statistic.total(*(array[None] for array in datum)) / self._statistic.units

    def _release(self, *datum: npt.NDArray[Any]) -> Floats | None:
        batch, place = divmod(self._used - 1, self._every)
        if batch >= self.leaves:
            return None
        if self._every == 1:
            total = self._statistic.total(*(np.asarray(a, dtype=np.float64)[None] for a in datum))
        else:
            self._collect(place, datum)
            if place < self._every - 1:
                return None
            total = self._statistic.total(*self._pending)
        if total.shape[1:] != self._statistic.shape:  # else noise would be broadcast, not added
            raise InputError(
                f"Expected rounds that sum to shape {('R', *self._statistic.shape)}, "
                f"got {total.shape}: is what the agent was told of the right shape?"
            )
        self._exact, noise = self._exact + total, self._noise()
        if noise.shape:  # else there is none: the same noise in two rows would cancel
            shaped("sum", self._exact, noise.shape)
        return self._exact + noise * self._statistic.units

    def _collect(self, place: int, datum: tuple[npt.NDArray[Any], ...]) -> None:
        if not self._pending:
            # float64 whatever the first user sent: her dtype must not round everybody else
            self._pending = [np.empty((self._every, *a.shape)) for a in datum]
        for pending, array in zip(self._pending, datum, strict=True):
            pending[place] = array


def leaves(horizon: int, refresh_every: int) -> int:
    """m, the number of releases that come before some action."""
    whole("horizon", horizon, 1)
    whole("refresh_every", refresh_every, 1)
    return (horizon - 1) // refresh_every


class ExactNoise:
    """No noise: the non-private counterpart of every other process."""

    stddev = 0.0

    def __call__(self) -> Floats:
        """No noise: zero."""
        return np.zeros(())


class TreeNoise:
    """The binary tree in Fenwick form, one noise per leaf.

    Chan, Shi and Song, "Private and continual release of statistics", ACM TISSEC 2011; Dwork,
    Naor, Pitassi and Rothblum, STOC 2010. With lowbit(t) = t & -t, node t covers the leaves
    (t - lowbit(t), t], and::

        N_t = z_t + N_{t - lowbit(t)}:          the sum of popcount(t) noises.

    A leaf lies in at most bit_length(m) nodes that some prefix uses (leaf 1 attains it); the
    right children that no prefix uses are never drawn. Only the N at the bits of t are kept.
    """

    def __init__(self, node: Sampler, *, stddev: float) -> None:
        self._node, self._node_stddev, self.stddev = node, stddev, 0.0
        self._t = 0
        self._prefix: dict[int, Floats] = {}  # [lowbit of t']: N_t' for the t' that t builds on

    def __call__(self) -> Floats:
        """N_t, `(R, *shape)`."""
        self._t = t = self._t + 1
        below = t & (t - 1)  # t - lowbit(t)
        N = self._node()
        if below:
            N = N + self._prefix[below & -below]
        self._prefix[t & -t] = N
        self.stddev = sqrt(t.bit_count()) * self._node_stddev
        return N

    @staticmethod
    def column_norm(leaves: int) -> float:
        """The square root of the number of nodes that one leaf touches."""
        return sqrt(leaves.bit_length())


_BUF_DECAY = np.array(
    [
        0.9999987714095605,
        0.9999678068130595,
        0.9993930757878208,
        0.9886822039145352,
        0.8076882151769461,
    ]
)
_OUTPUT_SCALE = np.array(
    [
        0.0015732828412684601,
        0.005305572615685573,
        0.022858482791024832,
        0.09766335481270833,
        0.32888772806958194,
    ]
)
_INV_DECAY = np.array(
    [
        0.9999927670422909,
        0.9998597716263664,
        0.997374503100134,
        0.9519100982990796,
        0.39030451190378235,
    ]
)
_INV_SCALE = np.array(
    [
        -1.9150090502830364e-08,
        -1.5582637493118992e-06,
        -0.00012611873164624493,
        -0.009885902243013814,
        -0.4462748227417692,
    ]
)
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


class BLTNoise:
    """Correlated Gaussian noise from a buffered linear Toeplitz factorisation, five buffers.

    McMahan, Xu and Zhang, "A hassle-free algorithm for private learning in practice: don't use
    tree aggregation, use BLTs" (2024); Dvijotham, McMahan, Pillutla, Steinke and Thakurta, FOCS
    2024. Prefix sums A = B C with lower-triangular Toeplitz::

        c_0 = 1,  c_{k+1} = sum_j output_scale_j buf_decay_j^k         (C^-1 alike, with inv_*)

    close to the optimal square root. Releases are S + B z, B = A C^-1, advanced by::

        N_t = N_{t-1} + z_t + sum_j inv_scale_j buf_j,    buf_j <- inv_decay_j buf_j + z_t

    in blocks of 16, one small matrix product a replica. One user moves C x by at most
    `|c| = column_norm(m)` times the sensitivity, also when the stream is adaptive (Denisov,
    McMahan, Rush, Smith and Thakurta, NeurIPS 2022).
    """

    _matrix = _block_matrix()

    def __init__(self, normals: Draws, *, stddev: float) -> None:
        self._normals, self._scale, self.stddev = normals, stddev, 0.0
        self._place = _BLOCK
        self._input = np.zeros((normals.replicas, _BLOCK + 6, *normals.shape))  # z, buffers, N
        self._output: Floats = np.empty(0)  # N of 16 releases, buffers, N
        self._impulse = np.eye(_BLOCK + 6)[0]  # the same recursion fed with z = 1, 0, 0, ...
        self._responses: Floats = np.empty(0)  # B_t1, whose squares add up to the variance
        self._variance = 0.0

    def __call__(self) -> Floats:
        """N_t, `(R, *shape)`."""
        if self._place == _BLOCK:
            self._advance()
        i = self._place
        self._place += 1
        self._variance += self._responses[i] ** 2
        self.stddev = self._scale * sqrt(self._variance)
        return self._scale * self._output[:, i]

    def _advance(self) -> None:
        R, height = self._input.shape[:2]
        self._normals.fill(self._input[:, :_BLOCK])
        output = self._matrix @ self._input.reshape(R, height, -1)  # (R, 22, n)
        self._output = output.reshape(self._input.shape)
        self._input[:, _BLOCK:] = self._output[:, _BLOCK:]
        self._place = 0
        response = self._matrix @ self._impulse
        self._responses = response[:_BLOCK]
        self._impulse = np.concatenate([np.zeros(_BLOCK), response[_BLOCK:]])

    @classmethod
    def side_by_side(cls, parts: Sequence["BLTNoise"], normals: Draws) -> "BLTNoise":
        """Processes of one scale that have taken the same steps, > 0, as one: `(R, parts, *shape)`.

        What they draw from now on are the `normals`.
        """
        joined = cls(normals, stddev=parts[0]._scale)
        vars(joined).update(vars(parts[0]), _normals=normals)
        joined._input = np.stack([part._input for part in parts], axis=2)
        joined._output = np.stack([part._output for part in parts], axis=2)
        return joined

    @staticmethod
    def column_norm(leaves: int) -> float:
        """`|c|` over `leaves` <= 10^6 entries, in closed form."""
        if leaves > LONGEST_BLT:
            raise InputError(f"Expected at most {LONGEST_BLT} releases of a BLT, got {leaves}.")
        if leaves == 0:
            return 0.0
        decay = np.outer(_BUF_DECAY, _BUF_DECAY)
        scale = np.outer(_OUTPUT_SCALE, _OUTPUT_SCALE)
        return sqrt(1 + float((scale * (1 - decay ** (leaves - 1)) / (1 - decay)).sum()))

    @staticmethod
    def column(leaves: int) -> Floats:
        """c_0, .., c_{leaves-1}."""
        powers = _BUF_DECAY[:, None] ** np.arange(max(0, leaves - 1))
        return np.concatenate([[1.0], _OUTPUT_SCALE @ powers])[:leaves]

    @classmethod
    def row_norm(cls, leaves: int) -> float:
        """The stddev of N_leaves, the largest so far, in units of that of a z."""
        impulse, variance = np.eye(_BLOCK + 6)[0], 0.0
        for start in range(0, leaves, _BLOCK):
            response = cls._matrix @ impulse
            variance += float(np.square(response[: min(_BLOCK, leaves - start)]).sum())
            impulse = np.concatenate([np.zeros(_BLOCK), response[_BLOCK:]])
        return sqrt(variance)


def mu_after(column_norm: float, noise_multiplier: float) -> float:
    """GDP of all releases: column norm over noise stddev / sensitivity, infinity without noise."""
    if column_norm == 0:
        return 0.0
    return column_norm / noise_multiplier if noise_multiplier else inf
