"""What FADE wins, on problems beside which other agents stand."""

from dataclasses import replace
from functools import cache
from math import sqrt

import pytest
from scipy.stats import nct

from dpbandit.agents import DPUCB, FADE
from dpbandit.experiments import CASES
from dpbandit.results.runs import log_marks
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from tests.agents.contextual.fade_variants import REWARDS


@cache
def final_regret(config, environment, horizon, replicas, **env_kwargs):
    problem = problem_maker(environment)(horizon=horizon, **env_kwargs)
    seeds = [(31, r) for r in range(replicas)]
    return play(problem, config, seeds, marks=log_marks(horizon)).regret[-1]


def p1(config, replicas, n_actions=2):
    env_kwargs = {**CASES["contextual/p1"].env_kwargs, "n_actions": n_actions}
    return final_regret(config, "GLMBandit", 10_000, replicas, **env_kwargs)


def check_paired(worse, better, share):
    """One-sided at 3 standard errors; power: a gain of `share` is seen with probability 0.95."""
    gain = worse - better
    error = gain.std(ddof=1) / sqrt(len(gain))
    assert gain.mean() > 3 * error
    assert nct.sf(3, len(gain) - 1, share * worse.mean() / error) > 0.95


def upper(regret):
    return regret.mean() + 3 * regret.std(ddof=1) / sqrt(len(regret))


def test_reference_problem_is_learned():
    """Statistical: what the best certified agent before it needed on P1, 118.3 +- 2.5 for two arms
    (random play: 976), is 3 standard errors away. Six other sets of seeds: means 93 to 98."""
    assert upper(p1(FADE(epsilon=1.0, delta=1e-4), 20)) <= 118


@pytest.mark.slow
def test_five_arms_are_learned_better_by_residuals_and_without_selection_bias():
    """Statistical: P1 with five arms, 731 +- 8 for BatchMoment (random play: 1997), paired over 50
    replicas: sums of rewards with and without the correction (six other sets of seeds: means 561 to
    577), and residuals (50 other seeds: 504 +- 8, 65 +- 8 less)."""
    ours, rewards, biased = (
        p1(replace(config, delta=1e-4), 50, n_actions=5)
        for config in (FADE(), REWARDS, replace(REWARDS, debias=False))
    )
    assert rewards.mean() <= 620
    assert upper(rewards) <= 731
    check_paired(biased, rewards, share=0.06)
    check_paired(rewards, ours, share=0.08)


@pytest.mark.slow
def test_recommendation_is_learned_better_than_by_dp_ucb():
    """Statistical: defaults, T = 5,000, paired over 30 replicas; false alarm 0.3 % if both were
    equal; power: a gain of 45 % is seen with probability 0.95 (asserted). In 10,000 rounds it
    gains 46 % over 240 seeds."""
    ours, theirs = (final_regret(c, "Recommendation", 5_000, 30) for c in (FADE(), DPUCB()))
    check_paired(theirs, ours, share=0.45)


@pytest.mark.slow
def test_prices_are_learned():
    """Statistical: OJPricing, epsilon = 1, T = 20,000, paired over 20 replicas: residuals against
    sums of rewards (random prices: 2424); false alarm 0.4 % if both were equal; power: a gain of
    seven tenths is seen with probability 0.95 (asserted). On 50 other seeds 121 +- 10 against
    450 +- 36."""
    residuals, rewards = (
        final_regret(FADE(coding=coding), "OJPricing", 20_000, 20)
        for coding in ("residuals", "rewards")
    )
    check_paired(rewards, residuals, share=0.7)
    assert upper(residuals) <= 250
