"""BanditPFTAL: its public numbers, what its noise costs, and what it refuses."""

from dataclasses import replace
from math import inf, log, log2, sqrt

import numpy as np
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import BanditFTAL, BanditPFTAL
from dpbandit.agents.convex.one_point import Noise
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box, Hypersimplex, L1Ball, Simplex
from dpbandit.envs.convex.online_losses import ConvexPricing
from dpbandit.losses import Experts, Kink, Linear, Quadratic
from dpbandit.specs.convex import ConvexSpec
from tests.agents.convex.convex_runs import (
    play,
    sphere,
    targets,
)
from tests.each import each

BALL = Ball(5)
LAWS = ("k-norm", "laplace", "gaussian", "local")
BETAS = ("oblivious", "adaptive", "tuned", "noiseless")
every_law = pytest.mark.parametrize("noise", LAWS)


def values(loss, horizon):
    return ConvexSpec(loss=loss, feedback="value", horizon=horizon)


def played(config, loss, data, **settings):
    return play(config, loss, data, feedback="value", **settings)


def test_exploration_lengths():
    """Golden, by hand, on the unit ball with k = 5, M = 2, L = 2, H = 1 (q = 2 + R/r = 3) at T =
    10^6: 5 T^(-1/3) = 0.05, 5 T^(-1/4) = 0.158114, and the minimiser (25 x 4 ln T / (2 T 3))^(1/3)
    = 0.0613. At T = 100 all are cut to r / 2."""
    spec = values(Quadratic(BALL), 10**6)
    tuned = (100 * log(1e6) / 6e6) ** (1 / 3)
    for beta, length in (
        ("oblivious", 0.05),
        ("adaptive", 5 * 10**-1.5),
        ("tuned", tuned),
        ("noiseless", tuned),
        (0.7, 0.7),
    ):
        plan = BanditFTAL(beta=beta).plan(spec)
        assert plan.beta == pytest.approx(length, rel=1e-4 if length == tuned else 1e-12)
        assert plan.curvature == 1.0
        if beta != 0.7:
            short = BanditFTAL(beta=beta).plan(values(Quadratic(BALL), 100))
            assert short.beta == pytest.approx(0.5, abs=1e-6)


def test_tuned_length_pays_for_noise():
    """Longer steps make shorter estimates, and so less noise: the more of it, the longer; where
    the bound is least it is no larger than at either printed length."""
    spec, lengths = values(Quadratic(BALL), 10**6), []
    for noise in (
        Noise(law="none"),
        Noise(law="k-norm", epsilon=1),
        Noise(law="k-norm", epsilon=0.3),
    ):
        plans = {beta: BanditFTAL(beta=beta).plan(spec, noise) for beta in BETAS}
        lengths.append(plans["tuned"].beta)
        assert all(plans["tuned"].regret_bound <= p.regret_bound + 1e-6 for p in plans.values())
    assert lengths == sorted(lengths)
    assert lengths[0] < 0.9 * lengths[1] < 0.9 * lengths[2]
    hopeless = BanditFTAL().plan(spec, Noise(law="k-norm", epsilon=1e-6))
    assert hopeless.beta == 0.5
    deaf = BanditFTAL(beta="noiseless").plan(spec, Noise(law="k-norm", epsilon=1e-6))
    assert deaf.beta == pytest.approx(lengths[0], rel=1e-12)
    assert deaf.noise.epsilon == 1e-6


def test_values_far_from_zero_are_moved_there():
    """None: 0 for values in [0, 2], the middle for prices whose profit is never 0."""
    pricing = ConvexPricing(horizon=100).spec
    low, high = pricing.loss.value_range
    assert low < high < 0
    assert BanditFTAL().plan(pricing).estimates.offset == (low + high) / 2
    assert BanditFTAL(offset=0.0).plan(pricing).estimates.offset == 0.0
    assert BanditFTAL().plan(values(Quadratic(BALL), 100)).estimates.offset == 0.0


def test_tuned_length_minimises_the_bound():
    """Oracle: T beta L q + (k M / beta)^2 ln T / (2 H) grows on both sides of the minimiser, and so
    does T beta L q + G^2 ln T / (2 H) + H T R^2 / 2 where H is the regulariser's."""
    T = 10**6
    for loss, H_of in (
        (Quadratic(BALL), lambda beta: 1.0),
        (Linear(BALL), lambda beta: 5 / beta * sqrt(log(T) / T)),
    ):
        L, M, plan = (
            loss.lipschitz,
            max(map(abs, loss.value_range)),
            BanditFTAL().plan(values(loss, T)),
        )

        def bound(beta, loss=loss, H_of=H_of, L=L, M=M):
            H = H_of(beta)
            regulariser = 0 if loss.curvature else H * T / 2
            return T * beta * L * 3 + (5 * M / beta) ** 2 * log(T) / (2 * H) + regulariser

        assert plan.curvature == pytest.approx(H_of(plan.beta), rel=1e-12)
        assert bound(plan.beta) < min(bound(0.97 * plan.beta), bound(1.03 * plan.beta))


def test_local_noise_lengthens_estimates():
    """Golden: an estimate of y + Laplace(W / epsilon) has the root mean square of M^2 + 2 W^2 /
    epsilon^2, and beta grows with it, as M^(2/3)."""
    spec = values(Quadratic(BALL), 10**8)
    plain = BanditFTAL().plan(spec)
    local = BanditFTAL().plan(spec, Noise(law="local", epsilon=0.5))
    growth = (1 + 2 / 0.5**2) ** 0.5
    assert local.beta / plain.beta == pytest.approx(growth ** (2 / 3), rel=1e-3)


@pytest.mark.parametrize("noise", ["k-norm", "laplace", "gaussian"])
def test_noise_scales(noise):
    """Golden: T = 1024, k = 5, W = 2, beta = 1/2, epsilon = 1, delta = 1e-6: an estimate moves by
    W k / beta = 20 in 10 nodes: c = 200, lam = 200 sqrt 5, sig = 20 sqrt(10) / 0.236704."""
    agent = BanditPFTAL(noise=noise, beta=0.5).make(values(Quadratic(BALL), 1024), Streams([0]))
    agent.update(np.zeros(()), agent.act(np.zeros(())), np.zeros(1))
    stddev = {
        "k-norm": 200 * sqrt(6),
        "laplace": 200 * sqrt(10),
        "gaussian": 20 * sqrt(10) / 0.236704,
    }
    assert agent.sums.stddev == pytest.approx(stddev[noise], rel=1e-5)


@every_law
def test_certificate_is_the_claim(noise):
    for epsilon in (0.1, 10.0):
        config = BanditPFTAL(noise=noise, epsilon=epsilon)
        for loss in (Quadratic(BALL), Experts(Simplex(4))):
            for T in (2, 1024):
                proof = certify(config, values(loss, T), accountants=False)
                assert proof.holds
                assert proof.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert (
        certify(replace(config, epsilon=inf), values(Linear(BALL), 9), accountants=False).epsilon
        == inf
    )
    assert certify(config, values(Linear(BALL), 1), accountants=False).epsilon == 0.0


@pytest.mark.parametrize("T", [5, 1024, 1025])
def test_printed_noise_protects_values_against_zero(T):
    """Golden: c = (k M / beta) log2(T) / epsilon; moved by W k / beta in bit_length(T-1) nodes that
    costs epsilon h / log2(T) where 0 <= f <= M = W, and twice that for signed values, W = 2 M."""
    ratio = (T - 1).bit_length() / log2(T)
    for loss, factor in ((Quadratic(BALL), 1), (Linear(BALL), 2)):
        config = BanditPFTAL(calibration="paper", epsilon=0.5)
        proof = certify(config, values(loss, T), accountants=False)
        assert proof.epsilon == pytest.approx(0.5 * factor * ratio, rel=1e-9)
        assert proof.holds == (proof.epsilon <= 0.5)


@every_law
def test_without_privacy_it_is_bandit_ftal_bit_for_bit(noise):
    """Directions come from a stream of their own: any noise leaves them as they are."""
    for loss, data in (
        (Kink(BALL), np.zeros((40, 3, 5))),
        (Experts(Simplex(4)), np.random.default_rng(0).random((40, 3, 4))),
    ):
        config = BanditPFTAL(epsilon=inf, noise=noise, beta=0.1)
        public = played(BanditFTAL(beta=0.1), loss, data)
        np.testing.assert_array_equal(played(config, loss, data).actions, public.actions)
        noisy = played(replace(config, epsilon=1.0), loss, data)
        np.testing.assert_allclose(noisy.actions[0], public.actions[0], rtol=0, atol=1e-15)
        assert (noisy.actions[2:] != public.actions[2:]).any()


def test_steps_are_the_algorithm():
    """Oracle: steps 1 to 4 written out, with the mean of leaders and not of the points played."""
    data = targets(40, 2)
    run = played(BanditFTAL(beta=0.4), Quadratic(BALL), data)
    w, leaders, v = np.zeros((2, 5)), [], np.zeros((2, 5))
    for t in range(1, 41):
        leaders.append(w)
        u = (run.actions[t - 1] - w) / 0.4
        np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1.0, rtol=0, atol=1e-9)
        y = np.square(run.actions[t - 1] - data[t - 1]).sum(axis=1) / 2
        v = v + 5 / 0.4 * y[:, None] * u
        q = np.mean(leaders, axis=0) - v / t
        w = q * 0.6 / np.maximum(0.6, np.linalg.norm(q, axis=1, keepdims=True))


@every_law
@each(
    "domain",
    [Box(3), L1Ball(3), Simplex(4), Hypersimplex(5, 2)],
    ids=lambda d: type(d).__name__,
)
def test_points_stay_in_the_domain(domain, noise):
    """Also with next to no privacy budget, and with the longest step there is."""
    data = sphere(np.random.default_rng(0), 50, 2, domain.dim)
    for config in (
        BanditPFTAL(noise=noise, epsilon=1e-6),
        BanditPFTAL(noise=noise, beta=0.99 * domain.inner_radius),
    ):
        run = played(config, Linear(domain), data)
        assert domain.contains(run.actions.reshape(100, -1), 1e-9).all()


@each(
    "arguments",
    [
        {"epsilon": 0.0},
        {"noise": "gaussian", "delta": 0.0},
        {"noise": "none"},
        {"calibration": "paper", "noise": "local"},
        {"beta": "printed"},
        {"beta": 0.0},
        {"curvature": -1.0},
        {"offset": inf},
    ],
    ids=str,
)
def test_bad_arguments(arguments):
    with pytest.raises(InputError, match="Expected"):
        BanditPFTAL(**arguments)


def test_steps_longer_than_the_inner_radius_are_refused():
    with pytest.raises(InputError, match=r"beta=1\.0"):
        BanditFTAL(beta=1.0).make(values(Linear(BALL), 9), Streams([0]))


def test_steps_that_leave_a_point_of_the_domain_are_refused_by_their_name():
    for config in (BanditFTAL(beta=0.9995), BanditPFTAL(beta=0.9995)):
        with pytest.raises(InputError, match=r"beta=0\.9995"):
            config.make(values(Linear(BALL), 9), Streams([0]))


def test_values_may_be_of_any_number_type():
    """Unsigned numbers and truth values have no minus sign of their own."""
    points = []
    for reward in (np.ones(1), np.ones(1, np.uint8), np.ones(1, np.bool_)):
        agent = BanditFTAL().make(values(Linear(BALL), 9), Streams([0]))
        agent.update(np.zeros(()), agent.act(np.zeros(())), reward)
        points.append(agent.act(np.zeros(())))
    np.testing.assert_array_equal(points[0], points[1])
    np.testing.assert_array_equal(points[0], points[2])
