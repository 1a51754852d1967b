"""FADE for lists: clicked items are counted, not lists, and released as fading sums."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from dpbandit.agents.contextual.fading_releases import FadingReleases
from dpbandit.agents.lists.ranking import ListPlayer, diverse_lists, products
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import at_least, gaussian_target, inside, positive, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.statistics.list_clicks import ListClicks
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import Spec, fits

_LEAST_EIGENVALUE = 1e-3


@dataclass(frozen=True, kw_only=True)
class ListFADE:
    """Show the list with the best predicted clicks, learned from private fading sums.

    1. Batch 1, of max(30, 16 sqrt(d) / mu) rounds and at most T / 10: uniformly random lists. The
       next ones are longer by `growth` each.
    2. A user's clicks become a moment z of length at most 1 and a Gram matrix G (`ListClicks`); at
       the end of a batch the sums, faded, are released with noise (`FadingSum`).
    3. Releases k, of N_k users (faded ones count less), are added up with the public weights w_k =
       N_k / (s_z^2 + N_k / d), s_z the noise of z, and forgotten by `forgetting` at each. With F
       the sum of squared position weights, F G = Q diag(lambda) Q' belongs to z, and::

           theta = Q diag(1 / max(lambda + s, s / 2)) Q' z,

       s `shift` times the spectral norm of the noise in F G.
    4. Show the m items with the largest phi . theta, the largest where most look.

    Why clicks are counted and not lists: with five positions the mean over the list has the signal
    of one position for the same sensitivity, the clicked items that of up to five, because features
    of two items never point apart, so that replacing a user moves the sum by sqrt(2) and not by 2.

    Guarantee:
        (epsilon, delta)-joint DP: lists are functions of releases, public facts and the current
        user's tastes; a user enters one mechanism, mu-GDP exactly. Position weights are public.

    Code:
        Played by `ListFADEAgent` with `diverse_lists` (ranking.py); the statistic is
        `dpbandit.privacy.statistics.list_clicks.ListClicks`, the noise `FadingSum`.

    Differs from the paper:
        It is this project's own. Limits: greedy after the first batch, without a worst-case bound;
        position weights must be known.
    """

    epsilon: float = 1.0
    """> 0; inf adds no noise"""
    delta: float = 1e-5
    """in (0, 1)"""
    counted: Literal["clicks", "mean"] = "clicks"
    """what a user adds, her clicked items or the mean over her list"""
    gram_weight: float = 0.5
    """g, of the Gram matrix beside the moment; with "mean" at most sqrt(1/2)"""
    shift: float = 1.0
    """of eigenvalues, in spectral norms of their noise"""
    fade: float = 0.85
    """what is left of a batch at the next release, in [0, 1)"""
    growth: float = 0.1
    """how much longer each batch is"""
    first_batch: int | None = None
    """rounds of uniform play; if None, step 1"""
    forgetting: float = 0.7
    """what is left, at a release, of all before it; 0 plays on the latest alone, 1 never tries anew
    what noise has ruled out, and some runs stay there"""
    diversity: float = 0.0
    """what an item loses for one that is like it on the list, in clicks; 0 is relevance alone"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        positive("shift", self.shift)
        inside("fade", self.fade, 0, 1, ends=True)
        inside("growth", self.growth, 0, 100, ends=True)
        at_least("diversity", self.diversity, 0)
        inside("forgetting", self.forgetting, 0, 1, ends=True)
        positive("gram_weight", self.gram_weight)
        if self.first_batch is not None:
            whole("first_batch", self.first_batch, 1)

    def make(self, spec: Spec, streams: Streams) -> "ListFADEAgent":
        """A running agent; raises `InputError` for anything but lists."""
        return ListFADEAgent(self, fits(self, spec, ListSpec), streams)


class ListFADEAgent(ListPlayer):
    """See `ListFADE`."""

    def __init__(self, config: ListFADE, spec: ListSpec, streams: Streams) -> None:
        statistic = ListClicks(
            model=spec.clicks,
            taste=spec.dim,
            counted=config.counted,
            gram_weight=config.gram_weight,
        )
        releases = FadingReleases(
            epsilon=config.epsilon,
            delta=config.delta,
            first_batch=config.first_batch,
            growth=config.growth,
            fade=config.fade,
        )
        first = releases.first(spec, units=8 * sqrt(statistic.dim))
        self._sums = releases.sums(statistic, spec, streams, first)
        super().__init__(spec, releases.ledger(self._sums))
        self._statistic, self._config = statistic, config
        self._random = spec.uniform(streams)
        self._round, self._end, self._users = 0, 0, 0.0
        R, d = len(streams), statistic.dim
        self._moment, self._gram, self._variance = np.zeros((R, d)), np.zeros((R, d, d)), 0.0
        self._theta: Floats | None = None

    def _choose(self, u: Floats) -> Ints:
        random = self._random()
        if self._theta is None:
            return random
        scores = products(self._spec, u, self._theta)
        return diverse_lists(scores, self._spec, self._config.diversity)

    def _learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        self._round += 1
        release = self._sums(u, vectors, clicks)
        if release is not None:
            self._add(*self._statistic.unpack(release))
            self._theta = self._fit()

    def _add(self, z: Floats, G: Floats) -> None:
        """Step 3's sums, and the variance of the noise in z."""
        count, self._end = self._round - self._end, self._round
        self._users = self._sums.fade * self._users + count
        noise = self._sums.stddev**2
        weight = self._users / (noise + self._users / self._statistic.dim)
        left = self._config.forgetting
        self._moment = left * self._moment + weight * z
        self._gram = left * self._gram + weight * self._statistic.gram_total * G
        self._variance = left**2 * self._variance + weight**2 * noise

    def _fit(self) -> Floats:
        d, config = self._statistic.dim, self._config
        noise = sqrt(self._variance) / config.gram_weight * self._statistic.gram_total
        s = config.shift * sqrt(2 * d) * noise
        eigenvalues, Q = np.linalg.eigh(self._gram)
        positive = np.maximum(eigenvalues + s, max(s / 2, _LEAST_EIGENVALUE))
        return np.matvec(Q, np.vecmat(self._moment, Q) / positive)
