"""ListExperts: which of several ranking policies to follow, from private counts of clicks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpbandit.agents.contextual.fading_releases import FadingReleases
from dpbandit.agents.lists.ranking import ListPlayer, best_lists
from dpbandit.base.arrays import Floats, Ints, norms, pick, rows
from dpbandit.base.inputs import (
    InputError,
    at_least,
    gaussian_target,
    inside,
    reals,
    shown,
    vector,
    whole,
)
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.clicks import PolicyClicks
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import Spec, fits

_MOST_POLICIES = 1000


@dataclass(frozen=True, kw_only=True)
class ListExperts:
    """Follow ranking policies, drawn uniformly from those that may still be the best.

    Policy j is a public direction w_j: it shows a user with tastes u the m items with the largest
    v_i . (u * w_j), the largest where most look::

        all policies are active, C = 0; for batches twice as long each:
          1. each user meets an active policy, drawn uniformly
          2. its count grows by what her clicks earn, at most 1; all counts of the batch are
             released with noise and added to C
          3. of shows n_j, C_j / n_j is estimated with variance s_j^2, of noise and of luck;
             dropped is j if C_j / n_j + width s_j < C_i / n_i - width s_i for some i

    Shows are counted exactly: they depend on coins and releases and on nobody's data.

    Code:
        Step 1 is `ListExpertsAgent._choose` with `best_lists` (ranking.py), step 2
        `dpbandit.privacy.clicks.PolicyClicks` and `FadingSum`, step 3
        `ListExpertsAgent._learn`.

    Guarantee:
        (epsilon, delta)-joint DP: a user enters one batch and moves one of its counts by at most
        1, whatever the number of policies and the length of lists (`PolicyClicks`); who is active
        is a function of releases, who is drawn of that and of coins, and lists are functions of
        the policy drawn and the tastes of whom they are shown. epsilon = inf is the same on exact
        counts.

    Differs from the paper:
        It is this project's own. Limits: never better than the best of its policies, and no bound
        under drift, for who was dropped does not come back.
    """

    epsilon: float = 1.0
    """> 0; inf adds no noise"""
    delta: float = 1e-5
    """in (0, 1)"""
    n_policies: int | None = None
    """P, directions that are drawn uniformly, as public coins; if None, 16"""
    rankers: Sequence[Sequence[float]] | None = None
    """directions w_j, each as long as a context, to follow in place of random ones"""
    width: float = 1.0
    """half the length of an interval, in standard errors"""
    growth: float = 1.0
    """how much longer each batch is"""
    first_batch: int | None = None
    """rounds; if None, max(40 P, 10 P / mu), at most T / 10"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        if self.n_policies is not None:
            whole("n_policies", self.n_policies, 1, _MOST_POLICIES)
        at_least("width", self.width, 0)
        inside("growth", self.growth, 0, 100, ends=True)
        if self.first_batch is not None:
            whole("first_batch", self.first_batch, 1)
        if self.rankers is not None:
            object.__setattr__(self, "rankers", _directions(self.rankers))
            if self.n_policies not in (None, len(self.rankers)):
                raise InputError(
                    f"Expected n_policies={self.n_policies} to be {len(self.rankers)}, the number "
                    "of rankers, or to be left out."
                )

    def make(self, spec: Spec, streams: Streams) -> "ListExpertsAgent":
        """A running agent; raises `InputError` for anything but lists."""
        return ListExpertsAgent(self, fits(self, spec, ListSpec), streams)

    def directions(self, spec: ListSpec, streams: Streams) -> Floats:
        """(R, P, q), of length 1 unless 0."""
        if self.rankers is None:
            w = streams.normals("rankers", self.n_policies or 16, spec.dim)()
        else:
            w = np.array([vector("ranker", one, spec.dim) for one in self.rankers])
            w = np.broadcast_to(w, (len(streams), *w.shape))
        return w / np.maximum(norms(w), 1e-300)


class ListExpertsAgent(ListPlayer):
    """See `ListExperts`."""

    def __init__(self, config: ListExperts, spec: ListSpec, streams: Streams) -> None:
        self._directions, self._width = config.directions(spec, streams), config.width
        R, P = self._directions.shape[:2]
        releases = FadingReleases(
            epsilon=config.epsilon,
            delta=config.delta,
            first_batch=config.first_batch,
            growth=config.growth,
            fade=0.0,
        )
        first = releases.first(spec, units=5 * P, least=40.0 * P)
        self._sums = releases.sums(PolicyClicks(spec.clicks, P), spec, streams, first)
        super().__init__(spec, releases.ledger(self._sums))
        self._luck = streams.uniforms("policies")
        self._active = np.ones((R, P), dtype=bool)
        self._shows, self._counts = np.zeros((2, R, P))
        self._noise = 0.0
        self._shown: Ints = np.zeros(R, np.int64)

    def _choose(self, u: Floats) -> Ints:
        which = (self._luck() * self._active.sum(axis=1)).astype(np.int64)
        self._shown = (self._active.cumsum(axis=1) > which[:, None]).argmax(axis=1)
        u = np.where(np.isfinite(u), u, 0.0).clip(-1, 1)
        scores = self._spec.catalogue.products(u * pick(self._directions, self._shown))
        return best_lists(scores, self._spec.clicks)

    def _learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        self._shows[rows(len(u)), self._shown] += 1
        release = self._sums(self._shown, clicks)
        if release is None:
            return
        self._counts = self._counts + release
        self._noise += self._sums.stddev**2
        n = np.maximum(self._shows, 1e-9)  # who was never shown may be anything
        share = ((self._counts + 1) / (n + 2)).clip(0, 1)
        s = self._width * np.sqrt(self._noise + 1 / 4 + n * share * (1 - share)) / n
        rate = self._counts / n
        lowest = np.where(self._active, rate - s, -np.inf).max(axis=1, keepdims=True)
        self._active = self._active & (rate + s >= lowest)


def _directions(rankers: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    try:
        w = reals(rankers)
    except ValueError:  # a word, ragged rows
        w = np.empty(0)
    if w.ndim != 2 or w.size == 0 or not np.isfinite(w).all():
        raise InputError(
            f"Expected rankers={shown(rankers)} to be directions, lists of as many numbers as a "
            "context has."
        )
    return tuple(map(tuple, w.tolist()))
