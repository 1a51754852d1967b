"""`dpbandit reproduce`: run published cases and tables again."""

from collections.abc import Mapping
from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from dpbandit.base import InputError, check_writable, one_of, parse_settings, rounded, write_json
from dpbandit.base.tables import Table
from dpbandit.commands.options import (
    Horizon,
    JsonFile,
    Replicas,
    Saved,
    Seed,
    Settings,
    complete_agents,
    say,
    screen,
    specified,
)
from dpbandit.experiments import CASES, reproduce as run_case
from dpbandit.experiments.paper_tables import ALL_CHOICES, TABLES, PaperTable
from dpbandit.running.settings import meant, setting_names


class Calibration(StrEnum):
    """Source of an agent's noise scale and constants: our certificate, or the agent's paper."""

    certified = "certified"
    paper = "paper"


_OF_CASES = {  # parameter of `reproduce` -> option that only single cases have
    "agent": "--agent",
    "settings": "--set",
    "calibration": "--calibration",
    "noise": "--noise",
    "epsilon": "--epsilon",
    "delta": "--delta",
    "horizon": "--horizon",
}
_OF_TABLES = {"reading": "--reading", "rows": "--rows", "theta": "--theta", "out": "--out"}
"""Parameter of `reproduce` -> option that only published tables have, not single cases."""


def reproduce(
    context: typer.Context,
    case: Annotated[str | None, typer.Argument(help="Name of a case, see --list.")] = None,
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    agent: Annotated[
        str | None, typer.Option(help="Agent id of a case.", autocompletion=complete_agents)
    ] = None,
    list_cases: Annotated[bool, typer.Option("--list", help="List the cases and tables.")] = False,
    settings: Settings = None,
    calibration: Annotated[
        Calibration | None, typer.Option(help="Which constants the agent takes.")
    ] = None,
    noise: Annotated[
        str | None, typer.Option(help="Which noise, if the agent has that setting.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Target epsilon, > 0.")] = None,
    delta: Annotated[float | None, typer.Option(help="Target delta, in [0, 1).")] = None,
    horizon: Horizon = 10_000,
    replicas: Replicas = 50,
    seed: Seed = 0,
    reading: Annotated[
        str, typer.Option(help="Tables: one of the readings in --list, or all.")
    ] = ALL_CHOICES,
    rows: Annotated[str, typer.Option(help="Tables: which rows, see --list.")] = ALL_CHOICES,
    theta: Annotated[
        str | None, typer.Option(help="Tables of sgd/: which theta*, see --list.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Tables: folder for results; a second run continues there.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Run a reference case or a published table again, beside its numbers; alone, list them.

    A case runs one agent, at the printed size or any other. `--set` sets an argument of the agent
    or of the problem (`env.KEY=VALUE`: of the problem only). Options that the agent does not have
    are ignored with a message. A table runs its own agents on its own rows: it takes `--reading`,
    `--rows`, `--out` and, where the paper leaves theta* open, `--theta`, but no option of an agent.
    With `--out` and all rows it also draws the figures.

    Example: `dpbandit reproduce contextual/p1 --agent linucb --set alpha=theory`

    Example: `dpbandit reproduce sgd/table-5-1 --reading certified --rows p=inf,T=2000`
    """
    if case is not None:
        one_of("case", case, [*CASES, *TABLES], see="dpbandit reproduce --list")
    others = more or specified(context, [name for name in context.params if name != "list_cases"])
    if list_cases or not others:
        if others:
            raise InputError("Expected --list alone: it shows every case.")
        _print_cases()
        return
    if case is not None and case in TABLES:
        if more or specified(context, tuple(_OF_CASES)):
            raise InputError(
                f"Expected {case} without {', '.join(_OF_CASES.values())}: it is a table, which "
                f"takes {', '.join(_OF_TABLES.values())}, --replicas, --seed and --json."
            )
        sizes: dict[str, Any] = {"replicas": replicas, "seed": seed, "out": out, "theta": theta}
        _redo(TABLES[case], reading, rows, sizes, json)
        return
    if specified(context, tuple(_OF_TABLES)):
        raise InputError(
            f"Expected {', '.join(_OF_TABLES.values())} only with a table: {', '.join(TABLES)}."
        )
    if case is None or agent is None:
        raise InputError("Expected a CASE and --agent ID (or --list, or a table).")
    words: dict[str, Any] = {"calibration": calibration and calibration.value, "noise": noise}
    words |= {"epsilon": epsilon, "delta": delta}
    named = {key: value for key, value in words.items() if value is not None}
    chosen = parse_settings([*(settings or []), *(more or [])])
    named_options = {*named, *(["horizon"] if specified(context, ["horizon"]) else [])}
    for key in chosen:
        if (name := "horizon" if key == "T" else key) in named_options:
            raise InputError(f"Expected {name} once, got it by --{name} and by --set {key}=...")
    every_setting = named | chosen
    agent = meant(agent, every_setting)
    known = setting_names(agent)
    check_writable(json)
    if without := [key for key in named if key in every_setting and key not in known]:
        say(f"{agent} has no {' and no '.join(without)}: left out.")
    chosen = {key: value for key, value in every_setting.items() if key not in without}
    record = run_case(case, agent, settings=chosen, horizon=horizon, replicas=replicas, seed=seed)
    console, saved = screen(), Saved()
    if json is not None:
        saved.write("", write_json, json, record)
    mean, certified = (rounded(record[what], 4) for what in ("mean", "certified_epsilon"))
    console.print(
        f"{case} {agent}: {record['measure']} {mean} ({_spread(record['se'])}) after "
        f"{record['horizon']} rounds, {replicas} replicas, {record['seconds']:.1f} s; "
        f"certified epsilon {certified}, {record['notion']}",
        highlight=False,
    )
    if record["reference"] is not None:
        mean, se = record["reference"]["mean"], record["reference"]["se"]
        z = "" if record["z"] is None else f", z = {record['z']:+.2f}"
        console.print(f"reference {mean} (se {se}){z}", highlight=False)
    if record["least"] is not None:
        least = rounded(record["least"], 4)
        console.print(f"nobody as private loses less than {least}", highlight=False)
    saved.tell()


def _print_cases() -> None:
    """Print the papers' tables with their options, and reference cases with agents and numbers."""
    console = screen()
    for paper in TABLES.values():
        console.print(Text.assemble((paper.name, "bold"), f"  {paper.summary}"))
        options = Table("--reading", "what it is", box=None)
        for reading, what in {**paper.readings, "all": "side by side"}.items():
            options.add_row(reading, what)
        console.print(options)
        console.print(f"--rows: {paper.rows}", highlight=False)
        for theta, what in paper.thetas.items():
            console.print(f"--theta {theta}: {what}", highlight=False)
    for case in CASES.values():
        measured = "" if case.measure == "regret" else f" ({case.measure})"
        console.print(Text.assemble((case.name, "bold"), f"  {case.summary}{measured}"))
        table = Table("agent", "set", "reference", "horizon", "note", box=None, keys=2)
        for reference in case.references:
            settings = " ".join(f"{key}={value}" for key, value in reference.settings.items())
            number = f"{reference.mean} (se {reference.se})"
            table.add_row(reference.agent, settings, number, str(reference.horizon), reference.note)
        others = [name for name in case.agents if name not in {r.agent for r in case.references}]
        for name in others:
            table.add_row(name, "", "-", "", "")
        console.print(table)


def _spread(se: float) -> str:
    """Format a standard error; NaN, that of a single replica, becomes `no se`."""
    return "no se" if isnan(se) else f"se {rounded(se, 2)}"


def _redo(
    table: PaperTable, reading: str, rows: str, sizes: Mapping[str, Any], json: Path | None
) -> None:
    check_writable(json, sizes["out"] and sizes["out"] / "summary.csv")
    made, saved = table.run(reading, rows, **sizes), Saved()
    if json is not None:
        saved.write("", write_json, json, made.records)
    console = screen()
    for part in made.tables:
        console.print(part)
    for path in made.files:
        say(f"Written to {path}.")
    saved.tell()
