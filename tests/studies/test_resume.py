"""What is the same run, and what is told of another, where a sweep goes on."""

import warnings
from dataclasses import fields, replace

import pytest

from dpbandit import Results, compare
from dpbandit.agents import AGENTS, DPUCB, LinUCB
from dpbandit.base.files import cpu_of, provenance
from dpbandit.results.runs import describe
from dpbandit.results.store import read_runs, write_runs
from dpbandit.studies import Sweep, plan, run_sweep
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


def test_1_and_1_0_are_the_same_setting(tmp_path):
    """In keys, hence in what is resumed and loaded, and in names; whole numbers where those are
    declared stay what they are, and so do words, flags and defaults."""
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
    assert [c.name for c in found].count("linucb alpha=1.0") == 2
    assert describe(LinUCB(alpha=1)) == describe(LinUCB(alpha=1.0))
    assert repr(describe(DPUCB(epsilon=1, refresh_every=2))["refresh_every"]) == "2"
    assert describe(LinUCB(alpha="theory"))["alpha"] == "theory"
    for kind in AGENTS.values():
        settings = {field.name: getattr(kind(), field.name) for field in fields(kind)}
        assert describe(kind()) == {"agent": kind.__name__, **settings}
    for folder, number in (("a", 1), ("b", 1.0)):
        how = {"horizon": 9, "replicas": 2, "progress": False, "env_kwargs": {"noise": number}}
        compare("GLMBandit", {"x": LinUCB(alpha=number)}, **how).save(tmp_path / folder)
    a, b = (Results.load(tmp_path / name) for name in "ab")
    assert [run.key for run in a.runs] == [run.key for run in b.runs]
    assert len(Results.load(f"{tmp_path}/*/*.parquet").runs) == len(a.runs)


@pytest.mark.parametrize("older", [False, True])
def test_going_on_with_another_type_of_cpu_is_told(tmp_path, older):
    """NumPy and BLAS choose code by what a processor can do: more than by its architecture, which
    is what older files have."""
    run_sweep(many(3, replicas=1), tmp_path, **HOW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_sweep(many(3, replicas=2), tmp_path, **HOW)
    file = next((tmp_path / "blocks").iterdir())
    (run,) = read_runs(file)
    made_with = {**run.provenance, "cpu": "z80"}
    if older:
        made_with = {**run.provenance, "platform": "Old"}
        del made_with["cpu"]
    write_runs(file, [replace(run, provenance=made_with)])
    told = f"made on .*{'Old' if older else 'z80'}.*may differ in their last bits"
    with pytest.warns(UserWarning, match=told):
        run_sweep(many(3, replicas=3), tmp_path, **HOW)
    assert cpu_of(provenance()) != provenance()["platform"]
    assert cpu_of(provenance()).startswith(provenance()["platform"].split()[-1])


def test_many_foreign_files_are_a_number_and_the_first_few(sweep, tmp_path):
    blocks = tmp_path / "out" / "blocks"
    blocks.mkdir(parents=True)
    for number in range(84):
        (blocks / f"{number:02d}.parquet").touch()
    code, out, _ = sweep("--resume")
    assert code == 0
    (line,) = [line for line in out.splitlines() if "left alone" in line]
    assert line.endswith("02.parquet and 81 more")
    assert line.count("parquet") == 3
