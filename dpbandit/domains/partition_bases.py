"""Bases of the partition matroid."""

from dpbandit.base.inputs import InputError
from dpbandit.domains.hypersimplices import Hypersimplex
from dpbandit.domains.products import Product


def partition_base(blocks: tuple[tuple[int, int], ...]) -> Product:
    """Mixtures of choices of exactly q of the N items of every block, `blocks` = ((q, N), ...).

    A product of hypersimplices. A block without a choice (q = 0 or q = N) has no dimension: leave
    it out.

    >>> partition_base(((1, 3), (2, 4))).affine_dim
    5
    """
    if not blocks:
        raise InputError("Expected blocks=() to hold at least one pair (q, N).")
    for pair in blocks:
        if len(pair) != 2:
            raise InputError(f"Expected the block {pair!r} to be a pair (q, N).")
    return Product(tuple(Hypersimplex(dim=N, rank=q) for q, N in blocks))
