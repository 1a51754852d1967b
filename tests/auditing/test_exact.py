"""Exact audits: laws of small releases against independent code, and claims against laws."""

from itertools import product
from math import exp, inf, log

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import expon, laplace as laplace_law

from dpbandit.auditing.bounds import (
    Claim,
    choice,
    exact_audit,
    exact_delta,
    exact_epsilon,
    first_above,
    randomised_response,
)
from dpbandit.base.inputs import InputError
from dpbandit.privacy.curves import delta_of
from tests.auditing.mechanisms import (
    PURE,
    SCALES,
    AllForTheQueries,
    NoThresholdNoise,
    svt_laws,
)
from tests.privacy.choices.test_selection import noisy_max_law
from tests.privacy.choices.test_sparse_vector import Law

# Randomised response, by hand


def test_randomised_response_by_hand():
    """Golden, by hand, truth with probability 3/4: epsilon log 3. One attack is worth making (say B
    if B is answered): FPR 1/4, TPR 3/4. delta(x) = 3/4 - e^x / 4."""
    p, q = (randomised_response(truth, 2, epsilon=log(3)) for truth in (0, 1))
    np.testing.assert_allclose(p, [0.75, 0.25])
    np.testing.assert_allclose(q, [0.25, 0.75])
    found = exact_audit(p, q, Claim(log(3), 0.0))
    assert found.epsilon == pytest.approx(log(3))
    assert found.delta == pytest.approx(0, abs=1e-15)
    np.testing.assert_allclose(found.curve, [(0, 0), (0.25, 0.75), (1, 1)])
    assert not found.flagged
    less = exact_audit(p, q, Claim(0.5, 0.0))
    assert less.flagged
    assert less.delta == pytest.approx(0.75 - exp(0.5) / 4)
    assert not exact_audit(p, q, Claim(0.5, 0.75 - exp(0.5) / 4 + 1e-9)).flagged


def test_randomised_response_against_a_gaussian_claim():
    """Golden: the corner (1/4, 3/4) is on the GDP curve of mu = 2 Phi^-1(3/4) = 1.349, whatever the
    epsilon of the same claim allows."""
    p, q = (randomised_response(truth, 2, epsilon=log(3)) for truth in (0, 1))
    for mu, flagged in ((1.34, True), (1.35, False)):
        assert exact_audit(p, q, Claim(9.0, delta_of(mu, 9.0), mu)).flagged == flagged


def test_epsilon_at_a_delta():
    """Golden: delta(x) of a truth told with probability .8 is .8 - e^x .2; what only one world does
    has to be covered by delta."""
    p, q = np.array([0.8, 0.2]), np.array([0.2, 0.8])
    assert exact_epsilon(p, q) == pytest.approx(log(4))
    assert exact_delta(p, q, 0.5) == pytest.approx(0.8 - exp(0.5) * 0.2)
    assert exact_delta(p, q, inf) == 0.0
    assert exact_epsilon(p, q, 0.8 - exp(0.5) * 0.2) == pytest.approx(0.5)
    never = np.array([1.0, 0.0]), np.array([0.9, 0.1])
    assert exact_epsilon(*never) == exact_epsilon(*never, 0.05) == inf
    assert exact_epsilon(*never, 0.2) < 1e-8
    assert exact_delta(*never, inf) == pytest.approx(0.1)
    for pair in (never, never[::-1]):
        assert exact_audit(*pair, Claim(5.0, 0.05)).flagged
        assert not exact_audit(*pair, Claim(0.2, 0.1)).flagged


# Selections


SCORES = [(0.0, 1.0, 0.5, -3.0), (2.0, 2.0), (0.0, -500.0, 0.5)]
"""In units of the scale; at its own pieces' ends, where the oracle is exact."""


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_noisy_maxima(scores, scale):
    """Oracle: independent integration with another number of nodes; sums of 1; closed forms of two
    candidates: logistic, (1/2 + z/4) e^-z, and a normal of twice the variance."""
    u = np.array(scores) * scale
    np.testing.assert_allclose(
        choice(u, scale, noise="laplace"), noisy_max_law(scores, 1.0), atol=1e-12
    )
    for noise in ("gumbel", "laplace", "gaussian"):
        assert choice(u, scale, noise=noise).sum() == pytest.approx(1, abs=1e-12)
    gap = abs(u[0] - u[1]) / scale
    pair = np.sort(u[:2])
    assert choice(pair, scale)[0] == pytest.approx(1 / (1 + np.exp(gap)))
    assert choice(pair, scale, noise="gaussian")[0] == pytest.approx(ndtr(-gap / np.sqrt(2)))
    assert choice(pair, scale, noise="laplace")[0] == pytest.approx(
        (1 / 2 + gap / 4) * np.exp(-gap)
    )


def test_no_noise_chooses_the_first_of_the_best():
    assert choice(np.array([0.0, 2.0, 2.0]), 0.0).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("noise", ["gumbel", "laplace"])
def test_selections_keep_their_claim_and_half_the_noise_does_not(noise):
    """Exact, three candidates, all scores on a grid and all moves by -1, 0, 1: scale 2 is epsilon 1
    (up to .98 attained here), scale 1 is not, nor is Gaussian noise (which has no pure epsilon)."""
    starts = [np.array([0.0, *rest]) for rest in product((0.0, 2.0, 6.0), repeat=2)]
    worst = {}
    for scale in (2.0, 1.0):
        pairs = [
            (choice(u, scale, noise=noise), choice(u + v, scale, noise=noise))
            for u in starts
            for v in product((-1.0, 0.0, 1.0), repeat=3)
        ]
        flagged = [exact_audit(*pair, PURE).flagged for pair in pairs]
        assert any(flagged) == (scale == 1.0)
        worst[scale] = max(exact_epsilon(*pair) for pair in pairs)
    assert 0.95 < worst[2.0] <= 1
    assert 1.8 < worst[1.0] <= 2


# Sparse vector


@pytest.mark.parametrize("queries", [(1.0, 2.0, 3.0, 4.0), (0.0, 3.0, 1.0)])
def test_firing_laws(queries):
    """Oracle: the integration of the tests of the mechanisms themselves."""
    for name, law, scales in (("laplace", laplace_law, (2.0, 4.0)), ("exponential", expon, (1, 1))):
        found = first_above(
            np.array(queries), 3.0, threshold_scale=scales[0], query_scale=scales[1], noise=name
        )
        np.testing.assert_allclose(found, Law(law, *scales).firing_times(queries), atol=1e-10)
    still = first_above(np.array(queries), 3.0, threshold_scale=0.0, query_scale=4.0)
    expected = Law(laplace_law, 1.0, 4.0, "no threshold noise").firing_times(queries)
    np.testing.assert_allclose(still, expected, atol=1e-12)


def test_textbook_sparse_vector_keeps_its_claim():
    """Exact: all 0/1 sequences of five queries against their opposites, at several thresholds."""
    for threshold in (-8.0, 0.0, 0.5, 2.0):
        for first in product((0.0, 1.0), repeat=5):
            laws = [
                first_above(queries, threshold, threshold_scale=2.0, query_scale=4.0)
                for queries in (np.array(first), 1 - np.array(first))
            ]
            assert not exact_audit(*laws, PURE).flagged


@pytest.mark.parametrize("kind", [NoThresholdNoise, AllForTheQueries])
def test_without_threshold_noise_every_query_costs(kind):
    """Exact: no claim holds for any number of queries. Golden: at threshold 1 a test that does not
    fire is log((1 - e^(-1/b) / 2) / (1/2)) more likely where the query is 0 than where it is 1, for
    query noise of scale b; the last test, the other way round, takes one away."""
    _, b = SCALES[kind]
    each = log((1 - exp(-1 / b) / 2) * 2)
    epsilons = [exact_epsilon(*svt_laws(kind, queries=n, threshold=1.0)) for n in (4, 8, 12, 24)]
    quiet = [(n - 2) * each for n in (4, 8, 12, 24)]
    assert (np.array(epsilons) >= quiet).all()
    np.testing.assert_allclose(np.diff(epsilons), np.diff(quiet))
    assert exact_audit(*svt_laws(kind, queries=12, threshold=1.0), PURE).flagged


def test_one_threshold_noise_for_two_runs_is_within_their_price():
    """Exact, all 0/1 sequences of five queries against their opposites, two firings: with Lap(2) on
    the threshold and Lap(4) on queries, runs that share a threshold noise cost at most
    1/2 + 2 (1/2), and 2 is charged. So this reuse breaks no claim of `AboveThreshold`."""
    worst = 0.0
    for theta in (0.0, 2.0):
        law = Law(laplace_law, 2.0, 4.0, "threshold noise used again", theta=theta)
        for first in product((0.0, 1.0), repeat=5):
            p, q = (two_firings(law, queries) for queries in (first, tuple(1 - x for x in first)))
            worst = max(worst, exact_epsilon(p, q))
    assert 1.0 < worst < 1.5


def two_firings(law, queries):
    """The law of where the first and the second test fire."""
    n = len(queries)
    views = [[(queries, False)]]
    for k in range(n):
        once = (queries[: k + 1], True)
        rest = [[(queries[k + 1 : j + 1], True)] for j in range(k + 1, n)]
        none = [(queries[k + 1 :], False)] if k + 1 < n else []
        views += [[once, *part] for part in (*rest, none)]
    found = np.array([law.of(view) for view in views])
    assert found.sum() == pytest.approx(1)
    return found


def test_bad_input():
    fair = np.array([0.5, 0.5])
    for bad in (np.array([0.5, 0.4]), np.array([1.5, -0.5]), np.ones(1)):
        with pytest.raises(InputError, match="Expected q="):
            exact_audit(fair, bad, PURE)
    with pytest.raises(InputError, match="truth"):
        randomised_response(2, 2, epsilon=1.0)
    with pytest.raises(InputError, match="noise"):
        choice(fair, 1.0, noise="cauchy")
    with pytest.raises(InputError, match="query_scale"):
        first_above(fair, 0.0, threshold_scale=1.0, query_scale=0.0)
