"""Beside every epsilon stands its notion of privacy, beside every regret what was clipped."""

import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from dpbandit import Results, compare
from dpbandit.agents import DPUCB, PFTAL, SparseVectorExperts
from dpbandit.commands.options import print_results
from dpbandit.report import write_report
from dpbandit.results.plots import Front, frontier
from dpbandit.specs.bounds import CLIPPED

JOINT = "joint DP under continual observation, "
ALL = "DP of all actions under continual observation, "
NOTIONS = {
    "GLMBandit": (DPUCB(), "dp-ucb", JOINT),
    "OnlineConvex": (PFTAL(), "pftal", ALL),
    "Experts": (SparseVectorExperts(), "sparse-vector-experts", ALL),
}


@pytest.fixture
def page_of(monkeypatch, tmp_path):
    """The page of results, without its figures."""
    monkeypatch.setattr("dpbandit.report.page.pictures", lambda problem: ())

    def page(results):
        return write_report(results.save(tmp_path)).page.read_text()

    return page


@pytest.mark.parametrize("env", NOTIONS)
def test_it_is_said_wherever_there_is_an_epsilon(env, page_of, run, tmp_path, capsys):
    """`certify`, `compare`, summary, files, frontiers, the page of a report; nobody says the other
    one."""
    config, name, words = NOTIONS[env]
    other = JOINT if words == ALL else ALL
    code, certified, _ = run("certify", name, "--env", env, "--horizon", "30", columns=300)
    assert code == 0
    results = compare(env, {"mine": config}, horizon=30, replicas=2, progress=False)
    print_results(results)
    table = capsys.readouterr().out
    summary = results.summary().set_index("agent")
    assert words in summary.loc["mine", "notion"]
    page = page_of(results)
    document = json.loads((tmp_path / "results.json").read_text())
    assert words in document["certificates"]["mine"]["notion"]
    loaded = Results.load(tmp_path).where(agent="mine").runs[0].certificate
    assert words in str(loaded.notion)
    axes = Figure().add_subplot()
    frontier(axes, [Front("mine", results.where(agent="mine").runs, look=0)])
    assert words.partition(",")[0] in axes.get_xlabel()
    for text in (certified, table, page):
        assert words in text
        assert other not in text


@pytest.mark.parametrize("share", [0.0, 0.25, np.nan])
def test_clips_are_said_below_every_table(share, page_of, tmp_path, capsys, monkeypatch):
    """In the summary always; where there are any, in a column of the table that is printed and of
    the report, with what they are: no part of a certificate."""
    monkeypatch.setenv("COLUMNS", "300")
    results = compare("GLMBandit", {}, horizon=20, replicas=2, progress=False)
    results = Results(tuple(replace(run, clipped=np.full(2, share)) for run in results.runs))
    np.testing.assert_array_equal(results.summary()["clipped"], [share] * 2)
    page = page_of(results)
    np.testing.assert_array_equal(Results.load(tmp_path).summary()["clipped"], [share] * 2)
    print_results(results)
    out = capsys.readouterr().out
    for text, said in ((out, " 0.25 "), (page, "<td>0.25</td>")):
        assert (CLIPPED in text) == (text.count(said) == 2) == (share == 0.25)
    assert "clipped" not in str(results.runs[0].certificate)
