"""Guard, a wrapper of private agents whose uniform explorers give a proved bound on regret.

Half of the explorers belong to the safety net, confidence intervals from their rounds alone, by
which surely worse arms are replaced. `PublicCoins` draws explorers, `NetPlan` computes the
constants of the theorem, and `SafetyNet` the intervals.
"""

from dataclasses import dataclass, field, replace
from math import ceil, inf, log, sqrt
from types import MappingProxyType

import numpy as np

from dpbandit.agent import Around, Count0, Inner, Positive
from dpbandit.agents.contextual.ridge import Ridge
from dpbandit.base import Floats, InputError, Ints, Streams, clip_norm, norms, positive
from dpbandit.privacy import BLT, Ledger, Parallel, SecondMoments
from dpbandit.privacy.calibrated import noisy_prefix_sum
from dpbandit.privacy.premises import ALL_FACTS, Fact
from dpbandit.specs import ContextualSpec, gaussian

_CHUNK = 1 << 20
"""Number of coins drawn at once; if it changed, rounds would get other random numbers"""
_MIN_RELEASES = 50
"""Smallest number of releases by the net of `Guard`, unless it has fewer explorers"""


@dataclass(frozen=True)
class PublicCoins:
    """Rounds of exploration, drawn before the data; round t with probability min(1, c t^(-1/3)).

    A second coin assigns half of the explorers to the confidence intervals (net) of `Guard`, but at
    most `max_explorers`, a function of horizon T and rate c, not of the coins.
    """

    horizon: int
    """number of rounds T"""
    rate: float
    """rate c of exploration, in (0, T^(1/3)]"""

    def __post_init__(self) -> None:
        if not 0 < self.rate <= self.horizon ** (1 / 3) * (1 + 1e-12):
            raise InputError(
                f"Expected rate={self.rate} to be above 0 and at most the cube root of "
                f"horizon={self.horizon}."
            )

    @property
    def expected(self) -> float:
        """Bound on the expected number of the net's explorers, the sum of c t^(-1/3) / 2."""
        return 0.75 * self.rate * self.horizon ** (2 / 3)

    @property
    def max_explorers(self) -> int:
        """Largest number of explorers in the net of `Guard`, by Bernstein's inequality.

        More are drawn with probability at most 1 / T; the surplus does not enter the net.
        """
        tail = log(self.horizon)
        return ceil(self.expected + tail / 3 + sqrt(tail**2 / 9 + 2 * self.expected * tail))

    def draw(self, seed: int) -> tuple[Ints, Ints]:
        """Draw the rounds of the net's explorers (increasing) and of others, counted from 0."""
        draw = np.random.Generator(np.random.SFC64(seed)).random
        T, net, others = self.horizon, [], []
        for start in range(0, T, _CHUNK):
            t = np.arange(start, min(T, start + _CHUNK))
            first, second = draw((2, len(t)))
            explores = first < np.minimum(1.0, self.rate * (t + 1.0) ** (-1 / 3))
            net.append(t[explores & (second < 0.5)])
            others.append(t[explores & (second >= 0.5)])
        found = np.concatenate(net)
        return found[: self.max_explorers], np.concatenate([*others, found[self.max_explorers :]])


@dataclass(frozen=True)
class NetPlan:
    """Constants of a safety net and of its theorem, with the letters of `Guard`.

    They follow from horizon T, rate c, mu and the spec. Units are scaled so that contexts have norm
    at most 1 and rewards lie in [-1, 1].

    >>> spec = ContextualSpec(n_actions=2, dim=2, horizon=20_000)
    >>> plan = NetPlan(spec, PublicCoins(20_000, 1.0), mu=0.268)
    >>> plan.release_interval, plan.releases, round(plan.regret_bound(largest_gap=0.3))
    (11, 60, 702162)
    """

    spec: ContextualSpec
    coins: PublicCoins
    mu: float
    """Gaussian-DP parameter of the safety net's releases"""

    def __post_init__(self) -> None:
        positive("mu", self.mu)

    @property
    def failure(self) -> float:
        """Bound alpha = T^(-1/3) on the probability that a confidence width is too small."""
        return float(self.spec.horizon ** (-1 / 3))

    @property
    def blocks(self) -> int:
        """Number of parameter vectors of `spec.dim` coordinates each, 1 or K."""
        return 1 if self.spec.shared else self.spec.n_actions

    @property
    def parameter_norm(self) -> float:
        """Largest norm S of a parameter that the public bounds allow."""
        return self.spec.context_norm * self.spec.parameter_norm / self.spec.reward_bound

    @property
    def max_rows(self) -> int:
        """Bound on users in the net, `max_explorers` plus the `delay` users who share one coin."""
        return self.coins.max_explorers + self.spec.delay

    @property
    def release_interval(self) -> int:
        """Number b of explorers in the net from one release to the next, at most Gamma."""
        one_release = 4 * sqrt(self.spec.dim) / self.mu  # at most Gamma, whatever the releases
        return max(1, int(min(self.coins.expected / _MIN_RELEASES, one_release)))

    @property
    def releases(self) -> int:
        """Number M of releases by the safety net."""
        return self.max_rows // self.release_interval

    @property
    def quantile(self) -> float:
        """Quantile z = sqrt(2 ln(8 K T / alpha)) of the confidence widths, alpha = T^(-1/3)."""
        return sqrt(2 * log(8 * self.spec.n_actions * self.spec.horizon / self.failure))

    def gamma(self, stddev: float) -> float:
        """Return Gamma >= `release_interval`, with high probability >= the norm of Gram noise."""
        tail = sqrt(log(4 * max(1, self.releases) * self.blocks / self.failure))
        norm = stddev * (2 * sqrt(self.spec.dim) + 2 * tail)
        return max(norm, self.release_interval + self.spec.delay)

    def width_factors(self, stddev: float, shift: Floats) -> tuple[float, Floats]:
        """Return the factors of `|x|_{A^-1}`, `|A^-1 x|` in widths, A the shifted Gram matrix."""
        bias = (self.gamma(stddev) + shift) * self.parameter_norm
        return self.quantile * sqrt(1.5), self.quantile * stddev + bias

    def regret_bound(self, largest_gap: float) -> float:
        """Return the regret bound of `Guard` for Delta = `largest_gap`, in units of the reward.

        Noise grows from release to release, so s and Gamma are largest in the last.
        """
        T, c, K = self.spec.horizon, self.coins.rate, self.spec.n_actions
        first = 2 / self.mu * BLT().column_norm(max(1, self.releases))
        last = first * BLT().row_norm(max(1, self.releases))
        low, high = self.gamma(first), self.gamma(last)
        D, S, z = self.spec.dim * self.blocks, self.parameter_norm, self.quantile
        L = log(1 + self.coins.max_explorers / (D * low))
        B = z * (sqrt(1.5) + last / sqrt(2 * low)) + 4 * high * S / sqrt(2 * high)
        explored = 1.5 * c * T ** (2 / 3) + self.failure * T + 1
        learned = 4 * B * sqrt(12 * D * K * L / c) * T ** (2 / 3)
        return float(largest_gap * explored + self.spec.half_range * learned)


class SafetyNet:
    """Confidence intervals m(x) +- w(x) of arms from net explorers, for step 4 of `Guard`::

        G^, u^     noisy sums of x x' and r x over net explorers, |x|, |r| <= 1, released after
                   every b of them, for each arm if arms have their own parameters
        A          G^ + shift I,  shift = max(0, 2 Gamma - least eigenvalue of G^)
        m(x)       x . A^-1 u^
        w(x)       z (sqrt(1.5) |x|_{A^-1} + s |A^-1 x|) + (Gamma + shift) S |A^-1 x|

    s is the stddev of the noise in u^ and, off the diagonal, in G^; z is the `quantile`, S the
    `parameter_norm`, Gamma the `gamma` of `NetPlan`. Intervals start with the first release.
    """

    def __init__(self, plan: NetPlan, streams: Streams) -> None:
        self._plan, spec = plan, plan.spec
        self._statistic = SecondMoments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared" if spec.shared else "disjoint",
            context_bound=spec.context_norm,
            reward_low=-1.0,
            reward_high=1.0,
            moment_weight=sqrt(2),  # with this weight the Gram matrix adds no sensitivity
        )
        self.sums = noisy_prefix_sum(
            BLT(),
            self._statistic,
            streams,
            horizon=plan.max_rows + 1,  # so that the last row may be released
            refresh_every=plan.release_interval,
            noise_multiplier=BLT().column_norm(plan.releases) / plan.mu * (1 + 1e-12),
        )
        R, K = len(streams), spec.n_actions
        self._ridge = Ridge(spec, R, regularization=1.0)
        self._curvature, self._bias = 0.0, np.zeros((R, K))  # factors in w
        self._released = False

    def learn(self, context: Floats, action: Ints, reward: Floats) -> None:
        """Add the round of an explorer in the net to the sums, and refit after a release."""
        low, high = self._plan.spec.reward_low, self._plan.spec.reward_high
        scaled = (2 * np.asarray(reward, np.float64) - low - high) / (high - low)
        release = self.sums(context, action, scaled)
        if release is None:
            return
        C, plan = self._statistic.context_bound, self._plan
        gram, moment = self._statistic.unpack(release)
        gram, moment, s = gram / C**2, moment / C, self.sums.stddev / sqrt(2)
        least = np.linalg.eigvalsh(gram)[..., 0]  # (R, blocks)
        shift = np.maximum(0.0, 2 * plan.gamma(s) - least)
        self._ridge.refit(gram, moment, shift[..., None, None])
        self._curvature, bias = plan.width_factors(s, shift)
        self._bias = np.broadcast_to(bias, self._bias.shape)
        self._released = True

    def without_inferior(self, context: Floats, action: Ints) -> Ints:
        """Return `action` (R,), or where it is surely worse the arm of the largest lower bound."""
        if not self._released:
            return action
        x = clip_norm(context, self._plan.spec.context_norm) / self._plan.spec.context_norm
        mean, width = self._ridge.means(x), self.widths(x)
        low = mean - width
        high = np.take_along_axis(mean + width, action[:, None], axis=1)[:, 0]
        return np.where(high < low.max(axis=1), low.argmax(axis=1), action)

    def widths(self, x: Floats) -> Floats:
        """Return the confidence width of every arm, (R, K), for contexts of norm at most 1."""
        Ax = self._ridge.products(x)  # (R, K, d)
        quadratic = np.vecdot(Ax, x if self._plan.spec.shared else x[:, None])
        root = np.sqrt(np.maximum(quadratic, 0.0))
        return self._curvature * root + self._bias * norms(Ax)[..., 0]


class Guard(Around[ContextualSpec]):
    """Wrapper of a private agent with a safety net of uniform explorers to veto worse arms.

    A design of this project. Public coins, drawn before the data, choose the explorers, in round t
    with probability p_t = min(1, c t^(-1/3)), c = `rate`::

        1. an explorer plays a uniformly random arm; half of them, by a second coin, belong to the
           net, and only the net learns from their rounds
        2. `agent` learns from the rounds of all other users, explorers or not
        3. in other rounds than explorers' the arm of `agent` is played,
        4. unless another arm is surely better: with means m and widths w from the net alone, arm a
           is vetoed if m(a) + w(a) < max_b m(b) - w(b), and argmax_b m(b) - w(b) is played

    The net (`SafetyNet`) has the same mu as `agent`.

    Guarantee:
        *Privacy.* If every mechanism of `agent` is mu-GDP for adaptively chosen rows (context, ANY
        arm, reward), also with arms that it did not choose and in rounds in which it did not act,
        then the whole is mu-GDP with the same mu, not with sqrt(2) mu: public coins split the users
        into two groups, so each user enters one mechanism. Replacing a net explorer changes the
        net's releases, which are mu-GDP, and through them the arms of others, for which rows may
        be adaptive; replacing another user changes no input of the net, whose arms are coins.
        The certificate is the larger delta of both mechanisms at every epsilon. The condition is
        declared by `agent` (`dpbandit.privacy.premises`): FADE, DP-UCB and all sums of clipped rows
        allow any arm. An agent that must choose the arm itself is refused (one that always plays
        arm 1 and publishes rows of arm 0 is private alone), unless contexts are one public
        constant, so that vetoes are functions of releases. Agents without a finite mu are refused.

        *Regret.* Let rewards be linear once they are scaled to [-1, 1] (a range symmetric about 0,
        or contexts that absorb an intercept), contexts of norm at most 1 and fixed in advance, or
        at least independent of the net's releases and of arms played because of them, vetoes
        included; `|theta_a| <= S`, no delay, and coins not known to the problem. Then for EVERY
        agent::

            E R_T <= Delta (1.5 c T^(2/3) + alpha T + 1) + 4 B sqrt(12 D K L / c) T^(2/3),
            B = z (sqrt(1.5) + s / sqrt(2 Gamma)) + 4 Gamma S / sqrt(2 Gamma),

        alpha = T^(-1/3), c <= T^(1/3), D the number of all parameters, L = ln(1 + n / (D Gamma)),
        z = sqrt(2 ln(8 K T / alpha)), Delta the largest gap; n = `max_explorers`, s (noise) and
        Gamma are those of `NetPlan`, whose `regret_bound` is this bound, with the smallest Gamma in
        L and the largest in B. Proof. Net explorers' arms are coins, so given contexts, coins and
        the noise N of the Gram matrix G the errors eta of their rewards (1-sub-Gaussian) are
        independent of A = G + N + shift I, and m(x) - x . theta =
        x . A^-1 (sum eta x + nu - (N + shift I) theta), nu the moment's noise. With probability
        1 - alpha / 2 `|N| <= Gamma`; A >= 2 Gamma I, so G <= 1.5 A; and with probability
        1 - alpha / 2 w bounds all three terms, for all t and arms. Then a round without an explorer
        costs at most 4 max_a w(a): an arm a that was not vetoed has
        mean(a) >= m(a) + w(a) - 2 w(a) >= mean(best) - 2 w(best) - 2 w(a), and the arm
        played after a veto has mean >= mean(best) - 2 w(best). And `w <= B |x|_{A^-1}`, because
        `|A^-1 x| <= |x|_{A^-1} / sqrt(2 Gamma)` and shift <= 3 Gamma. Let G_t be the Gram matrix of
        all net explorers before t, at most b <= Gamma of whom are not in G. Then A >= 2 Gamma I and
        A >= G - Gamma I give A >= G / 3 + Gamma I >= V_t / 3 with V_t = G_t + 2 Gamma I, known
        before the coin of t. So the expectation of `1(t is the net's) |x_t|^2_{V_t^-1}` is
        p_t / (2 K) times that of `sum_a |x_a|^2_{V_t^-1}`. The elliptical potential lemma bounds
        the sum of the former by 2 D L; by Cauchy and Schwarz `sum_t max_a |x_a|_{V_t^-1}` is
        at most sqrt(T 4 D L K T^(1/3) / c). More than n net explorers have probability 1 / T. QED

    **What is not proved.** The constants are large: at epsilon 1 no veto happens in 20,000 rounds
    of any problem of docs/guard.md, and the bound is above Delta T even at T = 10^9. Benefits at
    such horizons come from the other half of the explorers, from whom `agent` learns about arms
    that it does not try; there is no theorem on this, nor on rewards that are not linear (logistic
    and probit links, sales at prices). The rate T^(2/3) is due to uniform exploration.

    All replicas of a comparison share the coins, so standard errors are conditional on the coins.

    >>> from dpbandit import certify
    >>> from dpbandit.agents import FADE
    >>> config = Guard(FADE(epsilon=1.0, delta=1e-5))
    >>> spec = ContextualSpec(n_actions=2, dim=2, horizon=10_000)
    >>> round(certify(config, spec).epsilon, 6)
    1.0
    """

    # a veto reads contexts, unless they are one constant; public coins split the users into groups
    hands_on = ALL_FACTS - {Fact.AS_CHOSEN}
    hands_on_if = MappingProxyType({Fact.AS_CHOSEN: Fact.CONTEXT})

    plays = ContextualSpec
    agent: Inner = field(kw_only=False)
    """config of the guarded agent, which learns from all users but the net's explorers"""
    rate: Positive = 0.05
    """rate c at which about 1.5 c T^(2/3) users explore; 1 suits changing context distributions"""
    coins: Count0 = 0
    """seed of the public coins that choose explorers"""

    def check(self) -> None:
        if isinstance(self.agent, Guard):
            raise InputError("Expected an agent to guard, got one that is guarded.")

    def start(self) -> None:
        # Draw the coins that decide whether agent or net learns from a user; make both
        spec, coins = self.spec, PublicCoins(self.spec.horizon, self.rate)
        net, others = coins.draw(self.coins)
        self.for_net, self.explorers = frozenset(net), frozenset([*net, *others])
        rounds_seen = sum(coin < spec.horizon - 2 * spec.delay for coin in net)
        rounds = max(1, spec.horizon - rounds_seen)
        inner_spec = replace(spec, horizon=rounds, delay=min(spec.delay, rounds))
        self.inner = gaussian(self.agent, inner_spec).make(inner_spec, self.streams)
        plan = NetPlan(spec, coins, _mu(type(self.agent).__name__, self.inner.ledger))
        streams = self.streams.child("guard")
        self.net, self.arms = SafetyNet(plan, streams), spec.uniform(streams)
        (spend,) = self.inner.ledger.spends
        parts = spend.parts if isinstance(spend, Parallel) else (spend,)
        spends = (*parts, self.net.sums.spend)
        self.ledger = replace(self.inner.ledger, spends=(Parallel(spends, "agent or net"),))
        self.rounds_seen = 0

    def act(self, context: Floats) -> Ints:
        arms: Ints = self.arms()
        if self.rounds_seen in self.explorers:
            return arms
        action = self.inner.act(context)
        # a public constant is not read, so that a veto is a function of releases
        seen = np.ones_like(context) if self.spec.constant_context else context
        return self.net.without_inferior(seen, action)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        coin = self.coin(self.rounds_seen)
        self.rounds_seen += 1
        learn = self.net.learn if coin in self.for_net else self.inner.update
        learn(context, action, feedback)

    def coin(self, user: int) -> int:
        """Return the index of a user's coin, the number of rewards that had arrived before her."""
        return max(0, user - self.spec.delay)


def _mu(name: str, ledger: Ledger) -> float:
    """Return the mu of an agent's only mechanism; raise `InputError` unless it has exactly one."""
    if len(ledger.spends) != 1 or ledger.mu is None or not 0 < ledger.mu < inf:
        raise InputError(
            f"Expected {name} to have one mechanism that is Gaussian, with noise, to be guarded: "
            f"got {len(ledger.spends)} with mu={ledger.mu}."
        )
    return ledger.mu
