"""Users of a finite table, drawn as counts while the policy of an agent does not change.

If every user is a row of a public table, drawn independently, then the numbers of users of each row
in n rounds are multinomial, and so are their answers to the actions of one policy::

    counts of rows      Multinomial(n, weights of the rows)
    counts of actions   all users of a row get its action; Multinomial(count, chances) if the agent
                        draws arms without a look at contexts
    counts of answers   Multinomial(count, chances of the answers), one for each row and action

Results are distributed as in single rounds, at a cost that does not grow with n. The agent acts
once for each row, and learns once from each `record`, a row with an answer. How many users a record
stands for is known to mechanisms alone (`dpbandit.base.counted_as`).

`MultinomialPlay` does the same for arms that an agent without contexts draws at random.
"""

from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbandit.base import AnyArray, Floats, Ints, Streams
from dpbandit.privacy.batches import CountedSums
from dpbandit.specs import Agent, Problem, Spec, answered

MIN_COUNTED_HORIZON = 20_001
"""Smallest horizon of runs in which users are drawn as counts"""
MAX_TABLE_VALUES = 2**17
"""Largest number of values, contexts and chances, of a table whose users are drawn as counts"""
MIN_ROUNDS_PER_RECORD = 2
"""Smallest number of rounds of a batch drawn as counts, per row and answer of the table, as fewer
are faster one by one"""
MIN_ROUNDS_PER_DRAW = 1 / 2
"""Smallest number of rounds up to the next logged one, per row and answer, as fewer are faster one
by one"""


class Brought(NamedTuple):
    """Total regret, total reward and number of switches of action in some rounds, (R,) each."""

    regret: Floats
    reward: Floats
    switches: Ints


class Records(NamedTuple):
    """Rows with an answer each, of one policy, `counts` of which were drawn."""

    context: Floats
    """contexts (n, R, d)"""
    action: Ints
    """arms (n, R)"""
    reward: Floats
    """answers (n, R)"""
    counts: Ints
    """rounds that a record stands for, (n, R), with the same sum in all replicas"""


class UserCounts:
    """Counts of a table's users and answers in the rounds of one policy.

    Args:
        problem: problem with a `user_table`, whose episode has begun.
        streams: random streams that draw counts.
    """

    def __init__(self, problem: Any, streams: Streams) -> None:
        self._problem, self._table = problem, problem.user_table
        M, _, A = self._table.chance.shape
        context = self._table.context[:, None]
        self.context: Floats = np.repeat(context, len(streams), axis=1)
        """contexts of all rows, (M, R, d)"""
        self.fewest = MIN_ROUNDS_PER_RECORD * M * A
        """smallest number of rounds of a batch that is drawn as counts"""
        self.fewest_at_once = ceil(MIN_ROUNDS_PER_DRAW * M * A)
        """smallest number of rounds in the first draw of a batch"""
        self._mean = np.vecdot(self._table.chance, self._table.reward)  # (M, K)
        self._missed = self._mean.max(axis=1, keepdims=True) - self._mean
        self._generators = streams.generators("users drawn as counts")
        self._action: Ints = np.zeros((M, len(streams)), np.int64)
        self._chances: Floats | None = None
        self._counts: Ints = np.zeros((M, A, len(streams)), np.int64)

    def begin(self, action: Ints | None, chances: Floats | None = None) -> None:
        """Begin a policy that plays `action` (M, R) on the rows, or arms with `chances` (R, K)."""
        self._action, self._chances = self._action if action is None else action, chances
        self._counts[...] = 0

    def draw(self, rounds: int, before: AnyArray) -> Brought:
        """Draw rounds of the policy; `before` (R,) are the last actions, and are overwritten."""
        table, (M, K) = self._table, self._mean.shape
        R, row = len(before), np.arange(M)
        brought = Brought(np.zeros(R), np.zeros(R), np.zeros(R, dtype=np.int64))
        expected = np.zeros((R, K))
        for r, g in enumerate(self._generators):
            users = g.multinomial(rounds, table.weight)
            expected[r] = users @ self._mean
            if self._chances is None:
                arm = self._action[:, r]
                answers = g.multinomial(users, table.chance[row, arm])  # (M, A)
                self._counts[:, :, r] += answers
                brought.regret[r] = users @ self._missed[row, arm]
                brought.reward[r] = np.vdot(answers, table.reward[row, arm])
                plays = np.bincount(arm, users, K).astype(np.int64)
            else:
                by_arm = g.multinomial(users, self._chances[r])  # (M, K)
                answers = g.multinomial(by_arm, table.chance)  # (M, K, A)
                brought.regret[r] = np.vdot(by_arm, self._missed)
                brought.reward[r] = np.vdot(answers, table.reward)
                plays = by_arm.sum(axis=0)
            brought.switches[r], before[r] = switches_of(plays, int(before[r]), g)
        self._problem.add_expected(expected)
        return brought

    def records(self) -> Records:
        """Return rows with their answers, and counts of the policy's rounds so far."""
        M, A, R = self._counts.shape
        action = self._action
        reward = self._table.reward[np.arange(M)[:, None], action].swapaxes(1, 2)  # (M, A, R)
        counts = self._counts.reshape(M * A, R)
        some = counts.any(axis=1)
        return Records(
            np.repeat(self.context, A, axis=0)[some],
            np.repeat(action, A, axis=0)[some],
            reward.reshape(M * A, R)[some],
            counts[some],
        )


def user_counts(problem: Any, streams: Streams) -> UserCounts | None:
    """Return `UserCounts` in a long run of users who are rows of a table, small and within the
    spec's bounds, else None."""
    spec: Spec = problem.spec
    if spec.horizon < MIN_COUNTED_HORIZON:
        return None
    table = getattr(problem, "user_table", None)
    if table is None or spec.masks != "none" or spec.delay or spec.returning:
        return None
    if prod(table.context.shape) + prod(table.chance.shape) > MAX_TABLE_VALUES:
        return None
    step = answered(table.reward.reshape(-1, 1))
    for bound in spec.bounds():  # then no round counts as clipped
        sizes = bound.size(bound.array(table.context[:, None], step))
        if not ((sizes >= bound.low) & (sizes <= bound.high)).all():
            return None
    return UserCounts(problem, streams)


def switches_of(counts: Ints, before: int, g: np.random.Generator) -> tuple[int, int]:
    """Draw the number of switches and the last arm of plays in random order, `counts` (K,) of each.

    The order itself is not drawn. Between the arm played `before` and the last one, arms are
    inserted one after the other. c plays of a new arm fall into j of the m gaps between the plays
    so far, j hypergeometric; they separate neighbours of the same arm in some of these gaps.

    >>> switches_of(np.array([0, 5]), 0, np.random.default_rng(1))
    (1, 1)
    """
    rest = counts.copy()
    last = int(np.searchsorted(rest.cumsum(), g.integers(rest.sum()), side="right"))
    rest[last] -= 1
    # plays of the two ends' arms first: before, its own plays, plays of `last`, last
    plays, alike = 2 + int(rest[before]), int(rest[before]) + (before == last)
    rest[before] = 0
    for arm in (last, *np.flatnonzero(rest).tolist()):
        c, rest[arm] = int(rest[arm]), 0
        if not c:
            continue
        m, beside = plays - 1, arm == last  # the last gap is beside an equal play
        gaps = int(g.hypergeometric(m, c - 1, c)) if c > 1 else 1
        beside = beside and bool(g.random() * m < gaps)
        split = int(g.hypergeometric(alike, m - (arm == last) - alike, gaps - beside))
        alike += c - gaps + beside - split
        plays += c
    return plays - 1 - alike, last


MIN_ROUNDS_TOGETHER = 50
"""Smallest number of rounds between two marks that are faster to draw together than to play."""


class MultinomialPlay:
    """Joint draw of all rounds of one policy on a stationary problem, by one multinomial.

    Arms in the rounds of a batch are independent draws from the agent's fixed `chances`, so the
    arms' numbers of plays are multinomial, and the problem draws the total reward of each arm. A
    replica's numbers are drawn at marks and when its own batch ends, so they do not depend on other
    replicas. Total rewards are raw data: they go to the agent's mechanism. The agent itself gets
    the counts of its own draws and the mechanism's releases.

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
    is that of `switches_of`, which costs less for many plays, but draws other bits.

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
