"""Turn columns of a table into the contexts, arms and rewards of a log."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from dpbandit.base import Floats, InputError, abbrev, at_least, two_numbers, vector
from dpbandit.offline.columns import (
    Bounds,
    answers,
    as_long,
    at_most_units,
    column,
    cost_range,
    counts,
    features,
    numbers,
    one_kind,
    places,
    unit_of,
)
from dpbandit.offline.logs import Observed
from dpbandit.offline.tables import index_of_rows, read_table, warn_of
from dpbandit.specs import ContextualSpec, CostSpec, PriceListSpec, Tally


def table_of(table: Any, reading: Any, columns: Any, answers: Sequence[Any]) -> Any:
    """Return a table as `read_table` reads it, with warnings of rows dropped or repeated."""
    found, notes = read_table(table, reading, columns=columns, answers=answers)
    warn_of(notes)
    return found


class Contexts(NamedTuple):
    """Contexts of a log, and a public bound on their norm."""

    rows: Floats
    """contexts, (n, dim)"""
    bound: float
    clipped: int
    """number of rows outside the ranges of their columns"""
    names: tuple[str, ...] = ()
    """names of the features after the constant, if columns are scaled"""


def contexts_in(
    table: Any, context: Sequence[str] | Bounds, bound: float | None, n: int, most_outside: float
) -> Contexts:
    """Return the contexts of n rows from the columns that `context` names, see `read_log`."""
    if not context:
        return Contexts(np.ones((n, 1)), 1.0 if bound is None else bound, 0)
    if isinstance(context, Mapping):
        if bound is not None:
            raise InputError(
                f"Expected no context_bound={abbrev(bound)} beside ranges, which have a bound."
            )
        found = features(table, context, called="context", rows=n, most_outside=most_outside)
        return Contexts(found.context, 1.0, found.any_outside, found.names)
    columns = stacked(table, context)
    if bound is None:
        raise InputError(
            f"Expected context={list(context)} to come with public ranges, as in context="
            f"{{{context[0]!r}: (low, high)}}, or context_bound=None to be a number > 0, a "
            "public bound on the norm of these columns."
        )
    return Contexts(columns, bound, 0)


def stacked(table: Any, names: Sequence[str]) -> Floats:
    """Return columns of numbers as a matrix, (n, len(names))."""
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray) or not len(names):
        raise InputError(f"Expected a list of names of columns, got {abbrev(names)}.")
    columns = [numbers(table, name) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise InputError(f"Expected columns {abbrev(list(names))} to hold one entry for each row.")
    return np.stack(columns, axis=1)


class Earned(NamedTuple):
    """Arguments of `read_log` that say what a row earned."""

    reward: str | None
    sold: str | None
    units: str | None
    at_most: int | None
    prices: Sequence[float] | None
    unit_cost: float | str | None
    unit: str
    reward_range: tuple[float, float] | None


class ObservedArms(NamedTuple):
    """Contents of a table with arms, except propensities."""

    table: Any
    arms: dict[str, Any]
    """arguments of `Observed` by name"""
    contexts: int
    """number of contexts that were clipped to ranges of their columns"""
    rewards: int
    """number of rows whose units were clipped"""


def read_arms(
    table: Any,
    action: str,
    context: Sequence[str] | Bounds,
    arms: Sequence[Any] | None,
    earned: Earned,
    context_bound: float | None,
    most_outside: float,
    reading: Mapping[str, Any],
    others: Sequence[Any],
) -> ObservedArms:
    """Read the arms, contexts and rewards of a table; `others` are columns read by the caller."""
    answer = earned.reward if earned.sold is None else earned.sold
    table = table_of(table, reading, [action, context, earned.units, *others], [answer])
    priced, prices = _priced(arms, earned, context), earned.prices
    played = one_kind(f"column {action!r}", column(table, action))
    offered = list(prices) if prices is not None else sorted(set(played)) if arms is None else arms
    if isinstance(offered, str) or not isinstance(offered, Iterable):
        raise InputError(f"Expected arms={abbrev(offered)} to list what was on offer.")
    if not played:
        raise InputError("Expected at least one logged round.")
    offered = list(offered)
    if arms is None and prices is None and len(offered) < 2:
        raise InputError(f"Expected arms=, what was on offer: {offered[0]!r} is all that occurs.")
    called = "prices" if priced else "arms"
    arm = places(played, offered, f"{called}={abbrev(offered)}")
    if (arm < 0).any():
        unknown = played[int((arm < 0).argmax())]
        raise InputError(f"Expected only actions among {called}={offered}, got {unknown!r}.")
    sales, beyond = _sales(table, earned, bool(priced), len(arm), most_outside)
    reward_range = earned.reward_range
    if priced and reward_range is None:
        most = max(price - priced["costs"][0] for price in priced["prices"])
        reward_range = (0.0, priced["most_units"] * most)
    low, high = two_numbers("reward_range", reward_range)
    seen = contexts_in(table, context, context_bound, len(played), most_outside)
    facts: dict[str, Any] = {
        "dim": seen.rows.shape[1],
        "horizon": max(1, len(played)),
        "reward_low": low,
        "reward_high": high,
        "context_bound": seen.bound,
        "most_outside": most_outside,
        "reward_unit": unit_of(earned.unit),
        "link": "other",
    }
    spec = _spec_of(len(offered), priced, earned.unit_cost, seen.names, facts)
    if earned.reward is None:
        sales = spec.margins_at(seen.rows)[np.arange(len(arm)), arm] * sales
    arms_of = {"spec": spec, "context": seen.rows, "action": arm, "reward": sales}
    arms_of |= {"arms": tuple(offered), "index": index_of_rows(table)}
    return ObservedArms(table, arms_of, seen.clipped, beyond)


def _spec_of(
    K: int, priced: Mapping[str, Any], cost: Any, features: Sequence[str], facts: dict[str, Any]
) -> Any:
    """Return the spec of K arms, or of prices as `_priced` returns them."""
    if not priced:
        return ContextualSpec(n_actions=K, **facts)
    facts["most_units"] = priced["most_units"]
    if isinstance(cost, str):
        place, length = 1 + features.index(cost), sqrt(facts["dim"])
        return CostSpec.of(priced["prices"], priced["costs"], feature=place, length=length, **facts)
    low, _ = priced["costs"]
    return PriceListSpec(n_actions=K, prices=priced["prices"], unit_cost=low, **facts)


_AnyLog = TypeVar("_AnyLog", bound=Observed)


def with_clipped(log: _AnyLog, read: ObservedArms) -> _AnyLog:
    """Return the log, with contexts and units that were clipped counted as outside the bounds."""
    # after clipping, the log itself finds all of them within their bounds
    if read.contexts:
        log.outside = replace(log.outside, contexts=read.contexts)
    if read.rewards:
        log.outside = replace(log.outside, rewards=read.rewards)
    return log


def _priced(arms: Any, earned: Earned, context: Any) -> dict[str, Any]:
    """Return the prices, the range of unit costs and the largest units; {} without prices."""
    most, prices = at_most_units(earned.units, earned.at_most), earned.prices
    unit_cost = earned.unit_cost
    if prices is None and unit_cost is None:
        return {}
    if prices is None or unit_cost is None or arms is not None:
        raise InputError(
            "Expected prices=, the public list of prices, and unit_cost= together, without arms=."
        )
    listed = tuple(vector("prices", prices, None).tolist())
    if isinstance(unit_cost, str):
        costs = cost_range(unit_cost, context, "context")
        if listed and not min(listed) > costs[1]:
            raise InputError(
                f"Expected every price above the largest unit_cost={costs[1]:g} in "
                f"{unit_cost!r}, got {min(listed):g}."
            )
    else:
        at_least("unit_cost", unit_cost, 0)
        costs = (float(unit_cost), float(unit_cost))
    return {"prices": listed, "costs": costs, "most_units": most}


def _sales(
    table: Any, earned: Earned, priced: bool, n: int, most_outside: float
) -> tuple[Floats, int]:
    """Return rewards (n,), or the units sold in each row, and in how many these were clipped."""
    if [earned.reward, earned.sold, earned.units].count(None) != 2:
        raise InputError("Expected reward=, the name of a column, or else sold= or units=.")
    if earned.reward is not None:
        return numbers(table, earned.reward, reward=True), 0
    name = str(earned.units if earned.sold is None else earned.sold)
    if not priced:
        sales = "units" if earned.sold is None else "sold"
        raise InputError(f"Expected prices= and unit_cost= with {sales}={name!r}.")
    if earned.units is None:
        return as_long(answers(table, name), n, name), 0
    units, most = as_long(counts(table, name), n, name), cast(int, earned.at_most)
    where, advice = f"above at_most={most}", "say a larger public limit"
    beyond = Tally(f"entries of {name!r}", where, advice, users=n, most_outside=most_outside)
    beyond.add((units > most)[:, None], units[:, None])
    return np.minimum(units, most), int(beyond.counts[0])
