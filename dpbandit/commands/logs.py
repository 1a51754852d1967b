"""`dpbandit evaluate` and `dpbandit fit`: policies and environments from a log."""

import json
from math import inf
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dpbandit.base import (
    Floats,
    InputError,
    check_writable,
    one_of,
    parse_settings,
    rounded,
    write_atomically,
)
from dpbandit.base.tables import Table
from dpbandit.clients.logs import read_log, read_observed
from dpbandit.commands.options import (
    Saved,
    features_of,
    given,
    listed,
    range_of,
    say,
    screen,
    words_of,
)
from dpbandit.envs import AssortmentFromLog, PricingFromLog, RecommendationFromLog
from dpbandit.offline import Logged, Observed
from dpbandit.offline.columns import numbers
from dpbandit.offline.evaluation import INTERVALS, evaluate as evaluated
from dpbandit.offline.tables import file_digest, meant, table_of
from dpbandit.offline.unrecorded import assess
from dpbandit.results.results import FORMATS
from dpbandit.running.environments import ENDING, write_environment
from dpbandit.running.recommend import recommend
from dpbandit.running.settings import around

_CLIPPED = {"clipped-ips", "clipped-dr", "switch-dr"}
_MODELLED = {"dm", "dr", "clipped-dr", "sndr", "switch-dr", "dros"}
_NEEDED = {"clip": _CLIPPED, "shrinkage": {"dros"}, "sort": {"mips"}, "probabilities": {"mips"}}
"""Option -> the estimators that cannot do without it."""


def evaluate(
    table: Annotated[Path, typer.Argument(help="A .csv, .csv.gz or .parquet file.")],
    policy: Annotated[
        str,
        typer.Option(
            help="The policy: uniform, always=ARM, or COLUMN,... with its probability of each arm."
        ),
    ],
    action: Annotated[str, typer.Option(help="Column with the arm that was played.")] = "action",
    reward: Annotated[str, typer.Option(help="Column with the reward.")] = "reward",
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
    reward_range: Annotated[str, typer.Option(help="Public range of rewards, LOW:HIGH.")] = "0:1",
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
    out: Annotated[Path | None, typer.Option(help="Write the table to this .csv file.")] = None,
) -> None:
    """Estimate from a log what another policy would have earned, with intervals.

    The policy must not learn while it plays. The estimates are exact statistics of the log, which
    no certificate covers. With --unrecorded it fits propensities and shows how far reasons that the
    log hides can move the answer.

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
    asked = [] if estimators is None else words_of(estimators)
    for option, value, only in (("shrinkage", shrinkage, "dros"), ("sort", sort, "mips")):
        if value is not None and only not in asked:
            raise InputError(f"Expected {only} in --estimators with --{option}: no other uses it.")
    if clip is not None and not {*asked} & _CLIPPED:
        raise InputError(
            f"Expected some of {', '.join(sorted(_CLIPPED))} in --estimators with --clip={clip:g}."
        )
    if q is not None and asked and not {*asked} & _MODELLED:
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
    for option, users in _NEEDED.items():
        for name in asked:
            if name in users and given_to[option] is None:
                raise InputError(f"Expected --{option} with {name} in --estimators: it needs that.")
    if w_max is None and intervals in ("betting-cv", "empirical-bernstein"):
        raise InputError(
            f"Expected --w-max, a public bound on weights, with --intervals={intervals}."
        )
    frame = table_of(str(table))
    low, high = range_of("--reward-range", reward_range)
    names = None if arms is None else listed(arms)
    shared: dict[str, Any] = {
        "action": action, "reward": reward, "context": features_of(feature or ()),
        "arms": names, "reward_range": (low, high),
        **({} if most_outside is None else {"most_outside": most_outside}),
    }  # fmt: skip
    log: Observed = (
        read_observed(frame, **shared)
        if unrecorded
        else read_log(
            frame,
            **shared,
            propensity=propensity,
            lowest=lowest,
            probabilities=None if probabilities is None else _columns(probabilities),
            adaptive=adaptive,
        )
    )
    named = names if names is not None else sorted(set(frame[action]))
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
    told: dict[str, Any] = {
        "intervals": intervals, "level": level, "support": support, "shrinkage": shrinkage,
        "w_max": w_max, "clip": clip,
    }  # fmt: skip
    if q is not None:
        if len(columns := _columns(q)) != len(named):
            raise InputError(f"Expected --q={q} to name {len(named)} columns, one for each arm.")
        predicted = np.column_stack([numbers(frame, column) for column in columns])
        told |= {"q": predicted, "q_is_honest": True}
    if sort is not None:
        told |= _sorts(sort, [str(arm) for arm in named], log)
    if intervals is not None and intervals.startswith("weighted"):
        told["law"] = _law_of_rows(log, feature)
    told = {name: value for name, value in told.items() if value is not None}
    answer, saved = evaluated(law, log, asked or None, **told), Saved()
    if out is not None:
        saved.write(f"Written to {out}.", _write_table, out, answer)
    shown = Table(title=str(log))
    kept = ("estimator", "estimate", "low", "high", "interval", "ess", "max_weight")
    for column in kept:
        shown.add_column(column, justify="left" if column in ("estimator", "interval") else "right")
    for row in answer.to_dict("records"):
        shown.add_row(*(v if isinstance(v := row[c], str) else rounded(v, 4) for c in kept))
    screen().print(shown)
    for row in answer.to_dict("records"):
        for said in (row["refused"], row["note"]):
            if said:
                say(f"{row['estimator']}: {said}.")
    saved.tell()


def _write_table(out: Path, table: Any) -> None:
    write_atomically(out, lambda partial: table.to_csv(partial, index=False))


_RECORDED = "it is for propensities that were recorded"
_WHY = {
    "adaptive": "the probabilities of a learner change from row to row, and no context tells them",
    "estimators": "ips and all others but dm and dr divide by recorded propensities, and these two "
    "are printed",
    "intervals": "no interval is exact where propensities are fitted",
    "q": "dm and dr fit models of their own",
    "support": "choices that the log does not show are refused",
}


def _refuse_unrecorded(**options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise InputError(
                f"Expected no {option} with --unrecorded: {_WHY.get(name, _RECORDED)}."
            )


def _assessed(law: Floats, log: Observed, out: Path | None, **settings: Any) -> None:
    """Print what is left to say, and write the bounds."""
    found = assess(np.broadcast_to(law, (len(log.action), log.spec.n_actions)), log, **settings)
    saved = Saved()
    if out is not None:
        saved.write(f"Written to {out}.", _write_table, out, found.bounds)
    shown = Table(
        title="Bounds by gamma, the strength of what is hidden; gain: on the log's own policy",
    )
    for column in found.bounds:
        shown.add_column(str(column), justify="right")
    for row in found.bounds.itertuples(index=False):
        shown.add_row(*(rounded(value, 4) for value in row))
    say(f"{log}\n{found}")
    screen().print(shown)
    saved.tell()


def _sorts(texts: list[str], arms: list[str], log: Logged) -> dict[str, Any]:
    """What every arm is like, for mips, as `evaluate` takes it."""
    said = dict(text.rpartition("=")[::2] for text in texts)
    if sorted(said) != sorted(arms) or len(texts) > len(said):
        raise InputError(f"Expected --sort ARM=SORT once for each of {', '.join(arms)}.")
    kinds = sorted(set(said.values()))
    place = np.array([kinds.index(said[arm]) for arm in arms])
    return {"features": place[log.action], "feature_law": np.eye(len(kinds))[place]}


def _law_of_rows(log: Logged, features: list[str] | None) -> Any:
    """The logging policy of a row at earlier contexts, which without features are all alike."""
    if features or log.probabilities is None:
        raise InputError(
            "Expected --probabilities, and no --feature, for weighted intervals: what the log's "
            "policy would have done for others is no column; in Python, law= of "
            "dpbandit.offline.evaluate."
        )
    chances = log.probabilities
    return lambda row, contexts: np.tile(chances[row], (len(contexts), 1))


def _columns(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _fixed(policy: str, arms: list[Any]) -> Floats | None:
    """Probabilities (K,) of the policy that is named; None where it is columns of the table."""
    K = len(arms)
    if policy == "uniform":
        return np.full(K, 1 / K)
    if policy.startswith("always="):
        name = policy.removeprefix("always=")
        written = [str(arm) for arm in arms]  # as it stands there, or as a number
        said = [meant(arm) for arm in arms]
        if name not in written and meant(name) not in said:
            raise InputError(
                f"Expected --policy={policy} to name one of {', '.join(map(str, arms))}."
            )
        k = written.index(name) if name in written else said.index(meant(name))
        return 1.0 * (np.arange(K) == k)
    return None


def _columns_of(policy: str, frame: Any, K: int) -> Floats:
    """Probabilities (n, K) that stand in the table."""
    columns = _columns(policy)
    if len(columns) != K:
        raise InputError(
            f"Expected --policy={policy} to be uniform, always=ARM, or {K} columns with its "
            "probabilities of the arms."
        )
    return np.column_stack([numbers(frame, column) for column in columns])


_OF_PEOPLE = ("person", "people", "visits")
_OF_PRICES = ("price", "sold", "price_range", "unit_cost", "unit", "prices", "monotone")
_SWEEP = """\
name = {name}
horizons = [{horizon}]
replicas = 20
epsilons = [0.3, 1.0, 3.0, 10.0]
deltas = [1e-5]

[[environments]]
id = {id}
"""


def fit(
    context: typer.Context,
    table: Annotated[Path, typer.Argument(help="A .csv, .csv.gz or .parquet file.")],
    price: Annotated[str, typer.Option(help="Column with the price that was asked.")] = "price",
    sold: Annotated[str, typer.Option(help="Column with 1 for a sale, else 0.")] = "sold",
    feature: Annotated[
        list[str] | None,
        typer.Option(
            help="A feature and its public bounds, NAME=LOW:HIGH or NAME=LEVEL,...; repeatable."
        ),
    ] = None,
    items: Annotated[
        str | None, typer.Option(help="ITEM,ITEM,...: fit clicks on these items instead of sales.")
    ] = None,
    item: Annotated[
        str, typer.Option(help="With --items: column with the item that was shown.")
    ] = "item",
    click: Annotated[
        str, typer.Option(help="With --items: column with 1 for a click, else 0.")
    ] = "click",
    product: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=COLUMN: fit choices among products; the column has its price, empty where "
            "the product was not offered. Repeatable."
        ),
    ] = None,
    bought: Annotated[
        str, typer.Option(help="With --product: column with the product that was bought, or none.")
    ] = "bought",
    at_most: Annotated[
        int | None, typer.Option(help="With --product: how many can be offered at a time.")
    ] = None,
    price_range: Annotated[
        str | None, typer.Option(help="Public range that contains every price, LOW:HIGH.")
    ] = None,
    unit_cost: Annotated[float | None, typer.Option(help="What one sale costs you.")] = None,
    unit: Annotated[str, typer.Option(help="Unit of prices, for labels.")] = "dollars",
    prices: Annotated[
        str | None,
        typer.Option(help="Prices to choose from, PRICE,...; default: nine across the range."),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(help="Column with groups of rows that share a price, for standard errors."),
    ] = None,
    interactions: Annotated[
        bool, typer.Option(help="Let the price slope depend on each feature, or not.")
    ] = True,
    ridge: Annotated[
        float, typer.Option(help="Ridge penalty on all coefficients but the constant.")
    ] = 1e-6,
    monotone: Annotated[
        str | None, typer.Option(help="clip: make demand fall with the price for everybody.")
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(help="Column that says who came: people come back, each with tastes."),
    ] = None,
    people: Annotated[
        int | None, typer.Option(help="With --person: how many people come; default 500.")
    ] = None,
    visits: Annotated[
        int | None, typer.Option(help="With --person: visits of each, at most; default 40.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="File to write; commands and sweeps take it as an environment.")
    ] = Path("shop.toml"),
    sweep: Annotated[
        Path | None, typer.Option(help="Also write a sweep of agents and epsilons to this file.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the calibration of the fit to this file.")
    ] = None,
) -> None:
    """Make an environment from your own table of offers, clicks or choices.

    Fits a model of sales to prices, of clicks to items, or of choices to products, and writes a
    file that every command takes in place of an environment's id.

    You state the bounds of features and prices; they are public and never read from the log. The
    printed diagnostics are functions of the log, which no certificate covers.

    Example: `dpbandit fit prices.csv --feature age=18:90 --feature shop=A,B,C --price-range 1:3
    --unit-cost 0.8 --out shop.toml`
    """
    if out.suffix != ENDING:
        raise InputError(f"Expected --out={out} to end in {ENDING}.")
    if plot is not None:
        one_of("suffix of the plot", plot.suffix, FORMATS)
    check_writable(out, sweep, plot)
    shared: dict[str, Any] = {
        "frame": str(table),
        "sha256": file_digest(table),
        "clusters": clusters,
        "interactions": interactions,
        "ridge": ridge,
        "features": features_of(feature or ()),
    }
    kind: Any = PricingFromLog if items is None else RecommendationFromLog
    arguments: dict[str, Any]
    if product:
        others = ("price", "sold", "items", "item", "click", "interactions", "monotone")
        if given(context, (*others, *_OF_PEOPLE)):
            raise InputError("Expected --product without options of sales, clicks or people.")
        kind = AssortmentFromLog
        arguments = {
            "products": dict(map(_product, product)),
            "bought": bought,
            "price_range": None if price_range is None else range_of("--price-range", price_range),
            "unit_cost": unit_cost,
            "unit": unit,
            "prices": None if prices is None else words_of(prices),
            "at_most": at_most,
            **{name: value for name, value in shared.items() if name != "interactions"},
        }
    elif items is not None:
        if given(context, (*_OF_PRICES, *_OF_PEOPLE)):
            refused = ", ".join(map(_option, (*_OF_PRICES, *_OF_PEOPLE)))
            raise InputError(f"Expected --items without {refused}.")
        arguments = {"item": item, "click": click, "items": listed(items), **shared}
    else:
        arguments = {
            "price": price,
            "sold": sold,
            "price_range": None if price_range is None else range_of("--price-range", price_range),
            "unit_cost": unit_cost,
            "unit": unit,
            "prices": None if prices is None else words_of(prices),
            "monotone": monotone,
            "person": person,
            **{k: v for k, v in (("people", people), ("visits", visits)) if v is not None},
            **shared,
        }
    if plot is not None and product:
        raise InputError("Expected --plot without --product: there is no such plot of choices.")
    problem, saved = kind(**arguments), Saved()
    agents = ["fade-mnl"] if product else ["fade", "dp-ucb"]
    rounds, said = 20_000, ""
    if person is not None:
        agents = ["personal-pricing"]
        rounds = min(rounds, problem.people * problem.visits)
        said = f" --horizon {rounds}"
    agents.insert(1, recommend(problem.spec, inf))
    following = f"dpbandit compare {out} --agents {','.join(agents[:2])}{said}"
    saved.write(
        f"Written to {out}. Next: {following}", write_environment, out, kind.__name__, arguments
    )
    if plot is not None:
        saved.write(f"Written to {plot}.", problem.diagnostics.held_out.plot, path=plot)
    if sweep is not None:
        text = _SWEEP.format(name=json.dumps(out.stem), id=json.dumps(str(out)), horizon=rounds)
        text += "".join(map(_entry, agents))
        written = f"Written to {sweep}. Next: dpbandit sweep {sweep} --out results"
        saved.write(written, write_atomically, sweep, lambda p: p.write_text(text, "utf-8"))
    say(repr(problem))
    saved.tell()


def _entry(agent: str) -> str:
    """An agent as a sweep file has it, settings in a table."""
    words, bare = around(agent)
    name, *settings = bare.split(":")
    written = f'\n[[agents]]\nid = "{words}{name}"\n'
    values = {k: "inf" if v == inf else json.dumps(v) for k, v in parse_settings(settings).items()}
    return written + (
        f"settings = {{ {', '.join(map(' = '.join, values.items()))} }}\n" * bool(values)
    )


def _product(text: str) -> tuple[str, str]:
    name, found, column = text.partition("=")
    if not (name and found and column):
        raise InputError(f"Expected --product={text} to be NAME=COLUMN of its price.")
    return name, column


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
