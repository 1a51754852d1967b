"""PFTAL: what it is without noise, what its noise costs, and what it refuses."""

from dataclasses import dataclass, replace
from math import inf, log2, sqrt

import numpy as np
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import FTAL, PFTAL, LinearFTRL, NoisyOCO
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box, Hypersimplex, L1Ball, Simplex
from dpbandit.losses import Experts, Kink, Linear, Quadratic
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.protocols import ContextualSpec
from tests.agents.convex.convex_runs import (
    play,
    sphere,
    targets,
)
from tests.each import each

BALL = Ball(5)
LAWS = ("k-norm", "laplace", "gaussian")
every_law = pytest.mark.parametrize("noise", LAWS)


def spec_of(loss, horizon):
    return ConvexSpec(loss=loss, feedback="datum", horizon=horizon)


def node_stddev(config, spec):
    """Standard deviation of one coordinate of the noise of the first node."""
    sums = config.make(spec, Streams([0])).sums
    sums(np.zeros((1, spec.loss.domain.affine_dim)))
    return sums.stddev


@every_law
def test_noise_scales(noise):
    """Golden: at T = 1024, L = 2, k = 5, epsilon = 1, delta = 1e-6 a leaf lies in h = 10 nodes and
    moves 4, so c = 40, lam = 89.44, sig = 4 sqrt(10) / 0.236704 = 53.44; per coordinate times
    sqrt(k + 1) for K-norm, sqrt(2) for Laplace. Printed: c = 2 log2(1024) = 20."""
    spec = spec_of(Quadratic(BALL), 1024)
    stddev = {"k-norm": 40 * sqrt(6), "laplace": 40 * sqrt(5) * sqrt(2), "gaussian": 53.44}
    assert node_stddev(PFTAL(noise=noise), spec) == pytest.approx(stddev[noise], rel=1e-4)
    paper = node_stddev(PFTAL(calibration="paper"), spec)
    assert paper == pytest.approx(20 * sqrt(6), rel=1e-12)


def test_noise_of_experts():
    """Golden: N = 10 experts live in the 9 dimensions of sum zero with 2 L = sqrt(10), so K-norm
    noise has c = sqrt(10) h / epsilon there, (k + 1) c^2 per coordinate; Laplace sqrt(9) c."""
    spec = spec_of(Experts(Simplex(10)), 1024)
    c = sqrt(10) * 10
    assert node_stddev(PFTAL(), spec) == pytest.approx(c * sqrt(10), rel=1e-9)
    assert node_stddev(PFTAL(noise="laplace"), spec) == pytest.approx(3 * c * sqrt(2), rel=1e-9)
    agent = PFTAL().make(spec, Streams([0]))
    agent.update(np.zeros(()), agent.act(np.zeros(())), np.full((1, 10), 0.5))
    np.testing.assert_allclose(agent.act(np.zeros(())).sum(axis=1), 1.0, rtol=0, atol=1e-12)


@each("anytime", [False, True])
@every_law
def test_certificate_is_the_claim(noise, anytime):
    for epsilon in (0.1, 1.0, 10.0):
        config = PFTAL(noise=noise, anytime=anytime, epsilon=epsilon)
        for T in (2, 5, 1024):
            proof = certify(config, spec_of(Kink(BALL), T), accountants=False)
            assert proof.holds
            assert proof.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert (
        certify(replace(config, epsilon=inf), spec_of(Kink(BALL), 9), accountants=False).epsilon
        == inf
    )


@every_law
@each("agent", [PFTAL, LinearFTRL, NoisyOCO])
def test_a_positive_delta_buys_less_noise(agent, noise):
    """Of pure laws on a tree; the certificate is the claim again. By default they stay pure."""
    spec = spec_of(Linear(BALL), 1024)
    config, default = agent(noise=noise, delta=1e-6), agent(noise=noise)
    proof = certify(config, spec, accountants=False)
    assert proof.holds
    assert proof.epsilon == pytest.approx(1.0, rel=1e-4)
    assert default.delta == (1e-6 if noise == "gaussian" else 0.0)
    share = node_stddev(config, spec) / node_stddev(default, spec)
    if noise == "gaussian":
        assert share == 1.0
    else:
        assert share < {"k-norm": 0.6, "laplace": 1.0}[noise]
        assert config.make(spec, Streams([0])).ledger.delta(0.99) > 1e-6


def test_a_positive_delta_buys_nothing_of_the_hybrid_tree():
    """Only the sum of its epsilons is known at every horizon."""
    spec = spec_of(Linear(BALL), 1024)
    one, two = (PFTAL(anytime=True, delta=delta) for delta in (1e-6, None))
    assert node_stddev(one, spec) == node_stddev(two, spec)
    assert certify(one, spec, accountants=False).holds


@pytest.mark.parametrize("T", [5, 100, 1024, 1025])
def test_printed_noise_costs_twice_the_claim_and_more(T):
    """Golden: 2 bit_length(T-1) / log2(T) epsilon; 2 at powers of two, 2.58 at T = 5."""
    proof = certify(PFTAL(calibration="paper"), spec_of(Kink(BALL), T), accountants=False)
    assert proof.epsilon == pytest.approx(2 * (T - 1).bit_length() / log2(T), rel=1e-9)
    assert proof.epsilon >= 2 * (1 - 1e-12)
    assert not proof.holds
    if T == 5:
        assert proof.epsilon == pytest.approx(2.58, abs=0.005)


@each("anytime", [False, True])
@every_law
def test_without_privacy_it_is_ftal_bit_for_bit(noise, anytime):
    for loss, data in (
        (Quadratic(BALL), targets(40, 3)),
        (Experts(Simplex(4)), np.random.default_rng(0).random((40, 3, 4))),
    ):
        private = play(PFTAL(epsilon=inf, noise=noise, anytime=anytime), loss, data)
        np.testing.assert_array_equal(private.actions, play(FTAL(), loss, data).actions)
        assert (play(PFTAL(noise=noise), loss, data).actions[1:] != private.actions[1:]).any()


@every_law
@each("anytime", [False, True])
@each("T", [1, 2, 5])
def test_short_runs(T, anytime, noise):
    """T = 1 never feeds back; afterwards there is noise, and points stay where they belong."""
    config = PFTAL(noise=noise, anytime=anytime)
    for loss, datum in ((Linear(BALL), np.ones(5)), (Quadratic(Ball(1)), np.ones(1))):
        run = play(config, loss, np.tile(datum, (T, 2, 1)))
        assert loss.domain.contains(run.actions.reshape(2 * T, -1)).all()
        assert np.isfinite(run.regret).all()
        np.testing.assert_array_equal(run.actions[0], 0.0)
    assert len([r for r in run.releases if r is not None]) == (T if anytime else T - 1)


@every_law
@each(
    "domain",
    [Box(3), L1Ball(3), Simplex(4), Hypersimplex(5, 2)],
    ids=lambda d: type(d).__name__,
)
def test_points_stay_in_the_domain(domain, noise):
    for epsilon in (1e-6, 1.0):
        data = sphere(np.random.default_rng(0), 50, 2, domain.dim)
        run = play(PFTAL(noise=noise, epsilon=epsilon), Linear(domain), data)
        assert domain.contains(run.actions.reshape(100, -1), 1e-9).all()


@dataclass(frozen=True)
class Flat(Quadratic):
    """A loss without a slope."""

    curvature = 0.0
    lipschitz = 0.0

    def value(self, x, z):
        return np.zeros(len(x))


def test_losses_that_are_constant_are_left_alone():
    """L = 0: no data is looked at, nothing is spent."""
    for config in (PFTAL(), FTAL()):
        spec = spec_of(Flat(BALL), 10)
        assert certify(config, spec, accountants=False).epsilon == 0.0
        np.testing.assert_array_equal(config.make(spec, Streams([0])).act(np.zeros(())), 0.0)


@pytest.mark.parametrize(
    ("config", "spec", "words"),
    [
        (PFTAL(), ConvexSpec(loss=Linear(BALL), horizon=9), "feedback='datum'"),
        (FTAL(), ConvexSpec(loss=Linear(BALL), horizon=9), "feedback='datum'"),
        (PFTAL(), ContextualSpec(n_actions=2, dim=2, horizon=9), "convex"),
    ],
)
def test_mismatches_are_refused_in_one_sentence(config, spec, words):
    with pytest.raises(InputError, match=words) as caught:
        config.make(spec, Streams([0]))
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0.0},
        {"noise": "gaussian", "delta": 0.0},
        {"noise": "cauchy"},
        {"calibration": "paper", "noise": "gaussian"},
        {"calibration": "paper", "anytime": True},
        {"curvature": 0.0},
        {"anytime": 1},
    ],
    ids=str,
)
def test_bad_arguments(arguments):
    with pytest.raises(InputError, match="Expected"):
        PFTAL(**arguments)
