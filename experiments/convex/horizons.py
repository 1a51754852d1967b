"""Questions 1 and 2: how regret grows with the horizon, and with the printed sign."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import TypeAlias

from dpbandit.agents import GarberKretzu, PrivateBandit
from dpbandit.experiments.convex.plan import Plan
from dpbandit.experiments.convex.runs import Lines, Panels, Run, yardsticks
from dpbandit.specs.protocols import AgentConfig

Family: TypeAlias = Callable[[Plan], AgentConfig]

GROWTH: dict[str, Family] = {
    "printed, Gaussian": lambda plan: PrivateBandit(
        noise="gaussian", delta=plan.delta, calibration="paper"
    ),
    "printed, Laplace": lambda plan: PrivateBandit(noise="laplace", calibration="paper"),
    "K-norm": lambda plan: PrivateBandit(noise="k-norm"),
    "local": lambda plan: PrivateBandit(noise="local"),
    "Gaussian": lambda plan: PrivateBandit(noise="gaussian", delta=plan.delta),
    "without noise": lambda plan: GarberKretzu(),
}
SIGNS: dict[str, Family] = {
    "printed sign, K-norm": lambda plan: PrivateBandit(noise="k-norm", sign="printed"),
    "printed sign, without noise": lambda plan: GarberKretzu(sign="printed"),
    "K-norm": GROWTH["K-norm"],
    "without noise": GROWTH["without noise"],
}


def growth(plan: Plan) -> Panels:
    """PrivateBandit at epsilon 1 over the horizons, beside itself without noise."""
    return {problem: _lines(problem, GROWTH, plan) for problem in ("p-lin", "p-quad")}


def signs(plan: Plan) -> Panels:
    """The same where its step ascends, as printed."""
    return {"p-lin": _lines("p-lin", SIGNS, plan)}


def _lines(problem: str, families: dict[str, Family], plan: Plan) -> Lines:
    lines = yardsticks(problem, plan, plan.horizons[-1])
    for label, family in families.items():
        lines[label] = [_run(problem, label, family(plan), T, plan) for T in plan.horizons]
    return lines


def _run(problem: str, label: str, config: AgentConfig, horizon: int, plan: Plan) -> Run:
    public = isinstance(config, GarberKretzu)
    run = Run(
        problem=problem,
        agent=f"PrivateBandit, {label}",
        config=config,
        horizon=horizon,
        plan=plan,
        epsilon=inf if public else 1.0,
    )
    if public:
        return run
    printed_sign = "printed sign, " * label.startswith("printed sign")
    twin = replace(run, agent=f"PrivateBandit, {printed_sign}without noise", epsilon=inf)
    return replace(run, without_privacy=twin.name)
