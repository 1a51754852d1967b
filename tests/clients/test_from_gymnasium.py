"""Third-party environments in `compare`: copies, seeds and regret."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils import seeding

from dpbandit import InputError, Results, compare, play
from dpbandit.agents import DPUCB, BestFixed, LinUCB, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.clients import FromGymnasium
from dpbandit.envs import GLMBandit
from dpbandit.results.store import write_runs
from tests.clients.worlds import MEANS, Coins, means
from tests.each import each

T = 80
MARKS = np.arange(1, T + 1)
SEEDS = [(3, r) for r in range(3)]


def coins(**more):
    return FromGymnasium(Coins, **{"oracle": means, "reward_range": (0, 1), **more})


def glm(**arguments):
    return gym.make("dpbandit/GLMBandit-v0", horizon=T, n_actions=3, dim=2, **arguments)


class Silent(Coins):
    """Has no info."""

    def step(self, action):
        return *super().step(action)[:4], None


class SameUsers(GLMBandit):
    """Our problem, seeded as its Gymnasium adapter is by the wrapper."""

    def reset(self, streams):
        seeds = (streams.uniforms("seed")() * 2**31).astype(int).tolist()
        seeds = [int(seeding.np_random(seed)[0].integers(2**63)) for seed in seeds]
        super().reset(Streams(seeds).child("environment"))


@pytest.mark.parametrize("config", [LinUCB(), DPUCB(), Uniform()], ids=repr)
@pytest.mark.parametrize("how", [{"regret": "info:regret"}, {"oracle": "info:oracle_reward"}])
def test_our_own_problem_through_gymnasium_and_back(config, how):
    """Oracle: contexts, actions and rewards are the same bit for bit, and so is regret where info
    tells it; from the best mean alone it differs by what rewards differ from their means."""
    back = FromGymnasium(glm, reward_range=(-1.4, 1.4), context_bound=1.0, **how)(horizon=T)
    direct = SameUsers(horizon=T, n_actions=3, dim=2)
    one, two = (play(problem, config, SEEDS, marks=MARKS) for problem in (back, direct))
    np.testing.assert_array_equal(one.reward, two.reward)
    luck = 0.0 if "regret" in how else two.reward - _expected(direct, config)
    np.testing.assert_allclose(one.regret, two.regret - luck, atol=1e-10)


def _expected(problem, config):
    """Cumulative mean rewards of one more play on the same users."""
    told = []

    class Watched:
        spec, reset, context = problem.spec, problem.reset, problem.context
        best_fixed, hindsight = problem.best_fixed, problem.hindsight

        def step(self, action):
            told.append(problem.step(action))
            return told[-1]

    play(Watched(), config, SEEDS, marks=MARKS)
    return np.cumsum([step.expected for step in told], axis=0)


@pytest.mark.parametrize(
    "how",
    [
        {"oracle": means}, {"oracle": "info:means"}, {"oracle": lambda env: means(env).max()},
        {"oracle": "info:best"}, {"oracle": None, "regret": "info:regret"},
    ],
)  # fmt: skip
def test_every_way_to_measure_regret_against_the_known_means(how):
    """By hand: exact where the arms' means or the regret are told, else best - reward."""
    problem = coins(**how)(horizon=T)
    problem.reset(Streams([1, 2]))
    plays = np.random.default_rng(0).integers(3, size=(T, 2))
    for action in plays:
        best, expected = [], []
        for r, env in enumerate(problem._envs):
            best.append(MEANS[env.kind].max())
            expected.append(MEANS[env.kind][action[r]])
        assert problem.context().tolist() == np.eye(2)[[env.kind for env in problem._envs]].tolist()
        step = problem.step(action)
        exact = "regret" in how or how["oracle"] in (means, "info:means")
        wanted = np.array(best) - (expected if exact else step.reward)
        np.testing.assert_allclose(step.regret, wanted, atol=1e-12)
        np.testing.assert_allclose(step.regret, step.oracle - step.expected, atol=1e-12)


def test_means_are_read_before_the_user_changes_them():
    """Broken on purpose: an oracle that hands out the environment's own array, which serving her
    overwrites."""

    class WearsOut(Coins):
        worth = np.ones(3)

        def step(self, action):
            answer = super().step(action)
            self.worth *= 0.5
            return answer

    make = FromGymnasium(WearsOut, oracle=lambda env: env.worth, reward_range=(0, 1))
    problem = make(horizon=T)
    problem.reset(Streams([1]))
    assert [problem.step(np.array([0])).oracle[0] for _ in range(3)] == [1.0, 0.5, 0.25]


def test_best_fixed_is_exact_with_means_and_the_best_average_without():
    """By hand: arm 2 is played with the best average of the arms tried, arm 0 never."""
    known, guessed = (coins(oracle=o)(horizon=T) for o in (means, "info:best"))
    totals, rewards = np.zeros(3), {1: [], 2: []}
    for problem in (known, guessed):
        problem.reset(Streams([5]))
        for t in range(T):
            totals += MEANS[problem._envs[0].kind] * (problem is known)
            arm = 1 + t % 2
            rewards[arm].append(problem.step(np.array([arm])).reward[0])
    assert known.best_fixed().tolist() == [totals.argmax()]
    averages = {arm: np.mean(rewards[arm]) for arm in rewards}
    assert guessed.best_fixed().tolist() == [max(averages, key=averages.get)]


def test_replicas_depend_on_seed_and_number_only():
    few = play(coins()(horizon=T), LinUCB(), SEEDS[1:2], marks=MARKS)
    many = play(coins()(horizon=T), LinUCB(), SEEDS, marks=MARKS)
    np.testing.assert_array_equal(few.regret[:, 0], many.regret[:, 1])
    assert len(set(many.reward[-1])) > 1


def test_episodes_follow_one_another_and_do_not_repeat_users():
    """One-user episodes, a common form of contextual bandits: kinds go on being drawn."""
    problem = coins()(horizon=T, length=1)
    problem.reset(Streams([1]))
    kinds = []
    for _ in range(40):
        kinds.append(problem.context()[0].argmax())
        problem.step(np.array([0]))
    assert 5 < sum(kinds) < 35  # both tails together: 2e-6


def test_a_limit_of_steps_is_set_to_the_horizon():
    """Broken on purpose: with the registered limit of 3 steps arms would be drawn anew in rounds 4,
    7, ..."""
    gym.register("tests/Coins-v0", entry_point=Coins, max_episode_steps=3)
    try:
        problem = FromGymnasium("tests/Coins-v0", oracle=means, reward_range=(0, 1))(horizon=10)
        problem.reset(Streams([1]))
        for t in range(10):
            problem.step(np.array([0]))
            assert problem._over == [t == 9]
    finally:
        gym.registry.pop("tests/Coins-v0")


def test_compare_from_end_to_end(tmp_path):
    """Learning beats a fixed arm where kinds differ; results are saved and read back."""
    agents = {"LinUCB": LinUCB(), "DP-UCB": DPUCB()}
    settings = {"horizon": 400, "replicas": 3, "progress": False}
    results = compare(coins(), agents, env_kwargs={"length": 50}, **settings)
    regret = results.summary().set_index("agent")["mean"]
    assert regret["LinUCB"] < regret["BestFixed"] / 2
    assert regret["BestFixed"] < regret["Uniform"]
    assert results.environment == "Coins"
    assert set(results.env_kwargs) == {"length", "horizon"}
    write_runs(tmp_path / "frame.parquet", results.runs)
    again = Results.load(tmp_path).summary().set_index("agent")["mean"]
    assert again.to_dict() == regret.to_dict()


@each(
    ("arguments", "match"),
    [
        ({"oracle": None}, "one of oracle= .* and regret='info:KEY'"),
        ({"regret": "info:regret"}, "one of oracle="),
        ({"oracle": "means"}, "oracle='means' to be 'info:'"),
        ({"oracle": None, "regret": "regret"}, "regret='regret' to be 'info:'"),
        ({"oracle": None, "regret": means}, "to be 'info:'"),
        ({"env": "dpbandit/Nowhere-v0"}, "Cannot make environment 'dpbandit/Nowhere-v0'"),
        ({"env": "no_such_module:Coins-v0"}, "Cannot make environment"),
        ({"reward_range": None}, "reward_range=None"),
        ({"oracle": "info:mean"}, "info to hold 'mean', it holds 'best', 'gone', 'los"),
        ({"env": Silent, "oracle": "info:mean"}, "info to hold 'mean', it holds nothing"),
        ({"oracle": lambda env: [1, 2]}, "best mean reward or all 3, got an array of shape"),
        ({"oracle": lambda env: np.nan}, "In round 1: Expected finite oracle, got nan"),
        ({"oracle": lambda env: ["a", "b", "c"]}, "oracle to give numbers"),
        ({"oracle": lambda env: None}, "oracle to give numbers, got None"),
        ({"oracle": lambda env: np.datetime64("NaT", "s")}, "oracle to give numbers"),
        ({"oracle": lambda env: [np.datetime64(1, "ns")] * 3}, "oracle to give numbers"),
        ({"oracle": lambda env: 10**400}, r"oracle to give numbers, got 10{90,97}\.\.\."),
        ({"oracle": lambda env: [10**400, 1, 1]}, "oracle to give numbers"),
        ({"oracle": lambda env: np.timedelta64("NaT", "s")}, "oracle to give numbers"),
        ({"oracle": lambda env: [1, 1, np.timedelta64(1, "s")]}, "oracle to give numbers"),
        ({"oracle": lambda env: -0.1}, r"oracle in \[0, 1\] as rewards are .*, got -0.1: say"),
        ({"oracle": lambda env: [0.5, 1e308, 0.5]}, r"oracle in \[0, 1\] .*, got 1e\+308: say"),
        ({"oracle": None, "regret": "info:gone"}, r"info:gone in \[0, 1\] .*, got 1.1: say"),
        ({"oracle": lambda env: np.ones(3) * 1j}, "oracle to give numbers"),
        ({"oracle": lambda env: 1 + 2j}, "oracle to give numbers"),
        ({"oracle": None, "regret": "info:means"}, "In round 1: Expected info:means=.* one number"),
        ({"oracle": None, "regret": "info:loss"}, "info:loss=-1.0 to be a regret >= 0"),
        ({"env": lambda: 3}, "env to make a Gymnasium environment, got 3"),
        ({"env": lambda: Coins(paid=None)}, "In round 1: Expected reward=None to be one number"),
        ({"env": lambda: Coins(paid="1")}, "reward='1' to be one number"),
        ({"env": lambda: Coins(paid=np.datetime64("NaT", "ns"))}, "to be one number"),
        ({"env": lambda: Coins(paid=np.timedelta64("NaT", "s"))}, "to be one number"),
        ({"env": lambda: Coins(paid=10**400)}, "to be one number"),
        ({"env": lambda: Coins(paid=np.complex128(1))}, "to be one number"),
        ({"env": lambda: Coins(paid=np.ones(2))}, "to be one number"),
    ],
)
def test_mistakes_get_one_sentence(arguments, match):
    with pytest.raises(InputError, match=match) as caught:
        compare(
            FromGymnasium(**{"env": Coins, "oracle": means, "reward_range": (0, 1), **arguments}),
            {},
            horizon=5,
            replicas=2,
            progress=False,
        )
    assert "\n" not in str(caught.value)


def test_one_environment_for_two_replicas_is_refused():
    env = Coins()
    with pytest.raises(InputError, match="a new environment from every call"):
        compare(
            FromGymnasium(lambda: env, oracle=means, reward_range=(0, 1)),
            {"BestFixed": BestFixed()},
            horizon=5,
            replicas=2,
            progress=False,
        )


def test_one_environment_behind_two_wrappers_is_refused():
    env = Coins()
    make = FromGymnasium(lambda: gym.Wrapper(env), oracle=means, reward_range=(0, 1))
    with pytest.raises(InputError, match="a new environment from every call"):
        make(horizon=5).reset(Streams([1, 2]))
    make(horizon=5).reset(Streams([1]))


def test_regret_may_be_rounded_below_zero_and_rewards_come_in_arrays():
    make = FromGymnasium(Coins, regret="info:rounded", reward_range=(0, 1))
    problem = make(horizon=5, paid=np.array([0.5]))
    problem.reset(Streams([1]))
    step = problem.step(np.array([0]))
    assert (step.reward.tolist(), step.regret[0]) == ([0.5], pytest.approx(-1e-12))


def test_the_environments_of_the_agent_before_are_closed():
    closed = []

    class Closes(Coins):
        def close(self):
            closed.append(self)

    problem = FromGymnasium(Closes, oracle=means, reward_range=(0, 1))(horizon=5)
    problem.reset(Streams([1, 2]))
    first = problem._envs
    assert len(closed) == 1  # the one that was asked for its spaces
    problem.reset(Streams([1, 2]))
    assert closed[1:] == first
    assert not set(map(id, closed)) & set(map(id, problem._envs))
