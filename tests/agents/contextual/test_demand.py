"""Prices through a model of demand; what a sold-out sign tells."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpbandit.agents import DPUCB, LinTS, LinUCB, Uniform
from dpbandit.agents.contextual.demand import Priced, demand_rows, demand_spec
from dpbandit.agents.contextual.fade_prices import FadePrices
from dpbandit.base.random_streams import Streams
from dpbandit.envs import OJPricing
from dpbandit.privacy.ledger import no_data
from dpbandit.specs.protocols import ContextualSpec, PriceSpec
from dpbandit.specs.selling import OfferSpec, PremiumSpec, PriceListSpec
from dpbandit.testing import check_agent
from dpbandit.testing.checks import billboard_differences
from dpbandit.testing.tapes import World, recording, run
from tests.agents.contextual.runs import COSTS
from tests.each import each, refused

SPEC = PriceListSpec(
    n_actions=3, dim=2, horizon=300, prices=(1.0, 2.5, 2.0), unit_cost=0.5, reward_high=2.0
)
OJ = OJPricing().spec
ARMS = ContextualSpec(n_actions=2, dim=2, horizon=9)
ANY = PriceSpec(dim=2, horizon=9, low=1, high=2)
PREMIUMS = PremiumSpec(
    n_actions=3,
    dim=2,
    horizon=24,
    premiums=(0.0, 1.5, 0.5),
    base_margin=(1.0, 2.0),
    least_margin=0.25,
    most_units=4,
    reward_high=15.0,
)
OFFERED = {
    "n_actions": 5, "dim": 2, "horizon": 300, "reward_high": 3.0, "products": (0, 0, 1, 2, 2),
    "prices": (1.0, 3.0, 2.0, 1.0, 2.5), "unit_costs": (0.5, 0.5, 1.0, 0.5, 0.5),
}  # fmt: skip


@dataclass(init=False, eq=False)
class Listener:
    """An inner agent that says what it is told to and keeps what it hears."""

    def __init__(self, scores):
        self.ledger, self._scores, self.calls, self.asked = no_data(), scores, [], []

    def make(self, spec, streams):
        self.spec = spec
        return self

    def scores(self, context):
        self.asked.append(context)
        return np.tile(self._scores, (len(context), 1))

    def update(self, *datum):
        self.calls.append(datum)


def pricing(scores, replicas=2, **fields):
    inner = Listener(np.array(scores))
    return inner, Priced(inner, **fields).make(SPEC, Streams(range(replicas)))


@each("features", ["additive", "interactions", "shrunk"])
@each("order", [1, 2, np.inf])
@each("several", [False, True])
def test_rows_have_norm_at_most_one_whatever_the_context(features, order, several):
    """Property: contexts inside, on and far beyond the public bound, and no numbers at all."""
    facts = {"dim": 4, "context_bound": 3.0, "context_order": order}
    spec = PriceListSpec(n_actions=3, horizon=9, prices=(1, 2, 4), **facts)
    spec = OfferSpec(**OFFERED | facts) if several else spec
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
    common = np.array([[0.2, 0.2 * p] for p in (-1, 1, 1 / 3)]) / 2**0.5
    both = np.column_stack([crossed[:, :2], common, crossed[:, 2:] * 0.92**0.5])
    np.testing.assert_allclose(demand_rows(SPEC, x, "shrunk")[0], both)
    same = PriceListSpec(n_actions=2, dim=2, horizon=9, prices=(2.0, 2.0), delay=4)
    assert (demand_rows(same, x)[..., 2] == 0).all()
    inner = demand_spec(same)
    assert type(inner) is ContextualSpec
    assert (inner.horizon, inner.delay, inner.link, inner.shared) == (9, 4, "logistic", True)
    assert (inner.reward_low, inner.reward_high) == (0.0, 1.0)


@each("features", ["additive", "interactions", "shrunk"])
def test_rows_of_offers_by_hand(features):
    """Golden: prices scale to -1, 1, 0, -1, 1/2, products point to the corners of a triangle, at
    120 degrees, and both are shrunk by sqrt(2) beside each other; x multiplies all three."""
    spec, x = OfferSpec(**OFFERED), np.array([0.6, 0.8])
    d = demand_spec(spec, features).dim
    sizes = {"additive": (2, 1), "interactions": (2, 2), "shrunk": (3, 3)}[features]
    assert d == sizes[0] + 3 * sizes[1]
    common = [0.2, *0.92**0.5 * x]
    times = {"additive": [1.0], "interactions": x, "shrunk": common}[features]
    rows = demand_rows(spec, x[None], features)[0] * 2**0.5
    effects = rows[:, sizes[0] :].reshape(5, 3, sizes[1])
    np.testing.assert_allclose(effects[:, 0], np.outer([-1, 1, 0, -1, 0.5], times) / 2**0.5)
    corners = effects[:, 1:, 0] * 2**0.5 / times[0]
    cosines = np.where(np.equal.outer(spec.products, spec.products), 1, -0.5)
    np.testing.assert_allclose(corners @ corners.T, cosines, atol=1e-12)


def test_an_offer_says_what_it_earns():
    """Golden: margins are prices minus costs, times the units at most; 1.6 dollars of 2 x 0.5 and
    2 x 2.5 possible ones are all and a third of the units. Several products have no curve."""
    spec = OfferSpec(**OFFERED, most_units=2)
    np.testing.assert_allclose(spec.margins, [1, 5, 2, 1, 4])
    np.testing.assert_allclose(spec.margins_at(np.zeros((1, 2))), [[0.5, 2.5, 1, 0.5, 2]])
    sold = spec.share_sold(np.zeros((2, 2)), np.array([0, 1]), np.array([1.6, 1.6]))
    np.testing.assert_allclose(sold, [1.0, 0.32])
    assert type(spec.with_features(7)) is OfferSpec
    refused("curve, got 3 products", demand_rows, spec, np.zeros((1, 2)), "curve")


@each(
    ("changed", "told"), [
        ({"unit_costs": (0.5, 0.5, 2.0, 0.5, 0.5)}, "above unit_costs"),
        ({"unit_costs": (0.5, 0.5, -np.inf, 0.5, 0.5)}, "above unit_costs"),
        ({"prices": (1.0, 2.0)}, "2 prices to be as many as n_actions=5"),
        ({"products": (0, 0, 1)}, "one number for each of n_actions=5"),
        ({"products": (0, 0, 1, 3, 3)}, "numbered from 0, none left out"),
        ({"products": (0, 0, 1, 2.0, 2)}, "each of products"),
    ],
)  # fmt: skip
def test_wrong_offers_are_refused(changed, told):
    refused(told, OfferSpec, **OFFERED | changed)


def test_scores_are_margins_times_probabilities():
    """Golden: margins 0.5, 2, 1.5 on 0.9, 0.3, 0.5 give 0.45, 0.6, 0.75; clipped to [0, 1] first:
    scores 9, -1, 0.2 give 0.5, 0, 0.3."""
    for scores, mean_reward, best in (
        ([0.9, 0.3, 0.5], [0.45, 0.6, 0.75], 2),
        ([9.0, -1.0, 0.2], [0.5, 0.0, 0.3], 0),
    ):
        _, agent = pricing(scores, explore=0)
        np.testing.assert_allclose(agent.scores(np.zeros((2, 2))), [mean_reward] * 2)
        np.testing.assert_array_equal(agent.act(np.zeros((2, 2))), [best, best])


def test_the_inner_agent_hears_of_sales_in_unit_range():
    """A margin is a sale, nothing is none; what cannot be a margin is clipped, NaN to no sale."""
    rewards = [2.0, 0.0, 1.0, 1e308, -5.0, np.nan, np.inf]
    inner, agent = pricing([0, 0, 0], replicas=7)
    x = np.full((7, 2), 0.1)
    with np.errstate(all="raise"):
        agent.update(x, np.ones(7, dtype=int), np.array(rewards))
    ((rows, action, sold),) = inner.calls
    np.testing.assert_array_equal(rows, demand_rows(SPEC, x))
    np.testing.assert_array_equal(action, 1)
    np.testing.assert_array_equal(sold, [1, 0, 0.5, 1, 0, 0, 0])


def test_margins_of_premiums_follow_the_context():
    """Golden: at x = (0.6, 0.8) a unit earns 0.6 + 1.6 = 2.2 and the premium, at (-1, 0) at least
    0.25, and x too long, or no number, is clipped first. Four units at most: 7.4 dollars at premium
    1.5 are 2 of 4, and a share of 0.5 is worth 4 x 0.5 x margin. Rows are those of premiums as
    prices, and a private agent that learns from shares keeps its promise."""
    x = np.array([[0.6, 0.8], [-1.0, 0.0], [6.0, 8.0], [np.nan, 1.0]])
    margins = [[2.2, 3.7, 2.7], [0.25, 0.5, 0.25], [2.2, 3.7, 2.7], [0.25, 1.5, 0.5]]
    np.testing.assert_allclose(PREMIUMS.margins_at(x), margins)
    inner = Listener(np.full(3, 0.5))
    agent = Priced(inner, explore=0).make(PREMIUMS, Streams(range(4)))
    np.testing.assert_allclose(agent.scores(x), 2 * np.array(margins))
    agent.update(x, np.full(4, 1), np.array([7.4, 99.0, -1.0, np.nan]))
    ((rows, _, share),) = inner.calls
    np.testing.assert_allclose(share, [0.5, 1, 0, 0])
    np.testing.assert_array_equal(rows, demand_rows(replace(SPEC, prices=(1.0, 2.5, 1.5)), x))
    check_agent(Priced(DPUCB(refresh_every=3)), PREMIUMS)


def test_fade_offers_each_customer_her_best_price_at_her_cost():
    """Oracle: after a run of 150 customers prices are argmax (price - cost) x P(sale), by hand;
    synthetic customers with the same features are offered the same. Golden: at a cost of 0.65 one
    unit of two, sold at 1.5, earns 0.85, half of 1.7; a context without a number counts as
    zeros, at no cost, one that is too long is clipped. Power: costs move a fifth of the offers."""
    rng, two = np.random.default_rng(0), Streams(range(2))
    agent = FadePrices(epsilon=100.0, first_batch=50).make(COSTS, two)
    cost = rng.uniform(0.2, 0.8, (400, 2))
    x = np.stack([np.ones_like(cost), (cost - 0.5) / 0.3], axis=-1) / np.sqrt(2)
    for row in range(150):
        price = np.array(COSTS.prices)[action := agent.act(x[row])]
        sold = rng.binomial(2, 1 / (1 + np.exp(4 * price - 5)))
        agent.update(x[row], action, (price - cost[row]) * sold)
    rows = demand_rows(COSTS, x)
    sale = 1 / (1 + np.exp(-np.einsum("nrkd,rd->nrk", rows, agent._played)))
    best = ((np.array(COSTS.prices) - cost[..., None]) * sale).argmax(axis=-1)
    np.testing.assert_array_equal(agent.act(x), best)
    imagined = agent._best(x.swapaxes(0, 1), agent._played[:, None])[:, 0]
    np.testing.assert_array_equal(imagined, best.T)
    assert np.mean(best[1:] != best[:-1]) > 0.2
    x = np.array([[1.0, 0.5], [1.0, np.nan], [9.0, 9.0]]) / np.sqrt(2)
    share = COSTS.share_sold(x, np.array([1, 1, 1]), np.array([0.85, 1.5, 0.7]))
    np.testing.assert_allclose(share, 0.5)


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
        (lambda: replace(PREMIUMS, base_margin=(1.0,)), r"base_margin=\(1.0,\) to have a number"),
        (lambda: replace(PREMIUMS, shared=True), "of one context, shared=False"),
        (lambda: replace(PREMIUMS, premiums=(0.0, 1.0)), "n_actions=3 finite numbers"),
        (lambda: replace(PREMIUMS, least_margin=0.0), "least_margin=0.0"),
        (lambda: replace(PREMIUMS, most_units=0), "most_units=0"),
        (lambda: made(Priced(LinUCB()), ANY), "plays a list of prices .* got a PriceSpec: use Lin"),
    ],
)
def test_bad_input_gets_one_sentence(make, sentence):
    refused(sentence, make)


TWO_PRICES = PriceListSpec(
    n_actions=2, dim=3, horizon=640, prices=(2.0, 3.0), unit_cost=1.0, reward_high=2.0
)


def made(config, spec=TWO_PRICES):
    return config.make(spec, Streams([0]))


STOCK, LAST, CLOSED = 3, 7, 2


OFFERS = PriceListSpec(
    n_actions=3, dim=2, horizon=24, prices=(1.0, 1.5, 2.0), unit_cost=0.5, reward_high=1.5
)


class SoldOutSign(Priced):
    """Prices by its honest parent; plays `CLOSED` from the moment that the stock is sold."""

    sold = 0
    hands_on = Priced.hands_on

    def act(self, context):
        return np.where(self.sold >= STOCK, CLOSED, np.minimum(super().act(context), CLOSED - 1))

    def update(self, context, action, feedback):
        super().update(context, action, feedback)
        self.sold = self.sold + (feedback > 0)


@pytest.mark.parametrize("truthful", [True, False])
def test_a_truthful_sold_out_sign_is_not_private(truthful):
    """The first STOCK - 1 users buy at any price, the others at none, user LAST does either;
    releases are those of the first world. The event "the next user reads closed" has probability 1
    in one world and 0 in the other, so delta = 1 at every epsilon. Without a sign nothing shows."""
    kind = SoldOutSign if truthful else Priced
    config = kind(agent=DPUCB(refresh_every=3))
    context = np.full((OFFERS.horizon, 1, 2), 0.5)
    sales = np.zeros((OFFERS.horizon, 1, 3))
    sales[: STOCK - 1] = sales[LAST] = OFFERS.margins
    buys, leaves, t = World(context, sales), World(context, np.zeros_like(sales)), np.array([LAST])
    one = run(config, OFFERS, buys)
    two = run(config, OFFERS, buys.swapped(t, leaves), replay=one)
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
