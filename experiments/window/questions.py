"""Questions 1 to 3: regret against W, against T, and in dollars where customers expire."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from dpbandit.agents import (
    FTAL,
    PFTAL,
    POCP,
    WDPCOCOL,
    WDPCOCOP,
    Centre,
    OnlineConditionalGradient,
    Uniform,
)
from dpbandit.experiments.window.plan import Plan
from dpbandit.experiments.window.runs import Lines, Panels, Problem, Run, pricing, reference
from dpbandit.specs.protocols import AgentConfig

BALL, SIMPLEX = reference("cocop-ball"), reference("cocol-simplex")
PUBLIC: Mapping[str, AgentConfig] = {
    "FTAL, no privacy": FTAL(),
    "conditional gradient, no privacy": OnlineConditionalGradient(),
    "centre": Centre(),
    "uniform play": Uniform(),
}
LAST_W = " (window-DP, last W)"

Family: TypeAlias = Callable[..., Any]
"""(window=...) -> an agent"""


def windows(plan: Plan) -> Panels:
    """Regret against W, at one epsilon and one horizon."""
    normal, pure = _noises(plan)
    ball: dict[str, Family] = {
        "Gamma, printed": partial(WDPCOCOP, **pure, calibration="paper"),
        "Gamma, exact tree": partial(WDPCOCOP, **pure, mode="exact"),
        "Gamma, lazy tree": partial(WDPCOCOP, **pure),
        "Laplace, lazy tree": partial(WDPCOCOP, **{**pure, "noise": "laplace"}),
        "Gaussian, printed": partial(WDPCOCOP, **normal, calibration="paper"),
        "Gaussian, exact tree": partial(WDPCOCOP, **normal, mode="exact"),
        "Gaussian, lazy tree": partial(WDPCOCOP, **normal),
    }
    simplex: dict[str, Family] = {
        "projection, Gamma": partial(WDPCOCOP, **pure),
        "projection, Gaussian": partial(WDPCOCOP, **normal),
        "linear oracle, Gamma": partial(WDPCOCOL, **pure),
        "linear oracle, Gaussian": partial(WDPCOCOL, **normal),
        "linear oracle, Gaussian, line search": partial(WDPCOCOL, **normal, step="line-search"),
        "linear oracle, Gaussian, printed steps": partial(WDPCOCOL, **normal, parameters="paper"),
    }
    found: dict[str, Lines] = {}
    for problem, families in ((BALL, ball), (SIMPLEX, simplex)):
        lines = {
            f"{label}{LAST_W}": [
                _run(problem, label, family(window=W), plan.horizon, W, plan) for W in plan.windows
            ]
            for label, family in families.items()
        }
        found[problem.name] = lines | _yardsticks(problem, plan.horizon, plan)
    return found


def horizons(plan: Plan) -> Panels:
    """Regret against T, at one epsilon."""
    normal, pure = _noises(plan)
    ball: dict[str, AgentConfig] = {}
    simplex: dict[str, AgentConfig] = {}
    for W in plan.fixed_windows:
        ball[f"COCOP, Gaussian, W = {W}"] = WDPCOCOP(**normal, window=W)
        ball[f"COCOP, Gamma, W = {W}"] = WDPCOCOP(**pure, window=W)
        simplex[f"COCOP, Gaussian, W = {W}"] = WDPCOCOP(**normal, window=W)
        simplex[f"COCOL, Gaussian, W = {W}"] = WDPCOCOL(**normal, window=W)
    ball |= {
        "PFTAL, Gaussian": PFTAL(**normal),
        "PFTAL, Gamma": PFTAL(**pure),
        "POCP": POCP(epsilon=plan.epsilon, delta=plan.delta),
        "FTAL, no privacy": FTAL(),
    }
    simplex |= {
        "PFTAL, Gaussian": PFTAL(**normal),
        "FTAL, no privacy": FTAL(),
        "conditional gradient, no privacy": OnlineConditionalGradient(),
    }
    found: dict[str, Lines] = {}
    for problem, agents in ((BALL, ball), (SIMPLEX, simplex)):
        lines = {}
        for label, config in agents.items():
            line = [_run(problem, label, config, T, T, plan) for T in plan.horizons]
            lines[_with_promise(label, line[-1])] = line
        longest = plan.horizons[-1]
        dumb = {name: PUBLIC[name] for name in ("centre", "uniform play")}
        for label, config in dumb.items():
            lines[label] = [_run(problem, label, config, longest, longest, plan)]
        found[problem.name] = lines
    return found


def retention(plan: Plan) -> Panels:
    """Dollars against epsilon, where customers are protected for a while or for ever."""
    T, lines = plan.customers, {}
    agents: dict[str, tuple[int | None, Family]] = {}
    for kept in plan.retentions:
        agents[f"COCOP, Gaussian, {kept:,}"] = (
            kept,
            partial(WDPCOCOP, window=None, noise="gaussian", delta=plan.delta),
        )
        agents[f"COCOP, Gamma, {kept:,}"] = kept, partial(WDPCOCOP, window=None)
    agents[f"COCOL, Gaussian, {kept:,}"] = (
        kept,
        partial(WDPCOCOL, window=None, noise="gaussian", delta=plan.delta),
    )
    agents["PFTAL, Gaussian"] = None, partial(PFTAL, noise="gaussian", delta=plan.delta)
    agents["PFTAL, Gamma"] = None, PFTAL
    for label, (kept_for, family) in agents.items():
        problem = pricing(kept_for)
        line = [_run(problem, label, family(epsilon=e), T, e, plan) for e in plan.epsilons]
        words = ", ".join(label.split(", ")[:2])
        lines[_with_promise(words, line[-1])] = line
    named = {"centre": "list prices", "uniform play": "random prices"}
    for label, config in PUBLIC.items():
        if label != "conditional gradient, no privacy":
            words = named.get(label, label)
            lines[words] = [_run(pricing(None), words, config, T, 0, plan)]
    return {"pricing": lines}


def _noises(plan: Plan) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gaussian and Gamma noise at the plan's epsilon."""
    normal = {"epsilon": plan.epsilon, "noise": "gaussian", "delta": plan.delta}
    return normal, {"epsilon": plan.epsilon, "noise": "gamma"}


def _yardsticks(problem: Problem, horizon: int, plan: Plan) -> dict[str, list[Run]]:
    """What nobody's expiry changes: W >= T, no privacy, and the dumb players."""
    normal, pure = _noises(plan)
    agents: dict[str, AgentConfig] = {
        "PFTAL, Gamma (DP)": PFTAL(**pure),
        "PFTAL, Gaussian (DP)": PFTAL(**normal),
        **PUBLIC,
    }
    return {
        label: [_run(problem, label, config, horizon, horizon, plan)]
        for label, config in agents.items()
    }


def _run(
    problem: Problem, agent: str, config: AgentConfig, horizon: int, at: float, plan: Plan
) -> Run:
    return Run(problem=problem, agent=agent, config=config, horizon=horizon, at=at, plan=plan)


def _with_promise(label: str, run: Run) -> str:
    """A label that says what is protected."""
    words = label.partition(", W = ")[0]
    return f"{words} ({run.protected})" if run.protected else words
