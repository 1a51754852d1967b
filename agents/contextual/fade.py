"""FADE: fading aggregates, debiased, with empirical-Bayes shrinkage."""

from dataclasses import replace
from typing import Literal

from dpbandit.agent import Least0, Positive
from dpbandit.agents.contextual.demand import Features
from dpbandit.agents.contextual.fade_choice import Model, agent_for, features_for
from dpbandit.agents.contextual.fading import OnDevices, WarmStarted
from dpbandit.agents.contextual.moments import Shrinkage
from dpbandit.base import InputError
from dpbandit.specs import AgentConfig, ContextualSpec


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

    **Limits.** Greedy play has no worst-case regret bound. No certificate covers that settings were
    chosen by looking at problems, though at others than any we report on (docs/fade.md).

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
        return agent_for(self, spec)

    def gaussian(self, spec: ContextualSpec) -> "FADE":
        """This agent where Gaussian noise alone may be added: it learns no curve by itself."""
        curved = spec.priced and self.features == "auto" and features_for(self, spec) == "curve"
        return replace(self, features="additive") if curved else self
