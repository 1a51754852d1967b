"""From a batched `Problem` to Gymnasium: one lone environment, one vector environment.

Both are thin: dynamics and regret live in the problem. Replica i of the vector environment equals
a lone environment seeded with seed + i, which is what `SyncVectorEnv` promises too.
"""

from numbers import Integral
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import load_env_creator
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from dpbandit.arrays import Floats
from dpbandit.inputs import BadInput, one_of, whole
from dpbandit.protocols import BanditSpec, PriceSpec, Problem, Step
from dpbandit.streams import Streams

_INFO = ("expected_reward", "oracle_reward", "regret")


def make_problem(problem: str, **arguments: Any) -> Problem:
    """The problem class named `module:Class`, made with `arguments`; misspelt ones are refused."""
    creator: Any = load_env_creator(problem)
    known = list(getattr(creator, "__dataclass_fields__", arguments))
    known = [name for name in known if not name.startswith("_")]
    for name in arguments:
        one_of(f"argument of {creator.__name__}", name, known)
    made: Problem = creator(**arguments)
    return made


def observation_space(spec: BanditSpec) -> gym.Space[Any]:
    """Contexts: every coordinate within the norm bound, float64."""
    bound = spec.context_bound
    return gym.spaces.Box(-bound, bound, spec.context_shape, np.float64)


def action_space(spec: Any) -> gym.Space[Any]:
    """Arms, or a price."""
    if isinstance(spec, PriceSpec):
        return gym.spaces.Box(spec.low, spec.high, (), np.float64)
    return gym.spaces.Discrete(spec.n_actions)


class _Adapter:
    """What both adapters share. Public facts of the problem (`prices`, ...) read through."""

    problem: Problem

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "problem" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.problem, name)


class BanditEnv(_Adapter, gym.Env[Floats, Any]):
    """A lone environment: `gym.make("dpbandit/...")`.

    `info` holds `expected_reward`, `oracle_reward` and `regret` of the step just taken, for
    evaluation; an agent must not read it.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, *, problem: str, render_mode: None = None, **arguments: Any) -> None:
        self.problem = make_problem(problem, **arguments)
        self.render_mode = render_mode
        self.observation_space = observation_space(self.problem.spec)
        self.action_space = action_space(self.problem.spec)
        self._left = 0  # rounds until the episode ends

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Start an episode; without a seed the next one of the sequence."""
        super().reset(seed=seed)
        self.problem.reset(Streams([_episode_seed(self.np_random)]).child("environment"))
        self._left = self.problem.spec.horizon
        return self.problem.context()[0].copy(), {}

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Serve one user."""
        _refuse_finished(self._left)
        step = self.problem.step(np.asarray(action)[None])
        self._left -= 1
        info = {name: float(value[0]) for name, value in zip(_INFO, step[1:], strict=True)}
        observation = self.problem.context()[0].copy()
        return observation, float(step.reward[0]), False, self._left == 0, info


class BanditVectorEnv(_Adapter, VectorEnv[Floats, Any, npt.NDArray[Any]]):
    """R environments at once: `gym.make_vec("dpbandit/...", num_envs=R)`, the fast path.

    All replicas share one clock, so all episodes end together. `autoreset_mode` is an ordinary
    keyword: `"NextStep"` (default), `"SameStep"` or `"Disabled"`.
    """

    metadata: dict[str, Any] = {
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        *,
        problem: str,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: None = None,
        **arguments: Any,
    ) -> None:
        whole("num_envs", num_envs, 1)
        if isinstance(autoreset_mode, str):
            one_of("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self._mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self._mode}
        self.problem = make_problem(problem, **arguments)
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_observation_space = observation_space(self.problem.spec)
        self.single_action_space = action_space(self.problem.spec)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._left, self._started = 0, False
        self._randoms = [seeding.np_random(None)[0] for _ in range(num_envs)]

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Floats, dict[str, Any]]:
        """Start an episode in every replica: replica i with seed + i, or with its own of a list."""
        if options is not None and not np.all(options.get("reset_mask", True)):
            raise BadInput("Expected options['reset_mask'] to be all True: episodes end together.")
        if seed is not None:
            seeds: Any = seed
            if isinstance(seed, Integral):
                seeds = [int(seed) + i for i in range(self.num_envs)]
            if len(seeds) != self.num_envs:
                raise BadInput(f"Expected {self.num_envs} seeds, one a replica, got {len(seeds)}.")
            for i, single in enumerate(seeds):
                if single is not None:
                    self._randoms[i] = seeding.np_random(single)[0]
        return self._start(), {}

    def step(
        self, actions: Any
    ) -> tuple[Floats, Floats, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Serve one user in every replica."""
        R = self.num_envs
        never = np.zeros(R, dtype=np.bool_)
        if self._started and self._left == 0 and self._mode == AutoresetMode.NEXT_STEP:
            return self._start(), np.zeros(R), never, never.copy(), {}
        _refuse_finished(self._left)
        step = self.problem.step(actions)
        self._left -= 1
        observation, info = self.problem.context().copy(), _vector_info(step, R)
        over = np.full(R, self._left == 0)
        if self._left == 0 and self._mode == AutoresetMode.SAME_STEP:
            final = np.full(R, None, dtype=object)
            final[:] = list(observation)
            always = np.ones(R, dtype=np.bool_)
            info = {
                "final_obs": final,
                "_final_obs": always,
                "final_info": info,
                "_final_info": always.copy(),
            }
            observation = self._start()
        return observation, step.reward.copy(), never, over, info

    def _start(self) -> Floats:
        self._started = True
        seeds = [_episode_seed(random) for random in self._randoms]
        self.problem.reset(Streams(seeds).child("environment"))
        self._left = self.problem.spec.horizon
        return self.problem.context().copy()


def _episode_seed(random: np.random.Generator) -> int:
    return int(random.integers(2**63))


def _refuse_finished(left: int) -> None:
    if left == 0:
        raise BadInput("The episode is over (or was never started): call reset() first.")


def _vector_info(step: Step, replicas: int) -> dict[str, Any]:
    info: dict[str, Any] = {}
    for name, value in zip(_INFO, step[1:], strict=True):
        info[name], info[f"_{name}"] = value.copy(), np.ones(replicas, dtype=np.bool_)
    return info
