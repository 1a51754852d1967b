"""Sweeps: the same numbers however they are run, and nothing lost when they are stopped."""

import json
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpbandit import InputError, Results, compare
from dpbandit.agents import LinUCB, ShariffSheffetUCB
from dpbandit.base import processes
from dpbandit.results import store
from dpbandit.results.store import planned, read_runs
from dpbandit.studies import LastRound, Study, Sweep, plan, run as running, run_sweep
from dpbandit.studies.workers import HTTP
from tests.each import by_rota, in_turn, refused
from tests.studies.studies import TINY, many, same

ROOT = Path(__file__).parents[2]
HOW = {"progress": False, "backend": "threading", "resume": True}


@pytest.fixture
def stopping(monkeypatch):
    """Stop sweeps, as by Control-C, after so many blocks, and after so many more."""
    write = running.write_block

    def after(*numbers):
        left = [*numbers, 10**6]

        def written(folder, run):
            left[0] -= 1
            if left[0] < 0:
                left.pop(0)
                raise KeyboardInterrupt
            return write(folder, run)

        monkeypatch.setattr(running, "write_block", written)

    return after


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The tiny sweep, uninterrupted."""
    out = tmp_path_factory.mktemp("whole")
    done = run_sweep(Sweep.of(TINY), out, **HOW)
    assert (done.configurations, done.run, done.reused) == (30, 150, 0)
    return out


def test_a_sweep_is_its_comparisons_bit_for_bit(whole, tmp_path):
    """Oracle: `compare` with the same agents on the same problem; and configurations from Python,
    some of them, one of them twice. Twins by name are refused."""
    paper = ShariffSheffetUCB(alpha=2.0, calibration="paper", epsilon=0.5)
    kwargs = {"horizon": 40, "replicas": 5, "seed": 4, "progress": False}
    alone = compare("OJPricing", {"Lin": LinUCB(), "paper": paper}, **kwargs)
    found = Results.load(whole).where(problem="juice", horizon=40)
    private = "shariff-sheffet-ucb alpha=2.0 calibration=paper"
    named = [("Lin", np.inf), (private, 0.5), ("Uniform", 0.0), ("BestFixed", np.inf)]
    for run, (name, claim) in zip(alone.runs, named, strict=True):
        (other,) = found.where(agent=name, epsilon=claim).runs
        for what in ("marks", "replicas", "regret", "reward", "switches"):
            np.testing.assert_array_equal(getattr(run, what), getattr(other, what))
        assert other.certificate.epsilon == run.certificate.epsilon
    listed = plan(Sweep.of(TINY)).configurations[:3]
    study = Study(configurations=(*listed, listed[0]), replicas=5, name="by hand")
    done = run_sweep(study, tmp_path, **HOW)
    assert (done.configurations, done.run) == (3, 15)
    runs = {run.key: run for run in Results.load(whole).runs}
    for run in Results.load(tmp_path).runs:
        np.testing.assert_array_equal(run.regret, runs[run.key].regret)
    with pytest.raises(InputError, match="labels of their own"):
        Study(configurations=(listed[0], replace(listed[0], config=LinUCB(alpha=3.0))))
    long = "x" * 10_001  # which could not be read back
    refused("of at most 10,000", Study, configurations=[replace(listed[0], name=long)])
    refused("of at most 10,000", compare, "OJPricing", {long: LinUCB()}, horizon=2)


class Numbered(LastRound):
    """Measures the number of each replica."""

    def play(self, first, last):
        return replace(super().play(first, last), measures={"number": np.arange(first, last) / 2})


def test_the_last_round_alone_and_further_measures_are_kept(tmp_path):
    """Across blocks, and of fewer replicas later; regret is that of all rounds."""
    listed = plan(many(4, replicas=5)).configurations
    configurations = tuple(Numbered(one.setup, one.name, one.config) for one in listed)
    for replicas in (5, 3):
        study = Study(configurations=configurations, replicas=replicas)
        run_sweep(study, tmp_path, block=2, **HOW)
        found = {run.key: run for run in Results.load(tmp_path).runs}
        for one in listed:
            run, whole = found[one.key], one.play(0, replicas)
            assert run.marks.tolist() == [12]
            np.testing.assert_array_equal(run.regret, whole.regret[-1:])
            np.testing.assert_array_equal(run.measures["number"], np.arange(replicas) / 2)


def test_block_sizes_and_interruptions_change_nothing(whole, tmp_path, stopping):
    """A sweep that was stopped after 7 and after 20 more blocks, and resumed with another size of
    blocks, has the numbers of an uninterrupted one; so has one to which replicas are added."""
    stopping(7, 20)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run_sweep(Sweep.of(TINY), tmp_path / "a", block=2, **HOW)
    done = run_sweep(Sweep.of(TINY), tmp_path / "a", block=3, **HOW)
    assert (done.run, done.reused) == (105, 45)
    assert same(whole, tmp_path / "a")
    again = run_sweep(Sweep.of(TINY), tmp_path / "a", **HOW)
    assert (again.run, again.reused) == (0, 150)
    run_sweep(many(4, replicas=2), tmp_path / "b", **HOW)
    done = run_sweep(many(4, replicas=5), tmp_path / "b", **HOW)
    assert (done.run, done.reused) == (12, 8)
    run_sweep(many(4, replicas=5), tmp_path / "c", **HOW)
    assert same(tmp_path / "b", tmp_path / "c")


def test_corrupt_and_foreign_files_are_told_and_kept(whole, tmp_path):
    """Half a file, one changed number, somebody's files, half-written leftovers: what is not named
    as a block of this sweep is left alone, whatever it holds."""
    folder = shutil.copytree(whole, tmp_path / "copy")
    blocks = folder / "blocks"
    first, second, third, *_ = sorted(blocks.iterdir())
    first.write_bytes(first.read_bytes()[:-100])
    pd.DataFrame({"x": [1]}).to_parquet(blocks / "mine.parquet")
    (run,) = read_runs(second)
    regret = run.regret.copy()
    regret[-1, 0] += 1e-9  # a number that was never measured, under the old hash
    _forge(second, replace(run, regret=regret))
    (blocks / "notes.parquet").write_bytes(b"no parquet")
    (blocks / f".{third.stem}.123.parquet").write_bytes(b"half")
    with pytest.warns(UserWarning, match="Left out|Unfinished") as said:
        Results.load(folder)
    assert len(said) == 5
    assert "Unfinished: 140 of 150 replicas are there" in str(said[-1].message)
    done = run_sweep(Sweep.of(TINY), folder, **HOW)
    corrupt = {path.with_name(f"{path.name}.corrupt") for path in (first, second)}
    assert {*done.found.corrupt} == corrupt
    assert all(path.exists() for path in corrupt)
    assert [path.name for path in done.found.foreign] == ["mine.parquet", "notes.parquet"]
    assert (blocks / "notes.parquet").read_bytes() == b"no parquet"
    assert (done.run, done.reused) == (10, 140)
    with pytest.warns(UserWarning, match="mine|notes"):
        assert same(whole, folder)


def test_small_blocks_are_packed_and_none_is_lost(whole, tmp_path, monkeypatch, stopping):
    """60 blocks in packs of 7, killed once between a pack and the end of its blocks; a pack that is
    damaged is moved aside and played again, one of another sweep stays. Single blocks are few when
    a sweep goes on, however often it was killed, and in the end."""
    for module in (running, store):
        monkeypatch.setattr(module, "PACKED", 7)
    monkeypatch.setattr(store, "UNPACKED", 2)
    how, kept, unlink = {**HOW, "block": 3}, [], Path.unlink

    def killed(path, **more):
        if path.suffix == ".parquet" and path.name[0] != "." and not kept:
            kept.append(path)
            raise KeyboardInterrupt
        unlink(path, **more)

    monkeypatch.setattr(Path, "unlink", killed)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(Sweep.of(TINY), tmp_path, **how)
    assert kept[0].exists()
    done = run_sweep(Sweep.of(TINY), tmp_path, **how)
    assert 7 * 2 <= done.reused <= 7 * 3
    packs = sorted((tmp_path / "blocks").glob("pack-*.parquet"))
    assert len(packs) >= 8
    assert len([*(tmp_path / "blocks").iterdir()]) <= len(packs) + 2
    assert same(tmp_path, whole)
    other = tmp_path / "stopped"
    for _ in range(3):
        stopping(5)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(Sweep.of(TINY), other, **how)
        single = [file for file in (other / "blocks").iterdir() if not store.is_pack(file)]
        assert len(single) <= 2 + 5
    packs[0].write_bytes(packs[0].read_bytes()[:-9])
    done = run_sweep(Sweep.of(TINY), tmp_path, **how)
    assert done.found.corrupt == [packs[0].with_name(f"{packs[0].name}.corrupt")]
    few = {**TINY, "agents": TINY["agents"][:1]}
    assert run_sweep(Sweep.of(few), tmp_path, **how).run == 0
    assert all(pack.exists() for pack in packs[1:])
    assert run_sweep(Sweep.of(TINY), tmp_path, **how).run == 0
    assert same(tmp_path, whole)


def _forge(path, run):
    """Replace the numbers of a stored block by those of `run`, and keep its metadata."""
    metadata = parquet.read_schema(path).metadata
    table = pa.Table.from_pandas(store.frame_of([run]), preserve_index=False)
    parquet.write_table(table.replace_schema_metadata(metadata), path)


def test_blocks_under_wrong_names_and_of_other_sweeps_are_foreign(tmp_path):
    """And nothing of them is loaded; what would be overwritten is moved aside first, each time."""
    run_sweep(many(3, replicas=2), tmp_path, **HOW)
    first, second, _ = sorted((tmp_path / "blocks").iterdir())
    renamed = second.rename(second.with_name(f"{'0' * 16}-000000-000001.parquet"))
    for count in (1, 2):
        _as_format(first, 3)
        done = run_sweep(many(3, replicas=2), tmp_path, **HOW)
        assert done.found.foreign == [renamed]
        assert len(done.found.corrupt) == 1
        assert len(list((tmp_path / "blocks").glob(f"{first.name}*.corrupt"))) == count
    other = Sweep.of({**many(3, replicas=2).model_dump(), "agents": [{"id": "greedy"}]})
    done = run_sweep(other, tmp_path, **HOW)
    assert len(done.found.foreign) >= 1
    with pytest.warns(UserWarning, match="does not ask for"):
        loaded = Results.load(tmp_path)
    assert {run.name for run in loaded.runs} == {"greedy", "Uniform", "BestFixed"}


def _as_format(path, number):
    """The file as another version of the program may write it."""
    table = parquet.read_table(path)
    metadata = table.schema.metadata[b"dpbandit"].replace(b'"format": 2', b'"format": %d' % number)
    parquet.write_table(table.replace_schema_metadata({b"dpbandit": metadata}), path)


@pytest.mark.parametrize(
    ("how", "sentence"), [
        ({"backend": "lokky"}, "did you mean loky"), ({"jobs": 0}, "jobs=0"),
        ({"block": 0}, "block=0"), ({"scheduler": "tcp://x:1"}, "scheduler='tcp://x:1' only"),
        ({}, "hold no blocks yet"), ({"out": ""}, "out='' to name a folder"),
    ],
)  # fmt: skip
def test_bad_input(whole, how, sentence):
    refused(sentence, run_sweep, Sweep.of(TINY), **{"out": whole, "progress": False, **how})


def test_what_another_program_made_is_refused_and_stays(whole, tmp_path, monkeypatch):
    """A folder of another version, numbers of another source, processor's library or Python, and
    what workers of another version send, as on a cluster."""
    file = tmp_path / "sweep.json"
    document = json.loads((whole / "sweep.json").read_text())
    assert document["format"] == 1
    later = json.dumps({**document, "format": 2})
    file.write_text(later)
    for ask in (planned, lambda folder: run_sweep(Sweep.of(TINY), folder, **HOW)):
        refused(r"sweep.json in format=1, .* got format=2: ", ask, tmp_path)
    assert file.read_text() == later
    ours = running.provenance()
    monkeypatch.setattr("dpbandit.running.compare.provenance", lambda: {**ours, "source": "x"})
    refused("what a worker sends", run_sweep, many(3), tmp_path / "workers", **HOW)
    assert not list(tmp_path.glob("workers/blocks/*"))
    for part in ("dpbandit", "source", "numpy", "scipy"):
        other = {**ours, part: "another"}
        monkeypatch.setattr(running, "provenance", lambda other=other: other)
        refused(f"made with {part} another", run_sweep, Sweep.of(TINY), whole, **HOW)


def test_audits_stand_beside_the_runs(tmp_path):
    """Each private agent once for an environment, or the reason why not; not twice on resuming,
    unless its file is no longer what was written: that is moved aside and told."""
    values = {**TINY, "replicas": 1, "horizons": [6], "environments": TINY["environments"][:1]}
    values |= {"epsilons": [1.0], "audit": {"runs": 400, "horizon": 4}}
    run_sweep(Sweep.of(values), tmp_path, **HOW)
    (file,) = (tmp_path / "audits").iterdir()
    document = json.loads(file.read_text())
    assert document["eps_lower"] <= document["certified_epsilon"]
    assert document["agent"] == "shariff-sheffet-ucb alpha=2.0 calibration=paper"
    made = file.stat().st_mtime_ns
    done = run_sweep(Sweep.of(values), tmp_path, **HOW)
    assert file.stat().st_mtime_ns == made
    assert not done.found.corrupt
    whole = file.read_bytes()
    bound, timed = json.dumps(document["eps_lower"]), {"seconds": 0, "hash": 0}
    damage = whole.replace(f'"eps_lower": {bound}'.encode(), b'"eps_lower": 9')
    assert damage != whole
    file.write_bytes(damage)
    (aside,) = run_sweep(Sweep.of(values), tmp_path, **HOW).found.corrupt
    assert aside.read_bytes() == damage
    again = json.loads(file.read_text())
    assert {**again, **timed} == {**document, **timed}


@in_turn(1)
def test_memory_does_not_grow_with_the_sweep(tmp_path):
    """Peak of four times as many configurations: not 1.4 times as much (measured: 1.0 times; 1.6
    where all runs are kept). The first sweep is not measured: it imports libraries."""
    peaks = []
    for number, configurations in enumerate((3, 4, 16)):
        alphas = [round(0.1 * i, 1) for i in range(1, configurations - 1)]
        values = {**many(3).model_dump(), "horizons": [150], "replicas": 100}
        values["agents"] = [{"id": "linucb", "grid": {"alpha": alphas}}]
        out = tmp_path / str(number)
        if number:
            tracemalloc.start()
        run_sweep(Sweep.of(values), out, **HOW)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.4 * peaks[1]


@pytest.mark.parametrize("backend", by_rota(["loky", "dask"], 2))
def test_many_configurations_interrupted_twice(tmp_path, stopping, backend, monkeypatch):
    """40 x 20 replicas on two workers, Dask as a cluster of processes reached by its address, on a
    machine where somebody else has its usual port; stopped after 10 and 40 more blocks."""
    run_sweep(many(40), tmp_path / "whole", **HOW)
    monkeypatch.setattr(processes, "_START_SECONDS", -1.0)  # however short the run
    stopping(10, 40)
    how = {**HOW, "backend": backend, "jobs": 2, "block": 10}
    with ExitStack() as stack:
        if backend == "dask":
            from distributed import LocalCluster

            taken = stack.enter_context(socket.socket())
            with suppress(OSError):  # taken indeed
                taken.bind(("0.0.0.0", 8787))
                taken.listen()
            silent_options = {"dashboard_address": None, "scheduler_kwargs": HTTP}
            cluster = LocalCluster(n_workers=2, threads_per_worker=1, **silent_options)
            how["scheduler"] = stack.enter_context(cluster).scheduler_address
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                run_sweep(many(40), tmp_path / "parts", **how)
        done = run_sweep(many(40), tmp_path / "parts", **how)
    assert (done.run, done.reused) == (300, 500)
    assert same(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path):
    """kill -9 between 0.05 and 0.8 s after the first block appears: every file is whole, what was
    written stays, and the end is the uninterrupted sweep bit for bit."""
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(
        "replicas = 70\nhorizons = [600]\nepsilons = [0.5, 1.0, 2.0]\n"
        '[[environments]]\nid = "OJPricing"\n'
        '[[agents]]\nid = "dp-ucb"\n[[agents]]\nid = "linucb"\n'
    )
    out, rng = tmp_path / "out", random.Random(5)
    command = [sys.executable, "-m", "dpbandit", "sweep", str(sweep), "--out", str(out)]
    command += ["--resume", "--block", "1"]
    kept = set()
    for _ in range(2):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        patience = time.monotonic() + 60
        while not set(out.glob("blocks/*.parquet")) - kept and process.poll() is None:
            assert time.monotonic() < patience
            time.sleep(0.02)
        time.sleep(rng.uniform(0.05, 0.8))
        process.kill()
        assert process.wait() == -signal.SIGKILL  # it was not done yet
        files = {file for file in out.glob("blocks/*.parquet") if not file.name.startswith(".")}
        assert kept <= files
        assert all(read_runs(file) for file in files - kept)  # the others by the sweep, in the end
        kept = files
    done = run_sweep(Sweep.read(sweep), out, **HOW)
    assert done.reused == len(kept)
    run_sweep(Sweep.read(sweep), tmp_path / "whole", **HOW)
    assert same(tmp_path / "whole", out)
