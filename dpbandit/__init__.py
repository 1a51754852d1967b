"""Simulate contextual bandits, and measure what joint differential privacy costs in regret.

Importing registers the environments `dpbandit/...` with Gymnasium.
"""

import sys as _sys
from pathlib import Path as _Path

if not (_Path(__file__).parent / "envs").exists():  # a checkout
    from dpbandit.checkout import Beside as _Beside

    _sys.meta_path.insert(0, _Beside())

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

import gymnasium as _gym

from dpbandit.version import VERSION as __version__

if _TYPE_CHECKING:
    from dpbandit.auditing import AuditReport, audit
    from dpbandit.base import InputError
    from dpbandit.results.results import Results
    from dpbandit.running.compare import certify, compare
    from dpbandit.running.loop import play
    from dpbandit.specs.models import Prior

__all__ = [
    "ENVIRONMENTS",
    "AuditReport",
    "InputError",
    "Prior",
    "Results",
    "__version__",
    "audit",
    "certify",
    "compare",
    "play",
]

ENVIRONMENTS = {
    "dpbandit/ApplePricing-v0": "dpbandit.envs:ApplePricing",
    "dpbandit/Arms-v0": "dpbandit.envs:Arms",
    "dpbandit/AssortmentBandit-v0": "dpbandit.envs:AssortmentBandit",
    "dpbandit/AssortmentFromLog-v0": "dpbandit.envs:AssortmentFromLog",
    "dpbandit/CameraAssortment-v0": "dpbandit.envs:CameraAssortment",
    "dpbandit/CameraOffer-v0": "dpbandit.envs:CameraOffer",
    "dpbandit/CameraPricing-v0": "dpbandit.envs:CameraPricing",
    "dpbandit/ClassificationBandit-v0": "dpbandit.envs:ClassificationBandit",
    "dpbandit/ConvexBandit-v0": "dpbandit.envs:ConvexBandit",
    "dpbandit/ConvexPricing-v0": "dpbandit.envs:ConvexPricing",
    "dpbandit/Experts-v0": "dpbandit.envs:Experts",
    "dpbandit/GLMBandit-v0": "dpbandit.envs:GLMBandit",
    "dpbandit/ListRecommendation-v0": "dpbandit.envs:ListRecommendation",
    "dpbandit/Minority-v0": "dpbandit.envs:Minority",
    "dpbandit/OJPricing-v0": "dpbandit.envs:OJPricing",
    "dpbandit/OJContinuousPricing-v0": "dpbandit.envs:OJContinuousPricing",
    "dpbandit/OnlineConvex-v0": "dpbandit.envs:OnlineConvex",
    "dpbandit/PricingFromLog-v0": "dpbandit.envs:PricingFromLog",
    "dpbandit/RatingsBandit-v0": "dpbandit.envs:RatingsBandit",
    "dpbandit/RatingsLists-v0": "dpbandit.envs:RatingsLists",
    "dpbandit/Recommendation-v0": "dpbandit.envs:Recommendation",
    "dpbandit/RecommendationFromLog-v0": "dpbandit.envs:RecommendationFromLog",
    "dpbandit/ReferencePricing-v0": "dpbandit.envs:ReferencePricing",
    "dpbandit/ReturningLists-v0": "dpbandit.envs:ReturningLists",
    "dpbandit/ReturningUsers-v0": "dpbandit.envs:ReturningUsers",
    "dpbandit/StockPricing-v0": "dpbandit.envs:StockPricing",
    "dpbandit/StreamingRegression-v0": "dpbandit.envs:StreamingRegression",
    "dpbandit/TwoArms-v0": "dpbandit.envs:TwoArms",
    "dpbandit/TwoPhase-v0": "dpbandit.envs:TwoPhase",
}


_HOMES = {
    "AuditReport": "auditing",
    "InputError": "base",
    "Prior": "specs.models",
    "Results": "results.results",
    "audit": "auditing",
    "certify": "running.compare",
    "compare": "running.compare",
    "play": "running.loop",
}


def __getattr__(name: str) -> _Any:
    """Import names that take time only when they are used."""
    if name in ("agents", "testing"):
        return _import_module(f"dpbandit.{name}")
    if name in _HOMES:
        found = globals()[name] = getattr(_import_module(f"dpbandit.{_HOMES[name]}"), name)
        return found
    raise AttributeError(f"module 'dpbandit' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Public names, those that are not imported yet among them."""
    return sorted({*globals(), *__all__, "agents", "testing"})


for _id, _problem in ENVIRONMENTS.items():
    if _id not in _gym.registry:
        _gym.register(
            _id,
            entry_point="dpbandit.envs.adapters:BanditEnv",
            vector_entry_point="dpbandit.envs.adapters:BanditVectorEnv",
            kwargs={"problem": _problem},
        )
