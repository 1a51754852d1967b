"""Replay of logs: unbiased by enumeration and by statistics, honest errors, and who is private."""

from dataclasses import dataclass
from itertools import product
from math import prod, sqrt

import numpy as np
import pytest

from dpbandit import InputError, certify, play
from dpbandit.agents import DPUCB, FADE, BestFixed, LinUCB, Priced, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.clients import record
from dpbandit.envs import GLMBandit
from dpbandit.offline.logs import Logged
from dpbandit.offline.replays import _one_pass, _reached, replay
from dpbandit.privacy.ledger import no_privacy
from dpbandit.specs.protocols import ContextualSpec
from dpbandit.testing.tapes import Tape, recording
from tests.each import each

LIMIT = 5.0  # |z| beyond it: probability 6e-7 under the null
TINY = ContextualSpec(n_actions=2, dim=1, horizon=2)
CHANCE = {0.5: 0.3, -0.5: 0.7}
"""Of a context."""
GOOD = {(0.5, 0): 0.2, (0.5, 1): 0.9, (-0.5, 0): 0.6, (-0.5, 1): 0.35}
"""Probability of reward 1 for a context and an arm."""


@dataclass(frozen=True)
class Chaser:
    """Plays arm 1 at positive contexts as long as its last reward was 1, else the other way."""

    def make(self, spec, streams):
        return ChaserAgent()


class ChaserAgent:
    def __init__(self):
        self.ledger, self.last = no_privacy("a test"), 1.0

    def act(self, context):
        return np.array([int((context[0, 0] > 0) == (self.last > 0))])

    def update(self, context, action, feedback):
        self.last = float(feedback[0])


@dataclass(frozen=True)
class Fixed:
    """Plays arm 1 at positive contexts, else arm 0."""

    def make(self, spec, streams):
        return FixedAgent()


class FixedAgent(ChaserAgent):
    def update(self, context, action, feedback):
        pass


def log_of(context, action, reward, spec=TINY, **more):
    return Logged(spec=spec, context=context, action=action, reward=reward, **more)


def coin(x, a, r):
    return GOOD[x, a] if r else 1 - GOOD[x, a]


def test_histories_are_distributed_as_in_play():
    """Oracle: all 512 logs of 3 uniform rounds, in order. The probability of every history of
    2 kept rounds, given that 2 were kept, equals that of playing, to 1e-12; also the probability
    of keeping 2 is the binomial one, 1/2."""
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
"""Golden: what `Fixed` earns a round."""


def test_unequal_propensities_are_evened_out():
    """z test over one pass through 40,000 rounds: false alarm 6e-7. Power: without step 1 the
    positive contexts, where the agent plays the arm logged most, count too often; on as many rounds
    the same test sees it."""
    logged = tiny_log(40_000, 5, lambda x: np.full(len(x), 0.8))
    found = replay(Fixed(), logged, passes=1)
    assert abs(found.mean - VALUE) < LIMIT * found.standard_error
    agrees = logged.action == (logged.context[:, 0] > 0)
    naive = logged.reward[agrees][: found.kept[0]]
    assert abs(naive.mean() - VALUE) > LIMIT * naive.std() / sqrt(len(naive))


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Of 150 logs of 300 rounds with 3 passes each, 95 % of the intervals hold the value of a fixed
    policy: from 132 to 149 with probability 1 - 1e-3 (exact binomial). Power: half the width
    fails."""
    hits, narrow = 0, 0
    for seed in range(150):
        found = replay(Fixed(), tiny_log(300, seed), passes=3)
        low, high = found.interval
        hits += low < VALUE < high
        narrow += abs(found.mean - VALUE) < 0.98 * found.standard_error
    assert 132 <= hits <= 149
    assert narrow < 132


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


def test_a_learning_agent_earns_in_replay_what_it_earns_in_play():
    """LinUCB over 100 rounds on 60 random problems, replayed (one pass) and played. z test of the
    difference of the means: false alarm 6e-7; Uniform, 0.2 below, is told apart (asserted)."""
    replayed = np.array([replay(LinUCB(), recorded(400, s), passes=1).mean for s in range(60)])
    problem = GLMBandit(n_actions=3, dim=3, horizon=_reached(400, 1 / 3))
    setup = {"seeds": [(10, r) for r in range(60)], "marks": np.array([problem.horizon])}
    for config, equal in ((LinUCB(), True), (Uniform(), False)):
        played = play(problem, config, **setup).reward[-1] / problem.horizon
        stderr = sqrt((replayed.var(ddof=1) + played.var(ddof=1)) / 60)
        assert (abs(replayed.mean() - played.mean()) < LIMIT * stderr) == equal


def test_passes_depend_on_seed_and_number_only():
    logged = recorded(200, 0)
    few, many = (replay(LinUCB(), logged, passes=p) for p in (2, 5))
    np.testing.assert_array_equal(few.rewards, many.rewards[:2])
    np.testing.assert_array_equal(few.kept, many.kept[:2])
    assert (replay(LinUCB(), logged, passes=2, seed=1).rewards != few.rewards).any()
    assert replay(LinUCB(), logged, passes=1, horizon=7).kept.tolist() == [7]
    assert str(few).startswith(f"{few.mean:.4g} reward a round (95 % interval ")


def test_the_agent_is_made_for_the_rounds_it_can_get():
    """So its certificate is the one for that horizon."""
    logged = recorded(200, 0)
    skip, blank = (replay(DPUCB(), logged, passes=1, discarded=how) for how in ("skip", "blank"))
    assert (skip.spec.horizon, blank.spec.horizon) == (_reached(200, 1 / 3), 200)
    assert certify(DPUCB(), blank.spec, accountants=False).epsilon == pytest.approx(1)
    assert "not who was kept" in skip.covers
    assert "every logged user" in blank.covers


def tape(config, logged, how, billboard=None):
    """One pass in the log's order, as the harness records runs."""
    spec = logged.spec
    with recording(billboard) as calls:
        _one_pass(config, spec, logged, Streams([0]), how, shuffled=False)
    return Tape([], *calls, None, [], [])


@pytest.mark.parametrize("config", [DPUCB(refresh_every=5), FADE(first_batch=6)], ids=repr)
def test_who_is_kept_is_private_only_if_the_others_are_blank(config):
    """Two logs that differ in the row of the fourth user kept, who is discarded in the second;
    releases held fixed. "blank": inputs at the mechanism differ at that row's round alone, by no
    more than the sensitivity. "skip": in most later rounds, too."""
    logged = recorded(60, 1)
    for how in ("skip", "blank"):
        kept = _one_pass(config, logged.spec, logged, Streams([0]), how, shuffled=False)
        action = logged.action.copy()
        action[kept[3]] = (action[kept[3]] + 1) % 3
        other = log_of(logged.context, action, logged.reward, spec=logged.spec, propensity=1 / 3)
        one = tape(config, logged, how)
        two = tape(config, other, how, one)
        pairs = zip(one.queries, two.queries, one.mechanisms, strict=False)
        moves = [np.linalg.norm(a - b) / m.sensitivity for a, b, m in pairs]
        moved = np.flatnonzero(np.array(moves) > 0)
        if how == "blank":
            assert len(one.queries) == len(two.queries) == 60
            assert max(moves) <= 1 + 1e-12
            assert moved.tolist() == [kept[3]]
        else:
            assert moved[0] == 3
            assert len(moved) > 5


def test_blank_needs_a_lowest_that_is_public():
    """Two logs that differ in one user's propensity; releases held fixed. With `lowest` given,
    inputs at the mechanism differ at her round alone, by no more than the sensitivity. Read off the
    log, hers is the least and thins everybody: inputs of others move, and replay refuses."""
    config, base = DPUCB(refresh_every=5), recorded(60, 1)

    def log(chance, lowest):
        data = {"context": base.context, "action": base.action, "reward": base.reward}
        return log_of(**data, spec=base.spec, propensity=chance, lowest=lowest)

    def moved(row, lowest):
        chance = np.full(60, 1 / 3)
        one = tape(config, log(chance, lowest), "blank")
        chance[row] = 0.22
        two = tape(config, log(chance, lowest), "blank", one)
        pairs = zip(one.queries, two.queries, one.mechanisms, strict=True)
        moves = np.array([np.linalg.norm(a - b) / m.sensitivity for a, b, m in pairs])
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


def test_blank_is_refused_where_arms_are_prices():
    """A model of demand has an intercept and a price: a context of 0 is not nothing there."""
    logged = record("OJPricing", horizon=300)
    replay(Priced(DPUCB()), logged, passes=1)
    with pytest.raises(InputError, match="arms that are not prices for discarded='blank'"):
        replay(Priced(DPUCB()), logged, passes=1, discarded="blank")


def test_a_replayed_log_has_no_delay():
    """Every reward is in its row, whatever the environment of the log did."""
    late = log_of(**{**GOOD_LOG, "spec": ContextualSpec(n_actions=2, dim=1, horizon=9, delay=3)})
    assert replay(Uniform(), late, passes=1).spec.delay == 0


def test_blank_rounds_teach_nothing():
    """LinUCB replayed with blanks on the rounds of a log in order plays as with skips: a context of
    0 adds nothing to its sums. (Its horizon has no influence.)"""
    logged = recorded(300, 2)
    ways = [_one_pass(LinUCB(), logged.spec, logged, Streams([0]), h) for h in ("skip", "blank")]
    np.testing.assert_array_equal(*ways)


GOOD_LOG = {
    "context": np.zeros((100, 1)),
    "action": np.arange(100) % 2,
    "reward": np.zeros(100),
    "propensity": 0.5,
}


@each(
    ("wrong", "says"),
    [
        ({"propensity": 1.0}, "drawn at random"),
        ({"propensity": 0.0}, "propensities in"),
        ({"propensity": 0.5, "lowest": 0.6}, "lowest=0.6 to be at most 0.5"),
        ({"propensity": 0.5, "lowest": 0.0}, "lowest"),
        ({"lowest": "a"}, "lowest='a'"),
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
)
def test_bad_logs_are_refused(wrong, says):
    with pytest.raises(InputError, match=says) as caught:
        log_of(**{**GOOD_LOG, **wrong})
    assert "\n" not in str(caught.value)
    log_of(**GOOD_LOG)


@pytest.mark.parametrize(
    ("agent", "wrong", "says"),
    [
        (Uniform(), {"passes": 0}, "passes"),
        (Uniform(), {"horizon": 101}, "horizon"),
        (Uniform(), {"discarded": "drop"}, "discarded"),
        (Uniform(), {"discarded": "blank", "horizon": 5}, "horizon"),
        (BestFixed(), {}, "hindsight"),
    ],
)
def test_bad_replays_are_refused(agent, wrong, says):
    with pytest.raises(InputError, match=says):
        replay(agent, log_of(**GOOD_LOG), **wrong)


def test_nothing_kept_is_said_and_one_user_has_no_interval():
    none, one = (
        log_of(np.array([[0.5]]), np.array([a]), np.zeros(1), propensity=0.5) for a in (0, 1)
    )
    with pytest.raises(InputError, match="agreed with none"):
        replay(Fixed(), none, passes=1)
    assert np.isnan(replay(Fixed(), one, passes=2).interval).all()
