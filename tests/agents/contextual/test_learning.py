"""Which agent loses less than which: comparisons on the same users."""

from math import sqrt

import numpy as np
import pytest

from dpbandit.agents import (
    DPHDB,
    DPUCB,
    FADE,
    GLMUCB,
    JDPGLMUCB,
    BatchMoment,
    DPHDBChoices,
    FullBudgetFADE,
    Greedy,
    LassoBandit,
    OnlineFrankWolfe,
    Priced,
    Uniform,
)
from dpbandit.experiments import CASES
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play

P1 = CASES["contextual/p1"].env_kwargs
SPARSE = {"dim": 40, "n_actions": 2, "parameters": "sparse-signs", "sparsity": 3}
STEEP = {"dim": 8, "n_actions": 4, "link": "logistic", "signal": 6.0}
WARM = {"delta": 1e-4, "warm_up": 120, "radius": 0.2}
GAUSSIAN = DPHDB(gradient_clip=0.4, **WARM)


def fade(epsilon):
    return FADE(epsilon=epsilon, delta=1e-4)


COMPARISONS = {
    "sparsity pays": ("GLMBandit", SPARSE, 300, Greedy(), LassoBandit()),
    "the right link pays": ("GLMBandit", STEEP, 1000, GLMUCB(link="identity"), GLMUCB()),
    "a model of demand": ("OJPricing", {}, 4000, DPUCB(epsilon=8.0), Priced(DPUCB(epsilon=8.0))),
    "steep demand in a large ball": (
        "OJPricing",
        {},
        2500,
        Uniform(),
        Priced(DPHDB(epsilon=10.0, radius=20.0)),
    ),
    "demand in doubling batches": ("OJPricing", {}, 2000, Uniform(), JDPGLMUCB(epsilon=4.0)),
    "sums beat choices": (
        "GLMBandit",
        P1,
        2000,
        DPHDBChoices(residual_clip=0.3, **WARM),
        GAUSSIAN,
    ),
    "no noise at all": ("GLMBandit", P1, 1000, GAUSSIAN, OnlineFrankWolfe(warm_up=120)),
    "sums that fade": (
        "GLMBandit",
        P1,
        10_000,
        BatchMoment(epsilon=1.0, delta=1e-4),
        fade(1.0),
    ),
    "epsilon 3": ("GLMBandit", P1, 1000, fade(1.0), fade(3.0)),
    "epsilon 10": ("GLMBandit", P1, 1000, fade(3.0), fade(10.0)),
    "rewards 100 rounds late": ("GLMBandit", P1 | {"delay": 100}, 1000, Uniform(), fade(3.0)),
    "a budget for each release": ("GLMBandit", {}, 1000, FADE(), FullBudgetFADE()),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_second_loses_less(name):
    """Statistical, paired over 20 replicas, one-sided at 3 standard errors: false alarm 0.4 % by
    Student's t if both were equal. The gains are 4 standard errors or more on other seeds, too."""
    environment, settings, horizon, worse, better = COMPARISONS[name]
    problem = problem_maker(environment)(horizon=horizon, **settings)
    seeds = [(31, r) for r in range(20)]
    more, less = (
        play(problem, config, seeds, marks=np.array([horizon])).regret[-1]
        for config in (worse, better)
    )
    gain = more - less
    assert gain.mean() > 3 * gain.std(ddof=1) / sqrt(20)
