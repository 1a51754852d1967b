"""Play of an agent on a problem, in single rounds and in blocks of rounds.

Comparisons, checks, tapes and audits all play through `Episode`, so that no agent can behave
differently in an audit than in a comparison.

A block is up to `rounds_to_release` rounds of one policy. Agent and problem take arrays of all
rounds, (n, R, ...), and results equal those of single rounds bit for bit. An agent that sees a
whole block could use another user's context, so one random row of each block is played again
alone, with the random numbers it had in the block, and has to give the same action.
"""

from collections import deque
from math import isfinite
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from dpbandit.agent import Arms
from dpbandit.base import (
    RAISED,
    WATCH,
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    OverTime,
    Streams,
    abbrev,
    agent_error,
    counted_as,
    drawn_in,
)
from dpbandit.privacy.mechanism import count_users
from dpbandit.running.user_counts import Brought, UserCounts, user_counts
from dpbandit.specs import Agent, Problem, Spec, Step, acted, check_mask, finite_array

FIRST_ROUNDS = 10
"""Number of first rounds in which shapes and values of contexts, actions and steps are checked."""
SHORTEST_BLOCK = 4
"""Smallest number of rounds that are faster to play as a block than one by one."""
_MAX_COUNTED_ROUNDS = 10**8
"""Largest number of rounds drawn at once as counts, a limit of NumPy's hypergeometric draws"""
_REGRET_TOLERANCE = 1e-6
"""Relative and absolute rounding error allowed in a step's regret and means."""


def check_context(spec: Spec, context: Any, replicas: int, t: int) -> None:
    """Raise `InputError` unless contexts are finite numbers of the spec's shape."""
    finite_array(f"contexts in round {t}", context, (replicas, *spec.context_shape))


def check_action(spec: Spec, agent: Agent, action: Any, replicas: int) -> None:
    """Raise `InputError`, which names the agent's class, unless the spec allows the action."""
    try:
        spec.validate(action, replicas)
    except InputError as mistake:
        message = str(mistake).removesuffix(".")
        raise InputError(f"{message}, from act of {type(agent).__name__}.") from mistake


def check_step(spec: Spec, step: Any, replicas: int) -> None:
    """Raise `InputError` unless a step is a `Step` of consistent, finite numbers.

    The step must have a datum if the spec has a `datum_shape`.
    """
    if not isinstance(step, Step):
        raise InputError(f"Expected step to return a Step, got a {type(step).__name__}.")
    for name in ("reward", "expected", "oracle", "regret"):
        finite_array(name, getattr(step, name), (replicas,))
    missed = step.oracle - step.expected
    if not np.allclose(step.regret, missed, rtol=_REGRET_TOLERANCE, atol=_REGRET_TOLERANCE):
        raise InputError(f"Expected regret={step.regret} to be oracle - expected, {missed}.")
    # means estimated by realised rewards may exceed the oracle's by chance
    estimated = np.array_equal(step.expected, step.reward)
    least = -_REGRET_TOLERANCE * (1 + abs(missed))
    if not (spec.in_hindsight or estimated or (missed >= least).all()):
        raise InputError(f"Expected oracle={step.oracle} to be at least expected={step.expected}.")
    if not (spec.in_hindsight or estimated or spec.most_outside == 1):
        _check_means(spec, step.expected, step.oracle)
    if spec.datum_shape is not None:
        finite_array("datum", step.datum, (replicas, *spec.datum_shape))


def _check_means(spec: Spec, *means: Floats) -> None:
    low, high = spec.reward_low, spec.reward_high
    room = _REGRET_TOLERANCE * (high - low)
    for found in means:
        if far := [mean for mean in found.tolist() if not low - room <= mean <= high + room]:
            raise InputError(
                f"Expected mean rewards in [{low:g}, {high:g}], as rewards are, got {far[0]:g}."
            )


def check_hindsight(spec: Spec, lacks: Any, replicas: int) -> None:
    """Raise `InputError` unless `hindsight` is a finite number, or one for each replica.

    The number must be 0 unless the spec measures regret in hindsight.
    """
    if not (isinstance(lacks, int | float) and isfinite(lacks)):  # NumPy's doubles are floats
        finite_array("hindsight", lacks, (replicas,))
    if not spec.in_hindsight and np.any(lacks):
        raise InputError(
            f"Expected hindsight={abbrev(lacks)} to be 0: a {type(spec).__name__} measures regret "
            "round by round."
        )


def check_best_fixed(action: Any, replicas: int) -> None:
    """Raise `InputError` unless the best fixed actions are an array, with one for each replica."""
    if not isinstance(action, np.ndarray) or action.shape[:1] != (replicas,):
        raise InputError(
            f"Expected best_fixed to be an array of {replicas} actions, got {abbrev(action)}."
        )


class BlockError(InputError):
    """The agent's action in a round of a block differs from its action in that round alone."""


class Served(NamedTuple):
    """A round that was played, with arrays (R, ...), or a block of n rounds, (n, R, ...)."""

    first: int
    """number of rounds before this one or this block"""
    rounds: int
    context: Floats
    action: AnyArray
    step: Step
    is_block: bool

    def actions(self) -> AnyArray:
        """Return the actions of each round, (n, R, ...)."""
        return self.action if self.is_block else self.action[None]


class Episode:
    """Play of an agent on a problem: `serve` users, then `learn` from their feedback, in turn.

    Args:
        problem: problem whose episode has begun.
        agent: running agent.
        replicas: number of replicas R.
        streams: streams that neither agent nor problem draws from.
        blocks: play rounds of one policy at once where agent and problem allow it.
        checked: number of first rounds whose arrays are checked; they are played one by one.
        shortest_block: smallest number of rounds of a block.
        counts: allow `count` to draw users as counts, where `user_counts` can.
    """

    def __init__(
        self,
        problem: Problem,
        agent: Agent,
        replicas: int,
        streams: Streams,
        *,
        blocks: bool = True,
        checked: int = FIRST_ROUNDS,
        shortest_block: int = SHORTEST_BLOCK,
        counts: bool = False,
    ) -> None:
        self.agent: Any = agent
        self.served = 0
        """number of rounds played"""
        self.learned = 0
        """number of rounds from whose feedback the agent has learned"""
        self._problem: Any = problem
        self._spec: Spec = problem.spec
        self._masked = self._spec.masks != "none"
        self._context_shape = (replicas, *self._spec.context_shape)
        self._R, self._checked, self._shortest = replicas, checked, shortest_block
        per_replica = np.ndim(getattr(agent, "rounds_to_release", [1])) > 0
        always = Arms.rounds_to_release  # 1: no round of such an agent asks for it
        stands = getattr(type(agent), "rounds_to_release", None) is not always and not per_replica
        self._blocks = stands and blocks and getattr(problem, "in_blocks", False)
        self._rows = streams.generators("rows asked alone")[0]
        self._late: deque[tuple[Floats, AnyArray]] = deque()  # played, feedback is delayed
        self._answered: tuple[Floats, AnyArray, Floats] | None = None
        self._block, self._row = 0, 0  # rounds of the block, and how many the agent learned from
        self.counts = user_counts(problem, streams) if counts and self._blocks else None
        """users of the problem's table, if they can be drawn as counts, else None"""
        # of agents that learn nothing alone: another one's `chances` may not be what it plays
        self._chances: Floats | None = None
        if self.counts is not None:
            from dpbandit.agents.baselines import Constant  # not before: imports agents

            self._chances = agent.chances if isinstance(agent, Constant) else None
        self._left = 0  # rounds to come of the batch that is drawn as counts
        self._next_try = 0  # first round in which counts may be tried again
        self._record_counts: Ints | None = None

    def serve(self, most: int = 1) -> Served:
        """Play the next round, or a block of at most `most` rounds; the agent does not learn yet.

        Raises:
            AgentError: `act` raised an exception.
            InputError: contexts, actions or steps do not fit the spec, in the rounds that are
                checked, or rewards are not finite.
            BlockError: a random row of a block has another action when played alone.
        """
        if not self._blocks or most < self._shortest:
            return self._serve_one()
        rounds = min(most, self.longest_block())
        return self._serve_one() if rounds < self._shortest else self._serve_block(rounds)

    def longest_block(self) -> int:
        """Return the largest size of the next block; 1 if rounds are played one by one."""
        if not self._blocks or self.served < self._checked:
            return 1
        return int(self.agent.rounds_to_release)

    @property
    def unlearned(self) -> bool:
        """True if there is feedback from which the agent has not yet learned."""
        return self._answered is not None

    def learn(self, most: int | None = None) -> int:
        """Pass feedback to the agent's `update`; return the number of rounds of that feedback.

        Args:
            most: largest number of a block's rounds to pass one by one; by default all at once.

        Raises:
            AgentError: `update` raised an exception.
        """
        if self._answered is None:
            return 0
        context, action, feedback = self._answered
        WATCH.calls += 1
        try:
            if self._record_counts is not None:
                with counted_as(self._record_counts):
                    self.agent.update(context, action, feedback)
                rounds = int(self._record_counts[:, 0].sum())
                self._answered = self._record_counts = None
            elif most is None or not self._block:
                self.agent.update(context, action, feedback)
                rounds, self._answered = self._block or 1, None
            else:
                rounds = min(most, self._block - self._row)
                for row in range(self._row, self._row + rounds):
                    self.agent.update(context[row], action[row], feedback[row])
                self._row += rounds
                if self._row == self._block:
                    self._answered = None
        except (*RAISED, OverTime) as error:
            self._tell("update", self.learned + 1, error)
        WATCH.calls += 1
        self.learned += rounds
        count_users(rounds)
        return rounds

    def count(self, most: int, before: AnyArray) -> Brought | None:
        """Draw at most `most` rounds of one policy as counts; None if rounds have to be played.

        The agent acts once for each row of the problem's table, and one random row is played again
        alone, as in blocks; an agent that draws random numbers for a row plays rounds. It learns
        when its batch ends. `before` (R,) contains the last actions, and is overwritten.
        """
        if self.counts is None or not (self._left or self._begin(self.counts, most)):
            return None
        rounds = min(most, self._left)
        brought = self.counts.draw(rounds, before)
        self.served += rounds
        self._left -= rounds
        if not self._left:
            context, action, reward, self._record_counts = self.counts.records()
            self._answered = context, action, reward
            self.learn()
        return brought

    def _begin(self, users: UserCounts, most: int) -> bool:
        """Return True if a batch begins whose users can be drawn as counts, at first `most`."""
        left = min(self.longest_block(), _MAX_COUNTED_ROUNDS)
        short = left < users.fewest or min(left, most) < users.fewest_at_once
        if short or self.served < self._next_try:
            return False
        action = None
        if self._chances is None:
            WATCH.calls += 1
            try:
                action, drew = self._act_in_block(users.context, None)
            except (*RAISED, OverTime) as error:
                self._tell("act", self.served + 1, error)
            WATCH.calls += 1
            if drew:
                self._next_try = 2 * self.served
                return False
            check_action(self._spec, self.agent, action.ravel(), action.size)
        users.begin(action, self._chances)
        self._left = left
        return True

    def as_records(self) -> None:
        """Make `learn` pass a block as records, in the form in which counted users come.

        Every round becomes two records, in the order of their answers: one that counts once, and
        one with another user's answer, which counts 0. So counts depend on data, as they do there.
        """
        context, action, answer = cast(Any, self._answered)
        other = answer[::-1]
        least = answer <= other
        answers = np.where(least, answer, other), np.where(least, other, answer)
        by_two = np.stack([*answers, least, ~least], axis=1)  # (n, 4, R)
        self._answered = (
            np.repeat(context, 2, axis=0),
            np.repeat(action, 2, axis=0),
            by_two[:, :2].reshape(-1, self._R),
        )
        self._record_counts = by_two[:, 2:].reshape(-1, self._R).astype(np.int64)

    def skip(self, rounds: int) -> None:
        """Count rounds that were drawn together without calls of `act`, see `MultinomialPlay`."""
        self.served += rounds
        self.learned += rounds
        count_users(rounds)

    def _serve_one(self) -> Served:
        spec, problem, first = self._spec, self._problem, self.served
        context = problem.context()
        checked = first < self._checked or (
            self._checked > 0 and getattr(context, "shape", None) != self._context_shape
        )
        if checked:
            check_context(spec, context, self._R, first + 1)
            copy = context.copy()
        mask = problem.mask() if self._masked else None
        if checked and mask is not None:
            check_mask(spec, mask, self._R)
        WATCH.calls += 1
        try:
            action = self.agent.act(context) if mask is None else acted(self.agent, context, mask)
        except (*RAISED, OverTime) as error:
            self._tell("act", first + 1, error)
        WATCH.calls += 1
        try:
            if checked:
                check_action(spec, self.agent, action, self._R)
            try:
                step = problem.step(action)
            except (IndexError, TypeError, ValueError):
                check_action(spec, self.agent, action, self._R)  # the action may be the cause
                raise
            if self._checked:
                self._check_outcome(step, checked)
            if checked and not np.array_equal(context, copy):
                raise InputError(
                    "Expected act and step to leave the array of contexts alone, it was "
                    "overwritten: hand out a new one every round."
                )
        except InputError as mistake:
            raise InputError(f"In round {first + 1}: {mistake}") from mistake
        self.served += 1
        feedback = step.reward if step.datum is None else step.datum
        if not spec.delay:
            self._answered = context, action, feedback
        else:
            self._late.append((np.array(context), np.array(action)))  # callers may change theirs
            if self.served > spec.delay:
                self._answered = *self._late.popleft(), feedback
        self._block = 0
        return Served(first, 1, context, action, step, False)

    def _tell(self, method: str, round: int, error: BaseException) -> NoReturn:
        """Raise an exception of the agent, as an `AgentError` if `agent_error` returns one."""
        called = getattr(self.agent, "called", type(self.agent).__name__)
        failure = agent_error(called, method, round, error)
        if failure is None:
            raise error
        raise failure from error

    def _check_outcome(self, step: Step, checked: bool) -> None:
        shape = (self._R,)
        if (
            checked
            or getattr(step.reward, "shape", None) != shape
            or getattr(step.regret, "shape", None) != shape
        ):
            check_step(self._spec, step, self._R)
        finite = isfinite(step.reward @ step.reward)  # the cheapest check of all replicas
        if not finite and not np.isfinite(step.reward).all():
            raise InputError(f"Expected finite rewards, got {step.reward}.")

    def _serve_block(self, rounds: int) -> Served:
        first = self.served
        context = self._problem.contexts_ahead(rounds)
        mask = self._problem.masks_ahead(len(context)) if self._masked else None
        WATCH.calls += 1
        try:
            action, _ = self._act_in_block(context, mask)
        except (*RAISED, OverTime) as error:
            self._tell("act", self.served + 1, error)
        WATCH.calls += 1
        step = self._problem.steps(action)
        finite = np.isfinite(step.reward).all(axis=1)
        if self._checked and not finite.all():
            i = int(finite.argmin())
            raise InputError(
                f"In round {first + i + 1}: Expected finite rewards, got {step.reward[i]}."
            )
        self.served += len(context)
        self._answered, self._block, self._row = (context, action, step.reward), len(context), 0
        return Served(first, len(context), context, action, step, True)

    def _act_in_block(self, context: Floats, mask: Bools | None) -> tuple[AnyArray, bool]:
        """Return a block's actions (n, R), and whether the agent drew random numbers for them.

        Raises:
            BlockError: the actions of a random row differ when it is played alone.
        """
        row = int(self._rows.integers(len(context)))
        with drawn_in(len(context)) as draws:
            action = acted(self.agent, context, mask)
        alone_mask = None if mask is None else mask[row].copy()
        with draws.again(row):
            alone = acted(self.agent, context[row].copy(), alone_mask)  # no view of other rows
        if not np.array_equal(action[row], alone):
            raise BlockError(
                f"Expected act of {type(self.agent).__name__} to choose every round of a block by "
                f"its own context, as it does alone; in round {self.served + row + 1} it played "
                f"{abbrev(action[row].tolist())} in a block of {len(context)} rounds, and alone "
                f"{abbrev(np.asarray(alone).tolist())}. Let rounds_to_release be 1 if it cannot."
            )
        return action, draws.used


def count_switches(total: Ints, before: AnyArray | None, served: Served) -> AnyArray:
    """Add changes of action to `total` (R,); write the last action to `before`, and return it."""
    action = served.action
    if served.is_block:
        if before is None:
            before = np.array(action[0])
        total += (np.concatenate([before[None], action[:-1]]) != action).sum(axis=0)
        before[...] = action[-1]
        return before
    if before is None:
        return np.array(action)
    changed = action != before
    total += changed if changed.ndim == 1 else changed.any(axis=1)
    before[...] = action
    return before
