"""The laws of independent users: features, answers given their score, and what these say of F."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, truncnorm

from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import LpBall
from dpbandit.envs.streams.populations import (
    Features,
    HalfNormals,
    LinearAnswers,
    LogisticAnswers,
    QuantileAnswers,
)
from dpbandit.envs.streams.streaming_regression import WORDS, Truth
from dpbandit.envs.tables import digits, images, oj
from dpbandit.losses import LinearRegression, LogisticRegression, QuantileRegression
from dpbandit.specs.models import second_moment
from tests.each import each

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


def test_second_moments_by_hand():
    """On the Euclidean sphere 1/N; one feature is +-1; in the plane, with the angle uniform,
    E cos^2 / (|cos| + |sin|)^2 = 1/pi and E cos^2 / max(cos^2, sin^2) = 2/pi."""
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
    noise, luck = np.random.default_rng(seed).random((2, count))
    return answers.given(np.full(count, m), noise, luck)


SPOILT = (
    {},
    {"contamination": 0.2, "outliers": "flip"},
    {"contamination": 0.3, "outliers": "coin"},
)


@each("spoilt", SPOILT, ids=str)
@each("m", [-0.9, 0.2, 0.7])
@each("word", [LogisticAnswers, QuantileAnswers])
def test_risks_given_the_score_are_the_means_of_the_loss(word, m, spoilt):
    """Statistical: 40,000 answers, 6 standard errors (false alarm below 1e-8 a case); slope and
    bend are its differences."""
    answers = law(word, **spoilt)
    y, phi = drawn(answers, m), answers.loss._phi
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
    assert abs(y.mean() - answers.kept * m) < 6 * y.std() / 200
    assert abs((y**2).mean() - answers.square(m**2)) < 6 * (y**2).std() / 200
    still = law(LinearAnswers, noise=0.0)
    assert still.square(0.25) == 0.25
    assert (drawn(still, m, 9) == m).all()


def test_noise_is_a_truncated_normal():
    """Oracle: scipy's law, by Kolmogorov and Smirnov on 20,000; false alarm 1e-6, and a scale that
    is 25 % off is caught (asserted)."""
    e = HalfNormals(0.2, 0.3).given(np.random.default_rng(3).random(20_000))
    assert kstest(e, truncnorm(-1.5, 1.5, scale=0.2).cdf, method="asymp").pvalue > 1e-6
    assert kstest(e, truncnorm(-1.2, 1.2, scale=0.25).cdf, method="asymp").pvalue < 1e-6
    t = np.linspace(-0.4, 0.4, 9)
    exact = truncnorm(-1.5, 1.5, scale=0.2)
    np.testing.assert_allclose(HalfNormals(0.2, 0.3).below(t), exact.cdf(t), atol=1e-12)
    np.testing.assert_allclose(HalfNormals(0.2, 0.3).density(t), exact.pdf(t), atol=1e-12)
    assert HalfNormals(0.2, 0.3).square == pytest.approx(exact.var())


def test_levels_and_odds_are_those_of_the_score():
    """Honest answers: P(y <= m) = level, and P(y = 1) = 1 / (1 + e^-m); 40,000 of them, 6 standard
    errors are 0.015."""
    assert (drawn(law(QuantileAnswers), 0.4) <= 0.4).mean() == pytest.approx(0.8, abs=0.015)
    chance = 1 / (1 + np.exp(-0.4))
    assert (drawn(law(LogisticAnswers), 0.4) == 1).mean() == pytest.approx(chance, abs=0.015)


@pytest.mark.parametrize("theta", [*WORDS, (0.5, -0.25, 0.0)])
def test_truths(theta):
    """Of the length asked for, in the ball; random ones differ between replicas."""
    truth = Truth(BALL, theta, norm=1.7, sparsity=2)
    drawn = truth.draw(Streams(range(40)))
    length = np.linalg.norm(drawn, ord=1.5, axis=1)
    np.testing.assert_allclose(length, truth.length)
    if isinstance(theta, str):
        assert truth.length == 1.7
    else:
        np.testing.assert_array_equal(drawn, np.tile(theta, (40, 1)))
    kinds = len(np.unique(drawn, axis=0))
    assert kinds == {"gaussian": 40, "random-sparse": 3}.get(theta, 1)
    if "sparse" in theta:
        assert ((drawn != 0).sum(1) == 2).all()


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"theta": "dens"}, "dense"), ({"theta": (1.0,)}, "theta"), ({"norm": 3.0}, "norm"),
        ({"theta": (2.0, 2.0, 0.0)}, "theta"), ({"theta": "sparse", "sparsity": 4}, "sparsity"),
        ({"theta": (np.nan, 0.0, 0.0)}, "theta"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_truths_are_refused(wrong, word):
    with pytest.raises(InputError, match=word):
        Truth(BALL, **wrong)


def test_the_orange_juice_table():
    """Golden: 1,070 purchases, 417 of them Minute Maid, all features within [-1, 1]."""
    rows = oj()
    assert rows.shape == (1070, 5)
    assert (rows[:, -1] == 1).sum() == 417
    assert (np.abs(rows[:, 1:4]).max(0) == 1).all()
    assert (rows[:, 0] == 1).all()


def test_digits_without_scikit_learn(monkeypatch):
    digits.cache_clear()
    images.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(InputError, match="scikit-learn"):
        digits(3)
    with pytest.raises(InputError, match="digit"):
        digits(10)
