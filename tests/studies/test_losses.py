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

import pytest

from dpbandit import InputError
from dpbandit.studies import Sweep, run as running, run_sweep
from dpbandit.studies.workers import workers
from tests.each import each, in_turn, refused
from tests.studies.studies import many

ROOT = Path(__file__).parents[2]
ORPHAN = """
import os, sys, time
from dpbandit.studies.workers import workers

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


@in_turn(0)
def test_workers_end_with_a_driver_that_is_killed(tmp_path):
    """A worker that runs a task of ten minutes ends once the driver is killed, so that the standard
    output which they share is closed. The other worker kills it as it unpickles its first task."""
    how = {"cwd": ROOT, "stdout": subprocess.PIPE, "start_new_session": True}
    process = subprocess.Popen([sys.executable, "-c", ORPHAN, tmp_path / "begun"], **how)
    try:
        process.communicate(timeout=100)
        assert process.returncode == -signal.SIGKILL
        assert (tmp_path / "begun").exists()
    finally:
        with suppress(ProcessLookupError):  # nobody is left
            os.killpg(process.pid, signal.SIGKILL)


class Cancelled(Exception):
    """As Dask raises it."""

    __module__ = "distributed.client"


def killed(number):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_one_sentence():
    says = r"A worker process was killed.* go on with --resume\.$"
    with workers("loky", 2, None) as run, pytest.raises(InputError, match=says):
        list(run(killed, [(0,), (1,)]))


@each(
    ("error", "sentence"),
    [
        (Cancelled("reason: scheduler-connection-lost.\nPlease check"), "cluster was lost"),
        (TimeoutError("Only 0/1 workers arrived after 10"), "has no workers"),
        (BrokenExecutor("a worker\nended"), "worker process was killed"),
        (MemoryError("Unable to allocate 80. GiB"), "Not enough memory .*80. GiB"),
        (ZeroDivisionError("a bug"), "^a bug$"),
    ],
)
def test_every_loss_names_the_remedy(error, sentence):
    """A worker that is killed, too; what a task itself raises is no loss."""

    def lost():
        raise error

    lost_for_good = InputError, f"{sentence}.* --resume"
    kind, says = (type(error), sentence) if sentence[0] == "^" else lost_for_good
    with workers("threading", 1, None) as run, pytest.raises(kind, match=says) as told:
        list(run(lost, [()]))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("scheduler", ["tls://127.0.0.1:9", "inproc://x", "x"])
def test_schedulers_of_every_kind_that_cannot_be_reached(scheduler):
    """Each raises an error of another type in Dask, some without a word."""
    with (
        pytest.raises(InputError, match=f"reach the Dask scheduler at '{scheduler}': .*\\w"),
        workers("dask", 1, scheduler),
    ):
        pass


@pytest.mark.parametrize(
    ("after", "gone", "left"), [
        (2, ".", "0 of 2 files"), (3, ".", "0 of 3"), (3, "blocks", "0 of 3"),
        (0, ".", "disappeared"),
    ],
)  # fmt: skip
def test_a_folder_that_disappears_is_no_success(tmp_path, monkeypatch, after, gone, left):
    """Deleted before the first, before the last and after the last of three blocks: nothing is made
    anew in its place, and how much is left is told."""
    write, blocks, out = running.write_block, [], tmp_path / "out"

    def deleting(folder, run):
        if after > len(blocks):
            blocks.append(write(folder, run))
        if after == len(blocks):
            shutil.rmtree(folder / gone)
        return blocks[-1]

    check = running.Found.check_folder

    def deleted(found, folder):
        shutil.rmtree(folder)
        check(found, folder)

    if after == 0:
        monkeypatch.setattr(running.Found, "check_folder", deleted)
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


def test_control_c_names_the_way_on(sweep, tmp_path, monkeypatch):
    """And how far the sweep is: in a log file every block is a line, a terminal has a bar."""
    code, _, errors = sweep("--block", "1")
    *lines, last = errors.splitlines()
    assert (code, len(lines)) == (0, 5)
    assert last == "6 of 6 replicas: BestFixed on OJPricing, 9 rounds"
    shutil.rmtree(tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr.isatty", lambda: True)
        assert sweep()[::2] == (0, "")
    shutil.rmtree(tmp_path / "out")
    monkeypatch.setattr(running, "write_block", lambda *_: signal.raise_signal(signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    told = "what is written is kept, go on with --resume.\ndpbandit: interrupted.\n"
    try:
        assert sweep() == (130, "", f"dpbandit: {told}")
    finally:
        signal.signal(signal.SIGINT, before)


UNGUARDED = """
from dpbandit.base import check_guarded
from dpbandit.studies import Sweep, run_sweep
from tests.studies.studies import TINY

try:
    run_sweep(Sweep.of(TINY), "sweep", backend="dask", jobs=2)
except ValueError as error:
    print(error)
if __name__ == "__main__":
    check_guarded("what stands below")
    print("fine")
"""


def test_a_script_that_new_processes_would_run_again(tmp_path):
    """One sentence in place of the tracebacks of all workers, before any is started."""
    script = tmp_path / "mine.py"
    script.write_text(UNGUARDED)
    how = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "text": True}
    said = subprocess.run([sys.executable, script], capture_output=True, check=True, **how)
    wanted = f"in line 7 of {script} to stand below `if __name__ == '__main__':`"
    first, last = said.stdout.splitlines()
    assert wanted in first
    assert (last, said.stderr, [*tmp_path.iterdir()]) == ("fine", "", [script])


def slow(number, victim, folder):
    """Wait, and the first time kill this process, or `victim` if it is another one."""
    if victim and not (folder / "once").exists():
        (folder / "once").touch()
        os.kill(victim, signal.SIGKILL)
    time.sleep(0.2)
    return number


@pytest.mark.slow
def test_a_dask_scheduler_that_is_killed(tmp_path):
    """In the middle of the tasks, after a worker, whose tasks other workers play again."""
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
            client.wait_for_workers(2)
        with workers("dask", 2, address) as run:
            victim = next(run(os.getpid, [()]))
            played = run(slow, [(n, victim if n == 3 else 0, tmp_path) for n in range(40)])
            with pytest.warns(UserWarning, match="1 of 2 workers of the Dask cluster were lost"):
                assert sorted(played) == [*range(40)]
            done = run(time.sleep, [(0.2,)] * 200)
            next(done)
            scheduler.kill()
            refused("cluster was lost", list, done)
    finally:
        for process in (scheduler, worker):
            if process is not None:  # a worker without its scheduler may ignore a polite request
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
