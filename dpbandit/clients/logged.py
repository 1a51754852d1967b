"""Logs from a table of the user's, or recorded on an environment of ours."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpbandit.agents import Uniform
from dpbandit.arrays import Floats
from dpbandit.clients.answers import two_numbers
from dpbandit.evaluate import ProblemMaker, problem_maker
from dpbandit.inputs import BadInput
from dpbandit.logs import Logged, one_kind
from dpbandit.protocols import ContextualSpec, fits
from dpbandit.streams import Streams


def read_log(
    table: Any,
    *,
    action: str,
    reward: str,
    propensity: str | float | None = None,
    context: Sequence[str] = (),
    arms: Sequence[Any] | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    context_bound: float = 1.0,
    lowest: float | None = None,
) -> Logged:
    """Named columns of a table, a DataFrame or a mapping from names to columns, as `Logged`.

    Args:
        table: one row for each round.
        action, reward: names of columns.
        propensity: the name of a column, or one number: the probability with which the action was
            drawn. None: all arms were equally likely.
        context: names of columns, the features; without any, the constant 1.
        arms: what was on offer, in order: arm k is `arms[k]`. None: all that occur,
            sorted, taken as public and complete; say arms where one may never have been drawn.
        reward_range, context_bound: public bounds, for agents that replay the log.
        lowest: see `Logged`.

    Raises:
        BadInput: a column that is missing or holds no numbers, an action that is missing or no arm,
            an arm twice, or what `Logged` refuses.

    >>> table = {"age": [0.1, 0.9], "shown": ["b", "a"], "click": [0, 1]}        # or a DataFrame
    >>> logged = read_log(table, context=["age"], action="shown", reward="click")
    >>> logged.action.tolist(), logged.context.tolist(), logged.propensity.tolist()
    ([1, 0], [[0.1], [0.9]], [0.5, 0.5])
    """
    played = one_kind(f"column {action!r}", _column(table, action))
    offered = sorted(set(played)) if arms is None else list(arms)
    if twice := [arm for k, arm in enumerate(offered) if arm in offered[:k]]:
        raise BadInput(f"Expected every arm once in arms={offered}, got {twice[0]!r} twice.")
    if unknown := [arm for arm in played if arm not in offered]:
        raise BadInput(f"Expected only actions among arms={offered}, got {unknown[0]!r}.")
    low, high = two_numbers("reward_range", reward_range)
    features = [_numbers(table, name) for name in context] or [np.ones(len(played))]
    spec = ContextualSpec(
        n_actions=len(offered),
        dim=len(features),
        horizon=max(1, len(played)),
        reward_low=low,
        reward_high=high,
        context_bound=context_bound,
        link="other",
    )
    if isinstance(propensity, str):
        chance: Floats | float = _numbers(table, propensity)
    else:
        chance = 1 / len(offered) if propensity is None else propensity
    return Logged(
        spec=spec,
        context=np.stack(features, axis=1),
        action=np.array([offered.index(arm) for arm in played], dtype=np.int64),
        reward=_numbers(table, reward),
        propensity=chance,
        lowest=lowest,
    )


def record(
    env: str | ProblemMaker,
    *,
    horizon: int,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
) -> Logged:
    """A log of uniform play on an environment with finitely many arms and no delay.

    `env` is an id, or anything else that `compare` takes.

    >>> logged = record("OJPricing", horizon=50)
    >>> logged.context.shape, logged.reward.shape, logged.spec.n_actions
    ((50, 3), (50,), 12)
    """
    problem = problem_maker(env)(**{**(env_kwargs or {}), "horizon": horizon})
    player, streams = Uniform(), Streams([seed])
    spec = fits(player, problem.spec, ContextualSpec)
    if spec.delay:
        raise BadInput(f"Expected delay={spec.delay} to be 0: a log has every reward in its row.")
    problem.reset(streams.child("environment"))
    agent = player.make(spec, streams.child("agent"))
    rounds = []
    for _ in range(horizon):
        context = problem.context()
        action = agent.act(context)
        rounds.append((context[0].copy(), action[0], problem.step(action).reward[0]))
    contexts, actions, rewards = zip(*rounds, strict=True)
    return Logged(
        spec=spec,
        context=np.stack(contexts),
        action=np.array(actions),
        reward=np.array(rewards),
        propensity=1 / spec.n_actions,
    )


def _column(table: Any, name: str) -> Any:
    if name not in table:
        raise BadInput(f"Expected a column {name!r}, the table has {list(table)}.")
    return table[name]


def _numbers(table: Any, name: str) -> Floats:
    column = _column(table, name)
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"Expected column {name!r} to hold numbers.") from None
