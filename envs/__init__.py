"""Environments: one folder for each family of problems, and Gymnasium adapters."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

if _TYPE_CHECKING:
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
        StockPricing as StockPricing,
    )
    from dpbandit.envs.contextual.pricing_from_log import PricingFromLog as PricingFromLog
    from dpbandit.envs.contextual.recommendation import (
        RatingsBandit as RatingsBandit,
        Recommendation as Recommendation,
    )
    from dpbandit.envs.contextual.recommendation_from_log import (
        RecommendationFromLog as RecommendationFromLog,
    )
    from dpbandit.envs.convex.online_losses import (
        ConvexBandit as ConvexBandit,
        ConvexPricing as ConvexPricing,
        OnlineConvex as OnlineConvex,
    )
    from dpbandit.envs.experts.advice import Experts as Experts
    from dpbandit.envs.lists.list_recommendation import (
        ListRecommendation as ListRecommendation,
        ReturningLists as ReturningLists,
    )
    from dpbandit.envs.lists.ratings_lists import RatingsLists as RatingsLists
    from dpbandit.envs.people.returning_users import ReturningUsers as ReturningUsers
    from dpbandit.envs.streams.streaming_regression import (
        StreamingRegression as StreamingRegression,
    )

_FILES = {
    "arms.arms": "Arms",
    "choice.assortment_from_log": "AssortmentFromLog",
    "choice.assortments": "AssortmentBandit",
    "choice.camera_assortment": "CameraAssortment",
    "contextual.apple": "ApplePricing",
    "contextual.camera": "CameraOffer CameraPricing",
    "contextual.classification": "ClassificationBandit",
    "contextual.glm": "GLMBandit Minority TwoArms TwoPhase",
    "contextual.orange_juice": "OJContinuousPricing OJPricing ReferencePricing StockPricing",
    "contextual.pricing_from_log": "PricingFromLog",
    "contextual.recommendation": "RatingsBandit Recommendation",
    "contextual.recommendation_from_log": "RecommendationFromLog",
    "convex.online_losses": "ConvexBandit ConvexPricing OnlineConvex",
    "experts.advice": "Experts",
    "lists.list_recommendation": "ListRecommendation ReturningLists",
    "lists.ratings_lists": "RatingsLists",
    "people.returning_users": "ReturningUsers",
    "streams.streaming_regression": "StreamingRegression",
}
_HOMES = {name: file for file, names in _FILES.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> _Any:
    """A class, when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dpbandit.envs' has no attribute {name!r}")
    found = globals()[name] = getattr(_import_module(f"dpbandit.envs.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    """What can be asked for."""
    return sorted({*globals(), *__all__})
