"""Signed directions: how far one user moves them, whatever she sends."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from dpbandit.base.inputs import InputError
from dpbandit.privacy.residuals import SignedDirections
from tests.each import each

BLOCKS = SignedDirections(n_actions=3, dim=2)
DIFFERENCE = SignedDirections(n_actions=2, dim=2, layout="difference")
TINY = 1e-200
"""A length whose square is 0 in double precision."""


def user(statistic, x, action, reward):
    """What one user of one replica adds, (blocks, d)."""
    x, action, reward = np.array(x)[None, None], np.array([[action]]), np.array([[reward]])
    with np.errstate(all="ignore"):  # users that are no numbers
        return statistic.total(x, action, reward)[0]


def test_values_by_hand():
    """Golden: (3, -4) / 5 in the row of the arm, with the sign of reward - centre."""
    up, down = [0.6, -0.8], [-0.6, 0.8]
    np.testing.assert_allclose(user(BLOCKS, [3.0, -4.0], 1, 9.0), [[0, 0], up, [0, 0]])
    np.testing.assert_allclose(user(BLOCKS, [3.0, -4.0], 2, -0.1), [[0, 0], [0, 0], down])
    np.testing.assert_allclose(user(DIFFERENCE, [3.0, -4.0], 0, 9.0), [up])
    np.testing.assert_allclose(user(DIFFERENCE, [3.0, -4.0], 1, 9.0), [down])
    np.testing.assert_allclose(user(DIFFERENCE, [3.0, -4.0], 1, -9.0), [up])
    centred = SignedDirections(n_actions=3, dim=2, centre=10.0)
    np.testing.assert_allclose(user(centred, [3.0, -4.0], 0, 9.0), [down, [0, 0], [0, 0]])


@each("statistic", [BLOCKS, DIFFERENCE], ids=["blocks", "difference"])
@each(
    ("x", "reward"),
    [
        ([0.0, 0.0], 1.0), ([0.3, 0.4], 0.0), ([0.3, np.nan], 1.0), ([np.inf, 0.4], 1.0),
        ([0.3, 0.4], np.nan), ([0.3, 0.4], np.inf), ([0.3, 0.4], -np.inf),
    ],
)  # fmt: skip
def test_what_says_nothing_adds_nothing(statistic, x, reward):
    """x = 0, sign(0), and anything that is no number."""
    assert (user(statistic, x, 0, reward) == 0).all()


def test_sums_and_layouts():
    """Oracle: a plain loop over users; the difference is block 0 minus block 1."""
    rng = np.random.default_rng(0)
    x, a, r = rng.standard_normal((9, 4, 3)), rng.integers(0, 2, (9, 4)), rng.random((9, 4)) - 0.3
    blocks = SignedDirections(n_actions=2, dim=3, centre=0.1)
    difference = SignedDirections(n_actions=2, dim=3, layout="difference", centre=0.1)
    expected = np.zeros((4, 2, 3))
    for t in range(9):
        for i in range(4):
            direction = x[t, i] / np.linalg.norm(x[t, i])
            expected[i, a[t, i]] += direction if r[t, i] > 0.1 else -direction
    np.testing.assert_allclose(blocks.total(x, a, r), expected, atol=1e-14)
    gap = expected[:, :1] - expected[:, 1:]
    np.testing.assert_allclose(difference.total(x, a, r), gap, atol=1e-14)
    assert (blocks.shape, difference.shape) == ((2, 3), (1, 3))


def test_sensitivity_is_attained():
    """Golden: opposite rewards on the same arm move it by 2, two arms' blocks by sqrt(2), and in
    the difference two arms with the same reward by 2 again."""
    x = [0.1, -0.2]

    def move(statistic, one, two):
        return np.linalg.norm(user(statistic, x, *one) - user(statistic, x, *two))

    assert move(BLOCKS, (1, 1.0), (1, -1.0)) == pytest.approx(2, rel=1e-15)
    assert move(BLOCKS, (1, 1.0), (2, -1.0)) == pytest.approx(sqrt(2), rel=1e-15)
    assert move(BLOCKS, (1, 1.0), (2, 1.0)) == pytest.approx(sqrt(2), rel=1e-15)
    assert move(DIFFERENCE, (0, 1.0), (1, 1.0)) == pytest.approx(2, rel=1e-15)
    assert BLOCKS.sensitivity == DIFFERENCE.sensitivity == 2


numbers = st.one_of(
    st.floats(width=64),
    st.floats(-2, 2),
    st.sampled_from([0.0, TINY, -TINY, 5e-324, 1e-162, 1e-155, 1e154, 1e155, -1e308, np.inf]),
)
contexts = st.one_of(
    hnp.arrays(np.float64, 2, elements=numbers),
    hnp.arrays(np.float32, 2, elements=st.floats(width=32)),
    hnp.arrays(np.int64, 2),
    hnp.arrays(np.int8, 2),
    hnp.arrays(np.uint16, 2),
)
users = st.tuples(contexts, st.integers(0, 1), st.one_of(numbers, st.integers(-(2**63), 2**63 - 1)))
tiny = (np.array([TINY, 0.0]), 0, 1.0)


@pytest.mark.parametrize("statistic", [BLOCKS, DIFFERENCE], ids=["blocks", "difference"])
@settings(derandomize=True, deadline=None, max_examples=100)
@given(one=users, two=users)
@example(one=tiny, two=tiny)
@example(one=(np.array([1e-162, 1e-162]), 0, 1.0), two=tiny)
@example(one=(np.array([5e-324, 1e-308]), 1, 1.0), two=tiny)
def test_no_user_moves_it_by_more(statistic, one, two):
    """Property: extreme, silent, integer, infinite and vanishing users are finite and at most 1
    long, so that any two of them are at most 2 apart."""
    a, b = user(statistic, *one), user(statistic, *two)
    for moved in (a, b):
        assert np.isfinite(moved).all()
        assert np.linalg.norm(moved) <= 1 + 1e-9
    assert np.linalg.norm(a - b) <= statistic.sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-320, TINY, 1e-162, 1e-155, 1e-100, 1e100, 1e150])
def test_directions_do_not_know_the_scale(scale):
    """Exactly the direction where a square can be held, and never longer than 1."""
    found = user(DIFFERENCE, [3 * scale, -4 * scale], 0, 1.0)
    assert np.linalg.norm(found) <= 1 + 1e-9
    if scale > 1e-150:
        np.testing.assert_allclose(found, [[0.6, -0.8]])


@each(("layout", "n_actions"), [("difference", 2), ("blocks", 2), ("blocks", 5)])
@each("dim", [1, 2, 33, 50])
def test_replicas_do_not_know_each_other(layout, n_actions, dim):
    """Sums of a block of 64 rounds of five replicas equal those of lone ones, difference 0.0."""
    rng = np.random.default_rng(dim)
    statistic = SignedDirections(n_actions=n_actions, dim=dim, layout=layout)
    for n in (1, 5, 30, 64):
        x, a, r = (
            rng.standard_normal((n, 5, dim)),
            rng.integers(0, n_actions, (n, 5)),
            rng.standard_normal((n, 5)),
        )
        lone = [statistic.total(*(v[:, i : i + 1].copy() for v in (x, a, r))) for i in range(5)]
        np.testing.assert_array_equal(statistic.total(x, a, r), np.concatenate(lone))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"layout": "blocs"}, "did you mean blocks"),
        ({"layout": "difference"}, "n_actions=3 to be 2 for layout='difference'"),
    ],
)
def test_bad_input_gets_one_sentence(fields, sentence):
    with pytest.raises(InputError, match=sentence):
        SignedDirections(n_actions=3, dim=2, **fields)
