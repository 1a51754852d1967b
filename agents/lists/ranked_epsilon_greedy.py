"""Epsilon-greedy for lists."""

from dataclasses import dataclass

import numpy as np

from dpbandit.agents.lists.click_regression import ClickRegression
from dpbandit.agents.lists.ranking import ListPlayer, best_lists, products
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import inside, positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.ledger import no_privacy
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import Spec, fits


@dataclass(frozen=True, kw_only=True)
class RankedEpsilonGreedy:
    """The list with the best predicted clicks, or with probability `exploration` a random one.

    Sutton and Barto, "Reinforcement learning", 2nd ed. 2018, section 2.4, on a regression of
    clicks.

    Code:
        Learned by `ClickRegression.learn` (click_regression.py), the list `best_lists`
        (ranking.py).

    Guarantee:
        None: exact data reaches later lists.
    """

    exploration: float = 0.05
    """probability of a random list, in [0, 1]"""
    regularization: float = 1.0
    """of the regression"""

    def __post_init__(self) -> None:
        positive("regularization", self.regularization)
        inside("exploration", self.exploration, 0, 1, ends=True)

    def make(self, spec: Spec, streams: Streams) -> "RankedEpsilonGreedyAgent":
        """A running agent; raises `InputError` for anything but lists."""
        return RankedEpsilonGreedyAgent(self, fits(self, spec, ListSpec), streams)


class RankedEpsilonGreedyAgent(ListPlayer):
    """See `RankedEpsilonGreedy`."""

    def __init__(self, config: RankedEpsilonGreedy, spec: ListSpec, streams: Streams) -> None:
        super().__init__(spec, no_privacy("an exact regression of clicks"))
        self._exploration = config.exploration
        self._model = ClickRegression(spec, len(streams), config.regularization)
        self._coin, self._random = streams.uniforms("coin"), spec.uniform(streams)

    def _choose(self, u: Floats) -> Ints:
        best = best_lists(products(self._spec, u, self._model.theta), self._spec.clicks)
        return np.where((self._coin() < self._exploration)[:, None], self._random(), best)

    def _learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        self._model.learn(u, vectors, clicks)
