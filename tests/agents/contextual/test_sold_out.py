"""A truthful sold-out sign tells the next customer who bought the last unit, whatever prices do."""

import numpy as np
import pytest

from dpbandit.agents import DPUCB
from dpbandit.agents.contextual.demand import DemandPricing, Priced
from dpbandit.specs.protocols import PriceListSpec
from dpbandit.testing.checks import billboard_differences
from dpbandit.testing.tapes import World, run

STOCK, LAST, CLOSED = 3, 7, 2
PRICES = PriceListSpec(
    n_actions=3, dim=2, horizon=24, prices=(1.0, 1.5, 2.0), unit_cost=0.5, reward_high=1.5
)
PRIVATE = Priced(agent=DPUCB(refresh_every=3), features="additive")


class SoldOutSign(DemandPricing):
    """Prices by its honest parent; plays `CLOSED` from the moment that the stock is sold."""

    _sold = 0

    def act(self, context):
        return np.where(self._sold >= STOCK, CLOSED, np.minimum(super().act(context), CLOSED - 1))

    def update(self, context, action, feedback):
        super().update(context, action, feedback)
        self._sold = self._sold + (feedback > 0)


def tapes():
    """The proof's neighbours: the first STOCK - 1 users buy at any price, the others at none, and
    user LAST does either. All releases are those of the first world."""
    context = np.full((PRICES.horizon, 1, 2), 0.5)
    sales = np.zeros((PRICES.horizon, 1, 3))
    sales[: STOCK - 1] = sales[LAST] = PRICES.margins
    buys, leaves = World(context, sales), World(context, np.zeros_like(sales))
    first = run(PRIVATE, PRICES, buys)
    t = np.array([LAST])
    return first, run(PRIVATE, PRICES, buys.swapped(t, leaves), replay=first), t


@pytest.mark.parametrize("truthful", [True, False])
def test_a_truthful_sold_out_sign_is_not_private(truthful, monkeypatch):
    """The event "the next user reads closed" has probability 1 in one world and 0 in the other, so
    delta = 1 at every epsilon. The same agent without a sign shows nothing."""
    if truthful:
        monkeypatch.setattr("dpbandit.agents.contextual.demand.DemandPricing", SoldOutSign)
    one, two, t = tapes()
    assert any("other users' actions" in found for found in billboard_differences(one, two, t)) == (
        truthful
    )
    if truthful:
        assert (one.actions[LAST + 1 :] == CLOSED).all()
        assert (two.actions[: LAST + 2] != CLOSED).all()
