"""Choice of the agent that FADE hands its settings to: one table of public facts of a problem."""

from dataclasses import fields, replace
from enum import Flag, auto
from math import sqrt
from typing import Any, Literal, TypeAlias, cast

from dpbandit.agents.contextual.demand import Features, Priced, demand_spec
from dpbandit.agents.contextual.fade_arms import FadeArms
from dpbandit.agents.contextual.fade_centred import FadeCentred, PrivatelyCentred
from dpbandit.agents.contextual.fade_prices import FadeCurve, FadePrices
from dpbandit.agents.contextual.fade_regression import FadeLogistic, FadeRegression, FadeTrying
from dpbandit.agents.contextual.fade_slates import FadeSlates
from dpbandit.agents.contextual.fading import (
    MAX_COORDINATES,
    Fading,
    few_features,
    link_fixes_middle,
)
from dpbandit.agents.contextual.moments import FadeMoments
from dpbandit.base import MOST_ROUNDS, InputError
from dpbandit.specs import AgentConfig, ContextualSpec, PriceListSpec

Model: TypeAlias = Literal["arms", "answers", "slates", "prices", "moments", "regression", "demand"]
MODELS: dict[Model, tuple[type[Fading], ...]] = {
    "arms": (FadeArms,),
    "answers": (FadeCentred,),
    "slates": (FadeSlates,),
    "prices": (FadePrices, FadeCurve),
    "moments": (FadeMoments,),
    "regression": (FadeRegression, FadeTrying, FadeLogistic),
    "demand": (FadeLogistic,),
}
"""Model -> agents that play it, each for some problems"""
_CENTRED = (FadeArms, FadeSlates, FadeMoments, FadeRegression, FadeTrying)

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
    """Public facts of a problem and of FADE's settings, known before the first round."""

    MASKED = auto()
    """arms come and go, so that contexts which an arm met are summed by a Gram matrix"""
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
    """neither a prior nor devices nor another centring is asked for"""
    REWARDS = auto()
    """sums of rewards, which do not depend on releases, are asked for"""


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
        Fact.WIDE: d > _MAX_FEATURES if spec.shared else K * d > MAX_COORDINATES,
        Fact.FEW: few,
        Fact.LINKLESS: spec.link == "other",
        Fact.VERY_FEW: few_features(spec, mu, times=_REGRESSION_MARGIN),
        Fact.CROWDED: d >= _MIN_DIRECTIONS and crowded,
    }
    found = Fact(0)
    for fact, holds in held.items():
        found |= fact if holds else Fact(0)
    return found


def model_for(settings: Any, spec: ContextualSpec) -> Model:
    """Return the model for a problem by `TABLE`, unless the settings of `FADE` say it."""
    if settings.model != "auto":
        return cast(Model, settings.model)
    plain = (settings.centring, settings.prior, settings.trust) == ("auto", None, "central")
    told = Fact.PLAIN if plain else Fact(0)
    told |= Fact.REWARDS if settings.coding == "rewards" else Fact(0)
    facts = told | facts_of(spec, settings.plan().mu)
    return next(model for row, model in TABLE if row in facts)


def features_for(settings: Any, spec: ContextualSpec) -> Features:
    """Return what a price costs a customer; a curve where no line is asked for."""
    if settings.features != "auto":
        return cast(Features, settings.features)
    counts = (settings.prior, settings.trust) == (None, "central")
    curved = counts and spec.link == "identity" and model_for(settings, spec) == "prices"
    return "curve" if curved else "additive"


def agent_for(settings: Any, spec: ContextualSpec) -> AgentConfig:
    """Return the model's agent, with those of the settings that are not the default.

    Raises:
        InputError: a setting that this agent has not, or a model of prices for no list of them.
    """
    if settings.anytime:
        spec = replace(spec, horizon=MOST_ROUNDS)
    model, features = model_for(settings, spec), features_for(settings, spec)
    if model in ("prices", "demand") and not spec.priced:
        raise InputError(
            f"FADE with model={model!r} plays a list of prices (dpbandit/OJPricing-v0), got a "
            f"{type(spec).__name__}: use model='auto'."
        )
    values = ((one.name, getattr(settings, one.name), one.default) for one in fields(settings))
    given = {name: value for name, value, usual in values if value != usual}
    given = {name: value for name, value in given.items() if name not in ("model", "coding")}
    kind = MODELS[model][0]
    if model == "regression" and settings.response == "logistic":
        kind = FadeLogistic
        del given["response"]
    elif model == "regression" and not spec.shared:
        kind = FadeTrying
    elif model == "prices" and features == "curve":
        kind = FadeCurve
    if model in ("prices", "demand"):
        given.pop("features", None)
    private = kind in _CENTRED and given.pop("centring", "auto") == "private"
    for name, value in given.items():
        if name not in kind.__dataclass_fields__:
            others = [word for word, kinds in MODELS.items() if _reads(name, word, kinds)]
            raise InputError(
                f"Expected {name}={value!r} only with model={' or '.join(others)}: here it is "
                f"{model}, {kind.__name__}."
            )
    if kind is FadePrices:
        given["features"] = features
    if kind is FadeArms and settings.centring != "auto":
        # where the middle is right a centre costs less than a level; devices keep no centre
        learned = not link_fixes_middle(spec) or settings.trust != "central"
        given["level"], private = private and learned, private and not learned
    if model == "demand":
        given["first_batch"] = settings.plan().first(
            spec, 20 * sqrt(demand_spec(cast(PriceListSpec, spec), features).dim)
        )
        return Priced(kind(**given), features=features, explore=given["first_batch"])
    return PrivatelyCentred(kind(**given)) if private else kind(**given)


def _reads(name: str, model: Model, kinds: tuple[type[Fading], ...]) -> bool:
    """Return whether a setting changes anything with a model: in its agents or around them."""
    around = {"centring": bool({*kinds} & {*_CENTRED}), "features": model == "demand"}
    return around.get(name, False) or any(name in kind.__dataclass_fields__ for kind in kinds)
