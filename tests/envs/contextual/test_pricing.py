"""Orange-juice pricing: frozen numbers, exact oracles, and play that agrees with both."""

import gc
import hashlib
import json
import subprocess
import sys
import warnings
from importlib.util import module_from_spec, spec_from_file_location
from math import sqrt
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import dpbandit.envs
from dpbandit import InputError, play
from dpbandit.agents import BestFixed, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.envs import OJContinuousPricing, OJPricing
from dpbandit.envs.contextual.orange_juice import demand
from dpbandit.envs.contextual.resampled import row_of

DATA = Path(dpbandit.envs.__file__).parent / "data"
FROZEN = json.loads((DATA / "oj_demand.json").read_text())
PER_ROUND = {"uniform": 0.393, "best fixed": 0.442, "oracle": 0.514}
LIMIT = 5.0  # |z| beyond it: probability 6e-7 under the null


def script():
    """`fit_oj.py` as a module, with nothing of dpbandit in it."""
    spec = spec_from_file_location("fit_oj", DATA / "fit_oj.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_fresh_fit_gives_the_frozen_numbers():
    command = [sys.executable, str(DATA / "fit_oj.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_own_price_coefficients():
    """Golden: -2.71 (z -7.6) alone, -2.65 (z -6.4) with store and promotion controls."""
    fit = script()
    x, y, controls = fit.load()
    for features, coefficient, z in ((x, -2.71, -7.6), (np.hstack([x, controls]), -2.65, -6.4)):
        coef, se, _ = fit.fit_logit(features, y)
        assert coef[fit.OWN] == pytest.approx(coefficient, abs=0.006)
        assert coef[fit.OWN] / se[fit.OWN] == pytest.approx(z, abs=0.05)
        p = 1 / (1 + np.exp(-features @ coef))
        np.testing.assert_allclose(features.T @ (y - p), 0, atol=1e-8)  # the score vanishes
    assert -demand().slope == FROZEN["coefficients"][fit.OWN] == pytest.approx(-2.715, abs=1e-3)


def test_the_data_is_the_file_that_was_fitted():
    digest = hashlib.sha256((DATA / "oj.csv.gz").read_bytes()).hexdigest()
    assert digest == FROZEN["data_sha256"]
    assert digest in (DATA / "README.md").read_text()


def test_reading_the_data_leaves_no_file_open():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fresh = demand.__wrapped__()
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
    assert fresh.context.shape == (1070, 3)


def test_prices_and_numbers_of_the_problems_own_tables():
    """1.19, 1.29, ..., 2.29; 0.393 / 0.442 / 0.514 as means over the 1,070 rows, no sampling."""
    env = gym.make("dpbandit/OJPricing-v0").unwrapped
    np.testing.assert_allclose(env.prices, 1.19 + 0.1 * np.arange(12), atol=1e-12)
    margins = demand().margin(np.arange(1070)[:, None], env.prices)
    found = (margins.mean(), margins.mean(axis=0).max(), margins.max(axis=1).mean())
    assert found == pytest.approx(tuple(PER_ROUND.values()), abs=5e-4)
    assert env.prices[margins.mean(axis=0).argmax()] == pytest.approx(1.89)


def test_the_same_numbers_from_playing():
    """z tests over 400,000 rounds: false alarm 2e-6 together; 1.5 % off is caught (asserted).

    Expected margin of the best fixed price = oracle - regret; the best of a finite sample is
    above the truth by less than the test can see.
    """
    T, R = 4000, 100
    setup = {"seeds": [(3, r) for r in range(R)], "marks": np.array([T])}
    runs = {"uniform": play(OJPricing(horizon=T), Uniform(), **setup)}
    best = BestFixed().with_answer(runs["uniform"].best_fixed)
    runs["best fixed"] = play(OJPricing(horizon=T), best, **setup)
    reward = {name: run.reward[-1] / T for name, run in runs.items()}  # each (R,)
    expected = {name: run.reward[-1] / T + run.regret[-1] / T for name, run in runs.items()}
    reward["oracle"] = expected["uniform"]
    for name, found in reward.items():
        stderr = found.std(ddof=1) / sqrt(R)
        assert abs(found.mean() - PER_ROUND[name]) < LIMIT * stderr + 5e-4 < 0.015 * PER_ROUND[name]
    difference = expected["uniform"] - expected["best fixed"]  # the oracle, seen twice
    assert abs(difference.mean()) < LIMIT * difference.std(ddof=1) / sqrt(R)


def test_every_customer_is_as_likely():
    """Uniforms on a grid of ten a customer find every row ten times, the ends of [0, 1) too."""
    found = row_of((np.arange(10_700) + 0.5) / 10_700, 1070)
    assert (np.bincount(found, minlength=1070) == 10).all()
    assert row_of(np.array([0.0, 1 - 2**-53]), 1070).tolist() == [0, 1069]


def test_rewards_are_margins_of_purchases():
    env = gym.make("dpbandit/OJPricing-v0", horizon=300)
    env.reset(seed=1)
    for action in np.arange(300) % 12:
        _, reward, *_ = env.step(action)
        assert reward in (0.0, env.unwrapped.prices[action] - 0.80)


def test_the_continuous_oracle_beats_every_grid():
    """Within 1e-6 of a search over 11,001 prices, never below it, nor below the 12 prices."""
    problem, every = OJContinuousPricing(), np.arange(1070)[:, None]
    grid = demand().margin(every, np.linspace(1.19, 2.29, 11_001)).max(axis=1)
    twelve = demand().margin(every, demand().prices).max(axis=1)
    assert (np.abs(problem._oracle - grid) < 1e-6).all()
    assert (problem._oracle >= np.maximum(grid, twelve) - 1e-12).all()
    assert problem._oracle.mean() > FROZEN["expected_margin"]["contextual_oracle"]


@pytest.mark.parametrize("price", [1.18, 2.2901, 0.0, -1.5, float("nan"), float("inf")])
def test_prices_outside_the_range_are_refused(price):
    env = gym.make("dpbandit/OJContinuousPricing-v0").unwrapped
    env.reset(seed=1)
    with pytest.raises(InputError, match=r"prices in \[1.19, 2.29\]"):
        env.step(price)


def test_the_ends_of_the_range_are_prices():
    env = gym.make("dpbandit/OJContinuousPricing-v0").unwrapped
    env.reset(seed=1)
    for price in (1.19, 2.29):
        assert env.step(price)[1] in (0.0, price - 0.80)


def test_best_fixed_price_in_hindsight():
    """Oracle: 111 replicas with one seed, each playing its own whole cent all along."""
    cents = np.arange(119, 230) / 100
    for seed in (1, 2, 3):
        problem, total = OJContinuousPricing(), np.zeros(111)
        problem.reset(Streams([seed] * 111))
        for _ in range(40):
            problem.context()
            total += problem.step(cents).expected
        assert (problem.best_fixed() == cents[total.argmax()]).all()


def test_both_environments_meet_the_same_customers():
    """Same seed, same customers and purchases: the continuous one at a listed price agrees."""
    discrete, continuous = OJPricing(), OJContinuousPricing()
    for problem in (discrete, continuous):
        problem.reset(Streams([5, 6]))
    for t in range(100):
        arms = np.array([t % 12, 11 - t % 12])
        assert (discrete.context() == continuous.context()).all()
        ours, theirs = discrete.step(arms), continuous.step(discrete.prices[arms])
        np.testing.assert_allclose(ours[:2], theirs[:2], rtol=1e-12)
        assert (theirs.oracle >= ours.oracle - 1e-12).all()
