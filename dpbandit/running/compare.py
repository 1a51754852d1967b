"""Comparisons: agents on the same users, with certificates and baselines."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpbandit.base.inputs import MOST_REPLICAS, MOST_ROUNDS, InputError, named, whole
from dpbandit.base.progress import Progress
from dpbandit.base.provenance import provenance
from dpbandit.privacy.certificate import Certificate
from dpbandit.results.marks import log_marks
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, Setup, describe
from dpbandit.running.baselines import with_baselines
from dpbandit.running.blocks import consecutive, replicas_at_once
from dpbandit.running.certify import certify
from dpbandit.running.environments import ProblemMaker, arguments_of, problem_label, problem_maker
from dpbandit.running.loop import Log, play
from dpbandit.specs.protocols import AgentConfig, Hindsight


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
        InputError: an unknown id or argument, a number out of range, what is no config, an agent
        that
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
        raise InputError("Expected horizon by --horizon (horizon=), not among env_kwargs.")
    arguments = arguments_of(make, {**further, "horizon": horizon})
    spec = make(**arguments).spec
    configs = with_baselines(agents, spec)
    certificates = {n: certify(config, spec, accountants=False) for n, config in configs.items()}
    marks, size = log_marks(horizon), replicas_at_once(spec)
    logs: dict[str, list[Log]] = {name: [] for name in configs}
    oracles_last = sorted(configs, key=lambda name: isinstance(configs[name], Hindsight))
    with Progress(len(configs) * replicas * horizon, shown=progress) as bar:
        for first, last in consecutive(range(replicas), size):
            seeds = [(seed, r) for r in range(first, last)]
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
    """Logs of consecutive replicas, from number `first` on, as a run.

    They are of `log_marks`, or of the last round alone.
    """
    regret, reward, switches = (
        np.concatenate([getattr(log, what) for log in logs], axis=1)
        for what in ("regret", "reward", "switches")
    )
    return AgentRun(
        setup=setup,
        name=name,
        config=describe(config),
        certificate=proof,
        marks=log_marks(setup.horizon)[-len(regret) :],
        replicas=np.arange(first, first + regret.shape[1]),
        regret=regret,
        reward=reward,
        switches=switches,
        clipped=np.concatenate([log.clipped for log in logs]),
        seconds=sum(log.seconds for log in logs),
        provenance=provenance(),
    )
