"""`dpbandit audit`: try to refute a certificate."""

from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.text import Text

from dpbandit.agents import AGENTS
from dpbandit.auditing.audit import SUFFIXES, plot_audit
from dpbandit.auditing.audit import audit as run_audit
from dpbandit.auditing.everyone import audit_all, with_printed
from dpbandit.auditing.views import View
from dpbandit.base.fields import parse_settings
from dpbandit.base.files import check_writable, write_json
from dpbandit.base.inputs import InputError, one_of, privacy_target
from dpbandit.commands.options import (
    Delta,
    Env,
    Epsilon,
    Horizon,
    Seed,
    Settings,
    complete_agents,
    given,
    say,
    say_overridden,
)
from dpbandit.commands.tables import audit_table, screen
from dpbandit.running.given import spec_given
from dpbandit.running.settings import parse_agent
from dpbandit.specs.protocols import AgentConfig

_OF_ONE = ("env", "horizon", "settings", "plot")
"""Options of `audit` that --all does not have."""


def audit(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Argument(help="ID[:KEY=VALUE...], or --all.", autocompletion=complete_agents),
    ] = None,
    env: Env = "dpbandit/GLMBandit-v0",
    everyone: Annotated[
        bool,
        typer.Option("--all", help="Every private agent, also as printed, on a small problem."),
    ] = False,
    horizon: Horizon = 40,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-5,
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
    if everyone == (agent is not None) or (everyone and given(context, _OF_ONE)):
        raise InputError(
            "Expected either one AGENT, with --env, --horizon, --set and --plot if wanted, or "
            "--all, which chooses a small problem for each."
        )
    if plot is not None:
        one_of("suffix of the plot", plot.suffix, SUFFIXES)
    check_writable(out, plot)
    how: dict[str, Any] = {
        "runs": runs,
        "view": cast(View, view),
        "seed": seed,
        "failure": failure,
        "jobs": jobs,
    }
    console = screen()
    if agent is None:
        configs = dict[str, AgentConfig]()
        for name in AGENTS:
            with suppress(InputError):  # some noise needs delta > 0
                configs[name] = parse_agent(name, epsilon=epsilon, delta=delta)
        reports = audit_all(with_printed(configs), **how)
        console.print(audit_table(reports))
        if unfit := [name for name in _private() if name not in reports]:
            console.print(f"Not audited at epsilon {epsilon:g}, delta {delta:g}: ", end="")
            console.print(f"{', '.join(unfit)}.", highlight=False)
        document: dict[str, Any] = {name: report.as_dict() for name, report in reports.items()}
    else:
        spec = spec_given(env, horizon=horizon, env_kwargs=parse_settings(settings))
        report = run_audit(parse_agent(agent, epsilon=epsilon, delta=delta), spec, **how)
        say_overridden(context, [agent])
        console.print(Text(str(report)))
        document = {"agent_id": agent, "environment": env, "horizon": horizon, **report.as_dict()}
        if plot is not None:
            plot_audit(report, plot, title=f"{agent} on {env}, horizon {horizon:,}")
            say(f"Written to {plot}.")
    if out is not None:
        write_json(out, document)
        say(f"Written to {out}.")


def _private() -> list[str]:
    """Agents that have a privacy target."""
    return [n for n, config in AGENTS.items() if "epsilon" in {f.name for f in fields(config)}]
