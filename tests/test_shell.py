"""The command line in a shell: TAB, Ctrl-C, and an exit code for each ending."""

import signal

import pytest

from dpbandit import ENVIRONMENTS, cli
from dpbandit.agents import AGENTS


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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(shell, monkeypatch, capsys):
    """`--show-completion` of any shell names the variable that the program answers to."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    with pytest.raises(SystemExit) as stop:
        cli.app(["--show-completion", shell], prog_name="dpbandit")
    assert stop.value.code == 0
    assert f"_DPBANDIT_COMPLETE=complete_{shell}" in capsys.readouterr().out


def test_commands(tab):
    assert tab("comp") == ["compare"]
    assert tab("lab", "o") == ["open"]


@pytest.mark.parametrize(
    "words", [["compare"], ["certify", "dp-ucb", "--env"], ["audit", "dp-ucb", "--env"]]
)
def test_environments(tab, words):
    """All by their ids; one may be begun by its short name, as it may be given."""
    assert sorted(tab(*words, "")) == sorted(ENVIRONMENTS)
    assert tab(*words, "dpbandit/OJP") == ["dpbandit/OJPricing-v0"]
    assert tab(*words, "OJ") == ["OJPricing", "OJContinuousPricing"]


@pytest.mark.parametrize(
    "words",
    [["compare", "OJPricing", "--agents"], ["certify"], ["audit"], ["reproduce", "--agent"]],
)
def test_agents(tab, words):
    assert tab(*words, "") == list(AGENTS)
    assert tab(*words, "linu") == ["linucb"]


def test_agents_behind_a_comma(tab):
    offered = tab("compare", "OJPricing", "--agents", "linucb,dp-u")
    assert offered == ["linucb,dp-ucb"]


def test_control_c_ends_a_comparison_with_one_line(monkeypatch, capsys):
    """SIGINT in the middle of the rounds: exit code 130 as of any program, and no traceback."""
    monkeypatch.setattr("sys.argv", ["dpbandit", "compare", "GLMBandit", "--horizon", "20"])
    monkeypatch.setattr(
        "dpbandit.base.progress.Progress.advance", lambda *_: signal.raise_signal(signal.SIGINT)
    )
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(SystemExit) as stop:
            cli.main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert stop.value.code == 130
    assert capsys.readouterr() == ("", "dpbandit: interrupted.\n")


def test_other_endings_are_not_interruptions(monkeypatch, capsys):
    for words, code in (["--version"], 0), (["compare", "NoSuch"], 2), (["no-such-command"], 2):
        monkeypatch.setattr("sys.argv", ["dpbandit", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == code
        assert "interrupted" not in capsys.readouterr().err
