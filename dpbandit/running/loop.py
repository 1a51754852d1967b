"""Loop that plays an agent on a problem, and logs results at given rounds, the marks.

`Segments` counts rounds and regret by a column of a user's table with public levels, such as her
shop.
"""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpbandit.base import AnyArray, Floats, InputError, Ints, Seed, Streams, abbrev
from dpbandit.offline.columns import Levels
from dpbandit.privacy import Ledger
from dpbandit.privacy.mechanism import LedgerCheck, logged_calls
from dpbandit.results.runs import checked_marks, log_marks
from dpbandit.running.episode import (
    FIRST_ROUNDS,
    Episode,
    Served,
    check_best_fixed,
    check_hindsight,
    count_switches,
)
from dpbandit.running.resolve import AnyAgent, AnyProblem, problem_at_hand, resolve_agent
from dpbandit.running.user_counts import MIN_ROUNDS_TOGETHER, multinomial_play
from dpbandit.specs import (
    AgentConfig,
    Bounds,
    Clips,
    Hindsight,
    Problem,
    Spec,
    begin,
    made_agent,
    matrix_entries,
)

_MIN_WARNED_ROUNDS = 100
"""Smallest horizon of a run that may get a warning about late releases."""


_CACHE_BYTES, _MAX_REPLICAS_TOGETHER = 1 << 22, 256
"""Bytes for the matrices of replicas that run together, and largest number of such replicas."""


def replicas_at_once(spec: Spec, config: AgentConfig | None = None) -> int:
    """Return the number of replicas whose matrices fit in the cache; affects only the speed.

    Matrices are as large as `spec` suggests, or as the agent of `config` needs.
    """
    entries = spec.matrix_entries if config is None else matrix_entries(config, spec)
    return max(1, min(_MAX_REPLICAS_TOGETHER, _CACHE_BYTES // (8 * entries)))


def consecutive(replicas: Sequence[int], size: int) -> list[tuple[int, int]]:
    """Split replica numbers into blocks (first, last + 1) of at most `size` consecutive ones.

    >>> consecutive([0, 1, 2, 5, 6], 2)
    [(0, 2), (2, 3), (5, 7)]
    """
    numbers = np.array(replicas, dtype=int)
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return [
        (int(part[i]), int(part[min(i + size, len(part)) - 1]) + 1)
        for part in parts
        for i in range(0, len(part), size)
    ]


@dataclass(frozen=True)
class Log:
    """Log of a run, with total regret, reward and number of switches at marks, (marks, R)."""

    regret: Floats
    reward: Floats
    switches: Ints
    seconds: float
    best_fixed: AnyArray
    """best action for all rounds in hindsight, (R,)"""
    clipped: Floats
    """share of rounds with data beyond the spec's bounds, (R,), see `dpbandit.specs.bounds`"""
    ledger: Ledger
    """ledger of privacy costs, against which all calls of mechanisms were checked"""
    measures: Mapping[str, Floats] = field(default_factory=dict)
    """rounds and regret by segment, name -> value of each replica, (R,)"""


def joined(logs: Sequence[Log]) -> Log:
    """Join logs of consecutive replicas of one agent, whose ledgers are equal."""

    def along(what: str, axis: int) -> Any:
        return np.concatenate([getattr(log, what) for log in logs], axis=axis)

    return Log(
        regret=along("regret", 1),
        reward=along("reward", 1),
        switches=along("switches", 1),
        seconds=sum(log.seconds for log in logs),
        best_fixed=along("best_fixed", 0),
        clipped=along("clipped", 0),
        ledger=logs[0].ledger,
        measures={
            name: np.concatenate([log.measures[name] for log in logs]) for name in logs[0].measures
        },
    )


@dataclass(frozen=True)
class Mark:
    """Total regret, reward and number of action switches at a logged round, (R,), for callbacks."""

    agent: str
    """name of the agent in a comparison"""
    round: int
    regret: Floats
    reward: Floats
    switches: Ints
    first_replica: int = 0
    """number of the first of these replicas; many replicas are played in several blocks"""


def play(
    env: AnyProblem,
    agent: AnyAgent,
    seeds: Sequence[Seed] = (0,),
    *,
    horizon: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    marks: Ints | None = None,
    advance: Callable[[int], None] | None = None,
    on_mark: Callable[[Mark], None] | None = None,
    blocks: bool = True,
    counts: bool = True,
    by: str | None = None,
) -> Log:
    """Play one agent, with one replica for each seed, up to the last mark.

    Without callbacks, more replicas than fit the cache play one batch after the other, as in
    `compare`; their numbers are the same.

    Args:
        env: a problem object, or an environment in any form that `compare` takes.
        agent: a config, or an id with settings.
        seeds: one seed for each replica.
        horizon: number of rounds, unless `env` is a problem; by default its own, or 10,000.
        env_kwargs: further arguments of an environment, unless `env` is a problem.
        marks: increasing rounds that are logged; by default those of `compare`.
        advance: function called at every mark with the number of rounds since the mark before it.
        on_mark: function that is called with a `Mark` at every mark.
        blocks: play rounds of one policy together where agent and problem allow it, which is
            faster; results are equal (`dpbandit.running.episode`) or have the same distribution
            (`multinomial_play`).
        counts: draw users as counts in runs of more than 20,000 rounds where an agent's policy
            does not change for many rounds and users are rows of a table (`user_counts`), which is
            faster; results have the same distribution.
        by: a column with public levels, of a problem that is made from a log, by which rounds and
            regret are counted, see `Results.summary`; then no users are drawn as counts.

    Raises:
        InputError: an invalid environment, agent, seed or mark; values that do not fit the spec in
            the first rounds, or are not finite later; a larger share of rounds beyond the spec's
            bounds than its `most_outside`; an agent that calls a mechanism which its ledger does
            not name, or that plays a round differently in a block and alone.

    >>> play("GLMBandit", "fade:epsilon=2", range(3), horizon=40).regret.shape
    (40, 3)
    """
    config, problem = resolve_agent(agent), problem_at_hand(env, horizon, env_kwargs)
    if isinstance(config, Hindsight):
        raise InputError(f"{config} needs an answer to play: {type(config).__name__}.with_answer.")
    check_callback(on_mark)
    together = (advance or (lambda rounds: None), on_mark, blocks, counts, by)
    R = len(Streams(seeds))
    size = replicas_at_once(problem.spec, config)
    if size >= R or advance or on_mark or hasattr(config, "answer"):  # one answer per replica
        return _play_batch(problem, config, seeds, marks, *together)
    batches = [seeds[first : first + size] for first in range(0, R, size)]
    logs = [_play_batch(problem, config, batch, marks, *together) for batch in batches]
    return joined(logs)


def _play_batch(
    problem: Problem,
    config: AgentConfig,
    seeds: Sequence[Seed],
    marks: Ints | None,
    advance: Callable[[int], None],
    on_mark: Callable[[Mark], None] | None,
    blocks: bool,
    counts: bool,
    by: str | None,
) -> Log:
    start = time.perf_counter()
    streams, spec = Streams(seeds), problem.spec
    R, marks = len(streams), log_marks(spec.horizon) if marks is None else checked_marks(marks)
    begin(problem, streams)
    regret, reward = np.zeros((2, len(marks), R))
    total_regret, total_reward = np.zeros((2, R))
    switches, total_switches = np.zeros((len(marks), R), np.int64), np.zeros(R, np.int64)
    before: AnyArray | None = None
    bounds, done, half = Bounds(spec, R, int(marks[-1])), 0, spec.horizon // 2
    with logged_calls() as call_log:
        player = made_agent(config, spec, streams.child("agent"))
        ledger_check = LedgerCheck(type(config).__name__, getattr(player, "ledger", None), call_log)
        segments = None if by is None else Segments(problem, by, R)
        alone = segments is not None  # users have to come one by one to be told apart
        together = multinomial_play(problem, player, streams) if blocks and not alone else None
        episode = Episode(problem, player, R, streams, blocks=blocks, counts=counts and not alone)
        late = False  # True if nothing was released by half, in users drawn as counts
        for mark, until in enumerate(marks.tolist()):
            long = until - done >= MIN_ROUNDS_TOGETHER and done >= FIRST_ROUNDS
            while (t := episode.served) < until:
                brought = None
                if together and long and before is not None and (n := together.rounds(until - t)):
                    brought = together.play(n, before, mark=t + n == until)
                    episode.skip(n)
                to_half = (until if t >= half else min(until, half)) - t
                if brought is None and episode.counts is not None and before is not None:
                    brought = episode.count(to_half, before)
                    if brought is not None:
                        bounds.skip(episode.served - t)
                        late |= episode.served == half and not call_log.released
                        if late and call_log.calls:  # by the end of the batch across half
                            _warn_late(config, spec)
                            late = False
                if brought is not None:
                    total_regret += brought.regret
                    total_reward += brought.reward
                    total_switches += brought.switches
                    continue
                served = episode.serve(to_half)
                step = served.step
                before = count_switches(total_switches, before, served)
                if segments is not None:
                    segments.add(served)
                if served.is_block:
                    bounds.see_several(served.context, step)
                    for total, row in (total_regret, step.regret), (total_reward, step.reward):
                        # added round after round, so that roundings equal those of single rounds
                        total[...] = np.add.accumulate(np.concatenate([total[None], row]))[-1]
                else:
                    bounds.see(served.context, step)
                    total_regret += step.regret
                    total_reward += step.reward
                episode.learn()
                if episode.served == half and call_log.calls and not call_log.released:
                    _warn_late(config, spec)
            if not np.isfinite(total_regret).all():
                raise InputError(
                    f"Expected finite expected rewards, got a NaN or infinity by round {t}."
                )
            ledger_check.check(users=episode.learned)
            lacks = problem.hindsight()
            check_hindsight(problem.spec, lacks, R)
            regret[mark], reward[mark] = total_regret + lacks, total_reward
            switches[mark] = total_switches
            if on_mark is not None:
                totals = (regret[mark].copy(), reward[mark].copy(), switches[mark].copy())
                on_mark(Mark(type(config).__name__, until, *totals))
            advance(until - done)
            done = until
    seconds, best, clipped = time.perf_counter() - start, problem.best_fixed(), bounds.share()
    check_best_fixed(best, R)
    if isinstance(problem, Clips):
        clipped = np.maximum(clipped, problem.clipped())
    ledger = ledger_check.ledger.on(spec)
    measures = {} if segments is None else segments.measures()
    return Log(regret, reward, switches, seconds, best, clipped, ledger, measures)


def _warn_late(config: AgentConfig, spec: Spec) -> None:
    """Warn that nothing was released by half of the horizon, in runs of 100 rounds or more."""
    if spec.horizon < _MIN_WARNED_ROUNDS or spec.domain is not None:
        return  # on a convex domain, learners of a stream may release at its end alone
    warnings.warn(
        f"{type(config).__name__} released nothing in the first half of {spec.horizon} rounds and "
        "learned nothing until then: choose a shorter first batch, shorter intervals between "
        "releases, or a longer horizon.",
        stacklevel=4,
    )


def check_callback(on_mark: Any) -> None:
    """Raise `InputError` unless the callback is callable or None."""
    if on_mark is not None and not callable(on_mark):
        raise InputError(f"Expected on_mark={abbrev(on_mark)} to be a function of a Mark.")


def levels_of(problem: Problem, by: Any) -> Levels:
    """Return the levels of the column `by`, which tell the segment of a user from her context.

    Raises:
        InputError: contexts of the problem do not tell it.
    """
    levels: Mapping[str, Levels] = getattr(problem, "segments", {})
    if not isinstance(by, str) or by not in levels:
        known = f"one of {', '.join(map(repr, levels))}" if levels else "left out here"
        raise InputError(
            f"Expected by={abbrev(by)} to be {known}: a segment is a feature of a log whose levels "
            "are listed, as shop=A,B, and people who come back have none."
        )
    return levels[by]


class Segments:
    """Counter of rounds and regret by the levels of the column `by`, for R replicas.

    These are exact functions of users' contexts: no certificate covers them.
    """

    def __init__(self, problem: Problem, by: str, replicas: int) -> None:
        self._by, self._levels = by, levels_of(problem, by)
        self._rounds = np.zeros((len(self._levels.names), replicas))
        self._regret = np.zeros((len(self._levels.names), replicas))

    def add(self, served: Served) -> None:
        """Count a round or a block of rounds."""
        level, regret = self._levels.of(served.context), served.step.regret
        if not served.is_block:
            level, regret = level[None], regret[None]
        for k in range(len(self._rounds)):
            there = level == k
            self._rounds[k] += there.sum(axis=0)
            self._regret[k] += np.where(there, regret, 0.0).sum(axis=0)

    def measures(self) -> dict[str, Floats]:
        """Return the totals so far, (R,) for each level, as measures of an `AgentRun`."""
        found = {}
        for k, level in enumerate(self._levels.names):
            found[f"rounds by {self._by}: {level}"] = self._rounds[k]
            found[f"regret by {self._by}: {level}"] = self._regret[k]
        return found
