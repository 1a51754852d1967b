"""Prices by a person's own history: weights by hand, what a release moves, what is promised."""

from math import inf, log

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import PersonalPricing
from dpbandit.base.random_streams import Streams
from tests.harness import SHOPPERS

PEOPLE = np.array([2, -1])
"""Whoever comes in two replicas; nobody in the second"""


def visits(agent, actions, sales, person=PEOPLE):
    """Feed her visits, with the same rivals each time; returns their context."""
    visit = SHOPPERS.visit
    offers = np.array([[[1.0, 2.0], [0.0, 1.0]]] * 2)
    context = SHOPPERS.context(person, visit.shown(offers))
    for k, sold in zip(actions, sales, strict=True):
        agent.update(context, np.array([k, k]), np.array([visit.margins[k] * sold] * 2))
    return context


def by_hand(agent, actions, sales):
    """log P(what she did) at each point, a logit of three offers."""
    found = []
    for a, b in agent.theta[0]:
        theirs = np.exp(a - 2 * np.exp(b)) + np.exp(-np.exp(b))
        total = 0.0
        for k, sold in zip(actions, sales, strict=True):
            ours = np.exp(a - np.exp(b) * SHOPPERS.visit.prices[k])
            total += log((ours if sold else theirs) / (ours + theirs))
        found.append(total)
    return found


def test_what_is_remembered_by_hand():
    """Of three visits, of which the fourth is beyond the cap; anew after a release has moved the
    points; nothing of nobody. A sign, a price or a visit too few would show."""
    actions, sales = [0, 2, 1], [1, 0, 1]
    agent = PersonalPricing(epsilon=inf, particles=8, first_batch=2).make(SHOPPERS, Streams([0, 1]))
    before = agent.theta.copy()
    visits(agent, [*actions, 0], [*sales, 0])
    assert agent.batch == 1
    assert np.abs(agent.theta[0] - before[0]).max() > 0.01
    for person, wanted in ((PEOPLE, by_hand(agent, actions, sales)), (-PEOPLE[::-1], [0.0] * 8)):
        assert agent.remembered(person)[0, :8] == pytest.approx(wanted, abs=1e-9)
    survey = PersonalPricing(population="survey", particles=8).make(SHOPPERS, Streams([0, 1]))
    context = visits(survey, actions, sales)
    hers = by_hand(survey, actions, sales)
    assert survey.remembered(PEOPLE)[0, :8] == pytest.approx(hers)
    weights = np.exp(hers) / np.exp(hers).sum()
    offers = SHOPPERS.visit.offers(SHOPPERS.shown(context))
    earned = SHOPPERS.visit.margins * (weights @ survey.visit.sales(survey.theta, offers)[0])
    assert survey.act(context)[0] == earned.argmax()


def test_a_release_moves_the_population_if_it_is_longer_than_its_noise():
    """By hand, D = 2: a release of (a, (A - I) / 2), off-diagonals times sqrt(2), without noise; a
    release shorter than its noise moves nothing."""
    agent = PersonalPricing(epsilon=inf, particles=8, first_batch=2).make(SHOPPERS, Streams([0]))
    a, A = np.array([0.2, -0.1]), np.array([[1.5, 0.3], [0.3, 0.8]])
    told = np.concatenate([a, [0.25, 0.15 * 2**0.5, -0.1]])[None]
    agent.learn(agent.counts[0] * told)
    assert agent.mean[0].tolist() == pytest.approx([0.4, -0.2])  # the guess has stddev 2
    cov = agent.root[0] @ agent.root[0].T
    np.testing.assert_allclose(cov, 4 * (A - np.outer(a, a)), atol=1e-9)
    noisy = PersonalPricing(epsilon=1.0, particles=8, first_batch=2).make(SHOPPERS, Streams([0]))
    noisy.learn(told)
    assert noisy.mean.tolist() == [[0, 0]]
    np.testing.assert_allclose(noisy.root[0], 2 * np.eye(2), atol=1e-9)


def test_what_is_promised():
    """What needs no mechanism is free; what is learned costs what it claims, once a batch."""
    for config, epsilon in (
        (PersonalPricing(), 1.0),
        (PersonalPricing(memory=False), 1.0),
        (PersonalPricing(epsilon=inf), inf),
        (PersonalPricing(population="survey"), 0.0),
        (PersonalPricing(population="guess", memory=False), 0.0),
    ):
        assert certify(config, SHOPPERS, accountants=False).epsilon == pytest.approx(epsilon)
