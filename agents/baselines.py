"""Baselines of every comparison: uniform play, and the best fixed action in hindsight."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpbandit.base import AnyArray, Bools, Floats, Streams
from dpbandit.privacy import no_data, no_privacy
from dpbandit.specs import AgentConfig, Hindsight, Masks, Spec


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Play uniformly random actions.

    Arms, experts, prices, or uniform points of a convex domain. Where actions come and go, one of
    those that are there.

    Guarantee:
        Epsilon 0: no user's data is looked at.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/OJPricing-v0", {}, horizon=200, replicas=2, progress=False)
    >>> list(results.summary()["agent"])
    ['Uniform', 'BestFixed']
    """

    def make(self, spec: Spec, streams: Streams) -> "UniformAgent":
        # A running agent for any problem: arms, experts, prices or the points of a domain
        return UniformAgent(spec, streams)


class _Alike:
    """Plays by the same `chances` (R, K) in all rounds, and learns nothing."""

    rounds_to_release = int(np.iinfo(np.int64).max)
    """the policy never changes"""
    chances: Floats
    """of arms"""
    masks: tuple[Masks, ...] = ("public", "user")

    def __init__(self, spec: Spec) -> None:
        self._axes = None if spec.n_arms is None else len(spec.context_shape)

    def lead(self, context: Floats) -> tuple[int, ...]:
        """(R,), or (n, R) of several rounds in which arms are played."""
        return context.shape[: 1 if self._axes is None else context.ndim - self._axes]

    def count_block(self, counts: Floats, rounds: int) -> None:
        """Nothing: no sums are due."""

    def update(self, context: Floats, action: AnyArray, feedback: Floats) -> None:
        """Nothing."""


class UniformAgent(_Alike):
    """See `Uniform`."""

    def __init__(self, spec: Spec, streams: Streams) -> None:
        super().__init__(spec)
        self.ledger = no_data()
        self._draw: Callable[..., AnyArray] = spec.uniform(streams)
        if spec.n_arms is not None:
            self.chances = np.full((len(streams), spec.n_arms), 1 / spec.n_arms)

    def act(self, context: Floats) -> AnyArray:
        lead = self.lead(context)
        return self._draw(lead) if len(lead) > 1 else self._draw()

    def act_among(self, context: Floats, mask: Bools) -> AnyArray:
        """The same of those allowed."""
        return self._draw(mask=mask)


@dataclass(frozen=True, kw_only=True)
class BestFixed(Hindsight):
    """Play the best single action in hindsight from the first round on; an oracle.

    An oracle: it is told which one action has the largest expected total over the users it is
    about to meet. Learning agents that do not beat it have learned nothing from contexts. Where it
    is not there a random action is played, or on a list put in the place of a missing item.

    Guarantee:
        None.
    """

    def with_answer(self, action: AnyArray) -> AgentConfig:
        return _Fixed(action=tuple(map(_hashable, action.tolist())))

    def make(self, spec: Spec, streams: Streams) -> "FixedAgent":
        # Without an answer, which `compare` supplies: the first arm, lowest price or centre
        actions = [spec.default_action] * len(streams)
        return FixedAgent(spec, np.array(actions), streams)


@dataclass(frozen=True, kw_only=True)
class _Fixed:
    action: tuple[float | tuple[float, ...], ...]

    def make(self, spec: Spec, streams: Streams) -> "FixedAgent":
        return FixedAgent(spec, np.array(self.action), streams)


class FixedAgent(_Alike):
    """Plays the same action every round."""

    def __init__(self, spec: Spec, action: AnyArray, streams: Streams) -> None:
        super().__init__(spec)
        self.ledger = no_privacy("an action chosen with all data in hand")
        self._spec, self._action = spec, action
        self._draw: Callable[..., AnyArray] = spec.uniform(streams)
        if spec.n_arms is not None:
            self.chances = np.eye(spec.n_arms)[action]

    def act(self, context: Floats) -> AnyArray:
        lead = self.lead(context)
        return np.broadcast_to(self._action, lead) if len(lead) > 1 else self._action

    def act_among(self, context: Floats, mask: Bools) -> AnyArray:
        """The same where it is there, and else a random action."""
        random = self._draw(mask=mask)
        return self._spec.stand_in(np.broadcast_to(self._action, random.shape), mask, random)


def _hashable(action: float | list[float]) -> float | tuple[float, ...]:
    return tuple(action) if isinstance(action, list) else action
