"""Factorisations of prefix sums: other trees, windows, unknown horizons, staggered starts.

::

    factorisation      noise law                  tree nodes that a user enters, of m leaves
    Honaker            any                        bit_length(m) nodes
    KAry               any, the default if pure   levels(m, k) nodes, few if k is large
    Window(W)          any                        log2(W) + 1 nodes, for window DP
    Independent        any                        1
    Hybrid(norm)       any                        1, whatever the horizon
"""

from dataclasses import dataclass
from functools import cache
from math import inf, sqrt
from typing import Literal, TypeAlias

import numpy as np

from dpbandit.base import Floats, InputError, Streams, one_of, whole
from dpbandit.privacy.people import leaves_norm
from dpbandit.privacy.prefix_sums import BLT, Factorisation, Padded, SquareRoot, Tree
from dpbandit.shelf import open_shelves

Node: TypeAlias = tuple[int, int]
"""Tree node (start, size), which covers the leaves start + 1 .. start + size."""


class Honaker(Factorisation):
    """Binary tree whose prefix estimates use every node released so far, of least variance.

    Honaker, "Efficient use of differentially private binary trees", TPDP 2015, the estimate from
    below; used online by Kairouz, McMahan, Song, Thakkar, Thakurta and Xu, "Practical and private
    (deep) learning without sampling or shuffling", ICML 2021. A node's sum is estimated from its
    own noisy sum and, at no cost, from its children's estimates; the two are weighted by 1 /
    variance. When leaf t completes the nodes of levels 0..j above it, their errors are, bottom up::

        e_0 = z_0,   e_i = v_i z_i + (1 - v_i) (e_left + e_right),   v_0 = 1
        v_i = 1 / (1 + 1 / (2 v_{i-1})) = 2^i / (2^{i+1} - 1),    Var e_i / Var z_i
        N_t = e_j + N_{t - 2^j}

    The subtrees of a prefix are disjoint and no node above them is complete, so no unbiased
    estimate from the nodes released so far has less variance. There is one draw for every node, at
    most 2 per leaf on average, and memory for 2 log2(m) arrays.

    Guarantee:
        As for every `Factorisation`: a leaf lies in at most bit_length(m) complete nodes (leaf 1
        attains it) and the weights depend on t alone, so they are post-processing. Unlike in `Tree`
        right children are released as well, which costs nothing: the leaf that enters most nodes
        lies in left children only.
    """

    word = "honaker"
    bounded = True

    def nodes(self, leaves: int) -> int:
        return int(leaves).bit_length()

    def begin(self) -> None:
        self._left: dict[int, Floats] = {}  # [level]: e of a left child that waits for its brother
        self._prefix: dict[int, tuple[Floats, float]] = {}  # [lowbit t']: N_t', its variance

    def __call__(self) -> Floats:
        t = self.step()
        e, v, level = self.source(), 1.0, 0
        while not t >> level & 1:  # a right child: its parent is complete as well
            v = 1 / (1 + 1 / (2 * v))
            e = v * self.source() + (1 - v) * (self._left.pop(level) + e)
            level += 1
        self._left[level] = e
        below = t & (t - 1)  # t - lowbit(t)
        if below:
            N, variance = self._prefix[below & -below]
            e, v = e + N, v + variance
        self._prefix[t & -t] = e, v
        self.stddev = sqrt(v) * self.scale
        return np.asarray(e)


@dataclass(unsafe_hash=True)
class KAry(Factorisation):
    """K-ary tree: prefixes in base k with positive and negative digits, a node per unit of a digit.

    Andersson, Pagh, Steiner and Torkamani, "Count on your elders: Laplace vs Gaussian noise", FORC
    2025 (arXiv 2408.07021), the k-ary tree mechanism with negative digits. k = 5, t = 9 = 2 * 5 -
    1: two nodes of five leaves, minus the leaf that is one too many::

        level 1   [1 2 3 4 5] [6 7 8 9 10]        N_9 = z[1-5] + z[6-10] - z[10]
        level 0                         -[10]     digits -(k-1)//2 .. k//2 at every level

    Counting on by one node of a level raises its digit by one; a digit of k//2 becomes -(k-1)//2
    with a carry: one more node of the level above, minus its last (k-1)//2 children. A node is thus
    used before it is full: only its NOISE is used, and the future leaves cancel from the sum.
    Children in the middle are never used. k = 2 has no negative digit and is `Tree` bit for bit.

    Guarantee:
        If replacing one user moves one leaf by at most Delta_1 in L1 and nodes carry Laplace
        noise of scale lam, all m releases are epsilon-DP, epsilon = levels(m, k) Delta_1 / lam, for
        adaptive streams too. Releases are B (C x + z), x the leaves, z the noises, C the 0/1 leaves
        of each node and B C = A lower triangular. Fix z, and let user s's leaf move by Delta, a
        function of the releases before s. Then z -> z - C_s Delta reproduces all releases; it
        preserves volume, because what Delta depends on, B_{<s} z, is itself unmoved (B_{<s} C_s =
        A_{<s,s} = 0). So the log-density moves by at most `|C_s|_1 Delta_1 / lam`, a leaf being in
        one node of a level.

    Differs from the paper:
        1. k may be even (a tie goes to the positive digit), and is chosen for m by counting nodes,
           not from asymptotics.
        2. Noise is drawn when its node is first used.
    """

    arity: int | None = None
    """base k >= 2; None for `best_arity` of the number of leaves"""
    word = "k-ary"
    bounded = True

    def nodes(self, leaves: int) -> int:
        return levels(leaves, best_arity(leaves) if self.arity is None else self.arity)

    def begin(self) -> None:
        if self.most is None:
            raise InputError("Expected leaves, for which a k-ary tree is calibrated.")
        self._k = best_arity(self.most) if self.arity is None else self.arity
        height = levels(self.most, self._k)
        self._digit = [0] * height
        # [level]: signed noise of its digit on top, of the digits still to come below it
        self._noise: list[list[Floats]] = [[] for _ in range(height)]
        self._above: list[Floats] = [np.zeros(())] * (height + 1)  # [level]: sum of levels >= it

    def __call__(self) -> Floats:
        self.step()
        level = 0
        while self._digit[level] == self._k // 2:  # carry
            self._digit[level] = -((self._k - 1) // 2)
            self._noise[level] = self._subtracted()
            level += 1
        noise = self._noise[level]
        if self._digit[level] < 0:
            noise.pop()
        else:
            self._noise[level] = [self.source() + noise[-1] if noise else self.source()]
        self._digit[level] += 1
        for i in range(level, -1, -1):
            top = self._noise[i][-1:]
            self._above[i] = top[0] + self._above[i + 1] if top else self._above[i + 1]
        self.stddev = sqrt(sum(map(abs, self._digit))) * self.scale
        return self._above[0]

    def _subtracted(self) -> list[Floats]:
        """Return minus the summed noises of the last 1, 2, .., (arity-1)//2 children of a node."""
        sums: list[Floats] = []
        for _ in range((self._k - 1) // 2):
            z = self.source()
            sums.append(sums[-1] - z if sums else -z)
        return sums


def levels(leaves: int, arity: int) -> int:
    """Return the number of base-`arity` digits that the prefixes 1..leaves need."""
    whole("arity", arity, 2)
    count, height = leaves, 0
    while count:  # nodes a level has opened by then
        count = (count + (arity - 1) // 2) // arity
        height += 1
    return height


@cache
def best_arity(leaves: int) -> int:
    """Return the arity of least mean variance of Laplace noise over the prefixes 1..leaves.

    >>> best_arity(10_000)
    28
    """
    whole("leaves", leaves, 0)
    best, least = 2, inf
    for height in range(leaves.bit_length(), 0, -1):
        low, high = 2, 2 * leaves  # search the smallest k of this height: the best k is near
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if levels(leaves, middle) <= height else (middle + 1, high)
        for k in range(low, min(low + low // 4 + 3, 2 * leaves) + 1):
            cost = levels(leaves, k) ** 2 * nodes_in_use(leaves, k)
            if cost < least:
                best, least = k, cost
    return best


def nodes_in_use(leaves: int, arity: int) -> int:
    """Return the number of nodes that the prefixes 1..leaves add or subtract in total."""
    k, total, size, offset = arity, 0, 1, 0
    for _ in range(levels(leaves, k)):
        # the digit follows |digit| = min(i, k - i), i = count mod k, `size` rounds each
        count, rounds = divmod(leaves + offset, size)
        periods, i = divmod(count, k)
        rising = min(i, k // 2 + 1)
        falling = (k - rising) * (k - rising + 1) // 2 - (k - i) * (k - i + 1) // 2
        passed = (
            periods * (k * k // 4) + rising * (rising - 1) // 2 + (falling if i > rising else 0)
        )
        total += passed * size + min(i, k - i) * (rounds + 1)
        offset += (k - 1) // 2 * size
        size *= k
    return total


class Independent(Factorisation):
    """Fresh noise z_t on every leaf; N_t = z_1 + ... + z_t grows like sqrt(t), as in local privacy.

    Guarantee:
        A leaf is released once, so mu is the L2 sensitivity divided by stddev (Gaussian noise), or
        epsilon the L1 sensitivity divided by scale (Laplace), for any number of releases, and even
        if nobody trusts the accumulator.
    """

    word = "independent"

    def nodes(self, leaves: int) -> int:
        return int(leaves > 0)

    def person_norm(self, leaves: int, every: int, cap: int, separation: int) -> float:
        # C is the identity: a leaf is released once
        return leaves_norm(np.eye(1, leaves)[0], every, cap, separation)

    def begin(self) -> None:
        self._sum: Floats = np.zeros(())

    def __call__(self) -> Floats:
        self._sum = self._sum + self.source()
        self.stddev = sqrt(self.step()) * self.scale
        return self._sum


@dataclass(unsafe_hash=True)
class Hybrid(Factorisation):
    """Trees for epochs 2^j..2^{j+1}-1, each on top of the noisy totals of earlier epochs.

    After Chan, Shi and Song, "Private and continual release of statistics", ACM TISSEC 2011, the
    hybrid mechanism, whose epochs release a total beside a tree; here the total is the root::

        t:        1 | 2 3 | 4 5 6 7 | 8 9 ..        N_9 = root_0 + root_1 + root_2 + tree_3(2)
        levels h: 1 |  2  |    3    |   4

    Epoch j has 2^j leaves, a leaf lies in at most h = j + 1 released nodes of its own epoch
    and in none of another, so a node of epoch j carries the noise of the source times h (`norm` =
    1, where node costs add up: pure epsilon) or times sqrt(h) (`norm` = 2, where their squares do:
    Gaussian). With s = t - 2^j + 1 the variance of N_t in units of `stddev^2` is of order log^3 t::

        sum_{i<j} (i+1)^2 + popcount(s) (j+1)^2      for norm 1;  first powers for norm 2.

    Guarantee:
        All releases together, for every horizon at once, cost as much as one release with noise of
        the source, in pure epsilon for norm 1 and in mu of Gaussian noise for norm 2, because h
        nodes with h (sqrt(h)) times the noise compose to one, adaptively.
    """

    norm: Literal[1, 2]
    word = "hybrid"

    def __post_init__(self) -> None:
        if self.norm not in (1, 2):
            raise InputError(f"Expected norm={self.norm!r} to be 1 (pure epsilon) or 2 (Gaussian).")

    def nodes(self, leaves: int) -> int:
        # the noise is scaled by the levels of its epoch, so that all nodes cost as much as one
        return int(leaves > 0)

    def begin(self) -> None:
        self._epoch, self._left = -1, 0
        self._tree = Tree().of(self.source, stddev=self.scale)
        self._roots: Floats = np.zeros(())
        self._N: Floats = np.zeros(())
        self._roots_variance = self._variance = 0.0

    def __call__(self) -> Floats:
        if self._left == 0:
            self._roots, self._roots_variance = self._N, self._variance
            self._epoch += 1
            self._left = 2**self._epoch
            self._tree = Tree().of(self.source, stddev=self.scale)
        self._left -= 1
        levels = self._epoch + 1
        scale = levels if self.norm == 1 else sqrt(levels)
        self._N = self._roots + scale * self._tree()
        self._variance = self._roots_variance + (scale * self._tree.stddev) ** 2
        self.stddev = sqrt(self._variance)
        return self._N


@dataclass(unsafe_hash=True)
class Window(Factorisation):
    """Binary tree on blocks of W leaves, for window DP, W = `window` rounded up to a power of two.

    Lou and Cheung, "Projection-free online empirical risk minimization with privacy-preserving and
    privacy expiration", WI-IAT 2020. Window DP, stated for prefixes: for every T', what has been
    released up to T' is differentially private for each user of the last `window` leaves; an older
    user may be revealed completely.

    Release t is the exact sum of leaves 1..c plus noisy nodes that tile (c, t]. They add up to
    the exact prefix plus noise, S_t + N_t as for every other factorisation, with N_t the noises of
    the nodes in use, so no sum of expired leaves and no list of raw data has to be stored::

        W = 4, t = 7:    exact  1 2 3 (4)|(5 6)(7)         c = t - W
                         lazy  (1 2 3 4)|(5 6)(7)          c = end of the block before the last

    Exact (as in the paper): release t in block k uses the nodes of the unexpired suffix of block
    k-1 and of the prefix of block k, 1 node at the end of a block, else w + 1 minus the number of
    trailing zero bits of t mod W, W = 2^w. Lazy: it uses the root of block k-1 and the nodes of the
    prefix, about half as many, popcount(t mod W) + 1, and protects up to 2 W - 1 leaves. Both are
    the ordinary tree while t <= W.

    Guarantee:
        If replacing one user moves one leaf by at most S in L2 (Delta_1 in L1) and nodes carry
        N(0, s^2) (Laplace noise lam), then for every T' the releases up to T' are mu-GDP with mu =
        column_norm S / s (epsilon = nodes Delta_1 / lam) for each user of the last `window` leaves,
        adaptively: release the noisy nodes and the exact sums; that user's leaf is in at most w + 1
        of the nodes, one a level, and in no exact sum yet.

    Differs from the paper:
        1. `lazy` is not in the paper.
        2. If m < W leaves are released, a user is charged for bit_length(m) nodes.
    """

    window: int
    """number of leaves to protect, >= 1; n rounds are ceil(n / k) leaves of k rounds"""
    lazy: bool = False
    """True to use a block's root until the next block is full, with fewer nodes and less noise"""
    bounded = True

    def __post_init__(self) -> None:
        whole("window", self.window, 1)

    @property
    def word(self) -> str:  # type: ignore[override]  # a constant of the others
        return "window-lazy" if self.lazy else "window"

    @property
    def depth(self) -> int:
        """Smallest integer w with 2^w >= `window`."""
        return int(self.window - 1).bit_length()

    def nodes(self, leaves: int | None = None) -> int:
        most = self.depth + 1
        return most if leaves is None else min(most, int(leaves).bit_length())

    def noises(self, leaves: int, releases: int | None = None) -> tuple[float, int]:
        most = self.nodes(leaves)
        return 1.0, most if releases is None else min(most, releases)

    def begin(self) -> None:
        self._noise: dict[Node, Floats] = {}  # of the nodes in use, from left to right

    def __call__(self) -> Floats:
        t, known = self.step(), self._noise
        # a node is in use without a break, so those of the last release are all there is to keep
        self._noise = {n: known[n] if n in known else self.source() for n in self.tiles(t)}
        first, *others = self._noise.values()
        for noise in others:
            first = first + noise
        self.stddev = sqrt(len(self._noise)) * self.scale
        return first

    def tiles(self, t: int) -> list[Node]:
        """Return the nodes whose noises are in release t, from left to right."""
        W = 2**self.depth
        block, r = divmod(t, W)
        start = block * W
        if block == 0:
            return _prefix(0, r)
        if self.lazy:
            return [(start - W, W), *_prefix(start, r)]
        return [*_suffix(start, W - r), *_prefix(start, r)]


def _prefix(start: int, length: int) -> list[Node]:
    """Return the dyadic nodes that cover `length` leaves after `start`, the largest first."""
    nodes, end = [], start + length
    while start < end:
        nodes.append((start, 1 << (end - start).bit_length() - 1))
        start += nodes[-1][1]
    return nodes


def _suffix(end: int, length: int) -> list[Node]:
    """Return the dyadic nodes that cover `length` leaves up to `end`, the smallest first."""
    nodes, start = [], end - length
    while start < end:
        nodes.append((start, (end - start) & (start - end)))  # the lowest set bit of the length
        start += nodes[-1][1]
    return nodes


class Staggered:
    """`BLT` noise of K rows: each row takes its first `turns` steps alone, then all step together.

    A call is one step of the row whose turn it is, later of all rows, and returns the noise of each
    row at its own step, (R, K, d). A resting row keeps its noise, 0 before its first step. A prefix
    sum of K rows in which resting rows stay unchanged is thus K prefix sums, each with noise for
    its own number of steps: with n steps each, a user who is in one of the rows moves the noised
    vector by at most `BLT().column_norm(n)` times the sensitivity.
    """

    def __init__(
        self, streams: Streams, name: str, shape: tuple[int, int], *, stddev: float, turns: int
    ) -> None:
        K, d = shape
        alone, self._together = streams.normals(f"{name} alone", d), streams.normals(name, K, d)
        self._parts = [BLT().of(alone, stddev=stddev) for _ in range(K)]
        self._joined: BLT | None = None
        self.turns, self._step, self.stddev = turns, 0, 0.0
        self._now: Floats = np.zeros((len(streams), K, d))

    @property
    def begun(self) -> int:
        """Number of rows of the noise that have taken a step."""
        return -(-self._step // self.turns)

    def __call__(self) -> Floats:
        turn = self._step // self.turns
        if turn < len(self._parts):
            self._step += 1
            part = self._parts[turn]
            self._now = self._now.copy()
            self._now[:, turn] = part()
        else:
            if self._joined is None:
                self._joined = BLT.side_by_side(self._parts, self._together)
            part = self._joined
            self._now = part()
        self.stddev = part.stddev
        return self._now


FACTORISATIONS: dict[str, Factorisation] = {
    one.word: one
    for one in (*(BLT(), SquareRoot(), Tree(), Padded(), Honaker(), KAry(), Independent()),)
}
"""Factorisation by its name in settings of agents; optional modules add their factorisations"""


def factorisation(word: str) -> Factorisation:
    """Return the factorisation named `word`; raises `InputError` if there is none."""
    open_shelves("privacy.factors")
    one_of("prefix_sums", word, tuple(FACTORISATIONS))
    return FACTORISATIONS[word]
