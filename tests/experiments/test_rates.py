"""Tables of rates: rows that contradict themselves, the study on small sizes, and its mistakes."""

import json
from itertools import chain
from math import log

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.experiments.paper_tables import TABLES
from dpbandit.experiments.rates import Point, draw, measure, selected, shown, tables
from tests.each import each

TABLES_OF_RATES = {name: table.rows for name, table in tables().items()}
CONVEX_1, CONVEX_RUN = TABLES_OF_RATES["convex/table-1"], TABLES["convex/table-1"].run
FAR = {
    "T": (Point(2**400, 8), Point(2**500, 8)),
    "d": (Point(2**20, 2**400), Point(2**20, 2**500)),
    "epsilon": (Point(2**20, 8, 2.0**-90), Point(2**20, 8, 2.0**-80)),
}
"""Where the largest term of a bound is alone."""


@each("rate", [*chain(*TABLES_OF_RATES.values())], ids=lambda r: r.source)
def test_a_printed_exponent_is_that_of_its_bound(rate):
    """Golden, by another way: log of the bound far out, where logarithms add at most 0.02. A row
    whose formula, or whose exponent, was copied wrongly fails."""
    assert rate.exponents
    for axis, exponent in rate.exponents.items():
        near, far = FAR[axis]
        place = {"T": 0, "d": 1, "epsilon": 2}[axis]
        found = log(rate.value_at(far) / rate.value_at(near)) / log(far[place] / near[place])
        assert found == pytest.approx(exponent, abs=0.02), axis


def test_rows_are_numbered_and_offered():
    for name, rates in TABLES_OF_RATES.items():
        assert [rate.number for rate in rates] == [*range(1, len(rates) + 1)]
        assert f"from 1 to {len(rates)} " in TABLES[name].rows
        assert all(bool(rate.environment) == bool(rate.agent) for rate in rates)


def test_the_study_fits_and_draws(tmp_path):
    """Two rows at a small size: every axis and reading is there, noise costs something, the bound
    of row 3 has the exponent (T/16 to T, T = 128) that logarithms of T lend it, and a figure."""
    selection = selected(CONVEX_1, "3,5,T=128", 10**6)
    assert json.dumps(
        CONVEX_RUN("public", "1,T=64", replicas=2, seed=0, out=tmp_path / "one").records
    )
    readings, how = ("certified", "public"), {"replicas": 3, "seed": 1, "progress": False}
    entries = measure("rates", selection, readings, tmp_path, **how)
    assert [(e.rate.number, e.axis, e.reading) for e in entries] == [
        *((3, axis, reading) for axis in ("T", "d") for reading in readings),
        (3, "epsilon", "certified"),
        *((5, "T", reading) for reading in readings),
    ]
    private, public = (e.record() for e in entries[:2])
    assert private["mean_at_the_last"] > 10 * public["mean_at_the_last"] > 0
    assert private["certified_epsilon_at_the_last"] == pytest.approx(1)
    x = np.log([32, 64, 128])
    by_hand = np.polyfit(x, 2.5 * np.log(x), 1)[0]
    assert entries[0].of_the_bound == pytest.approx(by_hand)
    assert entries[0].places == [8, 16, 32, 64, 128]
    assert draw(tmp_path / "rates.png", entries).read_bytes()[:4] == b"\x89PNG"
    printed, exponents = shown(selection, entries)
    assert (printed.row_count, exponents.row_count) == (2, 7)


@each("text", ["", "0", "7", "1-", "3-1", "²", "T=²", "one", "T=63", "1-999"])
def test_rows_that_are_none_get_one_sentence(text):
    with pytest.raises(InputError, match=r"Expected (rows to be numbers from 1 to 6|T=63)"):
        selected(CONVEX_1, text, 1000)


@pytest.mark.parametrize("name", TABLES_OF_RATES)
def test_every_row_is_played(name):
    """Every agent of a row accepts its problem, at the sizes of every axis but of d's largest."""
    rates = [rate for rate in TABLES_OF_RATES[name] if rate.agent]
    for rate in rates:
        for reading in rate.readings:
            for axis in rate.exponents:
                one = rate.configuration(reading, rate.points(axis, 64)[0], seed=0)
                run = one.play(0, 2)
                assert rate.measured(run).shape == (2,)
    assert len(rates) > 1
