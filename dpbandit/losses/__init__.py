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
    Logistic,
    Ramp,
    Ridge,
    Squared,
)
from dpbandit.shelf import face as _face, homes as _homes

__all__ = [
    "Absolute",
    "Comparator",
    "Experts",
    "Hinge",
    "Kink",
    "Linear",
    "Logistic",
    "Loss",
    "OffsetQuadratic",
    "Quadratic",
    "Ramp",
    "Revenue",
    "Ridge",
    "Squared",
    "TiltedQuadratic",
    *_homes("losses"),
]
__getattr__, __dir__ = _face(__name__)
