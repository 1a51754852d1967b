"""`dpbandit reproduce`: a reference case, or a printed table."""

from collections.abc import Mapping
from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import Annotated, Any

import typer

from dpbandit.base.fields import parse_settings
from dpbandit.base.files import check_writable, write_json
from dpbandit.base.inputs import InputError, one_of
from dpbandit.commands.options import (
    Horizon,
    JsonFile,
    Replicas,
    Seed,
    Settings,
    complete_agents,
    given,
    say,
)
from dpbandit.commands.tables import print_cases, screen
from dpbandit.experiments import CASES
from dpbandit.experiments import reproduce as run_case
from dpbandit.experiments.paper_table import ALL, PaperTable
from dpbandit.experiments.paper_tables import TABLES
from dpbandit.running.settings import meant, setting_names


class Calibration(StrEnum):
    """Whose constants an agent takes."""

    certified = "certified"
    paper = "paper"


_OF_CASES = {
    "agent": "--agent",
    "settings": "--set",
    "calibration": "--calibration",
    "noise": "--noise",
    "epsilon": "--epsilon",
    "delta": "--delta",
    "horizon": "--horizon",
}
_OF_TABLES = {"reading": "--reading", "rows": "--rows", "theta": "--theta", "out": "--out"}
"""Options of `reproduce` that the other kind of case does not have."""


def reproduce(
    context: typer.Context,
    case: Annotated[str | None, typer.Argument(help="Name of a case, see --list.")] = None,
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    agent: Annotated[
        str | None, typer.Option(help="Agent id.", autocompletion=complete_agents)
    ] = None,
    list_cases: Annotated[bool, typer.Option("--list", help="Show the cases.")] = False,
    settings: Settings = None,
    calibration: Annotated[Calibration | None, typer.Option(help="Which constants.")] = None,
    noise: Annotated[str | None, typer.Option(help="Which noise, where the agent has it.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy target, > 0.")] = None,
    delta: Annotated[float | None, typer.Option(help="Privacy target, in [0, 1).")] = None,
    horizon: Horizon = 10_000,
    replicas: Replicas = 50,
    seed: Seed = 0,
    reading: Annotated[str, typer.Option(help="Tables: one of their readings, or all.")] = ALL,
    rows: Annotated[str, typer.Option(help="Tables: some of the rows, see --list.")] = ALL,
    theta: Annotated[
        str | None, typer.Option(help="sgd/: theta* with equal entries, or as stated.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Tables: folder for results, taken up again.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Run one agent on a reference case, at the printed size or any other, or redo a table.

    `--set` sets an argument of the agent or of the problem (`env.KEY=VALUE`: of the problem). Named
    options that the agent does not have are left out, and it says so. Tables run their own agents
    on their own rows: they take `--reading`, `--rows`, `--out` and, where theta* is open, `--theta`
    in place of all that; figures come with the whole table and `--out`.

    Example: `dpbandit reproduce contextual/p1 --agent linucb --set alpha=theory`

    Example: `dpbandit reproduce sgd/table-5-1 --reading certified --rows p=inf,T=2000`
    """
    if case is not None:
        one_of("case", case, [*CASES, *TABLES], see="dpbandit reproduce --list")
    if list_cases:
        if more or given(context, [name for name in context.params if name != "list_cases"]):
            raise InputError("Expected --list alone: it shows every case.")
        print_cases()
        return
    if case in TABLES:
        if more or given(context, tuple(_OF_CASES)):
            raise InputError(
                f"Expected {case} without {', '.join(_OF_CASES.values())}: it is a table, which "
                f"takes {', '.join(_OF_TABLES.values())}, --replicas, --seed and --json."
            )
        sizes: dict[str, Any] = {"replicas": replicas, "seed": seed, "out": out, "theta": theta}
        _redo(TABLES[case], reading, rows, sizes, json)
        return
    if given(context, tuple(_OF_TABLES)):
        raise InputError(
            f"Expected {', '.join(_OF_TABLES.values())} only with a table: {', '.join(TABLES)}."
        )
    if case is None or agent is None:
        raise InputError("Expected a CASE and --agent ID (or --list, or a table).")
    words: dict[str, Any] = {"calibration": calibration and calibration.value, "noise": noise}
    words |= {"epsilon": epsilon, "delta": delta}
    named = {key: value for key, value in words.items() if value is not None}
    chosen = parse_settings([*(settings or []), *(more or [])])
    said = {*named, *(["horizon"] if given(context, ["horizon"]) else [])}
    for key in chosen:
        if (name := "horizon" if key == "T" else key) in said:
            raise InputError(f"Expected {name} once, got it by --{name} and by --set {key}=...")
    told = named | chosen
    agent = meant(agent, told)
    known = setting_names(agent)
    check_writable(json)
    if without := [key for key in named if key in told and key not in known]:
        say(f"{agent} has no {' and no '.join(without)}: left out.")
    chosen = {key: value for key, value in told.items() if key not in without}
    record = run_case(case, agent, settings=chosen, horizon=horizon, replicas=replicas, seed=seed)
    console = screen()
    console.print(
        f"{case} {agent}: {record['measure']} {record['mean']:.4g} ({_spread(record['se'])}) after "
        f"{record['horizon']} rounds, {replicas} replicas, {record['seconds']:.1f} s; "
        f"certified epsilon {record['certified_epsilon']:.4g}, {record['notion']}",
        highlight=False,
    )
    if record["reference"] is not None:
        mean, se = record["reference"]["mean"], record["reference"]["se"]
        z = "" if record["z"] is None else f", z = {record['z']:+.2f}"
        console.print(f"reference {mean} (se {se}){z}", highlight=False)
    if record["least"] is not None:
        console.print(f"nobody as private loses less than {record['least']:.4g}", highlight=False)
    if json is not None:
        write_json(json, record)


def _spread(se: float) -> str:
    """One replica has no standard error."""
    return "no se" if isnan(se) else f"se {se:.2g}"


def _redo(
    table: PaperTable, reading: str, rows: str, sizes: Mapping[str, Any], json: Path | None
) -> None:
    check_writable(json, sizes["out"] and sizes["out"] / "summary.csv")
    made = table.run(reading, rows, **sizes)
    console = screen()
    for part in made.tables:
        console.print(part)
    for path in made.files:
        say(f"Written to {path}.")
    if json is not None:
        write_json(json, made.records)
