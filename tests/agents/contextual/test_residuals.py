"""FADE for arms, prices and slates: fits of released residuals, simulated users, what it learns."""

from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

from dpbandit.agents import FADE
from dpbandit.agents.contextual.demand import demand_rows
from dpbandit.agents.contextual.fade_arms import (
    _SCALES,
    _WEIGHT_FLOOR,
    Forgetting,
    ResidualLaw,
    ScaleMixture,
    _clipped,
    _focus,
)
from dpbandit.agents.contextual.fade_prices import (
    PRIOR,
    AimedScores,
    ImaginedCustomers,
    falling,
    min_width,
)
from dpbandit.agents.contextual.fade_slates import ImaginedSlates
from dpbandit.agents.contextual.fading import in_force
from dpbandit.agents.contextual.released_scores import (
    MAX_NORM,
    Counts,
    Fit,
    ReleasedScores,
    Scores,
    faded,
)
from dpbandit.agents.contextual.shrunk_effects import WIDTHS, averaged, ridge_of
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.residuals import score_lengths
from dpbandit.specs.protocols import ContextualSpec
from tests.agents.contextual.runs import PRICES
from tests.each import each, in_turn
from tests.slopes import differences

SLATES = ContextualSpec(n_actions=4, dim=3, horizon=200, shared=True, link="logistic")
ONE = slice(0, 1)
SPEC = ContextualSpec(n_actions=3, dim=4, horizon=200, reward_low=-1.0)


def test_independent_coordinates_get_their_exact_posterior():
    """Oracle: likelihood times prior, of the weights it ends with, by sums over a fine grid and the
    atom at 0: with a diagonal precision nothing is approximated."""
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


@each("size", [1e-9, 1.0, 1e9])
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
    noise = (agent.sums.stddev / 1.5) ** 2
    assert told == pytest.approx([noise + 0.1, 1.49 * noise + 0.1])


@each("level", [-0.97, 0.0, 0.4])
def test_spread_and_level_of_rewards_are_found_from_far_away(level):
    """Oracle: exact shares of large residuals and clipped means, from a guess in the middle of the
    range; after three looks directions are summed, and in the end the level is off by less than a
    fifth of the spread: not if the reach is too short, or what was learned is forgotten. Where the
    level is told the spread is that, from 0.2 to within 8 %, a grid step."""
    z, sds = norm.ppf((np.arange(100_000) + 0.5) / 100_000), np.array([0.01, 0.05, 0.3])
    for m, s, w in ((0.0, 1.0, 0.5), (0.3, 0.2, 0.1), (-2.0, 0.5, 3.0)):
        assert _clipped(m, s, w) == pytest.approx(np.clip((m + s * z) / w, -1, 1).mean(), abs=1e-5)
    law = ResidualLaw(3, 1.0)
    for _ in range(30):
        law.update(2 * 2 * norm.sf(law.estimate / sds) - 1, 0.0, 1000)
    np.testing.assert_allclose(law.estimate, sds, rtol=0.08)
    law = ResidualLaw(3, 1.0, level_known=False, soft=0.5)
    assert not law.share.any()
    for _ in range(30):
        threshold, at, _, reach, share = law.reference.values()
        m = level - at
        large = 1 - 2 * (norm.cdf((threshold - m) / sds) - norm.cdf((-threshold - m) / sds))
        slope = law.update(large, 0.02, 1000, _clipped(m, sds, reach), 0.01)
        assert (slope[share == 0] == 0).all()
    assert law.share.all()
    assert (np.abs(law.level - level) < 0.2 * sds).all()
    h = 1e-6  # the slope is a derivative
    up, down = (_clipped(level - law.level + e, sds, law.reference["width"]) for e in (h, -h))
    slope = law.update(large, 0.02, 1000, _clipped(level - at, sds, reach), 0.01)
    np.testing.assert_allclose(slope, (up - down) / (2 * h), rtol=0.15)


def test_weights_go_where_something_is_left_to_learn():
    """Golden: mean square 1, no less than the floor; equal uncertainties get equal weights; a
    coordinate that is certain gets the floor, the other all the rest."""
    variance = np.array([[[1.0, 1.0], [1.0, 0.0], [3.0, 2.0]]])
    squared = _focus(variance, np.full((1, 1, 1), 10.0), 1.0) ** 2
    np.testing.assert_allclose(squared.mean(axis=-1), 1, atol=1e-9)
    np.testing.assert_allclose(squared[0, 0], 1, atol=1e-9)
    np.testing.assert_allclose(squared[0, 1], [2 - _WEIGHT_FLOOR, _WEIGHT_FLOOR], atol=1e-9)
    assert squared[0, 2, 0] > 1 > squared[0, 2, 1]


@in_turn(1, 2)
@each("high", [2.0, 4.0])
def test_parameters_are_recovered_without_privacy(high):
    """Oracle: linear rewards with noise, isotropic contexts; after 8,000 users at epsilon = inf
    parameters are within a tenth, although only signs or clipped residuals were summed, and arms
    were chosen near them: 0 / 0 in weights would have nothing learned once a level is sought."""
    spec = ContextualSpec(n_actions=2, dim=4, horizon=8_000, reward_low=-2.0, reward_high=high)
    agent = FADE(epsilon=inf).make(spec, Streams([0, 1]))
    rng, truth = np.random.default_rng(7), np.array([[0.5, -0.3, 0.0, 0.2], [0.1, 0.4, -0.4, 0.0]])
    for _ in range(7_999):
        x = rng.standard_normal((2, 4))
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        action = agent.act(x)
        mean = np.vecdot(truth[action], x)
        agent.update(x, action, mean + 0.2 * rng.standard_normal(2))
    np.testing.assert_allclose(agent._theta, [truth] * 2, atol=0.1)
    assert 0 < np.abs(agent._played - agent._theta).max() < 0.1
    assert FADE(epsilon=10.0).make(spec, Streams([0]))._missing_noise == 0  # noise explores


def test_the_best_predictor_of_releases_is_believed_and_forgets_what_has_changed():
    """Golden: after 30 exact releases 3 x of one x the estimate is x to 1 %, after 30 of -x that to
    10 %; in a replica where nothing changes every release counts, 9 each."""
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


FADED = np.array([[50.0, 0, 0], [35, 60, 0], [24.5, 42, 70]])
NOISE = FADED @ np.diag([1 / 50, 1 / 60, 1 / 70]) @ FADED.T / 6 + 36 * np.eye(3)
"""Three batches of 50, 60 and 70 users that fade by 0.7, with privacy noise of stddev 6."""


def small_case(truth, seed=0):
    """Return a likelihood of three releases and two counts, its negative logarithm as a plain
    function, and the expectations of releases, (3, 3), and of whitened counts, (2,)."""
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

    groups = rng.uniform(-0.5, 0.5, (1, 2, 40, 3))

    def counted(theta):
        return np.array([4 * np.mean([expit(row @ theta) for row in group]) for group in groups[0]])

    released = mean(truth) + rng.multivariate_normal(np.zeros(3), NOISE, 3).T
    counts = counted(truth) + rng.normal(size=2)

    def loss(theta):
        noise = multivariate_normal(np.zeros(3), NOISE)
        likelihood = noise.logpdf((released - mean(theta)).T).sum()
        likelihood -= ((counts - counted(theta)) ** 2).sum() / 2
        return -likelihood + theta @ theta / (2 * PRIOR**2)

    whiten = np.linalg.inv(np.linalg.cholesky(NOISE))
    scores = ReleasedScores(
        Scores(phi, p, score_lengths(phi, p), phi),
        whiten @ FADED,
        (whiten @ released)[None],
        ridge=np.full(3, PRIOR**-2),
        admissible=falling,
        counts=Counts(groups, 4.0, counts[None]),
    )
    return scores, loss, mean, counted


def lowest(loss, start):
    """Oracle: scipy's minimum, where demand falls in the price."""
    falling_demand = [(None, None), (None, None), (None, -0.05)]
    return minimize(loss, start, method="L-BFGS-B", bounds=falling_demand)


@each("truth", [[1.0, -0.5, -2.0], [4.0, 3.0, -6.0]])
def test_the_fit_is_the_mode_of_a_likelihood_written_anew(truth):
    """Oracle: scipy's normal density, sums user by user; precision and gradient by numbers. Where
    no parameter explains what is released, full steps alone would end 0.8 above the minimum."""
    scores, loss, mean, counted = small_case(np.array(truth))
    fit = scores.maximise(np.zeros((1, 3)), 8)
    theta, precision = fit.theta, fit.precision
    found = lowest(loss, np.array(truth))
    assert loss(theta[0]) <= found.fun + 1e-3
    np.testing.assert_allclose(theta[0], found.x, atol=0.05)
    ends = [(theta[0] - h, theta[0] + h) for h in 1e-5 * np.eye(3)]
    # (releases, coordinates, parameters)
    slopes = np.stack([mean(high) - mean(low) for low, high in ends], axis=-1) / 2e-5
    of_counts = np.stack([counted(high) - counted(low) for low, high in ends], axis=-1) / 2e-5
    expected = np.einsum("kdi,kl,ldj->ij", slopes, np.linalg.inv(NOISE), slopes)
    expected += of_counts.T @ of_counts
    np.testing.assert_allclose(precision[0], expected + np.eye(3) / PRIOR**2, rtol=1e-5, atol=1e-7)
    at = np.array([0.5, 0.5, -3.0])
    slope = differences(lambda x: scores._at(x[None]).value[0], at)
    np.testing.assert_allclose(-2 * scores._posterior(scores._at(at[None]))[1][0], slope, rtol=1e-5)
    scores._released = 3 * scores._released
    fit = scores.maximise(np.zeros((1, 3)), 8)
    found = lowest(lambda x: scores._at(x[None]).value[0], fit.theta[0])
    assert fit.value[0] <= found.fun + 0.05
    np.testing.assert_array_equal(fit.value, scores._at(fit.theta).value)
    left = scores._posterior(scores._at(fit.theta))[1]  # the slope's, as it may not rise
    np.testing.assert_allclose(fit.gradient, left, atol=0.02 * np.abs(left).max() + 1e-3)


def test_releases_without_noise_are_not_taken_at_their_word(monkeypatch):
    """Golden: at epsilon = inf the fits see noise of variance 2^2, at epsilon 1 their own."""
    seen = []
    monkeypatch.setattr(
        "dpbandit.agents.contextual.fade_prices.faded",
        lambda *facts: seen.append(facts[2]) or faded(*facts),
    )
    for epsilon in (inf, 1.0):
        agent = FADE(epsilon=epsilon, first_batch=2, features="additive").make(PRICES, Streams([0]))
        for _ in range(2):
            agent.update(np.zeros((1, 2)), np.array([0]), np.array([1.0]))
    assert seen == [2.0, agent.sums.stddev]


@each("size", [0.0, 1e3, 1e9, 1e150])
@each("start", [0.0, 40.0, 1e200])
def test_nothing_diverges(size, start):
    """Whatever is released and from wherever: in the ball, falling, and no worse than the start."""
    scores, *_ = small_case(np.array([1.0, 0, -1]))
    scores._released = size * np.array([[[1.0, -2, 3], [-3, 2, 1], [1, 1, 1]]])
    begin = np.full((1, 3), start)
    theta, precision, _, value = scores.maximise(begin, 8)
    assert np.linalg.norm(theta) <= MAX_NORM * (1 + 1e-12)
    assert theta[0, -1] < 0
    assert value <= scores._at(falling(begin)).value
    assert (np.linalg.eigvalsh(precision) >= 0.99 / PRIOR**2).all()


def test_imagined_customers_have_the_released_moments():
    """Closed form: exact releases of a law inside the ball, whose moments each replica's customers
    have exactly, and each pair of neighbours the mean."""
    mean, covariance = np.array([0.3, -0.2]), np.array([[0.03, 0.01], [0.01, 0.02]])
    customers = ImaginedCustomers(Streams(range(4)), 2)
    users = FADED.sum(axis=1)
    second = covariance + np.outer(mean, mean)
    first = np.broadcast_to(users[:, None] * mean, (4, 3, 2))
    made = customers(
        first, np.broadcast_to(users[:, None, None] * second, (4, 3, 2, 2)), users, NOISE
    )
    assert np.linalg.norm(made, axis=-1).max() <= 1 + 1e-12
    pairs = made.reshape(4, -1, 2, 2).mean(axis=2)
    np.testing.assert_allclose(pairs, np.broadcast_to(mean, pairs.shape))
    np.testing.assert_allclose(
        (made - mean).swapaxes(1, 2) @ (made - mean) / made.shape[1], [covariance] * 4
    )


@in_turn(0, 2)
@pytest.mark.parametrize(("features", "share"), [("additive", 0.99), ("shrunk", 0.98)])
def test_steep_demand_is_learned_without_privacy(features, share):
    """Statistical: utility falls by 17 from the lowest price to the highest. At epsilon = inf 20
    replicas earn 99.89 ± 0.04 % of the best prices' profit with one slope, and 99.4 ± 0.4 % if
    effects are shrunk, whose draws of the slope are wide (random prices: 52 %); limits are 4
    errors or more below."""
    truth, rng = np.array([6.0, 2.0, -12.0]), np.random.default_rng(3)
    spec = replace(PRICES, horizon=1500)
    agent = FADE(epsilon=inf, features=features).make(spec, Streams(range(20)))
    for _ in range(1499):
        x = rng.uniform(-0.7, 0.7, (20, 2))
        action = agent.act(x)
        sale = expit(demand_rows(spec, x) @ truth)[np.arange(20), action]
        agent.update(x, action, spec.margins[action] * (rng.random(20) < sale))
    x = rng.uniform(-0.7, 0.7, (500, 20, 2))
    profit = np.array([spec.margins * expit(demand_rows(spec, one) @ truth) for one in x])
    played = np.array([agent.scores(one).argmax(axis=1) for one in x])
    earned = np.take_along_axis(profit, played[..., None], -1)
    best = profit.max(axis=-1).mean()
    assert earned.mean() > share * best
    assert profit.mean() < 0.6 * best


@pytest.mark.parametrize("bent", [False, True])
def test_releases_choose_between_a_line_and_a_curve(bent):
    """Statistical: 40 replicas at epsilon 4. Measured in 60 others: the curve is chosen by 0.08 of
    them where log odds of a sale are a line in the price and by all on a plateau, where they earn
    0.95 to 0.99 of the best price's profit. Limits fail once in 10,000 if these were 0.2 and 0.95.
    Caught are odds that are turned round, and a fit without bends. Where odds are above 400, the
    shape that is less likely is fitted to every fourth release, and to no other."""
    z, rng = np.linspace(0, 1, 8), np.random.default_rng(5)
    chance = np.where(z < 0.6, 0.6, 0.05) if bent else expit(2 - 5 * z)
    prices = tuple((1 + 2 * z).tolist())
    spec = replace(PRICES, n_actions=8, prices=prices, reward_high=3.0, horizon=1_500)
    agent = FADE(epsilon=4.0).make(spec, Streams(range(40)))
    left_out = np.zeros(40, bool)
    for _ in range(1_000):
        action = agent.act(x := rng.uniform(-0.7, 0.7, (40, 2)))
        fits, odds, releases = agent._thetas.copy(), agent._log_odds, len(agent._ends)
        agent.update(x, action, spec.margins[action] * (rng.random(40) < chance[action]))
        if len(agent._ends) > releases:
            kept = (agent._thetas == fits).all(axis=2)[np.where(odds > 0, 0, 1), np.arange(40)]
            clear = (np.abs(odds) > 6) & (len(agent._ends) % 4 > 0)
            np.testing.assert_array_equal(kept, clear)
            left_out |= kept
    assert left_out.any() or not bent
    assert (agent._bent.mean() > 0.75) if bent else (agent._bent.mean() < 0.5)
    profit = spec.margins * chance
    played = agent.scores(rng.uniform(-0.7, 0.7, (100, 40, 2))).argmax(axis=2)
    assert profit[played].mean() > 0.85 * profit.max() > 1.2 * profit.mean()


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


@in_turn(0, 2)
def test_customers_who_differ_in_what_a_price_costs_them():
    """Statistical: of half of the customers few buy, at any price, of the others many but at the
    highest. At epsilon 4 replicas earn 98 ± 6 % of the best prices' profit with interactions,
    94 ± 8 % if they are shrunk, and 81 ± 8 % with one slope for everybody, where less demand is
    taken for a lower best price. 40 replicas are 3.1 standard errors or more from the limits."""
    truth, spec = np.array([-0.5, 1.0, -2.55, -2.45]), replace(PRICES, horizon=1500)

    def demand(x):
        return expit(2 * demand_rows(spec, x, "interactions") @ truth)

    share = {}
    for features in ("additive", "interactions", "shrunk"):
        rng = np.random.default_rng(3)
        agent = FADE(epsilon=4.0, features=features).make(spec, Streams(range(40)))
        for _ in range(1499):
            x = np.column_stack([np.full(40, 0.7), rng.choice([-0.7, 0.7], 40)])
            action = agent.act(x)
            sale = demand(x)[np.arange(40), action]
            agent.update(x, action, spec.margins[action] * (rng.random(40) < sale))
        earned = best = 0.0
        for sign in (-0.7, 0.7):
            x = np.column_stack([np.full(40, 0.7), np.full(40, sign)])
            profit = spec.margins * demand(x)
            earned += profit[np.arange(40), agent.scores(x).argmax(axis=1)].mean()
            best += profit.max(axis=1).mean()
        share[features] = earned / best
    assert share["additive"] < 0.87 < 0.90 < share["shrunk"]
    assert share["interactions"] > 0.95


@each("below", [None, -0.05])
def test_priors_are_averaged_by_their_evidence(below):
    """Oracle: data y = A theta + noise whose law under each prior is scipy's normal density; means
    are those of y's normal joint law with theta. Of slopes below a bound, half a priori, evidence
    is multiplied by twice their posterior probability; a mean above it is that at the bound."""
    A = np.random.default_rng(5).standard_normal((2, 9, 7))
    truths = [3, 0, 1, -2, 0.1, 0, 1], [0.1, 0.2, 2, 5, 2, -3, 0]
    y = np.array([one @ truth for one, truth in zip(A, truths, strict=True)])
    ridge, start = ridge_of(2, 7, bends=[1.5]), np.array([[1.0, 2, 0, -1, 0, 0, 0]] * 2)
    precision = A.swapaxes(1, 2) @ A + np.diag(ridge)
    slopes = np.matvec(A.swapaxes(1, 2), y - np.matvec(A, start)) - ridge * start
    if below is None:  # the mode, where the gradient is 0
        start, slopes = start + np.linalg.solve(precision, slopes[..., None])[..., 0], 0 * slopes
    misfit = y - np.matvec(A, start)
    value = np.vecdot(misfit, misfit) + np.vecdot(ridge * start, start)
    found = averaged(Fit(start, precision, slopes, value), 2, bends=[1.5], below=below)
    of_fit = 0.5 * (np.log(ridge).sum() - np.linalg.slogdet(precision)[1] - value)
    for r in range(2):
        laws = []
        for level, slope in WIDTHS:
            prior = np.diag([level, level, 27, 15, slope, slope, 1.5]) ** 2.0
            law = A[r] @ prior @ A[r].T + np.eye(9)
            mean = prior @ A[r].T @ np.linalg.solve(law, y[r])
            density = multivariate_normal(np.zeros(9), law).logpdf(y[r])
            of_theta = A[r].T @ A[r] + np.linalg.inv(prior)
            if below is not None:
                column = np.linalg.inv(of_theta)[3]
                density += norm(mean[3], sqrt(column[3])).logcdf(below) + np.log(2)
                mean = mean - max(0, mean[3] - below) / column[3] * column
            laws.append((density, mean, of_theta))
        densities, means, precisions = zip(*laws, strict=True)
        weights = np.exp(np.array(densities) - max(densities))
        assert np.sort(weights)[-2] > 1e-4  # more than one prior counts
        np.testing.assert_allclose(found.mean[r], weights @ means / weights.sum(), rtol=1e-7)
        np.testing.assert_allclose(found.precision[r], precisions[np.argmax(densities)], rtol=1e-8)
        whole = max(densities) + np.log(weights.mean()) + 4.5 * np.log(2 * np.pi)
        assert of_fit[r] + found.evidence[r] == pytest.approx(whole, rel=1e-9)


def test_draws_that_rise_in_the_price_are_mirrored(monkeypatch):
    """None is moved to the least slope, where half of all draws as wide as these would be."""
    config = FADE(epsilon=1.0, first_batch=5, features="additive")
    agent = config.make(PRICES, Streams(range(200)))
    wide = np.tile([0.0, 0.0, -0.1], (200, 1)), np.tile(np.eye(3) / 25, (200, 1, 1))
    monkeypatch.setattr(agent, "_posterior", lambda: wide)
    for _ in range(5):
        agent.update(np.zeros((200, 2)), np.zeros(200, np.int64), np.zeros(200))
    assert (agent._played[:, -1] == -0.05).mean() < 0.1


@pytest.mark.parametrize("slope", [-20.0, -0.1])
def test_the_shared_slope_of_shrunk_effects_is_drawn_as_widely_as_one_slope_for_all(
    slope, monkeypatch
):
    """Statistical: 4,000 draws from one posterior. A slope far below 0 has the covariance of narrow
    draws and of a wide one along the slope's regression, to 10 %, 4 errors of a variance; of one
    near 0 no draw rises, and few are moved to the least slope, where half of them would be."""
    agent = FADE(epsilon=4.0, first_batch=5, features="shrunk").make(PRICES, Streams(range(4000)))
    root = np.tril(np.random.default_rng(3).normal(0, 0.3, (6, 6))) + np.eye(6)
    mean, covariance = np.zeros(6), root @ root.T
    mean[3] = slope
    posterior = [np.tile(x, (4000, *[1] * x.ndim)) for x in (mean, np.linalg.inv(covariance))]
    monkeypatch.setattr(agent, "_posterior", lambda: posterior)
    for _ in range(5):
        agent.update(np.zeros((4000, 2)), np.zeros(4000, np.int64), np.zeros(4000))
    played, width = agent._played, min_width(agent.releases.mu)
    assert 0.2 < width < 1
    if slope == -0.1:
        assert played[:, 3].max() == -0.05
        assert (played[:, 3] == -0.05).mean() < 0.1
        return
    along = covariance[:, [3]] / sqrt(covariance[3, 3])
    expected = 0.2**2 * covariance + (width**2 - 0.2**2) * along @ along.T
    np.testing.assert_allclose(expected[3, 3], width**2 * covariance[3, 3])
    scale = np.sqrt(np.diag(expected))
    found = np.cov((played / scale).T)
    np.testing.assert_allclose(found, expected / np.outer(scale, scale), atol=0.1)


def learned(truth, noise, replicas):
    """The released law of slates: three releases of a known law with noise, of matrices."""
    users, rng = np.array([50.0, 95.0, 136.5]), np.random.default_rng(0)
    slates = ImaginedSlates(Streams(range(replicas)), 4, 3)
    half = noise * rng.standard_normal((replicas, 3, 3, 3)) / 2
    released = users[:, None, None] * truth + half + half.swapaxes(-1, -2)
    slates.learn(released, users, noise**2 * np.eye(3))
    return slates


def test_imagined_rows_have_the_released_law():
    """Oracle: exact releases; M^1/2 scaled to trace d, whatever the size of M, which clips shrink.
    In noise as large as what deviates from the identity, it is the identity that is imagined."""
    truth = np.array([[0.3, 0.1, 0.0], [0.1, 0.2, 0.0], [0.0, 0.0, 0.05]])
    root = learned(truth, 1e-6, 2)._root
    np.testing.assert_allclose(root @ root, [truth * 3 / np.trace(truth)] * 2, atol=1e-5)
    lost = learned(truth, 500.0, 400)._root
    assert np.median(np.linalg.norm(lost - np.eye(3), axis=(1, 2))) == 0


def test_rows_are_those_the_policies_choose():
    """Oracle: slates one by one, transformed by the learned root and played by the policy of their
    batch, the first of which is random play; a slate and its mirror image have chosen rows whose
    sum is parallel to the policy's direction."""
    slates = learned(np.diag([0.4, 0.2, 0.1]), 1e-6, 2)
    policies = np.random.default_rng(1).standard_normal((2, 3, 3))
    met = np.array([[0] * 128, [0, 1] * 64, [1, 2] * 64])
    root = slates._root[0]
    row, mean = slates.chosen(ONE, policies[ONE], met)
    assert row.shape == mean.shape == (1, 3, slates.count, 3)
    shown = slates._slates[0, :128] @ root
    for b in range(3):
        for i in range(128):
            np.testing.assert_allclose(mean[0, b, i], shown[i].mean(axis=0), atol=1e-12)
            if met[b, i]:
                best = shown[i][(shown[i] @ policies[0, met[b, i]]).argmax()]
                np.testing.assert_allclose(row[0, b, i], best, atol=1e-12)
    for vectors in (row, mean):
        white = vectors[0] @ np.linalg.inv(root)
        np.testing.assert_allclose(white[0].sum(axis=0), 0, atol=1e-9)
        axis = root @ policies[0, 2]
        pairs = (white[2, :128] + white[2, 128:])[met[2] == 2] / np.linalg.norm(axis)
        np.testing.assert_allclose(np.cross(pairs, axis), 0, atol=1e-9)
    arms = [(slates._slates[0, i] @ root == row[0, 0, i]).all(axis=1).argmax() for i in range(128)]
    assert set(np.bincount(arms)) <= {31, 32, 33}


@each("size", [1e3, 1e9, 1e150])
def test_nothing_diverges_of_slates(size):
    """Whatever is released: finite, in the ball, and arms can be chosen."""
    agent = FADE(first_batch=5).make(SLATES, Streams([0, 1]))
    rng = np.random.default_rng(0)
    agent.sums._normals = lambda: size * rng.standard_normal((2, *agent.statistic.shape))
    for _ in range(60):
        x = rng.standard_normal((2, 4, 3)) / 3
        agent.update(x, agent.act(x), np.ones(2))
        assert (np.linalg.norm(agent._theta, axis=1) <= MAX_NORM * (1 + 1e-12)).all()
        assert np.isfinite(agent.scores(x)).all()
    assert len(agent._ends) > 5


@pytest.mark.parametrize("delay", [0, 60])
def test_slates_are_learned_without_privacy(delay):
    """Oracle: clicks of a logistic model on slates neither elliptical nor of mean zero; one
    feature is constant, one the rows of a slate share. At epsilon = inf regret is below a tenth of
    random play's, although choices were greedy; also with answers 60 rounds late."""
    spec = replace(SLATES, dim=4, horizon=4000, delay=delay)
    agent = FADE(epsilon=inf).make(spec, Streams([0, 1, 2, 3]))
    rng, truth = np.random.default_rng(7), np.array([1.0, 3.0, -4.0, 1.0])
    waiting, lost, random = [], [], []
    for t in range(3999):
        x = np.abs(rng.standard_normal((4, 4, 4)))
        x[..., 0], x[..., 3] = 1.0, x[:, :1, 3]
        x /= 4
        p = expit(x @ truth - 1)
        action = agent.act(x)
        waiting.append((x, action, 1.0 * (rng.random(4) < p[np.arange(4), action])))
        if t >= delay:
            agent.update(*waiting.pop(0))
        if t >= 2000:
            lost.append(p.max(axis=1) - p[np.arange(4), action])
            random.append(p.max(axis=1) - p.mean(axis=1))
    assert np.mean(lost) < 0.1 * np.mean(random)


@pytest.mark.parametrize("delay", [0, 7, 60])
def test_users_are_taken_for_those_of_the_policies_that_were_in_force(delay, monkeypatch):
    """Oracle: the loop itself, in which each round writes down after how many releases it acted;
    for arms the matrix of policy j is j times the identity."""
    rng, found = np.random.default_rng(0), []

    def rounds(agent, x):
        acted = []
        for t in range(200):
            acted.append(len(agent._ends))
            action = agent.act(x[t])
            if t >= delay:
                agent.update(x[t - delay], action, rng.uniform(-1, 1, 1))
        assert len(agent._ends) > 5
        return acted, list(zip([0, *agent._ends[:-1]], agent._ends, strict=True))

    arms = FADE(model="arms", first_batch=7).make(replace(SPEC, delay=delay), Streams([0]))
    arms._moments = [np.zeros((1, 3, 4, 4))]
    arms._selected = lambda theta: np.full((1, 3, 4, 4), float(len(arms._ends)))
    batch = arms._batch_moments
    monkeypatch.setattr(arms, "_batch_moments", lambda: found.append(batch()) or found[-1])
    acted, batches = rounds(arms, rng.standard_normal((200, 1, 4)))
    for (start, end), (moments, n) in zip(batches, found, strict=True):
        assert n == end - start
        assert moments[0, 0, 0, 0] == pytest.approx(np.mean(acted[start:end]))

    prices = FADE(first_batch=7).make(replace(PRICES, delay=delay), Streams([0]))
    acted, batches = rounds(prices, rng.uniform(-0.5, 0.5, (200, 1, 2)))
    played = in_force(prices._ends, delay, 300)
    for (start, end), policies in zip(batches, played, strict=True):
        expected = [acted[int(start + (i + 0.5) / 300 * (end - start))] for i in range(300)]
        np.testing.assert_array_equal(policies, expected)
