"""Every environment alone, with its defaults where there are, beside its floor."""

import pytest

from benchmarks.episodes import any_action, floor_of, problem, serve, streams
from dpbandit import ENVIRONMENTS
from tests.envs.contextual.ratings_files import ARGUMENTS


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environment(against_floor, name):
    """Contexts and steps for one action, again and again."""
    arguments = ARGUMENTS.get(name, {})
    spec = problem(name, **arguments).spec
    action = any_action(spec)

    def make():
        made = problem(name, **arguments)
        made.reset(streams().child("environment"))
        return made

    made = make()
    floor = floor_of(lambda: serve(made, action), spec)
    against_floor(name, make, lambda made: serve(made, action), floor)
