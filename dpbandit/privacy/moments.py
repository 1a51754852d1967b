"""Statistics: clipped functions of one user's round, with their sensitivity.

Statistics clip, not agents, so that a bound of a privacy proof and the code that enforces it stand
together, whatever an environment sends.

The trace of a Gram matrix can have less noise than the rest at no cost (`PreciseTrace`). `ArmSums`
is the simplest statistic: plays and total reward of each arm.
"""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from dpbandit.base import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    added_up,
    clip_norm,
    clip_range,
    flag,
    positive,
    rows,
    whole,
)
from dpbandit.privacy.premises import NO_FACTS, Fact

_CACHE = 2**17
"""Largest number of doubles in a block of arms, so that products stay in the processor's cache"""


@dataclass(frozen=True, kw_only=True)
class PreciseTrace:
    """Stretch of Gram matrices along the identity that leaves the sensitivity the same.

    White noise on a D x D matrix stretched by sqrt(1 + kappa D), shrunk back, is smaller by that
    factor in the trace and unchanged elsewhere. The sensitivity stays because the users furthest
    apart do not differ in the trace of their Gram matrices.

    Guarantee:
        With `|x|`, `|y|`, `|r|`, `|s| <= 1`, U = w^2 the squared weight of the moment and S the
        sensitivity without a stretch, S^2 = (2 + U)^2 / 2 for U <= 2 and 4 U beyond, two users are
        at most S apart with a stretch, too: with `u = |x|^2` and `v = |y|^2`::

            in one block   |xx' - yy'|^2 + kappa (u - v)^2 + U |rx - sy|^2          <= S^2
            in two blocks  (1 + kappa) (u^2 + v^2) + U (r^2 u + s^2 v)              <= S^2

        where, if there is one block, 1 + kappa = U / (2 b (1 - b)) with the b in (0, min(1, U / 2))
        at which U (1 + b)^3 = 2 b S^2; if there are several, 1 + kappa = S^2 / 2 - U, which is
        less. No larger kappa works. U = 2 gives b = sqrt(5) - 2 and kappa = (7 + 5 sqrt(5)) / 4 =
        4.545, with several blocks 1.

        Proof. *Two blocks.* The left side is largest at r^2 = s^2 = u = v = 1, 2 (1 + kappa + U).
        *One block.* It is convex in r and in s, so largest at +-1, and for the worse sign, with
        `p = |x . y| <= sqrt(u v)`::

            F = u^2 + v^2 - 2 p^2 + kappa (u - v)^2 + U (u + v + 2 p),

        largest at p = min(U / 2, sqrt(u v)). Let u >= v. F rises in u: at p = U / 2 its slope is
        2 u + 2 kappa (u - v) + U, at p = sqrt(u v) it is (1 + kappa) (u - v)^2 + U (sqrt(u) +
        sqrt(v))^2. So u = 1, and let v = b^2. For b >= U / 2 F is convex in v: no larger than at
        b = 1, where it is S^2, or at b = U / 2. For b <= U / 2 it is at most S^2 if and only if::

            1 + kappa <= h(b) = (S^2 - U (1 + b)^2) / (1 - b^2)^2.

        h' has the sign of g = 2 b S^2 - U (1 + b)^3, which is concave in b >= 0, negative at 0, and
        positive at U / 2 for U < 2, left of its root 1 for U >= 2. So h is least at the one root of
        g in between, where it is U / (2 b (1 - b)). And kappa for several blocks is no larger: then
        1 + kappa >= U, so that S^2 - F = (1 + kappa) (2 - (1 - v)^2) + U (2 - (1 + b)^2) is at
        least U (1 + v) + U (2 - (1 + b)^2) = 2 U (1 - b) >= 0. QED
    """

    dim: int
    """dimension D of a block's Gram matrix"""
    blocks: int
    moment_weight: float
    """factor w of moments in the statistic"""

    @property
    def kappa(self) -> float:
        """Largest kappa of a stretch by sqrt(1 + kappa D) that does not change the sensitivity."""
        U, S2 = self.moment_weight**2, squared_sensitivity(self.moment_weight)
        if self.blocks > 1:
            return S2 / 2 - 1 - U
        roots = np.roots([U, 3 * U, 3 * U - 2 * S2, U])
        b = float(np.sort(roots.real)[1])  # one is negative, one 1 or more
        return U / (2 * b * (1 - b)) - 1

    @property
    def variance(self) -> float:
        """Factor 1 / (1 + kappa D) by which the stretch changes the noise variance of the trace."""
        return 1 / (1 + self.kappa * self.dim)

    def stretched(self, diagonals: Floats) -> Floats:
        """Return diagonals (..., D) with their mean multiplied by sqrt(1 + kappa D)."""
        return self._scaled(diagonals, sqrt(1 / self.variance))

    def shrunk(self, diagonals: Floats) -> Floats:
        """Return diagonals (..., D) with their mean divided by sqrt(1 + kappa D)."""
        return self._scaled(diagonals, sqrt(self.variance))

    def _scaled(self, diagonals: Floats, factor: float) -> Floats:
        mean = diagonals.mean(axis=-1, keepdims=True)
        return diagonals + (factor - 1) * mean


def squared_sensitivity(weight: float) -> float:
    """Return the squared sensitivity of Gram matrices and `weight` x moments without clip."""
    U = weight**2
    return (2 + U) ** 2 / 2 if U <= 2 else 4 * U


@dataclass(frozen=True)
class ClippedVectors:
    """Sum of vectors clipped to Euclidean norm `bound`, of sensitivity 2 `bound`."""

    # "vectors clipped to Euclidean norm `bound`"
    needs = NO_FACTS

    dim: int
    bound: float = 1.0
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        positive("bound", self.bound)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def sensitivity(self) -> float:
        return 2 * self.bound

    def total(self, *batch: AnyArray) -> Floats:
        # (n, R, dim) -> (R, dim)
        (x,) = batch
        return added_up(clip_norm(x, self.bound))


@dataclass(frozen=True)
class ClippedEntries:
    """Sum of vectors whose every entry is clipped to [low, high], non-finite ones to `low`.

    Replacing one vector moves each entry by high - low, so the sum by sqrt(dim) (high - low).
    """

    # "whose every entry is clipped to [low, high]"
    needs = NO_FACTS

    dim: int
    low: float = 0.0
    high: float = 1.0
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        positive("high - low", self.high - self.low)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def sensitivity(self) -> float:
        # sqrt(dim) (high - low), from one corner of the box to the opposite one
        return sqrt(self.dim) * (self.high - self.low)

    def total(self, *batch: AnyArray) -> Floats:
        # (n, R, dim) -> (R, dim)
        (x,) = batch
        return added_up(clip_range(x, self.low, self.high))


@dataclass(frozen=True, kw_only=True)
class LinearRounds:
    """Base class of statistics of linear bandits: clipped rounds, in blocks by parameter vector::

        disjoint  every arm has its own, all see one context (R, d): K blocks of dimension d
        joint     the same model as one block of dimension K d, x in the chosen arm's slot
        shared    one parameter, every arm has its own row of a (R, K, d) context: one block

    A round is (context x, action, reward r). x is clipped to norm `context_bound` = C, r to
    [reward_low, reward_high] with `|r| <= B`, and r x to norm `moment_clip` = c_u if that is set,
    else c_u = B C. A round adds to the block, or slot, of the arm played and 0 to all others.
    """

    n_actions: int
    dim: int
    layout: str = "disjoint"
    context_bound: float = 1.0
    reward_low: float = 0.0
    reward_high: float = 1.0
    moment_clip: float | None = None

    def __post_init__(self) -> None:
        positive("context_bound", self.context_bound)
        if self.moment_clip is not None:
            positive("moment_clip", self.moment_clip)
        if self.layout not in ("disjoint", "joint", "shared"):
            raise InputError(f"Expected layout={self.layout!r} to be disjoint, joint or shared.")
        positive("the bound of r x", self.moment_bound)

    @property
    def blocks(self) -> int:
        """Number of parameter vectors."""
        return self.n_actions if self.layout == "disjoint" else 1

    @property
    def block_dim(self) -> int:
        """Length of a parameter vector."""
        return self.dim * (self.n_actions if self.layout == "joint" else 1)

    @property
    def reward_bound(self) -> float:
        """Largest absolute value of a clipped reward."""
        return max(abs(self.reward_low), abs(self.reward_high))

    @property
    def moment_bound(self) -> float:
        """Largest norm of a clipped product of reward and context."""
        product = self.reward_bound * self.context_bound
        return product if self.moment_clip is None else min(self.moment_clip, product)

    def _clipped(self, *batch: AnyArray) -> tuple[Floats, Floats]:
        """Return clipped contexts (n, R, d) of arms played and their products with rewards."""
        context, action, reward = batch
        if self.layout == "shared":
            played = action.astype(np.int64)[..., None, None]
            context = np.take_along_axis(context, played, axis=2)[:, :, 0]
        x = clip_norm(context, self.context_bound)
        r = clip_range(reward, self.reward_low, self.reward_high)
        moment: Floats = r[..., None] * x
        return x, moment if self.moment_clip is None else clip_norm(moment, self.moment_clip)

    def _one_hot(self, action: AnyArray) -> Bools:
        """Return the mask (R, K, n) of arms played, from actions (n, R)."""
        by_replica = np.ascontiguousarray(action.T, dtype=np.int64)
        return by_replica[:, None] == rows(self.n_actions)[:, None]

    def _summed(self, moment: Floats, action: AnyArray) -> Floats:
        """Return the sums (R, blocks, D) over rounds of products (n, R, d), by block."""
        if self.layout == "shared":
            return added_up(moment)[:, None]
        # contiguous, so that vectors of length 1 meet the same BLAS routine whatever R is
        by_round = np.ascontiguousarray(moment.transpose(1, 0, 2))
        by_arm: Floats = self._one_hot(action).astype(np.float64) @ by_round
        return by_arm.reshape(len(by_arm), self.blocks, self.block_dim)


@dataclass(frozen=True, kw_only=True)
class Moments(LinearRounds):
    """Sums of moments of linear bandits, reward times context, one vector for each block.

    Sensitivity. Replacing one user moves them by at most 2 c_u, c_u = `moment_bound`, with opposite
    moments in one block. A user of another arm moves two blocks by c_u each, in all by sqrt(2) c_u.
    """

    # "A user of another arm moves two blocks by c_u each"
    needs = NO_FACTS

    units: ClassVar[float] = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.blocks, self.block_dim)

    @property
    def sensitivity(self) -> float:
        return 2 * self.moment_bound

    @property
    def move_sensitivity(self) -> float:
        """Largest change of the sum if a user changes her time slot, equal to `sensitivity`."""
        return self.sensitivity

    def total(self, *batch: AnyArray) -> Floats:
        # context (n, R, d) or (n, R, K, d), action (n, R), reward (n, R) -> (R, blocks, D)
        _, moment = self._clipped(*batch)
        return self._summed(moment, batch[1])


@dataclass(frozen=True, kw_only=True)
class SecondMoments(LinearRounds):
    """Gram matrices sum x x' and moments sum r x of linear bandits, one pair for each block.

    A block is one vector (G_ii, G_ij for i < j, m_i), in `units` that make the half-vectorisation
    isometric and both parts of norm at most 1; w = `moment_weight`, C, c_u as in `LinearRounds`::

        ( G_ii / C^2,  sqrt(2) G_ij / C^2,  w m_i / c_u ).

    Sensitivity. Replacing one user moves the sum by at most::

        S^2 = (2 + w^2)^2 / 2  if w^2 <= 2, else 4 w^2;    with a moment clip also S^2 >= 1 + 4 w^2

    because `|xx' - yy'|^2 + w^2 |rx - sy|^2 = 2 - 2c^2 + w^2 (2 + 2c)` for unit x, y at cosine c
    and opposite rewards, largest at c = min(1, w^2 / 2); a short y next to a separately clipped
    moment gives 1 + 4 w^2; two different blocks give 2 + 2 w^2, which is less. S = sqrt(4.5) at
    w = 1. Without a moment clip a precise trace has the same S, see `PreciseTrace`.
    """

    # "two different blocks give 2 + 2 w^2, which is less"
    needs = NO_FACTS

    moment_weight: float = 1.0
    precise_trace: bool = False
    """True to stretch Gram matrices along the identity, for less noise in the trace"""
    _upper: tuple[Ints, Ints] = field(init=False, repr=False, compare=False)
    _full: Ints = field(init=False, repr=False, compare=False)
    _diagonal: Ints = field(init=False, repr=False, compare=False)
    _slots: tuple[Ints, Ints, Ints] = field(init=False, repr=False, compare=False)
    units: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("moment_weight", self.moment_weight)
        flag("precise_trace", self.precise_trace)
        if self.precise_trace and self._clips_moments:
            raise InputError("Expected precise_trace=True without a moment clip: it would cost.")
        upper = np.triu_indices(self.block_dim)
        full = np.empty((self.block_dim, self.block_dim), dtype=np.int64)
        full[upper] = full.T[upper] = rows(len(upper[0]))
        object.__setattr__(self, "_upper", upper)
        object.__setattr__(self, "_full", full)
        object.__setattr__(self, "_diagonal", np.diagonal(full).copy())
        arms, (i, j) = rows(self.block_dim).reshape(-1, self.dim), np.triu_indices(self.dim)
        slots = np.hstack([full[arms[:, i], arms[:, j]], len(upper[0]) + arms])  # of G_ij, m_i
        object.__setattr__(self, "_slots", (i, j, slots))
        gram = np.where(upper[0] == upper[1], 1.0, sqrt(0.5)) * self.context_bound**2
        moment = np.full(self.block_dim, self.moment_bound / self.moment_weight)
        object.__setattr__(self, "units", np.concatenate([gram, moment]))

    @property
    def shape(self) -> tuple[int, ...]:
        D = self.block_dim
        return (self.blocks, D * (D + 1) // 2 + D)

    @property
    def sensitivity(self) -> float:
        # S of the class docstring, sqrt(4.5) by default
        squared = squared_sensitivity(self.moment_weight)
        if self._clips_moments:
            squared = max(squared, 1 + 4 * self.moment_weight**2)
        return sqrt(squared)

    @property
    def move_sensitivity(self) -> float:
        """Largest change of the sum if a user moves to another time slot, and hers becomes empty.

        It is max(S, sqrt(2 + 4 w^2)) with a moment clip, S = `sensitivity` and w = `moment_weight`,
        larger with a precise trace of stretch kappa, else S. An empty slot adds 0; contexts x, y
        add v, v' with `|v|^2 <= 1 + kappa + w^2` and <v, v'> >= p^2 (1 + kappa) - p w^2,
        p = `|x . y|`, least at 1 or p = w^2 / (2 + 2 kappa), or >= -w^2 for short y and a clip.
        """
        U, one = self.moment_weight**2, 1 + (self.trace.kappa if self.precise_trace else 0.0)
        least = -(U**2) / (4 * one) if 2 * one >= U else one - U
        return sqrt(2 * (one + U) - 2 * min(least, -U if self._clips_moments else 0.0))

    @property
    def _clips_moments(self) -> bool:
        return self.moment_bound < self.reward_bound * self.context_bound

    @property
    def trace(self) -> PreciseTrace:
        """Stretch of Gram matrices along the identity, used with `precise_trace`."""
        return PreciseTrace(
            dim=self.block_dim, blocks=self.blocks, moment_weight=self.moment_weight
        )

    @property
    def trace_variance(self) -> float:
        """Noise variance along the identity after `unpack`, divided by the variance elsewhere."""
        return self.trace.variance if self.precise_trace else 1.0

    def total(self, *batch: AnyArray) -> Floats:
        # context (n, R, d) or (n, R, K, d), action (n, R), reward (n, R) -> (R, blocks, p)
        x, moment = self._clipped(*batch)
        if self.layout == "joint" and len(x) == 1 and not self.precise_trace:
            return self._single_round(x[0], moment[0], batch[1][0].astype(np.int64))
        every = np.ascontiguousarray(x.transpose(1, 2, 0))[:, None]  # (R, 1, d, n)
        by_round = np.ascontiguousarray(x.transpose(1, 0, 2))[:, None]  # (R, 1, n, d)
        if self.layout == "shared":
            grams: Floats = every @ by_round
        else:  # a few arms at a time, whose rounds (R, few, d, n) fit the cache
            played, K = self._one_hot(batch[1])[:, :, None], self.n_actions
            grams, few = np.empty((x.shape[1], K, self.dim, self.dim)), max(1, _CACHE // x.size)
            for arms in (slice(first, first + few) for first in range(0, K, few)):
                np.matmul(every * played[:, arms], by_round, out=grams[:, arms])
        if self.layout == "joint":
            grams = _block_diagonal(grams)
        return self.pack(grams, self._summed(moment, batch[1]))

    def _single_round(self, x: Floats, moment: Floats, action: Ints) -> Floats:
        """Return the vectors of one round, non-zero in the slot of the arm played only."""
        i, j, slots = self._slots
        vectors = np.zeros((len(x), *self.shape))
        entries = np.concatenate([x[:, i] * x[:, j], moment], axis=1)
        vectors[rows(len(x))[:, None], 0, slots[action]] = entries
        return vectors

    def pack(self, gram: Floats, moment: Floats) -> Floats:
        """Return vectors `(R, *shape)` of Gram matrices (R, blocks, D, D) and moments (.., D)."""
        i, j = self._upper
        vectors = np.concatenate([gram[..., i, j], moment], axis=-1)
        if self.precise_trace:
            entries = vectors.take(self._diagonal, axis=-1)
            vectors[..., self._diagonal] = self.trace.stretched(entries)
        return vectors

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Return Gram matrices (R, blocks, D, D) and moments (R, blocks, D) of vectors."""
        half = len(self._upper[0])
        if self.precise_trace:
            entries, vectors = vectors.take(self._diagonal, axis=-1), vectors.copy()
            vectors[..., self._diagonal] = self.trace.shrunk(entries)
        # mode: all indices are valid, and unchecked the gather takes half the time
        return vectors.take(self._full, axis=-1, mode="clip"), vectors[..., half:]


def _block_diagonal(blocks: Floats) -> Floats:
    """Return matrices (R, 1, K d, K d) with the blocks (R, K, d, d) on the diagonal."""
    R, K, d, _ = blocks.shape
    whole = np.zeros((R, K, d, K, d))
    whole[:, rows(K), :, rows(K)] = blocks.transpose(1, 0, 2, 3)
    return whole.reshape(R, 1, K * d, K * d)


@dataclass(frozen=True, kw_only=True)
class Grams:
    """Sum of x x' over rows x clipped to Euclidean norm `bound` = C, as a vector (G_ij, i <= j).

    In `units` of C^2, off the diagonal C^2 / sqrt(2), the half-vectorisation is isometric.

    Sensitivity. Replacing one row moves the sum by at most sqrt(2), because
    `|xx' - yy'|^2 = |x|^4 + |y|^4 - 2 (x . y)^2 <= 2` for `|x|`, `|y|` <= 1.
    """

    # "rows x clipped to Euclidean norm `bound` = C"
    needs = NO_FACTS

    dim: int
    bound: float = 1.0
    _upper: tuple[Ints, Ints] = field(init=False, repr=False, compare=False)
    units: Floats = field(init=False, repr=False, compare=False)
    sensitivity: float = field(init=False, repr=False, compare=False, default=sqrt(2))

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        positive("bound", self.bound)
        upper = np.triu_indices(self.dim)
        units = np.where(upper[0] == upper[1], 1.0, sqrt(0.5)) * self.bound**2
        object.__setattr__(self, "_upper", upper)
        object.__setattr__(self, "units", units)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self._upper[0]),)

    def total(self, *batch: AnyArray) -> Floats:
        # Rows (n, R, dim) -> `(R, *shape)`
        x = clip_norm(batch[0], self.bound).transpose(1, 2, 0)  # (R, dim, n)
        i, j = self._upper
        gram: Floats = x @ x.swapaxes(1, 2)
        return gram[:, i, j]

    def unpack(self, vectors: Floats) -> Floats:
        """Return the symmetric matrices (R, dim, dim) of vectors `(R, *shape)`."""
        gram = np.empty((*vectors.shape[:-1], self.dim, self.dim))
        i, j = self._upper
        gram[..., i, j] = gram[..., j, i] = vectors
        return gram


@dataclass(frozen=True)
class ArmRewards:
    """Sum of each arm's rewards, as shares of their range, where actions are public.

    Guarantee:
        An arm is played before its user is seen, so that replacing her moves one coordinate by at
        most 1, in L1 as in L2.

    >>> ArmRewards(2, 0.0, 4.0).total(np.array([[0], [1], [1]]), np.array([[1.0], [4.0], [9.0]]))
    array([[0.25, 2.  ]])
    """

    # "An arm is played before its user is seen"
    needs = frozenset({Fact.CELL})
    controls = (0,)

    n_actions: int
    """K, the number of arms"""
    low: float = 0.0
    high: float = 1.0
    """rewards are clipped to [low, high]; non-finite ones become `low`"""
    units: ClassVar[float] = 1.0
    sensitivity: ClassVar[float] = 1.0
    l1_sensitivity: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("n_actions", self.n_actions, 1)
        positive("high - low", self.high - self.low)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_actions,)

    def total(self, *batch: AnyArray) -> Floats:
        # Arms (n, R) and rewards (n, R) -> (R, K)
        action, reward = batch
        share = (clip_range(reward, self.low, self.high) - self.low) / (self.high - self.low)
        summed: Floats = np.zeros((share.shape[1], self.n_actions))
        for arm, fresh in zip(action, share, strict=True):
            summed[rows(len(fresh)), arm.astype(np.int64, copy=False)] += fresh
        return summed


@dataclass(frozen=True, kw_only=True)
class ArmSums:
    """Sums (plays, total reward) of every arm, rewards clipped to [reward_low, reward_high].

    Guarantee:
        One user adds (1, r) to the row of her arm. Another in her place adds (1, s) to another row,
        which moves the sums by `|(1, r, 1, s)| <= sqrt(2 + 2 B^2)`, B the largest `|reward|`, in
        L2; in the same row by `|r - s|`, which is less.

    Raises:
        InputError: `n_actions` < 1, or bounds that are not finite and in order.

    >>> sums = ArmSums(n_actions=2)
    >>> sums.sensitivity
    2.0
    >>> sums.total(np.zeros((3, 1, 4)), np.array([[0], [1], [1]]), np.array([[0.5], [1.0], [9.0]]))
    array([[[1. , 0.5],
            [2. , 2. ]]])
    """

    # "Another in her place adds (1, s) to another row"
    needs = NO_FACTS

    n_actions: int
    """number of arms K, or of other groups with a sum of their own"""
    reward_low: float = 0.0
    reward_high: float = 1.0
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("n_actions", self.n_actions, 1)
        if not -np.inf < self.reward_low <= self.reward_high < np.inf:
            raise InputError(
                f"Expected finite reward_low={self.reward_low} <= reward_high={self.reward_high}."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_actions, 2)

    @property
    def sensitivity(self) -> float:
        return sqrt(2 + 2 * max(abs(self.reward_low), abs(self.reward_high)) ** 2)

    def total(self, *batch: Any) -> Floats:
        # Context (n, R, ...), action (n, R), reward (n, R) -> (R, K, 2); contexts are not read
        _, action, reward = batch
        played = action[..., None] == rows(self.n_actions)  # (n, R, K)
        r = clip_range(reward, self.reward_low, self.reward_high)[..., None]
        return np.stack([1.0 * played, played * r], axis=-1).sum(axis=0)
