"""Choice of a model by public facts of a problem: one table, whose first row that holds counts."""

from enum import Flag, auto
from typing import Literal, TypeAlias

from dpbandit.agents.contextual.fading import few_features
from dpbandit.specs import ContextualSpec

Model: TypeAlias = Literal["arms", "answers", "slates", "prices", "moments", "regression", "demand"]

_MAX_COORDINATES = 1000
"""Coordinates K d of `FadeArms`, whose posterior has a matrix of their square"""
_MAX_FEATURES = 50
"""Features d of `FadeSlates`, whose fits take time in proportion to their square"""
_REGRESSION_MARGIN = 10
"""Factor below the limit of `few_features` from which regressions try arms, and do not lock in"""
_MIN_DIRECTIONS = 4
"""Features of `FadeCentred`: with fewer, most users may be of one kind, whose direction from the
mean is none"""
_MIN_ROUNDS_PER_ARM = 20
"""Rounds per arm over d^2 below which centred scores are preferred, whatever epsilon"""


class Fact(Flag):
    """What is known of a problem and of what was asked before the first round."""

    MASKED = auto()
    """arms come and go: whom one was shown is summed by a Gram matrix, and imagined elsewhere"""
    PRICED = auto()
    """arms are prices"""
    SHARED = auto()
    """arms share one parameter"""
    WIDE = auto()
    """coordinates are too many for matrices of their square, or for fits"""
    FEW = auto()
    """a tenth of the run shows eigenvalues of a Gram matrix above its noise"""
    LINKLESS = auto()
    """no link is known"""
    VERY_FEW = auto()
    """features are a tenth of few"""
    CROWDED = auto()
    """there are features enough to centre, and too few users to learn a level and a spread"""
    PLAIN = auto()
    """asked: no prior, no devices, no other centring"""
    REWARDS = auto()
    """asked: sums of rewards, which do not depend on releases"""


TABLE: tuple[tuple[Fact, Model], ...] = (
    (Fact.MASKED | Fact.PRICED, "demand"),
    (Fact.MASKED, "regression"),
    (Fact.PRICED | Fact.REWARDS, "demand"),
    (Fact.PRICED, "prices"),
    (Fact.SHARED | Fact.REWARDS, "regression"),
    (Fact.SHARED | Fact.WIDE, "regression"),
    (Fact.SHARED, "slates"),
    (Fact.REWARDS | Fact.FEW, "regression"),
    (Fact.REWARDS, "moments"),
    (Fact.WIDE | Fact.FEW, "regression"),
    (Fact.WIDE, "moments"),
    (Fact.LINKLESS | Fact.VERY_FEW, "regression"),
    (Fact.LINKLESS | Fact.CROWDED | Fact.PLAIN, "answers"),
    (Fact(0), "arms"),
)
"""Facts -> model; the first row counts of which all facts hold"""


def facts_of(spec: ContextualSpec, mu: float) -> Fact:
    """Return what is known of a problem that is played with mu-GDP."""
    K, d, few = spec.n_actions, spec.dim, few_features(spec, mu)
    crowded = spec.horizon < _MIN_ROUNDS_PER_ARM * K * d**2 or not few
    held = {
        Fact.MASKED: spec.masks != "none",
        Fact.PRICED: spec.priced,
        Fact.SHARED: spec.shared,
        Fact.WIDE: d > _MAX_FEATURES if spec.shared else K * d > _MAX_COORDINATES,
        Fact.FEW: few,
        Fact.LINKLESS: spec.link == "other",
        Fact.VERY_FEW: few_features(spec, mu, times=_REGRESSION_MARGIN),
        Fact.CROWDED: d >= _MIN_DIRECTIONS and crowded,
    }
    found = Fact(0)
    for fact, holds in held.items():
        found |= fact if holds else Fact(0)
    return found


def model_for(facts: Fact) -> Model:
    """Return the model of the first row of `TABLE` whose facts are all among these."""
    return next(model for row, model in TABLE if row in facts)
