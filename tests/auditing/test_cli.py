"""`dpbandit audit`: what it prints and writes, and one sentence for every mistake."""

import json
import sys

import pytest

from dpbandit import cli
from dpbandit.agents import AGENTS


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command line in-process: exit code, stdout, stderr."""

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["dpbandit", *map(str, words)])
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr("dpbandit.base.progress.PATIENCE", 1e9)  # no bar on a busy machine
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return command


def test_one_agent_with_report_and_plot(run, tmp_path):
    files = ("--out", tmp_path / "report.json", "--plot", tmp_path / "tradeoff.png")
    what = ("dp-ucb", "--env", "OJPricing", "--horizon", 8, "--runs", 400)
    assert "Example: dpbandit audit dp-ucb" in run("audit", "--help")[1]
    code, out, errors = run("audit", *what, *files)
    assert (code, errors) == (0, "")
    assert "not refuted" in out
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["agent"], report["runs"], report["flagged"]) == ("DPUCB", 400, False)
    assert (report["environment"], report["horizon"]) == ("OJPricing", 8)
    assert report["config"].startswith("DPUCB(epsilon=1.0, delta=1e-05, ")
    assert out.count("Written to") == 2
    assert (tmp_path / "tradeoff.png").stat().st_size > 1500


def test_all_private_agents_in_one_table(run, monkeypatch, tmp_path):
    """Gaussian noise has no pure epsilon: at delta 0 the others are audited all the same."""

    def audited(names, *words):
        few = {name: AGENTS[name] for name in names.split()}
        monkeypatch.setattr("dpbandit.agents.AGENTS", few)
        code, out, errors = run("audit", "--all", "--runs", 400, *words)
        assert (code, errors) == (0, "")
        return out

    out = audited("uniform linucb dp-hdb-choices", "--out", tmp_path / "all.json")
    assert out.count("not refuted") == out.count("over-noised") == 1
    reports = json.loads((tmp_path / "all.json").read_text())
    assert [*reports] == ["dp-hdb-choices", "dp-hdb-choices:calibration=paper"]
    assert reports["dp-hdb-choices"]["failure"] == 0.025
    out = audited("linucb dp-ucb noisy-oco", "--delta", "0")
    assert "noisy-oco " in out
    assert "Not audited at epsilon 1, delta 0: dp-ucb." in out


NOTHING = "measured    epsilon >= 0.000"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *((f"{who} --env OnlineConvex", NOTHING) for who in ("linear-ftrl", "pftal", "wdp-cocop")),
        ("sparse-vector-experts --env Experts", NOTHING),
        ("linucb", "verdict     nothing is claimed\n"),
        ("uniform", "verdict     not refuted\n"),
    ],
)
def test_what_shows_nothing_or_claims_nothing(run, words, said):
    """Data of the round before are told, of which there is none in round 1. Infinity is no more
    than half of itself, nor is 0; no epsilon is read off a missing delta."""
    horizon = 1 if said == NOTHING else 8
    code, out, errors = run("audit", *words.split(), "--horizon", horizon, "--runs", 400)
    assert (code, errors) == (0, "")
    assert said in out
    assert "as Gaussian noise" not in out or said == NOTHING


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "AGENT"), (("fade", "--all"), "AGENT"), (("--all", "--plot", "x.png"), "AGENT"),
        (("--all", "--env", "OJPricing"), "AGENT"), (("--all", "--horizon", "9"), "AGENT"),
        (("fade", "--plot", "x.gif"), ".png"),
        (("fade", "--plot", "x.png", "--until-known"), "--until-known"),
        (("fade", "--out", "."), "folder"),
        (("fade", "--out", "/proc/no/report.json"), "Cannot write"),
        (("fade", "--view", "all"), "view"), (("fade", "--runs", "3"), "runs"),
        (("fade", "--failure", "2"), "failure"), (("nobody",), "agent"),
        (("fade", "--epsilon", "0"), "epsilon"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(run, words, named):
    code, out, errors = run("audit", *words)
    assert (code, out) == (2, "")  # asked before the work
    assert errors.startswith("dpbandit: ")
    assert named in errors
    assert errors.count("\n") == 1
