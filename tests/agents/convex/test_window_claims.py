"""What is promised for a window, or on a condition, never reads as ordinary DP."""

import json
import sys
from contextlib import suppress
from math import inf

import pytest

from dpbandit import InputError, certify, cli, compare
from dpbandit.agents import PFTAL, POCP, WDPCOCOL, WDPCOCOP
from dpbandit.auditing.audit import audit
from dpbandit.commands.options import print_results
from dpbandit.domains import Ball
from dpbandit.losses import Linear, Quadratic
from dpbandit.privacy.certificate import ledger_as_dict, ledger_from_dict
from dpbandit.privacy.ledger import Ledger, lasts
from dpbandit.privacy.spends import Expiring, GaussianSpend, Parallel
from dpbandit.specs.convex import ConvexSpec

WORDS = "for the last 9 rounds only (older data may be revealed completely)"
SHORT = "window-DP, last 9"
SPEC = ConvexSpec(loss=Quadratic(Ball(2)), feedback="datum", horizon=30)
EXPIRING = [
    WDPCOCOP(window=9, noise="gaussian"),
    WDPCOCOP(window=9, calibration="paper"),
    WDPCOCOL(window=9),
]
every_window = pytest.mark.parametrize("config", EXPIRING, ids=str)


@pytest.fixture(scope="module")
def results():
    agents = {"WDP": WDPCOCOP(window=9, noise="gaussian"), "PFTAL": PFTAL(), "POCP": POCP()}
    return compare("OnlineConvex", agents, horizon=30, replicas=2, progress=False)


@every_window
def test_certificates_say_so(config):
    """In the notion, beside every epsilon that is printed, in JSON, and after a journey through
    it; a copy without the window cannot be made."""
    proof = certify(config, SPEC, accountants=False)
    assert WORDS in proof.notion
    assert proof.notion.startswith("window DP")
    text = str(proof)
    assert WORDS in text
    for line in text.splitlines():
        if line.startswith(("claimed", "certified")):
            assert f"({SHORT})" in line
    document = json.loads(json.dumps(proof.as_dict()))
    assert WORDS in document["notion"]
    assert document["ledger"]["window"] == 9
    assert ledger_from_dict(document["ledger"]) == proof.ledger
    forged = {**ledger_as_dict(proof.ledger), "window": None}
    with pytest.raises(InputError, match="at most 9"):
        ledger_from_dict(forged)


def test_an_expiring_spend_cannot_hide():
    """Wherever it is inside a ledger: alone, beside others, in parallel, twice wrapped."""
    spend = Expiring(GaussianSpend(0.3, "tree"), 9)
    inside = Parallel((GaussianSpend(0.1, "a"), Parallel((spend,))))
    assert [lasts(s) for s in (spend, inside, GaussianSpend(0.1, "a"))] == [9, 9, inf]
    assert lasts(Expiring(Expiring(spend.part, 4), 9)) == 4
    for spends in ((spend,), (GaussianSpend(0.1, "a"), spend), (inside,), (Expiring(inside, 20),)):
        with pytest.raises(InputError, match="at most 9"):
            Ledger(spends)
        assert Ledger(spends, window=9).brief == SHORT


@every_window
def test_without_noise_or_without_expiry_there_is_no_window_to_speak_of(config):
    """Nothing private: said so. A horizon that ends before anybody expires: ordinary DP."""
    short = ConvexSpec(loss=Quadratic(Ball(2)), feedback="datum", horizon=10)
    proof = certify(config, short, accountants=False)
    assert (proof.ledger.window, proof.ledger.brief) == (None, "")
    assert "window" not in proof.notion


def test_tables_say_so(results, monkeypatch, capsys):
    """Next to the epsilon of the agent's row, and in full below; not in anybody else's row."""
    monkeypatch.setenv("COLUMNS", "200")
    print_results(results)
    out = capsys.readouterr().out
    rows = out[out.index("certificates") :].splitlines()
    row = {name: next(r for r in rows if f" {name} " in r) for name in ("WDP", "PFTAL", "POCP")}
    assert SHORT in row["WDP"]
    assert "conditional" in row["POCP"]
    assert "window" not in row["PFTAL"] + row["POCP"]
    assert sum(WORDS in r for r in rows) == 1
    assert sum("CONDITIONAL: every loss" in r for r in rows) == 1


TINY = ["--horizon", "30", "--replicas", "2"]
COMMANDS = {
    "certify": ["wdp-cocop:window=9", "--env", "OnlineConvex", "--horizon", "30"],
    "compare": ["OnlineConvex", "--agents", "wdp-cocop:window=9", *TINY],
    "reproduce": ["convex/p-quad", "--agent", "wdp-cocop", "--set", "window=9", *TINY],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_line_says_so(command, monkeypatch, capsys, tmp_path):
    """On screen, and in the file of numbers."""
    numbers = tmp_path / "numbers.json"
    words = ["dpbandit", command, *COMMANDS[command], "--delta", "0", "--json", str(numbers)]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setenv("COLUMNS", "250")
    with suppress(SystemExit):
        cli.main()
    assert WORDS in " ".join(capsys.readouterr().out.split())
    assert WORDS in numbers.read_text()


def test_audits_refuse_to_look_beyond_the_window():
    """They show all releases to the adversary, older users in the clear: the promise is not of
    that. A window of the horizon is audited."""
    spec = ConvexSpec(loss=Linear(Ball(2)), feedback="datum", horizon=24)
    with pytest.raises(InputError, match="for the last 9 rounds only"):
        audit(WDPCOCOP(window=9), spec, runs=400, progress=False)
    report = audit(WDPCOCOP(window=24), spec, runs=400, progress=False)
    assert not report.flagged
