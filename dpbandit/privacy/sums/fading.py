"""Fading sums: every release is an exponentially faded sum of the users, with fresh noise.

Rounds are cut into batches with public ends. With B_k the statistic's sum over batch k::

    E_k = fade E_{k-1} + B_k,      release k = E_k + sigma z_k,      z_k independent N(0, I).

`fade` = 0 is one release a user (parallel composition over disjoint batches); larger values show a
user again, weaker each time, for which every release pays with a little more noise: a middle way
between batches that forget and prefix sums, whose noise lets nothing through early on.
"""

from collections.abc import Sequence
from math import ceil, expm1, inf, log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, at_least, gaussian_target, inside, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.moments import Statistic, moving
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.privacy.sums.slots import FadingSlots

_BLOCK = 64
"""Rounds summed at once. Part of the arithmetic: never derived from R."""


class FadingSum(Mechanism):
    """The mechanism of a fading sum: raw rounds go in, E_k + noise comes out at the end of batch k.

    Args:
        statistic: the clipped function of a round that is summed.
        streams: the random streams of the replicas.
        ends: the last round of each batch, increasing; `growing_batches` makes them.
        horizon: rounds T that will be fed; a batch that ends at T or later is never released.
        fade: in [0, 1).
        noise_multiplier: sigma over the statistic's sensitivity; 0 is no noise.

    A call returns the release `(R, *shape)` at the end of a batch, else None.

    Guarantee:
        All releases together are mu-GDP, mu = column_norm / noise_multiplier: a user of batch b
        moves release k >= b by fade^(k - b) times what she moves B_b, so the white noise z sees her
        through a vector of norm at most sensitivity sqrt(1 + fade^2 + fade^4 + ...), longest for
        the first batch. It holds for adaptive streams too (Denisov, McMahan, Rush, Smith and
        Thakurta, NeurIPS 2022: lower-triangular maps with Gaussian noise).

    >>> from dpbandit.privacy.moments import ClippedVectors
    >>> sums = FadingSum(ClippedVectors(1), Streams([0]), ends=[2, 3], horizon=9, fade=0.5,
    ...                  noise_multiplier=0.0)
    >>> [sums(np.ones((1, 1))) for _ in range(3)]
    [None, array([[2.]]), array([[2.]])]
    """

    def __init__(
        self,
        statistic: Statistic,
        streams: Streams,
        *,
        ends: Sequence[int],
        horizon: int,
        fade: float,
        noise_multiplier: float,
    ) -> None:
        at_least("noise_multiplier", noise_multiplier, 0)
        self._ends = released_ends(ends, horizon)
        m = len(self._ends)
        norm = column_norm(m, fade)
        mu = 0.0 if m == 0 else norm / noise_multiplier if noise_multiplier else inf
        note = f"fading sum, {m} Gaussian releases, fade {fade:g}"
        self.spend = GaussianSpend(mu, note, FadingSlots(self._ends, fade, moving(statistic)))
        self.sensitivity, self.uses = statistic.sensitivity, horizon
        self.stddev = noise_multiplier * statistic.sensitivity
        self.fade, self._statistic = fade, statistic
        self._normals = streams.normals("fading noise", *statistic.shape)
        self._pending: list[Floats] = []
        self._held, self._released = 0, 0
        self._exact: Floats | float = 0.0

    def noise(self, batch: int) -> float:
        """The variance of a coordinate of the release of a batch, in its units: of all the same."""
        return self.stddev**2

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped statistic of one round in its units, `(R, *shape)`."""
        return self._statistic.total(*(array[None] for array in datum)) / self._statistic.units

    def _release(self, *datum: npt.NDArray[Any]) -> Floats | None:
        if self._released == len(self._ends):
            return None
        if not self._pending:
            # float64 whatever the first user sent: her dtype must not round everybody else
            self._pending = [np.empty((_BLOCK, *array.shape)) for array in datum]
        for pending, array in zip(self._pending, datum, strict=True):
            pending[self._held] = array
        self._held += 1
        due = self._used == self._ends[self._released]
        if self._held < _BLOCK and not due:
            return None
        self._exact = self._exact + self._statistic.total(*(p[: self._held] for p in self._pending))
        self._held = 0
        if not due:
            return None
        self._released += 1
        release: Floats = self._exact + self.stddev * self._normals() * self._statistic.units
        self._exact = self.fade * self._exact
        return release


def certified_fading_sum(
    statistic: Statistic,
    streams: Streams,
    *,
    ends: Sequence[int],
    horizon: int,
    fade: float,
    epsilon: float,
    delta: float,
) -> FadingSum:
    """A `FadingSum` with the least noise that is (epsilon, delta)-DP; epsilon = inf adds none."""
    multiplier = least_fading_multiplier(
        len(released_ends(ends, horizon)), fade, epsilon=epsilon, delta=delta
    )
    return FadingSum(
        statistic, streams, ends=ends, horizon=horizon, fade=fade, noise_multiplier=multiplier
    )


def growing_batches(horizon: int, *, first: int, growth: float) -> tuple[int, ...]:
    """Ends of batches of first, first (1 + growth), first (1 + growth)^2, ... rounds.

    >>> growing_batches(100, first=10, growth=1.0)
    (10, 30, 70)
    """
    whole("horizon", horizon, 1)
    whole("first", first, 1)
    inside("growth", growth, 0, 100, ends=True)
    ends, length, end = [], float(first), 0
    while end + ceil(length) < horizon:
        end += ceil(length)
        ends.append(end)
        length *= 1 + growth
    return tuple(ends)


def released_ends(ends: Sequence[int], horizon: int) -> tuple[int, ...]:
    """The ends whose release can influence an action: those before the last round."""
    whole("horizon", horizon, 1)
    for end in ends:
        whole("end of a batch", end, 1)
    if any(b <= a for a, b in zip([0, *ends], ends, strict=False)):
        raise InputError(f"Expected ends={tuple(ends)} of batches to be increasing and >= 1.")
    return tuple(end for end in ends if end < horizon)


def column_norm(releases: int, fade: float) -> float:
    """sqrt(1 + fade^2 + ... + fade^(2 releases - 2)): how strongly the first user is seen."""
    whole("releases", releases, 0)
    inside("fade", fade, 0, 1, ends=True)
    if fade in (0, 1):
        return sqrt(releases if fade else min(releases, 1))
    return sqrt(expm1(2 * releases * log(fade)) / expm1(2 * log(fade)))


def least_fading_multiplier(releases: int, fade: float, *, epsilon: float, delta: float) -> float:
    """The least `noise_multiplier` for which all releases are (epsilon, delta)-DP. Exact."""
    gaussian_target(epsilon, delta)
    if epsilon == inf or releases == 0:
        return 0.0
    return column_norm(releases, fade) / mu_of(epsilon, delta)
