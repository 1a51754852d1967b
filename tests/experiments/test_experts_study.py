"""The experts study: what it counts, whom its audit catches, that it resumes, bad input."""

from dataclasses import replace
from math import inf

import numpy as np
import pandas as pd
import pytest

from dpbandit import InputError
from dpbandit.agents import FollowTheLeader
from dpbandit.experiments.experts import (
    Sizes,
    __main__ as command,
    least_regret,
    news,
    questions,
    tails,
)
from dpbandit.experiments.experts.__main__ import figures, verdict, verdicts
from dpbandit.experiments.questions import answers, measured
from dpbandit.studies import Study, setup_of
from dpbandit.studies.configurations import LastRound
from tests.drawings import points, unsaved
from tests.experiments.runs import figures_of, quick

TINY = Sizes(
    horizons=(6, 8, 12),
    n_experts=8,
    sizes=(2, 4, 8),
    sizes_horizon=12,
    epsilons=(1.0, 10.0, 100.0),
    stages=(4,),
    users=12,
    rankers=4,
    tails=((8, 1.0),),
    audited=20,
    replicas=2,
)


def test_the_study_writes_everything_and_certifies_what_it_claims(monkeypatch, tmp_path):
    """Golden: certified agents spend the epsilon of their line; what is printed costs 3/4 of it
    (Algorithm 1), 3/2 and a little (Algorithm 5), or has no bound (Algorithm 2). Nobody private is
    below the lower bound, and nothing is played a second time."""
    said = quick(command, TINY, tmp_path)
    asked = {name for some in questions(TINY) for name in some}
    assert figures_of(tmp_path) == asked == {*pd.read_csv(tmp_path / "summary.csv")["question"]}
    assert {*pd.read_csv(tmp_path / "slopes.csv")["axis"]} == {"T", "ln d", "epsilon"}
    for words in ("switches on halving", "nobody private is below", "Regret against epsilon"):
        assert words in said

    monkeypatch.setattr("dpbandit.studies.configurations.play_any", None)  # would not be callable
    found = command.measure(TINY, tmp_path, progress=False)
    certified = found.runs["growth"]["certified"] | found.runs["tails"]["8 experts, epsilon 1"]
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
        assert low <= line[0].certificate.epsilon <= high, label
    (judged,) = verdicts(found).values()
    assert len(judged) > 15
    assert not any(v.refuted for label, v in judged.items() if label not in printed)
    for lines in (lines for panels in found.runs.values() for lines in panels.values()):
        assert any("uniform" in one or "leader" in one or "centre" in one for one in lines)
    with unsaved() as drawn:
        names = [path.stem for path in figures(found, tmp_path)]
    (axes,) = drawn[names.index("prices")]
    shown = {c.get_label().partition(":")[0]: points(c[0])[0] for c in axes.containers}
    assert shown["Algorithm 1 as printed"] == pytest.approx([0.75, 7.5, 75], rel=0.02)


def test_switches_are_counted(tmp_path):
    """Oracle: on halving a lazy leader changes after each of her mistakes and at no other time."""
    setup = setup_of("Experts", {"kind": "halving", "n_actions": 16}, horizon=40)
    leader = LastRound(setup, "x", FollowTheLeader(lazy=True))
    study = Study(configurations=(leader,), replicas=30)
    (lazy,) = measured(study, tmp_path, progress=False).runs
    np.testing.assert_array_equal(lazy.switches, lazy.regret)
    assert lazy.switches.max() > 2


def test_the_audit_catches_broken_agents_and_no_private_agent(tmp_path):
    """256 experts, epsilon 0.1: who is private loses 45.99 at least, Hedge at rate 1 only 6.04, a
    margin of 13 for Hoeffding's limit of 150 replicas."""
    (lines,) = tails(replace(TINY, tails=((256, 0.1),))).values()
    asked = ("Hedge, eta 1", "leader", "sparse vector", "noisy sums, delta", "uniform play")
    some = {"tails": {"one": {label: lines[label] for label in asked}}}
    runs = answers("tails", some, tmp_path, replicas=150, progress=False).runs["tails"]["one"]
    judged = {label: verdict(line[0], 60) for label, line in runs.items()}
    assert [label for label, v in judged.items() if v.refuted] == ["Hedge, eta 1", "leader"]
    assert judged["Hedge, eta 1"].mean == pytest.approx(6.04, abs=0.5)
    assert judged["sparse vector"].least == pytest.approx(45.99, abs=0.01)
    assert judged["sparse vector"].mean > 50


def test_least_regrets():
    """Golden, from the specification; and by hand: for d = 4, epsilon = ln 2 it is 3/4 + (1 - 2/4),
    with delta = 0.1 less 0.1 in the second term; without privacy the first guess."""
    for d, at_1, at_tenth in ((16, 2.306, 18.82), (256, 5.085, 45.99), (4096, 7.849, 73.68)):
        assert least_regret(d, 1.0) == pytest.approx(at_1, abs=6e-4)
        assert least_regret(d, 0.1) == pytest.approx(at_tenth, abs=6e-3)
    assert least_regret(4, np.log(2)) == pytest.approx(1.25)
    assert least_regret(4, np.log(2), 0.1) == pytest.approx(1.15)
    assert least_regret(4, inf) == 0.75
    assert least_regret(4, 0.1, tail=0) == least_regret(1, 0.1) == 0
    assert least_regret(4, 1e-3, tail=3) == pytest.approx(2.25, abs=0.01)
    assert news(256, 0.1) == 56
    with pytest.raises(InputError):
        least_regret(4, 0.0)
