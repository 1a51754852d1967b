"""LeastSquares: the floor of comparisons on streams."""

from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import LeastSquares
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import LpBall
from dpbandit.losses import LinearRegression, QuantileRegression
from dpbandit.specs.streams import StreamSpec

SPEC = StreamSpec(loss=LinearRegression(LpBall(3, 2.0, 5.0)), horizon=60)


def played(config, spec, data):
    agent = config.make(spec, Streams(range(data.shape[1])))
    fits = []
    for z in data:
        agent.update(None, agent.act(None), z)
        fits.append(agent.refits)
    return agent, fits


def test_it_is_least_squares():
    """Oracle: numpy's, where the constraint does not bind; refits at 1, 2, 3, .., 10, 11, 13, ..:
    each 1.1 times the one before, rounded up."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((60, 2, 3))
    a /= np.linalg.norm(a, axis=-1, keepdims=True)
    y = a @ np.array([0.3, -0.2, 0.1]) + 0.1 * rng.standard_normal((60, 2))
    data = np.concatenate([a, y[..., None]], axis=-1)
    agent, fits = played(LeastSquares(), SPEC, data)
    times = [t for t in range(1, 61) if t == 1 or fits[t - 1] > fits[t - 2]]
    expected = [1]
    while expected[-1] < 60:
        expected.append(max(expected[-1] + 1, int(np.ceil(1.1 * expected[-1]))))
    assert times == [t for t in expected if t <= 60]
    for r in range(2):
        best = np.linalg.lstsq(a[: times[-1], r], y[: times[-1], r], rcond=None)[0]
        np.testing.assert_allclose(agent.act(None)[r], best, atol=2e-3)
    assert certify(LeastSquares(), SPEC).epsilon == inf


def test_it_keeps_to_the_domain_and_survives_anything():
    spec = StreamSpec(loss=QuantileRegression(LpBall(2, 1.0, 0.5)), horizon=20)
    rng = np.random.default_rng(1)
    data = rng.standard_normal((20, 3, 3)) * rng.choice([1.0, 1e9, np.nan], size=(20, 3, 1))
    agent, _ = played(LeastSquares(growth=2.0), spec, data)
    assert agent.refits == 5  # at 1, 2, 4, 8, 16
    assert spec.loss.domain.contains(agent.act(None)).all()
    with pytest.raises(InputError):
        LeastSquares(growth=1.0)
