"""Anybody's scalar policy in `compare`: one copy for each replica."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats
from dpbandit.base.fields import has_methods, takes
from dpbandit.base.inputs import InputError, reals, shown
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.ledger import no_privacy
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, fits


def _act(policy: Any, context: Floats) -> Any:
    return policy.act(context)


def _update(policy: Any, context: Floats, action: int, reward: float) -> Any:
    return policy.update(context, action, reward)


class Wrapped:
    """A policy under other names of its methods; what must not be shared is `inner`."""

    inner: Any


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """Runs policies written for one user at a time, by whatever names their methods have::

        class Mine:                                    # a student's class
            def __init__(self, n_actions, seed): ...
            def act(self, context): ...                # (d,) floats -> arm, 0 to K - 1
            def update(self, context, action, reward): ...

        Foreign(policy=lambda spec, seed: Mine(spec.n_actions, seed))

    `policy` is called once for each replica, with the public facts and a seed of its own, and must
    hand out a new object every time: replicas that share one learn from each other. Context is a
    copy of that replica's, (d,), or (K, d) where arms have rows of features. Where ordered lists
    are shown (`ListSpec`) there are m item numbers and m clicks in place of an arm and a reward.
    Slow by design: one Python call for each replica and round.

    Guarantee:
        None: what foreign code keeps is not known, so it claims nothing (epsilon infinity).

    Raises:
        InputError: an argument that is no function; an object handed out twice; in its round, an
            answer that is no arm.

    >>> from dpbandit import compare
    >>> class Mean:
    ...     def __init__(self, n_actions):
    ...         self.total, self.count = np.ones(n_actions), np.ones(n_actions)
    ...     def act(self, context):
    ...         return (self.total / self.count).argmax()
    ...     def update(self, context, action, reward):
    ...         self.total[action] += reward
    ...         self.count[action] += 1
    >>> mine = Foreign(policy=lambda spec, seed: Mean(spec.n_actions))
    >>> results = compare("OJPricing", {"Mean": mine}, horizon=300, replicas=3, progress=False)
    >>> list(results.summary()["agent"])
    ['Mean', 'Uniform', 'BestFixed']
    """

    policy: Callable[[Any, int], Any]
    """(spec, seed) -> a new policy"""
    act: Callable[[Any, Floats], Any] = _act
    """(policy, context) -> arm, or list of items"""
    update: Callable[[Any, Floats, Any, Any], Any] = _update
    """(policy, context, arm, reward) -> anything; of lists (policy, context, items, clicks)"""

    def __post_init__(self) -> None:
        for name in ("policy", "act", "update"):
            if not callable(getattr(self, name)):
                raise InputError(f"Expected {name}={getattr(self, name)!r} to be a function.")

    def make(self, spec: BanditSpec, streams: Streams) -> "ForeignAgent":
        """A running agent, with one policy for each replica."""
        if isinstance(spec, ListSpec):
            return ForeignAgent(self, spec, streams)
        return ForeignAgent(self, fits(self, spec, ContextualSpec), streams)


class ForeignAgent:
    """See `Foreign`."""

    def __init__(self, config: Foreign, spec: BanditSpec, streams: Streams) -> None:
        self.ledger = no_privacy("foreign code, which claims nothing")
        seeds = (streams.uniforms("seed")() * 2**31).astype(np.int64).tolist()
        takes("policy", config.policy, "spec", "seed")
        self._policies = [config.policy(spec, seed) for seed in seeds]
        for policy in self._policies[:1]:
            if policy is None:
                raise InputError("Expected policy to return a new policy, got None.")
            if config.act is _act:
                has_methods("what policy returns", policy, act=("context",))
            if config.update is _update:
                asked = ("context", "action", "reward")
                has_methods("what policy returns", policy, update=asked)
        learners = [p.inner if isinstance(p, Wrapped) else p for p in self._policies]
        if len({id(learner) for learner in learners}) < len(seeds):
            raise InputError("Expected a new object from every call of policy, got one twice.")
        self._config, self._round = config, 0
        self._length = spec.length if isinstance(spec, ListSpec) else None

    def act(self, context: Floats) -> npt.NDArray[Any]:
        """Arms (R,), or lists (R, m)."""
        self._round += 1
        asked = zip(self._policies, context, strict=True)
        read = self._arm if self._length is None else self._list
        return np.array([read(self._config.act(policy, x.copy())) for policy, x in asked])

    def update(self, context: Floats, action: npt.NDArray[Any], reward: Floats) -> None:
        """Tell every replica's policy its own user."""
        told: Any = zip(self._policies, context, action.tolist(), reward.tolist(), strict=True)
        if self._length is not None:
            told = zip(self._policies, context, action.copy(), reward.copy(), strict=True)
        for policy, x, a, r in told:
            self._config.update(policy, x.copy(), a, r)

    def _arm(self, answer: Any) -> int:
        try:
            if np.ndim(answer) or int(answer) != answer:
                raise ValueError
            return int(answer)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"In round {self._round}: Expected an arm, a whole number, got {answer!r}."
            ) from None

    def _list(self, answer: Any) -> npt.NDArray[Any]:
        try:
            items = reals(answer)
            if items.shape != (self._length,) or (items != np.floor(items)).any():
                raise ValueError
        except ValueError:
            raise InputError(
                f"In round {self._round}: Expected a list of {self._length} item numbers, got "
                f"{shown(answer)}."
            ) from None
        return items.astype(np.int64)
