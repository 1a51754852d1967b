"""Simulated users, of a generalised linear bandit and of recommendations, are as its page says."""

from itertools import pairwise
from math import asin, pi, sqrt

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

from dpbandit.base.random_streams import Streams
from dpbandit.envs import GLMBandit, Recommendation
from tests.each import each

KINDS = ("sphere", "ball", "sparse", "ar1", "signs")
LINKS = ("identity", "logistic", "probit", "poisson")
DUAL = {1: np.inf, 2: 2, np.inf: 1}
LIMIT = 5.0  # |z| beyond it: probability 6e-7 under the null


def users(count=200, replicas=3, seed=0, kind=GLMBandit, **arguments):
    """A started problem and its first `count` users: context, mean and reward tables."""
    problem = kind(**arguments)
    problem.reset(Streams([(seed, r) for r in range(replicas)]))
    return problem, problem._users(count)


def play(actions, replicas=2, seed=0, **arguments):
    """Rewards, expected, oracle and contexts, (T, R, ...), of playing `actions` (T,)."""
    problem = GLMBandit(**arguments)
    problem.reset(Streams([(seed, r) for r in range(replicas)]))
    seen = [(problem.context(), *problem.step(np.full(replicas, a))[:3]) for a in actions]
    context, reward, expected, oracle = (np.array(part) for part in zip(*seen, strict=True))
    return reward, expected, oracle, context, problem


@each("order", [1, 2, np.inf])
@each("contexts", KINDS)
def test_contexts_have_the_declared_norm(contexts, order):
    """Exactly 1 on the sphere, U^(1/dim) in the ball: then norm^dim is uniform, mean 1/2. z test,
    n = 15,000: false alarm 6e-7; 3 % off is caught (asserted)."""
    _, drawn = users(5000, contexts=contexts, context_order=order, dim=8, sparsity=3)
    norm = np.linalg.norm(drawn.context, ord=order, axis=-1)
    if contexts == "sparse":  # on as many coordinates, each as often: 10 % off is caught
        support = drawn.context != 0
        assert (support.sum(axis=-1) == 3).all()
        stderr = sqrt(3 / 8 * 5 / 8 / 15_000)
        assert np.abs(support.mean(axis=(0, 1)) - 3 / 8).max() < LIMIT * stderr < 0.1 * 3 / 8
    if contexts != "ball":
        np.testing.assert_allclose(norm, 1, rtol=1e-12)
        return
    stderr = sqrt(1 / 12 / norm.size)
    assert norm.max() <= 1 + 1e-12
    assert abs((norm**8).mean() - 0.5) < LIMIT * stderr < 0.03 * 0.5


@each(("correlation", "lag"), [(0.5, 1), (0.5, 2), (-0.7, 1), (0.0, 1)])
def test_ar1_correlation(correlation, lag):
    """Golden: scaling keeps signs, P(same sign, lag k) = 1/2 + asin(correlation^k) / pi. z test,
    n = 60,000: false alarm 6e-7; a correlation off by 0.08 is caught (asserted)."""
    _, drawn = users(20_000, contexts="ar1", correlation=correlation, dim=5)
    share = (drawn.context[..., 1] * drawn.context[..., 1 + lag] > 0).mean()

    def z(truth):
        p = 0.5 + asin(truth**lag) / pi
        return abs(share - p) / sqrt(p * (1 - p) / 60_000)

    assert z(correlation) < LIMIT < z(correlation + 0.08)


@each("order", [1, 2, np.inf])
@each("kind", ["dense", "sparse", "sparse-signs", "sparse-ones"])
def test_parameters_have_dual_norm_signal(kind, order):
    """Recovered from means alone (identity link, least squares), then norm, support and signs."""
    arguments = {"dim": 6, "n_actions": 4, "parameters": kind, "sparsity": 2, "signal": 0.7}
    _, drawn = users(context_order=order, **arguments)
    for context, mean in zip(*(part.swapaxes(0, 1) for part in drawn[:2]), strict=True):
        theta = np.linalg.lstsq(context, mean)[0].T.round(10)
        np.testing.assert_allclose(np.linalg.norm(theta, DUAL[order], axis=1), 0.7)
        size = np.sort(np.abs(theta), axis=1)[:, ::-1]
        assert ((theta != 0).sum(axis=1) == (6 if kind == "dense" else 2)).all()
        if kind in ("sparse-signs", "sparse-ones"):
            np.testing.assert_allclose(size[:, 0], size[:, 1])
        assert kind != "sparse-ones" or (theta >= 0).all()
        assert len(np.unique(theta, axis=0)) > 1  # the arms differ


@each("order", [1, 2, np.inf])
def test_drawn_parameters_fall_where_they_may(order):
    """Golden: of 4 draws from 6 coordinates P(no two coincide) = 6 5 4 3 / 6^4 = 5 / 18. z test,
    n = 3,000: false alarm 6e-7; 0.06 on that probability is caught (asserted)."""
    arguments = {"dim": 6, "n_actions": 5, "parameters": "sparse-draws", "sparsity": 4}
    problem, drawn = users(20, 600, context_order=order, signal=0.8, **arguments)
    theta = problem._theta
    assert set(theta.ravel().tolist()) == {0.0, 0.2}
    size = (theta > 0).sum(axis=-1)
    assert (size.min(), size.max()) == (1, 4)
    p = 5 / 18
    assert abs((size == 4).mean() - p) < LIMIT * sqrt(p * (1 - p) / 3000) < 0.06
    assert np.abs(drawn.mean).max() <= 0.8 + 1e-12


@each("shared", [False, True])
@each("link", LINKS)
def test_expected_rewards_are_exact(link, shared):
    """Oracle: scipy.stats, the capped Poisson summed term by term."""
    arguments = {"link": link, "shared": shared, "signal": 3.0, "cap": 4, "n_actions": 3}
    problem, drawn = users(**arguments)
    rows = "nrkd,rd->nrk" if shared else "nrd,rkd->nrk"
    theta = problem._theta[:, 0] if shared else problem._theta
    x = np.einsum(rows, drawn.context, theta)
    counts = np.arange(60)
    poisson = stats.poisson.pmf(counts, np.exp(x)[..., None]) @ np.minimum(counts, 4)
    truth = {"identity": x, "logistic": 1 / (1 + np.exp(-x)), "probit": stats.norm.cdf(x)}
    np.testing.assert_allclose(drawn.mean, truth.get(link, poisson), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("link", "law"), [*((link, "gaussian") for link in LINKS), ("identity", "uniform")]
)
def test_realised_rewards_average_to_the_expected(link, law):
    """z test over 60,000 independent rewards of one arm: false alarm 6e-7; 0.02 on the mean is
    caught for every law (asserted)."""
    arguments = {"link": link, "noise_law": law, "cap": 2, "signal": 1.0, "noise": 0.3}
    problem, drawn = users(20_000, **arguments)
    surprise = (drawn.reward - drawn.mean)[..., 0].ravel()
    stderr = surprise.std() / sqrt(surprise.size)
    assert abs(surprise.mean()) < LIMIT * stderr < 0.02
    spec = problem.spec
    assert spec.reward_low <= drawn.reward.min() < drawn.reward.max() <= spec.reward_high
    if link != "identity":
        assert np.isin(drawn.reward, np.arange(spec.reward_high + 1)).all()


@each("law", ["gaussian", "uniform"])
def test_noise_has_its_size_and_ends_where_it_should(law):
    """Gaussian noise is cut at 4 stddevs, which takes 0.1 % off the variance; uniform at sqrt(3).
    z test on squares, n = 60,000: false alarm 6e-7; 3 % off is caught (asserted)."""
    _, drawn = users(20_000, noise=0.2, noise_law=law)
    noise = ((drawn.reward - drawn.mean)[..., 0] / 0.2).ravel()
    variance, kurtosis = (1.0, 9 / 5) if law == "uniform" else (stats.truncnorm(-4, 4).var(), 3)
    stderr = sqrt((kurtosis - 1) / noise.size)
    assert abs((noise**2).mean() - variance) < LIMIT * stderr < 0.06
    edge = sqrt(3) if law == "uniform" else 4
    assert 0.85 * edge < np.abs(noise).max() <= edge * (1 + 1e-9)


def test_piecewise_drift_changes_exactly_at_multiples():
    """Every stretch of 20 rounds is one linear model; any window across an edge is not."""
    _, drawn = users(80, replicas=1, drift="piecewise", drift_every=20, dim=3, noise=0.0)
    context, mean = drawn.context[:, 0], drawn.mean[:, 0]

    def misfit(first):
        part = slice(first, first + 20)
        theta = np.linalg.lstsq(context[part], mean[part])[0]
        return np.abs(context[part] @ theta - mean[part]).max()

    misfits = np.array([misfit(first) for first in range(61)])
    assert (misfits[::20] < 1e-12).all()
    assert (np.delete(misfits, np.arange(0, 61, 20)) > 1e-3).all()


@each("order", [1, 2, np.inf])
def test_walking_parameters_keep_their_norm_and_move_a_little(order):
    arguments = {"drift": "walk", "drift_rate": 0.05, "context_order": order, "signal": 0.7}
    problem, _ = users(1, dim=30, **arguments)
    path = [problem._theta] + [problem._users(1) and problem._theta for _ in range(50)]
    np.testing.assert_allclose(np.linalg.norm(path, DUAL[order], axis=-1), 0.7)
    for before, after in pairwise(path):
        step = np.linalg.norm(after - before, axis=-1) / np.linalg.norm(before, axis=-1)
        assert ((step > 0.015) & (step < 0.15)).all()


@each(
    "arguments",
    [
        *({"contexts": kind} for kind in KINDS),
        *({"link": link, "shared": True} for link in LINKS),
        {"drift": "walk"},
        {"drift": "piecewise", "drift_every": 7, "parameters": "sparse"},
        {"parameters": "sparse-draws"},
    ],
)
def test_block_sizes_change_speed_never_values(arguments, monkeypatch):
    """The tables ahead and the streams ahead at 1, an odd number and the default."""
    default = play(np.arange(40) % 5, **arguments)
    for tables, streams in ((1, 1), (1, 101), (333, 17)):
        with monkeypatch.context() as patch:
            patch.setattr("dpbandit.envs.contextual.problems._VALUES_AHEAD", tables)
            patch.setattr("dpbandit.base.random_streams._VALUES_AHEAD", streams)
            run = play(np.arange(40) % 5, **arguments)
        for ours, theirs in zip(run[:4], default[:4], strict=True):
            assert (ours == theirs).all()


def slates(problem, context):
    """The catalogue index of every candidate, (n, R, K), read off its features."""
    taste = problem.taste
    v = context[..., 1 : 1 + taste] / context[..., :1]  # (n, R, K, taste)
    distance = np.linalg.norm(v[:, :, :, None] - problem._items[None, :, None], axis=-1)
    assert distance.min(axis=-1).max() < 1e-12  # every candidate is in the catalogue
    return distance.argmin(axis=-1)


def test_features_and_clicks_follow_the_stated_law():
    """phi ~ (1, v, u * v): |v| = 1, and one u of norm sqrt(taste) explains the whole slate; clicks
    by the formula of the docstring, term by term."""
    problem, drawn = users(kind=Recommendation, taste=4)
    np.testing.assert_allclose(np.linalg.norm(drawn.context, axis=-1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(problem._items, axis=-1), 1, rtol=1e-12)
    constant, v, uv = np.split(drawn.context, [1, 5], axis=-1)
    assert (constant > 0).all()
    u = uv / v
    np.testing.assert_allclose(u, np.broadcast_to(u[:, :, :1], u.shape), rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(u[:, :, 0], axis=-1), 2, rtol=1e-6)
    problem, drawn = users(kind=Recommendation, base_rate=0.3, appeal=2.0, taste=3)
    signal = np.einsum("nrkd,rd->nrk", drawn.context, problem._theta)
    truth = expit(logit(0.3) + 2.0 * sqrt(7) * signal)
    np.testing.assert_allclose(drawn.mean, truth, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(problem._theta, axis=-1), 1, rtol=1e-12)


def test_slates_hold_distinct_items_of_the_catalogue():
    """A whole catalogue in a slate holds each once; of 12 items each is on as many slates: z test,
    false alarm 7e-6 together; 15 % off is caught (asserted)."""
    for n_actions, n_items in ((6, 8), (7, 7)):
        problem, drawn = users(kind=Recommendation, n_actions=n_actions, n_items=n_items)
        items = np.sort(slates(problem, drawn.context), axis=-1)
        assert (np.diff(items, axis=-1) > 0).all()
    assert (items == np.arange(7)).all()
    problem, drawn = users(4000, kind=Recommendation, replicas=1, n_actions=3, n_items=12)
    share = np.bincount(slates(problem, drawn.context).ravel(), minlength=12) / 4000
    stderr = sqrt(0.25 * 0.75 / 4000)
    assert np.abs(share - 0.25).max() < LIMIT * stderr < 0.15 * 0.25
