"""Pricing through demand: joint DP with a private inner agent."""

import numpy as np
import pytest

from dpbandit.agents import DPUCB
from dpbandit.agents.contextual.demand import DemandPricing, Priced
from dpbandit.specs.protocols import PriceListSpec
from dpbandit.testing.checks import check_joint_dp

PRICES = PriceListSpec(
    n_actions=3, dim=2, horizon=24, prices=(1.0, 1.5, 2.0), unit_cost=0.5, reward_high=1.5
)
PRIVATE = [
    Priced(agent=DPUCB(refresh_every=3), features=features, explore=explore)
    for features in ("additive", "interactions")
    for explore in (None, 5)
]


class CountsSales(DemandPricing):
    """Broken on purpose: keeps how often each price sold, outside the mechanism."""

    def update(self, context, action, feedback):
        super().update(context, action, feedback)
        self._sales = getattr(self, "_sales", 0) + np.nan_to_num(feedback)


class RemembersRows(DemandPricing):
    """Broken on purpose: spares itself computing the scores twice."""

    def scores(self, context):
        self._last = super().scores(context)
        return self._last


@pytest.mark.parametrize("broken", [CountsSales, RemembersRows])
def test_billboard_catches_a_wrapper_that_remembers(broken, monkeypatch):
    monkeypatch.setattr("dpbandit.agents.contextual.demand.DemandPricing", broken)
    with pytest.raises(AssertionError, match="what the agent remembers"):
        check_joint_dp(PRIVATE[0], PRICES, (0, 7))
