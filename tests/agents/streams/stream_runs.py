"""What tests of stream agents share: the regressions of Table 5.1, and a loop."""

import numpy as np

from dpbandit.base.random_streams import Streams
from dpbandit.domains import LpBall
from dpbandit.envs.streams.streaming_regression import StreamingRegression
from dpbandit.losses import LinearRegression
from dpbandit.specs.convex import StreamSpec


def regression(p, dim, *, bound=1.25):
    """(y - <x, theta>)^2 on the l_p ball of radius 2."""
    return LinearRegression(LpBall(dim, p, 2.0), bound=bound)


def told(loss, horizon=1000):
    return StreamSpec(loss=loss, horizon=horizon)


def users(loss, T, R, seed=0):
    """Blocks of data, (n, R, d + 1): x = z / |z|_q, z normal, y = <x, theta*> + N(0, .05^2)."""
    rng, star = np.random.default_rng(seed), truth(loss)
    for start in range(0, T, 500):
        n = min(500, T - start)
        x = rng.standard_normal((n, R, len(star)))
        x /= np.linalg.norm(x, loss.order, axis=-1, keepdims=True)
        y = x @ star + 0.05 * rng.standard_normal((n, R))
        yield np.concatenate([x, y[..., None]], axis=-1)


def truth(loss):
    """theta*: all entries alike, |theta*|_p = 1."""
    ones = np.ones(loss.domain.dim)
    return ones / np.linalg.norm(ones, loss.domain.p)


def played(config, loss, T, R, *, seed=0):
    """All points of one run, (T, R, N)."""
    agent = config.make(told(loss, T), Streams([(seed, r) for r in range(R)]))
    points = []
    for block in users(loss, T, R, seed):
        for z in block:
            points.append(agent.act(np.zeros_like(z)))
            agent.update(np.zeros_like(z), points[-1], z)
    return np.array(points)


def suboptimality(config, p, dim, T, R, *, seed=0):
    """(F(theta_T) - F*) / (F(0) - F*), (R,): |theta - theta*|^2 / |theta*|^2, as E x x' ~ I."""
    loss = regression(p, dim)
    agent = config.make(told(loss, T), Streams([(seed, r) for r in range(R)]))
    for block in users(loss, T, R, seed):
        for z in block:
            agent.update(z, agent.act(z), z)
    gap = agent.act(z) - truth(loss)
    return np.square(gap).sum(axis=1) / np.square(truth(loss)).sum()


def points_of(agent, data):
    """What it plays before each datum of `data` and after the last."""
    points = [agent.act(None)]
    for z in data:
        agent.update(None, points[-1], z)
        points.append(agent.act(None))
    return points


def answered(block, start, data):
    """The point that a block releases, once and at its end; each user says `data`, or her row."""
    block.begin(start)
    each = data if np.ndim(data) > 2 else [data] * block.uses
    *before, out = [block(z) for z in each]
    assert all(point is None for point in before)
    return out


def share_of_the_centre(config, p, *, dim, T, R, seed):
    """F(theta) - F(theta*) over that of the centre, after the last round: (R,)."""
    problem = StreamingRegression(p=p, dim=dim, horizon=T)
    problem.reset(Streams([(seed, r) for r in range(R)]))
    agent = config.make(problem.spec, Streams([(seed + 1, r) for r in range(R)]))
    for _ in range(T):
        x = agent.act(None)
        agent.update(None, x, problem.step(x).datum)
    end = agent.act(None)
    return problem.excess_risk(end) / problem.excess_risk(np.zeros_like(end))
