"""The window tree against greedy dyadic tilings: counts, lifetimes, who is hidden and when."""

from math import ceil, log2, sqrt

import numpy as np
import pytest

from dpbandit.base.inputs import InputError
from dpbandit.privacy.factors import Window
from dpbandit.privacy.prefix_sums import Tree
from tests.each import each
from tests.privacy.sums.prefix_checks import (
    check_batches,
    check_company,
    check_coupling,
    check_noiseless,
    dense,
    streamed,
)

MODES = ["exact", "lazy"]


def make_with(window, mode):
    def make(node, stddev, leaves):
        return Window(window, lazy=mode == "lazy").of(node, stddev=stddev, leaves=leaves)

    return make


def clean(t, W, mode):
    """c, the number of leaves that release t shows without noise."""
    if mode == "exact" or t % W == 0:
        return max(0, t - W)
    return max(0, (t // W - 1) * W)


def tiling(t, W, mode):
    """The largest aligned dyadic node of at most W leaves that fits, then the next: (c, t]."""
    start, used = clean(t, W, mode), {}
    while start < t:
        size = max(2**i for i in range(20) if 2**i <= W and start % 2**i == 0 and start + 2**i <= t)
        used[start, size] = 1.0
        start += size
    return used


@each("mode", MODES)
@each("w", range(7))
def test_nodes(w, mode):
    """Golden, experts_and_window.md 2.2 and test (4), for all t <= 6 W + 5, W = 2^w <= 64: node
    counts, clean prefix, tiling, at most w + 1 distinct nodes per leaf (attained), lifetimes in
    one piece; lazy needs w/2 + 1 nodes on average, exact about w."""
    W, touched, last_use, counts = 2**w, {}, {}, []
    noise = Window(W, lazy=mode == "lazy").of(lambda: np.zeros(1), stddev=1.0)
    for t in range(1, 6 * W + 6):
        nodes, r = noise.tiles(t), t % W
        assert nodes == list(tiling(t, W, mode))
        zeros = next(i for i in range(20) if t >> i & 1)
        if t <= W:
            assert len(nodes) == t.bit_count()
        elif r == 0:
            assert len(nodes) == 1
        else:
            assert len(nodes) == (w + 1 - zeros if mode == "exact" else 1 + r.bit_count())
        assert clean(t, W, mode) <= max(0, t - W)
        noise()
        assert noise.stddev == sqrt(len(nodes))
        for start, size in nodes:
            assert last_use.setdefault((start, size), t) in (t - 1, t)
            last_use[start, size] = t
            for leaf in range(start, start + size):
                touched.setdefault(leaf, set()).add((start, size))
        if 2 * W < t <= 6 * W:
            counts.append(len(nodes))
    assert max(map(len, touched.values())) == w + 1 == Window(W).nodes()
    mean = w / 2 + 1 if mode == "lazy" else w + 1 / W
    assert np.mean(counts) == pytest.approx(mean)


@pytest.mark.parametrize("mode", MODES)
def test_every_window_is_rounded_up(mode):
    """For all windows <= 64: the nodes are those of the next power of two, and a user of the last
    `window` leaves is in no clean sum. A window of all leaves has the ordinary tree's nodes."""
    for window in range(1, 65):
        tree, W = make_with(window, mode)(lambda: np.zeros(1), 1.0, None), 2 ** Window(window).depth
        for t in range(1, 6 * W + 6):
            assert tree.tiles(t) == list(tiling(t, W, mode))
            assert tree.tiles(t)[0][0] <= max(0, t - window)
            if t <= window:
                bits = [1 << i for i in reversed(range(10)) if t >> i & 1]
                assert tree.tiles(t) == [(sum(bits[:i]), bit) for i, bit in enumerate(bits)]


@pytest.mark.parametrize(("W", "later"), [(2, 1.5), (4, 2.02), (8, 2.35), (16, 2.66), (32, 2.90)])
def test_all_releases_together_cost_what_the_nodes_do(W, later):
    """Golden, section 2.2 and test (d): mu^2 s^2 / S^2 = a' Sigma^+ a with Sigma the covariance of
    all releases up to the end of a user's window and a the 0/1 prefix she is in: w + 1, as charged,
    in the first block, and in every block of a lazy tree; less in later blocks of an exact one."""
    for mode in MODES:
        B, _ = dense([tiling(t, W, mode) for t in range(1, 5 * W + 1)], 5 * W)
        costs = []
        for user in range(1, 4 * W + 1):
            end = user + W - 1
            a = np.arange(1, end + 1) >= user
            costs.append(a @ np.linalg.pinv(B[:end] @ B[:end].T) @ a)
        charged = Window(W).nodes()
        assert max(costs[:W]) == pytest.approx(charged)
        assert max(costs[W:]) == pytest.approx(charged if mode == "lazy" else later, abs=0.005)


@each("mode", MODES)
@each("window", [1, 2, 4, 8, 16])
def test_stream_is_the_dense_matrix(window, mode):
    """Oracle: B from the tilings, C the 0/1 leaves of each node: the stream is B entry by entry,
    B C the indicator of (c, t], and for every m the longest column is the calibration's."""
    m = 5 * window + 3
    prefixes = [tiling(t, window, mode) for t in range(1, m + 1)]
    B, C = dense(prefixes, m)
    assert (streamed(make_with(window, mode), m, len(C)) == B).all()
    leaf = np.arange(m)
    shown = np.array([(clean(t, window, mode) <= leaf) & (leaf < t) for t in range(1, m + 1)])
    assert (shown == B @ C).all()
    for shorter in range(1, m + 1):
        _, C = dense(prefixes[:shorter], shorter)
        assert C.sum(axis=0).max() == Window(window).nodes(shorter)
        longest = np.linalg.norm(C, axis=0).max()
        assert longest == pytest.approx(Window(window).column_norm(shorter))


@pytest.mark.parametrize("window", [100, 128, 1000])
def test_a_window_of_everything_is_the_ordinary_tree_bit_for_bit(window):
    z = np.random.default_rng(2).standard_normal((100, 2, 3))
    sources = [iter(z) for _ in range(3)]
    tree = Tree().of(lambda: next(sources[0]), stddev=1.5)
    exact, lazy = (
        Window(window, lazy=mode == "lazy").of(lambda s=s: next(s), stddev=1.5)
        for s, mode in zip(sources[1:], MODES, strict=True)
    )
    for _ in range(100):
        N = tree()
        assert (exact() == N).all()
        assert (lazy() == N).all()
        assert exact.stddev == lazy.stddev == tree.stddev
    assert Window(window).column_norm(100) == Tree().column_norm(100)
    assert Window(window).nodes() == ceil(log2(window)) + 1


@pytest.mark.parametrize("mode", MODES)
def test_privacy_proof_runs_until_a_user_expires(mode):
    """See `check_coupling`, window 3 (W = 4): user R is hidden in the releases R..R+3, also when
    the stream is adaptive; in `exact` release R+4 shows them, in `lazy` the first one after their
    block's successor is full or, at its end, t = (k+1) W."""
    m, W = 25, 4
    _, C = dense([tiling(t, W, mode) for t in range(1, m + 1)], m)
    gaps = check_coupling(make_with(3, mode), C, m)
    for user in range(1, m + 1):
        exposed = next((t for t in range(user, m + 1) if clean(t, W, mode) >= user), m + 1)
        assert exposed >= min(user + W, m + 1)
        assert gaps[user - 1, : exposed - 1].max(initial=0) < 1e-9
        if exposed <= m:
            assert gaps[user - 1, exposed - 1] > 1e-3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("window", [1, 5, 32])
def test_common_checks(window, mode):
    check_noiseless(make_with(window, mode), most=60)
    check_batches(make_with(window, mode))
    check_company(make_with(window, mode))


def test_noiseless_sums_for_every_length_up_to_200():
    check_noiseless(make_with(16, "exact"))


def test_bad_input_is_refused():
    noise = make_with(4, "exact")(lambda: np.zeros(1), 1.0, 5)
    for _ in range(5):
        noise()
    with pytest.raises(InputError, match="calibrated for 5 releases, not more"):
        noise()
    with pytest.raises(InputError, match="window=0 to be a whole number >= 1"):
        make_with(0, "exact")(lambda: np.zeros(1), 1.0, 5)
