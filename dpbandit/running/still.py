"""Play many rounds of an unchanging policy at once, in one of two ways.

`Block`: agent and problem take arrays of many rounds, (n, R, ...), and results are those of play
round by round, bit for bit.

`Still`, where the problem stands still, too: arms of the rounds of a batch are independent draws
from one policy, so how often each was played is multinomial, and what it brought in all is for the
problem to draw. Results have the law that play round by round has. A replica's numbers are drawn
when its own batch ends, and at marks: they do not depend on the others.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbandit.base import AnyArray, Floats, InputError, Ints, Streams
from dpbandit.specs import Agent, Bounds, Problem, acted

SHORT = 50
"""Fewer rounds from one mark to the next are played one by one, which takes less time."""


class Brought(NamedTuple):
    """Totals of some rounds, each (R,): regret, rewards, and switches of action."""

    regret: Floats
    reward: Floats
    switches: Ints


class Still:
    """Plays an agent that draws arms from `chances` for `rounds_to_release` rounds."""

    def __init__(self, problem: Any, player: Any, streams: Streams) -> None:
        self._problem, self._player = problem, player
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
        self._player.learn_block(totals, counts, rounds)
        return brought


def still(problem: Problem, player: Agent, streams: Streams) -> Still | None:
    """Return a `Still`, if agent and problem allow it, else None."""
    allowed = getattr(problem, "stands_still", False) and hasattr(player, "learn_block")
    allowed = allowed and problem.spec.masks == "none"
    return Still(problem, player, streams) if allowed else None


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


class Block:
    """Plays all the rounds until an agent's policy may change (`rounds_to_release`) at once.

    Regret, rewards and switches are those of play round by round, bit for bit: the same users, the
    same draws, and sums in the same order.
    """

    def __init__(self, problem: Any, player: Any, bounds: Bounds) -> None:
        self._problem, self._player, self._bounds = problem, player, bounds

    def play(
        self, t: int, most: int, regret: Floats, reward: Floats, switches: Ints, before: AnyArray
    ) -> int:
        """Play as many rounds after round t as stand still, at most `most`; returns how many.

        The totals (R,) and the last action `before` are brought up to date in place.
        """
        most = min(most, self._player.rounds_to_release)
        if most < _WORTH:
            return 0
        context = self._problem.contexts_ahead(most)
        masked = self._problem.spec.masks != "none"
        mask = self._problem.masks_ahead(len(context)) if masked else None
        action = acted(self._player, context, mask)
        step = self._problem.steps(action)
        finite = np.isfinite(step.reward).all(axis=1)
        if not finite.all():
            i = int(finite.argmin())
            raise InputError(
                f"In round {t + i + 1}: Expected finite rewards, got {step.reward[i]}."
            )
        self._bounds.see_several(context, step)
        for total, brought in ((regret, step.regret), (reward, step.reward)):
            total[...] = np.add.accumulate(np.concatenate([total[None], brought]))[-1]
        switches += (np.concatenate([before[None], action[:-1]]) != action).sum(axis=0)
        before[...] = action[-1]
        self._player.update(context, action, step.reward)
        return len(action)


_WORTH = 4
"""Fewer rounds are played one by one."""


def block(problem: Any, player: Any, bounds: Bounds) -> Block | None:
    """What plays several rounds at once, if both allow it."""
    allowed = getattr(problem, "in_blocks", False)
    allowed = allowed and np.ndim(getattr(player, "rounds_to_release", [0])) == 0
    return Block(problem, player, bounds) if allowed else None
