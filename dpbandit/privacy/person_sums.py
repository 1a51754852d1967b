"""Person-level privacy for people who return: sums over people, and costs of all their rounds."""

from collections.abc import Sequence
from math import inf, sqrt
from typing import Literal, TypeAlias

import numpy as np

from dpbandit.base import AnyArray, Bools, Floats, Ints, Streams, inside, one_of, rows, share, whole
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.fading import FadingSum, column_norm, released_ends
from dpbandit.privacy.mechanism import AGGREGATED_TRUST, Statistic
from dpbandit.privacy.notion import Visits
from dpbandit.privacy.people import fading_norm, toeplitz_norm
from dpbandit.privacy.premises import Fact
from dpbandit.privacy.spends import GaussianSpend, Repeated, Slots, Spend

Counted: TypeAlias = Literal["latest", "first", "batch", "visits"]
COUNTED: tuple[Counted, ...] = ("latest", "first", "batch", "visits")  # see `PersonSum`


class PersonSum(FadingSum):
    """Sums of people's visits over batches of a public clock, each batch released once::

        counted = "latest"   a person's latest visit: it replaces her earlier one, and the sum
                             goes on, so that a release is over all people so far
        counted = "first"    a person's first visit ever, and no other
        counted = "batch"    a person's first visit in each batch, in at most k batches
        counted = "visits"   every visit, at most k of a person, any two b time slots apart

    A visit that does not count, and an empty slot, contributes 0 in its slot: the clock never
    stops. The list of visits that counted is exact state of the mechanism and never released.

    Secure aggregation can run this: a device knows its own messages, and one device in every slot,
    empty slots included, sends its statistic or 0 plus its share N(0, (2 B S / mu)^2 / (h n) I) of
    the noise of a batch of n slots, of which a fraction h has to be honest and stay. With "latest"
    the device of each of the n = N people sends its latest statistic once a batch, at the end.

    A call takes the person's number, then the arguments of the statistic.

    Args:
        statistic: statistic of a visit, of sensitivity 2 B, 0 where its last argument is NaN.
        people: N; a person is a number in [0, N), any other number is nobody.
        visits: the cap k and the separation b.
        ends, horizon, streams: as for `FadingSum`, with fade 0, and 1 for "latest".
        epsilon, delta: privacy target of a person; inf adds no noise.
        honest: h, in (0, 1], the fraction of slots of a batch (with "latest", of people) that add
            noise; a server that adds the noise itself has h = 1.

    Guarantee:
        (epsilon, delta)-DP for a person, exactly mu-GDP, under adaptively chosen data and return
        times. Whether others count depends on their own slots alone, so neighbouring streams differ
        in what one person contributes: vectors of norm at most B, which together move the releases
        by at most S times as far as one vector: S = 1 for "first", sqrt(min(k, releases)) for
        "batch", sqrt(releases) for "latest", of which one is in each release however often she
        comes, and for "visits" the largest norm of k visits, b apart (`fading_norm`; or k, which is
        group privacy, if b = 1 and batches are longer). A vector moves by at most 2 B where her
        slots stay (one vector against another) and where they move, since `|v - 0|^2 +
        |0 - v'|^2 <= 2 B^2 <= (2 B)^2`. All releases together are (2 B S / stddev)-GDP by
        composition of adaptively chosen Gaussian means (append a release that fills the sum of
        squares up to (2 B S)^2). With h < 1, stddev is that of the honest devices' noise; the noise
        of all devices is 1 / sqrt(h) times as large.
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
        share("honest", honest)  # more than 1 would take noise away
        m = len(released_ends(ends, horizon))
        release_ends, k, b = released_ends(ends, horizon), visits.cap, visits.separation
        self.replaces = counted == "latest"
        """True if a person's contribution replaces her earlier one"""
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
        # index `people` of each replica is nobody, whose visits never count
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
            """latest contribution of each person, (R (N + 1), ...)"""

    def query(self, *datum: AnyArray) -> Floats:
        # the statistic of a visit that counts, else 0, minus the contribution it replaces
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
        """Return the index of a person, or of nobody, among the people of all replicas, (R,)."""
        here = (person >= 0) & (person < self._people)
        return np.asarray(self._place + np.where(here, person, self._people))

    def _counts(self, place: Ints) -> Bools:
        """Return the mask (R,) of visits that enter the sum."""
        fresh = self._clock - self._last[place] >= self._gap
        return np.asarray(fresh & (self._times[place] < self.most))

    def _as_counted(self, counts: Bools, _: Ints, *datum: AnyArray) -> tuple[AnyArray, ...]:
        *rest, last = datum
        mask = np.expand_dims(counts, tuple(range(1, last.ndim)))
        return *rest, np.where(mask, last, np.nan)  # of which the statistic is 0


def once_a_batch_norm(releases: int, fade: float, cap: int) -> float:
    """Return the sensitivity of a fading sum to a person who counts once in each of `cap` batches.

    Over batches the sum is a Toeplitz matrix with first column fade^j.
    """
    whole("releases", releases, 0)
    inside("fade", fade, 0, 1, ends=True)
    return toeplitz_norm(fade ** np.arange(releases), cap, 1) if releases else 0.0


_NORM_ROUNDING = 1e-9
"""Relative margin for rounding errors of one norm divided by another"""


def for_a_person(spend: Spend, visits: Visits) -> Repeated:
    """Return the cost for a person with `visits` of a mechanism that costs `spend` for one round.

    With k the cap and b the separation of `visits`, replacing her changes n = k rounds, or n = 2 k
    if she may come at other times: the slots she leaves, null rounds without her, and those she
    takes, each a pattern of k rounds b apart. With S(k, b) the sensitivity to k rounds b apart, a
    running sum moves no further than by S(k, b) / S(1, 1) rounds if her slots stay, and else than
    by the lesser of S(2 k, 1) / S(1, 1) and `moving` S(k, b) / S(1, 1). `moving` is 2 by the
    triangle inequality, and less for short contributions v, v' (beyond a null round's): with
    columns c_t of products >= 0, V the largest `|v|` and m the least <v, v'>::

        |sum of c_t v_t, t left, - sum of c_t v'_t, t taken|^2 <= S^2 (2 V^2 + 2 max(0, -m))

    (squares are at most S^2 V^2 each, and mixed products add up to S^2 as well). The bound holds
    for every pattern, so also if data, reference points and return times depend on releases. For a
    mechanism without a release plan the factor is n, group privacy.

    >>> from dpbandit.privacy.fading import FadingSlots
    >>> spend = GaussianSpend(0.1, "sums", FadingSlots((100, 200, 300, 400), fade=0.0))
    >>> for_a_person(spend, Visits(4, 100, pattern="public")).note
    'sums, 4 rounds of a person, which count as 2'
    """
    times = visits.rounds
    slots = spend.slots if isinstance(spend, GaussianSpend) else None
    if slots is None or times == 1 or not spend.mu:
        return Repeated(spend, times)
    factor = _norm_of_visits(slots, visits) / slots.person_norm(1, 1) * (1 + _NORM_ROUNDING)
    return Repeated(spend, times, factor) if factor < times else Repeated(spend, times)


def _norm_of_visits(slots: Slots, visits: Visits) -> float:
    S = slots.person_norm(visits.cap, visits.separation)
    if visits.pattern == "public":
        return S
    return min(slots.moving * S, slots.person_norm(2 * visits.cap, 1))
