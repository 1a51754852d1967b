"""Stochastic gradient descent on locally private gradients."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dpbandit.base import (
    Floats,
    Ints,
    Streams,
    clip_norm,
    clip_range,
    gaussian_target,
    one_of,
    pick,
    positive,
    rows,
)
from dpbandit.privacy import ledger_of
from dpbandit.privacy.messages import MESSAGES, LocalVectors, Message
from dpbandit.specs import BanditSpec, ContextualSpec, fits


@dataclass(frozen=True, kw_only=True)
class LocalSGD:
    """Each device sends a private gradient of a logistic model, and the model takes a step.

    After Han, Liang, Wang and Zhang, "Generalized linear bandits with local differential privacy",
    NeurIPS 2021, whose text was not at hand: their plan, greedy play on SGD with local gradients::

        in round t    play argmax_a x . theta_t, ties at random
                      g = (y - logistic(x . theta_t)) x, y the reward on a scale from 0 to 1
                      send z, a locally private message of mean g
                      theta_{t+1} = the point of the ball next to theta_t + z c / (t + 10 c)

    Code:
        `LocalSGDPlayer.update` takes the step, `LocalVectors` of dpbandit.privacy.messages sends.

    Guarantee:
        Every message is locally private: epsilon-DP with "privunit", "laplace" and "k-norm", else
        (epsilon, delta)-DP, whatever a user has, as `|g|` <= 1 is enforced; a user sends one. So
        everything that is ever seen is, and joint DP follows. No server is trusted, as long as
        devices choose and look at rewards themselves.

    Differs from the paper:
        Reconstructed. Messages may be pure (PrivUnit), which costs an eighth of the variance of
        Gaussian ones; steps and ball are those of our own experiments.

    **Limits.** Greedy, and the model of rewards is logistic, whatever they are.

    >>> from dpbandit import certify
    >>> certify(LocalSGD(epsilon=1.0), "GLMBandit", accountants=False).ledger.brief
    'local'
    """

    epsilon: float = 1.0
    """target, > 0; inf sends exact gradients"""
    delta: float = 1e-5
    """target, in (0, 1), of "gaussian" messages"""
    message: Message = "privunit"
    """the law of messages"""
    step: float | None = None
    """c, > 0; if None 4 D, one over the least curvature of D parameters at 0"""
    radius: float = 6.0
    """of the ball in which theta lies, > 0"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("message", self.message, MESSAGES)
        if self.step is not None:
            positive("step", self.step)
        positive("radius", self.radius)

    def make(self, spec: BanditSpec, streams: Streams) -> "LocalSGDPlayer":
        """A running agent; raises `InputError` for anything but arms and their features."""
        spec = fits(self, spec, ContextualSpec)
        return LocalSGDPlayer(self, spec, streams)


class LocalSGDPlayer:
    """The model, and the devices' messages."""

    def __init__(self, config: LocalSGD, spec: ContextualSpec, streams: Streams) -> None:
        self._spec, self._radius = spec, config.radius
        K, d = spec.n_actions, spec.dim
        self._blocks = 1 if spec.shared else K
        D = self._blocks * d
        self._c = config.step or 4.0 * D
        self._messages = LocalVectors(
            streams,
            dim=D,
            law=config.message,
            epsilon=config.epsilon,
            delta=config.delta,
            uses=spec.horizon,
        )
        self._luck = streams.uniforms("ties", K)
        self._round = 0
        self._theta: Floats = np.zeros((len(streams), self._blocks, d))
        self.ledger = ledger_of(
            config.epsilon, self._messages.spend, without="exact gradients", trust="local"
        )

    def act(self, context: Floats) -> Ints:
        """Arms (R,); ties uniformly at random, as at first."""
        scores = self.scores(context)
        ties = scores >= scores.max(axis=1, keepdims=True)
        arms: Ints = np.where(ties, 1 + self._luck(), 0.0).argmax(axis=1)
        return arms

    def scores(self, context: Floats) -> Floats:
        """x . theta_a, (R, K); the expected reward increases in them."""
        x = clip_norm(context, self._spec.context_norm) / self._spec.context_norm
        if self._spec.shared:
            return np.matvec(x, self._theta[:, 0])
        return np.matvec(self._theta, x)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """A message, and a step along it."""
        spec, R = self._spec, len(action)
        block = np.zeros(R, np.int64) if spec.shared else action
        row = pick(context, action) if spec.shared else context
        x = clip_norm(row, spec.context_norm) / spec.context_norm
        low, high = spec.reward_low, spec.reward_high
        y = (clip_range(feedback, low, high) - low) / (high - low)
        residual = y - expit(np.vecdot(x, self._theta[rows(R), block]))
        gradient = np.zeros_like(self._theta)
        gradient[rows(R), block] = residual[:, None] * x
        sent = self._messages(gradient.reshape(R, -1))
        assert sent is not None  # every call sends
        moved = self._theta.reshape(R, -1) + self._c / (self._round + 10 * self._c) * sent
        self._theta = clip_norm(moved, self._radius).reshape(self._theta.shape)
        self._round += 1
