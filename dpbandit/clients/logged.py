"""Logs from a table of the user's, or recorded on an environment of ours."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from dpbandit.agents import Uniform
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, reals
from dpbandit.base.random_streams import Streams
from dpbandit.clients.answers import two_numbers
from dpbandit.offline.logs import Logged, one_kind
from dpbandit.running.environments import ProblemMaker, problem_maker
from dpbandit.specs.outside import scaled
from dpbandit.specs.protocols import MOST_OUTSIDE, ContextualSpec, fits


def read_log(
    table: Any,
    *,
    action: str,
    reward: str,
    propensity: str | float | None = None,
    context: Sequence[str] | Mapping[str, tuple[float, float]] = (),
    arms: Sequence[Any] | None = None,
    reward_range: tuple[float, float] | None = None,
    context_bound: float | None = None,
    lowest: float | None = None,
    most_outside: float = MOST_OUTSIDE,
) -> Logged:
    """Named columns of a table, a DataFrame or a mapping from names to columns, as `Logged`.

    Args:
        table: one row for each round.
        action, reward: names of columns.
        propensity: the name of a column, or one number: the probability with which the action was
            drawn. None: all arms were equally likely.
        context: the features. Names of columns and their public ranges, `{"age": (18, 90)}`: the
            context is (1, columns scaled to [-1, 1]) / sqrt(1 + their number). Or names alone: the
            columns as they are, without a 1 in front, whose `context_bound` has to be said. Or
            nothing: the constant 1.
        arms: what was on offer, in order: arm k is `arms[k]`. None: all that occur,
            sorted, taken as public and complete; say arms where one may never have been drawn.
        reward_range: (low, high), public bounds on rewards.
        context_bound: a public bound on the Euclidean norm of the columns in `context`, taken as
            they are.
        lowest: see `Logged`.
        most_outside: the share of contexts, and of rewards, that may lie outside their bounds.

    Bounds and ranges have to be told because they have to be public: known before the log was.

    Raises:
        InputError: a column that is missing or holds no numbers, a bound or range that is missing,
            an action that is missing or no arm, an arm twice, or what `Logged` refuses.

    >>> table = {"age": [34, 71], "shown": ["b", "a"], "click": [0, 1]}          # or a DataFrame
    >>> columns = {"context": {"age": (18, 90)}, "action": "shown", "reward": "click"}
    >>> logged = read_log(table, **columns, reward_range=(0, 1))
    >>> logged.action.tolist(), logged.context.round(2).tolist(), logged.propensity.tolist()
    ([1, 0], [[0.71, -0.39], [0.71, 0.33]], [0.5, 0.5])
    """
    played = one_kind(f"column {action!r}", _column(table, action))
    offered = sorted(set(played)) if arms is None else list(arms)
    if twice := [arm for k, arm in enumerate(offered) if arm in offered[:k]]:
        raise InputError(f"Expected every arm once in arms={offered}, got {twice[0]!r} twice.")
    if unknown := [arm for arm in played if arm not in offered]:
        raise InputError(f"Expected only actions among arms={offered}, got {unknown[0]!r}.")
    low, high = two_numbers("reward_range", reward_range)
    shown = _features(table, context, context_bound, len(played), most_outside)
    spec = ContextualSpec(
        n_actions=len(offered),
        dim=shown.rows.shape[1],
        horizon=max(1, len(played)),
        reward_low=low,
        reward_high=high,
        context_bound=shown.bound,
        most_outside=most_outside,
        link="other",
    )
    if isinstance(propensity, str):
        chance: Floats | float = _numbers(table, propensity)
    else:
        chance = 1 / len(offered) if propensity is None else propensity
    logged = Logged(
        spec=spec,
        context=shown.rows,
        action=np.array([offered.index(arm) for arm in played], dtype=np.int64),
        reward=_numbers(table, reward),
        propensity=chance,
        lowest=lowest,
    )
    if shown.clipped:  # by its columns' ranges, so that nothing is left to clip
        logged.outside = replace(logged.outside, contexts=shown.clipped)
    return logged


class _Features(NamedTuple):
    """Contexts, and a public bound on their norm."""

    rows: Floats
    """(n, dim)"""
    bound: float
    clipped: int
    """rows that lay outside the ranges of their columns"""


def _features(
    table: Any,
    context: Sequence[str] | Mapping[str, tuple[float, float]],
    bound: float | None,
    n: int,
    most_outside: float,
) -> _Features:
    if not context:
        return _Features(np.ones((n, 1)), 1.0 if bound is None else bound, 0)
    x = np.stack([_numbers(table, name) for name in context], axis=1)  # (n, d)
    if not isinstance(context, Mapping):
        if bound is None:
            raise InputError(
                f"Expected context={list(context)} to come with public ranges, as in context="
                f"{{{context[0]!r}: (low, high)}}, or context_bound=None to be a number > 0, a "
                "public bound on the norm of these columns."
            )
        return _Features(x, bound, 0)
    if bound is not None:
        raise InputError(f"Expected no context_bound={bound} beside ranges, which have a bound.")
    ranges = [two_numbers(f"context[{name!r}]", ends) for name, ends in context.items()]
    low, high = np.array(ranges).T
    if not ((low < high) & np.isfinite(high - low)).all():
        raise InputError(f"Expected context={dict(context)} to be ranges (low, high), low < high.")
    names = [f"column {name!r}" for name in context]
    x, beyond = scaled(x, low, high, names, most_outside=most_outside)
    rows = np.column_stack([np.ones(n), x]) / sqrt(1 + len(context))
    return _Features(rows, 1.0, int(beyond.sum()))


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
        raise InputError(f"Expected delay={spec.delay} to be 0: a log has every reward in its row.")
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
        raise InputError(f"Expected a column {name!r}, the table has {list(table)}.")
    return table[name]


def _numbers(table: Any, name: str) -> Floats:
    column = _column(table, name)
    try:
        return reals(column)
    except ValueError:
        raise InputError(f"Expected column {name!r} to hold numbers.") from None
