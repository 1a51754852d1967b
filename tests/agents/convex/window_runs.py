"""What tests of window-DP players share: the specification's problems, and its conversion."""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from dpbandit.losses import Quadratic
from dpbandit.privacy.curves import epsilon_of

DELTA = 1e-6


@dataclass(frozen=True)
class Near(Quadratic):
    """1/2 |x - z|^2 on the unit ball with |z| <= 0.7: L = 1.7."""

    @property
    def lipschitz(self):
        return 1.7


def near_targets(T, replicas=1):
    """z_t = 0.3 v_t + 0.4 e_1 in R^5, the same for all replicas, (T, R, 5)."""
    z = np.random.default_rng(0).standard_normal((T, 5))
    z *= 0.3 / np.linalg.norm(z, axis=1, keepdims=True)
    z[:, 0] += 0.4
    return np.broadcast_to(z[:, None], (T, replicas, 5))


def corners(T, replicas=1):
    """Unit vectors e_i of R^10, i ~ (.5, .3, .2, 0, ..), the same for all replicas, (T, R, 10)."""
    i = np.random.default_rng(0).choice(10, T, p=[0.5, 0.3, 0.2] + [0] * 7)
    return np.broadcast_to(np.eye(10)[i][:, None], (T, replicas, 10))


def as_bs(epsilon, factor=1.0):
    """The epsilon at which exact GDP, on 1/factor of the movement, has the sigma that the loose
    conversion, which the tables use, has at `epsilon`: rho = (sqrt(epsilon + l) - sqrt(l))^2, l =
    ln(1/delta), mu^2 = 2 rho."""
    nats = log(1 / DELTA)
    return epsilon_of(factor * sqrt(2) * (sqrt(epsilon + nats) - sqrt(nats)), DELTA)
