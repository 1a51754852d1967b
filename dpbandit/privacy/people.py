"""Sensitivities for a person with at most k visits, at least b slots apart.

A mechanism releases C x + noise; a visit in slot t adds a vector of length 1, of any direction, to
x_t. S(k, b) is how far all visits of a person move C x at most, over all their slots and
directions: what noise is scaled to in place of the largest column, S(1). With G_st = <c_s, c_t>::

    S^2 <= max over patterns of sum |G_st|, with equality where G >= 0

(the same direction at every visit). Naive group privacy is k S(1). A pattern that may move costs
no more for vectors in a unit ball: 2 S in all, what replacing one of them by another costs, since
`|v|^2 + |v'|^2 - 2 min(0, <v, v'>)` is at most 4 whatever the slots.

=====================  =================================================================
sums                   S(k, b)
=====================  =================================================================
`toeplitz_norm`        exact: c_0 >= c_1 >= .. >= 0, worst are visits 1, 1 + b, 1 + 2b, ..
`leaves_norm`          the same where several slots are one leaf: an upper bound
`most_of`              exact, what is linear in the pattern (l_1, pure epsilon)
`tree_norm`            binary tree: an upper bound, equal to brute force for m <= 16, b = 1
`fading_norm`          fading sums: an upper bound by rows of G
`once_a_batch_norm`    exact, fading sums in which a batch hears of her once
=====================  =================================================================

Kalinin and Lampert, "Banded square root matrix factorization for differentially private model
training", NeurIPS 2024 (Toeplitz); arXiv 2306.08153 (VecSens, rows).
"""

from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np

from dpbandit.base import Floats, InputError, inside, whole
from dpbandit.privacy.notion import Visits
from dpbandit.privacy.spends import GaussianSpend, Repeated, Slots, Spend

_MANY = 100
"""Visits up to which patterns are told from counts: more would take minutes"""


def most_of(values: Floats, cap: int, separation: int) -> float:
    """The largest sum of at most `cap` of `values` (T,), >= 0, any two `separation` apart. O(T k).

    F_j[i], of the best j of values i, i + 1, ..., is max over i' >= i of x_i' + F_{j-1}[i' + b].

    >>> most_of(np.array([3.0, 5.0, 3.0]), cap=2, separation=2)
    6.0
    """
    _check(cap, separation)
    x = np.asarray(values, dtype=np.float64)[::-1].copy()  # from the last slot on
    best, then, b = np.zeros(len(x)), np.empty(len(x)), separation
    for _ in range(min(cap, -(-len(x) // b))):
        then[:] = x
        then[b:] += best[: max(0, len(x) - b)]
        np.maximum.accumulate(then, out=best)
    return float(best[-1]) if len(x) else 0.0


def toeplitz_norm(column: Floats, cap: int, separation: int) -> float:
    """Of a lower-triangular Toeplitz C whose first column (m,) falls and is >= 0. O(m k)."""
    _check(cap, separation)
    c, b = np.asarray(column, dtype=np.float64), separation
    if not (np.diff(c, append=0.0) <= 0).all():
        raise InputError("Expected a column that falls and is >= 0.")
    total = np.zeros(-(-len(c) // b) * b)
    total[: len(c)] = c
    total = total.reshape(-1, b).cumsum(axis=0)  # of all visits so far, then of the last k alone
    total[cap:] -= total[:-cap].copy()
    return float(np.linalg.norm(total.ravel()[: len(c)]))


def leaves_norm(column: Floats, every: int, cap: int, separation: int) -> float:
    """Of the same C where `every` slots are one leaf, an upper bound.

    Visits b >= `every` slots apart are floor(b / every) leaves apart. Else at most n = ceil(every /
    b) of them share a leaf; as the norm is convex in the counts and G >= 0, worst are full leaves
    and one of the rest r = k mod n, which is r visits more often and n - r visits less often full.
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
    """Of a binary tree that keeps left nodes alone (Fenwick), an upper bound.

    By f_h(j) = max f_{h-1}(i) + i^2 + f_{h-1}(j - i), the most that j visits in 2^h leaves do, of
    which at most ceil(`every` / b) share one; and by counts: a node of 2^h leaves, each of `every`
    slots, holds at most ceil(2^h every / b) visits.
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
    """Of a fading sum with these ends of batches, all released; an upper bound.

    S^2 <= max over patterns of sum_s v_batch(s), v_a the most that a pattern makes of row a of G,
    G_ab = fade^|a - b| (1 - fade^(2 (m - max(a, b) + 1))) / (1 - fade^2).
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
    """`most_of` of rows (n, m) that say what a slot of each of m batches is worth, (n,).

    Visits may be moved down to the first slot of their batch, or to b slots after the visit before,
    so that no more slots than a batch's first and 1, .., k - 1 times b behind it need be looked at.
    Of more visits than 100 no more is used than that a batch has room for ceil(size / b), which is
    an upper bound, exact at b = 1.
    """
    edges = np.asarray(ends)
    starts = np.concatenate([[0], edges[:-1]])
    k = min(cap, -(-int(edges[-1]) // separation))
    if separation == 1 or k > _MANY:
        room = -((starts - edges) // separation)
        by_value = np.argsort(-values, axis=1)
        before = np.cumsum(room[by_value], axis=1) - room[by_value]
        taken = np.clip(k - before, 0, room[by_value])
        return np.asarray((taken * np.take_along_axis(values, by_value, axis=1)).sum(axis=1))
    slots = np.unique((starts[:, None] + separation * np.arange(k)).ravel())
    slots = slots[slots < edges[-1]]
    x = values[:, np.searchsorted(edges, slots, side="right")][:, ::-1]
    behind = len(slots) - np.searchsorted(slots, slots + separation)[::-1]  # of each, last first
    best = np.zeros((len(values), len(slots) + 1))  # of the last i of them
    for _ in range(k):
        best[:, 1:] = np.maximum.accumulate(x + best[:, behind], axis=1)
    return np.asarray(best[:, -1])


def once_a_batch_norm(releases: int, fade: float, cap: int) -> float:
    """Of a fading sum in which a person counts once a batch, in at most `cap` of them.

    Over batches that is a Toeplitz sum of c_j = fade^j. No cap is needed: anybody's is `releases`.
    """
    whole("releases", releases, 0)
    inside("fade", fade, 0, 1, ends=True)
    return toeplitz_norm(fade ** np.arange(releases), cap, 1) if releases else 0.0


def _check(cap: int, separation: int) -> None:
    whole("cap", cap, 1)
    whole("separation", separation, 1)


_ROUNDING = 1e-9


def for_a_person(spend: Spend, visits: Visits) -> Repeated:
    """`spend` for a person with such visits, in which a round without her is a public null round.

    Replacing her changes n = k rounds, or n = 2 k where she may come at other times, each by what
    replacing one round does at most: those she leaves and those she takes, of which either are a
    pattern of k rounds b apart. So a running sum moves no further than S(k, b) / S(1, 1) rounds
    do where her slots stay, and else than S(2 k, 1) / S(1, 1), or than `moving` times as far: twice
    by the triangle inequality; less where contributions v, beyond a null round's, are short, as
    with columns c_t of products >= 0, V the largest `|v|` and m the least <v, v'>::

        |sum of c_t v_t, t left, - sum of c_t v'_t, t taken|^2 <= S^2 (2 V^2 + 2 max(0, -m))

    (squares are at most S^2 V^2 each, and what is in between adds up to S^2 as well). That holds
    for data, reference points and return times that depend on releases: it holds of every pattern.
    Of a mechanism that says nothing it is n, group privacy.

    >>> from dpbandit.privacy.fading import FadingSlots
    >>> spend = GaussianSpend(0.1, "sums", FadingSlots((100, 200, 300, 400), fade=0.0))
    >>> for_a_person(spend, Visits(4, 100, pattern="public")).note
    'sums, 4 rounds of a person, which count as 2'
    """
    times = visits.rounds
    slots = spend.slots if isinstance(spend, GaussianSpend) else None
    if slots is None or times == 1 or not spend.mu:
        return Repeated(spend, times)
    factor = _apart(slots, visits) / slots.person_norm(1, 1) * (1 + _ROUNDING)
    return Repeated(spend, times, factor) if factor < times else Repeated(spend, times)


def _apart(slots: Slots, visits: Visits) -> float:
    S = slots.person_norm(visits.cap, visits.separation)
    if visits.pattern == "public":
        return S
    return min(slots.moving * S, slots.person_norm(2 * visits.cap, 1))
