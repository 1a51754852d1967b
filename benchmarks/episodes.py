"""Episodes to time: a problem for every agent, its users on tape, and a floor under its time.

The floor of some rounds is what anybody would pay who does nothing but draw the same random
numbers, and make one product a round: K scores from a context where there are arms, the context
with itself where there are none. Draws are replayed row by row, a row for each replica, as
`Streams` has to.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from dpbandit.agents import AGENTS, CONTEXTUAL, CONVEX, EXPERTS, PRICING, STOCHASTIC
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Draws, Streams
from dpbandit.running.environments import problem_maker
from dpbandit.specs.protocols import AgentConfig, ContextualSpec, PriceSpec, Problem, Spec

ROUNDS, REPLICAS = 1000, 50
FAMILIES: tuple[tuple[dict[str, Any], tuple[tuple[str, dict[str, Any]], ...]], ...] = (
    (CONTEXTUAL, (("GLMBandit", {}),)),
    (PRICING, (("OJPricing", {}), ("StockPricing", {}))),
    (
        CONVEX,
        (
            ("OnlineConvex", {}),
            ("ConvexBandit", {}),
            ("OnlineConvex", {"loss": "squared"}),
            ("OnlineConvex", {"dim": 2}),
        ),
    ),
    (STOCHASTIC, (("StreamingRegression", {}), ("StreamingRegression", {"p": 1, "radius": 1.0}))),
    (EXPERTS, (("Experts", {"n_actions": 256}),)),
)
"""An agent is timed on the first problem of its family that it fits: five dimensions and five arms,
256 experts, unless it asks for something else."""


class Episode(NamedTuple):
    """What an agent was shown and told, round by round."""

    contexts: list[Any]
    told: list[Any]


def usual_problem(agent: str) -> tuple[str, dict[str, Any]]:
    """The first problem that the agent fits."""
    for family, problems in FAMILIES:
        for name, arguments in problems if agent in family else ():
            with suppress(InputError):
                AGENTS[agent]().make(problem(name, **arguments).spec, Streams([0]))
                return name, arguments
    raise LookupError(f"{agent} fits no problem of its family in benchmarks/episodes.py: add one.")


def problem(name: str, **arguments: Any) -> Problem:
    return problem_maker(name)(horizon=ROUNDS, **arguments)


def streams() -> Streams:
    return Streams([(0, r) for r in range(REPLICAS)])


def tape(made: Problem, config: AgentConfig) -> Episode:
    """An agent's episode; made again from the same streams, it acts the same and is told this."""
    root, episode = streams(), Episode([], [])
    made.reset(root.child("environment"))
    agent = config.make(made.spec, root.child("agent"))
    for _ in range(ROUNDS):
        context = made.context()
        action = agent.act(context)
        step = made.step(action)
        episode.contexts.append(context.copy())
        episode.told.append((step.reward if step.datum is None else step.datum).copy())
        agent.update(context, action, episode.told[-1])
    return episode


def listen(agent: Any, episode: Episode) -> None:
    """The whole episode, the agent alone."""
    for context, told in zip(*episode, strict=True):
        agent.update(context, agent.act(context), told)


def serve(made: Problem, action: Any) -> None:
    """The whole episode, the environment alone."""
    for _ in range(ROUNDS):
        made.context()
        made.step(action)


def any_action(spec: Spec) -> Any:
    if isinstance(spec, PriceSpec):
        return np.full(REPLICAS, (spec.low + spec.high) / 2)
    if hasattr(spec, "n_actions"):
        return np.zeros(REPLICAS, dtype=np.int64)
    return np.tile(spec.loss.domain.centre, (REPLICAS, 1))


def floor_of(work: Callable[[], Any], spec: Spec) -> Callable[[], float]:
    """What measures the floor under `work`, in CPU-seconds."""
    with watched() as drawn:
        work()

    def draw_and_multiply() -> float:
        rng, start = np.random.Generator(np.random.SFC64(0)), time.process_time()
        for law, parameters, (rows, *shape) in drawn:
            draw = getattr(rng, law)
            for _ in range(rows):
                draw(*parameters, size=shape)
        context, weights = _operands(spec)
        product = np.vecdot if context.shape == weights.shape else np.matvec
        for _ in range(ROUNDS):
            product(weights, context)
        return time.process_time() - start

    return draw_and_multiply


@contextmanager
def watched() -> Iterator[list[tuple[str, tuple[Any, ...], tuple[int, ...]]]]:
    """Every block of random numbers that is drawn: its law, its parameters, its shape."""
    drawn, original = [], Draws.fill

    def fill(self: Draws, block: Any) -> None:
        drawn.append((self._laws[0][1], self._parameters, block.shape))
        original(self, block)

    Draws.fill = fill  # type: ignore[method-assign]
    try:
        yield drawn
    finally:
        Draws.fill = original  # type: ignore[method-assign]


def _operands(spec: Spec) -> tuple[Any, Any]:
    context = np.ones((REPLICAS, *spec.context_shape))
    if not isinstance(spec, ContextualSpec):
        return context, context
    if spec.shared:
        return np.ones((REPLICAS, spec.dim)), context
    return context, np.ones((REPLICAS, spec.n_actions, spec.dim))
