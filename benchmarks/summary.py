"""Print a table of times, of one revision or of several side by side::

    python benchmarks/summary.py [--agents] [CHECKOUT ...]
    python benchmarks/summary.py --out FOLDER      only write cost.csv, some agents' times per round

Times are CPU-seconds of a separate process with BLAS on one thread. Each is the least of several
repetitions, in which revisions alternate; by default only this checkout is timed. With `--agents`
every agent is timed, too, as by `test_floors.py`. "-" marks what a revision does not have, or does
not do within two minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]  # of this file
TARGETS = {
    "personal-pricing": 12,
    "list-fade": 15,
    "fade-mnl": 2,
    "personal-fade": 2,
    "private-cascade": 30,
    "cascade-ucb": 20,
    "mnl-ucb": 4,
    "mnl-ts": 4,
    "ranked-linucb": 5,
    "ranked-lints": 5,
    "ranked-epsilon-greedy": 5,
    "noisy-sgd": 8,
    "local-md": 4,
    "lasso-bandit": 3,
}
"""Agent -> target of its time, in microseconds per replica and round"""
TIMED_AGENTS = (
    *(("linucb", "GLMBandit"), ("dp-ucb", "GLMBandit"), ("fade", "GLMBandit")),
    *(("dp-ucb", "OJPricing"), ("fade", "OJPricing"), ("allocation-ts", "Arms")),
)
"""Pairs (agent, environment) whose times `--out` writes into cost.csv"""
COMMAND = """
import sys
sys.argv = ["dpbandit", *%r]
from dpbandit.cli import main
main()
"""  # program that runs a command of `dpbandit`, to be timed
PLAY = """
import resource, time
from dpbandit import compare
options = dict(%s, progress=False)
start = time.process_time()
compare("dpbandit/%s-v0", ["%s"], **options)
print(time.process_time() - start)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""  # program that prints the CPU-seconds of one agent on one environment, and the process's MiB
MAX_SECONDS = 120
"""Seconds after which a run is stopped; without counts ten million rounds would take an hour"""
OPTIONS_OF_LONG_RUNS = "horizon=100_000, replicas=20"
SETUPS = {
    "20 x 20,000": ("fade", "OJPricing", "horizon=20_000, replicas=20"),
    "1,000 x 300": ("fade", "GLMBandit", "horizon=300, replicas=1_000"),
    "20 x 10,000,000": ("fade", "OJPricing", "horizon=10_000_000, replicas=20"),
    **{
        f"K = {K}, 20 x 10,000": (
            "fade",
            "GLMBandit",
            f"horizon=10_000, replicas=20, env_kwargs={{'n_actions': {K}}}",
        )
        for K in (8, 32, 128)
    },
    "prices for people, 20 x 2,000": (
        "personal-pricing",
        "ReturningPricing",
        "horizon=2_000, replicas=20",
    ),
}
"""Name -> agent, environment and options of `compare`, whose times show one cost each"""
VECTOR = """
import time
import gymnasium, numpy as np
import dpbandit
many = gymnasium.make_vec("dpbandit/OJPricing-v0", num_envs=1000)
many.reset(seed=0)
actions = np.zeros(1000, dtype=np.int64)
def steps(count):
    start = time.process_time()
    for _ in range(count):
        many.step(actions)
    return (time.process_time() - start) / count * 1e3
steps(100)
print(min(steps(200) for _ in range(5)))
"""  # program that prints microseconds per step of one of a thousand sub-environments
COMPARISON = (
    "compare OJPricing --agents priced:logistic-ts,linucb,fade,dp-ucb,"
    "shariff-sheffet-ucb:calibration=paper --horizon 20000 --replicas 20 --epsilon 1 --delta 1e-5"
)
"""Command of the comparison of five agents, the same for all revisions"""
LOOP = """
from benchmarks.test_speed import batched_linucb, cpu_seconds, plain_linucb
d, K, R = %s
plain = min(cpu_seconds(lambda: plain_linucb(K, d)) for _ in range(4))
print(R * plain / min(cpu_seconds(lambda: batched_linucb(K, d, R)) for _ in range(4)))
"""  # program that prints the speed of LinUCB divided by that of a plain loop
BLOCKS = """
import time
from pathlib import Path
from dpbandit import Results
from dpbandit.studies import Sweep, run_sweep
sweep = Path("sweep.toml")
sweep.write_text("replicas = 2000\\nhorizons = [10]\\nepsilons = [1.0]\\ndeltas = [1e-5]\\n"
                 "[[environments]]\\nid = 'GLMBandit'\\n[[agents]]\\nid = 'dp-ucb'\\n")
def timed(work, *arguments, **options):
    start = time.process_time()
    work(*arguments, **options)
    print((time.process_time() - start) / 6)
for resume in (False, True):
    options = {"backend": "threading", "block": 1, "progress": False, "resume": resume}
    timed(run_sweep, Sweep.read(sweep), "swept", **options)
timed(lambda: Results.load("swept").frame())
print(sum(file.stat().st_size for file in Path("swept").rglob("*.*") if file.is_file()) / 6e6)
"""  # program that prints times and bytes of writing, verifying and reading a block of a sweep


def rows():
    """Yield rows: names of numbers, code that prints them or is timed, number of repetitions."""
    start = {
        "import numpy, gymnasium": "import numpy, gymnasium",
        "import dpbandit": "import dpbandit",
        "gym.make": "import gymnasium, dpbandit; gymnasium.make('dpbandit/OJPricing-v0')",
        "from dpbandit import compare": "from dpbandit import compare",
        "dpbandit --help": COMMAND % ["--help"],
        "dpbandit compare --help": COMMAND % ["compare", "--help"],
        "dpbandit envs": COMMAND % ["envs"],
        "dpbandit agents": COMMAND % ["agents"],
    }
    for name, code in start.items():
        yield (f"start: {name}, s",), code, 6
    for jobs in ("1", "2"):
        code = COMMAND % [*COMPARISON.split(), "--jobs", jobs]
        yield (f"five agents on OJPricing, 20 x 20,000, --jobs {jobs}, s",), code, 3
    for agent, problem in TIMED_AGENTS:
        yield (
            named(agent, problem, "20 x 100,000"),
            PLAY % (OPTIONS_OF_LONG_RUNS, problem, agent),
            2,
        )
    for size, (agent, problem, options) in SETUPS.items():
        turns = 1 if "10_000_000" in options else 3
        yield named(agent, problem, size), PLAY % (options, problem, agent), turns
    yield ("a step of one of 1,000 sub-environments, OJPricing, us",), VECTOR, 3
    for size in ("50, 2, 20", "20, 10, 20", "5, 5, 100"):
        yield (f"LinUCB, times a plain loop, (d, K, R) = ({size})",), LOOP % size, 2
    each = ("written, s", "resumed, s", "loaded, s", "on disk, MB")
    yield tuple(f"a thousand blocks {what}" for what in each), BLOCKS, 1


def named(agent, problem, size):
    """Return the names of the two numbers that `PLAY` prints."""
    return f"{agent} on {problem}, {size}, s", f"{agent} on {problem}, {size}, peak MiB"


def measured(checkout, names, code):
    """Run code; return the numbers it prints, or else its CPU-seconds; None if it fails."""
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment["PYTHONPATH"] = str(checkout)
    with tempfile.TemporaryDirectory() as folder:
        before = os.times()
        command = [sys.executable, "-W", "ignore", "-c", code]
        how = {"capture_output": True, "text": True, "timeout": MAX_SECONDS}
        try:
            done = subprocess.run(command, cwd=folder, env=environment, **how)
        except subprocess.TimeoutExpired:
            return [None] * len(names)
        spent = [now - then for now, then in zip(os.times()[2:4], before[2:4], strict=True)]
    if done.returncode:
        return [None] * len(names)
    if "print(" in code:
        return [float(word) for word in done.stdout.split()[-len(names) :]]
    return [sum(spent)]


def of_agents(checkout):
    """Return by agent the microseconds per replica and round, and the ratio to the lower bound."""
    files = [
        f for n in ("floors", "every_agent") if (f := checkout / f"benchmarks/test_{n}.py").exists()
    ]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [
            sys.executable,
            "-m",
            "pytest",
            *map(str, files),
            "-n",
            "0",
            "-q",
            "-k",
            "test_agent",
        ]
        command += ["--benchmark-timer=time.process_time", f"--benchmark-json={out}"]
        environment = os.environ | {"PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(command, cwd=checkout, env=environment, capture_output=True)
        found = json.loads(out.read_text())["benchmarks"]
    facts = {one["params"]["name"]: one["extra_info"] for one in found}
    return {
        name: (info["microseconds a replica-round"], info["times the floor"])
        for name, info in facts.items()
    }


def costs(folder):
    """Write cost.csv: microseconds per replica and round, and core-days for 10^12 such rounds."""
    lines = ["agent,problem,microseconds,core_days"]
    for agent, problem in TIMED_AGENTS:
        code = PLAY % (OPTIONS_OF_LONG_RUNS, problem, agent)
        micros = min(measured(CHECKOUT, ("s", "MiB"), code)[0] for _ in range(2)) / 2e6 * 1e6
        lines.append(f"{agent},{problem},{micros:.3g},{micros * 1e6 / 86_400:.3g}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cost.csv").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", action="store_true", help="every agent, too")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="for cost.csv, all that is timed"
    )
    parser.add_argument("checkouts", nargs="*", type=Path, metavar="CHECKOUT")
    options = parser.parse_args()
    if options.out:
        return costs(options.out)
    checkouts = [path.resolve() for path in options.checkouts] or [CHECKOUT]
    print("| |" + "".join(f" {path.name} |" for path in checkouts))
    print("|---|" + "---:|" * len(checkouts), flush=True)

    def row(name, cells):
        words = ("-" if cell is None else f"{cell:.3g}" for cell in cells)
        print(f"| {name} |" + "".join(f" {cell} |" for cell in words), flush=True)

    for names, code, turns in rows():
        every = [[measured(path, names, code) for path in checkouts] for _ in range(turns)]
        for place, name in enumerate(names):
            columns = [[turn[path][place] for turn in every] for path in range(len(checkouts))]
            best = max if "times" in name else min
            row(name, [None if None in column else best(column) for column in columns])
    if options.agents:
        found = [of_agents(path) for path in checkouts]
        every = [list(agents.values()) for agents in found]
        row("agents above 20 times their floor", [sum(f > 20 for _, f in one) for one in every])
        row("agents above 10 us a replica-round", [sum(t > 10 for t, _ in one) for one in every])
        slow = {n for a in found for n, (time, floor) in a.items() if time > 10 or floor > 20}
        for name in sorted(slow | TARGETS.keys()):
            aim = f" (aim {TARGETS[name]})" if name in TARGETS else ""
            cells = [agents.get(name, (None, None)) for agents in found]
            row(f"{name}{aim}, us a replica-round", (time for time, _ in cells))


if __name__ == "__main__":
    main()
