"""Convex losses f(x; z) of a decision x and a round's datum z, all batched over replicas."""

from dpbandit.losses.kink import Kink
from dpbandit.losses.linear import Experts, Linear
from dpbandit.losses.loss import Comparator, Loss
from dpbandit.losses.predictions import Absolute, Hinge, Logistic, Squared
from dpbandit.losses.quadratic import OffsetQuadratic, Quadratic, TiltedQuadratic
from dpbandit.losses.ramps import Ramp
from dpbandit.losses.regressions import LinearRegression, LogisticRegression, QuantileRegression
from dpbandit.losses.revenue import Revenue
from dpbandit.losses.ridge import Ridge

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
