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

from dpbandit.lazy import (
    catalogue as _catalogue,
    lazily as _lazily,
    typed_imports as _typed_imports,
)
from dpbandit.version import VERSION as __version__  # noqa: F401

if _TYPE_CHECKING:
    from dpbandit import agents as agents, testing as testing
    from dpbandit.agent import (
        Agent as Agent,
        Arms as Arms,
        Around as Around,
        Chance as Chance,
        Count as Count,
        Count0 as Count0,
        Inner as Inner,
        Inside01 as Inside01,
        Least0 as Least0,
        Points as Points,
        Positive as Positive,
        PrivateAgent as PrivateAgent,
        Share as Share,
        started as started,
    )
    from dpbandit.auditing import AuditReport as AuditReport, audit as audit
    from dpbandit.base import InputError as InputError
    from dpbandit.results.results import Results as Results
    from dpbandit.running.compare import certify as certify, compare as compare
    from dpbandit.running.loop import play as play
    from dpbandit.running.recommend import recommend as recommend
    from dpbandit.specs.models import Prior as Prior

ENVIRONMENTS = {  # Gymnasium id -> module and class of the environment
    f"dpbandit/{one['name']}-v0": f"dpbandit.envs:{one['name']}"
    for one in _catalogue("dpbandit.envs")
}

_HOMES = _typed_imports(__name__)
__all__ = sorted({*_HOMES, "ENVIRONMENTS", "__version__"} - {"agents", "testing"})
__getattr__, __dir__ = _lazily(__name__, _HOMES)


for _id, _problem in ENVIRONMENTS.items():
    if _id not in _gym.registry:
        _gym.register(
            _id,
            entry_point="dpbandit.envs.adapters:BanditEnv",
            vector_entry_point="dpbandit.envs.adapters:BanditVectorEnv",
            kwargs={"problem": _problem},
        )
