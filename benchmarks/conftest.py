"""Fixtures that time code relative to a lower bound ("floor"); print and save the ratios."""

import time

import pytest

from benchmarks import episodes

_lines = []


def pytest_configure(config):
    """Reduce rounds and replicas if nothing is timed, to check only that everything runs."""
    if config.getoption("benchmark_disable"):
        episodes.ROUNDS, episodes.REPLICAS = 20, 2


@pytest.fixture
def against_floor(benchmark):
    """Time `work(made)`, alternating with the lower bound `floor`, and report the times' ratio."""

    def measure(label, make, work, floor, *, made_in=None):
        floors, seconds = [], []

        def setup():
            floors.append(floor())
            start = time.process_time()
            made = make()
            setups.append(time.process_time() - start)
            return (made,), {}

        def timed(made):
            start = time.process_time()
            work(made)
            seconds.append(time.process_time() - start)

        setups = []
        benchmark.pedantic(timed, setup=setup, rounds=3, warmup_rounds=1)
        if not benchmark.enabled:
            return
        microseconds = 1e6 * min(seconds) / episodes.ROUNDS / episodes.REPLICAS
        ratio, setup_seconds = min(seconds) / min(floors), min(setups)
        benchmark.extra_info |= {
            "problem": made_in or label,
            "microseconds a replica-round": round(microseconds, 3),
            "times the floor": round(ratio, 2),
            "seconds to make": round(setup_seconds, 4),
        }
        _lines.append((label, made_in or "", microseconds, ratio, setup_seconds))

    return measure


def pytest_terminal_summary(terminalreporter):
    if not _lines:
        return
    size = f"{episodes.ROUNDS} rounds, {episodes.REPLICAS} replicas"
    terminalreporter.section(f"{size}, CPU time, least of four")
    row = "| {:32} | {:35} | {:>8} | {:>7} | {:>9} |"
    terminalreporter.line(row.format("what", "problem", "us/round", "x floor", "s to make"))
    terminalreporter.line(row.format("---", "---", "---:", "---:", "---:"))
    for label, made_in, microseconds, ratio, setup in _lines:
        numbers = f"{microseconds:.3f}", f"{ratio:.1f}", f"{setup:.3f}"
        terminalreporter.line(row.format(label, made_in, *numbers))
