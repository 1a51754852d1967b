"""Environments: one folder for each family of problems, and Gymnasium adapters."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

if _TYPE_CHECKING:
    from dpbandit.envs.arms.arms import Arms
    from dpbandit.envs.choice.assortment_from_log import AssortmentFromLog
    from dpbandit.envs.choice.assortments import AssortmentBandit
    from dpbandit.envs.choice.camera_assortment import CameraAssortment
    from dpbandit.envs.contextual.apple import ApplePricing
    from dpbandit.envs.contextual.camera import CameraOffer, CameraPricing
    from dpbandit.envs.contextual.classification import ClassificationBandit
    from dpbandit.envs.contextual.glm import GLMBandit, Minority, TwoArms, TwoPhase
    from dpbandit.envs.contextual.orange_juice import (
        OJContinuousPricing,
        OJPricing,
        ReferencePricing,
        StockPricing,
    )
    from dpbandit.envs.contextual.pricing_from_log import PricingFromLog
    from dpbandit.envs.contextual.recommendation import RatingsBandit, Recommendation
    from dpbandit.envs.contextual.recommendation_from_log import RecommendationFromLog
    from dpbandit.envs.convex.online_losses import ConvexBandit, ConvexPricing, OnlineConvex
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

_HOMES = {
    "Arms": "arms.arms",
    "ApplePricing": "contextual.apple",
    "AssortmentBandit": "choice.assortments",
    "AssortmentFromLog": "choice.assortment_from_log",
    "CameraAssortment": "choice.camera_assortment",
    "CameraOffer": "contextual.camera",
    "CameraPricing": "contextual.camera",
    "ClassificationBandit": "contextual.classification",
    "ConvexBandit": "convex.online_losses",
    "ConvexPricing": "convex.online_losses",
    "Experts": "experts.advice",
    "GLMBandit": "contextual.glm",
    "ListRecommendation": "lists.list_recommendation",
    "Minority": "contextual.glm",
    "OJContinuousPricing": "contextual.orange_juice",
    "OJPricing": "contextual.orange_juice",
    "OnlineConvex": "convex.online_losses",
    "PricingFromLog": "contextual.pricing_from_log",
    "RatingsBandit": "contextual.recommendation",
    "RatingsLists": "lists.ratings_lists",
    "Recommendation": "contextual.recommendation",
    "RecommendationFromLog": "contextual.recommendation_from_log",
    "ReferencePricing": "contextual.orange_juice",
    "ReturningLists": "lists.list_recommendation",
    "ReturningUsers": "people.returning_users",
    "StockPricing": "contextual.orange_juice",
    "StreamingRegression": "streams.streaming_regression",
    "TwoArms": "contextual.glm",
    "TwoPhase": "contextual.glm",
}


def __getattr__(name: str) -> _Any:
    """A class, when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dpbandit.envs' has no attribute {name!r}")
    found = globals()[name] = getattr(_import_module(f"dpbandit.envs.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    """What can be asked for."""
    return sorted({*globals(), *__all__})
