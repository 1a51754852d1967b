"""The study of private pricing: what is asked, what stands beside it, that it is written."""

from dataclasses import replace
from math import inf

import pandas as pd
import pytest

from dpbandit.experiments.private_pricing import __main__ as command
from dpbandit.experiments.private_pricing.__main__ import PROVED, SHOPS, Sizes, agents, questions
from dpbandit.results import plots
from tests.experiments.runs import quick

TINY = Sizes(horizons=(30, 40, 60, 80), epsilons=(1.0, inf), replicas=2)


def test_every_agent_of_the_literature_is_asked_and_has_what_was_proved():
    for shop in SHOPS:
        assert set(agents(shop, 1.0)) == {*PROVED, "best fixed price"}
    panels = questions(TINY)["horizons"]
    assert list(panels) == [
        f"{shop}, {budget}" for shop in SHOPS for budget in ("epsilon 1", "no privacy")
    ]
    for name, lines in panels.items():
        epsilon = inf if "no privacy" in name else 1.0
        for label, line in lines.items():
            assert [one.setup.horizon for one in line] == list(TINY.horizons)
            assert {getattr(one.config, "epsilon", epsilon) for one in line} == {epsilon}, label


def test_quick_runs_write_everything(tmp_path, monkeypatch):
    """Tables with both exponents, a figure of a panel for each shop and budget, and two files."""
    shown, save = [], plots.save_figure
    monkeypatch.setattr(
        plots, "save_figure", lambda figure, path: (shown.extend(figure.axes), save(figure, path))
    )
    monkeypatch.setenv("COLUMNS", "200")
    printed = quick(command, replace(TINY, epsilons=(1.0,)), tmp_path, 2)
    slopes = pd.read_csv(tmp_path / "slopes.csv").set_index(["panel", "line"])
    assert len(slopes) == len(SHOPS) * 4
    for label, proved in PROVED.items():
        row = slopes.loc[("OJPricing, epsilon 1", label)]
        assert f"{row['value']:.2f} ± {row['se']:.2f}, {proved}" in printed
    assert slopes["value"].xs("best fixed price", level="line").to_list() == pytest.approx(
        [1, 1], abs=0.3
    )
    runs = pd.read_csv(tmp_path / "summary.csv")
    private = runs[runs["line"] != "best fixed price"]
    assert (private["certified_epsilon"] <= private["claimed_epsilon"] * (1 + 1e-9)).all()
    assert len(shown) == len(SHOPS)
    assert (tmp_path / "regret.png").read_bytes()[:4] == b"\x89PNG"
