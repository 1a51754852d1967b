"""Any horizon: fresh noise, the hybrid tree; and the padded tree."""

from math import sqrt

import numpy as np
import pytest

from dpbandit.base.inputs import InputError
from dpbandit.privacy.factors import Hybrid, Independent
from dpbandit.privacy.prefix_sums import Padded, Tree
from tests.each import each
from tests.privacy.sums.prefix_checks import (
    check_batches,
    check_company,
    check_coupling,
    check_noiseless,
    prefix_matrix,
    script,
    streamed,
)


def independent(node, stddev, leaves):
    return Independent().of(node, stddev=stddev)


def hybrid(norm):
    return lambda node, stddev, leaves: Hybrid(norm).of(node, stddev=stddev)


def padded(node, stddev, leaves):
    return Padded().of(node, stddev=stddev, leaves=leaves)


def hybrid_matrices(m, norm):
    """B (m, m) and C (m, m) by hand. Node t closes at leaf t; with 2^j the last power of two up
    to t it holds the leaves between t and the last multiple of lowbit(t - 2^j + 1) before it, and
    it is charged a j+1-th of the budget (in the chosen norm)."""
    B, C = np.zeros((m, m)), np.zeros((m, m))
    for t in range(1, m + 1):
        j = len(f"{t:b}") - 1
        s = t - 2**j + 1
        share = (j + 1.0) ** (1 / norm)
        size = next(2**i for i in range(j + 1) if s // 2**i % 2)
        C[t - 1, t - size : t] = 1 / share
        for i in range(j):
            B[t - 1, 2 ** (i + 1) - 2] = (i + 1.0) ** (1 / norm)  # the root of epoch i
        while s:
            B[t - 1, 2**j + s - 2] = share
            s &= s - 1
    return B, C


@each("norm", [1, 2])
@each("m", [1, 2, 3, 4, 63, 64, 100])
def test_hybrid_factorisation(m, norm):
    """Oracle: B C = A, the stream is B, and no column of C is longer than 1 in the chosen norm,
    whatever the horizon; the first leaf of a finished epoch attains it."""
    B, C = hybrid_matrices(m, norm)
    np.testing.assert_allclose(B @ C, prefix_matrix(m), rtol=0, atol=1e-14)
    np.testing.assert_allclose(streamed(hybrid(norm), m, m), B, rtol=0, atol=1e-14)
    assert np.linalg.norm(C, ord=norm, axis=0).max() == pytest.approx(Hybrid(norm).column_norm(m))
    assert Hybrid(norm).column_norm(0) == Independent().column_norm(0) == 0


def test_hybrid_variances():
    """Golden, convex.md 0.7, norm 1: sum_{i<j} (i+1)^2 + popcount(s) (j+1)^2 is 885 at t = 1000
    (j = 9, s = 489 has six bits: 285 + 600), 385 at 1023, 506 at 1024. With norm 2 the same
    sums of first powers: 45 + 60 = 105, 55, 55 + 11 = 66."""
    for norm, expected in ((1, [885, 385, 506]), (2, [105, 55, 66])):
        noise = Hybrid(norm).of(lambda: np.zeros(1), stddev=2.0)
        variances = [(noise(), noise.stddev**2 / 4)[1] for _ in range(1024)]
        chosen = [variances[t - 1] for t in (1000, 1023, 1024)]
        assert chosen == pytest.approx(expected, rel=1e-12)


def test_hybrid_noise_is_the_matrix_times_the_node_noises():
    """Oracle: with z in several replicas and axes, N = B z, and `.stddev` is |row of B|."""
    B, _ = hybrid_matrices(40, 1)
    z = np.random.default_rng(1).standard_normal((40, 3, 2, 2))
    noise = Hybrid(1).of(script(z), stddev=3.0)
    for row in B:
        np.testing.assert_allclose(noise(), np.einsum("n,nrij->rij", row, z), rtol=0, atol=1e-12)
        assert noise.stddev == pytest.approx(3 * np.linalg.norm(row), rel=1e-12)


def test_independent_noise_is_a_random_walk():
    """Oracle: B = A, C = 1: N is numpy's cumsum of the draws, its size sqrt(t)."""
    z = np.random.default_rng(1).standard_normal((30, 3, 2))
    noise = Independent().of(script(z), stddev=2.0)
    for t, row in enumerate(z.cumsum(axis=0), start=1):
        assert (noise() == row).all()
        assert noise.stddev == pytest.approx(2 * sqrt(t), rel=1e-12)
    assert Independent().column_norm(10**9) == 1


def test_padded_tree_carries_the_same_number_of_noises_everywhere():
    """Oracle: with unit vectors for draws every prefix has exactly h = bit_length(m) ones, the
    padding is used once and never again, and without it the tree's own factorisation remains."""
    for m in (1, 2, 13, 31, 32):
        h = m.bit_length()
        B = streamed(padded, m, h * m)
        assert set(np.unique(B)) <= {0.0, 1.0}
        assert (B.sum(axis=1) == h).all()
        firsts = np.cumsum([0, *(1 + h - t.bit_count() for t in range(1, m))])
        tree = streamed(lambda node, stddev, leaves: Tree().of(node, stddev=stddev), m, m)
        assert (B[:, firsts] == tree).all()
        padding = np.delete(B, firsts, axis=1)
        assert padding.sum(axis=0).max(initial=0) <= 1
        noise = Padded().of(lambda: np.zeros(1), stddev=2.0, leaves=m)
        assert {(noise(), noise.stddev)[1] for _ in range(m)} == {2.0 * sqrt(h)}
        assert Padded().column_norm(m) == Tree().column_norm(m)


def test_privacy_proofs_run():
    """See `check_coupling`: every user is hidden in every release, for adaptive streams."""
    assert check_coupling(independent, np.eye(20), 20).max() < 1e-9
    for norm in (1, 2):
        assert check_coupling(hybrid(norm), hybrid_matrices(20, norm)[1], 20).max() < 1e-9


@pytest.mark.parametrize("make", [independent, hybrid(1), hybrid(2), padded])
def test_common_checks(make):
    check_noiseless(make)
    check_batches(make)
    check_company(make)


def test_bad_input_is_refused():
    noise = Padded().of(lambda: np.zeros(1), stddev=1.0, leaves=5)
    for _ in range(5):
        noise()
    with pytest.raises(InputError, match="calibrated for 5 releases, not more"):
        noise()
    with pytest.raises(InputError, match="norm=3 to be 1"):
        Hybrid(3).of(lambda: np.zeros(1), stddev=1.0)
