"""Episodes to time: a problem for every agent, recorded users, and a lower bound on its time.

The lower bound ("floor") is the time of a program that only draws the same random numbers and
computes one product per round: the scores of all arms, products or items for a context, or the
context with itself if there are none. Draws are repeated replica by replica, as in `Streams`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dpbandit.base import Draws, Streams
from dpbandit.running.environments import problem_maker
from dpbandit.specs import AgentConfig, Problem, Spec
from tests.harness import fitting

ROUNDS, REPLICAS = 1000, 50
"""Numbers of rounds and replicas of an episode; `conftest.py` reduces them if nothing is timed."""
PROBLEMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("GLMBandit", {}),
    ("GLMBandit", {"shared": True}),
    ("GLMBandit", {"shared": True, "link": "logistic"}),
    ("OJPricing", {}),
    ("StockPricing", {}),
    ("AssortmentBandit", {}),
    ("ListRecommendation", {}),
    ("ReturningUsers", {}),
    ("ReturningPricing", {}),
    ("OnlineConvex", {}),
    ("ConvexBandit", {}),
    ("OnlineConvex", {"loss": "squared"}),
    ("OnlineConvex", {"dim": 2}),
    ("StreamingRegression", {}),
    ("StreamingRegression", {"p": 1, "radius": 1.0}),
    ("Experts", {"n_actions": 256}),
)
"""Environments with arguments, at least one of each kind; an agent is timed on the first that it
fits. The default sizes are five dimensions and five arms."""


class Episode(NamedTuple):
    """Recorded contexts and feedback of an agent on a problem, two lists with a value per round."""

    contexts: list[Any]
    feedback: list[Any]


def usual_problem(agent: Any) -> tuple[AgentConfig, str, dict[str, Any]]:
    """Return a config of the agent that fits a problem, and the first such problem."""
    config, spec = fitting(agent, _specs())
    return config, *PROBLEMS[_specs().index(spec)]


@cache
def _specs() -> tuple[Spec, ...]:
    return tuple(problem(name, **arguments).spec for name, arguments in PROBLEMS)


def problem(name: str, **arguments: Any) -> Problem:
    return problem_maker(name)(horizon=ROUNDS, **arguments)


def streams() -> Streams:
    return Streams([(0, r) for r in range(REPLICAS)])


def tape(made: Problem, config: AgentConfig) -> Episode:
    """Play and record an episode; an agent made from the same streams repeats the actions."""
    root, episode = streams(), Episode([], [])
    made.reset(root.child("environment"))
    agent = config.make(made.spec, root.child("agent"))
    for _ in range(ROUNDS):
        context = made.context()
        action = agent.act(context)
        step = made.step(action)
        episode.contexts.append(context.copy())
        episode.feedback.append((step.reward if step.datum is None else step.datum).copy())
        agent.update(context, action, episode.feedback[-1])
    return episode


def listen(agent: Any, episode: Episode) -> None:
    """Let the agent act and learn on a recorded episode, without an environment."""
    for context, feedback in zip(*episode, strict=True):
        agent.update(context, agent.act(context), feedback)


def serve(made: Problem, action: Any) -> None:
    """Play all rounds of the environment with a constant action, without an agent."""
    for _ in range(ROUNDS):
        made.context()
        made.step(action)


def any_action(spec: Spec) -> Any:
    return spec.validate(np.array([spec.default_action] * REPLICAS), REPLICAS)


def floor_of(work: Callable[[], Any], spec: Spec) -> Callable[[], float]:
    """Return a function that measures the lower bound on the time of `work`, in CPU-seconds."""
    with recorded_draws() as drawn:
        work()

    def draw_and_multiply() -> float:
        rng, start = np.random.Generator(np.random.SFC64(0)), time.process_time()
        for law, parameters, settings, times in drawn:
            draw = getattr(rng, law)
            for _ in range(times):
                draw(*parameters, **settings)
        context, weights = _operands(spec)
        product = np.vecdot if context.shape == weights.shape else np.matvec
        for _ in range(ROUNDS):
            product(weights, context)
        return time.process_time() - start

    return draw_and_multiply


_Drawn: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any], int]
"""Call of a random generator: method, positional and keyword arguments, times it is called."""


class _RecordedGenerator:
    """Random generator that appends each call of its methods to a list."""

    def __init__(self, generator: np.random.Generator, drawn: list[_Drawn]) -> None:
        self._generator, self._drawn = generator, drawn

    def __getattr__(self, law: str) -> Callable[..., Any]:
        draw = getattr(self._generator, law)

        def noted(*parameters: Any, **settings: Any) -> Any:
            self._drawn.append((law, parameters, settings, 1))
            return draw(*parameters, **settings)

        return noted


@contextmanager
def recorded_draws() -> Iterator[list[_Drawn]]:
    """Context manager that records the draws that code in its body makes from random streams."""
    drawn: list[_Drawn] = []
    fill, generators = Draws.fill, Streams.generators

    def noted_fill(self: Draws, block: Any) -> None:
        rows, *shape = block.shape
        drawn.append((self._laws[0][1], self._parameters, {"size": shape}, rows))
        fill(self, block)

    def noted_generators(self: Streams, name: str) -> Any:
        return [_RecordedGenerator(one, drawn) for one in generators(self, name)]

    Draws.fill, Streams.generators = noted_fill, noted_generators  # type: ignore[method-assign]
    try:
        yield drawn
    finally:
        Draws.fill, Streams.generators = fill, generators  # type: ignore[method-assign]


def _operands(spec: Any) -> tuple[Any, Any]:
    spec = getattr(spec, "visit", spec)
    context = np.ones((REPLICAS, *spec.context_shape))
    if spec.feedback_name == "clicks":
        return context, np.ones((REPLICAS, spec.n_items, spec.dim))
    if hasattr(spec, "row_dim"):
        context = spec.rows(context).reshape(REPLICAS, -1, spec.row_dim)
    elif spec.n_arms is None:
        return context, context
    elif not spec.shared:
        return context, np.ones((REPLICAS, spec.n_actions, spec.dim))
    return np.ones((REPLICAS, context.shape[-1])), context
