"""The page: everything in one file, nothing from outside, every number that was measured."""

import re
import shutil
from html.parser import HTMLParser
from math import inf

import pytest
from matplotlib.figure import Figure

from dpbandit import Results, compare
from dpbandit.agents import WDPCOCOP
from dpbandit.report import write_report
from dpbandit.report.page import headline, pictures, problems
from dpbandit.studies import Sweep, run_sweep
from tests.conftest import SAVE

SWEEP = {
    "name": "juice & <co>",
    "replicas": 3,
    "horizons": [10, 20, 40],
    "epsilons": [0.5, 1.0],
    "environments": [{"id": "OJPricing"}],
    "agents": [{"id": "shariff-sheffet-ucb", "grid": {"calibration": ["paper", "certified"]}}],
    "audit": {"runs": 400, "horizon": 3},
}


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
    for run in Results.load(swept).runs:
        assert run.name in page.texts
        assert f"{run.regret[-1].mean():.4g}" in page.texts
    configs = "".join(page.texts)
    assert "calibration=paper" in configs
    assert names.count("table") == 1 + 1 + 4
    assert [file.name for file in report.tables] == [
        f"{name}{ending}" for name in ("headline", "differences") for ending in (".csv", ".tex")
    ]


def test_the_headline_is_of_the_largest_horizon_beside_the_best_baseline(swept):
    """By hand: paired on the same users, against the better of the two baselines."""
    (problem,) = problems(Results.load(swept))
    table, final = headline(problem), {}
    for run in problem.longest.runs:
        final[run.name, run.certificate.claimed_epsilon] = run.regret[-1]
    best = min(("Uniform", 0.0), ("BestFixed", inf), key=lambda run: final[run].mean())
    assert set(table["baseline"]) == {best[0]}
    assert set(table["horizon"]) == {40}
    assert table["regret"].is_monotonic_increasing
    assert len(table) == len(final)
    for row in table.itertuples():
        regret = final[row.agent, row.claimed_epsilon]
        assert row.regret == pytest.approx(regret.mean())
        assert row.agent == best[0] or row.difference == pytest.approx(
            (regret - final[best]).mean()
        )


def test_problems_come_in_the_order_of_the_file_and_agents_keep_their_colours(tmp_path):
    sweep = {**SWEEP, "horizons": [8], "epsilons": [1.0]}
    del sweep["audit"]
    sweep["environments"] = [{"id": "OJPricing"}, {"id": "GLMBandit"}]
    sweep["agents"] = [{"id": "dp-ucb"}, {"id": "fade"}]
    run_sweep(Sweep.of(sweep), tmp_path, backend="threading", progress=False)
    text = write_report(tmp_path).page.read_text()
    assert text.index('id="problem-1">OJPricing') < text.index('id="problem-2">GLMBandit')
    one, two = problems(Results.load(tmp_path))
    assert one.looks == two.looks


def test_a_comparison_has_a_report_too(tmp_path):
    """One replica, no audits, nothing private; and privacy that expires is told as such."""
    compare("GLMBandit", {}, horizon=20, replicas=1, progress=False).save(tmp_path / "one")
    assert "Audits" not in write_report(tmp_path / "one").page.read_text()
    agents = {"window": WDPCOCOP(window=5)}
    kwargs = {"horizon": 30, "replicas": 2, "progress": False}
    compare("OnlineConvex", agents, **kwargs).save(tmp_path / "two")
    text = write_report(tmp_path / "two", out=tmp_path / "elsewhere").page.read_text()
    assert "the last 5 rounds only" in text
    assert (tmp_path / "elsewhere" / "index.html").exists()


def test_an_unfinished_sweep_has_a_report(swept, tmp_path):
    """The longest horizon of one agent, and the baseline of another, are still to come."""
    half = shutil.copytree(swept, tmp_path / "half", ignore=shutil.ignore_patterns("report"))
    runs = {run.key: run for run in Results.load(swept).runs}
    for file in (half / "blocks").iterdir():
        run = runs[file.name.partition("-")[0]]
        if (run.name, run.setup.horizon) in {("BestFixed", 40), ("Uniform", 20)}:
            file.unlink()
    with pytest.warns(UserWarning, match="Unfinished"):
        text = write_report(half).page.read_text()
    assert "not tested" in text


def test_figures_of_the_same_numbers_are_the_same_files(swept, tmp_path):
    """Also SVG, which Matplotlib salts and dates unless told otherwise."""
    (problem,) = problems(Results.load(swept))
    frontier = next(p for p in pictures(problem) if p.name.startswith("frontier"))
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
