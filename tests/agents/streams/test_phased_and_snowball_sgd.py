"""One pass of descent, private by contraction: steps, sensitivity, noise, amplification."""

from dataclasses import replace
from itertools import pairwise
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import PhasedSGD, SnowballSGD
from dpbandit.agents.streams.phased_sgd import Phase
from dpbandit.agents.streams.snowball_sgd import Snowball
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, LpBall, Spectrahedron
from dpbandit.envs.streams.streaming_regression import StreamingRegression
from dpbandit.losses import (
    Linear,
    LinearRegression,
    LogisticRegression,
    Quadratic,
    QuantileRegression,
)
from dpbandit.privacy.accounting.gdp import mu_of
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.streams import StreamSpec

LOSS = LinearRegression(LpBall(3, 1.5, 2.0), bound=1.25)
SMOOTH = [LOSS, LogisticRegression(LpBall(2, 1.0)), Quadratic(Ball(2)), Linear(Ball(3, 0.5))]
FREE = {"epsilon": inf, "delta": 0.0}


def users(loss, count, replicas, seed=0):
    """Extreme ones, at and far beyond the bounds."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, replicas, *loss.datum_shape)) * rng.choice(
        [0.3, 1.0, 30.0], size=(count, replicas, 1)
    )


def fed(agent, data):
    """The agent after all data; how often its point changed."""
    points = [agent.act(None)]
    for z in data:
        agent.update(None, points[-1], z)
        points.append(agent.act(None))
    return points


def test_phases_are_those_of_the_algorithm():
    """Oracle: 24 users in phases of 12, 6, 3 and 1, steps written out for each."""
    data = users(LOSS, 24, 2)
    spec = StreamSpec(loss=LOSS, horizon=24)
    points = fed(PhasedSGD(**FREE).make(spec, Streams([0, 1])), data)
    eta, w, start = 4 / sqrt(24) * 2 / LOSS.lipschitz, np.zeros((2, 3)), 0
    for i, n in enumerate((12, 6, 3, 1), 1):
        total = 0 * w
        for z in LOSS.admissible(data[start : start + n]):
            w = LOSS.domain.project(w - eta / 4**i * LOSS.gradient(w, z))
            total = total + w
        w, start = total / n, start + n
        np.testing.assert_allclose(points[start], w, atol=1e-12)
    assert sum(bool((a != b).any()) for a, b in pairwise(points)) == 4


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_a_user_moves_a_phase_no_further_than_claimed(loss):
    """Property: paired runs without noise, one user replaced, at steps up to the largest allowed;
    linear losses in one dimension attain the bound."""
    n, R = 6, 200
    eta = 2 / loss.smoothness if loss.smoothness else 0.1
    phase = Phase(loss=loss, users=n, eta=eta, mu=inf)
    data, other = users(loss, n, R, 1), users(loss, n, R, 2)
    start = loss.domain.project(np.random.default_rng(3).standard_normal((R, loss.domain.dim)))
    for t in range(n):
        changed = data.copy()
        changed[t] = other[t]
        ends = []
        for world in (data, changed):
            mechanism = phase.open(Streams([0]), start)
            ends.append([mechanism(z) for z in world][-1])
        moved = np.linalg.norm(ends[0] - ends[1], axis=1)
        assert moved.max() <= phase.moved * (1 + 1e-9)
    line = Phase(loss=Linear(Ball(1, 100.0)), users=n, eta=0.5, mu=inf)
    ends = []
    for first in (1.0, -1.0):
        mechanism = line.open(Streams([0]), np.zeros((1, 1)))
        ends.append([mechanism(np.array([[first if t == 0 else 0.2]])) for t in range(n)][-1])
    assert abs(ends[0] - ends[1]) == pytest.approx(line.moved)


@pytest.mark.parametrize("horizon", [1, 24])
@pytest.mark.parametrize("loss", [loss for loss in SMOOTH if loss.smoothness], ids=repr)
@pytest.mark.parametrize("config", [PhasedSGD(), SnowballSGD(refit="once")], ids=repr)
def test_no_step_is_longer_than_the_proof_allows(config, loss, horizon):
    """Golden: at a `scale` that asks for more, eta is 2 / beta in every block, the longest that
    does not take points apart (next test); at a small one it is shorter."""
    spec = StreamSpec(loss=loss, horizon=horizon)
    long, short = (
        [b.eta for b in replace(config, scale=scale).make(spec, Streams([0]))._blocks]
        for scale in (1e6, 1e-3)
    )
    assert set(long) == {2 / loss.smoothness}
    assert max(short) < 2 / loss.smoothness


def test_longer_steps_break_the_claim():
    """Broken on purpose: the same runs, one dimension, steps of 2.6 / beta. They expand, and the
    bound fails."""
    loss = LinearRegression(LpBall(1, 2.0, 5000.0), bound=1.0)
    phase = Phase(loss=loss, users=8, eta=2.6 / loss.smoothness, mu=inf)
    ends = []
    for first in (1.0, -1.0):
        mechanism = phase.open(Streams([0]), np.zeros((1, 1)))
        ends.append([mechanism(np.array([[1.0, first if t == 0 else 0.0]])) for t in range(8)][-1])
    first_step = 2 * 2 * phase.eta  # what really was different: gradients of 2 and -2
    assert abs(ends[0] - ends[1]) > 1.5 * first_step


@pytest.mark.parametrize(
    "config", [PhasedSGD(), SnowballSGD(), SnowballSGD(refit="once")], ids=repr
)
def test_certificates(config):
    """GDP with the mu of the target, for every block the same: parallel composition."""
    proof = certify(config, StreamSpec(loss=LOSS, horizon=200))
    assert proof.mu == mu_of(1.0, 1e-5)
    assert proof.accountants["PLD"] == pytest.approx(1.0, rel=1e-2)


def test_snowball_is_the_algorithm():
    """Oracle: 20 users at once: ten steps written out with the block's batches."""
    data = users(LOSS, 20, 2)
    spec = StreamSpec(loss=LOSS, horizon=20)
    points = fed(SnowballSGD(**FREE, refit="once").make(spec, Streams([0, 1])), data)
    block = Snowball(loss=LOSS, users=20, mu=inf, scale=0.5)
    assert block.sigma == 0
    w, start = np.zeros((2, 3)), 0
    for size in block.batches:
        z = LOSS.admissible(data[start : start + size])
        w = LOSS.domain.project(w - block.eta * LOSS.gradient(w, z).mean(axis=0))
        start += size
    np.testing.assert_allclose(points[-1], w, atol=1e-12)
    assert not any(point.any() for point in points[:-1])


@pytest.mark.parametrize("n", [1, 2, 3, 16, 100, 1024])
def test_batches_grow_and_fit(n):
    """They use what there is: one more user a batch somewhere would be too many, or c is so."""
    block = Snowball(loss=LOSS, users=n, mu=0.3)
    assert len(block.batches) == -(-n // 2)
    assert list(block.batches) == sorted(block.batches)
    assert 0.6 * n <= sum(block.batches) <= n
    left = np.arange(len(block.batches), 0, -1)
    per_user = 2 * LOSS.lipschitz / (np.array(block.batches) * block.sigma * np.sqrt(left))
    assert per_user.max() == pytest.approx(0.3)


@pytest.mark.parametrize("curvature", [0.0, 1.0])
def test_amplification_holds_where_all_is_gaussian(curvature):
    """Oracle: with linear or quadratic losses, and C out of reach, the last point is exactly
    Gaussian: w_m = (1-h)^(m-t) eta g_t / b_t + ..., a user of batch t moves its mean by
    2 L eta (1-h)^(m-t) / b_t, its variance is eta^2 sigma^2 sum (1-h)^(2j), h = eta curvature. That
    is at most the claim; the first user, with linear losses, attains her part of it."""
    block = Snowball(loss=Linear(Ball(1, 1e6)), users=40, mu=0.5)
    m, eta = len(block.batches), 0.1
    decay = 1 - eta * curvature
    stddev = eta * block.sigma * sqrt(sum(decay ** (2 * j) for j in range(m)))
    for t, size in enumerate(block.batches, 1):
        exact = 2 * eta * decay ** (m - t) / size / stddev
        claimed = 2 / (size * block.sigma * sqrt(m - t + 1))
        assert exact <= claimed * (1 + 1e-12)
        assert claimed <= 0.5 * (1 + 1e-12)
        if t == 1 and not curvature:
            assert exact == pytest.approx(claimed)


def test_blocks_double():
    spec = StreamSpec(loss=LOSS, horizon=100)
    points = fed(SnowballSGD(first=10).make(spec, Streams([0])), users(LOSS, 100, 1))
    moves = [t for t in range(1, 101) if (points[t] != points[t - 1]).any()]
    assert moves == [10, 30, 70]


def test_what_has_no_contraction_is_refused():
    for loss in (QuantileRegression(LpBall(2, 1.5)), Linear(Spectrahedron(3))):
        spec = ConvexSpec(loss=loss, horizon=10, feedback="datum")
        for config in (PhasedSGD(), SnowballSGD()):
            if loss.smoothness == inf or not loss.domain.has_projection:
                with pytest.raises(InputError):
                    config.make(spec, Streams([0]))
    for fields in ({"scale": 0.0}, {"epsilon": -1.0}):
        with pytest.raises(InputError):
            PhasedSGD(**fields)
    with pytest.raises(InputError):
        SnowballSGD(first=0)


@pytest.mark.parametrize(
    "config", [PhasedSGD(delta=1e-3), SnowballSGD(delta=1e-3, refit="once")], ids=repr
)
def test_they_beat_the_centre(config):
    """Statistical: the final excess risk is at most 0.2 of the centre's; here 0.045 and 0.015, with
    standard errors of 0.011 and 0.005."""
    problem = StreamingRegression(p=2.0, dim=2, horizon=1500)
    R = 10
    problem.reset(Streams([(5, r) for r in range(R)]))
    agent = config.make(problem.spec, Streams([(6, r) for r in range(R)]))
    for _ in range(1500):
        x = agent.act(None)
        agent.update(None, x, problem.step(x).datum)
    end = agent.act(None)
    share = problem.excess_risk(end) / problem.excess_risk(np.zeros_like(end))
    assert share.mean() < 0.2
