"""Simulate contextual bandits, and measure what joint differential privacy costs in regret.

Importing registers the environments `dpbandit/...` with Gymnasium.
"""

import sys as _sys
from pathlib import Path as _Path

if not (_Path(__file__).parent / "envs").exists():  # a checkout
    from dpbandit.checkout import SiblingFinder as _SiblingFinder

    _sys.meta_path.insert(0, _SiblingFinder())

from typing import TYPE_CHECKING as _TYPE_CHECKING

import gymnasium as _gym

from dpbandit.lazy import catalogue as _catalogue, lazily as _lazily
from dpbandit.version import VERSION as __version__

if _TYPE_CHECKING:
    from dpbandit.agent import (
        Agent,
        Arms,
        Around,
        Chance,
        Count,
        Count0,
        Inner,
        Inside01,
        Least0,
        Points,
        Positive,
        PrivateAgent,
        Share,
        started,
    )
    from dpbandit.auditing import AuditReport, audit
    from dpbandit.base import InputError
    from dpbandit.results.results import Results
    from dpbandit.running.compare import certify, compare
    from dpbandit.running.loop import play
    from dpbandit.running.recommend import recommend
    from dpbandit.specs.models import Prior

__all__ = [
    "ENVIRONMENTS",
    "Agent",
    "Arms",
    "Around",
    "AuditReport",
    "Chance",
    "Count",
    "Count0",
    "Inner",
    "InputError",
    "Inside01",
    "Least0",
    "Points",
    "Positive",
    "Prior",
    "PrivateAgent",
    "Results",
    "Share",
    "__version__",
    "audit",
    "certify",
    "compare",
    "play",
    "recommend",
    "started",
]

ENVIRONMENTS = {  # Gymnasium id -> module and class of the environment
    f"dpbandit/{one['name']}-v0": f"dpbandit.envs:{one['name']}"
    for one in _catalogue("dpbandit.envs")
}

_FILES = {  # module -> names that the package exports from it
    "agent": "Agent Arms Around Chance Count Count0 Inner Inside01 Least0 Points Positive "
    "PrivateAgent Share started",
    "agents": "agents",
    "auditing": "AuditReport audit",
    "base": "InputError",
    "results.results": "Results",
    "running.compare": "certify compare",
    "running.loop": "play",
    "running.recommend": "recommend",
    "specs.models": "Prior",
    "testing": "testing",
}
__getattr__, __dir__ = _lazily(
    __name__,
    {name: f"{__name__}.{file}" for file, names in _FILES.items() for name in names.split()},
)


for _id, _problem in ENVIRONMENTS.items():
    if _id not in _gym.registry:
        _gym.register(
            _id,
            entry_point="dpbandit.envs.adapters:BanditEnv",
            vector_entry_point="dpbandit.envs.adapters:BanditVectorEnv",
            kwargs={"problem": _problem},
        )
