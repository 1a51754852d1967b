"""The least regret: against the specification's numbers, a Bayes agent, and what cannot be."""

from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.envs import GLMBandit, TwoPhase
from dpbandit.limits import (
    PUBLISHED,
    groups,
    information,
    least_regret,
    least_regret_for,
    least_regret_for_gaussian_parameters,
)
from dpbandit.privacy.curves import mu_of

HARD = {"dim": 50, "signal": 1.0, "noise": 0.5}
BOUNDED = {"n_actions": 2, "dim": 20, "noise": 0.5, "tail": 8.0, "horizon": 500}


@pytest.mark.parametrize(("noise", "epsilon", "found"), [(0.5, 1, 85.1), (0.05, 0.2, 22.4)])
def test_gaussian_parameters_agree_with_an_independent_computation(noise, epsilon, found):
    """Golden: numbers of another program for d = 50, S = 1, T = 10,000, delta = 1e-5, to 0.5 %. The
    sphere's bound, proved otherwise, lies within 3 % below: the law of large numbers in d."""
    setting = {**HARD, "noise": noise, "mu": mu_of(epsilon, 1e-5)}
    gaussian = least_regret_for_gaussian_parameters(10_000, **setting)
    assert gaussian == pytest.approx(found, rel=5e-3)
    assert 0.97 * gaussian < least_regret(10_000, **setting) < gaussian


def regret_of_guess(n, d, noise, guess, seed=0, replicas=600):
    """Mean regret and error of the (n + 1)st user, by the sign of guess(rng, x, r) . x, r (R, n)
    the differences of two rewards of n users, theta_a ~ N(0, I / d)."""
    rng = np.random.default_rng(seed)
    theta = sqrt(2 / d) * rng.normal(size=(replicas, d))  # the difference of two
    x = rng.normal(size=(replicas, n + 1, d))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    gap = np.einsum("rnd,rd->rn", x, theta)
    r = gap[:, :n] + sqrt(2) * noise * rng.normal(size=(replicas, n))
    guessed = np.einsum("rd,rd->r", x[:, n], guess(rng, x[:, :n], r))
    lost = np.abs(gap[:, n]) * (np.sign(gap[:, n]) != np.sign(guessed))
    return lost.mean(), lost.std() / sqrt(replicas)


def in_round(bound, t, **setting):
    return bound(t, **setting) - bound(t - 1, **setting)


def test_nobody_knows_more_than_a_bayes_agent():
    """Oracle, statistical: the bound of one round is below what the best decision costs when both
    rewards of n users are told (4 standard errors, false alarm 4e-5), and above 85 % of it."""
    d, n, noise = 10, 60, 0.5

    def posterior_mean(rng, x, r):  # the prior's precision is d / 2, the noise's 1 / (2 noise^2)
        gram = np.einsum("rnd,rne->rde", x, x) + noise**2 * d * np.eye(d)
        return np.linalg.solve(gram, np.einsum("rn,rnd->rd", r, x)[..., None])[..., 0]

    cost, error = regret_of_guess(n, d, noise, posterior_mean)
    for bound in (least_regret, least_regret_for_gaussian_parameters):
        one = in_round(bound, n + 1, dim=d, signal=1.0, noise=noise, mu=inf)
        assert 0.85 * cost - 4 * error < one < cost + 4 * error


def test_a_gaussian_mechanism_stays_above():
    """Oracle, statistical: r is clipped to 2, 4 standard deviations, so that the sum of r x with
    noise 4 / mu is mu-GDP; its sign costs more than the bound, which here knows of privacy."""
    d, n, mu = 10, 60, 0.2

    def noisy_sum(rng, x, r):
        total = np.einsum("rn,rnd->rd", r.clip(-2, 2), x)
        return total + 4 / mu * rng.normal(size=total.shape)

    cost, error = regret_of_guess(n, d, 0.1, noisy_sum)
    bound = least_regret_for_gaussian_parameters
    one, free = (
        in_round(bound, n + 1, dim=d, signal=1.0, noise=0.1, mu=each) for each in (mu, inf)
    )
    assert 1.5 * free < one < cost + 4 * error


def test_privacy_units_groups_information_and_length():
    """Privacy costs, units do not matter, the sum over groups is never too much, information is the
    lesser of two bounds, and a longer run has no smaller bound."""
    found = [least_regret(1_000, **HARD, mu=mu) for mu in (inf, 1.0, 0.3, 0.0)]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(1_000 * least_regret(1, **HARD, mu=1.0))  # a guess each round
    twice = least_regret(1_000, dim=50, signal=2.0, noise=1.0, mu=0.3)
    assert twice == pytest.approx(2 * found[2])
    last, each = groups(50_000)
    falling = 1 / np.sqrt(np.arange(1, 50_001))
    assert each.sum() == 50_000
    assert 0.999 < each @ falling[last - 1] / falling.sum() <= 1
    assert information(np.array([3]), 5, 2.0, sqrt(np.log(1.5))) == pytest.approx(9 * 0.5 * 2)
    assert information(np.array([3]), 5, 2.0, 30.0) == 30
    assert information(np.array([3]), 5, 2.0, 0.0) == 0
    short, long = (
        least_regret_for(GLMBandit(**{**BOUNDED, "horizon": T}), 0.3) for T in (10**5, 10**9)
    )
    assert 0 < short <= long


def test_conditions_are_checked_by_name():
    right = least_regret_for(GLMBandit(**BOUNDED), 0.3)
    assert right == pytest.approx(least_regret(500, dim=20, signal=1, noise=0.5, mu=0.3))
    refused = {"n_actions": 3, "contexts": "ball", "parameters": "sparse", "link": "logistic"}
    refused |= {"noise_law": "uniform", "drift": "walk", "tail": 4.0, "shared": True}
    refused |= {"context_order": 1}
    for name, wrong in refused.items():
        with pytest.raises(InputError, match=f"^Expected {name}="):
            least_regret_for(GLMBandit(**{**BOUNDED, name: wrong}), 0.3)
    with pytest.raises(InputError, match=r"^Expected problem=.* to be a GLMBandit\.$"):
        least_regret_for(TwoPhase(horizon=10), 0.3)
    for name, wrong in {"dim": 2, "signal": 0, "noise": 0.0, "mu": -1, "horizon": 0}.items():
        with pytest.raises(InputError, match=f"^Expected {name}="):
            least_regret(**{"horizon": 10, **HARD, "mu": 1.0, name: wrong})


@pytest.mark.parametrize("shape", PUBLISHED, ids=lambda shape: shape.name)
def test_shapes_touch_where_they_are_asked_to_and_fall(shape):
    at = shape.touching(4.0, 200.0, horizon=10_000, dim=50, n_actions=2, delta=1e-5)
    found = [at(epsilon) for epsilon in (4.0, 1.0, 0.1, 0.01)]
    assert found[0] == pytest.approx(200)
    assert found == sorted(found)
    with pytest.raises(InputError, match=r"^Expected regret="):
        shape.touching(4.0, 0.0, horizon=10, dim=3, n_actions=2, delta=1e-5)
