"""ListExperts: what a user's clicks move, who gets the credit, and who is followed."""

from itertools import permutations, product
from math import inf

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dpbandit import InputError, certify
from dpbandit.agents import ListExperts
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ListRecommendation
from dpbandit.losses.click_models import Browsing, Cascade, DependentClicks, PositionBased
from dpbandit.privacy.statistics.policy_clicks import PolicyClicks
from dpbandit.specs.catalogues import Catalogue
from dpbandit.specs.lists import ListSpec
from tests.harness import LISTS

MODELS = [PositionBased((1.0, 0.5)), Cascade(2), DependentClicks((1.0, 0.7)), Browsing(2)]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_user_moves_credits_by_one(model):
    """Enumerated: all lists of two of three items that three policies may have for a user, all
    clicks; the first is shown. 1 is attained; pairs are of users who met the same policy."""
    lists, clicks = list(permutations(range(3), 2)), list(product([0.0, 1.0], repeat=2))
    users = list(product(lists, lists, lists, clicks))
    would = np.array([user[:3] for user in users])[None]  # (1, n, 3, 2)
    said = np.array([user[3] for user in users])[None]
    shown, active = np.zeros((1, len(users))), np.ones((1, len(users), 3))
    credits = PolicyClicks(model, 3).total(active, would, shown, said)
    assert credits.min() >= 0
    assert credits.sum(axis=1).max() == pytest.approx(1)
    assert pdist(np.unique(credits.round(12), axis=0)).max() == pytest.approx(1)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_credits_are_expected_rewards(model):
    """Policies that agree in part, each shown to 8,000 users: shares of their expected rewards
    within 5 standard errors. A divisor other than 1 would be a bias, hence attractions of 0.1 at
    most but where there is one click; there what is above another counts, too."""
    would = np.array([[0, 1], [0, 2], [2, 1], [0, 1], [0, 1]])
    scale = 8 if isinstance(model, Cascade) else 1
    attraction, n = scale * np.array([0.1, 0.05, 0.02])[would], 40_000
    rng = np.random.default_rng(0)
    shown = rng.integers(4, size=n)  # the last is not active
    clicks, _ = model.clicked(attraction[shown], rng.random((n, 2, 2)))
    active = np.broadcast_to([1.0, 1.0, 1.0, 1.0, 0.0], (n, 1, 5))
    lists = np.broadcast_to(would, (n, 1, 5, 2))
    found = PolicyClicks(model, 5).total(active, lists, shown[:, None], clicks[:, None])[0] * 4 / n
    expected = model.expected(attraction)
    assert found[4] == 0
    assert np.abs(found - expected)[:4].max() < 5 * np.sqrt(4 * expected.max() / n)
    assert expected[:4].max() - expected[:4].min() > 0.04  # more than such an error


def test_the_policy_that_knows_is_found_and_stays():
    """Three directions, one of them the truth: without noise, and at epsilon 4, only it is left in
    all of six replicas; its opposite is shown to nobody after the first batches."""
    problem = ListRecommendation(n_items=60, taste=4, common=0, horizon=3000, catalogue="shared")
    for epsilon in (inf, 4.0):
        streams = Streams([(1000, r) for r in range(6)], world_seed=3)
        problem.reset(streams.child("environment"))
        truth = problem._tastes()[0]
        rankers = (-truth, truth, np.array([truth[1], -truth[0], truth[3], -truth[2]]))
        agent = ListExperts(epsilon=epsilon, rankers=rankers).make(
            problem.spec, streams.child("agent")
        )
        for _ in range(3000):
            u = problem.context()
            step = problem.step(lists := agent.act(u))
            agent.update(u, lists, step.datum)
        assert agent._active.tolist() == [[False, True, False]] * 6


@pytest.mark.parametrize("width", [0.5, 50.0])
def test_rounds_by_hand(width):
    """Lists are the largest v . (u * w); a credit goes to all who would show the same, and whoever
    is more than the width behind is dropped."""
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    spec = ListSpec(catalogue=Catalogue.of(vectors), clicks=Cascade(1), horizon=40)
    rankers = [[2, 0], [3, 0.5], [-1, 0]]
    agent = ListExperts(epsilon=inf, rankers=rankers, width=width, first_batch=9).make(
        spec, Streams([0])
    )
    u = np.array([[1.0, -1.0]])
    for _ in range(9):
        first = agent.act(u)[0, 0]
        assert first == (0, 0, 2)[agent._shown[0]]
        agent.update(u, np.array([[first]]), np.array([[1.0 * (first == 0)]]))
    shows = round(2 * agent._counts[0, 0])
    np.testing.assert_allclose(agent._counts[0], [shows / 2, shows / 2, 0])
    assert agent._active[0].tolist() == [True, True, width == 50]


def test_noise_is_that_of_one_batch():
    """A user is in one batch alone: 1 / mu(epsilon 1, delta 1e-5) = 1 / 0.26805, by independent
    computation, however many batches and policies there are."""
    agent = ListExperts(n_policies=5).make(LISTS, Streams([0]))
    assert agent._sums.stddev == pytest.approx(1 / 0.26805, rel=1e-4)
    assert certify(ListExperts(), LISTS).epsilon == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    "rankers", [[], [1.0], [[1.0], [1.0, 2.0]], [["x", 1]], [[np.nan, 0.0]], 3, np.ones((2, 2, 2))]
)
def test_what_is_no_ranker_is_refused(rankers):
    with pytest.raises(InputError, match="Expected rankers="):
        ListExperts(rankers=rankers)
    with pytest.raises(InputError, match=r"Expected ranker=.* to be 2 numbers"):
        ListExperts(rankers=[[1.0, 0.0, 0.0]]).make(LISTS, Streams([0]))
