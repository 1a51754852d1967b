"""Logs of the simulator, with propensities that are true."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from dpbandit.agents import Uniform
from dpbandit.base.arrays import rows
from dpbandit.base.inputs import InputError, inside, named
from dpbandit.base.random_streams import Streams
from dpbandit.offline.logged_lists import LoggedLists
from dpbandit.offline.logged_prices import LoggedPrices
from dpbandit.offline.logs import Logged
from dpbandit.running.given import AnyAgent, ProblemMaker, agent_given, problem_maker
from dpbandit.specs.contract import begin, made_agent
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, Hindsight, PriceSpec, fits


def record(
    env: str | ProblemMaker,
    *,
    horizon: int,
    agent: AnyAgent | None = None,
    explore: float = 0.1,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
) -> Logged | LoggedPrices | LoggedLists:
    """A log of uniform play on an environment without delay, or of an agent that explores.

    With an agent, every arm is drawn with probability `explore` / K besides the agent's own, which
    has 1 - `explore` more; it learns from what was played. The log is then `adaptive`, and holds
    the `probabilities` of all arms.

    Args:
        env: an id, or anything else that `compare` takes.
        horizon: rows.
        agent: a config, or an id with settings, for finitely many arms. None: uniform play, of
            arms, prices from a continuum or lists.
        explore: in (0, 1], with an agent.
        seed: of users, of the agent and of exploration.
        env_kwargs: further arguments of the environment.

    Raises:
        InputError: an environment with delay, or whose actions are others; an agent that does not
            fit, or that asks for hindsight.

    >>> logged = record("OJPricing", horizon=50)
    >>> logged.context.shape, logged.reward.shape, logged.spec.n_actions
    ((50, 3), (50,), 12)
    >>> logged = record("OJPricing", horizon=50, agent="linucb", explore=0.24)
    >>> sorted(set(logged.propensity.round(2).tolist())), logged.adaptive
    ([0.02, 0.78], True)
    """
    named("env_kwargs", env_kwargs or {})
    problem = problem_maker(env)(**{**(env_kwargs or {}), "horizon": horizon})
    config = Uniform() if agent is None else agent_given(agent)
    if isinstance(config, Hindsight):
        raise InputError(f"Expected an agent that learns, got {config}: there is no hindsight yet.")
    spec = fits(config, problem.spec, BanditSpec if agent is None else ContextualSpec)
    if spec.delay:
        raise InputError(f"Expected delay={spec.delay} to be 0: a log has every reward in its row.")
    if not isinstance(spec, ContextualSpec | PriceSpec | ListSpec):
        raise InputError(f"Expected arms, prices or lists to log, got a {type(spec).__name__}.")
    inside("explore", explore, 0, 1, ends=True)
    if not explore:
        raise InputError("Expected explore=0 to be above 0: a log needs actions drawn at random.")
    streams = Streams([seed])
    begin(problem, streams)
    player = made_agent(config, spec, streams.child("agent"))
    luck, every = streams.uniforms("exploration of a log", 2), rows(getattr(spec, "n_actions", 1))
    found: list[tuple[Any, ...]] = []
    for _ in range(horizon):
        context = problem.context().copy()
        action, law = player.act(context), None
        if agent is not None:
            law = (1 - explore) * (every == action[:, None]) + explore / len(every)
            coin, arm = luck()[0]
            action = np.where(coin < explore, int(arm * len(every)), action)
        step = problem.step(action)
        told = step.reward if step.datum is None else step.datum
        player.update(context, action, told)
        found.append(
            (context[0], np.array(action[0]), told[0].copy(), None if law is None else law[0])
        )
    contexts, actions, answers, laws = (list(column) for column in zip(*found, strict=True))
    kept: dict[str, Any] = {"context": np.stack(contexts), "adaptive": agent is not None}
    if isinstance(spec, ListSpec):
        return _lists(spec, np.array(actions), np.stack(answers), **kept)
    if isinstance(spec, PriceSpec):
        density = np.full(horizon, 1 / (spec.high - spec.low))
        return LoggedPrices(
            spec=spec, price=np.array(actions), reward=np.array(answers), density=density, **kept
        )
    arms = np.array(actions)
    known: dict[str, Any] = {"propensity": 1 / spec.n_actions}
    if agent is not None:
        table = np.stack(laws)
        known = {
            "propensity": table[rows(horizon), arms],
            "probabilities": table,
            "lowest": explore / spec.n_actions,
        }
    return Logged(spec=spec, action=arms, reward=np.array(answers), **kept, **known)


def _lists(spec: ListSpec, items: Any, clicks: Any, **kept: Any) -> LoggedLists:
    """Of uniform lists, N (N - 1) ... of which begin with the same k items."""
    N, m = spec.n_items, spec.length
    prefix = [1 / prod(range(N - k, N + 1)) for k in range(m)]
    return LoggedLists(
        n_items=N,
        items=items,
        clicks=clicks,
        prefix=np.tile(prefix, (len(items), 1)),
        marginal=np.full(items.shape, 1 / N),
        **kept,
    )
