"""FADE: fading aggregates, debiased, with empirical-Bayes shrinkage."""

from dataclasses import fields, replace
from math import sqrt
from typing import Literal

from dpbandit.agent import Least0, Positive
from dpbandit.agents.contextual.centring import PrivatelyCentred
from dpbandit.agents.contextual.demand import Features, Priced, demand_spec
from dpbandit.agents.contextual.fade_arms import FadeArms
from dpbandit.agents.contextual.fade_centred import FadeCentred
from dpbandit.agents.contextual.fade_choice import Fact, Model, facts_of, model_for
from dpbandit.agents.contextual.fade_prices import FadeCurve, FadePrices
from dpbandit.agents.contextual.fade_regression import FadeLogistic, FadeRegression, FadeTrying
from dpbandit.agents.contextual.fade_slates import FadeSlates
from dpbandit.agents.contextual.fading import Fading, OnDevices, WarmStarted, middle_is_told
from dpbandit.agents.contextual.moments import FadeMoments, Shrinkage
from dpbandit.base import MOST_ROUNDS, InputError
from dpbandit.specs import AgentConfig, ContextualSpec

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


class FADE(OnDevices, WarmStarted):
    """Greedy play on fading sums of bounded statistics: the best certified agent we know.

    A design of this project. It hands its settings to the agent of the model that the problem asks
    for, by public facts alone (`fade_choice.TABLE`)::

        model        agent                       for
        arms         `FadeArms`                  arms with parameters of their own
        answers      `FadeCentred`               the same without a link, features not few
        slates       `FadeSlates`                a shared parameter, slates of rows
        prices       `FadePrices`, `FadeCurve`   price lists; a curve where the link is identity

    These sum residuals against what was released: at the truth they say nothing in expectation,
    whatever was played. coding="rewards" sums what does not depend on releases, for the record::

        moments      `FadeMoments`               arms with parameters of their own, many features
        regression   `FadeTrying`                the same, few features
                     `FadeRegression`            a shared parameter
        demand       `Priced` `FadeLogistic`     price lists

    Guarantee:
        That of the model's agent, see `Fading`: (epsilon, delta)-joint DP, and exactly mu-GDP. A
        private centre (`PrivatelyCentred`) is paid out of the target. A `prior` has to be public,
        or released under a budget that adds to this one: that of `prior_from` says what it cost
        its log's people, which stands in the ledger and is paid out of the target.

    **Limits.** Greedy play has no worst-case regret bound.

    >>> from dpbandit import certify
    >>> spec = ContextualSpec(n_actions=2, dim=50, horizon=10_000)
    >>> round(certify(FADE(epsilon=1.0, delta=1e-4), spec).epsilon, 6)
    1.0
    """

    # 18 settings, those of all models: each agent that it chooses has 6 to 11 of them
    model: Model | Literal["auto"] = "auto"
    """what is summed; "auto" follows the problem"""
    coding: Literal["residuals", "rewards"] = "residuals"
    """what "auto" sums where it can, residuals against releases or rewards"""
    centring: Literal["auto", "public", "private"] = "auto"
    """what rewards are compared with, the middle of the public range or a level that is learned;
    auto is the middle where the link says that it is the reward at x . theta = 0"""
    features: Features | Literal["auto"] = "auto"
    """of price lists, what a price costs a customer, see `demand_rows`; "auto" is a curve where the
    link is identity, which asks for no line, and additive elsewhere"""
    response: Literal["auto", "sign", "linear", "logistic"] = "auto"
    """of "regression"; auto is sign for identity, logistic and probit links, else linear; logistic
    needs one shared parameter and rewards in [0, 1]"""
    shift: Positive | None = None
    """ridge, in units of the noise's spectral norm; if None, 1, logistic (demand) 0.5"""
    bonus: Least0 | None = None
    """of regressions, in standard deviations of what privacy adds to a prediction; of draws that
    try arms with parameters of their own, else a fixed optimism; if None, 1.5 and 0"""
    shrinkage: Shrinkage = "empirical-bayes"
    """of "moments" """
    debias: bool = True
    """of "moments" with more than two arms"""

    def check(self) -> None:
        super().check()
        if self.coding == "rewards" and self.model in ("arms", "answers", "slates", "prices"):
            raise InputError(
                f"Expected coding='rewards' without model={self.model!r}: leave one out."
            )

    def chosen(self, spec: ContextualSpec) -> AgentConfig:
        # The model's agent, with those of these settings that are not the default
        if self.anytime:
            spec = replace(spec, horizon=MOST_ROUNDS)
        model = self.model_of(spec)
        if model in ("prices", "demand") and not spec.priced:
            raise InputError(
                f"FADE with model={model!r} plays a list of prices (dpbandit/OJPricing-v0), got a "
                f"{type(spec).__name__}: use model='auto'."
            )
        values = ((one.name, getattr(self, one.name), one.default) for one in fields(self))
        given = {name: value for name, value, usual in values if value != usual}
        given = {name: value for name, value in given.items() if name not in ("model", "coding")}
        kind, features = MODELS[model][0], self.features_of(spec)
        if model == "regression" and given.get("response") == "logistic":
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
                others = [word for word, kinds in MODELS.items() if _have(name, kinds, word)]
                raise InputError(
                    f"Expected {name}={value!r} only with model={' or '.join(others)}: here it is "
                    f"{model}, {kind.__name__}."
                )
        if kind is FadePrices:
            given["features"] = features
        if kind is FadeArms and self.centring != "auto":
            # where the middle is right a centre costs less than a level; devices keep no centre
            learned = not middle_is_told(spec) or self.trust != "central"
            given["level"], private = private and learned, private and not learned
        if model == "demand":
            first = self.plan().first(spec, 20 * sqrt(demand_spec(spec, features).dim))
            inner = kind(**{**given, "first_batch": first})
            return Priced(inner, features=features, explore=first)
        return PrivatelyCentred(kind(**given)) if private else kind(**given)

    def model_of(self, spec: ContextualSpec) -> Model:
        """Return the model for a problem, by `TABLE` unless it was told."""
        if self.model != "auto":
            return self.model
        plain = self.centring == "auto" and self.prior is None and self.trust == "central"
        told = Fact.PLAIN if plain else Fact(0)
        told |= Fact.REWARDS if self.coding == "rewards" else Fact(0)
        return model_for(facts_of(spec, self.plan().mu) | told)

    def features_of(self, spec: ContextualSpec) -> Features:
        """Return what a price costs a customer; a curve where no line is asked for."""
        if self.features != "auto":
            return self.features
        counts = self.model_of(spec) == "prices" and self.prior is None and self.trust == "central"
        return "curve" if counts and spec.link == "identity" else "additive"

    def gaussian(self, spec: ContextualSpec) -> "FADE":
        """This agent where Gaussian noise alone may be added: it learns no curve by itself."""
        curved = spec.priced and self.features == "auto" and self.features_of(spec) == "curve"
        return replace(self, features="additive") if curved else self


def _have(name: str, kinds: tuple[type[Fading], ...], model: Model) -> bool:
    """Whether agents of a model have a setting, or the chooser reads it for them."""
    if name == "centring":
        return bool({*kinds} & {*_CENTRED})
    if name == "features" and model == "demand":  # of `Priced`
        return True
    return any(name in kind.__dataclass_fields__ for kind in kinds)
