"""The counted shelf, which is never oversold, and a truthful sold-out sign, no private one."""

from math import exp, sqrt

import numpy as np
import pytest
from scipy.special import ndtr

from dpbandit import InputError, certify, compare
from dpbandit.agents import DPUCB, CountedShelf
from dpbandit.agents.contextual.counted_shelf import safety_margin
from dpbandit.agents.contextual.demand import DemandPricing, Priced
from dpbandit.base.random_streams import Streams
from dpbandit.envs import StockPricing
from dpbandit.privacy.curves import delta_of, mu_of
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.prefix_sums import SquareRoot
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.specs.protocols import PriceListSpec
from dpbandit.testing.checks import billboard_differences
from dpbandit.testing.tapes import World, run
from tests.each import each
from tests.harness import PRICES

STOCK, LAST, CLOSED = 3, 7, 2
PRIVATE = Priced(agent=DPUCB(refresh_every=3), features="additive")


def test_the_noise_hides_no_more_than_the_margin():
    """The margin of the reference, and the union over releases, with the noise that is drawn: 4,000
    runs at a chance of 0.05."""
    for epsilon, margin in ((4, 16.5), (1, 56.9), (0.5, 107.2), (0.1, 469.0)):
        multiplier = SquareRoot().column_norm(199) / mu_of(epsilon, 1e-5)
        assert safety_margin(multiplier, 199, 1e-6) == pytest.approx(margin, abs=0.2)
    stddev, releases = 3.0, 50
    margin = safety_margin(stddev, releases, 0.05)
    noise = SquareRoot().of(Streams(range(4000)).normals("noise"), stddev=stddev, leaves=releases)
    worst = np.min([noise() for _ in range(releases)], axis=0)
    share = (worst < -margin).mean()
    assert 0.01 < share < 0.05 + 4 * sqrt(0.05 * 0.95 / 4000)
    assert safety_margin(1.0, 1, ndtr(-2.0)) == pytest.approx(2.0)


def test_what_a_slip_costs():
    """delta' = delta + (1 + e^epsilon) beta, and epsilon is the least at which that holds."""
    beta = 1e-7
    ledger = Ledger((GaussianSpend(0.25, ""),), slip=beta)
    for epsilon in (0.1, 1.0, 2.0):
        expected = delta_of(0.25, epsilon) + (1 + exp(epsilon)) * beta
        assert ledger.delta(epsilon) == pytest.approx(expected)
    found = ledger.epsilon(1e-5)
    assert ledger.delta(found) <= 1e-5 < ledger.delta(found * (1 - 1e-6))
    assert ledger.epsilon(1e-8) == np.inf
    assert ledger.mu is None


@each("oversold", ["refuse", "order"])
@each("demand", ["known", "learned"])
def test_the_certificate_is_the_claim(oversold, demand):
    """Counter and learner together, and what refusals may say; it is for stocks alone."""
    config = CountedShelf(demand=demand)
    proof = certify(config, "StockPricing", env_kwargs={"oversold": oversold}, accountants=False)
    assert proof.epsilon == pytest.approx(1.0, abs=1e-6)
    assert proof.holds
    assert (proof.ledger.slip > 0) == (oversold == "refuse")
    assert "refusals" in proof.notion
    with pytest.raises(InputError, match="plays prices of a limited stock"):
        config.make(PRICES, Streams([0]))


def regret(agents, **more):
    """Mean and standard error by agent."""
    results = compare("StockPricing", agents, seed=1000, progress=False, **more)
    return results.summary().set_index("agent")[["mean", "se"]]


def test_it_never_sells_more_than_there_is_and_beats_random_prices():
    """Quotas bind, and more than 70 % of what random prices lose is earned."""
    agents = {"known": CountedShelf(demand="known", epsilon=4), "learned": CountedShelf(epsilon=4)}
    mean = regret(agents, horizon=1000, replicas=4, env_kwargs={"stock": 300})["mean"]
    assert mean["known"] < mean["learned"] < mean["Uniform"]
    assert mean["known"] < 0.3 * mean["Uniform"]


@pytest.mark.slow
def test_regret_is_that_of_the_reference():
    """Demand known, T = 10,000, c = 3,000, 8 replicas: 76 +- 3 at epsilon 1, within 4 combined
    standard errors; an independent program on other seeds."""
    row = regret({"shelf": CountedShelf(demand="known")}, replicas=8).loc["shelf"]
    assert abs(row["mean"] - 76) < 4 * sqrt(row["se"] ** 2 + 3**2)
    problem = StockPricing(horizon=1000, stock=300)
    problem.reset(Streams(range(20)))
    agent = CountedShelf(demand="known", epsilon=4).make(problem.spec, Streams(range(20)))
    for _ in range(1000):
        x = problem.context()
        action = agent.act(x)
        opened = problem.sold < problem.stock
        assert (opened | (action == problem.spec.closed)).all()  # never refused by the shop
        agent.update(x, action, problem.step(action).reward)


OFFERS = PriceListSpec(
    n_actions=3, dim=2, horizon=24, prices=(1.0, 1.5, 2.0), unit_cost=0.5, reward_high=1.5
)


class SoldOutSign(DemandPricing):
    """Prices by its honest parent; plays `CLOSED` from the moment that the stock is sold."""

    _sold = 0

    def act(self, context):
        return np.where(self._sold >= STOCK, CLOSED, np.minimum(super().act(context), CLOSED - 1))

    def update(self, context, action, feedback):
        super().update(context, action, feedback)
        self._sold = self._sold + (feedback > 0)


@pytest.mark.parametrize("truthful", [True, False])
def test_a_truthful_sold_out_sign_is_not_private(truthful, monkeypatch):
    """The first STOCK - 1 users buy at any price, the others at none, user LAST does either;
    releases are those of the first world. The event "the next user reads closed" has probability 1
    in one world and 0 in the other, so delta = 1 at every epsilon. Without a sign nothing shows."""
    if truthful:
        monkeypatch.setattr("dpbandit.agents.contextual.demand.DemandPricing", SoldOutSign)
    context = np.full((OFFERS.horizon, 1, 2), 0.5)
    sales = np.zeros((OFFERS.horizon, 1, 3))
    sales[: STOCK - 1] = sales[LAST] = OFFERS.margins
    buys, leaves, t = World(context, sales), World(context, np.zeros_like(sales)), np.array([LAST])
    one = run(PRIVATE, OFFERS, buys)
    two = run(PRIVATE, OFFERS, buys.swapped(t, leaves), replay=one)
    found = billboard_differences(one, two, t)
    assert any("other users' actions" in difference for difference in found) == truthful
    if truthful:
        assert (one.actions[LAST + 1 :] == CLOSED).all()
        assert (two.actions[: LAST + 2] != CLOSED).all()
