"""The pricing experiment: what it computes, that it resumes, that the figures are there."""

from math import inf

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from dpbandit import InputError
from dpbandit.experiments.grid import Outcome
from dpbandit.experiments.pricing import __main__ as command
from dpbandit.experiments.pricing import study as module
from dpbandit.experiments.pricing.figure import figures
from dpbandit.experiments.pricing.study import ENVIRONMENTS, Findings, Plan, lead_from, study

TINY = Plan(horizon=50, replicas=2, epsilons=(1.0, inf))


def outcome(*final):
    """A run of two logged rounds that ends with these regrets."""
    regret = np.array([[0.0] * len(final), final], dtype=float)
    return Outcome(np.array([1, 500]), regret, -regret, inf, 0.0)


def test_lost_money_is_paired_with_the_best_public_agent():
    """Golden, by hand: 500 users; the best public agent, a private one at infinity, loses 10 and
    20; another loses 15 and 30, so 5 and 10 more, 10 and 20 for every 1,000 users: 15 +- 5."""
    found = Findings(
        "OJPricing",
        "dollars",
        500,
        private={"dp": {1.0: outcome(15, 30), inf: outcome(10, 20)}},
        public={"ucb": outcome(20, 20)},
        baselines={"uniform": outcome(60, 80)},
    )
    assert found.best_public[0] == "dp at infinity"
    np.testing.assert_allclose(found.lost(outcome(15, 30)), [10, 20])
    table = found.table().set_index(["agent", "epsilon"])
    row = table.loc[("dp", 1.0)]
    assert (row["lost_per_1000"], row["lost_per_1000_se"]) == pytest.approx((15, 5))
    assert (row["regret"], row["regret_se"]) == pytest.approx((22.5, 7.5))
    assert row["beats_uniform_from"] == 500
    assert np.isnan(table.loc[("uniform", inf), "beats_uniform_from"])
    assert table["private"].sum() == 1


def test_figures_show_the_regret_in_the_end_and_what_is_lost(tmp_path, monkeypatch):
    """Golden, as above: lines at their epsilon, baselines as levels, the best public agent first
    where regret is shown."""
    agent, seen = next(iter(module.PRIVATE)), {}

    def draw(path, lines, levels, *, title, ylabel):
        seen[ylabel] = lines, {name: values.tolist() for name, values in levels.items()}
        path.touch()

    monkeypatch.setattr("dpbandit.experiments.pricing.figure.frontier", draw)
    found = Findings(
        "OJPricing",
        "dollars",
        500,
        private={agent: {1.0: outcome(15, 30), inf: outcome(12, 24)}},
        public={"ucb": outcome(10, 20)},
        baselines={"uniform": outcome(60, 80)},
    )
    figures(found, tmp_path)
    for ylabel, values, best in (
        (
            "cumulative regret (dollars)",
            [[15, 30], [12, 24]],
            {"ucb:\nbest without privacy": [10, 20]},
        ),
        ("dollars lost per 1,000 users", [[10, 20], [4, 8]], {}),
    ):
        ((line,), levels) = seen[ylabel]
        assert (line.label, line.epsilons) == (agent, [1.0, inf])
        np.testing.assert_allclose(line.values, values)
        assert levels == {"uniform": [60, 80] if best else [100, 120], **best}


@pytest.mark.parametrize(
    ("gains", "start"),
    [
        ([1, 1, 1, 1], 10),
        ([-1, 1, 1, 1], 20),
        ([1, 1, -1, 1], 40),  # a lead that is lost does not count
        ([1, 1, 1, -1], None),
        ([0, 0, 0, 0], None),
        ([0.19, 0.21, 0.21, 0.21], 20),  # two standard errors of +-0.1 around the gain are 0.2
    ],
)
def test_a_lead_lasts_to_the_end_and_is_two_standard_errors(gains, start):
    """Golden: gains g - 0.1 and g + 0.1 have mean g and standard error 0.1."""
    regret = -np.array([[g - 0.1, g + 0.1] for g in gains])
    assert lead_from(np.array([10, 20, 30, 40]), regret, np.zeros((4, 2))) == start


def test_agents_that_do_not_fit_are_left_out_and_figures_are_drawn(tmp_path):
    findings = study(TINY, tmp_path, progress=False)
    priced, recommended = findings
    assert set(priced.private) == set(module.PRIVATE)
    assert set(priced.private) - set(recommended.private) >= {"dp-ucb, demand"}
    assert "linucb, demand" not in recommended.public
    table = pd.read_csv(tmp_path / "summary.csv")
    assert set(table["environment"]) == set(ENVIRONMENTS)
    certified = table[table["private"]]
    assert (certified["certified_epsilon"] <= certified["epsilon"]).all()
    for found in findings:
        for path in figures(found, tmp_path):
            assert path.read_bytes()[:4] == b"\x89PNG"


def test_the_same_plan_again_runs_nothing(tmp_path, monkeypatch):
    first = study(TINY, tmp_path, progress=False)
    monkeypatch.setattr("dpbandit.experiments.grid._run", None)  # would not be callable
    again = study(TINY, tmp_path, progress=False)
    for one, two in zip(first, again, strict=True):
        pd.testing.assert_frame_equal(one.table(), two.table())


def test_the_command(tmp_path, monkeypatch):
    """As documented; `--replicas` reaches the plan; standard errors need two of them."""
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.setattr("dpbandit.base.progress._PATIENCE", 1e9)
    app = typer.Typer()
    app.command()(command.main)
    words = ["--quick", "--out", str(tmp_path), "--replicas", "3"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert "dollars lost per" in done.output
    frame = pd.read_parquet(tmp_path / "cells" / "OJPricing" / "uniform.parquet")
    assert frame["replica"].nunique() == 3
    assert {p.name for p in tmp_path.glob("*.png")} == {
        f"{what}-{env}.png" for what in ("regret", "lost") for env in ENVIRONMENTS
    }
    with pytest.raises(InputError, match="replicas=1 to be a whole number >= 2"):
        Plan(replicas=1)
