"""LDP-ETC: random prices, messages that no server has to be trusted with, and then one model."""

from dataclasses import dataclass
from math import ceil, sqrt
from typing import cast

import numpy as np
from scipy.special import expit

from dpbandit.agents.contextual.demand import Features, demand_rows, demand_spec
from dpbandit.base import (
    Floats,
    Ints,
    Streams,
    clip_norm,
    clip_range,
    one_of,
    pick,
    positive,
    privacy_target,
    whole,
)
from dpbandit.privacy import ledger_of
from dpbandit.privacy.messages import LocalDirections
from dpbandit.specs import BanditSpec, PriceListSpec, ScoringAgent, fits

_EXPLORATION = 4.0
"""T_0 is this many times D sqrt(T) / epsilon."""


@dataclass(frozen=True, kw_only=True)
class LDPETC:
    """Explore with random prices, then commit; users send one locally private gradient each.

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

    Code:
        Features are `demand_rows` (demand.py); step 1 is `LDPETCAgent.act`, the message of step 2
        `LocalDirections`, step 3 `LDPETCAgent.update`, step 4 `LDPETCAgent.scores`.

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

    epsilon: float = 1.0
    """target at delta 0, > 0; inf plays without privacy"""
    explore: int | None = None
    """T_0, rounds with random prices; if None, by the formula"""
    parameter_norm: float = 6.0
    """B, a bound on `|theta|`"""
    features: Features = "additive"
    """whether a price costs every customer the same utility; see `demand_rows`"""

    def __post_init__(self) -> None:
        privacy_target(self.epsilon, 0.0)
        if self.explore is not None:
            whole("explore", self.explore, 1)
        positive("parameter_norm", self.parameter_norm)
        one_of("features", self.features, ("additive", "interactions"))

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        """A running agent; raises `InputError` for anything but a list of prices."""
        return LDPETCAgent(self, fits(self, spec, PriceListSpec), streams)

    def rounds(self, spec: PriceListSpec) -> int:
        """T_0."""
        if self.explore is not None:
            return self.explore
        D, T = demand_spec(spec, self.features).dim, spec.horizon
        asked = max(sqrt(D * T), _EXPLORATION * D * sqrt(T) / self.epsilon)
        return ceil(min(T / 2, asked))


class LDPETCAgent:
    """See `LDPETC`."""

    def __init__(self, config: LDPETC, spec: PriceListSpec, streams: Streams) -> None:
        D = demand_spec(spec, config.features).dim
        self._spec, self._features, self._margins = spec, config.features, spec.margins
        self._explore, self._ball = config.rounds(spec), config.parameter_norm
        self._messages = LocalDirections(
            streams, dim=D, epsilon=config.epsilon, uses=min(self._explore, spec.horizon)
        )
        self.ledger = ledger_of(
            config.epsilon, self._messages.spend, without="gradients without noise"
        )
        self._luck = streams.uniforms("prices")
        self._round = 0
        self._theta: Floats = np.zeros((len(streams), D))
        self._sum: Floats | float = 0.0

    def act(self, context: Floats) -> Ints:
        """Prices (R,), as places on the list; at random until all messages have come."""
        if self._round < self._explore:
            return (self._luck() * self._spec.n_actions).astype(np.int64)
        best: Ints = self.scores(context).argmax(axis=1)
        return best

    def scores(self, context: Floats) -> Floats:
        """Margin x predicted probability of a sale, in dollars, (R, K)."""
        z = demand_rows(self._spec, context, self._features)
        return self._margins * expit(np.matvec(z, self._theta))

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """A step along one message of each user of the first rounds; nobody else is asked."""
        if self._round == self._explore:
            return
        self._round += 1
        z = pick(demand_rows(self._spec, context, self._features), action)
        dollars = clip_range(feedback, 0.0, float(self._margins.max()))  # first: NaN, overflow
        sold = np.minimum(dollars / self._margins[action], 1.0)
        g = (expit(np.vecdot(z, self._theta)) - sold)[:, None] * z
        message = cast(Floats, self._messages(g))  # every call releases
        step = self._ball / sqrt(self._explore)
        self._theta = clip_norm(self._theta - step * message, self._ball)
        half = self._explore // 2
        if self._round > half:
            self._sum = self._sum + self._theta
        if self._round == self._explore:
            self._theta = np.asarray(self._sum / (self._explore - half))
