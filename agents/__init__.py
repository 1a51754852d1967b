"""Agents: one algorithm per file, each a frozen config whose `make` returns the running agent."""

from typing import Any

from dpbandit.agents.baselines import BestFixed, Uniform
from dpbandit.agents.batch_moment import BatchMoment
from dpbandit.agents.dp_hdb import DPHDB
from dpbandit.agents.dp_ucb import DPUCB
from dpbandit.agents.epsilon_greedy import EpsilonGreedy
from dpbandit.agents.fade import FADE
from dpbandit.agents.fliphat import FLIPHAT
from dpbandit.agents.glm_ucb import GLMUCB
from dpbandit.agents.greedy import Greedy
from dpbandit.agents.lasso_bandit import LassoBandit
from dpbandit.agents.lints import LinTS
from dpbandit.agents.linucb import LinUCB
from dpbandit.agents.logistic_ts import LogisticTS
from dpbandit.agents.online_frank_wolfe import OnlineFrankWolfe

AGENTS: dict[str, Any] = {
    "uniform": Uniform,
    "best-fixed": BestFixed,
    "epsilon-greedy": EpsilonGreedy,
    "linucb": LinUCB,
    "lints": LinTS,
    "greedy": Greedy,
    "lasso-bandit": LassoBandit,
    "glm-ucb": GLMUCB,
    "logistic-ts": LogisticTS,
    "dp-ucb": DPUCB,
    "online-frank-wolfe": OnlineFrankWolfe,
    "dp-hdb": DPHDB,
    "fliphat": FLIPHAT,
    "batch-moment": BatchMoment,
    "fade": FADE,
}
"""Command-line ids."""

__all__ = [
    "AGENTS",
    "DPHDB",
    "DPUCB",
    "FADE",
    "FLIPHAT",
    "GLMUCB",
    "BatchMoment",
    "BestFixed",
    "EpsilonGreedy",
    "Greedy",
    "LassoBandit",
    "LinTS",
    "LinUCB",
    "LogisticTS",
    "OnlineFrankWolfe",
    "Uniform",
]
