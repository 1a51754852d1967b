"""The demand model: rows, margins, exploration and sales, on any list of prices."""

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.agents import DPUCB, LinTS, LinUCB, Uniform
from dpbandit.agents.contextual.demand import DemandPricing, Priced, demand_rows, demand_spec
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.ledger import no_data
from dpbandit.specs.protocols import ContextualSpec, PriceListSpec, PriceSpec

SPEC = PriceListSpec(
    n_actions=3, dim=2, horizon=300, prices=(1.0, 2.5, 2.0), unit_cost=0.5, reward_high=2.0
)
WORDS = ["additive", "interactions"]


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


@pytest.mark.parametrize("features", WORDS)
@pytest.mark.parametrize("order", [1, 2, np.inf])
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
    same = PriceListSpec(n_actions=2, dim=2, horizon=9, prices=(2.0, 2.0))
    assert (demand_rows(same, x)[..., 2] == 0).all()


def test_the_inner_problem():
    delayed = PriceListSpec(n_actions=2, dim=3, horizon=9, prices=(1, 2), delay=4)
    inner = demand_spec(delayed)
    assert type(inner) is ContextualSpec
    assert (inner.horizon, inner.delay, inner.link, inner.shared) == (9, 4, "logistic", True)
    assert (inner.reward_low, inner.reward_high) == (0.0, 1.0)


def test_scores_are_margins_times_probabilities():
    """Golden: margins 0.5, 2, 1.5 on 0.9, 0.3, 0.5 give 0.45, 0.6, 0.75; clipped to [0, 1] first:
    scores 9, -1, 0.2 give 0.5, 0, 0.3."""
    _, agent = pricing([0.9, 0.3, 0.5], explore=0)
    np.testing.assert_allclose(agent.scores(np.zeros((2, 2))), [[0.45, 0.6, 0.75]] * 2)
    np.testing.assert_array_equal(agent.act(np.zeros((2, 2))), [2, 2])
    _, agent = pricing([9.0, -1.0, 0.2], explore=0)
    np.testing.assert_allclose(agent.scores(np.zeros((2, 2)))[0], [0.5, 0.0, 0.3])


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


def test_explores_a_hundredth_of_the_rounds_unless_told():
    for told, rounds in ((None, 3), (7, 7), (0, 0)):
        inner, agent = pricing([0, 0, 0], explore=told)
        for _ in range(9):
            agent.update(np.zeros((2, 2)), agent.act(np.zeros((2, 2))), np.zeros(2))
        assert len(inner.asked) == 9 - rounds


def test_the_claim_is_that_of_the_inner_agent():
    private, public = Priced(agent=DPUCB(epsilon=0.7, delta=1e-6)), Priced(agent=LinUCB())
    assert (private.epsilon, private.delta) == (0.7, 1e-6)
    assert (public.epsilon, public.delta) == (None, 0.0)


@pytest.mark.parametrize(
    "spec",
    [ContextualSpec(n_actions=2, dim=2, horizon=9), PriceSpec(dim=2, horizon=9, low=1, high=2)],
)
@pytest.mark.parametrize("config", [Priced(LinUCB()), Priced(LinTS())])
def test_without_a_list_of_prices_one_sentence(config, spec):
    sentence = rf"Priced\(Lin.*\) plays a list of prices .* got a {type(spec).__name__}: use Lin"
    with pytest.raises(InputError, match=sentence):
        config.make(spec, Streams([0]))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Priced(agent=LinUCB(), features="all"), "one of additive, interactions"),
        (lambda: Priced(agent=LinUCB(), explore=-1), "explore=-1 to be a whole number >= 0"),
        (lambda: demand_spec(SPEC, "all"), "one of additive, interactions"),
        (
            lambda: Priced(agent=Uniform()).make(SPEC, Streams([0])),
            "Expected an agent that scores arms, got Uniform",
        ),
    ],
)
def test_bad_input_gets_one_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
