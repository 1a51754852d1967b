"""Agents: one algorithm per file, each a frozen config whose `make` returns the running agent."""

from typing import Any

from dpbandit.agents.baselines import BestFixed, Uniform
from dpbandit.agents.contextual.batch_moment import BatchMoment
from dpbandit.agents.contextual.demand import Priced
from dpbandit.agents.contextual.dp_hdb import DPHDB
from dpbandit.agents.contextual.dp_hdb_choices import DPHDBChoices
from dpbandit.agents.contextual.dp_moments import DPMoments
from dpbandit.agents.contextual.dp_ucb import DPUCB
from dpbandit.agents.contextual.epsilon_greedy import EpsilonGreedy
from dpbandit.agents.contextual.fade import FADE
from dpbandit.agents.contextual.fliphat import FLIPHAT
from dpbandit.agents.contextual.glm_ucb import GLMUCB
from dpbandit.agents.contextual.greedy import Greedy
from dpbandit.agents.contextual.lasso_bandit import LassoBandit
from dpbandit.agents.contextual.lints import LinTS
from dpbandit.agents.contextual.linucb import LinUCB
from dpbandit.agents.contextual.logistic_ts import LogisticTS
from dpbandit.agents.contextual.online_frank_wolfe import OnlineFrankWolfe
from dpbandit.agents.contextual.shariff_sheffet_ucb import ShariffSheffetUCB
from dpbandit.agents.convex.bandit_ftal import BanditFTAL
from dpbandit.agents.convex.bandit_pftal import BanditPFTAL
from dpbandit.agents.convex.centre import Centre
from dpbandit.agents.convex.dp_ftrl import DPFTRL
from dpbandit.agents.convex.fkm import FKM
from dpbandit.agents.convex.ftal import FTAL
from dpbandit.agents.convex.garber_kretzu import GarberKretzu
from dpbandit.agents.convex.linear_ftrl import LinearFTRL
from dpbandit.agents.convex.noisy_oco import NoisyOCO
from dpbandit.agents.convex.ogd import OGD
from dpbandit.agents.convex.online_conditional_gradient import OnlineConditionalGradient
from dpbandit.agents.convex.pftal import PFTAL
from dpbandit.agents.convex.pocp import POCP
from dpbandit.agents.convex.pqftl import PQFTL
from dpbandit.agents.convex.private_bandit import PrivateBandit
from dpbandit.agents.convex.wdp_cocol import WDPCOCOL
from dpbandit.agents.convex.wdp_cocop import WDPCOCOP
from dpbandit.agents.experts.adaptive_sparse_vector_experts import AdaptiveSparseVectorExperts
from dpbandit.agents.experts.ball_experts import BallExperts
from dpbandit.agents.experts.binary_tree_experts import BinaryTreeExperts
from dpbandit.agents.experts.exponential_mechanism import ExponentialLeader
from dpbandit.agents.experts.follow_the_leader import FollowTheLeader
from dpbandit.agents.experts.hedge import Hedge
from dpbandit.agents.experts.net_experts import NetExperts
from dpbandit.agents.experts.noisy_ftrl import NoisyFTRL
from dpbandit.agents.experts.potential_experts import PotentialExperts
from dpbandit.agents.experts.shrinking_dartboard import ShrinkingDartboard
from dpbandit.agents.experts.sparse_vector_experts import SparseVectorExperts
from dpbandit.agents.old_spellings import accept
from dpbandit.agents.streams.dp_pofw import DPPOFW
from dpbandit.agents.streams.dp_tofw import DPTOFW
from dpbandit.agents.streams.least_squares import LeastSquares
from dpbandit.agents.streams.local_md import LocalMD
from dpbandit.agents.streams.localised_tofw import LocalisedTOFW
from dpbandit.agents.streams.noisy_sfw import NoisySFW
from dpbandit.agents.streams.noisy_sgd import NoisySGD
from dpbandit.agents.streams.phased_sgd import PhasedSGD
from dpbandit.agents.streams.recursive_frank_wolfe import RecursiveFrankWolfe
from dpbandit.agents.streams.snowball_sgd import SnowballSGD

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
    "shariff-sheffet-ucb": ShariffSheffetUCB,
    "dp-moments": DPMoments,
    "online-frank-wolfe": OnlineFrankWolfe,
    "dp-hdb": DPHDB,
    "dp-hdb-choices": DPHDBChoices,
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
"""Every agent: its id on the command line -> its config class."""

accept(AGENTS)

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
    "DPHDBChoices",
    "DPMoments",
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
    "Priced",
    "PrivateBandit",
    "RecursiveFrankWolfe",
    "ShariffSheffetUCB",
    "ShrinkingDartboard",
    "SnowballSGD",
    "SparseVectorExperts",
    "Uniform",
]
