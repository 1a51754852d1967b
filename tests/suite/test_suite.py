"""The suite: scores, cards, and doctored results that have to be refused."""

import json
import shutil
from dataclasses import replace
from math import inf

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dpbandit.base.inputs import InputError
from dpbandit.commands.suite import app as suite_commands
from dpbandit.privacy.certificate import certificate
from dpbandit.results.store import write_runs
from dpbandit.running.settings import parse_agent
from dpbandit.suite import problems, run_suite, scores, verify, write_card
from dpbandit.suite.catalogue import Suite, SuiteProblem, assignment_of
from dpbandit.suite.examining import _AUDIT_RUNS, audited
from dpbandit.suite.playing import FINDINGS, RUNS, read_submission
from dpbandit.suite.replaying import far_off
from dpbandit.suite.scoring import Ends, best_at, ends_of
from dpbandit.suite.sources import files_of, source_of
from dpbandit.suite.verifying import accepted
from tests.broken.audited import BROKEN

MINE = "tests.suite.strangers:Mine"
VERIFYING = "dpbandit.suite.verifying.examined"
SMALL = {"small": 40, "full": 60}


def _tiny():
    linear = SuiteProblem(
        name="tiny", capability="a", environment="GLMBandit", horizon=SMALL, baseline="greedy"
    )
    trusting = replace(linear, name="tiny trust", trust="local")
    experts = replace(linear, name="tiny experts", environment="Experts", baseline="hedge")
    return Suite(
        version=1,
        selection_seed=2,
        seed=3,
        epsilons=(1.0, 10.0),
        delta=1e-5,
        replicas={"small": 6, "full": 8},
        variants=(),
        problems=(linear, replace(experts, capability="b"), trusting),
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """`Mine` on three tiny problems, of which it fits one, and its folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpbandit.suite.catalogue.suite", _tiny)
        patch.setattr("dpbandit.suite.playing.frozen", lambda size: ())
        patch.setattr("dpbandit.suite.card.frozen", lambda size: ())
        patch.setattr("dpbandit.suite.verifying.frozen", lambda size: ("shipped",))
        patch.setitem(_AUDIT_RUNS, "small", 400)
        folder = tmp_path_factory.mktemp("card")
        done = run_suite([MINE, MINE], folder, progress=False)
        yield folder, [one for one in done.runs if one.name == MINE], done


@pytest.fixture
def examined_once(played, monkeypatch):
    """Verify without tests and audits: they found here what they found when it was played."""
    _, _, done = played
    monkeypatch.setattr(VERIFYING, lambda agent, size, **how: done.findings[agent])


def _verdict(tmp_path, runs, **how):
    """Return the verdict on these runs, written anew with a hash that fits."""
    file = write_runs(tmp_path / "theirs.parquet", runs)
    return verify(file, trust=True, progress=False, **how)


def _refused(tmp_path, runs):
    return " ".join(_verdict(tmp_path, runs).refused)


def _elsewhere(run):
    """The run, as if it came from another type of CPU."""
    return replace(run, provenance={**run.provenance, "cpu": "abacus"})


def test_strangers_get_a_card_and_are_verified(played, tmp_path):
    """Everything that somebody's own class fits is played, tested and audited; the page holds its
    figures. Who verifies plays all of it, says what it will cost before, and gets a card of those
    numbers, in a new folder alone."""
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
    assert "of who made this page" in page
    assert {*done.findings[MINE]["unfit"]} == {"tiny trust", "tiny experts"}
    assert read_submission(folder).findings == json.loads(json.dumps(done.findings))
    costs = list[str]()
    verdict = verify(folder, trust=True, out=tmp_path / "new", progress=False, tell=costs.append)
    own = accepted(verdict)
    assert verdict.agents == (MINE,)
    assert verdict.replayed == 6 * len(done.runs) == 48
    assert verdict.different == 0
    assert "CPU-seconds" in costs[0]
    assert own.findings == done.findings
    assert "by who verified" in (tmp_path / "new" / "card.html").read_text()
    assert [run.regret.tolist() for run in read_submission(tmp_path / "new").runs] == [
        run.regret.tolist() for run in own.runs
    ]
    with pytest.raises(InputError, match="to be a new folder"):
        verify(folder, trust=True, out=folder, progress=False)


def test_doctored_numbers_are_refused(played, tmp_path, examined_once):
    """A number changed in the file; and with the hash made anew: a last bit, and each replica's
    place taken by the best one, whatever one is looked at."""
    folder, runs, _ = played
    table = pq.read_table(folder / RUNS)
    better = table.set_column(
        table.column_names.index("regret"), "regret", [np.asarray(table["regret"]) * 0.9]
    )
    pq.write_table(better, tmp_path / RUNS)
    (sentence,) = verify(tmp_path, progress=False).refused
    assert "they differ" in sentence
    with pytest.raises(InputError, match="Refused"):
        accepted(verify(tmp_path, progress=False))
    regret = runs[0].regret.copy()
    regret[-1, 2] *= 1 - 1e-12
    assert "Replica 2 " in _refused(tmp_path, [replace(runs[0], regret=regret), *runs[1:]])
    worst, best = int(runs[0].regret[-1].argmax()), int(runs[0].regret[-1].argmin())
    places = np.arange(6)
    places[worst] = best
    doctored = replace(runs[0].only(places), replicas=runs[0].replicas)
    assert f"Replica {worst} " in _refused(tmp_path, [doctored, *runs[1:]])


def test_no_number_of_a_file_from_elsewhere_is_used(played, tmp_path, examined_once):
    """Half a standard deviation taken off every replica, under noise, by who claims another type of
    CPU: what is scored is what is played here, and how many replicas differ is told.
    Rounding is no difference; five standard errors are refused."""
    _, runs, done = played
    honest = [_elsewhere(replace(run, regret=run.regret * (1 + 1e-12))) for run in runs]
    assert _verdict(tmp_path, honest).different == 0
    rng = np.random.default_rng(7)

    def lowered(run, errors):
        scatter = run.regret.std(axis=1, ddof=1, keepdims=True)
        noise = rng.normal(0, 0.1, run.regret.shape)
        return _elsewhere(replace(run, regret=run.regret + scatter * (noise - errors)))

    verdict = _verdict(tmp_path, [lowered(run, 0.5) for run in runs])
    assert verdict.different == verdict.replayed == 12
    numbers = {run.key: run.regret for run in done.runs}
    for own in accepted(verdict).runs:
        assert np.array_equal(own.regret, numbers[own.key])
        assert own.provenance["cpu"] != "abacus"
    far = [lowered(run, 5 * np.sqrt(2 / 6)) for run in runs]
    assert "standard errors off" in _refused(tmp_path, far)


def test_honest_results_from_elsewhere_are_not_refused():
    """Statistical, 400 results of 93 runs of 8 replicas, of which half took another turn, so that
    their regret is another draw: 0.3 % are to be refused, and more than 7 of 400 have a chance of
    1e-4. Of those with 6 standard errors off one run, at least 99 % are."""
    rng, shape = np.random.default_rng(7), (93, 8)
    refused = caught = 0
    for _ in range(400):
        here = rng.normal(size=shape)
        told = np.where(rng.random(shape) < 0.5, rng.normal(size=shape), here)
        refused += any(far_off(*both) for both in zip(told, here, strict=True))
        errors = np.hypot(told[0].std(ddof=1), here[0].std(ddof=1)) / 8**0.5
        caught += far_off(here[0] - 6 * errors, here[0])
    assert refused <= 7
    assert caught >= 0.99 * 400


def test_no_module_of_a_file_is_imported_without_trust(played, tmp_path, monkeypatch):
    """A file of runs that names a module imports it, from Python and on the command line, only if
    the file is trusted."""
    _, runs, _ = played
    (tmp_path / "named_by_a_file.py").write_text("raise RuntimeError('I ran')")
    monkeypatch.syspath_prepend(tmp_path)
    named = [replace(run, name="guarded:named_by_a_file:Agent:rate=0.1") for run in runs]
    file = write_runs(tmp_path / "theirs.parquet", [*named, *runs])
    with pytest.raises(InputError, match=r"imports 'named_by_a_file', 'tests\.suite"):
        verify(file, progress=False)
    done = CliRunner().invoke(suite_commands, ["verify", str(file)])
    assert "named_by_a_file" in str(done.exception)
    assert "I ran" not in str(done.exception)
    with pytest.raises(InputError, match="I ran"):
        verify(file, trust=True, progress=False)
    informed = [replace(run, name="guarded:fade:growth=0.2:prior=told.json") for run in runs]
    with pytest.raises(InputError, match="a prior counts as public, and may be made of"):
        verify(write_runs(tmp_path / "theirs.parquet", informed), progress=False)


def test_other_runs_and_findings_are_refused(played, tmp_path, examined_once, monkeypatch):
    """Another seed, a run that is left out or there twice, one that would score others where none
    is shipped, a number in the name of an agent, the best six of twelve replicas, a ledger of a
    more private run, other files of an agent, another version; a
    failed test or a flagged audit that is struck from suite.json; what is no such file."""
    _, runs, _ = played
    seeded = replace(runs[0], setup=replace(runs[0].setup, seed=4))
    assert "Not in the suite: " in _refused(tmp_path, [seeded, *runs[1:]])
    assert "Missing: " in _refused(tmp_path, runs[1:])
    with monkeypatch.context() as patch:
        patch.setattr("dpbandit.suite.verifying.frozen", lambda size: ())
        assert "Missing: uniform on tiny" in _refused(tmp_path, runs)
    praised = [replace(run, name="fade 150 %") for run in runs]
    with pytest.raises(InputError, match="agent='fade 150 %' to be spelt 'fade'"):
        _refused(tmp_path, praised)
    one = next(c for c in assignment_of(MINE, "small").configurations if c.key == runs[0].key)
    many = replace(one.play(0, 12), provenance=runs[0].provenance)
    best = many.only(np.sort(many.regret[-1].argsort()[:6]))
    assert "Expected replicas 0 to 5" in _refused(tmp_path, [best, *runs[1:]])
    renumbered = replace(best, replicas=np.arange(6))
    assert "comes out otherwise here" in _refused(tmp_path, [renumbered, *runs[1:]])
    _, runs, _ = played
    strict, loose = sorted(runs, key=lambda one: one.certificate.epsilon)
    forged = replace(loose, certificate=strict.certificate)
    assert "ledger and certificate" in _refused(tmp_path, [strict, forged])
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
    write_runs(tmp_path / RUNS, runs)
    for edited in ({"tests": []}, {"audit": None}, {"failed": "all of it"}):
        told = {"version": 1, "size": "small", "agents": {MINE: done.findings[MINE] | edited}}
        (tmp_path / FINDINGS).write_text(json.dumps(told))
        refused = verify(tmp_path, trust=True, progress=False).refused
        assert "Expected tests and audit of" in " ".join(refused)
    for text in ("{", "[]", '{"version": 1, "size": "small", "agents": 3}'):
        (tmp_path / FINDINGS).write_text(text)
        with pytest.raises(InputError, match="to be written by"):
            verify(tmp_path, trust=True, progress=False)
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
    """Oracle: U = 10, B = 2, R = 4 is 3/4. A claim of 1 whose noise gives 7 scores at 10, one at a
    delta of 0.9 at its epsilon for the suite's, one of a narrower promise nowhere, and without any
    certificate at infinity."""
    _, runs, done = played
    one = problems()["tiny"]
    strict, loose = sorted(runs, key=lambda r: r.certificate.epsilon)
    false = replace(strict, certificate=replace(strict.certificate, epsilon=7.0))
    assert best_at([false], one, 1.0) is None
    assert best_at([false, loose], one, 10.0) is loose
    assert best_at([strict, loose], one, 1.0) is strict
    ledger = strict.certificate.ledger
    lax = certificate(ledger, claim=(0.1, 0.9), accountants=False)
    assert lax.holds
    assert one.counted(lax) == ledger.epsilon(1e-5) > 0.99
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
