"""The command line in a terminal: TAB, Ctrl-C, exit codes, output that breaks, odd names."""

import os
import resource
import signal
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from dpbandit import ENVIRONMENTS, Results, audit, cli, compare
from dpbandit.agents import AGENTS, DPUCB, LinUCB
from dpbandit.commands.options import audit_table, print_results, say, screen
from dpbandit.envs import GLMBandit
from tests.each import asserting, each, in_turn
from tests.envs.contextual.logs import shop
from tests.studies.conftest import SWEEP

NAMES = ["[/]", "[bold]x[/bold]", ":smile:", "[", "a\\", "[link=x]", "=1+1"]


@pytest.fixture
def tab(monkeypatch, capsys):
    """What bash is offered after these words, the last of which is being typed."""

    def offered(*words):
        monkeypatch.setenv("_DPBANDIT_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "\n".join(["dpbandit", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit) as stop:
            cli.app(prog_name="dpbandit")
        assert stop.value.code == 0
        return capsys.readouterr().out.split()

    return offered


@each("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(shell, monkeypatch, capsys):
    """`--show-completion` of any shell names the variable that the program answers to."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    with pytest.raises(SystemExit) as stop:
        cli.app(["--show-completion", shell], prog_name="dpbandit")
    assert stop.value.code == 0
    assert f"_DPBANDIT_COMPLETE=complete_{shell}" in capsys.readouterr().out


def test_words_are_completed(tab):
    """Environments by their ids; one may be begun by its short name, as it may be given."""
    assert tab("comp") == ["compare"]
    assert tab("lab", "o") == ["open"]
    for words in ("compare", "certify dp-ucb --env", "audit dp-ucb --env"):
        assert sorted(tab(*words.split(), "")) == sorted(ENVIRONMENTS)
        assert tab(*words.split(), "dpbandit/OJP") == ["dpbandit/OJPricing-v0"]
        assert tab(*words.split(), "OJ") == ["OJPricing", "OJContinuousPricing"]
    for words in ("compare OJPricing --agents", "certify", "audit", "reproduce --agent"):
        assert tab(*words.split(), "") == list(AGENTS)
        assert tab(*words.split(), "linu") == ["linucb"]
    assert tab("compare", "OJPricing", "--agents", "linucb,dp-u") == ["linucb,dp-ucb"]


def test_control_c_ends_a_comparison_with_one_line(run, monkeypatch):
    """SIGINT in the middle of the rounds: exit code 130 as of any program, and no traceback."""
    for words, code in (["--version"], 0), (["compare", "NoSuch"], 2), (["no-such-command"], 2):
        ended, _, errors = run(*words)
        assert (ended, "interrupted" in errors) == (code, False)
    monkeypatch.setattr(
        "dpbandit.base.progress.Progress.advance", lambda *_: signal.raise_signal(signal.SIGINT)
    )
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ended = run("compare", "GLMBandit", "--horizon", "20")
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended == (130, "", "dpbandit: interrupted.\n")


WRITERS = {
    "certify fade --json a.json --plot a.png": ["a.json", "a.png"],
    "compare GLMBandit greedy --horizon 9 --replicas 2 --out d --json b.json": [
        "b.json", "d/frame.parquet", "d/regret.png", "d/results.json", "d/summary.csv",
    ],
    "audit dp-ucb --runs 400 --horizon 4 --out c.json --plot c.png": ["c.json", "c.png"],
    "evaluate log.csv --policy always=x --action a --reward r --out e.csv": ["e.csv"],
    "evaluate log.csv --policy always=x --action a --reward r --unrecorded --out f.csv": ["f.csv"],
    "fit shop.csv --price-range 1:3 --unit-cost 0.5 --feature age=18:90 --out g.toml --plot g.png "
    "--sweep h.toml": ["g.png", "g.toml", "h.toml"],
    "reproduce contextual/p1 --agent uniform --horizon 20 --replicas 2 --json i.json": ["i.json"],
    "reproduce window/table-1 --rows 7,T=64 --reading public --replicas 2 --json j.json": [
        "j.json",
    ],
    "sweep sweep.toml --out s --backend threading --resume": ["s/sweep.json"],
    "report s --out t": ["t/headline.csv", "t/index.html"],
    "report --help": [],
}  # fmt: skip
"""Commands and files that they write."""


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with a log, offers and a sweep."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"a": ["x", "y"] * 40, "r": [0, 1, 1, 0] * 20}).to_csv("log.csv", index=False)
    shop(n=300).to_csv("shop.csv", index=False)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    return tmp_path


def unread():
    """A pipe whose reader, such as `head`, is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return open(writer, "w")


@in_turn(1)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_output_that_breaks_loses_no_file(desk, run):
    """A full disk below standard output, or a reader that had enough, and an interruption at the
    first word: whatever a command writes is there, and one sentence names it. Catches a command
    that prints before it writes."""
    for number, (line, files) in enumerate(WRITERS.items()):
        broken = ("pipe", 141) if number % 2 else ("disk", 2)
        for way, code in (broken, ("interrupted", 130)):
            with asserting(f"{line}: {way}"), pytest.MonkeyPatch.context() as patch:
                with unread() if way == "pipe" else open("/dev/full", "w") as out:
                    if way == "interrupted":
                        patch.setattr(Console, "print", interrupt)
                    else:
                        patch.setattr(sys, "stdout", out)
                    ended, _, errors = run(*line.split())
                assert ended == code, errors
                assert "Traceback" not in errors
                assert ("Cannot print: No space left on device" in errors) == (way == "disk")
                if way == "pipe" and "Written" in errors:
                    assert "The output was not read to its end. Written to " in errors
                for file in files:
                    assert (desk / file).stat().st_size
                    if file != "s/sweep.json":  # which the report needs
                        (desk / file).unlink()


def interrupt(*given, **how):
    """Ctrl-C."""
    raise KeyboardInterrupt


@contextmanager
def full_disk():
    """No file can be longer than 200 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_loses_neither_old_results_nor_the_numbers(desk, run, monkeypatch):
    """The old folder stays whole, the table is printed, and one sentence says what is not written,
    or where it is instead."""
    words = ["compare", "GLMBandit", "greedy", "--horizon", 9, "--replicas", 2, "--out", "d"]
    assert run(*words)[0] == 0
    before = {file.name: file.read_bytes() for file in (desk / "d").iterdir()}
    for instead in (False, True):
        save = Results.save

        def saved(results, folder, instead=instead, save=save):
            with full_disk() if not instead or Path(folder).name == "d" else nullcontext():
                return save(results, folder)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Results, "save", saved)
            patch.setattr("dpbandit.commands.agents.mkdtemp", lambda prefix: str(desk / "else"))
            code, said, errors = run(*words, "--overwrite")
        assert (code, "greedy" in said) == (2, True)
        assert "Cannot write d/frame.parquet: " in errors
        assert ("Written to else instead" in errors.replace(f"{desk}/", "")) == instead
        assert {file.name: file.read_bytes() for file in (desk / "d").iterdir()} == before
    assert len(Results.load("else")) == 3


def test_names_are_printed_as_they_are(capsys, monkeypatch, tmp_path):
    """In tables of results and of audits; formulas are no formulas in a summary. At 80 columns the
    longest name of the README's command folds, and no number loses its end."""
    monkeypatch.setenv("COLUMNS", "200")
    agents = {name: LinUCB(alpha=1 + place) for place, name in enumerate(NAMES)}
    results = compare("GLMBandit", agents, horizon=5, replicas=1, progress=False)
    print_results(results)
    printed = capsys.readouterr().out
    assert all(printed.count(f" {name} ") == 2 for name in NAMES)
    results.save(tmp_path)
    assert "'=1+1" in pd.read_csv(tmp_path / "summary.csv")["agent"].to_list()
    report = audit(DPUCB(), GLMBandit(dim=2, horizon=3).spec, runs=400, progress=False)
    screen().print(audit_table(dict.fromkeys(NAMES, report)))
    say("Written to [/].")
    printed = capsys.readouterr().out
    assert all(name in printed for name in [*NAMES, "Written to [/]."])
    monkeypatch.setenv("COLUMNS", "80")
    agents = {"shariff-sheffet-ucb:calibration=paper": LinUCB()}
    print_results(compare("GLMBandit", agents, horizon=5, replicas=2, progress=False))
    assert "…" not in capsys.readouterr().out
