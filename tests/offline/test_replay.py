"""Replay of logs: unbiased by enumeration and by statistics, honest errors, and who is private;
snapshots, recorded logs and several agents on one."""

from dataclasses import dataclass, replace
from itertools import product
from math import prod, sqrt

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from dpbandit import InputError, certify
from dpbandit.agents import DPUCB, FADE, BestFixed, LinTS, LinUCB, Priced, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.clients import read_log, record
from dpbandit.envs import GLMBandit
from dpbandit.offline import Logged, LoggedLists, LoggedPrices, replay, snapshot
from dpbandit.offline.replays import _one_pass, _reached
from dpbandit.privacy.ledger import no_privacy
from dpbandit.specs.protocols import ContextualSpec
from dpbandit.testing.tapes import Tape, recording
from tests.each import asserting, each, refused

LIMIT = 5.0  # |z| beyond it: probability 6e-7 under the null
TINY = ContextualSpec(n_actions=2, dim=1, horizon=2)
CHANCE = {0.5: 0.3, -0.5: 0.7}
"""Probability of each context."""
GOOD = {(0.5, 0): 0.2, (0.5, 1): 0.9, (-0.5, 0): 0.6, (-0.5, 1): 0.35}
"""Probability of reward 1 for a context and an arm."""


@dataclass(frozen=True)
class Chaser:
    """Plays arm 1 at positive contexts; if it learns, the other way after a reward of 0."""

    learns: bool = True

    def make(self, spec, streams):
        return ChaserAgent(self.learns)


class ChaserAgent:
    def __init__(self, learns=True):
        self.ledger, self.last, self.learns = no_privacy("a test"), 1.0, learns

    def act(self, context):
        return np.array([int((context[0, 0] > 0) == (self.last > 0))])

    def update(self, context, action, feedback):
        self.last = float(feedback[0]) if self.learns else self.last


FIXED = Chaser(learns=False)


def log_of(context, action, reward, spec=TINY, **more):
    return Logged(spec=spec, context=context, action=action, reward=reward, **more)


def coin(x, a, r):
    return GOOD[x, a] if r else 1 - GOOD[x, a]


def test_histories_are_distributed_as_in_play():
    """Oracle: all 512 logs of 3 uniform rounds. Every history of 2 kept rounds has, given that 2
    were kept (binomial, 1/2), the probability that it has in play, to 1e-12."""
    rounds = list(product(CHANCE, (0, 1), (0, 1)))
    replayed = {}
    for three in product(rounds, repeat=3):
        x, a, r = (np.array(column, dtype=float) for column in zip(*three, strict=True))
        logged = log_of(x[:, None], a.astype(np.int64), r, propensity=0.5)
        kept = _one_pass(Chaser(), TINY, logged, Streams([0]), "skip", shuffled=False)
        if len(kept) == 2:
            weight = prod(CHANCE[x] * 0.5 * coin(x, a, r) for x, a, r in three)
            history = tuple(three[i] for i in kept)
            replayed[history] = replayed.get(history, 0.0) + weight
    reached = sum(replayed.values())
    assert reached == pytest.approx(1 / 2, abs=1e-12)
    played = {}
    for two in product(product(CHANCE, (0, 1)), repeat=2):
        agent, weight, history = ChaserAgent(), 1.0, []
        for x, r in two:
            a = int(agent.act(np.array([[x]]))[0])
            weight *= CHANCE[x] * coin(x, a, r)
            history.append((x, a, r))
            agent.update(None, None, np.array([r]))
        played[tuple(history)] = weight
    assert set(replayed) == set(played)
    for history, weight in played.items():
        assert replayed[history] / reached == pytest.approx(weight, abs=1e-12)


def tiny_log(n, seed, propensity=lambda x: np.full(len(x), 0.5)):
    """Rounds of the tiny problem; arm 1 is logged with probability `propensity(x)`."""
    rng = np.random.default_rng(seed)
    x = rng.choice(list(CHANCE), p=list(CHANCE.values()), size=n)
    one = propensity(x)
    a = (rng.random(n) < one).astype(np.int64)
    good = np.array([GOOD[pair] for pair in zip(x.tolist(), a.tolist(), strict=True)])
    r = 1.0 * (rng.random(n) < good)
    return log_of(x[:, None], a, r, propensity=np.where(a == 1, one, 1 - one))


VALUE = 0.3 * 0.9 + 0.7 * 0.6
"""Golden: what `FIXED` earns a round."""


def test_unequal_propensities_are_evened_out():
    """z test of the replayed value over 40,000 rounds, false alarm 6e-7. Power: the plain mean of
    rounds where log and agent agree, in which positive contexts are too frequent, is rejected."""
    logged = tiny_log(40_000, 5, lambda x: np.full(len(x), 0.8))
    found = replay(FIXED, logged, passes=1)
    assert abs(found.mean - VALUE) < LIMIT * found.standard_error
    agrees = logged.action == (logged.context[:, 0] > 0)
    naive = logged.reward[agrees][: found.retained[0]]
    assert abs(naive.mean() - VALUE) > LIMIT * naive.std() / sqrt(len(naive))


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Intervals of 150 logs hold the value of a fixed policy in 94 % (56 users): 130 to 149 with
    probability 1 - 6e-4 (exact binomial), after one pass and after three. Power: half the width
    fails. By hand: where all m users with whom the policy agrees are kept, and a share p of them
    earns 1, the error is sqrt(p (1 - p) / m), in however many passes."""
    hits, narrow = np.zeros((2, 2), np.int64)
    for seed in range(150):
        logged = tiny_log(150, seed)
        for i, passes in enumerate((1, 3)):
            found = replay(FIXED, logged, passes=passes)
            low, high = found.interval
            hits[i] += low < VALUE < high
            narrow[i] += abs(found.mean - VALUE) < 0.98 * found.standard_error
    assert ((hits >= 130) & (hits <= 149)).all()
    assert (narrow < 130).all()
    agreed = logged.reward[logged.action == (logged.context[:, 0] > 0)]
    p, m = agreed.mean(), len(agreed)
    for passes in (1, 3):
        found = replay(FIXED, logged, passes=passes, horizon=150)
        assert (found.retained.tolist(), found.mean) == ([m] * passes, pytest.approx(p))
        assert found.standard_error == pytest.approx(sqrt(p * (1 - p) / m))


def recorded(n, seed):
    """A log of uniform play on GLMBandit, one replica, and the problem."""
    problem = GLMBandit(n_actions=3, dim=3, horizon=n)
    streams = Streams([(9, seed)])
    problem.reset(streams.child("environment"))
    users = problem._users(n)
    action = (streams.uniforms("logging", n)()[0] * 3).astype(np.int64)
    reward = users.reward[np.arange(n), 0, action]
    context = users.context[:, 0]
    return log_of(context, action, reward, spec=problem.spec, propensity=1 / 3)


def test_passes_and_what_the_agent_is_made_for():
    """Passes depend on seed and number only, each an order of its own; the certificate is for the
    rounds that 999 of 1,000 passes reach (binomial tails); and arms that are prices are not
    blanked: a context of 0 is not nothing to a model of demand."""
    for n, share in ((200, 1 / 3), (1000, 0.5), (5000, 0.1), (400, 0.9)):
        reached = _reached(n, share)
        assert 0.9985 < binom.sf(reached - 1, n, share) < 0.9999
    logged = recorded(200, 0)
    few, many = (replay(LinUCB(), logged, passes=p) for p in (2, 5))
    np.testing.assert_array_equal(few.rewards, many.rewards[:2])
    assert len(set(many.rewards)) == 5
    np.testing.assert_array_equal(few.retained, many.retained[:2])
    assert (replay(LinUCB(), logged, passes=2, seed=1).rewards != few.rewards).any()
    assert replay(LinUCB(), logged, passes=1, horizon=7).retained.tolist() == [7]
    assert str(few).startswith(f"{few.mean:.4g} reward a round (95 % interval ")
    late = log_of(**{**GOOD_LOG, "spec": ContextualSpec(n_actions=2, dim=1, horizon=9, delay=3)})
    assert replay(Uniform(), late, passes=1).spec.delay == 0
    logged = recorded(200, 0)
    skip, blank = (replay(DPUCB(), logged, passes=1, discarded=how) for how in ("skip", "blank"))
    assert (skip.spec.horizon, blank.spec.horizon) == (_reached(200, 1 / 3), 200)
    assert certify(DPUCB(), blank.spec, accountants=False).epsilon == pytest.approx(1)
    assert "not who was kept" in skip.covers
    assert "every logged user" in blank.covers
    logged = record("OJPricing", horizon=300)
    replay(Priced(DPUCB()), logged, passes=1)
    with pytest.raises(InputError, match="arms that are not prices for discarded='blank'"):
        replay(Priced(DPUCB()), logged, passes=1, discarded="blank")


def two_worlds(config, one, two, how):
    """Replay two logs, in order and with the releases of the first; return how far inputs at the
    mechanism moved, over its sensitivity."""
    tapes = []
    for logged in (one, two):
        with recording(tapes[0] if tapes else None) as calls:
            _one_pass(config, logged.spec, logged, Streams([0]), how, shuffled=False)
        tapes.append(Tape([], *calls, None, [], []))
    pairs = zip(tapes[0].queries, tapes[1].queries, tapes[0].mechanisms, strict=how == "blank")
    return np.array([np.linalg.norm(a - b) / m.sensitivity for a, b, m in pairs])


@pytest.mark.parametrize("config", [DPUCB(refresh_every=5), FADE(first_batch=6)], ids=repr)
def test_who_is_kept_is_private_only_if_the_others_are_blank(config):
    """Logs that differ in a row that is kept in one, with releases held fixed, have other inputs
    at that row's round alone, by at most the sensitivity; if others are skipped, in later ones,
    too."""
    logged = recorded(60, 1)
    for how in ("skip", "blank"):
        kept = _one_pass(config, logged.spec, logged, Streams([0]), how, shuffled=False)
        action = logged.action.copy()
        action[kept[3]] = (action[kept[3]] + 1) % 3
        other = log_of(logged.context, action, logged.reward, spec=logged.spec, propensity=1 / 3)
        moves = two_worlds(config, logged, other, how)
        moved = np.flatnonzero(moves > 0)
        if how == "blank":
            assert len(moves) == 60
            assert max(moves) <= 1 + 1e-12
            assert moved.tolist() == [kept[3]]
        else:
            assert moved[0] == 3
            assert len(moved) > 5


def test_blank_needs_a_lowest_that_is_public():
    """Logs that differ in one user's propensity have other inputs at her round alone if
    `lowest` is given; read off the log, hers thins everybody: inputs of others move, and replay
    refuses."""
    config, base = DPUCB(refresh_every=5), recorded(60, 1)

    def log(chance, lowest):
        data = {"context": base.context, "action": base.action, "reward": base.reward}
        return log_of(**data, spec=base.spec, propensity=chance, lowest=lowest)

    def moved(row, lowest):
        usual, rare = np.full(60, 1 / 3), np.full(60, 1 / 3)
        rare[row] = 0.22
        moves = two_worlds(config, log(usual, lowest), log(rare, lowest), "blank")
        assert moves.max() <= 1 + 1e-12
        return np.flatnonzero(moves).tolist()

    alone = {row: moved(row, 0.2) for row in range(20)}
    hers = [row for row, rounds in alone.items() if rounds]
    assert hers  # some of the 20 are kept in one world only
    assert all(alone[row] == [row] for row in hers)
    assert len(moved(hers[0], None)) > 3
    for chance, lowest, public in ((np.full(60, 1 / 3), None, False), (1 / 3, None, True)):
        assert log(chance, lowest).lowest_is_public == public
    assert log(np.full(60, 1 / 3), 0.2).lowest_is_public
    replay(config, log(np.full(60, 1 / 3), 0.2), passes=1, discarded="blank")
    replay(config, log(np.full(60, 1 / 3), None), passes=1)
    with pytest.raises(InputError, match="lowest= to be given with the log for discarded='blank'"):
        replay(config, log(np.full(60, 1 / 3), None), passes=1, discarded="blank")


def test_blank_rounds_teach_nothing_and_none_at_all_are_said():
    """LinUCB replayed with blanks on the rounds of a log in order plays as with skips: a context of
    0 adds nothing to its sums. (Its horizon has no influence.) One user has no interval."""
    logged = recorded(300, 2)
    ways = [_one_pass(LinUCB(), logged.spec, logged, Streams([0]), h) for h in ("skip", "blank")]
    np.testing.assert_array_equal(*ways)
    logged, last, kept = tiny_log(60, 3), 1.0, []  # who learns from a reward of 0
    for row, (x, a, r) in enumerate(
        zip(logged.context[:, 0], logged.action, logged.reward, strict=True)
    ):
        plays = int((x > 0) == (last > 0))
        last = r if plays == a else 0.0
        kept += [row] if plays == a else []
    spec = replace(TINY, horizon=60)
    assert _one_pass(Chaser(), spec, logged, Streams([0]), "blank", shuffled=False).tolist() == kept
    none, one = (
        log_of(np.array([[0.5]]), np.array([a]), np.zeros(1), propensity=0.5) for a in (0, 1)
    )
    refused("agreed with none", replay, FIXED, none, passes=1)
    assert np.isnan(replay(FIXED, one, passes=2).interval).all()


GOOD_LOG = {
    "context": np.zeros((100, 1)),
    "action": np.arange(100) % 2,
    "reward": np.zeros(100),
    "propensity": 0.5,
}


@each(
    ("wrong", "says"), [
        ({"propensity": 1.0}, "drawn at random"), ({"propensity": 0.0}, "propensities in"),
        ({"propensity": 0.5, "lowest": 0.6}, "lowest=0.6 to be at most 0.5"),
        ({"propensity": 0.5, "lowest": 0.0}, "lowest"), ({"lowest": "a"}, "lowest='a'"),
        ({"propensity": "a"}, "propensities to be an array of numbers"),
        ({"context": np.full((100, 1), "a")}, "contexts to be an array of numbers"),
        ({"context": [[0.0], [0.0, 1.0]]}, "contexts to be an array of numbers"),
        ({"action": ["a", None]}, "actions to be an array of numbers"),
        ({"action": np.zeros(100, dtype=int)}, "propensities to be true: by them arm 0 was"),
        ({"action": np.full(100, 2)}, "row 0"),
        ({"context": np.zeros((99, 1))}, "contexts of shape"),
        ({"context": np.full((100, 1), np.nan)}, "finite contexts"),
        ({"reward": np.full(100, np.nan)}, "finite rewards, got another in row 0"),
    ],
)  # fmt: skip
def test_bad_logs_and_replays_are_refused(wrong, says):
    refused(says, log_of, **{**GOOD_LOG, **wrong})
    for agent, how, sentence in (
        (Uniform(), {"passes": 0}, "passes"),
        (Uniform(), {"horizon": 101}, "horizon"),
        (Uniform(), {"discarded": "drop"}, "discarded"),
        (Uniform(), {"discarded": "blank", "horizon": 5}, "horizon"),
        (BestFixed(), {}, "hindsight"),
    ):
        refused(sentence, replay, agent, log_of(**GOOD_LOG), **how)


WORLD = {"n_actions": 3, "dim": 2}


def taught(config, log):
    """An agent that was told a log."""
    agent = config.make(log.spec, Streams([0]))
    for i in range(len(log.action)):
        rows = slice(i, i + 1)
        agent.update(log.context[rows], log.action[rows], log.reward[rows])
    return agent


def test_snapshots_and_several_agents_on_one_log():
    """A snapshot is what the agent would play, while the agent goes on; shares of draws sum to 1.
    Several agents are each as alone; differences are paired, of two alike exactly 0."""
    log = record("GLMBandit", horizon=300, env_kwargs=WORLD)
    agent = taught(LinUCB(), log)
    policy = snapshot(agent, log.spec)
    law = policy.probabilities(log.context)
    arms = [agent.act(log.context[i : i + 1])[0] for i in range(300)]
    np.testing.assert_array_equal(law, np.eye(3)[arms])
    agent.update(log.context[:1], log.action[:1], np.full(1, -1e3))
    np.testing.assert_array_equal(law, policy.probabilities(log.context))
    policy = snapshot(taught(LinTS(), log), log.spec, draws=20)
    drawn, again = (policy.probabilities(log.context) for _ in range(2))
    np.testing.assert_array_equal(drawn, again)
    assert ((drawn > 0) & (drawn < 1)).any()
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)
    log = record("GLMBandit", horizon=600, env_kwargs=WORLD)
    agents = {"LinUCB": LinUCB(), "again": LinUCB(), "DP-UCB": DPUCB(), "random": Uniform()}
    found = replay(agents, log, passes=2)
    alone = replay(DPUCB(), log, passes=2)
    assert (found["DP-UCB"].mean, found["DP-UCB"].interval) == (alone.mean, alone.interval)
    table = found.table().set_index("agent")
    assert isinstance(table, pd.DataFrame)
    assert table.loc["again", ["difference", "difference_low", "difference_high"]].eq(0).all()
    apart = table["mean"] - table["mean"]["LinUCB"]
    assert table["difference"].tolist() == pytest.approx(apart.tolist())
    row = table.loc["random"]
    assert row.difference_low < row.difference < row.difference_high
    assert table.epsilon.round(6).tolist() == [np.inf, np.inf, 1.0, 0.0]
    assert "DP-UCB" in repr(found)


def test_recorded_logs_have_true_propensities(tmp_path):
    """Logs of an agent that explores, of prices and of lists keep all that estimates need in a
    file."""
    log = record("OJPricing", horizon=400, agent=LinUCB(), explore=0.5)
    assert log.adaptive
    np.testing.assert_allclose(log.probabilities.sum(axis=1), 1)
    assert (log.propensity == log.probabilities[np.arange(400), log.action]).all()
    often = (log.probabilities.argmax(axis=1) == log.action).mean()
    assert abs(often - (0.5 + 0.5 / 12)) < 4 * (0.25 / 400) ** 0.5
    prices = record("OJContinuousPricing", horizon=50)
    assert isinstance(prices, LoggedPrices)
    assert prices.density[0] == pytest.approx(1 / 1.1)
    lists = record("ListRecommendation", horizon=50, env_kwargs={"n_items": 10, "length": 2})
    assert isinstance(lists, LoggedLists)
    assert lists.prefix[0].tolist() == pytest.approx([1 / 10, 1 / 90])
    log = record("GLMBandit", horizon=60, agent="linucb", explore=0.5, env_kwargs=WORLD)
    log.to_frame().to_csv(tmp_path / "log.csv", index=False)
    back = read_log(
        tmp_path / "log.csv",
        action="action",
        reward="reward",
        propensity="propensity",
        probabilities=["p0", "p1", "p2"],
        context=["x0", "x1"],
        context_bound=1.0,
        arms=range(3),
        reward_range=(log.spec.reward_low, log.spec.reward_high),
        adaptive=True,
    )
    for name in ("context", "action", "reward", "propensity", "probabilities"):
        np.testing.assert_allclose(getattr(back, name), getattr(log, name), rtol=1e-12)


def no_snapshot(log):
    """Return calls that are refused, each with a part of its message."""
    linucb = taught(LinUCB(), log)
    two = LinUCB().make(log.spec, Streams([0, 1]))
    small, prices = snapshot(linucb, log.spec), "OJPricing"
    return [
        (lambda: snapshot(FADE()), "running agent"),
        (lambda: snapshot(3), "running agent"),
        (lambda: snapshot(two, log.spec), "one replica"),
        (lambda: snapshot(linucb, log.spec, draws=0), "draws=0"),
        (lambda: small.prices(log.context), "prices"),
        (lambda: snapshot(linucb, record(prices, horizon=1).spec), "made for"),
        (lambda: small.probabilities(np.ones((9, 5))), r"contexts of shape \(9, 2\)"),
        (lambda: record(prices, horizon=3, env_kwargs="drift"), "env_kwargs='drift'"),
        (lambda: replay({}, log), "at least one agent"),
        (lambda: replay("linucb", log), "to be a config"),
        (lambda: replay({"a": LinUCB}, log), "to be a config"),
        (lambda: record(prices, horizon=3, agent="linucb", explore=0), "explore=0"),
        (lambda: record(prices, horizon=3, agent="best-fixed"), "hindsight"),
        (lambda: record("AssortmentBandit", horizon=3), "arms, prices or lists"),
    ]


def test_mistakes_get_one_sentence():
    for asked, words in no_snapshot(record("GLMBandit", horizon=40, env_kwargs=WORLD)):
        with asserting(words), pytest.raises(InputError, match=words):
            asked()
