"""Sizes have upper bounds that are said, before memory is asked for."""

from dataclasses import fields

import gymnasium as gym
import pytest
from gymnasium.envs.registration import load_env_creator

from dpbandit import BadInput, audit, compare
from dpbandit.agents import LinUCB
from dpbandit.envs import GLMBandit
from dpbandit.studies import Sweep, run_sweep
from tests.studies.studies import TINY

CREATORS = [
    load_env_creator(entry.kwargs["problem"])
    for entry in gym.registry.values()
    if "problem" in entry.kwargs
]
SIZES = {"dim", "n_actions", "n_items", "taste", "rank", "goods", "horizon", "delay"}
SIZES &= {field.name for creator in CREATORS for field in fields(creator)}


@pytest.mark.parametrize("creator", CREATORS, ids=lambda creator: creator.__name__)
def test_environments_say_how_large_they_can_be(creator):
    """Every size of every environment, and with 400 digits every argument: a sentence at once."""
    for field in fields(creator):
        if field.init and field.name in SIZES:
            for size in (10**10, 10**22):
                with pytest.raises(BadInput, match=r"<= \d|at most|=None|agents|none of|only"):
                    creator(**{field.name: size})
        if field.init and field.name not in ("prices", "n_actions"):
            with pytest.raises(BadInput) as told:
                creator(**{field.name: 10**400})
            assert len(str(told.value)) < 500


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda n: compare("GLMBandit", {}, horizon=n), "horizon=.* <= 1000000000"),
        (lambda n: compare("GLMBandit", {}, replicas=n), "replicas=.* <= 100000"),
        (lambda n: audit(LinUCB(), GLMBandit().spec, runs=n), "runs=.* <= 10000000"),
        (lambda n: audit(LinUCB(), GLMBandit().spec, jobs=n), "jobs=.* <= 1024"),
        (lambda n: gym.make_vec("dpbandit/GLMBandit-v0", num_envs=n), "num_envs=.* <= 100000"),
        (lambda n: run_sweep(Sweep.of(TINY), "x", jobs=n), "jobs=.* <= 1024"),
        (lambda n: Sweep.of({**TINY, "replicas": n}), "replicas=.* 100000"),
        (lambda n: Sweep.of({**TINY, "audit": {"runs": n}}), "audit.runs=.* 10000000"),
    ],
)
def test_numbers_of_runs_have_bounds(ask, sentence):
    for number in (10**9 + 1, 10**400):
        with pytest.raises(BadInput, match=f"{sentence}|at most 1e.50") as told:
            ask(number)
        assert len(str(told.value)) < 300
