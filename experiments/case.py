"""Reference cases: a problem, agents set up for it, and numbers an independent program measured.

A reference number is a mean with its standard error over replicas; ours must agree within 4
combined standard errors.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any, Literal, TypeAlias

from dpbandit.agents import AGENTS
from dpbandit.base.inputs import InputError
from dpbandit.privacy.certificate import Certificate
from dpbandit.specs.protocols import AgentConfig

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
    horizon: int = 10_000
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A problem at its printed size; every argument of it can be set otherwise."""

    name: str
    summary: str
    environment: str
    env_kwargs: Settings
    agents: Mapping[str, Settings] = field(default_factory=dict)
    """command-line id -> its settings for this problem"""
    variants: Mapping[tuple[str, str, Any], Settings] = field(default_factory=dict)
    """(id, setting, value) -> what replaces its settings once that is set; the first one counts"""
    references: tuple[Reference, ...] = ()
    data_environment: str = ""
    """the same problem for agents that are told data in place of rewards"""
    told_data: tuple[str, ...] = ()
    """the ids of those agents"""
    measure: Literal["regret", "suboptimality"] = "regret"
    """regret after all rounds, or SubOpt of the point released after all users (see `releases`)"""
    pure_noise: bool = False
    """noise that meets its target at delta = 0 (Laplace, K-norm, local) is made for that, whatever
    delta is set: the references' delta is that of their Gaussian noise"""
    delta_per_user: bool = False
    """private agents have delta = 1 / horizon, unless it is set"""
    common: tuple[str, ...] = ()
    """settings that the problem takes, too, where the agent has them"""
    least: Callable[[Certificate, Settings], float] | None = None
    """(what is certified, arguments of the problem) -> what a private agent loses at least"""

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
        if self.delta_per_user and "delta" in {field.name for field in fields(AGENTS[agent])}:
            own.setdefault("delta", 1 / horizon)
        made: Any = AGENTS[agent](**{**own, **settings})
        if self.pure_noise and getattr(made, "delta", None):
            with suppress(InputError):  # Gaussian noise needs it
                made = replace(made, delta=0.0)
        config: AgentConfig = made
        return config
