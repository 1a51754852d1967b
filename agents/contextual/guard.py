"""Guard: a safety net round any private agent, with a proved bound on its regret."""

from dataclasses import dataclass, field, replace
from math import inf

from dpbandit.agents.contextual.net_plan import NetPlan
from dpbandit.agents.contextual.public_coins import PublicCoins
from dpbandit.agents.contextual.safety_net import SafetyNet
from dpbandit.base import Floats, InputError, Ints, Streams, positive, whole
from dpbandit.privacy import Ledger, Parallel
from dpbandit.specs import Agent, AgentConfig, BanditSpec, ContextualSpec, check_config, fits


@dataclass(frozen=True, kw_only=True)
class Guard:
    """Any private agent of arms, and a net of uniform explorers that vetoes what is surely worse.

    A design of this project. With public coins of probability p_t = min(1, c t^(-1/3)), c = `rate`,
    drawn before the data::

        1. an explorer plays a uniformly random arm; half of them, by a second coin, belong to the
           net, and their rounds are told to the net only
        2. everybody else's round is told to `agent` only, explorers that are not the net's, too
        3. who does not explore plays what `agent` plays,
        4. unless another arm is surely better: with m and w from the net alone, arm a is vetoed
           where m(a) + w(a) < max_b m(b) - w(b), and argmax_b m(b) - w(b) is played

    The net (`SafetyNet`) has the whole mu of `agent` for itself.

    Code:
        Steps 1 to 3 are `GuardAgent` with the coins of `NetPlan` (net_plan.py), step 4 is
        `SafetyNet.vetoed` (safety_net.py) with `Ridge` (linear.py).

    Guarantee:
        *Privacy.* If every mechanism of `agent` is mu-GDP for adaptively chosen rows (context, ANY
        arm, reward), also of arms that it did not choose and of users whom it was not asked about,
        then all is mu-GDP with the same mu, not with sqrt(2) mu: public coins split the users into
        two groups, so each enters one mechanism. Replacing a net explorer changes what the net
        releases by mu, and through that what others play, which mechanisms bear that are private
        for adaptive rows; replacing another user changes nothing that the net is told, whose arms
        are coins. The certificate is the larger of both curves at every epsilon. The condition is
        not checked: it holds for FADE and DP-UCB and for every agent of this package whose clipped
        sums take any row, not for a black box (one that always plays arm 1 and publishes rows of
        arm 0 is private alone). Agents without a finite mu are refused.

        *Regret.* Let rewards be linear once they are scaled to [-1, 1] (a range symmetric about 0,
        or contexts that absorb an intercept), contexts of norm at most 1 and fixed in advance, or
        at least not dependent on what the net released nor on arms played because of it, vetoes
        among them; `|theta_a| <= S`, no delay, and coins nobody knew. Then for EVERY agent::

            E R_T <= Delta (1.5 c T^(2/3) + alpha T + 1) + 4 B sqrt(12 D K L / c) T^(2/3),
            B = z (sqrt(1.5) + s / sqrt(2 Gamma)) + 4 Gamma S / sqrt(2 Gamma),

        alpha = T^(-1/3), c <= T^(1/3), D all parameters together, L = ln(1 + n / (D Gamma)),
        z = sqrt(2 ln(8 K T / alpha)), Delta the largest gap; n, s and Gamma are those of `NetPlan`,
        whose `regret_bound` has the numbers: Gamma is the least in L and the largest in B.
        Proof. Net explorers' arms are coins, so given contexts, coins and the noise N of the Gram
        matrix G the errors eta of their rewards (sub-Gaussian with 1) are independent of A = G + N
        + shift I, and m(x) - x . theta = x . A^-1 (sum eta x + nu - (N + shift I) theta), nu the
        noise of the moment. `|N| <= Gamma` but with probability alpha / 2, and A >= 2 Gamma I, so
        G <= 1.5 A, and w covers all three terms, for all t and arms, but with probability alpha / 2
        again. Then a round without an explorer costs at most 4 max_a w(a): an arm a that was not
        vetoed has mean(a) >= m(a) + w(a) - 2 w(a) >= mean(best) - 2 w(best) - 2 w(a), and the one
        played after a veto mean >= mean(best) - 2 w(best). And `w <= B |x|_{A^-1}`, because
        `|A^-1 x| <= |x|_{A^-1} / sqrt(2 Gamma)` and shift <= 3 Gamma. Let G_t be of all net
        explorers before t, at most b <= Gamma of whom are not in G. Then A >= 2 Gamma I and
        A >= G - Gamma I give A >= G / 3 + Gamma I >= V_t / 3 with V_t = G_t + 2 Gamma I, known
        before the coin of t. So the expectation of `1(t is the net's) |x_t|^2_{V_t^-1}` is
        p_t / (2 K) times that of `sum_a |x_a|^2_{V_t^-1}`. The elliptical potential bounds the sum
        of the former by 2 D L; Cauchy and Schwarz then bound `sum_t max_a |x_a|_{V_t^-1}` by
        sqrt(T 4 D L K T^(1/3) / c). More net explorers than n come with probability 1 / T. QED

    **What is not proved.** The constants are large: at epsilon 1 no veto happens in 20,000 rounds
    of any problem of docs/guard.md, and the bound is above Delta T even at T = 10^9. What helps
    earlier is the other half of the explorers, who tell `agent` of arms that it does not try;
    that has no theorem, nor has anything where rewards are not linear (logistic and probit links,
    sales at prices). T^(2/3) is the price of uniform explorers, not of the problem.

    All replicas of a comparison share the coins, so that errors over replicas are for these coins.

    >>> from dpbandit import certify
    >>> from dpbandit.agents import FADE
    >>> config = Guard(FADE(epsilon=1.0, delta=1e-5))
    >>> spec = ContextualSpec(n_actions=2, dim=2, horizon=10_000)
    >>> round(certify(config, spec).epsilon, 6)
    1.0
    """

    agent: AgentConfig = field(kw_only=False)
    """what plays, and learns from everybody but the net's explorers"""
    rate: float = 0.05
    """c, so that about 1.5 c T^(2/3) users explore; 1 where contexts may change"""
    coins: int = 0
    """seed of the public coins"""

    def __post_init__(self) -> None:
        check_config(self.agent)
        if isinstance(self.agent, Guard):
            raise InputError("Expected an agent to guard, got one that is guarded.")
        positive("rate", self.rate)
        whole("coins", self.coins, 0)

    @property
    def epsilon(self) -> float | None:
        """The claim of `agent`, None if it makes none."""
        return getattr(self.agent, "epsilon", None)

    @property
    def delta(self) -> float:
        """The claim of `agent`, 0 if it makes none."""
        return getattr(self.agent, "delta", 0.0)

    def make(self, spec: BanditSpec, streams: Streams) -> "GuardAgent":
        """A running agent; raises `InputError` for anything but finitely many arms."""
        return GuardAgent(self, fits(self, spec, ContextualSpec), streams)


class GuardAgent:
    """The agent, the net, and the coins that say who hears of a user."""

    def __init__(self, config: Guard, spec: ContextualSpec, streams: Streams) -> None:
        coins = PublicCoins(spec.horizon, config.rate)
        net, others = coins.draw(config.coins)
        self._for_net, self._explorers = frozenset(net), frozenset([*net, *others])
        self._delay = spec.delay
        heard = sum(coin < spec.horizon - 2 * spec.delay for coin in net)
        rounds = max(1, spec.horizon - heard)
        inner_spec = replace(spec, horizon=rounds, delay=min(spec.delay, rounds))
        self._inner: Agent = config.agent.make(inner_spec, streams)
        plan = NetPlan(spec, coins, _mu(type(config.agent).__name__, self._inner.ledger))
        own = streams.child("guard")
        self._net, self._arms = SafetyNet(plan, own), spec.uniform(own)
        spends = (*self._inner.ledger.spends, self._net.sums.spend)
        self.ledger = replace(self._inner.ledger, spends=(Parallel(spends, "agent or net"),))
        self._heard = 0

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        arms: Ints = self._arms()
        if self._heard in self._explorers:
            return arms
        return self._net.vetoed(context, self._inner.act(context))

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Tell the net or the agent, by the coin that `act` saw."""
        coin = self._coin(self._heard)
        self._heard += 1
        learn = self._net.learn if coin in self._for_net else self._inner.update
        learn(context, action, feedback)

    def _coin(self, user: int) -> int:
        """The place of the coin of this user: that of how many were heard when she came."""
        return max(0, user - self._delay)


def _mu(name: str, ledger: Ledger) -> float:
    """That of an agent's only mechanism; raises `InputError` where there is no such thing."""
    if len(ledger.spends) != 1 or ledger.mu is None or not 0 < ledger.mu < inf:
        raise InputError(
            f"Expected {name} to have one mechanism that is Gaussian, with noise, to be guarded: "
            f"got {len(ledger.spends)} with mu={ledger.mu}."
        )
    return ledger.mu
