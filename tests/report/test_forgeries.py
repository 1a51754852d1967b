"""Forged files: no traceback ever, and what is not what was written is not shown as if it were."""

import json
import shutil

import pytest

from dpbandit.report import page, write_report
from dpbandit.results.store import audit_hash, planned, read_audit
from dpbandit.studies import Sweep, run_sweep
from tests.each import by_rota, each, refused
from tests.report.forger import forge

SWEEP = {
    "replicas": 2, "horizons": [6], "environments": [{"id": "OJPricing"}],
    "agents": [{"id": "dp-ucb"}, {"id": "dp-moments"}], "audit": {"runs": 400, "horizon": 3},
}  # fmt: skip


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep")
    run_sweep(Sweep.of(SWEEP), out, backend="threading", progress=False)
    return out


@pytest.fixture
def check(swept, tmp_path, run):
    """Make the report of a forged copy: one sentence at most, and what its hash tells is told."""

    def checked(seed):
        folder = shutil.copytree(swept, tmp_path / str(seed))
        what, tells = forge(folder, seed)
        code, out, errors = run("report", folder)
        said = errors.splitlines()
        told = [line for line in said if "Left out:" in line or "Unfinished:" in line]
        assert code in (0, 2), what
        assert len(said) - len(told) == (code == 2), what
        assert len(errors) < 1200, what
        assert len(out) < 2000, what
        assert not tells or code == 2 or "Left out" in errors, f"{what} was shown"

    return checked


def test_no_forged_file_gives_a_traceback(check, monkeypatch):
    """24 forgeries by a seeded mutator, most with a hash that fits; pages without their figures."""

    def save(self, folder, ending):
        folder.mkdir(exist_ok=True)
        (folder / f"x{ending}").touch()
        return folder / f"x{ending}"

    monkeypatch.setattr(page.Picture, "save", save)
    for seed in range(24):
        check(seed)


@pytest.mark.parametrize("seed", by_rota(range(1000, 1012), 4))
def test_no_forged_file_gives_a_traceback_when_drawn(check, seed):
    check(seed)


def test_audits_that_were_edited_or_stand_for_another_are_told(swept, tmp_path):
    """A verdict as it was wished for, with another hash, of another type or out of range; a copy
    over another, which would hide what that one found; and one that is missing."""
    folder = shutil.copytree(swept, tmp_path / "copy")
    one, two = (folder / "audits").glob("*.json")
    whole = json.loads(one.read_text())
    unsigned = {key: value for key, value in whole.items() if key != "hash"}
    read_audit(one)
    changes = [{"verdict": "fine"}, {"runs": -1}, {"eps_lower": "low"}, {"flagged": 0}]
    changes += [{"verdict": None}, {"env_kwargs": {}}, {"env_kwargs": {"horizon": 0}}]
    changes += [{"not_audited": "why", "config": {"epsilon": "x"}}, {"failure": "nan"}]
    for change in changes:
        document = {**whole, **change}
        if "verdict" not in change or change["verdict"] is None:
            document["hash"] = audit_hash(one.stem, {**unsigned, **change})
        one.write_text(json.dumps(document))
        refused(r"it is damaged: resume the sweep \(--resume\)", write_report, folder)
    one.write_text(json.dumps(whole))
    shutil.copy(one, two)
    refused(rf"Expected .*{two.stem}\.json as a sweep wrote it", write_report, folder)
    two.unlink()
    with pytest.warns(UserWarning, match="^Unfinished: 1 of 2 audits are there; the sweep can be"):
        page = write_report(folder).page.read_text()
    assert "1 of 2 audits are there" in page


@each("key", ["../../secret", "0" * 15, "0" * 16 + "\n", "\0" * 16, 5, [], None])
def test_keys_of_a_plan_are_names_of_files(swept, tmp_path, key):
    plan = json.loads((swept / "sweep.json").read_text())
    (tmp_path / "sweep.json").write_text(json.dumps({**plan, "audits": [key]}))
    refused("damaged", planned, tmp_path)
