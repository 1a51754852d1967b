"""DP-TOFW on blocks of users, each in a smaller set: the best certified configuration of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, lgamma, log, pi, sqrt
from typing import Literal, NamedTuple

import numpy as np

from dpbandit.agents.convex.leaders import Resting
from dpbandit.agents.streams.frank_wolfe import Oracle, Walk, oracle_of, usual_clip
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, gaussian_target, inside, one_of, positive, shown, whole
from dpbandit.base.random_streams import Streams
from dpbandit.losses.loss import Loss
from dpbandit.losses.regressions import LinearRegression, Regression
from dpbandit.privacy.accounting.ledger import Ledger, ledger_of
from dpbandit.privacy.accounting.spends import Parallel
from dpbandit.privacy.statistics.loss_gradients import RecursiveLossGradients
from dpbandit.privacy.sums.calibrate import exact_prefix_sum
from dpbandit.privacy.sums.certified_sums import Target, certified_sum
from dpbandit.privacy.sums.prefix_sums import PrefixSum
from dpbandit.privacy.sums.processes import process_named
from dpbandit.specs.convex import with_feedback
from dpbandit.specs.feature_moments import second_moment
from dpbandit.specs.protocols import Spec


@dataclass(frozen=True, kw_only=True)
class LocalisedTOFW:
    """Tree-based online Frank-Wolfe, run again from where it ended, in a smaller set.

    `DPTOFW` (Han, Liang, Liang, Wang, Yao and Zhang 2022, Algorithm 1) with the localisation of
    Feldman, Koren and Talwar, "Private stochastic convex optimization: optimal rates in linear
    time", STOC 2020. Ours::

        theta = the centre of C; for k = 1, 2, ..: the rounds of block k, n_k = shares_k T
          1. C_k = (1 - s) theta + s C with s = shrink^(k-1): inside C, theta in it
          2. DP-TOFW on C_k from theta, one step for each of `batches` equal batches: every user's
             g clipped to l_2 norm `clip` x s, noisy prefix sums over the batches
          3. theta = where that ended

    Batches wait until a sum says more than its noise; a step too early goes anywhere. Everything
    in it is a public number: of T, the loss and the domain, none of the users. The defaults were
    chosen on simulated linear regressions of 5 to 20 features, T = 1,000 to 10,000 and epsilon 1,
    the same for all of them; no certificate covers such a choice.

    Code:
        Steps 1 and 2 are `LocalisedFrankWolfe.update` with `Walk.move` (frank_wolfe.py), step 3 is
        its last lines.

    Guarantee:
        (epsilon, delta)-DP of all points for replacing one datum: each user is in one batch of one
        block, whose sums are mu-GDP with the mu of the target, and blocks see disjoint users
        (parallel composition; later ones depend on her through releases alone).

    >>> from dpbandit import certify
    >>> from dpbandit.domains import LpBall
    >>> from dpbandit.losses import LinearRegression
    >>> from dpbandit.specs.streams import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(20, 1.5, 2.0)), horizon=1000)
    >>> round(certify(LocalisedTOFW(delta=1e-3), spec).epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    shares: tuple[float, ...] = (0.4, 0.6)
    """of the rounds, a number for each block"""
    shrink: float = 0.25
    """of the set from block to block, in (0, 1]"""
    batches: int = 30
    """steps of a block"""
    step: float = 0.4
    """c in (0, 1]"""
    prefix_sums: Literal["tree", "blt", "square-root"] = "blt"
    """the mechanism that releases running sums"""
    clip: float | None = None
    """of a gradient in the first block; if None, 0.65 x `local_clip` for regressions on l_p balls,
    p > 1, else `usual_clip`"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        if not isinstance(self.shares, list | tuple):
            raise InputError(
                f"Expected shares={shown(self.shares)} to be numbers in [0, 1] of sum 1, such as "
                "(0.4, 0.6): in Python, for a command line cannot say them."
            )
        object.__setattr__(self, "shares", tuple(self.shares))
        for share in self.shares:
            inside("shares", share, 0, 1, ends=True)
        if not self.shares or abs(sum(self.shares) - 1) > 1e-9:
            shares = shown(self.shares)
            raise InputError(f"Expected shares={shares} to be numbers in [0, 1] of sum 1.")
        for name in ("shrink", "step"):
            positive(name, getattr(self, name))
            inside(name, getattr(self, name), 0, 1, ends=True)
        whole("batches", self.batches, 1)
        one_of("prefix_sums", self.prefix_sums, ("tree", "blt", "square-root"))
        if self.clip is not None:
            positive("clip", self.clip)

    def make(self, spec: Spec, streams: Streams) -> "LocalisedFrankWolfe | Resting":
        """A running agent; raises `InputError` for anything but convex losses with their data."""
        spec = with_feedback(self, spec, "datum")
        loss, R = spec.loss, len(streams)
        if loss.lipschitz == 0:  # every point is as good as any
            return Resting(loss.domain, R)
        ends = [round(end * spec.horizon) for end in np.cumsum([0.0, *self.shares])]
        sizes = [after - before for before, after in pairwise(ends) if after > before]
        blocks = []
        for k, rounds in enumerate(sizes):
            share = self.shrink**k
            clipped = RecursiveLossGradients(loss=loss, gradient_clip=self._clip(loss, share))
            mechanism = self._sums(clipped, streams.child(f"block {k}"), rounds)
            blocks.append(Block(rounds, share, mechanism))
        spent = Parallel(tuple(dict.fromkeys(block.mechanism.spend for block in blocks)))
        ledger = ledger_of(self.epsilon, spent, without="exact gradient sums")
        start = np.tile(loss.domain.centre, (R, 1))
        return LocalisedFrankWolfe(blocks, oracle_of(loss.domain), start, ledger, step=self.step)

    def _clip(self, loss: Loss, share: float) -> float:
        if self.clip is not None:
            return self.clip * share
        if isinstance(loss, Regression) and loss.domain.p > 1:
            return 0.65 * local_clip(loss, step=self.step, share=share)
        return usual_clip(loss, "gradient")

    def _sums(self, statistic: RecursiveLossGradients, streams: Streams, rounds: int) -> PrefixSum:
        """Of one block: its last release is the next one's start."""
        horizon, every = rounds + 1, -(-rounds // self.batches)
        if self.epsilon == inf:
            return exact_prefix_sum(statistic, horizon=horizon, refresh_every=every)
        target = Target(self.epsilon, self.delta, horizon, every)
        return certified_sum(process_named(self.prefix_sums), statistic, streams, target)


class Block(NamedTuple):
    """Some of the rounds, with a mechanism of their own: a user is in one block."""

    rounds: int
    share: float
    """s, where the block's set is (1 - s) start + s C, a copy of the domain C inside of C"""
    mechanism: PrefixSum


class LocalisedFrankWolfe:
    """One walk after the other, each from where the last one ended, towards points of its set.

    Where the best point lies inside the domain, Frank-Wolfe's steps lead from one side of it to the
    other: their length, the residuals of the users on the way, and with them clip and noise are in
    proportion to the set it walks in. A block finds out where a smaller set will do for the next.
    """

    def __init__(
        self, blocks: Sequence[Block], oracle: Oracle, start: Floats, ledger: Ledger, *, step: float
    ) -> None:
        self.ledger = ledger
        self._blocks, self._oracle, self._step = tuple(blocks), oracle, step
        self._block, self._left = 0, self._blocks[0].rounds
        self._start = start
        self._walk = Walk(start, step=step)

    def act(self, context: Floats) -> Floats:
        """theta_i, (R, N)."""
        return self._walk.theta

    def update(self, context: Floats, action: Floats, feedback: Floats) -> None:
        """Feed the datum `feedback` `(R, *datum_shape)`; every release of the block's sum is a
        step."""
        walk, block = self._walk, self._blocks[self._block]
        release = block.mechanism(walk.theta, walk.previous, np.asarray(walk.steps + 1), feedback)
        if release is not None:
            s = block.share
            walk.move((1 - s) * self._start + s * self._oracle(release))
        self._left -= 1
        if self._left == 0 and self._block + 1 < len(self._blocks):
            self._block += 1
            self._left = self._blocks[self._block].rounds
            self._start = walk.theta
            self._walk = Walk(walk.theta, step=self._step)


def local_clip(loss: Regression, *, step: float, share: float) -> float:
    """The length of a typical gradient on the way, in a set `share` times the domain.

    For squares, u = theta + c (v - theta) is `c |v - theta|` from theta, and for isotropic
    features, E a a' = s I, the mean gradient there is `2 s c |v|_2` long, one user's sqrt(N) times
    that: with `|v|_2` that of the vertex in a normal direction. Other losses' gradients do not get
    shorter.

    >>> from dpbandit.domains import LpBall
    >>> round(local_clip(LinearRegression(LpBall(20, 1.5, 2.0)), step=0.4, share=1.0), 3)
    0.565
    """
    if not isinstance(loss, LinearRegression):
        return usual_clip(loss, "gradient")
    d, q, radius = loss.domain.dim, loss.order, loss.domain.radius
    s = second_moment(d, q)
    return 2 * s * sqrt(d) * step * share * radius * _vertex_length(d, q)


def _vertex_length(dim: int, order: float) -> float:
    """`|v|_2` of the unit l_p ball's vertex `v_j = sign(g_j) |g_j|^(q-1) / |g|_q^(q-1)`, g normal.

    With means in place of sums over coordinates, which is too long by half at p = 1.2.
    """
    if order == 1:
        return sqrt(dim)
    q = order
    squares, powers = (log(dim) + _log_moment(power) for power in (2 * (q - 1), q))
    longest = 0.0 if q > 2 else log(dim) / 2
    return exp(min(squares / 2 - powers * (q - 1) / q, longest))


def _log_moment(power: float) -> float:
    """`log E |g|^power` of a standard normal."""
    return power / 2 * log(2) + lgamma((power + 1) / 2) - log(pi) / 2
