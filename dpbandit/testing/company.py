"""Whether a replica is the same in any company, and a copy goes on as the original."""

import copy
import pickle
from typing import Any

import numpy as np

from dpbandit.base.random_streams import Streams
from dpbandit.privacy.mechanism import BudgetExceededError
from dpbandit.specs.contract import made_agent
from dpbandit.specs.protocols import AgentConfig, Spec
from dpbandit.testing.expectations import expect, same
from dpbandit.testing.tapes import action_of
from dpbandit.testing.worlds import extreme_users

PARTS = ((0, 1), (1, 3), (3, 6))
"""Six replicas, in a lone one, a run of two and a run of three."""


def check_replicas(config: AgentConfig, spec: Spec) -> None:
    """Six replicas equal a lone one, a run of two and a run of three, difference exactly 0.0."""
    world = extreme_users(spec, 6, seed=5).tame()

    def actions(first: int, last: int) -> Any:
        agent = made_agent(config, spec, Streams([(9, r) for r in range(first, last)]))
        users, played = world.of(first, last), []
        for t, x in enumerate(users.context):
            played.append(action_of(agent, spec, x))
            agent.update(x, played[-1], users.answer(spec, t, played[-1]))
        return np.array(played)

    whole = actions(0, 6)
    for first, last in PARTS:
        expect(
            same(whole[:, first:last], actions(first, last)),
            f"Expected replicas not to know each other: {first} to {last - 1} of six play "
            "otherwise without the rest. Draw from `streams`, one number for each replica.",
        )
    promised = [made_agent(config, spec, Streams(range(R))).ledger for R in (1, 6)]
    expect(
        promised[0] == promised[1],
        f"Expected the same ledger for any number of replicas, got {promised[1]} for six and "
        f"{promised[0]} for one.",
    )


def copies_of(original: Any) -> dict[str, Any]:
    """Through a pickle, and by `copy.deepcopy`."""
    try:
        return {
            "its pickle": pickle.loads(pickle.dumps(original)),
            "its deep copy": copy.deepcopy(original),
        }
    except Exception as error:
        kind = type(original)
        raise AssertionError(
            f"Expected a {kind.__module__}.{kind.__name__} to be picklable, got: {error}."
        ) from error


def check_copies(config: AgentConfig, spec: Spec) -> None:
    """A pickled and a deep-copied agent continue exactly as the original, one after the other."""
    world, middle = extreme_users(spec, 3, seed=6).tame(), spec.horizon // 3

    def actions(agent: Any, first: int, last: int) -> list[Any]:
        played = []
        for t in range(first, last):
            played.append(agent.act(world.context[t]))
            agent.update(world.context[t], played[-1], world.answer(spec, t, played[-1]))
        return played

    agent = made_agent(config, spec, Streams(range(3)))
    actions(agent, 0, middle)
    copies = copies_of(agent)
    wanted = actions(agent, middle, spec.horizon)
    for name, copied in copies.items():
        try:
            played = actions(copied, middle, spec.horizon)
        except BudgetExceededError as error:
            raise AssertionError(f"Expected {name} to have its own mechanisms: {error}") from error
        for t, action in enumerate(played):
            expect(
                same(action, wanted[t]),
                f"Expected {name} to go on as the agent does and to share nothing with it, got "
                f"another action in round {middle + t}.",
            )
