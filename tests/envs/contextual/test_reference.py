"""Reference prices: by formula, and what they carry from one customer to the next."""

from math import inf

import numpy as np
import pytest
from scipy.special import expit

from dpbandit import InputError, certify
from dpbandit.agents import FADE
from dpbandit.base.random_streams import Streams
from dpbandit.envs import OJPricing, ReferencePricing
from dpbandit.testing import check_problem


@pytest.mark.parametrize("reference", ["list", "paid"])
def test_utilities_are_those_of_the_formula(reference):
    """Margins of a round from those without a reference; r = memory r + (1 - memory) p by hand."""
    settings = {"reference": reference, "list_price": 1.5, "weight": 2.0, "memory": 0.6}
    assert len(check_problem(ReferencePricing(horizon=30, **settings))) == 9
    still, moved = OJPricing(), ReferencePricing(**settings)
    for one in (still, moved):
        one.reset(Streams([0, 1]))
    r, worth = np.full((2, 1), 1.5), still._worth
    for t in range(12):
        np.testing.assert_array_equal(still.context(), moved.context())
        mean = still._table.mean[t]
        logit = np.log(mean / (worth - mean)) + 2.0 * (r - still.prices)
        expected, arm = worth * expit(logit), np.array([t, 11 - t])
        step = moved.step(arm)
        still.step(arm)
        np.testing.assert_allclose(step.expected, expected[[0, 1], arm], rtol=1e-9)
        np.testing.assert_allclose(step.oracle, expected.max(axis=1), rtol=1e-9)
        if reference == "paid":
            r = 0.6 * r + 0.4 * still.prices[arm][:, None]


def test_what_was_paid_reaches_others_whatever_the_agent_does():
    """The second proof: all later prices are the same, and still, if user 0 alone was asked another
    price, later users with the same luck answer otherwise; with a public list they do not. So no
    agent has a certificate, not even one that never learns."""
    told = {}
    for reference in ("list", "paid"):
        for first in (0, 11):
            problem = ReferencePricing(reference=reference, weight=50.0, memory=0.99)
            problem.reset(Streams([0]))
            rewards = []
            for t in range(200):
                problem.context()
                rewards.append(problem.step(np.array([first if t == 0 else 8])).reward[0])
            told[reference, first] = rewards[1:]
    assert told["list", 0] == told["list", 11]
    assert told["paid", 0] != told["paid", 11]
    open_proof = certify(FADE(), ReferencePricing().spec, accountants=False)
    carried = certify(FADE(), ReferencePricing(reference="paid").spec, accountants=False)
    assert (round(open_proof.epsilon, 6), carried.epsilon) == (1.0, inf)
    assert carried.ledger.brief == "not covered"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"reference": "old"}, "reference='old'"),
        ({"memory": 2}, "memory=2"),
        ({"weight": -1}, "weight"),
    ],
)
def test_mistakes_are_named(wrong, words):
    with pytest.raises(InputError, match=words):
        ReferencePricing(**wrong)
