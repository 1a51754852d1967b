"""Ledgers and certificates: what composes, what is claimed, and who says so."""

import itertools
from math import inf, sqrt
from operator import attrgetter

import pytest

from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy import curves
from dpbandit.privacy.calibrated import least_multiplier, noisy_prefix_sum
from dpbandit.privacy.certificate import HONESTY, certificate
from dpbandit.privacy.ledger import NO_DATA, NO_PRIVACY, ROUNDING, Ledger, no_data, no_privacy
from dpbandit.privacy.moments import ClippedVectors, SecondMoments
from dpbandit.privacy.prefix_sums import BLT, Tree
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.privacy.wishart import WishartSpend
from tests.each import each
from tests.lazy import Lazy

dp_accounting = Lazy("dp_accounting")

CLAIMS = [(0.1, 1e-6), (1.0, 1e-5), (1.0, 1e-9), (8.0, 1e-4)]


def ledger_of(*parts):
    return Ledger(tuple(GaussianSpend(mu, f"part {i}") for i, mu in enumerate(parts)))


def library(accountant, relation, sigma, delta, count=1):
    """The epsilon that one of dp_accounting's accountants finds for Gaussians."""
    make = attrgetter(f"{accountant}Accountant")(dp_accounting)
    made = make(neighboring_relation=dp_accounting.NeighboringRelation[relation])
    return made.compose(dp_accounting.GaussianDpEvent(sigma), count).get_epsilon(delta)


def test_gaussian_spends_compose_in_quadrature():
    """Golden: 0.3 and 0.4 make 0.5 (3-4-5); h uses of one size are one of sqrt(h) times the size,
    as dp_accounting's composed PLD finds too; infinity swallows, nothing adds nothing."""
    assert ledger_of(0.3, 0.4).mu == pytest.approx(0.5, rel=1e-15)
    assert ledger_of(*[0.2] * 14).mu == pytest.approx(0.2 * sqrt(14), rel=1e-14)
    theirs = library("pld.PLD", "REPLACE_SPECIAL", 1 / 0.2, 1e-5, count=14)
    assert ledger_of(*[0.2] * 14).epsilon(1e-5) == pytest.approx(theirs, rel=1e-3)
    assert ledger_of(0.3, inf).epsilon(0.5) == inf
    assert ledger_of().mu == ledger_of(0.0, 0.0).mu == ledger_of().epsilon(0.0) == 0.0


def test_ledger_curves_are_the_exact_gaussian():
    """Oracle: epsilon and delta of a ledger are those of its composed mu, larger by what rounding
    of sums costs, and invert each other."""
    both = ledger_of(0.3, 0.4)
    assert both.epsilon(1e-5) == curves.epsilon_of(both.mu * (1 + ROUNDING), 1e-5)
    assert both.delta(1.0) == curves.delta_of(both.mu * (1 + ROUNDING), 1.0)
    assert both.delta(both.epsilon(1e-5)) == pytest.approx(1e-5, rel=1e-9)
    assert GaussianSpend(0.5, "one").delta(1.0) == curves.delta_of(0.5, 1.0)


def test_spends_that_are_not_gaussian_stand_alone():
    """A Wishart spend keeps its own curve and no mu; beside another spend it is refused; its
    epsilon is where its delta is met; without delta nothing can be said."""
    wishart = WishartSpend(500, 6, 14, "wishart")
    alone = Ledger((wishart,))
    assert alone.mu is None
    assert alone.delta(1.0) == wishart.delta(1.0 / (1 + ROUNDING))
    epsilon = alone.epsilon(1e-5)
    assert wishart.delta(epsilon) <= 1e-5 < wishart.delta(epsilon * 0.999)
    assert alone.epsilon(0.0) == inf
    report = certificate(alone, claim=(1.0, 1e-5))
    assert (report.mu, report.rho, report.accountants) == (None, inf, {"curve": epsilon})
    with pytest.raises(InputError, match="no common loss distribution"):
        Ledger((wishart, GaussianSpend(0.1, "gaussian"))).delta(1.0)


def test_certificate_says_everything():
    """By hand: claim, certified figures, mu, rho = mu^2 / 2, notion, mechanisms, honesty."""
    ledger = ledger_of(0.3, 0.4)
    report = certificate(ledger, claim=(1.5, 1e-5), accountants=False)
    assert (report.claimed_epsilon, report.claimed_delta) == (1.5, 1e-5)
    assert report.epsilon == ledger.epsilon(1e-5)
    assert report.delta == ledger.delta(1.5)
    assert (report.mu, report.rho) == pytest.approx((0.5, 0.125))
    assert report.notion == ("joint DP under continual observation, replace one user's round")
    assert report.accountants == {}
    notes = [spend["note"] for spend in report.as_dict()["ledger"]["spends"]]
    assert notes == ["part 0", "part 1"]
    assert not report.holds
    assert "EXCEEDS THE CLAIM" in str(report)
    assert HONESTY in str(report)
    kept = certificate(ledger, claim=(report.epsilon, 1e-5), accountants=False)
    assert kept.holds
    assert "EXCEEDS" not in str(kept)
    assert kept.delta <= 1e-5


def test_certificates_without_a_claim():
    """Who never looks is certified at 0, who shows exact data at infinity; both hold."""
    blind, open_ = certificate(no_data(), claim=None), certificate(no_privacy("x"), claim=None)
    assert (blind.epsilon, blind.delta, blind.notion, blind.holds) == (0.0, 0.0, NO_DATA, True)
    assert (open_.epsilon, open_.notion, open_.holds) == (inf, NO_PRIVACY, True)
    assert blind.accountants == {"pure": 0.0, "GDP": 0.0}
    assert open_.accountants == {"GDP": inf}


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
def test_accountants_agree_and_rank(epsilon, delta):
    """Oracle: dp_accounting's pessimistic PLD agrees with exact GDP to 1e-3 and is not below it;
    the zCDP conversion rho + 2 sqrt(rho ln 1/delta) is looser than both."""
    mu = curves.mu_of(epsilon, delta)
    report = certificate(ledger_of(mu), claim=(epsilon, delta)).accountants
    assert list(report) == ["zCDP (BS)", "zCDP (CKS)", "PLD", "GDP"]
    assert report["PLD"] == pytest.approx(report["GDP"], rel=1e-3)
    assert report["PLD"] >= report["GDP"] - 1e-9
    assert report["zCDP (BS)"] > report["zCDP (CKS)"] > 1.05 * report["PLD"]


def test_an_accountant_that_overflows_is_left_out():
    """dp_accounting's finds infinity here, and warns."""
    report = certificate(ledger_of(curves.mu_of(713.8, 0.0282)), claim=(713.8, 0.0282)).accountants
    assert list(report) == ["zCDP (BS)", "zCDP (CKS)", "GDP"]


@each("kind", [Tree(), BLT()], ids=str)
@each(("epsilon", "delta"), CLAIMS)
def test_least_multiplier_is_certified_at_the_claim(kind, epsilon, delta):
    """Oracle: over horizons, batches and statistics, the mechanism made with the least multiplier
    is certified at the claim: never above, at most 1e-3 below; 0.1 % less noise exceeds it."""
    statistics = (ClippedVectors(dim=2, bound=3.0), SecondMoments(n_actions=3, dim=2))
    grid = itertools.product((2, 100, 10_001, 999_999), (1, 7), statistics)
    for horizon, every, statistic in grid:
        shape = {"horizon": horizon, "refresh_every": every}
        least = least_multiplier(kind, **shape, epsilon=epsilon, delta=delta)
        for factor in (1.0, 0.999):
            mechanism = noisy_prefix_sum(
                kind, statistic, Streams([0]), **shape, noise_multiplier=factor * least
            )
            report = certificate(
                Ledger((mechanism.spend,)), claim=(epsilon, delta), accountants=False
            )
            if mechanism.leaves == 0:
                assert report.epsilon == least == 0
            elif factor == 1:
                assert epsilon * (1 - 1e-3) <= report.epsilon <= epsilon
                assert report.delta <= delta
                assert report.holds
            else:
                assert not report.holds


@each("epsilon", [0.01, 0.02, 0.05, 0.1, 0.5, 5.0])
@each("delta", [1e-12, 1e-10, 1e-8, 1e-6, 1e-4])
def test_rounding_never_pushes_a_certificate_over_its_claim(epsilon, delta):
    """Property, on a grid of round numbers: mu rounded down and epsilon rounded up do not cross,
    although log delta is only known to about 1e-16 epsilon / mu^2."""
    ledger = ledger_of(curves.mu_of(epsilon, delta))
    assert certificate(ledger, claim=(epsilon, delta), accountants=False).holds


def test_tree_and_blt_multipliers_golden():
    """Golden: at m = 10^4 leaves, (1, 1e-4): sqrt(14) / 0.313902 = 11.92 a node (privacy.md section
    2); the BLT's one-shot z is 1.98741 / 0.313902 = 6.33. Infinite epsilon needs no noise."""
    target = {"horizon": 10_001, "refresh_every": 1, "epsilon": 1.0, "delta": 1e-4}
    assert round(least_multiplier(Tree(), **target), 2) == 11.92
    assert round(least_multiplier(BLT(), **target), 2) == 6.33
    assert least_multiplier(Tree(), **(target | {"epsilon": inf, "delta": 0.0})) == 0.0


@pytest.mark.parametrize("kind", [Tree(), BLT()], ids=str)
def test_delta_zero_is_refused_with_a_sentence(kind):
    """Gaussian noise has no pure epsilon-DP, and a claim must be a claim."""
    shape = {"horizon": 10, "refresh_every": 1}
    with pytest.raises(InputError, match=r"delta=0 .*no pure epsilon-DP"):
        least_multiplier(kind, **shape, epsilon=1.0, delta=0)
    for epsilon, delta in ((0.0, 1e-5), (-1.0, 1e-5), (float("nan"), 1e-5), (1.0, 1.0), (1.0, -1)):
        with pytest.raises(InputError, match=r"Expected (epsilon|delta)="):
            least_multiplier(kind, **shape, epsilon=epsilon, delta=delta)
