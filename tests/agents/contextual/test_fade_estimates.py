"""What FADE estimates: Newton steps, parameters, exact sums without privacy, a bonus for noise."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy.special import expit, ndtr

from dpbandit import InputError
from dpbandit.agents import FADE
from dpbandit.agents.contextual.fade_centred import PrivatelyCentred
from dpbandit.base.random_streams import Streams
from dpbandit.specs.protocols import ContextualSpec
from tests.agents.contextual.runs import PRICES, REWARDS, SHARED, curves
from tests.each import each


def test_logistic_rows_are_newton_steps():
    """Oracle: gram / 4 of rows sqrt(h) x is the negative Hessian of the log likelihood at the
    parameter played, and moment - gram theta / 4 its gradient."""
    agent = FADE(model="regression", response="logistic", epsilon=inf).make(SHARED, Streams([0]))
    theta = np.array([1.5, -0.7])
    agent._theta = theta[None, None].copy()
    rng = np.random.default_rng(6)
    for _ in range(20):
        context = rng.standard_normal((1, 3, 2))
        context /= np.linalg.norm(context, axis=-1, keepdims=True)
        action, reward = rng.integers(0, 3, 1), 1.0 * rng.integers(0, 2, 1)
        row, _, response = agent.row(context, action, reward)
        x, y = context[0, action[0]], row[0, action[0]]
        p = expit(x @ theta)
        np.testing.assert_allclose(np.outer(y, y) / 4, p * (1 - p) * np.outer(x, x), atol=1e-15)
        gradient = response[0] * y - np.outer(y, y) @ theta / 4
        np.testing.assert_allclose(gradient, (reward[0] - p) * x, atol=1e-14)
        assert abs(reward[0] - p + p * (1 - p) * (x @ theta)) <= 1


@each("release", [0.0, 1e3, 1e12])
def test_newton_steps_are_short_and_end_in_a_public_ball(release):
    """Whatever is released: no step is longer than 3, and 60 of them end in the ball of radius 40;
    a release that says nothing moves nothing."""
    agent = REWARDS.make(replace(PRICES, horizon=100_000), Streams([0])).inner
    noise, norms = np.random.default_rng(2).standard_normal(agent._moment.shape), [0.0]
    for _ in range(60):
        agent._gram, agent._moment = 1e-3 * np.ones_like(agent._gram), release * noise
        before = agent._theta
        agent._theta, _ = agent._fit(1e-6, 1e-6, agent._gram, agent._moment)
        assert np.linalg.norm(agent._theta - before) <= 3 * (1 + 1e-12)
        norms.append(np.linalg.norm(agent._theta))
    assert norms[-1] == (pytest.approx(40.0) if release else 0.0)


def test_regression_recovers_the_parameter_without_privacy():
    """Oracle: rewards exactly linear in a shared parameter are predicted exactly, on any range."""
    spec = ContextualSpec(
        n_actions=3, dim=4, horizon=4000, shared=True, reward_low=-2.0, reward_high=2.0
    )
    config, rng = FADE(model="regression", epsilon=inf, response="linear"), np.random.default_rng(7)
    agent = config.make(spec, Streams([0, 1]))
    theta = np.array([0.4, -0.2, 0.9, 0.1])
    for _ in range(3999):
        x = rng.standard_normal((2, 3, 4))
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        action = agent.act(x)
        agent.update(x, action, x[np.arange(2), action] @ theta)
    np.testing.assert_allclose(agent.scores(x), x @ theta, atol=0.01)


CLICKS = ContextualSpec(n_actions=2, dim=2, horizon=400)
TOGETHER = replace(CLICKS, shared=True)
REPLICAS, BONUS = 2000, 1.5
LINEAR = FADE(model="regression", bonus=BONUS)


def taught(config, spec, rounds, replicas=REPLICAS):
    """An agent of whom all replicas saw the same users: first e1 alone, then arm 0 on e2, too."""
    agent, arms = config.make(spec, Streams(range(replicas))), np.arange(2)
    for t in range(rounds):
        late, arm = t >= rounds // 2, t % 2
        x = np.eye(2)[1 if late and arm == 0 else 0]
        context = np.outer(1 - 0.5 * arms, x) if spec.shared else x
        context = np.broadcast_to(context, (replicas, *context.shape))
        agent.update(context, np.full(replicas, arm), np.full(replicas, float(t % 3 == 0)))
    return agent


@each(
    ("config", "spec", "rounds"),
    [
        (LINEAR, CLICKS, 150),
        (LINEAR, TOGETHER, 150),
        (replace(LINEAR, response="logistic"), TOGETHER, 40),
    ],
)
def test_a_bonus_is_so_many_standard_deviations_of_a_prediction(config, spec, rounds, monkeypatch):
    """Statistical: A theta = moment + noise differs by noise alone, and bonus s A^-1 turns theta
    into that in units of bonus s: of variance 1, whatever A is. False alarm 6e-7 a coordinate, 16 %
    off are caught. Newton steps are not cut short, or they would scatter less."""
    for limit in ("LONGEST_STEP", "MAX_NORM"):
        monkeypatch.setattr(f"dpbandit.agents.contextual.fade_regression.{limit}", inf)
    agent = taught(config, spec, rounds)
    moment = np.linalg.solve(agent._width / BONUS, agent._theta[..., None])[..., 0]
    assert np.abs(moment.var(axis=0) - 1).max() < 5 * (2 / REPLICAS) ** 0.5 < 0.16


def test_scores_of_a_shared_parameter_are_predictions_and_bonus():
    agent, plain = (taught(replace(LINEAR, bonus=b), TOGETHER, 150, 5) for b in (BONUS, 0.0))
    x = np.array([[[0.6, 0.8], [0.1, 0.2]]] * 5)
    wide = np.linalg.norm(x @ agent._width[:, 0], axis=2)
    np.testing.assert_allclose(agent.scores(x), plain.scores(x) + wide / 2, rtol=1e-12)
    assert wide.min() > 0


def test_an_arm_of_its_own_is_tried_as_often_as_its_draw_is_the_largest():
    """Statistical: where nobody was sent each arm is tried about as often as P(N(0, 1) > difference
    of predictions over the length of both widths); a fixed bonus would send all users to one. False
    alarm 1e-5, .01 off is caught. What was never tried, arm 1 on e2, keeps its width."""
    agent = taught(LINEAR, CLICKS, 300, 1)
    x, n = np.array([0.3, 0.9]), 60_000
    low, high = (2 * agent.scores(x[None])[0] - 1).tolist()  # rewards on a scale from -1 to 1
    width = np.linalg.norm(np.einsum("kij,j->ki", agent._width[0], x))
    expected = ndtr((high - low) / width)
    assert 0.05 < expected < 0.95
    tried = agent.act(np.broadcast_to(x, (n, 1, 2))).mean()
    assert abs(tried - expected) < 4.5 * (expected * (1 - expected) / n) ** 0.5 < 0.01
    on_e1, on_e2 = np.linalg.norm(taught(LINEAR, CLICKS, 300)._width, axis=2).mean(axis=0).T
    assert on_e2[1] > 1.3 * max(on_e2[0], *on_e1)


def test_the_latest_release_counts_more():
    """Golden: a release at fade 0.5 counts 1 + 0.5 0.5 / (1 - 0.5) = 1.5 times where it is the
    latest: without noise, and with the ridge of one user, the fit is that of these sums."""
    config = replace(LINEAR, epsilon=inf, fade=0.5, first_batch=40, growth=0.0, shift=1e-9)
    spec = ContextualSpec(n_actions=2, dim=1, horizon=200)
    agent = config.make(spec, Streams([0]))
    one, arm = np.ones((1, 1)), np.zeros(1, np.int64)
    for t in range(80):
        agent.update(one, arm, np.array([1.0 if t < 40 else 0.0]))
    # releases: 40 rewards of 1, then half of these and 40 of -1; each has weight 1
    moment, gram = 40 + 1.5 * (20 - 40), 40 + 1.5 * (20 + 40)
    assert 2 * agent.scores(one)[0, 0] - 1 == pytest.approx(moment / (gram + 1), rel=1e-6)


def test_arms_have_a_bonus_and_elsewhere_it_is_refused():
    """By default arms of their own have one, even without noise, and a shared parameter none."""
    plain = FADE(model="regression")
    for config, spec, bonus in (
        (plain, CLICKS, 1.5), (replace(plain, bonus=0.5), CLICKS, 0.5), (plain, TOGETHER, 0.0),
        (LINEAR, TOGETHER, BONUS),
    ):  # fmt: skip
        assert config.make(spec, Streams([0]))._bonus == bonus
    without = replace(LINEAR, epsilon=inf)
    assert not taught(without, TOGETHER, 150, 2)._width.any()
    assert taught(without, CLICKS, 150, 2)._width.any(axis=(2, 3)).all()
    for model in ("arms", "moments"):
        with pytest.raises(InputError, match=r"Expected bonus=1\.0 only with model=regression or"):
            FADE(model=model, bonus=1.0).make(CLICKS, Streams([0]))


def test_without_noise_arms_that_began_badly_are_tried_again():
    """Statistical: ten arms, .7 and nine of .5; who keeps to a wrong one loses 3,277. Of 40 runs at
    most two lose half of that: one in 200 does on other seeds (false alarm 1e-3), and 18 % with
    greedy play (power .97)."""
    lost = curves(FADE(epsilon=inf), "Arms", horizon=16_384, replicas=40, seed=31, means="ten")[-1]
    assert (lost > 1638).sum() <= 2


def test_the_centre_is_the_mean_once_that_is_sure():
    """Golden: rewards 1 to 3 of [0, 10] at epsilon = inf: after 50 rounds the centre is their mean,
    2, and it stays in the middle, 5, before."""
    spec = ContextualSpec(n_actions=2, dim=3, horizon=2_000, reward_high=10.0)
    agent = FADE(epsilon=inf, centring="private", model="moments").make(spec, Streams([0, 1]))
    assert isinstance(agent, PrivatelyCentred)
    for t in range(50):
        np.testing.assert_array_equal(agent._centre, 5.0)
        agent.update(np.ones((2, 3)), np.zeros(2, dtype=int), np.full(2, 1.0 + t % 3))
    np.testing.assert_allclose(agent._centre, 2.0, atol=0.02)
