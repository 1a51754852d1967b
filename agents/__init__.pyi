from dpbandit.agents.arms.evidence import DPIMED as DPIMED, DPKLUCB as DPKLUCB, RaceIMED as RaceIMED
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
from dpbandit.agents.catalogue import Kinds
from dpbandit.agents.choice.mnl import MNLTS as MNLTS, MNLUCB as MNLUCB, MNLBandit as MNLBandit
from dpbandit.agents.choice.private_mnl import FadeMNL as FadeMNL, MNLCounts as MNLCounts
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
from dpbandit.agents.contextual.fade_arms import FadeArms as FadeArms
from dpbandit.agents.contextual.fade_asking import FadeAsking as FadeAsking
from dpbandit.agents.contextual.fade_centred import FadeCentred as FadeCentred
from dpbandit.agents.contextual.fade_curve import FadeCurve as FadeCurve
from dpbandit.agents.contextual.fade_prices import FadePrices as FadePrices
from dpbandit.agents.contextual.fade_regression import (
    FadeLogistic as FadeLogistic,
    FadeRegression as FadeRegression,
    FadeTrying as FadeTrying,
)
from dpbandit.agents.contextual.fade_slates import FadeSlates as FadeSlates
from dpbandit.agents.contextual.full_budget_fade import FullBudgetFADE as FullBudgetFADE
from dpbandit.agents.contextual.glm import GLMUCB as GLMUCB, LogisticTS as LogisticTS
from dpbandit.agents.contextual.guard import Guard as Guard
from dpbandit.agents.contextual.inverse_gaps import (
    BPO as BPO,
    FALCON as FALCON,
    VPO as VPO,
    AdaCB as AdaCB,
    FastCB as FastCB,
    RegCB as RegCB,
    SquareCB as SquareCB,
)
from dpbandit.agents.contextual.ldp_greedy import (
    LDPETC as LDPETC,
    LDPOLS as LDPOLS,
    LDPSGD as LDPSGD,
)
from dpbandit.agents.contextual.linear import (
    DPUCB as DPUCB,
    DPMoments as DPMoments,
    EpsilonGreedy as EpsilonGreedy,
    Greedy as Greedy,
    LinTS as LinTS,
    LinUCB as LinUCB,
    ShariffSheffetUCB as ShariffSheffetUCB,
)
from dpbandit.agents.contextual.mapped import Mapped as Mapped
from dpbandit.agents.contextual.moments import (
    BatchMoment as BatchMoment,
    FadeMoments as FadeMoments,
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
from dpbandit.agents.convex.slope_bandit import SlopeBandit as SlopeBandit
from dpbandit.agents.convex.slopes import SlopeLeader as SlopeLeader
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
    BatchLeader as BatchLeader,
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
from dpbandit.agents.people.personal_pricing import PersonalPricing as PersonalPricing
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

AGENTS: Kinds
CONTEXTUAL: Kinds
PRICING: Kinds
CONVEX: Kinds
STOCHASTIC: Kinds
EXPERTS: Kinds
CHOICE: Kinds
LISTS: Kinds
PEOPLE: Kinds
ARMS: Kinds
