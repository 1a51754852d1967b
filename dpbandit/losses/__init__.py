"""Convex losses f(x; z) of a decision x and a round's datum z, all batched over replicas."""

from dpbandit.losses.decisions import (
    Experts,
    Kink,
    Linear,
    OffsetQuadratic,
    Quadratic,
    Revenue,
    TiltedQuadratic,
)
from dpbandit.losses.loss import Comparator, Loss
from dpbandit.losses.predictions import (
    Absolute,
    Hinge,
    LinearRegression,
    Logistic,
    LogisticRegression,
    QuantileRegression,
    Ramp,
    Ridge,
    Squared,
)

__all__ = [
    "Absolute",
    "Comparator",
    "Experts",
    "Hinge",
    "Kink",
    "Linear",
    "LinearRegression",
    "Logistic",
    "LogisticRegression",
    "Loss",
    "OffsetQuadratic",
    "Quadratic",
    "QuantileRegression",
    "Ramp",
    "Revenue",
    "Ridge",
    "Squared",
    "TiltedQuadratic",
]
