"""Noisy iterative hard thresholding: sensitivity by construction, laws of peeling, the price."""

from dataclasses import replace
from itertools import product
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binom

from dpbandit.base import Streams
from dpbandit.privacy import BudgetExceededError, Ledger, NoisyHardThresholding
from dpbandit.privacy.peeling import (
    GumbelPeeling,
    LaplacePeeling,
    SparseRows,
    least_peeling,
    printed_peeling,
    project_l1,
)
from tests.each import each, refused

SIZES = {"entry_bound": 1.0, "norm_bound": 1.5, "residual_clip": 0.4}
ROWS = SparseRows(blocks=3, dim=4, reward_low=-0.5, reward_high=1.0, **SIZES)
EXACT = GumbelPeeling(0.0, 0.0)


def make(peeling=EXACT, *, seeds=(0, 1), rows=ROWS, **changed):
    settings = {"episodes": (4, 8), "uses": 20, "sparsity": 2, "joint": False, "iterations": 3}
    settings |= {"step_size": 2.0, "radius": 1.0}
    return NoisyHardThresholding(rows, peeling, Streams(seeds), **{**settings, **changed})


def users(count, replicas, seed, extreme=False):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, replicas, 4))
    r = rng.uniform(-0.5, 1, (count, replicas))
    if extreme:
        x *= rng.choice([0.1, 1.0, 10.0, 1e9, 1e300], size=(count, replicas, 1))
        x[rng.random((count, replicas)) < 0.3] = 1.0  # a corner of the cube, clipped
        x[rng.random((count, replicas)) < 0.05] = rng.choice([np.nan, np.inf])
        r = rng.choice([-1e9, 1e9, np.nan, np.inf, -np.inf, 0.3], size=(count, replicas))
    return x, rng.integers(0, 3, (count, replicas)), r


@each("at", [0.0, 0.3, 30.0])
def test_no_user_moves_a_gradient_further_than_the_bounds(at):
    """Property: pairs of extreme users stay within `moves`, of all coordinates and of the two
    picked ones, met to 10 %, a half of it in each of two arms. Golden: the lesser of sqrt(s)
    entries and the norm."""
    R, picks = 4000, 2
    beta = at * np.random.default_rng(0).standard_normal((R, 3, 4))
    moves = []
    for seed in (1, 2):
        x, block, r = ROWS.row(*(part[0] for part in users(1, R, seed, extreme=True)))
        moves.append(ROWS.gradient(x[:, None], block[:, None], r[:, None], beta))
    gap = np.abs(moves[0] - moves[1])
    assert np.isfinite(gap).all()
    one, two = gap.max(axis=(1, 2)), np.sqrt(np.square(np.sort(gap)[..., -picks:]).sum(axis=2))
    several = (two > 0).sum(axis=1) == 2
    assert several.any()
    for size, bound in zip((one, two), ROWS.moves(picks), strict=True):
        assert 0.9 * bound < size.max() <= bound + 1e-12
        assert size[several].max() <= bound / 2 + 1e-12
    for picks, longest in ((1, 1), (2, sqrt(2)), (4, 1.5)):
        assert ROWS.moves(picks) == pytest.approx((0.8, 0.8 * longest))
    assert make().sensitivity == pytest.approx(0.8)


def test_queries():
    """They add up to n / step times the first iterate; of shared arms, the row of the arm
    played."""
    mechanism = make(episodes=(4,), iterations=1, sparsity=4, radius=1e9)
    x, a, r = users(4, 2, seed=3)
    total = sum(mechanism.query(*datum) for datum in zip(x, a, r, strict=True))
    beta = [mechanism(*datum) for datum in zip(x, a, r, strict=True)][-1]
    np.testing.assert_allclose(beta, 2.0 / 4 * total, rtol=0, atol=1e-12)
    shared, context = make(rows=replace(ROWS, blocks=1)), np.zeros((2, 3, 4))
    context[[0, 1], a[0]] = x[0]
    one = shared.query(x[0], np.zeros(2, dtype=int), r[0])
    np.testing.assert_array_equal(shared.query(context, a[0], r[0]), one)


def direct(x, a, r, *, sparsity, iterations, step_size, radius):
    """Oracle: iterative hard thresholding of one replica, user by user."""
    beta = np.zeros((3, 4))
    for _ in range(iterations):
        v = beta.copy()
        for xi, ai, ri in zip(x, a, r, strict=True):
            xi = np.clip(xi * min(1, 1.5 / np.linalg.norm(xi)), -1, 1)
            v[ai] += step_size / len(x) * xi * np.clip(ri - xi @ beta[ai], -0.4, 0.4)
        for g in range(3):
            v[g, np.argsort(np.abs(v[g]))[: 4 - sparsity]] = 0.0
            low, high = 0.0, np.abs(v[g]).max()
            for _ in range(60):  # the level of soft thresholding, bisected
                level = (low + high) / 2
                inside = np.clip(np.abs(v[g]) - level, 0, None).sum() <= radius
                low, high = (low, level) if inside else (level, high)
            beta[g] = np.sign(v[g]) * np.clip(np.abs(v[g]) - high, 0, None)
    return beta


@each("peeling", [EXACT, LaplacePeeling(0.0)])
@each("radius", [0.3, 1e3])
def test_without_noise_it_is_iterative_hard_thresholding_with_forgetting(peeling, radius):
    """Oracle: every episode's estimate, from its own rounds alone; nothing after the last."""
    mechanism = make(peeling, radius=radius)
    x, a, r = users(20, 2, seed=4)
    releases = [mechanism(*datum) for datum in zip(x, a, r, strict=True)]
    assert [t for t, release in enumerate(releases) if release is not None] == [3, 11]
    for first, last in ((0, 4), (4, 12)):
        for j in range(2):
            mine = (part[first:last, j] for part in (x, a, r))
            wanted = direct(*mine, sparsity=2, iterations=3, step_size=2.0, radius=radius)
            np.testing.assert_allclose(releases[last - 1][j], wanted, rtol=0, atol=1e-9)
    assert mechanism._r.size == 0
    with pytest.raises(BudgetExceededError):
        mechanism(x[0], a[0], r[0])


def test_joint_peeling_keeps_the_largest_of_all_blocks():
    beta = make(joint=True, sparsity=3, episodes=(4,), iterations=1, radius=1e9)
    full = make(joint=True, sparsity=12, episodes=(4,), iterations=1, radius=1e9)
    for datum in zip(*users(4, 2, seed=5), strict=True):
        sparse, dense = beta(*datum), full(*datum)
    cut = np.sort(np.abs(dense).reshape(2, -1))[:, -3][:, None, None]
    np.testing.assert_array_equal(sparse, np.where(np.abs(dense) >= cut, dense, 0))


def peeled(peeling, picks, v, move, move_2, *, calls):
    """Return the releases of `calls` peelings of v (R, P, D), (calls, R, P, D)."""
    peel = peeling.sampler(Streams(range(len(v))), picks, v.shape[1:])
    return np.array([peel(v, move, move_2) for _ in range(calls)])


def laplace_law(scores, scale):
    """P(the first of two wins): gap g >= 0 of two Laplace, 1 - e^(-g / c) (1 + g / 2c) / 2."""
    gap = (scores[0] - scores[1]) / scale
    return 1 - exp(-gap) * (1 + gap / 2) / 2


V, MOVE, MOVE_2 = np.array([-1.0, 0.6]), 0.5, 0.7
FIRST = {
    GumbelPeeling(0.9, 1.3): [softmax(np.abs(V) / (c * MOVE))[0] for c in (0.9, 0.99)],
    LaplacePeeling(0.9): [laplace_law(np.abs(V), c * MOVE) for c in (0.9, 0.99)],
}
STDDEV = {GumbelPeeling(0.9, 1.3): 1.3 * MOVE_2, LaplacePeeling(0.9): 0.9 * MOVE * sqrt(2)}


@pytest.mark.parametrize("peeling", FIRST, ids=repr)
def test_peeling_has_its_exact_law(peeling):
    """Statistical: choices and values, false alarm 1e-6 each; 10 % off in scale is caught
    (asserted)."""
    n = 40_000
    out = peeled(peeling, 1, np.tile(V, (200, 2, 1)), MOVE, MOVE_2, calls=100).reshape(n, 2)
    assert (np.count_nonzero(out, axis=1) == 1).all()
    wins = np.count_nonzero(out[:, 0])

    def p_value(law):
        return 2 * min(binom.cdf(wins, n, law), binom.sf(wins - 1, n, law))

    right, wrong = FIRST[peeling]
    assert p_value(right) > 1e-6 > p_value(wrong)
    noise = (out - V)[out != 0]
    square = np.square(noise / STDDEV[peeling])
    error = 5 * square.std() / sqrt(n)
    assert abs(square.mean() - 1) < error < 0.19  # 0.9^2 = 0.81


def test_two_picks_follow_one_another():
    """Statistical: of three coordinates two are picked, one after the other; the chance that each
    is dropped, by enumeration, within 5 standard errors (false alarm below 1e-6 each)."""
    v, n = np.array([1.0, -0.4, 0.2]), 40_000
    p = softmax(np.abs(v) / 0.5)
    dropped = [
        sum(p[i] * p[j] / (1 - p[i]) for i, j in product(range(3), repeat=2) if len({i, j, k}) == 3)
        for k in range(3)
    ]
    out = peeled(GumbelPeeling(1.0, 0.1), 2, np.tile(v, (400, 1, 1)), 0.5, 0.5, calls=100)
    out = out.reshape(n, 3)
    found = (out == 0).mean(axis=0)
    np.testing.assert_allclose(found, dropped, rtol=0, atol=5 * 0.5 / sqrt(n))


def test_costs_by_hand():
    """Golden: 30 picks of 2 / pick each and 6 vectors of values; all episodes cost what one
    costs."""
    laplace = LaplacePeeling(40.0).spend(5, 6, "x")
    assert laplace.pure == pytest.approx(30 * 3 / 40)
    assert laplace.rho == pytest.approx(30 * (4 + 1) / (2 * 40**2))
    gumbel = GumbelPeeling(50.0, 20.0).spend(5, 6, "x")
    assert gumbel.rho == pytest.approx(30 * (2 / 50) ** 2 / 8 + 6 / (2 * 20**2))
    assert gumbel.parts[1].mu == pytest.approx(sqrt(6) / 20)
    for share in (0.2, 0.5):
        split = GumbelPeeling.split(7.0, share, 5, 6).spend(5, 6, "x")
        assert split.rho == pytest.approx(1 / (2 * 7.0**2))
        assert split.parts[0].rho == pytest.approx(share * split.rho)
    assert EXACT.spend(5, 6, "x").rho == LaplacePeeling(0.0).spend(5, 6, "x").rho == inf
    one, many = (make(GumbelPeeling(9.0, 9.0), episodes=e).spend for e in ((4,), (2, 3, 4)))
    assert one.rho == many.rho
    assert make(GumbelPeeling(9.0, 9.0), episodes=()).spend.pure == 0


@each("repeats", [1, 4])
@each("epsilon", [0.1, 1.0, 8.0])
def test_least_noise_meets_its_target_and_less_does_not(epsilon, repeats):
    """Golden for what is printed: 2 sqrt(3 s ln(M / delta)) M / epsilon, within its claim."""
    delta = 1e-5
    peeling = least_peeling(epsilon, delta, picks=5, repeats=repeats, share=0.5)
    assert Ledger(peeling.spend(5, repeats, "x").parts).delta(epsilon) <= delta
    less = GumbelPeeling(peeling.pick * 0.99, peeling.value * 0.99).spend(5, repeats, "x")
    assert less.delta(epsilon) == Ledger(less.parts).delta(epsilon) > delta
    for picks in (1, 10, 30):
        printed = printed_peeling(epsilon, 1e-4, picks=picks, repeats=4)
        assert printed.multiplier == pytest.approx(8 * sqrt(3 * picks * log(4e4)) / epsilon)
        assert Ledger(printed.spend(picks, 4, "x").parts).epsilon(1e-4) <= epsilon


def test_projection_is_the_nearest_point_of_the_ball():
    """Oracle: the variational inequality <v - p, q - p> <= 0 at the vertices q."""
    v = np.random.default_rng(8).standard_normal((50, 6))
    p = project_l1(v, 1.3)
    assert (np.abs(p).sum(axis=1) <= 1.3 + 1e-12).all()
    for vertex in 1.3 * np.concatenate([np.eye(6), -np.eye(6)]):
        assert (np.vecdot(v - p, vertex - p) <= 1e-12).all()
    np.testing.assert_array_equal(project_l1(0.1 * v, 10.0), 0.1 * v)


def test_mistakes_are_named():
    for changed, named in (
        ({"sparsity": 5}, "sparsity=5"), ({"iterations": 0}, "iterations=0"),
        ({"radius": 0.0}, "radius=0.0"), ({"step_size": -1.0}, "step_size=-1.0"),
        ({"episodes": (4, 30)}, "episodes=.*uses=20"), ({"episodes": (0,)}, "episode=0"),
    ):  # fmt: skip
        refused(named, make, **changed)
