"""Personalised pricing with local privacy, reconstructed from the abstract of a paper."""

from math import ceil, sqrt
from typing import cast

import numpy as np
from scipy.special import expit

from dpbandit.agent import Agent, Count, Positive
from dpbandit.agents.contextual.demand import Features, demand_rows, demand_spec
from dpbandit.base import Floats, Ints, clip_norm, clip_range, pick, privacy_target
from dpbandit.privacy import ledger_of
from dpbandit.privacy.messages import LocalDirections
from dpbandit.specs import PriceListSpec

_EXPLORATION = 4.0
"""T_0 of `LDPETC` is this many times D sqrt(T) / epsilon."""


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
        privacy_target(self.epsilon, 0.0)

    def start(self) -> None:
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
        # Prices (R,), as places on the list; at random until all messages have come
        if self.round < self.rounds:
            return (self.luck() * self.spec.n_actions).astype(np.int64)
        return self.scores(context).argmax(axis=1)

    def scores(self, context: Floats) -> Floats:
        z = demand_rows(self.spec, context, self.features)
        return self.spec.margins * expit(np.matvec(z, self.theta))

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        # A step along one message of each user of the first rounds; nobody else is asked
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
