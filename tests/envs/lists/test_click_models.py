"""Click models: expectations against enumeration and simulation, oracles against all lists."""

from itertools import permutations, product

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.envs import ListRecommendation
from dpbandit.envs.lists.list_recommendation import best_fixed_list, best_value
from dpbandit.losses.click_models import Browsing, Cascade, DependentClicks, PositionBased
from dpbandit.specs.lists import Catalogue, ListSpec

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


def test_chances_in_a_list_are_as_good_as_in_a_tuple():
    assert hash(PositionBased([1, 0.5])) == hash(PositionBased((1, 0.5)))
    by_one = ListRecommendation(clicks="position", length=2, decay=1)  # a whole number is as good
    assert by_one.spec.clicks == PositionBased((1, 0.5))


def test_browsing_by_hand():
    """Golden, of an independent program."""
    a = np.array([0.3, 0.5, 0.2, 0.4])
    assert Browsing(4).expected(a) == pytest.approx(1.01800, abs=5e-6)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
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


@pytest.mark.parametrize("model", [MODELS["upside down"], Cascade(2)], ids=["position", "cascade"])
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


@pytest.mark.parametrize(
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


def test_new_items_take_a_place_after_everybody_has_learned():
    """Vectors of lists are those that were shown, one refill later, too; tastes turn by a quarter
    of a circle."""
    from dpbandit.base.random_streams import Streams

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
