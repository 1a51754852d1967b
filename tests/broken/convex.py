"""Agents for convex losses that spend more than their ledger says: the audit must flag them."""

from dataclasses import replace
from typing import Any

from dpbandit.agents import PFTAL, LinearFTRL, PrivateBandit
from dpbandit.privacy.moments import ClippedVectors


class Quieter:
    """Mixin that halves the noise of an agent's sums, that of nodes and of padding."""

    def make(self, spec: Any, streams: Any) -> Any:
        agent: Any = super().make(spec, streams)  # type: ignore[misc]
        noise = agent.sums._noise
        node = noise.source
        noise.source = lambda: 0.5 * node()
        return agent


class HalfTheNodes(Quieter, PFTAL):
    """Agent that follows the leader with half the noise."""


class HalfThePaddedNodes(Quieter, LinearFTRL):
    """Agent that follows the leader of linear losses with half the noise."""


class HalfTheValues(Quieter, PrivateBandit):
    """Agent that observes values of losses, with half the noise."""


class NoGradientClip(PFTAL):
    """Agent that follows the leader and does not clip gradients."""

    def begin(self) -> None:
        super().begin()
        self.sums._statistic = ClippedVectors(self.sums._statistic.dim, 1e9)


class AnswersTheContext(PFTAL):
    """The leader that plays what is best for the datum it is shown as context."""

    def act(self, context: Any) -> Any:
        return self.domain.lowest(context)


class NoValueClip(PrivateBandit):
    """The bandit that trusts the environment for the range of values."""

    def start(self) -> None:
        super().start()
        sums: Any = self.sums
        sums._statistic = replace(sums._statistic, low=-1e9, high=1e9)


BROKEN = {
    "half the noise of gradients": HalfTheNodes(),
    "half the noise of padded nodes": HalfThePaddedNodes(),
    "gradients not clipped": NoGradientClip(),
    "a datum is answered in the next round": AnswersTheContext(),
    "half the noise of values": HalfTheValues(delta=1e-4),
    "values not clipped": NoValueClip(delta=1e-4),
}
"""Broken agents, all flagged in the released view at 8,000 runs."""
