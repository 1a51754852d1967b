"""Sampled Gaussian releases: the curve of one, of many, and the largest ratio for a target."""

from math import exp, inf, sqrt

import numpy as np
import pytest
from scipy.stats import norm

from dpbandit.base.inputs import InputError
from dpbandit.privacy import curves
from dpbandit.privacy.certificate import ledger_as_dict, ledger_from_dict
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.loss_distributions import Composition
from dpbandit.privacy.subsampling import SampledGaussianSpend, largest_ratio
from tests.lazy import Lazy

pld = Lazy("dp_accounting.pld.privacy_loss_distribution")

X = np.linspace(-12.0, 13.0, 10_001)
STEP = X[1] - X[0]


def hockey_stick(p, q, epsilon):
    """sup P(S) - e^epsilon Q(S) by a Riemann sum: an oracle."""
    return np.maximum(p - exp(epsilon) * q, 0.0).sum() * STEP


@pytest.mark.parametrize(("ratio", "rate"), [(0.3, 0.5), (1.0, 0.1), (2.5, 0.02), (0.7, 1.0)])
def test_the_curve_is_that_of_the_worst_pair(ratio, rate):
    """Oracle: (1-g) N(0,1) + g N(mu,1) against N(0,1) at epsilon >= 0, exchanged below."""
    spend = SampledGaussianSpend(ratio=ratio, rate=rate, count=1)
    without = norm.pdf(X)
    mixed = (1 - rate) * without + rate * norm.pdf(X - ratio)
    for epsilon in (-1.0, -0.2, 0.0, 0.1, 0.5, 1.5):
        pair = (mixed, without) if epsilon >= 0 else (without, mixed)
        expected = hockey_stick(*pair, epsilon)
        assert spend.curve(np.array(epsilon)) == pytest.approx(expected, abs=1e-6)


def test_no_neighbours_are_further_apart():
    """Property: users' gradients anywhere in an interval of length `ratio`, one of them replaced,
    one of n drawn: at every epsilon at most the curve, which extremes come close to."""
    rng, n, ratio = np.random.default_rng(0), 4, 1.5
    spend = SampledGaussianSpend(ratio=ratio, rate=1 / n, count=1)
    levels = (-0.7, -0.1, 0.0, 0.05, 0.3, 0.8)
    bound = spend.curve(np.array(levels))
    shares = []
    for _ in range(80):
        ends = rng.random() < 0.5
        others = rng.integers(2, size=n - 1) if ends else rng.random(n - 1)
        mine = rng.integers(2, size=2) if ends else rng.random(2)
        laws = [norm.pdf(X[:, None] - ratio * np.append(others, own)).mean(axis=1) for own in mine]
        found = np.array([hockey_stick(*laws, level) for level in levels])
        assert (found <= bound + 1e-6).all()
        shares.append(found / bound)
    assert np.max(shares, axis=0).min() > 0.999


def test_two_releases_compose():
    """Oracle: both laws of two releases on a grid, each with the pair in either order."""
    ratio, rate = 1.2, 0.2
    x = np.linspace(-8, 10, 901)
    without = norm.pdf(x)
    mixed = (1 - rate) * without + rate * norm.pdf(x - ratio)
    spend = SampledGaussianSpend(ratio=ratio, rate=rate, count=2)
    step = (x[1] - x[0]) ** 2
    for epsilon in (0.1, 0.5, 1.0):
        exact = []
        for p, q in ((mixed, without), (without, mixed)):
            for r, s in ((mixed, without), (without, mixed)):
                both = p[:, None] * r - exp(epsilon) * q[:, None] * s
                exact.append(np.maximum(both, 0).sum() * step)
        assert max(exact) <= spend.delta(epsilon) + 1e-6
        assert max(exact) > 0.8 * spend.delta(epsilon)


@pytest.mark.parametrize(("ratio", "rate", "count"), [(0.5, 0.05, 200), (0.25, 0.01, 10_000)])
def test_many_releases_lie_between_the_accountants(ratio, rate, count):
    """Oracle: no less than dp-accounting's Poisson sampling with that ratio, whose two orders of
    the pair are among what a neighbour can do; no more than without sampling, or twice as much."""
    spend = SampledGaussianSpend(ratio=ratio, rate=rate, count=count)
    poisson = pld.from_gaussian_mechanism(
        1 / ratio, sampling_prob=rate, value_discretization_interval=spend.step
    ).self_compose(count)
    ours, theirs = Ledger((spend,)).epsilon(1e-5), poisson.get_epsilon_for_delta(1e-5)
    assert theirs <= ours * 1.005
    assert ours < 1.25 * theirs
    assert ours < curves.epsilon_of(sqrt(count) * ratio, 1e-5)
    finer = Composition(spend.losses(spend.step / 4)).least_epsilon(1e-5)
    assert finer <= ours * (1 + 1e-6)
    assert ours <= 1.01 * finer  # what the grid costs


@pytest.mark.parametrize(
    ("rate", "count", "epsilon", "delta"),
    [
        (1 / 24, 240, 1.0, 1e-4), (1 / 16, 16, 0.1, 1e-6), (0.5, 10, 3.0, 1e-5),
        (0.01, 1000, 1.0, 1e-5), (2 / 3, 2, 50.0, 1e-5),
    ],
)  # fmt: skip
def test_the_largest_ratio_just_meets_the_target(rate, count, epsilon, delta):
    ratio = largest_ratio(rate=rate, count=count, epsilon=epsilon, delta=delta)
    found = Ledger((SampledGaussianSpend(ratio=ratio, rate=rate, count=count),)).epsilon(delta)
    assert 0.999 * epsilon <= found <= epsilon


def test_edges():
    assert largest_ratio(rate=0.1, count=5, epsilon=inf, delta=1e-5) == inf
    everybody = SampledGaussianSpend(ratio=0.25, rate=1.0, count=4)
    assert everybody.mu == 0.5
    assert everybody.delta(1.0) == curves.delta_of(0.5, 1.0)
    nobody = SampledGaussianSpend(ratio=0.25, rate=0.5, count=0)
    assert (nobody.mu, nobody.pure, nobody.rho, nobody.delta(0.1)) == (0.0, 0.0, 0.0, 0.0)
    exact = SampledGaussianSpend(ratio=inf, rate=0.5, count=3)
    assert (exact.mu, exact.rho, exact.delta(5.0)) == (inf, inf, 1.0)
    hopeless = SampledGaussianSpend(ratio=30.0, rate=0.5, count=3)
    assert hopeless.delta(1.0) == 1.0
    some = SampledGaussianSpend(ratio=0.5, rate=0.1, count=3)
    assert (some.mu, some.pure, some.rho, some.delta(inf)) == (None, inf, 0.375, 0.0)
    for wrong in ({"ratio": -1.0}, {"rate": 1.5}, {"count": 1.5}):
        with pytest.raises(InputError):
            SampledGaussianSpend(**{"ratio": 0.5, "rate": 0.1, "count": 3} | wrong)


def test_ledgers_travel():
    ledger = Ledger((SampledGaussianSpend(ratio=0.5, rate=0.1, count=3),))
    assert ledger_from_dict(ledger_as_dict(ledger)) == ledger
