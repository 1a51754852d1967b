"""The total loss of one candidate, with Laplace noise."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, pick
from dpbandit.base.inputs import InputError, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.choices.selection import CumulativeLosses, distinct
from dpbandit.privacy.mechanism import BudgetExceededError, Mechanism
from dpbandit.privacy.noise.laws import Laplace
from dpbandit.privacy.pure import PureSpend


class NoisyTotal(Mechanism):
    """S(x) + Laplace noise for a candidate x, where it is asked for; S sums losses in [0, 1]::

        call(losses (R, n), x (R,), due (R,) bool) -> (R,), -inf where not due

    Guarantee:
        If x and due are public or functions of releases, one answer costs 1 / scale, because a
        round moves S(x) by at most 1. All calls together cost `draws` times that, and more answers
        than `draws` for one replica raise `BudgetExceededError`.

    >>> total = NoisyTotal(2, Streams([0]), "total", scale=0.0, draws=2, uses=2)
    >>> x, yes, loss = np.array([1]), np.ones(1, dtype=bool), np.array([[0.0, 0.75]])
    >>> total(loss, x, yes), total(loss, x, yes)
    (array([0.75]), array([1.5]))
    """

    order = np.inf

    def __init__(
        self, n: int, streams: Streams, name: str, *, scale: float, draws: int, uses: int
    ) -> None:
        whole("draws", draws, 0, uses)
        self._source, self._shape = CumulativeLosses(n), (len(streams), n)
        cost = 1 / scale if scale else np.inf
        self.spend = PureSpend.alike(f"{name}: {draws} Laplace totals", cost, draws)
        self.sensitivity, self.uses = self._source.sensitivity, uses
        self._draws, self._asked = draws, np.zeros(len(streams), dtype=np.int64)
        self._noise = Laplace(scale).sampler(streams, name, ())
        self._total: Floats = np.zeros((1, n))  # exact: never leaves here

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """What this round adds to S, (R, n)."""
        if datum[0].shape != self._shape:
            raise InputError(f"Expected losses of shape {datum[0].shape} to be {self._shape}.")
        return self._source.query(datum[0])

    def _release(self, *datum: npt.NDArray[Any]) -> Any:
        _, x, due = datum
        self._asked = self._asked + (due != 0)  # also where it is no bool: -1 is an answer
        if self._asked.max() > self._draws:
            raise BudgetExceededError(
                f"{self.spend.note}: total {self._draws + 1} of a replica exceeds "
                f"draws={self._draws}."
            )
        self._total = self._total + distinct(self.query(*datum))
        noisy = pick(np.broadcast_to(self._total, self._shape), x) + self._noise()
        return np.where(due, noisy, -np.inf)
