"""Regret against epsilon for pricing and recommendation, and dollars lost. See README.md.

Losses are computed here, after all runs of study.toml: reward lost compared with the best agent
without privacy, and dollars lost compared with the best prices, in % of their revenue.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpbandit.base import Floats, Ints, Streams, write_atomically
from dpbandit.base.tables import Table
from dpbandit.experiments.figure import RunLines, draw_frontier, legend_beside
from dpbandit.experiments.study import Found, command, grouped, read, start, tabulated
from dpbandit.results.plots import final, legend_at_the_foot, panels
from dpbandit.results.problems import Setup
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, standard_error
from dpbandit.running.environments import problem_maker

STUDY = read("pricing")  # contents of the folder's study.toml
_BASELINES = ("Uniform", "BestFixed")  # names of runs that do not learn


def best_public(results: Results) -> AgentRun:
    """Return the run with claimed epsilon infinity that has the least mean regret.

    As it is chosen on the measured runs themselves, the price of privacy may be overstated.
    """
    public = [run for run in results.where(epsilon=inf).runs if run.name not in _BASELINES]
    return min(public, key=lambda run: float(final(run).mean()))


def called(run: AgentRun, results: Results) -> str:
    """Return a run's agent, with "at infinity" if the agent has runs at several epsilons."""
    several = len(results.where(agent=run.name).runs) > 1
    return f"{run.name} at infinity" if several else run.name


def lost(run: AgentRun, best: AgentRun) -> Floats:
    """Return the reward that `run` loses per 1,000 users, compared with the run `best`, (R,).

    Losses are expected values given the users' contexts, and paired, as agents meet the same users.
    """
    return 1000 * (final(run) - final(best)) / run.setup.horizon


def lead_from(marks: Ints, regret: Floats, uniform: Floats) -> int | None:
    """Return the first logged round from which on `regret` stays below `uniform`, (marks, R) each.

    "Below" means by two standard errors of the mean paired difference. None without such a round.

    >>> ahead = np.array([[-1.0, -1.1], [2.0, 2.1], [3.0, 3.1]])
    >>> lead_from(np.array([1, 10, 100]), -ahead, np.zeros((3, 2)))
    10
    """
    gain = uniform - regret
    error = gain.std(axis=1, ddof=1) / np.sqrt(gain.shape[1])
    behind = np.flatnonzero(gain.mean(axis=1) <= 2 * error)
    first = behind[-1] + 1 if len(behind) else 0
    return int(marks[first]) if first < len(marks) else None


def table(results: Results) -> pd.DataFrame:
    """Tabulate runs on one problem, with reward lost and the round from which they beat uniform."""
    best, (uniform,) = best_public(results), results.where(agent="Uniform").runs
    rows: list[dict[str, Any]] = []
    for run in results.runs:
        values = lost(run, best)
        start = lead_from(run.marks, run.regret, uniform.regret)
        found = {"lost_per_1000": values.mean(), "lost_per_1000_se": standard_error(values)}
        rows.append({**found, "unit": run.setup.reward_unit, "beats_uniform_from": start})
    more = pd.DataFrame(rows).astype({"beats_uniform_from": "Int64"})
    return pd.concat([results.summary(), more], axis=1)


def draw_regret(results: Results, out: Path) -> Iterator[Path]:
    """Draw regret and reward lost into regret-PROBLEM.png and lost-PROBLEM.png in `out`."""
    one, best = results.runs[0], best_public(results)
    problem, unit, name = one.setup.problem, one.setup.reward_unit, called(best, results)
    sample = f"{one.setup.horizon:,} users, mean of {len(one.replicas)} replicas, 95 % intervals"
    by_name = grouped(results.runs, attrgetter("name"))
    lines = {name: runs for name, runs in by_name.items() if len(runs) > 1 or name in _BASELINES}
    lines.setdefault(name, [best])
    title = f"what privacy costs; {name} is the best without"
    figures: dict[str, Any] = {"regret": (final, title, f"regret ({unit})")}
    title = f"lost to {name}, the best without privacy"
    figures["lost"] = (partial(lost, best=best), title, f"{unit} lost per 1,000 users")
    for what, (value, title, ylabel) in figures.items():
        how = {"title": f"{problem}: {title}\n{sample}", "value": value, "ylabel": ylabel}
        yield write_atomically(out / f"{what}-{problem}.png", partial(_draw, lines, **how))


def _draw(
    lines: RunLines, path: Path, *, value: Callable[[AgentRun], Floats], title: str, ylabel: str
) -> None:
    with panels(path, [title], size=(11, 5.6)) as (axes,):
        draw_frontier(axes, lines, value)
        axes.set_ylabel(ylabel)
        legend_beside(axes)


MARKETS = {
    "OJPricing": ("Orange juice", 1),
    "Shop": ("A shop of one's own", 1),
    "ApplePricing": ("Apples", 1),
    "CameraPricing": ("Cameras", 100),
}
"""Problem -> its title, and the dollars per unit of its reward"""
_ROLES = {
    "certified": ("fade", "FADE"),
    "a slope for each": ("fade, interactions", "FADE, interactions"),
    "without privacy": ("", "the best without privacy"),
    "best fixed": ("BestFixed", "the best fixed price"),
    "random": ("Uniform", "random prices"),
}
"""Role of a run -> (name of its agent, or "" for the best non-private one; label in the legend)"""
_PER_USERS = 1000
"""Number of customers for which a loss is stated in dollars"""


def at_best(setup: Setup, replicas: int) -> float:
    """Return the expected reward per round if every user gets the action that is best for her."""
    problem = problem_maker(setup.environment)(**setup.env_kwargs)
    problem.reset(Streams([(setup.seed, r) for r in range(replicas)]))
    anything = np.array([problem.spec.default_action] * replicas)
    total = 0.0
    for _ in range(setup.horizon):
        problem.context()
        total += float(problem.step(anything).oracle.mean())
    return total / setup.horizon


def roles(results: Results) -> dict[str, list[AgentRun]]:
    """Return the runs of one problem by their role, a key of `_ROLES`."""
    lines = {**grouped(results.runs, attrgetter("name")), "": [best_public(results)]}
    return {role: lines[name] for role, (name, _) in _ROLES.items() if name in lines}


def dollars(run: AgentRun) -> Floats:
    """Return the dollars that a run loses per 1,000 users, compared with the best prices, (R,)."""
    lost = MARKETS[run.setup.problem][1] * final(run)
    return _PER_USERS * lost / run.setup.horizon


def money(results: Results) -> pd.DataFrame:
    """Tabulate dollars lost on one problem per 1,000 users, and as a share of the best revenue."""
    one = results.runs[0]
    best = _PER_USERS * MARKETS[one.setup.problem][1] * at_best(one.setup, len(one.replicas))
    rows = []
    for role, runs in roles(results).items():
        for run in runs:
            lost, error = float(dollars(run).mean()), standard_error(dollars(run))
            row = {
                "problem": run.setup.problem,
                "role": role,
                "agent": called(run, results) if role == "without privacy" else run.name,
                "certified_epsilon": run.certificate.epsilon,
                "delta": run.certificate.delta,
                "dollars_at_best": best,
                "dollars_lost": lost,
                "dollars_lost_se": error,
                "share_lost": lost / best,
                "share_lost_se": error / best,
            }
            rows.append(row)
    return pd.DataFrame(rows)


def draw_money(path: Path, found: Mapping[str, Results], best: Mapping[str, float]) -> None:
    """Draw a panel for each problem: lost dollars on the left axis, % of `best` on the right."""
    titles = [f"{MARKETS[problem][0]}\n\\${best[problem]:,.0f} at best" for problem in found]
    with panels(
        path,
        titles,
        heading="Dollars lost per 1,000 customers, and share of the best",
        size=(7.2, 8.4),
        rows=2,
    ) as every:
        for axes, (problem, results) in zip(every, found.items(), strict=True):
            lines = {_ROLES[role][1]: runs for role, runs in roles(results).items()}
            draw_frontier(axes, lines, dollars)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter("\\${x:,.0f}")
            axes.tick_params(labelbottom=True)
            percent = best[problem] / 100
            scales: Any = partial(np.multiply, 1 / percent), partial(np.multiply, percent)
            right = axes.secondary_yaxis("right", functions=scales)
            right.yaxis.set_major_formatter("{x:g} %")
        legend_at_the_foot(every[0])


def run(sizes: Mapping[str, Any], out: Path) -> Found:
    """Measure regret against epsilon (juice, cameras, recommendation), and dollars on four markets.

    Resumes where it stopped.
    """
    found = {
        question: {problem: _results(lines) for problem, lines in panels.items()}
        for question, panels in STUDY.measure(sizes, out).runs.items()
    }
    summaries = {problem: table(results) for problem, results in found["regret"].items()}
    figures = [path for results in found["regret"].values() for path in draw_regret(results, out)]
    markets = {problem: found["money"][problem] for problem in MARKETS}
    lost = {problem: money(results) for problem, results in markets.items()}
    ideal = {problem: one["dollars_at_best"].iloc[0] for problem, one in lost.items()}
    draw = partial(draw_money, found=markets, best=ideal)
    figures.append(write_atomically(out / "money.png", draw))
    frames = {"summary": pd.concat(summaries.values()), "money": pd.concat(lost.values())}
    tables = [report(summaries[name], results) for name, results in found["regret"].items()]
    return Found(frames, figures, tables)


def _results(lines: RunLines) -> Results:
    runs = (run for line in lines.values() for run in line)
    return Results(tuple(sorted(runs, key=attrgetter("name"))))


def report(found: pd.DataFrame, results: Results) -> Table:
    """Format the result of `table` for one problem as a table of the console."""
    best = called(best_public(results), results)
    title = f"{results.runs[0].setup.problem}: lost to {best}, the best agent without privacy"
    (unit,) = set(found["unit"])
    lost, since = f"{unit} lost per 1,000", "beats uniform from round"
    rows = [
        (
            row["agent"],
            f"{row['certified_epsilon']:.3g}",
            f"{row['mean']:.0f} ± {row['se']:.0f}",
            f"{row['lost_per_1000']:.1f} ± {row['lost_per_1000_se']:.1f}",
            "-" if pd.isna(row["beats_uniform_from"]) else f"{row['beats_uniform_from']:,.0f}",
        )
        for row in found.to_dict("records")
    ]
    return tabulated(title, ("agent", "epsilon", "regret", lost, since), rows)


main = command("pricing", run, {}, STUDY.quick)

if __name__ == "__main__":
    start(main)
