"""Certificates of several agents: the same people pay for each, disjoint people for the dearer."""

import json
from dataclasses import replace
from math import inf, nan

import pytest

from dpbandit import certify
from dpbandit.agents import DPUCB, FADE, MemoryAlone, PerPerson, PersonalFADE, Uniform
from dpbandit.base import InputError
from dpbandit.privacy import delta_of
from dpbandit.privacy.bits import BitSpend
from dpbandit.privacy.certificate import certificate_from_dict, ledger_as_dict, ledger_from_dict
from dpbandit.privacy.generalised import GeneralisedGaussianSpend
from dpbandit.privacy.ledger import Ledger, Sequential
from dpbandit.privacy.notion import Notion, Round, Trust
from dpbandit.privacy.pure import BoundedRangeSpend, KNormSpend, LaplaceSpend, PureSpend
from dpbandit.privacy.spends import Expiring, GaussianSpend
from dpbandit.privacy.subsampling import SampledGaussianSpend
from dpbandit.privacy.wishart import WishartSpend
from tests.each import each
from tests.harness import PEOPLE, SHARED

ONE = certify(FADE(), SHARED, accountants=False)
TWO = certify(DPUCB(epsilon=2.0, delta=1e-6), SHARED, accountants=False)


def test_the_same_people_pay_for_both():
    """Gaussians by hand, mu = sqrt(mu1^2 + mu2^2); the claim is the sum, which always holds."""
    both = ONE + TWO
    assert both.mu == pytest.approx((ONE.mu**2 + TWO.mu**2) ** 0.5, rel=1e-12)
    assert (both.claimed_epsilon, both.claimed_delta) == (3.0, pytest.approx(1.1e-5))
    assert both.ledger.spends == ONE.ledger.spends + TWO.ledger.spends
    assert both.delta == pytest.approx(delta_of(both.mu, 3.0), rel=1e-9)
    assert both.holds
    assert both.epsilon < 2.5
    assert (ONE + certify(Uniform(), SHARED)).mu == ONE.mu
    for other in (both, ONE.beside(TWO)):
        assert certificate_from_dict(json.loads(json.dumps(other.as_dict()))) == other
        doctored = other.as_dict() | {"epsilon": 0.001, "delta": 0.0, "pure": 0.0, "mu": 0.001}
        assert certificate_from_dict(doctored) == other


def test_disjoint_people_pay_for_the_dearer():
    """The costs of all mechanisms of one agent are compared with those of the other; that
    nobody is with both is a condition, which a sum keeps."""
    apart = ONE.beside(TWO)
    assert (apart.mu, apart.claimed_epsilon, apart.claimed_delta) == (TWO.mu, 2.0, 1e-5)
    assert apart.notion.conditions == ("nobody is with both agents",)
    assert apart.ledger.brief == "conditional"
    assert not apart.notion.implies(ONE.notion)
    small = Ledger((GaussianSpend(0.1, "a"),))
    several = (small + small).beside(Ledger((GaussianSpend(0.12, "b"),)))
    assert several.mu == pytest.approx(0.1 * 2**0.5)
    assert (several + small).notion.conditions == several.notion.conditions


def test_the_weaker_promise_is_kept_and_others_are_refused():
    """A window and for ever add up to the window; a person and a round are refused."""
    short, public = Notion(window=7, conditions=("a",)), Notion(contexts="public")
    one = Ledger((GaussianSpend(0.1, ""),), short) + Ledger((GaussianSpend(0.1, ""),), public)
    assert one.notion == replace(short, contexts="public")
    persons = [certify(PersonalFADE(), PEOPLE), certify(PerPerson(FADE()), PEOPLE)]
    assert (persons[0] + persons[1]).notion == persons[0].notion
    assert (persons[0] + certify(MemoryAlone(), PEOPLE)).notion == persons[0].notion
    for other in (ONE, Ledger(notion=Notion(unit=Round(returning=True)))):
        with pytest.raises(InputError, match=r"got unit=.* neither of which implies"):
            persons[0].ledger.beside(getattr(other, "ledger", other))
    of_people = Ledger(notion=Notion(trust=Trust("aggregated", 0.5, "people")))
    with pytest.raises(InputError, match="got trust="):
        Ledger(notion=Notion(trust=Trust("aggregated", 0.5, "slots"))) + of_people
    with pytest.raises(TypeError):
        ONE + 1


GAUSS = GaussianSpend(0.3, "g")
DOCTORED = {
    "GaussianSpend": (GAUSS, {"mu": (nan, -0.3)}),
    "LaplaceSpend": (LaplaceSpend(0.1, 3), {"epsilon": (nan, -1.0), "count": (-1, 2.5)}),
    "KNormSpend": (KNormSpend(3, 0.1, 2), {"ratio": (nan, -1.0), "dim": (0,), "count": (-2,)}),
    "GeneralisedGaussianSpend": (
        GeneralisedGaussianSpend(3.0, 2, 0.1),
        {"ratio": (nan, -1.0), "count": (-1,)},
    ),
    "PureSpend": (
        PureSpend.alike("answers", 0.1, 1000),
        {
            "pure": (nan, -1.0, 51.0),
            "rho": (nan, -1.0, 1.3),
            "groups": (((0.1, -1000),), ((nan, 1000),), ((0.1, 0),)),
        },
    ),
    "BoundedRangeSpend": (BoundedRangeSpend.of("", [0.2, 0.1]), {"pure": (nan, 0.2)}),
    "WishartSpend": (WishartSpend(500.0, 3, 4, "w"), {"degrees": (nan, -1.0), "nodes": (-1,)}),
    "BitSpend": (BitSpend(2, 500), {"bits": (-1,), "coins": (-1,), "chance": (nan,)}),
    "SampledGaussianSpend": (
        SampledGaussianSpend(0.3, 0.1, 10),
        {"ratio": (nan, -1.0), "rate": (nan, -0.1, 1.1), "count": (-1,)},
    ),
    "Expiring": (Expiring(GAUSS, 40), {"window": (0, -3, nan)}),
}


@each("kind", DOCTORED)
def test_a_spend_that_costs_no_number_is_not_made(kind):
    """NaN was certified at epsilon 0, and half of what a thousand answers cost was believed: on
    construction, and from a file."""
    spend, wrong = DOCTORED[kind]
    written = ledger_as_dict(Ledger((spend,), Notion(window=40)))
    assert ledger_from_dict(written).spends == (spend,)
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InputError, match="Expected "):
                replace(spend, **{name: value})
            (entry,) = written["spends"]
            with pytest.raises(ValueError, match=r"Expected |is of another type"):
                ledger_from_dict({**written, "spends": [{**entry, name: value}]})
    assert GaussianSpend(inf, "no noise").mu == inf


def test_rounded_groups_are_believed_as_far_as_they_are_rounded():
    """More than 512 epsilons add up to the sum of the list, not of its groups."""
    epsilons = [0.1 / (n + 1) ** 0.5 for n in range(4000)]
    spend = PureSpend.of("many", epsilons)
    assert spend.pure == pytest.approx(sum(epsilons))
    with pytest.raises(InputError, match="pure="):
        replace(spend, pure=0.98 * spend.pure)
    assert Sequential((spend,), "all").pure == spend.pure
