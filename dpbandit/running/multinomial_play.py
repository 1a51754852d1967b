"""Draw rounds of one policy together, where the problem does not change either.

Arms of the rounds of a batch are independent draws from one policy, so how often each was played is
multinomial, and what it brought in all is for the problem to draw. Results have the law that play
round by round has. A replica's numbers are drawn when its own batch ends, and at marks: they do not
depend on the others.

What rounds brought in all is raw data, so it goes to the agent's mechanism and not to the agent,
which is handed counts of its own draws and what the mechanism releases.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbandit.base import Floats, Ints, Streams
from dpbandit.privacy.batches import CountedSums
from dpbandit.specs import Agent, Problem

SHORT = 50
"""Fewer rounds from one mark to the next are played one by one, which takes less time."""


class Brought(NamedTuple):
    """Totals of some rounds, each (R,): regret, rewards, and switches of action."""

    regret: Floats
    reward: Floats
    switches: Ints


class MultinomialPlay:
    """Plays an agent that draws arms from `chances` for `rounds_to_release` rounds.

    The agent has `count_block(counts, rounds)`, which returns whose sums are due, (R, K), and,
    unless it learns nothing, `sums`, a `CountedSums`, and `learn_release(release, at_release)`.
    """

    def __init__(self, problem: Any, player: Any, streams: Streams) -> None:
        self._problem, self._player = problem, player
        self._sums: Any = getattr(player, "sums", None)
        self._generators = streams.generators("rounds together")
        self._waiting = np.zeros(len(streams), dtype=np.int64)

    def rounds(self, most: int) -> int:
        """Number of rounds that can be played at once, at most `most`."""
        return int(max(0, min(most, (self._player.rounds_to_release - self._waiting).min())))

    def play(self, rounds: int, before: npt.NDArray[Any], *, mark: bool) -> Brought:
        """Play that many rounds; rewards are drawn at marks and at the ends of batches.

        `before` (R,) holds its last action, and does afterwards.
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
    """Return a `MultinomialPlay`, if agent and problem allow it, else None."""
    allowed = getattr(problem, "stationary", False) and hasattr(player, "count_block")
    allowed = allowed and problem.spec.masks == "none"
    # the one mechanism whose guarantee is for totals
    allowed = allowed and isinstance(getattr(player, "sums", None), CountedSums | None)
    return MultinomialPlay(problem, player, streams) if allowed else None


def switches(counts: Ints, before: int, g: np.random.Generator) -> tuple[int, int]:
    """Count changes of action in a random order of so many plays (K,); also the last action.

    Only the places of the arms that are not played most are drawn.

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
