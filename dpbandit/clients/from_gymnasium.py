"""Third-party Gymnasium bandits for `compare`: R copies of an environment as one `Problem`."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from dpbandit.base import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    Streams,
    abbrev,
    one_number,
    reals,
)
from dpbandit.clients.bridge import Bridge, Contexts
from dpbandit.specs import MOST_OUTSIDE, Masks, Outside, Step, check_available

Oracle: TypeAlias = Callable[[Any], Any] | str

_INFO_PREFIX = "info:"  # begins the names of values that are read from info
_MEAN_TOLERANCE = 1e-6
"""Tolerance by which means and regrets may leave their range, as a share of its width."""


@dataclass(frozen=True)
class FromGymnasium:
    """Maker of a `Problem` from a third-party environment, for `compare` and `play`::

        bandit = FromGymnasium("river.bandit:river_bandits/KArmedTestbed-v0",
                               oracle=lambda env: env.unwrapped._actual_rewards,
                               reward_range=(-6, 6), contexts="none")
        compare(bandit, {"LinUCB": LinUCB()}, horizon=1000, env_kwargs={"k": 5})

    Every replica has its own copy of the environment, reset with a seed that depends on (seed,
    replica) only, so all agents start from the same state. Agents meet the same users only if the
    environment's draws do not depend on the actions. If an episode ends before `horizon`, the next
    one starts, by `reset()` without a seed. With an id, the limit of steps is set to `horizon`, so
    that only the environment itself ends episodes.

    Regret does not follow from rewards, so one of two arguments is required:

    ========  ======================================  ========================================
    argument  value                                   regret of a round
    ========  ======================================  ========================================
    `oracle`  the K arms' mean rewards for this user  best - mean of the arm played: exact
    `oracle`  the best arm's mean reward alone        best - reward: right on average, noisier
    `regret`  the regret                              the value
    ========  ======================================  ========================================

    `oracle` is a function of the (wrapped) environment, called before the user is served, or
    `"info:KEY"`, read from the info that comes with her reward; `regret` is `"info:KEY"`.
    The best fixed arm, a baseline in every comparison, is exact if means are known. Otherwise it is
    an estimate, the arm with the best average reward in the first agent's runs. If actions change
    later users, regret is measured against the arm that is best for the current user, given the
    actions so far, not against the best sequence of arms.

    Guarantee:
        As for `Player`, an agent's certificate holds only if no observation and no reward of one
        user depends on earlier users' data; both may depend on earlier actions. contexts="none"
        removes observations as a leak, not rewards.

    Args:
        env: an id, "module:id" to import the module first, or a function that makes a new
            environment; `compare(..., env_kwargs=...)` are its arguments.
        oracle, regret: exactly one of both, see the table.
        reward_range, context_bound, context_order, contexts, most_outside: public facts, as for
            `Player`; `most_outside` is a share of each replica's users. Results count rewards
            without clipping; private agents clip what they learn from.
        masks: owner of the data in `info["action_mask"]`, of `reset` and `step`: a "public"
            schedule or the "user"; if "none", the mask is not read. Regret is against the best
            available arm.

    Raises:
        InputError: neither `oracle` nor `regret`, or both; an unknown id; a space or a bound that
            `Player` would refuse; a key that info lacks; a maker that returns the same environment
            twice, or none; a reward that is not one number, a regret that is not one number >= 0;
            too many contexts or rewards, or any means or regrets, outside their bounds.
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
                f"Expected env={abbrev(self.env)} to be an id or a function that makes a new "
                "environment, such as lambda: gym.make(...): every replica has its own."
            )
        for name, setting in (("oracle", self.oracle), ("regret", self.regret)):
            asks = name == "oracle" and callable(setting)
            if setting is not None and not asks and not str(setting).startswith(_INFO_PREFIX):
                raise InputError(f"Expected {name}={setting!r} to be 'info:' and a key of info.")

    @property
    def __name__(self) -> str:
        """Name of the environment in tables and plots."""
        if isinstance(self.env, str):
            return self.env.rpartition(":")[2]
        return getattr(self.env, "__name__", "environment")

    def __call__(self, *, horizon: int, **env_kwargs: Any) -> "ForeignProblem":
        """Make the problem; further arguments go to the environment."""
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
    """Problem made of R copies of a third-party environment, see `FromGymnasium`."""

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
        self._context: Floats | None = None
        self._bounds = bridge.bounds()

    @property
    def outside(self) -> Outside:
        """Number of contexts and rewards outside the bounds since `reset`, in all replicas."""
        return self._bounds.outside

    def clipped(self) -> Floats:
        return self._bounds.share()

    def reset(self, streams: Streams) -> None:
        R, K = len(streams), self.spec.n_actions
        for env in self._envs:  # environments of the previous agent
            env.close()
        self._envs = [self._make() for _ in range(R)]
        if len({id(env.unwrapped) for env in self._envs}) < R:
            raise InputError("Expected a new environment from every call of env, got one twice.")
        seeds = (streams.uniforms("seed")() * 2**31).astype(np.int64).tolist()
        first = [env.reset(seed=s) for env, s in zip(self._envs, seeds, strict=True)]
        self._seen, self._infos = [list(part) for part in zip(*first, strict=True)]
        self._over, self._context = [False] * R, None
        self._bounds = self._bridge.bounds(R)
        self._totals, self._counts = np.zeros((2, R, K))

    def context(self) -> Floats:
        return self._bridge.clip(self._current_contexts())

    def mask(self) -> Bools:
        """Return the masks of available arms for the current users, (R, K)."""
        self._current_contexts()
        masks = [self._bridge.mask((info or {}).get("action_mask")) for info in self._infos]
        return np.array(masks)

    def step(self, action: AnyArray) -> Step:
        arms = self.spec.validate(action, len(self._envs))
        if self.spec.masks != "none":
            check_available(arms, self.mask())
        context, self._context = self._current_contexts(), None
        rounds = np.array([self._serve(r, arm) for r, arm in enumerate(arms.tolist())])
        step = Step(*rounds.T.copy())
        self._bounds.see(context, step)
        return step

    def best_fixed(self) -> Ints:
        tried = self._counts > 0
        averages = np.divide(
            self._totals, self._counts, where=tried, out=np.full(tried.shape, -np.inf)
        )
        return averages.argmax(axis=1)

    def hindsight(self) -> float:
        return 0.0

    def _current_contexts(self) -> Floats:
        """Return the current users' contexts (R, dim), without clipping."""
        if self._context is None:
            for r, env in enumerate(self._envs):
                if self._over[r]:
                    self._seen[r], self._infos[r] = env.reset()
                    self._over[r] = False
            self._context = np.stack([self._bridge.numbers(seen) for seen in self._seen])
        return self._context

    def _serve(self, r: int, arm: int) -> tuple[float, float, float, float]:
        """Serve one user; return her reward, the expected and best mean reward, and the regret."""
        env, there = self._envs[r], self._bridge.mask((self._infos[r] or {}).get("action_mask"))
        # before `step`, which may change the means
        oracle: Any = self._means(self._oracle(env)) if callable(self._oracle) else None
        self._seen[r], raw_reward, terminated, truncated, info = env.step(self._bridge.action(arm))
        self._infos[r] = info
        self._over[r], reward = bool(terminated or truncated), one_number("reward", raw_reward)
        if isinstance(self._oracle, str):
            oracle = _read(info, self._oracle)
        if self._regret is not None:
            missed = _missed(info, self._regret)
            self._check_oracle(
                self._regret, missed, 0.0, self.spec.reward_high - self.spec.reward_low
            )
            oracle = reward + missed
        means = self._means(oracle)  # of all arms, (K,), or of the best, ()
        if self._regret is None:
            self._check_oracle("oracle", means, self.spec.reward_low, self.spec.reward_high)
        known = means.ndim == 1
        expected, arms = (means[arm], slice(None)) if known else (reward, arm)
        self._totals[r, arms] += means if known else reward
        self._counts[r, arms] += 1
        best = means.max() if there is None or not known else means[there].max()
        return reward, float(expected), float(best), float(best - expected)

    def _means(self, oracle: Any) -> Floats:
        try:
            means = reals(self._bridge.by_action("oracle", oracle))  # a copy
        except ValueError:
            raise InputError(f"Expected oracle to give numbers, got {abbrev(oracle)}.") from None
        if means.shape not in ((), (self.spec.n_actions,)):
            raise InputError(
                f"Expected oracle to give the best mean reward or all {self.spec.n_actions}, "
                f"got an array of shape {means.shape}."
            )
        return means

    def _check_oracle(self, name: str, value: Any, low: float, high: float) -> None:
        """Raise `InputError` for means or regrets out of range, unless `most_outside` is 1."""
        room = _MEAN_TOLERANCE * (high - low)
        far = np.ravel((value < low - room) | (value > high + room))
        if far.any() and self.spec.most_outside < 1:
            raise InputError(
                f"Expected {name} in [{low:g}, {high:g}] as rewards are by reward_range, got "
                f"{np.ravel(value)[far][0]:g}: say a wider range, or most_outside=1."
            )


def _read(info: dict[str, Any], where: str) -> Any:
    key = where.removeprefix(_INFO_PREFIX)
    if key not in (info or {}):
        held = ", ".join(sorted(map(repr, info or {}))) or "nothing"
        raise InputError(f"Expected info to hold {key!r}, it holds {held}.")
    return info[key]


def _missed(info: dict[str, Any], where: str) -> float:
    regret = one_number(where, _read(info, where))
    if not regret >= -1e-9:  # allows for rounding
        raise InputError(f"Expected {where}={regret} to be a regret >= 0.")
    return regret
