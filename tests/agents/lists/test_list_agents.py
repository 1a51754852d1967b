"""Agents of lists: their steps by hand, what they learn, and regret beside the reference."""

from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import certify, compare
from dpbandit.agents import CascadeUCB, ListFADE, PrivateCascade, RankedLinTS, RankedLinUCB
from dpbandit.agents.lists.cascade import kl_ucb
from dpbandit.agents.lists.ranked import best_lists, diverse_lists, products, widths
from dpbandit.base.random_streams import Streams
from dpbandit.losses.click_models import Cascade, PositionBased
from dpbandit.privacy.clicks import features
from dpbandit.privacy.curves import mu_of
from dpbandit.specs.lists import Catalogue, ListSpec
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
    lists = diverse_lists(scores, SPEC, 0.5)
    v = SPEC.catalogue.items[0]
    for mine, found in zip(scores, lists, strict=True):
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
    expected = np.sqrt(np.einsum("rnd,rde,rne->rn", phi, inverse, phi))
    columns = SPEC.catalogue.items.swapaxes(1, 2)
    np.testing.assert_allclose(widths(model.root, u, columns), expected)
    u[0], u[1:, 1] = np.inf, (np.nan, 9.0, -1e300)  # tastes that are none are clipped in both
    kept = np.where(np.isfinite(u), u, 0.0).clip(-1, 1)
    found = widths(model.root, u, columns)
    np.testing.assert_array_equal(found, widths(model.root, kept, columns))
    model = RankedLinUCB(regularization=1e-300).make(SPEC, model.streams)
    model.learn(kept, lists, SPEC.catalogue.vectors(lists), np.ones((4, 3)))
    found = widths(model.root, kept, columns)
    assert np.isfinite(found).all()  # where only rounding makes V singular
    assert np.isfinite(model.theta).all()


@pytest.mark.parametrize("alpha", [0.0, 0.2, 20.0])
def test_items_that_cannot_be_listed_need_no_widths(alpha):
    """Oracle: the bounds of all items, of which many are twice in the catalogue."""
    rng = np.random.default_rng(4)
    vectors = rng.standard_normal((400, 4))
    vectors = np.concatenate([vectors, vectors]) / np.linalg.norm(vectors, axis=1).max()
    spec = ListSpec(catalogue=Catalogue.of(vectors), clicks=Cascade(3), horizon=400)
    model = RankedLinUCB(alpha=alpha).make(spec, Streams([0, 1, 2, 3]))
    columns = spec.catalogue.items.swapaxes(1, 2)
    for _ in range(400):
        u = rng.choice([-1.0, 1.0], size=(4, 4))
        means = products(spec, u, model.theta)
        bounds = means + alpha * widths(model.root, u, columns)
        lists = model.act(u)
        best = -np.sort(-bounds, axis=1)[:, :3]
        np.testing.assert_allclose(np.take_along_axis(bounds, lists, axis=1), best, rtol=1e-9)
        model.update(u, lists, 1.0 * (rng.random((4, 3)) < 0.2))


def test_kl_bounds_by_their_equation():
    mean, looks = np.array([0.0, 0.2, 0.9, 1.0]), np.array([5.0, 50.0, 500.0, 10.0])
    q = kl_ucb(mean, looks, 1000)
    room = (np.log(1000) + 3 * np.log(np.log(1000))) / looks
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = np.nan_to_num(mean * np.log(mean / q))
        kl += np.nan_to_num((1 - mean) * np.log((1 - mean) / (1 - q)))
    np.testing.assert_allclose(kl[:3], room[:3], rtol=1e-3)
    assert q[3] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("horizon", "taste", "sigma"), [(10**4, 4, 11.19310), (10**5, 9, 11.19749)]
)
def test_noise_is_that_of_the_reference(horizon, taste, sigma):
    """Golden: an independent program's, epsilon 1; and the claim is met exactly."""
    spec = ListSpec(catalogue=Catalogue(20, taste), clicks=Cascade(5), horizon=horizon)
    agent = ListFADE(counted="clicks").make(spec, Streams([0]))
    assert agent.sums.stddev == pytest.approx(sigma, abs=2e-5)
    assert agent.ledger.spends[0].mu == pytest.approx(mu_of(1.0, 1e-5))
    assert certify(ListFADE(counted="clicks"), spec, accountants=False).epsilon == pytest.approx(
        1.0, abs=1e-9
    )


@pytest.mark.parametrize("counted", ["clicks", "squares"])
def test_without_privacy_it_is_a_regression(counted):
    """Oracle: least squares on faded sums, floored at 1e-3; exposures by positions are public. Or
    clicks as they are, of which one at a position with weight f has mean f phi . theta."""
    agent = ListFADE(counted=counted, epsilon=inf, first_batch=20, forgetting=0.0).make(
        PLACES, Streams([0])
    )
    rng, rounds = np.random.default_rng(3), []
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


def regrets(agents, horizon, **settings):
    """Mean regret by name, beside Uniform's."""
    results = compare(
        "dpbandit/ListRecommendation-v0",
        agents,
        horizon=horizon,
        replicas=2,
        seed=1000,
        env_kwargs=settings,
        progress=False,
    )
    return results.summary().set_index("agent")["mean"]


def test_everybody_learns():
    """A small cascade, with a catalogue that changes: less than half of random lists' regret; of
    counters, which look at no contexts, in one that stays."""
    agents = {"ucb": RankedLinUCB(), "ts": RankedLinTS(), "fade": ListFADE(epsilon=4)}
    mean = regrets(agents, 1500, n_items=50, taste=4, churn=100)
    assert (mean[["ucb", "ts"]] < mean["Uniform"] / 5).all()
    assert mean["fade"] < mean["Uniform"] / 2
    agents = {"kl": CascadeUCB(order="least-examined"), "private": PrivateCascade(epsilon=4)}
    mean = regrets(agents, 1500, n_items=20, taste=2, common=2, base_rate=0.1, length=4)
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
