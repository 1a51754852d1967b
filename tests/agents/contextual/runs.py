"""Small problems for FADE, short runs of anybody, and settings that are refused."""

import re
from functools import cache
from math import sqrt

import pytest

from dpbandit import InputError, play
from dpbandit.agents import FADE
from dpbandit.specs.protocols import ContextualSpec
from dpbandit.specs.selling import CostSpec, OfferSpec, PriceListSpec
from tests.each import asserting

DISJOINT = ContextualSpec(n_actions=3, dim=2, horizon=200, reward_low=-1.0)
SHARED = ContextualSpec(n_actions=3, dim=2, horizon=200, shared=True)
PRICES = PriceListSpec(
    n_actions=3,
    dim=2,
    horizon=200,
    prices=(1.0, 1.5, 2.0),
    unit_cost=0.5,
    reward_high=1.5,
    link="other",
)
COSTS = CostSpec.of(
    PRICES.prices, (0.2, 0.8), feature=1, length=sqrt(2), dim=2, horizon=200, most_units=2
)
OFFERS = OfferSpec(
    n_actions=3,
    dim=2,
    horizon=200,
    prices=(1.0, 1.5, 2.0),
    unit_costs=(0.5, 1.0, 0.5),
    products=(0, 1, 1),
    reward_high=1.5,
    link="other",
)
REWARDS = FADE(coding="rewards")


def contextual(**fields):
    return ContextualSpec(
        **{"n_actions": 2, "dim": 50, "horizon": 10_000, "reward_low": -1.0, **fields}
    )


def sums_of(agent):
    return getattr(agent, "inner", agent).sums


@cache
def curves(config, environment="GLMBandit", *, horizon, replicas, seed=None, **env_kwargs):
    """Regret at the default marks, (marks, R)."""
    seeds = range(replicas) if seed is None else [(seed, r) for r in range(replicas)]
    return play(environment, config, seeds, horizon=horizon, env_kwargs=env_kwargs).regret


def errors(gain):
    """By how many standard errors the mean of a gain is above 0."""
    return gain.mean() * sqrt(len(gain)) / gain.std(ddof=1)


def check_refused(agent, **wrong):
    """Each setting by itself, in a sentence that names it and its value, and says what is right."""
    for field, value in wrong.items():
        sentence = rf"^Expected {field}={re.escape(repr(value))} .*(to be|only with|[<>])"
        with asserting(field), pytest.raises(InputError, match=sentence):
            agent(**{field: value})
