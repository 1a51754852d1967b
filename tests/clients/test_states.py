"""Running agents are kept in files: bit for bit, once, and what is no state is one sentence."""

import stat

import gymnasium as gym
import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.agents import DPUCB, FADE
from dpbandit.clients import Player
from dpbandit.clients.player import Decoder

ARGUMENTS = {"horizon": 40, "reward_range": (-1.4, 1.4), "context_bound": 1.0}


@pytest.fixture(autouse=True)
def _loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))


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


def test_a_player_goes_on_where_it_was(tmp_path):
    """As one that was never saved; its certificate, books and horizon too; then it is used up."""
    env = environment()
    whole, _ = serve(Player(DPUCB(), env, **ARGUMENTS), env, env.reset(seed=0)[0], 40)
    old, env, observation = saved(tmp_path / "state.npz")
    assert stat.S_IMODE((tmp_path / "state.npz").stat().st_mode) == 0o600
    player = Player.load(tmp_path / "state.npz", DPUCB(epsilon=1), env, **ARGUMENTS)
    assert player.certificate == old.certificate
    assert serve(player, env, observation, 23)[0] == whole[17:]
    with pytest.raises(InputError, match="horizon of 40 users is over"):
        player.update(observation, 0, 0.0)


def test_one_state_goes_on_once(tmp_path):
    """A saved player serves nobody; neither the file nor a copy of it is loaded again."""
    old, env, observation = saved(tmp_path / "state.npz")
    for use in (
        lambda: old.act(observation),
        lambda: old.update(observation, 0, 0.0),
        lambda: old.save(tmp_path / "again.npz"),
    ):
        with pytest.raises(InputError, match=r"go on with Player\.load"):
            use()
    (tmp_path / "copy.npz").write_bytes((tmp_path / "state.npz").read_bytes())
    Player.load(tmp_path / "copy.npz", DPUCB(), env, **ARGUMENTS)
    for name in ("state.npz", "copy.npz"):
        with pytest.raises(InputError, match=f"{name} was loaded before"):
            Player.load(tmp_path / name, DPUCB(), env, **ARGUMENTS)


@pytest.mark.parametrize(
    ("config", "changed", "words"),
    [
        (DPUCB(epsilon=2.0), {}, "of this config"),
        (FADE(), {}, "of this config"),
        (DPUCB(), {"horizon": 41}, "of this environment, bounds and horizon"),
        (DPUCB(), {"reward_range": (-2, 2)}, "of this environment, bounds and horizon"),
    ],
)
def test_another_config_or_environment_is_refused_and_uses_nothing_up(
    tmp_path, config, changed, words
):
    _, env, _ = saved(tmp_path / "state.npz")
    with pytest.raises(InputError, match=words):
        Player.load(tmp_path / "state.npz", config, env, **{**ARGUMENTS, **changed})
    Player.load(tmp_path / "state.npz", DPUCB(), env, **ARGUMENTS)


def changed_array(path):
    """One array of the noise, zeroed."""
    with np.load(path) as file:
        stored = {name: file[name] for name in file.files}
    largest = max((n for n in stored if n.startswith("array")), key=lambda n: stored[n].size)
    np.savez(path, **{**stored, largest: np.zeros_like(stored[largest])})


def another_format(path, monkeypatch):
    monkeypatch.setattr("dpbandit.clients.player._FORMAT", 2)


def another_program(path, monkeypatch):
    monkeypatch.setattr("dpbandit.clients.player._program", lambda: {"dpbandit": "0"})


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path, _: path.write_bytes(path.read_bytes()[:2000]), "Expected a "),
        (lambda path, _: path.write_bytes(b""), "Expected a state"),
        (lambda path, _: path.write_text("{}"), "Expected a state"),
        (lambda path, _: np.savez(path, a=np.ones(3)), "Expected a state"),
        (lambda path, _: path.unlink(), "No such file"),
        (lambda path, _: changed_array(path), "was changed"),
        (another_format, "of this format, which is 1 there and 2 here"),
        (another_program, "of this program"),
    ],
)
def test_what_is_no_state_is_one_sentence(tmp_path, monkeypatch, damage, words):
    path = tmp_path / "state.npz"
    _, env, _ = saved(path)
    damage(path, monkeypatch)
    with pytest.raises(InputError, match=words) as refused:
        Player.load(path, DPUCB(), env, **ARGUMENTS)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "thing", [("name", "os", "system"), ("name", "builtins", "eval"), ("object", "io", "FileIO", 0)]
)
def test_no_code_comes_from_a_file(thing):
    with pytest.raises(InputError, match="plain parts"):
        Decoder([list(thing)], []).get(0)
