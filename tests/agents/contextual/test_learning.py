"""Which agent loses less than which, on the same users."""

import pickle
from dataclasses import replace
from math import sqrt

import pytest
from scipy.stats import nct

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
from dpbandit.base.random_streams import Streams
from dpbandit.envs import GLMBandit
from dpbandit.experiments import CASES
from tests.agents.contextual.fade_variants import REWARDS
from tests.agents.contextual.runs import curves, errors

SPARSE = {"dim": 40, "n_actions": 2, "parameters": "sparse-signs", "sparsity": 3}
STEEP = {"dim": 8, "n_actions": 4, "link": "logistic", "signal": 6.0}
WARM = {"delta": 1e-4, "warm_up": 120, "radius": 0.2}
P1 = {**CASES["contextual/p1"].env_kwargs, "environment": "GLMBandit"}
GAUSSIAN = DPHDB(gradient_clip=0.4, **WARM)
CHOICES = DPHDBChoices(residual_clip=0.3, **WARM)
FADES = {epsilon: FADE(epsilon=epsilon, delta=1e-4) for epsilon in (1.0, 3.0, 10.0)}
OJ = {"environment": "OJPricing"}
COMPARISONS = {
    "sparsity pays": (SPARSE, 300, Greedy(), LassoBandit()),
    "the right link pays": (STEEP, 1000, GLMUCB(link="identity"), GLMUCB()),
    "a model of demand": (OJ, 4000, DPUCB(epsilon=8.0), Priced(DPUCB(epsilon=8.0))),
    "a large ball": (OJ, 2500, Uniform(), Priced(DPHDB(epsilon=10.0, radius=20.0))),
    "demand in doubling batches": (OJ, 2000, Uniform(), JDPGLMUCB(epsilon=4.0)),
    "sums beat choices": (P1, 2000, CHOICES, GAUSSIAN),
    "no noise at all": (P1, 1000, GAUSSIAN, OnlineFrankWolfe(warm_up=120)),
    "sums that fade": (P1, 10_000, BatchMoment(epsilon=1.0, delta=1e-4), FADES[1.0]),
    "epsilon 3": (P1, 1000, FADES[1.0], FADES[3.0]),
    "epsilon 10": (P1, 1000, FADES[3.0], FADES[10.0]),
    "rewards 100 rounds late": (P1 | {"delay": 100}, 1000, Uniform(), FADES[3.0]),
    "a budget for each release": ({}, 1000, FADE(), FullBudgetFADE()),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_second_loses_less(name):
    """Statistical, paired over 20 replicas, one-sided at 3 standard errors: false alarm 0.4 % by
    Student's t if both were equal. The gains are 4 standard errors or more on other seeds, too."""
    problem, horizon, *both = COMPARISONS[name]
    more, less = (
        curves(config, horizon=horizon, replicas=20, seed=31, **problem)[-1] for config in both
    )
    assert errors(more - less) > 3


def p1(config, replicas, **more):
    return curves(config, horizon=10_000, replicas=replicas, seed=31, **P1 | more)[-1]


def check_paired(worse, better, share):
    """One-sided at 3 standard errors; power: a gain of `share` is seen with probability 0.95."""
    t = errors(worse - better)
    assert t > 3
    noncentrality = t * share * worse.mean() / (worse - better).mean()
    assert nct.sf(3, len(worse) - 1, noncentrality) > 0.95


def upper(regret):
    return regret.mean() + 3 * regret.std(ddof=1) / sqrt(len(regret))


def test_reference_problem_is_learned():
    """Statistical: the best certified agent before it lost 118.3 +- 2.5 on P1 with two arms (random
    play: 976), 3 standard errors more. Six other sets of seeds: means 93 to 98."""
    assert upper(p1(FADES[1.0], 20)) <= 118


@pytest.mark.slow
def test_five_arms_are_learned_better_by_residuals_and_without_selection_bias():
    """Statistical: 731 +- 8 for BatchMoment (random play: 1997), paired over 50 replicas: sums of
    rewards with and without the correction (other seeds: means 561 to 577), and residuals (504)."""
    ours, rewards, biased = (
        p1(replace(config, delta=1e-4), 50, n_actions=5)
        for config in (FADE(), REWARDS, replace(REWARDS, debias=False))
    )
    assert rewards.mean() <= 620
    assert upper(rewards) <= 731
    check_paired(biased, rewards, share=0.06)
    check_paired(rewards, ours, share=0.08)


def test_rewards_off_the_middle_are_learned_by_default():
    """Paired over 6 replicas of rewards within +-0.4 of 0, told as [-6, 1.2]: with a middle below
    all of them "public" is within 5 standard errors of uniform play, and by default at most 40 % of
    that is lost, by 6 (false alarm 1e-3). Where the middle is told right the agent is the same,
    byte for byte, and a centre that is asked for all the same costs under 20 %."""

    class GenerousRange(GLMBandit):
        def __post_init__(self):
            super().__post_init__()
            self.spec = replace(self.spec, reward_low=-6.0)

    def final(config, environment=GenerousRange):
        problem = P1 | {"environment": environment}
        return curves(config, horizon=10_000, replicas=6, **problem)[-1]

    plain, public = FADES[1.0], replace(FADES[1.0], centring="public")
    uniform = final(Uniform())
    assert abs(errors(final(public) - uniform)) < 5
    assert errors(0.4 * uniform - final(plain)) > 6
    spec = GLMBandit(**CASES["contextual/p1"].env_kwargs, horizon=10_000).spec
    one, two = (pickle.dumps(config.make(spec, Streams([0]))) for config in (plain, public))
    assert one == two
    careful = final(replace(plain, centring="private"), "GLMBandit")
    assert careful.mean() < 1.2 * final(plain, "GLMBandit").mean()


@pytest.mark.slow
def test_prices_and_lists_of_items_are_learned():
    """Statistical: OJPricing, paired over 20 replicas: residuals against sums of rewards (random
    prices: 2424; on 50 other seeds 121 +- 10 against 450 +- 36); Recommendation, over 30, against
    DP-UCB (in 10,000 rounds FADE gains 46 % over 240 seeds)."""
    residuals, rewards = (
        curves(config, "OJPricing", horizon=20_000, replicas=20, seed=31)[-1]
        for config in (FADE(), REWARDS)
    )
    check_paired(rewards, residuals, share=0.7)
    assert upper(residuals) <= 250
    ours, theirs = (
        curves(config, "Recommendation", horizon=5_000, replicas=30, seed=31)[-1]
        for config in (FADE(), DPUCB())
    )
    check_paired(theirs, ours, share=0.45)
