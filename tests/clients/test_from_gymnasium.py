"""Third-party environments: observations as contexts, copies, seeds, regret, and refusals."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from dpbandit import compare
from dpbandit.base.random_streams import Streams
from dpbandit.clients import Bridge, FromGymnasium
from tests.clients.worlds import MEANS, Coins, Spaces, means
from tests.each import each, refused

BOX = spaces.Box(-2, 2, (2, 2))
ARMS = spaces.Discrete(3)


def bridge(observations, actions=ARMS, **more):
    settings = {"horizon": 5, "reward_range": (0, 1), **more}
    return Bridge(Spaces(actions, observations), **settings)


@each(
    ("space", "observation", "context", "bound"),
    [
        (spaces.Discrete(1), 0, [1], 1),
        (spaces.Discrete(3, start=-1), np.int64(1), [0, 0, 1], 1),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 0]), [0, 1, 1, 0, 0], 2**0.5),
        (spaces.MultiBinary((2, 2)), np.array([[1, 0], [1, 1]], np.int8), [1, 0, 1, 1], 2),
        (spaces.Tuple([ARMS, ARMS]), (0, 2), [1, 0, 0, 0, 0, 1], 2**0.5),
        (spaces.Box(0, 1, (0,)), np.zeros(0), [1], 1),
    ],
)
def test_discrete_observations_are_one_hot_within_a_known_bound(space, observation, context, bound):
    """Each discrete number gives a single 1, so the norm is the root of their number (by hand)."""
    made = bridge(space)
    assert made.context(observation).tolist() == context
    assert made.spec.context_bound == pytest.approx(bound)
    assert made.spec.dim == len(context)
    for order, most in ((1, 3), (2, 3**0.5), (np.inf, 1)):  # in the norm that is asked for
        made = bridge(spaces.MultiBinary(3), context_order=order)
        assert made.spec.context_bound == pytest.approx(most)
        assert np.linalg.norm(made.context(np.ones(3, np.int8)), order) == pytest.approx(most)


def test_boxes_are_flattened_and_clipped_and_actions_keep_their_names():
    """To the bound that was told; no context is the constant one, whatever is observed."""
    made = bridge(spaces.Dict(a=ARMS, b=BOX), context_bound=2.0)
    small = {"a": 1, "b": np.full((2, 2), 0.5, np.float32)}
    assert made.context(small).tolist() == [0, 1, 0, 0.5, 0.5, 0.5, 0.5]
    for size in (1e9, np.inf, np.nan):
        extreme = made.context({"a": 1, "b": np.full((2, 2), size, np.float32)})
        assert np.linalg.norm(extreme) <= 2 + 1e-12
    made = bridge(spaces.Text(5), contexts="none")
    assert made.context("abc").tolist() == made.context(None).tolist() == [1.0]
    assert (made.spec.dim, made.spec.context_bound) == (1, 1.0)
    for bound, constant in ((0.25, 0.25), (4.0, 1.0)):  # what the spec says is true
        assert bridge(ARMS, contexts="none", context_bound=bound).context(0).tolist() == [constant]
    made = bridge(ARMS, spaces.Discrete(3, start=5))
    assert [made.action(np.int64(k)) for k in range(3)] == [5, 6, 7]
    assert type(made.action(np.int64(0))) is int
    assert [made.arm(a) for a in (5, np.int64(6), 7.0)] == [0, 1, 2]
    for wrong in (4, 8, 5.5, "x", None, np.nan, np.inf):
        refused(r"one of 5, ..., 7", made.arm, wrong)


@each(
    ("arguments", "match"),
    [
        ({"observations": BOX}, "context_bound=None .* public bound on the l_2 norm"),
        ({"observations": spaces.Dict(a=BOX)}, "context_bound=None"),
        ({"observations": BOX, "context_bound": -1.0}, "context_bound=-1.0"),
        ({"observations": ARMS, "reward_range": None}, "reward_range=None .* two finite numbers"),
        ({"observations": ARMS, "reward_range": (1, 0)}, "reward_low"),
        ({"observations": ARMS, "reward_range": (0, np.inf)}, "reward_low"),
        ({"observations": ARMS, "reward_range": "ab"}, "reward_range"),
        ({"observations": ARMS, "actions": BOX}, "finitely many actions"),
        ({"observations": ARMS, "actions": spaces.MultiDiscrete([2, 2])}, "finitely many"),
        ({"observations": ARMS, "actions": spaces.Discrete(1)}, "n_actions=1"),
        ({"observations": ARMS, "horizon": 0}, "horizon=0"),
        ({"observations": ARMS, "context_order": 3}, "context_order=3"),
        ({"observations": ARMS, "context_order": 0}, "context_order=0"),
        ({"observations": BOX, "context_order": "2"}, "context_order='2' to be 1, 2 or inf"),
        ({"observations": ARMS, "reward_range": (0, 10**400)}, "two finite numbers"),
        ({"observations": ARMS, "contexts": "nothing"}, "contexts='nothing'"),
        ({"observations": spaces.Text(5)}, "Text.*contexts='none'"),
        ({"observations": spaces.Dict(a=spaces.Sequence(ARMS))}, "contexts='none'"),
        ({"observations": spaces.Discrete(20_000)}, "at most 10000 numbers, got 20000"),
    ],
)
def test_what_has_no_bridge_gets_one_sentence(arguments, match):
    refused(match, bridge, **arguments)
    several = gym.make_vec("dpbandit/GLMBandit-v0", num_envs=2)
    for env, says in ((3, "env=3 to be a Gymnasium environment"), (several, "finitely many act")):
        refused(says, Bridge, env, horizon=1, reward_range=(0, 1))


@each(
    ("space", "observation"),
    [
        (ARMS, 3), (ARMS, -1), (ARMS, 0.5), (ARMS, None), (BOX, np.zeros(3)), (BOX, "x"),
        (BOX, 10**400), (spaces.Dict(a=BOX), {"b": 1}),
        (spaces.Dict(a=BOX, b=ARMS), {"a": np.zeros((2, 2)), "b": 3}),
        (spaces.Dict(a=BOX, b=ARMS), {"a": np.zeros((2, 2)), "b": -1}),
        (spaces.Tuple([BOX, spaces.MultiDiscrete([2, 3])]), (np.zeros((2, 2)), np.array([2, 0]))),
        (spaces.Tuple([BOX, spaces.MultiBinary(2)]), (np.zeros((2, 2)), np.array([7, 0]))),
        (spaces.Tuple([BOX, ARMS]), (np.zeros((2, 2)),)),
    ],
)  # fmt: skip
def test_observations_outside_their_space_are_refused(space, observation):
    refused("Expected an observation in", bridge(space, context_bound=1.0).context, observation)


T = 80


def coins(env=Coins, **more):
    return FromGymnasium(env, **{"oracle": means, "reward_range": (0, 1), **more})


@pytest.mark.parametrize(
    "how",
    [
        {"oracle": means}, {"oracle": "info:means"}, {"oracle": lambda env: means(env).max()},
        {"oracle": "info:best"}, {"oracle": None, "regret": "info:regret"},
    ],
)  # fmt: skip
def test_every_way_to_measure_regret_against_the_known_means(how):
    """Regret by hand: exact where the arms' means or the regret are told, else best - reward; a
    replica alone meets the same users."""
    problem = coins(**how)(horizon=T)
    alone = coins(**how)(horizon=T)
    problem.reset(Streams([1, 2]))
    alone.reset(Streams([2]))
    plays = np.random.default_rng(0).integers(3, size=(T, 2))
    for action in plays:
        best, expected = [], []
        for r, env in enumerate(problem._envs):
            best.append(MEANS[env.kind].max())
            expected.append(MEANS[env.kind][action[r]])
        assert problem.context().tolist() == np.eye(2)[[env.kind for env in problem._envs]].tolist()
        step = problem.step(action)
        assert step.reward[1] == alone.step(action[1:]).reward[0]
        exact = "regret" in how or how["oracle"] in (means, "info:means")
        wanted = np.array(best) - (expected if exact else step.reward)
        np.testing.assert_allclose(step.regret, wanted, atol=1e-12)
        np.testing.assert_allclose(step.regret, step.oracle - step.expected, atol=1e-12)


def test_means_episodes_and_the_best_arm():
    """Broken on purpose: an oracle that hands out the environment's own array. One-user episodes:
    kinds go on being drawn. By hand: arm 2 has the best average of the arms tried, arm 0 none."""

    class WearsOut(Coins):
        means = np.ones(3)

        def step(self, action):
            answer = super().step(action)
            self.means *= 0.5
            return answer

    problem = coins(WearsOut, oracle=lambda env: env.means)(horizon=T)
    problem.reset(Streams([1]))
    assert [problem.step(np.array([0])).oracle[0] for _ in range(3)] == [1.0, 0.5, 0.25]
    problem = coins()(horizon=T, length=1)
    problem.reset(Streams([1]))
    kinds = []
    for _ in range(40):
        kinds.append(problem.context()[0].argmax())
        problem.step(np.array([0]))
    assert 5 < sum(kinds) < 35  # both tails together: 2e-6
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


def test_limits_of_steps_and_closing():
    """Broken on purpose: with the registered limit of 3 steps arms would be drawn anew in rounds 4,
    7, ... The environments of the agent before are closed."""
    gym.register("tests/Coins-v0", entry_point=Coins, max_episode_steps=3)
    try:
        problem = coins("tests/Coins-v0")(horizon=10)
        problem.reset(Streams([1]))
        for t in range(10):
            problem.step(np.array([0]))
            assert problem._over == [t == 9]
    finally:
        gym.registry.pop("tests/Coins-v0")
    closed = []

    class Closes(Coins):
        def close(self):
            closed.append(self)

    problem = coins(Closes)(horizon=5)
    problem.reset(Streams([1, 2]))
    first = problem._envs
    assert len(closed) == 1  # the one that was asked for its spaces
    problem.reset(Streams([1, 2]))
    assert closed[1:] == first
    assert not set(map(id, closed)) & set(map(id, problem._envs))


class Silent(Coins):
    """Has no info."""

    def step(self, action):
        return *super().step(action)[:4], None


NO_NUMBERS = (
    ["a", "b", "c"], None, np.datetime64("NaT", "s"), [np.datetime64(1, "ns")] * 3,
    np.timedelta64("NaT", "s"), [1, 1, np.timedelta64(1, "s")], [10**400, 1, 1], np.ones(3) * 1j,
    1 + 2j,
)  # fmt: skip
NO_REWARDS = (
    "1", np.datetime64("NaT", "ns"), np.timedelta64("NaT", "s"), 10**400, np.complex128(1),
    np.ones(2),
)  # fmt: skip


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
        ({"oracle": lambda env: 10**400}, r"oracle to give numbers, got 10{90,97}\.\.\."),
        *(
            ({"oracle": lambda env, told=told: told}, "oracle to give numbers")
            for told in NO_NUMBERS
        ),
        ({"oracle": lambda env: -0.1}, r"oracle in \[0, 1\] as rewards are .*, got -0.1: say"),
        ({"oracle": lambda env: [0.5, 1e308, 0.5]}, r"oracle in \[0, 1\] .*, got 1e\+308: say"),
        ({"oracle": None, "regret": "info:gone"}, r"info:gone in \[0, 1\] .*, got 1.1: say"),
        ({"oracle": None, "regret": "info:means"}, "In round 1: Expected info:means=.* one number"),
        ({"oracle": None, "regret": "info:loss"}, "info:loss=-1.0 to be a regret >= 0"),
        ({"env": lambda: 3}, "env to make a Gymnasium environment, got 3"),
        ({"env": lambda: Coins(paid=None)}, "In round 1: Expected reward=None to be one number"),
        *(({"env": lambda paid=paid: Coins(paid=paid)}, "one number") for paid in NO_REWARDS),
    ],
)
def test_mistakes_get_one_sentence(arguments, match):
    short = {"horizon": 5, "replicas": 2, "progress": False}
    refused(match, lambda: compare(coins(**arguments), {}, **short))


@each("wrap", [lambda env: env, gym.Wrapper])
def test_one_environment_for_two_replicas_is_refused(wrap):
    """Also behind two wrappers."""
    env = Coins()
    make = coins(lambda: wrap(env))
    refused("a new environment from every call", make(horizon=5).reset, Streams([1, 2]))
    make(horizon=5).reset(Streams([1]))


def test_regret_may_be_rounded_below_zero_and_rewards_come_in_arrays():
    problem = coins(oracle=None, regret="info:rounded")(horizon=5, paid=np.array([0.5]))
    problem.reset(Streams([1]))
    step = problem.step(np.array([0]))
    assert (step.reward.tolist(), step.regret[0]) == ([0.5], pytest.approx(-1e-12))
