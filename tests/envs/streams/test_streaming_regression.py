"""StreamingRegression as an environment: what is told, agents that play, refusals."""

import gymnasium as gym
import numpy as np
import pytest

import dpbandit
from dpbandit.agents import OGD
from dpbandit.base.random_streams import Streams
from dpbandit.envs import StreamingRegression, tables
from tests.each import each

NAME = "dpbandit/StreamingRegression-v0"


def played(problem, rounds, R=2):
    problem.reset(Streams(range(R)))
    x = np.full((R, problem.spec.loss.domain.dim), 0.1)
    return [(problem.context(), problem.step(x)) for _ in range(rounds)]


def test_common_random_numbers():
    """Users do not depend on what is played."""
    one, two = StreamingRegression(family="logistic"), StreamingRegression(family="logistic")
    one.reset(Streams([0]))
    two.reset(Streams([0]))
    for t in range(9):
        a, b = one.step(np.zeros((1, 5))), two.step(np.full((1, 5), t / 20))
        np.testing.assert_array_equal(a.datum, b.datum)


@each("family", ["linear", "logistic", "quantile"])
@each("p", [1, 1.5, 2, 3.0, "inf"])
def test_data_are_admissible(family, p):
    """Nothing is left to clip, even with outliers and much noise; rewards in their range."""
    arguments = {"family": family, "p": p, "contamination": 0.3, "outliers": "coin", "noise": 2.0}
    problem = StreamingRegression(**arguments)
    loss = problem.spec.loss
    assert 1 / loss.domain.p + 1 / loss.order == pytest.approx(1)
    for _, step in played(problem, 60):
        np.testing.assert_allclose(loss.admissible(step.datum), step.datum, rtol=0, atol=1e-12)
        assert (step.reward >= problem.spec.reward_low).all()
        assert (step.reward <= problem.spec.reward_high).all()


def test_a_known_learner_reaches_the_minimiser():
    """Paired with the centre, over 400 rounds and 3 replicas: gradient descent pays less than a
    twentieth of its regret (measured: below 1/38 in each of 12)."""
    found = dpbandit.compare(NAME, {"ogd": OGD()}, horizon=400, replicas=3, progress=False)
    regret = {run.name: run.regret[-1] for run in found.runs}
    assert (regret["ogd"] < regret["Centre"] / 20).all()
    assert (regret["BestFixed"] == 0).all()


def test_gymnasium_shows_regret_in_every_round():
    env = gym.make(NAME, p="inf", family="logistic", horizon=3)
    assert env.observation_space.shape == (6,)
    assert env.observation_space.high[0] == 1.0
    np.testing.assert_array_equal(env.action_space.high, np.full(5, 2.0))
    env.reset(seed=1)
    for _ in range(3):
        info = env.step(np.full(5, 9.0))[4]  # moved to the nearest point of the box
        assert info["regret"] == info["oracle_reward"] - info["expected_reward"]
    batch = gym.make_vec(NAME, num_envs=2, data="oj", horizon=3)
    assert batch.action_space.shape == (2, 4)
    batch.reset(seed=1)
    assert batch.step(np.zeros((2, 4)))[4]["regret"].shape == (2,)


def test_real_users_are_rows_of_the_table():
    """Every datum is a row, scaled into the dual ball; resampled, so that some come twice."""
    problem = StreamingRegression(data="oj", p=1)
    assert problem.spec.loss == StreamingRegression(family="logistic", p=1, dim=4).spec.loss
    rows = {tuple(row) for row in problem.spec.loss.admissible(tables.oj()).tolist()}
    data = [tuple(step.datum[0].tolist()) for _, step in played(problem, 500)]
    assert set(data) <= rows
    assert 250 < len(set(data)) < 500


def test_digits():
    """Golden: 1,797 images, 183 of them a 3; a stream of them has the best point of the table."""
    rows = tables.digits(3)
    assert rows.shape == (1797, 65)
    assert (rows[:, -1] == 1).sum() == 183
    assert rows[:, :-1].min() == 0
    assert rows[:, :-1].max() == 1
    problem = StreamingRegression(data="digits", digit=3, horizon=5)
    assert {step.datum.shape for _, step in played(problem, 5)} == {(2, 65)}
