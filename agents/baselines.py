"""Baselines of every comparison: uniform play, and the best fixed action in hindsight."""

from dataclasses import dataclass

import numpy as np

from dpbandit.base import AnyArray, Floats, Ints, Streams
from dpbandit.privacy import no_data, no_privacy
from dpbandit.specs import AgentConfig, ContextualSpec, Hindsight, Spec


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Play uniformly random actions.

    Arms, experts, prices, or uniform points of a convex domain.

    Guarantee:
        Epsilon 0: no user's data is looked at.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/OJPricing-v0", {}, horizon=200, replicas=2, progress=False)
    >>> list(results.summary()["agent"])
    ['Uniform', 'BestFixed']
    """

    def make(self, spec: Spec, streams: Streams) -> "UniformAgent":
        """A running agent for any problem: arms, experts, prices or the points of a domain."""
        return UniformAgent(spec, streams)


class _Alike:
    """Plays by the same `chances` (R, K) in all rounds, and learns nothing."""

    chances: Floats
    """of arms"""

    @property
    def left(self) -> Ints:
        """Rounds that may be drawn together, without end."""
        return np.full(len(self.chances), np.iinfo(np.int64).max)

    def learn_block(self, totals: Floats, counts: Floats, rounds: int) -> None:
        """Nothing."""

    def update(self, context: Floats, action: AnyArray, feedback: Floats) -> None:
        """Nothing."""


class UniformAgent(_Alike):
    """See `Uniform`."""

    def __init__(self, spec: Spec, streams: Streams) -> None:
        self.ledger = no_data()
        self._draw = spec.uniform(streams)
        if isinstance(spec, ContextualSpec):
            self.chances = np.full((len(streams), spec.n_actions), 1 / spec.n_actions)

    def act(self, context: Floats) -> AnyArray:
        """A fresh random action for each replica, (R, ...)."""
        return self._draw()


@dataclass(frozen=True, kw_only=True)
class BestFixed(Hindsight):
    """Play the best single action in hindsight from the first round on; an oracle.

    An oracle: it is told which one action has the largest expected total over the users it is
    about to meet. Learning agents that do not beat it have learned nothing from contexts.

    Guarantee:
        None.
    """

    def with_answer(self, action: AnyArray) -> AgentConfig:
        """The config that plays `action`, arms or prices (R,) or points (R, N), all along."""
        return _Fixed(action=tuple(map(_hashable, action.tolist())))

    def make(self, spec: Spec, streams: Streams) -> "FixedAgent":
        """Without an answer, which `compare` supplies: the first arm, lowest price or centre."""
        actions = [spec.default_action] * len(streams)
        return FixedAgent(spec, np.array(actions))


@dataclass(frozen=True, kw_only=True)
class _Fixed:
    action: tuple[float | tuple[float, ...], ...]

    def make(self, spec: Spec, streams: Streams) -> "FixedAgent":
        return FixedAgent(spec, np.array(self.action))


class FixedAgent(_Alike):
    """Plays the same action every round."""

    def __init__(self, spec: Spec, action: AnyArray) -> None:
        self.ledger = no_privacy("an action chosen with all data in hand")
        self._action = action
        if isinstance(spec, ContextualSpec):
            self.chances = np.eye(spec.n_actions)[action]

    def act(self, context: Floats) -> AnyArray:
        """The fixed action, (R,) or (R, N)."""
        return self._action


def _hashable(action: float | list[float]) -> float | tuple[float, ...]:
    return tuple(action) if isinstance(action, list) else action
