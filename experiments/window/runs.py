"""One run of the study: an agent on a problem, what it promises and what it found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, NamedTuple, TypeAlias

from dpbandit.base.arrays import Floats
from dpbandit.experiments.grid import Cell, Outcome
from dpbandit.experiments.window.plan import Plan
from dpbandit.privacy.certificate import Certificate
from dpbandit.results.runs import standard_error
from dpbandit.running.certify import certify
from dpbandit.running.environments import problem_maker
from dpbandit.specs.protocols import AgentConfig, Spec


def protected(proof: Certificate) -> str:
    """What a promise is of: "window-DP, last W", "conditional", "DP"; nothing if there is none."""
    return "" if proof.epsilon in (0.0, inf) else proof.ledger.brief or "DP"


class Problem(NamedTuple):
    """An environment whose agents are told data."""

    name: str
    environment: str
    kwargs: Mapping[str, Any]

    def spec(self, horizon: int) -> Spec:
        """What is public of it."""
        return problem_maker(self.environment)(**self.kwargs, horizon=horizon).spec


def reference(instance: str) -> Problem:
    """A case of `window_cases`."""
    return Problem(instance, "OnlineConvex", {"instance": instance})


def pricing(retention: int | None) -> Problem:
    """Three goods; customers are protected until `retention` more have come, or for ever."""
    kwargs = {"feedback": "datum", "retention": retention}
    return Problem("pricing", "ConvexPricing", kwargs)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One agent on one problem."""

    problem: Problem
    agent: str
    """its name in tables and files"""
    config: AgentConfig = field(repr=False)
    horizon: int
    at: float
    """where it stands on its line: W, T or epsilon"""
    plan: Plan = field(repr=False)

    @cached_property
    def proof(self) -> Certificate:
        """What it promises."""
        return certify(self.config, self.problem.spec(self.horizon), accountants=False)

    @property
    def protected(self) -> str:
        """In a few words, see `protected`."""
        return protected(self.proof)

    @property
    def name(self) -> str:
        """Of its file."""
        retention = self.problem.kwargs.get("retention")
        kept = f"-retention-{retention}" if retention else ""
        words = f"{self.problem.name}/{self.agent}".replace(", ", "-").replace(" ", "-")
        return f"{words}/{self.at:g}{kept}-T-{self.horizon}"

    def cell(self) -> Cell:
        """What to run."""
        return Cell(
            environment=self.problem.environment,
            env_kwargs=self.problem.kwargs,
            config=self.config,
            horizon=self.horizon,
            replicas=self.plan.replicas,
            seed=self.plan.seed,
        )


class Found(NamedTuple):
    """A run, run."""

    run: Run
    outcome: Outcome

    @property
    def regret(self) -> Floats:
        """After the last round, (R,)."""
        last: Floats = self.outcome.regret[-1]
        return last

    def row(self) -> dict[str, object]:
        """What a table of all runs says; privacy never without the words what it is of."""
        run, per_1000 = self.run, 1000 * self.regret / self.run.horizon
        return {
            "problem": run.problem.name,
            "retention": run.problem.kwargs.get("retention"),
            "agent": run.agent,
            "config": repr(run.config),
            "horizon": run.horizon,
            "certified_epsilon": self.outcome.epsilon,
            "delta": self.outcome.delta,
            "protected": run.protected,
            "notion": run.proof.notion,
            "regret": float(self.regret.mean()),
            "regret_se": standard_error(self.regret),
            "regret_per_1000": float(per_1000.mean()),
            "regret_per_1000_se": standard_error(per_1000),
        }


Lines: TypeAlias = Mapping[str, Sequence[Run]]
"""label -> runs along an axis; one run alone is a yardstick"""
Panels: TypeAlias = Mapping[str, Lines]
"""problem -> its lines"""
FoundLines: TypeAlias = Mapping[str, Sequence[Found]]
FoundPanels: TypeAlias = Mapping[str, FoundLines]
