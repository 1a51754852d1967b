"""Locally private messages of devices to a server that is not trusted.

A statistic of a round, a vector (with added noise, or `PrivUnit`: of a unit vector, a point of the
sphere that is more likely to lie in her cap), a direction that is drawn a little more often towards
her vector than away.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, inf, lgamma, log, pi, sqrt, tanh
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import betainc, betaincinv

from dpbandit.base import (
    AnyArray,
    Floats,
    Streams,
    clip_norm,
    norms,
    one_of,
    positive,
    rows,
    shaped,
    whole,
)
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.mechanism import LOCAL_TRUST, Mechanism, Statistic
from dpbandit.privacy.noise import Gaussian, KNorm, Laplace, Law, Sampler
from dpbandit.privacy.premises import Fact
from dpbandit.privacy.pure import KNormSpend, LaplaceSpend, PureSpend
from dpbandit.privacy.spends import GaussianSpend, Spend


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
        stddev: of the noise, in units of the statistic, in place of what the target asks for.
    """

    # "A user sends one, so all together cost what one does"
    needs = frozenset({Fact.ONCE})

    releases_sum = True
    trust = LOCAL_TRUST
    fade = 0.0
    """nothing is kept for the next message"""

    def __init__(
        self,
        statistic: Statistic,
        streams: Streams,
        *,
        epsilon: float,
        delta: float,
        uses: int,
        stddev: float | None = None,
    ) -> None:
        whole("uses", uses, 0)
        mu = inf if epsilon == inf else mu_of(epsilon, delta)
        if stddev is not None:
            positive("stddev", stddev)
            mu = statistic.sensitivity / stddev
        self.spend = GaussianSpend(mu if uses else 0.0, "local Gaussian messages, one a user")
        self.sensitivity, self.uses = statistic.sensitivity, uses
        self.stddev = statistic.sensitivity / mu
        self._statistic = statistic
        self._normals = streams.normals("messages", *statistic.shape)

    def query(self, *datum: AnyArray) -> Floats:
        return self._statistic.total(*(array[None] for array in datum)) / self._statistic.units

    def _release(self, *datum: AnyArray) -> Floats:
        noisy = self.query(*datum) + self.stddev * self._normals()
        return noisy * self._statistic.units


@dataclass(frozen=True)
class PrivUnit:
    """The law of a message about a unit vector u of R^D, a point of the sphere of radius `scale`::

        the cap {v . u >= g} has the share q of the sphere
        with probability p = e^epsilon q / (1 - q + e^epsilon q) a uniform point v of the cap,
        else one of the rest;        send scale v, which has mean u

    `g` >= 0 makes `scale` least: all of epsilon goes into one cap. With g = 0 it is the half space
    of Duchi, Jordan and Wainwright (JASA 2018), one bit.

    Bhowmick, Duchi, Freudiger, Kapoor and Rogers, "Protection against reconstruction and its
    applications in private federated learning", 2018; that one cap is optimal, Asi, Feldman and
    Talwar, "Optimal algorithms for mean estimation under local differential privacy", ICML 2022.

    Guarantee:
        Locally epsilon-DP, pure, whatever the inputs: the density of v has two values, whose ratio
        p (1 - q) / ((1 - p) q) is e^epsilon.

    >>> law = PrivUnit.of(dim=10, epsilon=1.0)
    >>> round(law.scale, 4), round(law.cap, 4), round(law.p, 4), round(law.variance(10), 4)
    (7.7931, 0.1283, 0.5978, 5.9733)
    """

    dim: int
    epsilon: float
    cap: float
    """g, in [0, 1)"""

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        positive("epsilon", self.epsilon)

    @classmethod
    def of(cls, *, dim: int, epsilon: float) -> "PrivUnit":
        """The law of least variance."""
        return _best(dim, epsilon)

    @property
    def share(self) -> float:
        """q."""
        if self.dim == 1:
            return 0.5
        return float(betainc((self.dim - 1) / 2, 0.5, 1 - self.cap**2)) / 2

    @property
    def p(self) -> float:
        """The probability of the cap."""
        return 1 / (1 + exp(-self.epsilon) * (1 - self.share) / self.share)

    @property
    def scale(self) -> float:
        """The length of a message; 1 / E v . u."""
        if self.dim == 1:
            return 1 / tanh(self.epsilon / 2)
        a, q = (self.dim - 1) / 2, self.share
        log_beta = lgamma(a) + lgamma(0.5) - lgamma(a + 0.5)
        mean = exp(a * np.log1p(-(self.cap**2)) - log_beta) / (
            self.dim - 1
        )  # of v . u in the cap, q
        # p / q - (1 - p) / (1 - q), without a difference of what is nearly equal
        odds = -expm1(-self.epsilon) * self.p / q
        return float(1 / (odds * mean))

    def variance(self, dim: int) -> float:
        """Of a coordinate of a message, on average over the sphere in `dim` = D."""
        return (self.scale**2 - 1) / dim

    def message(self, u: Floats, normals: Floats, uniforms: Floats) -> Floats:
        """Messages (R, D) about unit vectors u, from standard normals (R, D), uniforms (R,)."""
        inside, q = uniforms < self.p, self.share
        beyond = np.where(  # of the sphere, on u's side of v
            inside, q * uniforms / self.p, q + (1 - q) * (uniforms - self.p) / (1 - self.p)
        )
        along = _height(beyond, self.dim)[:, None]
        across = normals - np.vecdot(normals, u)[:, None] * u
        across /= np.maximum(norms(across), np.finfo(float).tiny)
        return self.scale * (along * u + np.sqrt(1 - along**2) * across)


@lru_cache(maxsize=64)
def _best(dim: int, epsilon: float) -> PrivUnit:
    from scipy.optimize import minimize_scalar  # not before: slow to import

    if dim == 1:
        return PrivUnit(dim, epsilon, 0.0)
    found = minimize_scalar(
        lambda g: log(PrivUnit(dim, epsilon, float(g)).scale),
        bounds=(0.0, 1.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return PrivUnit(dim, epsilon, float(found.x))


def _height(beyond: Floats, dim: int) -> Floats:
    """The v . u that a share `beyond` of the sphere exceeds."""
    if dim == 1:
        return np.where(beyond < 0.5, 1.0, -1.0)
    nearer = np.minimum(beyond, 1 - beyond)
    size = np.sqrt(1 - betaincinv((dim - 1) / 2, 0.5, 2 * nearer))
    return np.where(beyond < 0.5, size, -size)


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
    >>> round(sent.variance, 9), round(sent.spend.pure, 9)
    (44.0, 1.0)
    """

    # "A user sends one, so all together cost what one does"
    needs = frozenset({Fact.ONCE})

    trust = LOCAL_TRUST

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
        epsilon *= 1 - 1e-12  # for the rounding of norms
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

    def query(self, *datum: AnyArray) -> Floats:
        # The vector, at most 1 long: (R, D)
        (u,) = datum
        u = np.where(np.isfinite(u).all(axis=1, keepdims=True), u, 0.0)
        return u / np.maximum(norms(u), 1.0)

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        """The same datum within the bounds that clipping keeps, for `dpbandit.testing`."""
        return clip_norm(datum[0], 1.0), *datum[1:]

    def _release(self, *datum: AnyArray) -> Floats:
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


class LocalDirections(Mechanism):
    """Of each user's vector g, `|g| <= 1`, one message: a unit vector of mean g / L.

    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", JASA
    2018, their mechanism for the Euclidean ball, with its two coins in one::

        u uniform on the unit sphere of R^D
        with probability (1 + |g| tanh(epsilon / 2)) / 2 send u or -u, whichever has u . g > 0,
        else the other one

        L = coth(epsilon / 2) sqrt(pi) Gamma((D + 1) / 2) / Gamma(D / 2)

    Where g is 0, or no vector of numbers, that is a uniform point. With epsilon = inf the message
    is g, and L is 1. With `blocks` she sends as many, about g to one that nobody else is told, and
    about 0 to the others.

    Guarantee:
        Each message is locally epsilon-DP: its density over that of a uniform point is 1 +-
        `|g|` tanh(epsilon / 2), and (1 + tanh) / (1 - tanh) = e^epsilon, so no message is more
        than e^epsilon times as likely from one user as from another, whatever they have. That needs
        no trusted server: it holds against whoever collects messages. Blocks cost nothing: of two
        users with different ones two densities differ, one by at most 1 + tanh, the other by at
        most 1 / (1 - tanh). A user sends once, so all together cost epsilon, adaptively: what g is
        made of may depend on earlier messages.

    Args:
        streams: the random streams of the replicas.
        dim: D.
        epsilon: > 0, of each message.
        uses: messages that will be sent.
        blocks: messages of a user, of which one is about her vector; None is one without a choice.

    >>> messages = LocalDirections(Streams([0]), dim=4, epsilon=1.0, uses=10)
    >>> round(messages.length, 1), round(messages.spend.pure, 9)
    (5.1, 1.0)
    """

    # "A user sends once, so all together cost epsilon"
    needs = frozenset({Fact.ONCE})

    trust = LOCAL_TRUST

    def __init__(
        self, streams: Streams, *, dim: int, epsilon: float, uses: int, blocks: int | None = None
    ) -> None:
        whole("dim", dim, 1)
        whole("uses", uses, 0)
        if blocks is not None:
            whole("blocks", blocks, 1)
        if epsilon != inf:
            positive("epsilon", epsilon)
        epsilon *= 1 - 1e-12  # for the rounding of norms
        self.spend = PureSpend.alike("local directions, one a user", epsilon, min(1, uses))
        self.sensitivity, self.uses = 2.0, uses
        self._shape, self._pull = (len(streams), dim), tanh(epsilon / 2)
        self._exact = epsilon == inf
        each = () if blocks is None else (blocks,)
        self._all = None if blocks is None else (len(streams), blocks, dim)
        self._normals = streams.normals("directions", *each, dim)
        self._coins = streams.uniforms("sides", *each)

    @property
    def length(self) -> float:
        """L, by which a message has to be multiplied to have mean g."""
        if self._exact:
            return 1.0
        D = self._shape[1]
        return sqrt(pi) * exp(lgamma((D + 1) / 2) - lgamma(D / 2)) / self._pull

    def query(self, *datum: AnyArray) -> Floats:
        g, *block = datum
        shaped("g", g, self._shape)
        g = clip_norm(g, 1.0)
        if self._all is None:
            return g
        around = np.zeros(self._all)
        around[rows(len(g)), block[0]] = g
        return around

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        """The same datum within the bounds that clipping keeps, for `dpbandit.testing`."""
        return clip_norm(datum[0], 1.0), *datum[1:]

    def _release(self, *datum: AnyArray) -> Floats:
        g, u, coin = self.query(*datum), self._normals(), self._coins()
        if self._exact:
            return g
        towards = np.where(coin < (1 + self._pull * norms(g)[..., 0]) / 2, 1.0, -1.0)
        side = np.where(np.vecdot(u, g) < 0, -towards, towards)
        return side[..., None] * u / norms(u)
