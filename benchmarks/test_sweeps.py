"""Sweeps: what a second worker gains, and what a longer sweep costs in memory.

pytest benchmarks/test_sweeps.py -n 0 -s
"""

import subprocess
import sys
import time

from dpbandit.studies import Sweep, run_sweep

STUDY = {
    "replicas": 40,
    "horizons": [20_000],
    "epsilons": [0.5, 1.0, 2.0],
    "environments": [{"id": "OJPricing"}],
    "agents": [{"id": "dp-ucb"}, {"id": "fade"}],
}


def test_two_workers(benchmark, tmp_path):
    """Wall-clock seconds of the same sweep with one and with two processes, start-up included."""
    seconds = {1: [], 2: []}

    def both():
        for jobs in seconds:
            start = time.perf_counter()
            out = tmp_path / f"{jobs}-{len(seconds[jobs])}"
            run_sweep(Sweep.of(STUDY), out, jobs=jobs, block=10, progress=False)
            seconds[jobs].append(time.perf_counter() - start)

    benchmark.pedantic(both, rounds=2)
    gain = min(seconds[1]) / min(seconds[2])
    benchmark.extra_info["gain of two workers"] = round(gain, 2)
    assert gain >= 1.7


PEAK = """
import resource, sys
from dpbandit.studies import Sweep, run_sweep
alphas = [round(0.01 * i, 2) for i in range(1, int(sys.argv[1]) + 1)]
sweep = Sweep.of({"replicas": 20, "horizons": [2000], "environments": [{"id": "GLMBandit"}],
                  "agents": [{"id": "linucb", "grid": {"alpha": alphas}}]})
run_sweep(sweep, sys.argv[2], backend="threading", progress=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def test_memory_of_a_longer_sweep(benchmark, tmp_path):
    """Peak megabytes of the whole process: 10 configurations, then 100."""
    peaks = {}

    def both():
        for configurations in (10, 100):
            command = [sys.executable, "-c", PEAK, str(configurations)]
            command.append(str(tmp_path / str(configurations)))
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks[configurations] = float(done.stdout)

    benchmark.pedantic(both, rounds=1)
    benchmark.extra_info["megabytes"] = peaks
    assert peaks[100] < 1.15 * peaks[10]
