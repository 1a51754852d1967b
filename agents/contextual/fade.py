"""FADE: fading aggregates, debiased, with empirical-Bayes shrinkage; a table chooses its agent."""

from dataclasses import fields, replace
from enum import Flag, auto
from math import sqrt
from typing import Literal, TypeAlias, cast

from dpbandit.agent import Least0, Positive
from dpbandit.agents.arms.evidence import RaceIMED
from dpbandit.agents.contextual.demand import Features, Priced, demand_spec
from dpbandit.agents.contextual.fade_arms import FadeArms
from dpbandit.agents.contextual.fade_asking import FadeAsking, can_ask
from dpbandit.agents.contextual.fade_centred import FadeCentred, PrivatelyCentred
from dpbandit.agents.contextual.fade_curve import FadeCurve
from dpbandit.agents.contextual.fade_prices import FadePrices
from dpbandit.agents.contextual.fade_regression import FadeLogistic, FadeRegression, FadeTrying
from dpbandit.agents.contextual.fade_slates import FadeSlates
from dpbandit.agents.contextual.fading import (
    MAX_COORDINATES,
    OnDevices,
    WarmStarted,
    crowded,
    few_features,
    gram_noise,
    link_fixes_middle,
)
from dpbandit.agents.contextual.moments import FadeMoments, Shrinkage
from dpbandit.base import MOST_ROUNDS, InputError
from dpbandit.specs import AgentConfig, ContextualSpec, Prior, SellingSpec

Model: TypeAlias = Literal[
    "asked", "levels", "arms", "answers", "slates", "prices", "moments", "regression", "demand"
]
MODELS: dict[Model, tuple[type[AgentConfig], ...]] = {
    "asked": (FadeAsking,),
    "levels": (RaceIMED,),
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
_UNASKED_SETTINGS = ("centring", "prior", "trust", "response", "shift", "bonus")
"""Settings that have to be at their defaults if users are to be asked; `FadeAsking` has none"""
_UNSUMMED_SETTINGS = (*_UNASKED_SETTINGS, "first_batch", "growth", "fade")
"""Settings that have to be at their defaults for `RaceIMED`, which has none of them"""
_MIN_SIGNAL = 11
"""Smallest T mu / (K d) from which contexts are learned though nobody can be asked: the signal of T
rounds is then four times the noise of a sum, 2 sqrt(2) / mu"""
_MAX_FEATURES = 50
"""Largest number of features d for `FadeSlates`, whose fits take time in proportion to d^2"""
_MAX_SHRUNK = 30
"""Largest number of features for which effects on price lists are shrunk by default"""
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
    LOW_NOISE = auto()
    """the privacy noise of a Gram matrix is no larger than its sampling error"""
    CROWDED = auto()
    """features suffice for centring, but users are too few to learn level and spread of rewards"""
    PLAIN = auto()
    """prior, trust, centring and the settings of regressions are at their defaults"""
    LOGISTIC = auto()
    """the link is logistic, so that the law of rewards decides between two models"""
    PROMPT = auto()
    """rewards arrive at once, the horizon is known, and the first users can be asked"""
    NOISY = auto()
    """as PROMPT, but nobody can be asked, and users are too few to learn even strong effects of
    contexts before most of the run is over; settings of sums are at their defaults"""
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
    (Fact.LINKLESS | Fact.NOISY, "levels"),
    (Fact.LOGISTIC | Fact.FEW | Fact.LOW_NOISE | Fact.PLAIN, "regression"),
    (Fact.LOGISTIC | Fact.PLAIN | Fact.PROMPT, "asked"),
    (Fact.LINKLESS | Fact.CROWDED | Fact.PLAIN, "answers"),
    (Fact(0), "arms"),
)
"""Pairs of required properties and a model; the first pair whose properties all hold decides"""


class FADE(OnDevices, WarmStarted):
    """Greedy play on fading sums of bounded statistics: the best certified agent we know.

    A design of this project. It chooses a model of rewards by public properties of the problem
    (`TABLE`) and passes its settings to the agent of that model::

        model        agent                       for
        asked        `FadeAsking`                logistic or no known link: arms or answers
        levels       `RaceIMED`                  no known link, and very few users
        arms         `FadeArms`                  arms with parameters of their own
        answers      `FadeCentred`               arms as above, too few users, nobody to ask
        slates       `FadeSlates`                a shared parameter, one row of features per arm
        prices       `FadePrices`, `FadeCurve`   prices, premiums, offers; one product: a curve

    These agents sum residuals of released predictions, whose expectation at the true parameter is 0
    for every policy, but `RaceIMED` ignores contexts, where most of the run would be over before
    their effects are known. With coding="rewards" (for comparison), and where features are so few,
    or noise so small, that a regression is better, sums do not depend on releases, except in
    `FadeLogistic`::

        moments      `FadeMoments`               arms with parameters of their own, many features
        regression   `FadeTrying`                arms as above, few features
                     `FadeRegression`            a shared parameter
        demand       `Priced` `FadeLogistic`     price lists

    Guarantee:
        The guarantee of the model's agent, see `Fading`: (epsilon, delta)-joint DP, and exactly
        mu-GDP for users who are summed. Users who are asked, or whose sales a curve counts, are in
        no sum; answers and contexts are mu-GDP, counts of sales epsilon-DP, and so are the sums of
        `RaceIMED`. The cost of a private
        centre (`PrivatelyCentred`) is part of the target. A `prior` must be public, or released
        under a budget that adds to this one: a prior from `prior_from` states its cost for the
        people of its log, which is in the ledger and part of the target.

    **Limits.** Greedy play has no worst-case regret bound. No certificate covers the choice of
    default settings, made by trials on problems that we do not report on (docs/fade.md).

    >>> from dpbandit import certify
    >>> spec = ContextualSpec(n_actions=2, dim=50, horizon=10_000)
    >>> round(certify(FADE(epsilon=1.0, delta=1e-4), spec).epsilon, 6)
    1.0
    """

    # 19 settings, those of all models: each agent that it chooses has 6 to 11 of them
    model: Model | Literal["auto"] = "auto"
    """model of rewards, see docs/algorithms/fade.md; "auto" chooses it by the problem"""
    coding: Literal["residuals", "rewards"] = "residuals"
    """summed data if model="auto", either residuals of released predictions, or rewards"""
    centring: Literal["auto", "public", "private"] = "auto"
    """level that is subtracted from rewards, either the middle of their range or a learned level;
    "auto" is the middle if the link puts the mean reward at x . theta = 0 there"""
    asks: bool = True
    """True if model="auto" may ask the first users how rewards are distributed; they are not asked
    if too few of them could be, if they return, if rewards arrive late, if arms come and go, behind
    a guard, or with `prior`, `trust`, `centring` or `anytime`"""
    features: Features | Literal["auto"] = "auto"
    """features of a price on price lists, see `demand_rows`; "shrunk" are interactions shrunk by
    empirical Bayes (`FadePrices`), "curve" these and a curve (`FadeCurve`); "auto" is a curve, but
    shrunk if a logistic or probit link or several products are known, that of a prior, and additive
    with sums of rewards, devices or more than 30 features"""
    response: Literal["auto", "sign", "linear", "logistic"] = "auto"
    """response of model "regression"; "auto" is "sign" for identity, logistic and probit links,
    else "linear"; "logistic" needs one shared parameter and rewards in [0, 1]"""
    shift: Positive | None = None
    """ridge, in units of the noise's spectral norm; if None, 1, or 0.5 for logistic models"""
    bonus: Least0 | None = None
    """exploration of regressions, in standard deviations of the privacy noise in a prediction;
    the width of random draws if arms share no parameter (default 1.5), else a bonus (default 0)"""
    shrinkage: Shrinkage = "empirical-bayes"
    """shrinkage of estimates in model "moments" """
    debias: bool = True
    """True if model "moments" corrects the selection bias of more than two arms"""

    def check(self) -> None:
        super().check()
        models = "levels", "arms", "answers", "slates", "prices"
        if self.coding == "rewards" and self.model in models:
            raise InputError(
                f"Expected coding='rewards' without model={self.model!r}: leave one out."
            )

    def chosen(self, spec: ContextualSpec) -> AgentConfig:
        return agent_for(self, spec)

    def gaussian(self, spec: ContextualSpec) -> "FADE":
        """Return this agent without questions, and with one price slope unless `features` are set.

        Counts of sales need Laplace noise, with the noise of a person's budget shrunk effects lose
        more than a line, and questions were not measured behind a wrapper.
        """
        free = self.features == "auto" and self.prior is None and spec.priced
        chosen = free and features_for(self, spec) != "additive"
        return replace(self, asks=False, features="additive" if chosen else self.features)


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
        Fact.LOW_NOISE: gram_noise(spec, mu) <= spec.dim,
        Fact.CROWDED: crowded(spec, mu),
    }
    found = Fact(0)
    for fact, holds in held.items():
        found |= fact if holds else Fact(0)
    return found


def model_for(settings: "FADE", spec: ContextualSpec) -> Model:
    """Return the model of FADE's settings, or for "auto" the one that `TABLE` gives the problem."""
    if settings.model != "auto":
        return settings.model
    usual = {one.name: one.default for one in fields(settings)}
    changed = {name for name in _UNSUMMED_SETTINGS if getattr(settings, name) != usual[name]}
    facts = facts_of(spec, settings.plan().mu)
    facts |= Fact(0) if changed & {*_UNASKED_SETTINGS} else Fact.PLAIN
    facts |= Fact.REWARDS if settings.coding == "rewards" else Fact(0)
    if settings.asks and not settings.anytime:
        if can_ask(spec, settings.plan()):
            facts |= Fact.PROMPT
        elif not (changed or spec.delay) and too_few_users(spec, settings.plan().mu):
            facts |= Fact.NOISY
    return next(model for row, model in TABLE if row in facts)


def too_few_users(spec: ContextualSpec, mu: float) -> bool:
    """Return True if sums of scores of all T rounds have little more signal than noise.

    A coordinate of the sum has about T / (K d) times an effect, in units of the spread of rewards.
    """
    return spec.horizon * mu < _MIN_SIGNAL * spec.n_actions * spec.dim


def features_for(settings: "FADE", spec: ContextualSpec) -> Features:
    """Return FADE's price features, by default "curve".

    "auto" is "shrunk" if the link makes demand a line in the price, and with several products;
    "additive" with sums of rewards, without a trusted server, and with more than `_MAX_SHRUNK`
    features. With a prior features are those of its parameters.
    """
    if settings.features != "auto":
        return settings.features
    # the counts of `FadeCurve` need a server that sees them
    if settings.trust != "central" or model_for(settings, spec) != "prices":
        return "additive"
    if isinstance(settings.prior, Prior):  # `FadeCurve` takes none
        shrunk = demand_spec(cast(SellingSpec, spec), "shrunk").dim
        return "shrunk" if len(settings.prior.mean) == shrunk else "additive"
    if spec.dim > _MAX_SHRUNK:
        return "additive"
    known = spec.link in ("logistic", "probit")
    return "shrunk" if known or cast(SellingSpec, spec).n_products > 1 else "curve"


def agent_for(settings: "FADE", spec: ContextualSpec) -> AgentConfig:
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
    if model == "levels":
        changed.pop("delta", None)  # its sums are pure
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


def _reads(name: str, model: Model, kinds: tuple[type[AgentConfig], ...]) -> bool:
    """Return True if any agent of a model, or a wrapper around it, has the setting `name`."""
    around = {"centring": bool({*kinds} & {*_CENTRED}), "features": model == "demand"}
    return around.get(name, False) or any(name in kind.__dataclass_fields__ for kind in kinds)
