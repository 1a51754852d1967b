"""Whether a problem keeps the contract that agents and the loop rely on, in one line."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpbandit.base.arrays import norms
from dpbandit.base.inputs import InputError, whole
from dpbandit.base.random_streams import Streams
from dpbandit.running.loop import check_context, check_hindsight, check_step
from dpbandit.specs.convex import StreamSpec
from dpbandit.specs.protocols import BanditSpec, Problem, Spec
from dpbandit.testing.company import PARTS, copies_of
from dpbandit.testing.expectations import expect, same

REPLICAS = 6


def check_problem(problem: Problem, *, rounds: int = 24) -> tuple[str, ...]:
    """Raise `AssertionError` unless the problem keeps its contract; it is left as it was::

        shapes     contexts, rewards, data and regrets are as the spec says, and finite
        seeds      decide everything, and another seed brings others
        replicas   six equal a lone one, a run of two and a run of three, difference 0.0
        copies     pickles and deep copies go on as the original
        bounds     contexts and rewards lie within the spec's but for `most_outside` of them
        regret     is oracle - expected, and where contexts have a best action, never below 0
        rewards    are on average what is expected (statistical, false alarm 1e-8)
        actions    what is no number, or of the wrong shape, is refused
        hindsight  is finite, 0 where contexts have a best action; no fixed action beats the best

    Args:
        problem: yours, with the arguments it is meant for.
        rounds: how many are played, at most.

    Returns:
        A line for each check, with what it found.

    Raises:
        AssertionError: something is not as the contract says, in one sentence.

    >>> from dpbandit.envs import OJPricing
    >>> check_problem(OJPricing())[0]
    'shapes: context, reward, expected, oracle, regret of 6 replicas in 24 rounds'
    """
    whole("rounds", rounds, 1)
    try:
        return tuple(_found(problem, min(rounds, problem.spec.horizon)))
    except InputError as error:
        raise AssertionError(error) from error


def _found(problem: Problem, rounds: int) -> Iterator[str]:
    spec: Spec = problem.spec
    six, after = _episode(problem, range(REPLICAS), rounds)
    named = "context, reward, expected, oracle, regret"
    named += "" if spec.datum_shape is None else ", datum"
    yield f"shapes: {named} of {REPLICAS} replicas in {rounds} rounds"
    again, others = (_play(problem, range(REPLICAS), rounds, episode=e) for e in (0, 1))
    expect(_alike(six, again), "Expected the same seeds to bring the same users and rewards.")
    expect(not _alike(six, others), "Expected other seeds to bring other users or rewards.")
    yield "seeds: decide everything"
    for first, last in PARTS:
        part = {name: values[:, first:last] for name, values in six.items()}
        expect(
            _alike(part, _play(problem, range(first, last), rounds)),
            f"Expected replicas not to know each other: {first} to {last - 1} of six go otherwise "
            "without the rest. Draw from `streams`, one number for each replica.",
        )
    yield "replicas: six equal three runs"
    for name in copies_of(problem):
        copied = _play(problem, range(REPLICAS), rounds, halfway=name)
        expect(_alike(six, copied), f"Expected {name} in mid-episode to go on as the problem does.")
    yield "copies: go on alike"
    many = _play(problem, range(200), rounds)
    yield _check_bounds(many, spec)
    yield _check_regret(many, spec)
    yield _check_means(many, spec)
    yield _check_actions(problem)
    check_hindsight(spec, after.hindsight(), REPLICAS)
    best = spec.validate(after.best_fixed(), REPLICAS)
    compared = _compare_with_best(problem, six, best) if isinstance(spec, BanditSpec) else 0
    yield f"hindsight: the best fixed action is allowed, and none of {compared} others better"


def _play(problem: Problem, seeds: range, rounds: int, **how: Any) -> dict[str, Any]:
    return _episode(problem, seeds, rounds, **how)[0]


def _episode(
    problem: Problem,
    seeds: range,
    rounds: int,
    *,
    episode: int = 0,
    halfway: str | None = None,
    action: Any = None,
) -> tuple[dict[str, Any], Problem]:
    """What was shown and played, each (T, R, ...), and the problem that has done so.

    Actions are uniformly random, or always `action` (R, ...). The problem is copied first, and half
    way once more, by the name of a copy.
    """
    mine, shown, spec = copy.deepcopy(problem), [], problem.spec
    draw = spec.uniform(Streams([(9, seed) for seed in seeds]))
    mine.reset(Streams([(episode, seed) for seed in seeds]))
    for t in range(rounds):
        if halfway is not None and t == rounds // 2:
            mine = copies_of(mine)[halfway]
        context = mine.context()
        check_context(spec, context, len(seeds), t + 1)
        seen = {"context": context.copy(), "action": draw() if action is None else action}
        step = mine.step(seen["action"])
        check_step(spec, step, len(seeds))
        shown.append(seen | {n: np.array(x) for n, x in step._asdict().items() if x is not None})
    return {name: np.array([one[name] for one in shown]) for name in shown[0]}, mine


def _compare_with_best(problem: Problem, six: dict[str, Any], best: Any) -> int:
    """With how many fixed actions, where users do not depend on play and their means are known."""
    rounds, draw = len(six["action"]), problem.spec.uniform(Streams(range(REPLICAS)))
    plays = [
        _play(problem, range(REPLICAS), rounds, action=a)
        for a in (best, *(draw() for _ in range(4)))
    ]
    known = not same(six["expected"], six["reward"])
    if not known or not all(same(play["context"], six["context"]) for play in plays):
        return 0
    most, *totals = (play["expected"].sum(axis=0) for play in plays)
    expect(
        all((total <= most + 1e-6 * (1 + abs(most))).all() for total in totals),
        "Expected best_fixed() to be the best of all fixed actions, one earns "
        f"{np.max(totals - most):.4g} more.",
    )
    return len(totals)


def _alike(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(same(one[name], two[name]) for name in one)


def _check_bounds(episode: dict[str, Any], spec: Spec) -> str:
    reward, slack = episode["reward"][spec.delay :], 1e-9 * (1 + spec.reward_bound)
    outside = {"rewards": (reward < spec.reward_low - slack) | (reward > spec.reward_high + slack)}
    if isinstance(spec, BanditSpec):
        lengths = norms(episode["context"], spec.context_order)
        outside["contexts"] = lengths > spec.context_bound * (1 + 1e-9)
    for name, beyond in outside.items():
        share, size = beyond.sum() / max(1, beyond.size), max(1, beyond.size)
        expect(
            share <= spec.most_outside + 5 * (spec.most_outside / size) ** 0.5,
            f"Expected {name} within the spec's bounds but for {spec.most_outside:.2%}, got "
            f"{share:.2%} outside: widen the bounds, or say so in most_outside.",
        )
    return f"bounds: of {' and '.join(outside)} are kept"


def _check_regret(episode: dict[str, Any], spec: Spec) -> str:
    regret = episode["regret"]
    if not (spec.in_hindsight or isinstance(spec, StreamSpec)):  # a round of those may go below 0
        expect(
            (regret >= 0).all(),
            f"Expected no action to be better than the oracle, got regret={regret.min():.4g}.",
        )
    return f"regret: of random actions {regret.mean():.4g} a round"


def _check_means(episode: dict[str, Any], spec: Spec) -> str:
    expected = episode["expected"]
    gap = episode["reward"][spec.delay :] - expected[: len(expected) - spec.delay]
    error = float(np.sqrt(np.square(gap).sum()) / max(1, gap.size))
    mean = float(gap.sum() / max(1, gap.size))
    expect(
        abs(mean) <= 6 * error,
        f"Expected rewards to be on average what is expected, got {mean:.4g} more, with a "
        f"standard error of {error:.2g}.",
    )
    return f"rewards: are what is expected, to a standard error of {error:.2g}"


def _check_actions(problem: Problem) -> str:
    mine, streams = copy.deepcopy(problem), Streams(range(REPLICAS))
    action = np.array(mine.spec.uniform(streams.child("player"))())
    mine.reset(streams.child("problem"))
    mine.context()
    for wrong in (action * np.nan, action[:-1], None):
        refused = False
        try:
            mine.step(wrong)  # type: ignore[arg-type]
        except ValueError:
            refused = True
        expect(
            refused,
            f"Expected the action {wrong!r} to be refused: begin `step` with "
            "`action = self.spec.validate(action, R)`.",
        )
    return "actions: wrong ones are refused"
