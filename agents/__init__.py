"""Agents: one algorithm per file, each a frozen config whose `make` returns the running agent."""

from typing import Any

from dpbandit.agents.baselines import BestFixed, Uniform
from dpbandit.agents.dp_ucb import DPUCB
from dpbandit.agents.epsilon_greedy import EpsilonGreedy
from dpbandit.agents.lints import LinTS
from dpbandit.agents.linucb import LinUCB

AGENTS: dict[str, Any] = {
    "uniform": Uniform,
    "best-fixed": BestFixed,
    "epsilon-greedy": EpsilonGreedy,
    "linucb": LinUCB,
    "lints": LinTS,
    "dp-ucb": DPUCB,
}
"""Command-line ids."""

__all__ = ["AGENTS", "DPUCB", "BestFixed", "EpsilonGreedy", "LinTS", "LinUCB", "Uniform"]
