"""The yardsticks of every table: play at random, and the best dumb player in hindsight."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats
from dpbandit.base.streams import Streams
from dpbandit.privacy.accounting.ledger import no_data, no_privacy
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.experts import ExpertsSpec
from dpbandit.specs.protocols import (
    AgentConfig,
    BanditSpec,
    ContextualSpec,
    Hindsight,
    PriceSpec,
    Spec,
    fits,
)


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Uniformly random actions.

    Guarantee. Epsilon 0: no user's data is looked at.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/OJPricing-v0", {}, horizon=200, replicas=2, progress=False)
    >>> list(results.summary()["agent"])
    ['Uniform', 'BestFixed']
    """

    def make(self, spec: Spec, streams: Streams) -> "UniformAgent | UniformPoints":
        """A running agent for any problem: arms, experts, prices or the points of a domain."""
        if isinstance(spec, ConvexSpec):
            return UniformPoints(spec, streams)
        if isinstance(spec, ExpertsSpec):
            return UniformAgent(spec, streams)
        return UniformAgent(fits(self, spec, BanditSpec), streams)


class UniformAgent:
    """See `Uniform`, for arms, experts and prices."""

    def __init__(self, spec: BanditSpec | ExpertsSpec, streams: Streams) -> None:
        self.ledger = no_data()
        self._spec, self._luck = spec, streams.uniforms("exploration")

    def act(self, context: Floats) -> npt.NDArray[Any]:
        """A fresh random action for each replica, (R,)."""
        spec = self._spec
        if isinstance(spec, PriceSpec):
            return spec.low + (spec.high - spec.low) * self._luck()
        if not isinstance(spec, ExpertsSpec):
            spec = fits(self, spec, ContextualSpec)
        return (self._luck() * spec.n_actions).astype(np.int64)

    def update(self, context: Floats, action: npt.NDArray[Any], reward: Floats) -> None:
        """Learns nothing."""


class UniformPoints:
    """See `Uniform`, for the points of a convex domain."""

    def __init__(self, spec: ConvexSpec, streams: Streams) -> None:
        self.ledger = no_data()
        self._points = spec.loss.domain.sampler(streams, "exploration")

    def act(self, context: Floats) -> Floats:
        """A fresh random point for each replica, (R, N)."""
        return self._points()

    def update(self, context: Floats, action: Floats, told: Floats) -> None:
        """Learns nothing."""


@dataclass(frozen=True, kw_only=True)
class BestFixed(Hindsight):
    """The best single action in hindsight, played from the first round on: the best dumb player.

    An oracle: it is told which one action has the largest expected total over the users it is
    about to meet. Learning agents that do not beat it have learned nothing from contexts.

    Guarantee. None.
    """

    def with_answer(self, action: npt.NDArray[Any]) -> AgentConfig:
        """The config that plays `action`, arms or prices (R,) or points (R, N), all along."""
        return _Fixed(action=tuple(map(_hashable, action.tolist())))

    def make(self, spec: Spec, streams: Streams) -> "FixedAgent":
        """Without an answer, which `compare` supplies: the first arm, lowest price or centre."""
        if isinstance(spec, ConvexSpec):
            return FixedAgent(np.tile(spec.loss.domain.centre, (len(streams), 1)))
        low = spec.low if isinstance(spec, PriceSpec) else 0
        return FixedAgent(np.full(len(streams), low))


@dataclass(frozen=True, kw_only=True)
class _Fixed:
    action: tuple[float | tuple[float, ...], ...]

    def make(self, spec: Spec, streams: Streams) -> "FixedAgent":
        return FixedAgent(np.array(self.action))


class FixedAgent:
    """Plays the same action every round."""

    def __init__(self, action: npt.NDArray[Any]) -> None:
        self.ledger = no_privacy("an action chosen with all data in hand")
        self._action = action

    def act(self, context: Floats) -> npt.NDArray[Any]:
        """The fixed action, (R,) or (R, N)."""
        return self._action

    def update(self, context: Floats, action: npt.NDArray[Any], reward: Floats) -> None:
        """Learns nothing."""


def _hashable(action: float | list[float]) -> float | tuple[float, ...]:
    return tuple(action) if isinstance(action, list) else action
