"""Local messages: each device adds noise of its own before anything leaves it."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, norms
from dpbandit.base.inputs import one_of, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.mechanism import EVERYWHERE, Mechanism
from dpbandit.privacy.messages.priv_unit import PrivUnit
from dpbandit.privacy.noise.laws import Gaussian, KNorm, Laplace, Law
from dpbandit.privacy.noise.samplers import Sampler
from dpbandit.privacy.pure import KNormSpend, LaplaceSpend, PureSpend
from dpbandit.privacy.spends import GaussianSpend, Spend

Message: TypeAlias = Literal["privunit", "gaussian", "laplace", "k-norm"]
MESSAGES: tuple[Message, ...] = ("privunit", "gaussian", "laplace", "k-norm")


class LocalVectors(Mechanism):
    """Of each user's unit vector u of R^D, one message of mean u::

        privunit     a point of a sphere, more likely in a cap about u         pure
        gaussian     u + N(0, (2 / mu)^2 I)                                    (epsilon, delta)
        laplace      u + Laplace(2 sqrt(D) / epsilon) on every coordinate      pure
        k-norm       u + noise of density exp(-epsilon |z| / 2)                pure

    With "privunit" every message has a length that says nothing; where u is 0, or no vector of
    numbers, it is about a public direction with a random sign, which has mean 0. With epsilon = inf
    messages are exact.

    Guarantee:
        Each message is locally private, (epsilon, delta)-DP for "gaussian" and epsilon-DP else, for
        any two vectors of length at most 1: replacing one moves it by at most 2, in l_1 by at most
        2 sqrt(D). That holds against whoever collects messages. A user sends one, so all together
        cost what one does, adaptively.

    Args:
        streams: the random streams of the replicas.
        dim: D.
        law: of the noise.
        epsilon, delta: of each message; delta is of "gaussian" alone.
        uses: messages that will be sent.

    >>> sent = LocalVectors(Streams([0]), dim=10, law="k-norm", epsilon=1.0, delta=0, uses=9)
    >>> sent.variance, sent.spend.pure
    (44.0, 1.0)
    """

    trust = EVERYWHERE

    def __init__(
        self,
        streams: Streams,
        *,
        dim: int,
        law: Message,
        epsilon: float,
        delta: float,
        uses: int,
    ) -> None:
        whole("dim", dim, 1)
        whole("uses", uses, 0)
        one_of("law", law, MESSAGES)
        self.sensitivity, self.uses = 2.0, uses
        self.spend = _spend(law, dim, epsilon, delta, min(1, uses))
        self._send, self.variance = _exact, 0.0
        if epsilon < inf:
            made = law_of(law, dim, epsilon, delta)
            self.variance = made.variance(dim)
            if isinstance(made, PrivUnit):
                self._send = _OnSphere(made, streams)
            else:
                self._send = _Added(made.sampler(streams, "messages", (dim,)))

    _send: Callable[[Floats], Floats]
    variance: float
    """of a coordinate of one message"""

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The vector, at most 1 long: (R, D)."""
        (u,) = datum
        u = np.where(np.isfinite(u).all(axis=1, keepdims=True), u, 0.0)
        return u / np.maximum(norms(u), 1.0)

    def _release(self, *datum: npt.NDArray[Any]) -> Floats:
        return self._send(self.query(*datum))


def _exact(u: Floats) -> Floats:
    return u


@dataclass
class _Added:
    """Messages with noise on top."""

    noise: Sampler

    def __call__(self, u: Floats) -> Floats:
        return u + self.noise()


class _OnSphere:
    """Messages of `PrivUnit`; a vector shorter than 1 is one of two unit vectors of that mean."""

    def __init__(self, law: PrivUnit, streams: Streams) -> None:
        self.law, self._axis = law, np.eye(law.dim)[0]
        self._normals = streams.normals("messages", law.dim)
        self._coins = streams.uniforms("caps and signs", 2)

    def __call__(self, u: Floats) -> Floats:
        length = norms(u)
        normals, coins = self._normals(), self._coins()
        towards = np.where(length > 0, u / np.where(length > 0, length, 1.0), self._axis)
        sign = np.where(coins[:, 1] < (1 + length[:, 0]) / 2, 1.0, -1.0)
        return self.law.message(sign[:, None] * towards, normals, coins[:, 0])


def law_of(law: Message, dim: int, epsilon: float, delta: float) -> PrivUnit | Law:
    """The law of one message, or of its noise."""
    if law == "privunit":
        return PrivUnit.of(dim=dim, epsilon=epsilon)
    if law == "gaussian":
        return Gaussian(2 / mu_of(epsilon, delta))
    return Laplace(2 * sqrt(dim) / epsilon) if law == "laplace" else KNorm(2 / epsilon)


def _spend(law: Message, dim: int, epsilon: float, delta: float, count: int) -> Spend:
    note = f"local messages, {law}, one a user"
    if epsilon == inf:
        return GaussianSpend(inf * count if count else 0.0, note)
    if law == "gaussian":
        return GaussianSpend(mu_of(epsilon, delta) * count, note)
    if law == "laplace":
        return LaplaceSpend(epsilon, count=count, note=note)
    if law == "k-norm":
        return KNormSpend(dim, epsilon, count=count, note=note)
    return PureSpend.alike(note, epsilon, count)
