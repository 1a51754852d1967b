"""The lower bound for private experts: printed values, limits, and who falls below it."""

from math import inf

import numpy as np
import pytest

from dpbandit.agents import ExponentialLeader, Hedge
from dpbandit.base.inputs import InputError
from dpbandit.envs import Experts
from dpbandit.experiments.experts import least_regret, news
from dpbandit.running.loop import play


@pytest.mark.parametrize(
    ("d", "at_1", "at_tenth"), [(16, 2.306, 18.82), (256, 5.085, 45.99), (4096, 7.849, 73.68)]
)
def test_values(d, at_1, at_tenth):
    """Golden, from the specification."""
    assert least_regret(d, 1.0) == pytest.approx(at_1, abs=6e-4)
    assert least_regret(d, 0.1) == pytest.approx(at_tenth, abs=6e-3)


def test_terms():
    """Golden, by hand: d = 4, epsilon = ln 2: 3/4 + (1 - 2/4) + 0 = 5/4, with delta = 0.1 less
    0.1 (e^epsilon - 1) / (e^epsilon - 1) in the second term; without privacy the first guess."""
    assert least_regret(4, np.log(2)) == pytest.approx(1.25)
    assert least_regret(4, np.log(2), 0.1) == pytest.approx(1.15)
    assert least_regret(4, inf) == 0.75
    assert least_regret(4, 0.1, tail=0) == least_regret(1, 0.1) == 0
    assert least_regret(4, 1e-3, tail=3) == pytest.approx(2.25, abs=0.01)
    assert news(256, 0.1) == 56
    with pytest.raises(InputError):
        least_regret(4, 0.0)


def regret(config, *, epsilon, replicas):
    problem = Experts(kind="lower-bound", n_actions=256, epsilon=epsilon, horizon=60)
    seeds = [(11, r) for r in range(replicas)]
    return play(problem, config, seeds, marks=np.array([60])).regret[-1]


def test_private_agents_stay_above_and_others_fall_below():
    """Statistical, one-sided, 4 standard errors (false alarm 3e-5): an agent that is epsilon-DP
    does not fall below the bound; power: Hedge, 6.04 in the specification, is found out."""
    bound = least_regret(256, 0.1)
    private = regret(ExponentialLeader(epsilon=0.1, delta=0.0), epsilon=0.1, replicas=100)
    assert private.mean() + 4 * private.std(ddof=1) / 10 > bound
    bold = regret(Hedge(rate=1.0), epsilon=0.1, replicas=200)
    error = bold.std(ddof=1) / 200**0.5
    assert bold.mean() + 4 * error < bound
    assert abs(bold.mean() - 6.04) < 4 * error
