"""An agent in a plain loop over anybody's environment: the same agent, the same clips; kept in
files bit for bit, once, and what is no state is one sentence."""

import copy
import io
import json
import os
import pickle
import stat
from dataclasses import dataclass

import gymnasium as gym
import joblib
import numpy as np
import pytest

from dpbandit import InputError, certify, play
from dpbandit.agents import (
    DPUCB,
    FADE,
    AllocationTS,
    BestFixed,
    EpsilonGreedy,
    Hedge,
    LinTS,
    LinUCB,
    Uniform,
)
from dpbandit.base.random_streams import Streams
from dpbandit.clients import FromGymnasium, Player, read_log
from dpbandit.offline import replay
from dpbandit.testing.tapes import recording
from tests.clients.worlds import Coins, Overwrites, means
from tests.each import each, refused

T = 60


def player(config, env, **more):
    return Player(config, env, **{"horizon": T, "reward_range": (0, 1), **more})


def tell(one, observation, action, reward):
    """A user who does not do as she is told, which an agent may learn from."""
    one.act(observation)
    one.update(observation, action, reward)


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


@pytest.mark.filterwarnings("ignore:.* private agents clip them")
@each(
    ("observation", "reward"),
    [
        (np.full(2, 1e9, np.float32), 1e9),
        (np.full(2, np.nan, np.float32), np.nan),
        (np.array([np.inf, 0], np.float32), -np.inf),
    ],
)
def test_an_extreme_user_moves_no_mechanism_by_more_than_its_sensitivity(observation, reward):
    """Two worlds that differ in round 3 differ in that round's input only, by at most the
    sensitivity of the player's bounds; an agent without a clip of its own learns on."""
    bounds, honest = {"context_bound": 1.0, "most_outside": 1}, np.array([1.0, 0.0], np.float32)
    tapes = []
    for x, r in ((np.array([0.6, -0.8], np.float32), 0.0), (observation, reward)):
        with recording() as calls:
            one = player(DPUCB(), Coins(seen="vector"), **bounds)
            for t in range(T):
                extreme = (x, r) if t == 3 else (np.array([0.5, 0.5], np.float32), 0.25)
                one.act(extreme[0])
                one.update(extreme[0], 5 + t % 3, extreme[1])
        tapes.append(np.array(calls.queries).reshape(T, -1))
    gaps = np.linalg.norm(tapes[0] - tapes[1], axis=1)
    assert 0 < gaps[3] <= calls.mechanisms[3].sensitivity * (1 + 1e-12)
    assert not np.delete(gaps, 3).any()
    one = player(LinUCB(), Coins(seen="vector"), **bounds)
    for _ in range(3):
        tell(one, observation, 5, reward)
    for _ in range(10):
        for arm, paid in ((6, 1.0), (7, 0.0), (5, 0.0)):
            tell(one, honest, arm, paid)
    assert one.act(honest) == 6


@each(
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

    refused(says, player(Strange(), Coins()).act, 0)
    table = {"arm": [0, 1, 2] * 50, "r": [0] * 150}
    logged = read_log(table, action="arm", reward="r", reward_range=(0, 1))
    refused(says, replay, Strange(), logged, passes=1)


def test_horizons_kinds_certificates_and_seeds():
    """No user beyond the horizon and no agent of another kind; the certificate is that of the
    config; seeds decide exploration."""
    one = player(LinUCB(), Coins())
    for _ in range(T):
        tell(one, 0, 5, 1.0)
    refused(f"horizon of {T} users is over", one.update, 0, 5, 1.0)
    prices = gym.make("dpbandit/OJContinuousPricing-v0")
    for config, env, more, says in (
        *((config, Coins(), {}, "Expected agent .* to be a config") for config in (DPUCB, 3, None)),
        (Hedge(), Coins(), {}, "choose another agent"),
        (BestFixed(), Coins(), {}, "no hindsight yet"),
        (LinUCB(), Coins(), {"seed": -1}, "seed=-1"),
        (LinUCB(), prices, {}, "finitely many"),
    ):
        refused(says, player, config, env, **more)
    one = player(DPUCB(epsilon=0.5), Coins())
    assert one.certificate == certify(DPUCB(epsilon=0.5), one.spec, accountants=False)
    assert one.certificate.epsilon == pytest.approx(0.5, rel=1e-3)
    same, again, other = (player(EpsilonGreedy(), Coins(), seed=seed) for seed in (1, 1, 2))
    drawn = [[one.act(0) for _ in range(50)] for one in (same, again, other)]
    assert drawn[0] == drawn[1] != drawn[2]


@each("wrong", [None, "1", 1j, [1.0, 2.0], [], {}, [[1], [1, 2]]], ids=repr)
def test_a_reward_that_is_no_number_is_refused_in_its_round(wrong):
    """Rewards in arrays of one entry lead to the same scores as plain numbers."""
    one, plain = (player(LinUCB(), Coins()) for _ in range(2))
    for given in (1, True, np.float32(0.5), np.array([0.75])):
        tell(one, 0, 5, given)
        tell(plain, 0, 5, np.ravel(given).item())
    ahead = np.array([[1.0, 0.0]])
    np.testing.assert_array_equal(one._agent.scores(ahead), plain._agent.scores(ahead))
    refused(r"In round 5: Expected reward=.* to be one number", tell, one, 0, 5, wrong)
    with pytest.raises(InputError, match="action=inf"):
        one.update(0, np.inf, 1.0)  # the act of what was refused still waits
    assert one._left == T - 4


ARGUMENTS = {"horizon": 40, "reward_range": (-1.4, 1.4), "context_bound": 1.0}


@pytest.fixture
def state(tmp_path, monkeypatch):
    """Path of a saved player, with the state folder below `tmp_path`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    return tmp_path / "state.npz"


def environment():
    return gym.make("dpbandit/GLMBandit-v0", n_actions=3, dim=2)


def serve(player, env, observation, users):
    """The actions, and the next observation."""
    played = []
    for _ in range(users):
        played.append(player.act(observation))
        following, reward, *_ = env.step(played[-1])
        player.update(observation, played[-1], reward)
        observation = following
    return played, observation


def saved(path, config=None, users=17):
    env = environment()
    player = Player(config or DPUCB(), env, **ARGUMENTS)
    _, observation = serve(player, env, env.reset(seed=0)[0], users)
    player.save(path)
    return player, env, observation


def test_a_player_goes_on_where_it_was_and_once(state, tmp_path):
    """Loaded players go on as if never saved, with certificate, counters and horizon. A saved
    player serves nobody; neither the file nor a copy of it is loaded again."""
    env = environment()
    whole, _ = serve(Player(DPUCB(), env, **ARGUMENTS), env, env.reset(seed=0)[0], 40)
    old, env, observation = saved(state)
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    player = Player.load(state, DPUCB(epsilon=1), env, **ARGUMENTS)
    assert player.certificate == old.certificate
    assert serve(player, env, observation, 23)[0] == whole[17:]
    refused("horizon of 40 users is over", player.update, observation, 0, 0.0)
    old, env, observation = saved(state)
    for use in (
        lambda: old.act(observation),
        lambda: old.update(observation, 0, 0.0),
        lambda: old.save(tmp_path / "again.npz"),
    ):
        refused(r"go on with Player\.load", use)
    (tmp_path / "copy.npz").write_bytes((state).read_bytes())
    Player.load(tmp_path / "copy.npz", DPUCB(), env, **ARGUMENTS)
    for name in ("state.npz", "copy.npz"):
        with pytest.raises(InputError, match=f"{name} was loaded before"):
            Player.load(tmp_path / name, DPUCB(), env, **ARGUMENTS)


def changed(path, old, new):
    """Bytes of what is kept, or of the facts before it."""
    text = path.read_bytes()
    assert old in text
    path.write_bytes(text.replace(old, new))


def another(name, value):
    """Another format or program, from the time of writing to that of reading."""
    return lambda _, patch: patch.setattr(f"dpbandit.clients.states.{name}", value)


def test_another_config_or_environment_is_refused_and_uses_nothing_up(state):
    _, env, _ = saved(state)
    for config, changed, words in (
        (DPUCB(epsilon=2.0), {}, "of this config"),
        (FADE(), {}, "of this config"),
        (DPUCB(), {"horizon": 41}, "of this environment, bounds and horizon"),
        (DPUCB(), {"reward_range": (-2, 2)}, "of this environment, bounds and horizon"),
    ):
        refused(words, Player.load, state, config, env, **{**ARGUMENTS, **changed})
    Player.load(state, DPUCB(), env, **ARGUMENTS)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path, _: path.write_bytes(path.read_bytes()[:2000]), "Expected a "),
        (lambda path, _: path.write_bytes(b""), "Expected a state"),
        (lambda path, _: path.write_text("{}"), "Expected a state"),
        (lambda path, _: np.savez(path, a=np.ones(3)), "Expected a state"),
        (lambda path, _: path.unlink(), "No such file"),
        (lambda path, _: changed(path, b"_any_arm", b"_odd_arm"), "was changed"),
        (lambda path, _: changed(path, b'"numpy": "', b'"numpy": "9'), "was changed"),
        (lambda path, _: changed(path, b'"ticket": "', b'"ticket": "/'), "something else"),
        (another("_FORMAT_VERSION", 6), "of this format, which is 5 there and 6 here"),
        (another("_program", lambda: {"dpbandit": "0"}), "of this program"),
    ],
)
def test_what_is_no_state_is_one_sentence(state, monkeypatch, damage, words):
    _, env, _ = saved(state)
    damage(state, monkeypatch)
    refused(words, Player.load, state, DPUCB(), env, **ARGUMENTS)


class Program:
    """Unpickled, it makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_no_code_comes_from_a_file(state, tmp_path):
    """A program in place of a saved player is not run, whether it has her ticket, one of its own
    making or none that could be one."""
    _, env, _ = saved(state)
    head, _, _ = state.read_bytes().partition(b"\n")
    facts, program = json.loads(head), pickle.dumps(Program(str(tmp_path / "ran")))
    for ticket, says in ((facts["ticket"], "changed"), ("0" * 32, "or saved by"), ("../x", "else")):
        made = json.dumps({**facts, "ticket": ticket}).encode() + b"\n" + program
        state.write_bytes(made)
        refused(says, Player.load, state, DPUCB(), env, **ARGUMENTS)
    assert not (tmp_path / "ran").exists()
    pickle.loads(program)
    assert (tmp_path / "ran").exists()


@each(
    "copied", [
        copy.copy, copy.deepcopy, pickle.dumps, lambda one: pickle.dumps([one], protocol=0),
        lambda one: joblib.dump(one, io.BytesIO()),
    ],
)  # fmt: skip
def test_a_player_has_no_copy(copied):
    """Would catch two players with the same noise: the difference of their sums has none."""
    one = player(DPUCB(), Coins())
    one.act(0)
    refused(r"^Expected one player, not a copy.*; save .* once\.$", copied, one)


def test_a_fork_of_the_process_has_no_player(monkeypatch):
    """Would catch two players with the same noise that no pickle made."""
    one = player(DPUCB(), Coins())
    one.act(0)
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: -1)  # what a fork differs by
        for goes_on in (lambda: one.act(0), lambda: one.update(0, 5, 1.0), lambda: one.save("x")):
            with pytest.raises(InputError, match="not in a fork of that: two would go on with"):
                goes_on()
    one.update(0, 5, 1.0)
    assert one._left == T - 1


def test_an_update_that_is_broken_off_is_not_repeated(monkeypatch):
    """Would catch a user who is heard, and told of again after an interruption."""
    one = player(DPUCB(), Coins())
    one.act(0)

    def interrupted(*told):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(one._agent, "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.update(0, 5, 1.0)
    with pytest.raises(InputError, match="one update for each act, got one more"):
        one.update(0, 5, 1.0)


def test_every_update_answers_one_act(state):
    """Would catch a user who is told of twice at the price of once, also over a save. Who is asked
    again is one user; with a delay as many wait as it says, and the last one."""
    says = "one update for each act, got one more"
    one = player(DPUCB(), Coins())
    refused(says, one.update, 0, 5, 1.0)
    for _ in range(3):
        one.act(0)
    one.update(0, 5, 1.0)
    refused(says, one.update, 0, 5, 1.0)
    late = player(DPUCB(), Coins(), delay=2)
    for _ in range(5):
        late.act(0)
    for _ in range(2):
        late.update(0, 5, 1.0)
    late.save(state)
    late = Player.load(state, DPUCB(), Coins(), horizon=T, reward_range=(0, 1), delay=2)
    late.update(0, 5, 1.0)
    refused(says, late.update, 0, 5, 1.0)
    assert (one._left, late._left) == (T - 1, T - 3)


@dataclass(kw_only=True)
class Changes:
    """A config whose settings can be changed, and which makes a better agent the second time."""

    epsilon: float = 20.0
    delta: float = 1e-5
    made: int = 0

    def make(self, spec, streams):
        self.made += 1
        return DPUCB(epsilon=self.epsilon / self.made).make(spec, streams)


def test_a_player_shows_the_certificate_of_the_agent_that_plays():
    """It made another agent of the config, and certified that."""
    config = Changes()
    player = Player(config, Coins(), horizon=60, reward_range=(0, 1))
    config.epsilon = 0.1
    proof = player.certificate
    assert proof.epsilon == pytest.approx(20.0)


def test_who_counts_on_its_own_actions_is_told_no_others_and_asked_once():
    """A veto of the loop reads the user's context, as one of `Guard` does, and so does whoever asks
    again until the arm is right."""

    def played(agent, told, asked=1):
        player = Player(agent, Coins(), horizon=60, reward_range=(0, 1))
        for _ in range(30):
            arms = [player.act(0) for _ in range(asked)]
            player.update(0, told(arms[-1]), 1.0)
        return player

    counts, sums = AllocationTS(epsilon=1.0, delta=0.3, growth=100, first=1), DPUCB()
    another, same = (lambda arm: 5 + (arm - 4) % 3), (lambda arm: arm)
    assert played(counts, same).certificate.holds
    for told, asked in ((another, 1), (same, 2)):
        assert played(sums, told, asked).certificate.holds
        with pytest.raises(InputError, match=r"which action was played, .* calls act twice"):
            played(counts, told, asked)
