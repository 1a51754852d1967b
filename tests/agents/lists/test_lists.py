"""Agents of lists: steps by hand, what they learn, and what a user moves, by brute force."""

from dataclasses import replace
from itertools import product
from math import inf, sqrt

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dpbandit import audit, certify, compare, play
from dpbandit.agents import (
    CascadeUCB,
    ListExperts,
    ListFADE,
    PrivateCascade,
    RankedLinTS,
    RankedLinUCB,
)
from dpbandit.agents.lists.cascade import kl_ucb
from dpbandit.agents.lists.list_fade import PositionWeights
from dpbandit.agents.lists.ranked import best_lists, diverse_lists, products, widths
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ListRecommendation
from dpbandit.losses.click_models import (
    Browsing,
    Cascade,
    DependentClicks,
    PositionBased,
    UntoldPositions,
)
from dpbandit.privacy.clicks import (
    ListClicks,
    ListCounts,
    ListResiduals,
    PolicyClicks,
    PositionCounts,
    WeightedClicks,
    features,
)
from dpbandit.privacy.curves import mu_of
from dpbandit.specs.lists import Catalogue, ListSpec
from dpbandit.testing.checks import check_joint_dp, largest_move, two_worlds
from tests.broken.lists import BROKEN
from tests.each import asserting, each, refused
from tests.harness import LISTS, PLACES, UNTOLD

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
            gains = mine - 0.5 * (v @ v[chosen].T).max(axis=1)
            gains[chosen] = -np.inf
            chosen.append(int(gains.argmax()))
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
    """Oracle: lists have the largest of all items' bounds, in a catalogue with every item twice."""
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
    """Old counts of places say nothing of the items that took them since the last release."""
    board = Catalogue(5, 2, seed=None)
    board.start(Streams([0]), churn=True)
    spec = ListSpec(catalogue=board, clicks=Cascade(2), horizon=50)
    agent = PrivateCascade(epsilon=inf, refresh_every=3).make(spec, Streams([0]))
    x = np.ones((1, 2))
    for _ in range(12):
        agent.update(x, agent.act(x), np.zeros((1, 2)))
    assert agent.looks[0, [3, 1]].min() > 2
    for place in (3, 1):
        board.refill(np.array([place]), np.array([[1.0, 0.0]]))
        lists = agent.act(x)
        assert place in lists
        agent.update(x, lists, np.zeros((1, 2)))
    agent.update(x, lists, np.zeros((1, 2)))  # the release
    assert agent.looks[0, [3, 1]].max() <= 1


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
        streams = Streams([(1000, r) for r in range(2)])
        problem.reset(streams.child("environment").in_world(3))
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
        shown.append(agent.displayed[0])
        assert first == (0, 0, 2)[shown[-1]]
        agent.update(u, np.array([[first]]), np.array([[1.0 * (first == 0)]]))
    shows = np.bincount(shown, minlength=3)
    assert shows.min() > 2
    np.testing.assert_array_equal(agent.shows[0], shows)
    np.testing.assert_array_equal(agent.counts[0], shows * [1, 1, 0])
    assert agent.active[0].tolist() == [True, True, width == 5]


MODELS = [PositionBased((1.0,)), PositionBased((1.0, 0.5, 0.3)), Cascade(3)]
MODELS += [DependentClicks((1.0, 0.7)), Browsing(3)]


def users(model, rng, n=1200):
    """At the bounds and beyond: u of any signs and sizes, vectors of any length, all answers."""
    u = np.sign(rng.normal(size=(1, n, 2))) * rng.choice([1.0, 0.3, 1e9], size=(1, n, 1))
    v = rng.normal(size=(1, n, model.length, 2))
    v[:, ::2] = v[:, :1, :1]  # half of them are shown the same item everywhere
    v *= rng.choice([1.0, 1e200], size=(1, n, 1, 1)) / np.linalg.norm(v, axis=-1, keepdims=True)
    clicks = rng.choice([0.0, 1.0, 1e9, -1.0, np.nan], size=(1, n, model.length))
    return u, v, clicks


def check_farthest(statistic, *rounds, least):
    found = statistic.total(*rounds) / statistic.units
    assert least < pdist(found).max() / statistic.sensitivity <= 1 + 1e-12


@each("model", MODELS)
@each("counted", ["residuals", "clicks", "squares", "mean"])
def test_a_user_moves_clicks_by_their_sensitivity_at_most(model, counted):
    """Brute force over 1,200 users, of residuals at a reference point for each; with one item it is
    attained, by residuals up to the Gram matrix, which opposite ones share."""
    if counted == "mean" and isinstance(model, Browsing):
        refused("browse", ListClicks, model=model, taste=2, counted=counted)
        return
    rng = np.random.default_rng(0)
    u, v, clicks = users(model, rng)
    statistic, theta = ListResiduals(model=model, taste=2), ()
    if counted == "residuals":
        theta = (rng.choice([0.0, 0.3, 1e9, np.inf, np.nan], size=(1, u.shape[1], 3)),)
    else:
        weight = sqrt(0.5) if counted == "mean" else 0.5
        statistic = ListClicks(model=model, taste=2, counted=counted, gram_weight=weight)
    check_farthest(statistic, *theta, u, v, clicks, least=0.94 if model.length == 1 else 0.6)


@each("f", [(1.0,), (1.0, 0.3), (np.nan, -1e9, 1e9), (0.0, 0.0)])
def test_a_user_moves_weighted_clicks_by_no_more(f):
    """Brute force over 1,200 users who meet the same weights, released with any noise."""
    model = UntoldPositions(len(f))
    u, v, clicks = users(model, np.random.default_rng(0))
    weights = np.broadcast_to(f, clicks.shape)
    least = 0.94 if f == (1.0,) else -1
    check_farthest(WeightedClicks(model=model, taste=2), weights, u, v, clicks, least=least)


def test_sums_are_moments_and_gram_matrices():
    """By hand, in a cascade: nothing below the first click counts, nor a click that cannot be."""
    statistic = ListClicks(model=Cascade(3), taste=1, gram_weight=0.5)
    v = np.array([[[[1.0], [-1.0], [1.0]]]])
    total = statistic.total(np.array([[[1.0]]]), v, np.array([[[0.0, 1.0, 1.0]]]))
    z, G = statistic.unpack(total)
    phi = np.array([[1, 1], [1, -1]]) / sqrt(2)
    np.testing.assert_allclose(z[0], phi[1])
    np.testing.assert_allclose(3 * G[0], phi.T @ phi, atol=1e-15)
    unit = total / statistic.units
    assert np.linalg.norm(unit[0, 2:]) == pytest.approx(0.5 * np.linalg.norm(G[0]))


@each("model", [PositionBased((1.0, 0.5, 0.3)), Cascade(3)])
def test_residuals_are_zero_at_the_truth(model):
    """Whatever is shown: attraction phi . theta, 4,000 users, mean within 5 standard errors; away
    from it the mean is the Gram matrix times the step, which clicks that are counted twice, or
    looks that are not, would spoil."""
    rng, n = np.random.default_rng(0), 4000
    statistic = ListResiduals(model=model, taste=2)
    u, v = rng.choice([-1.0, 1.0], size=(n, 1, 2)), rng.normal(size=(n, 1, 3, 2))
    v /= np.linalg.norm(v, axis=-1, keepdims=True)
    truth, wrong = np.array([2.0, 0.1, -0.15]), np.array([1.5, -0.1, 0.0])
    attraction = features(u, v, 0.2) @ truth
    clicks, _ = model.clicked(attraction[:, 0], rng.random((n, 2, 3)))
    for theta in (truth, wrong):
        rounds = np.broadcast_to(theta, (n, 1, 3)), u, v, clicks[:, None]
        z, G = statistic.unpack(statistic.total(*rounds))
        expected = statistic.gram_total * G[0] @ (truth - theta) / n
        assert np.abs(z[0] / n - expected).max() < 5 / sqrt(n)
    assert np.abs(expected).max() > 0.1


@each("length", [1, 2, 3, 5, 10])
def test_a_user_moves_counts_by_root_m_plus_one(length):
    """All clicks on a list, enumerated, and nobody's: sqrt(m + 1) in L2, m + 1 in L1, attained; of
    positions sqrt(2)."""
    statistic = ListCounts(length, length)
    patterns = np.array([*np.eye(length), np.zeros(length), np.full(length, np.nan)])
    if length == 3:
        patterns = np.array(list(product([0, 1], repeat=3)), float)
    lists = np.broadcast_to(np.arange(length), (1, len(patterns), length))
    found = statistic.total(lists, patterns[None]).reshape(len(patterns), -1)
    assert pdist(found).max() == pytest.approx(statistic.sensitivity)
    assert pdist(found, "cityblock").max() == pytest.approx(statistic.l1_sensitivity)
    if length <= 5:
        clicks = np.array(list(product([0.0, 1.0], repeat=length)))
        found = PositionCounts(length).total(clicks[None])
        assert pdist(found).max() == pytest.approx(PositionCounts(length).sensitivity)


def test_broken_sensitivities_are_caught_at_the_door():
    """The first user, whose list is random, is swapped in 600 replicas. Power: of such pairs 3 %
    (residuals, features as sent) to 60 % (counters of their own) exceed the claim by 1 %; that all
    of 600 miss it has probability below 2e-8. The same pairs stay within honest sensitivities. An
    audit sees about 3 of sums of signs, claimed at 2 where five positions make it 10; other faults
    move lists that differ between runs, which it sees as a blur."""
    spec = replace(LISTS, horizon=2)
    for name, config in BROKEN.items():
        with asserting(name):
            assert largest_move(*two_worlds(config, spec, (0,), replicas=600)).max() > 1.01
    for config in (ListFADE(), ListFADE(counted="clicks"), PrivateCascade(), ListExperts()):
        with asserting(config):
            assert 0.8 < check_joint_dp(config, spec, (0,), replicas=600)[0] <= 1
    spec = ListSpec(catalogue=Catalogue(6, 1), clicks=PositionBased((1.0,) * 5), horizon=12)
    report = audit(BROKEN["SumsOfSigns"], spec, runs=1000, progress=False)
    assert report.flagged
    assert report.eps_lower_gdp > 2


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
    config = ListFADE(epsilon=inf, counted="clicks", first_batch=6)
    told = config.make(PLACES, Streams([0]))
    agent = replace(config, positions="learned").make(UNTOLD, Streams([0]))
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
    config, mu = ListFADE(positions="learned"), mu_of(1.0, 1e-5)
    agent = config.make(UNTOLD, Streams([0]))
    assert agent.places.counts.stddev == pytest.approx(sqrt(2) / mu)
    assert [part.mu for part in agent.ledger.spends[0].parts] == pytest.approx([mu, mu])
    proof = certify(config, UNTOLD, accountants=False)
    assert proof.epsilon == pytest.approx(1.0, abs=1e-9)


NO_RANKERS = [[], [1.0], [[1.0], [1.0, 2.0]], [["x", 1]], [[np.nan, 0.0]], 3, np.ones((2, 2, 2))]
LEARNED = {"positions": "learned"}


@each(
    ("make", "says"),
    [
        (lambda: RankedLinUCB().make(UNTOLD, Streams([0])), "list-fade:positions=learned"),
        (lambda: PrivateCascade().make(UNTOLD, Streams([0])), "list-fade:positions=learned"),
        (lambda: ListFADE().make(UNTOLD, Streams([0])), "list-fade:positions=learned"),
        (lambda: ListFADE(**LEARNED).make(LISTS, Streams([0])), "got Cascade"),
        (lambda: ListFADE(**LEARNED, counted="mean"), "'mean' to be 'clicks'"),
        (lambda: ListFADE(counting=5), "counting=5 with positions='learned'"),
        (lambda: ListFADE(counted="mean", gram_weight=1).make(LISTS, Streams([0])), "most sqrt"),
        (lambda: PrivateCascade().make(PLACES, Streams([0])), "Expected a cascade"),
        (lambda: PrivateCascade(delta=0), "delta=0 only with"),
        (lambda: ListRecommendation(weights="hidden"), "with clicks='position' only"),
        (lambda: ListRecommendation(weights="secret"), "Expected weights='secret'"),
        *((lambda r=r: ListExperts(rankers=r), "Expected rankers=") for r in NO_RANKERS),
        (
            lambda: ListExperts(rankers=[[1.0, 0.0, 0.0]]).make(LISTS, Streams([0])),
            r"Expected ranker=.* to be 2 numbers",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(make, says):
    refused(says, make)


def test_positions_are_counted_on_the_best_items_in_any_order():
    """After nine releases, and nowhere else in these rounds: two items, both ways around. A run may
    end before."""
    config = ListFADE(**LEARNED, first_batch=2, growth=0.0, counting=40)
    agent = config.make(replace(UNTOLD, horizon=99), Streams([0]))
    u, shown = np.ones((1, 2)), []
    for t in range(66):
        shown.append(agent.act(u)[0].tolist())
        agent.update(u, np.array(shown[-1:]), np.ones((1, 2)))
        assert agent.sums._used == min(t + 1, 18) + max(t + 1 - 58, 0)
        assert agent.places.known == (t >= 57)
    assert np.unique(shown[18:58], axis=0).tolist() == sorted([shown[18], shown[18][::-1]])
    assert len(np.unique(shown[16:18], axis=0)) == 1
    world = {"n_items": 9, "length": 3, "clicks": "position", "weights": "hidden"}
    for horizon in (1, 2, 11):
        play("ListRecommendation", ListFADE(**LEARNED), horizon=horizon, env_kwargs=world)
