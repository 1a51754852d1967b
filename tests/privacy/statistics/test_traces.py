"""A trace told more precisely: by how much at most, and that it costs nothing."""

from math import sqrt

import numpy as np
import pytest

from dpbandit.base.inputs import InputError
from dpbandit.privacy.calibrated import tail_bound
from dpbandit.privacy.moments import PreciseTrace, SecondMoments, squared_sensitivity
from tests.each import each

WEIGHTS = [0.2, 1.0, 1.3, sqrt(2), 1.6, 3.0]


def moments(layout="shared", *, d=2, weight=1.0, precise=True, clip=None):
    return SecondMoments(
        n_actions=3,
        dim=d,
        layout=layout,
        context_bound=1.5,
        reward_low=-2.0,
        reward_high=1.0,
        moment_weight=weight,
        moment_clip=clip,
        precise_trace=precise,
    )


def apart(statistic, one, two):
    """How far users (x, arm, r), x (R, d), move the sum, (R,), in the units of the sensitivity."""

    def summed(x, arm, r):
        context = x if statistic.layout != "shared" else np.repeat(x[:, None], 3, axis=1)
        rounds = context, np.full(len(x), arm), np.broadcast_to(r, len(x))
        return statistic.total(*(part[None] for part in rounds)) / statistic.units

    difference = summed(*one) - summed(*two)
    return np.linalg.norm(difference.reshape(len(difference), -1), axis=1)


@each("weight", WEIGHTS)
@each("blocks", [1, 2])
def test_kappa_is_the_largest_by_exact_maximisation(weight, blocks):
    """Oracle: on a grid of 1,001 x 1,001 lengths, p = |x . y| maximised as a concave parabola,
    the least room that S^2 leaves for kappa: never less than the formula's, and within 1e-4 of
    it. Golden: (7 + 5 sqrt(5)) / 4 and 1 at w = sqrt(2)."""
    U = weight**2
    u, v = np.meshgrid(*[np.linspace(0, 1, 1001) ** 2] * 2)
    p = np.minimum(U / 2, np.sqrt(u * v))
    room = squared_sensitivity(weight) - (u**2 + v**2 - 2 * p**2 + U * (u + v + 2 * p))
    least = (room / np.maximum((u - v) ** 2, 1e-300))[np.abs(u - v) > 0.01].min()
    assert room.min() > -1e-12
    if blocks == 2:  # two arms: no p, and both lengths count
        room = squared_sensitivity(weight) - (u**2 + v**2 + U * (u + v))
        least = min(least, (room / np.maximum(u**2 + v**2, 1e-300)).min())
    kappa = PreciseTrace(dim=5, blocks=blocks, moment_weight=weight).kappa
    assert kappa - 1e-12 <= least <= kappa + 1e-4
    if weight == sqrt(2):
        assert kappa == pytest.approx((7 + 5 * sqrt(5)) / 4 if blocks == 1 else 1, rel=1e-12)


@each("d", [1, 2, 5])
@each("weight", WEIGHTS)
def test_the_worst_users_are_exactly_the_sensitivity_apart(weight, d):
    """By hand: parallel contexts of lengths 1 and b with opposite terms r x, or equal users of two
    arms, which a larger kappa would push beyond S; in one dimension, where the trace is all, too.
    """
    for layout in ("shared", "joint"):
        statistic = moments(layout, d=d, weight=weight)
        U, S2 = weight**2, statistic.sensitivity**2
        b = np.sort(np.roots([U, 3 * U, 3 * U - 2 * S2, U]).real)[1]
        x = 1.5 * np.eye(1, d)
        distance = apart(statistic, (x, 0, -2.0), (-b * x, 0, -2.0))
        assert distance == pytest.approx(statistic.sensitivity, rel=1e-9)
    statistic = moments("disjoint", d=d, weight=weight)
    distance = apart(statistic, (x, 0, -2.0), (x, 1, -2.0))
    assert distance == pytest.approx(statistic.sensitivity, rel=1e-9)


@each("layout", ["shared", "joint", "disjoint"])
@each("weight", WEIGHTS)
def test_no_two_users_are_further_apart(layout, weight):
    """Property: 4,000 random pairs, short, unit and overlong, nearly parallel or not, of one arm
    or two, stay within S, which does not depend on the stretch."""
    rng = np.random.default_rng(5)
    for d in (1, 3):
        statistic = moments(layout, d=d, weight=weight)
        assert (
            statistic.sensitivity == moments(layout, d=d, weight=weight, precise=False).sensitivity
        )
        x = rng.standard_normal((4000, d)) * rng.uniform(0, 3, (4000, 1))
        y = x * rng.uniform(-1, 1, (4000, 1)) + rng.standard_normal((4000, d)) * rng.choice([0, 1])
        for arm in (0, 1):
            distance = apart(statistic, (x, 0, -2.0), (y, arm, rng.choice([-2.0, 1.0], 4000)))
            assert distance.max() <= statistic.sensitivity * (1 + 1e-12)


@pytest.mark.parametrize("layout", ["shared", "joint", "disjoint"])
def test_noise_is_smaller_along_the_identity_and_as_large_elsewhere(layout):
    """Oracle, without chance: the covariance of white noise after `unpack`, pushed through it unit
    by unit, is that without a stretch but for tr / sqrt(D), divided by 1 + kappa D; and x' N x has
    the variance that `tail_bound` counts on."""
    precise, plain = (moments(layout, precise=precise) for precise in (True, False))
    D, blocks, size = precise.block_dim, *precise.shape
    white = np.eye(blocks * size).reshape(-1, blocks, size) * precise.units
    (grams, moment), (before, moment_before) = precise.unpack(white), plain.unpack(white)
    np.testing.assert_array_equal(moment, moment_before)
    traces = np.trace(grams, axis1=2, axis2=3), np.trace(before, axis1=2, axis2=3)
    v = precise.trace_variance
    assert v == 1 / (1 + precise.trace.kappa * D)
    assert np.square(traces[0]).sum(axis=0) == pytest.approx(v * np.square(traces[1]).sum(axis=0))
    rest = [
        g - t[..., None, None] * np.eye(D) / D for g, t in zip((grams, before), traces, strict=True)
    ]
    np.testing.assert_allclose(*rest, atol=1e-15)
    x = np.random.default_rng(0).standard_normal(D)
    x /= np.linalg.norm(x)
    spread = [np.square(x @ g @ x).sum(axis=0) for g in (grams, before)]
    assert spread[0] == pytest.approx((1 - (1 - v) / D) * spread[1])
    tails = [
        tail_bound(D, 1000, failure=0.05, trace_variance=s.trace_variance).gram_factor - 2 * sqrt(D)
        for s in (precise, plain)
    ]
    assert tails[0] ** 2 == pytest.approx((1 - (1 - v) / D) * tails[1] ** 2)


def test_there_and_back():
    """By hand: of a matrix only the trace is stretched, by sqrt(1 + kappa D), and `unpack` undoes
    it, for batches as for one round."""
    statistic, gram = moments(d=2, weight=sqrt(2)), np.array([[3.0, 1.0], [1.0, -1.0]])[None, None]
    factor = sqrt(1 + (7 + 5 * sqrt(5)) / 2)
    packed = statistic.pack(gram, np.zeros((1, 1, 2)))
    assert packed[0, 0] == pytest.approx([1 * factor + 2, 1, 1 * factor - 2, 0, 0])
    np.testing.assert_allclose(statistic.unpack(packed)[0], gram, rtol=1e-14)


def test_a_clip_of_moments_is_refused():
    with pytest.raises(InputError, match="without a moment clip"):
        moments(clip=0.5)
    assert moments(clip=3.0).trace_variance < 1  # nothing is clipped
