"""What a page must not pass over: what is missing, what differs, what is below zero."""

import json
import shutil
import warnings
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from matplotlib.figure import Figure

from dpbandit import InputError, Results, compare
from dpbandit.privacy.certificate import certificate
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.report import write_report
from dpbandit.report.page import Look, pictures, problems
from dpbandit.results.plots import Curve, level, line, regret_curves
from dpbandit.results.runs import label
from dpbandit.studies import Sweep, run_sweep
from tests.drawings import unsaved
from tests.each import each

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
    looks = (True, 1e-5), (True, 1e-3), (False, 1e-5)
    assert own == {Look("dp-ucb", *look) for look in looks}
    drawn = {}

    def draw(axes, where, values, name, look, **how):
        drawn.setdefault(place, {})[look] = name, where
        axes.plot(where, [1.0] * len(where), label=name)

    for place in ("report.page", "results.plots"):
        monkeypatch.setattr(f"dpbandit.{place}.line", draw)
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
    """Also what is no longer asked for; and audits tell their rounds."""
    whole = write_report(copy).page.read_text()
    assert "UNFINISHED" not in whole
    audits = whole[whole.index('id="audits"') :]
    assert "<th>rounds</th>" in audits
    assert audits.count("<td>3</td>\n<td>0.5</td>") == audits.count("<td>3</td>\n<td>1</td>") == 2
    names = {run.key: run.name for run in Results.load(copy).runs}
    for file in sorted((copy / "blocks").glob("*.parquet")):
        if names[file.name.partition("-")[0]] == "Uniform":
            file.unlink()
    next((copy / "audits").glob("*.json")).unlink()
    runs = r"^Unfinished: \d+ of \d+ replicas are there; 3 of \d+ con"
    audits = "^Unfinished: 3 of 4 audits are there"
    with pytest.warns(UserWarning, match=runs), pytest.warns(UserWarning, match=audits):
        page = write_report(copy).page.read_text()
    assert "UNFINISHED" in page
    assert f"{2 * (len(names) - 3)} of {2 * len(names)} replicas are there" in page
    assert "there is no run of Uniform yet" in page
    says, told = r"baseline='dpucb'.*mean dp-ucb", "Unfinished"
    with pytest.raises(InputError, match=says), pytest.warns(UserWarning, match=told):
        write_report(copy, baseline="dpucb")
    plan = json.loads((copy / "sweep.json").read_text())
    (copy / "sweep.json").write_text(json.dumps({**plan, "configurations": ["0" * 16]}))
    says, told = "results that its sweep asks for, found none", "does not ask for"
    with pytest.raises(InputError, match=says), pytest.warns(UserWarning, match=told):
        Results.load(copy)


def test_damaged_files_are_named(copy):
    for file in (next((copy / "audits").glob("*.json")), copy / "sweep.json"):
        whole = file.read_text()
        for text in ("", "{", "[]", "{}", '{"name": 1}', "\xff"):
            file.write_text(text, encoding="latin-1")
            with pytest.raises(InputError, match=f"{file.name} as a sweep wrote it, it is damaged"):
                write_report(copy)
        if file.stem != "sweep":
            file.write_text(whole)
    with pytest.raises(InputError, match="resume the sweep"):
        Results.load(copy)


@each(("least", "bottom"), [(-17.0, -17.0), (0.0, 0.0), (-1e-14, 0.0)])
def test_regret_below_zero_is_drawn(tmp_path, least, bottom):
    """A curve that ends at -17 is inside the axes; below one at 0, or at rounding below it, there
    is just room for the line."""
    curve = Curve("one", np.outer([0.0, 4.0, 1.0], [1, 1]) + np.array([[0], [0], [least - 1]]), 0)
    with unsaved() as drawn:
        regret_curves(tmp_path / "f.png", np.array([1, 2, 3]), [curve], title="", unit="reward")
    ((axes, *_),) = drawn
    low, high = axes.get_ylim()
    assert low <= bottom <= low + 2
    assert high >= 4
    assert low == pytest.approx(min(-0.015 * high, 1.05 * bottom), rel=0.06)


def test_lines_differ():
    """Twenty agents by colour, dashes and marker; eighteen levels by grey and dashes."""
    axes = Figure().add_subplot()
    for look in range(20):
        line(axes, [1.0], [np.ones(1)], "one", look)
    agents = {(str(one.get_color()), one.get_marker()) for one in axes.get_lines()}
    assert len(agents) == 20
    assert len({str(level(place)) for place in range(18)}) == 18


def test_extremes_are_drawn_without_warnings(swept, monkeypatch, tmp_path):
    """An epsilon of 1e300 is a level, and a regret of rounding errors has no exponent."""
    far = {0.5: 1e-300, 1.0: 1e300}

    def extreme(run):
        """With another certified epsilon, and that regret."""
        proof = run.certificate
        if proof.claimed_delta != 1e-3 or proof.claimed_epsilon not in far:
            return run
        regret = np.full_like(run.regret, 1e-14 * run.setup.horizon)
        proof = replace(proof, epsilon=far[proof.claimed_epsilon])
        return replace(run, regret=regret, certificate=proof)

    labels = {}

    def keep(figure, path):
        figure.draw_without_rendering()
        (axes,) = figure.axes
        labels[path.stem.strip(".").partition("-")[0]] = axes.get_legend_handles_labels()[1]

    monkeypatch.setattr("dpbandit.results.plots.save_figure", keep)
    (problem,) = problems(Results(tuple(map(extreme, Results.load(swept).runs))))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for picture in pictures(problem):
            if picture.name.startswith(("frontier", "horizons")):
                picture.draw(tmp_path / f"{picture.name}.png")
    assert any("1e+300" in name for name in labels["frontier"])
    assert not any("dp-ucb, δ" in name for name in labels["frontier"])
    assert "dp-ucb, claims 1, δ = 0.001: not drawn, a mean is ≤ 0" in labels["horizons"]


def test_only_who_never_looks_is_said_to_use_no_data():
    """At delta = 0.999 noise that hides little is certified at epsilon 0, and yet data is used."""
    uniform = compare("GLMBandit", {}, horizon=2, replicas=1, progress=False).runs[0]
    assert label(uniform) == "Uniform (no data used)"
    told = {"memory": "personal-pricing:population=survey"}
    memory = compare("ReturningPricing", told, horizon=2, replicas=1, progress=False).runs[0]
    assert label(memory) == "memory (own data alone)"
    proof = certificate(Ledger((GaussianSpend(0.1, "a sum"),)), claim=(1.0, 0.999))
    assert proof.epsilon == 0
    assert label(replace(uniform, certificate=proof)).startswith(r"Uniform ($\epsilon$ = 0, ")
