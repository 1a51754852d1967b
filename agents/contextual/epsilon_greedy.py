"""Epsilon-greedy on ridge regressions."""

from dataclasses import dataclass

import numpy as np

from dpbandit.agents.contextual.ridge import OnlineRidge
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import inside, positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import no_privacy
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, fits


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy:
    """The arm with the largest predicted reward, or with probability `exploration` a random one.

    Sutton and Barto, "Reinforcement learning", 2nd ed. 2018, section 2.4, with a ridge regression
    (disjoint or shared, as the environment has it) in place of a mean for each arm.

    Code:
        Played by `EpsilonGreedyAgent.act`, learned by `OnlineRidge.learn` (ridge.py).

    Guarantee:
        None: exact data reaches later actions.
    """

    exploration: float = 0.05
    """probability of a random arm, in [0, 1]"""
    regularization: float = 1.0
    """the ridge, added to the diagonal of Gram matrices"""

    def __post_init__(self) -> None:
        positive("regularization", self.regularization)
        inside("exploration", self.exploration, 0, 1, ends=True)

    def make(self, spec: BanditSpec, streams: Streams) -> "EpsilonGreedyAgent":
        """A running agent; raises `InputError` for anything but finitely many arms."""
        return EpsilonGreedyAgent(self, fits(self, spec, ContextualSpec), streams)


class EpsilonGreedyAgent:
    """See `EpsilonGreedy`."""

    def __init__(self, config: EpsilonGreedy, spec: ContextualSpec, streams: Streams) -> None:
        self.ledger = no_privacy("exact ridge regressions")
        self._exploration, self._n_actions = config.exploration, spec.n_actions
        self._luck = streams.uniforms("exploration", 2)
        self._ridge = OnlineRidge(spec, len(streams), regularization=config.regularization)

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        coin, which = self._luck().T
        greedy = self._ridge.means(context).argmax(axis=1)
        random = (which * self._n_actions).astype(np.int64)
        return np.where(coin < self._exploration, random, greedy)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """One rank-one step."""
        self._ridge.learn(context, action, feedback)
