"""Locally private greedy bandits of Han, Liang, Wang and Zhang (2021), and LDP-ETC for prices."""

from math import ceil, inf, log, sqrt
from typing import Literal, cast

import numpy as np
from scipy.special import expit

from dpbandit.agent import Agent, Count, Count0, Inside01, Positive, PrivateAgent, started
from dpbandit.agents.contextual.demand import Features, demand_rows, demand_spec
from dpbandit.agents.contextual.devices import Devices
from dpbandit.agents.contextual.private_glm import floored_inverse
from dpbandit.base import Floats, Ints, clip_norm, clip_range, pick, privacy_target
from dpbandit.privacy import SecondMoments, ledger_of
from dpbandit.privacy.messages import LocalDirections, LocalStatistic
from dpbandit.privacy.notion import LOCAL_DP
from dpbandit.specs import ContextualSpec, PriceListSpec, link_of


class LDPGreedy(Devices):
    """Base class of agents that play argmax x . theta_a, theta from private messages of all users.

    Rows are divided by their bound and clipped to norm 1. Rewards are scaled to [-1, 1], or to
    [0, 1] with logistic or probit link, so that the paper's bounds C_B and c_r are both 1.
    """

    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is the least noise that meets the claim, "paper" the paper's noise"""
    warm_up: Count0 | None = None
    """rounds s_0 for which each arm is first played if arms have their own parameters; if None,
    T / (10 K), as the paper gives only the order"""
    gap: Positive | None = None
    """gap h; arms h / 2 below the best after the warm-up are eliminated; if None, no arm is"""

    def start(self) -> None:
        super().start()
        spec = self.spec
        each = spec.horizon // (10 * spec.n_actions) if self.warm_up is None else self.warm_up
        self.turns = 0 if spec.shared else each * spec.n_actions
        self.preliminary = self.theta
        self.link = link_of(spec.link)
        self.open()

    def open(self) -> None:
        """Set `messages`, the mechanism by which users send, and its privacy ledger `ledger`."""
        raise NotImplementedError

    def message(self, x: Floats, block: Ints, y: Floats) -> Floats:
        """Return the messages of a round; axis 1 runs over the parameters, 1 or K."""
        raise NotImplementedError

    def fit(self, sent: Floats, blocks: Ints, count: int) -> None:
        """Update `theta[:, blocks]` by the messages `sent`; each is its parameter's `count`-th."""
        raise NotImplementedError

    def act(self, context: Floats) -> Ints:
        # Arms (R,): in turn at first if each has its own parameter
        if self.round < self.turns:
            return np.full(self.R, self.round % self.spec.n_actions)
        return super().act(context)

    def scores(self, context: Floats) -> Floats:
        x = clip_norm(context, self.spec.context_norm) / self.spec.context_norm
        scores = super().scores(x)
        if self.gap is None or not self.turns:
            return scores
        first = np.vecdot(self.preliminary, x[:, None])
        near = first > first.max(axis=1, keepdims=True) - self.gap / 2
        return np.where(near, scores, -inf)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        spec = self.spec
        row, block = self.row_and_block(context, action)
        x = clip_norm(row, spec.context_norm) / spec.context_norm
        low, high = spec.reward_low, spec.reward_high
        y = (clip_range(feedback, low, high) - low) / (high - low)
        sent = self.message(x, block, 2 * y - 1 if self.link.name == "identity" else y)
        if self.round <= self.turns:  # turns are public, so only one block gets a message
            turn, K = self.round - 1, spec.n_actions
            self.fit(sent, np.array([turn % K]), turn // K + 1)
            self.preliminary = self.theta.copy()
        else:
            later = self.round - self.turns
            self.fit(sent, np.arange(self.blocks), later + self.turns // spec.n_actions)


class LDPSGD(LDPGreedy):
    """Play greedily by stochastic gradient descent; each user sends a locally private gradient.

    Han, Liang, Wang and Zhang, "Generalized linear bandits with local differential privacy",
    NeurIPS 2021, Algorithms 1 and 2 with (5) and (6), as in the submitted manuscript::

        theta = 0
        in round t    play argmax_a x . theta_a
                      g = (zeta(x . theta_a) - y) x, zeta the inverse link, y the scaled reward;
                      send Psi(g), a point of mean g on a sphere, on g's side of it with odds
                      exp(epsilon) to 1 if |g| = B, the bound of gradients
                      theta <- theta - c / n Psi(g),     n the number of messages so far

    If every arm has its own theta_a (Algorithm 2), arms take turns s_0 times each; later a message
    goes to every arm, Psi(g) to the one that was played and Psi(0) to the others, which hides the
    arm, and n counts an arm's messages::

        calibration      B                             epsilon of a message, with arms' own theta_a
        "certified"      2 for identity, else 1        epsilon
        "paper"          2 c_r C_B = 2                 epsilon / 2

    Guarantee:
        Every user's messages are together locally epsilon-DP, with delta = 0 and against the
        server (`LocalDirections`); with "paper" and arms' own parameters even (epsilon / 2)-DP:
        messages to other arms cost nothing. No trusted server is needed, as long as actions are
        chosen and rewards observed on the device.

    Differs from the paper:
        1. Gradients longer than B, for which Psi is not defined, are clipped; theta has no bound.
        2. The paper's step size has constants of the distribution of rows, taken to be 1 here; the
           other factors are d and 1 / the least slope of zeta on [-1, 1].
        3. Psi(0) is a uniform point. Ties are broken at random.

    >>> from dpbandit import certify
    >>> proof = certify(LDPSGD(epsilon=1.0, calibration="paper"), "GLMBandit", accountants=False)
    >>> round(proof.ledger.pure, 9), proof.ledger.brief
    (0.5, 'local')
    """

    plays = ContextualSpec
    epsilon: float = 1.0
    """target epsilon at delta 0, > 0; inf sends exact gradients"""
    step: Positive | None = None
    """step size c; if None, d / (the link's least slope on [-1, 1]), times K for disjoint arms"""
    messages = started(LocalDirections)

    def check(self) -> None:
        privacy_target(self.epsilon, 0.0)

    def open(self) -> None:
        paper, d = self.calibration == "paper", self.spec.dim
        self.bound = 2.0 if paper or self.link.name == "identity" else 1.0
        self.c = self.step or self.blocks * d / float(self.link.slope(np.array(1.0)))
        self.messages = LocalDirections(
            self.streams,
            dim=d,
            blocks=self.blocks,
            epsilon=self.epsilon / (2 if paper and self.blocks > 1 else 1),
            uses=self.spec.horizon,
        )
        spend = self.messages.spend
        self.ledger = ledger_of(self.epsilon, spend, without="exact gradients", notion=LOCAL_DP)

    def message(self, x: Floats, block: Ints, y: Floats) -> Floats:
        theta = np.take_along_axis(self.theta, block[:, None, None], axis=1)[:, 0]
        g = (self.link.mean(np.vecdot(x, theta)) - y)[:, None] * x
        sent = cast(Floats, self.messages(g / self.bound, block))  # every call sends
        return self.bound * self.messages.length * sent

    def fit(self, sent: Floats, blocks: Ints, count: int) -> None:
        self.theta[:, blocks] -= self.c / count * sent[:, blocks]


class EvenMoments(SecondMoments):
    """Second moments whose Gram matrices have equal noise on and off the diagonal.

    Off the diagonal this is more noise than in `SecondMoments`. The sensitivity is the same: if
    the moment's weight is at least sqrt(2), the worst case is one row with two opposite rewards.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        even = np.full(len(self.units) - self.block_dim, self.context_bound**2)
        object.__setattr__(self, "units", np.concatenate([even, self.units[len(even) :]]))


class LDPOLS(PrivateAgent[ContextualSpec], LDPGreedy):
    """Play greedily by least squares; each user sends a locally private Gram matrix and moment.

    Han, Liang, Wang and Zhang, "Generalized linear bandits with local differential privacy",
    NeurIPS 2021, Algorithms 1 and 2 with (3) and (4), as in the submitted manuscript::

        send       M = x x' + W,  u = y x + xi, y the scaled reward, W and xi Gaussian; if arms have
                   their own parameters (Algorithm 2), one message to every arm, with x = 0 for arms
                   that were not played (after s_0 rounds of each in turn)
        estimate   theta = (sum M + s sqrt(t) (4 sqrt(d) + 2 ln(2 T / alpha)) I)^-1 sum u,
                   s the stddev of W, t the messages so far, K T in place of T in Algorithm 2
        play       argmax_a x . theta_a

        calibration    stddev of W                               stddev of xi
        "certified"    2 sqrt(2) / mu, off the diagonal 2 / mu   2 / mu, mu of (epsilon, delta)
        "paper"        2 sigma                                   sigma

        sigma = 2 sqrt(2 ln(1.25 / delta)) / epsilon, in Algorithm 2 with epsilon and delta halved

    Guarantee:
        Every user's messages are together locally mu-GDP, with the mu of (epsilon, delta) or, in
        "paper", 2 / sigma. The sensitivity is attained by one row with opposite rewards, so that
        Gram matrices, and messages to arms that were not played, add nothing (`SecondMoments`). No
        trusted server is needed, as long as actions are chosen and rewards observed on the device.

    Differs from the paper:
        1. Rows and rewards are clipped, which the paper assumes to be bounded.
        2. Eigenvalues of the inverted matrix are raised to 1e-9. Ties are broken at random.
        3. In Algorithm 2, too, t is the number of messages to the arm.

    >>> from dpbandit import certify
    >>> proof = certify(LDPOLS(epsilon=1.0, calibration="paper"), "GLMBandit", accountants=False)
    >>> round(proof.ledger.mu, 4), round(proof.epsilon, 3)
    (0.1003, 0.342)
    """

    plays = ContextualSpec
    alpha: Inside01 = 0.1
    """probability that the ridge is below the noise, in (0, 1); the default is the authors'"""
    messages = started(LocalStatistic)

    def open(self) -> None:
        spec, paper = self.spec, self.calibration == "paper"
        self.statistic = (EvenMoments if paper else SecondMoments)(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared" if spec.shared else "disjoint",
            reward_low=-1.0,
            moment_weight=2.0 if paper else sqrt(2),  # Gram matrices add no sensitivity
        )
        halves = 2 if self.blocks > 1 else 1
        sigma = 2 * sqrt(2 * log(1.25 * halves / self.delta)) * halves / self.epsilon
        self.messages = LocalStatistic(
            self.statistic,
            self.streams,
            epsilon=self.epsilon,
            delta=self.delta,
            uses=spec.horizon,
            stddev=2 * sigma if paper and sigma else None,
        )
        tail = log(2 * spec.horizon * self.blocks / self.alpha)
        self.shift = self.messages.stddev * (4 * sqrt(spec.dim) + 2 * tail)
        self.sums = np.zeros((self.R, *self.statistic.shape))
        spend = self.messages.spend
        self.ledger = ledger_of(self.epsilon, spend, without="exact rounds", notion=LOCAL_DP)

    def message(self, x: Floats, block: Ints, y: Floats) -> Floats:
        if self.spec.shared:
            x, block = x[:, None], np.zeros_like(block)
        return cast(Floats, self.messages(x, block, y))  # every call sends

    def fit(self, sent: Floats, blocks: Ints, count: int) -> None:
        self.sums[:, blocks] += sent[:, blocks]
        gram, moment = self.statistic.unpack(self.sums[:, blocks])
        A = gram + self.shift * sqrt(count) * np.eye(gram.shape[-1])
        self.theta[:, blocks] = np.matvec(floored_inverse(A, 1e-9), moment)


_EXPLORATION_SCALE = 4.0
"""Number of rounds of exploration, in units of D sqrt(T) / epsilon for D parameters"""


class LDPETC(Agent[PriceListSpec]):
    """Explore with random prices, then commit; each user sends one locally private gradient.

    After Zhao, Jiang and Yu, "Contextual dynamic pricing: algorithms, optimality, and local
    differential privacy constraints", arXiv 2406.02424, stochastic gradient descent and
    explore-then-commit; reconstructed from the abstract. With z the D features of a customer at a
    price (`demand_rows`)::

        T_0 = 4 D sqrt(T) / epsilon, at least sqrt(D T), at most T / 2;   theta = 0
        in round t <= T_0
          1. offer a random price
          2. on the customer's device, from the public theta: g = (logistic(z . theta) - sold) z,
             and a private message m, whose mean is proportional to g
          3. theta <- theta - (B / sqrt(T_0)) m, projected onto the ball of radius B
        later
          4. commit to the mean of theta over the second half of these rounds, and offer the price
             with the largest margin x logistic(z . theta), without messages

    Guarantee:
        Local privacy: every message is epsilon-locally DP (`LocalDirections`), a user sends one or
        none, and her device computes the price from the public theta, so that no trusted server is
        needed. This implies the certificate, epsilon-joint DP with delta = 0 under continual
        observation: the messages of all users together are epsilon-DP for replacing one user's
        round (parallel composition, adaptively), and any other user's price is a function of
        messages, of that user's context and of public coins. T_0 is public.

    Differs from the paper:
        1. We read only its abstract: T_0, step sizes and the ball are ours.
        2. A list of prices, and a logistic model of a sale.
        3. The message is that of Duchi, Jordan and Wainwright for the Euclidean ball.

    With 20,000 customers it is hardly better than one price for all: local privacy is costly.

    >>> from dpbandit import certify
    >>> from dpbandit.envs import OJPricing
    >>> proof = certify(LDPETC(epsilon=1.0), OJPricing().spec)
    >>> round(proof.epsilon, 9), proof.ledger.delta(1.0)
    (1.0, 0.0)
    """

    plays = PriceListSpec
    epsilon: float = 1.0
    """target epsilon at delta 0, > 0; inf plays without privacy"""
    explore: Count | None = None
    """rounds T_0 of random prices; if None, about 4 D sqrt(T) / epsilon, D features (`LDPETC`)"""
    parameter_norm: Positive = 6.0
    """bound B on `|theta|`"""
    features: Features = "additive"
    """features of a price, for one slope, one slope per customer, or a curve (`demand_rows`)"""

    def check(self) -> None:
        privacy_target(self.epsilon, 0.0)

    def start(self) -> None:
        D, T = demand_spec(self.spec, self.features).dim, self.spec.horizon
        usual = max(sqrt(D * T), _EXPLORATION_SCALE * D * sqrt(T) / self.epsilon)
        self.rounds = self.explore or ceil(min(T / 2, usual))
        uses = min(self.rounds, T)
        self.messages = LocalDirections(self.streams, dim=D, epsilon=self.epsilon, uses=uses)
        spend = self.messages.spend
        self.ledger = ledger_of(self.epsilon, spend, without="gradients without noise")
        self.uniforms = self.streams.uniforms("prices")
        self.round = 0
        self.theta: Floats = np.zeros((self.R, D))
        self.sum: Floats | float = 0.0

    def act(self, context: Floats) -> Ints:
        # Prices (R,), as places on the list; at random until all messages have come
        if self.round < self.rounds:
            return (self.uniforms() * self.spec.n_actions).astype(np.int64)
        return self.scores(context).argmax(axis=1)

    def scores(self, context: Floats) -> Floats:
        z = demand_rows(self.spec, context, self.features)
        return self.spec.margins * expit(np.matvec(z, self.theta))

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        # A step along one message of each user of the first T_0 rounds; later users send none
        if self.round == self.rounds:
            return
        self.round += 1
        margins = self.spec.margins
        z = pick(demand_rows(self.spec, context, self.features), action)
        dollars = clip_range(feedback, 0.0, float(margins.max()))  # against overflow; NaN is 0
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
