"""Position weights that nobody is told: what counting them moves, and what is done with them."""

from dataclasses import replace
from itertools import product
from math import inf, sqrt

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dpbandit import InputError, certify
from dpbandit.agents import ListFADE, PrivateCascade, RankedLinUCB
from dpbandit.agents.lists.list_fade import PositionWeights
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ListRecommendation
from dpbandit.losses.click_models import UntoldPositions
from dpbandit.privacy.clicks import PositionCounts, WeightedClicks
from dpbandit.privacy.curves import mu_of
from tests.agents.lists.test_list_privacy import users
from tests.each import each
from tests.harness import LISTS, PLACES, UNTOLD


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_a_user_moves_counts_of_positions_by_root_two(length):
    """All clicks there are, enumerated: attained, and not sqrt(m)."""
    clicks = np.array(list(product([0.0, 1.0], repeat=length)))
    found = PositionCounts(length).total(clicks[None])
    assert pdist(found).max() == pytest.approx(PositionCounts(length).sensitivity)


@pytest.mark.parametrize("f", [(1.0,), (1.0, 0.3), (np.nan, -1e9, 1e9), (0.0, 0.0)], ids=str)
def test_a_user_moves_weighted_clicks_by_their_sensitivity_at_most(f):
    """Brute force over 1,200 users who meet the same weights, released with any noise."""
    model = UntoldPositions(len(f))
    u, v, clicks = users(model, np.random.default_rng(0))
    statistic = WeightedClicks(model=model, taste=2)
    weights = np.broadcast_to(f, clicks.shape)
    farthest = pdist(statistic.total(weights, u, v, clicks) / statistic.units).max()
    assert farthest <= statistic.sensitivity * (1 + 1e-12)
    if f == (1.0,):
        assert farthest > 0.94 * statistic.sensitivity


def test_weights_are_ratios_of_clicks():
    """Upside down: 3,000 users with three independent clicks each; the weights are within 5
    standard errors, and the best item of a list stands where most look."""
    chances, n = np.array([0.02, 0.09, 0.05]), 3000
    spec = ListRecommendation(n_items=9, length=3, clicks="position", weights="hidden").spec
    places = PositionWeights(spec, Streams([0, 1]), epsilon=inf, delta=1e-5, rounds=n)
    rng = np.random.default_rng(0)
    for _ in range(n):
        places.count(1.0 * (rng.random((2, 3)) < chances))
    assert places.known
    assert np.abs(places.values - chances / 0.09).max() < 5 * sqrt(2 / (0.05 * n))
    np.testing.assert_array_equal(places.placed(np.array([[7, 5, 3]] * 2)), [[3, 7, 5]] * 2)


def test_learned_weights_that_are_right_make_it_the_one_that_is_told():
    told = ListFADE(epsilon=inf, counted="clicks", first_batch=6).make(PLACES, Streams([0]))
    agent = ListFADE(epsilon=inf, positions="learned", first_batch=6).make(UNTOLD, Streams([0]))
    agent.places.values, agent.places.known = np.array([[1.0, 0.5]]), True
    rng = np.random.default_rng(0)
    for _ in range(18):
        u, clicks = rng.choice([-1.0, 1.0], size=(1, 2)), 1.0 * (rng.random((1, 2)) < 0.5)
        lists = told.act(u)
        np.testing.assert_array_equal(agent.act(u), lists)
        for one in (told, agent):
            one.update(u, lists, clicks)
    assert np.abs(agent.theta).max() > 0.1
    np.testing.assert_allclose(agent.theta, told.theta, rtol=1e-12)


def test_a_user_pays_once():
    """Who is counted is in no sum: both mechanisms have all of mu, and the claim is met exactly."""
    agent = ListFADE(positions="learned").make(UNTOLD, Streams([0]))
    mu = mu_of(1.0, 1e-5)
    assert agent.places.counts.stddev == pytest.approx(sqrt(2) / mu)
    assert [part.mu for part in agent.ledger.spends[0].parts] == pytest.approx([mu, mu])
    assert certify(
        ListFADE(positions="learned"), UNTOLD, accountants=False
    ).epsilon == pytest.approx(1.0, abs=1e-9)


@each(
    ("make", "says"),
    [
        (lambda: RankedLinUCB().make(UNTOLD, Streams([0])), "list-fade:positions=learned"),
        (lambda: PrivateCascade().make(UNTOLD, Streams([0])), "list-fade:positions=learned"),
        (lambda: ListFADE().make(UNTOLD, Streams([0])), "list-fade:positions=learned"),
        (lambda: ListFADE(positions="learned").make(LISTS, Streams([0])), "got Cascade"),
        (lambda: ListFADE(positions="learned", counted="mean"), "'mean' to be 'clicks'"),
        (lambda: ListFADE(counting=5), "counting=5 with positions='learned'"),
        (
            lambda: ListFADE(counted="mean", gram_weight=1).make(LISTS, Streams([0])),
            "at most sqrt",
        ),
        (lambda: PrivateCascade().make(PLACES, Streams([0])), "Expected a cascade"),
        (lambda: PrivateCascade(delta=0), "delta=0 only with"),
        (lambda: ListRecommendation(weights="hidden"), "with clicks='position' only"),
        (lambda: ListRecommendation(weights="secret"), "Expected weights='secret'"),
    ],
)
def test_what_does_not_go_together_is_refused(make, says):
    with pytest.raises(InputError, match=says):
        make()


def test_positions_are_counted_on_the_best_items_in_any_order():
    """After nine releases, and nowhere else in these rounds: two items, both ways around."""
    agent = ListFADE(positions="learned", first_batch=2, growth=0.0, counting=40).make(
        replace(UNTOLD, horizon=99), Streams([0])
    )
    u, shown = np.ones((1, 2)), []
    for t in range(66):
        shown.append(agent.act(u)[0].tolist())
        agent.update(u, np.array(shown[-1:]), np.ones((1, 2)))
        assert agent.sums._used == min(t + 1, 18) + max(t + 1 - 58, 0)
        assert agent.places.known == (t >= 57)
    assert sorted(map(tuple, np.unique(shown[18:58], axis=0))) == sorted(
        [tuple(shown[18]), tuple(shown[18][::-1])]
    )
    assert len(np.unique(shown[16:18], axis=0)) == 1


@pytest.mark.parametrize("horizon", [1, 2, 11])
def test_short_runs(horizon):
    """There is nobody to learn from, or one."""
    kwargs = {"n_items": 9, "length": 3, "clicks": "position", "weights": "hidden"}
    problem = ListRecommendation(**kwargs, horizon=horizon)
    problem.reset(Streams([0]))
    agent = ListFADE(positions="learned").make(problem.spec, Streams([1]))
    for _ in range(horizon):
        lists = agent.act(u := problem.context())
        agent.update(u, lists, problem.step(lists).datum)
    assert problem.coverage > 0
