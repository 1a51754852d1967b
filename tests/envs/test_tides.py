"""Seasons, drifts and shocks of tastes: by formula, whatever the blocks."""

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import AssortmentBandit
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


@pytest.mark.parametrize(
    "wrong", [{"season": (1, 0)}, {"drift": (0, 1)}, {"drift": 3}, {"shock": (1.5, 1)}]
)
def test_what_is_no_tide_is_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        AssortmentBandit(**wrong)
