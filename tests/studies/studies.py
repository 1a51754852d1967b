"""Small sweeps, and how to tell that two folders hold the same numbers."""

import numpy as np

from dpbandit import Results
from dpbandit.studies import Sweep

TINY = {
    "name": "tiny", "seed": 4, "replicas": 5, "horizons": [20, 40], "epsilons": [0.5, 2.0],
    "deltas": [1e-5],
    "environments": [
        {"id": "dpbandit/OJPricing-v0", "label": "juice"},
        {"id": "GLMBandit", "arguments": {"noise": 0.2}, "grid": {"dim": [2, 3]}},
    ],
    "agents": [
        {"id": "LinUCB", "label": "Lin"},
        {
            "id": "shariff-sheffet-ucb", "settings": {"alpha": 2.0},
            "grid": {"calibration": ["paper"]},
        },
    ],
}  # fmt: skip
"""2 horizons x 3 problems x (1 + 2 agents + 2 baselines) = 30 configurations"""


def many(configurations=100, replicas=20):
    """As many tiny configurations: one problem, LinUCB at many alphas, and two baselines."""
    alphas = np.linspace(0.1, 2, configurations - 2).round(4).tolist()
    return Sweep.of(
        {
            "replicas": replicas,
            "horizons": [12],
            "environments": [{"id": "GLMBandit", "arguments": {"n_actions": 2, "dim": 2}}],
            "agents": [{"id": "linucb", "grid": {"alpha": alphas}}],
        }
    )


def same(one, two):
    """Whether two folders hold the same runs, bit for bit, whatever the seconds they took."""
    first, second = Results.load(one), Results.load(two)
    assert [run.key for run in first.runs] == [run.key for run in second.runs]
    for run, other in zip(first.runs, second.runs, strict=True):
        assert run.certificate == other.certificate
        for what in ("marks", "replicas", "regret", "reward", "switches"):
            np.testing.assert_array_equal(getattr(run, what), getattr(other, what), strict=True)
    return True
