"""The folder in which every line of the fuzzer runs: results, and what is in the way."""

import os
import shutil
from pathlib import Path

from dpbandit import certify, compare
from dpbandit.agents import DPUCB, LinUCB
from dpbandit.envs import GLMBandit
from dpbandit.studies import Sweep, run_sweep
from tests.fuzz.lines import Line

TINY = {
    "replicas": 2,
    "horizons": [2, 4],
    "epsilons": [0.5, 1.0],
    "environments": [{"id": "GLMBandit", "arguments": {"dim": 2}}],
    "agents": [{"id": "dp-ucb"}, {"id": "linucb"}],
}


def build(folder: Path) -> Path:
    """A finished comparison, a finished sweep and a file that is none of them."""
    folder.mkdir(parents=True)
    (folder / "here.txt").write_text("somebody's work")
    rows = [f"{user},m{user % 3},{1 + user % 5},1" for user in range(9)]
    (folder / "ratings.csv").write_text("\n".join(["userId,movieId,rating,timestamp", *rows, ""]))
    for name in ("folder", "folder.json", "folder.png"):
        (folder / name).mkdir()
    agents = {"linucb": LinUCB(), "dp-ucb": DPUCB()}
    results = compare("GLMBandit", agents, horizon=5, replicas=2, progress=False)
    results.save(folder / "compared")
    certify(DPUCB(), GLMBandit(horizon=5).spec)  # slow imports, which no alarm may cut in two
    run_sweep(Sweep.of(TINY), folder / "swept", backend="threading", progress=False)
    return folder


def copy(world: Path, folder: Path, line: Line) -> Path:
    """The same once more for a line, with what cannot be copied: a pipe, a link to itself."""
    shutil.copytree(world, folder)
    (folder / "study.toml").write_text(line.toml, errors="surrogatepass")
    if line.damage:
        place, ending = line.damage
        file = folder / place
        if file.is_dir():
            file = min(file.iterdir())
        file.write_bytes(file.read_bytes()[: 40 * len(ending)] + ending.encode())
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    return folder
