"""Comparisons: agents on the same users, with certificates and yardsticks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from dpbandit.agents import BestFixed, Centre, Uniform
from dpbandit.base.inputs import MOST_REPLICAS, MOST_ROUNDS, BadInput, named, one_of, whole
from dpbandit.base.progress import Progress
from dpbandit.base.provenance import provenance
from dpbandit.base.streams import Streams
from dpbandit.envs.adapters import make_problem
from dpbandit.privacy.accounting.ledger import JOINT_DP
from dpbandit.privacy.certificate import Certificate, certificate
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, Setup, describe
from dpbandit.running.loop import Log, log_marks, play
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.experts import ExpertsSpec
from dpbandit.specs.protocols import (
    AgentConfig,
    ContextualSpec,
    Hindsight,
    Problem,
    Spec,
    check_config,
)

ProblemMaker: TypeAlias = Callable[..., Problem]

_CHUNK_BYTES = 1 << 20
"""Replicas run together while their d x d matrices fit the cache."""


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
        agents: name -> config. Uniform play and the best fixed action are added where missing, on
            a convex domain its centre, too: "Uniform", "BestFixed" and "Centre" are their names.
        horizon: rounds T, 1 to 10^9.
        replicas: independent repetitions, 1 to 100,000; replica r depends on (seed, r) only.
        seed: from 0 to 2^32 - 1.
        env_kwargs: further arguments of the environment.
        progress: show a bar once it takes longer than two seconds.

    Raises:
        BadInput: an unknown id or argument, a number out of range, what is no config, an agent that
            does not fit the environment, an environment whose rewards are not finite numbers.
    """
    whole("horizon", horizon, 1, MOST_ROUNDS)
    whole("replicas", replicas, 1, MOST_REPLICAS)
    whole("seed", seed, 0, 2**32 - 1)
    further = {} if env_kwargs is None else env_kwargs
    named("agents", agents)
    named("env_kwargs", further)
    make = problem_maker(env)
    if "horizon" in further:
        raise BadInput("Expected horizon by --horizon (horizon=), not among env_kwargs.")
    arguments = {**further, "horizon": horizon}
    spec = make(**arguments).spec
    configs = with_baselines(agents, spec)
    certificates = {n: certify(config, spec, accountants=False) for n, config in configs.items()}
    marks, size = log_marks(horizon), replicas_at_once(spec)
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
    environment = env if isinstance(env, str) else getattr(env, "__name__", "environment")
    setup = Setup(
        environment=environment,
        env_kwargs=arguments,
        horizon=horizon,
        seed=seed,
        reward_unit=spec.reward_unit,
        problem=problem_label(environment, arguments),
    )
    return Results(
        tuple(
            as_run(setup, name, config, certificates[name], logs[name])
            for name, config in configs.items()
        )
    )


def as_run(
    setup: Setup,
    name: str,
    config: AgentConfig,
    proof: Certificate,
    logs: Sequence[Log],
    *,
    first: int = 0,
) -> AgentRun:
    """Logs of consecutive replicas, from number `first` on, as a run."""
    regret, reward, switches = (
        np.concatenate([getattr(log, what) for log in logs], axis=1)
        for what in ("regret", "reward", "switches")
    )
    return AgentRun(
        setup=setup,
        name=name,
        config=describe(config),
        certificate=proof,
        marks=log_marks(setup.horizon),
        replicas=np.arange(first, first + regret.shape[1]),
        regret=regret,
        reward=reward,
        switches=switches,
        clipped=np.concatenate([log.clipped for log in logs]),
        seconds=sum(log.seconds for log in logs),
        provenance=provenance(),
    )


def problem_label(environment: str, env_kwargs: Mapping[str, Any]) -> str:
    """What to call a problem: its id without ornament, and its arguments but for the horizon.

    >>> problem_label("dpbandit/GLMBandit-v0", {"dim": 5, "horizon": 10})
    'GLMBandit dim=5'
    """
    plainly = environment.removeprefix("dpbandit/").removesuffix("-v0")
    given = [f"{key}={value}" for key, value in env_kwargs.items() if key != "horizon"]
    return " ".join([plainly, *given])


def certify(config: AgentConfig, spec: Spec, *, accountants: bool = True) -> Certificate:
    """What the noise of `config` on `spec` really buys, beside what it claims.

    The claim is the config's `epsilon` and `delta`, where it has them; the notion of privacy is the
    problem's. The ledger is believed: that nothing is missing there is seen by playing. Raises
    `BadInput` for what is no config, or does not fit.
    """
    check_config(config)
    ledger = config.make(spec, Streams([0])).ledger
    if ledger.scope == JOINT_DP:  # the words of a ledger that has not met its problem
        ledger = replace(ledger, scope=spec.scope)
    epsilon = getattr(config, "epsilon", None)
    claim = None if epsilon is None else (epsilon, getattr(config, "delta", 0.0))
    return certificate(ledger, claim=claim, accountants=accountants)


def problem_maker(env: str | ProblemMaker) -> ProblemMaker:
    """What makes the problem behind a registered id; "dpbandit/" and "-v0" may be left out.

    Raises:
        BadInput: an unknown id, a module that cannot be imported, an environment of somebody else,
            what can make nothing.
    """
    if not isinstance(env, str):
        if not callable(env):
            raise BadInput(f"Expected env={env!r} to be an id (see `dpbandit envs`) or a class.")
        return env
    name = environment_id(env).rpartition(":")[2]
    return partial(make_problem, **gym.registry[name].kwargs)


def environment_id(env: str) -> str:
    """The whole id: "OJPricing" is "dpbandit/OJPricing-v0"; MODULE:ID imports MODULE first.

    Raises:
        BadInput: as `problem_maker`.
    """
    module, colon, name = env.rpartition(":")
    if module.startswith("."):
        raise BadInput(f"Expected environment {env!r} to give the full name of its module.")
    if module:
        try:
            import_module(module)  # registers its environments
        except ImportError as error:
            raise BadInput(f"Cannot import {module!r} of environment {env!r}: {error}.") from None
    ids = [i for i, entry in gym.registry.items() if "problem" in entry.kwargs]
    if name in gym.registry and name not in ids:
        raise BadInput(
            f"Environment {name!r} reports no regret: wrap it in dpbandit.clients.FromGymnasium, "
            "which asks how it is measured."
        )
    candidates = (name, f"dpbandit/{name}", f"dpbandit/{name}-v0")
    found = next((candidate for candidate in candidates if candidate in ids), name)
    one_of("environment", found, ids)
    return f"{module}{colon}{found}"


def with_baselines(agents: Mapping[str, AgentConfig], spec: Spec) -> dict[str, AgentConfig]:
    """The agents, and uniform play and the best dumb player where they are missing.

    On a convex domain staying in the centre is dumb, too, and often better than uniform play.
    Raises `BadInput` where another agent has the name of one of them.
    """
    configs = dict(agents)
    yardsticks: dict[str, AgentConfig] = {"Uniform": Uniform(), "BestFixed": BestFixed()}
    if isinstance(spec, ConvexSpec):
        yardsticks["Centre"] = Centre()
    for name, baseline in yardsticks.items():
        if baseline in configs.values():
            continue
        if name in configs:
            raise BadInput(
                f"Expected a name other than {name!r} for {configs[name]}: a yardstick has it."
            )
        configs[name] = baseline
    return configs


def replicas_at_once(spec: Spec) -> int:
    """Replicas whose matrices fit the cache together. Changes speed, never values."""
    if isinstance(spec, ExpertsSpec):  # no matrices
        return max(1, _CHUNK_BYTES // (8 * spec.n_actions))
    arms = spec.n_actions if isinstance(spec, ContextualSpec) and not spec.shared else 1
    return max(1, _CHUNK_BYTES // (8 * arms * spec.context_shape[-1] ** 2))
