"""Seasons, drifts and shocks of tastes: by formula, whatever the blocks."""

import numpy as np
import pytest
from scipy.special import expit

from dpbandit import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import (
    AssortmentBandit,
    CameraOffer,
    CameraPricing,
    OJContinuousPricing,
    OJPricing,
    PricingFromLog,
)
from dpbandit.envs.dynamics import Tides
from dpbandit.testing import check_problem
from tests.each import each
from tests.envs.contextual.logs import SHOP, shop


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


TIDES = {"season": (1.0, 7), "drift": (0.2, 1.0), "shock": (4, -1.5)}
SHOPS = {
    "orange juice": OJPricing,
    "cameras": CameraPricing,
    "offers": CameraOffer,
    "own log": lambda **facts: PricingFromLog(shop(), **SHOP, **facts),
}


@pytest.mark.parametrize("name", SHOPS)
def test_logits_of_purchases_move_with_them(name):
    """Margins of a round from those without a tide; catches one that is left out, or late. Whoever
    is shown a clock is shown it with the season that is added, and stays as long as promised."""
    made = SHOPS[name]
    assert len(check_problem(made(horizon=30, **TIDES))) == 9
    still, moved, clock = made(), made(**TIDES), made(clock=True, **TIDES)
    for one in (still, moved, clock):
        one.reset(Streams([0, 1]))
    tide = Tides(**TIDES).start(Streams([0, 1])).take(9)  # (9, 2)
    worth = still._worth
    for t in range(9):
        x, _, shown = (one.context() for one in (still, moved, clock))
        angle = 2 * np.pi * (t + 1) / 7
        turned = np.tile([np.sin(angle), np.cos(angle)], (2, 1))
        np.testing.assert_allclose(shown, np.hstack([x, turned]) / np.sqrt(2), atol=1e-12)
        mean = still._table.mean[t]
        expected = worth * expit(np.log(mean / (worth - mean)) + tide[t][:, None])
        arm = np.full(2, t)
        for one in (moved, clock):
            step = one.step(arm)
            np.testing.assert_allclose(step.expected, expected[:, t], rtol=1e-9)
            np.testing.assert_allclose(step.oracle, expected.max(axis=1), rtol=1e-9)
        still.step(arm)
    assert (still.spec.dim, clock.spec.dim - 2) == (moved.spec.dim, moved.spec.dim)
    with pytest.raises(InputError, match="to be said with clock=True"):
        made(clock=True)


def test_any_price_of_orange_juice_moves_with_them():
    """The oracle against a grid of prices, and one round's margin by the frozen coefficients."""
    assert len(check_problem(OJContinuousPricing(horizon=30, **TIDES))) == 9
    problem = OJContinuousPricing(**TIDES)
    problem.reset(Streams([0, 1]))
    tide = Tides(**TIDES).start(Streams([0, 1])).take(9)
    D, grid = problem._demand, np.linspace(1.19, 2.29, 20_001)
    for t in range(9):
        problem.context()
        utility = D.utility[problem._row] + tide[t]
        step = problem.step(np.full(2, 1.5))
        np.testing.assert_allclose(step.expected, 0.7 * expit(utility - D.slope * 1.5))
        margins = (grid - D.cost) * expit(utility[:, None] - D.slope * grid)
        np.testing.assert_allclose(step.oracle, margins.max(axis=1), rtol=1e-7)


@each("problem", [AssortmentBandit, OJPricing, OJContinuousPricing, CameraOffer])
@each("wrong", [{"season": (1, 0)}, {"drift": (0, 1)}, {"drift": 3}, {"shock": (1.5, 1)}])
def test_what_is_no_tide_is_refused(wrong, problem):
    with pytest.raises(InputError, match=next(iter(wrong))):
        problem(**wrong)
