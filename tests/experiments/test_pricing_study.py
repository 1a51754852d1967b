"""The pricing experiment: what it computes, and that the figures are there."""

from math import inf

import numpy as np
import pandas as pd
import pytest

from dpbandit import Results
from dpbandit.agents import LinUCB
from dpbandit.base import Streams
from dpbandit.experiments.pricing import __main__ as command
from dpbandit.experiments.pricing.__main__ import (
    MARKETS,
    Market,
    best_public,
    called,
    draw_regret,
    lead_from,
    lost,
    money,
    table,
)
from dpbandit.experiments.pricing.shop import SHAPES, Shapes
from dpbandit.experiments.questions import measured
from dpbandit.studies import Configuration, Study, setup_of
from tests.drawings import points, unsaved
from tests.each import each
from tests.experiments.runs import made_up, quick, run_command

RESULTS = Results(
    (
        made_up("BestFixed", 1, 1),
        made_up("Uniform", 60, 80, claimed=0.0),
        made_up("dp", 15, 30, claimed=1.0, certified=0.25),
        made_up("dp", 10, 20),
        made_up("ucb", 20, 20),
    )
)


def test_lost_money_is_paired_with_the_best_public_agent(monkeypatch):
    """Golden, by hand: of 500 users the best public agent, a private one at infinity, loses 10 and
    20, another 15 and 30: 5 and 10 more, for every 1,000 users 15 +- 5. In dollars these are 45 +-
    15, a tenth of 450 at best, which is 0.45 a round. An oracle does not count."""
    best = best_public(RESULTS)
    assert called(best, RESULTS) == "dp at infinity"
    np.testing.assert_allclose(lost(RESULTS.runs[2], best), [10, 20])
    found = table(RESULTS).set_index(["agent", "claimed_epsilon"])
    row = found.loc[("dp", 1.0)]
    assert (row["lost_per_1000"], row["lost_per_1000_se"]) == pytest.approx((15, 5))
    assert (row["mean"], row["se"], row["certified_epsilon"]) == pytest.approx((22.5, 7.5, 0.25))
    assert row["beats_uniform_from"] == 500
    assert pd.isna(found.loc[("Uniform", 0.0), "beats_uniform_from"])
    monkeypatch.setitem(MARKETS, "made up", Market("made up", 1))
    monkeypatch.setattr(command, "at_best", lambda setup, replicas: 0.45)
    monkeypatch.setattr(command, "_PRIVATE", {"certified": "dp"})
    found = money(RESULTS).set_index(["role", "certified_epsilon"]).loc[("certified", 0.25)]
    assert tuple(found[["dollars_lost", "dollars_lost_se"]]) == pytest.approx((45, 15))
    assert found["share_lost"] == pytest.approx(0.1)


def test_figures_show_the_regret_in_the_end_and_what_is_lost(tmp_path):
    """Golden, as above: lines at the epsilon that is certified, others as levels."""
    with unsaved() as drawn:
        names = [path.name for path in draw_regret(RESULTS, tmp_path)]
    assert names == ["regret-made up.png", "lost-made up.png"]
    for (axes, *_), means, levels in (
        (drawn[0], [22.5, 15], {"BestFixed": 1, "Uniform": 70, "dp at infinity": 15}),
        (drawn[1], [15, 0], {"BestFixed": -28, "Uniform": 110, "dp at infinity": 0}),
    ):
        certified, apart = axes.containers
        assert certified.get_label() == "dp"
        assert points(certified[0]) == ([0.25], pytest.approx(means[:1]))
        assert points(apart[0]) == ([0.625], pytest.approx(means[1:]))
        shown = {one.get_label(): one.get_ydata()[0] for one in axes.get_lines()}
        assert {name: shown[name] for name in levels} == pytest.approx(levels)


def test_a_lead_lasts_to_the_end_and_is_two_standard_errors():
    """Golden: gains g - 0.1 and g + 0.1 have mean g and standard error 0.1."""
    for gains, start in (
        ([1, 1, 1, 1], 10),
        ([-1, 1, 1, 1], 20),
        ([1, 1, -1, 1], 40),  # a lead that is lost does not count
        ([1, 1, 1, -1], None),
        ([0, 0, 0, 0], None),
        ([0.19, 0.21, 0.21, 0.21], 20),  # two standard errors are 0.2
    ):
        regret = -np.array([[g - 0.1, g + 0.1] for g in gains])
        assert lead_from(np.array([10, 20, 30, 40]), regret, np.zeros((4, 2))) == start


def test_half_a_block_is_told_and_run_anew(tmp_path):
    setup = setup_of("GLMBandit", {}, horizon=9)
    study = Study(configurations=(Configuration(setup, "one", LinUCB()),), replicas=2)
    (run,) = measured(study, tmp_path, progress=False).runs
    (block,) = (tmp_path / "blocks").iterdir()
    block.write_bytes(block.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="Corrupt, moved aside and run anew: .*corrupt"):
        (again,) = measured(study, tmp_path, progress=False).runs
    np.testing.assert_array_equal(run.regret, again.regret)


@each(
    ("shape", "price", "chance"),
    [("kinds", 1.3, 0.75), ("plateau", 2.2, 0.25), ("luxury", 2.6, 0.6), ("elastic", 2.4, 2**-2.2)],
)
def test_demand_has_the_shape_that_it_says(shape, price, chance):
    """Golden, by hand, for the customer in the middle; a round serves the customer it shows."""
    assert SHAPES[shape](price, 0.0, 0.0) == pytest.approx(chance, abs=1e-4)
    (problem := Shapes(shape=shape)).reset(Streams([1]))
    sold = SHAPES[shape](2.4, *(problem.context() * np.sqrt(3))[0, 1:])
    assert problem.step(np.array([7])).expected == pytest.approx(1.9 * sold)


@pytest.mark.filterwarnings("ignore:Prices were not randomised")  # the shop says so of its log
def test_the_command(tmp_path):
    """As documented: agents that do not fit are left out and named, figures are drawn, `--replicas`
    reaches the plan, and standard errors need two replicas."""
    sizes = {"horizons": [20], "epsilons": [1.0, inf]}
    left_out = "Left out where they do not fit: .*demand on "
    with (
        pytest.warns(UserWarning, match=left_out + "ApplePricing"),
        pytest.warns(UserWarning, match=left_out + "Recommend"),
    ):
        said = quick(command, sizes, tmp_path)
    assert "dollars lost per" in said
    found = pd.read_csv(tmp_path / "summary.csv")
    assert set(found["replicas"]) == {2}
    assert (found["certified_epsilon"] <= found["claimed_epsilon"]).all()
    on = {problem: set(rows["agent"]) for problem, rows in found.groupby("problem")}
    assert {name for name in on["OJPricing"] - on["Recommendation"] if "demand" in name}
    assert not {name for name in on["Recommendation"] if "demand" in name}
    for path in tmp_path.glob("*.png"):
        assert path.read_bytes()[:4] == b"\x89PNG"
    assert {path.stem for path in tmp_path.glob("*.png")} == {
        "money",
        *(f"{what}-{problem}" for what in ("regret", "lost") for problem in on),
    }
    assert "replicas=1 to be a whole number >= 2" in str(
        run_command(command.main, "--quick", "--replicas", 1).exception
    )
