"""Sizes have upper bounds that are said, before memory is asked for."""

from dataclasses import fields

import gymnasium as gym
import pytest
from gymnasium.envs.registration import load_env_creator

from dpbandit import InputError, audit, compare
from dpbandit.agents import AGENTS, LinUCB
from dpbandit.envs import GLMBandit
from dpbandit.studies import Sweep, plan, run_sweep
from tests.each import each
from tests.envs.contextual.ratings_files import ARGUMENTS
from tests.studies.studies import TINY

CREATORS = [
    load_env_creator(entry.kwargs["problem"])
    for entry in gym.registry.values()
    if "problem" in entry.kwargs
]
SIZES = {"dim", "n_actions", "n_items", "taste", "rank", "goods", "horizon", "delay"}
SIZES &= {field.name for creator in CREATORS for field in fields(creator)}


@each("creator", CREATORS, ids=lambda creator: creator.__name__)
def test_environments_say_how_large_they_can_be(creator):
    """Every size of every environment, and with 400 digits every argument: a sentence at once."""
    needed = next(
        (given for name, given in ARGUMENTS.items() if f"/{creator.__name__}-" in name), {}
    )
    for field in fields(creator):
        if field.init and field.name in SIZES:
            for size in (10**10, 10**22):
                with pytest.raises(InputError, match=r"<= \d|at most|=None|agents|none of|only"):
                    creator(**{**needed, field.name: size})
        if field.init and field.name not in ("prices", "n_actions"):
            with pytest.raises(InputError) as told:
                creator(**{**needed, field.name: 10**400})
            assert len(str(told.value)) < 500


@each(
    "agent",
    [
        ("fliphat", "iterations", 10**6),
        ("fliphat", "first_episode", 10**22),
        ("noisy-sgd", "steps", 10**22),
        ("potential-experts", "draws", 10**9),
        ("ball-experts", "reach", 1e-300),
        ("ball-experts", "epsilon", 5e-324),
        ("local-md", "epsilon", 1e-310),
        ("exponential-mechanism", "delta", 1e-310),
        ("binary-tree-experts", "c", 5e-324),
        ("binary-tree-experts", "beta", 5e-324),
    ],
)
def test_agents_say_what_is_too_many_and_too_small(agent):
    """Each ended in a traceback, for want of memory or digits."""
    name, setting, value = agent
    with pytest.raises(InputError, match=f"{setting}="):
        AGENTS[name](**{setting: value})


def test_a_plan_that_would_never_end():
    grid = {f"x{number}": list(range(10)) for number in range(30)}
    agents = [{"id": "linucb", "grid": grid}]
    with pytest.raises(InputError, match=r"at most 100,000 combinations of .*, got 12"):
        plan(Sweep.of({**TINY, "agents": agents}))


@each(
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
        with pytest.raises(InputError, match=f"{sentence}|at most 1e.50") as told:
            ask(number)
        assert len(str(told.value)) < 300
