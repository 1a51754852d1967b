"""Reference cases of experts: every agent plays, letters, rows that are checked nowhere else."""

from math import inf, isfinite

import pytest

from dpbandit.base.inputs import InputError
from dpbandit.experiments import CASES, reproduce
from dpbandit.experiments.experts import least_regret

FAMILY = [case for case in CASES.values() if case.name.startswith(("experts/", "oco/"))]
TINY = {"horizon": 30, "replicas": 2, "progress": False}


@pytest.mark.parametrize("case", FAMILY, ids=lambda case: case.name)
def test_every_agent_plays_every_case(case):
    dim = {} if case.name == "experts/counterexample" else {"d": 1 if "oco" in case.name else 4}
    for agent in case.agents:
        short = {**TINY, "horizon": 2 if "oco" in case.name else 30}  # hindsight is searched for
        record = reproduce(case.name, agent, settings=dim, **short)
        assert isfinite(record["mean"])
        assert record["reference"] is None
        name = "n_actions" if case.name.startswith("experts/") else "dim"
        assert dim.get("d") in (None, record["config"]["env_kwargs"][name])


def test_letters_and_settings_that_two_have():
    """d is the number of experts, K too; epsilon is the agent's, and the lower bound's, too, which
    `env.epsilon` alone sets; best_loss is the agent's where she has one."""
    short = reproduce("experts/bern", "hedge", settings={"d": 8, "T": 20}, **{**TINY, "horizon": 9})
    assert (short["horizon"], short["config"]["env_kwargs"]["n_actions"]) == (20, 8)
    with pytest.raises(InputError, match="n_actions once"):
        reproduce("experts/bern", "hedge", settings={"d": 8, "K": 8}, **TINY)
    both = reproduce(
        "experts/lower-bound", "sparse-vector-experts", settings={"epsilon": 0.5}, **TINY
    )
    assert both["config"]["epsilon"] == both["config"]["env_kwargs"]["epsilon"] == 0.5
    settings = {"best_loss": 3.0, "env.best_loss": 0.25}
    split = reproduce("experts/small-loss", "sparse-vector-experts", settings=settings, **TINY)
    assert (split["config"]["best_loss"], split["config"]["env_kwargs"]["best_loss"]) == (3.0, 0.25)


def test_the_lower_bound_stands_beside_the_result():
    """At the certified epsilon, which is 3/4 of the printed claim; none for who is not private."""
    run = {"settings": {"n_actions": 256}, "horizon": 20, "replicas": 40, "progress": False}
    pure = reproduce("experts/lower-bound", "sparse-vector-experts", **run)
    assert pure["least"] == pytest.approx(5.085, abs=1e-3)
    assert pure["mean"] > pure["least"]
    run["settings"]["calibration"] = "paper"
    printed = reproduce("experts/lower-bound", "sparse-vector-experts", **run)
    assert printed["least"] == least_regret(256, printed["certified_epsilon"], tail=6) > 5.2
    assert reproduce("experts/lower-bound", "hedge", settings={}, **TINY)["least"] == 0
    assert reproduce("experts/bern", "hedge", settings={}, **TINY)["least"] is None


ROWS = [
    ("experts/lower-bound", "hedge", 1000),
    pytest.param("experts/bern", "sparse-vector-experts", 10_000, marks=pytest.mark.slow),
]
"""Rows that the tests of agents do not hold."""


@pytest.mark.parametrize(("name", "agent", "horizon"), ROWS)
def test_reference_numbers(name, agent, horizon):
    """Statistical: independent means within 4 combined standard errors, false alarm 6e-5."""
    row = next(r for r in CASES[name].references if (r.agent, r.horizon) == (agent, horizon))
    run = {"horizon": horizon, "replicas": 40, "seed": 11, "progress": False}
    record = reproduce(name, agent, settings=row.settings, **run)
    assert record["reference"] == {"mean": row.mean, "se": row.se}
    assert abs(record["z"]) <= 4, record
    if record["certified_epsilon"] < inf:
        assert record["certified_epsilon"] <= row.settings["epsilon"] + 1e-9
