"""What was shown of a catalogue, and pictures of it: by hand, and of a new item."""

import gymnasium as gym
import numpy as np
import pytest

from dpbandit.base.random_streams import Streams
from dpbandit.envs import ListRecommendation
from dpbandit.envs.lists.shown import Shown
from dpbandit.specs.catalogues import Catalogue

ANYBODY = np.array([True])


def test_coverage_and_distance_by_hand():
    """Four unit vectors, two opposite: pairs at 0.5 or 1; a place that is refilled is another."""
    board = Catalogue.of(np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]]))
    board.start(Streams([0]), churn=True)
    shown = Shown(board, 1)
    assert np.isnan(shown.intra_list_distance).all()
    shown.see(np.array([[0, 1, 2]]), ANYBODY)
    shown.see(np.array([[0, 1, 3]]), ~ANYBODY)
    assert shown.coverage == [0.75]
    assert shown.intra_list_distance == pytest.approx([(0.5 + 0.5 + 1) / 3])
    board.refill(np.array([0]), np.array([[0.0, 1]]))
    assert shown.coverage == [0.6]
    shown.see(np.array([[3, 0, 2]]), ANYBODY)
    assert shown.coverage == [1.0]
    assert shown.intra_list_distance == pytest.approx([(2 / 3 + 2 / 3) / 2])


def test_diversity_makes_lists_of_unlike_items():
    """Random lists at 1/2; what a user likes is alike, but for what `diversity` makes of it."""
    from dpbandit.agents import RankedLinUCB

    found = []
    for agent in (RankedLinUCB(), RankedLinUCB(diversity=0.2)):
        problem = ListRecommendation(n_items=40, taste=3, horizon=300)
        problem.reset(Streams([1000, 1001]))
        player = agent.make(problem.spec, Streams([5, 6]))
        for _ in range(300):
            u = problem.context()
            lists = player.act(u)
            player.update(u, lists, problem.step(lists).datum)
        found.append(problem.intra_list_distance.mean())
    assert found[0] < 0.4 < 0.5 < found[1]


def test_lists_are_drawn_with_their_clicks():
    """A star or a dot for every click; a title says which is which."""
    pictures = []
    for mode in ("ansi", "rgb_array"):
        env = gym.make(
            "dpbandit/ListRecommendation-v0",
            render_mode=mode,
            n_items=9,
            length=3,
            clicks="position",
            base_rate=0.5,
            decay=0.0,
            horizon=50,
        )
        env.reset(seed=0)
        clicks = sum(env.step([5, 0, 7])[4]["clicks"].sum() for _ in range(30))
        pictures.append(env.render())
    text, picture = pictures
    assert text.count("*") == clicks > 10
    assert text.split("last actions ")[1].replace("*", "").startswith("[5 0 7] [5 0 7]")
    assert picture.shape == (360, 480, 3)
