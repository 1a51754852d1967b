"""Names that look like markup or emoji are printed as they are."""

import pandas as pd
import pytest

from dpbandit import Results, audit, compare
from dpbandit.agents import DPUCB, LinUCB
from dpbandit.commands.options import audit_table, print_results, say, screen
from dpbandit.envs import GLMBandit

NAMES = ["[/]", "[bold]x[/bold]", ":smile:", "[", "a\\", "[link=x]"]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def test_in_tables_of_results(capsys):
    agents = {name: LinUCB(alpha=1 + place) for place, name in enumerate(NAMES)}
    results = compare("GLMBandit", agents, horizon=5, replicas=1, progress=False)
    print_results(results)
    printed = capsys.readouterr().out
    assert all(printed.count(f" {name} ") == 2 for name in NAMES)


def test_long_names_fold_and_numbers_stay_whole(capsys, monkeypatch):
    """At 80 columns, with the longest name of the README's command: no number loses its end."""
    monkeypatch.setenv("COLUMNS", "80")
    agents = {"shariff-sheffet-ucb:calibration=paper": LinUCB()}
    print_results(compare("GLMBandit", agents, horizon=5, replicas=2, progress=False))
    assert "…" not in capsys.readouterr().out


def test_in_tables_of_audits(capsys):
    report = audit(DPUCB(), GLMBandit(dim=2, horizon=3).spec, runs=400, progress=False)
    screen().print(audit_table(dict.fromkeys(NAMES, report)))
    say("Written to [/].")
    printed = capsys.readouterr().out
    assert all(name in printed for name in NAMES)
    assert "Written to [/]." in printed


def test_formulas_are_no_formulas_in_a_summary(tmp_path):
    agents = {"=1+1": LinUCB()}
    compare("GLMBandit", agents, horizon=5, replicas=1, progress=False).save(tmp_path)
    assert "'=1+1" in pd.read_csv(tmp_path / "summary.csv")["agent"].to_list()


def test_no_runs_have_a_frame():
    """With the columns that runs have."""
    full = compare("GLMBandit", {}, horizon=5, replicas=1, progress=False).frame()
    empty = Results(()).frame()
    assert len(empty) == 0
    assert list(empty) == list(full)
    assert len(pd.concat([empty, full])) == len(full)
