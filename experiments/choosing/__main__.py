"""Does `recommend` choose well? Its agent beside the best private one of the catalogue.

On each problem of a seed, at each epsilon, candidates are played by a first set of users, few
replicas of all and more of the best. The best of them and the agent of `recommend` are then played
by other users, who decide. README.md has results.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import pandas as pd
import typer
from rich.console import Console

from dpbandit.agents.contextual.fade import Model
from dpbandit.base import InputError, check_writable, whole, write_csv
from dpbandit.experiments.choosing.problems import (
    COUNT,
    Drawn,
    Part,
    Seed,
    folder_of,
    part_of,
    problems,
)
from dpbandit.experiments.study import Out, Quick, Replicas, runs_of, start, tabulated
from dpbandit.results.runs import standard_error
from dpbandit.results.shortfalls import shortfalls
from dpbandit.running.answers import ranked
from dpbandit.running.environments import problem_maker
from dpbandit.running.recommend import recommend
from dpbandit.running.settings import parse_agent
from dpbandit.studies import Configuration, certificate_of
from dpbandit.suite.candidates import CLAIM_SLACK

GOOD = 1.2
"""Ratio of regret to that of the best private agent up to which a choice is good"""
FULL_SIZES: Mapping[str, Any] = {
    "user_seed": 5000,
    "ranked": 8,
    "trial": 4,
    "finalists": 2,
    "selection": 12,
    "replicas": 20,
}
"""Seed of the users who select, those who decide have the one before; number of agents taken from
the suite's ranking; replicas of all candidates; number of finalists; replicas of finalists, and of
the two agents that are compared"""
QUICK_SIZES = {**FULL_SIZES, "ranked": 2, "trial": 2, "selection": 2, "replicas": 2, "horizon": 200}
"""Smaller sizes, with as many rounds for every problem"""
OF_FADE = (
    *(f"fade:model={model}" for model in get_args(Model)),
    *("fade:coding=rewards", "fade:centring=private", "fade:features=shrunk"),
    "fade:features=interactions",
)
OF_ARMS = ("allocation-ts", "race-imed", "dp-klucb", "dp-imed")
"""Agents that compete on every problem which they can play, beside those that the suite ranks"""


class Verdict(NamedTuple):
    """Regret of the agent of `recommend` and of the best private agent, by the same users."""

    problem: str
    epsilon: float
    agent: str
    """agent of `recommend`"""
    mean: float
    se: float
    best: str
    best_mean: float
    best_mean_se: float
    ratio: float
    ratio_se: float
    good: bool
    """True if `ratio` is at most `GOOD`"""
    warned: bool
    """True if `recommend` warned, or `Results.warnings` of its agent's run"""


def candidates(drawn: Drawn, epsilon: float, sizes: Mapping[str, Any]) -> Iterator[Configuration]:
    """Yield a configuration of each candidate that can play and whose certificate is enough."""
    setup = drawn.setup(sizes["user_seed"])
    spec = problem_maker(setup.environment)(**setup.env_kwargs).spec
    listed = ranked(spec.measured_as, epsilon)[: sizes["ranked"]]
    for words in dict.fromkeys([*listed, *OF_FADE, *OF_ARMS]):
        try:
            one = Configuration(setup, words, parse_agent(words, epsilon=epsilon))
            if certificate_of(one).epsilon <= epsilon * CLAIM_SLACK:
                yield one
        except InputError:
            continue


def verdict(drawn: Drawn, epsilon: float, sizes: Mapping[str, Any], out: Path) -> Verdict:
    """Select the best candidate, and play it and the agent of `recommend` with other users."""
    found: Sequence[Configuration] = [*candidates(drawn, epsilon, sizes)]
    for stage, left in (("trial", sizes["finalists"]), ("selection", 1)):
        runs = runs_of(stage, found, out / stage, replicas=sizes[stage], progress=False)
        found = sorted(found, key=lambda one: float(runs[one.key].regret[-1].mean()))[:left]
    setup = drawn.setup(sizes["user_seed"] - 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        words = recommend(
            drawn.environment, epsilon, horizon=drawn.horizon, env_kwargs=drawn.arguments
        )
    named = {"recommended": words, "Uniform": "uniform", "BestFixed": "best-fixed"}
    ours = {label: Configuration(setup, label, parse_agent(one)) for label, one in named.items()}
    (best,) = (Configuration(setup, one.name, one.config) for one in found)
    every = [*ours.values(), best]
    runs = runs_of("report", every, out / "report", replicas=sizes["replicas"], progress=False)
    beside = [runs[one.key] for one in ours.values()]
    theirs, mine = runs[best.key].regret[-1], beside[0].regret[-1]
    ratio = float(mine.mean() / theirs.mean())
    return Verdict(
        problem=drawn.name,
        epsilon=epsilon,
        agent=words,
        mean=float(mine.mean()),
        se=standard_error(mine),
        best=best.name,
        best_mean=float(theirs.mean()),
        best_mean_se=standard_error(theirs),
        ratio=ratio,
        ratio_se=standard_error(mine - ratio * theirs) / float(theirs.mean()),  # delta method
        good=ratio <= GOOD,
        warned=bool(caught or shortfalls(beside)),
    )


Count = Annotated[int, typer.Option(help="Number of problems that are drawn.")]
Epsilons = Annotated[list[float], typer.Option("--epsilon", help="May be given several times.")]


def main(
    few: Quick = False,
    out: Out = Path("out/choosing"),
    replicas: Replicas = None,
    seed: Seed = 1,
    part: Part = "0/1",
    epsilons: Epsilons = [0.1, 1.0, 10.0],  # noqa: B006  typer copies it
    count: Count = COUNT,
) -> None:
    """Compare the agent of `recommend` with the best private one. Resumes where it stopped."""
    check_writable(out / "choosing.csv")
    sizes = {**(QUICK_SIZES if few else FULL_SIZES)}
    sizes["replicas"] = sizes["replicas"] if replicas is None else replicas
    whole("replicas", sizes["replicas"], 2)  # there are standard errors
    found = [
        verdict(
            drawn._replace(horizon=sizes.get("horizon", drawn.horizon)),
            epsilon,
            sizes,
            out / folder_of(f"{drawn.kind} {drawn.size} {epsilon:g}"),
        )
        for drawn in part_of(problems(seed, count), part)
        for epsilon in epsilons
    ]
    rows = pd.DataFrame(found).sort_values("ratio", ascending=False, ignore_index=True)
    path = write_csv(out / "choosing.csv", rows)
    for epsilon, some in rows.groupby("epsilon"):
        missed = some[~some["good"]]
        title = f"epsilon {epsilon:g}: {len(some) - len(missed)} of {len(some)} within {GOOD}, "
        title += f"{missed['warned'].sum()} of {len(missed)} misses warned of"
        columns = ["problem", "agent", "best", "ratio", "ratio_se", "warned"]
        cells = (
            [f"{x:.3g}" if isinstance(x, float) else str(x) for x in row]
            for row in some[columns].values
        )
        Console().print(tabulated(title, columns, cells, left=columns[:3]))
    print(f"Written to {path}.")


if __name__ == "__main__":
    start(main)
