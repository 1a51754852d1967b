"""Fading sums: every release is an exponentially faded sum of the users, with fresh noise.

Rounds are cut into batches with public ends. With B_k the statistic's sum over batch k::

    E_k = fade E_{k-1} + B_k,      release k = E_k + sigma z_k,      z_k independent N(0, I).

`fade` = 0 is one release a user (parallel composition over disjoint batches); larger values show a
user again, weaker each time, for which every release pays with a little more noise: a middle way
between batches that forget and prefix sums, whose noise lets nothing through early on.

A `PersonSum` is a fading sum over people: who comes often counts as often as was paid for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, expm1, inf, log, sqrt
from typing import Literal, TypeAlias

import numpy as np

from dpbandit.base import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    Streams,
    at_least,
    gaussian_target,
    inside,
    one_of,
    rows,
    whole,
)
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.mechanism import ADDED_UP, Mechanism, Statistic, moving
from dpbandit.privacy.notion import Visits
from dpbandit.privacy.people import fading_norm, once_a_batch_norm
from dpbandit.privacy.premises import SUMMED, Fact
from dpbandit.privacy.spends import GaussianSpend

_BLOCK = 64
"""Rounds summed at once. Part of the arithmetic: never derived from R."""


@dataclass(frozen=True)
class FadingSlots:
    """How rounds enter the releases of a fading sum with these ends of batches."""

    ends: tuple[int, ...]
    fade: float
    moving: float = 2.0
    """see `Slots`"""

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

    def noise(self, batch: int) -> float:
        """The variance of a coordinate of the release of a batch, in its units: of all the same."""
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
            self._pending = [np.empty((_BLOCK, *array.shape[1:])) for array in data]
        rounds, start = len(data[0]), 0
        while start < rounds:
            end = min(start + _BLOCK - self._held, rounds)
            held = self._held + end - start
            for pending, array in zip(self._pending, data, strict=True):
                pending[self._held : held] = array[start:end]
            start, self._held = end, held
            if held == _BLOCK or (ends and end == rounds):
                total = self._statistic.total(*(p[:held] for p in self._pending))
                self._exact, self._held = self._exact + total, 0
        return self._release_sum() if ends else None

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
    """A `FadingSum` with the least noise that is (epsilon, delta)-DP; epsilon = inf adds none."""
    multiplier = least_fading_multiplier(
        len(released_ends(ends, horizon)), fade, epsilon=epsilon, delta=delta
    )
    return FadingSum(
        statistic, streams, ends=ends, horizon=horizon, fade=fade, noise_multiplier=multiplier
    )


def growing_batches(
    horizon: int, *, first: int, growth: float, longest: int | None = None
) -> tuple[int, ...]:
    """Ends of batches of first, first (1 + growth), first (1 + growth)^2, ... rounds.

    All but the first have `longest` rounds at most.

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


Counted: TypeAlias = Literal["latest", "first", "batch", "visits"]
COUNTED: tuple[Counted, ...] = ("latest", "first", "batch", "visits")


class PersonSum(FadingSum):
    """Sums over batches of a public clock, each released once, of what people contribute::

        counted = "latest"   her latest visit: it takes the place of what she added before, and
                             the sum goes on, so that a release is over all who have ever come
        counted = "first"    a person's first visit ever, and no other
        counted = "batch"    her first visit in each batch, in at most k batches
        counted = "visits"   every visit, k of them, any two b slots apart

    What does not count enters as the null contribution 0, in its slot, and so does an empty slot:
    the clock never stops. Who counted is exact state of the mechanism and never handed out.

    It can be run by secure aggregation: a device knows what it has sent itself, and one in every
    slot, also where nobody came, sends 0 and its share N(0, (2 B S / mu)^2 / (h n) I) of the noise
    of a batch of n slots, of which a fraction h has to be honest and stay. With "latest" the device
    of each of the n = N people sends once a batch, at its end, what it has made last.

    A call takes the person's number, then what the statistic takes.

    Args:
        statistic: of a visit, of sensitivity 2 B; what it is not told, a last NaN, adds 0.
        people: N; a person is a number in [0, N), anything else is nobody.
        visits: the cap k and the separation b.
        ends, horizon, streams: as of `FadingSum`, with fade 0, and 1 for "latest".
        epsilon, delta: of a person; inf adds no noise.
        honest: h, in (0, 1], of the slots of a batch (with "latest", of people): what hides her
            vector is h n shares of noise, and an empty slot in which nobody sends has none; a
            server that adds the noise itself is honest.

    Guarantee:
        (epsilon, delta)-DP for a person, exactly mu-GDP, under adaptively chosen data and return
        times. Whether others count depends on their own slots alone, so neighbouring streams differ
        in what one person contributes: vectors of norm at most B, which together move the releases
        by at most S times what one of them does, S = 1 for "first", sqrt(min(k, releases)) for
        "batch", sqrt(releases) for "latest", of which one is in each release however often she
        comes, and for "visits" what k of them, b apart, do to batches at most (`fading_norm`; k,
        which is group privacy, if b = 1 and batches are longer). Each moves by at most 2 B where
        her slots stay (one vector against another) and where they move, since `|v - 0|^2 +
        |0 - v'|^2 <= 2 B^2 <= (2 B)^2`. All releases together are (2 B S / stddev)-GDP by
        composition of adaptively chosen Gaussian means (append a release that fills the sum of
        squares up to (2 B S)^2). With h < 1 that is the noise of the honest, and 1 / sqrt(h) times
        as much is there.
    """

    # "Whether others count depends on their own slots alone"
    needs = frozenset({Fact.CLOCK, Fact.PEOPLE})

    trust = ADDED_UP
    rounds_to_release = 1

    def __init__(
        self,
        statistic: Statistic,
        streams: Streams,
        *,
        people: int,
        visits: Visits,
        counted: Counted,
        ends: Sequence[int],
        horizon: int,
        epsilon: float,
        delta: float,
        honest: float = 1.0,
    ) -> None:
        one_of("counted", counted, COUNTED)
        m = len(released_ends(ends, horizon))
        release_ends, k, b = released_ends(ends, horizon), visits.cap, visits.separation
        self.replaces = counted == "latest"
        """whether what a person adds takes the place of what she added before"""
        self.person_norm = {
            "latest": lambda: column_norm(m, 1.0),
            "first": lambda: float(min(m, 1)),
            "batch": lambda: once_a_batch_norm(m, 0.0, k),
            "visits": lambda: fading_norm(release_ends, 0.0, k, b),
        }[counted]()
        mu = inf if epsilon == inf else mu_of(epsilon, delta)
        super().__init__(
            statistic,
            streams,
            ends=ends,
            horizon=horizon,
            fade=float(self.replaces),
            noise_multiplier=self.person_norm / (mu * sqrt(honest)),
        )
        self.honest = honest
        spent = 0.0 if m == 0 else mu
        words = {"batch": "a visit a batch", "visits": "all visits"}
        note = f"sums over people, {words.get(counted, f'{counted} visits')}, {m} Gaussian releases"
        note += f", {100 * honest:g} % of devices honest" if honest < 1 else ""
        self.spend = GaussianSpend(spent, note)
        often = {"first": 1, "batch": min(visits.cap, m), "visits": visits.cap}
        self.most = often.get(counted, horizon)
        # beside each replica's people stands nobody, who has had her share
        self._place = (people + 1) * rows(len(streams))
        times = np.zeros((len(streams), people + 1), np.int64)
        times[:, people] = self.most
        self._people, self._times = people, times.ravel()
        self._gap = visits.separation if counted in ("first", "visits") else 1
        self._last = np.full(times.size, -self._gap)
        self._by_batch, self._slot = counted == "batch", 0
        self._latest: Bools = np.zeros(len(streams), bool)
        if self.replaces:
            self._contribution = np.zeros((times.size, *statistic.shape))
            """what each has added last"""

    def query(self, *datum: AnyArray) -> Floats:
        # The statistic of a visit that counts, else 0, less what it replaces: `(R, *shape)`
        place = self._place_of(datum[0])
        new = super().query(*self._as_counted(self._counts(place), *datum))
        return new - self._contribution[place] if self.replaces else new

    def _release(self, *datum: AnyArray) -> Floats | None:
        place = self._place_of(datum[0])
        self._latest = self._counts(place)
        at_person = place[self._latest]
        self._times[at_person] += 1
        self._last[at_person] = self._clock
        self._slot += 1
        counted_datum = self._as_counted(self._latest, *datum)
        if self.replaces:
            return self._replace(place, super().query(*counted_datum))
        return super()._release(*counted_datum)

    def _replace(self, place: Ints, new: Floats) -> Floats | None:
        self._moved = new - self._contribution[place]
        self._contribution[place] = new
        if self._used not in self._ends:
            return None
        self._exact = self._contribution.reshape(len(new), -1, *new.shape[1:]).sum(axis=1)
        return self._release_sum()

    def control_places(self) -> tuple[int, ...]:
        return tuple(1 + place for place in super().control_places())

    def entered(self, *datum: AnyArray) -> Floats:
        if self.replaces:
            return self._moved
        return super().query(*self._as_counted(self._latest, *datum))

    @property
    def _clock(self) -> int:
        return self._released if self._by_batch else self._slot

    def _place_of(self, person: Ints) -> Ints:
        """Of her, or of nobody, among the people of all replicas, (R,)."""
        here = (person >= 0) & (person < self._people)
        return np.asarray(self._place + np.where(here, person, self._people))

    def _counts(self, place: Ints) -> Bools:
        """Whether this visit does, (R,)."""
        fresh = self._clock - self._last[place] >= self._gap
        return np.asarray(fresh & (self._times[place] < self.most))

    def _as_counted(self, counts: Bools, _: Ints, *datum: AnyArray) -> tuple[AnyArray, ...]:
        *rest, last = datum
        mask = np.expand_dims(counts, tuple(range(1, last.ndim)))
        return *rest, np.where(mask, last, np.nan)  # which says nothing
