"""Whether what somebody's own code makes is an agent, or a problem."""

from typing import Any

from dpbandit.base.calls import has_methods, of_kind, takes
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
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
    return agent


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
