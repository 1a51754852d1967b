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

    A design of this project. It chooses a model of rewards by public properties of the problem
    (`fade_choice.TABLE`) and passes its settings to the agent of that model::

        model        agent                       for
        asked        `FadeAsking`                logistic or no known link: one of the next two
        arms         `FadeArms`                  arms with parameters of their own
        answers      `FadeCentred`               arms as above, no known link, too few users
        slates       `FadeSlates`                a shared parameter, one row of features per arm
        prices       `FadePrices`, `FadeCurve`   prices, premiums, offers; identity link: a curve

    These agents sum residuals of released predictions, whose expectation at the true parameter is 0
    for every policy. With coding="rewards" (for comparison) sums do not depend on releases, except
    in `FadeLogistic`::

        moments      `FadeMoments`               arms with parameters of their own, many features
        regression   `FadeTrying`                arms as above, few features
                     `FadeRegression`            a shared parameter
        demand       `Priced` `FadeLogistic`     price lists

    Guarantee:
        The guarantee of the model's agent, see `Fading`: (epsilon, delta)-joint DP, and exactly
        mu-GDP for users who are summed. Users who are asked, or whose sales a curve counts, are in
        no sum; answers and contexts are mu-GDP, counts of sales epsilon-DP. The cost of a private
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
    empirical Bayes (`FadePrices`); "auto" is a curve if the link is identity, for which demand need
    not be a line in the price, else those of a prior, or shrunk, or additive with sums of rewards
    or more than 30 features"""
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
        if self.coding == "rewards" and self.model in ("arms", "answers", "slates", "prices"):
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
