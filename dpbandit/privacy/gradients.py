"""Clipped recursive gradients, the statistics of online Frank-Wolfe methods."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from dpbandit.base import AnyArray, Floats, clip_norm, clip_range, pick, positive, rows
from dpbandit.privacy.premises import NO_FACTS


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

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        *public, context, action, reward = datum
        r = clip_range(reward, self.reward_low, self.reward_high)
        return *public, self._features(context), action, r

    def _features(self, x: Floats) -> Floats:
        x = np.asarray(x, dtype=np.float64)
        finite = np.where(np.isfinite(x), x, 0.0)
        return np.clip(finite, -self.context_bound, self.context_bound)


def recursive_points(theta: Floats, previous: Floats, steps: AnyArray) -> Floats:
    """Return every arm's point (i+1) theta_i - i theta_{i-1} in its step i, (R, arms, d)."""
    return theta + steps[:, None] * (theta - previous)
