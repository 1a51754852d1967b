"""Problems whose users are independent: regret against the best point of their law."""

from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from dpbandit.base import Floats, Streams, whole
from dpbandit.envs.convex.adversaries import Constant, Law, Oblivious
from dpbandit.envs.convex.problems import ConvexProblem
from dpbandit.envs.streams.populations import Population
from dpbandit.specs.convex import StreamSpec

_TEST_BLOCK = 64
"""Test users drawn and added up at once, for each replica."""


class StreamProblem(ConvexProblem):
    """A convex problem whose data are independent and of one law P, possibly random, a replica.

    Subclasses set `spec`, and in `_law` say what the law is and who draws users of it. A round's
    regret is f(theta_t; z_t) - f(theta*; z_t), on average F(theta_t) - F(theta*).

    For studies there is F itself: `risk`, `excess_risk`, `population_minimiser`, and
    `suboptimality` on fresh users. Agents must not ask.
    """

    spec: StreamSpec

    @abstractmethod
    def _law(self, streams: Streams) -> tuple[Population, Callable[[Streams], Law]]: ...

    def _start(self, streams: Streams) -> Oblivious:
        self._population, users = self._law(streams)
        self._fresh = users(streams.child("test"))
        self._nowhere = Constant(np.zeros_like(self._population.minimiser))
        values = len(streams) * (self.spec.loss.domain.dim + 1)
        return Oblivious(self._nowhere, users(streams.child("users")), values)

    def _against(self, datum: Floats, suffered: Floats) -> tuple[Floats, Floats]:
        best = self.spec.loss.value(self._population.minimiser, datum)
        return -best, suffered - best

    def best_fixed(self) -> Floats:
        """theta*, (R, N)."""
        return self._population.minimiser.copy()

    def hindsight(self) -> Floats:
        """0, (R,): the comparator is the law's, not that of the users who came."""
        return np.zeros(len(self._population.minimiser))

    @property
    def population_minimiser(self) -> Floats:
        """theta*, (R, N); see `dpbandit.envs.streams.populations` how exact."""
        return self.best_fixed()

    def risk(self, theta: Floats) -> Floats:
        """F(theta), (R, N) -> (R,)."""
        return self._population.risk(theta)

    def excess_risk(self, theta: Floats) -> Floats:
        """F(theta) - F(theta*), (R, N) -> (R,)."""
        return self._population.excess(theta)

    def suboptimality(self, theta: Floats, users: int = 10_000) -> Floats:
        """(F_n(theta) - F_n(theta*)) / (F_n(0) - F_n(theta*)), F_n the mean over n fresh `users`.

        0 at theta*, 1 at the origin; (R, N) -> (R,). The test users are drawn from the replica's
        own stream and are no users of the episode; each call draws new ones.
        """
        whole("users", users, 1)
        best = self._population.minimiser
        points = np.stack([theta, best, np.zeros_like(best)])
        total = np.zeros(points.shape[:2])
        for first in range(0, users, _TEST_BLOCK):
            z = self._fresh(self._nowhere(first, min(_TEST_BLOCK, users - first)))  # (n, R, N + 1)
            losses = self.spec.loss.value(points[:, None], z)  # (3, n, R)
            total += np.ascontiguousarray(losses.swapaxes(1, 2)).sum(axis=2)  # replica by replica
        here, least, origin = total
        return (here - least) / (origin - least)
