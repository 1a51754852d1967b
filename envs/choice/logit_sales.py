"""Who buys what under a multinomial logit: at prices of a list, one of them perhaps, or at any."""

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.envs.choice.fixed_sets import (
    MOST_SETS,
    Contest,
    Enumerated,
    Exchanged,
    count_sets,
    every_set,
)
from dpbandit.losses.multinomial import chances, weights
from dpbandit.specs.best_sets import best_levels, best_prices
from dpbandit.specs.choice import AssortmentSpec, FreelyPricedSpec

_FINEST, _COARSEST = 100, 5
"""Prices of the list from which the best fixed ones are taken where any may be asked."""
_AT_ONCE = 1 << 20
"""Products of rounds and sets. Changes speed and last bits of totals, never regret."""


class ListedSales:
    """Utility of product j at level p is appeal_j - lost_p.

    Args:
        margins: what sales earn, (N, P).
        lost: what each price takes of the utility, (P,); a single 0 where there are no prices.
        at_most: S.
    """

    def __init__(self, margins: Floats, lost: Floats, at_most: int) -> None:
        self._margins, self._lost, self._most = margins, lost, at_most
        N, P = margins.shape
        self._sets = None
        if count_sets(N, at_most, P) <= MOST_SETS:
            self._sets = every_set(N, at_most, P)
            chosen = self._sets[:, :, None] == np.arange(1, P + 1)  # (n_sets, N, P)
            self._chosen = np.ascontiguousarray(1.0 * chosen.reshape(len(self._sets), -1).T)

    @classmethod
    def of(cls, spec: AssortmentSpec, lost: Floats) -> "ListedSales":
        """Of the products of a spec."""
        return cls(spec.margin_table, lost, spec.at_most)

    def best(self, appeal: Floats) -> Floats:
        """The largest expected margin of users (..., N), (...)."""
        return best_levels(self._weights(appeal), self._margins, self._most)[1]

    def sales(self, appeal: Floats, action: Ints) -> tuple[Floats, Floats]:
        """Chances and margins of sets (R, N), both (R, N)."""
        level = np.maximum(action - 1, 0)
        chance = chances(weights(appeal - self._lost[level]), action > 0)
        margin = np.take_along_axis(self._margins[None], level[..., None], axis=-1)[..., 0]
        return chance, margin

    def contest(self, replicas: int) -> Contest:
        """Of fixed sets, in one episode."""
        if self._sets is None:
            return Exchanged(self._weights, self._margins, self._most, replicas)
        return Enumerated(self._sets, self._worth, replicas)

    def fixed(self, levels: Ints) -> Ints:
        """Sets (R, N) of a contest as actions."""
        return levels

    def _worth(self, appeal: Floats) -> Floats:
        total = np.zeros((appeal.shape[1], self._chosen.shape[1]))
        at_once = max(1, _AT_ONCE // total.size)
        for first in range(0, len(appeal), at_once):
            w = self._weights(appeal[first : first + at_once])
            earned = (w * self._margins).reshape(*w.shape[:2], -1) @ self._chosen
            total += (earned / (1 + w.reshape(*w.shape[:2], -1) @ self._chosen)).sum(axis=0)
        return total

    def _weights(self, appeal: Floats) -> Floats:
        return weights(appeal[..., None] - self._lost)


class FreeSales:
    """Utility of product j at price p is appeal_j - slope (p - the middle of the range).

    The best fixed set is looked for on a list of 5 to 100 prices, as many as there may be sets.
    """

    def __init__(self, spec: FreelyPricedSpec, slope: float) -> None:
        self._spec, self._slope, self._middle = spec, slope, (spec.low + spec.high) / 2
        self._costs = np.array(spec.unit_costs)
        N, S, fine = spec.n_products, spec.at_most, _COARSEST
        while fine < _FINEST and count_sets(N, S, fine + 1) <= MOST_SETS:
            fine += 1
        self._list = np.linspace(spec.low, spec.high, fine)
        self._listed = ListedSales(
            self._list - self._costs[:, None], slope * (self._list - self._middle), S
        )

    def best(self, appeal: Floats) -> Floats:
        """The largest expected margin of users (..., N), (...)."""
        S, b = self._spec, np.array(self._slope)
        at_zero = appeal + self._slope * self._middle
        return best_prices(at_zero, b, self._costs, S.low, S.high, S.at_most)[1]

    def sales(self, appeal: Floats, action: Floats) -> tuple[Floats, Floats]:
        """Chances and margins of sets (R, N), both (R, N)."""
        w = weights(appeal - self._slope * (action - self._middle))
        return chances(w, action > 0), action - self._costs

    def contest(self, replicas: int) -> Contest:
        """Of fixed sets at prices of the list, in one episode."""
        return self._listed.contest(replicas)

    def fixed(self, levels: Ints) -> Floats:
        """Sets (R, N) of a contest as actions."""
        return np.where(levels > 0, self._list[np.maximum(levels - 1, 0)], 0.0)
