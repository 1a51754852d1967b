"""Options that several commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

Epsilon = Annotated[float, typer.Option(help="Privacy target of every private agent, > 0.")]
Delta = Annotated[float, typer.Option(help="Privacy target of every private agent, in [0, 1).")]
Horizon = Annotated[int, typer.Option(help="Rounds, >= 1.")]
Replicas = Annotated[int, typer.Option(help="Independent repetitions, >= 1.")]
Seed = Annotated[int, typer.Option(help="Replica r depends on (seed, r) only.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the numbers here.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, as often as needed.")]


def given(context: typer.Context, names: Sequence[str]) -> bool:
    """Whether any of these options is on the command line."""
    sources = (context.get_parameter_source(name) for name in names)
    return any(source is not None and source.name == "COMMANDLINE" for source in sources)
