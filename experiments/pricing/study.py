"""The study: every private agent at every epsilon, and what it loses to the best public one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from dpbandit.agents import (
    DPHDB,
    DPUCB,
    FADE,
    FLIPHAT,
    GLMUCB,
    BatchMoment,
    BestFixed,
    DPMoments,
    LinTS,
    LinUCB,
    LogisticTS,
    Priced,
    Uniform,
)
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.files import write_csv
from dpbandit.base.inputs import InputError, whole
from dpbandit.experiments.grid import Cell, Outcome, run_grid
from dpbandit.results.runs import standard_error
from dpbandit.running.certify import certify
from dpbandit.running.environments import problem_maker
from dpbandit.specs.protocols import AgentConfig

Family: TypeAlias = Callable[[float, float], AgentConfig]
"""(epsilon, delta) -> the agent that promises it"""

PRIVATE: dict[str, Family] = {
    "dp-ucb": lambda epsilon, delta: DPUCB(epsilon=epsilon, delta=delta),
    "dp-ucb, moments": lambda epsilon, delta: DPMoments(epsilon=epsilon, delta=delta),
    "dp-ucb, demand": lambda epsilon, delta: Priced(DPUCB(epsilon=epsilon, delta=delta)),
    "dp-hdb": lambda epsilon, delta: DPHDB(epsilon=epsilon, delta=delta),
    "dp-hdb, demand": lambda epsilon, delta: Priced(
        DPHDB(epsilon=epsilon, delta=delta, radius=20.0)  # logits of demand are steep
    ),
    "fade": lambda epsilon, delta: FADE(epsilon=epsilon, delta=delta),
    "batch-moment": lambda epsilon, delta: BatchMoment(epsilon=epsilon, delta=delta),
    "fliphat": lambda epsilon, delta: FLIPHAT(epsilon=epsilon, delta=delta),
}
"""One entry for each private agent; it is left out where it does not fit the environment."""

PUBLIC: dict[str, AgentConfig] = {
    "linucb": LinUCB(),
    "lints": LinTS(),
    "linucb, demand": Priced(LinUCB()),
    "lints, demand": Priced(LinTS()),
    "glm-ucb": GLMUCB(),
    "glm-ucb, demand": Priced(GLMUCB()),
    "logistic-ts, demand": Priced(LogisticTS()),
}
"""Agents without privacy; the best of them, by its mean regret, is what the others lose to."""

BASELINES: dict[str, AgentConfig] = {"uniform": Uniform(), "best fixed": BestFixed()}

ENVIRONMENTS = ("OJPricing", "Recommendation")
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, inf)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much to run."""

    horizon: int = 20_000
    replicas: int = 20
    epsilons: Sequence[float] = EPSILONS
    delta: float = 1e-5
    seed: int = 0

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2)  # there are standard errors


QUICK = Plan(horizon=2_000, replicas=3, epsilons=(0.5, 5.0, inf))


@dataclass(frozen=True)
class Findings:
    """What was found on one environment."""

    environment: str
    unit: str
    """what a reward of 1 is"""
    horizon: int
    private: Mapping[str, Mapping[float, Outcome]]
    """agent -> epsilon -> its run"""
    public: Mapping[str, Outcome]
    baselines: Mapping[str, Outcome]

    @property
    def best_public(self) -> tuple[str, Outcome]:
        """The agent without privacy that has the least mean regret, private ones at infinity too.

        Picked after the fact: it may owe a little of its lead to luck, the price of privacy too.
        """
        runs = dict(self.public)
        for agent, line in self.private.items():
            if inf in line:
                runs[f"{agent} at infinity"] = line[inf]
        return min(runs.items(), key=lambda item: float(final(item[1]).mean()))

    def lost(self, outcome: Outcome) -> Floats:
        """What 1,000 users bring less than with the best public agent, on average, (R,).

        In expectation over the users' answers and paired: all agents meet the same users.
        """
        return 1000 * (final(outcome) - final(self.best_public[1])) / self.horizon

    def table(self) -> pd.DataFrame:
        """One row for each run."""
        runs = [(name, inf, run) for name, run in {**self.baselines, **self.public}.items()]
        runs += [(n, e, run) for n, line in self.private.items() for e, run in line.items()]
        return pd.DataFrame([self._row(*run) for run in runs])

    def _row(self, agent: str, epsilon: float, run: Outcome) -> dict[str, object]:
        regret, lost = final(run), self.lost(run)
        return {
            "environment": self.environment,
            "agent": agent,
            "private": agent in self.private and epsilon < inf,
            "epsilon": epsilon,
            "delta": run.delta,
            "certified_epsilon": run.epsilon,
            "regret": float(regret.mean()),
            "regret_se": standard_error(regret),
            "lost_per_1000": float(lost.mean()),
            "lost_per_1000_se": standard_error(lost),
            "unit": self.unit,
            "beats_uniform_from": lead_from(
                run.marks, run.regret, self.baselines["uniform"].regret
            ),
        }


def study(plan: Plan, out: Path, *, progress: bool = True) -> list[Findings]:
    """Run what is missing below `out`/cells, write `out`/summary.csv, and say what was found."""
    cells = {n: cell for env in ENVIRONMENTS for n, cell in _cells(env, plan).items()}
    outcomes = run_grid(cells, out / "cells", progress=progress)
    findings = [_findings(env, plan, outcomes) for env in ENVIRONMENTS]
    table = pd.concat([found.table() for found in findings], ignore_index=True)
    table["beats_uniform_from"] = table["beats_uniform_from"].astype("Int64")
    write_csv(out / "summary.csv", table)
    return findings


def lead_from(marks: Ints, regret: Floats, uniform: Floats) -> int | None:
    """The first mark from which on `regret` stays below `uniform`, both (marks, R), or None.

    Below: by two standard errors of the mean of the paired difference.

    >>> ahead = np.array([[-1.0, -1.1], [2.0, 2.1], [3.0, 3.1]])
    >>> lead_from(np.array([1, 10, 100]), -ahead, np.zeros((3, 2)))
    10
    """
    gain = uniform - regret
    error = gain.std(axis=1, ddof=1) / np.sqrt(gain.shape[1])
    behind = np.flatnonzero(gain.mean(axis=1) <= 2 * error)
    first = behind[-1] + 1 if len(behind) else 0
    return int(marks[first]) if first < len(marks) else None


def final(outcome: Outcome) -> Floats:
    """Regret after the last round, (R,)."""
    last: Floats = outcome.regret[-1]
    return last


def _cells(environment: str, plan: Plan) -> dict[str, Cell]:
    """Every run on one environment, by the name of its file."""
    configs = {_name(environment, n): c for n, c in {**BASELINES, **PUBLIC}.items()}
    for agent, family in PRIVATE.items():
        for epsilon in plan.epsilons:
            configs[_name(environment, agent, epsilon)] = family(epsilon, plan.delta)
    spec = problem_maker(environment)(horizon=plan.horizon).spec
    cells = {}
    for name, config in configs.items():
        try:
            certify(config, spec, accountants=False)
        except InputError:
            continue
        cells[name] = Cell(
            environment=environment,
            config=config,
            horizon=plan.horizon,
            replicas=plan.replicas,
            seed=plan.seed,
        )
    return cells


def _findings(environment: str, plan: Plan, outcomes: Mapping[str, Outcome]) -> Findings:
    def found(agents: Mapping[str, object]) -> dict[str, Outcome]:
        names = {agent: _name(environment, agent) for agent in agents}
        return {agent: outcomes[name] for agent, name in names.items() if name in outcomes}

    lines = {}
    for agent in PRIVATE:
        names = {epsilon: _name(environment, agent, epsilon) for epsilon in plan.epsilons}
        line = {e: outcomes[name] for e, name in names.items() if name in outcomes}
        if line:
            lines[agent] = line
    return Findings(
        environment=environment,
        unit=problem_maker(environment)(horizon=plan.horizon).spec.reward_unit,
        horizon=plan.horizon,
        private=lines,
        public=found(PUBLIC),
        baselines=found(BASELINES),
    )


def _name(environment: str, agent: str, epsilon: float | None = None) -> str:
    words = agent.replace(", ", "-").replace(" ", "-")
    return f"{environment}/{words}" + ("" if epsilon is None else f"/epsilon-{epsilon:g}")
