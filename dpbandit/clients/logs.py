"""Read logs from a user's table, and record logs of the simulator.

`read_open_bandit` reads the Open Bandit Dataset: Saito, Aihara, Matsutani and Narita, "Open Bandit
Dataset and Pipeline: towards realistic and reproducible off-policy evaluation", NeurIPS 2021.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from dpbandit.agents import Uniform
from dpbandit.base import (
    MOST_ACTIONS,
    Floats,
    InputError,
    Ints,
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
from dpbandit.offline.columns import Bounds, answers, as_long, column, features, numbers, places
from dpbandit.offline.logs import Logged, LoggedLists, LoggedPrices, Observed, one_kind
from dpbandit.offline.tables import index_of_rows, read_table, warn_of
from dpbandit.running.environments import ProblemMaker, problem_maker
from dpbandit.running.resolve import AnyAgent, resolve_agent
from dpbandit.specs import (
    MOST_OUTSIDE,
    BanditSpec,
    ContextualSpec,
    Hindsight,
    PriceListSpec,
    PriceSpec,
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
        return Contexts(found.context, 1.0, found.any_outside)
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
    reading: Mapping[str, Any] = DEFAULT_READING,
) -> Logged:
    """Read named columns of a table as `Logged`; print it to see how many rows exceed the bounds.

    Args:
        table: one row for each round: a DataFrame, a mapping from names to columns, or the path of
            a .csv or .parquet file. Series in a mapping are put in one order by their index.
        action, reward: names of columns.
        sold: in place of `reward` where arms are prices: name of a column of 0 and 1. The reward is
            then the margin, price - unit cost, of a sale.
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
            the largest margin, unless there is a `reward_range`.
        reward_range: (low, high), public bounds on rewards.
        context_bound: public bound on the Euclidean norm of unscaled columns in `context`.
        lowest, adaptive: see `Logged`.
        probabilities: names of columns, one for each arm in order, with the probability that the
            arm was drawn.
        most_outside: share of contexts, and of rewards, that may lie outside their bounds.
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
        table, action, reward, sold, context, arms, prices, unit_cost, reward_range, context_bound,
        most_outside, reading, [propensity, probabilities],
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
    return _with_clipped(logged, read.clipped)


def read_observed(
    table: Any,
    *,
    action: str,
    reward: str | None = None,
    sold: str | None = None,
    context: Sequence[str] | Bounds = (),
    arms: Sequence[Any] | None = None,
    prices: Sequence[float] | None = None,
    unit_cost: float | None = None,
    reward_range: tuple[float, float] | None = None,
    context_bound: float | None = None,
    most_outside: float = MOST_OUTSIDE,
    reading: Mapping[str, Any] = DEFAULT_READING,
) -> Observed:
    """Read named columns of a table without propensities as `Observed`.

    Args:
        table, action, reward, sold, context, arms, prices: as for `read_log`.
        unit_cost, reward_range, context_bound, most_outside, reading: as for `read_log`.

    >>> table = {"age": [34, 71], "shown": ["b", "a"], "click": [0, 1]}
    >>> columns = {"context": {"age": (18, 90)}, "action": "shown", "reward": "click"}
    >>> print(read_observed(table, **columns, reward_range=(0, 1)))
    2 rounds with 2 arms, 0 of 2 contexts (0 %) and 0 rewards (0 %) outside their bounds
    """
    read = _read_arms(
        table, action, reward, sold, context, arms, prices, unit_cost, reward_range, context_bound,
        most_outside, reading, [],
    )  # fmt: skip
    return _with_clipped(Observed(**read.arms), read.clipped)


def _read(table: Any, reading: Any, columns: Any, answers: Sequence[Any]) -> Any:
    """Return a table as `read_table` reads it, with warnings of rows dropped or repeated."""
    found, notes = read_table(table, reading, columns=columns, answers=answers)
    warn_of(notes)
    return found


class _ObservedArms(NamedTuple):
    """Contents of a table with arms, except propensities."""

    table: Any
    arms: dict[str, Any]
    """arguments of `Observed` by name"""
    clipped: int


def _read_arms(
    table: Any,
    action: str,
    reward: str | None,
    sold: str | None,
    context: Sequence[str] | Bounds,
    arms: Sequence[Any] | None,
    prices: Sequence[float] | None,
    unit_cost: float | None,
    reward_range: tuple[float, float] | None,
    context_bound: float | None,
    most_outside: float,
    reading: Mapping[str, Any],
    others: Sequence[Any],
) -> _ObservedArms:
    table = _read(table, reading, [action, context, *others], [reward if sold is None else sold])
    priced = _priced(arms, prices, unit_cost)
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
    arms_of = {"spec": spec, "context": seen.rows, "action": arm, "reward": rewards}
    arms_of |= {"arms": tuple(offered), "index": index_of_rows(table)}
    return _ObservedArms(table, arms_of, seen.clipped)


_AnyLog = TypeVar("_AnyLog", bound=Observed)


def _with_clipped(log: _AnyLog, clipped: int) -> _AnyLog:
    """Return the log, with contexts that were clipped to ranges counted as outside the bounds."""
    # after scaling, the log itself finds all contexts within their bound
    if clipped:
        log.outside = replace(log.outside, contexts=clipped)
    return log


def _priced(arms: Any, prices: Any, unit_cost: float | None) -> dict[str, Any]:
    """Return the prices and the unit cost for a `PriceListSpec`; {} if arms are not prices."""
    if prices is None and unit_cost is None:
        return {}
    if prices is None or unit_cost is None or arms is not None:
        raise InputError(
            "Expected prices=, the public list of prices, and unit_cost= together, without arms=."
        )
    at_least("unit_cost", unit_cost, 0)
    listed = vector("prices", prices, None).tolist()
    return {"prices": tuple(listed), "unit_cost": float(unit_cost)}


def _rewards(
    table: Any, reward: str | None, sold: str | None, priced: Mapping[str, Any], arm: Ints
) -> Floats:
    if (reward is None) == (sold is None):
        raise InputError("Expected reward=, the name of a column, or else sold=.")
    if reward is not None:
        return numbers(table, reward, reward=True)
    if not priced:
        raise InputError(f"Expected prices= and unit_cost= with sold={sold!r}.")
    margins = np.array(priced["prices"]) - priced["unit_cost"]
    return np.asarray(margins[arm] * as_long(answers(table, str(sold)), len(arm), str(sold)))


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
    reading: Mapping[str, Any] = DEFAULT_READING,
) -> LoggedPrices:
    """Read named columns of a table as `LoggedPrices`, for prices drawn from a density.

    Prices from a short list are arms: `read_log(prices=...)`.

    Args:
        table: one row for each round: a DataFrame, a mapping from names to columns, or the path of
            a .csv or .parquet file.
        price, reward, density: names of columns; the density is per dollar, at the logged price.
        price_range, reward_range: (low, high), public bounds.
        context, context_bound, most_outside, reading: as for `read_log`.
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
