"""Audit statistics: bounds, thresholds, trade-off curves, exact audits of finite cases."""

from math import exp, inf, log

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpbandit.auditing.bounds import Claim, clopper_pearson, judge
from dpbandit.base.inputs import InputError
from dpbandit.privacy.curves import delta_of, mu_of
from dpbandit.privacy.ledger import Ledger, no_privacy
from dpbandit.privacy.pure import PureSpend
from dpbandit.privacy.spends import GaussianSpend


@pytest.mark.parametrize("runs", [1, 7, 40])
@pytest.mark.parametrize("failure", [0.2, 0.01])
def test_clopper_pearson_covers_exactly(runs, failure):
    """Oracle: summed over all counts, each bound is wrong with probability at most `failure`, and
    at the bound itself the tail is `failure` (the bounds could not be tighter)."""
    counts = np.arange(runs + 1)
    low, high = clopper_pearson(counts, runs, failure)
    for p in np.linspace(0.01, 0.99, 49):
        law = binom.pmf(counts, runs, p)
        assert law[low > p].sum() <= failure + 1e-12
        assert law[high < p].sum() <= failure + 1e-12
    np.testing.assert_allclose(binom.sf(counts[1:] - 1, runs, low[1:]), failure)
    np.testing.assert_allclose(binom.cdf(counts[:-1], runs, high[:-1]), failure)


def test_curve_of_a_gaussian_claim_is_its_points():
    """Oracle: the GDP curve is the least of its own (epsilon, delta) points (Dong, Roth, Su)."""
    mu, fpr = 0.7, np.linspace(0.01, 0.99, 25)
    points = tuple((e, delta_of(mu, e)) for e in np.linspace(0, 6, 600))
    exact = Claim(1.0, delta_of(mu, 1.0), mu).highest(fpr)
    np.testing.assert_allclose(exact, norm.cdf(norm.ppf(fpr) + mu))
    np.testing.assert_allclose(
        Claim(6.0, delta_of(mu, 6.0), None, points).highest(fpr), exact, 1e-4
    )


def test_claims_of_ledgers():
    gaussian = Claim.of(Ledger((GaussianSpend(0.3, ""),)), 1e-4)
    assert (gaussian.mu, gaussian.curve) == (0.3, ())
    pure = Claim.of(Ledger((PureSpend.of("", [1.0]),)), 0.0)
    assert pure.epsilon == pytest.approx(1.0, rel=1e-12)
    assert pure.curve[-1] == pytest.approx((1.0, 0.0), abs=1e-12)
    assert pure.highest(np.array(0.1)) == pytest.approx(0.1 * exp(1))
    assert Claim.of(no_privacy("exact"), 0.0).epsilon == inf


def normal_scores(mu, runs, seed):
    rng = np.random.default_rng(seed)
    return {"s": (rng.standard_normal(runs), mu + rng.standard_normal(runs))}


def test_judge_finds_the_bound_in_both_directions():
    """Statistical: mu 1.5 is refuted against 1, and the bound is 85 to 100 % of the truth; worlds
    told apart by small scores as well as by large ones."""
    claim = Claim(3.0, delta_of(1.0, 3.0), 1.0)
    for sign in (1, -1):
        halves = [
            {"s": tuple(sign * x for x in normal_scores(1.5, 10_000, seed)["s"])} for seed in (1, 2)
        ]
        if sign < 0:  # what is called B is then A
            halves = [{"s": half["s"][::-1]} for half in halves]
        found = judge(*halves, claim, failure=0.05)
        assert found.flagged
        assert found.above_curve
        assert 1.27 < found.mu_lower < 1.5


def test_the_better_score_is_chosen_on_the_selection_half():
    good, useless = normal_scores(1.5, 4000, 1)["s"], normal_scores(0.0, 4000, 2)["s"]
    found = judge(
        {"useless": useless, "good": good},
        {"useless": useless, "good": normal_scores(1.5, 4000, 3)["s"]},
        Claim(1.0, 1e-4, mu_of(1.0, 1e-4)),
        failure=0.05,
    )
    assert found.score == "good"


def test_worlds_that_cannot_be_told_apart_prove_nothing():
    constant = {"s": (np.zeros(500), np.zeros(500))}
    found = judge(constant, constant, Claim(1.0, 0.0), failure=0.05)
    assert (found.eps_lower, found.flagged) == (0.0, False)
    apart = {"s": (np.zeros(500), np.ones(500))}
    found = judge(apart, apart, Claim(inf, 0.0), failure=0.05)
    assert found.eps_lower > 4
    assert not found.flagged  # nothing is claimed


def test_one_threshold_for_both_criteria_gets_all_of_the_failure():
    """Golden: for a pure claim both criteria choose the same threshold, so its two rates are
    bounded at failure / 2 each; for a Gaussian claim that has two thresholds at failure / 4."""
    halves = [normal_scores(1.0, 5000, seed) for seed in (1, 2)]
    pure = judge(*halves, Claim(1.0, 0.0), failure=0.05)
    assert pure.eps_lower == pytest.approx(log(pure.tpr / pure.fpr))
    counts = np.arange(5001)
    low, high = clopper_pearson(counts, 5000, 0.025)
    assert np.isclose(low, pure.tpr, atol=1e-12).any()
    assert np.isclose(high, pure.fpr, atol=1e-12).any()
    gaussian = judge(*halves, Claim(1.0, 1e-4, mu_of(1.0, 1e-4)), failure=0.05)
    low, _ = clopper_pearson(counts, 5000, 0.0125)
    assert np.isclose(low, gaussian.tpr, atol=1e-12).any()


def test_bad_input():
    with pytest.raises(InputError, match="failure"):
        clopper_pearson(np.array([1]), 2, 0.0)
