"""Local messages: their laws, their means, what they cost, and what is no vector."""

from math import exp, inf, log, tanh

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import binom, chi2, kstest

from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.messages.local_vectors import MESSAGES, LocalVectors
from dpbandit.privacy.messages.priv_unit import PrivUnit
from tests.each import each

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
    """n = 20,000 of each. Noise across u has the variance that is stated (chi-square from above,
    sums of squares within 6 standard errors); a cap is hit with probability p, and what is not in
    it is uniform. False alarm 2e-6; 4 % less noise is seen (asserted)."""
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
    assert kstest((outside + 1) / (1 + law.cap), "uniform").pvalue > 1e-6
    assert kstest((m @ across)[: len(m) // 2] > 0, "binom", args=(1, 0.5)).statistic < 0.6


@each("law", MESSAGES)
@each("u", [U, 0.5 * U, np.zeros(3)], ids=["unit", "short", "none"])
def test_messages_are_unbiased(law, u):
    """Within 5.5 standard errors in each of three coordinates, of 20,000 (false alarm 1e-6)."""
    m, _ = sent(u, law)
    error = m.std(axis=0, ddof=1) / np.sqrt(len(m))
    assert (np.abs(m.mean(axis=0) - u) < 5.5 * error).all()


def test_a_cap_costs_epsilon():
    """The density of a point has two values, with respect to the uniform law, whose log-ratio is
    epsilon to 1e-12; scales and variances of an independent program; the half space is worse."""
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
    """Messages of nobody and of NaN are the same, each octant of them as likely as any other."""
    m, _ = sent(np.array([np.nan, 1.0, 0.0]))
    nobody, _ = sent(np.zeros(3))
    np.testing.assert_array_equal(m, nobody)
    counts = np.bincount((m > 0) @ [1, 2, 4], minlength=8)
    expected = len(m) / 8
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), 7) > 1e-6


def test_without_noise_and_mistakes():
    exact, messages = sent(U, epsilon=inf, calls=1, replicas=1)
    np.testing.assert_array_equal(exact, [U])
    assert messages.spend.mu == inf
    with pytest.raises(InputError, match="law='rappor'"):
        sent(U, "rappor")
