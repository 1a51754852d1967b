"""Every family of losses on every domain it is tested on."""

import numpy as np

from dpbandit.domains import (
    Ball,
    Box,
    ConcaveBase,
    Hypersimplex,
    L1Ball,
    LpBall,
    Simplex,
    Spectrahedron,
)
from dpbandit.losses import (
    Absolute,
    Experts,
    Hinge,
    Kink,
    Linear,
    LinearRegression,
    Logistic,
    LogisticRegression,
    OffsetQuadratic,
    Quadratic,
    QuantileRegression,
    Ramp,
    Revenue,
    Ridge,
    Squared,
    TiltedQuadratic,
)

PRICES = Revenue(
    Box(2, 0.5),
    list_prices=(1.5, 2.0),
    effects=((1.0, -0.2), (-0.2, 0.8)),
    demand=(2.6, 2.9),
    spread=0.2,
    unit_costs=(0.4, 0.3),
)
DECISIONS = Linear, Quadratic, TiltedQuadratic, OffsetQuadratic
PREDICTIONS = Absolute, Hinge, Logistic, Squared, Ramp
DOMAINS = (Ball(3, 1.5), Box(2, 0.8), L1Ball(3), Simplex(4), Hypersimplex(5, 2))
REGRESSIONS = [
    LinearRegression(LpBall(3, 1.5, 2.0), bound=1.25),
    LinearRegression(LpBall(2, 1, 0.5)),
    LogisticRegression(LpBall(3, np.inf)),
    LogisticRegression(LpBall(2, 1.2, 2.0)),
    QuantileRegression(LpBall(3, 4.0), level=0.8),
    QuantileRegression(LpBall(3, 1), level=0.3, bound=0.5),
]
WITHOUT_PROJECTION = Spectrahedron(2), ConcaveBase((3.0, 2.0, 0.5))
FAMILIES = [
    *(word(domain) for word in (*DECISIONS, *PREDICTIONS) for domain in DOMAINS),
    *(Kink(domain, spread=0.6) for domain in DOMAINS),
    Kink(Ball(3), slope=2.0, curvature=0.5), Kink(Ball(3), curvature=0.0, spread=0.3),
    Experts(Simplex(4)), Ridge(Ball(3, 1.5), curvature=0.3), Ridge(Simplex(4), bound=0.5), PRICES,
    *REGRESSIONS,
]  # fmt: skip


def label(loss):
    return f"{type(loss).__name__}-{loss.domain}".replace("dim=", "")


def points(domain, count, seed=1):
    """`count` points of the domain: corners, and mixtures of two and of six of them."""
    rng = np.random.default_rng(seed)
    corners = domain.lowest(rng.standard_normal((6 * count, domain.dim))).reshape(count, 6, -1)
    weights = rng.dirichlet(np.ones(6), size=count)
    kind = rng.integers(3, size=count)
    weights[kind == 0] = np.eye(6)[0]
    weights[kind == 1, 2:] = 0
    weights /= weights.sum(1, keepdims=True)
    return np.vecmat(weights, corners)


def data(loss, count, seed=2):
    """`count` admissible data, from tiny to clipped, half of them pulled to be as far as can be."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((count, *loss.datum_shape))
    z *= rng.choice([0.1, 1.0, 10.0, 1e6], size=(count, 1))
    return loss.admissible(z + rng.choice([0.0, 1.0], size=(count, 1)) * _middle(loss))


def _middle(loss):
    if isinstance(loss, Quadratic | Kink):
        return loss.domain.centre
    return np.array(loss.demand) if isinstance(loss, Revenue) else 0.0
