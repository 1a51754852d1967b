"""An agent in a plain loop over anybody's environment: the same agent, the same clips."""

import copy
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest

from dpbandit import InputError, certify, play
from dpbandit.agents import DPUCB, BestFixed, EpsilonGreedy, Hedge, LinTS, LinUCB, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.clients import FromGymnasium, Player, read_log
from dpbandit.offline import replay
from dpbandit.testing.tapes import recording
from tests.clients.worlds import Coins, Overwrites, means
from tests.each import each

T = 60


def player(config, env, **more):
    return Player(config, env, **{"horizon": T, "reward_range": (0, 1), **more})


def loop(one, env, seed):
    """The loop of the docstring: actions and rewards."""
    log = []
    observation, _ = env.reset(seed=seed)
    for _ in range(T):
        action, shown = one.act(observation), copy.deepcopy(observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        one.update(shown, action, reward)
        log.append((action, reward))
        if terminated or truncated:
            observation, _ = env.reset()
    return log


@each("config", [LinUCB(), LinTS(), EpsilonGreedy(), DPUCB()], ids=repr)
@each("settings", [{}, {"length": 1}, {"seen": "vector"}, {"seen": "dict"}])
def test_a_plain_loop_is_the_comparisons_loop(config, settings):
    """Oracle: `play` on the wrapped environment, same seeds; rewards agree round by round."""
    bound = {"context_bound": 2.0} if "seen" in settings else {}
    make = FromGymnasium(Coins, oracle=means, reward_range=(0, 1), **bound)
    log = play(make(horizon=T, **settings), config, [7], marks=np.arange(1, T + 1))
    seed = int(Streams([7]).child("environment").uniforms("seed")()[0] * 2**31)
    env = Coins(**settings)
    rounds = loop(player(config, env, seed=7, **bound), env, seed)
    assert np.cumsum([reward for _, reward in rounds]).tolist() == log.reward[:, 0].tolist()
    assert {type(action) for action, _ in rounds} == {int}
    assert {action for action, _ in rounds} <= {5, 6, 7}


def test_an_environment_may_write_on_what_it_handed_out():
    """Oracle: the same environment that hands out new arrays, in the loop and in `play`."""
    logs = {}
    for make in (Overwrites, lambda: Coins(seen="vector")):
        env = make()
        rounds = loop(player(LinUCB(), env, context_bound=1.0), env, 3)
        wrapped = FromGymnasium(make, oracle=means, reward_range=(0, 1), context_bound=1.0)
        log = play(wrapped(horizon=T), LinUCB(), [7], marks=np.arange(1, T + 1))
        logs[make] = rounds, log.regret.tolist()
    one, two = logs.values()
    assert one == two


def test_contexts_are_used():
    """Golden, by reasoning: each kind's best arm is another, so an agent that sees the kind earns
    0.85 a round in the end, and no fixed arm more than 0.55. One run, far from either: 400 rounds
    have a standard error of 0.02."""
    env = Coins()
    one = Player(LinUCB(), env, horizon=800, reward_range=(0, 1))
    blind = Player(LinUCB(), env, horizon=800, reward_range=(0, 1), contexts="none")
    earned = {}
    for name, agent in (("sees", one), ("blind", blind)):
        observation, _ = env.reset(seed=1)
        rewards = []
        for _ in range(800):
            action = agent.act(observation)
            then, reward, *_ = env.step(action)
            agent.update(observation, action, reward)
            rewards.append(reward)
            observation = then
        earned[name] = np.mean(rewards[400:])
    assert earned["sees"] > 0.75
    assert earned["blind"] < 0.65


EXTREME = [
    (np.full(2, 1e9, np.float32), 1e9),
    (np.full(2, np.nan, np.float32), np.nan),
    (np.array([np.inf, 0], np.float32), -np.inf),
]


@pytest.mark.filterwarnings("ignore:.* private agents clip them")
@pytest.mark.parametrize(("observation", "reward"), EXTREME)
def test_an_extreme_user_moves_no_mechanism_by_more_than_its_sensitivity(observation, reward):
    """At the mechanism: two worlds that differ in round 3 differ in that round's input only, and
    there by at most the sensitivity. The bounds come from the player: the environment promises
    none."""
    tapes = []
    for x, r in ((np.array([0.6, -0.8], np.float32), 0.0), (observation, reward)):
        with recording() as calls:
            one = player(DPUCB(), Coins(seen="vector"), context_bound=1.0, most_outside=1)
            for t in range(T):
                extreme = (x, r) if t == 3 else (np.array([0.5, 0.5], np.float32), 0.25)
                one.update(extreme[0], 5 + t % 3, extreme[1])
        tapes.append(np.array(calls.queries).reshape(T, -1))
    gaps = np.linalg.norm(tapes[0] - tapes[1], axis=1)
    assert 0 < gaps[3] <= calls.mechanisms[3].sensitivity * (1 + 1e-12)
    assert not np.delete(gaps, 3).any()


@pytest.mark.filterwarnings("ignore:.* private agents clip them")
@pytest.mark.parametrize(("observation", "reward"), EXTREME)
def test_agents_without_a_clip_of_their_own_survive_extreme_users(observation, reward):
    one = player(LinUCB(), Coins(seen="vector"), context_bound=1.0, most_outside=1)
    honest = np.array([1.0, 0.0], np.float32)
    for _ in range(3):
        one.update(observation, 5, reward)
    for _ in range(10):
        one.update(honest, 6, 1.0)
        one.update(honest, 7, 0.0)
        one.update(honest, 5, 0.0)
    assert one.act(honest) == 6


@pytest.mark.parametrize(
    ("then", "says"),
    [
        (np.array([3]), r"actions in \[0, 3\), got 3"),
        (np.array([np.nan]), "whole numbers as actions, got nan"),
        (np.array([0, 1]), r"actions of shape \(1,\), got \(2,\)"),
        (np.array([[0]]), r"actions of shape \(1,\), got \(1, 1\)"),
    ],
)
def test_what_is_no_arm_is_never_played(then, says):
    """Neither in a loop of one's own nor in a replay, where it would agree with the log."""

    @dataclass(frozen=True)
    class Strange:
        def make(self, spec, streams):
            agent = Uniform().make(spec, streams)
            agent.act = lambda context: then
            return agent

    with pytest.raises(InputError, match=says):
        player(Strange(), Coins()).act(0)
    table = {"arm": [0, 1, 2] * 50, "r": [0] * 150}
    logged = read_log(table, action="arm", reward="r", reward_range=(0, 1))
    with pytest.raises(InputError, match=says):
        replay(Strange(), logged, passes=1)


def test_the_certificate_is_that_of_the_config_on_the_players_spec():
    one = player(DPUCB(epsilon=0.5), Coins())
    proof = certify(DPUCB(epsilon=0.5), one.spec, accountants=False)
    assert one.certificate == proof
    assert one.certificate.epsilon == pytest.approx(0.5, rel=1e-3)


def test_seeds_decide_exploration():
    def actions(seed):
        one = player(EpsilonGreedy(), Coins(), seed=seed)
        return [one.act(0) for _ in range(50)]

    assert actions(1) == actions(1) != actions(2)


def test_no_user_beyond_the_horizon_and_no_agent_of_another_kind():
    one = player(LinUCB(), Coins())
    for _ in range(T):
        one.update(0, 5, 1.0)
    with pytest.raises(InputError, match=f"horizon of {T} users is over"):
        one.update(0, 5, 1.0)
    for config in (DPUCB, 3, None):
        with pytest.raises(InputError, match=r"Expected agent .* to be a config"):
            player(config, Coins())
    with pytest.raises(InputError, match="choose another agent"):
        player(Hedge(), Coins())
    with pytest.raises(InputError, match="no hindsight yet"):
        player(BestFixed(), Coins())
    with pytest.raises(InputError, match="seed=-1"):
        player(LinUCB(), Coins(), seed=-1)
    with pytest.raises(InputError, match="finitely many"):
        player(LinUCB(), gym.make("dpbandit/OJContinuousPricing-v0"))


@pytest.mark.parametrize("wrong", [None, "1", 1j, [1.0, 2.0], [], {}, [[1], [1, 2]]], ids=repr)
def test_a_reward_that_is_no_number_is_refused_in_its_round(wrong):
    one = player(LinUCB(), Coins())
    for given in (1, True, np.float32(0.5), np.array([0.5])):
        one.update(0, 5, given)
    with pytest.raises(InputError, match=r"In round 5: Expected reward=.* to be one number"):
        one.update(0, 5, wrong)
    with pytest.raises(InputError, match="action=inf"):
        one.update(0, np.inf, 1.0)
    assert one._left == T - 4


def test_a_reward_in_an_array_is_that_number():
    """Oracle: the plain number; what is learned shows in the scores."""
    scores = []
    for given in (0.75, np.array([0.75])):
        one = player(LinUCB(), Coins())
        one.update(0, 5, given)
        scores.append(one._agent.scores(np.array([[1.0, 0.0]])).tolist())
    assert scores[0] == scores[1]
