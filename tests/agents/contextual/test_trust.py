"""Users who trust somebody, or nobody: reference numbers, steps by hand, what is imagined."""

from dataclasses import replace
from functools import partial
from math import inf, log, sqrt

import numpy as np
import pytest
from scipy.special import expit

from dpbandit import certify, play
from dpbandit.agents import LDPETC, LDPOLS, LDPSGD, Broadcast, LocalLinUCB, LocalSGD
from dpbandit.agents.contextual.demand import demand_rows
from dpbandit.agents.contextual.devices import ImaginedPeople
from dpbandit.base.random_streams import Streams
from dpbandit.envs import OJPricing
from dpbandit.privacy.curves import mu_of
from dpbandit.specs.protocols import ContextualSpec
from dpbandit.specs.selling import PriceListSpec
from tests.agents.contextual.runs import check_refused
from tests.each import asserting, by_rota, each, refused
from tests.harness import PRICES

WORLD = {"dim": 10, "n_actions": 5, "link": "logistic", "signal": 4.0}
REFERENCE = {
    "exact": (Broadcast(epsilon=inf), (64, 2), (189, 3)),
    "central, fading": (Broadcast(trust="central", fade=0.7), (157, 3), (552, 8)),
    "aggregated": (Broadcast(), (146, 4), (572, 10)),
    "coins": (Broadcast(trust="shuffled"), (190, 6), (926, 23)),
    "privunit": (Broadcast(trust="local"), (947, 45), (2282, 63)),
    "gaussian": (Broadcast(trust="local", message="gaussian"), (1952, 101), (2670, 69)),
    "sgd": (LocalSGD(), (1417, 67)),
    "sgd, gaussian": (LocalSGD(message="gaussian"), (2481, 68)),
    "linucb": (LocalLinUCB(), (2055, 84)),
}
"""Mean and standard error of one parameter, and of five."""


@pytest.mark.parametrize("part", by_rota(range(5), 5))
def test_regret_is_that_of_an_independent_program(part):
    """A fifth of the cells: epsilon 1, T = 10,000, one parameter and five; 8 replicas, within 4
    combined standard errors of their own and the program's (false alarm 2 % for all). Bits of
    silent arms left out, noise of a wrong size and greedy play that is not undone are each seen in
    several cells. LDP-ETC, on orange juice for 20,000 customers, loses more than uniform play if a
    step has the wrong sign."""
    cells = [("OJPricing", {}, 20_000, LDPETC(), 1772, 128)]
    for config, *two in REFERENCE.values():
        for shared, (mean, error) in zip((True, False), two, strict=False):
            cells.append(("GLMBandit", {**WORLD, "shared": shared}, 10_000, config, mean, error))
    for environment, world, T, config, mean, error in cells[part::5]:
        with asserting((config, world)):
            seeds, marks = range(1000, 1008), np.array([T])
            how = {"horizon": T, "env_kwargs": world, "marks": marks}
            regret = play(environment, config, seeds, **how).regret[-1]
            spread = regret.std(ddof=1) / sqrt(8)
            assert abs(regret.mean() - mean) < 4 * np.hypot(spread, error)
            assert environment != "OJPricing" or regret.mean() < 2416  # which uniform play loses


@each("shared", [True, False])
def test_people_are_imagined_as_they_are_served(shared):
    """Uniform play sees I / d, shared among the arms; one arm that wins for all is seen alone; of
    two opposite parameters each sees half, stretched along them. Signs tell the mean size."""
    d, blocks = 3, 1 if shared else 2
    people = ImaginedPeople(2, d, shared=shared, signs=False)
    theta = np.zeros((1, blocks, d))
    uniform = np.tile(np.eye(d) / (d * blocks), (1, blocks, 1, 1))
    np.testing.assert_allclose(people.moments(theta), uniform, atol=0.02)
    signs = ImaginedPeople(2, d, shared=shared, signs=True).moments(theta)
    np.testing.assert_allclose(np.diagonal(signs[0, 0]), 0.5 / blocks, atol=0.02)
    theta[0, 0, 0] = 1.0
    found = people.moments(theta)[0, 0]
    # the better of two uniform heights on [-1, 1], or those of one that are above 0
    assert np.diagonal(found)[:2] == pytest.approx(1 / 3 if shared else 1 / 6, abs=0.02)


def test_what_is_promised():
    """Aggregation of the honest is the central release; a pure message is pure, whoever is asked;
    what the server sees stands beside epsilon."""
    spec = ContextualSpec(n_actions=5, dim=5, horizon=10_000)
    for honest in (1.0, 0.5):
        proof = certify(Broadcast(honest=honest), spec, accountants=False)
        assert proof.mu == pytest.approx(mu_of(1.0, 1e-5), rel=1e-12)
    assert proof.ledger.brief == "aggregated, 50 % honest"
    easy = Broadcast(trust="shuffled", message="coins", epsilon=1, delta=0.9)
    assert certify(easy, spec, accountants=False).holds  # of a few coins; it divided by 0
    local = certify(Broadcast(trust="local"), spec, accountants=False)
    assert local.ledger.pure == pytest.approx(1.0, rel=1e-11)
    assert "the server sees private messages alone" in str(local.notion)
    shuffled = Broadcast(trust="shuffled", message="flips", first_batch=500)
    flips = certify(shuffled, replace(spec, horizon=1000), accountants=False)
    assert flips.epsilon <= 1.0 < 5 < flips.ledger.pure < inf


def test_bad_settings_and_prices_are_refused():
    check_refused(Broadcast, trust="nobody", honest=0.0, fade=0.5)
    check_refused(LocalSGD, step=0.0)
    check_refused(partial(Broadcast, trust="local"), message="coins", honest=0.5)
    for config in (Broadcast(), LocalLinUCB()):
        refused("the seller names", certify, config, PRICES, accountants=False)


ARMS = ContextualSpec(n_actions=3, dim=2, horizon=100, reward_low=-1.0)
SHARED = replace(ARMS, shared=True)


def test_greedy_steps_by_hand():
    """theta_1 = c y x = 4 * 0.5 * (0.6, 0.8); theta_2 = theta_1 - (4 / 2) (x . theta_1 - y) x with
    x . theta_1 = 1.2 and y = -0.4. A sign, a count or R that does not cancel would be seen. Least
    squares of (1, 0) with 0.5 and (0, 1) with -0.25 are those two."""
    agent = LDPSGD(epsilon=inf, step=4.0).make(SHARED, Streams([0]))
    x = np.array([[[1, 0], [0.6, 0.8], [0, 1]]])
    for arm, reward, theta in ((1, 0.5, [1.2, 1.6]), (0, -0.4, [1.2 - 2 * 1.6, 1.6])):
        agent.update(x, np.array([arm]), np.array([reward]))
        np.testing.assert_allclose(agent.theta[0, 0], theta)
    agent = LDPOLS(epsilon=inf).make(SHARED, Streams([0]))
    for row, reward in (([1, 0], 0.5), ([0, 1], -0.25)):
        agent.update(np.tile(np.array(row, float), (1, 3, 1)), np.array([1]), np.array([reward]))
    np.testing.assert_allclose(agent.theta[0, 0], [0.5, -0.25])


def test_turns_and_dropped_arms():
    """After two rounds of each arm theta is that of six exact gradients; an arm h / 2 below the
    best prediction of the warm-up is never played, whatever is learned."""
    agent = LDPSGD(epsilon=inf, step=1.0, warm_up=2, gap=0.2).make(ARMS, Streams([0]))
    x, brought = np.array([[1.0, 0.0]]), (0.5, 0.45, -0.5)
    for turn in range(6):
        arm = agent.act(x)
        assert arm == turn % 3
        agent.update(x, arm, np.array([brought[turn % 3]]))
    # 1 / n steps of squared loss: the mean of what an arm brought
    np.testing.assert_allclose(agent.theta[0, :, 0], brought)
    agent.update(x, np.array([2]), np.array([1.0]))
    agent.theta[0, 2, 0] = 9.0
    assert agent.scores(x)[0, 2] == -inf < agent.scores(x)[0, 1]


@each(("spec", "halves"), [(SHARED, 1), (ARMS, 2)])
def test_noise_is_as_printed(spec, halves):
    """Of Gram entries 2 sigma, on the diagonal and off it, of moments sigma = 2 sqrt(2 ln(1.25
    halves / delta)) halves / epsilon; mu is 2 / sigma. A message of Psi is R L long."""
    sigma = 2 * sqrt(2 * log(1.25 * halves / 1e-5)) * halves
    agent, sgd = (
        kind(epsilon=1.0, calibration="paper").make(spec, Streams([0])) for kind in (LDPOLS, LDPSGD)
    )
    stddev = agent.messages.stddev * agent.statistic.units
    np.testing.assert_allclose(stddev, sigma * np.array([2, 2, 2, 1, 1]))
    assert agent.ledger.mu == pytest.approx(2 / sigma)
    assert sgd.ledger.pure == pytest.approx(1 / halves)
    sent = sgd.message(np.array([[0.6, 0.8]]), np.array([0]), np.array([0.3]))
    # 2 coth(epsilon / 2) sqrt(pi) Gamma(3/2) / Gamma(1) = pi coth(epsilon / 2)
    np.testing.assert_allclose(np.linalg.norm(sent, axis=2), np.pi / np.tanh(0.5 / halves))


OFFERS = PriceListSpec(
    n_actions=2, dim=2, horizon=10, prices=(2.0, 3.0), unit_cost=1.0, reward_high=2.0
)


def test_rounds_of_exploration_and_what_they_cost():
    """Golden, by an independent program: T_0 at 20,000 and 100,000 customers; sqrt(D T) without
    privacy. At every T_0 a user costs epsilon once, and delta is 0."""
    for T, epsilon, rounds in (
        (20_000, 4.0, 566),
        (20_000, 1.0, 2263),
        (20_000, 0.5, 4526),
        (100_000, 4.0, 1265),
        (20_000, inf, 283),
        (1, 1.0, 1),
        (3, 1e-50, 2),
    ):
        config, spec = LDPETC(epsilon=epsilon), OJPricing(horizon=T).spec
        assert config.make(spec, Streams([0])).rounds == rounds
        proof = certify(config, spec, accountants=False)
        assert proof.holds
        assert proof.epsilon == pytest.approx(epsilon, rel=1e-11, abs=0)
        assert proof.claimed_delta == 0


def test_steps_of_explorers_by_hand():
    """Golden, with messages that are g itself: two steps of B / sqrt(T_0) along (p - sold) z from
    0, p = 1/2 at first; then the second parameter is played for good, whoever buys."""
    agent = LDPETC(epsilon=inf, explore=2, parameter_norm=0.3).make(OFFERS, Streams([0]))
    x, theta = np.array([[0.6, 0.8]]), np.zeros(3)
    for action, reward in ((1, 2.0), (0, 0.0)):
        z = demand_rows(OFFERS, x)[0, action]
        theta = theta - 0.3 / sqrt(2) * (expit(z @ theta) - (reward > 0)) * z
        theta *= min(1, 0.3 / np.linalg.norm(theta))
        agent.update(x, np.array([action]), np.array([reward]))
    expected = np.array([1.0, 2.0]) * expit(demand_rows(OFFERS, x)[0] @ theta)
    for _ in range(3):
        np.testing.assert_allclose(agent.scores(x)[0], expected)
        agent.update(x, np.array([1]), np.array([2.0]))
