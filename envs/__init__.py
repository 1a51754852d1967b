"""Environments: one folder for each family of problems, and Gymnasium adapters."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from dpbandit.lazy import catalogue as _catalogue, lazily as _lazily

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
    from dpbandit.envs.contextual.synthetic import SyntheticPricing as SyntheticPricing
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
    from dpbandit.envs.people.returning_pricing import ReturningPricing as ReturningPricing
    from dpbandit.envs.people.returning_users import ReturningUsers as ReturningUsers
    from dpbandit.envs.streams.streaming_regression import (
        StreamingRegression as StreamingRegression,
    )

_HOMES = {one["name"]: f"{__name__}.{one['file']}" for one in _catalogue(__name__)}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = _lazily(__name__, _HOMES)
