"""What flows need of a directed graph without cycles: orders, and paths counted and compared."""

from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np

from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.base.inputs import InputError

Arcs: TypeAlias = Sequence[tuple[int, int]]
"""(tail, head) of each edge, nodes numbered so that tail < head."""


def numbered(edges: Sequence[tuple[Hashable, Hashable]]) -> dict[Hashable, int]:
    """A number for every node such that all edges go upwards; `InputError` if there is a cycle."""
    waiting = dict.fromkeys(node for edge in edges for node in edge)
    number: dict[Hashable, int] = {}
    while waiting:
        blocked = {head for tail, head in edges if tail in waiting}
        free = [node for node in waiting if node not in blocked]
        if not free:
            raise InputError(
                f"Expected no cycle in the edges, and there is one in {list(waiting)}."
            )
        for node in free:
            number[node] = len(number)
            del waiting[node]
    return number


def path_counts(arcs: Arcs, source: int, sink: int, nodes: int) -> tuple[list[int], int]:
    """How many paths from source to sink use each edge, and how many there are."""
    to, onward = [0] * nodes, [0] * nodes
    to[source] = onward[sink] = 1
    for tail, head in sorted(arcs):
        to[head] += to[tail]
    for tail, head in sorted(arcs, reverse=True):
        onward[tail] += onward[head]
    return [to[tail] * onward[head] for tail, head in arcs], to[sink]


def leaving(arcs: Arcs, used: Sequence[bool], nodes: int) -> list[Ints]:
    """The used edges out of every node."""
    out: list[list[int]] = [[] for _ in range(nodes)]
    for e, (tail, _) in enumerate(arcs):
        if used[e]:
            out[tail].append(e)
    return [np.array(edges, dtype=np.int64) for edges in out]


def even_split(heads: Ints, out: Sequence[Ints], source: int) -> Floats:
    """The unit flow that every node splits evenly over its used edges, (m,)."""
    at, flow = np.zeros(len(out)), np.zeros(len(heads))
    at[source] = 1.0
    for node, edges in enumerate(out):
        for e in edges:
            flow[e] = at[node] / len(edges)
            at[heads[e]] += flow[e]
    return flow


def farthest_paths(heads: Ints, out: Sequence[Ints], source: int) -> int:
    """The most edges that are on one of two paths and not on both.

    Two walkers; the one at the lower node moves, so they are at a common node at the same time
    and then choose together: an edge both take counts 0. best[u, v] is what is still to come.
    """
    nodes = len(out)
    best = np.zeros((nodes, nodes), dtype=np.int64)
    for u in reversed(range(source, nodes)):
        edges = out[u]
        if len(edges):
            after = heads[edges]
            best[u, u + 1 :] = best[u + 1 :, u] = 1 + best[after, u + 1 :].max(axis=0)
            apart = 2 * (edges[:, None] != edges)
            best[u, u] = (apart + best[after[:, None], after]).max()
    return int(best[source, source])


def shortest_paths(
    weights: Floats, heads: Ints, out: Sequence[Ints], source: int, sink: int
) -> Floats:
    """The lightest path of each row, the first of equals, as 0 and 1: (R, m) -> (R, m).

    Bellman's recursion from the sink downwards, then one walk up: weights may be negative.
    """
    R, m = weights.shape
    to_go, choice = np.zeros((R, len(out))), np.zeros((R, len(out)), dtype=np.int64)
    for node in reversed(range(source, sink)):
        if len(out[node]):
            costs = weights[:, out[node]] + to_go[:, heads[out[node]]]
            best = costs.argmin(axis=-1)
            choice[:, node], to_go[:, node] = out[node][best], costs[rows(R), best]
    path, at = np.zeros((R, m)), np.full(R, source)
    for node in range(source, sink):
        here = at == node
        path[here, choice[here, node]] = 1.0
        at = np.where(here, heads[choice[:, node]], at)
    return path
