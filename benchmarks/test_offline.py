"""Limit on cost: a policy evaluated on a million rows in under 5 seconds, by every kind of end."""

import time

import numpy as np
import pytest

from dpbandit.offline import Logged, evaluate
from dpbandit.specs.protocols import ContextualSpec

ROWS, ARMS = 10**6, 10


@pytest.mark.parametrize("intervals", ["t", "betting"])
def test_a_million_rows(benchmark, intervals):
    """ips, snips and dr with cross-fitted regressions on five features for each of ten arms."""
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
