"""Generalised linear bandits, and small problems on which greedy play gets stuck on a bad arm."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
import scipy

from dpbandit.base import (
    MOST_DIM,
    Floats,
    InputError,
    Ints,
    Streams,
    at_least,
    flag,
    inside,
    norms,
    one_of,
    positive,
    rows,
    whole,
)
from dpbandit.envs.contextual.problems import ContextualProblem, Users
from dpbandit.specs import ArmsSpec, ContextualSpec

_MAX_TAIL = 8.0
"""Largest truncation point of noise, in stddevs; beyond it the normal cdf is 1 in doubles"""


@dataclass(kw_only=True, eq=False)
class GLMBandit(ContextualProblem):
    """A contextual bandit with K arms and generalised linear rewards.

    Description:
        Each round a fresh user with context X arrives; arm a has mean reward link(X . theta_a), or
        link(X_a . theta) with `shared=True`, when every arm has its own row of features. The
        parameters are drawn anew for every episode.

    Action space:
        `Discrete(n_actions)`: the arm.

    Observation space:
        `Box`, shape (dim,), or (n_actions, dim) with `shared=True`: the context. Its norm of order
        `context_order` is at most 1.

    Rewards:
        ================  =======================================  =======================
        link              reward                                   range
        ================  =======================================  =======================
        identity          X . theta + noise of stddev `noise`      +-(signal + tail noise)
        logistic, probit  Bernoulli(link(X . theta))               {0, 1}
        poisson           Poisson(exp(X . theta)) capped at `cap`  {0, ..., cap}
        ================  =======================================  =======================

        Noise is a Gaussian truncated at `tail` stddevs, or uniform of the same stddev. The
        expected and the oracle reward in `info` are exact, also for capped counts.

    Starting state:
        A new parameter and the first user's context.

    Arguments:
        * `n_actions`, `dim`, `horizon`: arms, features, rounds.
        * `contexts`: `"sphere"` Gaussian direction scaled to norm 1; `"ball"` a sphere context
          times U^(1/dim), U uniform on [0, 1]; `"sparse"` a sphere context on `sparsity` random
          coordinates; `"ar1"` Gaussian with correlation `correlation^|i - j|`, scaled to norm 1;
          `"signs"` uniform on {-1, 1}^dim, scaled to norm 1.
        * `context_order`: 1, 2 or inf, the order of the norm of contexts.
        * `parameters`: `"dense"` Gaussian direction; `"sparse"` Gaussian on `sparsity` coordinates;
          `"sparse-signs"` +-1 and `"sparse-ones"` 1 on `sparsity` coordinates. All are scaled to
          `signal` in the norm dual to that of contexts, except `"sparse-draws"`: signal / sparsity
          on `sparsity` coordinates drawn with replacement, so on fewer if some coincide.
        * `link`, `noise`, `noise_law` (`"gaussian"` or `"uniform"`), `tail` (stddevs of the
          untruncated law, at most 8), `cap`: see Rewards.
        * `drift`: `"none"`; `"piecewise"` redraws the parameters every `drift_every` rounds;
          `"walk"` moves them by a Gaussian step of relative size `drift_rate` and rescales, every
          round.
        * `delay`: rounds until a reward is seen; the reward is 0 until then.
    """

    n_actions: int = 5
    dim: int = 5
    horizon: int = 10_000
    shared: bool = False
    contexts: Literal["sphere", "ball", "sparse", "ar1", "signs"] = "sphere"
    context_order: float = 2
    sparsity: int = 5
    correlation: float = 0.5
    parameters: Literal["dense", "sparse", "sparse-signs", "sparse-ones", "sparse-draws"] = "dense"
    signal: float = 1.0
    link: Literal["identity", "logistic", "probit", "poisson"] = "identity"
    noise: float = 0.1
    noise_law: Literal["gaussian", "uniform"] = "gaussian"
    tail: float = 4.0
    cap: int = 10
    drift: Literal["none", "piecewise", "walk"] = "none"
    drift_every: int = 1000
    drift_rate: float = 0.01
    delay: int = 0

    def __post_init__(self) -> None:
        one_of("contexts", self.contexts, ("sphere", "ball", "sparse", "ar1", "signs"))
        kinds = ("dense", "sparse", "sparse-signs", "sparse-ones", "sparse-draws")
        one_of("parameters", self.parameters, kinds)
        one_of("link", self.link, ("identity", "logistic", "probit", "poisson"))
        one_of("noise_law", self.noise_law, ("gaussian", "uniform"))
        one_of("drift", self.drift, ("none", "piecewise", "walk"))
        flag("shared", self.shared)
        positive("signal", self.signal)
        at_least("noise", self.noise, 0)
        inside("tail", self.tail, 0.1, _MAX_TAIL, ends=True)
        at_least("drift_rate", self.drift_rate, 0)
        inside("correlation", self.correlation, -1, 1, ends=True)
        for name in ("sparsity", "cap", "drift_every"):
            whole(name, getattr(self, name), 1)
        whole("dim", self.dim, 1, MOST_DIM)
        if self.contexts == "sparse" or self.parameters != "dense":
            equal = self.parameters == "sparse-ones"  # on all coordinates all arms would be equal
            whole("sparsity", self.sparsity, 1, self.dim - equal)
        if self.parameters == "sparse-draws" and self.drift == "walk":
            raise InputError(
                "Expected drift='walk' only with parameters that are scaled to a norm."
            )
        low, high = {
            "identity": (
                -self.signal - self.tail * self.noise,
                self.signal + self.tail * self.noise,
            ),
            "poisson": (0.0, float(self.cap)),
        }.get(self.link, (0.0, 1.0))
        self.spec = ContextualSpec(
            n_actions=self.n_actions,
            dim=self.dim,
            horizon=self.horizon,
            context_order=self.context_order,
            reward_low=low,
            reward_high=high,
            shared=self.shared,
            link=self.link,
            delay=self.delay,
        )

    @property
    def true_parameters(self) -> Floats:
        """True parameters theta, (R, K, d), or (R, 1, d) if `shared`; agents must not use them."""
        return self._theta.copy()

    def _start(self, streams: Streams) -> None:
        blocks = 1 if self.shared else self.n_actions
        self._context_normals = streams.normals("contexts", *self.spec.context_shape)
        self._context_uniforms = streams.uniforms("context shape", *self.spec.context_shape)
        self._parameter_normals = streams.world.normals("parameters", blocks, self.dim)
        self._parameter_uniforms = streams.world.uniforms("parameter support", blocks, self.dim)
        self._drift_normals = streams.world.normals("drift", blocks, self.dim)
        self._uniforms = streams.uniforms("rewards")
        self._theta = self._draw_parameters()  # (R, G, d)
        self._round = 0

    def _users(self, count: int) -> Users:
        context = self._draw_contexts(count)
        predictor = self._predict(context)
        mean = self._mean(predictor)
        uniforms = self._uniforms.take(count)[..., None]  # one draw a round, whatever the arm
        return Users(context, mean, self._reward(mean, predictor, uniforms))

    def _draw_contexts(self, count: int) -> Floats:
        z = self._context_normals.take(count)
        if self.contexts == "signs":
            z = np.copysign(1.0, z)
        elif self.contexts == "ar1":
            for j in range(1, self.dim):
                fresh = sqrt(1 - self.correlation**2)
                z[..., j] = self.correlation * z[..., j - 1] + fresh * z[..., j]
        elif self.contexts == "sparse":
            z = z * _support(self._context_uniforms.take(count), self.sparsity)
        z /= norms(z, self.context_order)
        if self.contexts == "ball":
            z *= self._context_uniforms.take(count)[..., :1] ** (1 / self.dim)
        return z

    def _draw_parameters(self) -> Floats:
        if self.parameters == "sparse-draws":
            drawn = (self._parameter_uniforms()[..., : self.sparsity] * self.dim).astype(np.int64)
            theta = np.zeros((*drawn.shape[:-1], self.dim))
            np.put_along_axis(theta, drawn, self.signal / self.sparsity, axis=-1)
            return theta
        z = self._parameter_normals()
        if self.parameters != "dense":
            support = _support(self._parameter_uniforms(), self.sparsity)
            size = {"sparse": z, "sparse-signs": np.copysign(1.0, z)}.get(self.parameters, 1.0)
            z = support * size
        return self._scaled(z)

    def _scaled(self, theta: Floats) -> Floats:
        dual = {1: np.inf, 2: 2, np.inf: 1}[self.context_order]
        return self.signal * theta / norms(theta, dual)

    def _predict(self, context: Floats) -> Floats:
        """Return linear predictors of contexts, (n, R, K); drift changes parameters each round."""
        if self.drift == "none":
            return self._linear(context)
        predictor = np.empty((*context.shape[:2], self.n_actions))
        for i in range(len(context)):
            predictor[i] = self._linear(context[i])
            self._round += 1
            if self.drift == "walk":
                step = self.drift_rate * norms(self._theta) / sqrt(self.dim)
                self._theta = self._scaled(self._theta + step * self._drift_normals())
            elif self._round % self.drift_every == 0:
                self._theta = self._draw_parameters()
        return predictor

    def _linear(self, context: Floats) -> Floats:
        if self.shared:
            return np.matvec(context, self._theta[:, 0])
        return np.matvec(self._theta, context)

    def _mean(self, predictor: Floats) -> Floats:
        if self.link == "identity":
            return predictor
        if self.link == "logistic":
            return np.asarray(scipy.special.expit(predictor))
        if self.link == "probit":
            return np.asarray(scipy.special.ndtr(predictor))
        # E min(N, cap) = sum over k < cap of P(N > k)
        return _sum_over_counts(predictor, self.cap, lambda cdf: 1 - cdf)

    def _reward(self, mean: Floats, predictor: Floats, uniforms: Floats) -> Floats:
        if self.link == "poisson":  # the inverse of the distribution function, capped
            return _sum_over_counts(predictor, self.cap, lambda cdf: 1.0 * (uniforms >= cdf))
        if self.link != "identity":
            return 1.0 * (uniforms < mean)
        if self.noise_law == "uniform":
            return mean + self.noise * sqrt(12) * (uniforms - 0.5)
        low, high = scipy.special.ndtr(-self.tail), scipy.special.ndtr(self.tail)
        z = scipy.special.ndtri(low + uniforms * (high - low)).clip(
            -self.tail, self.tail
        )  # rounding can leave the interval
        return np.asarray(mean + self.noise * z)


def _support(uniforms: Floats, size: int) -> Floats:
    """Return a 0/1 array with ones at `size` distinct random coordinates of the last axis."""
    size = min(size, uniforms.shape[-1])
    cut = np.partition(uniforms, size - 1, axis=-1)[..., size - 1 : size]
    return 1.0 * (uniforms <= cut)


def _sum_over_counts(predictor: Floats, cap: int, term: Callable[[Floats], Floats]) -> Floats:
    """Return the sum over k = 0..cap-1 of term(P(N <= k)), N ~ Poisson(exp(predictor))."""
    rate = np.exp(predictor)
    probability = np.exp(-rate)
    cdf, total = probability.copy(), np.zeros_like(rate)
    for k in rows(cap):
        total += term(cdf)
        probability = probability * rate / (k + 1)
        cdf = cdf + probability
    return total


_FIRST_KIND_MEANS, _SECOND_KIND_MEANS = (0.7, 0.5), (0.9, 0.6)
"""Mean rewards of the better and of the worse arm for users of the first and of the second kind"""
_BETTER_ARM_MEAN = 0.8
"""Mean reward of the better arm of `TwoArms`"""


@dataclass(kw_only=True, eq=False)
class _Kinds(ContextualProblem):
    """Base of problems with two arms and few kinds of users, whose contexts are unit vectors.

    The better arm is drawn for each kind. Subclasses return mean rewards of the arms (`_means`),
    and draw the kinds of the next users (`_kinds`).
    """

    horizon: int = 20_000
    delay: int = 0

    def __post_init__(self) -> None:
        kinds = len(self._means())
        kind = ArmsSpec if kinds == 1 else ContextualSpec
        self.spec = kind(
            n_actions=2,
            dim=kinds,
            horizon=self.horizon,
            link="other",  # clicks, whose means are linear and whose medians are not
            delay=self.delay,
        )

    def _means(self) -> tuple[tuple[float, float], ...]:
        """Return the mean rewards of the better and of the worse arm for each kind of users."""
        return _FIRST_KIND_MEANS, _SECOND_KIND_MEANS

    @abstractmethod
    def _kinds(self, count: int) -> Ints:
        """Draw the kinds of the users of the next `count` rounds, (count, R)."""

    def _start(self, streams: Streams) -> None:
        means = np.array(self._means())
        swapped = streams.world.uniforms("which arm is better", len(means))() < 0.5  # (R, kinds)
        self._of_kinds: Floats = np.where(swapped[..., None], means[:, ::-1], means)
        self._uniforms = streams.uniforms("rewards")

    def _users(self, count: int) -> Users:
        kinds = self._kinds(count)
        mean = self._of_kinds[rows(kinds.shape[1]), kinds]  # (n, R, 2)
        uniforms = self._uniforms.take(count)[..., None]  # one draw a round, whatever the arm
        return Users(np.eye(self.spec.dim)[kinds], mean, 1.0 * (uniforms < mean))


@dataclass(kw_only=True, eq=False)
class TwoPhase(_Kinds):
    """Two arms and two kinds of users; the second kind arrives after exploration is over.

    Description:
        Until round `change` * T users have context e1 = (1, 0) and reward one arm with probability
        0.7, the other with 0.5; from then on users have context e2 = (0, 1), and the means are 0.9
        and 0.6. A fair coin draws the better arm for each kind and episode. An agent that no longer
        explores tries one arm on e2 and plays it for ever: greedy play has linear regret.

    Action space:
        `Discrete(2)`: the arm.

    Observation space:
        `Box`, shape (2,): the context e1 or e2.

    Rewards:
        1 or 0.

    Starting state:
        The better arm of each kind is drawn, and the first user arrives.

    Arguments:
        * `horizon`: rounds. `change`: the share of rounds after which the second kind arrives.
        * `delay`: rounds until a reward is seen; the reward is 0 until then.
    """

    change: float = 0.25

    def __post_init__(self) -> None:
        inside("change", self.change, 0, 1, ends=True)
        super().__post_init__()

    def _start(self, streams: Streams) -> None:
        super()._start(streams)
        self._round, self._replicas = 0, len(streams)

    def _kinds(self, count: int) -> Ints:
        late = self._round + np.arange(count) >= self.change * self.horizon
        self._round += count
        return np.tile(late.astype(np.int64)[:, None], (1, self._replicas))


@dataclass(kw_only=True, eq=False)
class Minority(_Kinds):
    """Two arms and two kinds of users, one of which is rare.

    Description:
        Users are independent. Most have context e1 = (1, 0) and reward one arm with probability 0.7
        and the other with 0.5; a `share` of them has context e2 = (0, 1) and rewards the arms with
        0.9 and 0.6. Which arm is better is drawn by a fair coin for each kind and episode. Only the
        few users of the minority are informative about its better arm.

    Action space:
        `Discrete(2)`: the arm.

    Observation space:
        `Box`, shape (2,): the context e1 or e2.

    Rewards:
        1 or 0.

    Starting state:
        The better arm of each kind is drawn, and the first user arrives.

    Arguments:
        * `horizon`: rounds. `share`: the probability of context e2.
        * `delay`: rounds until a reward is seen; the reward is 0 until then.
    """

    share: float = 0.02

    def __post_init__(self) -> None:
        inside("share", self.share, 0, 1, ends=True)
        super().__post_init__()

    def _start(self, streams: Streams) -> None:
        super()._start(streams)
        self._who = streams.uniforms("kinds")

    def _kinds(self, count: int) -> Ints:
        return (self._who.take(count) < self.share).astype(np.int64)


@dataclass(kw_only=True, eq=False)
class TwoArms(_Kinds):
    """A two-armed bandit without contexts.

    Description:
        Every user has the context 1; one arm is rewarded with probability 0.8, the other with 0.8 -
        `gap`. A fair coin draws the better arm for each episode. With a constant probability a
        greedy agent plays the worse arm after its first batch, and loses `gap` in every round.

    Action space:
        `Discrete(2)`: the arm.

    Observation space:
        `Box`, shape (1,): 1.

    Rewards:
        1 or 0.

    Starting state:
        The better arm is drawn.

    Arguments:
        * `horizon`: rounds. `gap`: regret of a round in which the worse arm is played.
        * `delay`: rounds until a reward is seen; the reward is 0 until then.
    """

    gap: float = 0.2

    def __post_init__(self) -> None:
        inside("gap", self.gap, 0, _BETTER_ARM_MEAN, ends=True)
        super().__post_init__()

    def _means(self) -> tuple[tuple[float, float], ...]:
        return ((_BETTER_ARM_MEAN, _BETTER_ARM_MEAN - self.gap),)

    def _start(self, streams: Streams) -> None:
        super()._start(streams)
        self._replicas = len(streams)

    def _kinds(self, count: int) -> Ints:
        return np.zeros((count, self._replicas), np.int64)
