"""Logs from a table of the user's."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, at_least, shown, vector
from dpbandit.clients.answers import two_numbers
from dpbandit.clients.log_contexts import contexts_in, stacked
from dpbandit.offline.columns import Bounds, answers, column, numbers, table_of
from dpbandit.offline.logs import Logged, one_kind
from dpbandit.specs.protocols import MOST_OUTSIDE, ContextualSpec, PriceListSpec


def read_log(
    table: Any,
    *,
    action: str,
    reward: str | None = None,
    sold: str | None = None,
    propensity: str | float | None = None,
    context: Sequence[str] | Bounds = (),
    arms: Sequence[Any] | None = None,
    prices: Sequence[float] | None = None,
    unit_cost: float | None = None,
    reward_range: tuple[float, float] | None = None,
    context_bound: float | None = None,
    lowest: float | None = None,
    probabilities: Sequence[str] | None = None,
    adaptive: bool = False,
    most_outside: float = MOST_OUTSIDE,
) -> Logged:
    """Named columns of a table as `Logged`; `print` it for how many rows lay outside the bounds.

    Args:
        table: one row for each round: a DataFrame, a mapping from names to columns, or the path of
            a .csv or .parquet file.
        action, reward: names of columns.
        sold: in place of `reward` where arms are prices: the name of a column of 0 and 1. The
            reward is then the margin, price - unit cost, of a sale.
        propensity: the name of a column, or one number: the probability with which the action was
            drawn. None: all arms were equally likely.
        context: the features. Names of columns and their public bounds, `{"age": (18, 90), "shop":
            ("A", "B", "C")}`: ranges are scaled to [-1, 1], levels are one-hot against the first,
            and the context is (1, features) / sqrt(1 + their number). Or names alone: the
            columns as they are, without a 1 in front, whose `context_bound` has to be said. Or
            nothing: the constant 1.
        arms: what was on offer, in order: arm k is `arms[k]`. None: all that occur,
            sorted, taken as public and complete; say arms where one may never have been drawn.
        prices, unit_cost: in place of `arms`: the arms are these prices, each above the unit cost,
            so that agents may learn demand (`model="demand"`, `Priced`). Rewards lie between 0 and
            the largest margin, unless `reward_range` says otherwise.
        reward_range: (low, high), public bounds on rewards.
        context_bound: a public bound on the Euclidean norm of the columns in `context`, taken as
            they are.
        lowest, adaptive: see `Logged`.
        probabilities: names of columns, one for each arm in order, the probability with which that
            arm could have been drawn.
        most_outside: the share of contexts, and of rewards, that may lie outside their bounds.

    Bounds, ranges and levels have to be told because they have to be public: known before the log
    was.

    Raises:
        InputError: a column that is missing, has missing entries or holds no numbers, a bound or
            range that is missing, a level or an action that was not told, an arm twice, or what
            `Logged` refuses.

    >>> table = {"age": [34, 71], "shown": ["b", "a"], "click": [0, 1]}          # or a DataFrame
    >>> columns = {"context": {"age": (18, 90)}, "action": "shown", "reward": "click"}
    >>> logged = read_log(table, **columns, reward_range=(0, 1))
    >>> logged.action.tolist(), logged.context.round(2).tolist(), logged.propensity.tolist()
    ([1, 0], [[0.71, -0.39], [0.71, 0.33]], [0.5, 0.5])
    >>> offers = {"asked": [2.0, 3.0], "bought": [1, 0]}
    >>> logged = read_log(offers, action="asked", sold="bought", prices=[2, 3], unit_cost=0.5)
    >>> logged.reward.tolist(), logged.spec.prices
    ([1.5, 0.0], (2.0, 3.0))
    """
    table = table_of(table)
    priced = _priced(arms, prices, unit_cost)
    played = one_kind(f"column {action!r}", column(table, action))
    offered = list(prices) if prices is not None else sorted(set(played)) if arms is None else arms
    if isinstance(offered, str) or not isinstance(offered, Iterable):
        raise InputError(f"Expected arms={shown(offered)} to list what was on offer.")
    if not played:
        raise InputError("Expected at least one logged round.")
    offered = list(offered)
    if arms is None and prices is None and len(offered) < 2:
        raise InputError(f"Expected arms=, what was on offer: {offered[0]!r} is all that occurs.")
    called = "prices" if priced else "arms"
    if twice := [arm for k, arm in enumerate(offered) if arm in offered[:k]]:
        raise InputError(f"Expected every arm once in {called}={offered}, got {twice[0]!r} twice.")
    if unknown := [arm for arm in played if arm not in offered]:
        raise InputError(f"Expected only actions among {called}={offered}, got {unknown[0]!r}.")
    arm = np.array([offered.index(entry) for entry in played], dtype=np.int64)
    rewards = _rewards(table, reward, sold, priced, arm)
    if priced and reward_range is None:
        reward_range = (0.0, max(price - priced["unit_cost"] for price in priced["prices"]))
    low, high = two_numbers("reward_range", reward_range)
    seen = contexts_in(table, context, context_bound, len(played), most_outside)
    spec = (PriceListSpec if priced else ContextualSpec)(
        n_actions=len(offered),
        dim=seen.rows.shape[1],
        horizon=max(1, len(played)),
        reward_low=low,
        reward_high=high,
        context_bound=seen.bound,
        most_outside=most_outside,
        link="other",
        **priced,
    )
    if isinstance(propensity, str):
        chance: Floats | float = numbers(table, propensity)
    else:
        chance = 1 / len(offered) if propensity is None else propensity
    logged = Logged(
        spec=spec,
        context=seen.rows,
        action=arm,
        reward=rewards,
        propensity=chance,
        lowest=lowest,
        probabilities=None if probabilities is None else stacked(table, probabilities),
        adaptive=adaptive,
    )
    if seen.clipped:  # by its columns' ranges, so that nothing is left to clip
        logged.outside = replace(logged.outside, contexts=seen.clipped)
    return logged


def _priced(arms: Any, prices: Any, unit_cost: float | None) -> dict[str, Any]:
    """What a `PriceListSpec` has beyond others; nothing where arms are no prices."""
    if prices is None and unit_cost is None:
        return {}
    if prices is None or unit_cost is None or arms is not None:
        raise InputError(
            "Expected prices=, the public list of prices, and unit_cost= together, without arms=."
        )
    at_least("unit_cost", unit_cost, 0)
    listed = vector("prices", prices, np.size(prices)).tolist()
    return {"prices": tuple(listed), "unit_cost": float(unit_cost)}


def _rewards(
    table: Any, reward: str | None, sold: str | None, priced: Mapping[str, Any], arm: Ints
) -> Floats:
    if (reward is None) == (sold is None):
        raise InputError("Expected reward=, the name of a column, or else sold=.")
    if reward is not None:
        return numbers(table, reward)
    if not priced:
        raise InputError(f"Expected prices= and unit_cost= with sold={sold!r}.")
    margins = np.array(priced["prices"]) - priced["unit_cost"]
    return np.asarray(margins[arm] * answers(table, str(sold)))
