"""Reference cases: problems, agents set up for them, and numbers an independent program measured.

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
from dpbandit.experiments.releases import ReleaseConfiguration
from dpbandit.privacy import Certificate
from dpbandit.results.runs import describe, standard_error
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration, play_all, setup_of

Settings: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A measured number, and the settings under which it was measured."""

    agent: str
    """command-line id"""
    settings: Settings
    """what was set on top of the case's own settings, of that agent or of the problem"""
    mean: float
    se: float
    horizon: int
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A problem at its printed size; every argument of it can be set otherwise."""

    name: str
    summary: str
    environment: str
    env_kwargs: Settings
    agents: Mapping[str, Settings]
    """command-line id -> its settings for this problem"""
    variants: Mapping[tuple[str, str, Any], Settings]
    """(id, setting, value) -> what replaces its settings once that is set; the first one counts"""
    references: tuple[Reference, ...]
    told_data: tuple[str, ...]
    """ids of agents that are told data in place of rewards"""
    data_environment: str = ""
    """the same problem for those"""
    measure: Literal["regret", "suboptimality"] = "regret"
    """regret after all rounds, or SubOpt of the point released after all users (see `releases`)"""
    pure_noise: bool = False
    """noise that meets its target at delta = 0 (Laplace, K-norm, local) is made for that, whatever
    delta is set: the references' delta is that of their Gaussian noise"""
    delta_per_user: bool = False
    """private agents have delta = 1 / horizon, unless it is set"""
    common: tuple[str, ...]
    """settings that the problem takes, too, where the agent has them"""
    bounded: bool = False
    """`least_regret` holds for it"""

    def __post_init__(self) -> None:
        unknown = {*self.agents, *(agent for agent, *_ in self.variants)} - set(AGENTS)
        if unknown:
            raise KeyError(f"{self.name} names unknown agents {unknown}.")

    def environment_of(self, agent: str) -> str:
        """The id of the problem that `agent` plays."""
        return self.data_environment if agent in self.told_data else self.environment

    def config(
        self,
        agent: str,
        settings: Settings,
        *,
        horizon: int = 10_000,
        rounds_an_arm: float = inf,
    ) -> AgentConfig:
        """The agent, set up for this problem, with `settings` on top.

        A warm-up of the case is at most half of `rounds_an_arm`, all rounds over all arms.
        """
        own = dict(self.agents[agent])
        for (name, key, value), variant in self.variants.items():
            if name == agent and settings.get(key) == value:
                own = dict(variant)
                break
        if "warm_up" in own:
            own["warm_up"] = max(1, int(min(own["warm_up"], rounds_an_arm / 2)))
        if self.delta_per_user and "delta" in _settings_of(agent):
            own.setdefault("delta", 1 / horizon)
        made: Any = AGENTS[agent](**{**own, **settings})
        if self.pure_noise and getattr(made, "delta", None):
            with suppress(InputError):  # Gaussian noise needs it
                made = replace(made, delta=0.0)
        return made

    def least(self, proof: Certificate, arguments: Settings) -> float | None:
        """What an agent that is as private as certified loses at least, if that is known."""
        if not self.bounded or proof.epsilon == inf:
            return 0.0 if self.bounded else None
        d = arguments["n_actions"]
        tail = arguments.get("tail") or news(d, arguments.get("epsilon", 1.0))
        epsilon = max(proof.epsilon, 1e-9)  # uniform play has 0
        return least_regret(d, epsilon, proof.claimed_delta, tail=tail)


_FAMILIES: dict[str, Mapping[str, Any]] = {
    "contextual": CONTEXTUAL,
    "convex": CONVEX,
    "experts": EXPERTS,
    "stochastic": STOCHASTIC,
}


def _settings_of(agent: str) -> set[str]:
    return {field.name for field in fields(AGENTS[agent])}


def _merged(shared: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Tables key by key, lists one behind the other, and of anything else its own."""
    found = dict(shared)
    for key, value in own.items():
        if key in shared and isinstance(value, dict):
            found[key] = _merged(shared[key], value)
        else:
            found[key] = [*shared.get(key, ()), *value] if isinstance(value, list) else value
    return found


def _case(name: str, told: dict[str, Any], references: tuple[Reference, ...]) -> Case:
    """A case out of what its table and that of its group tell together."""
    play, without = told.pop("play"), told.pop("without", ())
    every, own = told.pop("every", {}), told.pop("agents", {})
    agents = {}
    for agent in (one for word in play for one in _FAMILIES.get(word, [word])):
        if agent not in without:
            shared = {k: v for k, v in every.items() if k in _settings_of(agent)}
            agents[agent] = {**shared, **own.get(agent, {})}
    variants = {}
    for key, settings in told.pop("variants", {}).items():
        agent, _, setting = key.partition(":")
        variants[agent, *parse_setting(setting)] = settings
    lists: dict[str, Any] = {key: tuple(told.pop(key, ())) for key in ("told_data", "common")}
    return Case(name=name, agents=agents, variants=variants, references=references, **lists, **told)


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
        for short, own in cases.items():
            name = f"{family}/{short}"
            found[name] = _case(name, _merged(group, own), tuple(references.get(name, ())))
    return found


CASES = _cases()


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
    kind = ReleaseConfiguration if released else Configuration
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
