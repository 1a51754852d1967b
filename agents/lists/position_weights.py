"""How often users look at a position, from private counts of clicks on shuffled lists."""

from math import ceil, inf

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.losses.click_models import PositionBased, UntoldPositions
from dpbandit.privacy.clicks import PositionCounts
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.fading import certified_fading_sum
from dpbandit.specs.lists import ListSpec

_LEAST = 0.05
"""No position is taken for less looked at than this, beside the best."""


class PositionWeights:
    """Counts clicks for some rounds of lists in random order, and then knows weights.

    In random order every position has an item of the same mean attraction a, whatever is on the
    list, so that n users click n chi_k a times at k. Counts C are released once, with noise; the
    weights are C over its largest entry, at least 0.05. Their scale is unknown, and not needed: it
    is one of theta.

    Args:
        spec: the public facts.
        streams: the random streams of the replicas.
        epsilon, delta: what the release costs those who were counted.
        rounds: to count; None, max(500, 80 sqrt(m) / mu), at most T / 10.
    """

    def __init__(
        self, spec: ListSpec, streams: Streams, *, epsilon: float, delta: float, rounds: int | None
    ) -> None:
        if not isinstance(spec.clicks, PositionBased | UntoldPositions):
            raise InputError(
                "Expected positions='learned' where clicks are position-based, got "
                f"{type(spec.clicks).__name__}."
            )
        m = spec.length
        if rounds is None:
            mu = inf if epsilon == inf else mu_of(epsilon, delta)
            rounds = max(1, min(ceil(max(500, 80 * m**0.5 / mu)), spec.horizon // 10))
        self.rounds, self.known = rounds, False
        self._counts = certified_fading_sum(
            PositionCounts(m),
            streams.child("positions"),
            ends=[rounds],
            horizon=spec.horizon,
            fade=0.0,
            epsilon=epsilon,
            delta=delta,
        )
        self.spend = self._counts.spend
        self._luck = streams.uniforms("orders of lists", m)
        self.values: Floats = np.ones((len(streams), m))
        """f, (R, m), 1 where most look"""

    @property
    def look_total(self) -> Floats:
        """The sum of f, (R, 1)."""
        return self.values.sum(axis=1, keepdims=True)

    def count(self, clicks: Floats) -> None:
        """One more shuffled list, clicks (R, m)."""
        release = self._counts(clicks)
        if release is None:
            return
        most = np.maximum(release.max(axis=1, keepdims=True), 1e-300)
        self.values, self.known = (release / most).clip(_LEAST, 1), True

    def shuffled(self, lists: Ints) -> Ints:
        """Lists (R, m) in uniformly random order."""
        order = np.argsort(self._luck(), axis=1)
        return np.take_along_axis(lists, order, axis=1)

    def placed(self, lists: Ints) -> Ints:
        """Lists (R, m), best first, with the best where most look."""
        found = np.empty_like(lists)
        order = np.argsort(-self.values, axis=1, kind="stable")
        np.put_along_axis(found, order, lists, axis=1)
        return found
