"""Use third-party Gymnasium bandits in `compare`: R copies behind one `Problem`."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from math import prod
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim, flatten

from dpbandit.base import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    Streams,
    by_name,
    clip_norm,
    columns_of,
    index_of,
    one_number,
    one_of,
    positive,
    reals,
    shown,
    two_numbers,
)
from dpbandit.specs import (
    MOST_OUTSIDE,
    Bounds,
    ContextualSpec,
    Masks,
    Outside,
    Step,
    check_available,
)

Contexts: TypeAlias = Literal["observation", "none"]

_MOST_FEATURES = 10_000
_FLAT = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


class Bridge:
    """Converts observations to contexts and arms to actions; holds the public facts as `spec`.

    ==============================  ====================================  ==========================
    observations                    context                               `context_bound`
    ==============================  ====================================  ==========================
    `Discrete`                      one-hot                               1
    `MultiDiscrete`, `MultiBinary`  one-hot each, 0 and 1                 root of their number, l_2
    `Box`                           its entries in a row                  has to be told
    `Dict`, `Tuple` of these        one after the other                   told if there is a `Box`
    none wanted, or none there      the constant 1, or the bound if less  1
    ==============================  ====================================  ==========================

    A context beyond the bound is scaled down to it, one that is not finite becomes 0: what the
    spec says of contexts is then true, whatever the environment sends. How many lie beyond it is
    counted by `Bounds`, and more than a share `most_outside` is refused.

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
        self._features: list[Any] | None = None  # what the first that had names called them
        self._constant = contexts == "none" or not _length(self._space)
        dim, known = 1, 1.0
        if not self._constant:
            dim, ones = _length(self._space), _ones(self._space)
            if dim > _MOST_FEATURES:
                raise InputError(
                    f"Expected observations of at most {_MOST_FEATURES} numbers, got {dim}: "
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
        """A new count of what R copies of the environment send beyond the bounds."""
        return Bounds(self.spec, replicas, self.spec.horizon, at_door=True)

    def context(self, observation: Any) -> Floats:
        """The observation as a context (dim,) within the bound."""
        return self.clip(self.numbers(observation))

    def clip(self, numbers: Floats) -> Floats:
        """Contexts (..., dim) within the bound."""
        return clip_norm(numbers, self.spec.context_bound, self.spec.context_order)

    def numbers(self, observation: Any) -> Floats:
        """The observation in a row (dim,), wherever it lies."""
        if self._constant:
            return np.full(1, min(1.0, self.spec.context_bound))
        try:
            observation = self._in_order(observation)
            if not _belongs(observation, self._space):
                raise ValueError
            flat = reals(flatten(self._space, observation)).ravel()
            if flat.shape != (self.spec.dim,):
                raise ValueError
        except InputError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, OverflowError):
            raise InputError(
                f"Expected an observation in {self._space}, got {shown(observation)}."
            ) from None
        return flat

    def _in_order(self, observation: Any) -> Any:
        """A row of pandas or polars as the first one was, by the names of its entries."""
        names = columns_of(observation)
        if names is None and index_of(observation) is not None:
            names = list(observation.index)
        if names is None:
            return observation
        if self._features is None:
            self._features = names
        of = "those of the first observation,"
        return by_name("observation", observation, self._features, of, axis=observation.ndim - 1)

    def mask(self, told: Any) -> Bools | None:
        """Which arms are there, (K,), of an `action_mask`; None where all are."""
        if self.spec.masks == "none":
            return None
        K = self.spec.n_actions
        try:
            mask = reals(self.by_action("action_mask", told))
        except ValueError:
            mask = np.empty(0)
        if mask.shape != (K,) or not np.isin(mask, (0, 1)).all() or not mask.any():
            raise InputError(
                f"Expected an action_mask of {K} ones and zeros, some of them ones, with "
                f"masks={self.spec.masks!r}, got {shown(told)}."
            )
        return mask == 1

    def by_action(self, name: str, values: Any) -> Any:
        """`values` in the order of the actions, where they have an index."""
        first, K = self._first, self.spec.n_actions
        return by_name(name, values, range(first, first + K), "the actions", axis=0)

    def action(self, arm: int) -> int:
        """What the environment calls this arm: the action as a plain int."""
        return self._first + int(arm)

    def arm(self, action: Any) -> int:
        """Which arm this action is, from 0; raises `InputError` if it is none."""
        try:
            arm = int(action) - self._first
        except (TypeError, ValueError, OverflowError):
            arm = -1
        if not 0 <= arm < self.spec.n_actions or arm + self._first != action:
            last = self.action(self.spec.n_actions - 1)
            raise InputError(f"Expected action={action!r} to be one of {self._first}, ..., {last}.")
        return arm


def _belongs(observation: Any, space: spaces.Space[Any]) -> bool:
    """Whether every part that is no box is in its space; boxes may be left: they are clipped."""
    if isinstance(space, spaces.Dict):
        return all(_belongs(observation[name], part) for name, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        return all(_belongs(*pair) for pair in zip(observation, space.spaces, strict=True))
    return isinstance(space, spaces.Box) or bool(space.contains(observation))


def _length(space: spaces.Space[Any]) -> int:
    """Numbers in a flat observation."""
    parts = _parts(space)
    if parts is None:
        raise InputError(
            f"Expected observations made of Box, Discrete, MultiDiscrete and MultiBinary, got "
            f"{space}: say contexts='none', or wrap the environment in a TransformObservation."
        )
    return sum(flatdim(part) for part in parts)


def _ones(space: spaces.Space[Any]) -> int | None:
    """How many 1s a flat observation has at most, all else being 0; None if there is a Box."""
    parts = _parts(space) or []
    if any(isinstance(part, spaces.Box) for part in parts):
        return None
    return sum(prod(part.shape or ()) for part in parts)  # one for a Discrete, of shape ()


def _parts(space: spaces.Space[Any]) -> list[spaces.Space[Any]] | None:
    """The boxes and discrete spaces it is made of; None if there is anything else."""
    if isinstance(space, _FLAT):
        return [space]
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return None
    inner = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
    found = [_parts(part) for part in inner]
    return None if None in found else [leaf for parts in found for leaf in parts or []]


Oracle: TypeAlias = Callable[[Any], Any] | str
_INFO = "info:"
_ROUNDING = 1e-6
"""Of means and regrets, in ranges of the reward."""


@dataclass(frozen=True)
class FromGymnasium:
    """Makes a `Problem` of a third-party environment, for `compare` and `play`::

        bandit = FromGymnasium("river.bandit:river_bandits/KArmedTestbed-v0",
                               oracle=lambda env: env.unwrapped._actual_rewards,
                               reward_range=(-6, 6), contexts="none")
        compare(bandit, {"LinUCB": LinUCB()}, horizon=1000, env_kwargs={"k": 5})

    Every replica has its own copy of the environment, reset with a seed that depends on (seed,
    replica) only, so all agents start from the same state. Agents meet the same users only if the
    environment's draws do not depend on the actions. If an episode ends before `horizon`, the next
    one starts, by `reset()` without a seed. With an id, the limit of steps is set to `horizon`, so
    that only the environment itself ends episodes.

    One of two arguments has to say what regret is, because rewards do not tell it:

    ========  ======================================  ========================================
    argument  what it gives                           regret of a round
    ========  ======================================  ========================================
    `oracle`  the K arms' mean rewards for this user  best - that of the arm played: exact
    `oracle`  the best arm's mean reward alone        best - reward: right on average, noisier
    `regret`  the regret itself                       as it is
    ========  ======================================  ========================================

    `oracle` is a function of the (wrapped) environment, called before the user is served, or
    `"info:KEY"`, read from the info that comes with her reward; `regret` is `"info:KEY"`, too.
    The best fixed arm, a baseline in every comparison, is exact if means are known. Otherwise it is
    an estimate: the arm with the best average reward while the first agent played. If actions
    change later users, regret is measured against the best arm of the moment, given the actions so
    far, and says nothing of the best plan.

    Guarantee:
        As for `Player`: an agent's certificate holds only if no observation and no reward of one
        user depends on earlier users' data. They may depend on earlier actions. contexts="none"
        removes observations as a leak, not rewards.

    Args:
        env: an id, "module:id" to have the module imported first, or a function that makes a new
            environment; `compare(..., env_kwargs=...)` are its arguments.
        oracle, regret: see above; exactly one of them.
        reward_range, context_bound, context_order, contexts, most_outside: public facts, as for
            `Player`; `most_outside` is a share of each replica's users. Rewards are counted as
            they come; private agents clip what they learn from.
        masks: whose data `info["action_mask"]` is, of `reset` and `step`: a "public" schedule or
            the "user"'s; if "none", it is not read. Regret is against the best arm that is there.

    Raises:
        InputError: no regret, or both; an unknown id; a space or a bound that `Player` would
        refuse;
            a key that info lacks; a maker that hands out the same environment twice, or none; a
            reward that is not one number, a regret that is not one number >= 0; too many contexts
            or rewards outside their bounds; means or regrets that such rewards do not have.
    """

    env: str | Callable[..., gym.Env[Any, Any]]
    _: KW_ONLY
    oracle: Oracle | None = None
    regret: str | None = None
    reward_range: tuple[float, float] | None = None
    context_bound: float | None = None
    context_order: float = 2
    contexts: Contexts = "observation"
    most_outside: float = MOST_OUTSIDE
    masks: Masks = "none"

    def __post_init__(self) -> None:
        if (self.oracle is None) == (self.regret is None):
            raise InputError(
                "Expected one of oracle= (a function of the environment that returns each arm's "
                "mean reward, or the best one, or 'info:KEY') and regret='info:KEY': an "
                "environment's rewards alone do not tell its regret."
            )
        if not (isinstance(self.env, str) or callable(self.env)):
            raise InputError(
                f"Expected env={shown(self.env)} to be an id or a function that makes a new "
                "environment, such as lambda: gym.make(...): every replica has its own."
            )
        for name, said in (("oracle", self.oracle), ("regret", self.regret)):
            asks = name == "oracle" and callable(said)
            if said is not None and not asks and not str(said).startswith(_INFO):
                raise InputError(f"Expected {name}={said!r} to be 'info:' and a key of info.")

    @property
    def __name__(self) -> str:
        """What tables and plots call it."""
        if isinstance(self.env, str):
            return self.env.rpartition(":")[2]
        return getattr(self.env, "__name__", "environment")

    def __call__(self, *, horizon: int, **env_kwargs: Any) -> "ForeignProblem":
        """The problem; further arguments are the environment's."""
        make = partial(self._make, horizon, env_kwargs)
        probe = make()
        bridge = Bridge(
            probe,
            horizon=horizon,
            reward_range=self.reward_range,
            context_bound=self.context_bound,
            context_order=self.context_order,
            contexts=self.contexts,
            most_outside=self.most_outside,
            masks=self.masks,
        )
        probe.close()
        return ForeignProblem(make, bridge, self.oracle, self.regret)

    def _make(self, horizon: int, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
        if not isinstance(self.env, str):
            made = self.env(**arguments)
            if not isinstance(made, gym.Env):
                raise InputError(f"Expected env to make a Gymnasium environment, got {made!r}.")
            return made
        try:
            return gym.make(
                self.env, max_episode_steps=horizon, disable_env_checker=True, **arguments
            )
        except (gym.error.Error, ImportError, TypeError) as error:
            what = str(error).splitlines()[0]
            raise InputError(f"Cannot make environment {self.env!r}: {what}") from error


class ForeignProblem:
    """See `FromGymnasium`."""

    def __init__(
        self,
        make: Callable[[], gym.Env[Any, Any]],
        bridge: Bridge,
        oracle: Oracle | None,
        regret: str | None,
    ) -> None:
        self.spec = bridge.spec
        self._make, self._bridge, self._oracle, self._regret = make, bridge, oracle, regret
        self._envs: list[gym.Env[Any, Any]] = []
        self._shown: Floats | None = None
        self._bounds = bridge.bounds()

    @property
    def outside(self) -> Outside:
        """How many contexts and rewards lay outside the bounds since `reset`, of all replicas."""
        return self._bounds.outside

    def clipped(self) -> Floats:
        return self._bounds.share()

    def reset(self, streams: Streams) -> None:
        R, K = len(streams), self.spec.n_actions
        for env in self._envs:  # of the agent before
            env.close()
        self._envs = [self._make() for _ in range(R)]
        if len({id(env.unwrapped) for env in self._envs}) < R:
            raise InputError("Expected a new environment from every call of env, got one twice.")
        seeds = (streams.uniforms("seed")() * 2**31).astype(np.int64).tolist()
        first = [env.reset(seed=s) for env, s in zip(self._envs, seeds, strict=True)]
        self._seen, self._told = [list(part) for part in zip(*first, strict=True)]
        self._over, self._shown = [False] * R, None
        self._bounds = self._bridge.bounds(R)
        self._totals, self._counts = np.zeros((2, R, K))

    def context(self) -> Floats:
        return self._bridge.clip(self._waiting())

    def mask(self) -> Bools:
        """Which arms are there for the current users, (R, K)."""
        self._waiting()
        masks = [self._bridge.mask((info or {}).get("action_mask")) for info in self._told]
        return np.array(masks)

    def step(self, action: AnyArray) -> Step:
        arms = self.spec.validate(action, len(self._envs))
        if self.spec.masks != "none":
            check_available(arms, self.mask())
        shown, self._shown = self._waiting(), None
        rounds = np.array([self._serve(r, arm) for r, arm in enumerate(arms.tolist())])
        step = Step(*rounds.T.copy())
        self._bounds.see(shown, step)
        return step

    def best_fixed(self) -> Ints:
        tried = self._counts > 0
        averages = np.divide(
            self._totals, self._counts, where=tried, out=np.full(tried.shape, -np.inf)
        )
        return averages.argmax(axis=1)

    def hindsight(self) -> float:
        return 0.0

    def _waiting(self) -> Floats:
        """What the current users show, (R, dim), wherever it lies."""
        if self._shown is None:
            for r, env in enumerate(self._envs):
                if self._over[r]:
                    self._seen[r], self._told[r] = env.reset()
                    self._over[r] = False
            self._shown = np.stack([self._bridge.numbers(seen) for seen in self._seen])
        return self._shown

    def _serve(self, r: int, arm: int) -> tuple[float, float, float, float]:
        """Reward, expected, oracle and regret of one user."""
        env, there = self._envs[r], self._bridge.mask((self._told[r] or {}).get("action_mask"))
        worth: Any = self._means(self._oracle(env)) if callable(self._oracle) else None  # of now
        self._seen[r], given, terminated, truncated, info = env.step(self._bridge.action(arm))
        self._told[r] = info
        self._over[r], reward = bool(terminated or truncated), one_number("reward", given)
        if isinstance(self._oracle, str):
            worth = _read(info, self._oracle)
        if self._regret is not None:
            missed = _missed(info, self._regret)
            self._believe(self._regret, missed, 0.0, self.spec.reward_high - self.spec.reward_low)
            worth = reward + missed
        means = self._means(worth)  # of all arms, (K,), or of the best, ()
        if self._regret is None:
            self._believe("oracle", means, self.spec.reward_low, self.spec.reward_high)
        known = means.ndim == 1
        expected, arms = (means[arm], slice(None)) if known else (reward, arm)
        self._totals[r, arms] += means if known else reward
        self._counts[r, arms] += 1
        best = means.max() if there is None or not known else means[there].max()
        return reward, float(expected), float(best), float(best - expected)

    def _means(self, worth: Any) -> Floats:
        try:
            means = reals(self._bridge.by_action("oracle", worth))  # a copy
        except ValueError:
            raise InputError(f"Expected oracle to give numbers, got {shown(worth)}.") from None
        if means.shape not in ((), (self.spec.n_actions,)):
            raise InputError(
                f"Expected oracle to give the best mean reward or all {self.spec.n_actions}, "
                f"got an array of shape {means.shape}."
            )
        return means

    def _believe(self, name: str, told: Any, low: float, high: float) -> None:
        """Raise `InputError` for what cannot be, as long as nearly all rewards are in their
        range."""
        room = _ROUNDING * (high - low)
        far = np.ravel((told < low - room) | (told > high + room))
        if far.any() and self.spec.most_outside < 1:
            raise InputError(
                f"Expected {name} in [{low:g}, {high:g}] as rewards are by reward_range, got "
                f"{np.ravel(told)[far][0]:g}: say a wider range, or most_outside=1."
            )


def _read(info: dict[str, Any], where: str) -> Any:
    key = where.removeprefix(_INFO)
    if key not in (info or {}):
        held = ", ".join(sorted(map(repr, info or {}))) or "nothing"
        raise InputError(f"Expected info to hold {key!r}, it holds {held}.")
    return info[key]


def _missed(info: dict[str, Any], where: str) -> float:
    regret = one_number(where, _read(info, where))
    if not regret >= -1e-9:  # less is no rounding error
        raise InputError(f"Expected {where}={regret} to be a regret >= 0.")
    return regret
