"""Name the best agents for a problem, with privacy and without it, by what was measured."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any

from dpbandit.base import InputError, Streams, positive
from dpbandit.losses import Linear
from dpbandit.running.answers import chosen, nearest, ranked, same_problem
from dpbandit.running.environments import environment_label, without_defaults
from dpbandit.running.given import AnyProblem, problem_given, spec_given
from dpbandit.running.settings import agent_kind, parse_agent
from dpbandit.specs import (
    AssortmentSpec,
    ContextualSpec,
    ConvexSpec,
    ExpertsSpec,
    ListSpec,
    PriceListSpec,
    ReturningSpec,
    Spec,
    StreamSpec,
    TastesSpec,
    made_agent,
)


def recommend(
    env: Spec | AnyProblem,
    epsilon: float = 1.0,
    *,
    horizon: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> str:
    """Return the agent to start with, in the form that `compare` takes.

    On a problem of the suite it is the agent that was chosen there at the nearest epsilon (0.1, 1
    or 10), or without privacy at infinity. Elsewhere it is, of the agents that fit the problem, the
    one that costs least on the suite's problems of the same kind (geometric mean of regret over
    that of the best without privacy); it looks at public facts alone. Of FADE's models that is the
    one that `fade` chooses. Where none of our private
    agents plays, or what the world tells users about others is covered by no certificate
    (`Spec.carries`, such as "sold out"), it says uniform play, which certifies nothing there.

    Args:
        env: a spec, or a problem in any form that `compare` takes.
        epsilon: the budget; delta is the agent's default. Infinity asks for the agent without
            privacy, which every cost of privacy is told against.
        horizon: rounds of an environment; its own by default, or 10,000.
        env_kwargs: further arguments of an environment.

    >>> recommend("OJPricing"), recommend("OJPricing", float("inf"))
    ('fade:epsilon=1', 'priced:logistic-ts')
    """
    if epsilon != inf:
        positive("epsilon", epsilon)
    spec = spec_given(env, horizon=horizon, env_kwargs=env_kwargs)
    if spec.carries and epsilon < inf:
        return "uniform"
    agent = _measured(env, horizon, env_kwargs, epsilon) or _of_kind(spec, epsilon)
    return agent if agent == "uniform" or epsilon == inf else f"{agent}:epsilon={epsilon:g}"


def _measured(
    env: Spec | AnyProblem,
    horizon: int | None,
    env_kwargs: Mapping[str, Any] | None,
    epsilon: float,
) -> str | None:
    """The answer for a problem of the suite; None for another one."""
    if isinstance(env, Spec):
        return None
    given = problem_given(env, horizon=horizon, env_kwargs=env_kwargs)
    problem = same_problem(
        environment_label(given.name),
        given.arguments,
        given.arguments["horizon"],
        partial(without_defaults, given.make),
    )
    return None if problem is None else chosen()[problem, nearest(epsilon)].agent


def _of_kind(spec: Spec, epsilon: float) -> str:
    kind = kind_of(spec)
    for agent in ranked(kind.removeprefix(_CURVED), epsilon):
        if kind.startswith(_CURVED) and "parameters=halved" in agent:
            continue  # bold steps are for linear losses: on curved ones they lost more
        with suppress(InputError):
            config = parse_agent(agent, epsilon=epsilon)
            if isinstance(config, agent_kind("fade")):  # whose table looks at this problem's facts
                agent = "fade:epsilon=inf" if epsilon == inf else "fade"
                config = parse_agent(agent, epsilon=epsilon)
            made_agent(config, spec, Streams([0]))
            return agent
    return "uniform"


def kind_of(spec: Spec) -> str:
    """The kind of problem that a spec is, in words."""
    return next(
        (
            name if isinstance(name, str) else name(spec)
            for kind in type(spec).__mro__
            if (name := _KINDS.get(kind))
        ),
        "other",
    )


def _of_visits(spec: ReturningSpec) -> str:
    if isinstance(spec.visit, TastesSpec):
        return "prices for people"
    return "lists for people" if type(spec.visit) is ListSpec else "people"


def _of_points(spec: ConvexSpec) -> str:
    if spec.feedback == "datum":
        return "points by datum"
    return ("" if isinstance(spec.loss, Linear) else _CURVED) + "points by value"


def _of_arms(spec: ContextualSpec) -> str:
    alone = spec.context_shape[-1] == 1 and spec.masks != "user"  # its counts would tell of them
    return "arms" if alone else "contextual arms"


_CURVED = "curved "
_KINDS: dict[type, str | Callable[[Any], str]] = {
    ReturningSpec: _of_visits,
    AssortmentSpec: "sets",
    ListSpec: "lists",
    ExpertsSpec: "experts",
    StreamSpec: "streams",
    PriceListSpec: "prices",
    ContextualSpec: _of_arms,
    ConvexSpec: _of_points,
}
"""Spec class -> kind of problem; the most specific class of a spec counts"""
