"""Streams of users: their laws, the best point, its excess risk, and SubOpt on fresh users."""

import sys

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, truncnorm

from dpbandit.base.random_streams import Streams
from dpbandit.domains import LpBall
from dpbandit.domains.lp_balls import second_moment
from dpbandit.envs import StreamingRegression, tables
from dpbandit.envs.streams.populations import (
    Features,
    HalfNormals,
    LinearAnswers,
    LogisticAnswers,
    QuantileAnswers,
)
from dpbandit.envs.streams.streaming_regression import TRUTHS, Truth
from dpbandit.losses import LinearRegression, LogisticRegression, QuantileRegression
from tests.each import each, in_turn, refused

CASES = (
    {},
    {"p": "inf", "dim": 3, "contamination": 0.2},
    {"p": 1, "theta": "gaussian", "contamination": 0.3, "outliers": "coin"},
    {"family": "logistic", "p": 3.0, "theta": "random-sparse", "sparsity": 2, "norm": 2.0},
    {"family": "logistic", "norm": 2.0, "contamination": 0.3},
    {"family": "quantile", "level": 0.8, "noise": 0.3},
    {"family": "quantile", "noise": 0.3, "contamination": 0.2, "theta": "gaussian"},
    {"family": "quantile", "noise": 0.3, "level": 0.7, "contamination": 0.2, "outliers": "coin"},
    {"data": "oj", "p": 1, "radius": 8.0},
    {"data": "oj", "family": "linear", "p": "inf"},
)
every_case = each("case", CASES, ids=str)


def started(case, replicas=3, seed=1, **more):
    problem = StreamingRegression(**case, **more)
    problem.reset(Streams([(seed, r) for r in range(replicas)]).child("environment"))
    return problem


def users(problem, count, played=None):
    """Return the data after plays of a point, or of the centre: (count, R, N + 1)."""
    x = np.zeros_like(problem.population_minimiser) if played is None else played
    return np.array([problem.step(x).datum for _ in range(count)])


def nearby(problem, size=0.3):
    """A point of the ball for each replica, away from theta*."""
    best = problem.population_minimiser
    direction = np.random.default_rng(0).standard_normal(best.shape)
    return problem.spec.loss.domain.project(best + size * direction)


@every_case
def test_no_point_is_better_than_the_minimiser(case):
    """Excess risk 0 at theta*, positive elsewhere, and risk - least risk."""
    problem = started(case)
    best, domain = problem.population_minimiser, problem.spec.loss.domain
    assert domain.contains(best, 1e-9).all()
    assert np.abs(problem.excess_risk(best)).max() == 0
    draw, least = domain.sampler(Streams(range(3)), "points"), problem.risk(best)
    for _ in range(5):
        far = draw()
        for theta in (far, best + 0.03 * (far - best)):
            excess = problem.excess_risk(theta)
            assert (excess >= -3e-6).all()
            difference = problem.risk(theta) - least
            np.testing.assert_allclose(difference, excess, rtol=1e-9, atol=1e-14)


@every_case
def test_the_mean_regret_of_a_round_is_the_excess_risk(case):
    """Statistical: 1,500 users of each of 3 replicas against F - F(theta*), and their loss against
    F, 6 standard errors of a replica and, where F is an average over public users, 5 % more (false
    alarm below 1e-7)."""
    problem = started(case)
    theta = nearby(problem)
    steps = [problem.step(theta) for _ in range(1500)]
    for mean in ("regret", "loss"):
        lost = np.array([step.regret if mean == "regret" else -step.reward for step in steps])
        exact = problem.excess_risk(theta) if mean == "regret" else problem.risk(theta)
        room = 6 * lost.std(0) / 1500**0.5 + 0.05 * exact
        assert (np.abs(lost.mean(0) - exact) <= room).all()
    assert (problem.hindsight() == 0).all()


@each(
    ("case", "expected", "room"),
    [
        ({"p": "inf", "dim": 10}, 0.1527, 0.005),
        ({"p": "inf", "dim": 20}, 0.0772, 0.005),
        ({"p": 1.5, "dim": 20}, 0.0379, 0.005),
        ({"p": "inf", "dim": 10, "theta": "gaussian"}, 0.0448, 0.05),
        ({"p": "inf", "dim": 20, "theta": "gaussian"}, 0.0173, 0.05),
        ({"p": 1.5, "dim": 20, "theta": "gaussian"}, 0.0461, 0.05),
        ({"p": 1.5, "dim": 20, "theta": "sparse"}, 0.0600, 0.005),
    ],
)
@in_turn(0)
def test_the_baseline_of_table_5_1(case, expected, room):
    """Golden: risk(0) - risk(theta*) by which Table 5.1 was decoded, there by simulation (to about
    0.5 %, or 4 % for random truths); s |theta*|^2 here. Random truths: the mean over 2,000."""
    problem = started(case, replicas=2000 if case.get("theta") == "gaussian" else 1)
    zero = np.zeros_like(problem.population_minimiser)
    assert problem.excess_risk(zero).mean() == pytest.approx(expected, rel=room)


@every_case
def test_suboptimality(case):
    """0 at theta*, 1 at the origin, and elsewhere the ratio of excess risks: 2,000 fresh users.
    Each call draws new ones, and no call or play takes a user of the episode away."""
    problem, untouched = started(case), started(case)
    best = problem.population_minimiser
    assert (problem.suboptimality(best, 100) == 0).all()
    np.testing.assert_allclose(problem.suboptimality(np.zeros_like(best), 100), 1.0)
    half = best / 2
    exact = problem.excess_risk(half) / problem.excess_risk(np.zeros_like(best))
    one, two = problem.suboptimality(half, 2000), problem.suboptimality(half, 2000)
    assert (one != two).all()
    np.testing.assert_allclose(one, exact, atol=0.25)
    np.testing.assert_array_equal(users(problem, 20, played=half), users(untouched, 20))


@every_case
def test_replicas_depend_on_their_seed_only(case, monkeypatch):
    """Batched equals one by one, exactly, and drawn 3 rounds ahead; users, baselines, risks and
    tests."""
    batch, lone = started(case), StreamingRegression(**case)
    lone.reset(Streams([(1, 2)]).child("environment"))
    theta = nearby(batch)
    for _ in range(10):
        a = batch.step(theta)
        with monkeypatch.context() as patch:
            patch.setattr("dpbandit.envs.convex.problems._VALUES_AHEAD", 3)
            b = lone.step(theta[2:])
        for name in ("reward", "oracle", "regret", "datum"):
            np.testing.assert_array_equal(getattr(a, name)[2:], getattr(b, name))
    for of in ("risk", "excess_risk", "suboptimality"):
        np.testing.assert_array_equal(getattr(batch, of)(theta)[2:], getattr(lone, of)(theta[2:]))
    np.testing.assert_array_equal(batch.best_fixed()[2:], lone.best_fixed())


@each("family", ["linear", "logistic", "quantile"])
@each("p", [1, 1.5, 2, 3.0, "inf"])
def test_data_are_admissible(family, p):
    """Nothing is left to clip, even with outliers and much noise; rewards in their range."""
    much = {"contamination": 0.3, "outliers": "coin", "noise": 2.0}
    problem = StreamingRegression(family=family, p=p, **much)
    spec, loss = problem.spec, problem.spec.loss
    assert 1 / loss.domain.p + 1 / loss.order == pytest.approx(1)
    for _, step in played(problem, 60):
        np.testing.assert_allclose(loss.admissible(step.datum), step.datum, rtol=0, atol=1e-12)
        assert ((spec.reward_low <= step.reward) & (step.reward <= spec.reward_high)).all()


def test_who_is_an_outlier_is_no_matter_of_noise():
    """Half of 20,000 users give +bound or -bound; the noise of the others has mean 0 within 5
    standard errors, of which half of the positive noise would be 100."""
    coins = {"contamination": 0.5, "outliers": "coin", "noise": 0.2, "dim": 2}
    problem = started(coins, replicas=40)
    z = users(problem, 500).reshape(-1, 3)
    honest = np.abs(z[:, 2]) < 1.25
    noise = (z[:, 2] - z[:, :2] @ problem.population_minimiser[0] / 0.5)[honest]
    assert honest.mean() == pytest.approx(0.5, abs=0.02)
    assert abs(noise.mean()) < 5 * noise.std() / 100


def played(problem, rounds, R=2):
    problem.reset(Streams(range(R)))
    x = np.full((R, problem.spec.loss.domain.dim), 0.1)
    return [(problem.context(), problem.step(x)) for _ in range(rounds)]


def test_real_users_are_rows_of_the_tables(monkeypatch):
    """Golden: 1,070 purchases, 417 of them Minute Maid, all features within [-1, 1]; 1,797 images,
    183 of them a 3. Every datum is a row, scaled into the dual ball; some come twice."""
    rows = tables.oj()
    assert rows.shape == (1070, 5)
    assert (rows[:, -1] == 1).sum() == 417
    assert (np.abs(rows[:, 1:4]).max(0) == 1).all()
    assert (rows[:, 0] == 1).all()
    problem = StreamingRegression(data="oj", p=1)
    loss = problem.spec.loss
    assert loss == StreamingRegression(family="logistic", p=1, dim=4).spec.loss
    data = [tuple(step.datum[0].tolist()) for _, step in played(problem, 500)]
    assert set(data) <= {tuple(row) for row in loss.admissible(rows).tolist()}
    assert 250 < len(set(data)) < 500
    rows = tables.digits(3)
    assert rows.shape == (1797, 65)
    assert (rows[:, -1] == 1).sum() == 183
    assert (rows[:, :-1].min(), rows[:, :-1].max()) == (0, 1)
    problem = StreamingRegression(data="digits", digit=3, horizon=5)
    assert {step.datum.shape for _, step in played(problem, 5)} == {(2, 65)}
    tables.digits.cache_clear()
    tables.images.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    for digit, sentence in ((3, "scikit-learn"), (10, "digit")):
        refused(sentence, tables.digits, digit)


BALL = LpBall(3, 1.5, 2.0)
ORDERS = (1.0, 1.5, 2.0, 3.0, 11.0, np.inf)


@pytest.mark.parametrize("order", ORDERS)
def test_features_are_symmetric_and_of_length_one(order):
    """Length 1; means 0 and E x x' = s I within 6 standard errors, of 40,000 users."""
    x = Features(Streams([1]), 4, order).take(40_000)[:, 0]
    np.testing.assert_allclose(np.linalg.norm(x, ord=order, axis=1), 1, atol=1e-12)
    assert np.abs(x.mean(0)).max() < 6 * (second_moment(4, order) / 40_000) ** 0.5
    products = x[:, :, None] * x[:, None]
    error = products.std(0) / 200
    assert (np.abs(products.mean(0) - second_moment(4, order) * np.eye(4)) <= 6 * error).all()


def test_second_moments_and_noise_by_hand():
    """On the Euclidean sphere 1/N; in the plane, with the angle uniform, 1/pi and 2/pi. Noise is
    scipy's law, by Kolmogorov and Smirnov; a scale that is 25 % off is caught."""
    for N in (1, 2, 7, 100):
        assert second_moment(N, 2.0) == pytest.approx(1 / N, abs=1e-11)
    for order in ORDERS:
        assert second_moment(1, order) == pytest.approx(1, abs=1e-11)

        def share(t, order=order):
            return np.cos(t) ** 2 / np.linalg.norm([np.cos(t), np.sin(t)], ord=order) ** 2

        plane = sum(quad(share, *ends)[0] for ends in ((0, np.pi / 4), (np.pi / 4, np.pi / 2)))
        assert second_moment(2, order) == pytest.approx(plane * 2 / np.pi, abs=1e-10)
    assert second_moment(2, 1.0) == pytest.approx(1 / np.pi)
    assert second_moment(2, np.inf) == pytest.approx(2 / np.pi)
    e = HalfNormals(0.2, 0.3).quantile(np.random.default_rng(3).random(20_000))
    assert kstest(e, truncnorm(-1.5, 1.5, scale=0.2).cdf, method="asymp").pvalue > 1e-6
    assert kstest(e, truncnorm(-1.2, 1.2, scale=0.25).cdf, method="asymp").pvalue < 1e-6
    t = np.linspace(-0.4, 0.4, 9)
    exact = truncnorm(-1.5, 1.5, scale=0.2)
    np.testing.assert_allclose(HalfNormals(0.2, 0.3).below(t), exact.cdf(t), atol=1e-12)
    np.testing.assert_allclose(HalfNormals(0.2, 0.3).density(t), exact.pdf(t), atol=1e-12)
    assert HalfNormals(0.2, 0.3).square == pytest.approx(exact.var())


LOSSES = {
    LinearAnswers: LinearRegression(BALL, 1.25),
    LogisticAnswers: LogisticRegression(BALL),
    QuantileAnswers: QuantileRegression(BALL, 0.8, 1.25),
}


def law(word, noise=0.2, room=0.3, **spoilt):
    level = 0.8 if word is QuantileAnswers else 0.5
    extra = {} if word is LogisticAnswers else {"noise": HalfNormals(noise, room, level)}
    return word(loss=LOSSES[word], **extra, **spoilt)


def drawn(answers, m, count=40_000, seed=2):
    noise, uniforms = np.random.default_rng(seed).random((2, count))
    return answers.responses(np.full(count, m), noise, uniforms)


SPOILT = (
    {}, {"contamination": 0.2, "outliers": "flip"}, {"contamination": 0.3, "outliers": "coin"},
)  # fmt: skip


@each("spoilt", SPOILT, ids=str)
@each("m", [-0.9, 0.2, 0.7])
@each("word", [LogisticAnswers, QuantileAnswers])
def test_risks_given_the_score_are_the_means_of_the_loss(word, m, spoilt):
    """Statistical: 40,000 answers, 6 standard errors (false alarm below 1e-8 a case); slope and
    bend are its differences. Honest ones are as often below m, or 1, as they should."""
    answers = law(word, **spoilt)
    y, phi = drawn(answers, m), answers.loss._phi
    if not spoilt:
        quantile = word is QuantileAnswers
        share, chance = (y <= m, 0.8) if quantile else (y == 1, 1 / (1 + np.exp(-m)))
        assert share.mean() == pytest.approx(chance, abs=0.015)
    assert np.abs(y).max() <= answers.bound
    for u in (-1.5, -0.45, 0.0, 0.33, m + 0.05, 0.95, 1.7):
        each = phi(np.full_like(y, u), y)
        risk = answers.risk(np.array(u), np.array(m))
        assert abs(each.mean() - risk) <= 6 * each.std() / 200 + 1e-12
        h = 1e-5
        ends = np.array([u - h, u + h])
        low, high = answers.risk(ends, np.full(2, m))
        assert answers.slope(np.array(u), np.array(m)) == pytest.approx(
            (high - low) / 2 / h, abs=1e-5
        )
        a, b = answers.slope(ends, np.full(2, m))
        assert answers.bend(np.array(u), np.array(m)) == pytest.approx((b - a) / 2 / h, abs=1e-3)


@each("noise", [0.05, 0.3, 3.0])
@each("spoilt", SPOILT, ids=str)
def test_moments_of_linear_answers(spoilt, noise):
    """Mean and second moment within 6 standard errors, whatever part of the noise is cut off."""
    answers, m = law(LinearAnswers, noise=noise, **spoilt), 0.6
    y = drawn(answers, m)
    assert np.abs(y).max() <= 1.25
    assert abs(y.mean() - answers.attenuation * m) < 6 * y.std() / 200
    assert abs((y**2).mean() - answers.square(m**2)) < 6 * (y**2).std() / 200
    noiseless = law(LinearAnswers, noise=0.0)
    assert noiseless.square(0.25) == 0.25
    assert (drawn(noiseless, m, 9) == m).all()


@each("theta", [*TRUTHS, (0.5, -0.25, 0.0)])
def test_truths(theta):
    """Parameters have the requested length, in the ball; random ones differ between replicas."""
    truth = Truth(BALL, theta, norm=1.7, sparsity=2)
    drawn = truth.draw(Streams(range(40)))
    np.testing.assert_allclose(np.linalg.norm(drawn, ord=1.5, axis=1), truth.length)
    if isinstance(theta, str):
        assert truth.length == 1.7
    else:
        np.testing.assert_array_equal(drawn, np.tile(theta, (40, 1)))
    kinds = {"gaussian": 40, "random-sparse": 3}.get(theta, 1)
    assert len(np.unique(drawn, axis=0)) == kinds
    assert "sparse" not in theta or ((drawn != 0).sum(1) == 2).all()
