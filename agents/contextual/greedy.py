"""Greedy: no exploration at all."""

from dataclasses import dataclass

import numpy as np

from dpbandit.agents.contextual.ridge import OnlineRidge
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import positive, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import no_privacy
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, ScoringAgent, fits


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """Play the arm with the largest predicted reward of ridge regressions.

    Bastani, Bayati and Khosravi, "Mostly exploration-free algorithms for contextual bandits",
    Management Science 2021: where contexts are diverse enough, users explore by themselves and
    being greedy is rate optimal. Where they are not, an arm may be given up for ever::

        1. disjoint arms take turns until each has been played `turns` times
        2. play argmax_a x . theta_a
        3. add (x, r) to the ridge regression of the arm played

    Code:
        Steps 1 and 2 are `GreedyAgent.act`, step 3 is `OnlineRidge.learn` (ridge.py).

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. Ridge regression in place of least squares, so there is a prediction from the first round
           on.
        2. Ties go to the lowest arm.
        3. One parameter for all arms, where the environment has it so: no turns, since every arm
           tells of all others.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/GLMBandit-v0", {"Greedy": Greedy()}, horizon=500, replicas=4,
    ...                   progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["Greedy"] < mean["Uniform"] / 2)
    True
    """

    turns: int = 1
    """rounds each disjoint arm is played before being greedy"""
    regularization: float = 1.0
    """the ridge, added to the diagonal of Gram matrices"""

    def __post_init__(self) -> None:
        whole("turns", self.turns, 0)
        positive("regularization", self.regularization)

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        return GreedyAgent(self, fits(self, spec, ContextualSpec), len(streams))


class GreedyAgent:
    """See `Greedy`."""

    def __init__(self, config: Greedy, spec: ContextualSpec, replicas: int) -> None:
        self.ledger = no_privacy("exact ridge regressions")
        self._replicas, self._n_actions, self._round = replicas, spec.n_actions, 0
        self._turns = 0 if spec.shared else config.turns * spec.n_actions
        self._ridge = OnlineRidge(spec, replicas, regularization=config.regularization)

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        if self._round < self._turns:
            return np.full(self._replicas, self._round % self._n_actions)
        best: Ints = self.scores(context).argmax(axis=1)
        return best

    def scores(self, context: Floats) -> Floats:
        """Predicted rewards, (R, K)."""
        return self._ridge.means(context)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """One rank-one step."""
        self._round += 1
        self._ridge.learn(context, action, feedback)
