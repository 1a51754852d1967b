"""Environments: one problem per file, and the two Gymnasium adapters they share."""

from dpbandit.envs.apple import ApplePricing
from dpbandit.envs.classification import ClassificationBandit
from dpbandit.envs.convex import ConvexBandit, OnlineConvex
from dpbandit.envs.convex_pricing import ConvexPricing
from dpbandit.envs.experts import Experts
from dpbandit.envs.glm import GLMBandit
from dpbandit.envs.pricing import OJContinuousPricing, OJPricing
from dpbandit.envs.ratings import RatingsBandit
from dpbandit.envs.recommendation import Recommendation
from dpbandit.envs.streaming_regression import StreamingRegression

__all__ = [
    "ApplePricing",
    "ClassificationBandit",
    "ConvexBandit",
    "ConvexPricing",
    "Experts",
    "GLMBandit",
    "OJContinuousPricing",
    "OJPricing",
    "OnlineConvex",
    "RatingsBandit",
    "Recommendation",
    "StreamingRegression",
]
