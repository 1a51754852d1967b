"""`dpbandit evaluate`: as in Python, and natural mistakes in one sentence."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpbandit import cli
from dpbandit.clients import read_log, read_observed, record
from dpbandit.offline import assess, evaluate
from tests.each import asserting

COLUMNS = [
    "--propensity",
    "propensity",
    "--reward-range=-1.4:1.4",
    "--lowest",
    "0.13",
    "--adaptive",
]


@cache
def logged():
    env = {"n_actions": 3, "dim": 2}
    log = record("GLMBandit", horizon=800, agent="linucb", explore=0.4, env_kwargs=env)
    frame = log.to_frame()
    frame["action"] = frame["action"].map({0: "a", 1: "b", 2: "c"})
    return frame.to_csv(index=False)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run `dpbandit evaluate log.csv WORDS` beside such a file: exit code, output, complaints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("log.csv").write_text(logged())

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["dpbandit", "evaluate", "log.csv", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, *capsys.readouterr()

    return command


LAW = ["p0", "p1", "p2"]
SORTS = np.array([0, 0, 1])
REACHED = {
    "--feature x0=-1:1 --feature x1=-1:1": {"estimators": ("ips", "snips", "dr")},
    "--estimators dros --shrinkage 3": {"shrinkage": 3.0},
    "--estimators ips --intervals betting-cv --w-max 8": {"w_max": 8.0},
    "--estimators ips --intervals empirical-bernstein --w-max 8 --level .9": {
        "w_max": 8.0,
        "level": 0.9,
    },
    "--estimators dm --q p0,p1,p2": {"q": LAW, "q_is_honest": True},
    "--estimators dr --intervals weighted-minvar": {"law": LAW},
    "--estimators mips --sort a=x --sort b=x --sort c=y": {
        "features": SORTS,
        "feature_law": np.eye(2)[SORTS],
    },
}
"""Words and what they are in Python, which names columns of the table here."""


@pytest.mark.parametrize("words", REACHED)
def test_it_says_what_python_says(run, words):
    """The same log read with the same bounds, and the same table, on screen and in a file."""
    given = words.split()
    law = ["--probabilities", ",".join(LAW)]
    code, said, _ = run("--policy", "always=b", *COLUMNS, *law, *given, "--out", "answer.csv")
    frame = pd.read_csv("log.csv")
    columns = {name: name for name in ("action", "reward", "propensity")} | {"probabilities": LAW}
    bounds = {"reward_range": (-1.4, 1.4), "lowest": 0.13, "adaptive": True}
    features = {"x0": (-1, 1), "x1": (-1, 1)} if "x0" in words else {}
    log = read_log(frame, **columns, **bounds, context=features)
    told = {k: given[given.index(f"--{k}") + 1] for k in ("estimators", "intervals") if k in words}
    told |= REACHED[words]
    chances = frame[LAW].to_numpy()
    for name, column in (("q", chances), ("law", lambda i, x: np.tile(chances[i], (len(x), 1)))):
        told |= {name: column} if name in told else {}
    if "features" in told:
        told["features"] = SORTS[log.action]
    wanted = evaluate(np.tile([0.0, 1.0, 0.0], (800, 1)), log, **told)
    found = pd.read_csv("answer.csv")
    for what in ("estimate", "low", "high"):
        np.testing.assert_allclose(found[what], wanted[what])
    assert code == 0
    assert f"{wanted['estimate'][0]:.4g}" in said
    assert ("may lie outside" in said) == wanted["note"].str.contains("may lie outside").any()


def test_without_propensities_it_says_what_python_says(run):
    """The three answers and the bounds of the same rows, on screen and in a file."""
    words = "--unrecorded --feature x0=-1:1 --reward-range=-1.4:1.4 --level .9 --gammas 1,2"
    code, said, _ = run("--policy", "always=b", *words.split(), "--out", "bounds.csv")
    columns = {"action": "action", "reward": "reward", "context": {"x0": (-1, 1)}}
    log = read_observed("log.csv", **columns, reward_range=(-1.4, 1.4))
    wanted = assess(np.tile([0.0, 1.0, 0.0], (800, 1)), log, gammas=(1, 2), level=0.9)
    assert code == 0
    assert str(wanted) in " ".join(said.split()).replace(". ", ".\n")
    np.testing.assert_allclose(pd.read_csv("bounds.csv"), wanted.bounds)


def test_one_private_number(run):
    """And nothing else of the log, nor that a row lies outside its bounds, and what it holds."""
    frame = pd.read_csv("log.csv")
    frame.loc[0, "x0"] = 7.0
    frame.to_csv("log.csv", index=False)
    beyond = ["--feature", "x0=-1:1", "--arms", "a,b,c"]
    _, _, complained = run("--policy", "uniform", *COLUMNS, *beyond)
    assert "outside their public ranges" in complained
    assert complained.count("\n") == 1
    code, said, complained = run("--policy", "uniform", *COLUMNS, *beyond, "--epsilon", "1")
    assert (code, complained) == (0, "")
    assert "outside" not in said
    assert "epsilon 1, weights up to 7.692" in said
    assert "replace one row of the log" in said
    assert "ips" not in said


UNIFORM = {
    "--clip 3": "--epsilon with --clip=3",
    "--epsilon 1": "--arms with --epsilon",
    "--epsilon 1 --intervals t": "no --intervals=t",
    "--epsilon 1 --arms a,b,c --clip much": "clip='much'",
    "--epsilon 1 --arms a,b,c --w-max 3": "no --w-max=3.0 with --epsilon",
    "--out x.txt": "to end in .csv",
    "--estimators ipw": "estimators='ipw'",
    "--intervals exact": "intervals='exact'",
    "--reward sales": "'sales'",
    "--feature x0": "NAME=LOW:HIGH",
    "--sort a=x": "mips in --estimators with --sort",
    "--shrinkage 2": "dros in --estimators with --shrinkage",
    "--estimators mips --sort a=x --probabilities p0,p1,p2": "--sort ARM=SORT once for each of a",
    "--estimators mips": "--sort with mips in --estimators",
    "--estimators switch-dr": "--clip with switch-dr in",
    "--intervals betting-cv": "--w-max, a public bound",
    "--q p0,p1": "--q=p0,p1 to name 3 columns",
    "--estimators ips --q p0,p1,p2": "with --q=p0,p1,p2",
    "--intervals t --w-max 3": "no --w-max=3 with",
    "--intervals weighted": "--probabilities, and no --feature",
    "--gammas 2": "--unrecorded with --gammas=2",
    "--unrecorded": "no --propensity with --unrecorded",
}
OTHER_POLICIES = {
    "always=z": "to name one of a, b, c",
    "p0,p1": "3 columns",
    "p0,p1,p9": "'p9'",
    "p0,p1,p2 --epsilon 1 --arms a,b,c": "columns may be made of other rows",
}
UNRECORDED = {
    "--estimators ips": "divide by recorded propensities",
    "--intervals betting": "no interval is exact",
    "--epsilon 1": "weights that are not fitted",
    "--adaptive": "change from row to row",
    "--gammas much": "--gammas=much to be numbers",
    "--feature x0=-1:1 --q x0": "models of their own",
}
REFUSED = {
    **{f"--policy uniform {words}": said for words, said in UNIFORM.items()},
    **{f"--policy {words}": said for words, said in OTHER_POLICIES.items()},
    **{
        f"--unrecorded --policy always=b --reward-range=-1.4:1.4 {words}": said
        for words, said in UNRECORDED.items()
    },
}


def test_mistakes_get_one_sentence(run):
    for words, sentence in REFUSED.items():
        with asserting(words):
            told = [] if words.startswith("--unrecorded") else COLUMNS
            code, _, complained = run(*told, *words.split())
            assert (code, complained.count("\n")) == (2, 1)
            assert sentence in complained


def test_weights_are_cut_off_and_arms_are_called_as_in_the_table(run):
    """Arms that look like numbers among words, and one with a comma, are the table's."""
    frame = pd.read_csv("log.csv")
    frame["action"] = frame["action"].map({"a": "01", "b": "2,3", "c": "x"})
    frame.to_csv("log.csv", index=False)
    words = ["--estimators", "clipped-ips", "--clip", "0.5", *COLUMNS]
    for policy, arm in (("always=01", 0), ("always=2,3", 1)):
        code, _, _ = run("--policy", policy, *words, "--out", "answer.csv")
        cut = np.where(frame["action"] == ["01", "2,3"][arm], 0.5, 0) @ frame["reward"] / 800
        assert (code, pd.read_csv("answer.csv")["estimate"][0]) == (0, pytest.approx(cut))
