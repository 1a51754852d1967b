"""Every agent alone, on the first usual problem that it fits, beside its floor."""

import pytest

from benchmarks.episodes import floor_of, listen, problem, streams, tape, usual_problem
from dpbandit.agents import AGENTS


@pytest.mark.parametrize("name", AGENTS)
def test_agent(against_floor, name):
    """Acting and learning, without the environment, without the loop."""
    config, environment, arguments = usual_problem(AGENTS[name])
    made = problem(environment, **arguments)
    episode = tape(made, config)

    def make():
        return config.make(made.spec, streams().child("agent"))

    agent = make()
    floor = floor_of(lambda: listen(agent, episode), made.spec)
    words = [environment, *(f"{key}={value}" for key, value in arguments.items())]
    against_floor(name, make, lambda agent: listen(agent, episode), floor, made_in=" ".join(words))
