"""Private counts of purchases for a multinomial logit without contexts."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpbandit.agents.choice.offers import item_bought, items_of
from dpbandit.agents.contextual.fading_releases import FadingReleases
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import at_least, gaussian_target, inside, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.statistics.purchases import Purchases
from dpbandit.specs.best_sets import best_levels
from dpbandit.specs.choice import AssortmentSpec
from dpbandit.specs.protocols import Agent, Spec, fits

_FIRST = 10.0
"""Rounds of the first batch, over 2 sqrt(N) / mu."""
_LEAST, _MOST = 1e-6, 50.0
"""Of a weight v."""


@dataclass(frozen=True, kw_only=True)
class MNLCounts:
    """Offer the best set for optimistic weights v, from counts that are released batch by batch.

    What takes the place of the epochs of `MNLBandit`, which are not private. A design of this
    project, for problems whose users have no contexts (which it does not look at)::

        1. public batches, each 1.3 times as long as the one before, the first of random sets
        2. at the end of one release, with noise, b_j, purchases of j, and z_j, how often nothing
           was bought while j was offered; add them to the earlier ones
        3. v_j = b_j / z_j and `bonus` standard errors, of chance and of noise
        4. offer the best set for v, exactly

    v_j is right whatever else was offered: P(j) / P(nothing) = v_j in every set that has j.

    Code:
        Step 2 is the statistic `Purchases` in a `FadingSum` that forgets at once, which
        `FadingReleases` (fading_releases.py) makes, told what `items_of` and `item_bought`
        (offers.py) say; step 3 is `MNLCountsAgent.update`, step 4 `best_levels` of
        `dpbandit.specs.best_sets`.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        exactly mu-GDP: a user is in one release, moves its counts by at most sqrt(2) (`Purchases`),
        and her set and her choice enter nowhere else. The ends of batches are public.

    >>> from dpbandit import certify
    >>> from dpbandit.envs import AssortmentBandit
    >>> round(certify(MNLCounts(epsilon=1.0), AssortmentBandit().spec).epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    first_batch: int | None = None
    """rounds of random sets; if None, as many as the noise asks for, at most a tenth of T"""
    growth: float = 0.3
    """by how much each batch is longer than the one before"""
    bonus: float = 1.0
    """optimism, in standard errors of v"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        if self.first_batch is not None:
            whole("first_batch", self.first_batch, 1)
        inside("growth", self.growth, 0, 100, ends=True)
        at_least("bonus", self.bonus, 0)

    def make(self, spec: Spec, streams: Streams) -> Agent:
        """A running agent; raises `InputError` for anything but assortments."""
        return MNLCountsAgent(self, fits(self, spec, AssortmentSpec), streams)


class MNLCountsAgent:
    """See `MNLCounts`."""

    def __init__(self, config: MNLCounts, spec: AssortmentSpec, streams: Streams) -> None:
        self._spec, items = spec, spec.n_products * spec.levels
        self._bonus = config.bonus
        self._counts = Purchases(n_items=items, at_most=spec.at_most)
        releases = FadingReleases(
            epsilon=config.epsilon,
            delta=config.delta,
            first_batch=config.first_batch,
            growth=config.growth,
            fade=0.0,
        )
        first = releases.first(spec, _FIRST * sqrt(items))
        self._sums = releases.sums(self._counts, spec, streams, first)
        self.ledger = releases.ledger(self._sums)
        self._random = spec.uniform(streams)
        self._b, self._z = np.zeros((2, len(streams), items))
        self._variance = 0.0
        self._set: Ints | None = None

    def act(self, context: Floats) -> Ints:
        """The set of this batch, (R, N); random ones before the first release."""
        return self._random() if self._set is None else self._set.copy()

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed the mechanism; choose another set when it releases."""
        offered, bought = items_of(self._spec, action), item_bought(self._spec, action, feedback)
        release = self._sums(offered, bought)
        if release is None:
            return
        b, z = self._counts.unpack(release)
        self._b, self._z = self._b + b, self._z + z
        self._variance += self._sums.stddev**2
        S, noise = self._spec.at_most, self._variance  # of b; S times as much of z
        b, z = np.maximum(self._b, 0), np.maximum(self._z, 1 + 2 * sqrt(noise))
        v = b / z
        error = np.sqrt(b + noise + v**2 * (z + noise * S)) / z
        table = self._spec.margin_table
        hopeful = np.clip(v + self._bonus * error, _LEAST, _MOST).reshape(-1, *table.shape)
        self._set = best_levels(hopeful, table, S)[0]
