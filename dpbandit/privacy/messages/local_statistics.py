"""A statistic of one user's round that her own device releases, with noise of its own."""

from math import inf
from typing import Any

import numpy.typing as npt

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.mechanism import EVERYWHERE, Mechanism
from dpbandit.privacy.moments import Statistic
from dpbandit.privacy.spends import GaussianSpend


class LocalStatistic(Mechanism):
    """Of each user v + N(0, (S / mu)^2 I), v the clipped statistic of her round, S its sensitivity.

    Guarantee:
        Every message is locally (epsilon, delta)-DP, exactly mu-GDP, against whoever collects it. A
        user sends one, so all together cost what one does, adaptively.

    Args:
        statistic: the clipped function of a round.
        streams: the random streams of the replicas.
        epsilon, delta: of each message; epsilon = inf adds no noise.
        uses: messages that will be sent.
    """

    trust = EVERYWHERE
    fade = 0.0
    """nothing is kept for the next message"""

    def __init__(
        self, statistic: Statistic, streams: Streams, *, epsilon: float, delta: float, uses: int
    ) -> None:
        whole("uses", uses, 0)
        mu = inf if epsilon == inf else mu_of(epsilon, delta)
        self.spend = GaussianSpend(mu if uses else 0.0, "local Gaussian messages, one a user")
        self.sensitivity, self.uses = statistic.sensitivity, uses
        self.stddev = statistic.sensitivity / mu
        self._statistic = statistic
        self._normals = streams.normals("messages", *statistic.shape)

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped statistic of one round in its units, `(R, *shape)`."""
        return self._statistic.total(*(array[None] for array in datum)) / self._statistic.units

    def _release(self, *datum: npt.NDArray[Any]) -> Floats:
        noisy = self.query(*datum) + self.stddev * self._normals()
        released: Floats = noisy * self._statistic.units
        return released
