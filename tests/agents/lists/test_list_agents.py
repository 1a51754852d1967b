"""Agents of lists: their steps by hand, what they learn, and regret beside the reference."""

from itertools import product
from math import inf, sqrt

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dpbandit import certify, compare
from dpbandit.agents import (
    CascadeUCB,
    ListExperts,
    ListFADE,
    PrivateCascade,
    RankedLinTS,
    RankedLinUCB,
)
from dpbandit.agents.lists.cascade import kl_ucb
from dpbandit.agents.lists.ranked import best_lists, diverse_lists, products
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ListRecommendation
from dpbandit.losses.click_models import Browsing, Cascade, DependentClicks, PositionBased
from dpbandit.privacy.clicks import PolicyClicks, features
from dpbandit.privacy.curves import mu_of
from dpbandit.specs.lists import Catalogue, ListSpec
from tests.each import each
from tests.harness import PLACES

SPEC = ListSpec(catalogue=Catalogue(7, 3), clicks=Cascade(3), horizon=50)


def test_lists_have_the_largest_scores_in_order():
    """Oracle: a stable sort, ties to the lowest items; the best goes where most look."""
    rng = np.random.default_rng(0)
    scores = rng.integers(4, size=(200, 9)) * 1.0
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(best_lists(scores, Cascade(3)), expected)
    turned = best_lists(scores, PositionBased((0.1, 0.9, 0.5)))
    np.testing.assert_array_equal(turned, expected[:, [2, 0, 1]])


def test_diversity_is_greedy():
    """Oracle: one item after the other, for one replica at a time."""
    rng = np.random.default_rng(1)
    scores = rng.random((5, 7))
    v = SPEC.catalogue.items[0]
    for mine, found in zip(scores, diverse_lists(scores, SPEC, 0.5), strict=True):
        chosen = [int(mine.argmax())]
        while len(chosen) < 3:
            worth = mine - 0.5 * (v @ v[chosen].T).max(axis=1)
            worth[chosen] = -np.inf
            chosen.append(int(worth.argmax()))
        assert found.tolist() == chosen


def test_scores_and_widths_are_those_of_features():
    """Oracle: features of all items for each user, which the agents never build."""
    rng = np.random.default_rng(2)
    model = RankedLinUCB().make(SPEC, Streams([0, 1, 2, 3]))
    u = rng.choice([-1.0, 1.0], size=(4, 3))
    for _ in range(20):
        lists = SPEC.uniform(Streams(rng.integers(99, size=4).tolist()))()
        model.learn(u, lists, SPEC.catalogue.vectors(lists), 1.0 * (rng.random((4, 3)) < 0.4))
    phi = features(u, np.broadcast_to(SPEC.catalogue.items, (4, 7, 3)))
    np.testing.assert_allclose(products(SPEC, u, model.theta), np.matvec(phi, model.theta))
    inverse = model.root.swapaxes(1, 2) @ model.root
    widths = np.sqrt(np.einsum("rnd,rde,rne->rn", phi, inverse, phi))
    np.testing.assert_allclose(model.widths(u), widths)
    u[0], u[1:, 1] = np.inf, (np.nan, 9.0, -1e300)  # tastes that are none are clipped in both
    kept = np.where(np.isfinite(u), u, 0.0).clip(-1, 1)
    np.testing.assert_array_equal(model.widths(u), model.widths(kept))
    model = RankedLinUCB(regularization=1e-300).make(SPEC, model.streams)
    model.learn(kept, lists, SPEC.catalogue.vectors(lists), np.ones((4, 3)))
    assert np.isfinite(model.widths(kept)).all()  # where only rounding makes V singular
    assert np.isfinite(model.theta).all()


def test_kl_bounds_by_their_equation():
    mean, looks = np.array([0.0, 0.2, 0.9, 1.0]), np.array([5.0, 50.0, 500.0, 10.0])
    q = kl_ucb(mean, looks, 1000)
    room = (np.log(1000) + 3 * np.log(np.log(1000))) / looks
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = np.nan_to_num(mean * np.log(mean / q))
        kl += np.nan_to_num((1 - mean) * np.log((1 - mean) / (1 - q)))
    np.testing.assert_allclose(kl[:3], room[:3], rtol=1e-3)
    assert q[3] == pytest.approx(1.0, abs=1e-5)


@each(("T", "taste", "sigma"), [(10**4, 4, 11.19310), (10**5, 9, 11.19749)])
def test_noise_is_that_of_the_reference(T, taste, sigma):
    """Golden: an independent program's, epsilon 1; and the claim is met exactly. Of experts a user
    is in one batch alone: 1 / mu, however many batches and policies there are."""
    spec = ListSpec(catalogue=Catalogue(20, taste), clicks=Cascade(5), horizon=T)
    mu = mu_of(1.0, 1e-5)
    for config, stddev in (
        (ListFADE(counted="clicks"), sigma),
        (ListExperts(n_policies=5), 1 / mu),
    ):
        agent = config.make(spec, Streams([0]))
        assert agent.sums.stddev == pytest.approx(stddev, abs=2e-5)
        assert agent.ledger.spends[0].mu == pytest.approx(mu)
        proof = certify(config, spec, accountants=False)
        assert proof.epsilon == pytest.approx(1.0, abs=1e-9)


@each("counted", ["clicks", "squares"])
def test_without_privacy_it_is_a_regression(counted):
    """Oracle: least squares on faded sums, floored at 1e-3; exposures by positions are public. Or
    clicks as they are, of which one at a position with weight f has mean f phi . theta."""
    config = ListFADE(counted=counted, epsilon=inf, first_batch=20, forgetting=0.0)
    agent, rng, rounds = config.make(PLACES, Streams([0])), np.random.default_rng(3), []
    for _ in range(20):
        u, clicks = rng.choice([-1.0, 1.0], size=(1, 2)), 1.0 * (rng.random((1, 2)) < 0.5)
        lists = agent.act(u)
        rounds.append((features(u, PLACES.catalogue.vectors(lists))[0], clicks[0]))
        agent.update(u, lists, clicks)
    f = np.array([1.0, 0.5])
    f, g = (f, f**2) if counted == "squares" else (np.ones(2), f)
    z = sum(x / max(1, np.linalg.norm(x)) for x in ((f * c) @ phi for phi, c in rounds))
    gram = sum((g[:, None] * phi).T @ phi for phi, _ in rounds)
    np.testing.assert_allclose(agent.theta[0], np.linalg.solve(gram, z))


def test_everybody_learns():
    """A small cascade, with a catalogue that changes: less than half of random lists' regret; of
    counters, which look at no contexts, in one that stays."""

    def regrets(agents, **settings):
        how = {"horizon": 1500, "replicas": 2, "seed": 1000, "env_kwargs": settings}
        results = compare("ListRecommendation", agents, progress=False, **how)
        return results.summary().set_index("agent")["mean"]

    agents = {"ucb": RankedLinUCB(), "ts": RankedLinTS(), "fade": ListFADE(epsilon=4)}
    mean = regrets(agents, n_items=50, taste=4, churn=100)
    assert (mean[["ucb", "ts"]] < mean["Uniform"] / 5).all()
    assert mean["fade"] < mean["Uniform"] / 2
    agents = {"kl": CascadeUCB(order="least-examined"), "private": PrivateCascade(epsilon=4)}
    mean = regrets(agents, n_items=20, taste=2, common=2, base_rate=0.1, length=4)
    assert mean["kl"] < mean["Uniform"] / 2
    assert mean["private"] < 0.9 * mean["Uniform"]


def test_refilled_places_are_counted_anew():
    """Old counts of a place say nothing of the item that took it."""
    board = Catalogue(5, 2, seed=None)
    board.start(Streams([0]), churn=True)
    spec = ListSpec(catalogue=board, clicks=Cascade(2), horizon=50)
    agent = PrivateCascade(epsilon=inf, refresh_every=1).make(spec, Streams([0]))
    x = np.ones((1, 2))
    for _ in range(12):
        agent.update(x, agent.act(x), np.zeros((1, 2)))
    assert agent.looks[0, 3] > 2
    board.refill(np.array([3]), np.array([[1.0, 0.0]]))
    lists = agent.act(x)
    assert lists[0, 0] == 3 or lists[0, 1] == 3
    agent.update(x, lists, np.zeros((1, 2)))
    assert agent.looks[0, 3] <= sqrt(1)


@each(
    "model",
    [PositionBased((1, 0.5, 0.3)), Cascade(3), DependentClicks((1, 0.3, 0.5)), Browsing(3)],
)
def test_counts_of_policies_are_expected_rewards_and_a_user_moves_them_by_one(model):
    """Enumerated: all clicks, no clicks that could be among them, of users who meet one policy; 1
    is attained in L1 and L2 alike. Rewards of 40,000 users within 5 standard errors, attractions so
    small that the cut at 1 is not met, but for a cascade, where nothing below a click earns."""
    said = np.array(list(product([0.0, 1.0, np.nan, 9.0], repeat=3)))[None]
    counts = PolicyClicks(model, 3).total(np.ones(said.shape[:2], np.int64), said)
    assert np.unique(counts[:, [0, 2]]).tolist() == [0]
    for norm in ("euclidean", "cityblock"):
        assert pdist(counts, norm).max() == pytest.approx(1)
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
        config = ListExperts(epsilon=epsilon, rankers=rankers)
        agent = config.make(problem.spec, streams.child("agent"))
        for _ in range(3000):
            u = problem.context()
            step = problem.step(lists := agent.act(u))
            agent.update(u, lists, step.datum)
        assert agent.active.tolist() == [[False, True, False]] * 2


@each("width", [0.5, 5.0])
def test_rounds_by_hand(width):
    """Lists are the largest v . (u * w); a click counts for who was shown, and whoever is more than
    two widths behind is dropped."""
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    spec = ListSpec(catalogue=Catalogue.of(vectors), clicks=Cascade(1), horizon=40)
    rankers = [[2, 0], [3, 0.5], [-1, 0]]
    config = ListExperts(epsilon=inf, rankers=rankers, width=width, first_batch=15)
    agent, u, shown = config.make(spec, Streams([0])), np.array([[1.0, -1.0]]), []
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
