"""Gymnasium adapters of a `Problem`: a single environment and a vector environment.

Both only translate: the problem computes dynamics and regret. Replica i of the vector environment
equals a single environment seeded with seed + i, as with `SyncVectorEnv`. `Pictures`, which
`render` uses, draws an episode's regret so far and its last actions.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from numbers import Integral
from typing import Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import load_env_creator
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from dpbandit.base import (
    MOST_REPLICAS,
    AnyArray,
    Bools,
    Floats,
    InputError,
    Streams,
    abbrev,
    by_index,
    inside,
    missing_fields,
    one_of,
    takes,
    whole,
)
from dpbandit.specs import Problem, begin, checked_problem

MODES = ("ansi", "rgb_array")  # render modes of Gymnasium: text, or a picture
RENDERED = 40
"""Number of last actions that a picture or text shows"""


class Pictures:
    """Renderer of one replica's episode, as text or as a picture.

    Args:
        mode: "ansi" or "rgb_array".
        horizon: rounds of an episode.
        actions: Gymnasium space of actions.
        hindsight: True if regret is known only at the end of an episode; then rewards are drawn.

    For lists, clicks are drawn, too: a star behind a clicked item, or a dot on its position.
    """

    def __init__(
        self, mode: str, *, horizon: int, actions: gym.Space[Any], hindsight: bool
    ) -> None:
        self._mode, self._horizon, self._actions = mode, horizon, actions
        self._what = "reward" if hindsight else "regret"
        self.clear()

    def clear(self) -> None:
        """Start a new episode."""
        self._total: list[float] = [0.0]
        self._last: deque[Any] = deque(maxlen=RENDERED)
        self._clicks: deque[Any] = deque(maxlen=RENDERED)

    def see(self, action: Any, reward: float, regret: float, clicks: Floats | None = None) -> None:
        """Record one round; `clicks` are 0 or 1 for each position of a list."""
        self._total.append(self._total[-1] + (reward if self._what == "reward" else regret))
        self._last.append(np.array(action))
        self._clicks.append(clicks)

    def draw(self) -> str | npt.NDArray[np.uint8]:
        """Return the text, or the picture as RGB bytes (360, 480, 3)."""
        return self._text() if self._mode == "ansi" else self._picture()

    def _text(self) -> str:
        played = " ".join(map(_in_words, self._last, self._clicks))
        return (
            f"round {self._round} of {self._horizon}\n"
            f"total {self._what} {self._total[-1]:.6g}\n"
            f"last actions {played or '(none)'}\n"
        )

    @property
    def _round(self) -> int:
        return len(self._total) - 1

    def _picture(self) -> npt.NDArray[np.uint8]:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # not before: slow to import
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.8, 3.6), dpi=100, layout="constrained")
        canvas: Any = FigureCanvasAgg(figure)
        above, below = figure.subplots(2)
        above.plot(self._total, color="C0")
        above.set(xlim=(0, max(1, self._round)), ylabel=f"total {self._what}")
        above.set_title(f"Round {self._round} of {self._horizon}", loc="left", fontsize=10)
        first, count = self._round - len(self._last) + 1, len(self._last)
        if isinstance(self._actions, gym.spaces.Discrete):
            start, n = int(self._actions.start), int(self._actions.n)
            below.plot(range(first, first + count), [int(a) for a in self._last], "s", color="C1")
            below.set(
                xlim=(first - 0.5, first + RENDERED - 0.5), ylim=(start - 0.5, start + n - 0.5)
            )
            below.yaxis.get_major_locator().set_params(integer=True)
            below.set_ylabel("action")
        else:
            points = self._points()
            extent = (first - 0.5, first + RENDERED - 0.5, 0.5, len(points) + 0.5)
            below.imshow(points, aspect="auto", extent=extent, origin="lower")
            below.set_ylabel("coordinate")
        if any(clicks is not None for clicks in self._clicks):
            marks = [np.flatnonzero(clicks) for clicks in self._clicks]
            rounds = np.repeat(np.arange(first, first + count), [len(mark) for mark in marks])
            below.plot(rounds, np.concatenate(marks) + 1, "o", color="white", mec="black", ms=4)
            below.yaxis.get_major_locator().set_params(integer=True)
            below.invert_yaxis()
            below.set_ylabel("position")
            below.set_title("Items (colours) and clicks (dots)", loc="left", fontsize=9)
        below.set_xlabel(f"round, the last {RENDERED}")
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()

    def _points(self) -> Floats:
        """Return the last 40 actions as columns, (coordinates, 40); NaN (white) before round 1."""
        shape = self._actions.shape or (1,)
        points = np.full((int(np.prod(shape)), RENDERED), np.nan)
        for i, action in enumerate(self._last):
            points[:, i] = np.ravel(action)
        return points


def _in_words(action: Any, clicks: Floats | None) -> str:
    """Return an action as text; a clicked item of a list is followed by a star."""
    if clicks is None:
        return np.array2string(action, precision=2, separator=" ")
    return (
        f"[{' '.join(f'{a:g}*' if c else f'{a:g}' for a, c in zip(action, clicks, strict=True))}]"
    )


_INFO = ("expected_reward", "oracle_reward", "regret")  # of `info`, unless regret is in hindsight


def make_problem(
    problem: str | Callable[..., Any],
    *,
    world_seed: int | None = None,
    available: Any = None,
    absent: float = 0.0,
    **arguments: Any,
) -> Problem:
    """Make a problem with `arguments` from a class, a function or the text `module:Class`.

    With a `world_seed` the parameters that the problem draws (from `streams.world`) are equal in
    every episode and every replica, whatever the seed from which users are drawn.

    `available` is a public schedule of arms or items on lists, such as ["3:200-"], and `absent` the
    probability that one of them is unavailable to a user (`dpbandit.envs.nonstationarity`).

    Raises `InputError` for unknown arguments, and if the result is no `Problem`.
    """
    creator: Any = load_env_creator(problem) if isinstance(problem, str) else problem
    called, known = getattr(creator, "__name__", "env"), list(arguments)
    if isinstance(creator, type) and is_dataclass(creator):
        known = [field.name for field in fields(creator) if field.init]
    for name in arguments:
        one_of(f"argument of {called}", name, known)
    for name in missing_fields(creator, arguments):
        raise InputError(
            f"Expected {name} of {called} among env_kwargs (--set {name}=VALUE): it has no default."
        )
    takes(called, creator, **arguments)
    if lacks := sorted(getattr(creator, "__abstractmethods__", ())):
        raise InputError(f"Expected {called} to write {', '.join(lacks)}, see ContextualProblem.")
    made: Any = checked_problem(called, creator(**arguments))
    if world_seed is not None:
        whole("world_seed", world_seed, 0)
        made.world_seed = world_seed
    inside("absent", absent, 0, 1, ends=True)
    if available is not None or absent:
        if not hasattr(made, "restrict"):
            raise InputError(
                "Expected available= and absent= with arms or lists, which can come and go, got a "
                f"{type(made).__name__}."
            )
        made.restrict(available, absent)
        made.available, made.absent = available, absent
    return cast(Problem, made)


class _Adapter:
    """Base of both adapters; passes on the problem's public attributes, such as `prices`."""

    problem: Problem
    _left = 0
    """rounds until the episode ends"""
    _regret: Floats | float = 0.0
    """regret of the episode so far, for problems whose regret is measured in hindsight"""
    _pictures: tuple[Pictures, ...] = ()
    """renderers, one for each replica; empty without a render mode"""

    def _will_render(self, mode: str | None, replicas: int) -> None:
        if mode is not None:
            one_of("render_mode", mode, MODES)
            spec = self.problem.spec
            about = {"horizon": spec.horizon, "hindsight": spec.in_hindsight}
            self._pictures = tuple(
                Pictures(mode, actions=spec.action_space(), **about) for _ in range(replicas)
            )

    def _drawn(self) -> tuple[Any, ...]:
        if not self._pictures:
            raise InputError(
                "Expected render_mode='ansi' or 'rgb_array' in gym.make, got none: "
                "rounds are recorded for rendering from the first one on."
            )
        return tuple(picture.draw() for picture in self._pictures)

    def _begin(self, seeds: list[int]) -> Floats:
        """Start an episode with a replica for each seed; return the first observation, (R, ...)."""
        begin(self.problem, Streams(seeds))
        self._left, self._regret = self.problem.spec.horizon, 0.0
        for picture in self._pictures:
            picture.clear()
        return self.problem.context().copy()

    def _mask(self) -> Any:
        """Return the current users' mask of available actions, (R, K); None without masks."""
        problem: Any = self.problem
        return None if problem.spec.masks == "none" else problem.mask()

    def _mask_info(self) -> dict[str, Any]:
        """Return `info`'s entry `action_mask` as a mapping, empty without masks."""
        mask = self._mask()
        return {} if mask is None else {"action_mask": mask.astype(np.int8)}

    def _serve(self, action: AnyArray | None) -> tuple[Floats, Floats, dict[str, Floats]]:
        """Play a round; return next observation, reward and entries of `info`, each (R, ...)."""
        if self._left == 0:
            raise InputError("The episode is over (or was never started): call reset() first.")
        spec = self.problem.spec
        if action is None:
            raise InputError(f"Expected an action in {spec.action_space()}, got None.")
        action = spec.repaired(action, self._mask())
        step = self.problem.step(action)
        for r, picture in enumerate(self._pictures):
            clicks = (
                step.datum[r] if spec.feedback_name == "clicks" and step.datum is not None else None
            )
            picture.see(action[r], float(step.reward[r]), float(step.regret[r]), clicks)
        self._left -= 1
        info = dict(zip(_INFO, (step.expected, step.oracle, step.regret), strict=True))
        if spec.in_hindsight:
            self._regret = self._regret + step.regret
            info = {"expected_reward": step.expected}
            if self._left == 0:
                info["regret"] = self._regret + self.problem.hindsight()
        if spec.feedback_name is not None and step.datum is not None:
            info[spec.feedback_name] = step.datum
        return self.problem.context().copy(), step.reward, info | self._mask_info()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "problem" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.problem, name)


class BanditEnv(_Adapter, gym.Env[Floats, Any]):
    """A single Gymnasium environment, by `gym.make("dpbandit/...")`.

    `info` holds `expected_reward`, `oracle_reward` and `regret` of the last step, for evaluation
    only. An agent may read two entries: `choice`, the product bought of an assortment, and
    `action_mask` (also after `reset`), 1 for actions that are available in the next step and 0 for
    others (`action_space.sample(mask)`). If regret is measured in hindsight (convex losses), the
    last step's `info` has the regret of the whole episode. A point outside a convex domain is
    projected onto it, so that any sample of the box is an action.
    """

    metadata: dict[str, Any] = {"render_modes": list(MODES), "render_fps": 10}

    def __init__(self, *, problem: str, render_mode: str | None = None, **arguments: Any) -> None:
        self.problem = make_problem(problem, **arguments)
        self.render_mode = render_mode
        self._will_render(render_mode, 1)
        self.observation_space = self.problem.spec.observation_space()
        self.action_space = self.problem.spec.action_space()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        if options is not None and (options or not isinstance(options, dict)):
            raise InputError(f"Expected options={abbrev(options)} to be None: reset has none.")
        if seed is not None:
            whole("seed", seed, 0)
            seed = int(seed)
        super().reset(seed=seed)
        first = self._begin([_episode_seed(self.np_random)])[0]
        return first, {name: value[0] for name, value in self._mask_info().items()}

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        observation, reward, facts = self._serve(
            None if action is None else np.asarray(action)[None]
        )
        info = {
            name: value[0].copy() if value.ndim > 1 else float(value[0])
            for name, value in facts.items()
        }
        return observation[0], float(reward[0]), False, self._left == 0, info

    def render(self) -> Any:
        # Regret so far and the last actions: a text, or a picture (360, 480, 3)
        return self._drawn()[0]


class BanditVectorEnv(_Adapter, VectorEnv[Floats, Any, AnyArray]):
    """A vector of R Gymnasium environments, by `gym.make_vec("dpbandit/...", num_envs=R)`.

    It is faster than R single ones. Episodes of all replicas have equal lengths and end together.
    The argument `autoreset_mode` is `"NextStep"` (default), `"SameStep"` or `"Disabled"`.
    """

    metadata: dict[str, Any] = {
        "render_modes": list(MODES),
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        *,
        problem: str,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        whole("num_envs", num_envs, 1, MOST_REPLICAS)
        if isinstance(autoreset_mode, str):
            one_of("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self._mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self._mode}
        self.problem = make_problem(problem, **arguments)
        self.num_envs, self.render_mode = num_envs, render_mode
        self._will_render(render_mode, num_envs)
        self.single_observation_space = self.problem.spec.observation_space()
        self.single_action_space = self.problem.spec.action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._started = False
        self._randoms = [seeding.np_random(None)[0] for _ in range(num_envs)]

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        if options is not None and (not isinstance(options, dict) or {*options} - {"reset_mask"}):
            raise InputError(
                f"Expected options={abbrev(options)} to be None or a dictionary with nothing but "
                "'reset_mask'."
            )
        mask = np.ravel((options or {}).get("reset_mask", True)).tolist()
        if mask.count(True) < len(mask):
            raise InputError(
                "Expected options['reset_mask'] to be all True: episodes end together."
            )
        if seed is not None:
            seeds: Any = seed
            if isinstance(seed, Integral):
                whole("seed", seed, 0)
                seeds = [int(seed) + i for i in range(self.num_envs)]
            if not isinstance(seeds, list | tuple | np.ndarray) or len(seeds) != self.num_envs:
                raise InputError(
                    f"Expected seed={abbrev(seed)} to be one integer, or {self.num_envs} of them, "
                    "one for each replica."
                )
            for i, single in enumerate(seeds):
                if single is not None:
                    whole(f"seed of replica {i}", single, 0)
                    self._randoms[i] = seeding.np_random(int(single))[0]
        return self._start(), _vector_info(self._mask_info(), self.num_envs)

    def step(self, actions: Any) -> tuple[Floats, Floats, Bools, Bools, dict[str, Any]]:
        R = self.num_envs
        never = np.zeros(R, dtype=np.bool_)
        if self._started and self._left == 0 and self._mode == AutoresetMode.NEXT_STEP:
            first = self._start()
            return first, np.zeros(R), never, never.copy(), _vector_info(self._mask_info(), R)
        actions = by_index("actions", actions, range(R), "the replicas")
        observation, reward, facts = self._serve(actions)
        info = _vector_info(facts, R)
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
            info |= _vector_info(self._mask_info(), R)
        return observation, reward.copy(), never, over, info

    def render(self) -> tuple[Any, ...]:
        return self._drawn()

    def _start(self) -> Floats:
        self._started = True
        return self._begin([_episode_seed(random) for random in self._randoms])


def _episode_seed(random: np.random.Generator) -> int:
    return int(random.integers(2**63))


def _vector_info(facts: dict[str, Floats], replicas: int) -> dict[str, Any]:
    info: dict[str, Any] = {}
    for name, value in facts.items():
        info[name], info[f"_{name}"] = value.copy(), np.ones(replicas, dtype=np.bool_)
    return info
