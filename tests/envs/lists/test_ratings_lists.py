"""A ratings file as lists: what attracts whom, the board it is on, and agents that learn it."""

from math import inf

import numpy as np
import pytest

from dpbandit import InputError, compare
from dpbandit.agents import ListFADE, RankedLinUCB
from dpbandit.base.random_streams import Streams
from dpbandit.envs import RatingsBandit, RatingsLists
from dpbandit.privacy.statistics.list_clicks import features
from dpbandit.specs.catalogues import Catalogue
from tests.envs.contextual.ratings_files import example

SETTINGS = {"path": example(), "n_items": 20, "length": 3}


def test_items_attract_as_they_are_rated():
    """Oracle: `RatingsBandit` of the same file; and, where no rating is clipped, a line in phi."""
    problem = RatingsLists(**SETTINGS, rank=2, clicks="position", click_rate=0.5)
    arms = RatingsBandit(path=example(), n_actions=20, rank=2)
    assert (problem.items, problem.scale) == (arms.items, arms.scale)
    problem.reset(Streams([0, 1]))
    u = problem.context()
    rows = [np.abs(arms._fitted.context * np.sqrt(2) - x).sum(axis=1).argmin() for x in u]
    like = arms._fitted.like[rows]
    np.testing.assert_allclose(problem._attraction(u), 0.5 * like, atol=1e-12)
    phi = features(u, np.broadcast_to(problem.spec.catalogue.items, (2, 20, 3)))
    inner = (like > 0) & (like < 1)
    theta = np.sqrt(2) * 0.5 * np.array([problem._mean - 0.5, *[problem._longest] * 3]) / 4.5
    np.testing.assert_allclose((phi @ theta)[inner], 0.5 * like[inner], atol=1e-12)
    step = problem.step(problem.best_fixed())
    best = np.argsort(-arms._fitted.like.mean(axis=0), kind="stable")[:3]
    np.testing.assert_array_equal(problem.best_fixed(), [best, best])
    np.testing.assert_allclose(step.expected, 0.5 * like[:, best] @ [1, 1 / 2, 1 / 3])


def test_a_board_of_vectors_that_are_known():
    """Equal if they hold the same, filled anew with the same, and nothing that breaks the cone."""
    one, other = Catalogue.of(np.eye(3)), Catalogue.of(np.eye(3)[::-1])
    assert one == Catalogue.of(np.eye(3))
    assert one != other
    assert one != Catalogue(3, 3)
    one.start(Streams([0, 1]), churn=True)
    one.refill(np.array([0, 1]), np.full((2, 3), 0.5))
    one.start(Streams([0]), churn=False)
    np.testing.assert_array_equal(one.items, [np.eye(3)])
    for wrong in (2 * np.eye(3), np.full((2, 2), np.nan), np.ones(3)):
        with pytest.raises(InputError, match="none longer than 1"):
            Catalogue.of(wrong)


def test_agents_learn_it():
    results = compare(
        RatingsLists,
        {"ucb": RankedLinUCB(), "fade": ListFADE(epsilon=inf, counted="clicks")},
        horizon=1500,
        replicas=3,
        seed=1000,
        env_kwargs=SETTINGS,
        progress=False,
    )
    mean = results.summary().set_index("agent")["mean"]
    assert mean["ucb"] < mean["Uniform"] / 2
    assert mean["fade"] < mean["Uniform"] / 2


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"path": None}, "none is shipped"),
        ({"n_items": 31}, "n_items=31 <= 30"),
        ({"length": 20}, "length=20"),
        ({"click_rate": 1.5}, "click_rate=1.5"),
        ({"clicks": "all"}, "clicks='all'"),
        ({"high": "a"}, "high='a'"),
    ],
)
def test_bad_arguments_are_refused(wrong, says):
    with pytest.raises(InputError, match=says):
        RatingsLists(**{**SETTINGS, **wrong})
