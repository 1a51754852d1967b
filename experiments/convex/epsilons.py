"""Question 3: what privacy costs at every epsilon, and which agent to use."""

from collections.abc import Callable
from math import inf
from typing import TypeAlias

from dpbandit.agents import FTAL, OGD, PFTAL, BanditPFTAL, GarberKretzu, PrivateBandit
from dpbandit.convex import ConvexSpec
from dpbandit.experiments.convex.plan import Plan
from dpbandit.experiments.convex.runs import PROBLEMS, Lines, Panels, Run, yardsticks
from dpbandit.protocols import AgentConfig

Family: TypeAlias = Callable[[float, float, float], AgentConfig]
"""(epsilon, delta, offset) -> the agent that promises it"""

PLAIN: dict[str, Family] = {
    "PrivateBandit, printed": lambda epsilon, delta, offset: PrivateBandit(
        epsilon=epsilon, noise="laplace", calibration="paper", offset=offset
    ),
    "PrivateBandit, K-norm": lambda epsilon, delta, offset: PrivateBandit(
        epsilon=epsilon, noise="k-norm", offset=offset
    ),
    "PrivateBandit, local": lambda epsilon, delta, offset: PrivateBandit(
        epsilon=epsilon, noise="local", offset=offset
    ),
    "PrivateBandit, Gaussian": lambda epsilon, delta, offset: PrivateBandit(
        epsilon=epsilon, delta=delta, noise="gaussian", offset=offset
    ),
}
"""Without privacy they are one and the same agent."""

OWN: dict[str, Family] = {
    "PrivateBandit, tuned": lambda epsilon, delta, offset: PrivateBandit(
        epsilon=epsilon, delta=delta, noise="gaussian", parameters="tuned", offset=offset
    ),
    "BanditPFTAL, Gaussian": lambda epsilon, delta, offset: BanditPFTAL(
        epsilon=epsilon, delta=delta, noise="gaussian", beta="adaptive", offset=offset
    ),
    "PFTAL, K-norm": lambda epsilon, delta, offset: PFTAL(epsilon=epsilon),
    "PFTAL, Gaussian": lambda epsilon, delta, offset: PFTAL(
        epsilon=epsilon, delta=delta, noise="gaussian"
    ),
}
"""PFTAL is told data, the others are told values."""

PUBLIC: dict[str, AgentConfig] = {"OGD": OGD(), "FTAL": FTAL()}


def prices(plan: Plan) -> Panels:
    """The private agents at every epsilon, beside public ones."""
    return {problem: _lines(problem, plan) for problem in ("p-quad", "pricing")}


def _lines(problem: str, plan: Plan) -> Lines:
    offset = _offset(problem, plan)

    def run(agent: str, config: AgentConfig, epsilon: float = inf, without: str = "") -> Run:
        return Run(
            problem=problem,
            agent=agent,
            config=config,
            horizon=plan.users,
            plan=plan,
            epsilon=epsilon,
            without_privacy=without,
        )

    lines = yardsticks(problem, plan, plan.users)
    for label, family in {**PLAIN, **OWN}.items():
        public = run(label, family(inf, plan.delta, offset))
        if label in PLAIN:
            public = run("PrivateBandit, without noise", GarberKretzu(offset=offset))
        lines[label] = [
            public
            if epsilon == inf
            else run(label, family(epsilon, plan.delta, offset), epsilon, public.name)
            for epsilon in plan.epsilons
        ]
    return lines | {name: [run(name, config)] for name, config in PUBLIC.items()}


def _offset(problem: str, plan: Plan) -> float:
    """Public. Profits are far from 0, so the middle of their range is taken off them; on p-quad the
    best values are near 0 as they are."""
    if problem == "p-quad":
        return 0.0
    spec = PROBLEMS[problem].spec(plan.users)
    assert isinstance(spec, ConvexSpec)
    return sum(spec.loss.value_range) / 2
