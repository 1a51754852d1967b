from dpbandit.envs.arms.arms import Arms as Arms
from dpbandit.envs.choice.assortment_from_log import AssortmentFromLog as AssortmentFromLog
from dpbandit.envs.choice.assortments import AssortmentBandit as AssortmentBandit
from dpbandit.envs.choice.camera_assortment import CameraAssortment as CameraAssortment
from dpbandit.envs.contextual.apple import ApplePricing as ApplePricing
from dpbandit.envs.contextual.camera import (
    CameraOffer as CameraOffer,
    CameraPricing as CameraPricing,
)
from dpbandit.envs.contextual.classification import ClassificationBandit as ClassificationBandit
from dpbandit.envs.contextual.glm import (
    GLMBandit as GLMBandit,
    Minority as Minority,
    TwoArms as TwoArms,
    TwoPhase as TwoPhase,
)
from dpbandit.envs.contextual.orange_juice import (
    OJContinuousPricing as OJContinuousPricing,
    OJPricing as OJPricing,
    ReferencePricing as ReferencePricing,
)
from dpbandit.envs.contextual.pricing_from_log import PricingFromLog as PricingFromLog
from dpbandit.envs.contextual.recommendation import (
    RatingsBandit as RatingsBandit,
    Recommendation as Recommendation,
)
from dpbandit.envs.contextual.recommendation_from_log import (
    RecommendationFromLog as RecommendationFromLog,
)
from dpbandit.envs.contextual.stock import StockPricing as StockPricing
from dpbandit.envs.contextual.synthetic import SyntheticPricing as SyntheticPricing
from dpbandit.envs.convex.online_losses import (
    ConvexBandit as ConvexBandit,
    ConvexPricing as ConvexPricing,
    OnlineConvex as OnlineConvex,
)
from dpbandit.envs.experts.advice import Experts as Experts
from dpbandit.envs.lists.list_recommendation import ListRecommendation as ListRecommendation
from dpbandit.envs.lists.ratings_lists import RatingsLists as RatingsLists
from dpbandit.envs.lists.returning_lists import ReturningLists as ReturningLists
from dpbandit.envs.people.returning_pricing import ReturningPricing as ReturningPricing
from dpbandit.envs.people.returning_users import ReturningUsers as ReturningUsers
from dpbandit.envs.streams.streaming_regression import StreamingRegression as StreamingRegression
