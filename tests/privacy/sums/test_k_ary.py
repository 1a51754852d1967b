"""The k-ary tree with subtraction against its digits and dense matrices."""

import numpy as np
import pytest

from dpbandit.base.inputs import InputError
from dpbandit.privacy.factors import Honaker, KAry, best_arity, levels, nodes_in_use
from dpbandit.privacy.prefix_sums import Tree
from tests.each import each
from tests.privacy.sums.prefix_checks import (
    check_batches,
    check_coupling,
    check_noiseless,
    dense,
    prefix_matrix,
    streamed,
)

ARITIES = [2, 3, 4, 5, 6, 19, None]


def make_with(arity):
    def make(node, stddev, leaves):
        return KAry(arity).of(node, stddev=stddev, leaves=leaves)

    return make


def digits(t, k):
    """The digits of t in -(k-1)//2 .. k//2, the lowest first: found by search, not by carries."""
    found = []
    while t:
        digit = next(d for d in range(-((k - 1) // 2), k // 2 + 1) if (t - d) % k == 0)
        found.append(digit)
        t = (t - digit) // k
    return found


def signed_nodes(t, k):
    """{(start, size): +1 or -1} of the prefix t: digit by digit, from the top down."""
    ds, used, position = digits(t, k), {}, 0
    for level in range(len(ds) - 1, -1, -1):
        size = k**level
        for i in range(abs(ds[level])):
            start = position + i * size if ds[level] > 0 else position - (i + 1) * size
            used[start, size] = float(np.sign(ds[level]))
        position += ds[level] * size
    assert position == t
    # first used: lower levels first, subtracted children from the last one back
    return dict(sorted(used.items(), key=lambda item: (item[0][1], -item[0][0])))


@each("k", ARITIES)
@each("m", [1, 2, 13, 62, 63, 130])
def test_factorisation(m, k):
    """Oracle: B C = A exactly, leaves of the future cancelling; the stream is B entry by entry;
    the L1 and L2 norms of the longest column of C are those used for calibration."""
    arity = best_arity(m) if k is None else k
    B, C = dense([signed_nodes(t, arity) for t in range(1, m + 1)], m)
    assert (prefix_matrix(m) == B @ C).all()
    drawn = streamed(make_with(k), m, len(C) + arity * levels(m, arity))
    assert (drawn[:, : len(C)] == B).all()
    assert not drawn[:, len(C) :].any()
    assert np.abs(C).sum(axis=0).max() == KAry(k).nodes(m)
    assert np.linalg.norm(C, axis=0).max() == pytest.approx(KAry(k).column_norm(m))
    assert np.abs(B).sum() == nodes_in_use(m, arity)


@pytest.mark.parametrize("k", [2, 5, 6])
def test_noise_is_the_matrix_times_the_node_noises(k):
    """Oracle: with z in several replicas and axes, N = B z, and `.stddev` is |row of B|."""
    m = 130
    B, C = dense([signed_nodes(t, k) for t in range(1, m + 1)], m)
    z = np.random.default_rng(1).standard_normal((len(C) + 3 * k, 3, 2, 2))
    source = iter(z)
    noise = KAry(k).of(lambda: next(source), stddev=3.0, leaves=m)
    for row in B:
        by_hand = np.einsum("n,nrij->rij", row, z[: len(C)])
        np.testing.assert_allclose(noise(), by_hand, rtol=0, atol=1e-12)
        assert noise.stddev == pytest.approx(3 * np.linalg.norm(row), rel=1e-12)


def test_nine_in_base_five_by_hand():
    """Golden, the drawing of the docstring: 9 = 2 * 5 - 1, three nodes; 8 = 2 * 5 - 2; 7 = 5 + 2,
    and leaf 3, in the middle of its parent, is nobody's node."""
    assert signed_nodes(9, 5) == {(9, 1): -1, (5, 5): 1, (0, 5): 1}
    assert [digits(t, 5) for t in (7, 8, 9)] == [[2, 1], [-2, 2], [-1, 2]]
    used = {node for t in range(1, 63) for node in signed_nodes(t, 5)}
    assert (2, 1) not in used
    assert (1, 1) in used


def test_base_two_is_the_binary_tree_bit_for_bit():
    z = np.random.default_rng(2).standard_normal((300, 2, 3))
    one, two = iter(z), iter(z)
    k_ary = KAry(2).of(lambda: next(one), stddev=1.5, leaves=300)
    tree = Tree().of(lambda: next(two), stddev=1.5)
    for _ in range(300):
        assert (k_ary() == tree()).all()
        assert k_ary.stddev == tree.stddev
    assert all(KAry(2).column_norm(m) == Tree().column_norm(m) for m in range(300))


def test_best_arity_is_the_best():
    """Oracle: no base from 2 to 2m has a smaller levels^2 x nodes, for every m in 1..60 and 200."""
    for m in [*range(1, 61), 200]:
        costs = {k: levels(m, k) ** 2 * nodes_in_use(m, k) for k in range(2, 2 * m + 1)}
        assert costs[best_arity(m)] == min(costs.values())
    assert KAry().nodes(0) == 0


def test_nodes_in_use_is_the_sum_of_the_digits():
    """Oracle: brute force for every base up to 12 and m up to 200."""
    for k in range(2, 13):
        total = 0
        for m in range(1, 201):
            total += sum(map(abs, digits(m, k)))
            assert nodes_in_use(m, k) == total
            assert levels(m, k) == max(len(digits(t, k)) for t in (m, max(1, m - 1), (m + 1) // 2))


@pytest.mark.parametrize("k", [3, 4, 5])
def test_privacy_proof_runs(k):
    """See `check_coupling`: although a node's noise is used before the node is full, every user
    is hidden in every release, for adaptive streams."""
    _, C = dense([signed_nodes(t, k) for t in range(1, 31)], 30)
    assert check_coupling(make_with(k), np.vstack([C, np.zeros((30, 30))]), 30).max() < 1e-9


@pytest.mark.parametrize("k", [None, 3, 4])
def test_noiseless_sums_and_batches(k):
    check_noiseless(make_with(k))
    check_batches(make_with(k))


def test_bad_input_is_refused():
    noise = KAry().of(lambda: np.zeros(1), stddev=1.0, leaves=5)
    for _ in range(5):
        noise()
    with pytest.raises(InputError, match="calibrated for 5 releases, not more"):
        noise()
    with pytest.raises(InputError, match="arity=1 to be a whole number >= 2"):
        KAry(1).of(lambda: np.zeros(1), stddev=1.0, leaves=5)
    assert Honaker().nodes(5) == KAry(2).nodes(5) == 3
