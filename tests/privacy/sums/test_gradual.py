"""Gradual expiration: the noises of all levels, and what is known of a user after d releases."""

from math import sqrt

import numpy as np
import pytest
from scipy.optimize import linprog

from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.calibrated import Target, certified_sum
from dpbandit.privacy.certificate import certificate, certificate_from_dict
from dpbandit.privacy.factors import Gradual
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.moments import ClippedVectors
from dpbandit.privacy.prefix_sums import Tree
from tests.each import each
from tests.privacy.sums.prefix_checks import (
    check_batches,
    check_company,
    check_coupling,
    check_noiseless,
    streamed,
)


def gradual(rate):
    return lambda node, stddev, leaves: Gradual(rate).of(node, stddev=stddev)


def intervals(m):
    """(level, number) of all that some t <= m is in, number 0 left out, in the order of their
    first t, those of one t from the top level down."""
    found = {}
    for t in range(1, m + 1):
        for level in reversed(range(t.bit_length())):
            found.setdefault((level, t >> level))
    return list(found)


def dense(m, rate):
    """B (m, intervals): the scale of each interval that contains t."""
    levels, number = np.array(intervals(m)).T
    holds = np.arange(1, m + 1)[:, None] >> levels == number
    return holds * (1.0 + levels) ** (1 - rate)


@each("rate", [0.5, 1.0, 2.0])
def test_noise_is_that_of_all_intervals(rate):
    """Oracle: the stream is the dense matrix, `.stddev` its rows. Catches a level that begins an
    interval too late, or that is never replaced."""
    B = dense(21, rate)
    np.testing.assert_allclose(streamed(gradual(rate), 21, B.shape[1]), B, rtol=0, atol=1e-14)
    noise = Gradual(rate).of(lambda: np.zeros(1), stddev=3.0)
    for row in B:
        noise()
        assert noise.stddev == pytest.approx(3 * np.linalg.norm(row), rel=1e-12)


@each("rate", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_costs_are_those_of_enumeration(rate):
    """Oracle, every user and age for m <= 8: the least l_1 cost that moves what she is in and no
    release before her, by linear programming, is the exact pure loss; a' Sigma^+ a the Gaussian
    one. Certificates are those, never below. Catches a cover that ends too soon, earlier releases
    that move, and a level that is charged another's noise."""
    m, one = 8, Gradual(rate)
    B = dense(m, rate)
    for releases in range(1, m + 1):
        pure, squares = [], []
        for user in range(1, m + 1):
            end = min(m, user + releases - 1)
            a, seen = (np.arange(1, end + 1) >= user).astype(float), B[:end]
            n = B.shape[1]
            found = linprog(np.ones(2 * n), A_eq=np.hstack([seen, -seen]), b_eq=a)
            pure.append(found.fun)
            squares.append(a @ np.linalg.pinv(seen @ seen.T) @ a)
        assert np.prod(one.noises(m, releases)) == pytest.approx(max(pure), rel=1e-9)
        assert one.early_norm(m, releases) == pytest.approx(sqrt(max(squares)), rel=1e-9)
    assert one.column_norm(m) == one.early_norm(m, m)
    assert one.column_norm(0) == np.prod(one.noises(0)) == 0


def test_costs_by_hand():
    """Golden: user 1 is hidden for d = 0, 1, 3 by z[1]; z[2-3]; z[4-7]. At rate 1 each costs 1.
    At rate 2 levels cost 1, 2, 3, and two intervals of one leaf as much as their parent. Gaussian,
    d = 1, rate 1: z[1] moves by 1, of z[2-3] and z[2] each by 1/2, so 1 + 1/2; at rate 2 z[2-3]
    has variance 1/4: 1 + 1 / (1 + 1/4)."""
    assert [Gradual(1.0).noises(9, d + 1) for d in (0, 1, 2, 3, 7)] == [
        (1.0, count) for count in (1, 2, 2, 3, 4)
    ]
    assert [Gradual(2.0).noises(9, d + 1)[0] for d in (0, 1, 2, 3)] == [1, 2, 3, 4]
    assert Gradual(1.0).early_norm(9, 2) ** 2 == pytest.approx(1.5)
    assert Gradual(2.0).early_norm(9, 2) ** 2 == pytest.approx(1.8)


def test_every_user_is_hidden_for_adaptive_streams():
    """See `check_coupling`, at rate 1: with noises moved of the intervals that start at x, at the
    leaf after its end, and so on, all releases of a user who reacts are those of the other world;
    no interval moves that began before her."""
    m, nodes = 20, intervals(20)
    C = np.zeros((len(nodes), m))
    for user in range(1, m + 1):
        start = user
        while start <= m:
            level = (start & -start).bit_length() - 1
            C[nodes.index((level, start >> level)), user - 1] = 1
            start += start & -start
    assert check_coupling(gradual(1.0), C, m).max() < 1e-9
    assert C.sum(axis=0).max() == Gradual(1.0).nodes(m)


def test_stream_mechanics():
    """See the shared checks. By hand N_21 has levels 0 to 4; variances at rate 2 are 1 / (1 + l)^2,
    together 5269 / 3600."""
    check_noiseless(gradual(2.0), most=40)
    check_batches(gradual(2.0))
    check_company(gradual(2.0), m=40)
    for rate, variance in ((2.0, 5269 / 3600), (1.0, 5)):
        noise = gradual(rate)(lambda: np.zeros((3, 2)), 6.0, 30)
        for _ in range(21):
            noise()
        assert noise.stddev == pytest.approx(6 * sqrt(variance), rel=1e-12)


@each("rate", [1.0, 2.0])
@each(("law", "delta"), [("laplace", 0.0), ("laplace", 1e-5), ("gaussian", 1e-5)])
def test_a_certificate_says_what_is_known_by_age(rate, law, delta):
    """By hand, a release every 2 rounds: at age d the share of `noises` or of the norm after 1 +
    d // 2 releases, the whole at the horizon; through JSON as well. Catches ages in releases, and
    slots that are lost."""
    target = Target(1.0, delta, 41, 2)
    one = Gradual(rate)
    spend = certified_sum(one, ClippedVectors(1), Streams([0]), target, law=law).spend
    proof = certificate(Ledger((spend,)), claim=(1.0, delta), accountants=False)
    again = certificate_from_dict(proof.as_dict())
    for age in (0, 1, 2, 6, 7, 39, 100):
        seen = proof.ledger.within(age)
        if law == "gaussian":
            share = one.early_norm(20, 1 + age // 2) / one.column_norm(20)
            assert seen.mu == pytest.approx(share * proof.ledger.mu)
        else:
            share = np.prod(one.noises(20, 1 + age // 2)) / np.prod(one.noises(20))
            assert seen.pure == pytest.approx(share * proof.ledger.pure)
        assert again.by_age(age) == proof.by_age(age) <= proof.epsilon
    assert proof.by_age(0) < proof.by_age(6) < proof.by_age(39) == proof.epsilon <= 1
    assert proof.spent(1) == 0 < proof.spent(2) < proof.spent(40) == proof.epsilon


def test_a_laplace_tree_counts_its_nodes_by_age():
    """By hand: 20 leaves, five nodes; after 1, 2, 4, 8 releases 1, 2, 3, 4 of them."""
    target = Target(1.0, 0.0, 21, 1)
    spend = certified_sum(Tree(), ClippedVectors(1), Streams([0]), target, law="laplace").spend
    proof = certificate(Ledger((spend,)), claim=None, accountants=False)
    assert [proof.by_age(age) for age in (0, 1, 3, 7, 15)] == pytest.approx(
        [0.2, 0.4, 0.6, 0.8, 1.0]
    )


@each("rate", [0, -1.0, True, float("nan")])
def test_bad_rates_are_refused(rate):
    with pytest.raises(InputError, match="rate"):
        Gradual(rate)


def test_unequal_noises_have_no_k_norm():
    """Their spends are of noises that are alike."""
    with pytest.raises(InputError, match="gaussian or laplace"):
        certified_sum(
            Gradual(), ClippedVectors(1), Streams([0]), Target(1.0, 0.0, 9, 1), law="k-norm"
        )
