"""Question 3: what privacy costs at every epsilon, and which agent to use."""

from collections.abc import Callable
from math import inf
from typing import TypeAlias

from dpbandit.agents import FTAL, OGD, PFTAL, BanditPFTAL, GarberKretzu, PrivateBandit
from dpbandit.experiments.convex.plan import Plan
from dpbandit.experiments.convex.runs import Lines, Panels, Run, yardsticks
from dpbandit.specs.protocols import AgentConfig

Family: TypeAlias = Callable[[float, float], AgentConfig]
"""(epsilon, delta) -> the agent that promises it"""

PLAIN: dict[str, Family] = {
    "PrivateBandit, printed": lambda epsilon, delta: PrivateBandit(
        epsilon=epsilon, noise="laplace", calibration="paper"
    ),
    "PrivateBandit, K-norm": lambda epsilon, delta: PrivateBandit(epsilon=epsilon, noise="k-norm"),
    "PrivateBandit, local": lambda epsilon, delta: PrivateBandit(epsilon=epsilon, noise="local"),
    "PrivateBandit, Gaussian": lambda epsilon, delta: PrivateBandit(
        epsilon=epsilon, delta=delta, noise="gaussian"
    ),
}
"""Without privacy they are one and the same agent."""

OWN: dict[str, Family] = {
    "PrivateBandit, tuned": lambda epsilon, delta: PrivateBandit(
        epsilon=epsilon, delta=delta, noise="gaussian", parameters="tuned"
    ),
    "BanditPFTAL, Gaussian": lambda epsilon, delta: BanditPFTAL(
        epsilon=epsilon, delta=delta, noise="gaussian"
    ),
    "PFTAL, K-norm": lambda epsilon, delta: PFTAL(epsilon=epsilon),
    "PFTAL, Gaussian": lambda epsilon, delta: PFTAL(epsilon=epsilon, delta=delta, noise="gaussian"),
}
"""PFTAL is told data, the others are told values."""

PUBLIC: dict[str, AgentConfig] = {"OGD": OGD(), "FTAL": FTAL()}


def prices(plan: Plan) -> Panels:
    """The private agents at every epsilon, beside public ones."""
    return {problem: _lines(problem, plan) for problem in ("p-quad", "pricing")}


def _lines(problem: str, plan: Plan) -> Lines:
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
        public = run(label, family(inf, plan.delta))
        if label in PLAIN:
            public = run("PrivateBandit, without noise", GarberKretzu())
        lines[label] = [
            public
            if epsilon == inf
            else run(label, family(epsilon, plan.delta), epsilon, public.name)
            for epsilon in plan.epsilons
        ]
    return lines | {name: [run(name, config)] for name, config in PUBLIC.items()}
