"""Record logs of the simulator."""

from collections.abc import Mapping
from math import prod
from typing import Any, cast

import numpy as np

from dpbandit.agents import Uniform
from dpbandit.base import InputError, Streams, inside, named, random_allowed, rows
from dpbandit.offline.logs import Logged, LoggedLists, LoggedPrices
from dpbandit.running.environments import ProblemMaker, problem_maker
from dpbandit.running.resolve import AnyAgent, resolve_agent
from dpbandit.specs import BanditSpec, ContextualSpec, Hindsight, acted, begin, fits, made_agent
from dpbandit.specs.lists import ListSpec


def record(
    env: str | ProblemMaker,
    *,
    horizon: int,
    agent: AnyAgent | None = None,
    explore: float = 0.1,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
) -> Logged | LoggedPrices | LoggedLists:
    """Record a log of uniform play on an environment, or of an agent that explores.

    With an agent, every arm is drawn with probability `explore` / K, and the agent's choice with
    probability 1 - `explore` more; the agent learns from the arm drawn. The log is then `adaptive`,
    and holds the `probabilities` of all arms.

    Args:
        env: an id, or another form of an environment that `compare` takes.
        horizon: number of rows.
        agent: a config, or an id with settings, for finitely many arms. None: uniform play, of
            arms, prices from a continuum or lists.
        explore: share of exploration in (0, 1], with an agent.
        seed: random seed of users, of the agent and of exploration.
        env_kwargs: further arguments of the environment.

    Raises:
        InputError: an environment with delay, or without arms, prices or lists; an agent that does
            not fit, or that needs hindsight.

    >>> logged = record("OJPricing", horizon=50)
    >>> logged.context.shape, logged.reward.shape, logged.spec.n_actions
    ((50, 3), (50,), 12)
    >>> logged = record("OJPricing", horizon=50, agent="linucb", explore=0.24)
    >>> sorted(set(logged.propensity.round(2).tolist())), logged.adaptive
    ([0.02, 0.78], True)
    """
    named("env_kwargs", env_kwargs or {})
    problem = problem_maker(env)(**{**(env_kwargs or {}), "horizon": horizon})
    config = Uniform() if agent is None else resolve_agent(agent)
    if isinstance(config, Hindsight):
        raise InputError(f"Expected an agent that learns, got {config}: there is no hindsight yet.")
    spec: Any = fits(
        config, problem.spec, BanditSpec if agent is None else ContextualSpec, shared=True
    )
    if spec.delay:
        raise InputError(f"Expected delay={spec.delay} to be 0: a log has every reward in its row.")
    if spec.feedback_name not in (None, "clicks"):
        raise InputError(f"Expected arms, prices or lists to log, got a {type(spec).__name__}.")
    inside("explore", explore, 0, 1, ends=True)
    if not explore:
        raise InputError("Expected explore=0 to be above 0: a log needs actions drawn at random.")
    masked = spec.masks != "none"
    if masked and spec.n_arms is None:
        raise InputError("Expected lists whose items are always there: a log of others has no law.")
    streams = Streams([seed])
    begin(problem, streams)
    player = made_agent(config, spec, streams.child("agent"))
    uniforms, every = (
        streams.uniforms("exploration of a log", 2),
        rows(getattr(spec, "n_actions", 1)),
    )
    found: list[tuple[Any, ...]] = []
    for _ in range(horizon):
        context, world = problem.context().copy(), cast(Any, problem)
        mask = world.mask() if masked else None
        action, law = acted(player, context, mask), None
        there = np.ones((1, len(every)), np.bool_) if mask is None else mask
        if agent is not None:
            law = (1 - explore) * (every == action[:, None])
            law = law + explore * there / np.count_nonzero(there)
            coin, arm = uniforms()[0]
            action = np.where(coin < explore, random_allowed(np.array([arm]), there), action)
        elif masked:
            law = there / np.count_nonzero(there)
        step = problem.step(action)
        feedback = step.reward if step.datum is None else step.datum
        player.update(context, action, feedback)
        found.append(
            (context[0], np.array(action[0]), feedback[0].copy(), None if law is None else law[0])
        )
    contexts, actions, answers, laws = (list(column) for column in zip(*found, strict=True))
    recorded: dict[str, Any] = {"context": np.stack(contexts), "adaptive": agent is not None}
    if spec.feedback_name == "clicks":
        return _uniform_lists(spec, np.array(actions), np.stack(answers), **recorded)
    if spec.n_arms is None:
        density = np.full(horizon, 1 / (spec.high - spec.low))
        return LoggedPrices(
            spec=spec,
            price=np.array(actions),
            reward=np.array(answers),
            density=density,
            **recorded,
        )
    arms = np.array(actions)
    known: dict[str, Any] = {"propensity": 1 / spec.n_actions}
    if agent is not None or masked:
        table = np.stack(laws)
        known = {
            "propensity": table[rows(horizon), arms],
            "probabilities": table,
            "lowest": (1.0 if agent is None else explore) / spec.n_actions,
        }
    return Logged(spec=spec, action=arms, reward=np.array(answers), **recorded, **known)


def _uniform_lists(spec: ListSpec, items: Any, clicks: Any, **recorded: Any) -> LoggedLists:
    N, m = spec.n_items, spec.length
    # k items can be drawn, in order, in N (N - 1) ... (N - k + 1) ways
    prefix = [1 / prod(range(N - k, N + 1)) for k in range(m)]
    return LoggedLists(
        n_items=N,
        items=items,
        clicks=clicks,
        prefix=np.tile(prefix, (len(items), 1)),
        marginal=np.full(items.shape, 1 / N),
        **recorded,
    )
