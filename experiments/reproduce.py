"""Run one agent on one reference case, at the printed size or any other, and compare."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from math import sqrt
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from dpbandit.agents import AGENTS
from dpbandit.evaluate import compare
from dpbandit.experiments.cases import CASES, Case, Reference
from dpbandit.inputs import BadInput, one_of
from dpbandit.results import describe, standard_error


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
    `env.NAME` goes to the problem in any case.
    Returns case, agent, config, horizon, replicas, seed, mean, se, seconds, certified_epsilon,
    reference (mean and se, or None) and z, our distance from it in combined standard errors.

    Raises:
        BadInput: an unknown case, agent or setting; whatever `compare` refuses.
    """
    one_of("case", name, CASES)
    case = CASES[name]
    one_of("agent", agent, case.agents)
    ours, theirs = _split(case, agent, settings)
    config = case.config(agent, ours)
    env_kwargs = {**case.env_kwargs, **theirs}
    results = compare(
        case.environment,
        {agent: config},
        horizon=horizon,
        replicas=replicas,
        seed=seed,
        env_kwargs=env_kwargs,
        progress=progress,
    )
    run = next(run for run in results.runs if run.name == agent)
    mean, se = float(run.regret[-1].mean()), standard_error(run.regret[-1])
    reference = None if theirs else _reference(case, agent, config, horizon)
    z = None if reference is None else (mean - reference.mean) / sqrt(se**2 + reference.se**2)
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


def _split(
    case: Case, agent: str, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the agent's config, and of the problem."""
    of_agent = [field.name for field in fields(AGENTS[agent])]
    problem: Any = load_env_creator(gym.spec(case.environment).kwargs["problem"])
    of_problem = [f.name for f in fields(problem) if f.name != "horizon"]
    ours, theirs = {}, {}
    for key, value in settings.items():
        name = key.removeprefix("env.")
        one_of("setting", name, of_problem if name != key else of_agent + of_problem)
        if key in of_agent:
            ours[key] = value
        else:
            theirs[name] = value
    return ours, theirs


def _reference(case: Case, agent: str, config: object, horizon: int) -> Reference | None:
    """The number measured under exactly this config, if there is one."""
    for reference in case.references:
        known = (reference.agent, reference.horizon) == (agent, horizon)
        if known and case.config(agent, reference.settings) == config:
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
