"""`dpbandit compare`: agents on the same users."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from dpbandit.base.fields import parse_settings
from dpbandit.base.files import check_writable, write_json
from dpbandit.base.inputs import InputError, privacy_target
from dpbandit.commands.options import (
    Delta,
    Epsilon,
    Horizon,
    JsonFile,
    Replicas,
    Seed,
    Settings,
    complete_agents,
    complete_env,
    say,
    say_overridden,
)
from dpbandit.commands.tables import print_results
from dpbandit.results.results import FILES
from dpbandit.running.compare import compare as run_comparison
from dpbandit.running.settings import listed, parse_agent
from dpbandit.specs.protocols import AgentConfig


def compare(
    context: typer.Context,
    env: Annotated[
        str,
        typer.Argument(help="Environment id, see `dpbandit envs`.", autocompletion=complete_env),
    ],
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    agents: Annotated[
        list[str] | None,
        typer.Option(
            help="Agent ids with settings, ID[:KEY=VALUE...], separated by commas; MODULE:CLASS is "
            "a config of your own.",
            autocompletion=complete_agents,
        ),
    ] = None,
    horizon: Horizon = 10_000,
    replicas: Replicas = 20,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-5,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Processes that share the replicas.")] = 1,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for frame, summary, results and regret.png.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the results that are there.")
    ] = False,
    json: JsonFile = None,
) -> None:
    """Compare agents by cumulative regret, with a certificate for each and a plot.

    Uniform play and the best fixed action are always in the table. `--set` sets an argument of
    the environment. Results that are in `--out` already stay there, unless `--overwrite`.

    Example: `dpbandit compare dpbandit/OJPricing-v0 --agents linucb,dp-ucb:alpha=2 --epsilon 1
    --out out`
    """
    privacy_target(epsilon, delta)
    ids = [name for part in [*(agents or []), *(more or [])] for name in listed(part)]
    configs = _different(ids, epsilon=epsilon, delta=delta)
    files = [] if out is None else [out / name for name in FILES]
    check_writable(json, *files)
    there = [] if overwrite else [file.name for file in files if file.exists()]
    if there:
        raise InputError(
            f"Expected --out={out} to hold no results yet, found {', '.join(there)}: name another "
            "folder, or --overwrite."
        )
    say_overridden(context, configs)
    results = run_comparison(
        env,
        configs,
        horizon=horizon,
        replicas=replicas,
        seed=seed,
        env_kwargs=parse_settings(settings),
        jobs=jobs,
    )
    print_results(results)
    if json is not None:
        write_json(json, results.records())
    if out is not None:
        folder = results.save(out)
        say(f"Written to {folder}: {', '.join(FILES)}.")


def _different(names: Iterable[str], **targets: float) -> dict[str, AgentConfig]:
    """The agents by their names; two that are the same would be one curve below another."""
    configs: dict[str, AgentConfig] = {}
    for name in names:
        config = parse_agent(name, **targets)
        for other, same in configs.items():
            if config == same:
                raise InputError(f"Expected every agent once: {other} and {name} are the same.")
        configs[name] = config
    return configs
