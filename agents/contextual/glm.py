"""Agents on generalised linear models of mean rewards, without privacy.

Each arm, or all together, have a regression that learns row by row, an online Laplace
approximation. The mean reward is low + span zeta(x . theta), where zeta is the inverse link, low
the smallest reward and span the range. The posterior of theta is normal with covariance H^-1; a
new row (x, y), y the reward scaled to [0, 1], turns it into the normal with::

    theta' = argmin_w (w - theta)' H (w - theta) / 2 + m(x . w) - y x . w,   m' = zeta,
    H'     = H + zeta'(x . theta') x x'

This is the Laplace approximation of Chapelle and Li, "An empirical evaluation of Thompson
sampling", NeurIPS 2011, Algorithm 3, with the full matrix and batches of one row. theta' is
theta + s H^-1 x with s = y - zeta(x . theta + s x' H^-1 x), so a row costs one scalar equation and
one rank-one step; no rows are stored. A single unchecked Newton step (the online Newton step)
costs about as much and overshoots where the link is flat; a maximum likelihood fit needs all rows,
and differs by a fraction of the estimate's standard deviation.
"""

import numpy as np

from dpbandit.agent import Arms, Least0, Positive, started
from dpbandit.agents.contextual.ridge import OnlineRidge
from dpbandit.base import Floats, Ints, clip_norm, clip_range, pick
from dpbandit.privacy import no_privacy
from dpbandit.specs import ContextualSpec, Link, LinkName, PriceListSpec, link_of

_NEWTON_STEPS = 8
"""Largest number of Newton steps for a new row's equation, enough for 1e-6 if x' H^-1 x <= 10"""
_GRID_SHIFT = 1.5 * 2.0**19
"""Number that, added and subtracted, rounds a predictor below 2^18 in size to multiples of 2^-33"""
_MIN_DIVISOR = 1e-12
"""Floor on a divisor, the link's slope or a variance; below it a row has no information"""


class OnlineGLM(OnlineRidge):
    """Online generalised linear regression, with an `OnlineRidge` of linear predictors x . theta.

    `means`, `variances` and `sampled` are those of x . theta. Rewards are scaled from their public
    range to y in [0, 1]; on a price list y is the reward divided by the price's margin, 1 for a
    sale. The identity link does not scale rewards and equals ridge regression, bit for bit, on rows
    clipped to their bounds. `spread` is the range of y, or of rewards with the identity link.
    """

    def __init__(
        self, spec: ContextualSpec, replicas: int, *, link: str | None, regularization: float
    ) -> None:
        super().__init__(spec, replicas, regularization=regularization)
        # a price list without a link has binary sales
        margins = spec.margins if isinstance(spec, PriceListSpec) else None
        otherwise = "identity" if margins is None else "logistic"
        self.link: Link = link_of(link or spec.link, otherwise=otherwise)
        self._spec, self._plain = spec, self.link.name == "identity"
        low, span = spec.reward_low, np.full(spec.n_actions, spec.reward_high - spec.reward_low)
        if self._plain:
            low, span = 0.0, np.ones(spec.n_actions)
        elif margins is not None:
            low, span = 0.0, margins
        self._low, self._span = low, span
        self.spread = 2 * spec.half_range if self._plain else 1.0

    def rewards(self, predictor: Floats) -> Floats:
        """Return the mean rewards of arms, (R, K), by their linear predictors x . theta, (R, K)."""
        return self._low + self._span * self.link.mean(predictor)

    def learn(self, context: Floats, action: Ints, reward: Floats) -> None:
        # a row of ridge regression, scaled by the root of its weight, with a working response
        spec, d = self._spec, self._spec.dim
        if self._plain:
            context = clip_norm(context, spec.context_norm)
            reward = clip_range(reward, spec.reward_low, spec.reward_high)
            return super().learn(context, action, reward)
        x = clip_norm(pick(context, action) if self._shared else context, spec.context_norm)
        reward = clip_range(reward, spec.reward_low, spec.reward_high)
        y = clip_range((reward - self._low) / self._span[action], 0.0, 1.0)
        where = self._places(action)
        mean = np.vecdot(self.theta.reshape(-1, d)[where], x)
        Hx = np.matvec(self.inverse.reshape(-1, d, d)[where], x)
        variance = np.maximum(np.vecdot(Hx, x), 0.0)
        residual, predictor, slope = _implicit_step(self.link, y, mean, variance)
        root = np.sqrt(np.maximum(slope, _MIN_DIVISOR))
        self._add(x * root[:, None], where, root * predictor + residual / root)


def _implicit_step(
    link: Link, y: Floats, mean: Floats, variance: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return s, u and zeta'(u), where s = y - zeta(u) and u = mean + s variance, (R,) each.

    zeta is the inverse link. In u the equation's left minus right side increases, convex below 0
    and concave above, so Newton's method from the u between mean and mean + (y - zeta(mean))
    variance that is nearest to 0 never overshoots. Steps end on a grid, where a replica that has
    converged stays, so that its numbers do not depend on those that still move.
    """
    far = y - link.mean(mean)
    turning = -mean / np.maximum(variance, _MIN_DIVISOR)
    s = np.minimum(np.maximum(turning, np.minimum(far, 0.0)), np.maximum(far, 0.0))
    u, target = mean + s * variance, mean + y * variance
    for _ in range(_NEWTON_STEPS):
        predicted, slope = link.mean(u), link.slope(u)
        step = (u + variance * predicted - target) / (1 + variance * slope)
        before, u = u, (u - step + _GRID_SHIFT) - _GRID_SHIFT
        if u.tobytes() == before.tobytes():  # further steps change nothing
            break
    return y - predicted, u, slope


class GLMUCB(Arms):
    """Optimism: play argmax zeta(x . theta_a + alpha sqrt(x' H_a^-1 x)), zeta the inverse link.

    Li, Lu and Zhou, "Provably optimal algorithms for generalized linear contextual bandits", ICML
    2017 (UCB-GLM)::

        1. play the arm with the largest upper confidence bound, in units of the reward
        2. add its row to the quasi-likelihood regression of the arm; H_a += zeta'(x . theta_a) x x'

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. The regression is online (`OnlineGLM`) in place of a maximum likelihood fit to all rows
           every round: O(d^2) a round and no rows stored; for the identity link the two are equal,
           for the logistic the fits differ by a fraction of a posterior standard deviation. Online
           Newton steps for this purpose: Zhang, Yang, Jin, Xiao and Zhou, "Online stochastic linear
           optimization under one-bit feedback", ICML 2016.
        2. H weights rows by the slope of zeta; the paper's V = sum x x' does not, and its width has
           the inverse of the smallest slope as a factor.
        3. `regularization` in place of rounds at random until V is invertible.
        4. One regression for each arm on problems whose arms have their own parameters.

    `alpha` from 0.1 to 2 hardly matters on logistic problems of 4 arms and 8 features, as bonuses
    of arms nearly cancel; `regularization` matters if arms differ by little.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/GLMBandit-v0", {"GLMUCB": GLMUCB()}, horizon=500, replicas=2,
    ...                   env_kwargs={"link": "logistic", "signal": 8.0}, progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["GLMUCB"] < mean["Uniform"] / 2)
    True
    """

    alpha: Least0 = 1.0
    """factor of widths of x . theta; with the identity link it is in units of the reward's range"""
    regularization: Positive = 0.1
    """precision of the parameters' prior, N(0, I / regularization)"""
    link: LinkName | None = None
    """link of the model; if None, the environment's; if it is none of these, logistic for price
    lists, for other problems identity"""
    glm = started(OnlineGLM)

    def start(self) -> None:
        self.ledger = no_privacy("exact generalised linear regressions")
        self.glm = OnlineGLM(self.spec, self.R, link=self.link, regularization=self.regularization)

    def scores(self, context: Floats) -> Floats:
        width = self.alpha * self.glm.spread * np.sqrt(self.glm.variances(context))
        return self.glm.rewards(self.glm.means(context) + width)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        self.glm.learn(context, action, feedback)


class LogisticTS(Arms):
    """Thompson sampling: play the best arm for a parameter drawn from N(theta, scale^2 H^-1).

    Chapelle and Li, "An empirical evaluation of Thompson sampling", NeurIPS 2011, Algorithm 3::

        1. draw a parameter b_a from N(theta_a, scale^2 H_a^-1) for every arm
        2. play argmax_a of the mean reward low + span / (1 + exp(-x . b_a))
        3. theta_a becomes the mode of N(theta_a, H_a^-1) times the new row's likelihood,
           H_a += p (1 - p) x x', p the predicted y at the new mode

    y is the reward scaled from its public range, low to low + span, to [0, 1]; fractions have a
    quasi-likelihood. On a price list the mean reward is the margin times the chance of a sale.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. The full H in place of its diagonal.
        2. A batch is one row.
        3. `scale` narrows the posterior by default, which did better on orange juice,
           recommendation and logistic GLMBandit problems; the paper's scale is 1.
        4. If arms have their own parameters, predictors x . b_a are drawn, not parameters: play has
           the same law and needs d times fewer random numbers.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/GLMBandit-v0", {"LogisticTS": LogisticTS()}, horizon=500,
    ...                   replicas=2, env_kwargs={"link": "logistic", "signal": 8.0},
    ...                   progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["LogisticTS"] < mean["Uniform"] / 2)
    True
    """

    scale: Least0 = 0.5
    """standard deviation of the draws, divided by that of the posterior"""
    regularization: Positive = 0.1
    """precision of the parameters' prior, N(0, I / regularization)"""
    glm = started(OnlineGLM)

    def start(self) -> None:
        self.ledger = no_privacy("exact logistic regressions")
        size = self.spec.dim if self.spec.shared else self.spec.n_actions
        self.normals = self.streams.normals("exploration", size)
        self.glm = OnlineGLM(self.spec, self.R, link="logistic", regularization=self.regularization)

    def scores(self, context: Floats) -> Floats:
        return self.glm.rewards(self.glm.sampled(context, self.scale, self.normals()))

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        self.glm.learn(context, action, feedback)
