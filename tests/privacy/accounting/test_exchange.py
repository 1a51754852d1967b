"""Ledgers for other programs, read back by them: what they compute is never below the truth."""

import json
from dataclasses import replace
from math import inf

import pytest

from dpbandit.base.files import plain
from dpbandit.base.inputs import InputError
from dpbandit.privacy.aggregated import BitSpend
from dpbandit.privacy.certificate import KINDS, ledger_as_dict, ledger_from_dict
from dpbandit.privacy.exchange import as_event, as_measurements, ledger_schema
from dpbandit.privacy.fading import FadingSlots
from dpbandit.privacy.generalised import GeneralisedGaussianSpend
from dpbandit.privacy.ledger import Ledger, Visits
from dpbandit.privacy.pure import BoundedRangeSpend, KNormSpend, LaplaceSpend, PureSpend
from dpbandit.privacy.spends import Expiring, GaussianSpend, Parallel, Repeated
from dpbandit.privacy.subsampling import SampledGaussianSpend
from dpbandit.privacy.wishart import WishartSpend
from tests.each import each
from tests.lazy import Lazy

dp_accounting, jsonschema, dp = Lazy("dp_accounting"), Lazy("jsonschema"), Lazy("opendp.prelude")
GAUSS = GaussianSpend(0.3, "sums", FadingSlots((3, 5), 0.5))
SPENDS = {
    "GaussianSpend": GAUSS,
    "LaplaceSpend": LaplaceSpend(0.1, 3),
    "KNormSpend": KNormSpend(3, 0.1, 2),
    "GeneralisedGaussianSpend": GeneralisedGaussianSpend(3.0, 2, 0.1),
    "PureSpend": PureSpend.of("answers", [0.2, 0.1, 0.1]),
    "BoundedRangeSpend": BoundedRangeSpend.of("choices", [0.2, 0.1]),
    "WishartSpend": WishartSpend(500, 3, 4, "wishart"),
    "BitSpend": BitSpend(2, 500),
    "SampledGaussianSpend": SampledGaussianSpend(0.3, 0.1, 10, "sampled"),
    "Parallel": Parallel((GAUSS, replace(GAUSS, mu=0.2))),
    "Expiring": Expiring(GAUSS, 40),
    "Repeated": Repeated(GAUSS, 3),
}


def test_the_schema_has_every_kind_and_refuses_others():
    """Oracle: jsonschema takes every kind of ledger after a journey through JSON, which comes back
    as it was, and refuses a number below 0, a word for a number, a kind that there is not."""
    assert set(SPENDS) == set(KINDS)
    jsonschema.Draft202012Validator.check_schema(ledger_schema())
    check = jsonschema.Draft202012Validator(ledger_schema())
    for spend in SPENDS.values():
        ledger = Ledger((spend,), visits=Visits(3, 2), window=7 if spend.note[-1] == "s" else None)
        written = json.loads(json.dumps(plain(ledger_as_dict(ledger))))
        assert check.is_valid(written)
        assert ledger_from_dict(written) == ledger
    for name, wrong in (("slip", -1.0), ("honest", "all"), ("adjacency", "add"), ("spends", {})):
        assert not check.is_valid({**written, name: wrong})
    assert not check.is_valid({**written, "spends": [{"kind": "Magic", "mu": 0.1, "note": ""}]})


EXACT = ("GaussianSpend", "Parallel", "Repeated", "LaplaceSpend")


@each("kind", [kind for kind in SPENDS if kind not in ("WishartSpend", "BitSpend", "Expiring")])
def test_dp_accounting_finds_no_less(kind):
    """Oracle: the epsilon that its accountants find for the event is not below ours, and equal
    where the event is exact. Catches a sensitivity that is doubled, or halved."""
    ledger = Ledger((SPENDS[kind],))
    neighbours = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    if kind in EXACT:
        accountant = dp_accounting.pld.PLDAccountant(neighbours)
        found = accountant.compose(as_event(ledger)).get_epsilon(1e-5)
        assert found == pytest.approx(ledger.epsilon(1e-5), rel=2e-3)
    else:
        accountant = dp_accounting.rdp.RdpAccountant(neighboring_relation=neighbours)
        found = accountant.compose(as_event(ledger)).get_epsilon(1e-5)
        assert found >= ledger.epsilon(1e-5)


def test_what_no_event_can_say_is_refused():
    """A window, a slip, noise that has no zCDP; and what OpenDP has no noise for."""
    for ledger, why in (
        (Ledger((SPENDS["Expiring"],), window=40), "window=40"),
        (Ledger((GAUSS,), slip=0.1), "slip=0.1"),
        (Ledger((SPENDS["WishartSpend"],)), "wishart"),
        (Ledger((SPENDS["BitSpend"],)), "bits"),
    ):
        with pytest.raises(InputError, match=why):
            as_event(ledger)
    with pytest.raises(InputError, match=r"slip=0\.1"):
        as_measurements(Ledger((GAUSS,), slip=0.1))
    with pytest.raises(InputError, match="K-norm"):
        as_measurements(Ledger((SPENDS["KNormSpend"],)))
    assert as_event(Ledger()) == dp_accounting.NoOpDpEvent()
    assert as_event(Ledger((GaussianSpend(inf, ""),))).events == [dp_accounting.NonPrivateDpEvent()]


def test_opendp_has_the_same_costs():
    """Oracle: OpenDP's own maps of the measurements are our rho and pure epsilon."""
    gaussian, laplace = as_measurements(Ledger((GAUSS, SPENDS["LaplaceSpend"])))
    assert gaussian.map(1.0) == pytest.approx(GAUSS.rho)
    assert laplace.map(1.0) == pytest.approx(0.3)
