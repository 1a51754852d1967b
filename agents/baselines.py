"""The yardsticks of every table: play at random, and the best dumb player in hindsight."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.arrays import Floats
from dpbandit.privacy.ledger import no_data, no_privacy
from dpbandit.protocols import AgentConfig, BanditSpec, ContextualSpec, Hindsight, PriceSpec, fits
from dpbandit.streams import Streams


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Uniformly random actions.

    Guarantee. Epsilon 0: no user's data is looked at.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/OJPricing-v0", {}, horizon=200, replicas=2, progress=False)
    >>> list(results.summary()["agent"])
    ['Uniform', 'BestFixed']
    """

    def make(self, spec: BanditSpec, streams: Streams) -> "UniformAgent":
        """A running agent for any contextual bandit or pricing problem."""
        return UniformAgent(fits(self, spec, BanditSpec), streams)


class UniformAgent:
    """See `Uniform`."""

    def __init__(self, spec: BanditSpec, streams: Streams) -> None:
        self.ledger = no_data()
        self._spec, self._luck = spec, streams.uniforms("exploration")

    def act(self, context: Floats) -> npt.NDArray[Any]:
        """A fresh random action for each replica, (R,)."""
        spec = self._spec
        if isinstance(spec, PriceSpec):
            return spec.low + (spec.high - spec.low) * self._luck()
        return (self._luck() * fits(self, spec, ContextualSpec).n_actions).astype(np.int64)

    def update(self, context: Floats, action: npt.NDArray[Any], reward: Floats) -> None:
        """Learns nothing."""


@dataclass(frozen=True, kw_only=True)
class BestFixed(Hindsight):
    """The best single action in hindsight, played from the first round on: the best dumb player.

    An oracle: it is told which one action has the largest expected total over the users it is
    about to meet. Learning agents that do not beat it have learned nothing from contexts.

    Guarantee. None.
    """

    def with_answer(self, action: npt.NDArray[Any]) -> AgentConfig:
        """The config that plays `action` (R,) all along."""
        return _Fixed(action=tuple(action.tolist()))

    def make(self, spec: BanditSpec, streams: Streams) -> "FixedAgent":
        """Without an answer: the first arm, or the lowest price. `compare` supplies the answer."""
        low = spec.low if isinstance(spec, PriceSpec) else 0
        return FixedAgent(np.full(len(streams), low))


@dataclass(frozen=True, kw_only=True)
class _Fixed:
    action: tuple[float, ...]

    def make(self, spec: BanditSpec, streams: Streams) -> "FixedAgent":
        return FixedAgent(np.array(self.action))


class FixedAgent:
    """Plays the same action (R,) every round."""

    def __init__(self, action: npt.NDArray[Any]) -> None:
        self.ledger = no_privacy("an action chosen with all data in hand")
        self._action = action

    def act(self, context: Floats) -> npt.NDArray[Any]:
        """The fixed action, (R,)."""
        return self._action

    def update(self, context: Floats, action: npt.NDArray[Any], reward: Floats) -> None:
        """Learns nothing."""
