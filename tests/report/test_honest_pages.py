"""What a page must not pass over: what is missing, what differs, what is below zero."""

import json
import shutil
from math import inf

import numpy as np
import pytest

from dpbandit import BadInput, Results
from dpbandit.plots import Curve, regret_curves
from dpbandit.report import write_report
from dpbandit.report.figures import Look, pictures, problems
from dpbandit.sweeps import Sweep, run_sweep

SWEEP = {
    "replicas": 2,
    "horizons": [10, 20, 40],
    "epsilons": [0.5, 1.0, inf],
    "deltas": [1e-5, 1e-3],
    "environments": [{"id": "GLMBandit"}],
    "agents": [{"id": "dp-ucb"}],
    "audit": {"runs": 400, "horizon": 3},
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep")
    run_sweep(Sweep.of(SWEEP), out, backend="threading", progress=False)
    return out


@pytest.fixture
def copy(swept, tmp_path):
    return shutil.copytree(swept, tmp_path / "copy")


def test_every_guarantee_has_a_look_of_its_own(swept, monkeypatch, tmp_path):
    """Golden: dp-ucb at two deltas and without noise are three lines, in the frontier two, each of
    one delta; labels say which."""
    (problem,) = problems(Results.load(swept))
    own = {Look.of(run) for run in problem.results.runs if run.name == "dp-ucb"}
    assert own == {
        Look("dp-ucb", True, 1e-5),
        Look("dp-ucb", True, 1e-3),
        Look("dp-ucb", False, 1e-5),
    }
    drawn = {}

    def draw(axes, where, values, name, look):
        drawn.setdefault(place, {})[look] = name, where
        axes.plot(where, [1.0] * len(where), label=name)

    monkeypatch.setattr("dpbandit.report.figures.line", draw)
    for picture in pictures(problem):
        place = picture.name.partition("-")[0]
        if place in ("frontier", "horizons"):
            picture.draw(tmp_path / "figure.svg")
    (one, two) = drawn["frontier"].values()
    assert {name.partition("δ = ")[2] for name, _ in (one, two)} == {"1e-5", "0.001"}
    for _, where in (one, two):
        assert where == pytest.approx([0.5, 1.0], rel=1e-6)
    horizons = [name for name, _ in drawn["horizons"].values()]
    assert sum("dp-ucb, not private" in name for name in horizons) == 1
    assert sum("dp-ucb, claims 1, δ = " in name for name in horizons) == 2


def test_what_is_missing_is_told(copy):
    page = write_report(copy).page.read_text()
    assert "UNFINISHED" not in page
    names = {run.key: run.name for run in Results.load(copy).runs}
    blocks = sorted((copy / "blocks").glob("*.parquet"))
    for file in blocks:
        if names[file.name.partition("-")[0]] == "Uniform":
            file.unlink()
    next((copy / "audits").glob("*.json")).unlink()
    page = write_report(copy).page.read_text()
    assert "UNFINISHED" in page
    assert f"{2 * (len(names) - 3)} of {2 * len(names)} replicas are there" in page
    assert "there is no run of Uniform yet" in page
    with pytest.raises(BadInput, match=r"baseline='dpucb'.*mean dp-ucb"):
        write_report(copy, baseline="dpucb")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"name": 1}', "\xff"])
def test_damaged_files_are_named(copy, text):
    audit = next((copy / "audits").glob("*.json"))
    for file in (audit, copy / "sweep.json"):
        file.write_text(text, encoding="latin-1")
        with pytest.raises(BadInput, match=f"{file.name} as a sweep wrote it, it is damaged"):
            write_report(copy)
    with pytest.raises(BadInput, match="resume the sweep"):
        Results.load(copy)


def test_nothing_that_is_asked_for(copy):
    plan = json.loads((copy / "sweep.json").read_text())
    (copy / "sweep.json").write_text(json.dumps({**plan, "configurations": ["0" * 16]}))
    with (
        pytest.raises(BadInput, match="results that its sweep asks for, found none"),
        pytest.warns(UserWarning, match="does not ask for"),
    ):
        Results.load(copy)


@pytest.mark.parametrize(("least", "bottom"), [(-17.0, -17.0), (0.0, 0.0), (-1e-14, 0.0)])
def test_regret_below_zero_is_drawn(tmp_path, monkeypatch, least, bottom):
    """A curve that ends at -17 is inside the axes; one at 0, or at rounding below it, begins them
    at 0."""
    seen = []
    monkeypatch.setattr(
        "dpbandit.plots.save_figure", lambda figure, path: seen.append(figure.axes[0].get_ylim())
    )
    marks = np.array([1, 2, 3])
    curve = Curve("one", np.outer([0.0, 4.0, 1.0], [1, 1]) + np.array([[0], [0], [least - 1]]), 0)
    regret_curves(tmp_path / "f.png", marks, [curve], title="", unit="reward")
    ((low, high),) = seen
    assert low <= bottom <= low + 2
    assert high >= 4
    assert (low == 0) == (bottom == 0)
