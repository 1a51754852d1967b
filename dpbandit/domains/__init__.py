"""Convex decision sets, all batched over replicas."""

from dpbandit.domains.balls import Ball, Box, L1Ball, Simplex, Spectrahedron
from dpbandit.domains.domain import Domain
from dpbandit.domains.projections import (
    Nearest,
    frank_wolfe,
    nearest,
    pairwise_frank_wolfe,
    shrunk_projection,
)
from dpbandit.domains.words import DOMAINS, domain_named
from dpbandit.shelf import face as _face, homes as _homes

__all__ = [
    "DOMAINS",
    "Ball",
    "Box",
    "Domain",
    "L1Ball",
    "Nearest",
    "Simplex",
    "Spectrahedron",
    "domain_named",
    "frank_wolfe",
    "nearest",
    "pairwise_frank_wolfe",
    "shrunk_projection",
    *_homes("domains"),
]
__getattr__, __dir__ = _face(__name__)
