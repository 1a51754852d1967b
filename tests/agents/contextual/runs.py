"""Short runs, and how much one agent loses less than another."""

from functools import cache
from math import sqrt

from dpbandit import play


@cache
def curves(config, environment="GLMBandit", *, horizon, replicas, seed=None, **env_kwargs):
    """Regret at the default marks, (marks, R)."""
    seeds = range(replicas) if seed is None else [(seed, r) for r in range(replicas)]
    return play(environment, config, seeds, horizon=horizon, env_kwargs=env_kwargs).regret


def errors(gain):
    """By how many standard errors the mean of a gain is above 0."""
    return gain.mean() * sqrt(len(gain)) / gain.std(ddof=1)
