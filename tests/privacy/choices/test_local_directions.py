"""Local directions: the law of a message, its mean, and what is no vector."""

from math import e, inf, pi

import numpy as np
import pytest
from scipy.stats import binom, kstest, norm

from dpbandit.base.random_streams import Streams
from dpbandit.privacy.messages import LocalDirections


def sent(g, epsilon, calls=100, replicas=100):
    """Messages of users who all have g, (calls x replicas, D)."""
    streams = Streams(range(replicas))
    messages = LocalDirections(streams, dim=len(g), epsilon=epsilon, uses=calls)
    return np.concatenate([messages(np.tile(g, (replicas, 1))) for _ in range(calls)])


def two_sided(successes, n, p):
    return 2 * min(binom.cdf(successes, n, p), binom.sf(successes - 1, n, p))


def test_messages_have_the_law_they_are_paid_for():
    """With |g| = 1 a message is on g's side with odds e^epsilon to 1, and uniform apart from that:
    a coordinate of a point of the sphere of R^3 is uniform on [-1, 1]. n = 10,000, false alarm
    3e-6 per change of seed; odds of a fifth more privacy or less are told apart (asserted)."""
    m = sent(np.array([0.0, 0.6, 0.8]), epsilon=1.0)
    np.testing.assert_allclose(np.linalg.norm(m, axis=1), 1.0)
    along = m @ np.array([0.0, 0.6, 0.8])
    right, n = int((along > 0).sum()), len(m)
    assert two_sided(right, n, e / (1 + e)) > 1e-6
    for other in (0.8, 1.2):
        assert two_sided(right, n, 1 / (1 + np.exp(-other))) < 1e-6
    assert kstest(np.abs(along), "uniform", method="asymp").pvalue > 1e-6
    across = m[:, 0]
    assert kstest((across + 1) / 2, "uniform", method="asymp").pvalue > 1e-6


def test_messages_are_unbiased():
    """L times the mean is g, within five standard errors in each of four coordinates (false alarm
    5e-6); 0.8 L would not be (asserted). Golden, by an independent program: L of three epsilons."""
    lengths = [LocalDirections(Streams([0]), dim=4, epsilon=x, uses=1).length for x in (4, 1, 0.5)]
    assert lengths == pytest.approx([2.4, 5.1, 9.6], abs=0.05)
    g = np.array([0.5, 0.0, -0.2, 0.1])
    m = lengths[0] * sent(g, 4.0)
    error = m.std(axis=0, ddof=1) / np.sqrt(len(m))
    assert (np.abs(m.mean(axis=0) - g) < 5 * error).all()
    assert np.abs(0.8 * m.mean(axis=0) - g)[0] > 5 * error[0]


def test_nobody_is_told_which_message_is_about_her_vector():
    """Of three points the one of her block leans towards g, the others lean nowhere, within five
    standard errors (false alarm 4e-6); a message in a wrong block would."""
    g, n = np.array([0.6, 0.8]), 4000
    messages = LocalDirections(Streams(range(n)), dim=2, epsilon=2.0, uses=1, blocks=3)
    sent = messages(np.tile(g, (n, 1)), np.full(n, 1))
    leaning = (sent @ g > 0).mean(axis=0)
    np.testing.assert_allclose(leaning, [0.5, e**2 / (1 + e**2), 0.5], atol=5 * 0.5 / n**0.5)


def test_what_is_no_vector_sends_a_uniform_point():
    """As 0 does: on neither side more often, of any direction."""
    for g in ([0.0, 0.0], [np.nan, 1.0], [np.inf, 0.0]):
        m = sent(np.array(g), epsilon=8.0, calls=20)
        angle = (np.arctan2(m[:, 1], m[:, 0]) + pi) / (2 * pi)
        assert kstest(angle, "uniform", method="asymp").pvalue > norm.sf(5)
    long = sent(np.array([7.0, 0.0]), epsilon=1.0, calls=20)
    np.testing.assert_array_equal(long, sent(np.array([1.0, 0.0]), epsilon=1.0, calls=20))
    np.testing.assert_array_equal(sent(np.array([0.3, 0.4]), inf, 1, 1), [[0.3, 0.4]])
