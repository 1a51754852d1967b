"""Clipped statistics: what a hostile user can do to them, and what an isometry preserves."""

from dataclasses import fields
from math import prod, sqrt

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpbandit.base import InputError, clip_norm
from dpbandit.privacy import ArmSums, ClippedVectors, Moments, SecondMoments
from dpbandit.privacy.calibrated import tail_bound
from tests.each import each, refused

DETERMINISTIC = settings(derandomize=True, deadline=None, max_examples=25)
LAYOUTS = ["disjoint", "joint", "shared"]
HOSTILE = [float("nan"), float("inf"), -float("inf"), 1e300, -1e300, 1e9, -1e9, 0.0, 1.0, 1e-300]
CLIPS = [None, 0.01, 0.3, 0.7, 1.0]  # as a share of B C
WEIGHTS = [0.2, 1.0, 1.3, sqrt(2), 1.6, 3.0]


def moments(layout="disjoint", clip=None, weight=1.0, *, K=3, d=2, C=1.5, low=-2.0, **more):
    """With B C = 3; `clip` is a share of B C."""
    bounds = {"context_bound": C, "reward_low": low, "reward_high": 1.0, "moment_weight": weight}
    share = None if clip is None else clip * max(-low, 1.0) * C
    return SecondMoments(n_actions=K, dim=d, layout=layout, moment_clip=share, **bounds, **more)


def measured(statistic, *batch):
    """The total of a batch in the units in which its sensitivity is stated."""
    return statistic.total(*batch) / statistic.units


def users(rng, n, replicas, layout, K=3, d=2, scale=1.0):
    """Contexts inside and (scale > 1) outside the ball, arms and rewards of n rounds."""
    shape = (n, replicas, K, d) if layout == "shared" else (n, replicas, d)
    context = rng.standard_normal(shape) * rng.random((*shape[:-1], 1)) ** 2 * scale
    return context, rng.integers(0, K, (n, replicas)), rng.uniform(-4, 4, (n, replicas)) * scale


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pack_is_an_isometry_and_unpack_its_inverse(layout):
    """Oracle: in `units`, packed inner products are <G, H>_F / C^4 + w^2 m . n / c_u^2; and unpack
    undoes pack."""
    statistic, rng = moments(layout, clip=0.4, weight=1.7), np.random.default_rng(0)
    D, blocks = statistic.block_dim, statistic.blocks
    assert (blocks, D) == {"disjoint": (3, 2), "joint": (1, 6), "shared": (1, 2)}[layout]
    grams = rng.standard_normal((2, blocks, D, D))
    grams = grams + grams.transpose(0, 1, 3, 2)
    m = rng.standard_normal((2, blocks, D))
    packed = statistic.pack(grams, m) / statistic.units
    assert packed.shape == (2, *statistic.shape)
    C, c_u, w = 1.5, 0.4 * 2.0 * 1.5, 1.7
    unit = (grams[0] * grams[1]).sum() / C**4 + w**2 * (m[0] * m[1]).sum() / c_u**2
    assert (packed[0] * packed[1]).sum() == pytest.approx(unit, rel=1e-12)
    for back, sent in zip(statistic.unpack(packed * statistic.units), (grams, m), strict=True):
        np.testing.assert_allclose(back, sent, rtol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batch_is_the_sum_of_its_rounds(layout):
    """Oracle: a batch of 7 rounds equals the sum of 7 single totals and the matrices by hand."""
    statistic, rng = moments(layout, clip=0.4), np.random.default_rng(1)
    batch = users(rng, 7, 4, layout, scale=2.0)
    total = statistic.total(*batch)
    singles = [statistic.total(*(a[i : i + 1] for a in batch)) for i in range(7)]
    np.testing.assert_allclose(total, sum(singles), rtol=1e-12, atol=1e-14)

    G, u = np.zeros((4, 3, 2, 2)), np.zeros((4, 3, 2))
    for n, r in np.ndindex(7, 4):
        arm, block = batch[1][n, r], 0 if layout == "shared" else batch[1][n, r]
        x = batch[0][n, r, arm] if layout == "shared" else batch[0][n, r]
        x = x / max(1, np.linalg.norm(x) / 1.5)
        y = np.clip(batch[2][n, r], -2, 1) * x
        G[r, block] += np.outer(x, x)
        u[r, block] += y / max(1, np.linalg.norm(y) / (0.4 * 2 * 1.5))
    gram, moment = statistic.unpack(total)
    if layout == "joint":  # the same numbers, as blocks on one diagonal
        gram, moment = gram[:, 0].reshape(4, 3, 2, 3, 2), moment.reshape(4, 3, 2)
        assert all((gram[:, i, :, j] == 0).all() for i in range(3) for j in range(3) if i != j)
        gram = np.stack([gram[:, i, :, i] for i in range(3)], axis=1)
    if layout == "disjoint":  # blocks of arms not played are exactly zero
        one = statistic.total(np.full((1, 3, 2), 1e9), np.array([[0, 1, 2]]), np.ones((1, 3)))
        assert ((one != 0).any(axis=2) == np.eye(3, dtype=bool)).all()
    shown = slice(0, 1) if layout == "shared" else slice(None)
    np.testing.assert_allclose(gram, G[:, shown], atol=1e-12)
    np.testing.assert_allclose(moment, u[:, shown], atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(st.data())
@DETERMINISTIC
def test_whatever_is_sent_stays_inside(layout, data):
    """Property: with NaN, infinities and 10^300 among the numbers of one user, the Gram part has
    length <= 1 and the moment part <= w, without a warning; a NaN context counts as zero."""
    value, size = st.sampled_from(HOSTILE), (3, 2) if layout == "shared" else (2,)
    clip, weight = data.draw(st.sampled_from(CLIPS)), data.draw(st.sampled_from(WEIGHTS))
    drawn = data.draw(st.lists(value, min_size=prod(size), max_size=prod(size)))
    context, arm = np.array(drawn).reshape(1, 1, *size), data.draw(st.integers(0, 2))
    statistic, reward = moments(layout, clip, weight), np.array([[data.draw(value)]])
    total = measured(statistic, context, np.array([[arm]]), reward)[0]
    half = statistic.block_dim * (statistic.block_dim + 1) // 2
    assert np.linalg.norm(total[:, :half]) <= 1 + 1e-12
    assert np.linalg.norm(total[:, half:]) <= weight * (1 + 1e-12)
    played = context[0, 0, arm] if layout == "shared" else context[0, 0]
    assert np.isfinite(played).all() or (total == 0).all()


def test_sensitivity_golden():
    """Golden: w = 1 gives max over c of 2 - 2 c^2 + 2 + 2 c at c = 1/2, that is 4.5; w = 2 gives
    2 c = 4 -> c = 1, 4 w^2 = 16; a separate clip at w = 1 gives 1 + 4 = 5 > 4.5."""
    squares = [moments(weight=w).sensitivity ** 2 for w in (1.0, sqrt(2), 2.0)]
    squares.append(moments(clip=0.5).sensitivity ** 2)
    assert squares == pytest.approx([4.5, 8.0, 16.0, 5.0], rel=1e-14)


def moments_alone(layout="disjoint", clip=None):
    """The same rounds as `moments`, C = 1.5 and B = 2, without their Gram matrices."""
    rounds = vars(moments(layout, clip))
    return Moments(**{field.name: rounds[field.name] for field in fields(Moments)})


@each("layout", LAYOUTS)
@each("clip", CLIPS)
def test_moments_alone_are_those_beside_the_gram_matrix(layout, clip):
    """Oracle: equal to what `SecondMoments` unpacks. By hand: opposite contexts at reward -2 are 2
    c_u apart within an arm, and sqrt(2) c_u apart when their arms differ."""
    both, alone = moments(layout, clip), moments_alone(layout, clip)
    batch = users(np.random.default_rng(2), 7, 4, layout, scale=2.0)
    total = alone.total(*batch)
    assert total.shape == (4, *alone.shape)
    np.testing.assert_array_equal(total, both.unpack(both.total(*batch))[1])
    c_u, x = 3.0 * (clip or 1.0), np.array([[[1.5, 0.0]]])
    assert alone.sensitivity == pytest.approx(2 * c_u, rel=1e-14)
    if layout == "disjoint":
        for arm, distance in ((0, 2 * c_u), (1, sqrt(2) * c_u)):
            one = measured(alone, x, np.array([[0]]), np.array([[-2.0]]))
            two = measured(alone, -x, np.array([[arm]]), np.array([[-2.0]]))
            assert np.linalg.norm(one - two) == pytest.approx(distance, rel=1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(st.integers(0, 2**32), st.sampled_from(CLIPS), st.sampled_from(WEIGHTS), st.data())
@DETERMINISTIC
def test_no_two_users_are_further_apart_than_the_sensitivity(layout, seed, clip, weight, data):
    """Property: 200 random pairs (short, unit, overlong and broken contexts, any rewards, same and
    different arms) differ by at most S, of moments beside their Gram matrix and alone."""
    rng = np.random.default_rng(seed)
    context, arm, reward = users(rng, 2, 200, layout, scale=3.0)
    reward[data.draw(st.integers(0, 1)), :20] = data.draw(st.sampled_from(HOSTILE))
    context[data.draw(st.integers(0, 1)), 20:40] = data.draw(st.sampled_from(HOSTILE))
    for statistic in (moments(layout, clip, weight), moments_alone(layout, clip)):
        one, two = (measured(statistic, context[[i]], arm[[i]], reward[[i]]) for i in (0, 1))
        distance = np.linalg.norm((one - two).reshape(200, -1), axis=1)
        assert distance.max() <= statistic.sensitivity * (1 + 1e-12)


@given(st.lists(st.sampled_from(HOSTILE), min_size=6, max_size=6), st.sampled_from([0.1, 1.0, 7.0]))
@DETERMINISTIC
def test_clipped_vectors(sent, bound):
    """Property: each of two hostile vectors counts at most `bound`, a non-finite one zero, so they
    differ by at most S = 2 bound (attained by opposites)."""
    statistic, x = ClippedVectors(dim=3, bound=bound), np.array(sent).reshape(2, 1, 3)
    one, two = measured(statistic, x[:1]), measured(statistic, x[1:])
    for total, raw in ((one, x[0]), (two, x[1])):
        assert np.linalg.norm(total) <= bound * (1 + 1e-12)
        assert np.isfinite(raw).all() or (total == 0).all()
    assert np.linalg.norm(one - two) <= statistic.sensitivity * (1 + 1e-12)
    np.testing.assert_allclose(measured(statistic, x), one + two, rtol=1e-12)
    extreme = np.array([[[1e9, 0, 0]]])
    distance = np.linalg.norm(measured(statistic, extreme) - measured(statistic, -extreme))
    assert distance == pytest.approx(statistic.sensitivity, rel=1e-12)


def test_bad_input():
    for bad in (0.0, -1.0, float("nan"), float("inf")):
        refused(r"Expected bound=.* > 0", ClippedVectors, dim=2, bound=bad)
        refused(r"Expected context_bound=.* > 0", moments, C=bad)
    refused("disjoint, joint or shared", moments, "private")
    refused("without a moment clip", traced, clip=0.5 / 3)
    assert traced(clip=1.0).trace_variance < 1  # nothing is clipped
    for wrong in ({"n_actions": 0}, {"n_actions": 2, "reward_low": 2.0}):
        with pytest.raises(InputError):
            ArmSums(**wrong)


def test_nothing_to_clip_is_a_copy_and_one_round_is_a_sum():
    """The short cuts: the same values, bit for bit, in memory of their own."""
    x = np.random.default_rng(0).uniform(-0.4, 0.4, (1, 6, 4))
    x[0, 0] = -0.0
    longer = np.concatenate([x, np.full((1, 6, 4), 9.0)])
    clipped = clip_norm(x, 1.0)
    assert clipped.tobytes() == clip_norm(longer, 1.0)[:1].tobytes() == x.tobytes()
    assert not np.shares_memory(clipped, x)
    one = ClippedVectors(4).total(x)
    assert one.tobytes() == ClippedVectors(4).total(np.concatenate([x, 0 * x])).tobytes()
    assert not np.shares_memory(one, x)


def traced(layout="shared", precise=True, **settings):
    return moments(layout, precise_trace=precise, **settings)


def apart(statistic, one, two):
    """Return how far users (x, arm, r), x (R, d), move the sum, (R,), in units of sensitivity."""

    def summed(x, arm, r):
        context = x if statistic.layout != "shared" else np.repeat(x[:, None], 3, axis=1)
        rounds = context, np.full(len(x), arm), np.broadcast_to(r, len(x))
        return statistic.total(*(part[None] for part in rounds)) / statistic.units

    difference = summed(*one) - summed(*two)
    return np.linalg.norm(difference.reshape(len(difference), -1), axis=1)


@each("d", [1, 2, 5])
@each("weight", WEIGHTS)
def test_the_worst_users_are_exactly_the_sensitivity_apart(weight, d):
    """Oracle: parallel contexts of lengths 1 and b with opposite terms r x, or equal users of two
    arms, which a larger kappa would push beyond S."""
    for layout in ("shared", "joint"):
        statistic = traced(layout, d=d, weight=weight)
        U, S2 = weight**2, statistic.sensitivity**2
        b = np.sort(np.roots([U, 3 * U, 3 * U - 2 * S2, U]).real)[1]
        x = 1.5 * np.eye(1, d)
        distance = apart(statistic, (x, 0, -2.0), (-b * x, 0, -2.0))
        assert distance == pytest.approx(statistic.sensitivity, rel=1e-9)
    statistic = traced("disjoint", d=d, weight=weight)
    distance = apart(statistic, (x, 0, -2.0), (x, 1, -2.0))
    assert distance == pytest.approx(statistic.sensitivity, rel=1e-9)


@each("layout", ["shared", "joint", "disjoint"])
@each("weight", WEIGHTS)
def test_no_two_users_are_further_apart(layout, weight):
    """Property: 4,000 random pairs, of one arm or two, stay within S, which does not depend on the
    stretch."""
    rng = np.random.default_rng(5)
    for d in (1, 3):
        statistic = traced(layout, d=d, weight=weight)
        S = moments(layout, d=d, weight=weight).sensitivity
        assert statistic.sensitivity == S
        x = rng.standard_normal((4000, d)) * rng.uniform(0, 3, (4000, 1))
        y = x * rng.uniform(-1, 1, (4000, 1)) + rng.standard_normal((4000, d)) * rng.choice([0, 1])
        for arm in (0, 1):
            distance = apart(statistic, (x, 0, -2.0), (y, arm, rng.choice([-2.0, 1.0], 4000)))
            assert distance.max() <= S * (1 + 1e-12)


@pytest.mark.parametrize("layout", ["shared", "joint", "disjoint"])
def test_noise_is_smaller_along_the_identity_and_as_large_elsewhere(layout):
    """Oracle: the covariance of white noise after `unpack` is that without a stretch but for tr /
    sqrt(D), divided by 1 + kappa D; and x' N x has the variance that `tail_bound` counts on."""
    precise, plain = (traced(layout, precise=precise) for precise in (True, False))
    D, blocks, size = precise.block_dim, *precise.shape
    white = np.eye(blocks * size).reshape(-1, blocks, size) * precise.units
    (grams, moment), (before, moment_before) = precise.unpack(white), plain.unpack(white)
    np.testing.assert_array_equal(moment, moment_before)
    traces = np.trace(grams, axis1=2, axis2=3), np.trace(before, axis1=2, axis2=3)
    v = precise.trace_variance
    assert v == 1 / (1 + precise.trace.kappa * D)
    assert np.square(traces[0]).sum(axis=0) == pytest.approx(v * np.square(traces[1]).sum(axis=0))
    along = ((traces[0] - traces[1]) / D)[..., None, None] * np.eye(D)
    np.testing.assert_allclose(grams - along, before, atol=1e-15)
    x = np.random.default_rng(0).standard_normal(D)
    x /= np.linalg.norm(x)
    spread = [np.square(x @ g @ x).sum(axis=0) for g in (grams, before)]
    assert spread[0] == pytest.approx((1 - (1 - v) / D) * spread[1])
    bounds = (tail_bound(D, 1000, failure=0.05, trace_variance=u) for u in (v, 1.0))
    tails = [bound.gram_factor - 2 * sqrt(D) for bound in bounds]
    assert tails[0] ** 2 == pytest.approx((1 - (1 - v) / D) * tails[1] ** 2)
    assert plain.trace_variance == 1


def test_there_and_back():
    """`pack` multiplies the trace of a matrix, and nothing else of it, by sqrt(1 + kappa D), and
    `unpack` is its inverse."""
    statistic, gram = traced(d=2, weight=sqrt(2)), np.array([[3.0, 1.0], [1.0, -1.0]])[None, None]
    factor = sqrt(1 + (7 + 5 * sqrt(5)) / 2)
    packed = statistic.pack(gram, np.zeros((1, 1, 2)))
    assert packed[0, 0] == pytest.approx([1 * factor + 2, 1, 1 * factor - 2, 0, 0])
    np.testing.assert_allclose(statistic.unpack(packed)[0], gram, rtol=1e-14)


@each(("low", "high"), [(0.0, 1.0), (-2.0, 0.5), (-1.0, -0.5)])
def test_no_two_users_move_arm_sums_by_more_than_their_sensitivity(low, high):
    """Oracle: all pairs of users on a grid, numbers far outside the bounds and NaN among them."""
    statistic = ArmSums(n_actions=3, reward_low=low, reward_high=high)
    rewards, arms = [low, high, (low + high) / 2, -1e9, 1e9, np.nan], range(3)
    context = np.zeros((1, 1, 2))
    sums = [
        statistic.total(context, np.array([[a]]), np.array([[r]])) for a in arms for r in rewards
    ]
    moves = [np.linalg.norm(a - b) for a in sums for b in sums]
    assert max(moves) == pytest.approx(statistic.sensitivity, rel=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 5])
@each("layout", LAYOUTS)
def test_a_replica_is_summed_as_if_it_were_alone(layout, dim):
    """Bit for bit: catches a product whose routine depends on who is beside her."""
    statistic = moments(layout, d=dim)
    batch = users(np.random.default_rng(dim), 50, 6, layout, d=dim)
    together = statistic.total(*batch)
    for r in range(6):
        alone = statistic.total(*(one[:, r : r + 1] for one in batch))
        np.testing.assert_array_equal(alone[0], together[r])
