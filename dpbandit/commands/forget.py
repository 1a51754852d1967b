"""`dpbandit forget`: what one user's data change, beside what is promised to her."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from dpbandit.base import Progress, check_writable, parse_settings, privacy_target
from dpbandit.commands.options import (
    Delta,
    Epsilon,
    Horizon,
    Seed,
    Settings,
    complete_agents,
    complete_env,
    say,
    say_overridden,
    screen,
)

FILE = "forgotten.csv"


def forget(
    context: typer.Context,
    agents: Annotated[
        str,
        typer.Argument(
            help="ID[:KEY=VALUE...], several separated by commas.", autocompletion=complete_agents
        ),
    ],
    env: Annotated[
        str,
        typer.Argument(help="Environment id, see `dpbandit envs`.", autocompletion=complete_env),
    ],
    user: Annotated[
        int, typer.Option(help="Her round, from 1; a person's number where people return.")
    ],
    horizon: Horizon = 1000,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-5,
    runs: Annotated[int, typer.Option(help="Runs with her, and runs without, >= 400.")] = 2000,
    failure: Annotated[
        float, typer.Option(help="Probability that an interval is wrong, at most.")
    ] = 0.05,
    seed: Seed = 0,
    settings: Settings = None,
    out: Annotated[Path | None, typer.Option(help=f"Write {FILE} into this folder.")] = None,
) -> None:
    """Retrain agents without one user, count what differs, and try to tell both apart.

    Without her nobody is in her place. It says how many later actions of others differ, with the
    same noise and with fresh noise; with what advantage, TPR - FPR, an observer of these actions
    told both apart; and the most that any observer can have, by the certificate.

    Example: `dpbandit forget fade,linucb OJPricing --user 17`
    """
    import pandas as pd

    from dpbandit.auditing import forget as forget_user
    from dpbandit.running.settings import listed, parse_agent

    privacy_target(epsilon, delta)
    check_writable(None if out is None else out / FILE)
    names, rows = listed(agents), []
    with Progress(len(names) * runs, shown=True) as bar:
        for name in names:
            bar.working_on(name, rate=2)
            found = forget_user(
                parse_agent(name, epsilon=epsilon, delta=delta),
                env,
                user=user,
                horizon=horizon,
                env_kwargs=parse_settings(settings),
                runs=runs,
                seed=seed,
                failure=failure,
                advance=bar.advance,
            )
            rows.append((found.as_dict() | {"agent": name}, found))
    say_overridden(context, names)
    for row, found in rows:
        screen().print(Text(f"{row['agent']}\n{found}\n"))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        pd.DataFrame([row for row, _ in rows]).to_csv(out / FILE, index=False)
        say(f"Written to {out / FILE}.")
