"""Streams of independent users for stochastic convex optimisation in l_p geometry.

Users have features and answers, or are rows of a table; the parameter theta_0 of the law of answers
is dense, sparse, random, or any point of the ball.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any, Literal, cast

import numpy as np

from dpbandit.base import (
    Floats,
    InputError,
    Streams,
    at_least,
    inside,
    norms,
    one_of,
    positive,
    vector,
    whole,
)
from dpbandit.domains import LpBall
from dpbandit.envs import tables
from dpbandit.envs.convex.problems import ConvexProblem, Law, Oblivious, constantly
from dpbandit.envs.streams.populations import (
    Answers,
    Averaged,
    Features,
    HalfNormals,
    Isotropic,
    LinearAnswers,
    LogisticAnswers,
    Outliers,
    Population,
    QuantileAnswers,
    Scored,
    Table,
    best_of_rows,
)
from dpbandit.losses import LinearRegression, LogisticRegression, QuantileRegression
from dpbandit.losses.regressions import Regression
from dpbandit.specs import StreamSpec

_TEST_BLOCK = 64
"""Number of test users per replica that are drawn and summed at once"""


class StreamProblem(ConvexProblem):
    """A convex problem whose data z are independent draws from a law P, one law per replica.

    Subclasses set `spec`, and return the law and a sampler of users in `_law`. A round's regret is
    f(theta; z) - f(theta*; z), whose mean is F(theta) - F(theta*), with the risk F = E f.

    For studies, not for agents, there are `risk` (F), `excess_risk`, `population_minimiser`, and
    `suboptimality` on fresh users.
    """

    spec: StreamSpec

    @abstractmethod
    def _law(self, streams: Streams) -> tuple[Population, Callable[[Streams], Law]]: ...

    def _start(self, streams: Streams) -> Oblivious:
        self._population, users = self._law(streams)
        self._fresh = users(streams.child("test"))
        self._nowhere = partial(constantly, np.zeros_like(self._population.minimiser))
        values = len(streams) * (self.spec.loss.domain.dim + 1)
        return Oblivious(self._nowhere, users(streams.child("users")), values)

    def _against(self, datum: Floats, suffered: Floats) -> tuple[Floats, Floats]:
        best = self.spec.loss.value(self._population.minimiser, datum)
        return -best, suffered - best

    def best_fixed(self) -> Floats:
        return self._population.minimiser.copy()

    def hindsight(self) -> Floats:
        # the comparator is theta*, of the law, not the best point for the episode's users
        return np.zeros(len(self._population.minimiser))

    @property
    def population_minimiser(self) -> Floats:
        """Minimiser theta* of the risk, (R, dim); the module `populations` states its error."""
        return self.best_fixed()

    def risk(self, theta: Floats) -> Floats:
        """Return the risk F(theta), (R,), for theta (R, dim)."""
        return self._population.risk(theta)

    def excess_risk(self, theta: Floats) -> Floats:
        """Return the excess risk, (R,), of theta (R, dim) over the minimiser of the risk."""
        return self._population.excess(theta)

    def suboptimality(self, theta: Floats, users: int = 10_000) -> Floats:
        """Return the relative excess loss of theta (R, dim) on `users` fresh test users, (R,).

        It is (F_n(theta) - F_n(theta*)) / (F_n(0) - F_n(theta*)), F_n the mean loss: 0 at theta*, 1
        at the origin. Test users come from each replica's own stream and are not users of the
        episode; each call draws new ones.
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


class Regressed:
    """Sampler of users with random features x and answers y to the scores <x, theta_0>."""

    def __init__(self, loss: Regression, answers: Answers, truth: Floats, streams: Streams) -> None:
        self._answers, self._truth = answers, truth
        self._features = Features(streams, loss.domain.dim, loss.order)
        self._noise, self._outlier_uniforms = (
            streams.uniforms("noise"),
            streams.uniforms("outliers"),
        )

    def __call__(self, directions: Floats) -> Floats:
        """Draw users (x, y) of the next n rounds, (n, R, dim + 1), n the length of `directions`."""
        count = len(directions)
        x = self._features.take(count)
        m, noise, uniforms = (
            np.vecdot(x, self._truth),
            self._noise.take(count),
            self._outlier_uniforms.take(count),
        )
        y = self._answers.responses(m, noise, uniforms)
        return np.concatenate([x, y[..., None]], axis=-1)


class Resampled:
    """Sampler of users that are rows of a table, drawn with replacement."""

    def __init__(self, rows: Floats, streams: Streams) -> None:
        self._rows, self._uniforms = rows, streams.uniforms("rows")

    def __call__(self, directions: Floats) -> Floats:
        """Draw users (x, y) of the next n rounds, (n, R, dim + 1), n the length of `directions`."""
        row = (self._uniforms.take(len(directions)) * len(self._rows)).astype(np.int64)
        return self._rows[row]


TRUTHS = ("dense", "sparse", "random-sparse", "gaussian")  # names of laws in `Truth`


@dataclass(frozen=True)
class Truth:
    """Law of a replica's parameter theta_0, given as a vector or by name::

        dense           all entries equal
        sparse          equal first `sparsity` entries, others 0
        random-sparse   `sparsity` equal entries at random coordinates, others 0
        gaussian        a normal vector

    Named parameters are scaled to l_p length `norm`.
    """

    domain: LpBall
    theta: str | tuple[float, ...] = "dense"
    norm: float = 1.0
    sparsity: int = 5

    def __post_init__(self) -> None:
        positive("norm", self.norm)
        if self.norm > self.domain.radius:
            raise InputError(f"Expected norm={self.norm} <= radius={self.domain.radius}.")
        if isinstance(self.theta, str):
            one_of("theta", self.theta, TRUTHS)
            if "sparse" in self.theta:
                whole("sparsity", self.sparsity, 1, self.domain.dim)
            return
        if not self.domain.contains(self._vector()[None]).all():
            raise InputError(f"Expected theta={self.theta} to lie in {self.domain}.")

    @property
    def length(self) -> float:
        """Length `|theta_0|_p` of the parameter."""
        if isinstance(self.theta, str):
            return self.norm
        return float(norms(self._vector(), self.domain.p)[0])

    def draw(self, streams: Streams) -> Floats:
        """Draw the parameter theta_0 for each replica, (R, dim)."""
        R, N = len(streams), self.domain.dim
        if not isinstance(self.theta, str):
            return np.tile(self._vector(), (R, 1))
        if self.theta == "gaussian":
            direction = streams.world.normals("truth", N)()
        elif self.theta == "dense":
            direction = np.ones((R, N))
        else:
            place = np.tile(np.arange(N), (R, 1))
            if self.theta == "random-sparse":
                place = streams.world.uniforms("truth", N)().argsort(axis=1)
            direction = 1.0 * (place < self.sparsity)
        return self.norm * direction / norms(direction, self.domain.p)

    def _vector(self) -> Floats:
        return vector("theta", self.theta, self.domain.dim)


Family = Literal["linear", "logistic", "quantile"]


@dataclass(kw_only=True, eq=False)
class StreamingRegression(StreamProblem):
    """Learn a regression from a stream of independent users, and release every iterate.

    Description:
        Each round the agent plays a parameter theta in the l_p ball of `radius`; then it observes
        a user's datum (x, y) and suffers f(theta; x, y). Users are independent draws of one law P,
        with risk F(theta) = E f(theta; x, y) and minimiser theta*. Features have l_q norm at most
        1, 1/p + 1/q = 1; losses and their public constants are those of
        `dpbandit.losses.predictions`.

        Synthetic users: `x = g / |g|_q` with g ~ N(0, I), and y follows <x, theta_0>:

        ========  ========================================  ==================  ===================
        family    y, no outlier                             f, u = <x, theta>   theta*, no outliers
        ========  ========================================  ==================  ===================
        linear    <x, theta_0> + e, e normal, stddev noise  (u - y)^2           theta_0
        logistic  1 with log-odds <x, theta_0>, else -1     log(1 + exp(-y u))  theta_0
        quantile  <x, theta_0> + e, P(e <= 0) = level       pinball loss        theta_0
        ========  ========================================  ==================  ===================

        The e of quantiles is `-|noise g|` with probability `level`, else `+|noise g|`, g standard
        normal. Normals are truncated so that `|e| <= bound - |theta_0|_p`: answers are within the
        bound, and theta_0 is the exact minimiser. With outliers theta* is that of the contaminated
        law: (1 - 2 share) theta_0 (flips) or (1 - share) theta_0 (coins) for the linear family,
        else found numerically on 16,384 public users, to a certified error. The excess risk is
        exact for the linear family, `s |theta - theta*|_2^2` with s = E x_1^2; for the others it is
        the average over these public users.

        The defaults are a problem of Table 5.1 of Han, Liang, Liang, Wang, Yao and Zhang, "On
        private online convex optimization: optimal algorithms in l_p-geometry and high dimensional
        contextual bandits" (2022); only its answers were not bounded.

    Action space:
        `Box`, shape (dim,), the smallest around the l_p ball. `Problem.step` raises `InputError`
        for points outside the ball; the Gymnasium adapters project them onto it.

    Observation space:
        `Box`, shape (dim + 1,): the datum (x, y) that was observed last, zeros at the start.

    Rewards:
        -f(theta; x, y). Regret of a round: f(theta; x, y) - f(theta*; x, y), whose mean is the
        excess risk; it is negative for some users.

    Starting state:
        The first user; a random theta_0 is drawn anew.

    Arguments:
        * `family`: `"linear"`, `"logistic"` or `"quantile"` (of `level`, in (0, 1)); by default
          linear, for real data logistic.
        * `p`: order of the norm, from 1 to infinity (also `"inf"`). `dim`, `radius`: of the ball.
          `bound`: largest `|y|`, 1 for the logistic family.
        * `theta`: theta_0, `"dense"` (all entries equal), `"sparse"` (the first `sparsity` entries
          equal), `"random-sparse"` (at random coordinates), `"gaussian"` (a normal vector), all of
          l_p length `norm`; or any vector of the ball.
        * `noise`: see the table; at most 1,000 `(bound - |theta_0|_p)`. `contamination`: the share
          of outliers, at most 1/2; `outliers`: `"flip"`, -y in place of y, or `"coin"`, +bound or
          -bound.
        * `data`: real users in place of synthetic ones (and of `dim`, `theta`, `norm`, `sparsity`,
          `noise` and `contamination`), drawn with replacement: P is the empirical law, and theta*
          its minimiser over the ball, to a certified error. Features longer than l_q norm 1 are
          scaled down to 1, answers are +-1. `"oj"`: Minute Maid against Citrus Hill, from both
          prices, loyalty and a constant (1,070 purchases, see `envs/data/README.md`). `"digits"`:
          `digit` against the rest from 64 pixels (1,797 images; needs scikit-learn).
        * `horizon`: rounds. `delay`: rounds until a datum is observed; zeros before.
    """

    family: Family | None = None
    p: float | Literal["inf"] = 1.5
    dim: int = 5
    radius: float = 2.0
    bound: float = 1.25
    level: float = 0.5
    theta: str | tuple[float, ...] = "dense"
    norm: float = 1.0
    sparsity: int = 5
    noise: float = 0.05
    contamination: float = 0.0
    outliers: Outliers = "flip"
    data: Literal["oj", "digits"] | None = None
    digit: int = 0
    horizon: int = 10_000
    delay: int = 0

    def __post_init__(self) -> None:
        if self.family is None:
            self.family = "linear" if self.data is None else "logistic"
        one_of("family", self.family, ("linear", "logistic", "quantile"))
        inside("level", self.level, 0, 1, ends=False)
        positive("bound", self.bound)
        at_least("noise", self.noise, 0)
        whole("sparsity", self.sparsity, 1)
        whole("digit", self.digit, 0, 9)
        if self.data is not None:
            self._refuse_synthetic_settings()
            self.dim = _table(self.data, self.digit).shape[1] - 1
        p = float(self.p) if isinstance(self.p, str) and self.p == "inf" else self.p
        ball = LpBall(self.dim, p, self.radius)
        loss = self._loss = self._made_loss(ball)
        self.spec = StreamSpec(loss=loss, horizon=self.horizon, delay=self.delay)
        if self.data is not None:
            self._rows = loss.admissible(_table(self.data, self.digit))
            self._least = _best(loss, self.data, self.digit)
        else:
            self._truth = Truth(ball, self.theta, self.norm, self.sparsity)
            self._answers = self._made_answers(self._truth.length)

    def _law(self, streams: Streams) -> tuple[Population, Callable[[Streams], Law]]:
        loss = self._loss
        if self.data is not None:
            best = np.tile(self._least, (len(streams), 1))
            return Table(loss, self._rows, best), partial(Resampled, self._rows)
        truth = self._truth.draw(streams)
        population: Population
        if isinstance(self._answers, Scored):
            population = Averaged(self._answers, loss, truth)
        else:
            population = Isotropic(self._answers, truth)
        return population, partial(Regressed, loss, self._answers, truth)

    def _made_loss(self, ball: LpBall) -> Regression:
        if self.family == "linear":
            return LinearRegression(ball, self.bound)
        if self.family == "logistic":
            return LogisticRegression(ball)
        return QuantileRegression(ball, self.level, self.bound)

    def _made_answers(self, length: float) -> LinearAnswers | Scored:
        loss, share, kind = self._loss, self.contamination, self.outliers
        if isinstance(loss, LogisticRegression):
            return LogisticAnswers(loss=loss, contamination=share, outliers=kind)
        room = self.bound - length
        if not room > 0:
            raise InputError(f"Expected bound={self.bound} above the l_p length {length} of theta.")
        inside("noise", self.noise, 0, _MAX_NOISE_RATIO * room, ends=True)
        if isinstance(loss, QuantileRegression):
            positive("noise", self.noise)
            halves = HalfNormals(self.noise, room, self.level)
            return QuantileAnswers(loss=loss, noise=halves, contamination=share, outliers=kind)
        normal = HalfNormals(self.noise, room)
        return LinearAnswers(loss=loss, noise=normal, contamination=share, outliers=kind)

    def _refuse_synthetic_settings(self) -> None:
        for field in fields(StreamingRegression):
            value, usual = getattr(self, field.name), cast(Any, field.default)
            if field.name in _SYNTHETIC and not np.array_equal(value, usual):
                raise InputError(
                    f"Expected {field.name}={value!r} without "
                    f"data={self.data!r}, which has its own."
                )


_MAX_NOISE_RATIO = 1000
"""Largest ratio of noise to its bound; beyond it rounding dominates the noise's mean square"""
# arguments of synthetic users, not allowed with `data`
_SYNTHETIC = ("dim", "theta", "norm", "sparsity", "noise", "contamination", "outliers")


def _table(data: str, digit: int) -> Floats:
    one_of("data", data, ("oj", "digits"))
    return tables.oj() if data == "oj" else tables.digits(digit)


@cache
def _best(loss: Regression, data: str, digit: int) -> Floats:
    return best_of_rows(loss, loss.admissible(_table(data, digit)))
