"""Read logs from a user's table, and record logs of the simulator.

`read_open_bandit` reads the Open Bandit Dataset: Saito, Aihara, Matsutani and Narita, "Open Bandit
Dataset and Pipeline: towards realistic and reproducible off-policy evaluation", NeurIPS 2021.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod, sqrt
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from dpbandit.agents import Uniform
from dpbandit.base import (
    MOST_ACTIONS,
    Floats,
    InputError,
    Streams,
    abbrev,
    at_least,
    inside,
    named,
    random_allowed,
    rows,
    two_numbers,
    vector,
    whole,
)
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
    places,
    unit_of,
)
from dpbandit.offline.logs import Logged, LoggedLists, LoggedPrices, Observed, one_kind
from dpbandit.offline.tables import index_of_rows, read_table, warn_of
from dpbandit.running.environments import ProblemMaker, problem_maker
from dpbandit.running.resolve import AnyAgent, resolve_agent
from dpbandit.specs import (
    MOST_OUTSIDE,
    BanditSpec,
    ContextualSpec,
    CostSpec,
    Hindsight,
    PriceListSpec,
    PriceSpec,
    Tally,
    acted,
    begin,
    fits,
    made_agent,
)
from dpbandit.specs.lists import ListSpec

DEFAULT_READING: Mapping[str, Any] = {}
"""Options of `reading` for a plain table, comma separated if it is a CSV file; see `read_table`."""


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
    table: Any,
    context: Sequence[str] | Bounds,
    bound: float | None,
    n: int,
    most_outside: float,
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


def read_log(
    table: Any,
    *,
    action: str,
    reward: str | None = None,
    sold: str | None = None,
    units: str | None = None,
    at_most: int | None = None,
    propensity: str | float | None = None,
    context: Sequence[str] | Bounds = (),
    arms: Sequence[Any] | None = None,
    prices: Sequence[float] | None = None,
    unit_cost: float | str | None = None,
    reward_range: tuple[float, float] | None = None,
    context_bound: float | None = None,
    lowest: float | None = None,
    probabilities: Sequence[str] | None = None,
    adaptive: bool = False,
    most_outside: float = MOST_OUTSIDE,
    unit: str = "reward",
    reading: Mapping[str, Any] = DEFAULT_READING,
) -> Logged:
    """Read named columns of a table as `Logged`; print it to see how many rows exceed the bounds.

    Args:
        table: one row for each round: a DataFrame, a mapping from names to columns, or the path of
            a .csv or .parquet file. Series in a mapping are put in one order by their index.
        action, reward: names of columns.
        sold: in place of `reward` where arms are prices: name of a column of 0 and 1. The reward is
            then the margin, price - unit cost, of a sale.
        units, at_most: in place of `sold`: name of a column of units sold, 0 or more, and the
            public number to which they are clipped. The reward is the margin times units.
        propensity: name of a column, or one number: the probability with which the action was
            drawn. None: all arms were equally likely.
        context: the features. Names of columns and their public bounds, `{"age": (18, 90), "shop":
            ("A", "B", "C")}`: ranges are scaled to [-1, 1], levels are one-hot without the first,
            and the context is (1, features) / sqrt(1 + their number). Or names alone: the columns
            unscaled, without a 1 in front, which require `context_bound`. Or nothing: the
            constant 1.
        arms: names of the arms in order: arm k is `arms[k]`. None: all actions that occur, sorted,
            taken as public and complete; list the arms if one may never have been drawn.
        prices, unit_cost: in place of `arms`: the arms are these prices, each above the unit cost,
            so that agents may learn demand (`model="demand"`, `Priced`). Rewards lie between 0 and
            the largest margin, times `at_most`, unless there is a `reward_range`. The unit cost may
            be the name of a column with a public range in `context`, as who sets a price knows it.
        reward_range: (low, high), public bounds on rewards.
        context_bound: public bound on the Euclidean norm of unscaled columns in `context`.
        lowest, adaptive: see `Logged`.
        probabilities: names of columns, one for each arm in order, with the probability that the
            arm was drawn.
        most_outside: share of contexts, and of rewards, that may lie outside their bounds.
        unit: unit of rewards, such as "EUR", for sentences and axes.
        reading: how the table is written, such as {"sep": ";", "decimal": ",", "yes": ["ja"],
            "drop_missing": True}, see `dpbandit.offline.tables`; "yes" is for `sold`, or a `reward`
            of words.

    Bounds, ranges and levels are arguments because they have to be public, known before the log
    was recorded.

    Raises:
        InputError: a column that is missing, has missing entries or holds no numbers, a missing
            bound or range, a level or an action that is not listed, an arm twice, or a log that
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
    read = _read_arms(
        table, action, context, arms,
        _Earned(reward, sold, units, at_most, prices, unit_cost, unit, reward_range),
        context_bound, most_outside, reading, [propensity, probabilities],
    )  # fmt: skip
    if isinstance(propensity, str):
        chance: Floats | float = numbers(read.table, propensity)
    else:
        chance = 1 / read.arms["spec"].n_actions if propensity is None else propensity
    logged = Logged(
        **read.arms,
        propensity=chance,
        lowest=lowest,
        probabilities=None if probabilities is None else stacked(read.table, probabilities),
        adaptive=adaptive,
    )
    return _with_clipped(logged, read)


def read_observed(
    table: Any,
    *,
    action: str,
    reward: str | None = None,
    sold: str | None = None,
    units: str | None = None,
    at_most: int | None = None,
    context: Sequence[str] | Bounds = (),
    arms: Sequence[Any] | None = None,
    prices: Sequence[float] | None = None,
    unit_cost: float | str | None = None,
    reward_range: tuple[float, float] | None = None,
    context_bound: float | None = None,
    most_outside: float = MOST_OUTSIDE,
    unit: str = "reward",
    reading: Mapping[str, Any] = DEFAULT_READING,
) -> Observed:
    """Read named columns of a table without propensities as `Observed`.

    Args:
        table, action, reward, sold, units, at_most, context, arms: as for `read_log`.
        prices, unit_cost, reward_range, context_bound, most_outside: as for `read_log`.
        unit, reading: as for `read_log`.

    >>> table = {"age": [34, 71], "shown": ["b", "a"], "click": [0, 1]}
    >>> columns = {"context": {"age": (18, 90)}, "action": "shown", "reward": "click"}
    >>> print(read_observed(table, **columns, reward_range=(0, 1)))
    2 rounds with 2 arms, 0 of 2 contexts (0 %) and 0 rewards (0 %) outside their bounds
    """
    read = _read_arms(
        table, action, context, arms,
        _Earned(reward, sold, units, at_most, prices, unit_cost, unit, reward_range),
        context_bound, most_outside, reading, [],
    )  # fmt: skip
    return _with_clipped(Observed(**read.arms), read)


def _read(table: Any, reading: Any, columns: Any, answers: Sequence[Any]) -> Any:
    """Return a table as `read_table` reads it, with warnings of rows dropped or repeated."""
    found, notes = read_table(table, reading, columns=columns, answers=answers)
    warn_of(notes)
    return found


class _Earned(NamedTuple):
    """Arguments of `read_log` that say what a row earned."""

    reward: str | None
    sold: str | None
    units: str | None
    at_most: int | None
    prices: Sequence[float] | None
    unit_cost: float | str | None
    unit: str
    reward_range: tuple[float, float] | None


class _ObservedArms(NamedTuple):
    """Contents of a table with arms, except propensities."""

    table: Any
    arms: dict[str, Any]
    """arguments of `Observed` by name"""
    contexts: int
    """number of contexts that were clipped to ranges of their columns"""
    rewards: int
    """number of rows whose units were clipped"""


def _read_arms(
    table: Any,
    action: str,
    context: Sequence[str] | Bounds,
    arms: Sequence[Any] | None,
    earned: _Earned,
    context_bound: float | None,
    most_outside: float,
    reading: Mapping[str, Any],
    others: Sequence[Any],
) -> _ObservedArms:
    answer = earned.reward if earned.sold is None else earned.sold
    table = _read(table, reading, [action, context, earned.units, *others], [answer])
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
    return _ObservedArms(table, arms_of, seen.clipped, beyond)


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


def _with_clipped(log: _AnyLog, read: _ObservedArms) -> _AnyLog:
    """Return the log, with contexts and units that were clipped counted as outside the bounds."""
    # after clipping, the log itself finds all of them within their bounds
    if read.contexts:
        log.outside = replace(log.outside, contexts=read.contexts)
    if read.rewards:
        log.outside = replace(log.outside, rewards=read.rewards)
    return log


def _priced(arms: Any, earned: _Earned, context: Any) -> dict[str, Any]:
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
    table: Any, earned: _Earned, priced: bool, n: int, most_outside: float
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


POSITIONS = (1, 2, 3)
"""Positions on the page, each with its own row; the file does not say which rows share a page."""


def read_open_bandit(table: Any, *, n_items: int) -> Logged:
    """Read a log of the Open Bandit Dataset as `Logged`.

    The context is the position, one-hot; the file's features of users are hashes without public
    levels and are not read.

    Args:
        table: a DataFrame, a mapping from names to columns, or the path of a file such as all.csv.
        n_items: number of items, numbered from 0: 80 of "all", 34 of "men", 46 of "women".

    >>> rows = {"item_id": [0, 2], "position": [1, 3], "click": [0, 1],
    ...         "propensity_score": [1 / 3, 1 / 3]}
    >>> print(read_open_bandit(rows, n_items=3))
    2 rounds with 3 arms, 0 of 2 contexts (0 %) and 0 rewards (0 %) outside their bounds
    """
    whole("n_items", n_items, 2, MOST_ACTIONS)
    return read_log(
        table,
        action="item_id",
        reward="click",
        propensity="propensity_score",
        arms=range(n_items),
        reward_range=(0, 1),
        context={"position": POSITIONS},
    )


def read_lists(
    table: Any,
    *,
    n_items: int,
    items: Sequence[str],
    clicks: Sequence[str],
    prefix: Sequence[str],
    marginal: Sequence[str] | None = None,
    context: Sequence[str] | Bounds = (),
    context_bound: float | None = None,
    adaptive: bool = False,
    most_outside: float = MOST_OUTSIDE,
    reading: Mapping[str, Any] = DEFAULT_READING,
) -> LoggedLists:
    """Read named columns of a table as `LoggedLists`.

    Args:
        table: one row for each list: a DataFrame, a mapping from names to columns, or the path of
            a .csv or .parquet file.
        n_items: number of items in the catalogue, which are numbered from 0.
        items, clicks, prefix, marginal: names of columns, one for each position from the top; see
            `LoggedLists`.
        context, context_bound, most_outside, reading: as for `read_log`.
        adaptive: see `LoggedLists`.

    Raises:
        InputError: a column that is missing, has missing entries or holds no numbers, or a log
            that `LoggedLists` refuses.

    >>> table = {"top": [4, 1], "next": [0, 2], "c1": [0, 1], "c2": [1, 0],
    ...          "p1": [0.2, 0.2], "p12": [0.05, 0.05]}
    >>> log = read_lists(table, n_items=5, items=["top", "next"], clicks=["c1", "c2"],
    ...                  prefix=["p1", "p12"])
    >>> log.reward.tolist()
    [1.0, 1.0]
    """
    table = _read(table, reading, [items, prefix, marginal, context], clicks)
    lists = stacked(table, items)
    return LoggedLists(
        n_items=n_items,
        items=lists,  # type: ignore[arg-type]  # checked, and made whole numbers, there
        clicks=stacked(table, clicks),
        prefix=stacked(table, prefix),
        marginal=None if marginal is None else stacked(table, marginal),
        context=contexts_in(table, context, context_bound, len(lists), most_outside).rows,
        adaptive=adaptive,
        index=index_of_rows(table),
    )


def read_prices(
    table: Any,
    *,
    price: str,
    reward: str,
    density: str,
    price_range: tuple[float, float],
    reward_range: tuple[float, float],
    context: Sequence[str] | Bounds = (),
    context_bound: float | None = None,
    adaptive: bool = False,
    most_outside: float = MOST_OUTSIDE,
    unit: str = "reward",
    reading: Mapping[str, Any] = DEFAULT_READING,
) -> LoggedPrices:
    """Read named columns of a table as `LoggedPrices`, for prices drawn from a density.

    Prices from a short list are arms: `read_log(prices=...)`.

    Args:
        table: one row for each round: a DataFrame, a mapping from names to columns, or the path of
            a .csv or .parquet file.
        price, reward, density: names of columns; the density is per dollar, at the logged price.
        price_range, reward_range: (low, high), public bounds.
        context, context_bound, most_outside, unit, reading: as for `read_log`.
        adaptive: see `LoggedPrices`.

    Raises:
        InputError: a column that is missing, has missing entries or holds no numbers, or a log
            that `LoggedPrices` refuses.

    >>> table = {"asked": [1.2, 2.9], "paid": [1.2, 0.0], "density": [0.5, 0.5]}
    >>> log = read_prices(table, price="asked", reward="paid", density="density",
    ...                   price_range=(1, 3), reward_range=(0, 3))
    >>> log.spec.high, log.reward.tolist()
    (3.0, [1.2, 0.0])
    """
    table = _read(table, reading, [price, density, context], [reward])
    price_column = numbers(table, price)
    low, high = two_numbers("price_range", price_range)
    least, most = two_numbers("reward_range", reward_range)
    contexts = contexts_in(table, context, context_bound, len(price_column), most_outside)
    spec = PriceSpec(
        dim=contexts.rows.shape[1],
        horizon=max(1, len(price_column)),
        low=low,
        high=high,
        reward_low=least,
        reward_high=most,
        context_bound=contexts.bound,
        most_outside=most_outside,
        reward_unit=unit_of(unit),
    )
    return LoggedPrices(
        spec=spec,
        context=contexts.rows,
        price=price_column,
        reward=numbers(table, reward),
        density=numbers(table, density),
        adaptive=adaptive,
        index=index_of_rows(table),
    )


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
