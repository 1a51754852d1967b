"""Personalised pricing, reconstructed from the abstracts of three papers."""

from collections.abc import Sequence
from functools import partial
from math import ceil, inf, sqrt
from typing import Annotated, Any, cast

import numpy as np
from scipy.special import expit

from dpbandit.agent import Agent, Count, Least0, Positive, Private, started
from dpbandit.agents.contextual.demand import DemandPricing, Features, demand_rows, demand_spec
from dpbandit.agents.contextual.fade_learners import FadingDemand, FadingReleases
from dpbandit.agents.contextual.fading_regression import LogisticPlayer
from dpbandit.base import (
    Floats,
    InputError,
    Ints,
    clip_norm,
    clip_range,
    inside,
    pick,
    privacy_target,
    rows,
    whole,
)
from dpbandit.privacy import certified_fading_sum, ledger_of
from dpbandit.privacy.fading import growing_batches
from dpbandit.privacy.messages import LocalDirections
from dpbandit.privacy.premises import ALL
from dpbandit.privacy.sales import CellSales
from dpbandit.specs import PriceListSpec

_EXPLORATION = 4.0
"""T_0 of `LDPETC` is this many times D sqrt(T) / epsilon."""
_BATCHES = 64
"""The first batch of `PriceCells` is T over this."""


class JDPGLMUCB(Private[PriceListSpec]):
    """Optimistic pricing on a logistic model of demand that is refitted after each batch.

    After Chen, Simchi-Levi and Wang, "Privacy-preserving dynamic personalized pricing with demand
    learning", Management Science 68 (arXiv 2009.12920), who hide a user from all later prices;
    reconstructed from the abstract. With z the D features of a customer at a price
    (`demand_rows`)::

        1. public batches, each 1.5 times as long as the one before; the first at random prices, of
           40 sqrt(D) / mu customers, at least 30 and at most T / 10
        2. at the end of one release, with noise, the Gram matrix of sqrt(h) z and the moment of the
           working responses, as in FADE's model of demand; add them to 0.8 times the earlier ones
        3. theta is a Newton step from the last one, moved into a ball (`parameter_norm`);
           A = G/4 + ridge
        4. ask the price with the largest margin x logistic(z . theta + alpha |z|_{A^-1})

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        exactly mu-GDP: a user is in one release, whose two parts she moves by at most sqrt(5)
        together, moments clipped to 0.75 of their units (`SecondMoments`), whatever was released
        before; she enters nothing else. The ends of batches are public, everybody else's price is
        post-processing. Their "anticipating" (epsilon, delta)-DP, in which a user's data is hidden
        from later prices, is what is called joint DP here.

    Differs from the paper:
        1. It was not read but for its abstract: batches, statistic, widths and all constants are
           ours.
        2. A list of prices, and a logistic model of a sale.
        3. Newton steps on released sums, where it may have a likelihood that is maximised.
        4. Random prices now and then, as `DemandPricing` has them; optimism alone did as well.

    A whole Newton step may be too long where demand is steep: `FADE` limits its length.

    >>> from dpbandit import certify
    >>> from dpbandit.envs import OJPricing
    >>> round(certify(JDPGLMUCB(epsilon=1.0), OJPricing().spec).epsilon, 6)
    1.0
    """

    # rounds are passed on as they are
    hands_on = ALL

    plays = PriceListSpec
    alpha: Least0 = 0.3
    """optimism, as a multiple of the norm of a row in A^-1; 0 is greedy"""
    first_batch: Count | None = None
    """rounds of uniform play; if None, as many as the noise needs, at most a tenth of T"""
    growth: Annotated[float, lambda name, value: inside(name, value, 0, 100, ends=True)] = 0.5
    """by how much each batch is longer than the one before"""
    parameter_norm: Positive = 20.0
    """a bound on `|theta|`, for contexts of norm 1"""
    features: Features = "additive"
    """whether a price costs every customer the same utility; see `demand_rows`"""
    demand = started(DemandPricing)

    def start(self) -> None:
        """Learn demand as FADE does, of releases that forget at once, with a bonus."""
        releases = FadingReleases(
            epsilon=self.epsilon,
            delta=self.delta,
            first_batch=self.first_batch,
            growth=self.growth,
            fade=0.0,
        )
        learner = FadingDemand(
            releases=releases,
            shift=None,
            bonus=self.alpha,
            features=self.features,
            player=partial(OptimisticPlayer, ball=self.parameter_norm),
        )
        self.demand = learner.make(self.spec, self.streams)
        self.ledger = self.demand.ledger

    def act(self, context: Floats) -> Ints:
        """Prices (R,), as places on the list."""
        return self.demand.act(context)

    def scores(self, context: Floats) -> Floats:
        """What a price may earn, in dollars, (R, K)."""
        return self.demand.scores(context)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Learn whether the price sold."""
        self.demand.update(context, action, feedback)


class OptimisticPlayer(LogisticPlayer):
    """Whole Newton steps on plain sums of releases, and a bonus alpha `|x|_{A^-1}`."""

    _longest_step = inf

    def __init__(self, *given: Any, ball: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self._ball = ball

    def _weight(self, noise: float) -> float:
        return 1.0

    def _wide(self, s: float, inverse: Floats) -> Floats:
        eigenvalues, U = np.linalg.eigh(inverse)
        root: Floats = U * np.sqrt(eigenvalues.clip(0))[..., None, :]  # |x' root| = |x|_{A^-1}
        return self._bonus * root


class LDPETC(Agent[PriceListSpec]):
    """Explore with random prices, then commit; each user sends one locally private gradient.

    After Zhao, Jiang and Yu, "Contextual dynamic pricing: algorithms, optimality, and local
    differential privacy constraints", arXiv 2406.02424, stochastic gradient descent and
    explore-then-commit; reconstructed from the abstract. With z the D features of a customer at a
    price (`demand_rows`)::

        T_0 = 4 D sqrt(T) / epsilon, at least sqrt(D T), at most T / 2;   theta = 0
        in round t <= T_0
          1. ask a random price
          2. on her own device, from the public theta: g = (logistic(z . theta) - sold) z, and a
             message m of mean g / L
          3. theta <- theta - B / sqrt(T_0) m, moved into the ball of radius B
        later
          4. commit to the mean of theta over the second half of these rounds, and ask the price
             with the largest margin x logistic(z . theta); nobody sends anything any more

    Guarantee:
        Local privacy: every message is epsilon-locally DP (`LocalDirections`), a user sends one or
        none, and computes her price at home from the public theta, so that whoever collects
        messages need not be trusted. From that follows what the certificate says, epsilon-joint DP
        with delta = 0 under continual observation: the messages of all users together are
        epsilon-DP for replacing one user's round (parallel composition, adaptively), and everybody
        else's price is a function of messages, of her own context and of public coins. T_0 is
        public.

    Differs from the paper:
        1. It was not read but for its abstract: T_0, steps and the ball are ours.
        2. A list of prices, and a logistic model of a sale.
        3. The message is that of Duchi, Jordan and Wainwright for the Euclidean ball.

    With 20,000 customers it is hardly better than one price for everybody: local privacy is dear.

    >>> from dpbandit import certify
    >>> from dpbandit.envs import OJPricing
    >>> proof = certify(LDPETC(epsilon=1.0), OJPricing().spec)
    >>> round(proof.epsilon, 9), proof.ledger.delta(1.0)
    (1.0, 0.0)
    """

    plays = PriceListSpec
    epsilon: float = 1.0
    """target at delta 0, > 0; inf plays without privacy"""
    explore: Count | None = None
    """T_0, rounds with random prices; if None, by the formula"""
    parameter_norm: Positive = 6.0
    """B, a bound on `|theta|`"""
    features: Features = "additive"
    """whether a price costs every customer the same utility; see `demand_rows`"""

    def check(self) -> None:
        """Refuse an `epsilon` that is not a positive number."""
        privacy_target(self.epsilon, 0.0)

    def start(self) -> None:
        """Let every user of the first T_0 rounds send one message."""
        D, T = demand_spec(self.spec, self.features).dim, self.spec.horizon
        asked = max(sqrt(D * T), _EXPLORATION * D * sqrt(T) / self.epsilon)
        self.rounds = self.explore or ceil(min(T / 2, asked))
        uses = min(self.rounds, T)
        self.messages = LocalDirections(self.streams, dim=D, epsilon=self.epsilon, uses=uses)
        spend = self.messages.spend
        self.ledger = ledger_of(self.epsilon, spend, without="gradients without noise")
        self.luck = self.streams.uniforms("prices")
        self.round = 0
        self.theta: Floats = np.zeros((self.R, D))
        self.sum: Floats | float = 0.0

    def act(self, context: Floats) -> Ints:
        """Prices (R,), as places on the list; at random until all messages have come."""
        if self.round < self.rounds:
            return (self.luck() * self.spec.n_actions).astype(np.int64)
        return self.scores(context).argmax(axis=1)

    def scores(self, context: Floats) -> Floats:
        """Margin x predicted probability of a sale, in dollars, (R, K)."""
        z = demand_rows(self.spec, context, self.features)
        return self.spec.margins * expit(np.matvec(z, self.theta))

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """A step along one message of each user of the first rounds; nobody else is asked."""
        if self.round == self.rounds:
            return
        self.round += 1
        margins = self.spec.margins
        z = pick(demand_rows(self.spec, context, self.features), action)
        dollars = clip_range(feedback, 0.0, float(margins.max()))  # first: NaN, overflow
        sold = np.minimum(dollars / margins[action], 1.0)
        g = (expit(np.vecdot(z, self.theta)) - sold)[:, None] * z
        message = cast(Floats, self.messages(g))  # every call releases
        step = self.parameter_norm / sqrt(self.rounds)
        self.theta = clip_norm(self.theta - step * message, self.parameter_norm)
        half = self.rounds // 2
        if self.round > half:
            self.sum = self.sum + self.theta
        if self.round == self.rounds:
            self.theta = np.asarray(self.sum / (self.rounds - half))


def _different(name: str, value: Any) -> None:
    """Raise `InputError` unless `value` is a list of different whole numbers >= 0."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InputError(f"Expected {name}={value!r} to be a list, such as [1, 2].")
    for one in value:
        whole(name, one, 0)
    if len(set(value)) < len(value):
        raise InputError(f"Expected {name}={list(value)} to be different ones.")


class PriceCells(Private[PriceListSpec]):
    """Learn the best price for each cell of customers by elimination, without a demand model.

    After Chen, Miao and Wang, "Differential privacy in personalized pricing with nonparametric
    demand models", Operations Research (arXiv 2109.04615), central privacy; reconstructed from the
    abstract::

        1. cells of customers: each of some coordinates of the context, halved `depth` times
        2. public batches of T/64, 2 T/64, 4 T/64, ... customers; each sees a random price of those
           that are left in her cell
        3. at the end of one release, with noise, sales and non-sales of every price in every cell;
           add them to the earlier ones: s and n in all, v the variance of the noise in s
        4. in every cell drop each price with
             margin (s/n + w) < the largest margin (s/n - w),   w = alpha sqrt(1 / (4 n) + v / n^2)

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        exactly mu-GDP: a user is in one release, moves its counts by at most sqrt(2) (`CellSales`),
        and enters nothing else; she sees a price of her own cell, which nobody remembers. Cells and
        the ends of batches are public.

    Differs from the paper:
        1. It was not read but for its abstract: cells, batches, widths and all constants are ours.
        2. A list of prices, none of which is ever interpolated.
        3. Cells are as fine from beginning to end, and of few coordinates: with `depth` fixed,
           regret grows linearly where demand differs within a cell.
        4. Exact Gaussian DP.

    Where demand is no logit, or one that differs much from customer to customer, counting does not
    mind; its price is that no cell, and no price, learns from another.

    >>> from dpbandit import certify
    >>> from dpbandit.envs import OJPricing
    >>> round(certify(PriceCells(epsilon=1.0), OJPricing().spec).epsilon, 6)
    1.0
    """

    plays = PriceListSpec
    depth: Annotated[int, lambda name, value: whole(name, value, 0, 10)] = 1
    """how often each coordinate is halved, 0 to 10"""
    coordinates: Annotated[Sequence[int], _different] | None = None
    """of the context, counted from 0, which tell cells apart; if None, the second and the last"""
    alpha: Positive = 1.0
    """half the length of an interval, in upper bounds of standard errors"""
    first_batch: Count | None = None
    """rounds of uniform play; if None, T / 64"""
    counts = started(CellSales)

    def check(self) -> None:
        """Refuse delta = 0."""
        super().check()
        if self.coordinates is not None:
            object.__setattr__(self, "coordinates", tuple(int(one) for one in self.coordinates))

    def start(self) -> None:
        """Count sales; raises `InputError` for coordinates that a context does not have."""
        spec, T, last = self.spec, self.spec.horizon, self.spec.dim - 1
        usual = tuple(dict.fromkeys((min(1, last), last)))
        coordinates = usual if self.coordinates is None else tuple(self.coordinates)
        if any(one > last for one in coordinates):
            raise InputError(f"Expected coordinates={list(coordinates)} to be at most {last}.")
        self.counts = CellSales(
            margins=tuple(spec.margins.tolist()),
            coordinates=coordinates,
            depth=self.depth,
            context_bound=spec.context_bound,
        )
        first = self.first_batch or max(1, T // _BATCHES)
        self.sums = certified_fading_sum(
            self.counts,
            self.streams,
            ends=growing_batches(T, first=first, growth=1.0),
            horizon=T,
            fade=0.0,
            epsilon=self.epsilon,
            delta=self.delta,
        )
        self.ledger = ledger_of(self.epsilon, self.sums.spend)
        self.luck = self.streams.uniforms("prices")
        self.sold, self.unsold = np.zeros((2, self.R, *self.counts.shape[1:]))
        self.variance = 0.0
        self.left = np.ones(self.sold.shape, dtype=bool)

    def act(self, context: Floats) -> Ints:
        """Prices (R,), as places on the list: any that is left in the customer's cell."""
        left = self.left[rows(self.R), self.counts.cells(context)]  # (R, K)
        which = (self.luck() * left.sum(axis=1)).astype(np.int64)
        return (left.cumsum(axis=1) > which[:, None]).argmax(axis=1)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed the mechanism; drop prices when it releases."""
        release = self.sums(context, action, feedback)
        if release is None:
            return
        self.sold, self.unsold = self.sold + release[:, 0], self.unsold + release[:, 1]
        self.variance += self.sums.stddev**2
        n = np.maximum(self.sold + self.unsold, 1.0)
        share = np.clip(self.sold / n, 0.0, 1.0)
        width = self.alpha * np.sqrt(1 / (4 * n) + self.variance / n**2)
        margins = self.spec.margins
        sure = np.where(self.left, margins * (share - width), -inf)
        self.left &= margins * (share + width) >= sure.max(axis=-1, keepdims=True)
