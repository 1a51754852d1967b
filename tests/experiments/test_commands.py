"""Studies of one or two sweeps: what they compute, by hand, and that their commands write all."""

from math import inf, log
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpbandit import Results
from dpbandit.agents import LinUCB
from dpbandit.base import Streams
from dpbandit.experiments import arms, limits
from dpbandit.experiments.arms import tails
from dpbandit.experiments.figure import Figure, Pane, computed, draw, place_of, value_of
from dpbandit.experiments.figure_5_1 import __main__ as figure_5_1
from dpbandit.experiments.gradual import __main__ as gradual
from dpbandit.experiments.pricing import __main__ as pricing
from dpbandit.experiments.pricing.__main__ import (
    MARKETS,
    best_public,
    called,
    draw_regret,
    lead_from,
    lost,
    money,
    table,
)
from dpbandit.experiments.pricing.shop import SHAPES, Shapes
from dpbandit.experiments.returning_prices import __main__ as returning_prices, by_visit
from dpbandit.experiments.study import StudyFile, measured, read
from dpbandit.studies import Configuration, Study, setup_of
from tests.drawings import points, unsaved
from tests.each import by_rota, each, in_turn, refused
from tests.experiments.runs import figures_of, made_up, quick, run_command


@pytest.fixture
def played(tmp_path, monkeypatch):
    """(study, sizes) -> what its command prints, and its summary, in which certificates keep their
    claims."""
    monkeypatch.setenv("COLUMNS", "200")

    def play(study, sizes, *figures):
        said = quick(study, sizes, tmp_path)
        assert figures_of(tmp_path) == set(figures)
        if study is gradual:
            return said, pd.read_csv(tmp_path / "gradual.csv")
        found = pd.read_csv(tmp_path / "summary.csv")
        assert set(found["replicas"]) == {2}
        private = found[found["claimed_epsilon"] > 0]
        assert (private["certified_epsilon"] <= private["claimed_epsilon"] * (1 + 1e-9)).all()
        return said, found

    return play


@in_turn(0)
def test_arms(played, tmp_path, monkeypatch):
    """Every instance is there, and nothing is played again. Golden: of `two` the divergence is
    .2 ln(3/2) + .2 ln(3/2) = .081; at a small epsilon an arm costs 1 / (6 epsilon)."""
    sizes = {"horizons": [20, 30], "epsilons": [1.0]}
    said, found = played(read("arms"), sizes, "epsilon", "rounds")
    assert set(found["panel"]) == {"two", "ten", "steps", "close"}
    monkeypatch.setattr("dpbandit.studies.configurations.play_any", None)  # would not be callable
    monkeypatch.setattr("dpbandit.experiments.study.draw", lambda path, **_: path.touch())
    assert set(quick(read("arms"), sizes, tmp_path).splitlines()) <= set(said.splitlines())
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "summary.csv"), found)
    kl = 0.4 * log(0.4 / 0.6) + 0.6 * log(0.6 / 0.4)
    assert arms.lower_bound((0.6, 0.4), 9.0) == pytest.approx(0.2 / kl)
    assert arms.lower_bound((0.7, 0.5, 0.5), 0.001) == pytest.approx(2 / 0.006)


def test_tails_of_arms(tmp_path, monkeypatch):
    """Rare runs are counted on more replicas and for two agents, and nothing is played again."""
    frames = tails.run(tails.QUICK_SIZES, tmp_path).frames
    means, rare = frames["means"], frames["tails"]
    assert [*means["epsilon"].round(6)] == [*3 * [1.0], *3 * [0.1]]
    assert [*means["agent"]] == 2 * ["race-imed", "dp-imed", "dp-klucb"]
    assert [*rare["agent"]] == ["race-imed", "dp-imed"]
    assert [*rare["replicas"]] == 2 * [50]
    monkeypatch.setattr("dpbandit.studies.configurations.play_any", None)  # would not be callable
    pd.testing.assert_frame_equal(tails.run(tails.QUICK_SIZES, tmp_path).frames["tails"], rare)


@in_turn(1)
def test_trust(played):
    """Every world has every agent."""
    sizes = {"users": 20, "epsilons": [1.0], "visits": [4]}
    said, _ = played(read("trust"), sizes, "trust", "returning")
    assert said.count("│ shuffler: flipped bits") == 3
    assert said.count("│ first visits, and memory") == 1


@in_turn(2)
def test_lists(played):
    """Every size has every agent, short lists first. Golden: 20 and 40 of the 200 that uniform
    lists lose are 10 and 20 per cent."""
    said, found = played(read("lists"), {"users": 10, "epsilons": [1.0]}, "epsilon", "sizes")
    assert said.count("│ private-cascade") == 9 + 2
    sizes = found[found["question"] == "epsilon"].groupby("panel", sort=False)["agent"].count()
    assert list(sizes.index) == [
        f"{m} of {n} items" for m in (1, 5, 15) for n in (40, 200, "1,000")
    ]
    assert (sizes == 6).all()
    fade, uniform = made_up("fade", 20, 40), made_up("Uniform", 100, 300)
    assert value_of("% of uniform", fade, {"Uniform": [uniform]}).tolist() == [10, 20]
    assert value_of("excess per 1,000", fade, {"x": [fade, uniform]}).tolist() == [-160, -520]


def test_a_table_of_a_study_says_what_is_asked():
    """Golden, by hand: panels for each value, places along an axis with what is computed there,
    a baseline once, an agent told data on its own problem, names that do not exist refused."""
    table = {"name": "n", "summary": "s", "data_agents": ["ftal"], "quick": {}}
    table["sizes"] = {"replicas": 2, "seed": 3, "horizons": [4, 8], "dims": [1, 2]}
    table["problems"] = {"ball {d}": "ConvexBandit:dim={d}"}
    table["data"] = {"ball {d}": "OnlineConvex:dim={d}"}
    table["agents"] = {
        "a": {"private": "pftal:epsilon={e}", "ftal": "ftal"},
        "b": {"still": "centre"},
    }
    figure = {"file": "f", "problem": "ball {d}", "each": {"d": "dims"}, "over": {"T": "horizons"}}
    figure |= {"let": {"e": "T / d"}, "x": "T", "lines": ["a", {"agents": ["b"], "last": True}]}
    study = StudyFile.model_validate({**table, "figure": [figure]})
    panels = study.configurations({"horizons": [4, 6]})["f"]
    assert list(panels) == ["ball 1", "ball 2"]
    lines = panels["ball 2"]
    assert [(one.config.epsilon, one.setup.horizon) for one in lines["private"]] == [(2, 4), (3, 6)]
    assert [one.setup.environment for one in lines["ftal"]] == ["dpbandit/OnlineConvex-v0"] * 2
    (still,) = lines["still"]
    assert (still.setup.environment, still.setup.horizon) == ("dpbandit/ConvexBandit-v0", 6)
    assert (still.setup.seed, still.setup.env_kwargs["dim"]) == (3, 2)
    alike = {**figure, "over": {"e": "[1.0, 2.0]"}, "let": {"T": 5}}
    study = StudyFile.model_validate({**table, "figure": [alike]})
    assert [len(line) for line in study.configurations({})["f"]["ball 1"].values()] == [2, 1, 1]
    with pytest.raises(ValueError, match="extra_forbidden"):
        StudyFile.model_validate({**table, "figure": [{**figure, "xlable": ""}]})
    assert place_of(made_up("x", 1, claimed=0.5), "ln T") == log(500)
    assert computed("max(sqrt(d), 1) if e else 2", {"d": 9, "e": True}) == 3


def test_inner_panels_keep_their_numbers(tmp_path):
    """Panels at the edge name the axes; vertical axes have their own numbers, as scales differ."""
    figure = Figure(question="q", outer=True, legend=1)
    uniform, private = made_up("Uniform", 60, 80, claimed=0.0), made_up("dp", 15, 30, claimed=1.0)
    lines = {"Uniform": [uniform], "dp": [private]}
    panes = [Pane(name, name, figure, {}, {}) for name in "ab"]
    with unsaved() as drawn:
        draw(tmp_path / "f.png", figure, panes, dict.fromkeys("ab", lines), {})
    ((left, right),) = drawn
    assert (left.get_ylabel(), right.get_ylabel()) == ("regret", "")
    assert right.yaxis.get_tick_params()["labelleft"]
    assert [one.get_label() for one in right.containers] == ["dp"]


@in_turn(2)
def test_returning_prices(played):
    """Own history with a survey, be it wrong, or a guess spends nothing. By hand: ten people, 3 a
    round up to the fifth visit, 1 a round from then on."""
    _, found = played(returning_prices, {"people": 2}, "visits")
    worlds = {(0, 1), (1, 1), (-1, 1), (0, 0.5)}
    assert set(zip(found["shift"], found["spread"], strict=True)) == worlds
    own = found[found["agent"].isin(["own history, public survey", "own history alone"])]
    assert (own["certified_epsilon"] == 0).all()
    assert len(own) == 5
    marks = np.arange(5, 401, 5)
    regret = np.where(marks <= 50, 3.0 * marks, 100.0 + marks)[:, None]
    run = SimpleNamespace(setup=SimpleNamespace(horizon=400), marks=marks, regret=regret)
    assert by_visit(run)[:, 0] == pytest.approx([3, 3, 3, 3, 1, 1, 1, 1])


@in_turn(1)
def test_gradual(played):
    """All sums of a panel have the same epsilon for those who watch so long, and a window is left
    out where it has ended. Catches a claim that is solved for at another age, or by another law."""
    sizes = {"horizon": 70, "ages": [1], "epsilons": [1.0]}
    said, found = played(gradual, sizes, "gradual")
    assert said.count("│ gradual sum") == 4
    assert said.count("│ window of 64 rounds") == 1
    private = found.query("agent != 'no privacy'")
    assert private["then"].to_numpy() == pytest.approx(private["epsilon"].to_numpy(), rel=1e-6)
    assert (private["then"] <= private["ever"] * (1 + 1e-9)).all()
    assert (
        private.query("watched == 'watched to the end'")["agent"] != "window of 64 rounds"
    ).all()


@in_turn(2)
def test_limits(played, tmp_path):
    """Every ratio is that of its columns, the bound falls in epsilon and is below what is
    measured; a panel has one problem, at a seed from 1000 on, the quick sizes too."""
    sizes = {"horizon": 30, "noises": [0.5], "epsilons": [1.0, 10.0]}
    played(limits, sizes, "limits", "shapes")
    found = pd.read_csv(tmp_path / "limits.csv")
    assert found["epsilon"].tolist() == pytest.approx([1, 10])
    np.testing.assert_allclose(found["FADE"] / found["bound"], found["FADE / bound"])
    assert found["bound"][1] < found["bound"][0]
    assert (found["bound"] < found["FADE"]).all()
    for sizes in ({}, limits.STUDY.quick):
        for lines in limits.STUDY.configurations(sizes)["limits"].values():
            assert len({str(one.setup) for line in lines.values() for one in line}) == 1
    assert limits.STUDY.sizes["seed"] >= 1000


@each(
    ("sizes", "few", "sentence"),
    [
        (figure_5_1.study, {"replicas": 1}, "replicas=1 to be a whole number >= 2"),
        (figure_5_1.study, {"horizon": 99}, "horizon=99 "),
    ],
)
def test_plans_leave_room(sizes, few, sentence):
    """Plans have enough sizes for slopes and enough replicas for standard errors."""
    refused(sentence, sizes, **few)


@pytest.mark.parametrize(
    "name",
    by_rota(["arms", "convex", "experts", "limits", "lists", "trust", "window"], 3, slow=False),
)
def test_tables_leave_room_for_slopes_and_standard_errors(name):
    """Two replicas at least, and where there are exponents three places, of which the larger half
    has two; every figure has a question that is asked, and no picture is drawn twice."""
    study = read(name)
    for sizes in ({}, study.quick):
        known, asked = {**study.sizes, **sizes}, study.configurations(sizes)
        for question, figure in study.questions.items():
            assert known[figure.replicas] >= 2
            if figure.exponent:
                assert min(max(map(len, one.values())) for one in asked[question].values()) >= 3
    assert {figure.question for figure in study.figures} == {*study.questions}
    files = [figure.file for figure in study.figures if figure.file]
    assert len(files) == len(set(files))


RESULTS = Results(
    (
        made_up("BestFixed", 1, 1), made_up("Uniform", 60, 80, claimed=0.0),
        made_up("dp", 15, 30, claimed=1.0, certified=0.25), made_up("dp", 10, 20),
        made_up("ucb", 20, 20),
    ),
)  # fmt: skip


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
    monkeypatch.setitem(MARKETS, "made up", ("made up", 1))
    monkeypatch.setattr(pricing, "at_best", lambda setup, replicas: 0.45)
    monkeypatch.setitem(pricing._ROLES, "certified", ("dp", "dp"))
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
    with pytest.warns(UserWarning, match="Damaged files were renamed and run again: .*corrupt"):
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


@in_turn(2)
@pytest.mark.filterwarnings("ignore:Prices were not randomised")  # the shop says so of its log
def test_pricing(tmp_path):
    """The docs hold: agents play where they fit, figures are drawn, `--replicas` reaches the plan,
    and standard errors need two replicas."""
    sizes = {"users": 20, "epsilons": [1.0, inf], "market_epsilons": [1.0, inf]}
    said = quick(pricing, {**sizes, "market_replicas": 2}, tmp_path)
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
        run_command(pricing.main, "--quick", "--replicas", 1).exception
    )
