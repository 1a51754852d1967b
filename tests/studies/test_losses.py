"""What a sweep says when it loses its driver, a worker, a cluster or its folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from pathlib import Path
from warnings import catch_warnings

import pytest

from dpbandit import InputError, cli
from dpbandit.studies import Sweep, run as running, run_sweep
from dpbandit.studies.run import tell_of_one_thread, workers
from tests.studies.studies import many

ROOT = Path(__file__).parents[2]
ORPHAN = """
import os, sys, time
from dpbandit.studies.run import workers

class Last:
    def __reduce__(self):
        return (exec, ("import os, time; parent = os.getppid()\\n"
                       f"while not os.path.exists({sys.argv[1]!r}): time.sleep(0.01)\\n"
                       "os.kill(parent, 9)\\nwhile os.getppid() == parent: time.sleep(0.01)",))

def task(path):
    if path:
        open(path, "w").close()
    time.sleep(600)

with workers("loky", 2, None) as run:
    list(run(task, [(sys.argv[1],), (Last(),)]))
"""


def test_workers_end_with_a_driver_that_is_killed(tmp_path):
    """One is at work; the other kills the driver as it unpickles its first task, which begins after
    that: their standard output, which they share with the driver, is closed long before the ten
    minutes that a task takes."""
    how = {"cwd": ROOT, "stdout": subprocess.PIPE, "start_new_session": True}
    process = subprocess.Popen([sys.executable, "-c", ORPHAN, tmp_path / "begun"], **how)
    try:
        process.communicate(timeout=100)
        assert process.returncode == -signal.SIGKILL
        assert (tmp_path / "begun").exists()
    finally:
        with suppress(ProcessLookupError):  # nobody is left
            os.killpg(process.pid, signal.SIGKILL)


def _killed(number):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_one_sentence():
    with (
        workers("loky", 2, None) as run,
        pytest.raises(InputError, match=r"A worker process was killed.* go on with --resume\.$"),
    ):
        list(run(_killed, [(0,), (1,)]))


class Cancelled(Exception):
    """As Dask raises it."""

    __module__ = "distributed.client"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (Cancelled("reason: scheduler-connection-lost.\nPlease check"), "cluster was lost"),
        (TimeoutError("DaskDistributedBackend has no worker after 10 seconds"), "has no workers"),
        (BrokenExecutor("a worker\nended"), "worker process was killed"),
        (MemoryError("Unable to allocate 80. GiB"), "Not enough memory .*80. GiB"),
    ],
    ids=["scheduler", "no workers", "executor", "memory"],
)
def test_every_loss_names_the_remedy(error, sentence):
    def lost():
        raise error

    with (
        workers("threading", 1, None) as run,
        pytest.raises(InputError, match=f"{sentence}.* --resume") as told,
    ):
        list(run(lost, [()]))
    assert "\n" not in str(told.value)


def test_what_a_task_raises_is_no_loss():
    def wrong():
        raise ZeroDivisionError

    with workers("threading", 1, None) as run, pytest.raises(ZeroDivisionError):
        list(run(wrong, [()]))


@pytest.mark.parametrize("scheduler", ["tls://127.0.0.1:9", "inproc://x", "x"])
def test_schedulers_of_every_kind_that_cannot_be_reached(scheduler):
    """Each raises an error of another type in Dask, some without a word."""
    with (
        pytest.raises(InputError, match=f"reach the Dask scheduler at '{scheduler}': .*\\w"),
        workers("dask", 1, scheduler),
    ):
        pass


@pytest.mark.parametrize(
    ("after", "gone", "left"),
    [
        (2, ".", "0 of 2 files"),
        (3, ".", "0 of 3"),
        (3, "blocks", "0 of 3"),
        (0, ".", "disappeared"),
    ],
)
def test_a_folder_that_disappears_is_no_success(tmp_path, monkeypatch, after, gone, left):
    """Deleted before the first, before the last and after the last of three blocks: nothing is made
    anew in its place, and how much is left is told."""
    write, blocks = running.write_block, []

    def deleting(folder, run):
        if after > len(blocks):
            blocks.append(write(folder, run))
        if after == len(blocks):
            shutil.rmtree(folder / gone)
        return blocks[-1]

    check = running.Found.check_folder
    out = tmp_path / "out"
    if after == 0:
        monkeypatch.setattr(
            running.Found,
            "check_folder",
            lambda self, folder: (shutil.rmtree(folder), check(self, folder)),
        )
    monkeypatch.setattr(running, "write_block", deleting)
    with pytest.raises(InputError, match=f"{left}.* --resume"):
        run_sweep(many(3, replicas=1), out, progress=False, backend="threading")
    assert out.exists() == (gone != ".")


@pytest.mark.parametrize("place", ["blocks", "audits", "sweep.json"])
@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, os.mkfifo])
def test_a_folder_that_holds_something_else_is_told_before_the_first_round(
    tmp_path, monkeypatch, place, make
):
    """Files where folders are wanted, folders and pipes where files are."""
    make(tmp_path / place)
    played = []
    monkeypatch.setattr(running.Configuration, "play", lambda *_: played.append(1))
    values = {**many(3, replicas=1).model_dump(), "audit": {"runs": 400, "horizon": 2}}
    values["agents"] = [{"id": "dp-ucb"}]
    fine = (make is Path.mkdir) == (place != "sweep.json") and make is not os.mkfifo
    with pytest.raises(InputError if not fine else AttributeError, match=r"Cannot|NoneType"):
        run_sweep(Sweep.of(values), tmp_path, progress=False, backend="threading")
    assert bool(played) == fine


SWEEP = (
    'horizons = [9]\nreplicas = 2\n[[environments]]\nid = "OJPricing"\n[[agents]]\nid = "linucb"\n'
)


def _command(tmp_path, monkeypatch, *words):
    (tmp_path / "sweep.toml").write_text(SWEEP)
    words = ["sweep", str(tmp_path / "sweep.toml"), "--out", str(tmp_path / "out"), *words]
    monkeypatch.setattr(sys, "argv", ["dpbandit", *words, "--backend", "threading"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code or 0


def test_control_c_names_the_way_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(running, "write_block", lambda *_: signal.raise_signal(signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert _command(tmp_path, monkeypatch) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    told = "what is written is kept, go on with --resume.\ndpbandit: interrupted.\n"
    assert capsys.readouterr() == ("", f"dpbandit: {told}")


def test_without_a_terminal_every_block_is_a_line(tmp_path, monkeypatch, capsys):
    """In a log file there is no bar, and yet it says how far the sweep is; a terminal has a bar."""
    assert _command(tmp_path, monkeypatch, "--block", "1") == 0
    *lines, last = capsys.readouterr().err.splitlines()
    assert len(lines) == 5
    assert last == "6 of 6 replicas: BestFixed on OJPricing, 9 rounds"
    shutil.rmtree(tmp_path / "out")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert _command(tmp_path, monkeypatch) == 0
    assert capsys.readouterr().err == ""


def test_a_cluster_that_is_not_used_is_told():
    """joblib plays all tasks in the driver where it counts one thread, and says nothing."""

    class Cluster:
        def __init__(self, *threads):
            self.ncores = lambda: dict(enumerate(threads))

    with pytest.warns(
        UserWarning, match="The Dask cluster has one thread: blocks are played in th"
    ):
        tell_of_one_thread(Cluster(1))
    for threads in ((), (2,), (1, 1)):  # nobody yet, who may come; two
        with catch_warnings(action="error"):
            tell_of_one_thread(Cluster(*threads))


@pytest.mark.slow
def test_a_dask_scheduler_that_is_killed(tmp_path):
    """A cluster of three processes, whose scheduler is killed in the middle of the tasks."""
    from distributed import Client

    file = tmp_path / "scheduler.json"
    how = {"cwd": ROOT, "stderr": subprocess.DEVNULL, "start_new_session": True}

    def started(part, *words):
        command = [sys.executable, "-m", f"distributed.cli.dask_{part}", "--no-dashboard", *words]
        return subprocess.Popen(command, **how)

    scheduler = started("scheduler", "--scheduler-file", file, "--host", "127.0.0.1", "--port", "0")
    worker = None
    try:
        while not (file.exists() and file.read_text()):
            assert scheduler.poll() is None
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        worker = started("worker", address, "--nworkers", "2", "--nthreads", "1")
        with Client(address) as client:
            client.wait_for_workers(2)  # with one thread joblib plays in this process
        with workers("dask", 2, address) as run:
            done = run(time.sleep, [(0.2,)] * 200)
            next(done)
            scheduler.kill()
            with pytest.raises(InputError, match="cluster was lost"):
                list(done)
    finally:
        for process in (scheduler, worker):
            if process is not None:  # a worker without its scheduler may ignore a polite request
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
