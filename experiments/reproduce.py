"""Run one agent on one reference case, at the printed size or any other, and compare."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from math import hypot, inf
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from dpbandit.agents import AGENTS
from dpbandit.evaluate import compare
from dpbandit.experiments.case import Case, Reference
from dpbandit.experiments.cases import CASES
from dpbandit.inputs import BadInput, one_of, whole
from dpbandit.protocols import AgentConfig
from dpbandit.results import describe, standard_error

_LETTERS = {"K": "n_actions", "d": "dim", "k": "dim", "T": "horizon"}
"""What papers call them."""


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
    """Regret of `agent` on the case `name` under `settings`, beside the reference number if any.

    A setting goes to the agent where its config has a field of that name, else to the problem;
    `env.NAME` goes to the problem in any case. K, d, k and T are n_actions, dim, dim and horizon.
    Returns case, agent, config, horizon, replicas, seed, mean, se, seconds, certified_epsilon,
    reference (mean and se, or None) and z, our distance from it in combined standard errors.

    Raises:
        BadInput: an unknown case, agent or setting; whatever `compare` refuses.
    """
    one_of("case", name, CASES)
    case = CASES[name]
    one_of("agent", agent, case.agents)
    settings = _written_out(settings)
    horizon = settings.pop("horizon", horizon)
    whole("horizon", horizon, 1)
    config, env_kwargs = _set_up(case, agent, settings, horizon)
    results = compare(
        case.environment_of(agent),
        {agent: config},
        horizon=horizon,
        replicas=replicas,
        seed=seed,
        env_kwargs=env_kwargs,
        progress=progress,
    )
    run = next(run for run in results.runs if run.name == agent)
    mean, se = float(run.regret[-1].mean()), standard_error(run.regret[-1])
    reference = _reference(case, agent, config, env_kwargs, horizon)
    z = None if reference is None else _distance(mean - reference.mean, hypot(se, reference.se))
    return {
        "case": name,
        "agent": agent,
        "config": {**describe(config), "env_kwargs": env_kwargs},
        "horizon": horizon,
        "replicas": replicas,
        "seed": seed,
        "mean": mean,
        "se": se,
        "seconds": run.seconds,
        "certified_epsilon": run.certificate.epsilon,
        "reference": None if reference is None else {"mean": reference.mean, "se": reference.se},
        "z": z,
    }


def _distance(gap: float, se: float) -> float:
    """In standard errors; rounding is forgiven, and without any nothing else."""
    if abs(gap) < 1e-9:
        return 0.0
    return gap / se if se > 0 else inf


def _written_out(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The letters of `_LETTERS` as the names they stand for."""
    names = {key: _LETTERS.get(key.removeprefix("env."), key) for key in settings}
    for name in (twice := list(names.values())):
        if twice.count(name) > 1:
            raise BadInput(f"Expected {name} once, got it {twice.count(name)} times.")
    return {names[key]: value for key, value in settings.items()}


def _set_up(
    case: Case, agent: str, settings: Mapping[str, Any], horizon: int
) -> tuple[AgentConfig, dict[str, Any]]:
    """The agent's config, and the arguments of the problem."""
    of_agent = [field.name for field in fields(AGENTS[agent])]
    problem: Any = load_env_creator(gym.spec(case.environment_of(agent)).kwargs["problem"])
    of_problem = [f.name for f in fields(problem) if f.name != "horizon"]
    ours, theirs = {}, dict(case.env_kwargs)
    for key, value in settings.items():
        name = key.removeprefix("env.")
        one_of("setting", name, of_problem if name != key else of_agent + of_problem)
        if key in of_agent:
            ours[key] = _meant(AGENTS[agent], key, value)
        else:
            theirs[name] = _meant(problem, name, value)
    arms = theirs.get("n_actions", 1)
    whole("n_actions", arms, 1)
    return case.config(agent, ours, rounds_an_arm=horizon / arms), theirs


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


def parse_settings(texts: Iterable[str] | None) -> dict[str, Any]:
    """KEY=VALUE texts as a dictionary; raises `BadInput` where one is malformed or said twice."""
    pairs = [parse_setting(text) for text in texts or ()]
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise BadInput(f"Expected {key} once, got it {keys.count(key)} times.")
    return dict(pairs)


def parse_setting(text: str) -> tuple[str, Any]:
    """KEY=VALUE, the value a number, true, false, none or a word.

    >>> parse_setting("refresh_every=50"), parse_setting("alpha=theory")
    (('refresh_every', 50), ('alpha', 'theory'))
    """
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise BadInput(f"Expected KEY=VALUE, got {text!r}.")
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return key, words[value.lower()]
    for kind in (int, float):
        try:
            return key, kind(value)
        except ValueError:
            continue
    return key, value
