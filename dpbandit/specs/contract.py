"""Whether what somebody's own code makes is an agent, or a problem."""

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from dpbandit.base.calls import has_methods, of_kind, takes
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.specs.protocols import Agent, AgentConfig, Problem, Spec


def made_agent(config: AgentConfig, spec: Spec, streams: Streams) -> Agent:
    """`config.make(spec, streams)`; raises `InputError` unless that has the methods of an agent."""
    owner = type(config).__name__
    takes(f"make of {owner}", config.make, "spec", "streams")
    agent: Agent | None = config.make(spec, streams)
    if agent is None:
        raise InputError(
            f"Expected make of {owner} to return the running agent, with ledger, act and update, "
            "got None."
        )
    has_methods(
        f"the agent of {owner}",
        agent,
        act=("context",),
        update=("context", "action", "feedback"),
    )
    _check_trust(owner, agent, spec)
    return agent


def _check_trust(owner: str, agent: Agent, spec: Spec) -> None:
    """Raise `InputError` where more trust is promised than the agent, or what it holds, can keep.

    So it is for whatever stands around an agent and passes its ledger on.
    """
    trust = getattr(getattr(agent, "ledger", None), "trust", "central")
    if trust == "central":
        return
    if spec.watched:
        raise InputError(
            f"Expected trust='central' of {owner} for {spec.kind}, got {trust!r}: choose that, as "
            "the seller names the price and watches the sale."
        )
    for mechanism in _held(agent, set()):
        if trust not in mechanism.trust and mechanism.spend.pure > 0:
            raise InputError(
                f"Expected the ledger of {owner} to promise what {mechanism.spend.note!r} can "
                f"keep, trust={' or '.join(mechanism.trust)}, got trust={trust!r}."
            )


def _held(thing: Any, seen: set[int]) -> Iterator[Mechanism]:
    """The mechanisms that an agent, or what it holds, has made so far; not their own parts."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, Mechanism):
        yield thing
    elif isinstance(thing, Mapping):
        for one in thing.values():
            yield from _held(one, seen)
    elif isinstance(thing, list | tuple | set | frozenset):
        for one in thing:
            yield from _held(one, seen)
    elif hasattr(thing, "__dict__") and not isinstance(thing, type | ModuleType):
        yield from _held(vars(thing), seen)


def checked_problem(name: str, problem: Any) -> Problem:
    """`problem`; raises `InputError` unless it has the spec and the methods of one."""
    spec = getattr(problem, "spec", None)
    if not isinstance(spec, Spec):
        raise InputError(
            f"Expected {name} to make a problem whose spec is a Spec, such as ContextualSpec, got "
            f"{of_kind(problem)}" + ("." if problem is None else f" with spec {of_kind(spec)}.")
        )
    has_methods(
        f"the problem of {name}",
        problem,
        reset=("streams",),
        context=(),
        step=("action",),
        best_fixed=(),
        hindsight=(),
    )
    made: Problem = problem
    return made


def begin(problem: Problem, streams: Streams) -> None:
    """Start an episode: in the world of the `world_seed` that `make_problem` was told, if any."""
    world_seed = getattr(problem, "world_seed", None)
    problem.reset(streams.child("environment").in_world(world_seed))
