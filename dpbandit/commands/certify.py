"""`dpbandit certify`: what an agent's noise really buys."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from dpbandit.base.fields import parse_settings
from dpbandit.base.files import check_writable, write_json
from dpbandit.base.inputs import one_of, privacy_target
from dpbandit.commands.options import (
    Delta,
    Env,
    Epsilon,
    Horizon,
    JsonFile,
    Settings,
    complete_agents,
    say,
    say_overridden,
)
from dpbandit.commands.tables import screen
from dpbandit.results.results import FORMATS, plot_certificate
from dpbandit.running.compare import certify as make_certificate
from dpbandit.running.given import spec_given
from dpbandit.running.settings import parse_agent


def certify(
    context: typer.Context,
    agent: Annotated[
        str,
        typer.Argument(
            help="ID[:KEY=VALUE...], see `dpbandit agents`.", autocompletion=complete_agents
        ),
    ],
    env: Env = "dpbandit/GLMBandit-v0",
    horizon: Horizon = 10_000,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-5,
    settings: Settings = None,
    json: JsonFile = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the curve delta(epsilon) here.")] = None,
) -> None:
    """What an agent's noise really buys, by every accountant, beside what it claims.

    Example: `dpbandit certify shariff-sheffet-ucb:calibration=paper --env dpbandit/OJPricing-v0
    --epsilon 1 --plot curve.png`
    """
    privacy_target(epsilon, delta)
    if plot is not None:
        one_of("suffix of the plot", plot.suffix, FORMATS)
    check_writable(json, plot)
    spec = spec_given(env, horizon=horizon, env_kwargs=parse_settings(settings))
    proof = make_certificate(parse_agent(agent, epsilon=epsilon, delta=delta), spec)
    say_overridden(context, [agent])
    screen().print(Text(str(proof)))
    if json is not None:
        write_json(json, proof.as_dict())
    if plot is not None:
        plot_certificate(proof, plot, title=f"{agent} on {env}, horizon {horizon:,}")
        say(f"Written to {plot}.")
