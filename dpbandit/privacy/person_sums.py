"""Privacy of a person who returns: sums over people, and spends of all her rounds."""

from collections.abc import Sequence
from math import inf, sqrt
from typing import Literal, TypeAlias

import numpy as np

from dpbandit.base import (
    AnyArray,
    Bools,
    Floats,
    Ints,
    Streams,
    inside,
    one_of,
    rows,
    whole,
)
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.fading import FadingSum, column_norm, released_ends
from dpbandit.privacy.mechanism import AGGREGATED_TRUST, Statistic
from dpbandit.privacy.notion import Visits
from dpbandit.privacy.people import fading_norm, toeplitz_norm
from dpbandit.privacy.premises import Fact
from dpbandit.privacy.spends import GaussianSpend, Repeated, Slots, Spend

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

    trust = AGGREGATED_TRUST
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


def once_a_batch_norm(releases: int, fade: float, cap: int) -> float:
    """Of a fading sum in which a person counts once a batch, in at most `cap` of them.

    Over batches that is a Toeplitz sum of c_j = fade^j. No cap is needed: anybody's is `releases`.
    """
    whole("releases", releases, 0)
    inside("fade", fade, 0, 1, ends=True)
    return toeplitz_norm(fade ** np.arange(releases), cap, 1) if releases else 0.0


_ROUNDING = 1e-9


def for_a_person(spend: Spend, visits: Visits) -> Repeated:
    """`spend` for a person with such visits, in which a round without her is a public null round.

    Replacing her changes n = k rounds, or n = 2 k where she may come at other times, each by what
    replacing one round does at most: those she leaves and those she takes, of which either are a
    pattern of k rounds b apart. So a running sum moves no further than S(k, b) / S(1, 1) rounds
    do where her slots stay, and else than S(2 k, 1) / S(1, 1), or than `moving` times as far: twice
    by the triangle inequality; less where contributions v, beyond a null round's, are short, as
    with columns c_t of products >= 0, V the largest `|v|` and m the least <v, v'>::

        |sum of c_t v_t, t left, - sum of c_t v'_t, t taken|^2 <= S^2 (2 V^2 + 2 max(0, -m))

    (squares are at most S^2 V^2 each, and what is in between adds up to S^2 as well). That holds
    for data, reference points and return times that depend on releases: it holds of every pattern.
    Of a mechanism that says nothing it is n, group privacy.

    >>> from dpbandit.privacy.fading import FadingSlots
    >>> spend = GaussianSpend(0.1, "sums", FadingSlots((100, 200, 300, 400), fade=0.0))
    >>> for_a_person(spend, Visits(4, 100, pattern="public")).note
    'sums, 4 rounds of a person, which count as 2'
    """
    times = visits.rounds
    slots = spend.slots if isinstance(spend, GaussianSpend) else None
    if slots is None or times == 1 or not spend.mu:
        return Repeated(spend, times)
    factor = _apart(slots, visits) / slots.person_norm(1, 1) * (1 + _ROUNDING)
    return Repeated(spend, times, factor) if factor < times else Repeated(spend, times)


def _apart(slots: Slots, visits: Visits) -> float:
    S = slots.person_norm(visits.cap, visits.separation)
    if visits.pattern == "public":
        return S
    return min(slots.moving * S, slots.person_norm(2 * visits.cap, 1))
