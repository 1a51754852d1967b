"""People who return: who comes when, what they are like, and what an empty slot is."""

import numpy as np

from dpbandit.base.random_streams import Streams
from dpbandit.envs import ReturningUsers

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


def test_everybody_comes_as_often_as_it_says():
    """Exactly k times each, in an order of its own for each replica; by turns N slots apart."""
    who, _, _ = played()
    assert all((np.bincount(row, minlength=6) == 4).all() for row in who.T)
    assert len({tuple(row) for row in who.T}) == 5
    turns, _, problem = played(arrivals="robin")
    assert (turns == np.arange(24)[:, None] % 6).all()
    assert problem.spec.visits.separation == 6
    often, _, _ = played(arrivals="poisson", horizon=600, R=1)
    counts = np.bincount(often[:, 0], minlength=6)
    assert counts.max() > max(4, 2 * counts.min())  # by rates, beyond the cap


def test_nobody_is_displaced_and_empty_slots_cost_nothing():
    """A slot has one candidate, whatever others do; without her it is empty: no reward, no regret,
    features 0. Those who were pleased come again, those who were not half of the time."""
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
