"""Directions that a user's own device draws: a little more often towards her vector than away."""

from math import exp, inf, lgamma, pi, sqrt, tanh
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, clip_norm, norms
from dpbandit.base.inputs import positive, shaped, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.mechanism import EVERYWHERE, Mechanism
from dpbandit.privacy.pure import PureSpend


class LocalDirections(Mechanism):
    """Of each user's vector g, `|g| <= 1`, one message: a unit vector of mean g / L.

    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", JASA
    2018, their mechanism for the Euclidean ball, with its two coins in one::

        u uniform on the unit sphere of R^D
        with probability (1 + |g| tanh(epsilon / 2)) / 2 send u or -u, whichever has u . g > 0,
        else the other one

        L = coth(epsilon / 2) sqrt(pi) Gamma((D + 1) / 2) / Gamma(D / 2)

    Where g is 0, or no vector of numbers, that is a uniform point. With epsilon = inf the message
    is g, and L is 1.

    Guarantee:
        Each message is locally epsilon-DP: its density over that of a uniform point is 1 +-
        `|g|` tanh(epsilon / 2), and (1 + tanh) / (1 - tanh) = e^epsilon, so no message is more
        than e^epsilon times as likely from one user as from another, whatever they have. That needs
        no trusted server: it holds against whoever collects messages. A user sends one, so all
        together cost epsilon, adaptively: what g is made of may depend on earlier messages.

    Args:
        streams: the random streams of the replicas.
        dim: D.
        epsilon: > 0, of each message.
        uses: messages that will be sent.

    >>> messages = LocalDirections(Streams([0]), dim=4, epsilon=1.0, uses=10)
    >>> round(messages.length, 1), round(messages.spend.pure, 9)
    (5.1, 1.0)
    """

    trust = EVERYWHERE

    def __init__(self, streams: Streams, *, dim: int, epsilon: float, uses: int) -> None:
        whole("dim", dim, 1)
        whole("uses", uses, 0)
        if epsilon != inf:
            positive("epsilon", epsilon)
        epsilon *= 1 - 1e-12  # for the rounding of norms
        self.spend = PureSpend.alike("local directions, one a user", epsilon, min(1, uses))
        self.sensitivity, self.uses = 2.0, uses
        self._shape, self._pull = (len(streams), dim), tanh(epsilon / 2)
        self._exact = epsilon == inf
        self._normals = streams.normals("directions", dim)
        self._coins = streams.uniforms("sides")

    @property
    def length(self) -> float:
        """L, by which a message has to be multiplied to have mean g."""
        if self._exact:
            return 1.0
        D = self._shape[1]
        return sqrt(pi) * exp(lgamma((D + 1) / 2) - lgamma(D / 2)) / self._pull

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped vector, (R, D)."""
        (g,) = datum
        shaped("g", g, self._shape)
        return clip_norm(g, 1.0)

    def _release(self, *datum: npt.NDArray[Any]) -> Floats:
        g, u, coin = self.query(*datum), self._normals(), self._coins()
        if self._exact:
            return g
        towards = np.where(coin < (1 + self._pull * norms(g)[:, 0]) / 2, 1.0, -1.0)
        side = np.where(np.vecdot(u, g) < 0, -towards, towards)
        sent: Floats = side[:, None] * u / norms(u)
        return sent
