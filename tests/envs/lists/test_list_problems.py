"""Lists: what is shown, people who return to them, and lists of a table of ratings."""

from itertools import permutations
from math import sqrt

import gymnasium as gym
import numpy as np
import pytest
from scipy.special import expit, logit

from dpbandit import InputError, certify, compare
from dpbandit.agents import ListFADE, PerPerson, PersonalFADE
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ListRecommendation, RatingsBandit, RatingsLists, ReturningLists
from dpbandit.envs.lists.list_recommendation import Shown
from dpbandit.privacy.clicks import features
from dpbandit.specs.lists import Catalogue
from tests.envs.contextual.ratings_files import example

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


SMALL = {"people": 4, "visits": 6, "horizon": 24, "n_items": 5, "length": 2, "taste": 3}


def test_she_is_herself_at_all_visits_and_regret_is_against_her_own_best_list():
    """Oracle: all 20 lists by hand, from the parameters; an empty slot is nothing at all."""
    problem = ReturningLists(**SMALL, empty=0.3, tastes=1.0, churn=5)
    problem.reset(Streams(range(3)))
    spec, said = problem.spec, {}
    lists, empty = np.array(list(permutations(range(5), 2))), 0
    for t in range(24):
        context = problem.context()
        assert (context == problem.context()).all()  # asked twice
        person, u = spec.person(context), spec.shown(context)
        items = spec.visit.catalogue.items.copy()
        shown = lists[[t % 20, (t + 7) % 20, 3]]
        step = problem.step(shown)
        for r, i in enumerate(person):
            if i < 0:
                empty += 1
                assert not u[r].any()
                assert [*step.datum[r], *(part[r] for part in step[:4])] == [0] * 6
                continue
            assert (said.setdefault((r, i), u[r]) == u[r]).all()
            theta = problem._theta[r] + problem._own[r, i]
            chance = expit(logit(0.05) + 0.7 * sqrt(3) * items[r] @ (u[r] * theta))
            values = 1 - np.prod(1 - chance[lists], axis=1)
            assert step.oracle[r] == pytest.approx(values.max(), abs=1e-12)
            mine = 1 - np.prod(1 - chance[shown[r]])
            assert step.expected[r] == pytest.approx(mine, abs=1e-12)
    assert 5 < empty < 40
    assert len(said) > 8


def test_people_who_were_not_clicked_at_come_half_as_often():
    problem = ReturningLists(**{**SMALL, "visits": 60, "horizon": 240}, arrivals="loyal")
    problem.reset(Streams(range(20)))
    here = []
    for _ in range(240):
        here.append(problem.spec.person(problem.context()) >= 0)
        problem.step(np.tile([0, 1], (20, 1)))
    assert np.mean(here[:2]) > 0.9
    assert 0.45 < np.mean(here[60:]) < 0.65  # few click


def test_agents_for_lists_play_it_per_person_and_others_are_told_so():
    """The claim is of a person; without `per-person` there is one sentence."""
    proof = certify(PerPerson(ListFADE(epsilon=1.0)), ReturningLists(**SMALL), accountants=False)
    assert proof.epsilon == pytest.approx(1.0, abs=1e-6)
    assert proof.ledger.brief == "person, 6 rounds"
    for wrong in (ListFADE(), PersonalFADE()):
        with pytest.raises(InputError, match="choose"):
            certify(wrong, ReturningLists(**SMALL), accountants=False)
    found = compare(
        "ReturningLists",
        {"a": PerPerson(ListFADE(epsilon=np.inf))},
        horizon=400,
        replicas=4,
        progress=False,
        env_kwargs={"n_items": 20, "people": 20, "arrivals": "robin"},
    )
    (mine,), (random,) = (found.where(agent=name).runs for name in ("a", "Uniform"))
    assert mine.regret[-1].mean() < 0.7 * random.regret[-1].mean()


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
