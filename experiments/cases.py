"""Reference cases: problems, agents set up for them, and numbers an independent program measured.

A reference number is a mean with its standard error over replicas; ours must agree within 4
combined standard errors. Cases are written in cases.toml, numbers in references.csv.
"""

import csv
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from math import inf
from typing import Any, Literal, TypeAlias

from dpbandit.agents import AGENTS, CONTEXTUAL, CONVEX, EXPERTS, STOCHASTIC
from dpbandit.base import InputError, parse_setting, parse_settings
from dpbandit.experiments.experts import least_regret, news
from dpbandit.privacy import Certificate
from dpbandit.specs import AgentConfig

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
