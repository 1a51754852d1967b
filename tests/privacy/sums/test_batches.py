"""Sums that are not prefix sums of every round: counted, restarted, of one point, local."""

from collections import defaultdict
from itertools import product
from math import exp, inf, log, pi, sqrt

import numpy as np
import pytest

from dpbandit.base import Paced, Streams, norms
from dpbandit.domains import Hypersimplex
from dpbandit.privacy import (
    BudgetExceededError,
    Gaussian,
    GaussianSpend,
    LocalValues,
    PrefixSum,
    Tree,
    mu_of,
)
from dpbandit.privacy.batches import CountedSums, LocalSums, OnePointEstimates, RestartingTrees
from dpbandit.privacy.ledger import MOVEMENT_ROUNDING
from dpbandit.privacy.prefix_sums import Exact
from dpbandit.privacy.pure import LaplaceSpend
from tests.each import each, refused


def made(R=1, K=1, **settings):
    return CountedSums(Streams(range(R)), K, **{"low": 0, "high": 1, "uses": 10**6, **settings})


@pytest.mark.parametrize("delta", [1e-5, 0.3])
def test_counted_noise_has_the_promised_size(delta):
    """Statistical: two of three cells are due; false alarm 1e-6 (5 errors); 5 % is caught
    (asserted)."""
    R, epsilon = 1000, 0.5
    sums = made(R, 3, epsilon=epsilon, delta=delta)
    at_release = np.tile([True, False, True], (R, 1))
    scale = 2**0.5 / epsilon if delta < 0.1 else 1 / mu_of(epsilon, delta)
    spent, target = (sums.spend.pure, epsilon) if delta < 0.1 else (sums.spend.mu, 1 / scale)
    assert target * (1 - 1e-11) < spent <= target
    releases = [sums(np.ones(R), np.zeros(R, np.int64), at_release) - [1, 0, 0] for _ in range(20)]
    noise = np.concatenate(releases)[:, [0, 2]] / scale
    error = 5 * np.square(noise).std() / noise.size**0.5
    assert abs(np.square(noise).mean() - 1) < error < 0.09
    assert abs(np.corrcoef(noise.T)[0, 1]) < 5 / len(noise) ** 0.5


def test_sums_are_emptied_and_clipped():
    """Golden, by hand, without noise: shares of [-1, 3], NaN as -1, cells apart, a block."""
    sums = made(2, 2, low=-1, high=3, epsilon=inf)
    none = np.zeros((2, 2), bool)
    first = np.array([[True, False], [False, False]])
    assert sums(np.array([1.0, 9.0]), np.array([0, 1]), none) is None
    release = sums(np.array([np.nan, 3.0]), np.array([0, 1]), first)
    np.testing.assert_array_equal(release, [[0.5, 0], [0, 0]])
    counts = np.array([[2.0, 0.0], [0.0, 3.0]])
    release = sums(np.array([[1.5, 0.0], [0.0, 7.0]]), counts, ~none)
    np.testing.assert_array_equal(release, [[1.5, 0], [0, 5]])  # 3 rounds bring 3 at most


def test_replicas_take_noise_at_their_own_pace():
    """Whoever releases more often shifts nobody else's noise: six replicas equal lone ones."""
    here = np.random.default_rng(1).random((60, 6)) < np.linspace(0.1, 0.9, 6)
    together = Paced(Streams(range(6)).normals("noise", 2))
    found = np.array([together(row) for row in here])
    for r in range(6):
        alone = Paced(Streams([r]).normals("noise", 2))
        np.testing.assert_array_equal(found[:, [r]], [alone(row[[r]]) for row in here])


EPSILON = 0.6
RATE = exp(-EPSILON)


def transcripts(rewards, policy, rounds):
    """Law of all releases over the integers, {transcript: probability}, with geometric noise cut
    off beyond 3; `policy(counts, releases, exact)` says which of two arms is played, and released
    or not."""
    states = {((), (0, 0), (0, 0)): 1.0}
    for t in range(rounds):
        after = defaultdict(float)
        for (releases, counts, exact), mass in states.items():
            arm, _ = policy(counts, releases, exact)
            n = tuple(c + (a == arm) for a, c in enumerate(counts))
            s = tuple(x + rewards[t][arm] * (a == arm) for a, x in enumerate(exact))
            arm, at_release = policy(n, releases, s, arm)
            if not at_release:
                after[releases, n, s] += mass
                continue
            n = tuple(c * (a != arm) for a, c in enumerate(n))
            total, s = s[arm], tuple(x * (a != arm) for a, x in enumerate(s))
            for z in range(-3, 4):
                share = (1 - RATE) / (1 + RATE) * RATE ** abs(z)
                after[(*releases, (t, arm, total + z)), n, s] += mass * share
        states = after
    law = defaultdict(float)
    for (releases, _, _), mass in states.items():
        law[releases] += mass
    return law


def by_counts(counts, releases, exact, arm=None):
    """The arm of the larger released total; a batch grows with its releases."""
    totals = [sum(s for _, a, s in releases if a == b) for b in (0, 1)]
    arm = int(totals[1] > totals[0]) if arm is None else arm
    return arm, counts[arm] >= 1 + sum(a == arm for _, a, _ in releases)


def by_an_exact_sum(counts, releases, exact, arm=None):
    """The same arm, but a batch ends when its exact sum is 1: what must not be."""
    arm, _ = by_counts(counts, releases, exact, arm)
    return arm, exact[arm] >= 1 or counts[arm] >= 3


def worst(policy, rounds=4):
    """The largest log ratio over neighbouring worlds, and how many transcripts only one has."""
    largest, alone, looked = 0.0, 0, 0
    worlds = list(product([(0, 0), (1, 0), (0, 1), (1, 1)], repeat=rounds))
    for world in worlds[:: max(1, len(worlds) // 24)]:
        law = transcripts(world, policy, rounds)
        inner = {k for k in law if all(abs(s) <= 2 for _, _, s in k)}
        for t in range(rounds):
            swapped = (*world[:t], tuple(1 - x for x in world[t]), *world[t + 1 :])
            other = transcripts(swapped, policy, rounds)
            shared = inner & {*other}
            looked, alone = looked + len(inner), alone + len(inner - shared)
            largest = max([largest, *(abs(log(law[k] / other[k])) for k in shared)])
    assert looked > 1000
    return largest, alone


def test_all_releases_together_are_private_by_enumeration():
    """Exact: rules that look at counts and releases cost epsilon itself; where an exact sum ends a
    batch some transcripts are possible in one world only."""
    largest, _ = worst(by_counts)
    assert largest == pytest.approx(EPSILON, abs=1e-9)
    assert worst(by_an_exact_sum)[1] > 100


def trees(R=1, B=1, T=40, law="gaussian", scale=1.0):
    return RestartingTrees(Streams(range(R)), "trees", width=B, law=law, scale=scale, horizon=T)


def test_each_segment_is_a_tree_of_its_own():
    """Oracle: segment by segment a new `Tree` fed with the same draws, and exact sums of the
    chosen."""
    R, B, d, T = 6, 3, 5, 40
    rng, made = np.random.default_rng(0), trees(R, B, T)
    draws = Gaussian(1.0).sampler(Streams(range(R)), "trees", (B,)).take(T)
    losses, restart = rng.random((T, R, d)), rng.random((T, R)) < 0.15
    chosen = np.array([rng.permutation(d)[:B] for _ in range(T * R)]).reshape(T, R, B)
    for t in range(1, T):
        chosen[t][~restart[t]] = chosen[t - 1][~restart[t]]
    found = [made(*round) for round in zip(losses, chosen, restart, strict=True)]
    assert found[-1] is None
    for r in range(R):
        for t in range(T - 1):
            if t == 0 or restart[t, r]:
                draw = iter(draws[t:, r])
                tree, total = Tree().of(lambda draw=draw: next(draw), stddev=1.0), np.zeros(B)
            total = total + losses[t, r, chosen[t, r]]
            np.testing.assert_allclose(found[t][r], total + tree(), atol=1e-12)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_restarted_noise_has_the_promised_size(law):
    """Statistical: three nodes in round 7 of a segment (111b), two in round 10 without; 6 errors:
    false alarm below 1e-6; 10 % of variance is caught (asserted)."""
    R, B, scale = 400, 50, 1.7
    made, restarts = trees(2 * R, B, 12, law, scale), np.arange(2 * R) < R
    losses, chosen = np.zeros((2 * R, 1)), np.zeros((2 * R, B), dtype=np.int64)
    for t in range(1, 11):
        release = made(losses, chosen, restarts & (t == 4))
    one = scale**2 * (1 if law == "gaussian" else 2)
    for noise, nodes in ((release[:R], 3), (release[R:], 2)):
        ratio = (noise**2).ravel() / (nodes * one)
        error = 6 * ratio.std() / (R * B) ** 0.5
        assert abs(ratio.mean() - 1) < error < 0.1


def test_what_a_round_costs():
    """Oracle: D' C^+ D of all sums from a round on, in B counters, is at most B h / sigma^2,
    attained by round 1."""
    for T in (2, 8, 9, 33):
        m = T - 1
        nodes = np.zeros((m, m))  # which noises a prefix is made of
        for t in range(1, m + 1):
            s = t
            while s:
                nodes[t - 1, s - 1] = 1
                s &= s - 1
        precision = np.linalg.inv(nodes @ nodes.T)
        costs = [(D := 1.0 * (np.arange(m) >= j)) @ precision @ D for j in range(m)]
        claimed = trees(B=3, T=T, scale=2.0).spend.mu
        assert max(costs) * 3 / 4 == pytest.approx(claimed**2)
        assert np.argmax(costs) == 0
    assert trees(B=3, T=33, law="laplace", scale=2.0).spend.pure == pytest.approx(3 * 6 / 2)
    assert trees(T=1).spend.mu == 0
    assert trees(scale=0.0).spend.mu == inf


def test_users_at_the_mechanism():
    """Extreme users move the input by sqrt(B) at most; nobody is -1 and loses nothing."""
    made, chosen = trees(1, 4), np.array([[3, 0, 2, 1]])
    extreme = [np.full((1, 4), v) for v in (np.nan, -np.inf, -7.0, 0.0, 1.0, 1e300)]
    queries = [made.query(losses, chosen) for losses in extreme]
    moves = [np.linalg.norm(a - b) for a in queries for b in queries]
    assert max(moves) == made.sensitivity == 2.0
    few = made.query(np.ones((1, 4)), np.array([[3, -1, 2, -1]]))
    np.testing.assert_array_equal(few, [[1.0, 0.0, 1.0, 0.0]])
    once, no = trees(T=1), np.array([False])
    assert once(np.ones((1, 1)), np.zeros((1, 1), dtype=int), no) is None
    with pytest.raises(BudgetExceededError):
        once(np.ones((1, 1)), np.zeros((1, 1), dtype=int), no)


def estimates(k=3, **changed):
    return OnePointEstimates(**{"dim": k, "zeta": 0.25, "low": -1.0, "high": 2.0, **changed})


def sphere(seed, *shape):
    g = np.random.default_rng(seed).standard_normal(shape)
    return g / norms(g)


def test_estimates_are_what_the_definition_says():
    """Oracle: one number at a time, values inside, at, beyond the bounds and no numbers at all."""
    y = np.array([[0.5, 2.0], [7.0, -9.0], [np.nan, np.inf], [-np.inf, 1.0]])
    clipped = [[0.5, 2.0], [2.0, -1.0], [-1.0, -1.0], [-1.0, 1.0]]
    u, statistic = sphere(0, 4, 2, 3), estimates(offset=0.5)
    expected = np.zeros((2, 3))
    for t in range(4):
        for r in range(2):
            expected[r] += 3 / 0.25 * (clipped[t][r] - 0.5) * u[t, r]
    np.testing.assert_allclose(statistic.total(y, u), expected, rtol=0, atol=1e-13)
    for kind in (np.int8, np.uint8, np.float32, np.int64):
        total = statistic.total(np.full((1, 1), 100, dtype=kind), u[:1, :1])
        np.testing.assert_allclose(total, 12 * 1.5 * u[0, :1], atol=1e-13)


def test_sensitivity_is_attained_and_never_passed():
    """W k / zeta = 3 x 3 / 0.25, between the two ends of the range, whatever the offset."""
    extreme = np.array([-1e9, -1.0, np.nan, 0.3, 2.0, 1e300, np.inf])
    u = sphere(1, 1, 7, 3)
    for offset in (0.0, 0.5, -4.0):
        statistic = estimates(offset=offset)
        assert statistic.sensitivity == 36
        moves = [
            np.linalg.norm(statistic.total(extreme[None], u) - statistic.total(y[None], u), axis=1)
            for y in (np.roll(extreme, i) for i in range(7))
        ]
        assert np.max(moves) == pytest.approx(36, rel=1e-12)
        longest = np.linalg.norm(statistic.total(extreme[None], u), axis=1).max()
        assert longest <= statistic.bound * (1 + MOVEMENT_ROUNDING)


X = np.array([0.3, -0.2, 0.1, 0.0, 0.4])
ZETA = 0.2


def z_scores(sample, gradient):
    error = sample.std(axis=0, ddof=1) / sqrt(len(sample))
    return (sample.mean(axis=0) - gradient) / error


def test_one_point_estimates_are_unbiased_and_other_factors_are_not():
    """Statistical: the gradient of 1/2 |x - c|^2, in space and in vectors that sum to 0, |z| < 5
    (false alarm 6e-6); zeta / L, or N for N - 1, is caught (asserted)."""
    c = np.array([-0.1, 0.3, 0.2, -0.5, 0.1])
    u = sphere(4, 1_000_000, 5)
    y = np.square(X + ZETA * u - c).sum(axis=1) / 2
    sample = estimates(5, zeta=ZETA).estimate(y[None], u[None])
    assert np.abs(z_scores(sample, X - c)).max() < 5
    assert np.abs(z_scores(ZETA / 2 * y[:, None] * u, X - c)).max() > 100
    domain, k, c = Hypersimplex(6, 3), 5, np.array([0.1, 0.9, 0.4, 0.2, 0.8, 0.5])
    u = sphere(5, 500_000, k)
    y = np.square(domain.centre + ZETA * domain.embedded(u) - c).sum(axis=1) / 2
    wanted = domain.basis.T @ (domain.centre - c)
    sample = estimates(k, zeta=ZETA).estimate(y[None], u[None])
    assert np.abs(z_scores(sample, wanted)).max() < 5
    assert np.abs(z_scores(6 / k * sample, wanted)).max() > 5


def local(replicas=2, **changed):
    settings = {"low": -1.0, "high": 2.0, "noise_multiplier": 0.0, **changed}
    return LocalValues(Streams(range(replicas)), **settings)


def test_local_values_are_clipped_and_shifted():
    """Values (R, 1) beside noise (R,) would make (R, R): each value released R times. They cost one
    release for every horizon."""
    values = local(4, offset=0.5)
    released = values(np.array([0.5, 7.0, np.nan, -np.inf]))
    assert released.tolist() == [0.0, 1.5, -1.5, -1.5]
    assert values.sensitivity == 3
    assert values.spend.pure == inf
    refused("shape", local(4), np.ones((4, 1)))
    for law, spend in (
        ("laplace", LaplaceSpend(2.0, note="local laplace values")),
        ("gaussian", GaussianSpend(2.0, "local Gaussian values")),
    ):
        assert local(noise_multiplier=0.5, law=law).spend == spend
        assert local(noise_multiplier=0.5, law=law, uses=0).spend.delta(0.0) == 0
    values = local(uses=2)
    values(np.zeros(2))
    values(np.zeros(2))
    with pytest.raises(BudgetExceededError):
        values(np.zeros(2))
    for wrong in (
        {"dim": 0}, {"zeta": 0.0}, {"zeta": -1.0}, {"low": 2.0}, {"high": inf}, {"offset": np.nan},
    ):  # fmt: skip
        refused("Expected", estimates, **wrong)


@each(("law", "mean"), [("laplace", 1.5), ("gaussian", 1.5 * sqrt(2 / pi))])
def test_local_noise_has_the_promised_size(law, mean):
    """Statistical: 40,000 values, 6 errors (false alarm 1e-8); 4 % is caught (asserted)."""
    values, honest = local(40, noise_multiplier=0.5, law=law), np.full(40, 0.7)
    sizes = np.abs(np.ravel([values(honest) for _ in range(1000)]) - 0.7) / mean
    assert abs(sizes.mean() - 1) < 6 * sizes.std() / sqrt(sizes.size) < 0.04


def test_local_sums_without_noise_are_exact_prefix_sums():
    """Oracle: the same values through a prefix sum without noise; releases at the same rounds."""
    statistic = estimates(offset=0.25)
    sums = LocalSums(local(4, offset=0.25), statistic, refresh_every=3)
    exact = PrefixSum(statistic, Exact(), GaussianSpend(inf, ""), horizon=99, refresh_every=3)
    y, u = np.random.default_rng(6).standard_normal((11, 4)), sphere(7, 11, 4, 3)
    for t in range(11):
        one, two = sums(y[t], u[t]), exact(y[t], u[t])
        assert (one is None) == (two is None) == (t % 3 != 2)
        if one is not None:
            np.testing.assert_array_equal(one, two)
