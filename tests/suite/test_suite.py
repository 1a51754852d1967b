"""The suite: scores, cards, and doctored results that have to be refused."""

import json
import shutil
from dataclasses import replace
from functools import cache
from math import inf

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpbandit.agents import DPMoments
from dpbandit.base.inputs import InputError
from dpbandit.results.store import write_runs
from dpbandit.running.settings import parse_agent
from dpbandit.suite import frozen, problems, run_suite, scores, verify, write_card
from dpbandit.suite.catalogue import SuiteProblem, _Suite, asked_of
from dpbandit.suite.playing import _AUDIT_RUNS, FINDINGS, RUNS, audited, examined, read_submission
from dpbandit.suite.scoring import Ends, best_at, ends_of
from dpbandit.suite.sources import files_of, source_of
from dpbandit.suite.verifying import Difference, apart, check
from tests.broken.audited import BROKEN
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


def test_strangers_get_a_card_and_are_verified(played):
    """Everything that somebody's own class fits is played, tested and audited; the page holds its
    figures. Bit for bit on this machine, all replicas on what claims to be another."""
    folder, runs, done = played
    found = write_card(done, folder)
    assert [one.setup.problem for one in runs] == ["tiny", "tiny"]
    page = found.page.read_text()
    assert "Tests pass." in page
    assert "Audit: not refuted" in page
    assert "after 400 of 400 pairs" in page
    assert "Expected trust=" in page
    assert "data:image/png;base64," in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert {*done.findings[MINE]["unfit"]} == {"tiny trust", "tiny experts"}
    assert read_submission(folder).findings == json.loads(json.dumps(done.findings))
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
    assert there.replayed == 6 * len(runs)


def test_doctored_numbers_are_refused(played, tmp_path):
    """A number changed in the file; and with the hash made anew: one replica, and, elsewhere, all
    of them by a fifth of a standard deviation."""
    folder, runs, done = played
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
            regret=one.regret - one.regret.std(axis=1, ddof=1, keepdims=True) / 5,
            provenance={**one.provenance, "cpu": "abacus"},
        )
        for one in done.runs
    ]
    assert "together lose less" in _refused(tmp_path, elsewhere)


def test_forged_results_are_told_from_other_rounding():
    """Statistical, 200 honest results of the suite's size of each kind: all replicas took another
    turn, or a tenth of them did, some far. 1 % of false alarms are promised, so that more than 8
    of 200 have a chance of 2e-4. Power, in all of 50: 0.25 errors off everything, though all took
    another turn; a fifth off one problem, where a tenth did elsewhere; 3 off one run, and 8 off one
    replica. Below 0.05 is nothing."""
    rng, shape = np.random.default_rng(7), (30, 3, 8)

    def said(errors):
        every = [Difference("a", f"{i}", e, errors[i, e, r]) for i, e, r in np.ndindex(*shape)]
        return [*apart(every)]

    def few():
        return np.where(rng.random(shape) < 0.1, rng.standard_t(2, shape).clip(-3, 3), 0.0)

    def all_turned():
        return rng.normal(0, np.sqrt(0.5), shape)

    for honest in (few, all_turned):
        assert sum(bool(said(honest())) for _ in range(200)) <= 8
    lowered = np.zeros(shape)
    lowered[3] = 0.2
    assert all(said(all_turned() - 0.25) for _ in range(50))
    assert all(
        any(" on 3 " in line for line in said(few() * (lowered == 0) - lowered)) for _ in range(50)
    )
    for places, less, words in ((3, 0), 3.0, "a on 3 at epsilon 0"), ((3, 0, 0), 8.0, "a on 3 at"):
        lowered = np.zeros(shape)
        lowered[places] = less
        one = [" ".join(said(all_turned() - lowered)) for _ in range(50)]
        assert all(words in sentences for sentences in one)
    assert not said(np.full(shape, -0.049))


def test_other_runs_and_findings_are_refused(played, tmp_path, monkeypatch):
    """Another seed, a run that is left out or there twice, the best six of twelve replicas, a
    ledger of a more private run, a changed certificate, other files of an agent, another version; a
    failed test or a flagged audit that is struck from suite.json; what is no such file."""
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
    _, runs, _ = played
    strict, loose = sorted(runs, key=lambda one: one.certificate.epsilon)
    forged = replace(loose, certificate=strict.certificate)
    assert "ledger and certificate" in _refused(tmp_path, [strict, forged])
    edited = replace(loose, certificate=replace(loose.certificate, rho=0.01))
    assert "ledger and certificate" in _refused(tmp_path, [strict, edited])
    edited = [replace(one, provenance={**one.provenance, "agent": "0" * 16}) for one in runs]
    assert "its files have changed" in _refused(tmp_path, edited)
    _, runs, done = played
    older = [replace(one, provenance={**one.provenance, "suite": "0"}) for one in runs]
    with pytest.raises(InputError, match="to be of version 1 of the suite, got '0': run"):
        _refused(tmp_path, older)
    write_runs(tmp_path / RUNS, runs)
    told = {"version": 0, "size": "small", "agents": done.findings}
    (tmp_path / FINDINGS).write_text(json.dumps(told))
    with pytest.raises(InputError, match="to be of version 1 of the suite, got 0: run"):
        read_submission(tmp_path)
    _, runs, done = played
    monkeypatch.setattr("dpbandit.suite.verifying.examined", cache(examined))
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


def test_foreign_results_stay(played, tmp_path, monkeypatch):
    """Somebody's files, and one that replaced ours, stay as they are; what is ours is written
    again. An agent that was edited since is not given the scores of what it was; nobody plays
    none."""
    folder, runs, _ = played
    for name in (RUNS, FINDINGS):
        theirs = tmp_path / name.replace(".", "-")
        theirs.mkdir()
        shutil.copy(folder / name, theirs)
        with pytest.raises(InputError, match="no results but its own"):
            run_suite([MINE], theirs, progress=False)
        assert [file.name for file in theirs.iterdir()] == [name]
    shutil.copytree(folder, tmp_path / "ours")
    run_suite([MINE], tmp_path / "ours", progress=False)
    write_runs(tmp_path / "ours" / RUNS, [replace(runs[0], regret=runs[0].regret / 2), *runs[1:]])
    before = (tmp_path / "ours" / RUNS).read_bytes()
    with pytest.raises(InputError, match="has others of"):
        run_suite([MINE], tmp_path / "ours", progress=False)
    assert (tmp_path / "ours" / RUNS).read_bytes() == before
    folder, _, _ = played
    monkeypatch.setattr("dpbandit.suite.playing.source_of", lambda config: "another")
    with pytest.raises(InputError, match="choose another folder"):
        run_suite([MINE], folder, progress=False)
    with pytest.raises(InputError, match="to be one or more"):
        run_suite([], folder, progress=False)


def test_the_files_of_an_agent_are_all_that_it_imports(tmp_path, monkeypatch):
    """A module of its own folder, one in a package that a function imports, and what that imports
    from beside it; neither Python nor what is installed. A change of each changes the hash."""
    (tmp_path / "near").mkdir()
    files = {
        "written_by_them.py": "import near_them\nfrom dpbandit.agents import DPMoments\n"
        "class Theirs(DPMoments):\n    def start(self):\n        from near.deep import x\n",
        "near_them.py": "import json, numpy as np\n",
        "near/__init__.py": "",
        "near/deep.py": "from . import deeper\nfrom .. import beyond\nx = 1\n",
        "near/deeper.py": "import no_such_module.at_all\n",
        "near/unused.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    config = parse_agent("written_by_them:Theirs")
    found = {"near_them", "near", "near.deep", "near.deeper"}
    assert {*files_of(type(config))} == found
    seen = {source_of(config)}
    for name in [name for name in files if name != "near/unused.py"]:
        (tmp_path / name).write_text(f"{files[name]}\n# edited")
        seen.add(source_of(config))
    assert len(seen) == 6
    (tmp_path / "near" / "unused.py").write_text("edited = True")
    assert source_of(config) in seen


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
    ledger = strict.certificate.ledger
    ledger = replace(ledger, notion=replace(ledger.notion, contexts="public"))
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


def test_a_broken_agent_is_flagged_long_before_the_audit_would_end():
    """Half of the noise that is claimed. Catches an audit that plays all its runs whatever it has
    seen; the honest agent above is played to the end."""
    found = audited(BROKEN["noise halved"], "full")
    assert found is not None
    assert found["flagged"]
    assert found["runs"] < found["most"] / 10
