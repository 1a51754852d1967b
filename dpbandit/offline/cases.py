"""A policy and a log, made ready: what each estimator is there, and what holds for its rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dpbandit.base.arrays import Floats
from dpbandit.offline.betting import Stakes
from dpbandit.offline.rows import refuse_row
from dpbandit.offline.terms import Terms

_ROUNDING = 1e-6
"""By which a reward may miss its bounds, relative to their distance."""


@dataclass(frozen=True, eq=False)
class Case:
    """What does not depend on whether rows are of arms, prices or lists."""

    estimators: Mapping[str, Callable[[], Terms]]
    bounds: tuple[float, float]
    """public, of a row's reward"""
    adaptive: bool
    stakes: Mapping[str, Callable[[], Stakes]] = field(default_factory=dict)
    """of the estimators that can bet on themselves; for the others "ips" does; without it nobody"""
    notes: Mapping[str, str | Callable[[Terms], str]] = field(default_factory=dict)
    """what is to be said of an estimator, perhaps by its terms"""
    dropped: float = 0.0
    """the share of the policy's choices that could not be logged"""


def scaled(reward: Floats, weight: Floats, bounds: tuple[float, float]) -> Stakes:
    """Rewards by their public bounds, on [0, 1]."""
    low, high = bounds
    share = ((reward - low) / (high - low)).clip(0, 1)
    return Stakes(weight * share, weight * (1 - share))


def refuse_rewards(reward: Floats, bounds: tuple[float, float]) -> None:
    """Refuse a row whose reward lies outside its public bounds, on which intervals rest."""
    low, high = bounds
    room = _ROUNDING * (high - low)
    fine = (reward >= low - room) & (reward <= high + room)
    refuse_row(f"rewards from {low:g} to {high:g}, the spec's", fine)
