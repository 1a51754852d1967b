"""One run of the study: an agent on a problem, and what it found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple, TypeAlias

from dpbandit.agents import FTAL, OGD, PFTAL, Centre, Uniform
from dpbandit.base.arrays import Floats
from dpbandit.experiments.convex.plan import Plan
from dpbandit.experiments.grid import Cell, Outcome
from dpbandit.results.runs import standard_error
from dpbandit.running.environments import problem_maker
from dpbandit.specs.protocols import AgentConfig, Spec

_TOLD_DATA = (FTAL, OGD, PFTAL)


class Problem(NamedTuple):
    """Environments with the same losses: one tells their values, the other their data."""

    values: tuple[str, dict[str, Any]]
    """id and arguments"""
    data: tuple[str, dict[str, Any]]

    def spec(self, horizon: int) -> Spec:
        """What is public of it."""
        environment, kwargs = self.values
        return problem_maker(environment)(**kwargs, horizon=horizon).spec


def _convex(**kwargs: Any) -> Problem:
    return Problem(("ConvexBandit", kwargs), ("OnlineConvex", kwargs))


PROBLEMS = {
    "p-lin": _convex(instance="p-lin"),
    "p-quad": _convex(instance="p-quad"),
    "pricing": Problem(("ConvexPricing", {}), ("ConvexPricing", {"feedback": "datum"})),
    "sees the point": _convex(instance="strongly-adaptive"),
    "saw the point before": _convex(loss="offset-quadratic", dim=1, adversary="adaptive"),
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One agent on one problem."""

    problem: str
    agent: str
    """its name in files"""
    config: AgentConfig = field(repr=False)
    horizon: int
    plan: Plan = field(repr=False)
    epsilon: float = inf
    without_privacy: str = ""
    """the name of the run that is the same but for privacy"""

    @property
    def name(self) -> str:
        """Of its file."""
        words = f"{self.problem}/{self.agent}".replace(", ", "-").replace(" ", "-")
        return f"{words}/epsilon-{self.epsilon:g}-T-{self.horizon}"

    def cell(self) -> Cell:
        """What to run; agents that learn from data meet the problem that tells them."""
        problem = PROBLEMS[self.problem]
        told = problem.data if isinstance(self.config, _TOLD_DATA) else problem.values
        return Cell(
            environment=told[0],
            env_kwargs=told[1],
            config=self.config,
            horizon=self.horizon,
            replicas=self.plan.replicas,
            seed=self.plan.seed,
        )


def yardsticks(problem: str, plan: Plan, horizon: int) -> dict[str, list[Run]]:
    """The dumb players, one run each."""
    dumb: dict[str, AgentConfig] = {"uniform play": Uniform(), "centre": Centre()}
    return {
        label: [Run(problem=problem, agent=label, config=config, horizon=horizon, plan=plan)]
        for label, config in dumb.items()
    }


Lines: TypeAlias = Mapping[str, Sequence[Run]]
"""label -> runs along an axis; one run alone is a yardstick"""
Panels: TypeAlias = Mapping[str, Lines]
"""problem -> its lines"""


class Found(NamedTuple):
    """A run, run."""

    run: Run
    outcome: Outcome
    public: Outcome | None
    """the same without privacy"""

    @property
    def regret(self) -> Floats:
        """After the last round, (R,)."""
        last: Floats = self.outcome.regret[-1]
        return last

    @property
    def excess(self) -> Floats | None:
        """Regret minus that of the run without privacy, which met the same users, (R,)."""
        return None if self.public is None else self.regret - self.public.regret[-1]

    def row(self) -> dict[str, object]:
        """What a table of all runs says."""
        per_round = self.regret / self.run.horizon
        excess = self.excess
        return {
            "problem": self.run.problem,
            "agent": self.run.agent,
            "horizon": self.run.horizon,
            "epsilon": self.run.epsilon,
            "delta": self.outcome.delta,
            "certified_epsilon": self.outcome.epsilon,
            "regret": float(self.regret.mean()),
            "regret_se": standard_error(self.regret),
            "regret_per_round": float(per_round.mean()),
            "regret_per_round_se": standard_error(per_round),
            "excess": None if excess is None else float(excess.mean()),
            "excess_se": None if excess is None else standard_error(excess),
        }


FoundLines: TypeAlias = Mapping[str, Sequence[Found]]
FoundPanels: TypeAlias = Mapping[str, FoundLines]
