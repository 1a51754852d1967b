"""The page: all in one file, every number that was measured, and what must not be passed over."""

import json
import re
import shutil
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from math import inf

import numpy as np
import pytest
from matplotlib.figure import Figure

from dpbandit import InputError, Results, compare
from dpbandit.agents import WDPCOCOP
from dpbandit.privacy import GaussianSpend, Ledger
from dpbandit.privacy.certificate import certificate
from dpbandit.report import write_report
from dpbandit.report.page import Look, headline, pictures, problems
from dpbandit.results.plots import Curve, level, line, regret_curves
from dpbandit.results.runs import label
from dpbandit.studies import Sweep, run_sweep
from tests.conftest import SAVE
from tests.drawings import unsaved
from tests.each import each, refused

SWEEP = {
    "name": "juice & <co>", "replicas": 3, "horizons": [10, 20, 40], "epsilons": [0.5, 1.0],
    "environments": [{"id": "OJPricing"}],
    "agents": [{"id": "shariff-sheffet-ucb", "grid": {"calibration": ["paper", "certified"]}}],
    "audit": {"runs": 400, "horizon": 3},
}  # fmt: skip


class Page(HTMLParser):
    """Every tag with its attributes, every id, every text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep")
    run_sweep(Sweep.of(SWEEP), out, backend="threading", progress=False)
    return out


def test_the_page_of_a_sweep(swept, monkeypatch):
    monkeypatch.setattr("dpbandit.report.page._ENDINGS", (".svg", ".png", ".pdf"))
    monkeypatch.setattr(Figure, "savefig", SAVE)
    report = write_report(swept)
    text = report.page.read_text()
    page = Page(text)
    names = [tag for tag, _ in page.tags]
    assert "script" not in names
    assert names.count("img") == len(report.figures) / 3 == 2 + 1 + 1 + 1
    assert all(file.stat().st_size > 1500 for file in report.figures)
    assert {file.suffix for file in report.figures} == {".png", ".svg", ".pdf"}
    every = [pair for _, attrs in page.tags for pair in attrs.items()]
    links = [value for key, value in every if key in ("href", "src")]
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org)", text)
    targets = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    assert {link[1:] for link in links if link.startswith("#")} <= targets
    assert all(attrs["alt"] for tag, attrs in page.tags if tag == "img")
    assert "juice & <co>" in "".join(page.texts)
    assert {"from Uniform", "from BestFixed"} <= {*page.texts}
    for run in Results.load(swept).runs:
        assert run.name in page.texts
        assert f"{run.regret[-1].mean():.4g}" in page.texts
    configs = "".join(page.texts)
    assert "calibration=paper" in configs
    assert names.count("table") == 1 + 1 + 4
    assert [file.name for file in report.tables] == [
        f"{name}{ending}" for name in ("headline", "differences") for ending in (".csv", ".tex")
    ]


@pytest.fixture
def undrawn():
    """Figures are empty files: other tests look at what is in them."""
    with unsaved():
        yield


@pytest.mark.usefixtures("undrawn")
def test_many_problems_have_a_figure_each(tmp_path, monkeypatch):
    """Beyond so many, which the page says with what draws all of one problem: drawing 31 problems
    in full took four minutes. Other files stay."""
    values = {**SWEEP, "horizons": [20, 40], "replicas": 2}
    values["environments"] = [{"id": "GLMBandit", "grid": {"dim": [2, 3]}}]
    values["agents"] = [{"id": "dp-ucb"}]
    run_sweep(Sweep.of(values), tmp_path, backend="threading", progress=False)
    whole = write_report(tmp_path)
    (tmp_path / "report" / "notes").touch()
    monkeypatch.setattr("dpbandit.report.page.MOST_IN_FULL", 1)
    brief = write_report(tmp_path)
    assert [file.stem for file in brief.figures] == ["frontier-1", "frontier-2"]
    assert len(whole.figures) > 6
    assert "report FOLDER" in brief.page.read_text()
    assert (tmp_path / "report" / "notes").exists()
    label = Results.load(tmp_path).summary()["problem"].iloc[0]
    alone = write_report(tmp_path, out=tmp_path / "alone", problem=label)
    assert len(alone.figures) == len(whole.figures) / 2
    refused("found none of", write_report, tmp_path, problem="nothing")


def test_the_headline_is_of_the_largest_horizon_beside_both_baselines(swept):
    """Differences from random play and the best fixed action, paired on the same users, by hand."""
    (problem,) = problems(Results.load(swept))
    table, final = headline(problem), {}
    for run in problem.longest.runs:
        final[run.name, run.certificate.claimed_epsilon] = run.regret[-1]
    assert set(table["horizon"]) == {40}
    assert table["regret"].is_monotonic_increasing
    assert len(table) == len(final)
    for row in table.itertuples():
        regret = final[row.agent, row.claimed_epsilon]
        assert row.regret == pytest.approx(regret.mean())
        for one in (("Uniform", 0.0), ("BestFixed", inf)):
            found, less = getattr(row, f"from_{one[0]}"), (regret - final[one]).mean()
            assert found == pytest.approx(less) or (np.isnan(found) and row.agent == one[0])


@pytest.mark.usefixtures("undrawn")
def test_problems_come_in_the_order_of_the_file_and_agents_keep_their_colours(tmp_path):
    """A comparison has a report, too: of one replica, no audits, nothing private; and privacy that
    expires is told as such."""
    sweep = {**SWEEP, "horizons": [8], "epsilons": [1.0]}
    del sweep["audit"]
    sweep["environments"] = [{"id": "OJPricing"}, {"id": "GLMBandit"}]
    sweep["agents"] = [{"id": "dp-ucb"}, {"id": "fade"}]
    run_sweep(Sweep.of(sweep), tmp_path, backend="threading", progress=False)
    text = write_report(tmp_path).page.read_text()
    assert text.index('id="problem-1">OJPricing') < text.index('id="problem-2">GLMBandit')
    one, two = problems(Results.load(tmp_path))
    assert one.looks == two.looks
    compare("GLMBandit", {}, horizon=20, replicas=1, progress=False).save(tmp_path / "one")
    assert "Audits" not in write_report(tmp_path / "one").page.read_text()
    kwargs = {"horizon": 30, "replicas": 2, "progress": False}
    compare("OnlineConvex", {"window": WDPCOCOP(window=5)}, **kwargs).save(tmp_path / "two")
    text = write_report(tmp_path / "two", out=tmp_path / "elsewhere").page.read_text()
    assert "the last 5 rounds only" in text
    assert (tmp_path / "elsewhere" / "index.html").exists()


def test_an_unfinished_sweep_has_a_report(swept, tmp_path):
    """The longest horizon of one agent, and the baseline of another, are still to come. Figures of
    the same numbers are the same files, also SVG, which Matplotlib salts unless told otherwise."""
    half = shutil.copytree(swept, tmp_path / "half", ignore=shutil.ignore_patterns("report"))
    whole = Results.load(swept)
    runs = {run.key: run for run in whole.runs}
    for file in (half / "blocks").iterdir():
        run = runs[file.name.partition("-")[0]]
        if (run.name, run.setup.horizon) in {("BestFixed", 40), ("Uniform", 20)}:
            file.unlink()
    with pytest.warns(UserWarning, match="Unfinished"):
        text = write_report(half).page.read_text()
    assert "not tested" in text
    frontier = next(p for p in pictures(*problems(whole)) if p.name.startswith("frontier"))
    for ending in (".svg", ".png"):
        one, two = (frontier.save(tmp_path / name, ending).read_bytes() for name in "ab")
        assert one == two


def test_one_sentence_for_a_mistake(swept, run):
    for words, sentence in (
        (["nowhere"], "found none"),
        ([swept, "--baseline", "Unifrom"], "did you mean Uniform"),
        ([swept, "--baseline", "x"], "baseline='x'"),
    ):
        code, _, errors = run("report", *words)
        assert code == 2
        assert sentence in errors


TARGETS = {
    "replicas": 2, "horizons": [10, 20, 40], "epsilons": [0.5, 1.0, inf], "deltas": [1e-5, 1e-3],
    "environments": [{"id": "GLMBandit"}], "agents": [{"id": "dp-ucb"}],
    "audit": {"runs": 400, "horizon": 3},
}  # fmt: skip


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep")
    run_sweep(Sweep.of(TARGETS), out, backend="threading", progress=False)
    return out


@pytest.fixture
def copy(several, tmp_path):
    return shutil.copytree(several, tmp_path / "copy")


def test_every_guarantee_has_a_look_of_its_own(several, monkeypatch, tmp_path):
    """Golden: dp-ucb at two deltas and without noise are three lines, in the frontier two, each of
    one delta; labels say which."""
    (problem,) = problems(Results.load(several))
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


@pytest.mark.usefixtures("undrawn")
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
            refused(f"{file.name} as a sweep wrote it, it is damaged", write_report, copy)
        if file.stem != "sweep":
            file.write_text(whole)
    refused("resume the sweep", Results.load, copy)


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


def test_extremes_are_drawn_without_warnings(several, monkeypatch, tmp_path):
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
    (problem,) = problems(Results(tuple(map(extreme, Results.load(several).runs))))
    with warnings.catch_warnings(action="error"):
        for picture in pictures(problem):
            if picture.name.startswith(("frontier", "horizons")):
                picture.draw(tmp_path / f"{picture.name}.png")
    assert any("1e300" in name for name in labels["frontier"])
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
