"""Choice of FADE's agent for a problem, by a table of its public properties."""

from dataclasses import fields, replace
from enum import Flag, auto
from math import sqrt
from typing import Any, Literal, TypeAlias, cast

from dpbandit.agents.contextual.demand import Features, Priced, demand_spec
from dpbandit.agents.contextual.fade_arms import FadeArms
from dpbandit.agents.contextual.fade_asking import FadeAsking, can_ask
from dpbandit.agents.contextual.fade_centred import FadeCentred, PrivatelyCentred
from dpbandit.agents.contextual.fade_prices import FadeCurve, FadePrices
from dpbandit.agents.contextual.fade_regression import FadeLogistic, FadeRegression, FadeTrying
from dpbandit.agents.contextual.fade_slates import FadeSlates
from dpbandit.agents.contextual.fading import (
    MAX_COORDINATES,
    Fading,
    crowded,
    few_features,
    link_fixes_middle,
)
from dpbandit.agents.contextual.moments import FadeMoments
from dpbandit.base import MOST_ROUNDS, InputError
from dpbandit.specs import AgentConfig, ContextualSpec, SellingSpec

Model: TypeAlias = Literal[
    "asked", "arms", "answers", "slates", "prices", "moments", "regression", "demand"
]
MODELS: dict[Model, tuple[type[Fading], ...]] = {
    "asked": (FadeAsking,),
    "arms": (FadeArms,),
    "answers": (FadeCentred,),
    "slates": (FadeSlates,),
    "prices": (FadePrices, FadeCurve),
    "moments": (FadeMoments,),
    "regression": (FadeRegression, FadeTrying, FadeLogistic),
    "demand": (FadeLogistic,),
}
"""Model of rewards -> agents that play by it; the problem decides which of them plays"""
_CENTRED = (FadeArms, FadeSlates, FadeMoments, FadeRegression, FadeTrying)
"""Agents that can be wrapped in `PrivatelyCentred`, which subtracts a private mean from rewards"""

_CHOOSING = ("model", "coding", "asks")
"""Settings of FADE that choose an agent, and that no agent has"""
_MAX_FEATURES = 50
"""Largest number of features d for `FadeSlates`, whose fits take time in proportion to d^2"""
_MAX_SHRUNK = 30
"""Largest number of features for which price lists have features="shrunk" by default"""
_REGRESSION_MARGIN = 10
"""Factor on the noise with which `few_features` must still hold for features to be very few"""


class Fact(Flag):
    """Public properties of a problem and of FADE's settings, known before the first round."""

    MASKED = auto()
    """arms come and go (masks), so that each arm's contexts need a Gram matrix of their own"""
    PRICED = auto()
    """arms are prices or premiums, whose margins are public"""
    SHARED = auto()
    """arms share one parameter"""
    WIDE = auto()
    """parameters are too many for a full posterior covariance, or for fits of `FadeSlates`"""
    FEW = auto()
    """features are so few that T / 10 rounds give a Gram matrix eigenvalues above its noise"""
    LINKLESS = auto()
    """the link between x . theta and mean rewards is not known"""
    VERY_FEW = auto()
    """features satisfy FEW even with the noise multiplied by 10"""
    CROWDED = auto()
    """features suffice for centring, but users are too few to learn level and spread of rewards"""
    PLAIN = auto()
    """prior, trust and centring are at their defaults"""
    LOGISTIC = auto()
    """the link is logistic, so that the law of rewards decides between two models"""
    PROMPT = auto()
    """rewards arrive at once, the horizon is known, and the first users can be asked"""
    REWARDS = auto()
    """coding="rewards" is set, so that rewards are summed and not residuals of predictions"""


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
    (Fact.LINKLESS | Fact.PLAIN | Fact.PROMPT, "asked"),
    (Fact.LOGISTIC | Fact.PLAIN | Fact.PROMPT, "asked"),
    (Fact.LINKLESS | Fact.CROWDED | Fact.PLAIN, "answers"),
    (Fact(0), "arms"),
)
"""Pairs of required properties and a model; the first pair whose properties all hold decides"""


def facts_of(spec: ContextualSpec, mu: float) -> Fact:
    """Return the properties that hold for a problem and an agent that is mu-GDP."""
    K, d, few = spec.n_actions, spec.dim, few_features(spec, mu)
    held = {
        Fact.MASKED: spec.masks != "none",
        Fact.PRICED: spec.priced,
        Fact.SHARED: spec.shared,
        Fact.WIDE: d > _MAX_FEATURES if spec.shared else K * d > MAX_COORDINATES,
        Fact.FEW: few,
        Fact.LINKLESS: spec.link == "other",
        Fact.LOGISTIC: spec.link == "logistic" and link_fixes_middle(spec),
        Fact.VERY_FEW: few_features(spec, mu, times=_REGRESSION_MARGIN),
        Fact.CROWDED: crowded(spec, mu),
    }
    found = Fact(0)
    for fact, holds in held.items():
        found |= fact if holds else Fact(0)
    return found


def model_for(settings: Any, spec: ContextualSpec) -> Model:
    """Return the model of FADE's settings, or for "auto" the one that `TABLE` gives the problem."""
    if settings.model != "auto":
        return cast(Model, settings.model)
    plain = (settings.centring, settings.prior, settings.trust) == ("auto", None, "central")
    facts = facts_of(spec, settings.plan().mu) | (Fact.PLAIN if plain else Fact(0))
    facts |= Fact.REWARDS if settings.coding == "rewards" else Fact(0)
    if settings.asks and not settings.anytime:
        facts |= Fact.PROMPT if can_ask(spec, settings.plan()) else Fact(0)
    return next(model for row, model in TABLE if row in facts)


def features_for(settings: Any, spec: ContextualSpec) -> Features:
    """Return FADE's price features; "auto" is "curve" for the identity link, else "shrunk".

    With a prior they are those of its parameters, and "auto" is "additive" with sums of rewards,
    without a trusted server, and with more than `_MAX_SHRUNK` features.
    """
    if settings.features != "auto":
        return cast(Features, settings.features)
    # the counts of `FadeCurve` need a server that sees them
    if settings.trust != "central" or model_for(settings, spec) != "prices":
        return "additive"
    if settings.prior is not None:  # `FadeCurve` takes none
        shrunk = demand_spec(cast(SellingSpec, spec), "shrunk").dim
        return "shrunk" if len(settings.prior.mean) == shrunk else "additive"
    if spec.link == "identity" and cast(SellingSpec, spec).n_products == 1:
        return "curve"
    return "shrunk" if spec.dim <= _MAX_SHRUNK else "additive"


def agent_for(settings: Any, spec: ContextualSpec) -> AgentConfig:
    """Return the config of the agent for the chosen model, given all settings that are not default.

    Raises:
        InputError: a setting that this agent lacks, or a price model on a problem without prices.
    """
    if settings.anytime:
        spec = replace(spec, horizon=MOST_ROUNDS)
    model = model_for(settings, spec)
    if model in ("prices", "demand") and not spec.priced:
        raise InputError(
            f"FADE with model={model!r} plays a list of prices (dpbandit/OJPricing-v0), got a "
            f"{type(spec).__name__}: use model='auto'."
        )
    features = features_for(settings, spec)
    values = ((one.name, getattr(settings, one.name), one.default) for one in fields(settings))
    changed = {name: value for name, value, usual in values if value != usual}
    changed = {name: value for name, value in changed.items() if name not in _CHOOSING}
    kind = MODELS[model][0]
    if model == "regression" and settings.response == "logistic":
        kind = FadeLogistic
        del changed["response"]
    elif model == "regression" and not spec.shared:
        kind = FadeTrying
    elif model == "prices" and features == "curve":
        kind = FadeCurve
    if model in ("prices", "demand"):
        changed.pop("features", None)
    private = kind in _CENTRED and changed.pop("centring", "auto") == "private"
    for name, value in changed.items():
        if name not in kind.__dataclass_fields__:
            others = [word for word, kinds in MODELS.items() if _reads(name, word, kinds)]
            raise InputError(
                f"Expected {name}={value!r} only with model={' or '.join(others)}: here it is "
                f"{model}, {kind.__name__}."
            )
    if kind is FadePrices:
        changed["features"] = features
    if kind is FadeArms and settings.centring != "auto":
        # where the middle is right a centre costs less than a level; devices keep no centre
        learned = not link_fixes_middle(spec) or settings.trust != "central"
        changed["level"], private = private and learned, private and not learned
    if model == "demand":
        changed["first_batch"] = settings.plan().first(
            spec, 20 * sqrt(demand_spec(cast(SellingSpec, spec), features).dim)
        )
        return Priced(kind(**changed), features=features, explore=changed["first_batch"])
    return PrivatelyCentred(kind(**changed)) if private else kind(**changed)


def _reads(name: str, model: Model, kinds: tuple[type[Fading], ...]) -> bool:
    """Return True if any agent of a model, or a wrapper around it, has the setting `name`."""
    around = {"centring": bool({*kinds} & {*_CENTRED}), "features": model == "demand"}
    return around.get(name, False) or any(name in kind.__dataclass_fields__ for kind in kinds)
