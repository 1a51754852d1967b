"""Locally private messages of devices to a server that is not trusted.

Three kinds: a statistic of a round plus noise; a vector plus noise, or a random point of the sphere
near a unit vector (`PrivUnit`); a random direction, more often towards a vector than away.
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
    """Local messages v + N(0, (S / mu)^2 I), v a round's clipped statistic, S its sensitivity.

    Guarantee:
        Every message is locally (epsilon, delta)-DP, exactly mu-GDP, against whoever collects it. A
        user sends one message, so all messages together cost as much as one, adaptively.

    Args:
        statistic: the clipped function of a round.
        streams: the random streams of the replicas.
        epsilon, delta: privacy target of each message; epsilon = inf adds no noise.
        uses: number of messages.
        stddev: standard deviation in units of the statistic; None for the least allowed.
    """

    # "A user sends one message, so all messages together cost as much as one"
    needs = frozenset({Fact.ONCE})

    releases_sum = True
    trust = LOCAL_TRUST
    fade = 0.0
    """discount of earlier messages in a release, 0 as each is released alone"""

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
    """Law of a message about a unit vector u of R^D: a point on the sphere of radius `scale`::

        the cap {v . u >= g} has the share q of the sphere
        with probability p = e^epsilon q / (1 - q + e^epsilon q) a uniform point v of the cap,
        else a uniform point v of the rest;        send scale v, which has mean u

    The height g >= 0 makes the scale least; all of epsilon is spent on one cap. With g = 0 it is
    a half space, as in Duchi, Jordan and Wainwright (JASA 2018): the message tells one bit.

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
    """height of the cap, in [0, 1)"""

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        positive("epsilon", self.epsilon)

    @classmethod
    def of(cls, *, dim: int, epsilon: float) -> "PrivUnit":
        """Return the law of least variance for a dimension and an epsilon."""
        return _least_variance(dim, epsilon)

    @property
    def share(self) -> float:
        """Share of the sphere that the cap covers."""
        if self.dim == 1:
            return 0.5
        return float(betainc((self.dim - 1) / 2, 0.5, 1 - self.cap**2)) / 2

    @property
    def p(self) -> float:
        """Probability that the message points into the cap."""
        return 1 / (1 + exp(-self.epsilon) * (1 - self.share) / self.share)

    @property
    def scale(self) -> float:
        """Length of a message, 1 / E[v . u] for the direction v of a message about u."""
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
        """Return a message coordinate's variance, averaged over unit vectors in dimension `dim`."""
        return (self.scale**2 - 1) / dim

    def message(self, u: Floats, normals: Floats, uniforms: Floats) -> Floats:
        """Return messages (R, D) about unit vectors u, made of normals (R, D) and uniforms (R,)."""
        inside, q = uniforms < self.p, self.share
        beyond = np.where(  # share of the sphere nearer to u than v
            inside, q * uniforms / self.p, q + (1 - q) * (uniforms - self.p) / (1 - self.p)
        )
        along = _height(beyond, self.dim)[:, None]
        across = normals - np.vecdot(normals, u)[:, None] * u
        across /= np.maximum(norms(across), np.finfo(float).tiny)
        return self.scale * (along * u + np.sqrt(1 - along**2) * across)


@lru_cache(maxsize=64)
def _least_variance(dim: int, epsilon: float) -> PrivUnit:
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
    """Return the height g such that a share `beyond` of the unit sphere in R^dim has v . u >= g."""
    if dim == 1:
        return np.where(beyond < 0.5, 1.0, -1.0)
    nearer = np.minimum(beyond, 1 - beyond)
    size = np.sqrt(1 - betaincinv((dim - 1) / 2, 0.5, 2 * nearer))
    return np.where(beyond < 0.5, size, -size)


Message: TypeAlias = Literal["privunit", "gaussian", "laplace", "k-norm"]
MESSAGES: tuple[Message, ...] = ("privunit", "gaussian", "laplace", "k-norm")  # kinds of messages


class LocalVectors(Mechanism):
    """Local messages about unit vectors u of R^D, one a user, each of mean u::

        privunit     a point of a sphere, more likely in a cap about u         pure
        gaussian     u + N(0, (2 / mu)^2 I)                                    (epsilon, delta)
        laplace      u + Laplace(2 sqrt(D) / epsilon) on every coordinate      pure
        k-norm       u + noise of density exp(-epsilon |z| / 2)                pure

    With "privunit" all messages have the same length; where u is 0 or not finite, the message is
    about a public direction with a random sign, which has mean 0. With epsilon = inf messages are
    exact.

    Guarantee:
        Each message is locally private, (epsilon, delta)-DP for "gaussian" and epsilon-DP else, for
        any two vectors of length at most 1: replacing one moves it by at most 2, in l_1 by at most
        2 sqrt(D). This holds against whoever collects messages. A user sends one message, so all
        together cost as much as one, adaptively.

    Args:
        streams: the random streams of the replicas.
        dim: D, length of a vector.
        law: kind of message, see above.
        epsilon, delta: privacy target of each message; only "gaussian" uses delta.
        uses: number of messages.

    >>> sent = LocalVectors(Streams([0]), dim=10, law="k-norm", epsilon=1.0, delta=0, uses=9)
    >>> round(sent.variance, 9), round(sent.spend.pure, 9)
    (44.0, 1.0)
    """

    # "A user sends one message, so all together cost as much as one"
    needs = frozenset({Fact.ONCE})

    trust = LOCAL_TRUST

    def __init__(
        self, streams: Streams, *, dim: int, law: Message, epsilon: float, delta: float, uses: int
    ) -> None:
        whole("dim", dim, 1)
        whole("uses", uses, 0)
        one_of("law", law, MESSAGES)
        self.sensitivity, self.uses = 2.0, uses
        epsilon *= 1 - 1e-12  # for the rounding of norms
        self.spend = _spend(law, dim, epsilon, delta, min(1, uses))
        self._message, self.variance = _exact, 0.0
        if epsilon < inf:
            made = law_of(law, dim, epsilon, delta)
            self.variance = made.variance(dim)
            if isinstance(made, PrivUnit):
                self._message = _OnSphere(made, streams)
            else:
                self._message = _Added(made.sampler(streams, "messages", (dim,)))

    _message: Callable[[Floats], Floats]
    variance: float
    """noise variance of a coordinate of one message"""

    def query(self, *datum: AnyArray) -> Floats:
        # The vector, at most 1 long: (R, D)
        (u,) = datum
        u = np.where(np.isfinite(u).all(axis=1, keepdims=True), u, 0.0)
        return u / np.maximum(norms(u), 1.0)

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        """Return the round with its vector clipped to length 1, for `dpbandit.testing`."""
        return clip_norm(datum[0], 1.0), *datum[1:]

    def _release(self, *datum: AnyArray) -> Floats:
        return self._message(self.query(*datum))


def _exact(u: Floats) -> Floats:
    return u


@dataclass
class _Added:
    """Sender of messages that are vectors plus noise."""

    noise: Sampler

    def __call__(self, u: Floats) -> Floats:
        return u + self.noise()


class _OnSphere:
    """Sender of `PrivUnit` messages; a shorter vector is the mean of a random unit vector."""

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
    """Return the law of one message (`PrivUnit`) or of its noise (other kinds)."""
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
    """Local messages about vectors g, `|g| <= 1`, one a user: a unit vector of mean g / L.

    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", JASA
    2018, the mechanism for the Euclidean ball, its two coins drawn as one::

        u uniform on the unit sphere of R^D
        with probability (1 + |g| tanh(epsilon / 2)) / 2 send u or -u, whichever has u . g > 0,
        else the other one

        L = coth(epsilon / 2) sqrt(pi) Gamma((D + 1) / 2) / Gamma(D / 2)

    Where g is 0 or not finite, the message is a uniform point. With epsilon = inf the message is g,
    and L is 1. With `blocks` a user sends one message for each block: about g in a private block
    of her choice, and about 0 in the others.

    Guarantee:
        Each message is locally epsilon-DP: its density divided by that of a uniform point is 1 +-
        `|g|` tanh(epsilon / 2), and (1 + tanh) / (1 - tanh) = e^epsilon, so no message is more than
        e^epsilon times as likely from one user as from another, whatever their vectors. This needs
        no trusted server: it holds against whoever collects messages. Blocks cost nothing: for two
        users with different blocks two densities differ, one by a factor of at most 1 + tanh, the
        other of at most 1 / (1 - tanh). A user sends once, so all together cost epsilon,
        adaptively: g may depend on earlier messages.

    Args:
        streams: the random streams of the replicas.
        dim: D, length of a vector.
        epsilon: > 0, privacy of each message.
        uses: number of messages, or of users with blocks.
        blocks: number of messages of a user, one of them about her vector; None for one message.

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
        self._shape, self._tilt = (len(streams), dim), tanh(epsilon / 2)
        self._exact = epsilon == inf
        each = () if blocks is None else (blocks,)
        self._block_shape = None if blocks is None else (len(streams), blocks, dim)
        self._normals = streams.normals("directions", *each, dim)
        self._coins = streams.uniforms("sides", *each)

    @property
    def length(self) -> float:
        """Factor by which a message is multiplied to have the user's vector as mean."""
        if self._exact:
            return 1.0
        D = self._shape[1]
        return sqrt(pi) * exp(lgamma((D + 1) / 2) - lgamma(D / 2)) / self._tilt

    def query(self, *datum: AnyArray) -> Floats:
        g, *block = datum
        shaped("g", g, self._shape)
        g = clip_norm(g, 1.0)
        if self._block_shape is None:
            return g
        around = np.zeros(self._block_shape)
        around[rows(len(g)), block[0]] = g
        return around

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        """Return the round with its vector clipped to length 1, for `dpbandit.testing`."""
        return clip_norm(datum[0], 1.0), *datum[1:]

    def _release(self, *datum: AnyArray) -> Floats:
        g, u, coin = self.query(*datum), self._normals(), self._coins()
        if self._exact:
            return g
        towards = np.where(coin < (1 + self._tilt * norms(g)[..., 0]) / 2, 1.0, -1.0)
        side = np.where(np.vecdot(u, g) < 0, -towards, towards)
        return side[..., None] * u / norms(u)
