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

COLUMNS = [
    "--propensity",
    "propensity",
    "--reward-range=-1.4:1.4",
    "--lowest",
    "0.13",
    "--adaptive",
]

UNRECORDED = ["--unrecorded", "--policy", "always=b", "--reward-range=-1.4:1.4"]
PRIVATE = ["--epsilon", "1", "--arms", "a,b,c"]


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
    code, said, _ = run(
        "--policy", "always=b", *COLUMNS, "--probabilities", ",".join(LAW), *given,
        "--out", "answer.csv",
    )  # fmt: skip
    frame = pd.read_csv("log.csv")
    log = read_log(
        frame,
        action="action",
        reward="reward",
        propensity="propensity",
        context={"x0": (-1, 1), "x1": (-1, 1)} if "x0" in words else {},
        reward_range=(-1.4, 1.4),
        lowest=0.13,
        adaptive=True,
        probabilities=LAW,
    )
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
    words = ["--unrecorded", "--feature", "x0=-1:1", "--reward-range=-1.4:1.4", "--level", ".9"]
    code, said, _ = run("--policy", "always=b", *words, "--gammas", "1,2", "--out", "bounds.csv")
    log = read_observed(
        "log.csv", action="action", reward="reward", context={"x0": (-1, 1)},
        reward_range=(-1.4, 1.4),
    )  # fmt: skip
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


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--policy", "always=z"], "to name one of a, b, c"),
        (["--policy", "p0,p1"], "3 columns"),
        (["--policy", "p0,p1,p9"], "'p9'"),
        (["--policy", "uniform", "--clip", "3"], "--epsilon with --clip=3"),
        (["--policy", "uniform", "--epsilon", "1"], "--arms with --epsilon"),
        (["--policy", "p0,p1,p2", *PRIVATE], "columns may be made of other rows"),
        (["--policy", "uniform", "--epsilon", "1", "--intervals", "t"], "no --intervals=t"),
        (["--policy", "uniform", "--out", "x.txt"], "to end in .csv"),
        (["--policy", "uniform", *PRIVATE, "--clip", "much"], "clip='much'"),
        (["--policy", "uniform", "--estimators", "ipw"], "estimators='ipw'"),
        (["--policy", "uniform", "--intervals", "exact"], "intervals='exact'"),
        (["--policy", "uniform", "--reward", "sales"], "'sales'"),
        (["--policy", "uniform", "--feature", "x0"], "NAME=LOW:HIGH"),
        (["--policy", "uniform", "--sort", "a=x"], "mips in --estimators with --sort"),
        (["--policy", "uniform", "--shrinkage", "2"], "dros in --estimators with --shrinkage"),
        (
            [
                *("--policy", "uniform", "--estimators", "mips"),
                *("--sort", "a=x", "--probabilities", "p0,p1,p2"),
            ],
            "--sort ARM=SORT once for each of a, b, c",
        ),
        (["--policy", "uniform", "--estimators", "mips"], "--sort with mips in --estimators"),
        (["--policy", "uniform", "--estimators", "switch-dr"], "--clip with switch-dr in"),
        (["--policy", "uniform", "--intervals", "betting-cv"], "--w-max, a public bound"),
        (["--policy", "uniform", "--q", "p0,p1"], "--q=p0,p1 to name 3 columns"),
        (["--policy", "uniform", "--estimators", "ips", "--q", "p0,p1,p2"], "with --q=p0,p1,p2"),
        (["--policy", "uniform", "--intervals", "t", "--w-max", "3"], "no --w-max=3 with"),
        (["--policy", "uniform", "--intervals", "weighted"], "--probabilities, and no --feature"),
        (["--policy", "uniform", *PRIVATE, "--w-max", "3"], "no --w-max=3.0 with --epsilon"),
        (["--policy", "uniform", "--gammas", "2"], "--unrecorded with --gammas=2"),
        (["--policy", "uniform", "--unrecorded"], "no --propensity with --unrecorded"),
        ([*UNRECORDED, "--estimators", "ips"], "divide by recorded propensities"),
        ([*UNRECORDED, "--intervals", "betting"], "no interval is exact"),
        ([*UNRECORDED, "--epsilon", "1"], "weights that are not fitted"),
        ([*UNRECORDED, "--adaptive"], "change from row to row"),
        ([*UNRECORDED, "--gammas", "much"], "--gammas=much to be numbers"),
        ([*UNRECORDED, "--feature", "x0=-1:1", "--q", "x0"], "models of their own"),
    ],
)
def test_mistakes_get_one_sentence(run, words, sentence):
    code, _, complained = run(*(() if words[0] == "--unrecorded" else COLUMNS), *words)
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
