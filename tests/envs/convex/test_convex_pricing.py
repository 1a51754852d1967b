"""Prices of several goods: dollars, public constants, and the numbers its page tells."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dpbandit.agent import with_feedback
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ConvexPricing


def started(R=16, **arguments):
    problem = ConvexPricing(**arguments)
    problem.reset(Streams(range(R)))
    return problem


def test_rewards_are_dollars_by_hand():
    """profit = sum over goods of (price - cost) (a - own price + cross (other prices))."""
    problem = started(feedback="datum", goods=2, spread=0.1)
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (16, 2))
    step, p = problem.step(x), 1.5 + x
    units = step.datum - p + 0.1 * p[:, ::-1]
    np.testing.assert_allclose(step.reward, ((p - 0.4) * units).sum(1), rtol=1e-12)
    np.testing.assert_allclose(step.reward, -problem.spec.loss.value(x, step.datum), rtol=0)
    assert problem.spec.reward_unit == "dollars"
    assert (units > 0).all()


def test_both_feedbacks_meet_the_same_customers():
    told, shown = started(), started(feedback="datum")
    x = np.zeros((16, 3))
    for _ in range(50):
        a, b = told.step(x), shown.step(x)
        np.testing.assert_array_equal(a.reward, b.reward)
        assert a.datum is None
        np.testing.assert_array_equal(shown.context(), b.datum)
        np.testing.assert_array_equal(told.context(), np.zeros((16, 1)))


def test_the_refusal_of_an_agent_names_the_feedback_to_set():
    """It holds for all environments: here the feedback is an argument, elsewhere it is not."""
    spec = ConvexPricing().spec
    with pytest.raises(InputError, match=r"or, where it can be set, feedback='datum'\.") as told_so:
        with_feedback(object(), spec, "datum")
    assert "OnlineConvex" not in str(told_so.value)
    assert (
        with_feedback(object(), ConvexPricing(feedback="datum").spec, "datum").feedback == "datum"
    )


def test_profits_of_the_description():
    """The three profits it names, to a cent and a half, and the best prices, to two cents."""
    T, rng = 3000, np.random.default_rng(1)
    for low, high, profit in ((0.0, 0.0, 3.84), (-0.5, 0.5, 3.59)):
        problem = started()
        total = sum(problem.step(rng.uniform(low, high, (16, 3))).reward.mean() for _ in range(T))
        assert total / T == pytest.approx(profit, abs=0.015)
    assert problem.hindsight().mean() / T == pytest.approx(3.92, abs=0.015)
    np.testing.assert_allclose(1.5 + problem.best_fixed().mean(0), [1.63, 1.68, 1.73], atol=0.02)


def test_the_best_prices_against_scipy():
    problem = started(R=2, feedback="datum", variety=0.6)
    data = np.array([problem.step(np.zeros((2, 3))).datum for _ in range(30)])
    loss, best = problem.spec.loss, problem.hindsight()
    for r in range(2):
        found = minimize(
            lambda x, r=r: sum(loss.value(x[None], z[None])[0] for z in data[:, r]),
            np.zeros(3),
            bounds=[(-0.5, 0.5)] * 3,
        )
        assert -best[r] == pytest.approx(found.fun, abs=1e-4)


def test_range_and_slope_hold_in_play_and_are_nearly_attained():
    """By the customers' extreme demands at corners of the prices."""
    loss = ConvexPricing().spec.loss
    rng = np.random.default_rng(0)
    x = 0.5 * rng.choice([-1.0, 0.3, 1.0], size=(5000, 3))
    a = np.array(loss.demand) * (1 + 0.2 * rng.choice([-1.0, 1.0], size=(5000, 3)))
    values, slopes = loss.value(x, a), np.linalg.norm(loss.gradient(x, a), axis=1)
    low, high = loss.value_range
    assert low <= values.min() < low + 0.1
    assert values.max() == pytest.approx(high, rel=1e-12)
    assert slopes.max() == pytest.approx(loss.lipschitz, rel=1e-12)
    assert (loss.curvature, loss.smoothness) == (pytest.approx(1.6), pytest.approx(2.2))
