"""Reference cases: a problem, agents set up for it, and numbers an independent program measured.

A reference number is a mean with its standard error over replicas; ours must agree within 4
combined standard errors. Later questions add their cases to `CASES`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from dpbandit.agents import AGENTS
from dpbandit.protocols import AgentConfig


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A measured number, and the settings under which it was measured."""

    agent: str
    """command-line id"""
    settings: Mapping[str, Any]
    """what was set on top of the case's own settings of that agent"""
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
    env_kwargs: Mapping[str, Any]
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """command-line id -> its settings for this problem"""
    as_printed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """the same under calibration = "paper", where that differs"""
    references: tuple[Reference, ...] = ()

    def __post_init__(self) -> None:
        unknown = set(self.agents) - set(AGENTS)
        if unknown:
            raise KeyError(f"{self.name} names unknown agents {unknown}.")

    def config(self, agent: str, settings: Mapping[str, Any]) -> AgentConfig:
        """The agent, set up for this problem, with `settings` on top."""
        own = self.agents[agent]
        if settings.get("calibration") == "paper":
            own = self.as_printed.get(agent, own)
        misfit = None  # a setting of this case that the others cannot be combined with
        if settings.get("noise") == "wishart":
            misfit = "moment_clip"
        if settings.get("selection") in ("laplace", "gumbel"):
            misfit = "gradient_clip"
        own = {key: value for key, value in own.items() if key != misfit}
        made: AgentConfig = AGENTS[agent](**{**own, **settings})
        return made


_AS_PRINTED = {"epsilon": 1.0, "delta": 1e-4, "reward_noise": 0.05}
_DP_UCB = {**_AS_PRINTED, "moment_weight": 0.91, "refresh_every": 50, "alpha": "theory"}
_LINUCB = {"alpha": 0.1, "reward_noise": 0.05}
_DP_HDB = {"epsilon": 1.0, "delta": 1e-4, "warm_up": 120}
_DP_HDB_AS_PRINTED = {**_DP_HDB, "beyond_validity": True}
_GUMBEL = {"selection": "gumbel"}
"""Vertices chosen with Gumbel noise in place of noisy sums (see `DPHDB`)."""

P1 = Case(
    name="contextual/p1",
    summary="sparse positive parameters, Gaussian contexts scaled to max-norm 1, two arms",
    environment="dpbandit/GLMBandit-v0",
    env_kwargs={
        "n_actions": 2,
        "dim": 50,
        "contexts": "sphere",
        "context_order": inf,
        "parameters": "sparse-ones",
        "sparsity": 5,
        "noise": 0.05,
    },
    agents={
        "uniform": {},
        "best-fixed": {},
        "epsilon-greedy": {},
        "lints": {},
        "linucb": _LINUCB,
        "dp-ucb": {**_DP_UCB, "context_clip": 3.2, "moment_clip": 0.8},
        "online-frank-wolfe": {"warm_up": 120},
        "dp-hdb": {**_DP_HDB, "gradient_clip": 0.8},
    },
    as_printed={"dp-ucb": _AS_PRINTED, "dp-hdb": _DP_HDB_AS_PRINTED},
    references=(
        Reference(agent="uniform", settings={}, mean=975.6, se=8.7),
        Reference(agent="linucb", settings={}, mean=6.7, se=0.1),
        Reference(agent="linucb", settings={"alpha": "theory"}, mean=15.6, se=0.2),
        Reference(agent="dp-ucb", settings={"calibration": "paper"}, mean=971.3, se=8.6),
        Reference(
            agent="dp-ucb",
            settings={"prefix_sums": "tree", "refresh_every": 1},
            mean=925.1,
            se=7.7,
            note="measured with 3.7 % less noise",
        ),
        Reference(
            agent="dp-ucb", settings={}, mean=793.5, se=6.2, note="measured with 3.7 % less noise"
        ),
        Reference(
            agent="dp-ucb",
            settings={"alpha": 0},
            mean=294.4,
            se=3.8,
            note="measured with 3.7 % less noise",
        ),
        Reference(agent="online-frank-wolfe", settings={}, mean=57.9, se=1.4),
        Reference(agent="dp-hdb", settings={"calibration": "paper"}, mean=969.4, se=19.1),
        Reference(
            agent="dp-hdb",
            settings={"selection": "laplace", "profile": "inverse-sqrt", "bound": "printed"},
            mean=962.8,
            se=19.2,
        ),
        Reference(
            agent="dp-hdb",
            settings={**_GUMBEL, "profile": "inverse-sqrt", "bound": "printed"},
            mean=952.2,
            se=19.1,
        ),
        Reference(
            agent="dp-hdb",
            settings={**_GUMBEL, "profile": "inverse-sqrt"},
            mean=937.1,
            se=18.8,
        ),
        Reference(agent="dp-hdb", settings=_GUMBEL, mean=905.2, se=18.4),
        Reference(agent="dp-hdb", settings={**_GUMBEL, "residual_clip": 0.6}, mean=738.7, se=15.4),
        Reference(
            agent="dp-hdb",
            settings={**_GUMBEL, "residual_clip": 0.3, "radius": 0.2},
            mean=562.9,
            se=11.8,
        ),
        Reference(agent="dp-hdb", settings={}, mean=411.7, se=9.5),
        Reference(
            agent="dp-hdb", settings={"gradient_clip": 0.4, "radius": 0.2}, mean=230.1, se=5.0
        ),
    ),
)

P2 = Case(
    name="contextual/p2",
    summary="sparse parameters of both signs, contexts on the corners of the cube, two arms",
    environment="dpbandit/GLMBandit-v0",
    env_kwargs={**P1.env_kwargs, "contexts": "signs", "parameters": "sparse-signs"},
    agents={
        **P1.agents,
        "dp-ucb": {**_DP_UCB, "context_clip": 50**0.5, "moment_clip": 3.5},
        "dp-hdb": {**_DP_HDB, "gradient_clip": 3.5},
    },
    as_printed=P1.as_printed,
)

CASES = {case.name: case for case in (P1, P2)}
