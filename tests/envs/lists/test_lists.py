"""Lists, and people who return, to lists and as customers: click models against enumeration and
simulation, what is shown, who comes when, what they are like, what is best, and what is shipped."""

import hashlib
import re
from dataclasses import replace
from itertools import permutations, product
from math import sqrt
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from scipy.special import expit, logit, ndtri
from scipy.stats import chisquare, qmc

import dpbandit.envs
from dpbandit import certify
from dpbandit.agents import ListFADE, PerPerson, PersonalFADE
from dpbandit.base.random_streams import Streams
from dpbandit.envs import (
    ListRecommendation,
    RatingsBandit,
    RatingsLists,
    ReturningLists,
    ReturningPricing,
    ReturningUsers,
)
from dpbandit.envs.arrivals import ARRIVALS
from dpbandit.envs.lists.list_recommendation import ListDiagnostics, best_fixed_list, best_value
from dpbandit.envs.people.returning_pricing import frozen
from dpbandit.losses.click_models import Browsing, Cascade, DependentClicks, PositionBased
from dpbandit.privacy.clicks import features
from dpbandit.specs.lists import Catalogue, ListSpec
from dpbandit.testing.checks import check_problem
from tests.each import each, refused
from tests.envs.contextual.ratings_files import example

ROOTS = (1.0, 2**-0.5, 3**-0.5)
MODELS = {
    "position": PositionBased(ROOTS), "cascade": Cascade(3), "dependent": DependentClicks(ROOTS),
    "browsing": Browsing(3), "upside down": PositionBased((0.2, 0.9, 0.5)),
    "seldom": DependentClicks((0.3, 0.6, 0.4)),
}  # fmt: skip


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


@each("word", ["upside down", "cascade", "seldom"])
def test_the_best_fixed_list(word):
    """Exact by positions; greedy in others, at least 1 - 1/e of the best, here of all lists.
    Oracle: place by place, by falling weights, the item that adds most to what is there."""
    rng, model = np.random.default_rng(2), MODELS[word]
    for _ in range(50):
        a = np.column_stack([rng.random((4, 5)), np.zeros(4)])  # item 5 is nothing
        lists = np.array(list(permutations(range(5), model.length)))
        values = model.expected(a[:, lists]).mean(axis=0)
        found = model.expected(a[:, best_fixed_list(model, a[:, :5])]).mean()
        share = 1 - 1e-12 if isinstance(model, PositionBased) else 0.632
        assert found >= share * values.max()
        shown = np.full(model.length, 5)
        for k in np.argsort(-model.weights, kind="stable"):
            tried = np.array([shown] * 5)
            tried[:, k] = range(5)
            tried = tried[[j not in shown for j in range(5)]]
            shown = tried[model.expected(a[:, tried]).mean(axis=0).argmax()]
        assert found == pytest.approx(model.expected(a[:, shown]).mean(), abs=1e-12)


@each("word", [*MODELS][:4])
def test_lists_earn_what_the_page_says(word):
    """Oracle: all clicks and all 60 lists, with weights k^-decay and v_k = k^-(1/2) written out."""
    problem = ListRecommendation(n_items=5, length=3, clicks=word, decay=0.5, base_rate=0.4)
    problem.reset(Streams([0]))
    a, lists = problem._attraction(problem.context())[0], np.array([*permutations(range(5), 3)])
    values = [by_enumeration(MODELS[word], a[shown]) for shown in lists]
    step = problem.step(lists[[33]])
    assert step.expected[0] == pytest.approx(values[33], abs=1e-12)
    assert step.oracle[0] == pytest.approx(max(values), abs=1e-12)


def test_lists_and_what_was_looked_at():
    """Broken on purpose: an item twice, out of range, a fraction; what a sample becomes; and what
    of a list was looked at, by hand."""
    spec = ListRecommendation(n_items=5, length=3, catalogue="shared").spec
    for wrong, sentence in (
        ([[0, 1, 0]], r"3 different items, got \[0, 1, 0\]"), ([[0, 1, 5]], r"in \[0, 5\), got 5"),
        ([[0, 1, 1.5]], "whole numbers"), ([[0, 1]], "shape"),
        (["abc"], r"3 item numbers, got \['abc'\]"),
    ):  # fmt: skip
        refused(sentence, spec.validate, wrong, 1)
    repaired = spec.repaired([[4, 4, 4], [0, 2, 0], [1, 0, 3]])
    np.testing.assert_array_equal(repaired, [[4, 0, 1], [0, 2, 1], [1, 0, 3]])
    clicks = np.array([[0.0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0]])
    cascade = [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]
    np.testing.assert_array_equal(Cascade(4).looked_at(clicks), cascade)
    dependent = [[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]]
    np.testing.assert_array_equal(DependentClicks((1.0,) * 4).looked_at(clicks), dependent)
    np.testing.assert_allclose(
        Browsing(4).looked_at(clicks)[2], [1, 0.9, 0.9**2 * 0.8, 0.9**3], rtol=1e-12
    )


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
    refused(sentence, make)
    assert hash(PositionBased([1, 0.5])) == hash(PositionBased((1, 0.5)))  # as good as a tuple
    by_one = ListRecommendation(clicks="position", length=2, decay=1)  # a whole number is as good
    assert by_one.spec.clicks == PositionBased((1, 0.5))


def test_boards_new_items_coverage_and_distance():
    """Vectors of lists are those that were shown, one refill later, too; tastes turn by a quarter
    of a circle. By hand, of four unit vectors: coverage and distances; boards are equal if they
    hold the same, and filled anew with nothing that breaks the cone."""
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
    assert (board.refilled.sum(axis=0) > 0).all()  # every place, at last
    assert np.vecdot(theta, problem._tastes()) == pytest.approx(np.zeros(2), abs=1e-12)
    board = Catalogue.of(np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]]))
    board.start(Streams([0]), churn=True)
    shown = ListDiagnostics(board, 1)
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
        refused("none longer than 1", Catalogue.of, wrong)


ANYBODY = np.array([True])


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
        person, u = spec.person(context), spec.visit_context(context)
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
            theta = problem._theta[r] + problem._personal[r, i]
            chance = expit(logit(0.05) + 0.7 * sqrt(3) * items[r] @ (u[r] * theta))
            values = 1 - np.prod(1 - chance[lists], axis=1)
            assert step.oracle[r] == pytest.approx(values.max(), abs=1e-12)
            mine = 1 - np.prod(1 - chance[shown[r]])
            assert step.expected[r] == pytest.approx(mine, abs=1e-12)
    assert 5 < empty < 40
    assert len(said) > 8


def test_lists_for_people():
    """The claim is of a person; without `per-person` there is one sentence. People who were not
    clicked at come half as often."""
    problem = ReturningLists(**SMALL)
    proof = certify(PerPerson(ListFADE(epsilon=1.0)), problem, accountants=False)
    assert proof.epsilon == pytest.approx(1.0, abs=1e-6)
    assert proof.ledger.brief == "person, 6 rounds"
    for wrong in (ListFADE(), PersonalFADE()):
        refused("choose", certify, wrong, problem, accountants=False)
    problem = ReturningLists(**{**SMALL, "visits": 60, "horizon": 240}, arrivals="loyal")
    problem.reset(Streams(range(20)))
    here = []
    for _ in range(240):
        here.append(problem.spec.person(problem.context()) >= 0)
        problem.step(np.tile([0, 1], (20, 1)))
    assert np.mean(here[:2]) > 0.9
    assert 0.45 < np.mean(here[60:]) < 0.65  # few click


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


FEW = {"people": 6, "visits": 4, "horizon": 24, "n_actions": 3, "dim": 2}


def played(R=5, **arguments):
    """Play arm 0 throughout; return the person in each slot, (T, R), and the steps."""
    problem = ReturningUsers(**{**FEW, **arguments})
    problem.reset(Streams(range(R)))
    who, steps = [], []
    for _ in range(problem.horizon):
        who.append(problem.spec.person(problem.context()))
        steps.append(problem.step(np.zeros(R, np.int64)))
    return np.array(who), steps, problem


def test_who_comes_when():
    """Exactly k times each, in an order of its own for each replica, by turns, or by rates, as far
    apart as is promised. Nobody is displaced, an empty slot is nothing at all, and who was pleased
    comes more often."""
    who, _, _ = played()
    assert all((np.bincount(row, minlength=6) == 4).all() for row in who.T)
    assert len({tuple(row) for row in who.T}) == 5
    turns, _, _ = played(arrivals="robin")
    assert (turns == np.arange(24)[:, None] % 6).all()
    for arrivals in ARRIVALS:
        who, _, problem = played(arrivals=arrivals, R=40)
        gaps = [np.diff(np.flatnonzero(row == i)) for row in who.T for i in range(6)]
        assert np.concatenate(gaps).min() == problem.spec.visits.separation
    often, _, _ = played(arrivals="poisson", horizon=600, R=1)
    counts = np.bincount(often[:, 0], minlength=6)
    assert counts.max() > max(4, 2 * counts.min())  # by rates, beyond the cap
    full, _, _ = played()
    some, steps, problem = played(empty=0.5)
    assert ((some == full) | (some == -1)).all()
    assert 0.3 < (some == -1).mean() < 0.7
    nothing = np.array([[step.reward, step.expected, step.oracle, step.regret] for step in steps])
    assert (nothing.transpose(0, 2, 1)[some == -1] == 0).all()
    loyal, _, _ = played(arrivals="loyal", link="logistic", R=40)
    again = loyal[12:] == -1
    assert (loyal[:3] == -1).mean() < 0.1 < again.mean() < 0.5
    assert (problem.spec.visit_context(np.full((2, 7), 3.0)) == 3).all()


@each("link", ["identity", "logistic"])
def test_tastes_are_persistent_and_regret_is_against_her_own_best_arm(link):
    """Means by hand from the parameters: a person has the same ones in all her visits."""
    problem = ReturningUsers(**FEW, tastes=2.0, noise=0.0, link=link)
    problem.reset(Streams(range(3)))
    common = problem._theta.mean(axis=1)
    assert (np.linalg.norm(problem._theta - common[:, None], axis=2) > 0.1).any()
    for _ in range(24):
        context = problem.context()
        i, x = problem.spec.person(context), problem.spec.visit_context(context)
        mean = np.einsum("rkd,rd->rk", x, problem._theta[np.arange(3), i])
        mean = 1 / (1 + np.exp(-4 * mean)) if link == "logistic" else mean
        step = problem.step(np.array([0, 1, 2]))
        assert np.allclose(step.oracle, mean.max(axis=1))
        assert np.allclose(step.expected, mean[np.arange(3), [0, 1, 2]])
        assert link == "logistic" or np.allclose(step.reward, step.expected)


def test_tastes_end_where_the_page_says():
    """In 2,000 people with one feature 4.6 % are cut off, at 2 `tastes`, and the others are normal:
    the variance is 0.92 of it (standard error 0.02). Of nine features as long all together."""
    users = ReturningUsers(people=2000, dim=1, tastes=0.25)
    lists = ReturningLists(people=2000, taste=1, tastes=0.25, n_items=9)
    for problem in (users, lists):
        problem.reset(Streams([0]))
    for own in (users._theta - np.sign(users._theta.mean()), lists._personal):
        assert np.abs(own).max() == pytest.approx(0.5)
        assert 0.03 < (np.abs(own) > 0.4999).mean() < 0.06
        assert np.square(own / 0.25).mean() == pytest.approx(0.92, abs=0.1)
    lists = ReturningLists(people=2000, taste=9, tastes=0.25, n_items=9)
    lists.reset(Streams([0]))
    assert np.square(lists._personal / 0.25).sum(axis=2).mean() == pytest.approx(1, abs=0.06)
    users = ReturningUsers(people=2000, dim=9, tastes=0.25)
    users.reset(Streams([0]))
    assert users._theta.var(axis=1).sum() / 0.25**2 == pytest.approx(1, abs=0.06)


DATA = Path(dpbandit.envs.__path__[0]) / "data"


def by_hand(theta, offers, price, cost=4.0):
    """Return the mean margin of a price: a logit of four contracts, one after the other."""
    money = -np.exp(theta[-1])
    ours = np.exp(theta[1] + money * price)
    theirs = [np.exp(row[:-1] @ theta[:-1] + money * row[-1]) for row in offers]
    return (price - cost) * ours / (ours + sum(theirs))


def test_a_round_is_a_logit_of_four_contracts():
    """The oracle, what is expected and the reward by hand, from parameters and from the context;
    a context that were scaled otherwise, or a wrong column, would show. Designs come as often as
    in the survey: 12,000 of them, which are not as likely as each other (asserted)."""
    problem = ReturningPricing(people=3, visits=8, horizon=24)
    problem.reset(Streams(range(2)))
    taken = np.array([1, 6])
    for t in range(24):
        context = problem.context()
        offers = problem.spec.visit.offers(problem.spec.visit_context(context))
        step = problem.step(taken)
        for r in range(2):
            theta = problem._theta[r, t % 3]
            each_price = [by_hand(theta, offers[r], price) for price in range(5, 14)]
            assert step.oracle[r] == pytest.approx(max(each_price), rel=1e-9)
            assert step.expected[r] == pytest.approx(each_price[taken[r]], rel=1e-9)
            assert step.reward[r] in (0, taken[r] + 1)
    assert set(offers[..., -1].ravel()) <= {0, 7, 9}
    problem = ReturningPricing(people=1, visits=200, horizon=200)
    problem.reset(Streams(range(60)))
    met = np.zeros(len(problem._offers))
    for _ in range(200):
        problem.context()
        met += (problem._rival_offers[:, None] == problem._offers).all(axis=(2, 3)).sum(axis=0)
        problem.step(np.zeros(60, int))
    often = np.array(frozen()["times"])
    assert chisquare(met, often * met.sum() / often.sum()).pvalue > 1e-6
    assert chisquare(met).pvalue < 1e-6


def values():
    """A visit's worth, of a random price, the best fixed one, by rivals, by person and by both; and
    the variances between people and between designs of the last. All 60 designs, 4,095 people."""
    problem = ReturningPricing()
    z = ndtri(qmc.Sobol(6, scramble=False).fast_forward(1).random(4095))
    theta = problem._mean + z @ problem._root.T
    often = np.array(frozen()["times"]) / np.sum(frozen()["times"])
    visit = problem.spec.visit
    earned = np.array([visit.margins * visit.sales(theta, rows) for rows in problem._offers])
    person = np.einsum("o,onk->nk", often, earned)
    best = earned.max(axis=2)  # (60, 4095)
    found = [
        person.mean(),
        person.mean(axis=0).max(),
        often @ earned.mean(axis=1).max(axis=1),
        person.max(axis=1).mean(),
        often @ best.mean(axis=1),
    ]
    designs = best.mean(axis=1)
    return found, (often @ best).var(), often @ (designs - often @ designs) ** 2, person


def test_what_knowing_a_customer_is_worth():
    """Within 4 standard errors of another program's draw of 4,000 people and 200 designs; the best
    fixed price is 8 cents, and the docstring's numbers are these."""
    found, people, designs, person = values()
    error = (people / 4000 + designs / 200) ** 0.5
    for mine, theirs in zip(found, (1.473, 1.987, 2.039, 2.336, 2.545), strict=True):
        assert abs(mine - theirs) < 4 * error
    assert error < 0.05
    assert person.mean(axis=0).argmax() == 3
    said = re.findall(r"\b[12]\.\d\d\b", ReturningPricing.__doc__)
    assert [float(word) for word in said] == pytest.approx(found, abs=0.02)


def test_surveys_and_public_facts():
    """A survey moves by one standard deviation, the same people come; facts of rivals that once
    ended in Python's own words, or played, are refused."""
    right, wrong = ReturningPricing(), ReturningPricing(survey_shift=1.0, survey_spread=0.5)
    for problem in (right, wrong):
        problem.reset(Streams([0]))
    np.testing.assert_array_equal(right._theta, wrong._theta)
    moved = np.subtract(wrong.spec.visit.survey.mean, right.spec.visit.survey.mean)
    sd = right.spec.visit.survey.matrix[-1, -1] ** 0.5
    assert moved.tolist() == pytest.approx([0, 0, 0, 0, 0, sd])
    assert wrong.spec.visit.survey.matrix == pytest.approx(right.spec.visit.survey.matrix / 2)
    assert wrong.spec.visit.guess == right.spec.visit.guess
    many = ReturningPricing(people=4000, visits=9)
    many.reset(Streams([1]))
    law, theta = right.spec.visit.survey, many._theta[0]
    sd, error = np.sqrt(np.diag(law.matrix)), 5 / 4000**0.5  # of correlations, at most
    assert (np.abs(theta.mean(axis=0) - law.mean) < error * sd).all()
    apart = np.abs(np.cov(theta.T) - law.matrix) / np.outer(sd, sd)
    assert apart.max() < error * 2**0.5
    spec = ReturningPricing(horizon=9, people=3).spec.visit
    for change, said in (
        ({"rivals": "2"}, "rivals='2' to be a whole number"), ({"rivals": 0}, "rivals=0"),
        ({"offer": "ab"}, "offer='ab' to be 5 numbers"),
        ({"largest": 3}, "largest=3 to be numbers"),
        ({"largest": (0.0, *spec.largest[1:])}, "smallest of largest=0.0"),
        ({"survey": 3}, "survey=3 to be a Prior"), ({"guess": None}, "guess=None to be a Prior"),
    ):  # fmt: skip
        refused(said, replace, spec, **change)


def test_who_was_served_comes_again():
    """With "loyal" arrivals those who took ours come, at any price, those who did not half of the
    time."""
    alone = ReturningPricing(people=1, arrivals="loyal", empty=0.6, visits=9, horizon=9)
    for action in (0, 8):
        alone.reset(Streams(range(4000)))
        first = alone.spec.person(alone.context()) >= 0
        lost = first & (alone.step(np.full(4000, action)).reward == 0)
        second = alone.spec.person(alone.context()) >= 0
        assert second[lost].mean() == pytest.approx(0.2, abs=0.06)  # half of .4
        assert second[~lost].mean() == pytest.approx(0.4, abs=0.06)


def test_what_is_shipped_is_what_was_fitted():
    """The page names the file's hash; what agents play keeps the contract in every order."""
    told = (DATA / "electricity.md").read_text()
    found = hashlib.sha256((DATA / "electricity_population.json").read_bytes()).hexdigest()
    assert found in told
    assert np.array(frozen()["sd"]) ** 2 == pytest.approx(np.diag(frozen()["covariance"]), abs=1e-4)
    for arrivals in ("robin", "exactly", "poisson"):
        check_problem(
            ReturningPricing(people=5, visits=10, horizon=50, arrivals=arrivals, empty=0.2)
        )
