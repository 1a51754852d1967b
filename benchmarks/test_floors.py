"""Time every agent and every environment alone, relative to a lower bound on its time."""

import pytest

from benchmarks.episodes import (
    any_action,
    floor_of,
    listen,
    problem,
    serve,
    streams,
    tape,
    usual_problem,
)
from dpbandit import ENVIRONMENTS
from dpbandit.agents import AGENTS
from tests.envs.contextual.ratings_files import ARGUMENTS


@pytest.mark.parametrize("name", AGENTS)
def test_agent(against_floor, name):
    """Time the acting and learning of an agent, without environment and loop."""
    config, environment, arguments = usual_problem(AGENTS[name])
    made = problem(environment, **arguments)
    episode = tape(made, config)

    def make():
        return config.make(made.spec, streams().child("agent"))

    floor = floor_of(lambda: listen(make(), episode), made.spec)
    words = [environment, *(f"{key}={value}" for key, value in arguments.items())]
    against_floor(name, make, lambda agent: listen(agent, episode), floor, made_in=" ".join(words))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environment(against_floor, name):
    """Time the contexts and steps of an environment for a constant action."""
    arguments = ARGUMENTS.get(name, {})
    spec = problem(name, **arguments).spec
    action = any_action(spec)

    def make():
        made = problem(name, **arguments)
        made.reset(streams().child("environment"))
        return made

    floor = floor_of(lambda: serve(make(), action), spec)
    against_floor(name, make, lambda made: serve(made, action), floor)
