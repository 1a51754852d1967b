"""Fading sums: releases of an exponentially discounted sum over users, with fresh noise each.

Rounds are cut into batches with public ends. For batch sums B_k and noise of stddev sigma::

    E_k = fade E_{k-1} + B_k,      release k = E_k + sigma z_k,      z_k independent N(0, I).

With `fade` = 0 a user is in one release (parallel composition over disjoint batches); with larger
values she is in later releases again, at decreasing weight, and every release has a little more
noise: a compromise between independent batches and prefix sums, whose early noise is large.

A `PersonSum` is a fading sum over people who return, with a cap on how often a person counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, expm1, inf, log, sqrt

import numpy as np

from dpbandit.base import (
    AnyArray,
    Floats,
    InputError,
    Ints,
    Streams,
    at_least,
    gaussian_target,
    inside,
    share,
    whole,
)
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.mechanism import AGGREGATED_TRUST, Mechanism, Statistic, counted_total, moving
from dpbandit.privacy.people import fading_norm
from dpbandit.privacy.premises import SUMMED
from dpbandit.privacy.spends import GaussianSpend

_SUMMED_ROUNDS = 64
"""Number of rounds added in one block; fixed, as the order of addition decides a sum's last bits"""


@dataclass(frozen=True)
class FadingSlots:
    """Release plan of a fading sum with the given ends of batches."""

    ends: tuple[int, ...]
    fade: float
    moving: float = 2.0
    """cost of moving a user to another time slot, divided by the cost of replacing her, 1 to 2"""

    def person_norm(self, cap: int, separation: int) -> float:
        return _person_norm(self.ends, self.fade, cap, separation)

    def early_norm(self, age: int) -> float:
        ends = np.array(self.ends, dtype=np.int64)
        seen = np.searchsorted(ends, ends + age, side="right") - np.arange(len(ends))
        return column_norm(int(seen.max(initial=0)), self.fade)

    def past_norm(self, rounds: int) -> float:
        return column_norm(sum(end <= rounds for end in self.ends), self.fade)


_person_norm = cache(fading_norm)


class FadingSum(Mechanism):
    """Mechanism of a fading sum: returns a discounted sum of rounds plus noise after each batch.

    Args:
        statistic: the clipped function of a round that is summed.
        streams: the random streams of the replicas.
        ends: last round of each batch, increasing, as from `growing_batches`.
        horizon: T, number of rounds; a batch that ends at T or later is never released.
        fade: weight of the sum so far in the next release, in [0, 1).
        noise_multiplier: standard deviation divided by the statistic's sensitivity; 0: no noise.

    A call returns the release `(R, *shape)` at the end of a batch, else None.

    Guarantee:
        All releases together are mu-GDP, mu = column_norm / noise_multiplier, as every release has
        fresh noise: a user of batch b moves release k >= b by fade^(k - b) times the change of her
        batch's sum, and so the vector of exact sums by a norm of at most sensitivity x column_norm,
        column_norm = sqrt(1 + fade^2 + fade^4 + ...), largest for the first batch. It holds for
        adaptive streams too (Denisov, McMahan, Rush, Smith and Thakurta, NeurIPS 2022:
        lower-triangular maps with Gaussian noise).

    >>> from dpbandit.privacy.moments import ClippedVectors
    >>> sums = FadingSum(ClippedVectors(1), Streams([0]), ends=[2, 3], horizon=9, fade=0.5,
    ...                  noise_multiplier=0.0)
    >>> [sums(np.ones((1, 1))) for _ in range(3)]
    [None, array([[2.]]), array([[2.]])]
    """

    # "Rounds are cut into batches with public ends."
    needs = SUMMED

    releases_sum = True

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

    @property
    def ends(self) -> tuple[int, ...]:
        """Last rounds of the batches that are released."""
        return self._ends

    def noise(self, batch: int) -> float:
        """Return the noise variance of a release's coordinate, in the statistic's units."""
        return self.stddev**2

    def query(self, *datum: AnyArray) -> Floats:
        return self._statistic.total(*(array[None] for array in datum)) / self._statistic.units

    @property
    def rounds_to_release(self) -> int:
        ends = self._ends[self._released :]
        return (ends[0] if ends else self.uses) - self._used

    def _release(self, *datum: AnyArray) -> Floats | None:
        return FadingSum._release_several(self, *(np.asarray(array)[None] for array in datum))

    def _release_several(self, *data: AnyArray) -> Floats | None:
        if self._released == len(self._ends):
            return None
        ends = self._used == self._ends[self._released]
        if not self._pending:
            # float64 whatever the first user sent: her dtype must not round everybody else
            self._pending = [np.empty((_SUMMED_ROUNDS, *array.shape[1:])) for array in data]
        rounds, start = len(data[0]), 0
        while start < rounds:
            end = min(start + _SUMMED_ROUNDS - self._held, rounds)
            held = self._held + end - start
            for pending, array in zip(self._pending, data, strict=True):
                pending[self._held : held] = array[start:end]
            start, self._held = end, held
            if held == _SUMMED_ROUNDS or (ends and end == rounds):
                total = self._statistic.total(*(p[:held] for p in self._pending))
                self._exact, self._held = self._exact + total, 0
        return self._release_sum() if ends else None

    def _release_counted(self, counts: Ints, *data: AnyArray) -> Floats | None:
        if self._released == len(self._ends):
            return None
        self._exact = self._exact + counted_total(self._statistic, counts, data)
        if self._used < self._ends[self._released]:
            return None
        if self._held:  # rounds of this batch that came one by one
            self._exact += self._statistic.total(*(p[: self._held] for p in self._pending))
            self._held = 0
        return self._release_sum()

    def _release_sum(self) -> Floats:
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
    """Return a `FadingSum` with the least noise that is (epsilon, delta)-DP; inf adds none."""
    multiplier = least_fading_multiplier(
        len(released_ends(ends, horizon)), fade, epsilon=epsilon, delta=delta
    )
    return FadingSum(
        statistic, streams, ends=ends, horizon=horizon, fade=fade, noise_multiplier=multiplier
    )


def growing_batches(
    horizon: int, *, first: int, growth: float, longest: int | None = None
) -> tuple[int, ...]:
    """Return the ends of batches of first, first (1 + growth), first (1 + growth)^2, ... rounds.

    Batches after the first have at most `longest` rounds.

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
        length = min(length * (1 + growth), longest or inf)
    return tuple(ends)


def released_ends(ends: Sequence[int], horizon: int) -> tuple[int, ...]:
    """Return the batch ends before the last round; later releases influence no action."""
    whole("horizon", horizon, 1)
    for end in ends:
        whole("end of a batch", end, 1)
    if any(b <= a for a, b in zip([0, *ends], ends, strict=False)):
        raise InputError(f"Expected ends={tuple(ends)} of batches to be increasing and >= 1.")
    return tuple(end for end in ends if end < horizon)


def column_norm(releases: int, fade: float) -> float:
    """Return sqrt(1 + fade^2 + ...), the l_2 change of all releases by a unit change of batch 1."""
    whole("releases", releases, 0)
    inside("fade", fade, 0, 1, ends=True)
    if fade in (0, 1):
        return sqrt(releases if fade else min(releases, 1))
    return sqrt(expm1(2 * releases * log(fade)) / expm1(2 * log(fade)))


def least_fading_multiplier(releases: int, fade: float, *, epsilon: float, delta: float) -> float:
    """Return the exact least `noise_multiplier` for which all releases are (epsilon, delta)-DP."""
    gaussian_target(epsilon, delta)
    if epsilon == inf or releases == 0:
        return 0.0
    return column_norm(releases, fade) / mu_of(epsilon, delta)


class AggregatedSum(FadingSum):
    """Securely aggregated sum of each batch of n devices, a fraction h being honest and staying::

        each device adds N(0, (S / mu)^2 / (h n) I) to its statistic of sensitivity S
        the server sees the sum of the batch, by cryptography, and nothing else of it

    The guarantee needs no noise from dishonest devices; in the simulation they add theirs, which
    makes the noise 1 / sqrt(h) times as large as necessary. With h = 1 releases are those of a
    `FadingSum` with fade 0.

    Guarantee:
        The honest devices of a batch carry N(0, (S / mu)^2 I), so every batch is mu-GDP, and so are
        all together: a user is in one batch. This needs no trusted server, only a secure
        aggregation protocol (not simulated) and the honest fraction h.
    """

    trust = AGGREGATED_TRUST

    def __init__(
        self,
        statistic: Statistic,
        streams: Streams,
        *,
        ends: Sequence[int],
        horizon: int,
        epsilon: float,
        delta: float,
        honest: float = 1.0,
    ) -> None:
        share("honest", honest)  # somebody has to add noise
        mu = inf if epsilon == inf else mu_of(epsilon, delta)
        super().__init__(
            statistic,
            streams,
            ends=ends,
            horizon=horizon,
            fade=0.0,
            noise_multiplier=1 / (mu * sqrt(honest)),
        )
        self.honest = honest
        batches = len(self._ends)
        note = f"aggregated sums, {batches} batches, {100 * honest:g} % of devices honest"
        slots = FadingSlots(self._ends, 0.0, moving(statistic))
        self.spend = GaussianSpend(mu if batches else 0.0, note, slots)
