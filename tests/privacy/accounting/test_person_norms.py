"""Sensitivities of people who return: every pattern by brute force, and a golden table."""

from itertools import combinations, pairwise
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.privacy.fading import growing_batches
from dpbandit.privacy.people import (
    fading_norm,
    most_of,
    once_a_batch_norm,
    toeplitz_norm,
    tree_norm,
)
from dpbandit.privacy.prefix_sums import BLT, coefficients
from tests.each import each


def patterns(T, k, b):
    """All of at most k slots, b apart."""
    for n in range(k + 1):
        for found in combinations(range(T), n):
            if all(y - x >= b for x, y in pairwise(found)):
                yield list(found)


def brute(G, k, b):
    """sqrt of the largest sum of |G_st| over a pattern."""
    return sqrt(max(np.abs(G[np.ix_(p, p)]).sum() for p in patterns(len(G), k, b)))


def gram(C):
    return C.T @ C


def toeplitz(c):
    m = len(c)
    return np.array([[c[i - j] if i >= j else 0.0 for j in range(m)] for i in range(m)])


def fading(ends, fade):
    """Columns of slots, whitened: batch b moves release k >= b by fade^(k - b)."""
    batch = np.searchsorted(ends, np.arange(1, ends[-1] + 1))
    k = np.arange(len(ends))[:, None]
    return np.where(k >= batch, fade ** np.maximum(k - batch, 0.0), 0.0)


def tree(m):
    """Nodes (i 2^h, (i + 1) 2^h], i even, that are complete or begun by slot m."""
    nodes = []
    for h in range(m.bit_length()):
        for i in range(0, m // 2**h + 1, 2):
            row = np.zeros(m)
            row[i * 2**h : (i + 1) * 2**h] = 1
            nodes.append(row)
    return np.array(nodes)


CASES = [(k, b) for k in (1, 2, 3, 4) for b in (1, 2, 4)]


@each(("k", "b"), CASES)
def test_no_pattern_does_more(k, b):
    """All patterns of 10 slots: Toeplitz sums and linear ones exactly, trees and fading sums at
    least; a shift that is off by one, or a level that is left out, shows."""
    c = coefficients(10)
    assert toeplitz_norm(c, k, b) == pytest.approx(brute(gram(toeplitz(c)), k, b), rel=1e-12)
    x = np.random.default_rng(k).random(10)
    most = max(x[p].sum() for p in patterns(10, k, b))
    assert most_of(x, k, b) == pytest.approx(most, rel=1e-12)
    exact = brute(gram(tree(10)), k, b)
    assert exact <= tree_norm(10, k, b) * (1 + 1e-12)
    if b == 1:
        assert tree_norm(10, k, b) <= exact * 1.05
    for ends, fade in (((2, 5, 10), 0.7), ((1, 5, 10), 0.0), ((3, 6, 9), 0.5)):
        exact = brute(gram(fading(ends, fade)), k, b)
        rows = fading_norm(ends, fade, k, b)
        assert exact <= rows * (1 + 1e-9)
        assert rows <= 1.1 * exact


# k, b: tree (exact or a bound), square root, BLT, fading .7, fading 0
GOLDEN = {
    (1, 1): (3.7417, 1.9995, 1.9874, 1.4003, 1),
    (2, 1): (7.2801, 3.8365, 3.8067, 2.8006, 2),
    (2, 5000): (5.4772, 2.9829, 2.9551, 2.0076, 1.4142),
    (5, 1): (17.2916, 9.1501, 9.1010, 7.0014, 5),
    (5, 2000): (10.2470, 5.5303, 5.4696, 3.7635, 2.2361),
    (20, 1): (63.3561, 34.0444, 33.7397, 28.0056, 20),
    (20, 500): (30.0000, 17.4871, 17.2875, 13.4861, 5.6569),
    (100, 1): (278.7221, 154.3719, 153.3840, 140.0280, 100),
    (100, 100): (131.5295, 81.0886, 80.0367, 65.1348, 24.6374),
}


def test_the_table_of_an_independent_program():
    """T = 10,000, to all printed digits."""
    T = 10_000
    ends = growing_batches(T, first=100, growth=0.1)
    for (k, b), (node, root, buffers, rows, rows0) in GOLDEN.items():
        found = (
            tree_norm(T, k, b),
            toeplitz_norm(coefficients(T), k, b),
            toeplitz_norm(BLT().column(T), k, b),
            fading_norm(ends, 0.7, k, b),
            fading_norm(ends, 0.0, k, b),
        )
        wanted = (node, root, buffers, rows, rows0)
        np.testing.assert_allclose(found, wanted, atol=6e-5, rtol=0, err_msg=f"{k}, {b}")
    touched = np.array([bin(t).count("0") for t in range(1, T)])  # any profile: linear in it
    assert most_of(np.ones(T), 20, 500) == 20
    assert most_of(touched, 1, 1) == touched.max()
    for k, seven, none in ((2, 2.5820, 1.4142), (5, 5.4937, 2.2361), (20, 13.8363, 4.4721)):
        assert once_a_batch_norm(len(ends), 0.7, k) == pytest.approx(seven, abs=6e-5)
        assert once_a_batch_norm(len(ends), 0.0, k) == pytest.approx(none, abs=6e-5)
    assert once_a_batch_norm(len(ends), 0.7, len(ends)) == pytest.approx(15.3821, abs=6e-5)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda: most_of(np.ones(3), 0, 1), "cap=0"),
        (lambda: toeplitz_norm(np.array([1.0, 2.0]), 1, 1), "falls"),
        (lambda: tree_norm(4, 1, 0), "separation=0"),
        (lambda: fading_norm((1, 2), inf, 1, 1), "fade=inf"),
    ],
)
def test_mistakes_get_one_sentence(asked, words):
    with pytest.raises(InputError, match=words):
        asked()
