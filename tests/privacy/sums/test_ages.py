"""Costs by age of a user's round, and gradual expiration, against exact least norms."""

from math import inf, sqrt

import numpy as np
import pytest
from scipy.optimize import linprog

from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.calibrated import Target, certified_sum
from dpbandit.privacy.certificate import certificate, certificate_from_dict
from dpbandit.privacy.factors import FACTORISATIONS, Window
from dpbandit.privacy.fading import certified_fading_sum
from dpbandit.privacy.gradual import Gradual
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.moments import ClippedVectors
from dpbandit.privacy.notion import Notion
from dpbandit.privacy.prefix_sums import Banded, Tree
from dpbandit.privacy.spends import Parallel, different
from tests.each import each, refused
from tests.privacy.sums.prefix_checks import check_common, check_coupling, streamed

EXACT = ("blt", "square-root", "banded", "independent")
ALL = FACTORISATIONS | {"banded": Banded(3), "window": Window(8), "lazy": Window(8, lazy=True)}
M = 16


class Units:
    """Draw number i is the i-th unit vector, a coordinate a replica."""

    replicas, shape, drawn = 4 * M, (1,), 0

    def __call__(self):
        self.drawn += 1
        return np.eye(self.replicas)[:, [self.drawn - 1]]

    def fill(self, block):
        for i in range(block.shape[1]):
            block[:, i] = self()


def shown(B, user, releases):
    """mu^2 of the first `releases` that she is in, unit noise: a' Sigma^+ a, a the 0/1 prefixes
    with her."""
    end = min(len(B), user + releases - 1)
    a = (np.arange(1, end + 1) >= user).astype(float)
    return a @ np.linalg.pinv(B[:end] @ B[:end].T, rcond=1e-12) @ a


@each("word", list(ALL))
def test_no_early_release_shows_more_than_is_said(word):
    """Oracle: `early_norm` is never below the truth of any leaf and number of releases, and for
    Toeplitz strategies it. Catches a column read from its end, an age a release too young."""
    one = ALL[word]
    noise = one.of(Units(), stddev=1.0, leaves=M)
    B = np.array([noise()[:, 0] for _ in range(M)])
    users, last = range(1, M + 1), 8 if word in ("window", "lazy") else M
    for releases in range(1, last + 1):
        truth = max(shown(B, user, releases) for user in users if user + releases - 1 <= M)
        said = one.early_norm(M, releases) ** 2
        assert said >= truth * (1 - 1e-6)
        if word in EXACT:
            assert said == pytest.approx(truth, rel=1e-5)
    assert one.early_norm(M, M) == pytest.approx(one.column_norm(M))


def proof_of(spend, window=None, delta=1e-5):
    return certificate(
        Ledger((spend,), Notion(window=window)), claim=(1.0, delta), accountants=False
    )


@each("fade", [0.0, 0.5, 0.9])
def test_a_fading_sum_shows_nobody_more_than_its_ends_allow(fade):
    """Oracle: all rounds of all batches. Catches ends that are compared with the wrong round."""
    ends = (3, 5, 9, 20, 21, 40)
    sums = certified_fading_sum(
        ClippedVectors(1), Streams([0]), ends=ends, horizon=50, fade=fade, epsilon=1.0, delta=1e-5
    )
    proof = proof_of(sums.spend)
    again = certificate_from_dict(proof.as_dict())
    whole = np.sqrt(sum(fade ** (2 * k) for k in range(len(ends))))
    for age in (0, 1, 2, 4, 11, 35, 36, 37, 100):
        norms = []
        for t in range(1, 41):
            later = [end for end in ends if end >= t]
            norms.append(np.sqrt(sum(fade ** (2 * k) for k, e in enumerate(later) if e <= t + age)))
        mu = sums.spend.mu * max(norms) / whole
        assert proof.ledger.within(age).mu == pytest.approx(mu)
        assert again.by_age(age) == proof.by_age(age) <= proof.epsilon
    assert proof.by_age(100) == pytest.approx(proof.epsilon)
    for now, releases in ((0, 0), (2, 0), (3, 1), (20, 4), (39, 5), (40, 6), (100, 6)):
        mu = sums.spend.mu * np.sqrt(sum(fade ** (2 * k) for k in range(releases))) / whole
        assert proof.ledger.spent(now).mu == pytest.approx(mu)
    assert proof.spent(2) == 0 < proof.spent(3) <= proof.spent(100) <= proof.epsilon


def test_a_release_after_every_few_rounds_ages_by_rounds():
    """Oracle: a leaf's last round is shown again 10 rounds later, to age 39 in a window of 40. Of
    two trees at one cost the faster clock shows somebody four times in 30 rounds."""

    def made(word, horizon=1000, every=10):
        target = Target(1.0, 1e-5, horizon, every)
        return certified_sum(word, ClippedVectors(1), Streams([0]), target).spend

    proof = proof_of(made(Tree()))
    squares = [(proof.ledger.within(age).mu / proof.ledger.mu) ** 2 * 7 for age in (0, 9, 10, 30)]
    assert squares == pytest.approx([1, 1, 2, 3])
    past = [(proof.ledger.spent(now).mu / proof.ledger.mu) ** 2 * 7 for now in (9, 10, 19, 20, 999)]
    assert past == pytest.approx([0, 1, 1, 2, 7])
    proof = proof_of(made(Window(4)), window=40)
    ages = [proof.by_age(age) for age in (0, 10, 39, 40)]
    assert ages[0] < ages[1] < ages[2] <= 1.0
    assert ages[3] == inf
    sums = [made(Tree(), 2701, 90), made(Tree(), 301, 10)]
    proof = proof_of(Parallel(different(sums)))
    assert sums[0] == sums[1]
    assert (proof.ledger.within(30).mu / proof.ledger.mu) ** 2 * 5 == pytest.approx(3)


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
    """Oracle: the dense matrix. Catches a level that begins too late, or is never replaced."""
    B = dense(21, rate)
    np.testing.assert_allclose(streamed(gradual(rate), 21, B.shape[1]), B, rtol=0, atol=1e-14)
    noise = Gradual(rate).of(lambda: np.zeros(1), stddev=3.0)
    for row in B:
        noise()
        assert noise.stddev == pytest.approx(3 * np.linalg.norm(row), rel=1e-12)
    if rate >= 1:  # levels 0 to 4, of variances 1 or 1 / (1 + l)^2
        wanted = {2.0: 5269 / 3600, 1.0: 5}[rate]
        assert noise.stddev == pytest.approx(3 * sqrt(wanted), rel=1e-12)
    check_common(gradual(rate), most=40)


@each("rate", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_costs_are_those_of_enumeration(rate):
    """Oracle: the least l_1 cost that moves no release before her, by linear programming, is the
    pure loss; a' Sigma^+ a the Gaussian one."""
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
    """Golden: user 1 is hidden for d = 0, 1, 3 by z[1]; z[2-3]; z[4-7]. At rate 1 each costs 1, at
    rate 2 levels cost 1, 2, 3. Gaussian, d = 1: z[1] moves by 1, of z[2-3] and z[2] each by 1/2, so
    1 + 1/2; at rate 2 z[2-3] has variance 1/4: 1 + 1 / (1 + 1/4)."""
    assert [Gradual(1.0).noises(9, d + 1) for d in (0, 1, 2, 3, 7)] == [
        (1.0, count) for count in (1, 2, 2, 3, 4)
    ]
    assert [Gradual(2.0).noises(9, d + 1)[0] for d in (0, 1, 2, 3)] == [1, 2, 3, 4]
    assert Gradual(1.0).early_norm(9, 2) ** 2 == pytest.approx(1.5)
    assert Gradual(2.0).early_norm(9, 2) ** 2 == pytest.approx(1.8)
    for rate in (0, -1.0, True, float("nan")):
        refused("rate", Gradual, rate)
    target = Target(1.0, 0.0, 9, 1)
    with pytest.raises(InputError, match="gaussian or laplace"):
        certified_sum(Gradual(), ClippedVectors(1), Streams([0]), target, law="k-norm")


def test_every_user_is_hidden_for_adaptive_streams():
    """See `check_coupling`: noises move of the intervals that start at her, after its end, and so
    on."""
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


@each("rate", [1.0, 2.0])
@each(("law", "delta"), [("laplace", 0.0), ("laplace", 1e-5), ("gaussian", 1e-5)])
def test_a_certificate_says_what_is_known_by_age(rate, law, delta):
    """Costs at age d after 1 + d // 2 releases. Catches ages in releases, and slots that JSON
    loses."""
    target = Target(1.0, delta, 41, 2)
    one = Gradual(rate)
    spend = certified_sum(one, ClippedVectors(1), Streams([0]), target, law=law).spend
    proof = proof_of(spend, delta=delta)
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


def test_a_laplace_tree_counts_its_nodes_and_nothing_is_spent_before_the_first_release():
    """Oracle: a node more after 1, 2, 4, 8 releases. Catches 0 times infinity."""
    target, one, seeds = Target(1.0, 0.0, 21, 1), ClippedVectors(1), Streams([0])
    proof = proof_of(certified_sum(Tree(), one, seeds, target, law="laplace").spend, delta=0.0)
    shares = [proof.by_age(age) for age in (0, 1, 3, 7, 15)]
    assert shares == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    bare = certified_sum(Gradual(), one, seeds, Target(inf, 0.0, 9, 2), law="laplace")
    assert [proof_of(bare.spend).spent(now) for now in (1, 2)] == [0, inf]
