"""LinUCB on locally private rounds: every device sends a noisy Gram matrix and moment."""

from dataclasses import dataclass
from math import ceil, sqrt

from dpbandit.agents.contextual.channels import LocalSums
from dpbandit.agents.contextual.fading_regression import RegressionPlayer
from dpbandit.base import Streams, at_least, gaussian_target, inside, positive
from dpbandit.privacy import SecondMoments, ledger_of
from dpbandit.privacy.fading import growing_batches
from dpbandit.privacy.messages import LocalStatistic
from dpbandit.specs import BanditSpec, ContextualSpec, fits

_FIRST = 9
"""Rounds of uniform play, times d and the variance of the noise of a message"""


@dataclass(frozen=True, kw_only=True)
class LocalLinUCB:
    """A ridge regression on sums of messages, each a noisy (x x', s x) of one user.

    After Zheng, Cai, Huang, Li and Wang, "Locally differentially private (contextual) bandits
    learning", NeurIPS 2020, whose text was not at hand::

        send             (x x' / sqrt(2), s x) + N(0, (2 / mu)^2 I), s the sign of the reward about
                         the middle of its range
        end of a batch   G, b = the sums of all messages, Gamma = 2 sqrt(d) times the noise that an
                         entry of G has by now;     theta = (G + ridge Gamma I)^-1 b
        play             argmax_a x . theta + bonus s |(G + ridge Gamma I)^-1 x|, s the noise of an
                         entry of b; the first batch, and ties, at random

    Code:
        `LocalStatistic` of dpbandit.privacy.messages sends, `LocalSums` (channels.py) adds up,
        `RegressionPlayer` (fading_regression.py) solves and plays.

    Guarantee:
        Every message is locally (epsilon, delta)-DP, exactly mu-GDP: `|xx' - yy'|^2 / 2 + |sx -
        ty|^2 <= 4` for all rows of length at most 1 (`SecondMoments`), so that the Gram matrix is
        free; a user sends one. No server is trusted, as long as devices choose and look at rewards
        themselves.

    Differs from the paper:
        Reconstructed. Exact Gaussian noise for both parts together, signs of rewards, greedy as set
        here, and a new model at the end of growing batches only.

    >>> from dpbandit import certify
    >>> certify(LocalLinUCB(epsilon=1.0), "GLMBandit", accountants=False).ledger.brief
    'local'
    """

    epsilon: float = 1.0
    """target, > 0; inf sends exact rounds"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    ridge: float = 1.0
    """in units of the noise's spectral norm, > 0"""
    bonus: float = 0.0
    """of optimism, in standard deviations of what privacy alone adds to a prediction, >= 0"""
    growth: float = 0.1
    """by how much each batch is longer than the one before"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        positive("ridge", self.ridge)
        at_least("bonus", self.bonus, 0)
        inside("growth", self.growth, 0, 100, ends=True)

    def make(self, spec: BanditSpec, streams: Streams) -> RegressionPlayer:
        """A running agent; raises `InputError` for anything but arms and their features."""
        spec = fits(self, spec, ContextualSpec)
        statistic = SecondMoments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared" if spec.shared else "disjoint",
            context_bound=spec.context_norm,
            reward_low=-1.0,
            reward_high=1.0,
            moment_weight=sqrt(2),  # at which the Gram matrix is free
        )
        messages = LocalStatistic(
            statistic, streams, epsilon=self.epsilon, delta=self.delta, uses=spec.horizon
        )
        T, V = spec.horizon, messages.stddev**2
        first = max(1, ceil(min(max(100.0, _FIRST * spec.dim * V), T / 10)))
        sums = LocalSums(
            messages,
            messages.spend,
            variance=V,
            ends=growing_batches(T, first=first, growth=self.growth),
            horizon=T,
        )
        return RegressionPlayer(
            spec,
            sums,
            statistic,
            streams,
            ledger_of(self.epsilon, messages.spend, without="exact rounds", trust="local"),
            shift=self.ridge,
            bonus=self.bonus,
            signs=True,
        )
