"""Table 5.1 on the command line: rows, lists, mistakes, cases."""

import json
import re

import pandas as pd
import pytest

from dpbandit import cli
from dpbandit.agents import DPTOFW
from dpbandit.experiments.sgd import on
from dpbandit.experiments.sgd.printed import Setting
from dpbandit.studies import play_all
from tests.each import each


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command line in-process: exit code, stdout, stderr."""

    def words_of(*words):
        monkeypatch.setattr("sys.argv", ["dpbandit", *map(str, words)])
        monkeypatch.setenv("COLUMNS", "300")
        monkeypatch.setattr("dpbandit.base.progress.PATIENCE", 1e9)
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return words_of


TABLE = ["reproduce", "sgd/table-5-1"]


def test_the_command_measures_the_rows_chosen(run, tmp_path, monkeypatch):
    """With --out cells and summary are kept and nothing is drawn; --json says the same."""
    monkeypatch.setattr("dpbandit.experiments.sgd.printed.FRANK_WOLFE_SCALES", {1.5: (0.4,)})
    words = [*TABLE, "--rows", "2", "--reading", "public", "--replicas", "2"]
    code, printed, errors = run(*words, "--out", tmp_path / "out", "--json", tmp_path / "x.json")
    assert code == 0
    assert all(" of 4 replicas: " in line for line in errors.splitlines())  # progress in a log
    records = json.loads((tmp_path / "x.json").read_text())
    assert [record["line"] for record in records] == ["online Frank-Wolfe", "least squares"]
    assert {record["certified_epsilon"] for record in records} == {"inf"}
    summary = pd.read_csv(tmp_path / "out" / "summary.csv")
    told = [record["suboptimality"] for record in records]
    assert summary["suboptimality"].tolist() == pytest.approx(told, rel=1e-14)  # pandas 2 rounds
    assert "0.0172" in printed
    assert "summary.csv" in printed
    assert not list(tmp_path.rglob("*.png"))
    again = run(*words)
    assert again[0] == 0
    assert "Written" not in again[1]


@each(
    ("words", "parts"),
    [
        ([*TABLE, "--rows", "99"], ("'99'", "1 to 47")),
        ([*TABLE, "--reading", "state"], ("did you mean stated?",)),
        ([*TABLE, "--replicas", "1"], ("replicas=1",)),
        ([*TABLE, "--theta", "normal"], ("theta='normal'", "equal, stated")),
        (["reproduce", "window/table-1", "--theta", "stated"], ("window/table-1 without theta=",)),
        ([*TABLE, "--agent", "dp-tofw"], ("without --agent", "--reading")),
        ([*TABLE, "--horizon", "10"], ("--horizon", "it is a table")),
        ([*TABLE, "--out", "/proc/nope"], ("Cannot write",)),
        (["reproduce", "contextual/p1", "--out", "x"], ("only with a table", "sgd/table-5-1")),
        (["reproduce", "sgd/table-5-2", "--agent", "dp-tofw"], ("sgd/table-5-2", "sgd/table-5-1")),
        (["reproduce", "sco/linear", "--agent", "dp-tofw", "--set", "p=0.5"], ("p=0.5",)),
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_mistakes_get_one_sentence(run, words, parts):
    code, _, errors = run(*words)
    assert code == 2
    assert errors.startswith("dpbandit: Expected") or "Cannot write" in errors
    assert errors.count("\n") == 1
    assert all(part in errors for part in parts), errors


def test_the_theta_of_section_5_3_is_another_problem(run, tmp_path):
    """Normal entries: other numbers than equal ones have, under a label of their own, and none of
    an independent program, which took equal ones. On screen nothing is escaped."""
    words = [*TABLE, "--rows", "16", "--reading", "printed", "--replicas", "2"]
    found = {}
    for theta in ("equal", "stated"):
        file = tmp_path / f"{theta}.json"
        code, printed, _ = run(*words, "--theta", theta, "--json", file)
        assert code == 0
        assert re.search(r"\) \[[+-]\d", printed)
        assert "\\" not in printed
        (found[theta],) = json.loads(file.read_text())
    assert found["equal"]["reference"] == 0.0651
    assert found["stated"]["reference"] is None
    assert found["stated"]["theta"] == "stated"
    assert found["equal"]["suboptimality"] != found["stated"]["suboptimality"]


def test_lists_show_the_table_and_how_to_choose(run):
    printed = run("reproduce", "--list")[1]
    for words in ("sgd/table-5-1", "--reading", "stated", "p=inf,T=2000", "sco/linear"):
        assert words in printed


def test_the_case_measures_suboptimality_at_delta_one_over_users(run, tmp_path):
    """Oracle: the study's own cell, the same seeds; delta is 1/T unless it is set."""
    words = ["reproduce", "sco/linear", "--agent", "dp-tofw", "--set", "d=5", "--horizon", "50"]
    code, printed, _ = run(*words, "--replicas", "3", "--json", tmp_path / "x.json")
    assert code == 0
    assert "sco/linear dp-tofw: suboptimality" in printed
    record = json.loads((tmp_path / "x.json").read_text())
    assert (record["measure"], record["config"]["delta"]) == ("suboptimality", 1 / 50)
    own = play_all(on(Setting(1.5, 5, 50), "a", DPTOFW(delta=1 / 50), seed=0), 3, progress=False)
    assert record["mean"] == own.measures["suboptimality"].mean()
    assert run(*words, "--delta", "0.25", "--replicas", "2", "--json", tmp_path / "y.json")[0] == 0
    assert json.loads((tmp_path / "y.json").read_text())["config"]["delta"] == 0.25
