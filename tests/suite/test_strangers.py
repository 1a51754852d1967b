"""Agents of others that raise, hang, return nonsense or are no class of ours have their card."""

import time

import numpy as np
import pytest
from typer.testing import CliRunner

from dpbandit import compare
from dpbandit.base import InputError
from dpbandit.commands.suite import app
from dpbandit.results import Results
from dpbandit.running.settings import parse_agent
from dpbandit.specs.protocols import ContextualSpec, fits
from dpbandit.studies import Sweep, run_sweep
from dpbandit.suite.play import page_facts, write_page
from dpbandit.suite.playing import read_submission
from tests.suite.strangers import Mean
from tests.suite.test_suite import _tiny

HERE = "tests.suite.strangers"


@pytest.fixture
def tiny(monkeypatch):
    """A suite of three tiny problems."""
    monkeypatch.setattr("dpbandit.suite.catalogue.suite", _tiny)
    monkeypatch.setattr("dpbandit.suite.playing.frozen", lambda size: ())
    monkeypatch.setattr("dpbandit.suite.card.frozen", lambda size: ())


def card(folder, agents, *more):
    """Return the output of `suite run`, its findings and its page."""
    asked = ["run", ",".join(f"{HERE}:{agent}" for agent in agents), "--out", str(folder), *more]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 1, done.output
    found = read_submission(folder).findings
    raised = {name.partition(":")[2]: found[name]["raised"] for name in found}
    return done.output, raised, (folder / "card.html").read_text()


def test_who_raises_hangs_or_answers_nonsense_has_a_card(tiny, tmp_path, monkeypatch):
    """The card names the error and the round of each failing agent on each problem, with the lines
    of its own file; an agent beside them that plays well has scores; the exit code is 1. Catches a
    run that ends at the first failure, or waits for an agent that sleeps. `suite play` shows them.
    """
    wrong = ["Crashes", "LongNamedNonsenseOfASummerSchool"]
    output, raised, page = card(tmp_path / "a", [*wrong, "Mean"])
    (mean,) = raised["Mean"]
    assert mean["told"].startswith("raised ValueError in update, round 1"), "losses of all experts"
    for one in raised["Crashes"]:
        if one["problem"] == "tiny experts":
            continue
        assert one["told"].startswith("raised ZeroDivisionError in act, round 3: ")
        assert "(strangers.py, line " in one["told"]
        assert "return 1 // (self.rounds < 3)" in one["trace"]
        assert "/dpbandit/running/" not in one["trace"]
    for one in raised["LongNamedNonsenseOfASummerSchool"]:
        assert "In round 1: Expected an arm, a whole number, got 'buy'" in one["told"]
    for name in wrong:
        assert {one["problem"] for one in raised[name]} >= {"tiny", "tiny trust"}
    assert f"{HERE}:Mean without privacy: " in output
    assert "raised ZeroDivisionError in act, round 3" in page
    assert "return 1 // (self.rounds &lt; 3)" in page
    own = read_submission(tmp_path / "a")
    monkeypatch.setattr("dpbandit.suite.play.frozen", lambda size: own.runs)
    monkeypatch.setattr("dpbandit.suite.play.finalists", lambda: ())
    (first, *_) = page_facts([], [own])["problems"]
    assert [(row["agent"], row["certified"]) for row in first["rows"]] == [(f"{HERE}:Mean", None)]
    assert "raised ZeroDivisionError in act, round 3" in first["raised"][0]
    assert write_page(tmp_path / "play.html", [tmp_path / "a"]).exists()
    start = time.monotonic()
    _, raised, page = card(tmp_path / "b", ["Hangs", "Ends"], "--minutes", "1")
    assert time.monotonic() - start < 55
    assert "ended its process in its run: EXIT(3)" in {one["told"] for one in raised["Ends"]}
    assert "ended its process in its run: EXIT(3)" in page
    stopped = "took more than 1 s in act, round 1: it was stopped"
    assert {one["told"] for one in raised["Hangs"]} == {stopped}
    assert stopped in page


def test_any_object_is_an_agent():
    """A class, an object, a function of one, and one that plays all replicas at once: the same
    numbers, as none draws any. It claims nothing; settings are what is no public fact."""
    named = {
        name: parse_agent(f"{HERE}:{name}")
        for name in ("Mean", "Means", "of_function", "mean_of_five")
    }
    found = compare("GLMBandit", named, horizon=60, replicas=3, progress=False)
    regrets = [run.regret.tolist() for run in found.runs[: len(named)]]
    assert regrets[1:] == regrets[:1] * 3
    assert found["Means"].runs[0].certificate.epsilon == np.inf
    assert parse_agent(f"{HERE}:Mean:first=2") != named["Mean"]
    for wrong, sentence in (("n_actions=3", "setting of"), ("other=3", "setting of")):
        with pytest.raises(InputError, match=sentence):
            parse_agent(f"{HERE}:Mean:{wrong}")
    with pytest.raises(InputError, match=r"methods act\(context\) and update"):
        parse_agent(f"{HERE}:no_agent")


def test_others_results_outlive_an_exception(tmp_path):
    """In a comparison the others are played to the end, and a warning names agent, method and
    round; where nobody is left, its sentence is raised. So it is in a sweep."""
    agents = {"mine": parse_agent(f"{HERE}:Crashes"), "mean": parse_agent(f"{HERE}:Mean")}
    how = {"horizon": 40, "replicas": 2, "progress": False}
    with pytest.warns(UserWarning, match=r"mine raised ZeroDivisionError in act, round 3: "):
        found = compare("GLMBandit", agents, **how)
    assert [run.name for run in found] == ["mean", "Uniform", "BestFixed"]
    assert [*found.failed] == ["mine"]
    with pytest.raises(InputError, match=r"mine raised ZeroDivisionError in act, round 3: "):
        compare("GLMBandit", {"mine": agents["mine"]}, **how)
    sweep = {"horizons": [20], "replicas": 2, "environments": [{"id": "GLMBandit"}]}
    sweep["agents"] = [{"id": f"{HERE}:Crashes"}, {"id": "linucb"}]
    done = run_sweep(Sweep.of(sweep), tmp_path, backend="threading", progress=False)
    (failure,) = done.failed
    assert str(failure).startswith(f"{HERE}:Crashes on GLMBandit raised ZeroDivisionError in act")
    with pytest.warns(UserWarning, match="Unfinished: 6 of 8 replicas"):
        assert "linucb" in Results.load(tmp_path).certificates


def test_who_ends_its_process_ends_nobody_else_s_run(run, tmp_path, monkeypatch):
    """In `compare` and `sweep`, with os._exit and with a call that never returns: a sentence each,
    exit code 1, also if nobody is left, and the others' results are written, the same as alone."""
    monkeypatch.chdir(tmp_path)
    words = ["GLMBandit", "--horizon", 20, "--replicas", 2, "--out", "d", "--agents"]
    strange = f"{HERE}:Ends,{HERE}:Hangs,{HERE}:Mean"
    assert run("compare", *words, f"{HERE}:Crashes")[0] == 1
    code, _, errors = run("compare", *words, strange, "--minutes", "1")
    assert code == 1
    assert f"{HERE}:Ends ended its process in its run: EXIT(3)." in errors
    assert f"{HERE}:Hangs took more than 1 s in act, round 1: it was stopped." in errors
    found = Results.load("d")
    assert {one.name for one in found} == {f"{HERE}:Mean", "Uniform", "BestFixed"}
    alone = compare("GLMBandit", f"{HERE}:Mean", horizon=20, replicas=2, progress=False)
    for one in found:
        np.testing.assert_array_equal(one.regret, alone[one.name].runs[0].regret)
    (tmp_path / "sweep.toml").write_text(
        'horizons = [20]\nreplicas = 2\n[[environments]]\nid = "GLMBandit"\n'
        + "".join(f'[[agents]]\nid = "{HERE}:{name}"\n' for name in ("Ends", "Mean"))
    )
    code, said, errors = run("sweep", "sweep.toml", "--out", "s")
    assert (code, "6 replicas run" in said) == (1, True)
    assert "Ends on GLMBandit ended its process in its run: EXIT(3)." in errors


def test_a_row_for_each_arm_is_told_apart():
    """`fits` alone refuses contexts (K, d) of who reads (d,)."""
    shared = ContextualSpec(n_actions=3, dim=2, horizon=9, shared=True)
    with pytest.raises(InputError, match=r"Mean reads one context of a user, \(d,\), got a row"):
        fits(Mean(3), shared, ContextualSpec)
    assert fits(Mean(3), shared, ContextualSpec, shared=True) is shared
