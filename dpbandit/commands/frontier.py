"""`dpbandit frontier`: the least epsilon at which an agent loses no more than so much."""

from math import isinf
from pathlib import Path
from typing import Annotated

import typer

from dpbandit.base import InputError, parse_settings
from dpbandit.commands.options import Horizon, Replicas, Seed, Settings, complete_env, say


def frontier(
    env: Annotated[
        str,
        typer.Argument(help="Environment id, see `dpbandit envs`.", autocompletion=complete_env),
    ],
    lost: Annotated[
        str,
        typer.Option(help="What may be lost, as a share of what uniform play loses, or a regret."),
    ] = "5%",
    horizon: Horizon = 10_000,
    replicas: Replicas = 20,
    seed: Seed = 0,
    settings: Settings = None,
    stored: Annotated[
        Path | None, typer.Option("--from", help="Folder of runs, in place of fresh ones.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="Agent in place of the recommended one; id without epsilon.")
    ] = None,
) -> None:
    """Compute the least epsilon at which an agent loses no more than `--lost`, with an interval.

    The recommended agent is played at nine epsilons from 0.05 to 20 on the same users.

    Example: `dpbandit frontier OJPricing --lost 5% --horizon 20000`
    """
    from dpbandit.results import Results
    from dpbandit.running.compare import compare
    from dpbandit.running.recommend import recommend

    arguments = parse_settings(settings)
    known = agent or recommend(env, horizon=horizon, env_kwargs=arguments).rpartition(":")[0]
    if stored is not None:
        results = Results.load(stored)
    elif not known:
        raise InputError(f"Expected an agent: none of ours is private on {env}.")
    else:
        agents = ",".join(f"{known}:epsilon={epsilon}" for epsilon in _EPSILONS)
        results = compare(
            env, agents, horizon=horizon, replicas=replicas, seed=seed, env_kwargs=arguments
        )
    regret = _allowed(lost, results["Uniform"].summary()["mean"].iloc[0])
    found = results.epsilon_for(regret, agent=known)
    unit = f"{regret:.4g} {results.reward_unit}"
    if isinf(found.epsilon):
        say(f"{known} loses more than {unit} at every epsilon that was run.")
        return
    say(f"{known} loses {unit} or less from epsilon {found.epsilon:.3g} on.")
    say(f"95 % interval: {found.low:.3g} to {found.high:.3g}, of certified epsilons.")


_EPSILONS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)


def _allowed(lost: str, uniform: float) -> float:
    """The regret that `lost` allows; raises `InputError` where it is no number above 0."""
    words = lost.strip()
    try:
        value = float(words.removesuffix("%"))
    except ValueError:
        value = 0.0
    if not value > 0:
        raise InputError(f"Expected --lost={lost} to be above 0, such as 5% or 200.")
    return value / 100 * uniform if words.endswith("%") else value
