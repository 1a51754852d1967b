"""Who buys what under a multinomial logit: at prices of a list, one of them perhaps, or at any."""

from itertools import combinations, product
from math import comb

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError
from dpbandit.losses.multinomial import chances, weights
from dpbandit.specs.best_sets import best_levels, best_prices
from dpbandit.specs.choice import AssortmentSpec, FreelyPricedSpec

MOST_SETS = 10_000
"""Among which the best fixed one is looked for."""
_FINEST = 100
"""Prices of that list, at most."""
_AT_ONCE = 1 << 20
"""Products of rounds and sets. Changes speed and last bits of totals, never regret."""


class ListedSales:
    """Utility of product j at level p is appeal_j - lost_p.

    Args:
        spec: of the products.
        lost: what each price takes of the utility, (P,); a single 0 where there are no prices.
    """

    def __init__(self, spec: AssortmentSpec, lost: Floats) -> None:
        self._lost, self._margins, self._most = lost, spec.margin_table, spec.at_most
        self.sets = every_set(spec.n_products, spec.at_most, spec.levels)
        levels = np.arange(1, spec.levels + 1)
        chosen = self.sets[:, :, None] == levels  # (n_sets, N, P)
        self._chosen = np.ascontiguousarray(1.0 * chosen.reshape(len(self.sets), -1).T)

    def best(self, appeal: Floats) -> Floats:
        """The largest expected margin of users (..., N), (...)."""
        return best_levels(self._weights(appeal), self._margins, self._most)[1]

    def sales(self, appeal: Floats, action: Ints) -> tuple[Floats, Floats]:
        """Chances and margins of sets (R, N), both (R, N)."""
        level = np.maximum(action - 1, 0)
        chance = chances(weights(appeal - self._lost[level]), action > 0)
        margin = np.take_along_axis(self._margins[None], level[..., None], axis=-1)[..., 0]
        return chance, margin

    def worth(self, appeal: Floats) -> Floats:
        """Of all `sets`, summed over n rounds (n, R, N): (R, n_sets)."""
        total = np.zeros((appeal.shape[1], len(self.sets)))
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

    The best fixed set is looked for on a list of prices as fine as `MOST_SETS` allows.
    """

    def __init__(self, spec: FreelyPricedSpec, slope: float) -> None:
        self._spec, self._slope, self._middle = spec, slope, (spec.low + spec.high) / 2
        self._costs = np.array(spec.unit_costs)
        N, S, fine = spec.n_products, spec.at_most, 2
        while fine < _FINEST and _count(N, S, fine + 1) <= MOST_SETS:
            fine += 1
        self._list = np.linspace(spec.low, spec.high, fine)
        levels = every_set(N, S, fine)
        self.sets = np.where(levels > 0, self._list[np.maximum(levels - 1, 0)], 0.0)

    def best(self, appeal: Floats) -> Floats:
        """The largest expected margin of users (..., N), (...)."""
        S, b = self._spec, np.array(self._slope)
        at_zero = appeal + self._slope * self._middle
        return best_prices(at_zero, b, self._costs, S.low, S.high, S.at_most)[1]

    def sales(self, appeal: Floats, action: Floats) -> tuple[Floats, Floats]:
        """Chances and margins of sets (R, N), both (R, N)."""
        w = weights(appeal - self._slope * (action - self._middle))
        return chances(w, action > 0), action - self._costs

    def worth(self, appeal: Floats) -> Floats:
        """Of all `sets`, summed over n rounds (n, R, N): (R, n_sets)."""
        total = np.zeros((appeal.shape[1], len(self.sets)))
        for users in appeal:
            w, margin = self._at_sets(users)
            total += (w * margin).sum(axis=-1) / (1 + w.sum(axis=-1))
        return total

    def _at_sets(self, appeal: Floats) -> tuple[Floats, Floats]:
        w = weights(appeal[:, None] - self._slope * (self.sets - self._middle))
        return np.where(self.sets > 0, w, 0.0), self.sets - self._costs


def every_set(n_products: int, at_most: int, levels: int = 1) -> npt.NDArray[np.int64]:
    """All sets of 1 to S products at each of so many prices, as levels (n_sets, N)."""
    count = _count(n_products, at_most, levels)
    if count > MOST_SETS:
        raise InputError(
            f"Expected n_products={n_products}, at_most={at_most} and {levels} prices to "
            f"leave at most {MOST_SETS} sets, for the best fixed one is looked for among all, got "
            f"{count}."
        )
    found = np.zeros((count, n_products), np.int64)
    place = 0
    for size in range(1, at_most + 1):
        for members in combinations(range(n_products), size):
            for chosen in product(range(1, levels + 1), repeat=size):
                found[place, list(members)] = chosen
                place += 1
    return found


def _count(n_products: int, at_most: int, levels: int) -> int:
    return sum(comb(n_products, k) * levels**k for k in range(1, at_most + 1))
