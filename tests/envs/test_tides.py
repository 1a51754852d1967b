"""Seasons, drifts and shocks of tastes: by formula, whatever the blocks."""

import numpy as np
import pytest
from scipy.special import expit

from dpbandit import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import AssortmentBandit, OJPricing
from dpbandit.envs.tides import Tides
from dpbandit.testing import check_problem


def test_seasons_and_shocks_follow_their_formulas():
    found = Tides(season=(0.5, 8), shock=(3, -2)).start(Streams([0])).take(4)[:, 0]
    np.testing.assert_allclose(found, 0.5 * np.sin(np.pi * np.arange(1, 5) / 4) - [0, 0, 2, 2])


def test_drifts_stay_in_their_range_and_know_no_blocks():
    """By hand: a walk that is turned round at every step beyond the range."""
    tides, walk, by_hand = Tides(drift=(0.3, 1.0)), 0.0, []
    whole = tides.start(Streams([5])).take(300)
    parts = tides.start(Streams([5]))
    np.testing.assert_array_equal(whole, np.concatenate([parts.take(7), parts.take(293)]))
    for step in 0.3 * Streams([5]).normals("drift").take(300)[:, 0]:
        walk, by_hand = walk + step, [*by_hand, walk + step]
        while abs(by_hand[-1]) > 1:
            by_hand[-1] = np.copysign(2, by_hand[-1]) - by_hand[-1]
    np.testing.assert_allclose(whole[:, 0], by_hand, atol=1e-12)
    assert whole.max() > 0.9 > -0.9 > whole.min()


def test_assortments_move_with_them():
    problem = AssortmentBandit(horizon=30, season=(1.0, 10), drift=(0.1, 1.0), shock=(5, 1.0))
    assert len(check_problem(problem)) == 9
    still = AssortmentBandit(horizon=30, contexts="constant")
    shocked = AssortmentBandit(horizon=30, contexts="constant", shock=(2, 5.0))
    oracles = []
    for one in (still, shocked):
        one.reset(Streams([0]))
        draw = one.spec.uniform(Streams([1]))
        oracles.append([(one.context(), one.step(draw()))[1].oracle[0] for _ in range(3)])
    assert oracles[0][0] == oracles[1][0]
    assert oracles[0][1] < oracles[1][1]


def test_prices_of_orange_juice_move_with_them():
    """Margins of a round by the frozen coefficients; catches a tide that is left out, or late."""
    tides = {"season": (1.0, 7), "drift": (0.2, 1.0), "shock": (4, -1.5)}
    assert len(check_problem(OJPricing(horizon=30, **tides))) == 9
    still, moved, nothing = OJPricing(), OJPricing(**tides), OJPricing(season=(0.0, 7))
    for one in (still, moved, nothing):
        one.reset(Streams([0, 1]))
    tide = Tides(**tides).start(Streams([0, 1])).take(9)  # (9, 2)
    margin = still.prices - still.spec.unit_cost
    for t in range(9):
        for one in (still, moved, nothing):
            one.context()
        arms = [np.full(2, k) for k in range(12)]
        mean = still._table.mean[t]
        logit = np.log(mean / (margin - mean)) + tide[t][:, None]
        step = moved.step(arms[t])
        expected = margin * expit(logit)
        np.testing.assert_allclose(step.expected, expected[:, t], rtol=1e-9)
        np.testing.assert_allclose(step.oracle, expected.max(axis=1), rtol=1e-9)
        for found, same in zip(nothing.step(arms[t]), still.step(arms[t]), strict=True):
            np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize("problem", [AssortmentBandit, OJPricing])
@pytest.mark.parametrize(
    "wrong", [{"season": (1, 0)}, {"drift": (0, 1)}, {"drift": 3}, {"shock": (1.5, 1)}]
)
def test_what_is_no_tide_is_refused(wrong, problem):
    with pytest.raises(InputError, match=next(iter(wrong))):
        problem(**wrong)
