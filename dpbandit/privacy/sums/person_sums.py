"""Sums over people: a person who comes often counts as often as was paid for."""

from collections.abc import Sequence
from math import inf, sqrt
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.base.inputs import one_of
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.ledger import Visits
from dpbandit.privacy.mechanism import ADDED_UP
from dpbandit.privacy.people import fading_norm, once_a_batch_norm
from dpbandit.privacy.residuals import SignedDirections
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.privacy.sums.fading import FadingSum, released_ends

Counted: TypeAlias = Literal["first", "batch", "visits"]
COUNTED: tuple[Counted, ...] = ("first", "batch", "visits")


class PersonSum(FadingSum):
    """Sums of signed directions over batches of a public clock, each released once, over people::

        counted = "first"    a person's first visit ever, and no other
        counted = "batch"    her first visit in each batch, in at most k batches
        counted = "visits"   every visit, k of them, any two b slots apart

    What does not count enters as the null contribution 0, in its slot, and so does an empty slot:
    the clock never stops. Who counted is exact state of the mechanism and never handed out.

    It can be run by secure aggregation: a device knows what it has sent itself, and one in every
    slot, also where nobody came, sends 0 and its share N(0, (2 S / mu)^2 / (h n) I) of the noise of
    a batch of n slots, of which a fraction h has to be honest and stay.

    Args:
        people: N; a person is a number in [0, N), anything else is nobody.
        visits: the cap k and the separation b.
        ends, horizon, streams: as of `FadingSum`, with fade 0.
        epsilon, delta: of a person; inf adds no noise.
        honest: h, in (0, 1], of the slots of a batch, not of people: what hides her vector is h n
            shares of noise, and an empty slot in which nobody sends has none; a server that adds
            the noise itself is honest.

    Guarantee:
        (epsilon, delta)-DP for a person, exactly mu-GDP, under adaptively chosen data and return
        times. Whether others count depends on their own slots alone, so neighbouring streams differ
        in what one person contributes: vectors of norm at most 1, which together move the releases
        by at most S times what one of them does, S = 1 for "first", sqrt(min(k, releases)) for
        "batch", and for "visits" what k of them, b apart, do to batches at most (`fading_norm`; k,
        which is group privacy, if b = 1 and batches are longer). Each moves by at most 2 where her
        slots stay (one vector against another) and where they move, since `|v - 0|^2 + |0 - v'|^2
        <= 2 <= 4`. All releases together are (2 S / stddev)-GDP by composition of adaptively chosen
        Gaussian means (append a release that fills the sum of squares up to (2 S)^2). With h < 1
        that is the noise of the honest, and 1 / sqrt(h) times as much is there.
    """

    trust = ADDED_UP

    def __init__(
        self,
        dim: int,
        streams: Streams,
        *,
        people: int,
        visits: Visits,
        counted: Counted,
        centre: float,
        ends: Sequence[int],
        horizon: int,
        epsilon: float,
        delta: float,
        honest: float = 1.0,
    ) -> None:
        one_of("counted", counted, COUNTED)
        m = len(released_ends(ends, horizon))
        shown, k, b = released_ends(ends, horizon), visits.cap, visits.separation
        self.person_norm = {
            "first": lambda: float(min(m, 1)),
            "batch": lambda: once_a_batch_norm(m, 0.0, k),
            "visits": lambda: fading_norm(shown, 0.0, k, b),
        }[counted]()
        mu = inf if epsilon == inf else mu_of(epsilon, delta)
        statistic = SignedDirections(n_actions=1, dim=dim, centre=centre)
        super().__init__(
            statistic,
            streams,
            ends=ends,
            horizon=horizon,
            fade=0.0,
            noise_multiplier=self.person_norm / (mu * sqrt(honest)),
        )
        self.honest = honest
        spent = 0.0 if m == 0 else mu
        words = {"first": "first visits", "batch": "a visit a batch", "visits": "all visits"}
        note = f"sums over people, {words[counted]}, {m} Gaussian releases"
        note += f", {100 * honest:g} % of devices honest" if honest < 1 else ""
        self.spend = GaussianSpend(spent, note)
        self.most = {"first": 1, "batch": min(visits.cap, m), "visits": visits.cap}[counted]
        # beside each replica's people stands nobody, who has had her share
        self._place = (people + 1) * rows(len(streams))
        times = np.zeros((len(streams), people + 1), np.int64)
        times[:, people] = self.most
        self._people, self._times = people, times.ravel()
        self._gap = 1 if counted == "batch" else visits.separation
        self._last = np.full(times.size, -self._gap)
        self._by_batch, self._slot = counted == "batch", 0
        self._latest: npt.NDArray[np.bool_] = np.zeros(len(streams), bool)
        self._arms = np.zeros(len(streams), np.int64)

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The signed direction of a visit that counts, else 0: (R, 1, d)."""
        place = self._place_of(datum[0])
        return super().query(*self._as_counted(self._counts(place), *datum))

    def _release(self, *datum: npt.NDArray[Any]) -> Floats | None:
        place = self._place_of(datum[0])
        self._latest = self._counts(place)
        hers = place[self._latest]
        self._times[hers] += 1
        self._last[hers] = self._clock
        self._slot += 1
        return super()._release(*self._as_counted(self._latest, *datum))

    def entered(self, *datum: npt.NDArray[Any]) -> Floats:
        """What the latest visit added, (R, 1, d)."""
        return super().query(*self._as_counted(self._latest, *datum))

    @property
    def _clock(self) -> int:
        return self._released if self._by_batch else self._slot

    def _place_of(self, person: Ints) -> Ints:
        """Of her, or of nobody, among the people of all replicas, (R,)."""
        here = (person >= 0) & (person < self._people)
        return np.asarray(self._place + np.where(here, person, self._people))

    def _counts(self, place: Ints) -> npt.NDArray[np.bool_]:
        """Whether this visit does, (R,)."""
        fresh = self._clock - self._last[place] >= self._gap
        return np.asarray(fresh & (self._times[place] < self.most))

    def _as_counted(
        self, counts: npt.NDArray[np.bool_], _: Ints, x: Floats, reward: Floats
    ) -> tuple[Floats, Ints, Floats]:
        return x, self._arms, np.where(counts, reward, np.nan)  # which says nothing
