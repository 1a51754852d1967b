"""Forged files: no traceback ever, and what is not what was written is not shown as if it were."""

import json
import shutil

import pytest

from dpbandit import InputError, cli
from dpbandit.report import page, write_report
from dpbandit.results.store import audit_hash, planned, read_audit
from dpbandit.studies import Sweep, run_sweep
from tests.report.forger import forge

SWEEP = {
    "replicas": 2,
    "horizons": [6],
    "environments": [{"id": "OJPricing"}],
    "agents": [{"id": "dp-ucb"}, {"id": "dp-moments"}],
    "audit": {"runs": 400, "horizon": 3},
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep")
    run_sweep(Sweep.of(SWEEP), out, backend="threading", progress=False)
    return out


@pytest.fixture
def report(swept, tmp_path, monkeypatch, capsys):
    """Run `report` on a forged copy: what was forged, exit code, stdout, stderr."""

    def run(seed):
        folder = tmp_path / str(seed)
        shutil.copytree(swept, folder)
        forged = forge(folder, seed)
        monkeypatch.setattr("sys.argv", ["dpbandit", "report", str(folder)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code or 0
        return *forged, code, *capsys.readouterr()

    return run


def _check(what, tells, code, out, errors):
    assert code in (0, 2), what
    told = [line for line in errors.splitlines() if "Left out:" in line or "Unfinished:" in line]
    assert len(errors.splitlines()) - len(told) == (code == 2), what
    assert len(errors) < 1200, what
    assert len(out) < 2000, what
    if tells:
        assert code == 2 or "Left out" in errors, f"{what} was shown"


def test_no_forged_file_gives_a_traceback(report, monkeypatch):
    """24 forgeries by a seeded mutator, most with a hash that fits; pages without their figures."""

    def save(self, folder, ending):
        folder.mkdir(exist_ok=True)
        (folder / f"x{ending}").touch()
        return folder / f"x{ending}"

    monkeypatch.setattr(page.Picture, "save", save)
    for seed in range(24):
        _check(*report(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1012))
def test_no_forged_file_gives_a_traceback_when_drawn(report, seed):
    _check(*report(seed))


def test_an_audit_that_was_edited_is_not_shown(swept, tmp_path):
    """Its verdict as it was wished for; with another hash, of another type or out of range."""
    folder = shutil.copytree(swept, tmp_path / "copy")
    file = next((folder / "audits").glob("*.json"))
    whole = json.loads(file.read_text())
    unsigned = {key: value for key, value in whole.items() if key != "hash"}
    read_audit(file)
    changes = [{"verdict": "fine"}, {"runs": -1}, {"eps_lower": "low"}, {"flagged": 0}]
    changes += [{"verdict": None}, {"env_kwargs": {}}, {"env_kwargs": {"horizon": 0}}]
    changes += [{"not_audited": "why", "config": {"epsilon": "x"}}, {"failure": "nan"}]
    for change in changes:
        document = {**whole, **change}
        if "verdict" not in change or change["verdict"] is None:
            document["hash"] = audit_hash(file.stem, {**unsigned, **change})
        file.write_text(json.dumps(document))
        with pytest.raises(InputError, match=r"it is damaged: resume the sweep \(--resume\)"):
            write_report(folder)


def test_audits_that_are_missing_or_stand_for_another_are_told(swept, tmp_path):
    """One that is copied over another would hide what that one found."""
    folder = shutil.copytree(swept, tmp_path / "copy")
    one, two = (folder / "audits").glob("*.json")
    shutil.copy(one, two)
    with pytest.raises(InputError, match=rf"Expected .*{two.stem}\.json as a sweep wrote it"):
        write_report(folder)
    two.unlink()
    with pytest.warns(UserWarning, match="^Unfinished: 1 of 2 audits are there; the sweep can be"):
        page = write_report(folder).page.read_text()
    assert "1 of 2 audits are there" in page


@pytest.mark.parametrize("key", ["../../secret", "0" * 15, "0" * 16 + "\n", "\0" * 16, 5, [], None])
def test_keys_of_a_plan_are_names_of_files(swept, tmp_path, key):
    (tmp_path / "sweep.json").write_text(
        json.dumps({**json.loads((swept / "sweep.json").read_text()), "audits": [key]})
    )
    with pytest.raises(InputError, match="damaged"):
        planned(tmp_path)
