"""Write the card of a submission: a picture of its scores, and a page with all its results."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure

from dpbandit.base import Floats, provenance, write_atomically
from dpbandit.privacy.certificate import HONESTY
from dpbandit.report.page import inlined, rendered
from dpbandit.results.plots import COLOURS, despine, figure_style, save_figure
from dpbandit.results.runs import AgentRun
from dpbandit.suite.catalogue import epsilons, problems, replicas, version
from dpbandit.suite.playing import Submission, frozen
from dpbandit.suite.scoring import Ends, ends_of, scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PACKAGE_BEST = "best of ours"
"""Label of the package's best agent on each problem; at epsilon infinity, of a non-private one."""
_POINTS, _SMALL_POINTS = 13, 11
"""Font sizes, legible even if the figure, eight inches wide, is displayed on 400 pixels."""
_COLOUR_MAP, _DARK_PERCENT = colormaps["cividis"], 58
"""Colour map of scores, safe for colour-blind people; score in % below which text is white."""
_HEADING = """Score in %: 0 is uniform play, 100 the best agent without privacy.
Grey: does not fit, or has no such certificate.
x: raised something, or took too long."""  # text above the heat map of scores
_MAX_AGENTS = 4
"""Largest number of submitted agents that a heat map has side by side."""
_MAP_INCHES, _LETTER_INCHES = 5.2, 0.11
"""Width of the heat map, and of a letter of the agents' names above it, in inches."""
_LEGEND_LETTERS = 56
"""Largest number of letters in a line of a legend; longer names are wrapped."""
Failed: TypeAlias = Mapping[str, Collection[tuple[str, float]]]
"""Name of an agent -> pairs (problem, epsilon) on which it failed."""


class Card(NamedTuple):
    """Files that `write_card` wrote, and the scores they show."""

    page: Path
    picture: Path
    table: pd.DataFrame


def write_card(
    submission: Submission, out: str | os.PathLike[str], *, verified: bool = False
) -> Card:
    """Write the results of submitted agents as `card.html`, self-contained, and `card.png`.

    Args:
        submission: result of `run_suite` or `verify`.
        out: folder for both files.
        verified: True if the numbers come from verifying a result, not from its sender.
    """
    folder = Path(out)
    shipped = frozen(submission.size)
    ends = ends_of(shipped or submission.runs)
    table = scores_of(submission)
    best = best_of(scores(shipped, ends), ends)
    beside = best[best["epsilon"].isin(table["epsilon"])]
    combined = pd.concat([table, beside]) if len(beside) else table
    failed = {
        name: {(one["problem"], _epsilon(one)) for one in found.get("raised", ())}
        for name, found in submission.findings.items()
    }
    draw = partial(draw_scores, table=combined, failed=failed)
    picture = write_atomically(folder / "card.png", draw)
    with TemporaryDirectory() as aside:
        curves = Path(aside, "curves.png")
        _draw_curves(curves, submission, ends)
        figure = inlined(curves)
    page = rendered(
        files("dpbandit.suite").joinpath("card.html").read_text(encoding="utf-8"),
        submission.runs,
        title=", ".join(submission.findings),
        facts=_facts(submission, verified=verified),
        picture=inlined(picture),
        curves=figure,
        agents=[_facts_of_agent(name, submission, table, best) for name in submission.findings],
        honesty=HONESTY,
    )
    there = write_atomically(folder / "card.html", lambda p: p.write_text(page, "utf-8"))
    return Card(there, picture, table)


def scores_of(submission: Submission) -> pd.DataFrame:
    """Score the agents of a submission by the shipped baselines, or else by its own baselines."""
    ends = ends_of(frozen(submission.size) or submission.runs)
    return scores([run for run in submission.runs if run.name in submission.findings], ends)


def best_of(table: pd.DataFrame, ends: Mapping[str, Ends]) -> pd.DataFrame:
    """Return the best scores in `table` by problem and epsilon, labelled `PACKAGE_BEST`.

    Column `by` names the agent; at epsilon infinity it is the non-private agent with the score 1.
    """
    private = table[(table["certified"] > 0) & (table["epsilon"] < inf) & (table["problem"] != "")]
    top = private.loc[private.groupby(["problem", "epsilon"])["score"].idxmax()]
    one = {"epsilon": inf, "score": 1.0, "low": 1.0, "high": 1.0, "certified": inf}
    without = pd.DataFrame(
        {
            "problem": name,
            "capability": problems()[name].capability,
            "by": end.name,
            "regret": float(end.best.mean()),
            **one,
        }
        for name, end in ends.items()
    )
    every = pd.concat([top.assign(by=top["agent"]), without]) if len(top) else without
    scored = ["score", "low", "high"]
    means = every.groupby(["capability", "epsilon"], as_index=False)[scored].mean()
    return pd.concat([every, means.assign(problem="")]).assign(agent=PACKAGE_BEST)


def draw_scores(path: Path, table: pd.DataFrame, failed: Failed = MappingProxyType({})) -> None:
    """Draw scores by problem, agent and epsilon as a heat map, and means by capability as bars."""
    submitted = dict.fromkeys([*(name for name in table["agent"] if name != PACKAGE_BEST), *failed])
    ours = [PACKAGE_BEST] if PACKAGE_BEST in set(table["agent"]) else []
    names = [*[*submitted][:_MAX_AGENTS], *ours]
    with figure_style():
        figure = Figure(figsize=(8, 20), layout="constrained")
        figure.suptitle(_HEADING, x=0.02, ha="left", fontsize=_POINTS)
        top, bottom = figure.subplots(2, 1, height_ratios=[1, 0.9])
        _by_agent(top, table, names, failed)
        _bars(bottom, table, names)
        save_figure(figure, path)


def heat_map(
    axes: "Axes", table: pd.DataFrame, columns: Sequence[tuple[str, float]], size: int = _POINTS
) -> None:
    """Draw scores with a row for each problem and a column for each (agent, epsilon)."""
    import seaborn  # not before: slow to import

    rows_of_agents = table[table["problem"] != ""]
    cells = rows_of_agents.pivot(index="problem", columns=["agent", "epsilon"], values="score")
    cells = cells.reindex(index=[*problems()], columns=pd.MultiIndex.from_tuples(columns))
    percent = (100 * cells.astype(float)).round() + 0.0  # no -0
    seaborn.heatmap(
        percent,
        vmin=0,
        vmax=100,
        cmap=_COLOUR_MAP,
        annot=True,
        fmt=".0f",
        annot_kws={"size": size},
        linewidths=0.6,
        cbar=False,
        xticklabels=False,
        ax=axes,
    )
    for cell in axes.texts:  # seaborn's own choice is white on all but the lightest
        cell.set_color("white" if float(cell.get_text()) < _DARK_PERCENT else "#262626")
    axes.set_facecolor("#e3e7ec")  # of cells without a score
    axes.set(xlabel="", ylabel="")
    axes.set_yticks(np.arange(len(cells)) + 0.5, [*cells.index], rotation=0, fontsize=size)


def _by_agent(axes: "Axes", table: pd.DataFrame, names: Sequence[str], failed: Failed) -> None:
    """Draw a heat map with an agent's epsilons side by side below its name; mark failures."""
    columns = [
        (name, epsilon)
        for name in names
        for epsilon in sorted(
            {*_scored(table, name), *(e for _, e in failed.get(name, ()))} or {inf}
        )
    ]
    size = _POINTS if len(columns) < 10 else 9
    heat_map(axes, table, columns, size)
    rows = [*problems()]
    for column, (name, epsilon) in enumerate(columns):
        for problem, claim in failed.get(name, ()):
            if claim == epsilon:
                where = (column + 0.5, rows.index(problem) + 0.5)
                axes.text(*where, "x", ha="center", va="center", color="#a40e26", size=size + 2)
    at = [_epsilon_label(epsilon) for _, epsilon in columns]
    axes.set_xticks(np.arange(len(columns)) + 0.5, at, rotation=0, fontsize=_SMALL_POINTS)
    for name in names:
        places = [i for i, (who, _) in enumerate(columns) if who == name]
        middle = sum(places) / len(places) + 0.5
        letters = max(6, int(_MAP_INCHES * len(places) / len(columns) / _LETTER_INCHES))
        text = "\n".join(_in_lines(name, letters))
        axes.text(middle, -0.25, text, ha="center", va="bottom", fontsize=_POINTS)
        axes.axvline(places[-1] + 1, color="white", lw=4)


def _bars(axes: "Axes", table: pd.DataFrame, names: Sequence[str]) -> None:
    """Draw means by capability as bars with 95 % intervals; diamonds are `PACKAGE_BEST`."""
    means = table[table["problem"] == ""]
    rows = list(dict.fromkeys(p.capability for p in problems().values()))
    submitted = [name for name in names if name != PACKAGE_BEST]
    rows_of_agents = [(name, e) for name in submitted for e in _scored(means, name)]
    height, colours = (
        0.84 / max(1, len(rows_of_agents)),
        _COLOUR_MAP(np.linspace(0, 1, len(rows_of_agents) + 3)[1:-1]),
    )
    for i, (name, epsilon) in enumerate(rows_of_agents):
        at = means[(means["agent"] == name) & (means["epsilon"] == epsilon)]
        at = at.set_index("capability").reindex(rows)
        where = np.arange(len(rows)) - 0.42 + (i + 0.5) * height
        axes.barh(where, at["score"], height, color=colours[i], label=_legend(name, epsilon))
        axes.hlines(where, at["low"], at["high"], color="#333333", lw=1.2)
        ours = means[(means["agent"] == PACKAGE_BEST) & (means["epsilon"] == epsilon)]
        ours = ours.set_index("capability").reindex(rows)[at["score"].notna()]
        where = where[at["score"].notna()]
        marks = axes.plot(ours["score"], where, "D", ms=6, mfc="white", mec="black")
        marks[0].set_label(PACKAGE_BEST if i == 0 else "_")
    scored = set(means.loc[means["agent"] != PACKAGE_BEST, "capability"])
    for place, row in enumerate(rows):
        if row not in scored:
            axes.text(0.01, place, "no score on all of it", va="center", color="#57606a")
    axes.set_yticks(range(len(rows)), rows, fontsize=_POINTS)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(min(-0.05, max(-0.5, means["low"].min())), 1.15)
    axes.axvline(0, color="black", lw=0.8)
    axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f}")
    axes.tick_params(axis="x", labelsize=_SMALL_POINTS)
    axes.set_title("By capability, mean of its problems, in %", loc="left", fontsize=_POINTS)
    axes.grid(axis="x", alpha=0.35)
    if rows_of_agents:
        axes.legend(fontsize=_SMALL_POINTS, loc="upper center", bbox_to_anchor=(0.4, -0.04))
    despine(axes)


def _draw_curves(path: Path, submission: Submission, ends: dict[str, Ends]) -> None:
    """Draw regret by round on every problem that was played."""
    played = [one for one in problems() if any(r.setup.problem == one for r in submission.runs)]
    with figure_style():
        rows = max(1, -(-len(played) // 3))
        figure = Figure(figsize=(12, 2.7 * rows + 0.6), layout="constrained")
        grid = figure.subplots(rows, 3, squeeze=False)
        looks = {name: COLOURS[i % 10] for i, name in enumerate(submission.findings)}
        dashes = dict(zip((*epsilons(), inf), (":", "--", "-", "-."), strict=False))
        for axes, name in zip(grid.flat, played, strict=False):
            for run in submission.runs:
                if run.setup.problem == name and run.name in looks:
                    line = dashes[_claim(run)]
                    mean: Floats = run.regret.mean(axis=1)
                    axes.plot(run.marks, mean, color=looks[run.name], ls=line, lw=1.6)
            axes.axhline(ends[name].uniform.mean(), color="#888888", lw=1)
            axes.axhline(ends[name].best.mean(), color="black", lw=1)
            axes.set_title(name, loc="left", fontsize=11)
            despine(axes)
        for axes in grid.flat[len(played) :]:
            axes.set_axis_off()
        save_figure(figure, path)


def _claim(run: AgentRun) -> float:
    """Return the suite's smallest epsilon that is at least the run's claim, or else infinity."""
    claim = run.certificate.claimed_epsilon
    return min((e for e in epsilons() if claim <= e), default=inf)


def _scored(table: pd.DataFrame, name: str) -> list[float]:
    """Return the epsilons at which an agent has scores, sorted."""
    return sorted(set(table.loc[table["agent"] == name, "epsilon"]))


def _epsilon_label(epsilon: float) -> str:
    return "no ε" if epsilon == inf else f"ε {epsilon:g}"


def _in_lines(name: str, letters: int) -> list[str]:
    """Break a name into lines of so many letters, after colons and dots where possible."""
    parts = re.split(r"(?<=:)|(?<=\.)(?=[a-z])", name)
    return [line for part in parts for line in wrap(part, letters)]


def _legend(name: str, epsilon: float) -> str:
    """Return the label of an agent at an epsilon; the name comes last, as it may be wrapped."""
    return f"{_epsilon_label(epsilon)}: " + "\n".join(wrap(name, _LEGEND_LETTERS))


def _epsilon(raised: Mapping[str, Any]) -> float:
    return inf if raised["epsilon"] is None else float(raised["epsilon"])


def _facts(submission: Submission, *, verified: bool) -> dict[str, str]:
    made = submission.runs[0].provenance if submission.runs else provenance()
    return {
        "numbers": "played, tested and audited by who verified the result"
        if verified
        else "of who made this page: `dpbandit suite verify` plays them again",
        "suite": f"version {version()}, {submission.size}: {len(problems())} problems, "
        f"{replicas(submission.size)} replicas",
        "seconds of computing": f"{sum(run.seconds for run in submission.runs):,.0f}",
        "made with": ", ".join(f"{key} {value}" for key, value in made.items()),
    }


def _facts_of_agent(
    name: str, submission: Submission, table: pd.DataFrame, best: pd.DataFrame
) -> dict[str, Any]:
    """Return one agent's scores, failures, tests, audit and certificates for the page."""
    rows_of_agents = table[(table["agent"] == name) & (table["problem"] != "")]
    runs = [run for run in submission.runs if run.name == name]
    ours = {(r.problem, r.epsilon): r for r in best.itertuples() if r.problem}
    rows = [
        {**row, "ours": ours.get((row["problem"], row["epsilon"]))}
        for row in _records(rows_of_agents)
    ]
    raised = [
        {**one, "epsilon": _epsilon(one)} for one in submission.findings[name].get("raised", ())
    ]
    words = [f"On {one['problem']}{_where(one['epsilon'])} it {one['told']}." for one in raised]
    return {
        "name": name,
        "rows": rows,
        "raised": raised,
        "traces": _traces(raised),
        "failing": [*words, *filter(None, map(_weakness, rows))],
        "unfit": submission.findings[name]["unfit"],
        "tests": submission.findings[name]["tests"],
        "failed": submission.findings[name]["failed"],
        "audit": submission.findings[name]["audit"],
        "proofs": [(run.setup.problem, run.certificate) for run in runs],
    }


def _traces(raised: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the tracebacks of an agent's failures, each with the problems on which it occurred."""
    found: dict[str, list[str]] = {}
    for one in raised:
        if one["trace"]:
            found.setdefault(one["trace"], []).append(one["problem"])
    return {trace: [*dict.fromkeys(where)] for trace, where in found.items()}


def _weakness(row: dict[str, Any]) -> str:
    """Return a sentence if an agent does not beat uniform play, or loses to our best; else ""."""
    at, score = f"On {row['problem']}{_where(row['epsilon'])}", 100 * row["score"]
    if row["high"] < 0:
        return f"{at} it loses more than uniform play, which learns nothing."
    if row["low"] <= 0:
        return f"{at} it is not surely better than uniform play: it learned little or nothing."
    ours = row["ours"]
    if ours is not None and row["high"] < ours.low:
        best = f"the best of ours, {ours.by}, {100 * ours.score:.0f} %"
        return f"{at} it scores {score:.0f} %, {best}."
    return ""


def _where(epsilon: float) -> str:
    return " without privacy" if epsilon == inf else f" at ε {epsilon:g}"


def _records(table: pd.DataFrame) -> Iterable[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]
