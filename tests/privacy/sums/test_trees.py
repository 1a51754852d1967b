"""Trees of other shapes against dense matrices: their noise, what nodes cost, who is hidden."""

from math import ceil, log2, sqrt

import numpy as np
import pytest

from dpbandit.privacy.factors import (
    Honaker,
    Hybrid,
    Independent,
    KAry,
    Window,
    best_arity,
    levels,
    nodes_in_use,
)
from dpbandit.privacy.prefix_sums import Padded, Tree
from tests.each import each, refused
from tests.privacy.sums.prefix_checks import (
    check_common,
    check_coupling,
    dense,
    prefix_matrix,
    script,
    streamed,
)

MODES = ["exact", "lazy"]


def honaker(node, stddev, leaves):
    return Honaker().of(node, stddev=stddev, leaves=leaves)


def independent(node, stddev, leaves):
    return Independent().of(node, stddev=stddev)


def padded(node, stddev, leaves):
    return Padded().of(node, stddev=stddev, leaves=leaves)


def k_ary(arity):
    return lambda node, stddev, leaves: KAry(arity).of(node, stddev=stddev, leaves=leaves)


def hybrid(norm):
    return lambda node, stddev, leaves: Hybrid(norm).of(node, stddev=stddev)


def windowed(window, mode):
    made = Window(window, lazy=mode == "lazy")
    return lambda node, stddev, leaves: made.of(node, stddev=stddev, leaves=leaves)


def complete_nodes(m):
    """C (n, m) and the leaf that completes each node, in the order of completion, bottom up."""
    ends, rows = [], []
    for t in range(1, m + 1):
        for size in (2**i for i in range(10) if t % 2**i == 0):
            ends.append(t)
            rows.append([float(t - size < leaf <= t) for leaf in range(1, m + 1)])
    return np.array(rows), np.array(ends)


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


def signed_matrices(m, k):
    return dense([signed_nodes(t, k) for t in range(1, m + 1)], m)


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


def honaker_matrices(m):
    C, _ = complete_nodes(m)
    return streamed(honaker, m, len(C)), C


PROCESSES = {
    "honaker": (honaker, honaker_matrices),
    **{f"base {k}": (k_ary(k), lambda m, k=k: signed_matrices(m, k)) for k in (2, 3, 4, 5, 6)},
    **{f"hybrid {n}": (hybrid(n), lambda m, n=n: hybrid_matrices(m, n)) for n in (1, 2)},
    "independent": (independent, lambda m: (prefix_matrix(m), np.eye(m))),
}


@each("name", PROCESSES)
def test_noise_is_the_matrix_times_the_node_noises_and_hides_everybody(name):
    """Oracle: with z in several replicas and axes, N = B z, and `.stddev` is |row of B|. See
    `check_coupling`: all users are hidden in all releases, for adaptive streams."""
    make, matrices = PROCESSES[name]
    B, _ = matrices(130)
    z = np.random.default_rng(1).standard_normal((B.shape[1] + 130, 3, 2, 2))
    noise = make(script(z), 3.0, len(B))
    for row in B:
        by_hand = np.einsum("n,nrij->rij", row, z[: B.shape[1]])
        np.testing.assert_allclose(noise(), by_hand, rtol=0, atol=1e-12)
        assert noise.stddev == pytest.approx(3 * np.linalg.norm(row), rel=1e-12)
    C = np.vstack([matrices(30)[1], np.zeros((30, 30))])  # some draw more than they use
    assert check_coupling(make, C, 30).max() < 1e-9


KINDS = [honaker, *map(k_ary, (None, 2, 3, 4)), independent, hybrid(1), hybrid(2), padded]
KINDS = [(kind, 200) for kind in [*KINDS, windowed(16, "exact")]]
KINDS += [(windowed(window, mode), 60) for window in (1, 5, 32) for mode in MODES]


@pytest.mark.parametrize(("make", "most"), KINDS)
def test_common_checks(make, most):
    check_common(make, most)


def test_bad_input_is_refused():
    for make in (honaker, k_ary(None), padded, windowed(4, "exact")):
        noise = make(lambda: np.zeros(1), 1.0, 5)
        for _ in range(5):
            noise()
        refused("calibrated for 5 releases, not more", noise)
    for make, sentence in (
        (k_ary(1), "arity=1 to be a whole number >= 2"),
        (hybrid(3), "norm=3 to be 1"),
        (lambda *noise: windowed(0, "exact")(*noise), "window=0 to be a whole number >= 1"),
    ):
        refused(sentence, make, lambda: np.zeros(1), 1.0, 5)
    assert Honaker().nodes(5) == KAry(2).nodes(5) == 3


def test_honaker_is_the_best_unbiased_reading_of_all_released_nodes():
    """Oracle (Gauss-Markov): row t of B is the shortest b with b C = (1..1 0..0) on the complete
    nodes; the longest column of C, right children included; variances by hand."""
    for m in (1, 2, 7, 32, 45):
        C, ends = complete_nodes(m)
        B = streamed(honaker, m, len(C))
        np.testing.assert_allclose(B @ C, prefix_matrix(m), rtol=0, atol=1e-13)
        for t in range(1, m + 1):
            done = ends <= t
            best = np.zeros(len(C))
            best[done] = np.linalg.lstsq(C[done].T, prefix_matrix(m)[t - 1], rcond=None)[0]
            np.testing.assert_allclose(B[t - 1], best, rtol=0, atol=1e-13)
    for m in range(1, 131):
        C, _ = complete_nodes(m)
        assert C.sum(axis=0).max() == Honaker().nodes(m)
        assert np.linalg.norm(C, axis=0).max() == pytest.approx(Honaker().column_norm(m))
    assert Honaker().column_norm(0) == 0
    noise = honaker(lambda: np.zeros(1), 1.0, 7)
    variances = [(noise(), noise.stddev**2)[1] for _ in range(7)]
    np.testing.assert_allclose(variances, [1, 2 / 3, 5 / 3, 4 / 7, 11 / 7, 26 / 21, 47 / 21])


@each("k", [2, 3, 4, 5, 6, 19, None])
@each("m", [1, 2, 13, 62, 63, 130])
def test_k_ary_factorisation(m, k):
    """Oracle: B C = A exactly; the stream is B; columns of C are as long as calibration says."""
    arity = best_arity(m) if k is None else k
    B, C = signed_matrices(m, arity)
    assert (prefix_matrix(m) == B @ C).all()
    drawn = streamed(k_ary(k), m, len(C) + arity * levels(m, arity))
    assert (drawn[:, : len(C)] == B).all()
    assert not drawn[:, len(C) :].any()
    assert np.abs(C).sum(axis=0).max() == KAry(k).nodes(m)
    assert np.linalg.norm(C, axis=0).max() == pytest.approx(KAry(k).column_norm(m))
    assert np.abs(B).sum() == nodes_in_use(m, arity)


def test_best_arity_is_the_best():
    """Oracle: digits by search; no base from 2 to 2m has a smaller levels^2 x nodes."""
    for k in range(2, 13):
        total = 0
        for m in range(1, 201):
            total += sum(map(abs, digits(m, k)))
            assert nodes_in_use(m, k) == total
            assert levels(m, k) == max(len(digits(t, k)) for t in (m, max(1, m - 1), (m + 1) // 2))
    for m in [*range(1, 61), 200]:
        costs = {k: levels(m, k) ** 2 * nodes_in_use(m, k) for k in range(2, 2 * m + 1)}
        assert costs[best_arity(m)] == min(costs.values())
    assert KAry().nodes(0) == 0


SAME = {
    300: [k_ary(2)],
    100: [windowed(window, mode) for window in (100, 128, 1000) for mode in MODES],
}


@each("m", SAME)
def test_base_two_and_a_window_of_everything_are_the_binary_tree_bit_for_bit(m):
    z = np.random.default_rng(2).standard_normal((m, 2, 3))
    for make in SAME[m]:
        other, tree = make(script(z), 1.5, m), Tree().of(script(z), stddev=1.5)
        for _ in range(m):
            assert (other() == tree()).all()
            assert other.stddev == tree.stddev
    assert all(KAry(2).column_norm(n) == Tree().column_norm(n) for n in range(m))
    for window in (100, 128, 1000):
        assert Window(window).column_norm(100) == Tree().column_norm(100)
        assert Window(window).nodes() == ceil(log2(window)) + 1


@each("norm", [1, 2])
@each("m", [1, 2, 3, 4, 63, 64, 100])
def test_hybrid_factorisation(m, norm):
    """Oracle: B C = A, the stream is B, and no column of C is longer than 1, whatever the
    horizon."""
    B, C = hybrid_matrices(m, norm)
    np.testing.assert_allclose(B @ C, prefix_matrix(m), rtol=0, atol=1e-14)
    np.testing.assert_allclose(streamed(hybrid(norm), m, m), B, rtol=0, atol=1e-14)
    assert np.linalg.norm(C, ord=norm, axis=0).max() == pytest.approx(Hybrid(norm).column_norm(m))
    assert Hybrid(norm).column_norm(0) == Independent().column_norm(0) == 0
    assert Independent().column_norm(10**9) == 1


def test_hybrid_variances():
    """Golden, convex.md 0.7: sum_{i<j} (i+1)^2 + popcount(s) (j+1)^2, with norm 2 of first
    powers."""
    for norm, expected in ((1, [885, 385, 506]), (2, [105, 55, 66])):
        noise = Hybrid(norm).of(lambda: np.zeros(1), stddev=2.0)
        variances = [(noise(), noise.stddev**2 / 4)[1] for _ in range(1024)]
        chosen = [variances[t - 1] for t in (1000, 1023, 1024)]
        assert chosen == pytest.approx(expected, rel=1e-12)


def test_padded_tree_carries_the_same_number_of_noises_everywhere():
    """Oracle: every prefix has h = bit_length(m) noises, padding is used once, the rest is the
    tree."""
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
        noise = padded(lambda: np.zeros(1), 2.0, m)
        assert {(noise(), noise.stddev)[1] for _ in range(m)} == {2.0 * sqrt(h)}
        assert Padded().column_norm(m) == Tree().column_norm(m)


class Counted(float):
    """A noise that counts how often it is added to another one."""

    additions = 0

    def __add__(self, other):
        Counted.additions += 1
        return Counted(float(self) + other)


def test_a_tree_has_logarithmic_space_and_constant_time(monkeypatch):
    """Smith and Thakurta (2013) promise O(log T) vectors of memory and as many operations a round:
    the tree keeps one prefix for each bit of T, and a round draws one noise and adds one at
    most. Counted in every round. The noise of round t is t: N_t sums t's leading bits, by hand."""
    monkeypatch.setattr(Counted, "additions", 0)
    drawn = []
    noise = Tree().of(lambda: drawn.append(Counted(len(drawn) + 1)) or drawn[-1], stddev=1.0)
    for t in range(1, 2**12):
        assert noise() == sum(t >> k << k for k in range(12) if t >> k & 1)
        assert len(drawn) == t
        assert Counted.additions <= t
        assert len(noise.prefix) == t.bit_length()
        assert noise.stddev == sqrt(t.bit_count())


@each("mode", MODES)
@each("w", range(7))
def test_nodes_of_a_window(w, mode):
    """Golden, experts_and_window.md 2.2 and test (4): node counts, tiling, at most w + 1 nodes per
    leaf (attained), lifetimes in one piece; on average w/2 + 1 nodes if lazy, else about w."""
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
    """To the next power of two, of which all to 64 and their neighbours are tried; a user of the
    last `window` leaves is in no clean sum."""
    for window in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64):
        tree, W = windowed(window, mode)(lambda: np.zeros(1), 1.0, None), 2 ** Window(window).depth
        for t in range(1, 6 * W + 6):
            assert tree.tiles(t) == list(tiling(t, W, mode))
            assert tree.tiles(t)[0][0] <= max(0, t - window)


@each(("W", "later"), [(2, 1.5), (4, 2.02), (8, 2.35), (16, 2.66), (32, 2.90)])
def test_all_releases_of_a_window_together_cost_what_the_nodes_do(W, later):
    """Golden, section 2.2 and test (d): a' Sigma^+ a over all releases of a user's window is w + 1
    in the first block and in every block of a lazy tree; less in later blocks of an exact one."""
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
def test_stream_of_a_window_is_the_dense_matrix(window, mode):
    """Oracle: the stream is B, B C the indicator of (c, t], the longest column as calibrated."""
    m = 5 * window + 3
    prefixes = [tiling(t, window, mode) for t in range(1, m + 1)]
    B, C = dense(prefixes, m)
    assert (streamed(windowed(window, mode), m, len(C)) == B).all()
    leaf = np.arange(m)
    shown = np.array([(clean(t, window, mode) <= leaf) & (leaf < t) for t in range(1, m + 1)])
    assert (shown == B @ C).all()
    for shorter in range(1, m + 1):
        _, C = dense(prefixes[:shorter], shorter)
        assert C.sum(axis=0).max() == Window(window).nodes(shorter)
        longest = np.linalg.norm(C, axis=0).max()
        assert longest == pytest.approx(Window(window).column_norm(shorter))


@each("mode", MODES)
def test_a_window_hides_a_user_until_she_expires(mode):
    """See `check_coupling`, W = 4: user R is hidden in releases R..R+3; `exact` shows her in R+4,
    `lazy` when her block's successor is full."""
    m, W = 25, 4
    _, C = dense([tiling(t, W, mode) for t in range(1, m + 1)], m)
    gaps = check_coupling(windowed(3, mode), C, m)
    for user in range(1, m + 1):
        exposed = next((t for t in range(user, m + 1) if clean(t, W, mode) >= user), m + 1)
        assert exposed >= min(user + W, m + 1)
        assert gaps[user - 1, : exposed - 1].max(initial=0) < 1e-9
        if exposed <= m:
            assert gaps[user - 1, exposed - 1] > 1e-3
