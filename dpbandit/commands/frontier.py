"""`dpbandit frontier`: the least epsilon at which an agent loses no more than so much."""

from math import inf, isinf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpbandit.base import InputError, parse_settings, rounded
from dpbandit.commands.options import Horizon, Replicas, Seed, Settings, complete_env, say

if TYPE_CHECKING:
    from dpbandit.results import Results


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

    The recommended agent is played at nine epsilons from 0.05 to 20, and one without privacy beside
    it, on the same users; sentences say what privacy costs at each epsilon.

    Example: `dpbandit frontier OJPricing --lost 5% --horizon 20000`
    """
    from dpbandit.results import Results
    from dpbandit.running.compare import compare
    from dpbandit.running.cost_of_privacy import cost_of_privacy
    from dpbandit.running.environments import environment_id
    from dpbandit.running.recommend import recommend

    value, share = _allowed(lost)
    arguments = parse_settings(settings)
    known = agent or recommend(env, horizon=horizon, env_kwargs=arguments).rpartition(":")[0]
    if stored is not None:
        results = _on(environment_id(env), Results.load(stored))
    elif not known:
        raise InputError(f"Expected an agent: none of ours is private on {env}.")
    else:
        public = recommend(env, inf, horizon=horizon, env_kwargs=arguments)
        agents = [f"{known}:epsilon={epsilon}" for epsilon in _EPSILONS]
        agents += [public] if public != "uniform" else []
        results = compare(
            env, agents, horizon=horizon, replicas=replicas, seed=seed, env_kwargs=arguments
        )
    regret = value * (results["Uniform"].summary()["mean"].iloc[0] if share else 1.0)
    found = results.epsilon_for(regret, agent=known)
    unit = f"{rounded(regret, 4)} {results.reward_unit}"
    if isinf(found.epsilon):
        of = f", {found.least / regret * value:.0%} of what uniform play loses" if share else ""
        say(f"{known} loses more than {unit} at every epsilon that was run.")
        say(f"The least is {rounded(found.least, 4)}{of}.")
    else:
        say(f"{known} loses {unit} or less from epsilon {rounded(found.epsilon)} on.")
        ends = f"{rounded(found.low)} to {rounded(found.high)}"
        say(f"95 % interval: {ends}, of certified epsilons.")
    for sentence in cost_of_privacy(results):
        say(sentence)


_EPSILONS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)


def _on(env: str, stored: "Results") -> "Results":
    """The runs on an environment, whose id some of them have as it was written."""
    called = {env, env.removesuffix("-v0"), env.removeprefix("dpbandit/").removesuffix("-v0")}
    some = next((run for run in stored.runs if run.setup.environment in called), None)
    if some is None:
        there = ", ".join(sorted({run.setup.environment for run in stored.runs}))
        raise InputError(f"Expected runs on {env} in --from, got those on {there}.")
    return stored.where(environment=some.setup.environment)


def _allowed(lost: str) -> tuple[float, bool]:
    """A share of what uniform play loses, or a regret; which of both."""
    words = lost.strip()
    try:
        value = float(words.removesuffix("%"))
    except ValueError:
        value = 0.0
    if not 0 < value < inf:
        raise InputError(f"Expected --lost={lost} to be above 0, such as 5% or 200.")
    return (value / 100, True) if words.endswith("%") else (value, False)
