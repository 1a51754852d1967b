"""`dpbandit fit`: make an environment from a log."""

import json
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from dpbandit.base import InputError, check_writable, one_of, parse_settings, write_atomically
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
    specified,
    words_of,
)
from dpbandit.envs import PricingFromLog, RecommendationFromLog
from dpbandit.offline.tables import file_digest, parsed
from dpbandit.results.results import FORMATS
from dpbandit.running.environments import ENDING, write_environment
from dpbandit.running.recommend import recommend
from dpbandit.running.settings import around
from dpbandit.shelf import from_shelf

_OF_PEOPLE = ("person", "people", "visits")  # options for logs of people who return
# options for logs of prices, not of clicks or choices
_OF_PRICES = ("price", "sold", "units", "price_range", "unit_cost", "unit", "prices", "monotone")
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
    units: Annotated[
        str | None,
        typer.Option(help="In place of --sold, with --at-most: column with the units sold."),
    ] = None,
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
    visit: Annotated[
        str | None,
        typer.Option(
            help="With --items, --item and --bought: column with the visit, of a table with one "
            "row for each product shown; fits choices, --bought is 1 for the product bought."
        ),
    ] = None,
    at_most: Annotated[
        int | None,
        typer.Option(
            help="With --product or --visit: how many can be offered at a time; with --units: how "
            "many a row can sell, a public number."
        ),
    ] = None,
    price_range: Annotated[
        str | None, typer.Option(help="Public range that contains every price, LOW:HIGH.")
    ] = None,
    unit_cost: Annotated[
        str | None,
        typer.Option(help="What a unit costs you, or a column of costs that is a --feature, too."),
    ] = None,
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
    sep: Sep = None,
    decimal: Decimal = None,
    yes: Yes = None,
    drop_missing: DropMissing = False,
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
        "ridge": ridge,
        "features": features_of(feature or ()),
    }
    if reading := reading_of(sep, decimal, yes, drop_missing):
        shared["reading"] = reading
    of_prices = {
        "price_range": None if price_range is None else range_of("--price-range", price_range),
        "unit_cost": None if unit_cost is None else parsed(unit_cost),
        "unit": unit,
        "prices": None if prices is None else words_of(prices),
    }
    kind: Any = PricingFromLog if items is None else RecommendationFromLog
    arguments: dict[str, Any]
    if visit is not None:
        unused = ("product", "sold", "units", "click", "interactions", "monotone", *_OF_PEOPLE)
        if items is None:
            raise InputError(f"Expected --items with --visit={visit}: the names of all products.")
        if wrong := [name for name in unused if specified(context, (name,))]:
            raise InputError(f"Expected --visit={visit} without {', '.join(map(_option, wrong))}.")
        kind = from_shelf("envs", "AssortmentFromLog", "--visit")
        layout = {"visit": visit, "products": listed(items), "product": item, "price": price}
        arguments = {**layout, "bought": bought, **of_prices, "at_most": at_most, **shared}
    elif product:
        others = ("price", "sold", "units", "items", "item", "click", "interactions", "monotone")
        if specified(context, (*others, *_OF_PEOPLE)):
            raise InputError("Expected --product without options of sales, clicks or people.")
        kind = from_shelf("envs", "AssortmentFromLog", "--product")
        arguments = {
            "products": dict(map(_product, product)),
            "bought": bought,
            **of_prices,
            "at_most": at_most,
            **shared,
        }
    elif items is not None:
        if specified(context, (*_OF_PRICES, *_OF_PEOPLE)):
            typed = [name for name in (*_OF_PRICES, *_OF_PEOPLE) if specified(context, (name,))]
            refused = ", ".join(map(_option, typed))
            raise InputError(f"Expected --items without {refused}.")
        arguments = {"item": item, "click": click, "items": listed(items)}
        arguments |= {"interactions": interactions, **shared}
    else:
        arguments = {
            "price": price,
            "sold": sold,
            **({} if units is None else {"units": units}),
            **({} if at_most is None else {"at_most": at_most}),
            **of_prices,
            "monotone": monotone,
            "person": person,
            **{k: v for k, v in (("people", people), ("visits", visits)) if v is not None},
            "interactions": interactions,
            **shared,
        }
    choices = bool(product) or visit is not None
    if plot is not None and choices:
        raise InputError(
            "Expected --plot without --product or --visit: there is no such plot of choices."
        )
    problem, saved = kind(**arguments), Saved()
    agents = ["fade-mnl"] if choices else ["fade", "dp-ucb"]
    rounds, option = 20_000, ""
    if person is not None:
        agents = ["personal-pricing"]
        rounds = min(rounds, problem.people * problem.visits)
        option = f" --horizon {rounds}"
    agents.insert(1, recommend(problem.spec, inf))
    following = f"dpbandit compare {out} --agents {','.join(agents[:2])}{option}"
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
    """Return the TOML entry of an agent in a sweep file, with its settings."""
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
