"""Agents: one algorithm per file, each a frozen config whose `make` returns the running agent."""

from typing import Any

from dpbandit.agents.bandit_ftal import BanditFTAL
from dpbandit.agents.bandit_pftal import BanditPFTAL
from dpbandit.agents.baselines import BestFixed, Uniform
from dpbandit.agents.batch_moment import BatchMoment
from dpbandit.agents.centre import Centre
from dpbandit.agents.dp_hdb import DPHDB
from dpbandit.agents.dp_ucb import DPUCB
from dpbandit.agents.epsilon_greedy import EpsilonGreedy
from dpbandit.agents.fade import FADE
from dpbandit.agents.fkm import FKM
from dpbandit.agents.fliphat import FLIPHAT
from dpbandit.agents.ftal import FTAL
from dpbandit.agents.garber_kretzu import GarberKretzu
from dpbandit.agents.glm_ucb import GLMUCB
from dpbandit.agents.greedy import Greedy
from dpbandit.agents.lasso_bandit import LassoBandit
from dpbandit.agents.linear_ftrl import LinearFTRL
from dpbandit.agents.lints import LinTS
from dpbandit.agents.linucb import LinUCB
from dpbandit.agents.logistic_ts import LogisticTS
from dpbandit.agents.noisy_oco import NoisyOCO
from dpbandit.agents.ogd import OGD
from dpbandit.agents.online_frank_wolfe import OnlineFrankWolfe
from dpbandit.agents.pftal import PFTAL
from dpbandit.agents.private_bandit import PrivateBandit

CONTEXTUAL: dict[str, Any] = {
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
"""Agents that choose arms or prices, by command-line id."""

CONVEX: dict[str, Any] = {
    "uniform": Uniform,
    "best-fixed": BestFixed,
    "centre": Centre,
    "ogd": OGD,
    "ftal": FTAL,
    "pftal": PFTAL,
    "linear-ftrl": LinearFTRL,
    "bandit-ftal": BanditFTAL,
    "bandit-pftal": BanditPFTAL,
    "fkm": FKM,
    "garber-kretzu": GarberKretzu,
    "noisy-oco": NoisyOCO,
    "private-bandit": PrivateBandit,
}
"""Agents that choose points of a convex domain, by command-line id."""

STOCHASTIC: dict[str, Any] = {
    "uniform": Uniform,
    "best-fixed": BestFixed,
    "centre": Centre,
}
"""Agents for streams of independent users, by command-line id."""

EXPERTS: dict[str, Any] = {
    "uniform": Uniform,
    "best-fixed": BestFixed,
}
"""Agents that follow experts, by command-line id."""

AGENTS: dict[str, Any] = {**CONTEXTUAL, **CONVEX, **STOCHASTIC, **EXPERTS}
"""All of them."""

__all__ = [
    "AGENTS",
    "CONTEXTUAL",
    "CONVEX",
    "DPHDB",
    "DPUCB",
    "EXPERTS",
    "FADE",
    "FKM",
    "FLIPHAT",
    "FTAL",
    "GLMUCB",
    "OGD",
    "PFTAL",
    "STOCHASTIC",
    "BanditFTAL",
    "BanditPFTAL",
    "BatchMoment",
    "BestFixed",
    "Centre",
    "EpsilonGreedy",
    "GarberKretzu",
    "Greedy",
    "LassoBandit",
    "LinTS",
    "LinUCB",
    "LinearFTRL",
    "LogisticTS",
    "NoisyOCO",
    "OnlineFrankWolfe",
    "PrivateBandit",
    "Uniform",
]
