"""Confidence bounds of every arm from users whose arms were coins, released by a prefix sum."""

from math import sqrt

import numpy as np

from dpbandit.agents.contextual.linear import Ridge
from dpbandit.agents.contextual.net_plan import NetPlan
from dpbandit.base import Floats, Ints, Streams, clip_norm, norms
from dpbandit.privacy import BLT, SecondMoments
from dpbandit.privacy.calibrated import noisy_prefix_sum


class SafetyNet:
    """Step 4 of `Guard`: what net explorers say, and what follows for everybody's arms::

        G^, u^     sums of x x' and r x over net explorers, |x|, |r| <= 1, released every b of them
        A          G^ + shift I,  shift = max(0, 2 Gamma - least eigenvalue of G^), a block an arm
        m(x)       x . A^-1 u^
        w(x)       z (sqrt(1.5) |x|_{A^-1} + s |A^-1 x|) + (Gamma + shift) S |A^-1 x|

    s is the noise's stddev, of the moment and of the Gram matrix off its diagonal; the other
    letters are those of `NetPlan`. Before the first release nothing is known.
    """

    def __init__(self, plan: NetPlan, streams: Streams) -> None:
        self._plan, spec = plan, plan.spec
        self._statistic = SecondMoments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared" if spec.shared else "disjoint",
            context_bound=spec.context_norm,
            reward_low=-1.0,
            reward_high=1.0,
            moment_weight=sqrt(2),  # the Gram matrix is free, see FADE
        )
        self.sums = noisy_prefix_sum(
            BLT(),
            self._statistic,
            streams,
            horizon=plan.rows + 1,  # the last release matters, too
            refresh_every=plan.every,
            noise_multiplier=BLT().column_norm(plan.releases) / plan.mu * (1 + 1e-12),
        )
        R, K = len(streams), spec.n_actions
        self._ridge = Ridge(spec, R, regularization=1.0)
        self._curvature, self._bias = 0.0, np.zeros((R, K))  # factors in w
        self._released = False

    def learn(self, context: Floats, action: Ints, reward: Floats) -> None:
        """A net explorer's row, to the mechanism."""
        low, high = self._plan.spec.reward_low, self._plan.spec.reward_high
        scaled = (2 * np.asarray(reward, np.float64) - low - high) / (high - low)
        release = self.sums(context, action, scaled)
        if release is None:
            return
        C, plan = self._statistic.context_bound, self._plan
        gram, moment = self._statistic.unpack(release)
        gram, moment, s = gram / C**2, moment / C, self.sums.stddev / sqrt(2)
        least = np.linalg.eigvalsh(gram)[..., 0]  # (R, blocks)
        shift = np.maximum(0.0, 2 * plan.gamma(s) - least)
        self._ridge.refit(gram, moment, shift[..., None, None])
        self._curvature, bias = plan.factors(s, shift)
        self._bias = np.broadcast_to(bias, self._bias.shape)
        self._released = True

    def vetoed(self, context: Floats, action: Ints) -> Ints:
        """`action` (R,), but where an arm is surely better the one that is surely best."""
        if not self._released:
            return action
        x = clip_norm(context, self._plan.spec.context_norm) / self._plan.spec.context_norm
        mean, width = self._ridge.means(x), self.widths(x)
        low = mean - width
        high = np.take_along_axis(mean + width, action[:, None], axis=1)[:, 0]
        return np.where(high < low.max(axis=1), low.argmax(axis=1), action)

    def widths(self, x: Floats) -> Floats:
        """w of every arm, (R, K), for contexts of norm at most 1."""
        Ax = self._ridge.products(x)  # (R, K, d)
        quadratic = np.vecdot(Ax, x if self._plan.spec.shared else x[:, None])
        root = np.sqrt(np.maximum(quadratic, 0.0))
        widths: Floats = self._curvature * root + self._bias * norms(Ax)[..., 0]
        return widths
