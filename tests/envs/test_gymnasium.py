"""Conformance: every registered environment keeps Gymnasium's contract, lone and batched, and is
shown as text and pictures."""

import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import load_env_creator
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import dpbandit
from dpbandit import InputError
from dpbandit.base import Streams
from dpbandit.running.environments import problem_maker
from dpbandit.specs.convex import StreamSpec
from dpbandit.testing import check_problem
from tests.each import by_rota, each, refused
from tests.envs.contextual.ratings_files import ARGUMENTS

H = 6  # rounds an episode
every_env = pytest.mark.parametrize("name", dpbandit.ENVIRONMENTS)
every_third_env = pytest.mark.parametrize("name", by_rota(dpbandit.ENVIRONMENTS, 3, slow=False))
"""Others at other commits: all are problems in the same two wrappers, and have tests of their own
in the folders beside this file."""


def make(name, **arguments):
    return gym.make(name, **{"horizon": H, **needed(name), **arguments})


def make_native(name, count, **arguments):
    return gym.make_vec(name, num_envs=count, **{"horizon": H, **needed(name), **arguments})


def needed(name):
    return ARGUMENTS.get(name.removeprefix("dpbandit:"), {})


def actions_for(env, count, seed=3):
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(count)]


def episode(env, actions, **reset):
    """Everything an episode shows, as plain nested values."""
    log = [env.reset(**reset)] if reset else []
    log += [env.step(action) for action in actions]
    return plain(log)


def plain(x):
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [plain(value) for value in x]
    return plain(x.tolist()) if isinstance(x, np.ndarray | np.generic) else x


@pytest.mark.smoke
@every_third_env
def test_gymnasiums_own_checker_has_nothing_to_say(name):
    """Its hints are warnings, so errors here: it wants actions within [-1, 1], in a smaller
    ball."""
    env = make(name, **{"radius": 1.0} if "Streaming" in name else {}).unwrapped
    check_env(env, skip_render_check=True)


@every_third_env
def test_seeds_decide_everything_and_copies_continue(name):
    """Same seed, same episode, also under the module's prefix; another seed, another; without a
    seed the sequence goes on, as a lone one's pickle and a batch's deep copy do in mid-episode."""
    env, again = make(name), make(f"dpbandit:{name}")
    actions = actions_for(env, H)
    first = episode(env, actions, seed=5)
    assert first == episode(again, actions, seed=5)
    second = episode(env, actions, seed=None)
    assert second == episode(again, actions, seed=None) != first
    assert first == episode(env, actions, seed=5) != episode(env, actions, seed=6)
    batch = make_native(name, 3)
    for one, clone in ((env, lambda x: pickle.loads(pickle.dumps(x))), (batch, copy.deepcopy)):
        actions = actions_for(one, H)
        episode(one, actions[:2], seed=5)
        twin = clone(one)
        assert episode(one, actions[2:]) == episode(twin, actions[2:])
        assert episode(one, actions, seed=None) == episode(twin, actions, seed=None)


@every_third_env
def test_from_the_reset_to_the_horizon_and_no_further(name):
    env = make(name)
    for bare in (env.unwrapped, make_native(name, 2, autoreset_mode="Disabled")):
        actions = actions_for(bare, H + 1)
        refused("reset", bare.step, actions[-1])
        flags = [step[2:4] for step in episode(bare, actions[:H], seed=5)[1:]]
        assert [np.all(truncated) for _, truncated in flags] == [False] * (H - 1) + [True]
        assert not np.any([terminated for terminated, _ in flags])
        refused("reset", bare.step, actions[-1])


@every_third_env
def test_types_spaces_and_ranges(name):
    """Python numbers from a lone environment; all inside flat spaces, which Stable-Baselines3
    needs."""
    env = make(name, horizon=40)
    spec = env.unwrapped.problem.spec
    assert len(check_problem(make(name).unwrapped.problem, rounds=10)) == 9
    flat = Box | Discrete | MultiBinary | MultiDiscrete
    for space, kinds in ((env.observation_space, Box | Discrete), (env.action_space, flat)):
        assert isinstance(space, kinds)
        assert not isinstance(space, Box) or np.isfinite([space.low, space.high]).all()
        assert np.all(getattr(space, "start", 0) == 0)
    observation, info = env.reset(seed=5)
    assert info == {}
    total = 0.0
    for action in actions_for(env, 40):
        assert observation in env.observation_space
        if hasattr(spec, "context_order"):
            assert np.linalg.norm(observation, spec.context_order, -1).max() <= 1 + 1e-12
        observation, reward, terminated, truncated, info = env.step(action)
        assert [type(x) for x in (reward, terminated, truncated)] == [float, bool, bool]
        assert spec.reward_low <= reward <= spec.reward_high
        total += info["expected_reward"]
        if spec.in_hindsight:
            assert set(info) == {"expected_reward", *(["regret"] if truncated else [])}
        else:
            told = {spec.feedback_name} if spec.feedback_name else set()
            assert set(info) == {"expected_reward", "oracle_reward", "regret"} | told
            assert info["regret"] == info["oracle_reward"] - info["expected_reward"]
            assert info["regret"] >= 0 or isinstance(spec, StreamSpec)  # there, on average
    if spec.in_hindsight:
        best = env.unwrapped.problem.hindsight()[0]
        assert info["regret"] == pytest.approx(best - total)
    batch = make_native(name, 3)
    assert batch.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observation, _ = batch.reset(seed=5)
    assert observation in batch.observation_space
    _, reward, terminated, truncated, _ = batch.step(batch.action_space.sample())
    assert [x.dtype for x in (reward, terminated, truncated)] == [np.float64, bool, bool]


def told(name, delay):
    """Return the feedback of two replicas in 12 rounds of equal play, and their regret."""
    problem = problem_maker(name)(**{**needed(name), "horizon": 12, "delay": delay})
    problem.reset(Streams([5, 6]))
    draw, steps = problem.spec.uniform(Streams([1, 2])), []
    for _ in range(12):
        problem.context()
        steps.append(problem.step(draw()))
    parts = [[step.reward, step.datum] for step in steps]
    answers = [np.array(x) for x in zip(*parts, strict=True) if x[0] is not None]
    return answers, np.array([step.regret for step in steps])


def with_delay():
    for name in dpbandit.ENVIRONMENTS:
        creator = load_env_creator(gym.spec(name).kwargs["problem"])
        slow = name.endswith(("CameraAssortment-v0", "ClassificationBandit-v0"))  # seconds to load
        if hasattr(creator, "delay") and not slow:
            yield name


@each("name", with_delay)
def test_late_answers_are_those_of_the_rounds_before(name):
    """Rewards and data come 3 rounds late, zeros before; regret is counted at once."""
    (late, regret), (prompt, at_once) = told(name, 3), told(name, 0)
    for ours, theirs in zip(late, prompt, strict=True):
        np.testing.assert_array_equal(ours, np.concatenate([0 * theirs[:3], theirs[:-3]]))
    np.testing.assert_array_equal(regret, at_once)


def vector_log(envs, actions, mode):
    log = [envs.reset(seed=11)]
    for action in actions:
        log.append(envs.step(action))
        if mode is AutoresetMode.DISABLED and log[-1][3].all():
            log.append(envs.reset(options={"reset_mask": np.ones(envs.num_envs, dtype=bool)}))
    return log


@every_env
def test_native_batch_equals_lone_environments_side_by_side(name):
    """Difference exactly 0.0, over two episode ends, info included. What happens at an end is
    decided for all environments at once: each has one of the three modes."""
    mode = list(AutoresetMode)[list(dpbandit.ENVIRONMENTS).index(name) % 3]
    native = make_native(name, 2, horizon=3, autoreset_mode=mode)
    refused("reset", native.step, native.action_space.sample())
    sync = SyncVectorEnv([lambda: make(name, horizon=3)] * 2, autoreset_mode=mode)
    assert native.metadata["autoreset_mode"] is sync.metadata["autoreset_mode"] is mode
    actions = actions_for(native, 8)
    log = vector_log(native, actions, mode)
    assert plain(log) == plain(vector_log(sync, actions, mode))
    assert sum(np.all(answer[3]) for answer in log if len(answer) == 5) == 2


@every_env
def test_bad_actions_are_refused(name):
    """Out of range, not a number, no arm, or of the wrong shape: a sentence, never a silent guess;
    a refused action is no round."""
    env, batch = make(name).unwrapped, make_native(name, 3)
    env.reset(seed=5)
    batch.reset(seed=5)
    half = np.full(env.action_space.shape, 1.5)
    for wrong in (-1, 99, float("nan"), [1, 1], [1], "x", None, 2j, 10**400):
        with pytest.raises(InputError):
            env.step(wrong)
        for actions in (wrong, [wrong] * 3):
            with pytest.raises(InputError):
                batch.step(actions)
    if isinstance(env.action_space, gym.spaces.Box):
        assert np.isfinite(env.step(half)[1])
    else:
        with pytest.raises(InputError):
            env.step(half)


def test_points_outside_a_convex_domain_are_moved_inside():
    """All samples of the box are actions; the reward is that of the nearest point."""
    corner = np.array([3.0, 4.0])
    rewards = []
    for point in (corner, corner / 5):
        env = make("dpbandit/OnlineConvex-v0", dim=2)
        env.reset(seed=5)
        rewards.append(env.step(point)[1])
    assert rewards[0] == pytest.approx(rewards[1])
    refused("points", env.unwrapped.step, np.array([np.nan, 0.0]))


@every_env
def test_unknown_arguments_get_one_sentence_with_the_nearest_name(name):
    refused(r"'horizn' .did you mean horizon", make_native, name, 2, horizn=5)
    for arguments in ({"num_envs": 0}, {"num_envs": 2, "autoreset_mode": "nextstep"}):
        with pytest.raises(InputError):
            gym.make_vec(name, **arguments)


def rendered(name, mode, rounds=3):
    """Make an environment as Stable-Baselines3's `make_vec_env` does; no warning is allowed."""
    with warnings.catch_warnings(action="error"):
        env = gym.make(name, render_mode=mode, horizon=5, **needed(name))
        env.reset(seed=0)
        env.action_space.seed(0)
        regret = 0.0
        for _ in range(rounds):
            *_, info = env.step(env.action_space.sample())
            regret += info.get("regret", 0.0)
        return env.render(), regret


@each("name", dpbandit.ENVIRONMENTS)
def test_every_environment_is_shown_as_text(name):
    text, regret = rendered(name, "ansi")
    first, total, actions, _ = text.split("\n")
    assert first == "round 3 of 5"
    assert len(actions) > len("last actions ")
    assert total == f"total regret {regret:.6g}" or total.startswith("total reward ")


@pytest.mark.parametrize(
    "kind", ["OJPricing", "OJContinuousPricing", "OnlineConvex", "ListRecommendation"]
)
def test_a_picture_of_each_kind_of_action(kind):
    """It is there before the first round, changes with the rounds, and is no blank page."""
    empty, picture = (
        rendered(f"dpbandit/{kind}-v0", "rgb_array", rounds=rounds)[0] for rounds in (0, 5)
    )
    assert picture.shape == (360, 480, 3)
    assert picture.dtype == np.uint8
    assert len(np.unique(picture)) > 50
    assert (picture != empty).any()


def test_many_at_once_a_new_episode_and_no_other_mode():
    envs = gym.make_vec("dpbandit/GLMBandit-v0", num_envs=2, render_mode="ansi", horizon=3)
    envs.reset(seed=0)
    for _ in range(3):
        envs.step(np.array([1, 2]))
    first, second = envs.render()
    assert "last actions 1 1 1\n" in first
    assert "last actions 2 2 2\n" in second
    envs.reset()
    assert "round 0 of 3\ntotal regret 0\nlast actions (none)" in envs.render()[0]
    with pytest.raises(InputError, match="render_mode"):
        dpbandit.envs.adapters.BanditEnv(problem="dpbandit.envs:GLMBandit", render_mode="video")
    env = gym.make("dpbandit/GLMBandit-v0")
    env.reset()
    refused("Expected render_mode='ansi' or 'rgb_array'", env.unwrapped.render)
