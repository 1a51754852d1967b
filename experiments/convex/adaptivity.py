"""Question 4: adversaries that see the point before they choose the loss."""

from collections.abc import Callable
from math import inf
from typing import TypeAlias

from dpbandit.agents import FKM, FTAL, PFTAL, BanditFTAL, BanditPFTAL, GarberKretzu, PrivateBandit
from dpbandit.experiments.convex.plan import Plan
from dpbandit.experiments.convex.runs import Lines, Panels, Run, yardsticks
from dpbandit.specs.protocols import AgentConfig

Family: TypeAlias = Callable[[float, Plan], AgentConfig]
"""(exploring step, plan) -> agent"""

AGENTS: dict[str, Family] = {
    "BanditFTAL": lambda beta, plan: BanditFTAL(beta=beta),
    "GarberKretzu": lambda beta, plan: GarberKretzu(zeta=beta),
    "FKM": lambda beta, plan: FKM(zeta=beta),
    "PrivateBandit, K-norm": lambda beta, plan: PrivateBandit(noise="k-norm", zeta=beta),
    "BanditPFTAL, Gaussian": lambda beta, plan: BanditPFTAL(
        beta=beta, noise="gaussian", delta=plan.delta
    ),
    "PFTAL, K-norm, full information": lambda beta, plan: PFTAL(),
    "FTAL, full information": lambda beta, plan: FTAL(),
}


def adversaries(plan: Plan) -> Panels:
    """Offsets that follow the sign of this round's exploration, and of the round's before.

    They are made for agents that explore with steps of T^(-1/3), which all of these do.
    """
    return {p: _lines(p, plan) for p in ("sees the point", "saw the point before")}


def _lines(problem: str, plan: Plan) -> Lines:
    lines = yardsticks(problem, plan, plan.adaptive_horizons[-1])
    for label, family in AGENTS.items():
        configs = {T: family(min(0.5, T ** (-1 / 3)), plan) for T in plan.adaptive_horizons}
        lines[label] = [
            Run(
                problem=problem,
                agent=label,
                config=config,
                horizon=T,
                plan=plan,
                epsilon=getattr(config, "epsilon", inf),
            )
            for T, config in configs.items()
        ]
    return lines
