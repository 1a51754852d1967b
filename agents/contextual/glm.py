"""Generalised linear regression for each arm, one row at a time: an online Laplace approximation.

The mean reward is low + span zeta(x . theta). What is known of theta is kept as a normal with mean
theta and covariance H^-1, and a new row (x, y) turns it into the normal with::

    theta' = argmin_w (w - theta)' H (w - theta) / 2 + mm(x . w) - y x . w
    H'     = H + zeta'(x . theta') x x'

mm' = zeta: the Laplace approximation of Chapelle and Li, "An empirical evaluation of Thompson
sampling", NeurIPS 2011, Algorithm 3, with the full matrix and batches of one row. theta' is
theta + s H^-1 x with s = y - zeta(x . theta + s x' H^-1 x), so a row costs one scalar equation and
one rank-one step; no rows are kept. A single unchecked Newton step (the online Newton step)
costs about the same and overshoots where the link is flat; a maximum likelihood fit to all rows
must keep them, and moves the estimate by a fraction of its standard deviation.
"""

import numpy as np

from dpbandit.agents.contextual.linear import OnlineRidge
from dpbandit.base import Floats, Ints, clip_norm, clip_range, pick, rows
from dpbandit.specs import ContextualSpec, Link, PriceListSpec, link_of

_STEPS = 8
"""Newton steps for the scalar equation: within 1e-6 of its solution while x' H^-1 x <= 10."""
_TINY = 1e-12
"""Divisors are at least this: a row on a flatter stretch of the link carries no information."""


class OnlineGLM(OnlineRidge):
    """An `OnlineRidge` of linear predictors: `means`, `variances`, `sampled` are of x . theta.

    Rewards become y in [0, 1], 0 at the lower end of the public range and 1 at the upper, or at a
    price's margin for a list of prices, where y is a sale; the identity link takes rewards as they
    are and, within the public bounds to which rows are clipped, is ridge regression, bit for bit.
    `spread` is the range of what is regressed: 1, with the identity link that of rewards.
    """

    def __init__(
        self, spec: ContextualSpec, replicas: int, *, link: str | None, regularization: float
    ) -> None:
        super().__init__(spec, replicas, regularization=regularization)
        # of a list of prices nothing is said but that a sale is yes or no
        otherwise = "logistic" if isinstance(spec, PriceListSpec) else "identity"
        self.link: Link = link_of(link or spec.link, otherwise=otherwise)
        self._spec, self._plain = spec, self.link.name == "identity"
        low, span = spec.reward_low, np.full(spec.n_actions, spec.reward_high - spec.reward_low)
        if self._plain:
            low, span = 0.0, np.ones(spec.n_actions)
        elif isinstance(spec, PriceListSpec):
            low, span = 0.0, spec.margins
        self._low, self._span = low, span
        self.spread = 2 * spec.half_range if self._plain else 1.0

    def rewards(self, predictor: Floats) -> Floats:
        """Mean rewards of linear predictors, (R, K) -> (R, K)."""
        return self._low + self._span * self.link.mean(predictor)

    def learn(self, context: Floats, action: Ints, reward: Floats) -> None:
        """One more row: a ridge row, scaled by the root of its weight, with a working response."""
        spec = self._spec
        context = clip_norm(context, spec.context_norm)
        reward = clip_range(reward, spec.reward_low, spec.reward_high)
        if self._plain:
            return super().learn(context, action, reward)
        y = np.clip((reward - self._low) / self._span[action], 0.0, 1.0)
        block = 0 if self._shared else action
        x = pick(context, action) if self._shared else context
        every = rows(len(x))
        mean = np.vecdot(self.theta[every, block], x)
        variance = np.maximum(np.vecdot(np.matvec(self.inverse[every, block], x), x), 0.0)
        residual = _implicit_residual(self.link, y, mean, variance)
        predictor = mean + residual * variance
        root = np.sqrt(np.maximum(self.link.slope(predictor), _TINY))
        scaled = context * root.reshape(-1, *[1] * (context.ndim - 1))
        super().learn(scaled, action, root * predictor + residual / root)


def _implicit_residual(link: Link, y: Floats, mean: Floats, variance: Floats) -> Floats:
    """The s that solves s = y - zeta(mean + s variance), each (R,).

    The left minus the right increases in s, convex below the predictor 0 and concave above, so
    Newton's method from the point of [0, y - zeta(mean)] nearest to predictor 0 never overshoots.
    """
    far = y - link.mean(mean)
    turning = -mean / np.maximum(variance, _TINY)
    s = np.clip(turning, np.minimum(far, 0.0), np.maximum(far, 0.0))
    for _ in range(_STEPS):
        predictor = mean + s * variance
        excess = s + link.mean(predictor) - y
        s = s - excess / (1 + variance * link.slope(predictor))
    return s
