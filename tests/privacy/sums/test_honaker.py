"""Honaker's tree against least squares on dense matrices."""

import numpy as np
import pytest

from dpbandit.base.inputs import InputError
from dpbandit.privacy.factors import Honaker
from tests.privacy.sums.prefix_checks import (
    check_batches,
    check_coupling,
    check_noiseless,
    prefix_matrix,
    streamed,
)


def make(node, stddev, leaves):
    return Honaker().of(node, stddev=stddev, leaves=leaves)


def complete_nodes(m):
    """C (n, m) and the leaf that completes each node, in the order of completion, bottom up."""
    ends, rows = [], []
    for t in range(1, m + 1):
        for size in (2**i for i in range(10) if t % 2**i == 0):
            ends.append(t)
            rows.append([float(t - size < leaf <= t) for leaf in range(1, m + 1)])
    return np.array(rows), np.array(ends)


@pytest.mark.parametrize("m", [1, 2, 7, 32, 45])
def test_it_is_the_best_unbiased_reading_of_all_released_nodes(m):
    """Oracle: row t of B is the shortest b with b C = (1..1 0..0), b supported on the nodes that
    are complete at t (Gauss-Markov: numpy's least squares of minimal norm); so B C = A."""
    C, ends = complete_nodes(m)
    B = streamed(make, m, len(C))
    np.testing.assert_allclose(B @ C, prefix_matrix(m), rtol=0, atol=1e-13)
    for t in range(1, m + 1):
        done = ends <= t
        best = np.zeros(len(C))
        best[done] = np.linalg.lstsq(C[done].T, prefix_matrix(m)[t - 1], rcond=None)[0]
        np.testing.assert_allclose(B[t - 1], best, rtol=0, atol=1e-13)


def test_noise_is_the_matrix_times_the_node_noises():
    """Oracle: with z in several replicas and axes, N = B z, and `.stddev` is |row of B|."""
    m = 45
    C, _ = complete_nodes(m)
    B = streamed(make, m, len(C))
    z = np.random.default_rng(1).standard_normal((len(C), 3, 2, 2))
    source = iter(z)
    noise = Honaker().of(lambda: next(source), stddev=3.0, leaves=m)
    for row in B:
        np.testing.assert_allclose(noise(), np.einsum("n,nrij->rij", row, z), rtol=0, atol=1e-13)
        assert noise.stddev == pytest.approx(3 * np.linalg.norm(row), rel=1e-12)


def test_column_norm_is_that_of_all_complete_nodes():
    """Oracle: for every m in 1..130 the longest column of C, right children included."""
    for m in range(1, 131):
        C, _ = complete_nodes(m)
        assert C.sum(axis=0).max() == Honaker().nodes(m)
        assert np.linalg.norm(C, axis=0).max() == pytest.approx(Honaker().column_norm(m))
    assert Honaker().column_norm(0) == 0


def test_variances_by_hand():
    """Golden: v_1 = 1 / (1 + 1/2) = 2/3, v_2 = 1 / (1 + 3/4) = 4/7: prefixes 1..7 are
    1, 2/3, 5/3, 4/7, 11/7, 26/21, 47/21."""
    noise = Honaker().of(lambda: np.zeros(1), stddev=1.0, leaves=7)
    variances = [(noise(), noise.stddev**2)[1] for _ in range(7)]
    np.testing.assert_allclose(variances, [1, 2 / 3, 5 / 3, 4 / 7, 11 / 7, 26 / 21, 47 / 21])


def test_privacy_proof_runs():
    """See `check_coupling`: every user is hidden in every release, for adaptive streams."""
    assert check_coupling(make, complete_nodes(21)[0], 21).max() < 1e-9


def test_noiseless_sums_and_batches():
    check_noiseless(make)
    check_batches(make)


def test_one_release_too_many_is_refused():
    noise = Honaker().of(lambda: np.zeros(1), stddev=1.0, leaves=5)
    for _ in range(5):
        noise()
    with pytest.raises(InputError, match="calibrated for 5 releases, not more"):
        noise()
