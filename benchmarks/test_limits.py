"""Tests that time is linear in rounds and replicas, and that a million rows take seconds.

The exponent is fitted, log-log by least squares, to CPU-seconds of `compare`'s loop over two
decades. For each size the fastest of three runs counts; runs of all sizes alternate. Sizes begin
where fixed costs of a call no longer matter: at 2,000 rounds, or as many replicas as run together.
Costs of a replica, such as its random streams, are included.
"""

import time

import numpy as np
import pytest

from dpbandit.agents import DPFTRL, DPUCB, Hedge, LinUCB
from dpbandit.offline import Logged, evaluate
from dpbandit.results.runs import log_marks
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play, replicas_at_once
from dpbandit.running.resolve import resolve_agent
from dpbandit.specs import ContextualSpec

DECADES = (1, 3, 10, 32, 100)  # sizes, as multiples of the smallest
LOOPS = {
    "LinUCB": (LinUCB(), "dpbandit/GLMBandit-v0", {"dim": 50, "n_actions": 2}, 30),
    "DPUCB": (DPUCB(refresh_every=10), "dpbandit/GLMBandit-v0", {"dim": 50, "n_actions": 2}, 15),
    "DPFTRL": (DPFTRL(), "dpbandit/OnlineConvex-v0", {"dim": 64}, 60),
    "Hedge": (Hedge(), "dpbandit/Experts-v0", {"n_actions": 4096}, 10),
}
"""Name -> agent, environment, and arguments and rounds of the test with many replicas."""


def cpu_seconds(config, environment, arguments, *, rounds, replicas):
    """Play replicas in chunks that fit the cache, without writing files; return CPU-seconds."""
    make = problem_maker(environment)
    at_once, marks = replicas_at_once(make(**arguments, horizon=rounds).spec), log_marks(rounds)
    start = time.process_time()
    for first in range(0, replicas, at_once):
        seeds = [(0, r) for r in range(first, min(replicas, first + at_once))]
        play(make(**arguments, horizon=rounds), config, seeds, marks=marks)
    return time.process_time() - start


def exponent(benchmark, cost, sizes):
    """Measure the costs of all sizes three times; return the exponent of the fitted power law."""
    least = np.full(len(sizes), np.inf)

    def all_sizes():
        least[:] = np.minimum(least, [cost(size) for size in sizes])

    benchmark.pedantic(all_sizes, rounds=3)
    fitted = float(np.polyfit(np.log(sizes), np.log(least), 1)[0])
    benchmark.extra_info |= {
        "exponent": round(fitted, 3),
        "CPU-seconds": {int(n): round(s, 4) for n, s in zip(sizes, least, strict=True)},
    }
    return fitted


@pytest.mark.parametrize("name", LOOPS)
def test_cost_is_linear_in_rounds(benchmark, name):
    """Play 2,000 to 200,000 rounds of 5 replicas at the environment's default size."""
    config, environment, _, _ = LOOPS[name]

    def cost(rounds):
        return cpu_seconds(config, environment, {}, rounds=rounds, replicas=5)

    assert exponent(benchmark, cost, [2000 * n for n in DECADES]) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("agent", ["fade", "dp-ucb"])
def test_cost_of_counted_users_falls_with_rounds(benchmark, agent):
    """Play 100,000 and ten million rounds of 5 replicas, whose users are drawn as counts."""
    costs = {}

    def measure():
        for rounds in (10**5, 10**7):
            how = {"rounds": rounds, "replicas": 5}
            costs[rounds] = cpu_seconds(resolve_agent(agent), "OJPricing", {}, **how)

    benchmark.pedantic(measure, rounds=1)
    per_round = {rounds: 1e6 * cost / rounds / 5 for rounds, cost in costs.items()}
    benchmark.extra_info["us a replica-round"] = per_round
    assert per_round[10**7] <= 0.15 * per_round[10**5]


@pytest.mark.parametrize("name", LOOPS)
def test_cost_is_linear_in_replicas(benchmark, name):
    """Play 100 to 10,000 replicas, in chunks that fit the cache."""
    config, environment, arguments, rounds = LOOPS[name]

    def cost(replicas):
        return cpu_seconds(config, environment, arguments, rounds=rounds, replicas=replicas)

    assert exponent(benchmark, cost, [100 * n for n in DECADES]) == pytest.approx(1, abs=0.05)


ROWS, ARMS = 10**6, 10


@pytest.mark.parametrize("intervals", ["t", "betting"])
def test_a_million_rows(benchmark, intervals):
    """Estimate a value from a million rows by ips, snips and dr; five features, ten arms."""
    rng = np.random.default_rng(0)
    log = Logged(
        spec=ContextualSpec(n_actions=ARMS, dim=5, horizon=ROWS, reward_low=0.0),
        context=rng.uniform(-0.4, 0.4, (ROWS, 5)),
        action=rng.integers(0, ARMS, ROWS),
        reward=(rng.random(ROWS) < 0.3) * 1.0,
        propensity=1 / ARMS,
    )
    policy = rng.dirichlet(np.ones(ARMS), ROWS)

    def seconds():
        start = time.process_time()
        assert len(evaluate(policy, log, intervals=intervals)) == 3
        return time.process_time() - start

    assert benchmark.pedantic(seconds, rounds=1) < 5
