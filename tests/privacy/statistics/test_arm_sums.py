"""The plainest statistic: counts by hand, a sensitivity that is attained and never exceeded."""

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.privacy import ArmSums


def one(statistic, arm, reward):
    return statistic.total(np.zeros((1, 1, 2)), np.array([[arm]]), np.array([[reward]]))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 0.5), (-1.0, -0.5)])
def test_no_two_users_move_it_by_more_than_its_sensitivity(low, high):
    """Oracle: all pairs of users on a grid, numbers far outside the bounds and NaN among them."""
    statistic = ArmSums(n_actions=3, reward_low=low, reward_high=high)
    rewards = [low, high, (low + high) / 2, -1e9, 1e9, np.nan]
    users = [one(statistic, arm, r) for arm in range(3) for r in rewards]
    moves = [np.linalg.norm(a - b) for a in users for b in users]
    assert max(moves) == pytest.approx(statistic.sensitivity, rel=1e-12)


def test_bounds_are_looked_at():
    for wrong in ({"n_actions": 0}, {"n_actions": 2, "reward_low": 2.0}):
        with pytest.raises(InputError):
            ArmSums(**wrong)
