"""Short runs, how much one agent loses less than another, and settings that are refused."""

import re
from functools import cache
from math import sqrt

import pytest

from dpbandit import InputError, play
from tests.each import asserting


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
