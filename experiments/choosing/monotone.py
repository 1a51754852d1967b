"""Is more never worse? Regret of defaults over epsilon, and per round over the number of rounds.

On shipped environments and generated problems `fade` and the agent of `recommend` play with their
defaults. A line is an agent on a problem along one axis. Its largest rise, in standard errors of
paired differences, is between two values of the axis. If it exceeds `ERRORS`, both values are
played again with new users: of thousands of differences some are large by chance. README.md has
the command and results.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from rich.console import Console

from dpbandit.base import Floats, InputError, Streams, check_writable, whole, write_csv
from dpbandit.experiments.choosing.problems import Part, Seed, folder_of, part_of, problems
from dpbandit.experiments.study import Out, Quick, Replicas, runs_of, start, tabulated
from dpbandit.lazy import catalogue
from dpbandit.results.runs import standard_error
from dpbandit.running.recommend import recommend
from dpbandit.running.settings import parse_agent
from dpbandit.specs import made_agent
from dpbandit.studies import Configuration, LastRound, setup_of

ERRORS = 3.0
"""Standard errors of a difference above which regret has risen"""
FULL_SIZES: Mapping[str, Any] = {
    "user_seed": 2000,
    "epsilons": (0.3, 1.0, 3.0, 10.0, 100.0, inf),
    "horizons": (1_000, 4_000, 16_000),
    "replicas": 20,
    "agents": 2,
}
"""Seed of users, those who play again have the next one; values of both axes; number of runs;
number of agents on a problem, `fade` first. Where epsilon varies, the number of rounds is the
middle one of `horizons`, and where rounds vary, epsilon is 1."""
QUICK_SIZES = {
    **FULL_SIZES,
    "epsilons": (0.3, 3.0, inf),
    "horizons": (500, 2_000),
    "replicas": 10,
    "agents": 1,
}
"""Sizes of `--quick`, and of the slow tests"""
FROM_LOGS = {
    "PricingFromLog": "dpbandit.experiments.pricing.shop:Shop",
    "RecommendationFromLog": "dpbandit.experiments.choosing.worlds:ClickLog",
}
"""Environments without a log of their own -> the same on a log of orange juice, or made up"""
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {"ReturningUsers": {"visits": 40}}
"""Arguments of shipped environments, whose people are too few for 16,000 rounds by default"""


class Case(NamedTuple):
    """A problem without its number of rounds."""

    name: str
    environment: str
    arguments: Mapping[str, Any]


class Line(NamedTuple):
    """Configurations of one agent on one problem along an axis."""

    case: Case
    agent: str
    axis: str
    """"epsilon" or "rounds\""""
    places: Sequence[float]
    configurations: Sequence[Configuration]

    @property
    def names(self) -> tuple[str, ...]:
        """Axis and names of the agents along it; lines of a problem with equal names are one."""
        return (self.axis, *(one.name for one in self.configurations))


class Rise(NamedTuple):
    """Difference of regret (of regret per 1,000 rounds on the axis "rounds") of two values."""

    problem: str
    agent: str
    axis: str
    low: float
    high: float
    at_low: float
    """mean regret at the smaller value of the axis"""
    at_high: float
    rise: float
    rise_se: float
    errors: float
    """`rise` in standard errors"""
    again: float = float("nan")
    """the same for other users, if it exceeds `ERRORS`"""

    @property
    def holds(self) -> bool:
        """True if regret rose for both sets of users."""
        return self.again > ERRORS


def cases(seed: int) -> list[Case]:
    """Return all shipped environments that play without a file, and the problems of a seed."""
    names = [one["name"] for one in catalogue("dpbandit.envs")]
    shipped = [Case(name, FROM_LOGS.get(name, name), ARGUMENTS.get(name, {})) for name in names]
    drawn = [Case(f"{p.kind}, {p.size}", p.environment, p.arguments) for p in problems(seed)]
    return [*shipped, *drawn]


def lines(case: Case, sizes: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the lines of agents that can play a problem; none if it needs a file."""
    horizons, epsilons = sizes["horizons"], sizes["epsilons"]
    middle = horizons[len(horizons) // 2]
    axes = {
        "epsilon": [(epsilon, epsilon, middle) for epsilon in epsilons],
        "rounds": [(T, 1.0, T) for T in horizons],
    }
    known = set[tuple[str, ...]]()
    left = sizes["agents"]
    for agent in ("fade", "recommend"):
        found = [*_lines_of(case, agent, axes, sizes["user_seed"])]
        found = [one for one in found if one.names not in known]
        known |= {one.names for one in found}
        yield from found
        left -= bool(found)
        if not left:
            return


def _lines_of(
    case: Case, agent: str, axes: Mapping[str, Sequence[tuple[float, float, int]]], user_seed: int
) -> Iterator[Line]:
    """Yield the lines of an agent, none where it does not fit or the environment needs a file."""
    for axis, places in axes.items():
        try:
            some = [_configuration(case, agent, epsilon, T, user_seed) for _, epsilon, T in places]
        except InputError:
            continue
        if "uniform" not in {one.name for one in some}:
            yield Line(case, agent, axis, [x for x, *_ in places], some)


def _configuration(
    case: Case, agent: str, epsilon: float, horizon: int, user_seed: int
) -> LastRound:
    label = f"{case.name}, {horizon:,} rounds"
    setup = setup_of(case.environment, case.arguments, horizon=horizon, seed=user_seed, label=label)
    words = f"{agent}:epsilon={epsilon:g}"
    if agent == "recommend":
        arguments = dict(case.arguments)
        words = recommend(case.environment, epsilon, horizon=horizon, env_kwargs=arguments)
    found = LastRound(setup, words, parse_agent(words))
    made_agent(found.config, found.problem().spec, Streams([0]))
    return found


def largest_rise(line: Line, regrets: Sequence[Floats]) -> Rise:
    """Return the rise of largest ratio to its standard error; `regrets` are paired by users."""
    scale = [1000 / x if line.axis == "rounds" else 1.0 for x in line.places]
    found = []
    for i, j in combinations(range(len(regrets)), 2):
        low, high = scale[i] * regrets[i], scale[j] * regrets[j]
        rise, error = float((high - low).mean()), standard_error(high - low)
        means = float(low.mean()), float(high.mean())
        errors = rise / max(error, 1e-9 * (1 + abs(means[1])))  # rounding is no error
        at = line.places[i], line.places[j]
        found.append(Rise(line.case.name, line.agent, line.axis, *at, *means, rise, error, errors))
    return max(found, key=lambda one: one.errors)


def rises(case: Case, sizes: Mapping[str, Any], out: Path) -> list[Rise]:
    """Play a problem, and what rises again; return the largest rise of each line."""
    every = list(lines(case, sizes))
    found = []
    for line, rise in zip(every, _played(every, sizes, out), strict=True):
        if rise.errors > ERRORS:
            ends = [line.configurations[line.places.index(x)] for x in (rise.low, rise.high)]
            others = [
                replace(one, setup=replace(one.setup, seed=one.setup.seed + 1)) for one in ends
            ]
            pair = line._replace(places=[rise.low, rise.high], configurations=others)
            (second,) = _played([pair], sizes, out / f"{line.agent} {line.axis}")
            rise = rise._replace(again=second.errors)
        found.append(rise)
    return found


def _played(every: Sequence[Line], sizes: Mapping[str, Any], out: Path) -> list[Rise]:
    some = [one for line in every for one in line.configurations]
    if not some:
        return []
    runs = runs_of("monotone", some, out, replicas=sizes["replicas"], progress=False)
    return [
        largest_rise(line, [runs[one.key].regret[-1] for one in line.configurations])
        for line in every
    ]


def table(found: Sequence[Rise]) -> pd.DataFrame:
    """Return all rises as rows, the largest first."""
    rows = [{**one._asdict(), "holds": one.holds} for one in found]
    columns = [*Rise._fields, "holds"]
    return pd.DataFrame(rows, columns=columns).sort_values(
        "errors", ascending=False, ignore_index=True
    )


def main(
    few: Quick = False,
    out: Out = Path("out/monotone"),
    replicas: Replicas = None,
    seed: Seed = 1,
    part: Part = "0/1",
) -> None:
    """Find lines along which regret rises with epsilon, or per round with the rounds. Resumes."""
    check_writable(out / "monotone.csv")
    sizes = {**(QUICK_SIZES if few else FULL_SIZES)}
    sizes["replicas"] = sizes["replicas"] if replicas is None else replicas
    whole("replicas", sizes["replicas"], 2)  # there are standard errors
    found = []
    for case in part_of(cases(seed), part):
        found += rises(case, sizes, out / folder_of(case.name))
    rows = table(found)
    path = write_csv(out / "monotone.csv", rows)
    above = rows[rows["errors"] > ERRORS]
    columns = [*above.columns[:-1]]
    cells = (
        [f"{x:,.4g}" if isinstance(x, float) else x for x in row] for row in above[columns].values
    )
    title = f"{len(above)} of {len(rows)} lines rise, {above['holds'].sum()} for other users, too"
    Console().print(tabulated(title, columns, cells, left=columns[:3]))
    print(f"Written to {path}.")


if __name__ == "__main__":
    start(main)
