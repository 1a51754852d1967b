"""Convex decision sets, all batched over replicas."""

from dpbandit.domains.balls import Ball
from dpbandit.domains.boxes import Box
from dpbandit.domains.concave_bases import ConcaveBase
from dpbandit.domains.domain import Domain
from dpbandit.domains.flows import Flows
from dpbandit.domains.frank_wolfe_projection import (
    Nearest,
    frank_wolfe,
    nearest,
    pairwise_frank_wolfe,
    shrunk_projection,
)
from dpbandit.domains.hypersimplices import Hypersimplex, IndependentSets
from dpbandit.domains.lp_balls import LpBall
from dpbandit.domains.partition_bases import partition_base
from dpbandit.domains.products import Product
from dpbandit.domains.simplices import L1Ball, Simplex
from dpbandit.domains.spanning_trees import SpanningTrees
from dpbandit.domains.spectrahedra import Spectrahedron
from dpbandit.domains.submodular_bases import SubmodularBase
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
