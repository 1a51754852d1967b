"""Guard: who hears of whom, what is promised, how wide the net is, and that it helps."""

from dataclasses import dataclass, field, replace
from math import inf, log, sqrt

import numpy as np
import pytest

from dpbandit import InputError, certify, play
from dpbandit.agents import FADE, DPHDBChoices, Guard, LinUCB, Uniform
from dpbandit.agents.contextual.guard import NetPlan, PublicCoins
from dpbandit.base import Streams
from dpbandit.envs import TwoArms
from dpbandit.privacy import ClippedVectors, FadingSum, Ledger, Notion, Parallel
from dpbandit.specs import ContextualSpec
from dpbandit.testing import check_agent
from dpbandit.testing.checks import EVERYBODY, check_joint_dp, check_sensitivity, two_worlds
from tests.each import asserting, each, refused
from tests.harness import DELAYED, DISJOINT, PRICES

INNER = FADE(coding="rewards", centring="public", first_batch=3)
BUSY = Guard(INNER, rate=1.0)
NET, OTHER = (1, 4, 16), (0, 6, 9)
"""Users of the coins of `BUSY` in 24 rounds: the net's, and not."""


def test_a_user_enters_one_mechanism_and_coins_say_which():
    for user in NET + OTHER:
        one, two, t = two_worlds(BUSY, DISJOINT, (user,), replicas=4)
        (called,) = one.mechanisms[one.marks[user] : one.marks[user + 1]]
        assert (type(called).__name__ == "PrefixSum") == (user in NET)
        assert check_sensitivity(one, two, t) > 0.1


class TellsBoth(Guard):
    """Broken on purpose: the net's explorers are told to the agent, too."""

    hands_on = Guard.hands_on

    def update(self, context, action, feedback):
        if self.coin(self.rounds_seen) in self.for_net:
            self.inner.update(context, action, feedback)
        super().update(context, action, feedback)


class InnersLedger(Guard):
    """Broken on purpose: the certificate is the agent's alone."""

    def start(self):
        super().start()
        self.ledger = self.inner.ledger


@each(
    ("broken", "why"), [(TellsBoth, "call 18 exceeds uses=17"), (InnersLedger, "to name 'blt sum")]
)
def test_broken_guards_are_caught(broken, why):
    config = broken(replace(INNER, first_batch=2), rate=1.0)
    with pytest.raises((InputError, AssertionError), match=why):
        check_joint_dp(config, DISJOINT, (EVERYBODY,), replicas=2)


@dataclass(frozen=True, kw_only=True)
class Stubborn:
    """Always plays arm 0; of two Gaussian sums if `sums` says so, with a promise of its own."""

    mu: float = 50.0
    promise: Ledger = field(default_factory=Ledger)

    def make(self, spec, streams):
        return StubbornAgent(self, spec, streams)


class StubbornAgent:
    def __init__(self, config, spec, streams):
        sizes = {"ends": [1], "horizon": spec.horizon, "fade": 0.0}
        noise = {"noise_multiplier": 1 / config.mu}
        self._sums = FadingSum(ClippedVectors(1), streams, **sizes, **noise)
        self.ledger = replace(config.promise, spends=(self._sums.spend,))
        self.asked, self.told = [], []

    def act(self, context):
        self.asked.append(context.copy())
        return np.zeros(len(context), np.int64)

    def update(self, context, action, feedback):
        self.told.append(context.copy())
        self._sums(np.asarray(feedback)[:, None])


def test_the_certificate_is_the_larger_curve_and_restrictions_go_on():
    proof = certify(BUSY, DISJOINT, accountants=False)
    (together,) = proof.ledger.spends
    assert isinstance(together, Parallel)
    assert len(together.parts) == 2
    answers = Guard(FADE(model="answers"), rate=1.0)
    check_agent(answers, replace(DISJOINT, horizon=60))  # which names all three mechanisms
    assert proof.mu == pytest.approx(certify(INNER, DISJOINT, accountants=False).mu, rel=1e-9)
    notion = Notion(window=7, conditions=("losses are small",), adjacency="zero out")
    promise = Ledger(notion=notion)
    ledger = Guard(Stubborn(promise=promise)).make(DISJOINT, Streams([0])).ledger
    assert replace(ledger, spends=()) == promise
    assert Guard(FADE(epsilon=2.0, delta=1e-6)).epsilon == 2.0
    assert Guard(LinUCB()).epsilon is None
    assert certify(Guard(FADE(features="additive"), rate=1.0), PRICES, accountants=False).holds


def test_what_does_not_fit_is_said():
    centred = FADE(model="moments", centring="private")
    for inner in (LinUCB(), Uniform(), FADE(epsilon=inf), centred, DPHDBChoices()):
        with asserting(inner), pytest.raises(InputError, match="one mechanism that is Gaussian"):
            Guard(inner).make(DISJOINT, Streams([0]))
    with pytest.raises(InputError, match=r"Expected rate=3\.0 .* cube root of horizon=24"):
        Guard(INNER, rate=3.0).make(DISJOINT, Streams([0]))
    for inner, rate, sentence in (
        (INNER, 0, "Expected rate=0"),
        ("fade", 1.0, "Expected agent 'fade' to be a config"),
        (Guard(INNER), 1.0, "got one that is guarded"),
    ):
        refused(sentence, Guard, inner, rate=rate)


def test_late_rows_go_where_the_coin_of_their_action_sent_them():
    """Three rounds late: who was asked about by the agent is told to it, and explorers are told to
    one of the two; by hand from the coins."""
    config, rounds = Guard(Stubborn(), rate=1.0), np.arange(24)
    agent = config.make(DELAYED, Streams([0]))
    net, others = PublicCoins(24, 1.0).draw(0)
    for t in rounds:
        agent.act(np.array([[t / 100]]))
        if t >= 3:
            user = np.array([[(t - 3) / 100]])
            agent.update(user, np.zeros(1, np.int64), np.ones(1))
    coin = np.maximum(0, rounds - 3)
    asked, told = (
        np.round(100 * np.ravel(x)).astype(int) for x in (agent.inner.asked, agent.inner.told)
    )
    assert asked.tolist() == rounds[~np.isin(coin, [*net, *others])].tolist()
    assert told.tolist() == rounds[:21][~np.isin(coin[:21], net)].tolist()


def test_coins_are_as_public_and_as_frequent_as_they_say():
    """Of 20,000 rounds c t^(-1/3): 5 standard deviations; and no more than were planned for."""
    coins = PublicCoins(20_000, 1.0)
    p = np.minimum(1, np.arange(1, 20_001) ** (-1 / 3))
    counts = np.array([[len(found) for found in coins.draw(seed)] for seed in range(40)])
    error = sqrt(40 * (p / 2 * (1 - p / 2)).sum())
    assert np.abs(counts.sum(axis=0) - 40 * p.sum() / 2).max() < 5 * error
    assert counts.max() <= coins.max_explorers < 1.3 * coins.expected
    net, others = coins.draw(7)
    assert len({*net, *others}) == len(net) + len(others)
    assert (PublicCoins(20_000, 1.0).draw(7)[0] == net).all()
    few = type("Few", (PublicCoins,), {"max_explorers": 5})(20_000, 1.0)
    assert [sorted(found) for found in few.draw(7)] == [list(net[:5]), sorted([*others, *net[5:]])]


def test_widths_are_those_of_the_proof():
    """Oracle: one release, every letter of the docstring by hand in dense algebra."""
    facts = {"context_bound": 2.0, "reward_low": -3, "reward_high": 3}
    spec = ContextualSpec(n_actions=2, dim=2, horizon=1000, **facts)
    plan = NetPlan(spec, PublicCoins(1000, 2.0), mu=0.5)
    net = Guard(Stubborn(mu=0.5), rate=2.0).make(spec, Streams([3])).net
    sums, seen, rng = net.sums, [None], np.random.default_rng(5)

    class NoSums:
        stddev = property(lambda self: sums.stddev)

        def __call__(self, *row):
            seen.append(sums(*row))
            return seen[-1]

    net.sums = NoSums()
    while seen[-1] is None:
        row = rng.standard_normal((1, 2))
        net.learn(row / np.linalg.norm(row) * 2, np.array([(len(seen) - 1) % 2]), np.array([3.0]))
    gram, moment = net._statistic.unpack(seen[-1])
    G, u, s = gram[0] / 4, moment[0] / 2, sums.stddev / sqrt(2)
    alpha, T, K, d, S, y = 0.1, 1000, 2, 2, 1.0, np.array([0.6, -0.2])
    Gamma = s * (2 * sqrt(d) + 2 * sqrt(log(4 * plan.releases * K / alpha)))
    assert plan.release_interval <= Gamma
    z = sqrt(2 * log(8 * K * T / alpha))
    for arm in range(K):
        shift = max(0.0, 2 * Gamma - np.linalg.eigvalsh(G[arm])[0])
        inverse = np.linalg.inv(G[arm] + shift * np.eye(2))
        Ay = inverse @ y
        w = z * (sqrt(1.5) * sqrt(y @ Ay) + s * np.linalg.norm(Ay))
        w += (Gamma + shift) * S * np.linalg.norm(Ay)
        assert net.widths(y[None])[0, arm] == pytest.approx(w, rel=1e-9)
        assert net._ridge.means(y[None])[0, arm] == pytest.approx(y @ inverse @ u[arm], rel=1e-9)


def test_a_stubborn_agent_is_stopped_where_it_is_wrong_and_only_there():
    """Arm 0 for ever, at hardly any noise; in half of the runs it is the worse one by 0.8: there
    the last half of the rounds loses what explorers lose, and elsewhere nothing is ever vetoed. The
    bound holds; it grows like T^(2/3) but for logarithms, and is vacuous for long."""
    T, marks, coins = 4000, np.array([2000, 4000]), PublicCoins(4000, 2.0)
    problem = TwoArms(horizon=T, gap=0.8)
    log = play(problem, Guard(Stubborn(), rate=2.0), range(6), marks=marks)
    wrong = log.best_fixed == 1
    assert 0 < wrong.sum() < 6
    explorers = sum((found >= 2000).sum() for found in coins.draw(0))
    late = log.regret[1] - log.regret[0]
    assert (np.abs(late / 0.8 - explorers / 2) < 5 * sqrt(explorers / 4)).all()
    assert (log.regret[0][wrong] > 0.8 * 200).all()
    assert log.regret[1].max() < NetPlan(problem.spec, coins, mu=50.0).regret_bound(0.8)
    bound = {}
    for T in (10**6, 125 * 10**6, 10**9):
        spec = ContextualSpec(n_actions=2, dim=2, horizon=T)
        bound[T] = NetPlan(spec, PublicCoins(T, 1.0), mu=0.27).regret_bound(0.3)
        assert bound[T] > 0.3 * T
    assert 4 < bound[10**9] / bound[125 * 10**6] < 5
    assert bound[10**9] / 10**9 < bound[10**6] / 10**6 / 4
