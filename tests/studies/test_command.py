"""`dpbandit sweep` on the command line."""

import sys

import pytest

from dpbandit import cli

SWEEP = (
    'horizons = [9]\nreplicas = 1\n[[environments]]\nid = "OJPricing"\n[[agents]]\nid = "linucb"\n'
)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command on a small sweep: exit code, stdout, stderr."""
    file = tmp_path / "sweep.toml"
    file.write_text(SWEEP)

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["dpbandit", "sweep", *map(str, [file, *words])])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code or 0, *capsys.readouterr()

    return command


def test_many_foreign_files_are_a_number_and_the_first_few(run, tmp_path):
    for number in range(84):
        (tmp_path / "blocks" / f"{number:02d}.parquet").parent.mkdir(exist_ok=True)
        (tmp_path / "blocks" / f"{number:02d}.parquet").touch()
    code, out, _ = run("--out", tmp_path, "--resume", "--backend", "threading")
    assert code == 0
    (line,) = [line for line in out.splitlines() if "left alone" in line]
    assert line.endswith("02.parquet and 81 more")
    assert line.count("parquet") == 3


def test_no_folder_is_not_the_current_folder(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, errors = run("--out", "")
    assert code == 2
    assert "Expected out='' to name a folder" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.toml"]
