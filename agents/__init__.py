"""Agents: one algorithm per file, each a frozen config whose `make` returns the running agent."""

from typing import Any

from dpbandit.agents.adaptive_sparse_vector_experts import AdaptiveSparseVectorExperts
from dpbandit.agents.ball_experts import BallExperts
from dpbandit.agents.bandit_ftal import BanditFTAL
from dpbandit.agents.bandit_pftal import BanditPFTAL
from dpbandit.agents.baselines import BestFixed, Uniform
from dpbandit.agents.batch_moment import BatchMoment
from dpbandit.agents.binary_tree_experts import BinaryTreeExperts
from dpbandit.agents.centre import Centre
from dpbandit.agents.dp_ftrl import DPFTRL
from dpbandit.agents.dp_hdb import DPHDB
from dpbandit.agents.dp_pofw import DPPOFW
from dpbandit.agents.dp_tofw import DPTOFW
from dpbandit.agents.dp_ucb import DPUCB
from dpbandit.agents.epsilon_greedy import EpsilonGreedy
from dpbandit.agents.exponential_mechanism import ExponentialLeader
from dpbandit.agents.fade import FADE
from dpbandit.agents.fkm import FKM
from dpbandit.agents.fliphat import FLIPHAT
from dpbandit.agents.follow_the_leader import FollowTheLeader
from dpbandit.agents.ftal import FTAL
from dpbandit.agents.garber_kretzu import GarberKretzu
from dpbandit.agents.glm_ucb import GLMUCB
from dpbandit.agents.greedy import Greedy
from dpbandit.agents.hedge import Hedge
from dpbandit.agents.lasso_bandit import LassoBandit
from dpbandit.agents.least_squares import LeastSquares
from dpbandit.agents.linear_ftrl import LinearFTRL
from dpbandit.agents.lints import LinTS
from dpbandit.agents.linucb import LinUCB
from dpbandit.agents.local_md import LocalMD
from dpbandit.agents.localised_tofw import LocalisedTOFW
from dpbandit.agents.logistic_ts import LogisticTS
from dpbandit.agents.net_experts import NetExperts
from dpbandit.agents.noisy_ftrl import NoisyFTRL
from dpbandit.agents.noisy_oco import NoisyOCO
from dpbandit.agents.noisy_sfw import NoisySFW
from dpbandit.agents.noisy_sgd import NoisySGD
from dpbandit.agents.ogd import OGD
from dpbandit.agents.online_conditional_gradient import OnlineConditionalGradient
from dpbandit.agents.online_frank_wolfe import OnlineFrankWolfe
from dpbandit.agents.pftal import PFTAL
from dpbandit.agents.phased_sgd import PhasedSGD
from dpbandit.agents.pocp import POCP
from dpbandit.agents.potential_experts import PotentialExperts
from dpbandit.agents.pqftl import PQFTL
from dpbandit.agents.private_bandit import PrivateBandit
from dpbandit.agents.recursive_frank_wolfe import RecursiveFrankWolfe
from dpbandit.agents.shrinking_dartboard import ShrinkingDartboard
from dpbandit.agents.snowball_sgd import SnowballSGD
from dpbandit.agents.sparse_vector_experts import SparseVectorExperts
from dpbandit.agents.wdp_cocol import WDPCOCOL
from dpbandit.agents.wdp_cocop import WDPCOCOP

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
    "dp-ftrl": DPFTRL,
    "wdp-cocop": WDPCOCOP,
    "wdp-cocol": WDPCOCOL,
    "online-conditional-gradient": OnlineConditionalGradient,
    "pocp": POCP,
    "pqftl": PQFTL,
    "private-bandit": PrivateBandit,
    "net-experts": NetExperts,
    "ball-experts": BallExperts,
}
"""Agents that choose points of a convex domain, by command-line id."""

STOCHASTIC: dict[str, Any] = {
    "uniform": Uniform,
    "best-fixed": BestFixed,
    "centre": Centre,
    "recursive-frank-wolfe": RecursiveFrankWolfe,
    "dp-tofw": DPTOFW,
    "localised-tofw": LocalisedTOFW,
    "dp-pofw": DPPOFW,
    "noisy-sfw": NoisySFW,
    "noisy-sgd": NoisySGD,
    "phased-sgd": PhasedSGD,
    "snowball-sgd": SnowballSGD,
    "local-md": LocalMD,
    "least-squares": LeastSquares,
}
"""Agents for streams of independent users, by command-line id."""

EXPERTS: dict[str, Any] = {
    "uniform": Uniform,
    "best-fixed": BestFixed,
    "hedge": Hedge,
    "follow-the-leader": FollowTheLeader,
    "exponential-mechanism": ExponentialLeader,
    "shrinking-dartboard": ShrinkingDartboard,
    "noisy-ftrl": NoisyFTRL,
    "sparse-vector-experts": SparseVectorExperts,
    "adaptive-sparse-vector-experts": AdaptiveSparseVectorExperts,
    "binary-tree-experts": BinaryTreeExperts,
    "potential-experts": PotentialExperts,
}
"""Agents that follow experts, by command-line id."""

AGENTS: dict[str, Any] = {**CONTEXTUAL, **CONVEX, **STOCHASTIC, **EXPERTS}
"""All of them."""

__all__ = [
    "AGENTS",
    "CONTEXTUAL",
    "CONVEX",
    "DPFTRL",
    "DPHDB",
    "DPPOFW",
    "DPTOFW",
    "DPUCB",
    "EXPERTS",
    "FADE",
    "FKM",
    "FLIPHAT",
    "FTAL",
    "GLMUCB",
    "OGD",
    "PFTAL",
    "POCP",
    "PQFTL",
    "STOCHASTIC",
    "WDPCOCOL",
    "WDPCOCOP",
    "AdaptiveSparseVectorExperts",
    "BallExperts",
    "BanditFTAL",
    "BanditPFTAL",
    "BatchMoment",
    "BestFixed",
    "BinaryTreeExperts",
    "Centre",
    "EpsilonGreedy",
    "ExponentialLeader",
    "FollowTheLeader",
    "GarberKretzu",
    "Greedy",
    "Hedge",
    "LassoBandit",
    "LeastSquares",
    "LinTS",
    "LinUCB",
    "LinearFTRL",
    "LocalMD",
    "LocalisedTOFW",
    "LogisticTS",
    "NetExperts",
    "NoisyFTRL",
    "NoisyOCO",
    "NoisySFW",
    "NoisySGD",
    "OnlineConditionalGradient",
    "OnlineFrankWolfe",
    "PhasedSGD",
    "PotentialExperts",
    "PrivateBandit",
    "RecursiveFrankWolfe",
    "ShrinkingDartboard",
    "SnowballSGD",
    "SparseVectorExperts",
    "Uniform",
]
