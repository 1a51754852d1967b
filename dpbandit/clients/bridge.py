"""Conversion of a Gymnasium bandit's observations to contexts, and of arms to actions."""

from math import prod
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim, flatten

from dpbandit.base import (
    Bools,
    Floats,
    InputError,
    abbrev,
    by_name,
    clip_norm,
    columns_of,
    index_of,
    one_of,
    positive,
    reals,
    two_numbers,
)
from dpbandit.specs import MOST_OUTSIDE, Bounds, ContextualSpec, Masks

Contexts: TypeAlias = Literal["observation", "none"]

_MAX_FEATURES = 10_000  # largest dim; many agents keep a matrix of dim x dim numbers
# classes of spaces that have no parts
_FLAT_SPACES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


class Bridge:
    """Converter of observations to contexts and arms to actions; `spec` describes the problem.

    ==============================  ====================================  ==========================
    observations                    context                               `context_bound`
    ==============================  ====================================  ==========================
    `Discrete`                      one-hot                               1
    `MultiDiscrete`, `MultiBinary`  one-hot each; the 0s and 1s           sqrt(their number), in l_2
    `Box`                           its entries in a row                  required argument
    `Dict`, `Tuple` of these        one after the other                   required with a `Box`
    contexts="none", or no entries  the constant 1, or the bound if less  1
    ==============================  ====================================  ==========================

    A context beyond the bound is scaled to the bound, and one that is not finite becomes 0, so that
    the spec is true whatever the environment sends. `Bounds` counts contexts beyond the bound, and
    refuses more than a share `most_outside`.

    >>> env = gym.Env()
    >>> env.action_space, env.observation_space = spaces.Discrete(3, start=5), spaces.Discrete(2)
    >>> bridge = Bridge(env, horizon=10, reward_range=(0, 1))
    >>> bridge.context(1).tolist(), bridge.action(2), bridge.arm(7), bridge.spec.context_bound
    ([0.0, 1.0], 7, 2, 1.0)
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        horizon: int,
        reward_range: tuple[float, float] | None,
        context_bound: float | None = None,
        context_order: float = 2,
        contexts: Contexts = "observation",
        most_outside: float = MOST_OUTSIDE,
        delay: int = 0,
        masks: Masks = "none",
    ) -> None:
        one_of("contexts", contexts, ("observation", "none"))
        if context_order not in (1, 2, np.inf):
            raise InputError(f"Expected context_order={context_order!r} to be 1, 2 or inf.")
        if not (hasattr(env, "action_space") and hasattr(env, "observation_space")):
            raise InputError(f"Expected env={env!r} to be a Gymnasium environment.")
        arms, self._space = env.action_space, env.observation_space
        if not isinstance(arms, spaces.Discrete):
            raise InputError(f"Expected finitely many actions, a Discrete space, got {arms}.")
        self._first = int(arms.start)
        self._features: list[Any] | None = None  # names in the first observation that has any
        self._constant = contexts == "none" or not _length(self._space)
        dim, known = 1, 1.0
        if not self._constant:
            dim, ones = _length(self._space), _max_ones(self._space)
            if dim > _MAX_FEATURES:
                raise InputError(
                    f"Expected observations of at most {_MAX_FEATURES} numbers, got {dim}: "
                    "say contexts='none', or shorten them by a TransformObservation wrapper."
                )
            if ones is None and context_bound is None:
                raise InputError(
                    f"Expected context_bound=None to be a number > 0, a public bound on the "
                    f"l_{context_order:g} norm of observations in {self._space}."
                )
            known = float(ones or 1) ** (1 / context_order)
        if context_bound is not None:
            positive("context_bound", context_bound)
        low, high = two_numbers("reward_range", reward_range)
        self.spec = ContextualSpec(
            n_actions=int(arms.n),
            dim=dim,
            horizon=horizon,
            reward_low=low,
            reward_high=high,
            context_bound=known if context_bound is None else float(context_bound),
            context_order=context_order,
            most_outside=most_outside,
            delay=delay,
            link="other",
            masks=masks,
        )

    def bounds(self, replicas: int = 1) -> Bounds:
        """Make a new counter of data beyond the bounds, for copies of the environment."""
        return Bounds(self.spec, replicas, self.spec.horizon, at_door=True)

    def context(self, observation: Any) -> Floats:
        """Convert an observation to a context (dim,) within the bound."""
        return self.clip(self.numbers(observation))

    def clip(self, numbers: Floats) -> Floats:
        """Scale contexts (..., dim) whose norm exceeds the bound to the bound."""
        return clip_norm(numbers, self.spec.context_bound, self.spec.context_order)

    def numbers(self, observation: Any) -> Floats:
        """Flatten an observation to a row (dim,), without clipping."""
        if self._constant:
            return np.full(1, min(1.0, self.spec.context_bound))
        try:
            observation = self._in_order(observation)
            if not _contains(observation, self._space):
                raise ValueError
            flat = reals(flatten(self._space, observation)).ravel()
            if flat.shape != (self.spec.dim,):
                raise ValueError
        except InputError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, OverflowError):
            raise InputError(
                f"Expected an observation in {self._space}, got {abbrev(observation)}."
            ) from None
        return flat

    def _in_order(self, observation: Any) -> Any:
        """Put a row of pandas or polars in the order of the first observation, by names."""
        names = columns_of(observation)
        if names is None and index_of(observation) is not None:
            names = list(observation.index)
        if names is None:
            return observation
        if self._features is None:
            self._features = names
        of = "those of the first observation,"
        return by_name("observation", observation, self._features, of, axis=observation.ndim - 1)

    def mask(self, action_mask: Any) -> Bools | None:
        """Convert an `action_mask` to a mask (K,) of available arms; None if masks are "none"."""
        if self.spec.masks == "none":
            return None
        K = self.spec.n_actions
        try:
            mask = reals(self.by_action("action_mask", action_mask))
        except ValueError:
            mask = np.empty(0)
        if mask.shape != (K,) or not np.isin(mask, (0, 1)).all() or not mask.any():
            raise InputError(
                f"Expected an action_mask of {K} ones and zeros, some of them ones, with "
                f"masks={self.spec.masks!r}, got {abbrev(action_mask)}."
            )
        return mask == 1

    def by_action(self, name: str, values: Any) -> Any:
        """Return `values` in the order of the actions, by index if `values` have one."""
        first, K = self._first, self.spec.n_actions
        return by_name(name, values, range(first, first + K), "the actions", axis=0)

    def action(self, arm: int) -> int:
        """Return the environment's action for an arm, a plain int."""
        return self._first + int(arm)

    def arm(self, action: Any) -> int:
        """Return the arm of an action, from 0; raise `InputError` if there is none."""
        try:
            arm = int(action) - self._first
        except (TypeError, ValueError, OverflowError):
            arm = -1
        if not 0 <= arm < self.spec.n_actions or arm + self._first != action:
            last = self.action(self.spec.n_actions - 1)
            raise InputError(f"Expected action={action!r} to be one of {self._first}, ..., {last}.")
        return arm


def _contains(observation: Any, space: spaces.Space[Any]) -> bool:
    """Return True if an observation lies in its space; `Box` parts are not checked but clipped."""
    if isinstance(space, spaces.Dict):
        return all(_contains(observation[name], part) for name, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        return all(_contains(*pair) for pair in zip(observation, space.spaces, strict=True))
    return isinstance(space, spaces.Box) or bool(space.contains(observation))


def _length(space: spaces.Space[Any]) -> int:
    parts = _parts(space)
    if parts is None:
        raise InputError(
            f"Expected observations made of Box, Discrete, MultiDiscrete and MultiBinary, got "
            f"{space}: say contexts='none', or wrap the environment in a TransformObservation."
        )
    return sum(flatdim(part) for part in parts)


def _max_ones(space: spaces.Space[Any]) -> int | None:
    """Return the largest number of 1s in a one-hot observation; None if the space has a `Box`."""
    parts = _parts(space) or []
    if any(isinstance(part, spaces.Box) for part in parts):
        return None
    return sum(prod(part.shape or ()) for part in parts)  # one for a Discrete, of shape ()


def _parts(space: spaces.Space[Any]) -> list[spaces.Space[Any]] | None:
    """Return the `_FLAT_SPACES` that a space is made of; None if it has parts of other classes."""
    if isinstance(space, _FLAT_SPACES):
        return [space]
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return None
    inner = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
    found = [_parts(part) for part in inner]
    return None if None in found else [leaf for parts in found for leaf in parts or []]
