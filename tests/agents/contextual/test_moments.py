"""Moments: of users that are selected, shrunk, and in batches that double."""

from dataclasses import replace
from math import exp, inf, log, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import nct

from dpbandit.agents import BatchMoment
from dpbandit.agents.contextual.moments import (
    SHRINKAGES,
    SelectedMoments,
    empirical_bayes,
    raw,
    soft_threshold,
    uniform_moments,
)
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.curves import mu_of
from dpbandit.specs.protocols import ContextualSpec, PriceSpec
from tests.agents.contextual.runs import check_refused, errors
from tests.each import each, refused


def brute_force(theta, users, seed):
    """E[u u' 1(arm)] for u drawn uniformly on the sphere, with the standard error of each entry."""
    K, d = theta.shape
    u = np.random.default_rng(seed).standard_normal((users, d))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    arm = (u @ theta.T).argmax(axis=1)
    mean, square = np.empty((K, d, d)), np.empty((K, d, d))
    for a in range(K):
        chosen = u[arm == a]
        mean[a] = chosen.T @ chosen / users
        square[a] = np.square(chosen).T @ np.square(chosen) / users
    return mean, np.sqrt((square - mean**2) / users)


def selected(theta, replicas, seed=0):
    """Many replicas of the same policy: their mean, and its standard error, (K, d, d)."""
    found = SelectedMoments(Streams([(seed, r) for r in range(replicas)]), len(theta))(
        np.repeat(theta[None], replicas, axis=0)
    )
    return found.mean(axis=0), found.std(axis=0, ddof=1) / sqrt(replicas), found


POLICIES = {
    "equal": np.random.default_rng(0).standard_normal((3, 20)),
    "lopsided": np.random.default_rng(1).standard_normal((3, 20)) * [[5.0], [1.0], [0.3]],
    "alike": np.random.default_rng(2).standard_normal(20) + np.eye(3, 20),
    "rank 1": np.array([[1.0], [-1.0], [0.2]]) * np.random.default_rng(3).standard_normal(20),
}


@pytest.mark.parametrize("kind", POLICIES)
def test_moments_are_those_of_the_sphere(kind):
    """Statistical: 100,000 users of brute force against 50 replicas of 2,000 imagined ones: all
    1,200 entries within 6 combined standard errors, false alarm 2e-6. Power, asserted: the moments
    of random arms, and P(a) I / d, are more than 12 errors off somewhere, missed with probability
    below 1e-9; of rank 1 the latter are true, because two half-spaces are symmetric."""
    theta = POLICIES[kind]
    ours, our_error, _ = selected(theta, 50)
    mean, error = brute_force(theta, 100_000, seed=4)
    combined = np.hypot(our_error, error) + 1e-9  # an arm that is never played has no error
    assert (np.abs(ours - mean) <= 6 * combined).all()
    share = np.trace(mean, axis1=1, axis2=2)[:, None, None]
    wrong = [uniform_moments(3, 20)[0]] + [share * np.eye(20) / 20] * (kind != "rank 1")
    for moments in wrong:
        assert (np.abs(moments - mean) / combined).max() > 12


@each(("kind", "constant"), [("equal", 0.3), ("alike", 0.6), ("lopsided", 0.0)])
def test_moments_beside_a_constant_are_those_of_the_sphere(kind, constant):
    """Statistical: as above, of (c, sqrt(1 - c^2) u). Power, asserted: moments of a policy without
    the coefficients of the constant are more than 12 errors off."""
    theta = np.column_stack([[0.3, -0.1, 0.0], POLICIES[kind]])
    imagined = SelectedMoments(Streams(range(50)), 3)
    found = imagined.with_constant(np.tile(theta, (50, 1, 1)), constant)
    u = np.random.default_rng(4).standard_normal((100_000, 20))
    u *= np.sqrt(1 - constant**2) / np.linalg.norm(u, axis=1, keepdims=True)
    u = np.column_stack([np.full(len(u), constant), u])
    means, variances = [], []
    for arm in range(3):
        own = u * ((u @ theta.T).argmax(axis=1) == arm)[:, None]
        means.append(own.T @ u / len(u))
        variances.append(((own**2).T @ u**2 / len(u) - means[-1] ** 2) / len(u))
    combined = np.sqrt(found.var(axis=0, ddof=1) / 50 + np.maximum(variances, 0.0)) + 1e-9
    assert (np.abs(found.mean(axis=0) - means) <= 6 * combined).all()
    without = imagined(np.tile(POLICIES[kind], (50, 1, 1))).mean(axis=0) * (1 - constant**2)
    off = np.abs(without - np.array(means)[:, 1:, 1:]) / combined[:, 1:, 1:]
    assert (off.max() > 12) == (constant > 0)


@each("shape", [(3, 20), (2, 5), (5, 5), (6, 2), (4, 1)])
def test_arms_add_up_to_everybody(shape):
    """The arms' second moments are positive semidefinite and add up to I / d: within 6 standard
    errors, which are sqrt(2 / 2000) on the diagonal for 2,000 normals, in 100 replicas; exactly in
    directions orthogonal to all arms' parameters."""
    K, d = shape
    theta = np.random.default_rng(5).standard_normal(shape)
    _, _, found = selected(theta, 100, seed=1)
    total = found.sum(axis=1) * d
    assert np.abs(total - np.eye(d)).max() < 6 * sqrt(2 / 2000)
    assert np.abs(total.mean(axis=0) - np.eye(d)).max() < 6 * sqrt(2 / 2000 / 100)
    np.testing.assert_allclose(found, found.swapaxes(2, 3), atol=1e-15)
    assert np.linalg.eigvalsh(found).min() > -1e-12
    if d > K:
        blind = np.linalg.svd(theta)[2][K:]  # (d - K, d)
        seen = blind @ total @ blind.T
        np.testing.assert_allclose(seen, np.eye(d - K)[None].repeat(100, 0), atol=1e-12)


def test_uniform_play():
    """Golden: random arms see everybody equally, I / (K d), as K random thetas a round do."""
    uniform = uniform_moments(4, 5)
    np.testing.assert_array_equal(uniform, np.broadcast_to(np.eye(5) / 20, (1, 4, 5, 5)))
    thetas = np.random.default_rng(7).standard_normal((500, 4, 5))
    found = SelectedMoments(Streams(range(500)), 4)(thetas)
    error = found.std(axis=0, ddof=1) / sqrt(500)
    assert (np.abs(found.mean(axis=0) - uniform[0]) < 6 * error).all()


VARIANCES = [0.0] + [0.25 * 1024 ** (k / 10) for k in range(11)]
"""0, then 1/4 to 256 in ten equal ratios."""


def dense_em(z, steps=30):
    """Oracle, one replica: the EM of a scale mixture in logarithms, with scalar loops.

    One more imagined observation, of which it is known that its mean is 0, joins every M step.
    """
    log_likelihood = [
        [-(x**2) / (2 * (1 + v)) - 0.5 * log(2 * pi * (1 + v)) for v in VARIANCES] for x in z
    ]
    log_weight = [-log(len(VARIANCES))] * len(VARIANCES)
    for step in range(steps + 1):
        shares = []
        for row in log_likelihood:
            joint = [a + b for a, b in zip(row, log_weight, strict=True)]
            total = np.logaddexp.reduce(joint)
            shares.append([exp(j - total) for j in joint])
        if step < steps:
            counts = [sum(share[k] for share in shares) + (k == 0) for k in range(len(VARIANCES))]
            log_weight = [log(c / (len(z) + 1)) if c > 0 else -np.inf for c in counts]
    return [
        sum(p * x * v / (1 + v) for p, v in zip(share, VARIANCES, strict=True))
        for x, share in zip(z, shares, strict=True)
    ]


@each("kind", ["null", "dense", "sparse", "one", "large"])
def test_empirical_bayes_is_the_dense_em(kind):
    rng = np.random.default_rng(1)
    means = {
        "null": np.zeros((2, 20)),
        "dense": 2 * rng.standard_normal((2, 20)),
        "sparse": 8.0 * (rng.random((2, 20)) < 0.1),
        "one": np.array([[1.0], [-3.0], [0.0]]),
        "large": 60 * rng.standard_normal((2, 20)),
    }[kind]
    z = means + rng.standard_normal(means.shape)
    np.testing.assert_allclose(empirical_bayes(z), [dense_em(row) for row in z], rtol=1e-9)


def test_posterior_mean_of_a_known_prior_by_hand():
    """Golden: soft thresholding by hand; raw is the identity; one huge z is left nearly alone,
    z v / (1 + v) with the largest v = 256."""
    z = np.array([[2.5, -0.4, -1.0, -3.0, 0.0]])
    np.testing.assert_allclose(soft_threshold(z), [[1.5, 0, 0, -2.0, 0]])
    np.testing.assert_array_equal(raw(z), z)
    assert empirical_bayes(np.array([[300.0]])).item() == pytest.approx(300 * 256 / 257, rel=1e-6)
    assert set(SHRINKAGES) == {"none", "soft-threshold", "empirical-bayes"}


shapes = hnp.array_shapes(min_dims=2, max_dims=2, max_side=30)
vectors = st.one_of(
    hnp.arrays(np.float64, shapes, elements=st.floats(-30, 30)),
    hnp.arrays(np.float64, shapes, elements=st.floats(-1e4, 1e4)),
)


@pytest.mark.parametrize("name", sorted(SHRINKAGES))
@settings(derandomize=True, deadline=None, max_examples=50)
@given(z=vectors)
def test_nothing_grows_or_changes_its_sign(name, z):
    """Property, for z as large as a million rounds without noise make it."""
    estimate = SHRINKAGES[name](z)
    assert estimate.shape == z.shape
    assert (np.abs(estimate) <= np.abs(z)).all()
    assert (estimate * z >= 0).all()


def risks(means, seed):
    """Mean squared error over 100 coordinates, by name: (R,)."""
    z = means + np.random.default_rng(seed).standard_normal(means.shape)
    return {name: np.square(shrink(z) - means).mean(axis=1) for name, shrink in SHRINKAGES.items()}


@each("kind", ["dense", "sparse", "null"])
def test_risk_is_below_that_of_what_needs_no_fitting(kind):
    """Statistical, paired over 300 vectors of 100 coordinates: dense means N(0, 1), five means of
    +-5 among zeros, zeros. One-sided at 5 standard errors, false alarm below 1e-6 a case. Power:
    half of the gain that is seen would be found with probability 0.99 (asserted). With dense means
    risk is at most 10 % above that of knowing the prior, 1/2 (error 0.4 %, false alarm below 1e-6
    at the risk measured, 0.52), which soft thresholding misses by far."""
    rng = np.random.default_rng(2)
    means = {
        "dense": rng.standard_normal((300, 100)),
        "sparse": 5.0 * rng.choice([-1, 1], (300, 100)) * (np.arange(100) < 5),
        "null": np.zeros((300, 100)),
    }[kind]
    risk = risks(means, seed=3)
    for name in ("none", "soft-threshold"):
        t = errors(risk[name] - risk["empirical-bayes"])
        assert t > 5
        assert nct.sf(5, 299, t / 2) > 0.99
    if kind == "dense":
        assert risk["empirical-bayes"].mean() < 1.1 / 2 < risk["soft-threshold"].mean()


SPEC = ContextualSpec(n_actions=2, dim=3, horizon=100, reward_low=-1.0)


def test_batches_double():
    """Golden: T0 = 500 ends 500, 1000, 2000, ..., the truncated last batch released by nobody."""
    for config, spec, ends in (
        (BatchMoment(), replace(SPEC, horizon=5001), (500, 1000, 2000, 4000)),
        (BatchMoment(first_batch=500), replace(SPEC, horizon=4000), (500, 1000, 2000)),
        (BatchMoment(first_batch=500), replace(SPEC, horizon=500), ()),
        (BatchMoment(), replace(SPEC, horizon=10_001, n_actions=3), (1000, 2000, 4000, 8000)),
        (BatchMoment(), SPEC, (20, 40, 80)),  # at most a fifth of T
        (BatchMoment(first_batch=300), SPEC, ()),
    ):
        assert config.make(spec, Streams([0])).sums._ends == ends


@each("n_actions", [2, 4])
def test_first_batch_and_ties_are_uniform(n_actions):
    """Statistical: 4,000 replicas before the first release, and of a context 0 after it: every arm
    within 5 standard errors of its share, false alarm 2e-5; what ties nothing has one arm."""
    spec = ContextualSpec(n_actions=n_actions, dim=3, horizon=100, reward_low=-1.0)
    agent = BatchMoment(first_batch=1, shrinkage="none").make(spec, Streams(range(4000)))
    rng = np.random.default_rng(2)
    x = rng.standard_normal((4000, 3))
    error = sqrt((n_actions - 1) / n_actions**2 / 4000)
    for context in (x, np.zeros_like(x)):
        share = np.bincount(agent.act(context), minlength=n_actions) / 4000
        assert np.abs(share - 1 / n_actions).max() < 5 * error
        agent.update(x, agent.act(x), rng.choice([-1.0, 1.0], 4000))
    np.testing.assert_array_equal(agent.act(x), agent.scores(x).argmax(axis=1))


@each("blocks", ["difference", "blocks"])
def test_weights_and_threshold_by_hand(blocks):
    """Golden, by the specification: two releases of n = 10, 10 rounds, sigma = 2 / mu*, v = 1 / d,
    n -> n / 2 a block; z = sum w S / sqrt(sum w^2 s^2) with w = n / s^2, s^2 = sigma^2 + n v;
    thresholded at 1; with a block an arm, in the old units again."""
    config = BatchMoment(blocks=blocks, epsilon=10.0, first_batch=10)
    agent = config.make(SPEC, Streams([3]))
    exact = replace(config, epsilon=inf).make(SPEC, Streams([3])).sums
    noise = Streams([3]).normals("fading noise", *exact._statistic.shape)
    rng, sigma = np.random.default_rng(4), 2 / mu_of(10.0, 1e-5)
    per_block = 10 / (1 if blocks == "difference" else 2)
    total, variance = 0.0, 0.0
    for _ in range(20):
        x, arm = rng.standard_normal((1, 3)), rng.integers(0, 2, 1)
        reward = np.sign(x[:, 0]) * (1 - 2 * arm)  # arms with parameters (1, 0, 0), -(1, 0, 0)
        agent.update(x, arm, reward)
        batch = exact(x, arm, reward)
        if batch is not None:
            s2 = sigma**2 + per_block / 3
            weight = 10 / s2
            total = total + weight * (batch[0] + sigma * noise()[0])
            variance += weight**2 * s2
    z = total / sqrt(variance)
    z = np.sign(z) * np.maximum(np.abs(z) - 1, 0)
    expected = np.stack([z[0], -z[0]]) if blocks == "difference" else z * sqrt(variance)
    assert (z != 0).any()
    np.testing.assert_allclose(agent.scores(np.eye(3)[:1])[0], expected[:, 0], rtol=1e-12)
    np.testing.assert_allclose(agent._theta[0], expected, rtol=1e-12)


def test_centre_decides_about_the_sign():
    """Rewards of 2 and 3 about 2.5 say what -1 and 1 say about 0; by default that is the middle."""
    middle, config = replace(SPEC, reward_low=2.0, reward_high=3.0), BatchMoment(first_batch=10)
    rng = np.random.default_rng(5)
    agents = [
        config.make(SPEC, Streams([0])),
        config.make(middle, Streams([0])),
        replace(config, centre=7.0).make(middle, Streams([0])),
    ]
    for _ in range(30):
        x, arm, r = rng.standard_normal((1, 3)), rng.integers(0, 2, 1), rng.choice([-1.0, 1.0], 1)
        for agent, reward in zip(agents, (r, 2.5 + r / 2, 7.0 + r), strict=True):
            agent.update(x, arm, reward)
    assert (agents[0]._theta != 0).any()
    for agent in agents[1:]:
        np.testing.assert_array_equal(agent._theta, agents[0]._theta)


@each(
    ("config", "spec", "sentence"),
    [
        (BatchMoment(), replace(SPEC, shared=True), "own parameters, got one shared by all"),
        (BatchMoment(), PriceSpec(dim=2, horizon=9, low=1.0, high=2.0), "plays finitely many arms"),
        (BatchMoment(blocks="difference"), replace(SPEC, n_actions=3), "n_actions=3 to be 2"),
    ],
)
def test_bad_settings_and_problems_are_refused(config, spec, sentence):
    refused(sentence, config.make, spec, Streams([0]))
    words = {"blocks": "blocs", "shrinkage": "soft"}
    check_refused(BatchMoment, epsilon=0.0, delta=0.0, first_batch=0, centre=inf, **words)
