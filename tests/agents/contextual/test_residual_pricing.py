"""Pricing on residuals: the likelihood, the imagined customers, and whose policy was in force."""

from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import multivariate_normal

from dpbandit.agents import FADE
from dpbandit.agents.contextual.demand import demand_rows
from dpbandit.agents.contextual.moments import in_force
from dpbandit.agents.contextual.released_scores import BALL, ReleasedScores, Scores, faded
from dpbandit.agents.contextual.residual_pricing import (
    PRIOR,
    AimedScores,
    ImaginedCustomers,
    falling,
)
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.residuals import score_lengths
from tests.agents.contextual.fade_variants import PRICES
from tests.each import each

FADED = np.array([[50.0, 0, 0], [35, 60, 0], [24.5, 42, 70]])
NOISE = FADED @ np.diag([1 / 50, 1 / 60, 1 / 70]) @ FADED.T / 6 + 36 * np.eye(3)
"""Three batches of 50, 60 and 70 users that fade by 0.7, with privacy noise of stddev 6."""


def small_case(truth, seed=0):
    """The likelihood of three releases, and its negative logarithm, written anew."""
    rng = np.random.default_rng(seed)
    phi = rng.uniform(-0.5, 0.5, (1, 3, 40, 3))
    references = np.array([[0.0, 0, 0], [1, 0, -1], [0.5, 0.5, -2]])
    p = expit(np.einsum("rbnd,bd->rbn", phi, references))

    def mean(theta):
        scores = np.zeros((3, 3))
        for b in range(3):
            for row, chance in zip(phi[0, b], p[0, b], strict=True):
                length = np.linalg.norm(row) * max(chance, 1 - chance)
                scores[b] += (expit(row @ theta) - chance) / length * row / 40
        return FADED @ scores

    released = mean(truth) + rng.multivariate_normal(np.zeros(3), NOISE, 3).T

    def loss(theta):
        noise = multivariate_normal(np.zeros(3), NOISE)
        likelihood = noise.logpdf((released - mean(theta)).T).sum()
        return -likelihood + theta @ theta / (2 * PRIOR**2)

    whiten = np.linalg.inv(np.linalg.cholesky(NOISE))
    scores = ReleasedScores(
        Scores(phi, p, score_lengths(phi, p), phi),
        whiten @ FADED,
        (whiten @ released)[None],
        ridge=np.full(3, PRIOR**-2),
        admissible=falling,
    )
    return scores, loss, mean


@pytest.mark.parametrize("truth", [[1.0, -0.5, -2.0], [4.0, 3.0, -6.0]])
def test_the_fit_is_the_mode_of_a_likelihood_written_anew(truth):
    """Oracle: scipy's normal density and minimiser, sums user by user; the precision by numbers."""
    scores, loss, mean = small_case(np.array(truth))
    theta, precision = scores.maximise(np.zeros((1, 3)), 8)
    found = minimize(
        loss, np.array(truth), method="L-BFGS-B", bounds=[(None,) * 2] * 2 + [(None, -0.05)]
    )
    assert loss(theta[0]) <= found.fun + 1e-3
    np.testing.assert_allclose(theta[0], found.x, atol=0.05)
    steps = [mean(theta[0] + h) - mean(theta[0] - h) for h in 1e-5 * np.eye(3)]
    slopes = np.stack(steps, axis=-1) / 2e-5  # (releases, coordinates, parameters)
    expected = np.einsum("kdi,kl,ldj->ij", slopes, np.linalg.inv(NOISE), slopes)
    np.testing.assert_allclose(precision[0], expected + np.eye(3) / PRIOR**2, rtol=1e-5, atol=1e-7)


def test_steps_that_overshoot_are_shortened():
    """Oracle: scipy's minimum, within 0.05, of releases that no parameter explains; full steps
    alone end 0.8 above it."""
    scores, _, _ = small_case(np.array([4.0, 3.0, -6.0]))
    scores._released = 3 * scores._released
    theta, _ = scores.maximise(np.zeros((1, 3)), 8)
    found = minimize(
        lambda x: scores._objective(x[None])[0],
        theta[0],
        method="L-BFGS-B",
        bounds=[(None,) * 2] * 2 + [(None, -0.05)],
    )
    assert scores._objective(theta)[0] <= found.fun + 0.05


def test_releases_without_noise_are_not_taken_at_their_word(monkeypatch):
    """Golden: at epsilon = inf the fits see noise of variance 2^2, at epsilon 1 their own."""
    seen = []

    def spied(ends, fade, stddev):
        seen.append(stddev)
        return faded(ends, fade, stddev)

    monkeypatch.setattr("dpbandit.agents.contextual.residual_pricing.faded", spied)
    for epsilon in (inf, 1.0):
        agent = FADE(epsilon=epsilon, first_batch=2).make(PRICES, Streams([0]))
        for _ in range(2):
            agent.update(np.zeros((1, 2)), np.array([0]), np.array([1.0]))
    assert seen == [2.0, agent._sums.stddev]


@each("size", [0.0, 1e3, 1e9, 1e150])
@each("start", [0.0, 40.0, 1e200])
def test_nothing_diverges(size, start):
    """Whatever is released and from wherever: in the ball, falling, and no worse than the start."""
    scores, _, _ = small_case(np.array([1.0, 0, -1]))
    scores._released = size * np.array([[[1.0, -2, 3], [-3, 2, 1], [1, 1, 1]]])
    begin = np.full((1, 3), start)
    theta, precision = scores.maximise(begin, 8)
    assert np.linalg.norm(theta) <= BALL * (1 + 1e-12)
    assert theta[0, -1] < 0
    assert scores._objective(theta) <= scores._objective(falling(begin))
    assert (np.linalg.eigvalsh(precision) >= 0.99 / PRIOR**2).all()


def test_replicas_that_stand_still_leave_the_others_alone():
    """Seven, of which some stop or halve their steps while others go on: each as if it were alone,
    to the last bit. Would catch one that is moved by the numbers of another."""
    cases = [small_case(np.array([1.0, s, -s]), seed=s)[0] for s in range(7)]
    for s, one in enumerate(cases):
        one._released = one._released * 4.0**s
    together = ReleasedScores(
        Scores(*(np.concatenate(v) for v in zip(*(parts_of(one) for one in cases), strict=True))),
        cases[0]._design,
        np.concatenate([one._released for one in cases]),
        ridge=cases[0]._ridge,
        admissible=falling,
    )
    theta, precision = together.maximise(np.zeros((7, 3)), 12)
    for r, one in enumerate(cases):
        alone = one.maximise(np.zeros((1, 3)), 12)
        np.testing.assert_array_equal(theta[r], alone[0][0])
        np.testing.assert_array_equal(precision[r], alone[1][0])


def parts_of(fit):
    return fit._phi, fit._p, score_lengths(fit._phi, fit._p), fit._v


def test_imagined_customers_have_the_released_moments():
    """Statistical: exact releases of a law inside the ball; the means of 400 x 300 customers agree
    to 5 standard errors (0.3 / sqrt(120,000)) with the mean and to 0.01 with the covariance."""
    mean, covariance = np.array([0.3, -0.2]), np.array([[0.03, 0.01], [0.01, 0.02]])
    customers = ImaginedCustomers(Streams(range(400)), 2)
    users = FADED.sum(axis=1)
    second = covariance + np.outer(mean, mean)
    first = np.broadcast_to(users[:, None] * mean, (400, 3, 2))
    made = customers(
        first, np.broadcast_to(users[:, None, None] * second, (400, 3, 2, 2)), users, NOISE
    )
    assert np.linalg.norm(made, axis=-1).max() <= 1 + 1e-12
    np.testing.assert_allclose(made.mean(axis=(0, 1)), mean, atol=5e-3)
    np.testing.assert_allclose(np.cov(made.reshape(-1, 2).T), covariance, atol=3e-3)


@pytest.mark.parametrize("delay", [0, 7, 60])
def test_customers_are_shown_the_policy_that_was_in_force(delay):
    """Oracle: the loop itself, in which each round writes down after how many releases it acted."""
    spec = replace(PRICES, delay=delay)
    agent = FADE(first_batch=7).make(spec, Streams([0]))
    rng, acted = np.random.default_rng(0), []
    x = rng.uniform(-0.5, 0.5, (200, 1, 2))
    for t in range(200):
        acted.append(len(agent._ends))
        action = agent.act(x[t])
        if t >= delay:
            agent.update(x[t - delay], action, np.ones(1))
    played = in_force(agent._ends, delay, 300)
    starts = [0, *agent._ends[:-1]]
    for start, end, policies in zip(starts, agent._ends, played, strict=True):
        expected = [acted[int(start + (i + 0.5) / 300 * (end - start))] for i in range(300)]
        np.testing.assert_array_equal(policies, expected)
    assert len(starts) > 5


def test_steep_demand_is_learned_without_privacy():
    """Statistical: utility falls by 17 from the lowest price to the highest; at epsilon = inf 5
    replicas lose less than 2 % of the best prices' profit (random prices: 48 %)."""
    truth, rng = np.array([6.0, 2.0, -12.0]), np.random.default_rng(3)
    spec = replace(PRICES, horizon=3000)
    agent = FADE(epsilon=inf).make(spec, Streams(range(5)))
    for _ in range(2999):
        x = rng.uniform(-0.7, 0.7, (5, 2))
        action = agent.act(x)
        sale = expit(demand_rows(spec, x) @ truth)[np.arange(5), action]
        agent.update(x, action, spec.margins[action] * (rng.random(5) < sale))
    x = rng.uniform(-0.7, 0.7, (500, 5, 2))
    profit = np.array([spec.margins * expit(demand_rows(spec, one) @ truth) for one in x])
    played = np.array([agent.scores(one).argmax(axis=1) for one in x])
    earned = np.take_along_axis(profit, played[..., None], -1)
    best = profit.max(axis=-1).mean()
    assert earned.mean() > 0.98 * best
    assert profit.mean() < 0.6 * best


def test_scores_are_aimed_where_rows_vary():
    """Golden: rows of second moment diag(3, 1) and floor 2 go along (phi_1 / sqrt 5, phi_2 / sqrt
    3); a batch keeps the aim that was in force, and the first has none."""
    aimed = AimedScores(1, 2)
    phi = np.array([[[sqrt(6), 0.0], [0.0, sqrt(2)]]])  # (R, N, D)
    np.testing.assert_array_equal(aimed.along(phi[:, 0]), phi[:, 0])
    aimed.batch_ends()
    aimed.aim(phi)
    aimed.batch_ends()
    expected = phi[0] / np.sqrt([5, 3])
    np.testing.assert_allclose(aimed.along(phi[:, 0]), expected[:1], rtol=1e-12)
    batches = aimed.of_batches(np.stack([phi, phi], axis=1))
    np.testing.assert_allclose(batches[0], [phi[0], expected], atol=1e-12)


@pytest.mark.parametrize("features", ["additive", "interactions"])
def test_customers_who_differ_in_what_a_price_costs_them(features):
    """Statistical: of half of the customers few buy, at any price, of the others many but at the
    highest. With interactions 10 replicas earn 95 % of the best prices' profit at epsilon 4, with
    one slope for everybody not even 90 %: less demand is then taken for a lower best price."""
    truth, rng = np.array([-0.5, 1.0, -2.55, -2.45]), np.random.default_rng(3)
    spec = replace(PRICES, horizon=1500)
    agent = FADE(epsilon=4.0, features=features).make(spec, Streams(range(10)))

    def demand(x):
        return expit(2 * demand_rows(spec, x, "interactions") @ truth)

    for _ in range(1499):
        x = np.column_stack([np.full(10, 0.7), rng.choice([-0.7, 0.7], 10)])
        action = agent.act(x)
        sale = demand(x)[np.arange(10), action]
        agent.update(x, action, spec.margins[action] * (rng.random(10) < sale))
    earned = best = 0.0
    for sign in (-0.7, 0.7):
        x = np.column_stack([np.full(10, 0.7), np.full(10, sign)])
        profit = spec.margins * demand(x)
        earned += profit[np.arange(10), agent.scores(x).argmax(axis=1)].mean()
        best += profit.max(axis=1).mean()
    assert (earned > 0.95 * best) == (features == "interactions")
    assert (earned < 0.90 * best) == (features == "additive")


def test_draws_that_rise_in_the_price_are_mirrored(monkeypatch):
    """None is moved to the least slope, where half of all draws as wide as these would be."""
    agent = FADE(epsilon=1.0, first_batch=5).make(PRICES, Streams(range(200)))
    wide = np.tile([0.0, 0.0, -0.1], (200, 1)), np.tile(np.eye(3) / 25, (200, 1, 1))
    monkeypatch.setattr(agent, "_posterior", lambda: wide)
    for _ in range(5):
        agent.update(np.zeros((200, 2)), np.zeros(200, np.int64), np.zeros(200))
    assert (agent._played[:, -1] == -0.05).mean() < 0.1
