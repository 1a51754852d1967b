"""The loop: agents meet the same users, regret is logged at marks, seeds are kept per replica."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from math import isfinite
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from dpbandit.agents import BestFixed, Centre, Uniform
from dpbandit.arrays import Floats, Ints
from dpbandit.convex.spec import ConvexSpec
from dpbandit.envs.adapters import make_problem
from dpbandit.experts.spec import ExpertsSpec
from dpbandit.inputs import BadInput, one_of, whole
from dpbandit.privacy.certificate import Certificate, certificate
from dpbandit.progress import Progress
from dpbandit.protocols import AgentConfig, ContextualSpec, Hindsight, Problem, Spec
from dpbandit.results import AgentRun, Results
from dpbandit.streams import Seed, Streams

ProblemMaker: TypeAlias = Callable[..., Problem]

_CHUNK_BYTES = 4 << 20
"""Replicas run together while their d x d matrices fit the cache."""
_MARKS = 500


@dataclass(frozen=True)
class Log:
    """Cumulative regret and reward, (marks, R), and the seconds they took."""

    regret: Floats
    reward: Floats
    seconds: float
    best_fixed: npt.NDArray[Any]
    """the action (R,) that would have been best for all rounds"""


def compare(
    env: str | ProblemMaker,
    agents: Mapping[str, AgentConfig],
    *,
    horizon: int = 10_000,
    replicas: int = 20,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> Results:
    """Cumulative regret of every agent on the same users, with certificates.

    Args:
        env: a registered id such as "dpbandit/OJPricing-v0", or a class (or function) that makes
            a `Problem` from keyword arguments, `horizon` among them.
        agents: name -> config. Uniform play and the best fixed action are added where missing,
            on a convex domain its centre, too.
        horizon: rounds T >= 1.
        replicas: independent repetitions >= 1; replica r depends on (seed, r) only.
        seed: from 0 to 2^32 - 1.
        env_kwargs: further arguments of the environment.
        progress: show a bar once it takes longer than two seconds.

    Raises:
        BadInput: an unknown id or argument, a number out of range, an agent that does not fit
            the environment, an environment whose rewards are not finite numbers.
    """
    whole("horizon", horizon, 1)
    whole("replicas", replicas, 1)
    whole("seed", seed, 0, 2**32 - 1)
    make = problem_maker(env)
    if "horizon" in (env_kwargs or {}):
        raise BadInput("Expected horizon by --horizon (horizon=), not among env_kwargs.")
    arguments = {**(env_kwargs or {}), "horizon": horizon}
    spec = make(**arguments).spec
    configs = with_baselines(agents, spec)
    certificates = {n: certify(config, spec, accountants=False) for n, config in configs.items()}
    marks, size = log_marks(horizon), _chunk(spec)
    logs: dict[str, list[Log]] = {name: [] for name in configs}
    oracles_last = sorted(configs, key=lambda name: isinstance(configs[name], Hindsight))
    with Progress(len(configs) * replicas * horizon, shown=progress) as bar:
        for first in range(0, replicas, size):
            seeds = [(seed, r) for r in range(first, min(replicas, first + size))]
            for name in oracles_last:
                config = configs[name]
                if isinstance(config, Hindsight):  # the same users, met by another agent
                    config = config.with_answer(logs[oracles_last[0]][-1].best_fixed)
                bar.working_on(name, rate=len(seeds))
                problem = make(**arguments)
                logs[name].append(play(problem, config, seeds, marks=marks, advance=bar.advance))
    return Results(
        environment=env if isinstance(env, str) else getattr(env, "__name__", "environment"),
        env_kwargs=arguments,
        seed=seed,
        reward_unit=spec.reward_unit,
        marks=marks,
        runs=tuple(
            AgentRun(
                name=name,
                config=configs[name],
                certificate=certificates[name],
                regret=np.concatenate([log.regret for log in logs[name]], axis=1),
                reward=np.concatenate([log.reward for log in logs[name]], axis=1),
                seconds=sum(log.seconds for log in logs[name]),
            )
            for name in configs
        ),
    )


def play(
    problem: Problem,
    config: AgentConfig,
    seeds: Sequence[Seed],
    *,
    marks: Ints,
    advance: Callable[[int], None] = lambda rounds: None,
) -> Log:
    """One agent, one replica for each seed, from the first round to the last mark.

    `advance` is called with the rounds done since it was called last, at every mark.
    """
    if isinstance(config, Hindsight):
        raise BadInput(f"{config} needs an answer to play: {type(config).__name__}.with_answer.")
    start = time.perf_counter()
    streams = Streams(seeds)
    problem.reset(streams.child("environment"))
    agent = config.make(problem.spec, streams.child("agent"))
    regret, reward = np.zeros((2, len(marks), len(seeds)))
    total_regret, total_reward = np.zeros((2, len(seeds)))
    waiting: deque[tuple[Floats, npt.NDArray[Any]]] = deque()
    delay, done = problem.spec.delay, 0
    for mark, until in enumerate(marks.tolist()):
        for t in range(done + 1, until + 1):
            context = problem.context()
            action = agent.act(context)
            try:
                step = problem.step(action)
            except BadInput as mistake:
                raise BadInput(f"In round {t}: {mistake}") from mistake
            finite = isfinite(step.reward @ step.reward)  # the cheapest look at all of them
            if not finite and not np.isfinite(step.reward).all():
                raise BadInput(f"Expected finite rewards, got {step.reward} in round {t}.")
            total_regret += step.regret
            total_reward += step.reward
            if delay:
                waiting.append((context, action))
                if t <= delay:
                    continue
                context, action = waiting.popleft()
            agent.update(context, action, step.reward if step.datum is None else step.datum)
        if not np.isfinite(total_regret).all():
            raise BadInput(f"Expected finite expected rewards, got a NaN or infinity by round {t}.")
        regret[mark], reward[mark] = total_regret + problem.hindsight(), total_reward
        advance(until - done)
        done = until
    return Log(regret, reward, time.perf_counter() - start, problem.best_fixed())


def certify(config: AgentConfig, spec: Spec, *, accountants: bool = True) -> Certificate:
    """What the noise of `config` on `spec` really buys, beside what it claims.

    The claim is the config's `epsilon` and `delta`, where it has them.
    """
    ledger = config.make(spec, Streams([0])).ledger
    epsilon = getattr(config, "epsilon", None)
    claim = None if epsilon is None else (epsilon, getattr(config, "delta", 0.0))
    return certificate(ledger, claim=claim, accountants=accountants)


def problem_maker(env: str | ProblemMaker) -> ProblemMaker:
    """What makes the problem behind a registered id; "dpbandit/" and "-v0" may be left out."""
    if not isinstance(env, str):
        return env
    module, _, name = env.rpartition(":")
    if module:
        try:
            import_module(module)  # registers its environments
        except ImportError as error:
            raise BadInput(f"Cannot import {module!r} of environment {env!r}: {error}.") from None
    ids = [i for i, entry in gym.registry.items() if "problem" in entry.kwargs]
    if name in gym.registry and name not in ids:
        raise BadInput(f"Environment {name!r} reports no regret: compare needs a dpbandit Problem.")
    candidates = (name, f"dpbandit/{name}", f"dpbandit/{name}-v0")
    found = next((candidate for candidate in candidates if candidate in ids), name)
    one_of("environment", found, ids)
    return partial(make_problem, **gym.registry[found].kwargs)


def with_baselines(agents: Mapping[str, AgentConfig], spec: Spec) -> dict[str, AgentConfig]:
    """The agents, and uniform play and the best dumb player where they are missing.

    On a convex domain staying in the centre is dumb, too, and often better than uniform play.
    """
    configs = dict(agents)
    yardsticks: dict[str, AgentConfig] = {"Uniform": Uniform(), "BestFixed": BestFixed()}
    if isinstance(spec, ConvexSpec):
        yardsticks["Centre"] = Centre()
    for name, baseline in yardsticks.items():
        if baseline not in configs.values():
            configs[name] = baseline
    return configs


def log_marks(horizon: int) -> Ints:
    """About 500 rounds at which regret is logged: all of the first, then evenly in log and time.

    >>> log_marks(6).tolist()
    [1, 2, 3, 4, 5, 6]
    """
    ratios = np.geomspace(1, horizon, _MARKS // 2)
    steps = np.linspace(1, horizon, _MARKS // 2)
    return np.unique(np.concatenate([ratios, steps, [horizon]]).round().astype(np.int64))


def _chunk(spec: Spec) -> int:
    if isinstance(spec, ExpertsSpec):  # no matrices
        return max(1, _CHUNK_BYTES // (8 * spec.n_actions))
    arms = spec.n_actions if isinstance(spec, ContextualSpec) and not spec.shared else 1
    return max(1, _CHUNK_BYTES // (8 * arms * spec.context_shape[-1] ** 2))
