"""Environments: a family of problems in each folder, and the two Gymnasium adapters they share."""

from dpbandit.envs.arms.arms import Arms
from dpbandit.envs.choice.assortment_from_log import AssortmentFromLog
from dpbandit.envs.choice.assortments import AssortmentBandit
from dpbandit.envs.choice.camera_assortment import CameraAssortment
from dpbandit.envs.contextual.apple import ApplePricing
from dpbandit.envs.contextual.camera import CameraOffer, CameraPricing
from dpbandit.envs.contextual.classification import ClassificationBandit
from dpbandit.envs.contextual.glm import GLMBandit
from dpbandit.envs.contextual.lock_in import Minority, TwoArms, TwoPhase
from dpbandit.envs.contextual.orange_juice import OJContinuousPricing, OJPricing, ReferencePricing
from dpbandit.envs.contextual.pricing_from_log import PricingFromLog
from dpbandit.envs.contextual.ratings import RatingsBandit
from dpbandit.envs.contextual.recommendation import Recommendation
from dpbandit.envs.contextual.recommendation_from_log import RecommendationFromLog
from dpbandit.envs.contextual.stock import StockPricing
from dpbandit.envs.convex.online_losses import ConvexBandit, OnlineConvex
from dpbandit.envs.convex.pricing import ConvexPricing
from dpbandit.envs.experts.advice import Experts
from dpbandit.envs.lists.list_recommendation import ListRecommendation, ReturningLists
from dpbandit.envs.lists.ratings_lists import RatingsLists
from dpbandit.envs.people.returning_users import ReturningUsers
from dpbandit.envs.streams.streaming_regression import StreamingRegression

__all__ = [
    "ApplePricing",
    "Arms",
    "AssortmentBandit",
    "AssortmentFromLog",
    "CameraAssortment",
    "CameraOffer",
    "CameraPricing",
    "ClassificationBandit",
    "ConvexBandit",
    "ConvexPricing",
    "Experts",
    "GLMBandit",
    "ListRecommendation",
    "Minority",
    "OJContinuousPricing",
    "OJPricing",
    "OnlineConvex",
    "PricingFromLog",
    "RatingsBandit",
    "RatingsLists",
    "Recommendation",
    "RecommendationFromLog",
    "ReferencePricing",
    "ReturningLists",
    "ReturningUsers",
    "StockPricing",
    "StreamingRegression",
    "TwoArms",
    "TwoPhase",
]
