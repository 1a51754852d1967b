"""Observations as contexts: what any space becomes, and what is refused."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from dpbandit import InputError
from dpbandit.clients import Bridge
from tests.clients.worlds import Spaces
from tests.each import each

BOX = spaces.Box(-2, 2, (2, 2))
ARMS = spaces.Discrete(3)


def bridge(observations, actions=ARMS, **more):
    settings = {"horizon": 5, "reward_range": (0, 1), **more}
    return Bridge(Spaces(actions, observations), **settings)


@pytest.mark.parametrize(
    ("space", "observation", "context", "bound"),
    [
        (spaces.Discrete(1), 0, [1], 1),
        (spaces.Discrete(3, start=-1), np.int64(1), [0, 0, 1], 1),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 0]), [0, 1, 1, 0, 0], 2**0.5),
        (spaces.MultiBinary((2, 2)), np.array([[1, 0], [1, 1]], np.int8), [1, 0, 1, 1], 2),
        (spaces.Tuple([ARMS, ARMS]), (0, 2), [1, 0, 0, 0, 0, 1], 2**0.5),
        (spaces.Box(0, 1, (0,)), np.zeros(0), [1], 1),
    ],
    ids=str,
)
def test_discrete_observations_are_one_hot_within_a_known_bound(space, observation, context, bound):
    """By hand: a one for each discrete number, so the norm is the root of how many there are."""
    made = bridge(space)
    assert made.context(observation).tolist() == context
    assert made.spec.context_bound == pytest.approx(bound)
    assert made.spec.dim == len(context)


@pytest.mark.parametrize(("order", "bound"), [(1, 3), (2, 3**0.5), (np.inf, 1)])
def test_the_known_bound_is_in_the_norm_asked_for(order, bound):
    made = bridge(spaces.MultiBinary(3), context_order=order)
    assert made.spec.context_bound == pytest.approx(bound)
    assert np.linalg.norm(made.context(np.ones(3, np.int8)), order) == pytest.approx(bound)


def test_boxes_are_flattened_and_clipped_to_the_bound_that_was_told():
    made = bridge(spaces.Dict(a=ARMS, b=BOX), context_bound=2.0)
    small = {"a": 1, "b": np.full((2, 2), 0.5, np.float32)}
    assert made.context(small).tolist() == [0, 1, 0, 0.5, 0.5, 0.5, 0.5]
    for size in (1e9, np.inf, np.nan):
        extreme = made.context({"a": 1, "b": np.full((2, 2), size, np.float32)})
        assert np.linalg.norm(extreme) <= 2 + 1e-12


def test_no_context_is_the_constant_one_whatever_is_observed():
    made = bridge(spaces.Text(5), contexts="none")
    assert made.context("abc").tolist() == made.context(None).tolist() == [1.0]
    assert (made.spec.dim, made.spec.context_bound) == (1, 1.0)
    for bound, constant in ((0.25, 0.25), (4.0, 1.0)):  # what the spec says is true
        assert bridge(ARMS, contexts="none", context_bound=bound).context(0).tolist() == [constant]


def test_actions_keep_the_names_the_environment_gave_them():
    made = bridge(ARMS, spaces.Discrete(3, start=5))
    assert [made.action(np.int64(k)) for k in range(3)] == [5, 6, 7]
    assert type(made.action(np.int64(0))) is int
    assert [made.arm(a) for a in (5, np.int64(6), 7.0)] == [0, 1, 2]
    for wrong in (4, 8, 5.5, "x", None, np.nan, np.inf):
        with pytest.raises(InputError, match=r"one of 5, ..., 7"):
            made.arm(wrong)


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
    ids=str,
)
def test_what_is_missing_or_not_finite_gets_one_sentence(arguments, match):
    with pytest.raises(InputError, match=match) as caught:
        bridge(**arguments)
    assert "\n" not in str(caught.value)


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
    ids=str,
)  # fmt: skip
def test_observations_outside_their_space_are_refused(space, observation):
    with pytest.raises(InputError, match="Expected an observation in"):
        bridge(space, context_bound=1.0).context(observation)


def test_vector_environments_and_what_is_none_are_refused():
    with pytest.raises(InputError, match="env=3 to be a Gymnasium environment"):
        Bridge(3, horizon=1, reward_range=(0, 1))
    with pytest.raises(InputError, match="finitely many actions"):
        Bridge(gym.make_vec("dpbandit/GLMBandit-v0", num_envs=2), horizon=1, reward_range=(0, 1))
