"""Agents: a class for each algorithm, whose `make` returns the running agent.

Each is imported here, and need not be named anywhere else: its id on the command line is its `id`,
or the name of its file, and its family the folder.
"""

from typing import Any as _Any

from dpbandit.agents.arms.exact import KLUCB as KLUCB
from dpbandit.agents.arms.exact import UCB1 as UCB1
from dpbandit.agents.arms.exact import Exp3 as Exp3
from dpbandit.agents.arms.exact import Thompson as Thompson
from dpbandit.agents.arms.exact import TsallisINF as TsallisINF
from dpbandit.agents.arms.published import DPSE as DPSE
from dpbandit.agents.arms.published import AdaPKLUCB as AdaPKLUCB
from dpbandit.agents.arms.published import AdaPUCB as AdaPUCB
from dpbandit.agents.arms.published import PrivateTsallis as PrivateTsallis
from dpbandit.agents.arms.published import TreeUCB as TreeUCB
from dpbandit.agents.arms.released import AllocationTS as AllocationTS
from dpbandit.agents.arms.released import KLUCBSums as KLUCBSums
from dpbandit.agents.baselines import BestFixed as BestFixed
from dpbandit.agents.baselines import Uniform as Uniform
from dpbandit.agents.choice.mnl import MNLTS as MNLTS
from dpbandit.agents.choice.mnl import MNLUCB as MNLUCB
from dpbandit.agents.choice.mnl import MNLBandit as MNLBandit
from dpbandit.agents.choice.private_mnl import FadeMNL as FadeMNL
from dpbandit.agents.choice.private_mnl import MNLCounts as MNLCounts
from dpbandit.agents.contextual.ada_c_oful import AdaCOFUL as AdaCOFUL
from dpbandit.agents.contextual.ada_private_ts import AdaPrivateTS as AdaPrivateTS
from dpbandit.agents.contextual.batch_moment import BatchMoment as BatchMoment
from dpbandit.agents.contextual.batched_elimination import BatchedElimination as BatchedElimination
from dpbandit.agents.contextual.broadcast import Broadcast as Broadcast
from dpbandit.agents.contextual.counted_shelf import CountedShelf as CountedShelf
from dpbandit.agents.contextual.demand import Priced as Priced
from dpbandit.agents.contextual.dp_hdb import DPHDB as DPHDB
from dpbandit.agents.contextual.dp_hdb import DPHDBChoices as DPHDBChoices
from dpbandit.agents.contextual.dp_hdb import OnlineFrankWolfe as OnlineFrankWolfe
from dpbandit.agents.contextual.fade import FADE as FADE
from dpbandit.agents.contextual.fliphat import FLIPHAT as FLIPHAT
from dpbandit.agents.contextual.full_budget_fade import FullBudgetFADE as FullBudgetFADE
from dpbandit.agents.contextual.glm_ucb import GLMUCB as GLMUCB
from dpbandit.agents.contextual.guard import Guard as Guard
from dpbandit.agents.contextual.jdp_glm_ucb import JDPGLMUCB as JDPGLMUCB
from dpbandit.agents.contextual.lasso_bandit import LassoBandit as LassoBandit
from dpbandit.agents.contextual.ldp_etc import LDPETC as LDPETC
from dpbandit.agents.contextual.linear import DPUCB as DPUCB
from dpbandit.agents.contextual.linear import DPMoments as DPMoments
from dpbandit.agents.contextual.linear import EpsilonGreedy as EpsilonGreedy
from dpbandit.agents.contextual.linear import Greedy as Greedy
from dpbandit.agents.contextual.linear import LinTS as LinTS
from dpbandit.agents.contextual.linear import LinUCB as LinUCB
from dpbandit.agents.contextual.linear import ShariffSheffetUCB as ShariffSheffetUCB
from dpbandit.agents.contextual.local_linucb import LocalLinUCB as LocalLinUCB
from dpbandit.agents.contextual.local_sgd import LocalSGD as LocalSGD
from dpbandit.agents.contextual.logistic_ts import LogisticTS as LogisticTS
from dpbandit.agents.contextual.price_cells import PriceCells as PriceCells
from dpbandit.agents.contextual.private_glm import PrivateGLM as PrivateGLM
from dpbandit.agents.contextual.private_glm_as_coded import PrivateGLMAsCoded as PrivateGLMAsCoded
from dpbandit.agents.convex.descent import OGD as OGD
from dpbandit.agents.convex.descent import POCP as POCP
from dpbandit.agents.convex.descent import PQFTL as PQFTL
from dpbandit.agents.convex.leaders import DPFTRL as DPFTRL
from dpbandit.agents.convex.leaders import FTAL as FTAL
from dpbandit.agents.convex.leaders import PFTAL as PFTAL
from dpbandit.agents.convex.leaders import Centre as Centre
from dpbandit.agents.convex.leaders import LinearFTRL as LinearFTRL
from dpbandit.agents.convex.leaders import NoisyOCO as NoisyOCO
from dpbandit.agents.convex.one_point import FKM as FKM
from dpbandit.agents.convex.projection_free import GarberKretzu as GarberKretzu
from dpbandit.agents.convex.projection_free import PrivateBandit as PrivateBandit
from dpbandit.agents.convex.value_leaders import BanditFTAL as BanditFTAL
from dpbandit.agents.convex.value_leaders import BanditPFTAL as BanditPFTAL
from dpbandit.agents.convex.window import WDPCOCOL as WDPCOCOL
from dpbandit.agents.convex.window import WDPCOCOP as WDPCOCOP
from dpbandit.agents.convex.window import (
    OnlineConditionalGradient as OnlineConditionalGradient,
)
from dpbandit.agents.experts.ball import BallExperts as BallExperts
from dpbandit.agents.experts.ball import NetExperts as NetExperts
from dpbandit.agents.experts.multiplicative import ExponentialLeader as ExponentialLeader
from dpbandit.agents.experts.multiplicative import FollowTheLeader as FollowTheLeader
from dpbandit.agents.experts.multiplicative import Hedge as Hedge
from dpbandit.agents.experts.multiplicative import NoisyFTRL as NoisyFTRL
from dpbandit.agents.experts.multiplicative import ShrinkingDartboard as ShrinkingDartboard
from dpbandit.agents.experts.sparse_vector import (
    AdaptiveSparseVectorExperts as AdaptiveSparseVectorExperts,
)
from dpbandit.agents.experts.sparse_vector import SparseVectorExperts as SparseVectorExperts
from dpbandit.agents.experts.trees_and_potentials import BinaryTreeExperts as BinaryTreeExperts
from dpbandit.agents.experts.trees_and_potentials import PotentialExperts as PotentialExperts
from dpbandit.agents.lists.cascade import CascadeUCB as CascadeUCB
from dpbandit.agents.lists.cascade import PrivateCascade as PrivateCascade
from dpbandit.agents.lists.list_fade import ListExperts as ListExperts
from dpbandit.agents.lists.list_fade import ListFADE as ListFADE
from dpbandit.agents.lists.ranked import RankedEpsilonGreedy as RankedEpsilonGreedy
from dpbandit.agents.lists.ranked import RankedLinTS as RankedLinTS
from dpbandit.agents.lists.ranked import RankedLinUCB as RankedLinUCB
from dpbandit.agents.people.per_person import PerPerson as PerPerson
from dpbandit.agents.people.personal import MemoryAlone as MemoryAlone
from dpbandit.agents.people.personal import MixedEffects as MixedEffects
from dpbandit.agents.people.personal import PersonalFADE as PersonalFADE
from dpbandit.agents.streams.batched_frank_wolfe import LocalisedTOFW as LocalisedTOFW
from dpbandit.agents.streams.batched_frank_wolfe import NoisySFW as NoisySFW
from dpbandit.agents.streams.frank_wolfe import DPPOFW as DPPOFW
from dpbandit.agents.streams.frank_wolfe import DPTOFW as DPTOFW
from dpbandit.agents.streams.frank_wolfe import RecursiveFrankWolfe as RecursiveFrankWolfe
from dpbandit.agents.streams.gradient_descent import LeastSquares as LeastSquares
from dpbandit.agents.streams.gradient_descent import PhasedSGD as PhasedSGD
from dpbandit.agents.streams.gradient_descent import SnowballSGD as SnowballSGD
from dpbandit.agents.streams.sampled_descent import LocalMD as LocalMD
from dpbandit.agents.streams.sampled_descent import NoisySGD as NoisySGD
from dpbandit.agents.tables import tabulate as _tabulate


def _family(name: str) -> dict[str, _Any]:
    """The configs imported above from one folder, by id."""
    folder = f"{__name__}.{name}."
    return {
        getattr(config, "id", config.__module__.removeprefix(folder).replace("_", "-")): config
        for config in globals().values()
        if isinstance(config, type) and config.__module__.startswith(folder)
    }


_everywhere: dict[str, _Any] = {"uniform": Uniform, "best-fixed": BestFixed}
_on_points: dict[str, _Any] = {"net-experts": NetExperts, "ball-experts": BallExperts}

CONTEXTUAL = {**_everywhere, **_family("contextual")}
"""Agents that choose arms or prices, by command-line id."""
del CONTEXTUAL["demand"], CONTEXTUAL["guard"]  # `Priced` and `Guard` wrap agents, and have no ids

PRICING = {
    name: CONTEXTUAL.pop(name)
    for name in ("counted-shelf", "jdp-glm-ucb", "ldp-etc", "price-cells")
}
"""Agents that play lists of prices and nothing else, by command-line id."""

CONVEX = {**_everywhere, **_family("convex"), **_on_points}
"""Agents that choose points of a convex domain, by command-line id."""

STOCHASTIC = {**_everywhere, "centre": Centre, **_family("streams")}
"""Agents for streams of independent users, by command-line id."""

EXPERTS = {**_everywhere, **{k: v for k, v in _family("experts").items() if k not in _on_points}}
"""Agents that follow experts, by command-line id."""

CHOICE = {**_everywhere, **_family("choice")}
"""Agents that offer sets of products, by command-line id."""

LISTS = {**_everywhere, **_family("lists")}
"""Agents that show ordered lists, by command-line id."""

PEOPLE = {**_everywhere, **_family("people")}
"""Agents for people who return, by command-line id."""
del PEOPLE["per-person"]  # which wraps an agent, as `Priced` and `Guard` do

ARMS = {**_everywhere, **_family("arms")}
"""Agents that play arms and look at no contexts, by command-line id."""

AGENTS = {
    **CONTEXTUAL,
    **ARMS,
    **PRICING,
    **CHOICE,
    **LISTS,
    **PEOPLE,
    **CONVEX,
    **STOCHASTIC,
    **EXPERTS,
}
"""Of every agent its id on the command line -> its config class."""

_tabulate([*AGENTS.values(), Guard, PerPerson, Priced])
