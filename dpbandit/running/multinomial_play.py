"""Joint draw of all rounds of one policy on a stationary problem, by one multinomial.

Arms in the rounds of a batch are independent draws from one policy, so the arms' numbers of plays
are multinomial, and the problem draws the total reward of each arm. Results are distributed as in
single rounds. A replica's numbers are drawn at marks and when its own batch ends, so they do not
depend on other replicas.

Total rewards are raw data: they go to the agent's mechanism. The agent itself gets the counts of
its own draws and the mechanism's releases.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base import Ints, Streams
from dpbandit.privacy.batches import CountedSums
from dpbandit.running.user_counts import Brought
from dpbandit.specs import Agent, Problem

MIN_ROUNDS_TOGETHER = 50
"""Smallest number of rounds between two marks that are faster to draw together than to play."""


class MultinomialPlay:
    """Play of an agent that draws arms with fixed `chances` until its next release.

    The agent has `rounds_to_release` and `count_block(counts, rounds)`, which returns the mask (R,
    K) of sums to release. If it learns, it has a `CountedSums` named `sums` and `learn_release`.
    """

    def __init__(self, problem: Any, player: Any, streams: Streams) -> None:
        self._problem, self._player = problem, player
        self._sums: Any = getattr(player, "sums", None)
        self._generators = streams.generators("rounds together")
        self._waiting = np.zeros(len(streams), dtype=np.int64)

    def rounds(self, most: int) -> int:
        """Return the number of rounds that can be played at once, at most `most`."""
        return int(max(0, min(most, (self._player.rounds_to_release - self._waiting).min())))

    def play(self, rounds: int, before: npt.NDArray[Any], *, mark: bool) -> Brought:
        """Play `rounds` rounds; their rewards are drawn at a `mark`, and when a batch ends.

        `before` (R,) contains the last actions, and is overwritten by the new last ones.
        """
        self._waiting += rounds
        here = np.flatnonzero(mark | (self._waiting == self._player.rounds_to_release))
        chances = self._player.chances
        R, K = chances.shape
        counts, totals = np.zeros((R, K)), np.zeros((R, K))
        brought = Brought(np.zeros(R), np.zeros(R), np.zeros(R, dtype=np.int64))
        for r in here.tolist():
            g = self._generators[r]
            plays = g.multinomial(self._waiting[r], chances[r])
            totals[r], brought.regret[r] = self._problem.several(r, plays)
            counts[r], brought.reward[r] = plays, totals[r].sum()
            brought.switches[r], before[r] = switches(plays, int(before[r]), g)
        self._waiting[here] = 0
        at_release = self._player.count_block(counts, rounds)
        if at_release is not None:
            self._player.learn_release(self._sums(totals, counts, at_release), at_release)
        return brought


def multinomial_play(problem: Problem, player: Agent, streams: Streams) -> MultinomialPlay | None:
    """Return a `MultinomialPlay` if agent and problem support it, else None."""
    allowed = getattr(problem, "stationary", False) and hasattr(player, "count_block")
    allowed = allowed and problem.spec.masks == "none"
    # there an agent's sums may count sales, not the totals in dollars
    allowed = allowed and not problem.spec.priced
    # the only mechanism whose guarantee covers totals
    allowed = allowed and isinstance(getattr(player, "sums", None), CountedSums | None)
    return MultinomialPlay(problem, player, streams) if allowed else None


def switches(counts: Ints, before: int, g: np.random.Generator) -> tuple[int, int]:
    """Draw an order of plays, `counts` (K,) per arm; return the number of switches and last arm.

    The first play is a switch unless its arm is `before`, the arm played previously. Positions
    are drawn for all arms but the most frequent one, which takes the remaining ones. The law
    is that of `user_counts.switches_of`, which costs less for many plays, but draws other bits.

    >>> switches(np.array([0, 5]), 0, np.random.default_rng(1))
    (1, 1)
    """
    n, most = int(counts.sum()), int(counts.argmax())
    rest = counts.copy()
    rest[most] = 0
    arms = g.permutation(np.repeat(np.arange(len(counts)), rest))
    place = np.sort(g.choice(n, len(arms), replace=False, shuffle=False))
    # the arms in order, with one play of `most` wherever any stand between two others
    gaps = np.diff(place, prepend=-1, append=n) > 1
    runs = np.full(2 * len(arms) + 1, -1)
    runs[1::2] = arms
    runs[::2][gaps] = most
    runs = runs[runs >= 0]
    return int(np.count_nonzero(np.diff(runs, prepend=before))), int(runs[-1])
