"""Sweeps that go on where they stopped, and their command."""

import sys
import warnings
from dataclasses import fields, replace

import pytest

from dpbandit import Results, cli, compare
from dpbandit.agents import AGENTS, DPUCB, LinUCB
from dpbandit.base.files import cpu_of, provenance
from dpbandit.results.runs import describe
from dpbandit.results.store import read_runs, write_runs
from dpbandit.studies import Sweep, plan, run_sweep
from tests.each import each
from tests.studies.studies import many

HOW = {"progress": False, "backend": "threading", "resume": True}


def study(alpha, noise, epsilon, radius):
    return Sweep.of(
        {
            "horizons": [9],
            "replicas": 1,
            "epsilons": [epsilon],
            "environments": [
                {"id": "GLMBandit", "arguments": {"noise": noise, "dim": 2}},
                {"id": "GLMBandit", "label": "g", "grid": {"signal": [radius]}},
            ],
            "agents": [
                {"id": "linucb", "settings": {"alpha": alpha}},
                {"id": "dp-ucb", "grid": {"alpha": [alpha]}, "settings": {"refresh_every": 2}},
            ],
        }
    )


def test_1_and_1_0_are_the_same_setting():
    """In keys, hence in what is resumed, and in names; whole numbers where those are declared stay
    what they are, and so do words and flags."""
    one = plan(study(1, 2, 1, 3)).configurations
    other = plan(study(1.0, 2.0, 1.0, 3.0)).configurations
    assert [(c.key, c.name, c.setup.problem) for c in one] == [
        (c.key, c.name, c.setup.problem) for c in other
    ]
    assert one == other
    assert {type(c.setup.env_kwargs.get("dim", 1)) for c in one} == {int}
    twice = {"id": "linucb", "grid": {"alpha": [1, 1.0, 2]}}
    sweep = study(1, 1, 1, 1).model_copy(update={"agents": []})
    found = plan(Sweep.of({**sweep.model_dump(), "agents": [twice]})).configurations
    names = [c.name for c in found]
    assert names.count("linucb alpha=1.0") == 2
    assert describe(LinUCB(alpha=1)) == describe(LinUCB(alpha=1.0))
    assert repr(describe(DPUCB(epsilon=1, refresh_every=2))["refresh_every"]) == "2"
    assert describe(LinUCB(alpha="theory"))["alpha"] == "theory"


def test_1_and_1_0_are_the_same_run(tmp_path):
    """Comparisons that differ in nothing else have the same runs, which load as one."""
    for folder, one in (("a", 1), ("b", 1.0)):
        how = {"horizon": 9, "replicas": 2, "progress": False, "env_kwargs": {"noise": one}}
        compare("GLMBandit", {"x": LinUCB(alpha=one)}, **how).save(tmp_path / folder)
    a, b = (Results.load(tmp_path / name) for name in "ab")
    assert [run.key for run in a.runs] == [run.key for run in b.runs]
    assert len(Results.load(f"{tmp_path}/*/*.parquet").runs) == len(a.runs)


@each("name", AGENTS)
def test_settings_that_are_floats_stay_what_they_are(name):
    config = AGENTS[name]()
    settings = {field.name: getattr(config, field.name) for field in fields(config)}
    assert describe(config) == {"agent": type(config).__name__, **settings}


def _on_another_cpu(folder, cpu):
    file = next((folder / "blocks").iterdir())
    (run,) = read_runs(file)
    made_with = {**run.provenance, "cpu": cpu}
    if cpu is None:  # as older files have it
        made_with = {k: v for k, v in run.provenance.items() if k != "cpu"} | {"platform": "Old"}
    write_runs(file, [replace(run, provenance=made_with)])


@pytest.mark.parametrize(("cpu", "called"), [("z80 with 8 bits", "z80 with 8 bits"), (None, "Old")])
def test_going_on_with_another_type_of_cpu_is_told(tmp_path, cpu, called):
    run_sweep(many(3, replicas=1), tmp_path, **HOW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_sweep(many(3, replicas=2), tmp_path, **HOW)
    _on_another_cpu(tmp_path, cpu)
    with pytest.warns(UserWarning, match=f"made on .*{called}.*may differ in their last bits"):
        run_sweep(many(3, replicas=3), tmp_path, **HOW)


def test_the_type_of_cpu_is_more_than_its_architecture():
    """NumPy and BLAS choose code by what a processor can do."""
    assert cpu_of(provenance()) != provenance()["platform"]
    assert cpu_of(provenance()).startswith(provenance()["platform"].split()[-1])


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
