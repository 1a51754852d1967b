"""The suite: scores, cards, and doctored results that have to be refused."""

import json
from dataclasses import replace
from math import inf

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpbandit.agents import DPMoments
from dpbandit.base.inputs import InputError
from dpbandit.results.store import write_runs
from dpbandit.suite import frozen, problems, run_suite, scores, verify, write_card
from dpbandit.suite.catalogue import SuiteProblem, _Suite, asked_of
from dpbandit.suite.playing import _AUDIT_RUNS, FINDINGS, RUNS, read_submission
from dpbandit.suite.scoring import Ends, best_at, ends_of
from dpbandit.suite.verifying import check
from tools.scoreboard import PAGE, board, written

MINE = "tests.suite.test_suite:Mine"
SMALL = {"small": 40, "full": 60}


class Mine(DPMoments):
    """An agent of somebody else."""


def test_shipped_results_are_whole():
    """What is frozen is of this version's seeds, sizes and problems: both ends of every score are
    there, all replicas, and the source that made them."""
    runs = frozen("small")
    assert {*ends_of(runs)} == {*problems()}
    for one in runs:
        assert one.replicas.tolist() == list(range(8))
        assert one.setup == problems()[one.setup.problem].setup("small")
        assert {"source", "cpu", "numpy", "agent"} <= {*one.provenance}
    text = PAGE.read_text()
    assert written(text, board()[0]) == text, "python tools/scoreboard.py"


def _tiny():
    best = ["greedy"]
    linear = SuiteProblem(
        name="tiny", capability="a", environment="GLMBandit", horizon=SMALL, best=best
    )
    trusting = replace(linear, name="tiny trust", trust="local")
    experts = replace(linear, name="tiny experts", environment="Experts", best=["hedge"])
    return _Suite(
        version=1,
        seed=3,
        epsilons=(1.0, 10.0),
        delta=1e-5,
        replicas={"small": 6, "full": 8},
        problems=(linear, replace(experts, capability="b"), trusting),
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """`Mine` on three tiny problems, of which it fits one, and its folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpbandit.suite.catalogue._suite", _tiny)
        patch.setattr("dpbandit.suite.playing.frozen", lambda size: ())
        patch.setattr("dpbandit.suite.card.frozen", lambda size: ())
        patch.setitem(_AUDIT_RUNS, "small", 400)
        folder = tmp_path_factory.mktemp("card")
        done = run_suite([MINE, MINE], folder, progress=False)
        yield folder, [one for one in done.runs if one.name == MINE], done


def _refused(tmp_path, runs, **how):
    """What is said of these runs, written anew with a hash that fits."""
    file = write_runs(tmp_path / "theirs.parquet", runs)
    return " ".join(verify(file, part=1.0, progress=False, **how).refused)


def test_strangers_get_a_card(played):
    """A class of somebody's own: everything that it fits is played, tested and audited; the page
    holds its figures, needs nothing from elsewhere, and says where the agent does not fit."""
    folder, runs, done = played
    found = write_card(done, folder)
    assert [one.setup.problem for one in runs] == ["tiny", "tiny"]
    page = found.page.read_text()
    assert "Tests pass." in page
    assert "Audit: not refuted" in page
    assert "Expected trust=" in page
    assert "data:image/png;base64," in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert {*done.findings[MINE]["unfit"]} == {"tiny trust", "tiny experts"}
    assert read_submission(folder).findings == json.loads(json.dumps(done.findings))


def test_honest_results_are_verified(played):
    """Bit for bit on this machine, with the ends of the scores that were played beside them;
    within errors on what claims to be another."""
    folder, runs, done = played
    found = verify(folder, part=0.5, seed=1, progress=False)
    check(found)
    assert found.exact
    assert found.agents == (MINE,)
    assert found.replayed == 3 * len(done.runs) == 24
    other = [replace(one, provenance={**one.provenance, "cpu": "abacus"}) for one in runs]
    file = write_runs(folder / "abacus.parquet", other)
    there = verify(file, seed=1, progress=False)
    check(there)
    assert not there.exact


def test_doctored_numbers_are_refused(played, tmp_path):
    """A number changed in the file; and with the hash made anew: one replica, and, elsewhere, all
    of them by less than what one replica may be off."""
    folder, runs, _ = played
    table = pq.read_table(folder / RUNS)
    better = table.set_column(
        table.column_names.index("regret"), "regret", [np.asarray(table["regret"]) * 0.9]
    )
    pq.write_table(better, tmp_path / RUNS)
    (sentence,) = verify(tmp_path, progress=False).refused
    assert "they differ" in sentence
    with pytest.raises(InputError, match="Refused"):
        check(verify(tmp_path, progress=False))
    regret = runs[0].regret.copy()
    regret[-1, 2] *= 1 - 1e-12
    assert "Replica 2 " in _refused(tmp_path, [replace(runs[0], regret=regret), *runs[1:]])
    elsewhere = [
        replace(
            one,
            regret=one.regret - 2 * one.regret.std(axis=1, ddof=1, keepdims=True),
            provenance={**one.provenance, "cpu": "abacus"},
        )
        for one in runs
    ]
    assert "All replicas together" in _refused(tmp_path, elsewhere)


def test_other_seeds_and_chosen_replicas_are_refused(played, tmp_path):
    """Another seed; a run that is left out; the best six of twelve replicas, under their own
    numbers and under those that were asked for."""
    _, runs, _ = played
    seeded = replace(runs[0], setup=replace(runs[0].setup, seed=4))
    assert "Not asked: " in _refused(tmp_path, [seeded, *runs[1:]])
    assert "Missing: " in _refused(tmp_path, runs[1:])
    one = next(c for c in asked_of(MINE, "small").configurations if c.key == runs[0].key)
    many = replace(one.play(0, 12), provenance=runs[0].provenance)
    best = many.only(np.sort(many.regret[-1].argsort()[:6]))
    assert "Expected replicas 0 to 5" in _refused(tmp_path, [best, *runs[1:]])
    renumbered = replace(best, replicas=np.arange(6))
    assert "is not so" in _refused(tmp_path, [renumbered, *runs[1:]])


def test_other_findings_are_refused(played, tmp_path):
    """A failed test or a flagged audit that is struck from suite.json; what is no such file; a run
    that is there twice."""
    _, runs, done = played
    write_runs(tmp_path / RUNS, runs)
    for edited in ({"tests": []}, {"audit": None}, {"failed": "all of it"}):
        told = {"version": 1, "size": "small", "agents": {MINE: done.findings[MINE] | edited}}
        (tmp_path / FINDINGS).write_text(json.dumps(told))
        assert "Expected tests and audit of" in " ".join(verify(tmp_path, progress=False).refused)
    for text in ("{", "[]", '{"version": 1, "size": "small", "agents": 3}'):
        (tmp_path / FINDINGS).write_text(text)
        with pytest.raises(InputError, match="to be written by"):
            verify(tmp_path, progress=False)
    assert "once, got it 2 times" in _refused(tmp_path, [*runs, runs[0]])


def test_runs_are_of_the_file_that_is_there(played, monkeypatch):
    """An agent that was edited since is not given the scores of what it was; nobody plays none."""
    folder, _, _ = played
    monkeypatch.setattr("dpbandit.suite.playing.source_of", lambda config: "another")
    with pytest.raises(InputError, match="choose another folder"):
        run_suite([MINE], folder, progress=False)
    with pytest.raises(InputError, match="to be one or more"):
        run_suite([], folder, progress=False)


def test_other_ledgers_and_other_agents_are_refused(played, tmp_path):
    """The ledger of a more private run beside the regret of this one; one number of a certificate;
    an agent whose file is not the one that was played."""
    _, runs, _ = played
    strict, loose = sorted(runs, key=lambda one: one.certificate.epsilon)
    forged = replace(loose, certificate=strict.certificate)
    assert "ledger and certificate" in _refused(tmp_path, [strict, forged])
    edited = replace(loose, certificate=replace(loose.certificate, rho=0.01))
    assert "ledger and certificate" in _refused(tmp_path, [strict, edited])
    edited = [replace(one, provenance={**one.provenance, "agent": "0" * 16}) for one in runs]
    assert "its file has changed" in _refused(tmp_path, edited)


def test_scores_stand_at_what_is_certified(played):
    """By hand: U = 10, B = 2, R = 4 is 3/4. A claim of 1 whose noise gives 7 scores at 10, one of
    a narrower promise nowhere, and without any certificate at infinity."""
    _, runs, done = played
    one = problems()["tiny"]
    strict, loose = sorted(runs, key=lambda r: r.certificate.epsilon)
    false = replace(strict, certificate=replace(strict.certificate, epsilon=7.0))
    assert best_at([false], one, 1.0) is None
    assert best_at([false, loose], one, 10.0) is loose
    assert best_at([strict, loose], one, 1.0) is strict
    ledger = replace(strict.certificate.ledger, public_contexts=True)
    narrow = replace(strict, certificate=replace(strict.certificate, ledger=ledger))
    assert best_at([narrow], one, 10.0) is None
    assert best_at([narrow], one, inf) is narrow
    four = replace(strict, regret=np.full_like(strict.regret, 4.0))
    ends = {name: Ends(np.full(6, 10.0), np.full(6, 2.0), "x") for name in problems()}
    table = scores([four], ends)
    assert table["score"].tolist() == table["low"].tolist() == [0.75] * 2
    assert table["epsilon"].tolist() == [1.0, 10.0]
    with pytest.raises(InputError, match="Expected runs of uniform"):
        ends_of(runs)
    assert {*ends_of(done.runs)} == {*problems()}
