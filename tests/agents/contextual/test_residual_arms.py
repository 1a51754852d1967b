"""Arms by residuals: prior, spread, weights, policies in force, and a parameter recovered."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy.stats import norm

from dpbandit.agents import FADE
from dpbandit.agents.contextual.residual_arms import (
    _FLOOR,
    _SCALES,
    Forgetting,
    ResidualLaw,
    ScaleMixture,
    _clipped,
    _focus,
)
from dpbandit.base.random_streams import Streams
from dpbandit.specs.protocols import ContextualSpec

SPEC = ContextualSpec(n_actions=3, dim=4, horizon=200, reward_low=-1.0)


def test_independent_coordinates_get_their_exact_posterior():
    """Oracle: with a diagonal precision nothing is approximated; moments of likelihood times prior,
    of the weights it ends with, by sums over a fine grid and the atom at 0."""
    b, diagonal = np.array([[30.0, 0.5, -2.0, 0.1]]), np.array([4.0, 1.0, 1.0, 0.25])
    fitted, weights = ScaleMixture(1, 4), None
    for _ in range(400):  # until the weights stand still
        weights = fitted._weights.copy()
        mean, variance = fitted.fit(b, np.diag(diagonal)[None])
    scales = _SCALES / np.median(diagonal)
    x = np.linspace(-60, 60, 240_001)
    density = sum(
        w * norm.pdf(x, scale=s**0.5) for w, s in zip(weights[0, 1:], scales[1:], strict=True)
    )
    for j in range(4):
        likelihood = np.exp(b[0, j] * x - diagonal[j] * x**2 / 2 - b[0, j] ** 2 / diagonal[j] / 2)
        mass = likelihood * density * (x[1] - x[0])
        atom = weights[0, 0] * np.exp(-(b[0, j] ** 2) / diagonal[j] / 2)
        expected = (x * mass).sum() / (mass.sum() + atom)
        second = (x**2 * mass).sum() / (mass.sum() + atom)
        assert mean[0, j] == pytest.approx(expected, abs=1e-5)
        assert variance[0, j] == pytest.approx(second - expected**2, abs=1e-4)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_fits_do_not_diverge(size):
    """Nearly singular precisions, coordinates all correlated, any scale: means stay near the least
    squares on what is seen, fit after fit."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2, 30, 12)) + 10
    precision = size * rows.swapaxes(1, 2) @ rows
    truth = rng.standard_normal((2, 12)) / size**0.5
    fitted = ScaleMixture(2, 12)
    for _ in range(20):
        mean, variance = fitted.fit(np.matvec(precision, truth), precision)
    gap, scale = (np.vecdot(v, np.matvec(precision, v)) for v in (mean - truth, truth))
    assert (gap < 0.05 * scale).all()
    assert (variance >= 0).all()


def test_counts_of_the_first_release_hold_no_earlier_ones(monkeypatch):
    """Golden: fresh counts are a release minus 0.7 times the one before, which the first has not:
    variance s^2 / (c n)^2 + 1 / n, then (1 + 0.49) s^2 / (c n)^2 + 1 / n; c = 0.15, n = 10."""
    told = []

    def update(_, mean, noise, n):
        told.append(noise**2 + 1 / n)
        return np.ones(1)

    monkeypatch.setattr(ResidualLaw, "update", update)
    agent = FADE(first_batch=10, growth=0.0).make(replace(SPEC, horizon=1000), Streams([0]))
    for _ in range(20):
        agent.update(np.ones((1, 4)), np.array([0]), np.array([0.5]))
    noise = (agent._sums.stddev / 1.5) ** 2
    assert told == pytest.approx([noise + 0.1, 1.49 * noise + 0.1])


def test_spread_is_learned_from_counts():
    """Oracle: exact shares of large residuals at each threshold; from a first guess of 0.2 to
    within 8 %, a grid step, of what they come from."""
    sds = np.array([0.01, 0.05, 0.3])
    law = ResidualLaw(3, 1.0)
    for _ in range(30):
        law.update(2 * 2 * norm.sf(law.estimate / sds) - 1, 0.0, 1000)
    np.testing.assert_allclose(law.estimate, sds, rtol=0.08)


@pytest.mark.parametrize("level", [-0.97, 0.0, 0.4])
def test_the_level_of_rewards_is_found_from_far_away(level):
    """Oracle: exact expectations of what is released of normal rewards, spread by 1 to 30 % of half
    the range; after three looks directions are summed, and in the end the level is off by less than
    a fifth of the spread. Were the reach too short, or what was learned forgotten, it would not."""
    sds = np.array([0.01, 0.05, 0.3])
    law = ResidualLaw(3, 1.0, told=False, soft=0.5)
    assert not law.share.any()
    for _ in range(30):
        threshold, at, _, reach, share = law.reference
        m = level - at
        large = 1 - 2 * (norm.cdf((threshold - m) / sds) - norm.cdf((-threshold - m) / sds))
        slope = law.update(large, 0.02, 1000, _clipped(m, sds, reach), 0.01)
        assert (slope[share == 0] == 0).all()
    assert law.share.all()
    assert (np.abs(law.level - level) < 0.2 * sds).all()
    h = 1e-6  # the slope is a derivative
    up, down = (_clipped(level - law.level + e, sds, law.reference[2]) for e in (h, -h))
    slope = law.update(large, 0.02, 1000, _clipped(level - at, sds, reach), 0.01)
    np.testing.assert_allclose(slope, (up - down) / (2 * h), rtol=0.15)


def test_closed_form_of_clipped_normals():
    """Oracle: the mean over 10^5 quantiles."""
    z = norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    for m, s, w in ((0.0, 1.0, 0.5), (0.3, 0.2, 0.1), (-2.0, 0.5, 3.0)):
        assert _clipped(m, s, w) == pytest.approx(np.clip((m + s * z) / w, -1, 1).mean(), abs=1e-5)


def test_weights_go_where_something_is_left_to_learn():
    """Golden: mean square 1, no less than the floor; equal uncertainties get equal weights; a
    coordinate that is certain gets the floor, the other all the rest."""
    variance = np.array([[[1.0, 1.0], [1.0, 0.0], [3.0, 2.0]]])
    squared = _focus(variance, np.full((1, 1, 1), 10.0), 1.0) ** 2
    np.testing.assert_allclose(squared.mean(axis=-1), 1, atol=1e-9)
    np.testing.assert_allclose(squared[0, 0], 1, atol=1e-9)
    np.testing.assert_allclose(squared[0, 1], [2 - _FLOOR, _FLOOR], atol=1e-9)
    assert squared[0, 2, 0] > 1 > squared[0, 2, 1]


@pytest.mark.parametrize("delay", [0, 60])
def test_matrices_are_of_the_policies_that_were_in_force(delay, monkeypatch):
    """Oracle: the loop itself, in which each round writes down after how many releases it acted;
    the matrix of policy j is j times the identity."""
    spec = replace(SPEC, delay=delay)
    agent = FADE(model="arms", first_batch=7).make(spec, Streams([0]))
    rng, acted, found = np.random.default_rng(0), [], []
    agent._moments = [np.zeros((1, 3, 4, 4))]
    agent._selected = lambda theta: np.full((1, 3, 4, 4), float(len(agent._ends)))
    batch = agent._of_the_batch
    monkeypatch.setattr(agent, "_of_the_batch", lambda: found.append(batch()) or found[-1])
    x = rng.standard_normal((200, 1, 4))
    for t in range(200):
        acted.append(len(agent._ends))
        action = agent.act(x[t])
        if t >= delay:
            agent.update(x[t - delay], action, rng.uniform(-1, 1, 1))
    starts = [0, *agent._ends[:-1]]
    for start, end, (moments, n) in zip(starts, agent._ends, found, strict=True):
        assert n == end - start
        assert moments[0, 0, 0, 0] == pytest.approx(np.mean(acted[start:end]))
    assert len(found) > 5


def test_parameters_are_recovered_without_privacy():
    """Oracle: linear rewards with noise, isotropic contexts; after 8,000 users at epsilon = inf
    parameters are within a tenth, although arms were chosen greedily and only signs were summed."""
    spec = ContextualSpec(n_actions=2, dim=4, horizon=8_000, reward_low=-2.0, reward_high=2.0)
    agent = FADE(epsilon=inf).make(spec, Streams([0, 1]))
    rng, truth = np.random.default_rng(7), np.array([[0.5, -0.3, 0.0, 0.2], [0.1, 0.4, -0.4, 0.0]])
    for _ in range(7_999):
        x = rng.standard_normal((2, 4))
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        action = agent.act(x)
        mean = np.vecdot(truth[action], x)
        agent.update(x, action, mean + 0.2 * rng.standard_normal(2))
    np.testing.assert_allclose(agent._theta, [truth] * 2, atol=0.1)


def test_parameters_stay_in_their_ball(monkeypatch):
    """Whatever a fit says: half the range of rewards, since contexts are taken for unit vectors."""
    agent = FADE(first_batch=5).make(SPEC, Streams([0, 1]))
    far = np.full((2, 12), 1e6), np.ones((2, 12))
    monkeypatch.setattr(agent._posterior, "fit", lambda *_: far)
    for _ in range(5):
        agent.update(np.ones((2, 4)), np.zeros(2, np.int64), np.ones(2))
    np.testing.assert_allclose(np.linalg.norm(agent._theta, axis=-1), SPEC.half_range)


def test_the_best_predictor_of_releases_is_believed_and_forgets_what_has_changed():
    """Golden: 30 exact releases 3 x of one x, then 30 of -x, noise 1: the estimate is x to 1 % and
    then -x to 10 %, in one replica; in the other, where nothing changes, every release counts, 9
    each. It would catch evidence with a wrong sign, and a rate that is given up for good."""
    memory, mean = Forgetting(2, 2, 1.0), np.zeros((2, 2))
    x, L = np.array([0.6, -0.3]), np.tile(9 * np.eye(2), (2, 1, 1))
    for k in range(60):
        truth = np.array([x if k < 30 else -x, x])
        b, precision = memory.add(9 * truth, L, mean)
        mean = np.linalg.solve(precision + np.eye(2), b[..., None])[..., 0]
        if k == 29:
            np.testing.assert_allclose(mean, truth, rtol=0.01)
    np.testing.assert_allclose(mean, [-x, x], rtol=0.1)
    np.testing.assert_allclose(precision[1], 60 * 9 * np.eye(2))
    assert precision[0, 0, 0] < 30 * 9
