"""Prices through a model of demand, by cells that count, and of a limited stock."""

from dataclasses import replace
from math import exp, inf, sqrt

import numpy as np
import pytest
from scipy.special import expit, ndtr

from dpbandit import InputError, certify, compare
from dpbandit.agents import DPUCB, JDPGLMUCB, CountedShelf, LinTS, LinUCB, PriceCells, Uniform
from dpbandit.agents.contextual.counted_shelf import safety_margin
from dpbandit.agents.contextual.demand import DemandPricing, Priced, demand_rows, demand_spec
from dpbandit.base.random_streams import Streams
from dpbandit.envs import OJPricing, StockPricing
from dpbandit.privacy.curves import delta_of, mu_of
from dpbandit.privacy.ledger import Ledger, no_data
from dpbandit.privacy.prefix_sums import SquareRoot
from dpbandit.privacy.sales import CellSales
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.specs.protocols import ContextualSpec, PriceListSpec, PriceSpec
from dpbandit.testing import check_agent
from dpbandit.testing.checks import billboard_differences
from dpbandit.testing.tapes import World, recording, run
from tests.agents.contextual.runs import curves
from tests.each import each
from tests.harness import PRICES

SPEC = PriceListSpec(
    n_actions=3, dim=2, horizon=300, prices=(1.0, 2.5, 2.0), unit_cost=0.5, reward_high=2.0
)
OJ = OJPricing().spec
ARMS = ContextualSpec(n_actions=2, dim=2, horizon=9)
ANY = PriceSpec(dim=2, horizon=9, low=1, high=2)


class Listener:
    """An inner agent that says what it is told to and keeps what it hears."""

    def __init__(self, scores):
        self.ledger, self._scores, self.heard, self.asked = no_data(), scores, [], []

    def make(self, spec, streams):
        self.spec = spec
        return self

    def scores(self, context):
        self.asked.append(context)
        return np.tile(self._scores, (len(context), 1))

    def update(self, *datum):
        self.heard.append(datum)


def pricing(scores, replicas=2, **fields):
    inner = Listener(np.array(scores))
    return inner, DemandPricing(inner, SPEC, Streams(range(replicas)), **fields)


@each("features", ["additive", "interactions"])
@each("order", [1, 2, np.inf])
def test_rows_have_norm_at_most_one_whatever_the_context(features, order):
    """Property: contexts inside, on and far beyond the public bound, and no numbers at all."""
    spec = PriceListSpec(
        n_actions=3, dim=4, horizon=9, prices=(1, 2, 4), context_bound=3.0, context_order=order
    )
    rng = np.random.default_rng(0)
    context = rng.standard_normal((2000, 4)) * rng.choice([0.1, 1, 10, 1e200], size=(2000, 1))
    context[rng.random(2000) < 0.1] = np.nan
    context[0] = np.inf
    rows = demand_rows(spec, context, features)
    lengths = np.linalg.norm(rows, axis=2)
    inner = demand_spec(spec, features)
    assert rows.shape == (2000, *inner.context_shape)
    assert lengths.max() <= inner.context_norm + 1e-12 == 1 + 1e-12
    assert lengths.max() > 0.99  # the bound is not idle


def test_rows_by_hand():
    """Golden: prices 1, 2.5, 2 scale to -1, 1, 1/3; x = (0.6, 0.8) has the bound's length 1."""
    x = np.array([[0.6, 0.8]])
    additive = np.array([[0.6, 0.8, -1], [0.6, 0.8, 1], [0.6, 0.8, 1 / 3]]) / 2**0.5
    np.testing.assert_allclose(demand_rows(SPEC, x)[0], additive)
    crossed = np.array([[0.6, 0.8, p * 0.6, p * 0.8] for p in (-1, 1, 1 / 3)]) / 2**0.5
    np.testing.assert_allclose(demand_rows(SPEC, x, "interactions")[0], crossed)
    same = PriceListSpec(n_actions=2, dim=2, horizon=9, prices=(2.0, 2.0), delay=4)
    assert (demand_rows(same, x)[..., 2] == 0).all()
    inner = demand_spec(same)
    assert type(inner) is ContextualSpec
    assert (inner.horizon, inner.delay, inner.link, inner.shared) == (9, 4, "logistic", True)
    assert (inner.reward_low, inner.reward_high) == (0.0, 1.0)


def test_scores_are_margins_times_probabilities():
    """Golden: margins 0.5, 2, 1.5 on 0.9, 0.3, 0.5 give 0.45, 0.6, 0.75; clipped to [0, 1] first:
    scores 9, -1, 0.2 give 0.5, 0, 0.3."""
    for scores, worth, best in (
        ([0.9, 0.3, 0.5], [0.45, 0.6, 0.75], 2),
        ([9.0, -1.0, 0.2], [0.5, 0.0, 0.3], 0),
    ):
        _, agent = pricing(scores, explore=0)
        np.testing.assert_allclose(agent.scores(np.zeros((2, 2))), [worth] * 2)
        np.testing.assert_array_equal(agent.act(np.zeros((2, 2))), [best, best])


def test_the_inner_agent_hears_of_sales_in_unit_range():
    """A margin is a sale, nothing is none; what cannot be a margin is clipped, NaN to no sale."""
    rewards = [2.0, 0.0, 1.0, 1e308, -5.0, np.nan, np.inf]
    inner, agent = pricing([0, 0, 0], replicas=7)
    x = np.full((7, 2), 0.1)
    with np.errstate(all="raise"):
        agent.update(x, np.ones(7, dtype=int), np.array(rewards))
    ((rows, action, sold),) = inner.heard
    np.testing.assert_array_equal(rows, demand_rows(SPEC, x))
    np.testing.assert_array_equal(action, 1)
    np.testing.assert_array_equal(sold, [1, 0, 0.5, 1, 0, 0, 0])


def test_exploration_is_public_and_knows_no_data():
    """Two runs with equal seeds and other users: the same random prices for `explore` rounds,
    without asking the inner agent; afterwards its own, but for as many random ones as promised:
    0.3 explore / t of the rounds, of which two thirds differ from the inner choice. Statistical:
    5 errors of a binomial, false alarm 6e-7; none at all would be 15 errors away (asserted)."""
    played = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        inner, agent = pricing([0, 0, 1], replicas=50, explore=40)
        actions = []
        for _ in range(100):
            x = rng.standard_normal((50, 2))
            actions.append(agent.act(x))
            agent.update(x, actions[-1], rng.random(50))
        assert len(inner.asked) == 60
        played.append(np.array(actions))
    np.testing.assert_array_equal(*played)
    chance = 0.3 * 40 / np.arange(40, 100) * 2 / 3
    lost, wanted = (played[0][40:] != 2).sum(), 50 * chance.sum()
    error = (50 * (chance * (1 - chance)).sum()) ** 0.5
    assert abs(lost - wanted) < 5 * error
    assert wanted > 15 * error
    shares = np.bincount(played[0][:40].ravel(), minlength=3) / 2000
    np.testing.assert_allclose(shares, 1 / 3, atol=6 * (2 / 9 / 2000) ** 0.5)  # 6 errors: 2e-9
    for told, rounds in ((None, 3), (7, 7), (0, 0)):  # by default a hundredth of all
        inner, agent = pricing([0, 0, 0], explore=told)
        for _ in range(9):
            agent.update(np.zeros((2, 2)), agent.act(np.zeros((2, 2))), np.zeros(2))
        assert len(inner.asked) == 9 - rounds


@each(
    ("make", "sentence"),
    [
        (lambda: Priced(agent=LinUCB(), features="all"), "one of additive, interactions"),
        (lambda: Priced(agent=LinUCB(), explore=-1), "explore=-1 to be a whole number >= 0"),
        (lambda: demand_spec(SPEC, "all"), "one of additive, interactions"),
        (lambda: made(Priced(agent=Uniform()), SPEC), "an agent that scores arms, got Uniform"),
        (lambda: made(Priced(LinUCB()), ARMS), "LinUCB.* got a ContextualSpec: use Lin"),
        (lambda: made(Priced(LinTS()), ARMS), "LinTS.* got a ContextualSpec: use Lin"),
        (lambda: made(Priced(LinUCB()), ANY), "plays a list of prices .* got a PriceSpec: use Lin"),
        (lambda: made(PriceCells(coordinates=[3])), r"coordinates=\[3\] to be at most 2"),
        (lambda: made(PriceCells(coordinates=[1, 1])), r"coordinates=\[1, 1\] to be different"),
        (lambda: made(PriceCells(coordinates="12")), "coordinates='12' to be a list"),
        (lambda: made(PriceCells(coordinates=[-1])), "coordinates=-1 to be a whole number >= 0"),
        (lambda: made(PriceCells(depth=10, coordinates=[0, 1])), "depth=10 of 2 .* fewer cells"),
    ],
)
def test_bad_input_gets_one_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


TWO_PRICES = PriceListSpec(
    n_actions=2, dim=3, horizon=640, prices=(2.0, 3.0), unit_cost=1.0, reward_high=2.0
)


def made(config, spec=TWO_PRICES):
    return config.make(spec, Streams([0]))


def test_what_is_counted():
    """Golden, by hand: two coordinates halved twice are 16 cells, the first the least digit; the
    buyer in the lowest corner and the one at the bound of both are in cells 0 and 15. Of two whom
    price 1 sells to one margin would be half a sale. Two buyers apart are sqrt(2) apart."""
    sales = CellSales(margins=(1.0, 2.0), coordinates=(1, 2), depth=2)
    corners = np.array([[0.0, -1, -1], [0, 1, 7], [0, 0.1, -0.9], [np.nan, np.inf, np.nan]])
    assert sales.cells(corners).tolist() == [0, 15, 2, 10]
    rewards = [1.0, 2.0, 1.0, np.nan]
    users = [
        sales.total(x[None, None], np.array([[a]]), np.array([[r]]))[0]
        for x, a, r in zip(corners, [0, 1, 1, 0], rewards, strict=True)
    ]
    assert users[0][0, 0, 0] == users[1][0, 15, 1] == users[3][1, 10, 0] == 1
    assert users[2][:, 2, 1].tolist() == [0.5, 0.5]
    assert [user.sum() for user in users] == [1, 1, 1, 1]
    assert np.linalg.norm(users[0] - users[1]) == pytest.approx(sales.sensitivity) == sqrt(2)
    together = sales.total(corners[:, None], np.array([[0], [1], [1], [0]]), np.c_[rewards])
    np.testing.assert_array_equal(together, sum(users)[None])


def test_prices_are_dropped_where_they_sell_too_rarely():
    """Golden, by hand, without noise: in the first batch of 10 the price of margin 2 is asked n
    times and never sells, the other always. w = 1 / sqrt(4 n): it is dropped if 2 w < 1 - w of the
    other. In the cell where nobody came both are left, and in the one of sellers for good."""
    agent = made(PriceCells(epsilon=inf, coordinates=[1]))
    below, above = np.array([[1.0, -0.5, 0.0]]), np.array([[1.0, 0.5, 0.0]])
    asked = []
    for _ in range(10):
        price = agent.act(below)
        agent.update(below, price, np.where(price == 0, 1.0, 0.0))
        asked.append(price[0])
    n = np.bincount(asked)
    assert min(n) >= 3
    width = 1 / np.sqrt(4 * n)
    assert 2 * width[1] < 1 - width[0]
    assert {agent.act(below)[0] for _ in range(50)} == {0}
    assert {agent.act(above)[0] for _ in range(50)} == {0, 1}
    assert made(PriceCells(), replace(TWO_PRICES, dim=11)).counts.coordinates == (1, 10)
    assert made(PriceCells(coordinates=(), depth=3)).counts.n_cells == 1


def test_it_earns_more_than_one_price():
    """On orange juice, 4 replicas of 10,000 customers: 531 +- 15 at epsilon 4 (20 replicas, seed
    1000), where one cell has 835 +- 14 and the best fixed price 728 +- 2."""
    ours = curves(PriceCells(epsilon=4.0), "OJPricing", horizon=10_000, replicas=4)[-1]
    assert 430 < ours.mean() < 640


def buyers(rounds, **settings):
    """JDP-GLM-UCB after orange juice was sold for so many rounds, and the last customer."""
    agent, problem = made(JDPGLMUCB(epsilon=4.0, **settings), OJ), OJPricing()
    problem.reset(Streams([1]))
    for _ in range(rounds):
        context = problem.context()
        action = agent.act(context)
        agent.update(context, action, problem.step(action).reward)
    return agent, context


def test_a_price_is_worth_what_it_may_earn():
    """Golden, by hand: after a release theta and A are known, and the score of a row z is margin x
    logistic(z . theta + 0.3 |z|_{A^-1}), A = G/4 + ridge with no eigenvalue below the floor."""
    agent, context = buyers(5, first_batch=5)
    player, noise = agent.demand._inner, agent.demand._inner._sums.stddev
    Gamma = 2 * sqrt(4) * noise / sqrt(2)
    values, U = np.linalg.eigh(player._gram[0, 0] / 4)
    values = np.maximum(values + (0.5 * Gamma + 1) / 4, 0.3 * Gamma / 4)
    z = demand_rows(OJ, context)[0]
    norm = np.sqrt(((z @ U) ** 2 / values).sum(axis=1))
    utility = z @ player._theta[0, 0] + 0.3 * norm
    np.testing.assert_allclose(agent.scores(context)[0], OJ.margins * expit(utility))


def test_each_user_is_released_once_and_parameters_stay_in_the_ball():
    """Golden: noise sqrt(5) / mu, a first batch of 40 sqrt(4) / mu, the next 1.5 times as long. A
    small ball is kept to; a large one is not needed here, and left alone."""
    sums, mu = made(JDPGLMUCB(epsilon=1.0), OJ).demand._inner._sums, mu_of(1.0, 1e-5)
    assert sums.fade == 0
    assert sums.stddev == pytest.approx(sqrt(5) / mu)
    first = np.ceil(40 * sqrt(4) / mu)
    assert sums._ends[:2] == (first, first + np.ceil(1.5 * first))
    for norm in (0.5, 20.0):
        length = np.linalg.norm(buyers(500, parameter_norm=norm)[0].demand._inner._theta)
        assert length <= norm + 1e-12
        assert (length > 0.6) == (norm > 1)


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
    hands_on = DemandPricing.hands_on

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


def test_who_answers_late_is_forgotten_and_enters_once():
    """Where nobody is priced at random first, and a caller writes every context into one array:
    catches rows that are kept for an answer, and rows of who is there now."""
    spec = OJPricing(horizon=40, delay=3).spec
    config = Priced(DPUCB(epsilon=1.0, delta=1e-3), explore=0)
    check_agent(config, replace(spec, horizon=15))
    tape, queries = None, []
    for user in (1.0, -1.0):
        agent, context = config.make(spec, Streams([0])), np.empty((1, 3))
        with recording(tape) as tape:
            for t in range(40):
                context[:] = user if t == 20 else 1.0
                agent.act(context)
                context[:] = user if t == 23 else 1.0
                if t >= 3:
                    agent.update(context, np.array([11]), np.ones(1))
        queries.append(np.array(tape.queries))
    assert np.flatnonzero((queries[0] != queries[1]).any(axis=(1, 2, 3))).tolist() == [20]
