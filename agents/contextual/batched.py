"""Agents that learn from released sums alone, whenever a prefix sum hands one out."""

from abc import ABC, abstractmethod

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.sums.prefix_sums import PrefixSum
from dpbandit.specs.protocols import ContextualSpec


class Batched(ABC):
    """Plays the arm with the best score, and feeds every round to the mechanism.

    Until something has been released disjoint arms take turns, one for every reward seen, since
    nothing tells them apart.
    """

    def __init__(
        self, spec: ContextualSpec, replicas: int, sums: PrefixSum, ledger: Ledger
    ) -> None:
        self.ledger = ledger
        self._sums, self._spec, self._replicas = sums, spec, replicas
        self._round, self._released = 0, False

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        if not (self._released or self._spec.shared):
            return np.full(self._replicas, self._round % self._spec.n_actions)
        best: Ints = self.scores(context).argmax(axis=1)
        return best

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed the mechanism; learn when it releases."""
        self._round += 1
        release = self._sums(context, action, feedback)
        if release is not None:
            self._released = True
            self._learn(release)

    @abstractmethod
    def scores(self, context: Floats) -> Floats:
        """What each arm is worth, (R, K)."""

    @abstractmethod
    def _learn(self, release: Floats) -> None: ...


class BatchedMoments(Batched):
    """Plays argmax x . u_a on the released `Moments` u.

    Where contexts are isotropic, u_a is proportional to the regression parameter in expectation,
    with one factor for all arms that are played equally often: the order of the scores means
    something, their size does not.
    """

    def __init__(
        self, spec: ContextualSpec, replicas: int, sums: PrefixSum, ledger: Ledger
    ) -> None:
        super().__init__(spec, replicas, sums, ledger)
        self._u: Floats = np.zeros((replicas, 1 if spec.shared else spec.n_actions, spec.dim))

    def scores(self, context: Floats) -> Floats:
        """x . u_a, (R, K), in reward times squared length of a context, summed over rounds."""
        if self._spec.shared:
            return np.matvec(context, self._u[:, 0])
        return np.matvec(self._u, context)

    def _learn(self, release: Floats) -> None:
        self._u = release.reshape(self._u.shape)
