"""What tests of convex agents share: data, a loop that also plays adversaries, and the noise."""

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball
from dpbandit.privacy.curves import epsilon_of
from dpbandit.specs.convex import ConvexSpec
from dpbandit.testing.tapes import recording

BALL = Ball(5)
LAWS = ("k-norm", "laplace", "gaussian")
DELTA = 1e-6
NONE = np.zeros(())
"""A context that says nothing."""


def told(loss, horizon, **more):
    """A problem in which data are told."""
    return ConvexSpec(loss=loss, feedback="datum", horizon=horizon, **more)


def valued(loss, horizon):
    """A problem in which the value at the point played is told."""
    return ConvexSpec(loss=loss, feedback="value", horizon=horizon)


def node_stddev(config, spec):
    """Standard deviation of one coordinate of the noise of the first node."""
    agent, answer = config.make(spec, Streams([0])), (1, *spec.loss.datum_shape)
    agent.update(NONE, agent.act(NONE), np.zeros(1 if spec.feedback == "value" else answer))
    return agent.sums.stddev


def as_bs(epsilon, factor=1.0):
    """The epsilon at which exact GDP, on 1/factor of the movement, has the sigma that the loose
    conversion, which the tables use, has at `epsilon`: rho = (sqrt(epsilon + l) - sqrt(l))^2, l =
    ln(1/delta), mu^2 = 2 rho."""
    nats = log(1 / DELTA)
    return epsilon_of(factor * sqrt(2) * (sqrt(epsilon + nats) - sqrt(nats)), DELTA)


class Run(NamedTuple):
    """One run of R replicas over T rounds: actions (T, R, N), regret (R,) against the best fixed
    point in hindsight, and what each call fed to its mechanism."""

    actions: Any
    regret: Any
    queries: list[Any]
    releases: list[Any]

    @property
    def noise(self) -> Any:
        """B_1, B_2, .. of a running sum, (m, R, k)."""
        useful = [r is not None for r in self.releases]
        return np.array([r for r in self.releases if r is not None]) - np.cumsum(
            np.array(self.queries)[useful], axis=0
        )


def play(config, loss, data, *, feedback="datum", seed=0):
    """Play `data`, (T, R, *datum_shape)."""
    T, R = data.shape[:2]
    spec = ConvexSpec(loss=loss, feedback=feedback, horizon=T)
    agent = config.make(spec, Streams([(seed, r) for r in range(R)]))
    actions, total, comparator = [], np.zeros(R), loss.comparator(R)
    with recording() as calls:
        for z in data:
            actions.append(agent.act(np.zeros((R, *spec.context_shape))))
            value = loss.value(actions[-1], z)
            total += value
            comparator.add(z)
            agent.update(np.zeros(()), actions[-1], z if feedback == "datum" else -value)
    regret = total - comparator.best()[1]
    return Run(np.array(actions), regret, calls.queries, calls.releases)


def sphere(rng, *shape):
    g = rng.standard_normal(shape)
    return g / np.linalg.norm(g, axis=-1, keepdims=True)


def data_of(loss, T, R, seed=0):
    """Admissible data, (T, R, N), around the centre."""
    z = 2 * sphere(np.random.default_rng(seed), T, R, loss.domain.dim)
    return loss.admissible(z.reshape(-1, z.shape[-1])).reshape(z.shape)


def targets(T, R, seed=1):
    """P-quad: 0.5 e_1 + 0.5 v_t, v_t uniform on the sphere of R^5."""
    return 0.5 * np.eye(5)[0] + 0.5 * sphere(np.random.default_rng(seed), T, R, 5)


def mean_and_error(regret):
    """Mean and standard error."""
    return regret.mean(), regret.std(ddof=1) / len(regret) ** 0.5


def assert_agrees(regret, reference, error):
    """Within 4 combined standard errors of a reference (false alarm 6e-5)."""
    mean, spread = mean_and_error(regret)
    assert abs(mean - reference) <= 4 * (spread**2 + error**2) ** 0.5 + 0.005, (mean, spread)
