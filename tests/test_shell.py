"""The command line in a terminal: TAB, Ctrl-C, exit codes, and names that look like markup."""

import signal

import pandas as pd
import pytest

from dpbandit import ENVIRONMENTS, audit, cli, compare
from dpbandit.agents import AGENTS, DPUCB, LinUCB
from dpbandit.commands.options import audit_table, print_results, say, screen
from dpbandit.envs import GLMBandit
from tests.each import each

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
