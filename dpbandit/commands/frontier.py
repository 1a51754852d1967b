"""`dpbandit frontier`: the least epsilon that costs no more than so much."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import inf, isinf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpbandit.base import InputError, parse_settings, rounded
from dpbandit.commands.options import (
    Horizon,
    Replicas,
    Seed,
    Settings,
    complete_env,
    say,
    specified,
)

if TYPE_CHECKING:
    from dpbandit.results import Results


def frontier(
    context: typer.Context,
    env: Annotated[
        str,
        typer.Argument(
            help="Environment id, see `dpbandit envs`; with --from also the label of a problem.",
            autocompletion=complete_env,
        ),
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
    it, on the same users; sentences state the cost of privacy at each epsilon. With --from, options
    select among the stored runs, which must be of one problem and horizon.

    Example: `dpbandit frontier OJPricing --lost 5% --horizon 20000`
    """
    from dpbandit.results import Results
    from dpbandit.running.compare import compare
    from dpbandit.running.cost_of_privacy import cost_of_privacy
    from dpbandit.running.recommend import recommend

    value, share = _allowed(lost)
    arguments = parse_settings(settings)
    if stored is not None:
        results = _chosen(Results.load(stored), env, arguments)
        sizes = {"horizon": horizon, "seed": seed}
        requested = {name: value for name, value in sizes.items() if specified(context, [name])}
        results = _on_one_problem(results.where(**requested))
        results = (
            _first_replicas(results, replicas) if specified(context, ["replicas"]) else results
        )
        known = agent or _private(results)
    else:
        known = agent or recommend(env, horizon=horizon, env_kwargs=arguments).rpartition(":")[0]
        if not known:
            raise InputError(f"Expected an agent: none of ours is private on {env}.")
        public = recommend(env, inf, horizon=horizon, env_kwargs=arguments)
        agents = [f"{known}:epsilon={epsilon}" for epsilon in _EPSILONS]
        agents += [public] if public != "uniform" else []
        results = compare(
            env,
            agents,
            horizon=horizon,
            replicas=replicas,
            seed=seed,
            env_kwargs=arguments,
            jobs=None,
        )
    regret = value * (results["Uniform"].summary()["mean"].iloc[0] if share else 1.0)
    found = results.epsilon_for(regret, agent=known)
    unit = f"{rounded(regret, 4)} {results.reward_unit}"
    setup, many = results.runs[0].setup, min(len(run.replicas) for run in results)
    say(f"{setup.problem}, {setup.horizon:,} rounds, {many:,} replicas:")
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


_EPSILONS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)  # privacy targets of the agent


def _chosen(stored: "Results", env: str, settings: Mapping[str, Any]) -> "Results":
    """Select stored runs by environment id or label of the problem, and by arguments.

    Stored paths of tables may be relative to another folder, so only file names are compared.
    """
    from dpbandit.results.problems import as_words, listed, short_id
    from dpbandit.running.environments import arguments_of, environment_id, problem_maker

    requested = as_words(settings)
    try:
        known = short_id(environment_id(env))
    except InputError:
        some = [run for run in stored if env in (stored.label(run), run.setup.problem)]
        if not some:
            raise
    else:
        requested = as_words(arguments_of(problem_maker(env), settings))
        some = [run for run in stored if short_id(run.setup.environment) == known]
    some = [
        run
        for run in some
        if all(
            key in run.setup.env_kwargs and _same(key, value, run.setup.env_kwargs[key])
            for key, value in requested.items()
        )
    ]
    if not some:
        suffix = "".join(f" with {key}={value}" for key, value in settings.items())
        there = listed(run.setup for run in stored)
        raise InputError(f"Expected runs on {env}{suffix} in --from, found those on {there}.")
    return replace(stored, runs=tuple(some))


def _same(key: str, requested: Any, there: Any) -> bool:
    if key in ("frame", "path") and isinstance(requested, str) and isinstance(there, str):
        return Path(requested).name == Path(there).name
    return bool(requested == there)


def _on_one_problem(results: "Results") -> "Results":
    """Return the results unchanged; raise `InputError` if their runs are on several problems."""
    from dpbandit.results.problems import several_problems

    if len({run.place for run in results}) > 1:
        how = "choose with --horizon, --seed, --set, or a label in place of ENV"
        raise several_problems((run.setup for run in results), how)
    return results


def _first_replicas(results: "Results", replicas: int) -> "Results":
    """Return replicas 0 to `replicas` - 1 of every run."""
    least = min(len(run.replicas) for run in results)
    if not 1 <= replicas <= least:
        raise InputError(f"Expected --replicas={replicas} from 1 to the {least} in --from.")
    return replace(results, runs=tuple(run.only(run.replicas < replicas) for run in results))


def _private(results: "Results") -> str | None:
    """Return the only private agent of the runs; of several, the recommended one; else None."""
    from dpbandit.results.runs import without_epsilon
    from dpbandit.running.recommend import recommend

    there = {without_epsilon(run.name) for run in results if 0 < run.certificate.epsilon < inf}
    if len(there) == 1:
        return there.pop()
    setup = results.runs[0].setup
    with suppress(InputError):  # results have tables as hashes: such a problem cannot be made
        known = recommend(setup.environment, horizon=setup.horizon, env_kwargs=setup.arguments)
        return next((name for name in there if name == known.rpartition(":")[0]), None)
    return None


def _allowed(lost: str) -> tuple[float, bool]:
    """Parse --lost; return its number, and True if it is a share of uniform play's regret."""
    words = lost.strip()
    try:
        value = float(words.removesuffix("%"))
    except ValueError:
        value = 0.0
    if not 0 < value < inf:
        raise InputError(f"Expected --lost={lost} to be above 0, such as 5% or 200.")
    return (value / 100, True) if words.endswith("%") else (value, False)
