"""ListExperts: what a user's clicks move, what they count, and who is followed."""

from itertools import product
from math import inf

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dpbandit import InputError, certify
from dpbandit.agents import ListExperts
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ListRecommendation
from dpbandit.losses.click_models import Browsing, Cascade, DependentClicks, PositionBased
from dpbandit.privacy.clicks import PolicyClicks
from dpbandit.specs.lists import Catalogue, ListSpec
from tests.harness import LISTS

MODELS = [PositionBased((1, 0.5, 0.3)), Cascade(3), DependentClicks((1, 0.3, 0.5)), Browsing(3)]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_user_moves_counts_by_one(model):
    """Enumerated: all clicks, no clicks that could be among them, of users who meet one policy; it
    is attained in L1 and L2 alike."""
    said = np.array(list(product([0.0, 1.0, np.nan, 9.0], repeat=3)))[None]
    counts = PolicyClicks(model, 3).total(np.ones(said.shape[:2], np.int64), said)
    assert np.unique(counts[:, [0, 2]]).tolist() == [0]
    for norm in ("euclidean", "cityblock"):
        assert pdist(counts, norm).max() == pytest.approx(1)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_counts_are_expected_rewards(model):
    """40,000 users within 5 standard errors. Attractions are small, or the cut at 1 would matter,
    but for a cascade, where what is below a click earns nothing."""
    attraction, n = np.array([0.1, 0.05, 0.02]) * (8 if isinstance(model, Cascade) else 1), 40_000
    rng = np.random.default_rng(0)
    clicks, _ = model.clicked(np.broadcast_to(attraction, (n, 3)), rng.random((n, 2, 3)))
    found = PolicyClicks(model, 1).total(np.zeros((n, 1), np.int64), clicks[:, None])[0, 0] / n
    expected = model.expected(attraction)
    assert abs(found - expected) < 5 * np.sqrt(expected / n)


def test_the_policy_that_knows_is_found_and_stays():
    """Three directions, one of them the truth: without noise, and at epsilon 4, only it is left in
    both replicas; its opposite is shown to nobody after the first batches."""
    problem = ListRecommendation(n_items=60, taste=4, common=0, horizon=3000, catalogue="shared")
    for epsilon in (inf, 4.0):
        streams = Streams([(1000, r) for r in range(2)], world_seed=3)
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
        assert agent.active.tolist() == [[False, True, False]] * 2


@pytest.mark.parametrize("width", [0.5, 5.0])
def test_rounds_by_hand(width):
    """Lists are the largest v . (u * w); a click counts for who was shown, and whoever is more than
    two widths behind is dropped."""
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    spec = ListSpec(catalogue=Catalogue.of(vectors), clicks=Cascade(1), horizon=40)
    rankers = [[2, 0], [3, 0.5], [-1, 0]]
    agent = ListExperts(epsilon=inf, rankers=rankers, width=width, first_batch=15).make(
        spec, Streams([0])
    )
    u, shown = np.array([[1.0, -1.0]]), []
    for _ in range(15):
        first = agent.act(u)[0, 0]
        shown.append(agent.shown[0])
        assert first == (0, 0, 2)[shown[-1]]
        agent.update(u, np.array([[first]]), np.array([[1.0 * (first == 0)]]))
    shows = np.bincount(shown, minlength=3)
    assert shows.min() > 2
    np.testing.assert_array_equal(agent.shows[0], shows)
    np.testing.assert_array_equal(agent.counts[0], shows * [1, 1, 0])
    assert agent.active[0].tolist() == [True, True, width == 5]


def test_noise_is_that_of_one_batch():
    """A user is in one batch alone: 1 / mu(epsilon 1, delta 1e-5) = 1 / 0.26805, by independent
    computation, however many batches and policies there are."""
    agent = ListExperts(n_policies=5).make(LISTS, Streams([0]))
    assert agent.sums.stddev == pytest.approx(1 / 0.26805, rel=1e-4)
    assert certify(ListExperts(), LISTS, accountants=False).epsilon == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    "rankers", [[], [1.0], [[1.0], [1.0, 2.0]], [["x", 1]], [[np.nan, 0.0]], 3, np.ones((2, 2, 2))]
)
def test_what_is_no_ranker_is_refused(rankers):
    with pytest.raises(InputError, match="Expected rankers="):
        ListExperts(rankers=rankers)
    with pytest.raises(InputError, match=r"Expected ranker=.* to be 2 numbers"):
        ListExperts(rankers=[[1.0, 0.0, 0.0]]).make(LISTS, Streams([0]))
