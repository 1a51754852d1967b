"""`dpbandit fit`: an environment from a log of your own."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dpbandit.base.files import check_writable, write_atomically
from dpbandit.base.inputs import InputError, one_of
from dpbandit.commands.bounds import features_of, range_of, words_of
from dpbandit.commands.options import given, say
from dpbandit.envs import AssortmentFromLog, PricingFromLog, RecommendationFromLog
from dpbandit.offline.columns import file_digest
from dpbandit.results.results import FORMATS
from dpbandit.running.given import ENDING, write_environment

_OF_PRICES = ("price", "sold", "price_range", "unit_cost", "unit", "prices", "monotone")
_SWEEP = """\
name = {name}
horizons = [20000]
replicas = 20
epsilons = [0.3, 1.0, 3.0, 10.0]
deltas = [1e-5]

[[environments]]
id = {id}
"""


def fit(
    context: typer.Context,
    table: Annotated[Path, typer.Argument(help="A .csv, .csv.gz or .parquet file.")],
    price: Annotated[str, typer.Option(help="Column of the price that was asked.")] = "price",
    sold: Annotated[str, typer.Option(help="Column of 1 for a sale, else 0.")] = "sold",
    feature: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=LOW:HIGH or NAME=LEVEL,LEVEL,...; public bounds, as often as needed."
        ),
    ] = None,
    items: Annotated[
        str | None, typer.Option(help="ITEM,ITEM,...: fit clicks on these, in place of sales.")
    ] = None,
    item: Annotated[str, typer.Option(help="With --items: column of what was shown.")] = "item",
    click: Annotated[
        str, typer.Option(help="With --items: column of 1 for a click, else 0.")
    ] = "click",
    product: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=COLUMN of its price, empty where it was not shown: fit choices among these."
        ),
    ] = None,
    bought: Annotated[
        str, typer.Option(help="With --product: column of what was taken, or none.")
    ] = "bought",
    at_most: Annotated[
        int | None, typer.Option(help="With --product: so many can be offered at a time.")
    ] = None,
    price_range: Annotated[
        str | None, typer.Option(help="LOW:HIGH, public; every price lies inside.")
    ] = None,
    unit_cost: Annotated[float | None, typer.Option(help="What a sale costs you.")] = None,
    unit: Annotated[str, typer.Option(help="What prices are in, for labels.")] = "dollars",
    prices: Annotated[
        str | None, typer.Option(help="PRICE,PRICE,... to choose from; nine of the range.")
    ] = None,
    clusters: Annotated[
        str | None, typer.Option(help="Column of what shares a price, for errors.")
    ] = None,
    interactions: Annotated[
        bool, typer.Option(help="A price slope for each feature, or one for all.")
    ] = True,
    ridge: Annotated[float, typer.Option(help="Penalty of all but the constant.")] = 1e-6,
    monotone: Annotated[
        str | None, typer.Option(help="clip: demand falls with the price for everybody.")
    ] = None,
    out: Annotated[Path, typer.Option(help="File to write, for ENV, --env and sweeps.")] = Path(
        "shop.toml"
    ),
    sweep: Annotated[
        Path | None, typer.Option(help="Also write a sweep of agents and epsilons here.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the calibration here.")] = None,
) -> None:
    """Fit sales to a log of prices, clicks to one of items, or choices to one of products, and
    write an environment.

    The file stands wherever the id of an environment does.

    Bounds are public and are told, never read off the log. What is printed is a function of the
    log, which no certificate covers.

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
        if given(context, ("price", "sold", "items", "item", "click", "interactions", "monotone")):
            raise InputError("Expected --product without options of sales or clicks.")
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
        if given(context, _OF_PRICES):
            raise InputError(f"Expected --items without {', '.join(map(_option, _OF_PRICES))}.")
        arguments = {"item": item, "click": click, "items": words_of(items), **shared}
    else:
        arguments = {
            "price": price,
            "sold": sold,
            "price_range": None if price_range is None else range_of("--price-range", price_range),
            "unit_cost": unit_cost,
            "unit": unit,
            "prices": None if prices is None else words_of(prices),
            "monotone": monotone,
            **shared,
        }
    problem = kind(**arguments)
    say(repr(problem))
    if plot is not None and product:
        raise InputError("Expected --plot without --product: there is no such plot of choices.")
    if plot is not None:
        problem.diagnostics.held_out.plot(path=plot)
        say(f"Written to {plot}.")
    write_environment(out, kind.__name__, arguments)
    agents = ("fade-mnl", "mnl-ucb") if product else ("fade", "linucb", "dp-ucb")
    say(f"Written to {out}. Next: dpbandit compare {out} --agents {','.join(agents[:2])}")
    if sweep is not None:
        text = _SWEEP.format(name=json.dumps(out.stem), id=json.dumps(str(out)))
        text += "".join(f'\n[[agents]]\nid = "{agent}"\n' for agent in agents)
        write_atomically(sweep, lambda partial: partial.write_text(text, encoding="utf-8"))
        say(f"Written to {sweep}. Next: dpbandit sweep {sweep} --out results")


def _product(text: str) -> tuple[str, str]:
    name, found, column = text.partition("=")
    if not (name and found and column):
        raise InputError(f"Expected --product={text} to be NAME=COLUMN of its price.")
    return name, column


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
