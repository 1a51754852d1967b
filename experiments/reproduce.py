"""Run one agent on one reference case, at the printed size or any other, and compare."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from math import hypot, inf, isnan
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import load_env_creator

from dpbandit.agents import AGENTS
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import MOST_ACTIONS, MOST_REPLICAS, MOST_ROUNDS, InputError, one_of, whole
from dpbandit.base.progress import Progress
from dpbandit.base.random_streams import Seed
from dpbandit.experiments.case import Case, Reference
from dpbandit.experiments.cases import CASES
from dpbandit.experiments.releases import release, stream_problem
from dpbandit.privacy.certificate import Certificate
from dpbandit.results.marks import log_marks
from dpbandit.results.runs import describe, standard_error
from dpbandit.running.baselines import play_any
from dpbandit.running.certify import certify
from dpbandit.running.compare import replicas_at_once
from dpbandit.running.environments import problem_maker
from dpbandit.specs.protocols import AgentConfig

_LETTERS = {"K": ("n_actions",), "d": ("dim", "n_actions"), "k": ("dim",), "T": ("horizon",)}
"""What papers call them; of several names the first that the problem has."""


def reproduce(
    name: str,
    agent: str,
    *,
    settings: Mapping[str, Any],
    horizon: int = 10_000,
    replicas: int = 50,
    seed: int = 0,
    progress: bool = True,
) -> dict[str, Any]:
    """`agent` on the case `name` under `settings`, beside the reference number if there is any.

    A setting goes to the agent where its config has a field of that name, else to the problem;
    `env.NAME` goes to the problem in any case. K, d, k and T are n_actions, dim, dim and horizon;
    d is n_actions where there is no dim, among experts.
    Returns case, agent, config, horizon, replicas, seed, what is measured (regret after `horizon`
    rounds, or the suboptimality of the point released after `horizon` users, as the case has it),
    its mean and se, seconds, certified_epsilon and the notion of privacy it is of, reference (mean
    and se, or None), z, our distance from it in combined standard errors, and least, what an agent
    as private as that loses at least (or None).

    Raises:
        InputError: an unknown case, agent or setting; whatever `compare` refuses.
    """
    one_of("case", name, CASES)
    case = CASES[name]
    one_of("agent", agent, case.agents)
    settings = _written_out(settings, _of_problem(case, agent))
    horizon = settings.pop("horizon", horizon)
    whole("horizon", horizon, 1, MOST_ROUNDS)
    config, env_kwargs = _set_up(case, agent, settings, horizon)
    job = _Job(case.environment_of(agent), env_kwargs, agent, config, horizon, replicas, seed)
    measure = _suboptimality if case.measure == "suboptimality" else _regret
    found = measure(job, progress)
    mean, se = float(found.values.mean()), standard_error(found.values)
    reference = _reference(case, agent, config, env_kwargs, horizon)
    z = None
    if reference is not None and not isnan(se):  # there is more than one replica
        z = _distance(mean - reference.mean, hypot(se, reference.se))
    return {
        "case": name,
        "agent": agent,
        "config": {**describe(config), "env_kwargs": env_kwargs},
        "horizon": horizon,
        "replicas": replicas,
        "seed": seed,
        "measure": case.measure,
        "mean": mean,
        "se": se,
        "seconds": found.seconds,
        "certified_epsilon": found.proof.epsilon,
        "notion": found.proof.notion,
        "reference": None if reference is None else {"mean": reference.mean, "se": reference.se},
        "z": z,
        "least": None if case.least is None else case.least(found.proof, env_kwargs),
    }


class _Job(NamedTuple):
    environment: str
    env_kwargs: Mapping[str, Any]
    agent: str
    config: AgentConfig
    horizon: int
    replicas: int
    seed: int

    @property
    def seeds(self) -> list[Seed]:
        """One for each replica."""
        whole("replicas", self.replicas, 1, MOST_REPLICAS)
        whole("seed", self.seed, 0, 2**32 - 1)
        return [(self.seed, r) for r in range(self.replicas)]


class _Found(NamedTuple):
    values: Floats
    """of what is measured, (R,)"""
    seconds: float
    proof: Certificate


def _regret(job: _Job, progress: bool) -> _Found:
    """As in `compare`, without its baselines, which take as long again."""
    make = partial(problem_maker(job.environment), **job.env_kwargs, horizon=job.horizon)
    spec, marks, seeds = make().spec, log_marks(job.horizon), job.seeds
    proof, size, logs = certify(job.config, spec, accountants=False), replicas_at_once(spec), []
    with Progress(job.horizon * job.replicas, shown=progress) as bar:
        for first in range(0, job.replicas, size):
            some = seeds[first : first + size]
            bar.working_on(job.agent, rate=len(some))
            logs.append(play_any(make(), job.config, some, marks=marks, advance=bar.advance))
    values = np.concatenate([log.regret[-1] for log in logs])
    return _Found(values, sum(log.seconds for log in logs), proof)


def _suboptimality(job: _Job, progress: bool) -> _Found:
    seeds = job.seeds
    problem = stream_problem(job.environment, job.env_kwargs, job.config, users=job.horizon)
    proof = certify(job.config, problem.spec, accountants=False)
    with Progress(job.horizon * job.replicas, shown=progress) as bar:
        bar.working_on(job.agent, rate=job.replicas)
        found = release(problem, job.config, seeds, users=job.horizon, advance=bar.advance)
    return _Found(found.suboptimality, found.seconds, proof)


def _distance(gap: float, se: float) -> float:
    """In standard errors; rounding is forgiven, and without any nothing else."""
    if abs(gap) < 1e-9:
        return 0.0
    return gap / se if se > 0 else inf


def _written_out(settings: Mapping[str, Any], of_problem: Sequence[str]) -> dict[str, Any]:
    """The letters of `_LETTERS` as the names they stand for."""
    names = {key: key for key in settings}
    for key in settings:
        if meant := _LETTERS.get(key.removeprefix("env.")):
            names[key] = next((name for name in meant if name in of_problem), meant[0])
    for name in (twice := list(names.values())):
        if twice.count(name) > 1:
            raise InputError(f"Expected {name} once, got it {twice.count(name)} times.")
    return {names[key]: value for key, value in settings.items()}


def _set_up(
    case: Case, agent: str, settings: Mapping[str, Any], horizon: int
) -> tuple[AgentConfig, dict[str, Any]]:
    """The agent's config, and the arguments of the problem."""
    of_agent = [field.name for field in fields(AGENTS[agent])]
    problem, of_problem = _problem(case, agent), _of_problem(case, agent)
    ours, theirs = {}, dict(case.env_kwargs)
    for key, value in settings.items():
        name = key.removeprefix("env.")
        one_of("setting", name, of_problem if name != key else of_agent + of_problem)
        if key in of_agent:
            ours[key] = _meant(AGENTS[agent], key, value)
        if key not in of_agent or key in case.common:
            theirs[name] = _meant(problem, name, value)
    arms = theirs.get("n_actions", 1)
    whole("n_actions", arms, 1, MOST_ACTIONS)
    return case.config(agent, ours, horizon=horizon, rounds_an_arm=horizon / arms), theirs


def _problem(case: Case, agent: str) -> Any:
    """The class of the problem that `agent` plays."""
    return load_env_creator(gym.spec(case.environment_of(agent)).kwargs["problem"])


def _of_problem(case: Case, agent: str) -> list[str]:
    """Its arguments but for the horizon."""
    return [field.name for field in fields(_problem(case, agent)) if field.name != "horizon"]


def _meant(owner: Any, name: str, value: Any) -> Any:
    """None is the word "none" where `owner` expects a word, say of drift or shrinkage."""
    words = {field.name for field in fields(owner) if isinstance(field.default, str)}
    return "none" if value is None and name in words else value


def _reference(
    case: Case, agent: str, config: AgentConfig, env_kwargs: Mapping[str, Any], horizon: int
) -> Reference | None:
    """The number measured under exactly this config on exactly this problem, if there is one."""
    for reference in case.references:
        if (reference.agent, reference.horizon) != (agent, horizon):
            continue
        if _set_up(case, agent, reference.settings, horizon) == (config, env_kwargs):
            return reference
    return None
