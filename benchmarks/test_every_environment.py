"""Every environment alone, with its defaults, beside its floor."""

import numpy as np
import pytest

from benchmarks.episodes import any_action, floor_of, problem, serve, streams
from dpbandit import ENVIRONMENTS
from tests.envs.contextual.ratings_files import truth, write


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environment(against_floor, name, tmp_path):
    """Contexts and steps for one action, again and again."""
    arguments = {}
    if name in ("dpbandit/RatingsBandit-v0", "dpbandit/RatingsLists-v0"):  # come without data
        stars = truth()[1]
        arguments["path"] = write(tmp_path / "u.data", stars, np.ones_like(stars))
    if name == "dpbandit/RatingsLists-v0":
        arguments["n_items"] = 20
    spec = problem(name, **arguments).spec
    action = any_action(spec)

    def make():
        made = problem(name, **arguments)
        made.reset(streams().child("environment"))
        return made

    made = make()
    floor = floor_of(lambda: serve(made, action), spec)
    against_floor(name, make, lambda made: serve(made, action), floor)
