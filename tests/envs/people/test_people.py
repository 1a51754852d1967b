"""People who return, also as customers: who comes when, what they are like, what is best, and what
is shipped."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import qmc

import dpbandit.envs
from dpbandit import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ReturningPricing, ReturningUsers
from dpbandit.envs.people.returning_pricing import frozen
from dpbandit.testing.checks import check_problem

SMALL = {"people": 6, "visits": 4, "horizon": 24, "n_actions": 3, "dim": 2}


def played(R=5, **arguments):
    """Who came in each slot, (T, R), and the steps, of arm 0 throughout."""
    problem = ReturningUsers(**{**SMALL, **arguments})
    problem.reset(Streams(range(R)))
    who, steps = [], []
    for _ in range(problem.horizon):
        who.append(problem.spec.person(problem.context()))
        steps.append(problem.step(np.zeros(R, np.int64)))
    return np.array(who), steps, problem


def test_who_comes_when():
    """Exactly k times each, in an order of its own for each replica, by turns, or by rates. Nobody
    is displaced, an empty slot is nothing at all, and who was pleased comes more often."""
    who, _, _ = played()
    assert all((np.bincount(row, minlength=6) == 4).all() for row in who.T)
    assert len({tuple(row) for row in who.T}) == 5
    turns, _, problem = played(arrivals="robin")
    assert (turns == np.arange(24)[:, None] % 6).all()
    assert problem.spec.visits.separation == 6
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
    assert (problem.spec.shown(np.full((2, 7), 3.0)) == 3).all()


def test_tastes_are_persistent_and_regret_is_against_her_own_best_arm():
    """By hand, from the parameters: the same person has the same in all her visits."""
    problem = ReturningUsers(**SMALL, tastes=2.0, noise=0.0)
    problem.reset(Streams(range(3)))
    common = problem._theta.mean(axis=1)
    assert (np.linalg.norm(problem._theta - common[:, None], axis=2) > 0.1).any()
    for _ in range(24):
        context = problem.context()
        i, x = problem.spec.person(context), problem.spec.shown(context)
        mean = np.einsum("rkd,rd->rk", x, problem._theta[np.arange(3), i])
        step = problem.step(np.array([0, 1, 2]))
        assert np.allclose(step.oracle, mean.max(axis=1))
        assert np.allclose(step.reward, mean[np.arange(3), [0, 1, 2]])


DATA = Path(dpbandit.envs.__path__[0]) / "data"


def by_hand(theta, offers, price, cost=4.0):
    """What a price earns from one customer: a logit of four contracts, one after the other."""
    money = -np.exp(theta[-1])
    ours = np.exp(theta[1] + money * price)
    theirs = [np.exp(row[:-1] @ theta[:-1] + money * row[-1]) for row in offers]
    return (price - cost) * ours / (ours + sum(theirs))


def test_a_round_is_a_logit_of_four_contracts():
    """The oracle, what is expected and the reward by hand, from parameters and from the context;
    a context that were scaled otherwise, or a wrong column, would show."""
    problem = ReturningPricing(people=3, visits=8, horizon=24)
    problem.reset(Streams(range(2)))
    taken = np.array([1, 6])
    for t in range(24):
        context = problem.context()
        offers = problem.spec.visit.offers(problem.spec.shown(context))
        step = problem.step(taken)
        for r in range(2):
            theta = problem._theta[r, t % 3]
            each_price = [by_hand(theta, offers[r], price) for price in range(5, 14)]
            assert step.oracle[r] == pytest.approx(max(each_price), rel=1e-9)
            assert step.expected[r] == pytest.approx(each_price[taken[r]], rel=1e-9)
            assert step.reward[r] in (0, taken[r] + 1)
    assert set(offers[..., -1].ravel()) <= {0, 7, 9}


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
    spec = ReturningPricing(horizon=9, people=3).spec.visit
    for change, said in (
        ({"rivals": "2"}, "rivals='2' to be a whole number"),
        ({"rivals": 0}, "rivals=0"),
        ({"offer": "ab"}, "offer='ab' to be 5 numbers"),
        ({"largest": 3}, "largest=3 to be numbers"),
        ({"largest": (0.0, *spec.largest[1:])}, "smallest of largest=0.0"),
        ({"survey": 3}, "survey=3 to be a Prior"),
        ({"guess": None}, "guess=None to be a Prior"),
    ):
        with pytest.raises(InputError, match=said):
            replace(spec, **change)


def test_who_was_served_comes_again():
    """With "loyal" arrivals those who took ours come, those who did not half of the time: every
    slot of the second half is empty less often at 5 cents than at 13."""
    empty = []
    for action in (0, 8):
        problem = ReturningPricing(people=20, visits=20, horizon=400, arrivals="loyal")
        problem.reset(Streams(range(20)))
        came = []
        for _ in range(400):
            came.append(problem.spec.person(problem.context()) >= 0)
            problem.step(np.full(20, action))
        empty.append(1 - np.mean(came[200:]))
    assert 0.05 < empty[0] < empty[1] - 0.05 < 0.45


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
