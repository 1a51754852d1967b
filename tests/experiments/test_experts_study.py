"""The experts study: what it counts, whom its audit catches, that it resumes, bad input."""

from dataclasses import replace
from math import inf

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from dpbandit import InputError
from dpbandit.agents import FollowTheLeader, Hedge
from dpbandit.experiments.experts import __main__ as command
from dpbandit.experiments.experts import questions
from dpbandit.experiments.experts.audit import verdict
from dpbandit.experiments.experts.plan import Plan
from dpbandit.experiments.experts.runs import Problem, Run, run_all
from dpbandit.experiments.experts.study import QUESTIONS, study

TINY = Plan(
    horizons=(8, 16, 24),
    n_experts=4,
    sizes=(2, 4, 8),
    sizes_horizon=16,
    epsilons=(1.0, 10.0, 100.0),
    stages=(4,),
    users=24,
    rankers=4,
    tails=((8, 1.0),),
    audited=20,
    replicas=2,
)


def quick(folder):
    """The command, as documented, on a tiny plan."""
    app = typer.Typer()
    app.command()(command.main)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "QUICK", TINY)
        patch.setattr("dpbandit.base.progress._PATIENCE", 1e9)
        done = CliRunner().invoke(app, ["--quick", "--out", str(folder), "--replicas", "3"])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder, and what was printed while it was filled."""
    folder = tmp_path_factory.mktemp("study")
    return folder, quick(folder)


def test_quick_runs_write_everything_and_the_second_does_no_work(written, monkeypatch):
    folder, printed = written
    images = {path.stem: path for path in folder.glob("*.png")}
    assert set(images) == set(QUESTIONS)
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in images.values())
    table = pd.read_csv(folder / "summary.csv")
    assert set(table["question"]) == set(QUESTIONS)
    slopes = pd.read_csv(folder / "slopes.csv")
    assert set(slopes["axis"]) == {"T", "ln d", "epsilon"}
    for words in ("switches on halving", "nobody private is below", "regret against epsilon"):
        assert words in printed
    monkeypatch.setattr("dpbandit.experiments.experts.runs._run", None)  # would not be callable
    monkeypatch.setattr(command, "figures", lambda findings, out: sorted(images.values()))
    again = quick(folder)
    assert sorted(again.splitlines()) == sorted(printed.splitlines())
    pd.testing.assert_frame_equal(pd.read_csv(folder / "summary.csv"), table)


def test_what_is_claimed_is_certified(written):
    """Golden: certified agents spend the epsilon of their line and no more; what is printed costs
    3/4 of it (Algorithm 1), 3/2 and a little (Algorithm 5), or has no bound (Algorithm 2).
    Wherever an agent is private it stands above the lower bound; public agents are on every
    panel."""
    findings = study(replace(TINY, replicas=3), written[0], progress=False)
    certified = (
        findings.answers["growth"]["certified"] | findings.answers["tails"]["8 experts, epsilon 1"]
    )
    printed = {
        "Algorithm 1 as printed": (0.75, 0.76),
        "Algorithm 1 as printed, delta": (0.3, 0.8),
        "Algorithm 2 as printed": (inf, inf),
        "Algorithm 5 as printed": (1.5, 1.52),
        "Algorithm 5, threshold 2/eta": (1.5, 1.52),
        **dict.fromkeys(("Hedge", "Hedge, eta 1", "leader"), (inf, inf)),
        "uniform play": (0, 0),
    }
    for label, line in certified.items():
        low, high = printed.get(label, (0.9, 1 + 1e-3))
        assert low <= line[0].epsilon <= high, label
    verdicts = findings.verdicts()
    assert len(verdicts) > 15
    assert not any(v.refuted for (_, label), v in verdicts.items() if label not in printed)
    for panels in findings.answers.values():
        for lines in panels.values():
            assert any(
                "uniform" in label or "leader" in label or "centre" in label for label in lines
            )


def found(config, problem, horizon, tmp_path, **more):
    kwargs = {"problem": problem, "agent": "x", "config": config, "horizon": horizon, "seed": 0}
    run = Run(**{**kwargs, **more})
    return run_all({"x": run}, tmp_path, progress=False)["x"]


def test_switches_are_counted(tmp_path):
    """Oracle: on halving a lazy leader changes after each of her mistakes and at no other time."""
    problem = Problem("h", "Experts", {"kind": "halving", "n_actions": 16})
    lazy = found(FollowTheLeader(lazy=True), problem, 40, tmp_path, replicas=30)
    np.testing.assert_array_equal(lazy.switches, lazy.regret)
    assert lazy.switches.max() > 2


def test_the_audit_catches_broken_agents_and_no_private_agent(tmp_path):
    """256 experts, epsilon 0.1: who is private loses 45.99 at least, Hedge at rate 1 only 6.04. A
    confidence limit by Hoeffding is right for every law; a sample of 150 suffices (margin 13)."""
    plan = replace(TINY, tails=((256, 0.1),), audited=150)
    (lines,) = questions.tails(plan).values()
    asked = ("Hedge, eta 1", "leader", "sparse vector", "noisy sums, delta", "uniform play")
    runs = {label: lines[label][0] for label in asked}
    verdicts = {k: verdict(f, 60) for k, f in run_all(runs, tmp_path, progress=False).items()}
    assert [label for label, v in verdicts.items() if v.refuted] == ["Hedge, eta 1", "leader"]
    assert verdicts["Hedge, eta 1"].mean == pytest.approx(6.04, abs=0.5)
    assert verdicts["sparse vector"].least == pytest.approx(45.99, abs=0.01)
    assert verdicts["sparse vector"].mean > 50


def test_another_config_is_run_anew(tmp_path):
    problem = Problem("c", "Experts", {"n_actions": 4})
    one, two = (found(Hedge(rate=r), problem, 50, tmp_path, replicas=2) for r in (0.1, 9.0))
    assert (one.regret != two.regret).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"replicas": 1}, "replicas=1 to be a whole number >= 2"),
        ({"audited": 0}, "audited=0"),
        ({"horizons": (10, 20)}, "horizons"),
        ({"epsilons": (1.0,)}, "epsilons"),
    ],
)
def test_plans_leave_room(arguments, message):
    with pytest.raises(InputError, match=message):
        Plan(**arguments)
