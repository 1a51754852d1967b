"""The counted shelf: its margin, its certificate, its regret, and that it is never oversold."""

from math import exp, sqrt

import numpy as np
import pytest
from scipy.special import ndtr

from dpbandit import InputError, certify, compare
from dpbandit.agents import CountedShelf
from dpbandit.agents.contextual.counted_shelf import safety_margin
from dpbandit.base.random_streams import Streams
from dpbandit.envs import StockPricing
from dpbandit.privacy.curves import delta_of, mu_of
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.prefix_sums import SquareRoot
from dpbandit.privacy.spends import GaussianSpend
from tests.harness import PRICES


@pytest.mark.parametrize(("epsilon", "margin"), [(4, 16.5), (1, 56.9), (0.5, 107.2), (0.1, 469.0)])
def test_the_margin_is_that_of_the_reference(epsilon, margin):
    multiplier = SquareRoot().column_norm(199) / mu_of(epsilon, 1e-5)
    assert safety_margin(multiplier, 199, 1e-6) == pytest.approx(margin, abs=0.2)


def test_the_noise_hides_no_more_than_the_margin():
    """The union over releases, with the noise that is drawn: 4,000 runs at a chance of 0.05."""
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


@pytest.mark.parametrize("oversold", ["refuse", "order"])
@pytest.mark.parametrize("demand", ["known", "learned"])
def test_the_certificate_is_the_claim(oversold, demand):
    """Counter and learner together, and what refusals may say."""
    config = CountedShelf(demand=demand)
    proof = certify(config, "StockPricing", env_kwargs={"oversold": oversold}, accountants=False)
    assert proof.epsilon == pytest.approx(1.0, abs=1e-6)
    assert proof.holds
    assert (proof.ledger.slip > 0) == (oversold == "refuse")
    assert "refusals" in proof.notion


def test_it_never_sells_more_than_there_is_and_beats_random_prices():
    """Quotas bind, and more than 70 % of what random prices lose is earned."""
    agents = {"known": CountedShelf(demand="known", epsilon=4), "learned": CountedShelf(epsilon=4)}
    results = compare(
        "StockPricing",
        agents,
        horizon=1000,
        replicas=4,
        seed=1000,
        env_kwargs={"stock": 300},
        progress=False,
    )
    mean = results.summary().set_index("agent")["mean"]
    assert mean["known"] < mean["learned"] < mean["Uniform"]
    assert mean["known"] < 0.3 * mean["Uniform"]


@pytest.mark.slow
def test_regret_is_that_of_the_reference():
    """Demand known, T = 10,000, c = 3,000, 8 replicas: 76 +- 3 at epsilon 1, within 4 combined
    standard errors; an independent program on other seeds."""
    config = CountedShelf(demand="known")
    results = compare("StockPricing", {"shelf": config}, replicas=8, seed=1000, progress=False)
    row = results.summary().set_index("agent").loc["shelf"]
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


def test_it_is_for_stocks():
    with pytest.raises(InputError, match="plays prices of a limited stock"):
        CountedShelf().make(PRICES, Streams([0]))
