"""Convex decision sets, all batched over replicas."""

from dpbandit.domains.balls import Ball, Box, L1Ball, LpBall, Simplex, Spectrahedron
from dpbandit.domains.domain import Domain
from dpbandit.domains.flows import Flows
from dpbandit.domains.matroids import (
    Hypersimplex,
    IndependentSets,
    Product,
    SpanningTrees,
    partition_base,
)
from dpbandit.domains.projections import (
    Nearest,
    frank_wolfe,
    nearest,
    pairwise_frank_wolfe,
    shrunk_projection,
)
from dpbandit.domains.submodular import ConcaveBase, SubmodularBase
from dpbandit.domains.words import WORDS, domain_named

__all__ = [
    "WORDS",
    "Ball",
    "Box",
    "ConcaveBase",
    "Domain",
    "Flows",
    "Hypersimplex",
    "IndependentSets",
    "L1Ball",
    "LpBall",
    "Nearest",
    "Product",
    "Simplex",
    "SpanningTrees",
    "Spectrahedron",
    "SubmodularBase",
    "domain_named",
    "frank_wolfe",
    "nearest",
    "pairwise_frank_wolfe",
    "partition_base",
    "shrunk_projection",
]
