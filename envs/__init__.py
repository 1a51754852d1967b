"""Environments: one problem per file, and the two Gymnasium adapters they share."""

from dpbandit.envs.glm import GLMBandit
from dpbandit.envs.pricing import OJContinuousPricing, OJPricing
from dpbandit.envs.recommendation import Recommendation

__all__ = ["GLMBandit", "OJContinuousPricing", "OJPricing", "Recommendation"]
