"""Folders of results, and temporary files, wherever the program that writes them is killed."""

import json
import os
import random
import signal
import time
from contextlib import contextmanager
from itertools import count

import pandas as pd
import pytest

from dpbandit import Results, compare
from dpbandit.base import (
    check_writable,
    files,
    tidy_folder,
    write_atomically,
    write_folder,
)
from tests.each import asserting, by_rota, refused

NAMES = ["a", "b"]


@contextmanager
def child(program):
    """Run a program in a process of its own, a copy of this one, which is gone afterwards."""
    number = os.fork()
    if number == 0:
        try:
            program()
        finally:
            os._exit(0)
    try:
        yield number
    finally:
        os.waitpid(number, 0)


def version(number):
    """Fill a folder with files that all hold this number."""

    def write(place):
        for name in NAMES:
            write_atomically(place / name, lambda partial: partial.write_text(str(number)))

    return write


def held(folder):
    """Return the numbers in the files of a folder that `version` filled, None for no file."""
    return [(folder / name).read_text() if (folder / name).exists() else None for name in NAMES]


def killed_at(step, program, done):
    """A program that kills itself before its so manyth change of the file system, and else notes
    that it is done."""
    changes = [(os, name) for name in ("rename", "replace", "unlink", "rmdir", "mkdir")]

    def run():
        steps = count()
        for module, name in [*changes, (files, "_exchange")]:
            change = getattr(module, name)

            def counted(*given, change=change, **how):
                if next(steps) == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return change(*given, **how)

            setattr(module, name, counted)
        program()
        done.touch()

    return run


WHERE = {
    "new": [{None}, {"2"}],
    "beside": [{"1"}, {"2"}],
    "current": [{"1"}, {"1", None}, {None}, {"2", None}, {"2"}],
    "no swap": [{"1"}, {"1", None}, {None}, {"2", None}, {"2"}],
}
"""Place of a written folder -> contents its files may have after a stop: the current folder
cannot be swapped, so there files may be missing, until the next run brings them."""


@pytest.mark.parametrize("where", by_rota(WHERE, 2, slow=False))
def test_a_folder_is_old_or_new_wherever_its_writer_is_killed(where, tmp_path, monkeypatch):
    """Killed before every change of the file system. Catches files that are written one by one, a
    folder that is moved away first, and notes or a subfolder that get lost with it. What is
    finished first by the next run is whole, and it leaves nothing temporary. Two of the four places
    are tried at a commit."""
    if where == "no swap":
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    others = [] if where == "new" else ["notes", "report"]
    for step in range(99):
        home, done = tmp_path / where / str(step), tmp_path / f"done {where} {step}"
        folder = home / "results"
        (home if where == "new" else folder).mkdir(parents=True)
        if others:
            write_folder(folder, version(1))
            (folder / "notes").touch()
            (folder / "report" / "page").mkdir(parents=True)
        monkeypatch.chdir(folder if where == "current" else home)
        with child(killed_at(step, lambda folder=folder: write_folder(folder, version(2)), done)):
            pass
        with asserting(f"step {step}"):
            assert {*held(folder)} in ([{"2"}] if done.exists() else WHERE[where])
            tidy_folder(folder)
            assert {*held(folder)} in [{"1"} if others else {None}, {"2"}]
            write_folder(folder, version(3))
            assert held(folder) == ["3"] * len(NAMES)
            assert sorted(os.listdir(folder)) == [*NAMES, *others]
            assert os.listdir(home) == ["results"]
            assert not others or (folder / "report" / "page").exists()
        if done.exists():
            break
    assert 5 < step < 98


def test_results_are_of_one_run_whenever_their_writer_is_killed(tmp_path):
    """Real results, written over each other again and again, and kill -9 at random moments: table,
    numbers and summary agree. Catches a new frame beside an old summary."""
    folder, rng = tmp_path / "d", random.Random(7)
    how = {"replicas": 2, "progress": False}
    both = [compare("GLMBandit", "greedy", horizon=horizon, **how) for horizon in (5, 9)]
    both[0].save(folder)

    def save():
        for number in count(1):
            both[number % 2].save(folder)

    for _ in range(5):
        with child(save) as writer:
            time.sleep(rng.uniform(0.02, 0.6))
            os.kill(writer, signal.SIGKILL)
        loaded = Results.load(folder)
        (horizon,) = {run.setup.horizon for run in loaded}
        assert set(pd.read_csv(folder / "summary.csv")["horizon"]) == {horizon}
        told = json.loads((folder / "results.json").read_text())
        assert told["env_kwargs"]["horizon"] == horizon
        assert (folder / "regret.png").read_bytes()[:4] == b"\x89PNG"
    both[1].save(folder)
    assert os.listdir(tmp_path) == ["d"]


def test_leftovers_go_but_not_what_somebody_is_writing(tmp_path):
    """A process that lives keeps its temporary file and folder; once it is killed the next one that
    writes there removes them. Catches a clean-up by name alone."""
    file, folder = tmp_path / "x.json", tmp_path / "d"

    def writes(partial):
        (partial / "a" if partial.is_dir() else partial).write_text("half")
        time.sleep(60)

    with (
        child(lambda: write_atomically(file, writes)) as one,
        child(lambda: write_folder(folder, writes)) as other,
    ):
        while len([path for path in tmp_path.rglob("*") if path.is_file()]) < 2:
            time.sleep(0.01)
        before = {*os.listdir(tmp_path)}
        assert len(before) == 2
        for tidy in (lambda: check_writable(file), lambda: tidy_folder(folder)):
            tidy()
            assert {*os.listdir(tmp_path)} == before
        for writer in (one, other):
            os.kill(writer, signal.SIGKILL)
    (tmp_path / ".notes").touch()
    check_writable(file)
    write_folder(folder, version(1))
    assert {*os.listdir(tmp_path)} == {".notes", "d"}
    (tmp_path / "file").touch()
    refused("Cannot write .*file: it is no folder", write_folder, tmp_path / "file", version(1))
