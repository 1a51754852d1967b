"""Sensitivities for a person with at most k visits, at least b time slots apart.

A mechanism releases C x + noise; a visit in time slot t adds a vector of length 1 and any direction
to x_t. S(k, b) is the largest change of C x by all visits of a person, over all their slots and
directions. Noise is scaled to S(k, b) in place of S(1), the norm of the largest column.
With the columns c_t of C and G_st = <c_s, c_t>::

    S^2 <= max over patterns of sum |G_st|, with equality where G >= 0

(the same direction at every visit). Naive group privacy is k S(1). A pattern that may move costs
no more for vectors in a unit ball: 2 S in all, as much as replacing every vector, since
`|v|^2 + |v'|^2 - 2 min(0, <v, v'>)` is at most 4 whatever the slots.

=====================  =================================================================
sums                   S(k, b)
=====================  =================================================================
`toeplitz_norm`        exact for a falling first column >= 0; worst are visits 1, 1 + b, ..
`leaves_norm`          the same where several slots are one leaf: an upper bound
`tree_norm`            binary tree: an upper bound, equal to brute force for m <= 16, b = 1
`fading_norm`          fading sums: an upper bound by rows of G
=====================  =================================================================

Kalinin and Lampert, "Banded square root matrix factorization for differentially private model
training", NeurIPS 2024 (Toeplitz); arXiv 2306.08153 (VecSens, rows).
"""

from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np

from dpbandit.base import Floats, InputError, inside, whole

_MAX_PATTERN_VISITS = 100
"""Largest number of visits for which patterns are searched; more would take minutes"""


def toeplitz_norm(column: Floats, cap: int, separation: int) -> float:
    """Return the sensitivity to a person of a Toeplitz matrix with first `column` falling, >= 0."""
    _check(cap, separation)
    c, b = np.asarray(column, dtype=np.float64), separation
    if not (np.diff(c, append=0.0) <= 0).all():
        raise InputError("Expected a column that falls and is >= 0.")
    total = np.zeros(-(-len(c) // b) * b)
    total[: len(c)] = c
    total = total.reshape(-1, b).cumsum(axis=0)  # over all visits so far, then the last k
    total[cap:] -= total[:-cap].copy()
    return float(np.linalg.norm(total.ravel()[: len(c)]))


def leaves_norm(column: Floats, every: int, cap: int, separation: int) -> float:
    """Return a bound on the sensitivity to a person of a Toeplitz matrix, `every` slots per leaf.

    Visits b = `separation` >= `every` slots apart are floor(b / every) leaves apart. Else at most
    n = ceil(every / b) share a leaf; as the norm is convex in the counts and C'C >= 0, the worst
    pattern fills leaves with n visits and puts the other r = `cap` mod n into one: n sums of one
    visit a leaf, r of them over one leaf more.
    """
    whole("every", every, 1)
    _check(cap, separation)
    if separation >= every:
        return toeplitz_norm(column, cap, separation // every)
    n = ceil(every / separation)
    full, rest = divmod(cap, n)
    found = rest * toeplitz_norm(column, full + 1, 1) if rest else 0.0
    return found + ((n - rest) * toeplitz_norm(column, full, 1) if full else 0.0)


def tree_norm(leaves: int, cap: int, separation: int, every: int = 1) -> float:
    """Return a bound on the sensitivity of a Fenwick tree to a person of at most `cap` visits.

    It is the lesser of two bounds. (1) f_h(j), the largest squared norm of j visits in 2^h leaves
    of `every` slots, is the maximum over i visits in the left child (no right child is a node of
    the Fenwick tree) of f_{h-1}(i) + i^2 + f_{h-1}(j - i); visits are b = `separation` apart, so a
    leaf has at most ceil(every / b). (2) A node of 2^h leaves holds at most ceil(2^h every / b).
    """
    whole("leaves", leaves, 0)
    whole("every", every, 1)
    _check(cap, separation)
    levels, k = int(leaves).bit_length(), min(cap, leaves * every)
    counted = k * sum(min(k, ceil(2**h * every / separation)) for h in range(levels))
    share = min(k, ceil(every / separation))
    f = np.zeros(share + 1)
    for h in range(1, levels + 1):
        most = min(k, share * 2**h)
        left, found = f + np.arange(len(f)) ** 2.0, np.full(most + 1, -np.inf)
        for i in range(min(len(f), most + 1)):
            right = f[: most + 1 - i]
            among = found[i : i + len(right)]
            np.maximum(among, left[i] + right, out=among)
        f = found
    return sqrt(min(float(f.max()), counted))


def fading_norm(ends: Sequence[int], fade: float, cap: int, separation: int) -> float:
    """Return a bound on the sensitivity of a fading sum to a person, if all m batches are released.

    Its square is at most the largest sum over visits of v_a, a the visit's batch, v_a the largest
    sum over visits of G_ab = fade^|a - b| (1 - fade^(2 (m - max(a, b) + 1))) / (1 - fade^2).
    """
    inside("fade", fade, 0, 1, ends=True)
    _check(cap, separation)
    m = len(ends)
    if m == 0:
        return 0.0
    place = np.arange(m)
    later = np.maximum(place[:, None], place)
    seen = np.cumsum(fade ** (2.0 * place))[::-1]
    G = fade ** np.abs(place[:, None] - place) * seen[later]
    rows = _most_of_batches(G, ends, cap, separation)
    return sqrt(_most_of_batches(rows[None], ends, cap, separation).item())


def _most_of_batches(values: Floats, ends: Sequence[int], cap: int, separation: int) -> Floats:
    """Return the largest sums (n,) over `cap` time slots, any two `separation` slots apart.

    `values` (n, m) has the value of a slot in each of m batches. A visit may be moved down to the
    first slot of its batch, or to `separation` slots after the visit before, so that only a batch's
    first slot and those multiples of `separation` behind it need be tried. For more than 100 visits
    only the number of visits that fit into a batch is used, an upper bound.
    """
    edges = np.asarray(ends)
    starts = np.concatenate([[0], edges[:-1]])
    k = min(cap, -(-int(edges[-1]) // separation))
    if separation == 1 or k > _MAX_PATTERN_VISITS:
        room = -((starts - edges) // separation)
        by_value = np.argsort(-values, axis=1)
        before = np.cumsum(room[by_value], axis=1) - room[by_value]
        taken = np.clip(k - before, 0, room[by_value])
        return np.asarray((taken * np.take_along_axis(values, by_value, axis=1)).sum(axis=1))
    slots = np.unique((starts[:, None] + separation * np.arange(k)).ravel())
    slots = slots[slots < edges[-1]]
    x = values[:, np.searchsorted(edges, slots, side="right")][:, ::-1]
    behind = len(slots) - np.searchsorted(slots, slots + separation)[::-1]  # of each, last first
    best = np.zeros((len(values), len(slots) + 1))  # largest sum over the last i slots
    for _ in range(k):
        best[:, 1:] = np.maximum.accumulate(x + best[:, behind], axis=1)
    return np.asarray(best[:, -1])


def _check(cap: int, separation: int) -> None:
    whole("cap", cap, 1)
    whole("separation", separation, 1)
