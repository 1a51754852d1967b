"""Clipped recursive gradients, the statistics of online Frank-Wolfe methods."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import ClassVar

import numpy as np

from dpbandit.base import AnyArray, Floats, InputError, clip_norm, clip_range, pick, positive, rows
from dpbandit.losses.loss import Loss
from dpbandit.losses.predictions import Regression
from dpbandit.privacy.premises import NO_FACTS, Fact


@dataclass(frozen=True, kw_only=True)
class RecursiveGradients:
    """Sum of recursive gradients, a row for each parameter vector, 0 except for the arm played.

    Xie, Shen, Zhang, Wang and Qian, "Efficient projection-free online methods with stochastic
    recursive gradient", AAAI 2020, as used by Han et al. (see `DPHDBChoices`). In its i-th step an
    arm adds, for context x, reward r and a loss of gradient (zeta(x . theta) - r) x::

        g_i = (i+1) grad f(theta_i) - i grad f(theta_{i-1})
            = [ (i+1) zeta(x . theta_i) - i zeta(x . theta_{i-1}) - r ] x,

    which is one number, the residual, times x; with the identity link it is the gradient at the
    point u_i = (i+1) theta_i - i theta_{i-1}, of l_1 norm at most 1.5 times the domain's radius.

    A round is (theta, previous, steps, context, action, reward); the first three are released or
    public: theta_i and theta_{i-1} of G arms, (R, G, d), and i, (G,), 0 for an arm that takes no
    step in this round and then adds nothing. Contexts are (R, d); (R, K, d) if `shared` (G = 1).

    Guarantee:
        x is clipped to max-norm `context_bound` = M, r to its range, the residual to
        +-`residual_clip` = k, and where there is a `gradient_clip` = c_g the row to that Euclidean
        norm, whatever is fed; non-finite features become 0. So replacing a user moves the sum by at
        most `sensitivity`: 2 M k in max-norm, or 2 c_g in L2; a row in place of 0 moves it by half.
    """

    # "whatever is fed; non-finite features become 0"
    needs = NO_FACTS
    controls = (0, 1, 2)

    n_actions: int
    dim: int
    shared: bool = False
    mean: Callable[[Floats], Floats]
    """mean reward as a function zeta of the linear score"""
    context_bound: float = 1.0
    reward_low: float = 0.0
    reward_high: float = 1.0
    residual_clip: float
    gradient_clip: float | None = None
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        positive("context_bound", self.context_bound)
        positive("residual_clip", self.residual_clip)
        if self.gradient_clip is not None:
            positive("gradient_clip", self.gradient_clip)

    @property
    def order(self) -> float:
        return inf if self.gradient_clip is None else 2

    @property
    def reward_bound(self) -> float:
        """Largest absolute value of a clipped reward."""
        return max(abs(self.reward_low), abs(self.reward_high))

    @property
    def shape(self) -> tuple[int, int]:
        return (1 if self.shared else self.n_actions, self.dim)

    @property
    def sensitivity(self) -> float:
        if self.gradient_clip is not None:
            return 2 * self.gradient_clip
        return 2 * self.context_bound * self.residual_clip

    def total(self, *batch: AnyArray) -> Floats:
        # Arrays (n, ...) of n rounds -> the sum of their rows, (R, G, d)
        parts = [self.gradient(*datum) for datum in zip(*batch, strict=True)]
        return parts[0] if len(parts) == 1 else np.asarray(np.sum(parts, axis=0))

    def gradient(self, *datum: AnyArray, clips: Floats | None = None) -> Floats:
        """Return the gradients (R, G, d) of a round; `clips` (R, G) replace `residual_clip`."""
        theta, previous, steps, context, action, reward = datum
        R, action = rows(len(theta)), action.astype(np.int64)
        arm = np.zeros_like(action) if self.shared else action
        x = self._features(pick(context, action) if self.shared else context)
        r = clip_range(reward, self.reward_low, self.reward_high)
        i = steps[arm]
        now, before = (self.mean(np.vecdot(point[R, arm], x)) for point in (theta, previous))
        k = self.residual_clip if clips is None else clips[R, arm]
        residual = np.clip(now + i * (now - before) - r, -k, k) * (i > 0)
        row = residual[:, None] * x
        gradient = np.zeros_like(theta)
        gradient[R, arm] = row if self.gradient_clip is None else clip_norm(row, self.gradient_clip)
        return gradient

    def _features(self, x: Floats) -> Floats:
        x = np.asarray(x, dtype=np.float64)
        finite = np.where(np.isfinite(x), x, 0.0)
        return np.clip(finite, -self.context_bound, self.context_bound)


def recursive_points(theta: Floats, previous: Floats, steps: AnyArray) -> Floats:
    """Return every arm's point (i+1) theta_i - i theta_{i-1} in its step i, (R, arms, d)."""
    return theta + steps[:, None] * (theta - previous)


@dataclass(frozen=True, kw_only=True)
class RecursiveLossGradients:
    """Sum of recursive gradients of a loss, in coordinates of the domain's affine hull.

    Xie, Shen, Zhang, Wang and Qian, "Efficient projection-free online methods with stochastic
    recursive gradient", AAAI 2020. The user of step i adds::

        g_i = (i+1) grad f(theta_i; z_i) - i grad f(theta_{i-1}; z_i),

    which for a quadratic loss is the gradient at u_i = (i+1) theta_i - i theta_{i-1}; for a
    `Regression` it is one number, the residual, times the features. (g_1 + .. + g_t) / (t+1) is
    the paper's estimate of the gradient of the mean loss at theta_t, started with d_0 = 0.

    A round is (theta, previous, steps, datum): theta_i and theta_{i-1}, (R, N), released or public;
    i, a number, 0 for a round that adds nothing; z_i, `(R, *datum_shape)`.

    Guarantee:
        The datum is moved into the public set of the loss, the residual clipped to
        +-`residual_clip` = k, and g_i scaled down to l_order norm `gradient_clip` = c, whatever is
        fed. So replacing a user moves the sum by at most `sensitivity` in l_order (l_q is the
        loss's norm)::

            2 min(c, k A),  A = N^max(0, 1/order - 1/q), the largest |a|_order where |a|_q <= 1.
    """

    # "The datum is moved into the public set of the loss"
    needs = frozenset({Fact.LOSS})
    controls = (0, 1, 2)

    loss: Loss
    order: float = 2
    """order of the norm of `sensitivity`"""
    gradient_clip: float = inf
    residual_clip: float = inf
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        for name in ("order", "gradient_clip", "residual_clip"):
            if not getattr(self, name) > 0:
                raise InputError(f"Expected {name}={getattr(self, name)!r} to be a number > 0.")
        if self.residual_clip < inf and not isinstance(self.loss, Regression):
            raise InputError(f"Expected residual_clip only with a regression, got {self.loss}.")

    @property
    def shape(self) -> tuple[int]:
        return (self.loss.domain.affine_dim,)

    @cached_property
    def sensitivity(self) -> float:
        # 2 min(c, k A), A the largest norm of features
        bound = self.gradient_clip
        if isinstance(self.loss, Regression):
            bound = min(bound, self.residual_clip * longest(self.loss, self.order))
        return 2 * bound

    def total(self, *batch: AnyArray) -> Floats:
        # Arrays (n, ...) of n rounds -> the sum of their gradients, (R, k)
        parts = [self.gradient(*datum) for datum in zip(*batch, strict=True)]
        return parts[0] if len(parts) == 1 else np.asarray(np.sum(parts, axis=0))

    def gradient(self, *datum: AnyArray) -> Floats:
        theta, previous, steps, z = datum
        loss, i = self.loss, float(steps)
        if i == 0:
            return np.zeros((len(theta), *self.shape))
        z = loss.admitted(z, len(theta))
        if isinstance(loss, Regression):
            a, y = z[:, :-1], z[:, -1]
            now = loss.slope(np.vecdot(a, theta), y)
            residual: Floats = now + i * (now - loss.slope(np.vecdot(a, previous), y))
            if self.residual_clip < inf:
                residual = clip_range(residual, -self.residual_clip, self.residual_clip)
            g: Floats = residual[:, None] * a
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                now = loss.gradient(theta, z)
                g = loss.domain.coordinates(now + i * (now - loss.gradient(previous, z)))
        return g if self.gradient_clip == inf else clip_norm(g, self.gradient_clip, self.order)


def longest(loss: Regression, order: float) -> float:
    """Return the largest l_order norm of features in the unit ball of the loss's norm."""
    return float(loss.domain.dim ** max(0.0, 1 / order - 1 / loss.order))
