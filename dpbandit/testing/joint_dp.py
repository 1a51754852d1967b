"""Joint DP, executed: sensitivity at the mechanism, and billboard replay.

Both compare two tapes: of one world, and of another in which one user is somebody else and all
releases are those of the first. Where people return, a user is a person with all her visits, which
are at other times in the other world.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.ledger import ROUNDING
from dpbandit.specs.contract import made_agent
from dpbandit.specs.lists import ReturningSpec
from dpbandit.specs.protocols import AgentConfig, Spec
from dpbandit.testing.expectations import expect, same
from dpbandit.testing.people import rounds_of, rounds_of_calls, with_other_people
from dpbandit.testing.tapes import Tape, run
from dpbandit.testing.worlds import extreme_users

REPLICAS = 24
"""A bound forgotten in a statistic shows in half of the extreme pairs; all miss it in 6 of 1e8."""
EVERYBODY = "everybody"
"""Another user in each replica, so that all are swapped in one run of as many as rounds."""
SWAPPED = (0, 14, EVERYBODY)
"""The first user, the last of a batch, be it of 3 or of 5 rounds, and each once."""


def two_worlds(
    config: AgentConfig,
    spec: Spec,
    swapped: Iterable[int | str] = SWAPPED,
    replicas: int = REPLICAS,
) -> Iterator[tuple[Tape, Tape, Ints]]:
    """For each of `swapped`: the tape of one world, always the same, of the other, who (R,), in
    which round, or, where people return, in which rounds she comes in either world, (T, R).

    Where the ledger says that contexts are public, she has the same one in both.
    """
    public = made_agent(config, spec, Streams([0])).ledger.public_contexts
    world, other = (extreme_users(spec, replicas, seed) for seed in (1, 2))
    every = np.arange(replicas) * spec.horizon // replicas
    with np.errstate(all="ignore"):  # users that are no numbers reach the agents' arithmetic
        first = run(config, spec, world)
        for user in swapped:
            t = every if user == EVERYBODY else np.full(replicas, user, np.int64)
            if isinstance(spec, ReturningSpec):
                changed, t = with_other_people(spec, world, other, t)
            else:
                changed = world.swapped(t, other, answers_only=public)
            yield first, run(config, spec, changed, replay=first), t


def check_joint_dp(
    config: AgentConfig,
    spec: Spec,
    swapped: Iterable[int | str] = SWAPPED,
    replicas: int = REPLICAS,
) -> tuple[float, Tape]:
    """Both, for each of `swapped`: the largest move over its sensitivity; the first world."""
    largest = []
    for one, two, t in two_worlds(config, spec, swapped, replicas):
        largest.append(check_sensitivity(one, two, t))
        check_visits(spec, one, two, t)
        check_billboard(one, two, t)
    return max(largest), one


def largest_move(one: Tape, two: Tape, t: Ints) -> Floats:
    """How far the differing users of rounds t move mechanisms' inputs, over sensitivity: (R,).

    What one user adds in several calls of a mechanism in one round adds up. All other calls must be
    fed exactly the same in both worlds.
    """
    expect(one.marks == two.marks, f"Expected {_who(t)} not to decide how many calls are made.")
    theirs, rounds = rounds_of(one, t), rounds_of_calls(one)
    moves: dict[tuple[int, int] | None, Floats] = {None: np.zeros(t.shape[-1])}
    for i, (a, b) in enumerate(zip(one.queries, two.queries, strict=True)):
        mechanism, round = one.mechanisms[i], rounds[i]
        hers = theirs[round]
        expect(
            same(a[~hers], b[~hers]),
            f"Expected {_who(t)} to enter {_name(mechanism)} in no other round.",
        )
        if hers.any():
            gap = (a - b).reshape(len(a), -1)[hers]
            move = moves.setdefault((id(mechanism), round), np.zeros(t.shape[-1]))
            move[hers] += np.linalg.norm(gap, ord=mechanism.order, axis=1) / mechanism.sensitivity
    return np.max(list(moves.values()), axis=0)


def check_visits(spec: Spec, one: Tape, two: Tape, t: Ints) -> None:
    """A person who returns enters no mechanism more often than it, or the spec, says."""
    if not isinstance(spec, ReturningSpec):
        return
    theirs = rounds_of(one, t)
    for tape in (one, two):
        entered: dict[int, Floats] = {}
        rounds = rounds_of_calls(tape)
        for i, (query, mechanism) in enumerate(zip(tape.queries, tape.mechanisms, strict=True)):
            told = query.reshape(len(query), -1).any(axis=1) & theirs[rounds[i]]
            entered[id(mechanism)] = entered.get(id(mechanism), 0) + told
        for mechanism in tape.mechanisms:
            most = getattr(mechanism, "most", spec.visits.cap)
            found = entered[id(mechanism)].max()
            expect(
                found <= most,
                f"Expected a person to enter {_name(mechanism)} at most {most} times, got {found}.",
            )


def check_sensitivity(one: Tape, two: Tape, t: Ints) -> float:
    """No input moves by more than its sensitivity; how far the largest does, in that unit."""
    largest = float(largest_move(one, two, t).max())
    names = sorted({_name(m) for m in one.mechanisms})
    expect(
        largest <= 1 + ROUNDING,
        f"Expected replacing {_who(t)} to move the inputs of {', '.join(names)} by no more than "
        f"their sensitivity, got {largest:.4g} times as far: clip all that users say, and feed "
        "each of them to a mechanism once.",
    )
    return largest


def check_billboard(one: Tape, two: Tape, t: Ints) -> None:
    """With the releases fixed, nothing remembered and nobody else's action depends on the user."""
    found = billboard_differences(one, two, t)
    expect(
        not found,
        f"Expected data of {_who(t)} to reach the future through mechanisms only; with all "
        f"releases held fixed replacing her changed {' and '.join(found)}.",
    )


def billboard_differences(one: Tape, two: Tape, t: Ints) -> list[str]:
    """What the differing users of rounds t changed although every release was the same."""
    found = []
    others = ~rounds_of(one, t)
    if not same(one.actions[others], two.actions[others]):
        found.append("other users' actions")
    if one.memories != two.memories:
        found.append("what the agent remembers")
    if not same_but_for_hers(one, two):
        found.append("what is remembered of other people")
    return found


def same_but_for_hers(one: Tape, two: Tape) -> bool:
    """Whether personal memories differ in at most one person's rows, in every replica."""
    for a, b in zip(one.personal, two.personal, strict=True):
        for x, y in zip(a, b, strict=True):
            other = (x != y).reshape(*x.shape[:2], -1).any(axis=2)  # finite numbers alone
            if (other.sum(axis=1) > 1).any():
                return False
    return True


def _who(t: Ints) -> str:
    if t.ndim == 2:
        return "a person"
    return f"user {t[0]}" if (t == t[0]).all() else "one user of each replica"


def _name(mechanism: object) -> str:
    return type(mechanism).__name__
