"""Lists: click models against enumeration and simulation, what is shown, people who return to them,
and lists of a table of ratings."""

from itertools import permutations, product
from math import sqrt

import gymnasium as gym
import numpy as np
import pytest
from scipy.special import expit, logit

from dpbandit import InputError, certify
from dpbandit.agents import ListFADE, PerPerson, PersonalFADE
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ListRecommendation, RatingsBandit, RatingsLists, ReturningLists
from dpbandit.envs.lists.list_recommendation import Shown, best_fixed_list, best_value
from dpbandit.losses.click_models import Browsing, Cascade, DependentClicks, PositionBased
from dpbandit.privacy.clicks import features
from dpbandit.specs.lists import Catalogue, ListSpec
from tests.each import each
from tests.envs.contextual.ratings_files import example

MODELS = {
    "position": PositionBased((1.0, 0.5, 1 / 3)),
    "upside down": PositionBased((0.2, 0.9, 0.5)),
    "cascade": Cascade(3),
    "dependent": DependentClicks((1.0, 0.7, 0.6)),
    "browsing": Browsing(3),
}


def by_enumeration(model, a):
    """Written down anew: the expected reward over all click patterns of a list (m,)."""
    total = 0.0
    for clicks in product([0, 1], repeat=len(a)):
        chance, last, alive, reward = 1.0, -1, 1.0, 0.0
        for k, click in enumerate(clicks):
            if isinstance(model, PositionBased):
                p = model.chances[k] * a[k]
            elif isinstance(model, Browsing):
                p = 0.9**k * 0.8 ** (k - last - 1) * a[k]
            else:
                p = a[k]
            chance *= p if click else 1 - p
            last = k if click else last
            leaves = model.stops[k] if isinstance(model, DependentClicks) else 1.0
            alive *= 1 - leaves * click
        single = isinstance(model, Cascade | DependentClicks)
        reward = 1 - alive if single else sum(clicks)
        total += chance * reward
    return total


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_expectations_and_best_lists_are_those_of_enumeration(model):
    """300 random catalogues of 6 items: every list's value, and that of the best of all 120."""
    rng = np.random.default_rng(0)
    for _ in range(300 if model.exact else 50):
        a = rng.random(6)
        lists = np.array(list(permutations(range(6), 3)))
        values = model.expected(a[lists])
        some = rng.integers(120)
        assert values[some] == pytest.approx(by_enumeration(model, a[lists[some]]), abs=1e-12)
        assert best_value(model, a[None])[0] == pytest.approx(values.max(), abs=1e-12)


@each("model", MODELS.values(), ids=MODELS)
def test_simulated_rewards_have_their_expectation(model):
    """Statistical: 100,000 users, 5 standard errors (6e-7); clicks are possible ones."""
    rng = np.random.default_rng(1)
    a = np.broadcast_to([0.5, 0.3, 0.8], (100_000, 3))
    clicks, reward = model.clicked(a, rng.random((100_000, 2, 3)))
    error = reward.std() / 100_000**0.5
    assert abs(reward.mean() - model.expected(a[0])) < 5 * error
    assert 0 < error < 0.003
    np.testing.assert_array_equal(model.possible(clicks), clicks)


def test_what_was_looked_at_by_hand():
    clicks = np.array([[0.0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0]])
    cascade = [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]
    np.testing.assert_array_equal(Cascade(4).looked_at(clicks), cascade)
    dependent = [[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]]
    np.testing.assert_array_equal(DependentClicks((1.0,) * 4).looked_at(clicks), dependent)
    np.testing.assert_allclose(
        Browsing(4).looked_at(clicks)[2], [1, 0.9, 0.9**2 * 0.8, 0.9**3], rtol=1e-12
    )
    golden = Browsing(4).expected(np.array([0.3, 0.5, 0.2, 0.4]))  # of an independent program
    assert golden == pytest.approx(1.01800, abs=5e-6)


@each("model", [MODELS["upside down"], Cascade(2)], ids=["position", "cascade"])
def test_the_best_fixed_list(model):
    """Exact by positions; greedy in a cascade, at least 1 - 1/e of the best, here of all lists."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        a = rng.random((4, 5))
        lists = np.array(list(permutations(range(5), model.length)))
        values = model.expected(a[:, lists]).mean(axis=0)
        found = model.expected(a[:, best_fixed_list(model, a)]).mean()
        share = 1 - 1e-12 if isinstance(model, PositionBased) else 0.632
        assert found >= share * values.max()


def test_lists_are_refused_or_repaired():
    """Broken on purpose: an item twice, out of range, a fraction; what a sample becomes."""
    spec = ListRecommendation(n_items=5, length=3, catalogue="shared").spec
    for wrong, sentence in (
        ([[0, 1, 0]], r"3 different items, got \[0, 1, 0\]"),
        ([[0, 1, 5]], r"in \[0, 5\), got 5"),
        ([[0, 1, 1.5]], "whole numbers"),
        ([[0, 1]], "shape"),
        (["abc"], r"3 item numbers, got \['abc'\]"),
    ):
        with pytest.raises(InputError, match=sentence):
            spec.validate(wrong, 1)
    repaired = spec.repaired([[4, 4, 4], [0, 2, 0], [1, 0, 3]])
    np.testing.assert_array_equal(repaired, [[4, 0, 1], [0, 2, 1], [1, 0, 3]])


def spec(catalogue, clicks):
    return ListSpec(catalogue=catalogue, clicks=clicks, horizon=9)


@each(
    ("make", "sentence"),
    [
        (lambda: PositionBased([1, 0.0]), r"chances to be in \(0, 1\], got 0.0"),
        (lambda: PositionBased((1, "a")), r"chances to be in \(0, 1\], got 'a'"),
        (lambda: DependentClicks((1.0, np.nan)), "stops to be in .*, got nan"),
        (lambda: ListRecommendation(decay=200.0), r"decay=200.0 to be a number in \[0, 100\]"),
        (lambda: Catalogue(2.5, 2), "n_items=2.5 to be a whole number"),
        (lambda: spec(np.eye(3), Cascade(2)), r"catalogue to be a Catalogue, got array\("),
        (lambda: spec(Catalogue(5, 2), "cascade"), "clicks to be a ClickModel, got 'cascade'"),
    ],
)
def test_mistakes_are_sentences(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
    assert hash(PositionBased([1, 0.5])) == hash(PositionBased((1, 0.5)))  # as good as a tuple
    by_one = ListRecommendation(clicks="position", length=2, decay=1)  # a whole number is as good
    assert by_one.spec.clicks == PositionBased((1, 0.5))


def test_new_items_take_a_place_after_everybody_has_learned():
    """Vectors of lists are those that were shown, one refill later, too; tastes turn by a quarter
    of a circle."""
    problem = ListRecommendation(n_items=4, length=2, churn=1, drift=1.0, horizon=9)
    problem.reset(Streams([0, 1]))
    board, lists = problem.spec.catalogue, np.array([[0, 1], [2, 3]])
    problem.context()
    before, theta = board.vectors(lists), problem._tastes()
    problem.step(lists)
    np.testing.assert_array_equal(board.vectors(lists), before)
    for _ in range(8):
        clock, shown = board.clock, board.items.copy()
        problem.context()
        assert board.clock == clock + 1
        np.testing.assert_array_equal(board.vectors(lists, clock), shown[[[0], [1]], lists])
        problem.step(lists)
    assert board.refilled.sum() == 16
    assert np.vecdot(theta, problem._tastes()) == pytest.approx(np.zeros(2), abs=1e-12)


ANYBODY = np.array([True])


def test_boards_coverage_and_distance_by_hand():
    """Four unit vectors, two opposite: pairs at 0.5 or 1; a place that is refilled is another.
    Boards are equal if they hold the same, and filled anew with nothing that breaks the cone."""
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


@each("mode", ["ansi", "rgb_array"])
def test_lists_are_drawn_with_their_clicks(mode):
    """A star or a dot for every click; a title says which is which."""
    facts = {"n_items": 9, "length": 3, "clicks": "position", "base_rate": 0.5, "decay": 0.0}
    env = gym.make("dpbandit/ListRecommendation-v0", render_mode=mode, **facts, horizon=50)
    env.reset(seed=0)
    clicks = sum(env.step([5, 0, 7])[4]["clicks"].sum() for _ in range(30))
    picture = env.render()
    if mode == "ansi":
        assert picture.count("*") == clicks > 10
        assert picture.split("last actions ")[1].replace("*", "").startswith("[5 0 7] [5 0 7]")
    else:
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
    problem = ReturningLists(**SMALL)
    proof = certify(PerPerson(ListFADE(epsilon=1.0)), problem, accountants=False)
    assert proof.epsilon == pytest.approx(1.0, abs=1e-6)
    assert proof.ledger.brief == "person, 6 rounds"
    for wrong in (ListFADE(), PersonalFADE()):
        with pytest.raises(InputError, match="choose"):
            certify(wrong, problem, accountants=False)


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
