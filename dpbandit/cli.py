"""The command line: `dpbandit envs | agents | compare | certify | audit | reproduce`."""

import inspect
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import gymnasium as gym
import typer
from gymnasium.envs.registration import load_env_creator
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpbandit.agents import AGENTS
from dpbandit.auditing.audit import audit as run_audit
from dpbandit.auditing.everyone import audit_all, with_printed
from dpbandit.auditing.report import SUFFIXES, plot_audit
from dpbandit.auditing.views import View
from dpbandit.evaluate import certify as make_certificate
from dpbandit.evaluate import compare as run_comparison
from dpbandit.evaluate import problem_maker
from dpbandit.experiments import reproduce as run_case
from dpbandit.experiments.paper_table import ALL, PaperTable
from dpbandit.experiments.paper_tables import TABLES
from dpbandit.experiments.reproduce import parse_settings
from dpbandit.inputs import BadInput, one_of, privacy_target
from dpbandit.protocols import AgentConfig
from dpbandit.results import check_writable, plot_certificate, write_json
from dpbandit.tables import audit_table, print_cases, print_results
from dpbandit.version import VERSION

app = typer.Typer(
    name="dpbandit",
    help="What does joint differential privacy cost a bandit, in regret?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

Epsilon = Annotated[float, typer.Option(help="Privacy target of every private agent, > 0.")]
Delta = Annotated[float, typer.Option(help="Privacy target of every private agent, in [0, 1).")]
Horizon = Annotated[int, typer.Option(help="Rounds, >= 1.")]
Replicas = Annotated[int, typer.Option(help="Independent repetitions, >= 1.")]
Seed = Annotated[int, typer.Option(help="Replica r depends on (seed, r) only.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the numbers here.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, as often as needed.")]


class Calibration(StrEnum):
    """Which constants."""

    certified = "certified"
    paper = "paper"


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"dpbandit {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """What does joint differential privacy cost a bandit, in regret?"""


@app.command()
def envs() -> None:
    """The environments, their ids and what they are.

    Example: `dpbandit envs`
    """
    table = Table("id", "what it is", box=None, pad_edge=False)
    for name, entry in gym.registry.items():
        if "problem" in entry.kwargs:
            table.add_row(name, _first_line(load_env_creator(entry.kwargs["problem"])))
    Console().print(table)


@app.command()
def agents() -> None:
    """The agents, their ids, what they are and the settings they take.

    Example: `dpbandit agents`
    """
    table = Table("id", "what it is", "settings", box=None, pad_edge=False)
    for name, config in AGENTS.items():
        settings = ", ".join(f"{field.name}={field.default}" for field in fields(config))
        table.add_row(name, _first_line(config), settings)
    Console().print(table)


@app.command()
def compare(
    env: Annotated[str, typer.Argument(help="Environment id, see `dpbandit envs`.")],
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    agents: Annotated[
        list[str] | None,
        typer.Option(help="Agent ids with settings, ID[:KEY=VALUE...], separated by commas."),
    ] = None,
    horizon: Horizon = 10_000,
    replicas: Replicas = 20,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-5,
    seed: Seed = 0,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for frame, summary, results and regret.png.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Compare agents by cumulative regret, with a certificate for each and a plot.

    Uniform play and the best fixed action are always in the table. `--set` sets an argument of
    the environment.

    Example: `dpbandit compare dpbandit/OJPricing-v0 --agents linucb,dp-ucb:alpha=2 --epsilon 1
    --out out`
    """
    privacy_target(epsilon, delta)
    ids = [name for part in [*(agents or []), *(more or [])] for name in part.split(",") if name]
    configs = {name: _agent(name, epsilon, delta) for name in ids}
    for target in (json, out and out / "results.json"):
        if target is not None:
            check_writable(target)
    results = run_comparison(
        env,
        configs,
        horizon=horizon,
        replicas=replicas,
        seed=seed,
        env_kwargs=parse_settings(settings),
    )
    print_results(results)
    if json is not None:
        write_json(json, results.records())
    if out is not None:
        folder = results.save(out)
        names = ", ".join(sorted(path.name for path in folder.iterdir() if path.is_file()))
        Console().print(f"Written to {folder}: {names}.", highlight=False)


@app.command()
def certify(
    agent: Annotated[str, typer.Argument(help="ID[:KEY=VALUE...], see `dpbandit agents`.")],
    env: Annotated[str, typer.Option(help="Environment id.")] = "dpbandit/GLMBandit-v0",
    horizon: Horizon = 10_000,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-5,
    settings: Settings = None,
    json: JsonFile = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the curve delta(epsilon) here.")] = None,
) -> None:
    """What an agent's noise really buys, by every accountant, beside what it claims.

    Example: `dpbandit certify dp-ucb:calibration=paper --env dpbandit/OJPricing-v0 --epsilon 1
    --plot curve.png`
    """
    privacy_target(epsilon, delta)
    make = problem_maker(env)
    spec = make(**{**parse_settings(settings), "horizon": horizon}).spec
    proof = make_certificate(_agent(agent, epsilon, delta), spec)
    Console().print(Text(str(proof)))
    if json is not None:
        write_json(json, proof.as_dict())
    if plot is not None:
        plot_certificate(proof, plot, title=f"{agent} on {env}, horizon {horizon:,}")
        Console().print(f"Written to {plot}.", highlight=False)


_OF_ONE = ("env", "horizon", "settings", "plot")
"""Options of `audit` that --all does not have."""


@app.command()
def audit(
    context: typer.Context,
    agent: Annotated[str | None, typer.Argument(help="ID[:KEY=VALUE...], or --all.")] = None,
    env: Annotated[str, typer.Option(help="Environment id.")] = "dpbandit/GLMBandit-v0",
    everyone: Annotated[
        bool,
        typer.Option("--all", help="Every private agent, also as printed, on a small problem."),
    ] = False,
    horizon: Horizon = 40,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-4,
    runs: Annotated[int, typer.Option(help="Runs of each of two worlds, >= 400.")] = 20_000,
    view: Annotated[
        str, typer.Option(help="released (white box) or actions (of everybody else).")
    ] = "released",
    failure: Annotated[
        float, typer.Option(help="Probability that anything shown may be wrong.")
    ] = 0.05,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    settings: Settings = None,
    out: Annotated[Path | None, typer.Option(help="Write the report here, as JSON.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the trade-off curves here.")] = None,
) -> None:
    """Try to refute a certificate: a lower bound on epsilon, measured.

    Example: `dpbandit audit dp-ucb --env dpbandit/OJPricing-v0 --epsilon 1 --runs 20000
    --out report.json --plot tradeoff.png`
    """
    privacy_target(epsilon, delta)
    if everyone == (agent is not None) or (everyone and _given(context, _OF_ONE)):
        raise BadInput(
            "Expected either one AGENT, with --env, --horizon, --set and --plot if wanted, or "
            "--all, which chooses a small problem for each."
        )
    if plot is not None:
        one_of("suffix of the plot", plot.suffix, SUFFIXES)
    for target in (out, plot):
        if target is not None:
            check_writable(target)
    how: dict[str, Any] = {
        "runs": runs,
        "view": cast(View, view),
        "seed": seed,
        "failure": failure,
        "jobs": jobs,
    }
    console = Console()
    if agent is None:
        configs = dict[str, AgentConfig]()
        for name in AGENTS:
            with suppress(BadInput):  # some noise needs delta > 0
                configs[name] = _agent(name, epsilon, delta)
        reports = audit_all(with_printed(configs), **how)
        console.print(audit_table(reports))
        if unfit := [name for name in _private() if name not in reports]:
            console.print(f"Not audited at epsilon {epsilon:g}, delta {delta:g}: ", end="")
            console.print(f"{', '.join(unfit)}.", highlight=False)
        document: dict[str, Any] = {name: report.as_dict() for name, report in reports.items()}
    else:
        make = problem_maker(env)
        spec = make(**{**parse_settings(settings), "horizon": horizon}).spec
        report = run_audit(_agent(agent, epsilon, delta), spec, **how)
        console.print(Text(str(report)))
        document = {"agent_id": agent, "environment": env, "horizon": horizon, **report.as_dict()}
        if plot is not None:
            plot_audit(report, plot, title=f"{agent} on {env}, horizon {horizon:,}")
            console.print(f"Written to {plot}.", highlight=False)
    if out is not None:
        write_json(out, document)
        console.print(f"Written to {out}.", highlight=False)


def _given(context: typer.Context, names: Sequence[str]) -> bool:
    """Whether any of these options is on the command line."""
    sources = (context.get_parameter_source(name) for name in names)
    return any(source is not None and source.name == "COMMANDLINE" for source in sources)


def _private() -> list[str]:
    """Agents that have a privacy target."""
    return [n for n, config in AGENTS.items() if "epsilon" in {f.name for f in fields(config)}]


_OF_CASES = {
    "agent": "--agent",
    "settings": "--set",
    "calibration": "--calibration",
    "noise": "--noise",
    "epsilon": "--epsilon",
    "delta": "--delta",
    "horizon": "--horizon",
}
_OF_TABLES = {"reading": "--reading", "rows": "--rows", "out": "--out"}
"""Options of `reproduce` that the other kind of case does not have."""


@app.command()
def reproduce(
    context: typer.Context,
    case: Annotated[str | None, typer.Argument(help="Name of a case, see --list.")] = None,
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    agent: Annotated[str | None, typer.Option(help="Agent id.")] = None,
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
    out: Annotated[
        Path | None, typer.Option(help="Tables: folder for results, taken up again.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Run one agent on a reference case, at the printed size or any other, or redo a table.

    `--set` sets an argument of the agent or of the problem (`env.KEY=VALUE`: of the problem). Named
    options that the agent does not have are left out. Tables run their own agents on their own
    rows: they take `--reading`, `--rows` and `--out` in place of all that; figures come with the
    whole table and `--out`.

    Example: `dpbandit reproduce contextual/p1 --agent linucb --set alpha=theory`

    Example: `dpbandit reproduce sgd/table-5-1 --reading certified --rows p=inf,T=2000`
    """
    if list_cases:
        print_cases()
        return
    if case in TABLES:
        if more or _given(context, tuple(_OF_CASES)):
            raise BadInput(
                f"Expected {case} without {', '.join(_OF_CASES.values())}: it is a table, which "
                f"takes {', '.join(_OF_TABLES.values())}, --replicas, --seed and --json."
            )
        _redo(TABLES[case], reading, rows, replicas=replicas, seed=seed, out=out, json=json)
        return
    if _given(context, tuple(_OF_TABLES)):
        raise BadInput(
            f"Expected {', '.join(_OF_TABLES.values())} only with a table: {', '.join(TABLES)}."
        )
    if case is None or agent is None:
        raise BadInput("Expected a CASE and --agent ID (or --list, or a table).")
    named = {"calibration": calibration and calibration.value, "noise": noise}
    named |= {"epsilon": epsilon, "delta": delta}  # type: ignore[dict-item]
    chosen = parse_settings([*(settings or []), *(more or [])])
    one_of("agent", agent, AGENTS)
    known = {field.name for field in fields(AGENTS[agent])}
    chosen |= {key: value for key, value in named.items() if value is not None and key in known}
    record = run_case(case, agent, settings=chosen, horizon=horizon, replicas=replicas, seed=seed)
    console = Console()
    console.print(
        f"{case} {agent}: {record['measure']} {record['mean']:.4g} (se {record['se']:.2g}) after "
        f"{horizon} rounds, {replicas} replicas, {record['seconds']:.1f} s; "
        f"certified epsilon {record['certified_epsilon']:.4g}, {record['notion']}",
        highlight=False,
    )
    if record["reference"] is not None:
        mean, se = record["reference"]["mean"], record["reference"]["se"]
        console.print(f"reference {mean} (se {se}), z = {record['z']:+.2f}", highlight=False)
    if record["least"] is not None:
        console.print(f"nobody as private loses less than {record['least']:.4g}", highlight=False)
    if json is not None:
        write_json(json, record)


def _redo(
    table: PaperTable,
    reading: str,
    rows: str,
    *,
    replicas: int,
    seed: int,
    out: Path | None,
    json: Path | None,
) -> None:
    if json is not None:
        check_writable(json)
    made = table.run(reading, rows, replicas=replicas, seed=seed, out=out)
    console = Console()
    for part in made.tables:
        console.print(part)
    for path in made.files:
        console.print(f"Written to {path}.", highlight=False)
    if json is not None:
        write_json(json, made.records)


def _agent(text: str, epsilon: float, delta: float) -> AgentConfig:
    """ID[:KEY=VALUE...] as a config; epsilon and delta go to the agents that have them."""
    name, *settings = text.split(":")
    plainly = {re.sub(r"[^a-z]", "", known): known for known in AGENTS}
    known = plainly.get(re.sub(r"[^a-z]", "", name.lower()), name)
    one_of("agent", known, AGENTS)
    names = [field.name for field in fields(AGENTS[known])]
    chosen = parse_settings(settings)
    for key in chosen:
        one_of(f"setting of {known}", key, names or ["(none)"])
    targets: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    defaults = {key: value for key, value in targets.items() if key in names}
    config: AgentConfig = AGENTS[known](**{**defaults, **chosen})
    return config


def _first_line(documented: Any) -> str:
    return (inspect.getdoc(documented) or "").partition("\n")[0]


def main() -> None:
    """Entry point: one plain sentence and exit code 2 on bad input."""
    try:
        app()
    except BadInput as mistake:
        print(f"dpbandit: {mistake}", file=sys.stderr)
        sys.exit(2)
