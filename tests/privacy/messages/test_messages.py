"""Private messages: bits that are added up, vectors and their directions."""

from math import e, exp, inf, log, pi, tanh

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import binom, chi2, kstest, norm

from dpbandit.base import Streams
from dpbandit.privacy import ClippedVectors, mu_of
from dpbandit.privacy.bits import BitSum, SignBits
from dpbandit.privacy.messages import (
    MESSAGES,
    LocalDirections,
    LocalStatistic,
    LocalVectors,
    PrivUnit,
)
from tests.each import each, refused

R, n = 2000, 40


def release(cover, reward, *, replicas=R, epsilon=4.0, honest=1.0):
    """The first batch's, of users who play arm 1 with x = (1, -2): (R, 2, 2), and the mechanism."""
    settings = {"epsilon": epsilon, "delta": 1e-5, "honest": honest}
    bits = SignBits(n_actions=2, dim=2)
    sums = BitSum(bits, Streams(range(replicas)), cover=cover, ends=[n], horizon=n + 1, **settings)
    x, arm = np.tile([1.0, -2.0], (replicas, 1)), np.ones(replicas, dtype=int)
    told = [sums(x, arm, np.full(replicas, reward)) for _ in range(n)]
    assert told[:-1] == [None] * (n - 1)
    return told[-1], sums


@pytest.mark.parametrize("cover", ["coins", "flips"])
@pytest.mark.parametrize("honest", [1.0, 0.4])
def test_sums_are_as_noisy_as_they_pay_for(cover, honest):
    """Statistical, silent users: variance N + n of coins, n / (1 - 2 p)^2 of flips, no bias; 6
    errors (false alarm 1e-8). A tenth less is seen (asserted)."""
    found, sums = release(cover, 0.0, honest=honest)
    if cover == "coins":
        N = sums.spend.coins
        wanted = n + (N if honest == 1 else int(np.ceil(N / (honest * n))) * n)
    else:
        wanted = n / (1 - 2 * sums.spend.parts[0].flip) ** 2
    squares = (found**2).reshape(-1)
    error = squares.std(ddof=1) / np.sqrt(squares.size)
    assert abs(squares.mean() - wanted) < 6 * error
    assert abs(0.9 * squares.mean() - wanted) > 6 * error
    assert np.abs(found.mean(axis=0)).max() < 6 * np.sqrt(wanted / R)
    assert sums.noise(0) == pytest.approx(wanted - n / 2)  # of which half is what random signs do
    found, _ = release(cover, -3.0)  # the arm played says sign(r) sign(x), the other nothing
    error = found.std(axis=0, ddof=1) / np.sqrt(R)
    assert (np.abs(found.mean(axis=0) - [[0, 0], [-n, n]]) < 6 * error).all()


def test_without_noise_and_mistakes():
    """Other blocks, and those of NaN, are fair coins: how many messages there are tells nothing."""
    found, _ = release("coins", 1.0, replicas=3, epsilon=inf)
    np.testing.assert_array_equal(found[:, 1], np.tile([n, -n], (3, 1)))
    assert (found[:, 0] % 2 == 0).all()
    assert np.abs(found[:, 0]).max() <= n
    lost, _ = release("coins", np.nan, replicas=200, epsilon=inf)
    assert lost.std() == pytest.approx(np.sqrt(n), rel=0.2)
    exact, messages = sent(U, epsilon=inf, calls=1, replicas=1)
    np.testing.assert_array_equal(exact, [U])
    assert messages.spend.mu == inf
    for made, sentence in (
        (lambda: release("flips", 0.0, replicas=1, honest=0.0), "honest=0"),
        (lambda: release("flips", 0.0, replicas=1, honest=0.01), "honest device"),
        (lambda: release("dust", 0.0, replicas=1), "cover='dust'"),
        (lambda: sent(U, "rappor"), "law='rappor'"),
    ):
        refused(sentence, made)


U = np.array([0.6, 0.0, -0.8])


def sent(u, law="privunit", epsilon=1.0, calls=100, replicas=200):
    """Messages of users who all have u, (calls x replicas, D), and their mechanism."""
    streams, settings = Streams(range(replicas)), {"epsilon": epsilon, "delta": 1e-5}
    messages = LocalVectors(streams, dim=len(u), law=law, uses=calls, **settings)
    told = [messages(np.tile(u, (replicas, 1))) for _ in range(calls)]
    return np.concatenate(told), messages


def two_sided(successes, n, p):
    return 2 * min(binom.cdf(successes, n, p), binom.sf(successes - 1, n, p))


def test_messages_are_as_noisy_as_they_pay_for():
    """Statistical: noise across u within 6 errors; a cap is hit with probability p, and what is
    outside is uniform. False alarm 2e-6; 10 % less is seen (asserted)."""
    across = np.array([0.8, 0.0, 0.6])
    for law in ("gaussian", "laplace", "k-norm"):
        m, messages = sent(U, law)
        squares = ((m - U) @ across) ** 2
        error = squares.std(ddof=1) / np.sqrt(len(m))
        assert abs(squares.mean() - messages.variance) < 6 * error
        assert abs(0.9 * squares.mean() - messages.variance) > 6 * error or law != "gaussian"
    m, _ = sent(U)
    law = PrivUnit.of(dim=3, epsilon=1.0)
    np.testing.assert_allclose(np.linalg.norm(m, axis=1), law.scale)
    height = m @ U / law.scale
    hits = int((height >= law.cap).sum())
    assert two_sided(hits, len(m), law.p) > 1e-6
    for other in (0.9, 1.1):
        q = law.share
        assert two_sided(hits, len(m), exp(other) * q / (1 - q + exp(other) * q)) < 1e-6
    outside = height[height < law.cap]  # in R^3 the height of a uniform point is uniform
    assert kstest((outside + 1) / (1 + law.cap), "uniform", method="asymp").pvalue > 1e-6


@each("law", MESSAGES)
@each("u", [U, 0.5 * U, np.zeros(3)], ids=["unit", "short", "none"])
def test_messages_are_unbiased(law, u):
    """Within 5.5 standard errors in each of three coordinates, of 20,000 (false alarm 1e-6)."""
    m, _ = sent(u, law)
    error = m.std(axis=0, ddof=1) / np.sqrt(len(m))
    assert (np.abs(m.mean(axis=0) - u) < 5.5 * error).all()


def test_a_cap_costs_epsilon():
    """The log-ratio of a density's two values is epsilon; scales of an independent program."""
    table = {(10, 0.5): 15.4936, (10, 1.0): 7.7931, (10, 4.0): 2.1620, (50, 1.0): 17.716}
    for (d, epsilon), scale in table.items():
        law = PrivUnit.of(dim=d, epsilon=epsilon)
        p, q = law.p, law.share
        assert log(p / q) - log((1 - p) / (1 - q)) == pytest.approx(epsilon, abs=1e-12)
        assert law.scale == pytest.approx(scale, rel=1e-4)
        assert law.scale < PrivUnit(d, epsilon, 0.0).scale
        assert q == pytest.approx(betainc((d - 1) / 2, 0.5, 1 - law.cap**2) / 2)
    assert PrivUnit.of(dim=10, epsilon=1.0).scale ** 2 == pytest.approx(60.7326, abs=1e-4)
    assert PrivUnit.of(dim=1, epsilon=1.0).scale == pytest.approx(1 / tanh(0.5))
    assert PrivUnit(10, 1.0, 0.0).variance(10) == pytest.approx(6.8974, abs=1e-4)


def test_what_is_no_vector_says_nothing():
    """A vector with NaN, as 0, sends a uniform direction; a longer one is scaled to length 1."""
    m, _ = sent(np.array([np.nan, 1.0, 0.0]))
    np.testing.assert_array_equal(m, sent(np.zeros(3))[0])
    counts, expected = np.bincount((m > 0) @ [1, 2, 4], minlength=8), len(m) / 8
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), 7) > 1e-6
    for g in ([0.0, 0.0], [np.nan, 1.0], [np.inf, 0.0]):
        m = directions(np.array(g), epsilon=8.0, calls=20)
        angle = (np.arctan2(m[:, 1], m[:, 0]) + pi) / (2 * pi)
        assert kstest(angle, "uniform", method="asymp").pvalue > norm.sf(5)
    long = directions(np.array([7.0, 0.0]), epsilon=1.0, calls=20)
    np.testing.assert_array_equal(long, directions(np.array([1.0, 0.0]), epsilon=1.0, calls=20))
    np.testing.assert_array_equal(directions(np.array([0.3, 0.4]), inf, 1, 1), [[0.3, 0.4]])


def test_every_message_of_a_statistic_has_the_noise_of_the_first():
    """Exact, with normals that are all 1: catches noise that gets less, or ends."""
    settings = {"epsilon": 1.0, "delta": 1e-5, "uses": 20}
    messages = LocalStatistic(ClippedVectors(2), Streams([0]), **settings)
    messages._normals = lambda: np.ones((1, 2))
    for _ in range(20):
        np.testing.assert_allclose(messages(np.zeros((1, 2))), 2 / mu_of(1.0, 1e-5), rtol=1e-12)


def directions(g, epsilon, calls=100, replicas=100):
    """Messages of users who all have g, (calls x replicas, D)."""
    streams = Streams(range(replicas))
    messages = LocalDirections(streams, dim=len(g), epsilon=epsilon, uses=calls)
    return np.concatenate([messages(np.tile(g, (replicas, 1))) for _ in range(calls)])


def test_messages_have_the_law_they_are_paid_for():
    """Statistical: on g's side with odds e^epsilon to 1, uniform apart from that. False alarm 3e-6;
    a fifth more privacy or less is told apart (asserted)."""
    m = directions(np.array([0.0, 0.6, 0.8]), epsilon=1.0)
    np.testing.assert_allclose(np.linalg.norm(m, axis=1), 1.0)
    along = m @ np.array([0.0, 0.6, 0.8])
    right, n = int((along > 0).sum()), len(m)
    assert two_sided(right, n, e / (1 + e)) > 1e-6
    for other in (0.8, 1.2):
        assert two_sided(right, n, 1 / (1 + np.exp(-other))) < 1e-6
    assert kstest(np.abs(along), "uniform", method="asymp").pvalue > 1e-6
    across = m[:, 0]
    assert kstest((across + 1) / 2, "uniform", method="asymp").pvalue > 1e-6


def test_directions_are_unbiased():
    """L times the mean is g, 5 errors (false alarm 5e-6), 0.8 L not (asserted); L of another
    program."""
    lengths = [LocalDirections(Streams([0]), dim=4, epsilon=x, uses=1).length for x in (4, 1, 0.5)]
    assert lengths == pytest.approx([2.4, 5.1, 9.6], abs=0.05)
    g = np.array([0.5, 0.0, -0.2, 0.1])
    m = lengths[0] * directions(g, 4.0)
    error = m.std(axis=0, ddof=1) / np.sqrt(len(m))
    assert (np.abs(m.mean(axis=0) - g) < 5 * error).all()
    assert np.abs(0.8 * m.mean(axis=0) - g)[0] > 5 * error[0]


def test_nobody_is_told_which_message_is_about_her_vector():
    """Only the user's own of three points leans towards g, within five standard errors."""
    g, n = np.array([0.6, 0.8]), 4000
    messages = LocalDirections(Streams(range(n)), dim=2, epsilon=2.0, uses=1, blocks=3)
    leaning = (messages(np.tile(g, (n, 1)), np.full(n, 1)) @ g > 0).mean(axis=0)
    np.testing.assert_allclose(leaning, [0.5, e**2 / (1 + e**2), 0.5], atol=5 * 0.5 / n**0.5)
