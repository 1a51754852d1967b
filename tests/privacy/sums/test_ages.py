"""What early releases show of a user, against the exact least norm of all her releases so far."""

from math import inf

import numpy as np
import pytest

from dpbandit.base.random_streams import Streams
from dpbandit.privacy.calibrated import Target, certified_sum
from dpbandit.privacy.certificate import certificate, certificate_from_dict
from dpbandit.privacy.factors import FACTORISATIONS, Gradual, Window
from dpbandit.privacy.fading import certified_fading_sum
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.moments import ClippedVectors
from dpbandit.privacy.prefix_sums import Banded
from dpbandit.privacy.spends import Parallel, different
from tests.each import each

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
    """mu^2 of releases user .. user + releases - 1 and those before, for unit noise: a' Sigma^+ a
    with Sigma their covariance and a the 0/1 prefixes that she is in."""
    end = min(len(B), user + releases - 1)
    a = (np.arange(1, end + 1) >= user).astype(float)
    return a @ np.linalg.pinv(B[:end] @ B[:end].T, rcond=1e-12) @ a


@each("word", list(ALL))
def test_no_early_release_shows_more_than_is_said(word):
    """Oracle: for every leaf and number of releases, `early_norm` is never below the truth; for
    Toeplitz strategies it is the truth. Catches a column read from its end, a tree that charges
    too few nodes, and an age that is a release too young."""
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


def proof_of(spend, window=None):
    return certificate(Ledger((spend,), window=window), claim=(1.0, 1e-5), accountants=False)


@each("fade", [0.0, 0.5, 0.9])
def test_a_fading_sum_shows_nobody_more_than_its_ends_allow(fade):
    """Oracle: all rounds of all batches, each by the releases at most `age` later; the certificate
    of a journey through JSON is as exact. Catches ends that are compared with the wrong round."""
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
    """By hand: with a release every 10 rounds, the last round of a leaf is shown at once, and a
    second time 10 rounds later; the window's promise ends with its last round, at age 39."""
    target = Target(1.0, 1e-5, 1000, 10)
    statistic, tree = ClippedVectors(1), FACTORISATIONS["tree"]
    proof = proof_of(certified_sum(tree, statistic, Streams([0]), target).spend)
    squares = [(proof.ledger.within(age).mu / proof.ledger.mu) ** 2 * 7 for age in (0, 9, 10, 30)]
    assert squares == pytest.approx([1, 1, 2, 3])
    past = [(proof.ledger.spent(now).mu / proof.ledger.mu) ** 2 * 7 for now in (9, 10, 19, 20, 999)]
    assert past == pytest.approx([0, 1, 1, 2, 7])
    gone = certified_sum(Window(4), statistic, Streams([0]), target).spend
    proof = proof_of(gone, window=40)
    ages = [proof.by_age(age) for age in (0, 10, 39, 40)]
    assert ages[0] < ages[1] < ages[2] <= 1.0
    assert ages[3] == inf


def test_sums_with_other_clocks_are_not_the_same():
    """By hand: two trees of 30 leaves, one with a release every 90 rounds and one every 10: after
    30 rounds somebody of the second was shown four times. Catches parts that are merged because
    they cost the same in the end."""
    sums = [
        certified_sum(
            FACTORISATIONS["tree"], ClippedVectors(1), Streams([0]), Target(1.0, 1e-5, T, every)
        ).spend
        for T, every in ((2701, 90), (301, 10))
    ]
    proof = proof_of(Parallel(different(sums)))
    assert sums[0] == sums[1]
    shown = (proof.ledger.within(30).mu / proof.ledger.mu) ** 2 * 5
    assert shown == pytest.approx(3)


def test_nothing_is_spent_before_the_first_release_even_without_noise():
    """By hand: 0, then infinity. Catches 0 times infinity."""
    target = Target(inf, 0.0, 9, 2)
    sums = certified_sum(Gradual(), ClippedVectors(1), Streams([0]), target, law="laplace")
    assert [proof_of(sums.spend).spent(now) for now in (1, 2)] == [0, inf]
