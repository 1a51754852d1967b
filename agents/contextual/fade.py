"""FADE: fading aggregates, debiased, with empirical-Bayes shrinkage."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Literal, TypeAlias, cast, get_args

from dpbandit.agents.contextual.centring import PrivatelyCentred
from dpbandit.agents.contextual.demand import Features
from dpbandit.agents.contextual.fade_learners import (
    FadingAnswers,
    FadingArms,
    FadingDemand,
    FadingMoments,
    FadingPrices,
    FadingRegression,
    FadingReleases,
    FadingSlates,
    Response,
    Shrinkage,
    middle_is_told,
)
from dpbandit.agents.contextual.moments import SHRINKAGES
from dpbandit.base import (
    MOST_ROUNDS,
    InputError,
    Streams,
    at_least,
    flag,
    gaussian_target,
    inside,
    one_of,
    positive,
    whole,
)
from dpbandit.privacy.mechanism import ADDED_UP
from dpbandit.privacy.notion import Trust
from dpbandit.specs import (
    BanditSpec,
    ContextualSpec,
    Prior,
    ScoringAgent,
    fits,
)

Learner: TypeAlias = Literal[
    "arms", "answers", "slates", "prices", "moments", "regression", "demand"
]
_OF_RESIDUALS = ("arms", "answers", "slates", "prices")
_OWN: dict[str, tuple[Learner, ...]] = {
    "response": ("regression",),
    "shift": ("regression", "demand"),
    "bonus": ("regression", "demand"),
    "features": ("prices", "demand"),
    "shrinkage": ("moments",),
    "debias": ("moments",),
    "centring": ("arms", "slates", "moments", "regression"),
    "prior": ("arms", "slates", "prices"),
}
"""Settings of some models only: elsewhere they would do nothing, and are refused."""
_MOST_COORDINATES = 1000
"""K d of "arms", whose posterior has a matrix of its square."""
_MOST_FEATURES = 50
"""d of "slates", whose fits take time in proportion to its square."""
_VERY = 10
"""How much fewer features than few: regressions of them try arms, and do not lock in."""
_LEAST_DIRECTIONS = 4
"""d of "answers": with fewer, most users may be of one kind, whose direction from the mean is none.
"""
_USERS = 20
"""Of an arm, times d^2: with fewer, and no link, its features are not few at any budget."""
_LEAST_GROWTH = 0.01
"""Of batches without a horizon, so that their ends can be written down."""


@dataclass(frozen=True, kw_only=True)
class FADE:
    """Greedy play on fading sums of bounded statistics: the best certified agent we know.

    A design of this project. Rounds are cut into batches, each a tenth longer than the one before;
    the first is played at random, or as a public `prior` says::

        in round t             v_t, a bounded statistic of (x_t, a_t, r_t) and of earlier releases
        at the end of batch k  E_k = fade E_{k-1} + sum of v_t;  release E_k + N(0, sigma^2 I)
        play                   the arm with the best prediction, from all releases so far

    What v is follows the problem ("auto")::

        model        for                                    v
        arms         arms with parameters of their own      sign(r - prediction) x / |x|, whether
                                                            the residual is large, and perhaps on
                                                            which side of the level it lies
        answers      the same without a link, features       the score of y - p along a constant and
                     not few                                the direction of x from its mean
        slates       a shared parameter, slates of rows     the score of y - p, p the predicted
                                                            chance of a reward (above the middle of
                                                            its range), and the slate's moments
        prices       price lists                            the score of sale - p, p the predicted
                                                            chance of a sale, and the customer's
                                                            moments

    Predictions are released ones, so that what is summed are residuals: at the truth they say
    nothing in expectation, whatever was played, and a wrong guess of the contexts' law changes how
    fast the truth is found, not where it lies. Fits use the likelihood of all releases.

    coding="rewards" sums what does not depend on releases, for the record::

        moments      arms with parameters of their own,     sign(r - centre) x / |x|, a block for
                     many features                          each arm, or the difference of two
        regression   the same, few features; a shared       x x' and r x, where r is the sign of the
                     parameter                              reward, or the reward in [-1, 1]
        demand       price lists                            the same for a logistic model of a sale

    Parameters of arms with a link and at most 60 coordinates K d may change: of likelihoods that
    forget at three rates the one that has predicted releases best is believed (`Forgetting`), and
    batches are a hundredth of T at most, or half the first.

    A price list's utility is a line in the price, the same for all customers, or with
    `features="curve"` any curve of it (`CurvedPricing`): each price is first asked by turns, its
    sales are counted, and then a line and a curve compete by their posterior probabilities. That is
    the default where the spec says that rewards are linear (identity), which a line of a logit
    contradicts: demand of other shapes, such as that of two kinds of customers, holds a line at a
    wrong price for good.

    Features are few where an arm's share of T / 10 users is more than d^2 and more than the noise
    asks for; a larger budget alone never leaves "moments". "moments" weighs the releases by their
    noise, undoes what the policy did to the contexts of an arm (`SelectedMoments`), and shrinks by
    empirical Bayes (Stephens, Biostatistics 2017), so that nobody has to know whether parameters
    are sparse. It is also the model of more than 1,000 coordinates K d, for which "arms" would hold
    a matrix of their square. "regression" is a ridge regression, in which the Gram matrix comes
    free (see below). It is played instead of "slates" where features are more than 50, and instead
    of "arms", too, where the link is "other" and features are a tenth of few: there users try arms
    that may be best (`TryingPlayer`), which keeps it from locking in.

    Where arms come and go "auto" is "regression", or "demand" on price lists, whose Gram matrices
    say what was played; other models imagine that, with all arms there, and are refused.

    Rewards are compared with the middle of their public range where the link says that it is the
    reward at x . theta = 0 (identity: a range symmetric about 0; logistic and probit: [0, 1]). Else
    "arms" learns their level with them, in three short batches before the first and from then on
    (`ResidualLaw`). `centring="private"` has other models learn a centre, and "arms" where the
    link tells the middle: there that costs less than a level. Where the link is "other" and
    features are not few there is too little to learn a level and a spread: from 4 features on
    rewards on a scale from 0 to 1 are compared with 1/2 at first and then with what is predicted
    (`CentredArms`), and contexts with their mean, a release of the first few users with the whole
    budget.

    Privacy needs no horizon: over endlessly many releases a user's weights have norm 1 / sqrt(1 -
    fade^2), 1.4003 at 0.7, of which 20 releases fall short by less than a millionth. With `anytime`
    runs are planned for 10^9 rounds, the most that any problem has, and play on when the horizon of
    theirs has passed; the first batch may be longer than T / 10.

    Code:
        Each model has a learner (fade_learners.py) that builds its player on `FadingReleases`
        (there, too). Of residuals `FadingArms` builds `ResidualArms`, which imagines users by
        `SelectedMoments` (moments.py), learns the law of residuals by `ResidualLaw`, forgets by
        `Forgetting` and shrinks by `ScaleMixture` (all in residual_arms.py);
        `FadingAnswers` builds `CentredArms` (centred_arms.py);
        `FadingSlates` builds `ResidualSlates`, which imagines slates by `ImaginedSlates`
        (residual_slates.py), and `FadingPrices` builds `ResidualPricing` or `CurvedPricing`, which
        imagine customers by `ImaginedCustomers` and aim scores by `AimedScores`
        (residual_pricing.py); all fit by `ReleasedScores` (released_scores.py).
        Of rewards `FadingMoments` builds `MomentPlayer`, which shrinks by `empirical_bayes`
        (moments.py), `FadingRegression` builds `RegressionPlayer`, `TryingPlayer` or
        `LogisticPlayer` (fading_regression.py), and `FadingDemand` puts the latter into
        `Priced` (demand.py).
        A private centre is `PrivatelyCentred` (centring.py), a public prior `PublicPrior`
        (public_prior.py).

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        exactly mu-GDP: v moves by at most its `sensitivity` whatever is fed (2 for moments; 2 in
        units of r x for regression, because `|xx' - yy'|^2 / 2 + |rx - sy|^2 <= 4` for `|x|`,
        `|y|`, `|r|`, `|s| <= 1`, so the Gram matrix at half the weight costs nothing on top;
        sqrt(5) times 0.75 in the logistic model; for residuals 2 sqrt(1 + 0.15^2), with a level
        2 sqrt(1 + 0.15^2 + 0.2^2), of answers 2, of slates sqrt(4 (1 + 0.3^2) + 2 (0.5 0.55)^2) and
        of sales sqrt(4 + 4.5 0.35^2), with interactions sqrt(4 + 4.5 0.5^2), at every released
        reference point). A user of batch b appears in release k >= b with weight fade^(k - b), all
        that with fresh Gaussian noise (`FadingSum`), and actions of others are functions of
        releases, of their own contexts and of public coins. With a curve the first customers are
        counted with Laplace noise of the whole epsilon, and not summed; of the first users of
        "answers" contexts alone are, exactly mu-GDP, too. Batch ends, weights, fits and shrinkage
        see public numbers and releases only. A
        `prior` has to be public, too: not made of the data of these users, or else released under a
        budget that adds to this one: that of `prior_from` says what it cost its log's people, which
        stands in the ledger and is paid out of the target. With trust="aggregated" and fade=0 that
        is said of all that the server sees, noisy sums of batches (`AggregatedSum`): releases are
        broadcast, a user's own device plays, compares her answer with the prediction and sends v
        with its share of the noise.

    **Why it wins.** One release a user (`BatchMoment`) wastes the early users later on, and prefix
    sums pay for every later release early on; fading sums lie between. Signs of rewards over
    normalised contexts use the whole budget for every user, without a clip to be tuned.

    **Limits.** "arms" and "moments" take contexts for symmetric about 0 and roughly isotropic:
    "arms" learns more slowly where they are not, "moments" something else; "answers" does so about
    their mean. Signs against
    the public middle need rewards on both sides of it (else choose `centring="private"`).
    Predictions of "moments" and "slates" order arms and are not in units of the reward; nor are
    those of signs in regressions. Greedy play has no worst-case regret bound: a few runs of
    "prices" keep to a price that does not sell for thousands of rounds.

    Fading was found by looking at BatchMoment's learning curve on the reference problem P1.
    Settings were chosen on other problems than any we report on: GLMBandit with (K, d) = (2, 40)
    and (5, 40), max-norm contexts, 4 coordinates of both signs, noise 0.1; (2, 30), dense; shared
    with (8, 10) and (8, 30), logistic of signal 4, and (5, 6), noise 0.3; clicks on slates
    with non-negative features, with categories, and with features crossed with users' traits; and
    price lists with random logistic demand (with the prices and the cost of orange juice).
    Prototypes of "prices" had met orange juice three times, of "arms" GLMBandit's defaults, of
    "slates" recommendation, and of "answers" digits and cameras, before that was measured on fresh
    seeds. No certificate covers such
    choices.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=50, horizon=10_000)
    >>> round(certify(FADE(epsilon=1.0, delta=1e-4), spec).epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy; arms are then tried by draws in place of noise"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    model: Learner | Literal["auto"] = "auto"
    """what is summed; "auto" follows the problem"""
    coding: Literal["residuals", "rewards"] = "residuals"
    """what "auto" sums where it can, residuals against releases or rewards"""
    response: Response = "auto"
    """of "regression"; auto is sign for identity, logistic and probit links, else linear; logistic
    needs one shared parameter and rewards in [0, 1]"""
    first_batch: int | None = None
    """rounds of uniform play; if None, about as many as the noise asks for, at most a tenth of T"""
    growth: float = 0.1
    """by how much each batch is longer than the one before"""
    fade: float = 0.7
    """weight of a user in the next release, in [0, 0.999]"""
    shrinkage: Shrinkage = "empirical-bayes"
    """of "moments" """
    debias: bool = True
    """of "moments" with more than two arms"""
    centring: Literal["auto", "public", "private"] = "auto"
    """what rewards are compared with, the middle of the public range or a level that is learned;
    auto is the middle where the link says that it is the reward at x . theta = 0"""
    shift: float | None = None
    """ridge, in units of the noise's spectral norm; if None, 1, logistic (demand) 0.5"""
    prior: Prior | str | None = None
    """of another study or an old log, a `dpbandit.Prior` or the path of one that was saved; what it
    cost is part of the target"""
    anytime: bool = False
    """play without the horizon; no default depends on it, and rounds beyond it are played on"""
    trust: Literal["central", "aggregated"] = "central"
    """who sees what; with "aggregated", which needs fade=0, the server sees sums of batches"""
    honest: float = 1.0
    """the fraction of devices that add noise and stay, in (0, 1]; "aggregated" """
    features: Features | Literal["auto"] = "auto"
    """of price lists, what a price costs a customer, see `demand_rows`; "auto" is a curve where the
    link is identity, which asks for no line, and additive elsewhere"""
    bonus: float | None = None
    """of regressions, in standard deviations of what privacy adds to a prediction; of draws that
    try arms with parameters of their own, else a fixed optimism; if None, 1.5 and 0"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("model", self.model, ("auto", *get_args(Learner)))
        one_of("coding", self.coding, ("residuals", "rewards"))
        if self.coding == "rewards" and self.model in _OF_RESIDUALS:
            raise InputError(
                f"Expected coding='rewards' without model={self.model!r}: leave one out."
            )
        one_of("response", self.response, get_args(Response))
        one_of("shrinkage", self.shrinkage, SHRINKAGES)
        one_of("features", self.features, ("auto", *get_args(Features)))
        one_of("centring", self.centring, ("auto", "public", "private"))
        if self.first_batch is not None:
            whole("first_batch", self.first_batch, 1)
        inside("growth", self.growth, 0, 100, ends=True)
        inside("fade", self.fade, 0, 0.999, ends=True)
        one_of("trust", self.trust, ADDED_UP)
        Trust(self.trust, self.honest)
        if self.trust == "aggregated" and self.fade != 0:
            raise InputError(
                f"Expected fade={self.fade!r} to be 0 with trust='aggregated': nobody keeps exact "
                "sums there."
            )
        flag("debias", self.debias)
        flag("anytime", self.anytime)
        if self.anytime and self.growth < _LEAST_GROWTH:
            raise InputError(
                f"Expected growth={self.growth} >= {_LEAST_GROWTH} with anytime=True: batches that "
                "grow need no horizon."
            )
        if self.shift is not None:
            positive("shift", self.shift)
        if self.prior is not None:
            object.__setattr__(self, "prior", Prior.of(self.prior))
        if self.bonus is not None:
            at_least("bonus", self.bonus, 0)

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        spec = fits(self, spec, ContextualSpec, shared=True)
        if self.anytime:
            spec = replace(spec, horizon=MOST_ROUNDS)
        model = self._model(spec)
        for name, models in _OWN.items():
            value = getattr(self, name)
            if model not in models and value != getattr(FADE, name):
                raise InputError(
                    f"Expected {name}={value!r} only with model={' or '.join(models)}: here it is "
                    f"{model}."
                )
        if self._centred(model, spec) and not self._learns_level(model, spec):
            return PrivatelyCentred(replace(self, centring="public", model=model), spec, streams)
        player: Any = self._learner(model, spec).make(spec, streams)
        if isinstance(self.prior, Prior):
            player.ledger = self.prior.ledger(player.ledger)
        return cast(ScoringAgent, player)

    def _centred(self, model: Learner, spec: ContextualSpec) -> bool:
        """Whether the level of rewards is learned."""
        if self.centring == "private":
            if self.response == "logistic":
                raise InputError(
                    "Expected centring='private' for signs of rewards, not for a logistic response."
                )
            if self.trust == "aggregated" and model != "arms":
                raise InputError(
                    "Expected centring='private' to be 'auto' with trust='aggregated': nobody "
                    "keeps exact sums there."
                )
            return True
        if self.centring == "public" or middle_is_told(spec):
            return False
        return model == "arms" and (spec.link != "other" or self.few_features(spec))

    def _learns_level(self, model: Learner, spec: ContextualSpec) -> bool:
        """Whether arms learn it with them: where the middle is right a centre costs less."""
        right = middle_is_told(spec) and self.trust == "central"
        return model == "arms" and not right and self._centred(model, spec)

    def _model(self, spec: ContextualSpec) -> Learner:
        if self.model != "auto":
            return self.model
        if spec.masks != "none":  # whom an arm was shown is summed there, and imagined elsewhere
            return "demand" if spec.priced else "regression"
        if spec.priced:
            return "prices" if self.coding == "residuals" else "demand"
        if spec.shared:
            few = self.coding == "residuals" and spec.dim <= _MOST_FEATURES
            return "slates" if few else "regression"
        if self.coding == "residuals" and spec.n_actions * spec.dim <= _MOST_COORDINATES:
            very_few = spec.link == "other" and self.few_features(spec, times=_VERY)
            if very_few:
                return "regression"
            return "answers" if self._answers(spec) else "arms"
        return "regression" if self.few_features(spec) else "moments"

    def _answers(self, spec: ContextualSpec) -> bool:
        """Whether there is no link and too little to learn a level."""
        plain = self.centring == "auto" and self.prior is None and self.trust == "central"
        crowded = spec.horizon < _USERS * spec.n_actions * spec.dim**2
        many = spec.dim >= _LEAST_DIRECTIONS and (crowded or not self.few_features(spec))
        return plain and spec.link == "other" and many

    def few_features(self, spec: ContextualSpec, times: float = 1.0) -> bool:
        """Whether a Gram matrix pays: a tenth of the run shows eigenvalues above its noise.

        Budget alone does not choose it: with fewer than d^2 users of an arm chance hides as much as
        noise did, and moments gain from the budget too.
        """
        eigenvalue = spec.horizon / (10 * spec.n_actions * spec.dim)
        noise = 2 * sqrt(2 * spec.dim) / self._releases().mu
        return eigenvalue > times * max(noise, spec.dim)

    def _learner(self, model: Learner, spec: ContextualSpec) -> Any:
        if model in ("prices", "demand") and not spec.priced:
            raise InputError(
                f"FADE with model={model!r} plays a list of prices (dpbandit/OJPricing-v0), got a "
                f"{type(spec).__name__}: use model='auto'."
            )
        releases = self._releases()
        if model == "arms":
            return FadingArms(
                releases=releases,
                prior=cast(Prior | None, self.prior),
                level=self._learns_level(model, spec),
            )
        if model == "answers":
            return FadingAnswers(releases=releases)
        if model == "slates":
            return FadingSlates(releases=releases, prior=cast(Prior | None, self.prior))
        if model == "prices":
            return FadingPrices(
                releases=releases,
                prior=cast(Prior | None, self.prior),
                features=self._features(spec),
            )
        if model == "moments":
            return FadingMoments(releases=releases, shrinkage=self.shrinkage, debias=self.debias)
        if model == "demand":
            return FadingDemand(
                releases=releases,
                shift=self.shift,
                bonus=self.bonus,
                features="additive" if self.features == "auto" else self.features,
            )
        return FadingRegression(
            releases=releases, response=self.response, shift=self.shift, bonus=self.bonus
        )

    def gaussian(self, spec: ContextualSpec) -> "FADE":
        """This agent where Gaussian noise alone may be added: it learns no curve by itself."""
        asked = spec.priced and self._model(spec) == "prices"
        return replace(self, features="additive") if asked and self.features == "auto" else self

    def _features(self, spec: ContextualSpec) -> Features:
        if self.features != "auto":
            return self.features
        counts = spec.link == "identity" and self.prior is None and self.trust == "central"
        return "curve" if counts else "additive"

    def _releases(self) -> FadingReleases:
        target = self.epsilon, self.delta
        epsilon, delta = cast(Prior, self.prior).left_of(*target) if self.prior else target
        return FadingReleases(
            epsilon=epsilon,
            delta=delta,
            first_batch=self.first_batch,
            growth=self.growth,
            fade=self.fade,
            trust=self.trust,
            honest=self.honest,
        )
