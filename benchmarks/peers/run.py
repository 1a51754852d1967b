"""Compare the speed of LinUCB in dpbandit and other libraries, in rounds per CPU-second::

    python benchmarks/peers/run.py [--python NAME=INTERPRETER ...] [--out FILE.json]

Every program plays the same problem (see `world.py`) in a process of its own, BLAS on one thread;
drawing users, the agent and logging its regret are timed, imports are not. A library is imported by
this interpreter, or by the one that `--python` names for it. Other libraries play one replica after
another, at a cost linear in replicas, so a few replicas are enough. The fastest replica of each
library counts, and the fastest of as many runs of dpbandit. Regret is compared on the same users.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np

PEERS_FOLDER = Path(__file__).resolve().parent  # of this comparison's programs
PEERS = ("obp", "river", "coba", "mabwiser", "contextualbandits")  # other libraries
FASTEST = "obp"
"""Library that is expected to be the fastest; if it is missing, no target is checked or met"""
OTHER_PEERS = ("coba:vw_epsilon_greedy", "coba:vw_square_cb")
"""Algorithms other than LinUCB (of Vowpal Wabbit), whose regret and speed are only printed"""
SIZES = {
    "d = 50, K = 2": (50, 2, 15.0),
    "d = 20, K = 10": (20, 10, 30.0),
    "d = 5, K = 5": (5, 5, 70.0),
}
"""Problem -> dimension, arms, and target ratio of dpbandit's speed to the fastest of `PEERS`"""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # are set to 1


def measure(python, script, *arguments):
    environment = os.environ | dict.fromkeys(_THREADS, "1")
    paths = [str(PEERS_FOLDER.parents[1]), os.environ.get("PYTHONPATH", "")]
    if script == "ours.py":
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    command = [python, PEERS_FOLDER / script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        return {"missing": f"failed: {done.stderr.strip().splitlines()[-1]}"}
    return json.loads(done.stdout)


def side_by_side(dim, arms, options):
    """Return CPU-seconds and regrets of each run of dpbandit and of the others, by name."""
    ours, peers, count = [], {name: [] for name in (*PEERS, *OTHER_PEERS)}, options.peer_replicas
    problem = (dim, arms, options.rounds)
    for run in range(options.runs):
        users = (run * count, count)
        ours.append(measure(sys.executable, "ours.py", *problem, options.replicas, *users))
        if "missing" in ours[-1]:
            raise SystemExit(f"dpbandit {ours[-1]['missing']}")
        for name, found in peers.items():
            python = options.python.get(name, sys.executable)
            found.append(measure(python, "play_one.py", name, *problem, *users))
    return ours, peers


def rows(ours, peers, options):
    """Return a row for each program: rounds per second, and regret minus ours on the same users."""
    fastest = min(s for run in ours for s in run["seconds"])
    many, same = np.array(ours[0]["own"]), _all_regrets(ours)
    speed = options.rounds * options.replicas / fastest
    table = [{"name": "dpbandit", "rounds a second": speed, **_mean("regret", same)}]
    table[0] |= _mean(f"regret of {options.replicas} replicas", many)
    for name, found in peers.items():
        if missing := [run["missing"] for run in found if "missing" in run]:
            table.append({"name": name, "missing": missing[0]})
            continue
        speed = options.rounds / min(s for run in found for s in run["seconds"])
        regrets = _all_regrets(found)
        row = {"name": name, "version": found[0]["version"], "rounds a second": speed}
        table.append(row | _mean("regret", regrets) | _mean("difference", regrets - same))
    return table


def _all_regrets(runs):
    return np.concatenate([run["regrets"] for run in runs])


def _mean(name, values):
    error = values.std(ddof=1) / np.sqrt(len(values))
    return {name: values.mean(), f"{name}, standard error": error}


def show(size, table, least):
    """Print the table; return True if the target is met and all libraries' LinUCB regrets agree."""
    print(f"\n{size}")
    print(f"{'':22} {'version':>8} {'rounds/s':>11} {'dpbandit is':>12} {'regret':>8}  difference")
    ours, *others = table
    good = True
    for row in table:
        if "missing" in row:
            print(f"{row['name']:22} absent: {row['missing']}")
            continue
        speed = row["rounds a second"]
        line = f"{row['name']:22} {row.get('version', ''):>8} {speed:11,.0f}"
        line += f" {ours['rounds a second'] / speed:11.1f}x {row['regret']:8.2f}"
        if row is not ours:
            gap, error = row["difference"], row["difference, standard error"]
            line += f"  {gap:+.2f} +- {error:.2f}"
            if abs(gap) > 4 * error and row["name"] not in OTHER_PEERS:
                line, good = line + "  DIFFERS", False
        print(line)
    same = [row for row in others if row["name"] not in OTHER_PEERS and "missing" not in row]
    speeds = [row["rounds a second"] for row in same]
    if FASTEST not in (row["name"] for row in same):
        print(f"{FASTEST}, the fastest peer, is absent: not measured, to be at least {least:.0f}")
        return False
    ratio = ours["rounds a second"] / max(speeds)
    print(f"{ratio:.1f} times the fastest peer, to be at least {least:.0f}")
    return good and ratio >= least


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[], metavar="NAME=INTERPRETER")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--replicas", type=int, default=100, help="of dpbandit")
    parser.add_argument("--peer-replicas", type=int, default=3, help="a run")
    parser.add_argument("--size", action="append", choices=SIZES, help="all where none is named")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="where to write what was measured, as JSON")
    options = parser.parse_args()
    everybody = (*PEERS, *OTHER_PEERS)
    options.python = dict(pair.split("=", 1) for pair in options.python)
    if unknown := options.python.keys() - set(everybody):
        parser.error(f"--python knows {', '.join(everybody)}, got {', '.join(sorted(unknown))}.")
    found, good = {}, True
    sizes = {size: SIZES[size] for size in options.size or SIZES}
    for size, (dim, arms, least) in sizes.items():
        found[size] = rows(*side_by_side(dim, arms, options), options)
        good = show(size, found[size], least) and good
    if options.out:
        about = {"python": platform.python_version(), "machine": platform.machine()}
        about |= {
            name: vars(options)[name] for name in ("rounds", "replicas", "peer_replicas", "runs")
        }
        options.out.write_text(json.dumps({**about, "tables": found}, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
