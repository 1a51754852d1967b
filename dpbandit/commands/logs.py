"""`dpbandit evaluate`: estimate from a log what a policy would have earned."""

from math import isnan
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dpbandit.base import Floats, InputError, check_writable, rounded, write_atomically
from dpbandit.base.tables import Table
from dpbandit.clients.logs import read_log, read_observed
from dpbandit.commands.options import (
    Decimal,
    DropMissing,
    Saved,
    Sep,
    Yes,
    features_of,
    listed,
    range_of,
    reading_of,
    say,
    screen,
    words_of,
)
from dpbandit.offline import Logged, Observed
from dpbandit.offline.cases import INTERVALS
from dpbandit.offline.columns import numbers
from dpbandit.offline.evaluation import evaluate as evaluated
from dpbandit.offline.tables import parsed, read_table, warn_of
from dpbandit.offline.unrecorded import assess
from dpbandit.results.shortfalls import Losing, losing

_CLIPPED = {"clipped-ips", "clipped-dr", "switch-dr"}  # estimators that clip weights
_MODELLED = {"dm", "dr", "clipped-dr", "sndr", "switch-dr", "dros"}  # with a model of rewards
_ESTIMATORS_WITH = {"clip": _CLIPPED, "shrinkage": {"dros"}}  # option -> its estimators
_ESTIMATORS_WITH |= {"sort": {"mips"}, "probabilities": {"mips"}}


def evaluate(
    table: Annotated[Path, typer.Argument(help="A .csv, .csv.gz or .parquet file.")],
    policy: Annotated[
        str,
        typer.Option(
            help="The policy: uniform, always=ARM, or COLUMN,... with its probability of each arm."
        ),
    ],
    action: Annotated[
        str,
        typer.Option(
            "--action", "--price", help="Column with the arm that was played, or the price asked."
        ),
    ] = "action",
    reward: Annotated[
        str | None, typer.Option(help="Column with the reward; default reward.")
    ] = None,
    sold: Annotated[
        str | None,
        typer.Option(help="In place of --reward, of prices: column with 1 for a sale, else 0."),
    ] = None,
    units: Annotated[
        str | None,
        typer.Option(help="In place of --sold, with --at-most: column with the units sold."),
    ] = None,
    at_most: Annotated[
        int | None, typer.Option(help="With --units: how many a row can sell, a public number.")
    ] = None,
    unit_cost: Annotated[
        str | None,
        typer.Option(
            help="With --sold or --units: what a unit costs you, or a column of costs that is a "
            "--feature, too."
        ),
    ] = None,
    propensity: Annotated[
        str | None, typer.Option(help="Column with the arm's probability; default: uniform.")
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            help="A feature and its public bounds, NAME=LOW:HIGH or NAME=LEVEL,...; repeatable."
        ),
    ] = None,
    arms: Annotated[
        str | None,
        typer.Option(help="All arms in order, ARM,...; default: those in the log, sorted."),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            help="With --sold or --units, all prices, PRICE,...; default: those in the log, sorted."
        ),
    ] = None,
    reward_range: Annotated[
        str | None,
        typer.Option(help="Public range of rewards, LOW:HIGH; default 0:1, or that of margins."),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Unit of rewards, such as EUR; default reward, dollars for prices."),
    ] = None,
    most_outside: Annotated[
        float | None,
        typer.Option(
            help="Share of features, and of rewards, that may lie outside their bounds; default "
            "0.01."
        ),
    ] = None,
    probabilities: Annotated[
        str | None,
        typer.Option(help="Columns with the logging probability of each arm, COLUMN,..."),
    ] = None,
    lowest: Annotated[
        float | None, typer.Option(help="Public lower bound on every arm's probability.")
    ] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="A learning policy wrote the log; rows are in order.")
    ] = False,
    unrecorded: Annotated[
        bool,
        typer.Option("--unrecorded", help="Nobody recorded propensities: say what is left to say."),
    ] = False,
    gammas: Annotated[
        str | None,
        typer.Option(
            help="With --unrecorded: strengths of hidden confounding, GAMMA,...; default 1,1.5,2,3."
        ),
    ] = None,
    estimators: Annotated[
        str | None, typer.Option(help="Estimators, separated by commas; default ips,snips,dr.")
    ] = None,
    intervals: Annotated[
        str | None, typer.Option(help=f"One of {', '.join(INTERVALS)}; default auto.")
    ] = None,
    clip: Annotated[
        float | None,
        typer.Option(help="The largest weight, for clipped-ips, clipped-dr and switch-dr."),
    ] = None,
    shrinkage: Annotated[
        float | None, typer.Option(help="Shrinkage of the estimator dros.")
    ] = None,
    w_max: Annotated[
        float | None,
        typer.Option(help="Public bound on weights, for betting-cv and empirical-bernstein."),
    ] = None,
    q: Annotated[
        str | None,
        typer.Option(
            help="Columns with each arm's reward predicted by a model that was not fitted to these "
            "rows, COLUMN,..., for dr and dm."
        ),
    ] = None,
    sort: Annotated[
        list[str] | None,
        typer.Option(help="ARM=SORT for every arm, for mips: arms of one sort are alike."),
    ] = None,
    support: Annotated[
        str | None, typer.Option(help="drop: leave out choices that the log could not contain.")
    ] = None,
    level: Annotated[
        float | None, typer.Option(help="Level of the intervals; default 0.95.")
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    yes: Yes = None,
    drop_missing: DropMissing = False,
    out: Annotated[Path | None, typer.Option(help="Write the table to this .csv file.")] = None,
) -> None:
    """Estimate from a log what another policy would have earned, with intervals.

    The policy must not learn while it plays. The estimates are exact statistics of the log, which
    no certificate covers. With --unrecorded it fits propensities and bounds the effect of hidden
    reasons for the logged choices.

    Example: `dpbandit evaluate log.csv --policy always=b --propensity chance --feature age=18:90`
    """
    check_writable(out)
    if out is not None and out.suffix != ".csv":
        raise InputError(f"Expected --out={out} to end in .csv.")
    if unrecorded:
        _refuse_unrecorded(
            propensity=propensity, probabilities=probabilities, lowest=lowest,
            adaptive=adaptive or None, estimators=estimators, intervals=intervals, clip=clip,
            shrinkage=shrinkage, w_max=w_max, q=q, sort=sort, support=support,
        )  # fmt: skip
    elif gammas is not None:
        raise InputError(f"Expected --unrecorded with --gammas={gammas}.")
    requested = [] if estimators is None else words_of(estimators)
    for option, value, only in (("shrinkage", shrinkage, "dros"), ("sort", sort, "mips")):
        if value is not None and only not in requested:
            raise InputError(f"Expected {only} in --estimators with --{option}: no other uses it.")
    if clip is not None and not {*requested} & _CLIPPED:
        raise InputError(
            f"Expected some of {', '.join(sorted(_CLIPPED))} in --estimators with --clip={clip:g}."
        )
    if q is not None and requested and not {*requested} & _MODELLED:
        raise InputError(
            f"Expected some of {', '.join(sorted(_MODELLED))} in --estimators with --q={q}."
        )
    if w_max is not None and (intervals or "auto").partition("-")[0] in (
        "t",
        "bootstrap",
        "weighted",
    ):
        raise InputError(f"Expected no --w-max={w_max:g} with --intervals={intervals}.")
    given_to = {
        "clip": clip, "shrinkage": shrinkage, "sort": sort, "probabilities": probabilities,
    }  # fmt: skip
    for option, users in _ESTIMATORS_WITH.items():
        for name in requested:
            if name in users and given_to[option] is None:
                raise InputError(f"Expected --{option} with {name} in --estimators: it needs that.")
    if w_max is None and intervals in ("betting-cv", "empirical-bernstein"):
        raise InputError(
            f"Expected --w-max, a public bound on weights, with --intervals={intervals}."
        )
    priced = [sold, units, at_most, unit_cost, prices].count(None) < 5
    reward = "reward" if reward is None and sold is None and units is None else reward
    chosen = [] if policy == "uniform" or policy.startswith("always=") else listed(policy)
    frame, notes = read_table(
        str(table),
        reading_of(sep, decimal, yes, drop_missing),
        columns=[
            *(action, propensity, features_of(feature or ()), chosen),
            *([] if units is None else [units]),
            *(listed(names) for names in (probabilities, q) if names is not None),
        ],
        answers=[] if units is not None else [reward if sold is None else sold],
    )
    warn_of(notes)
    shared: dict[str, Any] = {
        "action": action, "context": features_of(feature or ()),
        "arms": None if arms is None else listed(arms),
        "reward_range": None if reward_range is None else range_of("--reward-range", reward_range),
        **({} if most_outside is None else {"most_outside": most_outside}),
    }  # fmt: skip
    if priced:
        every = sorted(set(numbers(frame, action))) if prices is None else words_of(prices)
        cost = None if unit_cost is None else parsed(unit_cost)
        sales = {"reward": reward, "sold": sold, "units": units, "at_most": at_most}
        unit = "dollars" if unit is None else unit
        shared |= {**sales, "prices": every, "unit_cost": cost, "unit": unit}
    else:
        unit = "reward" if unit is None else unit
        shared |= {"reward": reward, "unit": unit}
        shared["reward_range"] = shared["reward_range"] or (0.0, 1.0)
    log: Observed = (
        read_observed(frame, **shared)
        if unrecorded
        else read_log(
            frame,
            **shared,
            propensity=propensity,
            lowest=lowest,
            probabilities=None if probabilities is None else listed(probabilities),
            adaptive=adaptive,
        )
    )
    named = list(log.arms or ())
    fixed = _fixed(policy, named)
    if not isinstance(log, Logged):
        law = _columns_of(policy, frame, len(named)) if fixed is None else fixed
        strengths = {} if gammas is None else {"gammas": words_of(gammas)}
        if not all(isinstance(gamma, float) for gamma in strengths.get("gammas", [])):
            raise InputError(f"Expected --gammas={gammas} to be numbers, such as 1,1.5,2,3.")
        _assessed(law, log, out, **strengths, **({} if level is None else {"level": level}))
        return
    law = _columns_of(policy, frame, len(named)) if fixed is None else fixed
    law = np.broadcast_to(law, (len(log.action), len(named)))
    options: dict[str, Any] = {
        "intervals": intervals, "level": level, "support": support, "shrinkage": shrinkage,
        "w_max": w_max, "clip": clip,
    }  # fmt: skip
    if q is not None:
        if len(columns := listed(q)) != len(named):
            raise InputError(f"Expected --q={q} to name {len(named)} columns, one for each arm.")
        predicted = np.column_stack([numbers(frame, column) for column in columns])
        options |= {"q": predicted, "q_is_honest": True}
    if sort is not None:
        options |= _sorts(sort, [str(arm) for arm in named], log)
    if intervals is not None and intervals.startswith("weighted"):
        options["law"] = _law_of_rows(log, feature)
    options = {name: value for name, value in options.items() if value is not None}
    answer, saved = evaluated(law, log, requested or None, **options), Saved()
    if out is not None:
        saved.write(f"Written to {out}.", _write_table, out, answer)
    grid = Table(title=str(log))
    keys = ("estimator", "estimate", "low", "high", "interval", "ess", "max_weight")
    for key in keys:
        grid.add_column(key, justify="left" if key in ("estimator", "interval") else "right")
    for row in answer.to_dict("records"):
        grid.add_row(*(v if isinstance(v := row[c], str) else rounded(v, 4) for c in keys))
    screen().print(grid)
    say(gain_sentence(_who(policy), answer, options.get("level", 0.95), earning(unit)))
    for row in answer.to_dict("records"):
        for note in (row["refused"], row["note"]):
            if note:
                say(f"{row['estimator']}: {note}.")
    saved.tell()


def _who(policy: str) -> str:
    """Return the policy's arm or column, or "the policy" if it names several columns."""
    return policy.removeprefix("always=") if len(listed(policy)) == 1 else "the policy"


def _write_table(out: Path, table: Any) -> None:
    write_atomically(out, lambda partial: table.to_csv(partial, index=False))


_DEFAULT_REASON = "it is for propensities that were recorded"  # in messages that refuse an option
_REFUSAL_REASONS = {  # option -> why --unrecorded refuses it
    "adaptive": "a learner's probabilities change by row, and contexts do not explain them",
    "estimators": "ips and all others but dm and dr divide by recorded propensities, and these two "
    "are printed",
    "intervals": "no interval is exact where propensities are fitted",
    "q": "dm and dr fit models of their own",
    "support": "choices that the log does not contain are refused",
}


def _refuse_unrecorded(**options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            reason = _REFUSAL_REASONS.get(name, _DEFAULT_REASON)
            raise InputError(f"Expected no {option} with --unrecorded: {reason}.")


def _assessed(law: Floats, log: Observed, out: Path | None, **settings: Any) -> None:
    """Print estimates and bounds for a log without propensities; write the bounds to `out`."""
    found = assess(np.broadcast_to(law, (len(log.action), log.spec.n_actions)), log, **settings)
    saved = Saved()
    if out is not None:
        saved.write(f"Written to {out}.", _write_table, out, found.bounds)
    table = Table(
        title="Bounds by gamma, the strength of what is hidden; gain: on the log's own policy"
    )
    for column in found.bounds:
        table.add_column(str(column), justify="right")
    for row in found.bounds.itertuples(index=False):
        table.add_row(*(rounded(value, 4) for value in row))
    say(f"{log}\n{found}")
    screen().print(table)
    saved.tell()


def _sorts(texts: list[str], arms: list[str], log: Logged) -> dict[str, Any]:
    """Return categories of rows and arms as arguments of `evaluate`, for the estimator mips."""
    sorts = dict(text.rpartition("=")[::2] for text in texts)
    if sorted(sorts) != sorted(arms) or len(texts) > len(sorts):
        raise InputError(f"Expected --sort ARM=SORT once for each of {', '.join(arms)}.")
    kinds = sorted(set(sorts.values()))
    place = np.array([kinds.index(sorts[arm]) for arm in arms])
    return {"features": place[log.action], "feature_law": np.eye(len(kinds))[place]}


def _law_of_rows(log: Logged, features: list[str] | None) -> Any:
    """Return a function of (row, contexts): the row's arm probabilities, repeated per context."""
    if features or log.probabilities is None:
        raise InputError(
            "Expected --probabilities, and no --feature, for weighted intervals: what the log's "
            "policy would have done for others is no column; in Python, law= of "
            "dpbandit.offline.evaluate."
        )
    chances = log.probabilities
    return lambda row, contexts: np.tile(chances[row], (len(contexts), 1))


def _fixed(policy: str, arms: list[Any]) -> Floats | None:
    """Return probabilities (K,) of `uniform` or `always=ARM`; None if the policy names columns."""
    K = len(arms)
    if policy == "uniform":
        return np.full(K, 1 / K)
    if policy.startswith("always="):
        name = policy.removeprefix("always=")
        written = [str(arm) for arm in arms]  # an arm may be named as text, or as a number
        readings = [parsed(arm) for arm in arms]
        if name not in written and parsed(name) not in readings:
            raise InputError(
                f"Expected --policy={policy} to name one of {', '.join(map(str, arms))}."
            )
        k = written.index(name) if name in written else readings.index(parsed(name))
        return 1.0 * (np.arange(K) == k)
    return None


def _columns_of(policy: str, frame: Any, K: int) -> Floats:
    """Return a policy's probabilities (rows, K), read from columns of the table."""
    columns = listed(policy)
    if len(columns) != K:
        raise InputError(
            f"Expected --policy={policy} to be uniform, always=ARM, or {K} columns with its "
            "probabilities of the arms."
        )
    return np.column_stack([numbers(frame, column) for column in columns])


def earning(reward_unit: str) -> Losing:
    """Return the words for rewards themselves: those for regret, unless it counts mistakes.

    >>> earning("hundreds of dollars").amount(0.5), earning("right answers").amount(0.5)
    ('50 dollars', '0.5 right answers')
    """
    words = losing(reward_unit)
    return Losing(reward_unit) if words.noun == "mistakes" else words


def gain_sentence(who: str, answer: Any, level: float, money: Losing) -> str:
    """Return a sentence on a policy's gain over the log's own, by dr or else the first row.

    Args:
        who: name of the policy.
        answer: the table that `dpbandit.offline.evaluate` returns.
        level: level of its intervals.
        money: words for rewards, see `earning`.
    """
    rows = answer.set_index("estimator", drop=False)
    row = rows.loc["dr"] if "dr" in rows.index else rows.iloc[0]
    what, words = ("gain", money) if isnan(row["percent"]) else ("percent", Losing("%"))
    gain, low, high = row[what], row[f"{what}_low"], row[f"{what}_high"]
    earned = f"{rounded(money.scale * row['logged'], 4)} {money.noun}".rstrip()
    sentence = f"The log's own policy earned {earned} a row"
    if isnan(gain):
        return f"{sentence}."
    sentence += f"; {who} earns {_signed(gain, words)}"
    if isnan(low):
        return f"{sentence}, by {row['estimator']}, without an interval."
    ends = f"between {_signed(low, words)} and {_signed(high, words)}"
    if low * high > 0:  # both more, or both less
        small, large = sorted((abs(low), abs(high)))
        ends = f"{words.number(small)} to {_signed(large if high > 0 else -large, words)}"
    return f"{sentence} ({100 * level:g} % interval {ends}), by {row['estimator']}."


def _signed(gain: float, words: Losing) -> str:
    """Return a gain in words, such as "2.5 % less" for -2.5."""
    return f"{words.amount(abs(gain))} {'more' if gain >= 0 else 'less'}"
