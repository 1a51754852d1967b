"""Laws P of independent users' data z, with risk F(theta) = E f(theta; z) and minimiser theta*.

Features are normal vectors scaled to l_q length 1. Answers follow the score m = <x, theta_0>::

    linear      y = m + e,  e normal, truncated
    logistic    P(y = 1) = 1 / (1 + exp(-m)), else y = -1
    quantile    y = m + e,  e of two half-normals, truncated, P(e <= 0) = level

with `|e| <= bound - |theta_0|_p` (`HalfNormals`), so that `|y| <= bound`. theta_0 is exactly the
minimiser, as the mean, logit or level-quantile of y given x is <x, theta_0>. A share of users gives
an outlier instead: -y ("flip"), or +bound or -bound by a fair coin ("coin").
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache, cached_property
from math import exp, pi, sqrt
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import expit, ndtr, ndtri

from dpbandit.base import Floats, Streams, inside, norms, one_of
from dpbandit.domains.lp_balls import second_moment
from dpbandit.losses.loss import DataSum, Loss, Smoothed
from dpbandit.losses.regressions import LogisticRegression, QuantileRegression, Regression


@dataclass(frozen=True)
class HalfNormals:
    """Law of noise e = -h with probability `level`, else +h; h is `scale |g|` given h <= room.

    g is standard normal. So P(e <= 0) = level and `|e| <= room`; with level 1/2 e is a truncated
    normal. The law has no atoms, except at scale 0, where e = 0.
    """

    scale: float
    room: float
    level: float = 0.5

    def quantile(self, uniforms: Floats) -> Floats:
        """Return the noise that the quantile function assigns to uniform numbers."""
        if self.scale == 0:
            return np.zeros_like(uniforms)
        low = uniforms < self.level
        part = np.where(low, 1 - uniforms / self.level, (uniforms - self.level) / (1 - self.level))
        size = np.minimum(self.scale * ndtri((1 + part * self._within) / 2), self.room)
        return np.where(low, -size, size)

    @cached_property
    def mean(self) -> float:
        """Mean of the noise e."""
        return self.room - float(self.short(np.array(self.room)))

    @cached_property
    def square(self) -> float:
        """Second moment of the noise e."""
        if self.scale == 0:
            return 0.0
        a = self.room / self.scale
        return self.scale**2 * (1 - 2 * a * exp(-a * a / 2) / sqrt(2 * pi) / self._within)

    def below(self, t: Floats) -> Floats:
        """Return P(e <= t) for the noise e."""
        tail, level = self._half(np.abs(t)), self.level
        return np.where(t < 0, level * (1 - tail), level + (1 - level) * tail)

    def density(self, t: Floats) -> Floats:
        """Return the density of the noise at t; at 0, where it jumps, the limit from the right."""
        bell = np.exp(-((t / self.scale) ** 2) / 2) * 2 / sqrt(2 * pi) / (self.scale * self._within)
        side = np.where(t < 0, self.level, 1 - self.level)
        return np.where(np.abs(t) < self.room, side * bell, 0.0)

    def short(self, t: Floats) -> Floats:
        """Return E max(0, t - e) for the noise e, the integral of `below` up to t."""
        size, room, level = np.abs(t), np.array(self.room), self.level
        area, whole = self._half_area(size), room - self._half_area(room)
        right = level * (whole + t) + (1 - level) * area
        return np.where(t < 0, level * (whole - size + area), right)

    @cached_property
    def _within(self) -> float:
        """Probability `P(scale |g| <= room)` of the values that truncation keeps, g normal."""
        return float(1 - 2 * ndtr(-self.room / self.scale))

    def _half(self, size: Floats) -> Floats:
        """Return P(|e| <= size) for the noise e."""
        return np.minimum((1 - 2 * ndtr(-size / self.scale)) / self._within, 1.0)

    def _half_area(self, size: Floats) -> Floats:
        """Return the integral of `_half` from 0 to `size`."""
        v = np.minimum(size, self.room) / self.scale
        bell = (np.exp(-(v**2) / 2) - 1) * 2 / sqrt(2 * pi)
        inside = self.scale * (v * (1 - 2 * ndtr(-v)) + bell) / self._within
        return np.asarray(inside + np.maximum(size - self.room, 0))


_PUBLIC_USERS = 1 << 14  # number of fixed users over whom risks are averaged


class Features:
    """Features `x = g / |g|_q`, g ~ N(0, I): symmetric, so that E x x' is a multiple of I.

    Their l_q length is 1 - 1e-15, so that clipping to length 1 never changes them.
    """

    def __init__(self, streams: Streams, dim: int, order: float) -> None:
        self._normals, self._order = streams.normals("features", dim), order

    def take(self, count: int) -> Floats:
        """Draw features of the users of the next `count` rounds, (count, R, dim)."""
        g = self._normals.take(count)
        g /= norms(g, self._order) * (1 + 1e-15)
        return g


@cache
def public_features(dim: int, order: float) -> Floats:
    """Return features of 16,384 fixed, public users, (16384, dim), read-only."""
    x = Features(Streams([0]), dim, order).take(_PUBLIC_USERS)[:, 0]
    x.flags.writeable = False
    return x


Outliers: TypeAlias = Literal["flip", "coin"]


@dataclass(frozen=True, kw_only=True)
class Answers(ABC):
    """Law of answers y given scores <x, theta_0>; subclasses define those that are no outliers."""

    contamination: float = 0.0
    """share of outliers, in [0, 1/2]"""
    outliers: Outliers = "flip"

    def __post_init__(self) -> None:
        inside("contamination", self.contamination, 0, 0.5, ends=True)
        one_of("outliers", self.outliers, ("flip", "coin"))

    @property
    @abstractmethod
    def bound(self) -> float:
        """Largest absolute value of an answer, `|y|`."""

    def responses(self, m: Floats, noise: Floats, uniforms: Floats) -> Floats:
        """Return answers, given scores m, uniforms for noise and for outliers, all of one shape."""
        y = self._honest(m, noise)
        if not self.contamination:
            return y
        outlier = -y
        if self.outliers == "coin":
            outlier = np.where(uniforms < self.contamination / 2, self.bound, -self.bound)
        return np.where(uniforms < self.contamination, outlier, y)

    @abstractmethod
    def _honest(self, m: Floats, noise: Floats) -> Floats: ...


@dataclass(frozen=True, kw_only=True)
class LinearAnswers(Answers):
    """Answers y = score + noise; with outliers the mean of y is `attenuation` times the score."""

    loss: Regression
    noise: HalfNormals

    @property
    def bound(self) -> float:
        return self.loss.bound

    @property
    def attenuation(self) -> float:
        """Ratio of E[y | x] to the score, 1 without outliers."""
        return 1 - self.contamination * (2 if self.outliers == "flip" else 1)

    def square(self, m_square: Floats) -> Floats:
        """Return the mean squared answer, given the mean squared score, `m_square`."""
        coins = self.contamination if self.outliers == "coin" else 0.0
        return (1 - coins) * (m_square + self.noise.square) + coins * self.bound**2

    def _honest(self, m: Floats, noise: Floats) -> Floats:
        return m + self.noise.quantile(noise)


class Scored(Answers):
    """Answers whose expected loss, given the score, has a closed form."""

    @abstractmethod
    def risk(self, u: Floats, m: Floats) -> Floats:
        """Return the expected loss of predictions u over answers y, given scores m."""

    @abstractmethod
    def slope(self, u: Floats, m: Floats) -> Floats:
        """Return the derivative of `risk` in the predictions u, or a subgradient."""

    @abstractmethod
    def bend(self, u: Floats, m: Floats) -> Floats:
        """Return the second derivative of `risk` in the predictions u."""


@dataclass(frozen=True, kw_only=True)
class LogisticAnswers(Scored):
    """Answers y = 1 with the score as log-odds, else -1."""

    loss: LogisticRegression
    bound = 1.0

    def risk(self, u: Floats, m: Floats) -> Floats:
        return np.logaddexp(0.0, u) - self._chance(m) * u

    def slope(self, u: Floats, m: Floats) -> Floats:
        return np.asarray(expit(u) - self._chance(m))

    def bend(self, u: Floats, m: Floats) -> Floats:
        return np.asarray(expit(u) * expit(-u))

    def _chance(self, m: Floats) -> Floats:
        p, c = expit(m), self.contamination
        return np.asarray((1 - c) * p + c * ((1 - p) if self.outliers == "flip" else 0.5))

    def _honest(self, m: Floats, noise: Floats) -> Floats:
        return np.where(noise < expit(m), 1.0, -1.0)


@dataclass(frozen=True, kw_only=True)
class QuantileAnswers(Scored):
    """Answers y = score + noise, where the noise's quantile at `level` is 0."""

    loss: QuantileRegression
    noise: HalfNormals

    @property
    def bound(self) -> float:
        return self.loss.bound

    def risk(self, u: Floats, m: Floats) -> Floats:
        # E of the pinball loss is level (E y - u) + E (u - y)^+
        c, b, e = self.contamination, self.bound, self.noise
        if self.outliers == "flip":
            other, others = e.short(-u - m) + e.mean + m + u, -(m + e.mean)
        else:
            other, others = (np.maximum(u - b, 0) + np.maximum(u + b, 0)) / 2, 0 * m
        average = (1 - c) * (m + e.mean) + c * others
        return self.loss.level * (average - u) + (1 - c) * e.short(u - m) + c * other

    def slope(self, u: Floats, m: Floats) -> Floats:
        # the derivative is P(y <= u) - level
        c, b = self.contamination, self.bound
        if self.outliers == "flip":
            other = 1 - self.noise.below(-u - m)
        else:
            other = (1.0 * (u >= b) + (u >= -b)) / 2
        return (1 - c) * self.noise.below(u - m) + c * other - self.loss.level

    def bend(self, u: Floats, m: Floats) -> Floats:
        flips = self.contamination if self.outliers == "flip" else 0.0
        honest = (1 - self.contamination) * self.noise.density(u - m)
        return honest + flips * self.noise.density(-u - m)

    def _honest(self, m: Floats, noise: Floats) -> Floats:
        return m + self.noise.quantile(noise)


class Population(ABC):
    """Law of users in each of R replicas, with its risk and minimiser."""

    minimiser: Floats
    """theta*, the minimiser of the risk, (R, dim)"""

    @abstractmethod
    def risk(self, theta: Floats) -> Floats:
        """Return the risk F(theta), (R,), for theta (R, dim)."""

    def excess(self, theta: Floats) -> Floats:
        """Return the excess risk, (R,), of theta (R, dim) over the minimiser."""
        return self.risk(theta) - self.risk(self.minimiser)


class Isotropic(Population):
    """Population for the squared loss, with risk and minimiser in closed form.

    The minimiser is theta* = attenuation * theta_0, the excess risk `E x_1^2 |theta - theta*|_2^2`.
    """

    def __init__(self, answers: LinearAnswers, truth: Floats) -> None:
        domain = answers.loss.domain
        self._s = second_moment(domain.dim, answers.loss.order)
        self.minimiser = answers.attenuation * truth
        square = answers.square(self._s * np.vecdot(truth, truth))
        self._least = square - self._s * np.vecdot(self.minimiser, self.minimiser)

    def risk(self, theta: Floats) -> Floats:
        return self._least + self.excess(theta)

    def excess(self, theta: Floats) -> Floats:
        away = theta - self.minimiser
        return self._s * np.vecdot(away, away)


class Averaged(Population):
    """Population whose risk is an average over the features of 16,384 public users.

    The relative error of the excess risk is about 1 %. Without outliers theta* = theta_0 exactly;
    with outliers it is the minimiser over these users, up to a certified excess risk (`DataSum`).
    """

    def __init__(self, answers: Scored, loss: Regression, truth: Floats) -> None:
        self._answers, self._truth = answers, truth
        self._x = public_features(loss.domain.dim, loss.order)
        self.minimiser = truth
        if answers.contamination:
            best = [_PublicRisk(answers, loss, self._x, row).minimiser for row in truth]
            self.minimiser = np.stack(best)

    def risk(self, theta: Floats) -> Floats:
        u, m = np.matvec(self._x, theta), np.matvec(self._x, self._truth)  # (R, n)
        return self._answers.risk(u, m).mean(axis=1)


class _PublicRisk:
    """Risk for one replica's theta_0, in the form of a loss with a single datum for `DataSum`."""

    def __init__(self, answers: Scored, loss: Regression, x: Floats, truth: Floats) -> None:
        self._answers, self._x, self._m = answers, x, np.matvec(x, truth)
        self.domain, self.lipschitz = loss.domain, loss.lipschitz
        self.value_range = loss.value_range

    @cached_property
    def minimiser(self) -> Floats:
        """Minimiser of the risk, (dim,)."""
        sums = DataSum(self, 1, ())
        sums.add(np.zeros(1))
        return sums.best()[0][0]

    def smoothed(self, x: Floats, data: Floats, mu: Floats) -> Smoothed:
        # no smoothing needed: atoms of answers are far from the best point
        u, answers = np.matvec(self._x, x[0]), self._answers
        value, slope = answers.risk(u, self._m).mean(), answers.slope(u, self._m) / len(u)
        weighted = self._x * (answers.bend(u, self._m) / len(u))[:, None]
        return Smoothed(
            value=np.array([value]),
            smooth=np.array([value]),
            slack=np.zeros(1),
            gradient=np.vecmat(slope, self._x)[None],
            hessian=np.matmul(weighted.T, self._x)[None],
        )


class Table(Population):
    """Empirical law of a table, whose rows are drawn with replacement as users.

    theta* is the minimiser of the mean loss over the domain, up to a certified optimality gap.
    """

    def __init__(self, loss: Loss, rows: Floats, minimiser: Floats) -> None:
        self._loss, self._rows, self.minimiser = loss, rows, minimiser

    def risk(self, theta: Floats) -> Floats:
        return self._loss.value(theta[:, None], self._rows).mean(axis=1)


def best_of_rows(loss: Loss, rows: Floats) -> Floats:
    """Return the minimiser (dim,) of the mean loss over `rows`, `(n, *datum_shape)`."""
    comparator = loss.comparator(1)
    for row in rows:
        comparator.add(row[None])
    return comparator.best()[0][0]
