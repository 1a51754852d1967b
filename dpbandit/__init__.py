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
    from dpbandit.running.recommend import recommend
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
    "recommend",
]

_ENVIRONMENTS = """
    ApplePricing Arms AssortmentBandit AssortmentFromLog CameraAssortment CameraOffer
    CameraPricing ClassificationBandit ConvexBandit ConvexPricing Experts GLMBandit
    ListRecommendation Minority OJPricing OJContinuousPricing OnlineConvex PricingFromLog
    RatingsBandit RatingsLists Recommendation RecommendationFromLog ReferencePricing
    ReturningLists ReturningUsers StockPricing StreamingRegression TwoArms TwoPhase
"""
ENVIRONMENTS = {f"dpbandit/{name}-v0": f"dpbandit.envs:{name}" for name in _ENVIRONMENTS.split()}

_HOMES = {
    "AuditReport": "auditing",
    "InputError": "base",
    "Prior": "specs.models",
    "Results": "results.results",
    "audit": "auditing",
    "certify": "running.compare",
    "compare": "running.compare",
    "play": "running.loop",
    "recommend": "running.recommend",
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
