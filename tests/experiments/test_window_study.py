"""The study of privacy that expires: labels, tables, Table I, costs; cases that are reproduced."""

import json
from math import log, sqrt

import numpy as np
import pandas as pd
import pytest

from dpbandit.agents import FTAL, PFTAL, WDPCOCOL
from dpbandit.domains import Flows, Simplex
from dpbandit.experiments import CASES, reproduce
from dpbandit.experiments.paper_tables import TABLES
from dpbandit.experiments.study import measured
from dpbandit.experiments.window import (
    COUNTED,
    ROWS,
    Size,
    __main__ as command,
    domain,
    timed_on,
)
from dpbandit.losses import Ridge
from dpbandit.results import plots
from dpbandit.results.runs import protected
from dpbandit.studies import Study
from tests.agents.convex.convex_runs import as_bs
from tests.each import in_turn, refused
from tests.experiments.runs import figures_of, quick

BALL_CASE, SIMPLEX_CASE = CASES["window/cocop-ball"], CASES["window/cocol-simplex"]
TINY = {
    "horizon": 30, "windows": [1, 30], "horizons": [16, 18, 20, 24], "fixed_windows": [4],
    "customers": 20, "retentions": [5], "epsilons": [1.0, 5.0], "corners": [4], "layers": [1],
    "timed_rounds": 18, "timed_runs": 2, "replicas": 2,
}  # fmt: skip
WITHOUT = ("FTAL", "conditional", "centre", "uniform", "list prices", "random prices")


@in_turn(1)
def test_the_study_never_shows_window_dp_as_ordinary_dp(tmp_path, monkeypatch):
    """Rows whose agent has a window shorter than its horizon say so in two columns, and so does
    every label in tables and legends; the baselines are always there, every run meets its epsilon,
    and nothing is played a second time."""
    drawn, save = [], plots.save_figure

    def listed(figure, path):
        for axes in figure.axes:
            drawn.extend(axes.get_legend_handles_labels()[1])
        save(figure, path)

    monkeypatch.setenv("COLUMNS", "220")
    monkeypatch.setattr(plots, "save_figure", listed)
    printed = quick(command, TINY, tmp_path)
    assert figures_of(tmp_path) == {"windows", "horizons", "retention", "costs"}
    table, first = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("summary", "table-1"))
    assert {*table["question"], "costs"} == set(command.STUDY.configurations(TINY))
    assert len(pd.read_csv(tmp_path / "costs.csv")) == 2 * 4
    assert len(first) == 5 + 7 + 4

    expiring = table["algorithm"].str.startswith("WDP")
    short = expiring & table["notion"].str.startswith("window DP")
    assert short.sum() > 20
    assert table.loc[short, "protected"].str.match(r"window-DP, last \d+$").all()
    assert table.loc[short, "notion"].str.contains("older data may be revealed completely").all()
    assert not table.loc[~expiring, "notion"].str.contains("window").any()
    assert (table.loc[short, "line"].str.contains("window-DP, last")).all()
    lasting = table.loc[expiring & ~short]  # W = T, among others
    assert (lasting["notion"].str.startswith("DP of all actions")).all()
    assert len(lasting) > 5
    assert "POCP (conditional)" in set(table["line"])
    of = first["agent"].str.startswith("WDP")
    assert (first.loc[of, "protected"] == "window-DP, last 4").all()
    for line in printed.splitlines():
        if "WDPCOCO" in line and "replicas:" not in line:  # progress
            assert "(window-DP, last 4)" in line
    assert sum("window-DP, last " in label for label in drawn) > 15
    for label in drawn:
        assert label.startswith(("PFTAL", "POCP", *WITHOUT)) or "window-DP" in label

    for place in ("studies.configurations.play_any", "experiments.window.play"):
        monkeypatch.setattr(f"dpbandit.{place}", None)  # would not be callable
    command.run(TINY, tmp_path)
    found = command.STUDY.measure(TINY, tmp_path, progress=False)
    regrets = (panels for question, panels in found.runs.items() if question != "costs")
    for lines in (lines for panels in regrets for lines in panels.values()):
        words = " ".join(lines)
        assert "FTAL, no privacy" in words
        assert "PFTAL, Gaussian (DP)" in words
        assert ("uniform play" in words and "centre" in words) or "list prices" in words
        assert all(len(line) in (1, len(next(iter(lines.values())))) for line in lines.values())
        runs = [run for line in lines.values() for run in line]
        assert all(run.certificate.holds for run in runs if protected(run))
    lines = found.runs["windows"]["cocop-ball"]
    assert protected(lines["Gaussian, lazy tree (window-DP, last W)"][-1]) == "DP"  # W = T


def test_operations_are_counted(tmp_path):
    """Golden: FTAL projects once a round; COCOL asks for the lowest vertex once (the gap of its
    radius) and, where its local oracle needs a vertex, too, twice; without an exact projection
    FTAL pays in linear minimisations."""
    timed = [
        timed_on("quadratic", domain(kind, size), f"{kind}-{type(config).__name__}", config, 12)
        for kind, size, mu in (("simplex", 4, None), ("flows", 1, 2.0))
        for config in (FTAL(), WDPCOCOL(window=3, geometry=mu))
    ]
    study = Study(configurations=tuple(timed), replicas=2)
    found = {run.name: run for run in measured(study, tmp_path, progress=False).runs}
    counts = {name: tuple(run.measures[c].mean() for c in COUNTED) for name, run in found.items()}
    assert counts["simplex-FTAL"] == (1, 0)
    assert counts["simplex-WDPCOCOL"] == (0, 1)
    assert counts["flows-WDPCOCOL"] == (0, 2)
    assert counts["flows-FTAL"][0] == 0
    assert counts["flows-FTAL"][1] > 2
    assert all((run.measures["seconds"] > 0).all() for run in found.values())
    assert protected(found["simplex-WDPCOCOL"]) == "window-DP, last 3"
    assert isinstance(domain("flows", 2), Flows)
    assert domain("flows", 2).dim == 3 + 9 + 3


def test_rows_are_as_printed_and_chosen():
    """Golden: the printed formulas at T = 1024, W = 16, epsilon 2, delta 1e-6, d = 5; L of ridge
    regression is 2 R + 1, R the simplex's."""
    size, d = Size(1024, 16, 2.0, 1e-6), 5
    nats, big = log(1e6), log(1024)
    L, D = Ridge(Simplex(d)).lipschitz, sqrt(2)
    np.testing.assert_allclose(L, 2 * sqrt(1 - 1 / d) + 1)
    expected = [
        sqrt(d * 32) * log(1024e6),
        sqrt(d) * nats * big**1.5 / 2,
        d * big**2.5 / 2,
        d * 8 * big / 2,
        sqrt(d) * 8 * nats * big / 2,
        d * 8 * big / 2,
        max(2 * sqrt(d), 8 * nats) * sqrt(d) * (L + D) ** 2 * big / 2,
    ]
    assert [row.value_at(size) for row in ROWS] == pytest.approx(expected)
    assert [row.number for row in ROWS] == [1, 2, 3, 4, 5, 6, 7]
    run, how = TABLES["window/table-1"].run, {"replicas": 2, "seed": 0, "out": None}
    found = run("certified", "2, 4-5,T=20,W=10,epsilon=0.5,delta=1e-5", **how).records
    assert [record["row"] for record in found] == [2, 4, 5]
    sizes = [(r["T"], r["W"], r["epsilon"], r["delta"]) for r in found]
    assert sizes == [(20, 10, 0.5, 1e-5)] * 3
    for wrong in ("8", "0-2", "x", "T=x", "d=3", "T=5,T=6", "W=2.5", "1-", ""):
        refused("Expected rows to be numbers from 1 to 7", run, "public", wrong, **how)
    for wrong in ("T=1", "W=0", "epsilon=-1", "delta=1"):
        refused(f"Expected {wrong}", run, "public", wrong, **how)


def test_the_command_reproduces_table_1(run, tmp_path):
    """Two rows at a small size, on screen and in files; the printed Gamma noise certifies
    2 L / (L + H D) times its claim, since H D < L here."""
    numbers = tmp_path / "table.json"
    words = ["reproduce", "window/table-1", "--rows", "4-5,T=40,W=4,epsilon=2", "--replicas", 2]
    _, shown, _ = run(*words, "--out", tmp_path / "out", "--json", numbers)
    assert "d log2^1.5 W ln T / ε" in shown
    assert shown.count("(window-DP, last 4)") == 4
    records = json.loads(numbers.read_text())
    assert len(records) == 2 * 2 + 4
    L, D = Ridge(Simplex(5)).lipschitz, sqrt(2)
    gamma = next(r for r in records if r["row"] == 4 and r["reading"] == "printed")
    assert gamma["certified_epsilon"] == pytest.approx(2 * 2 * L / (L + D))
    assert "older data may be revealed completely" in gamma["notion"]
    assert (tmp_path / "out" / "table-1.csv").exists()
    assert set(TABLES["window/table-1"].readings) == {r["reading"] for r in records}


def test_cases_are_reproduced_at_any_size(run):
    """Golden: gamma is K-norm noise, for which a row of the table is found at its own horizon
    alone; Gaussian noise is at the epsilon where exact GDP has the sigma of the loose conversion,
    rounded to 4 digits, for 13 of the table's 14 levels where T leaves use so many."""
    words = "reproduce window/cocop-ball --agent wdp-cocop --noise gamma --epsilon 10"
    shown = run(*f"{words} --horizon 40 --set window=10 --replicas 2".split())[1]
    shown = " ".join(shown.split())
    assert "for the last 10 rounds only" in shown
    assert "reference" not in shown
    row = next(r for r in BALL_CASE.references if r.mean == 28.8)
    typed = {"window": 256, "noise": "gamma", "epsilon": 10.0}
    made = [BALL_CASE.config("wdp-cocop", settings) for settings in (typed, row.settings)]
    assert made[0] == made[1]
    noisy = [r.settings for r in BALL_CASE.references if "noise" in r.settings]
    certified = {s["window"]: s["epsilon"] for s in noisy if "calibration" not in s}
    assert certified[256] == pytest.approx(as_bs(10), abs=1e-4)
    assert certified[8192] == pytest.approx(as_bs(10, sqrt(13 / 14)), abs=1e-4)
    assert len(BALL_CASE.references) == 7 * 6 + 3
    assert len(SIMPLEX_CASE.references) == 4 * 6
    small, settings = {"horizon": 50, "replicas": 2, "progress": False}, typed | {"window": 7}
    record = reproduce("window/cocop-ball", "wdp-cocop", settings=settings, **small)
    assert record["reference"] is None
    assert record["certified_epsilon"] == pytest.approx(10)
    assert "for the last 7 rounds only" in record["notion"]
    ever = reproduce("window/cocop-ball", "pftal", settings={"noise": "gamma"}, **small)
    assert ever["config"]["noise"] == PFTAL().noise
