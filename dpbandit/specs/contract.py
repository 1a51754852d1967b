"""Whether what somebody's own code makes is an agent, or a problem."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from types import FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any, get_args

import numpy as np

from dpbandit.base.calls import has_methods, of_kind, takes
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.ledger import Ledger, Trust
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
    _check_facts(owner, agent)
    return agent


def _check_trust(owner: str, agent: Agent, spec: Spec) -> None:
    """Raise `InputError` where more trust is promised than the agent, or what it holds, can keep.

    So it is for whatever stands around an agent, with the agent's ledger or with one of its own.
    """
    trust = getattr(getattr(agent, "ledger", None), "trust", "central")
    if trust == "central":
        return
    if spec.watched:
        raise InputError(
            f"Expected trust='central' of {owner} for {spec.kind}, got {trust!r}: choose that, as "
            "the seller names the price and watches the sale."
        )
    for _, held in reached(agent, Mechanism):
        kept: tuple[Trust, ...] = get_args(Trust)
        if isinstance(held, Mechanism):
            kept, spent, what = held.trust, held.spend.pure, repr(held.spend.note)
        elif isinstance(inner := getattr(held, "ledger", None), Ledger):
            kept = kept[: kept.index(inner.trust) + 1]
            spent, what = inner.pure, f"the ledger of {type(held).__name__}"
        if trust not in kept and spent > 0:
            raise InputError(
                f"Expected the ledger of {owner} to promise what {what} can keep, "
                f"trust={' or '.join(kept)}, got trust={trust!r}."
            )


def _check_facts(owner: str, agent: Agent) -> None:
    """Raise `InputError` where the ledger drops what the ledger of something held rests on."""
    outer = getattr(agent, "ledger", None)
    if not isinstance(outer, Ledger):
        return
    for _, held in reached(agent, Mechanism):
        inner = getattr(held, "ledger", None)
        if held is agent or not isinstance(inner, Ledger) or inner.pure == 0:
            continue
        for name, weaker in _WEAKER.items():
            promised, kept = getattr(outer, name), getattr(inner, name)
            if not weaker(promised, kept):
                raise InputError(
                    f"Expected the ledger of {owner} to promise what that of {type(held).__name__} "
                    f"can keep, {name}={kept!r}, got {name}={promised!r}."
                )


_WEAKER: dict[str, Callable[[Any, Any], bool]] = {
    "public_contexts": lambda promised, kept: promised >= kept,
    "honest": lambda promised, kept: promised >= kept,
    "slip": lambda promised, kept: promised >= kept,
    "condition": lambda promised, kept: kept in promised,
    "window": lambda promised, kept: kept is None or (promised or inf) <= kept,
    "visits": lambda promised, kept: kept in (None, promised),
}
"""Facts of a ledger, and whether a promise rests on all that is kept below it."""


def reached(thing: Any, *closed: type) -> Iterator[tuple[str, Any]]:
    """All that an object holds, by attributes, containers and functions, with the way to each.

    Nothing is opened twice, nor what is of a kind that is `closed`.
    """
    opened: set[int] = set()
    waiting = [("", thing)]
    while waiting:
        path, item = waiting.pop()
        yield path, item
        if id(item) not in opened and not isinstance(item, (*closed, type, ModuleType)):
            opened.add(id(item))
            waiting += [(f"{path}.{name}", part) for name, part in _parts(item)]


def _parts(item: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(item, Mapping):
        return [*item.items(), *((f"key {place}", key) for place, key in enumerate(item))]
    if isinstance(item, np.ndarray):
        return enumerate(item.ravel()) if item.dtype == object else ()
    if isinstance(item, GeneratorType):
        return item.gi_frame.f_locals.items() if item.gi_frame else ()
    if isinstance(item, list | tuple | set | frozenset | deque):
        return enumerate(item)
    if isinstance(item, partial):
        return enumerate((item.func, item.args, item.keywords))
    if isinstance(item, MethodType):
        return [("self", item.__self__)]
    if isinstance(item, FunctionType):
        held = [*(item.__defaults__ or ()), *(item.__kwdefaults__ or {}).values()]
        for cell in item.__closure__ or ():
            with suppress(ValueError):  # it is empty
                held.append(cell.cell_contents)
        return enumerate(held)
    slots = [name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())]
    inside = [(name, getattr(item, name)) for name in slots if hasattr(item, name)]
    return [*inside, *getattr(item, "__dict__", {}).items()]


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
