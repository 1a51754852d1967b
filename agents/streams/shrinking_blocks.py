"""Online Frank-Wolfe on blocks of users, each in a smaller copy of the domain around its start.

Where the best point lies inside the domain, Frank-Wolfe's steps lead from one side of it to the
other: their length, the residuals of the users on the way, and with them clip and noise are in
proportion to the set it walks in. A block finds out where a smaller set will do for the next.
"""

from collections.abc import Sequence
from math import exp, lgamma, log, pi, sqrt
from typing import NamedTuple

import numpy as np

from dpbandit.agents.streams.frank_wolfe import Oracle, Walk, usual_clip
from dpbandit.base.arrays import Floats
from dpbandit.losses.regressions import LinearRegression, Regression
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.sums.prefix_sums import PrefixSum
from dpbandit.specs.feature_moments import second_moment


class Block(NamedTuple):
    """Some of the rounds, with a door of their own: a user is in one block."""

    rounds: int
    share: float
    """s: the block's set is (1 - s) start + s C, a copy of the domain C inside of C"""
    door: PrefixSum


class LocalisedFrankWolfe:
    """One walk after the other, each from where the last one ended, towards points of its set."""

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

    def update(self, context: Floats, action: Floats, told: Floats) -> None:
        """Feed the datum `told` (R, *datum_shape); every release of the block's sum is a step."""
        walk, block = self._walk, self._blocks[self._block]
        release = block.door(walk.theta, walk.previous, np.asarray(walk.steps + 1), told)
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

    For squares, u = theta + c (v - theta) is c |v - theta| from theta, and for isotropic features,
    E a a' = s I, the mean gradient there is 2 s c |v|_2 long, one user's sqrt(N) times that: with
    |v|_2 that of the vertex in a normal direction. Other losses' gradients do not get shorter.

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
    """|v|_2 of the unit l_p ball's vertex v_j = sign(g_j) |g_j|^(q-1) / |g|_q^(q-1), g normal.

    With means in place of sums over coordinates, which is too long by half at p = 1.2.
    """
    if order == 1:
        return sqrt(dim)
    q = order
    squares, powers = (log(dim) + _log_moment(power) for power in (2 * (q - 1), q))
    longest = 0.0 if q > 2 else log(dim) / 2
    return exp(min(squares / 2 - powers * (q - 1) / q, longest))


def _log_moment(power: float) -> float:
    """log E |g|^power of a standard normal."""
    return power / 2 * log(2) + lgamma((power + 1) / 2) - log(pi) / 2
