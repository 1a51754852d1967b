"""Agents: a class for each algorithm, whose `make` returns the running agent.

Each is imported here, and need not be named anywhere else: its id on the command line is its `id`,
or the name of its file, and its family the folder.
"""

from typing import Any as _Any

from dpbandit.agents.arms.exact import (
    KLUCB as KLUCB,
    UCB1 as UCB1,
    Exp3 as Exp3,
    Thompson as Thompson,
    TsallisINF as TsallisINF,
)
from dpbandit.agents.arms.published import (
    DPSE as DPSE,
    AdaPKLUCB as AdaPKLUCB,
    AdaPUCB as AdaPUCB,
    PrivateTsallis as PrivateTsallis,
    TreeUCB as TreeUCB,
)
from dpbandit.agents.arms.released import AllocationTS as AllocationTS, KLUCBSums as KLUCBSums
from dpbandit.agents.baselines import BestFixed as BestFixed, Uniform as Uniform
from dpbandit.agents.choice.mnl import MNLTS as MNLTS, MNLUCB as MNLUCB, MNLBandit as MNLBandit
from dpbandit.agents.choice.private_mnl import FadeMNL as FadeMNL, MNLCounts as MNLCounts
from dpbandit.agents.contextual.counted_shelf import CountedShelf as CountedShelf
from dpbandit.agents.contextual.demand import Priced as Priced
from dpbandit.agents.contextual.devices import (
    Broadcast as Broadcast,
    LocalLinUCB as LocalLinUCB,
    LocalSGD as LocalSGD,
)
from dpbandit.agents.contextual.dp_hdb import (
    DPHDB as DPHDB,
    DPHDBChoices as DPHDBChoices,
    OnlineFrankWolfe as OnlineFrankWolfe,
)
from dpbandit.agents.contextual.epochs import (
    AdaCOFUL as AdaCOFUL,
    AdaPrivateTS as AdaPrivateTS,
    BatchedElimination as BatchedElimination,
)
from dpbandit.agents.contextual.fade import FADE as FADE
from dpbandit.agents.contextual.full_budget_fade import FullBudgetFADE as FullBudgetFADE
from dpbandit.agents.contextual.glm import GLMUCB as GLMUCB, LogisticTS as LogisticTS
from dpbandit.agents.contextual.glm_as_coded import PrivateGLMAsCoded as PrivateGLMAsCoded
from dpbandit.agents.contextual.guard import Guard as Guard
from dpbandit.agents.contextual.inverse_gaps import (
    BPO as BPO,
    FALCON as FALCON,
    VPO as VPO,
    FastCB as FastCB,
    RegCB as RegCB,
    SquareCB as SquareCB,
)
from dpbandit.agents.contextual.ldp_greedy import LDPOLS as LDPOLS, LDPSGD as LDPSGD
from dpbandit.agents.contextual.linear import (
    DPUCB as DPUCB,
    DPMoments as DPMoments,
    EpsilonGreedy as EpsilonGreedy,
    Greedy as Greedy,
    LinTS as LinTS,
    LinUCB as LinUCB,
    ShariffSheffetUCB as ShariffSheffetUCB,
)
from dpbandit.agents.contextual.moments import BatchMoment as BatchMoment
from dpbandit.agents.contextual.prices import (
    JDPGLMUCB as JDPGLMUCB,
    LDPETC as LDPETC,
    PriceCells as PriceCells,
)
from dpbandit.agents.contextual.private_glm import PrivateGLM as PrivateGLM
from dpbandit.agents.contextual.sparse import FLIPHAT as FLIPHAT, LassoBandit as LassoBandit
from dpbandit.agents.convex.descent import OGD as OGD, POCP as POCP, PQFTL as PQFTL
from dpbandit.agents.convex.leaders import (
    DPFTRL as DPFTRL,
    FTAL as FTAL,
    PFTAL as PFTAL,
    Centre as Centre,
    LinearFTRL as LinearFTRL,
    NoisyOCO as NoisyOCO,
)
from dpbandit.agents.convex.one_point import FKM as FKM
from dpbandit.agents.convex.projection_free import (
    GarberKretzu as GarberKretzu,
    PrivateBandit as PrivateBandit,
)
from dpbandit.agents.convex.value_leaders import (
    BanditFTAL as BanditFTAL,
    BanditPFTAL as BanditPFTAL,
)
from dpbandit.agents.convex.window import (
    WDPCOCOL as WDPCOCOL,
    WDPCOCOP as WDPCOCOP,
    OnlineConditionalGradient as OnlineConditionalGradient,
)
from dpbandit.agents.experts.ball import BallExperts as BallExperts, NetExperts as NetExperts
from dpbandit.agents.experts.multiplicative import (
    ExponentialLeader as ExponentialLeader,
    FollowTheLeader as FollowTheLeader,
    Hedge as Hedge,
    NoisyFTRL as NoisyFTRL,
    ShrinkingDartboard as ShrinkingDartboard,
)
from dpbandit.agents.experts.sparse_vector import (
    AdaptiveSparseVectorExperts as AdaptiveSparseVectorExperts,
    SparseVectorExperts as SparseVectorExperts,
)
from dpbandit.agents.experts.trees_and_potentials import (
    BinaryTreeExperts as BinaryTreeExperts,
    PotentialExperts as PotentialExperts,
)
from dpbandit.agents.lists.cascade import CascadeUCB as CascadeUCB, PrivateCascade as PrivateCascade
from dpbandit.agents.lists.list_fade import ListExperts as ListExperts, ListFADE as ListFADE
from dpbandit.agents.lists.ranked import (
    RankedEpsilonGreedy as RankedEpsilonGreedy,
    RankedLinTS as RankedLinTS,
    RankedLinUCB as RankedLinUCB,
)
from dpbandit.agents.people.per_person import PerPerson as PerPerson
from dpbandit.agents.people.personal import (
    MemoryAlone as MemoryAlone,
    MixedEffects as MixedEffects,
    PersonalFADE as PersonalFADE,
)
from dpbandit.agents.streams.batched_frank_wolfe import (
    LocalisedTOFW as LocalisedTOFW,
    NoisySFW as NoisySFW,
)
from dpbandit.agents.streams.frank_wolfe import (
    DPPOFW as DPPOFW,
    DPTOFW as DPTOFW,
    RecursiveFrankWolfe as RecursiveFrankWolfe,
)
from dpbandit.agents.streams.gradient_descent import (
    LeastSquares as LeastSquares,
    PhasedSGD as PhasedSGD,
    SnowballSGD as SnowballSGD,
)
from dpbandit.agents.streams.sampled_descent import LocalMD as LocalMD, NoisySGD as NoisySGD
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
