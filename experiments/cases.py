"""Reference cases: problems, agents configured for them, and numbers of an independent program.

A reference number is a mean with its standard error over replicas; ours must agree within 4
combined standard errors. Cases are written in cases.toml, numbers in references.csv.
"""

import csv
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from math import hypot, inf, isnan
from typing import Any, Literal, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from dpbandit.agents import AGENTS, CONTEXTUAL, CONVEX, EXPERTS, STOCHASTIC
from dpbandit.base import (
    MOST_ACTIONS,
    MOST_ROUNDS,
    InputError,
    one_of,
    parse_setting,
    parse_settings,
    whole,
)
from dpbandit.experiments.experts import least_regret, news
from dpbandit.privacy import Certificate
from dpbandit.results.runs import describe, standard_error
from dpbandit.shelf import from_shelf
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration, play_all, setup_of

Settings: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A mean measured by the independent program, with its settings."""

    agent: str
    """Id of the agent on the command line"""
    settings: Settings
    """Settings of the agent or the problem that differ from the case's own"""
    mean: float
    se: float
    horizon: int
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A problem at its published size with agents; every argument can be overridden."""

    name: str
    summary: str
    environment: str
    env_kwargs: Settings
    agents: Mapping[str, Settings]
    """Id of an agent -> its settings for this problem"""
    variants: Mapping[tuple[str, str, Any], Settings]
    """(id, setting, value) -> the agent's settings if that setting has that value"""
    references: tuple[Reference, ...]
    data_agents: tuple[str, ...]
    """Ids of agents that observe each user's datum in place of a reward"""
    data_environment: str = ""
    """Id of the environment that `data_agents` play, where they observe data"""
    measure: Literal["regret", "suboptimality"] = "regret"
    """Measured number, final regret or suboptimality of the released point (see `releases`)"""
    pure_noise: bool = False
    """True if agents without Gaussian noise (Laplace, K-norm, local) get delta = 0 even if another
    delta is set, as the delta of references is meant for Gaussian noise"""
    delta_per_user: bool = False
    """True if the default delta of private agents is 1 / horizon"""
    common: tuple[str, ...]
    """Names of settings that are passed to the agent and to the problem"""
    bounded: bool = False
    """True if `experts.least_regret` is a lower bound on regret for this problem"""

    def __post_init__(self) -> None:
        unknown = {*self.agents, *(agent for agent, *_ in self.variants)} - set(AGENTS)
        if unknown:
            raise KeyError(f"{self.name} names unknown agents {unknown}.")

    def environment_of(self, agent: str) -> str:
        """Return the id of the problem that `agent` plays."""
        return self.data_environment if agent in self.data_agents else self.environment

    def config(
        self, agent: str, settings: Settings, *, horizon: int = 10_000, rounds_an_arm: float = inf
    ) -> AgentConfig:
        """Return the agent's config for this problem; `settings` override those of the case.

        The case's `warm_up` is limited to half of `rounds_an_arm`, the rounds divided by the arms.
        """
        chosen = dict(self.agents[agent])
        for (name, key, value), variant in self.variants.items():
            if name == agent and settings.get(key) == value:
                chosen = dict(variant)
                break
        if "warm_up" in chosen:
            chosen["warm_up"] = max(1, int(min(chosen["warm_up"], rounds_an_arm / 2)))
        if self.delta_per_user and "delta" in _settings_of(agent):
            chosen.setdefault("delta", 1 / horizon)
        made: Any = AGENTS[agent](**{**chosen, **settings})
        if self.pure_noise and getattr(made, "delta", None):
            with suppress(InputError):  # Gaussian noise needs it
                made = replace(made, delta=0.0)
        return made

    def least(self, proof: Certificate, arguments: Settings) -> float | None:
        """Return a lower bound on regret for agents with this certificate; None without a bound."""
        if not self.bounded or proof.epsilon == inf:
            return 0.0 if self.bounded else None
        d = arguments["n_actions"]
        tail = arguments.get("tail") or news(d, arguments.get("epsilon", 1.0))
        epsilon = max(proof.epsilon, 1e-9)  # uniform play has 0
        return least_regret(d, epsilon, proof.claimed_delta, tail=tail)


_FAMILIES: dict[str, Mapping[str, Any]] = {  # word in cases.toml -> config by id
    "contextual": CONTEXTUAL,
    "convex": CONVEX,
    "experts": EXPERTS,
    "stochastic": STOCHASTIC,
}


def _settings_of(agent: str) -> set[str]:
    return {field.name for field in fields(AGENTS[agent])}


def _merged(shared: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Merge two TOML tables; `changes` extend nested tables and lists, and replace other values."""
    found = dict(shared)
    for key, value in changes.items():
        if key in shared and isinstance(value, dict):
            found[key] = _merged(shared[key], value)
        else:
            found[key] = [*shared.get(key, ()), *value] if isinstance(value, list) else value
    return found


def _case(name: str, row: dict[str, Any], references: tuple[Reference, ...]) -> Case:
    """Make a case from its table in cases.toml, with which its group's table was merged."""
    play, without = row.pop("play"), row.pop("without", ())
    every, single = row.pop("every", {}), row.pop("agents", {})
    agents = {}
    for agent in (one for word in play for one in _FAMILIES.get(word, [word])):
        if agent not in without:
            shared = {k: v for k, v in every.items() if k in _settings_of(agent)}
            agents[agent] = {**shared, **single.get(agent, {})}
    variants = {}
    for key, settings in row.pop("variants", {}).items():
        agent, _, setting = key.partition(":")
        variants[agent, *parse_setting(setting)] = settings
    lists: dict[str, Any] = {key: tuple(row.pop(key, ())) for key in ("data_agents", "common")}
    return Case(name=name, agents=agents, variants=variants, references=references, **lists, **row)


def _cases() -> dict[str, Case]:
    here = files("dpbandit.experiments")
    references: dict[str, list[Reference]] = {}
    for row in csv.DictReader((here / "references.csv").read_text().splitlines()):
        agent, *settings = row["agent"].split(":")
        reference = Reference(
            agent=agent,
            settings=parse_settings(settings),
            mean=float(row["mean"]),
            se=float(row["se"]),
            horizon=int(row["horizon"]),
            note=row["note"],
        )
        references.setdefault(row["case"], []).append(reference)
    found = {}
    for group in tomllib.loads((here / "cases.toml").read_text())["group"]:
        family, cases = group.pop("family"), group.pop("cases")
        for short, changes in cases.items():
            name = f"{family}/{short}"
            found[name] = _case(name, _merged(group, changes), tuple(references.get(name, ())))
    return found


CASES = _cases()  # by name, GROUP/NAME


_LETTERS = {"K": ("n_actions",), "d": ("dim", "n_actions"), "k": ("dim",), "T": ("horizon",)}
"""Letter in papers -> names of arguments; it stands for the first one that the problem has."""


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
    """Run `agent` on the case `name` under `settings` and compare with a reference number, if any.

    A setting goes to the agent if its config has a field of that name, else to the problem;
    `env.NAME` always goes to the problem. K, d, k and T are n_actions, dim, dim and horizon; d is
    n_actions for experts, which have no dim. Returns case, agent, config, horizon, replicas, seed,
    measure (regret after `horizon` rounds, or the suboptimality of the point released after
    `horizon` users), its mean and se, seconds, certified_epsilon and its notion, reference (mean
    and se, or None), z (the difference from the reference in combined standard errors) and least (a
    lower bound on the regret of agents with the same certificate, or None).

    Raises:
        InputError: if the case, the agent or a setting is unknown, or if `compare` raises it.
    """
    one_of("case", name, CASES, see="dpbandit reproduce --list")
    case = CASES[name]
    one_of("agent", agent, case.agents)
    settings = _written_out(settings, _of_problem(case, agent))
    horizon = settings.pop("horizon", horizon)
    whole("horizon", horizon, 1, MOST_ROUNDS)
    config, env_kwargs = _set_up(case, agent, settings, horizon)
    whole("seed", seed, 0, 2**32 - 1)
    setup = setup_of(case.environment_of(agent), env_kwargs, horizon=horizon, seed=seed)
    released = case.measure == "suboptimality"
    kind: type[Configuration] = Configuration
    if released:
        kind = from_shelf("experiments", "ReleaseConfiguration", f"{case.measure} of {name}")
    run = play_all(kind(setup, agent, config), replicas, progress=progress)
    values = run.measures["suboptimality"] if released else run.regret[-1]
    mean, se = float(values.mean()), standard_error(values)
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
        "seconds": float(run.measures["seconds"].sum()) if released else run.seconds,
        "certified_epsilon": run.certificate.epsilon,
        "notion": str(run.certificate.notion),
        "reference": None if reference is None else {"mean": reference.mean, "se": reference.se},
        "z": z,
        "least": case.least(run.certificate, env_kwargs),
    }


def _distance(gap: float, se: float) -> float:
    """Return a difference of means in standard errors; infinity if se is 0, 0 if gap < 1e-9."""
    if abs(gap) < 1e-9:
        return 0.0
    return gap / se if se > 0 else inf


def _written_out(settings: Mapping[str, Any], of_problem: Sequence[str]) -> dict[str, Any]:
    """Return the settings with letters of papers, see `_LETTERS`, replaced by arguments' names."""
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
    """Assign settings to agent or problem; return the config and the problem's arguments."""
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
    """Return the class of the problem that `agent` plays."""
    return load_env_creator(gym.spec(case.environment_of(agent)).kwargs["problem"])


def _of_problem(case: Case, agent: str) -> list[str]:
    """Return the names of the problem's arguments, without `horizon`."""
    return [field.name for field in fields(_problem(case, agent)) if field.name != "horizon"]


def _meant(owner: Any, name: str, value: Any) -> Any:
    """Return a setting's value, with "none" in place of None if the default is a string."""
    words = {field.name for field in fields(owner) if isinstance(field.default, str)}
    return "none" if value is None and name in words else value


def _reference(
    case: Case, agent: str, config: AgentConfig, env_kwargs: Mapping[str, Any], horizon: int
) -> Reference | None:
    """Return the reference with this config, problem and horizon; None if there is none."""
    for reference in case.references:
        if (reference.agent, reference.horizon) != (agent, horizon):
            continue
        if _set_up(case, agent, reference.settings, horizon) == (config, env_kwargs):
            return reference
    return None
