"""Peeling in instalments: a few of the best among those who are left, at several times."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.choices.selection import CumulativeLosses, OneShotTopK
from dpbandit.privacy.mechanism import BudgetExceededError
from dpbandit.privacy.pure import BoundedRangeSpend


class RemainingTopK(OneShotTopK):
    """The k best of those that were never taken, in order, each time one is due::

        call(losses (R, n), due (R,) bool, taken (R, n) bool) -> candidates (R, k), -1 for none

    Where fewer than k are left all of them are released, then -1. `taken` is public or a function
    of releases.

    Guarantee:
        That of `OneShotTopK`: k exponential mechanisms on whoever is left each time, bounded range
        epsilon for each pick. A pick of somebody who is the only one left costs nothing, but is
        paid for; there are at most `most` picks in all, as everybody is taken only once. More raise
        `BudgetExceededError`, whatever `taken` says.

    Args:
        n: candidates.
        streams: the random streams of the replicas.
        name: the call site of the noise.
        k: picks of one selection.
        epsilon: cost of one pick; inf: no noise.
        draws: selections of one replica.
        uses: calls that will be made.
        most: candidates that are not taken before the first selection; None: all n.
        floor: candidates who lost less are equally good.

    >>> top = RemainingTopK(3, Streams([0]), "top", k=2, epsilon=np.inf, draws=1, uses=1)
    >>> top(np.array([[0.0, 1.0, 0.5]]), np.array([True]), np.array([[True, False, False]]))
    array([[2, 1]])
    """

    def __init__(
        self,
        n: int,
        streams: Streams,
        name: str,
        *,
        k: int,
        epsilon: float,
        draws: int,
        uses: int,
        most: int | None = None,
        floor: float = 0.0,
    ) -> None:
        source = CumulativeLosses(n, floor=floor)
        super().__init__(source, streams, name, k=k, epsilon=epsilon, uses=uses, draws=draws)
        most = n if most is None else most
        whole("most", most, 0, n)
        self._most, self._picked = min(draws * k, most), np.zeros(len(streams), dtype=np.int64)
        note = f"{name}: {self._most} picks of {n}"
        self.spend = BoundedRangeSpend.alike(note, epsilon, self._most)

    def _release(self, *datum: npt.NDArray[Any]) -> Any:
        chosen = super()._release(*datum)
        self._picked = self._picked + (chosen >= 0).sum(axis=1)
        if self._picked.max() > self._most:
            raise BudgetExceededError(
                f"{self.spend.note}: pick {self._picked.max()} of a replica exceeds "
                f"most={self._most}."
            )
        return chosen

    def scores(self, sums: Floats, due: Ints, *public: npt.NDArray[Any]) -> Floats:
        """-max(S, floor) of those that are left."""
        return np.where(public[0][due], -np.inf, super().scores(sums, due))

    def _largest(self, noisy: Floats) -> Ints:
        best = np.argsort(-noisy, axis=1, kind="stable")[:, : self._k]
        there = np.take_along_axis(noisy, best, axis=1) > -np.inf
        return np.where(there, best, -1)
