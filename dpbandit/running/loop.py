"""Play an agent round by round, and log the results at marks."""

import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from dpbandit.base import AnyArray, Floats, InputError, Ints, Seed, Streams, shown
from dpbandit.privacy.mechanism import Books, enrolled
from dpbandit.results.runs import checked_marks, log_marks
from dpbandit.running.given import AnyAgent, AnyProblem, agent_given, problem_at_hand
from dpbandit.running.still import SHORT, block, still
from dpbandit.specs import (
    Agent,
    AgentConfig,
    Bounds,
    Clips,
    Hindsight,
    Problem,
    Spec,
    Step,
    acted,
    begin,
    check_mask,
    finite_array,
    made_agent,
)

FIRST_ROUNDS = 10
"""Rounds that are looked at."""
_ROUNDING = 1e-6


def check_context(spec: Spec, context: Any, replicas: int, t: int) -> None:
    """Raise `InputError` unless a context has finite numbers in the spec's shape."""
    finite_array(f"contexts in round {t}", context, (replicas, *spec.context_shape))


def check_action(spec: Spec, agent: Agent, action: Any, replicas: int) -> None:
    """Raise `InputError`, which names the agent's class, unless the action is allowed."""
    try:
        spec.validate(action, replicas)
    except InputError as mistake:
        told = str(mistake).removesuffix(".")
        raise InputError(f"{told}, from act of {type(agent).__name__}.") from mistake


def check_step(spec: Spec, step: Any, replicas: int) -> None:
    """Raise `InputError` unless a step is a `Step` of finite numbers that fit each other.

    It has a datum where one is told.
    """
    if not isinstance(step, Step):
        raise InputError(f"Expected step to return a Step, got a {type(step).__name__}.")
    for name in ("reward", "expected", "oracle", "regret"):
        finite_array(name, getattr(step, name), (replicas,))
    missed = step.oracle - step.expected
    if not np.allclose(step.regret, missed, rtol=_ROUNDING, atol=_ROUNDING):
        raise InputError(f"Expected regret={step.regret} to be oracle - expected, {missed}.")
    estimated = np.array_equal(step.expected, step.reward)  # by what came, which luck may have made
    if not (spec.in_hindsight or estimated or (missed >= -_ROUNDING * (1 + abs(missed))).all()):
        raise InputError(f"Expected oracle={step.oracle} to be at least expected={step.expected}.")
    if not (spec.in_hindsight or estimated or spec.most_outside == 1):
        _check_means(spec, step.expected, step.oracle)
    if spec.datum_shape is not None:
        finite_array("datum", step.datum, (replicas, *spec.datum_shape))


def _check_means(spec: Spec, *means: Floats) -> None:
    low, high = spec.reward_low, spec.reward_high
    room = _ROUNDING * (high - low)
    for found in means:
        if far := [mean for mean in found.tolist() if not low - room <= mean <= high + room]:
            raise InputError(
                f"Expected mean rewards in [{low:g}, {high:g}], as rewards are, got {far[0]:g}."
            )


def check_hindsight(spec: Spec, lacks: Any, replicas: int) -> None:
    """Raise `InputError` unless hindsight is one finite number, or one for each replica.

    Where every context has a best action of its own, regret lacks nothing.
    """
    if not (isinstance(lacks, int | float) and isfinite(lacks)):  # NumPy's doubles are floats
        finite_array("hindsight", lacks, (replicas,))
    if not spec.in_hindsight and np.any(lacks):
        raise InputError(
            f"Expected hindsight={shown(lacks)} to be 0: a {type(spec).__name__} measures regret "
            "round by round."
        )


def check_best_fixed(action: Any, replicas: int) -> None:
    """Raise `InputError` unless the best fixed action is an array with one for each replica."""
    if not isinstance(action, np.ndarray) or action.shape[:1] != (replicas,):
        raise InputError(
            f"Expected best_fixed to be an array of {replicas} actions, got {shown(action)}."
        )


def check_untouched(context: Floats, shown: Floats) -> None:
    """Raise `InputError` if the agent has written into the context that it was `shown`."""
    if not np.array_equal(context, shown):
        raise InputError(
            "Expected act and step to leave the array of contexts alone, it was overwritten: hand "
            "out a new one every round."
        )


_TRIAL = 100
"""Of fewer rounds nobody expects an agent to learn."""


@dataclass(frozen=True)
class Log:
    """Log of a run: cumulative regret, reward and switches of action, (marks, R), and seconds."""

    regret: Floats
    reward: Floats
    switches: Ints
    seconds: float
    best_fixed: AnyArray
    """the action (R,) that would have been best for all rounds"""
    clipped: Floats
    """share of the rounds (R,) that broke the problem's spec, see `dpbandit.specs.contract`"""


@dataclass(frozen=True)
class Mark:
    """Totals so far at a mark, each (R,), that a callback receives; copies."""

    agent: str
    """its name in a comparison"""
    round: int
    regret: Floats
    reward: Floats
    switches: Ints
    first_replica: int = 0
    """of these R; more than fit the cache come in several blocks"""


def play(
    env: AnyProblem,
    agent: AnyAgent,
    seeds: Sequence[Seed] = (0,),
    *,
    horizon: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    marks: Ints | None = None,
    advance: Callable[[int], None] = lambda rounds: None,
    on_mark: Callable[[Mark], None] | None = None,
    blocks: bool = True,
) -> Log:
    """Play one agent, with one replica for each seed, up to the last mark.

    Args:
        env: a problem, which is played as it is, or an environment in any form that `compare`
            takes.
        agent: a config, or an id with settings.
        seeds: one seed for each replica.
        horizon: number of rounds of an environment that is made; by default its own, or 10,000.
        env_kwargs: further arguments of an environment that is made.
        marks: increasing rounds that are logged; by default those of `compare`.
        advance: function that is called at every mark with the number of rounds since the last.
        on_mark: function that is called with a `Mark` at every mark.
        blocks: play rounds of one policy together, where agent and problem allow it, which takes
            less time; see `dpbandit.running.still` for what stays the same.

    Raises:
        InputError: no environment, no agent, no seeds or no marks; an agent or a problem that
            returns something of another form than the spec says in the first rounds, or no
            number later; more than the spec's `most_outside` of the rounds beyond its bounds; an
            agent that calls a mechanism which its ledger does not name.

    >>> play("GLMBandit", "fade:epsilon=2", range(3), horizon=40).regret.shape
    (40, 3)
    """
    config, problem = agent_given(agent), problem_at_hand(env, horizon, env_kwargs)
    if isinstance(config, Hindsight):
        raise InputError(f"{config} needs an answer to play: {type(config).__name__}.with_answer.")
    check_callback(on_mark)
    start = time.perf_counter()
    streams, spec = Streams(seeds), problem.spec
    R, marks = len(streams), log_marks(spec.horizon) if marks is None else checked_marks(marks)
    begin(problem, streams)
    regret, reward = np.zeros((2, len(marks), R))
    total_regret, total_reward = np.zeros((2, R))
    switches, total_switches = np.zeros((len(marks), R), np.int64), np.zeros(R, np.int64)
    before: AnyArray | None = None
    waiting: deque[tuple[Floats, AnyArray]] = deque()
    bounds, delay, done = Bounds(spec, R, int(marks[-1])), spec.delay, 0
    with enrolled() as roll:
        player = made_agent(config, spec, streams.child("agent"))
        books = Books(type(config).__name__, getattr(player, "ledger", None), roll)
        together = still(problem, player, streams) if blocks else None
        at_once = block(problem, player, bounds) if blocks else None
        t, half = 0, spec.horizon // 2
        totals = total_regret, total_reward, total_switches
        for mark, until in enumerate(marks.tolist()):
            long = until - done >= SHORT and done >= FIRST_ROUNDS
            while t < until:
                if at_once and before is not None and t >= FIRST_ROUNDS:
                    most = until - t if t >= half else min(until, half - 1) - t
                    if n := at_once.play(t, most, *totals, before):
                        t += n
                        roll.heard(n)
                        continue
                if together and long and before is not None and (n := together.rounds(until - t)):
                    t += n
                    brought = together.play(n, before, mark=t == until)
                    roll.heard(n)
                    total_regret += brought.regret
                    total_reward += brought.reward
                    total_switches += brought.switches
                    continue
                t += 1
                context, action, step = _meet(problem, player, t, R)
                bounds.see(context, step)
                before = _count_switches(total_switches, before, action)
                total_regret += step.regret
                total_reward += step.reward
                if delay:
                    waiting.append((np.array(context), np.array(action)))  # theirs may change
                    if t <= delay:
                        continue
                    context, action = waiting.popleft()
                player.update(context, action, step.reward if step.datum is None else step.datum)
                roll.heard(1)
                if t == half and roll.calls and not roll.released:
                    _warn_late(config, spec)
            if not np.isfinite(total_regret).all():
                raise InputError(
                    f"Expected finite expected rewards, got a NaN or infinity by round {t}."
                )
            books.check(users=max(0, until - delay))
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
    return Log(regret, reward, switches, seconds, best, clipped)


def _warn_late(config: AgentConfig, spec: Spec) -> None:
    """Say so; not in trials of few rounds, nor of learners that look at a stream once."""
    if spec.horizon < _TRIAL or spec.domain is not None:
        return
    warnings.warn(
        f"{type(config).__name__} released nothing in the first half of {spec.horizon} rounds and "
        "learned nothing until then: choose a shorter first batch, shorter intervals between "
        "releases, or a longer horizon.",
        stacklevel=3,
    )


def check_callback(on_mark: Any) -> None:
    """Raise `InputError` unless the callback is a function, or None."""
    if on_mark is not None and not callable(on_mark):
        raise InputError(f"Expected on_mark={shown(on_mark)} to be a function of a Mark.")


def _meet(problem: Problem, agent: Agent, t: int, R: int) -> tuple[Floats, AnyArray, Step]:
    """Round t: the context, the action, and what it brings; their form is looked at for a while,
    later when a shape is another."""
    spec = problem.spec
    context = problem.context()
    look = t <= FIRST_ROUNDS or np.shape(context) != (R, *spec.context_shape)
    if look:
        check_context(spec, context, R, t)
        shown = context.copy()
    world: Any = problem
    mask = None if spec.masks == "none" else world.mask()
    if look and mask is not None:
        check_mask(spec, mask, R)
    action = agent.act(context) if mask is None else acted(agent, context, mask)
    try:
        if look:
            check_action(spec, agent, action, R)
        step = problem.step(action)
        if look or np.shape(step.reward) != (R,) or np.shape(step.regret) != (R,):
            check_step(spec, step, R)
        if look:
            check_untouched(context, shown)
        finite = isfinite(step.reward @ step.reward)  # the cheapest look at all of them
        if not finite and not np.isfinite(step.reward).all():
            raise InputError(f"Expected finite rewards, got {step.reward}.")
    except InputError as mistake:
        raise InputError(f"In round {t}: {mistake}") from mistake
    return context, action, step


def _count_switches(total: Ints, before: AnyArray | None, action: AnyArray) -> AnyArray:
    """Add 1 where the action is not the one `before`; returns a copy of it."""
    if before is None:
        return np.array(action)
    changed = action != before
    total += changed if changed.ndim == 1 else changed.any(axis=1)
    before[...] = action
    return before
