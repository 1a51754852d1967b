"""The card of a submission: a heat map of scores, bars by capability, a page with everything."""

import os
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.resources import files
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure

from dpbandit.base import Floats, write_atomically
from dpbandit.privacy.certificate import HONESTY
from dpbandit.report.page import inlined, rendered
from dpbandit.results.plots import COLOURS, despine, own_look, save_figure
from dpbandit.results.runs import AgentRun
from dpbandit.suite.catalogue import epsilons, problems, replicas, version
from dpbandit.suite.playing import Submission, frozen
from dpbandit.suite.scoring import Ends, ends_of, scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS = "best of ours"
"""The best private agent of the package, problem by problem"""
_WORDS, _SMALL = 13, 11
"""Points of text: a width of eight inches is read at 400 pixels, too"""
_HEAT, _DARK = colormaps["cividis"], 58
"""As light to one eye as to another; a score of 0 is dark, 1 is light"""
_HEADING = """What uniform play loses and this saves, in %. 100 is the best agent without
privacy. Grey: does not fit, or has no such certificate."""
_MOST = 4
"""Agents beside each other in a figure"""


class Card(NamedTuple):
    """Files that `write_card` wrote, and the scores they show."""

    page: Path
    picture: Path
    table: pd.DataFrame


def write_card(
    submission: Submission, out: str | os.PathLike[str], *, verified: bool = False
) -> Card:
    """Write `card.html`, one self-contained page, and `card.png` for some agents.

    Args:
        submission: what `run_suite` or `verify` played.
        out: folder for both.
        verified: say that its numbers are those of who verified a result, not of who sent it.
    """
    folder = Path(out)
    shipped = frozen(submission.size)
    ends = ends_of(shipped or submission.runs)
    table = scores_of(submission)
    best = best_of(scores(shipped, ends))
    both = pd.concat([table, best]) if len(best) else table
    picture = write_atomically(folder / "card.png", partial(draw_scores, table=both))
    with TemporaryDirectory() as aside:
        curves = Path(aside, "curves.png")
        _draw_curves(curves, submission, ends)
        shown = inlined(curves)
    page = rendered(
        files("dpbandit.suite").joinpath("card.html").read_text(encoding="utf-8"),
        submission.runs,
        title=", ".join(submission.findings),
        facts=_facts(submission, verified=verified),
        picture=inlined(picture),
        curves=shown,
        agents=[_agent(name, submission, table, best) for name in submission.findings],
        honesty=HONESTY,
    )
    there = write_atomically(folder / "card.html", lambda p: p.write_text(page, "utf-8"))
    return Card(there, picture, table)


def scores_of(submission: Submission) -> pd.DataFrame:
    """Scores of the agents that were examined, between the ends that are shipped, if any are."""
    ends = ends_of(frozen(submission.size) or submission.runs)
    return scores([run for run in submission.runs if run.name in submission.findings], ends)


def best_of(table: pd.DataFrame) -> pd.DataFrame:
    """The best score of any private agent in each row, under the name `OURS`."""
    private = table[(table["certified"] > 0) & (table["epsilon"] < inf) & (table["problem"] != "")]
    if private.empty:
        return private
    top = private.loc[private.groupby(["problem", "epsilon"])["score"].idxmax()]
    means = top.groupby(["capability", "epsilon"], as_index=False)[["score", "low", "high"]].mean()
    return pd.concat([top.assign(by=top["agent"]), means.assign(problem="")]).assign(agent=OURS)


def draw_scores(path: Path, table: pd.DataFrame) -> None:
    """Heat map of problems by agents and epsilons, and bars by capability below."""
    names = list(dict.fromkeys(table["agent"]))[: _MOST + 1]
    with own_look():
        figure = Figure(figsize=(8, 20), layout="constrained")
        figure.suptitle(_HEADING, x=0.02, ha="left", fontsize=_WORDS)
        top, bottom = figure.subplots(2, 1, height_ratios=[1, 0.9])
        _by_agent(top, table, names)
        _bars(bottom, table, names)
        save_figure(figure, path)


def heat_map(
    axes: "Axes", table: pd.DataFrame, columns: Sequence[tuple[str, float]], size: int = _WORDS
) -> None:
    """Scores in a row for each problem and a column for each of some agents at an epsilon."""
    import seaborn  # not before: slow to import

    own = table[table["problem"] != ""]
    cells = own.pivot(index="problem", columns=["agent", "epsilon"], values="score")
    cells = cells.reindex(index=[*problems()], columns=pd.MultiIndex.from_tuples(columns))
    percent = (100 * cells.astype(float)).round() + 0.0  # no -0
    seaborn.heatmap(
        percent,
        vmin=0,
        vmax=100,
        cmap=_HEAT,
        annot=True,
        fmt=".0f",
        annot_kws={"size": size},
        linewidths=0.6,
        cbar=False,
        xticklabels=False,
        ax=axes,
    )
    for cell in axes.texts:  # seaborn's own choice is white on all but the lightest
        cell.set_color("white" if float(cell.get_text()) < _DARK else "#262626")
    axes.set_facecolor("#e3e7ec")  # of cells without a score
    axes.set(xlabel="", ylabel="")
    axes.set_yticks(np.arange(len(cells)) + 0.5, [*cells.index], rotation=0, fontsize=size)


def _by_agent(axes: "Axes", table: pd.DataFrame, names: Sequence[str]) -> None:
    """A heat map with all epsilons of an agent beside each other, below its name."""
    columns = [(name, epsilon) for name in names for epsilon in _of(table, name)]
    heat_map(axes, table, columns, _WORDS if len(columns) < 10 else 9)
    at = [_at(epsilon) for _, epsilon in columns]
    axes.set_xticks(np.arange(len(columns)) + 0.5, at, rotation=0, fontsize=_SMALL)
    for name in names:
        places = [i for i, (who, _) in enumerate(columns) if who == name]
        middle = sum(places) / len(places) + 0.5
        axes.text(middle, -0.25, _broken(name), ha="center", va="bottom", fontsize=_WORDS)
        axes.axvline(places[-1] + 1, color="white", lw=4)


def _bars(axes: "Axes", table: pd.DataFrame, names: Sequence[str]) -> None:
    """Means by capability, with 95 % intervals; a diamond is the best of ours."""
    means = table[table["problem"] == ""]
    rows = list(dict.fromkeys(p.capability for p in problems().values()))
    own = [(name, e) for name in names if name != OURS for e in _of(means, name)]
    height, colours = 0.84 / max(1, len(own)), _HEAT(np.linspace(0, 1, len(own) + 3)[1:-1])
    for i, (name, epsilon) in enumerate(own):
        at = means[(means["agent"] == name) & (means["epsilon"] == epsilon)]
        at = at.set_index("capability").reindex(rows)
        where = np.arange(len(rows)) - 0.42 + (i + 0.5) * height
        axes.barh(where, at["score"], height, color=colours[i], label=f"{name}, {_at(epsilon)}")
        axes.hlines(where, at["low"], at["high"], color="#333333", lw=1.2)
        ours = means[(means["agent"] == OURS) & (means["epsilon"] == epsilon)]
        ours = ours.set_index("capability").reindex(rows)[at["score"].notna()]
        where = where[at["score"].notna()]
        marks = axes.plot(ours["score"], where, "D", ms=6, mfc="white", mec="black")
        marks[0].set_label(OURS if i == 0 else "_")
    scored = set(means.loc[means["agent"] != OURS, "capability"])
    for place, row in enumerate(rows):
        if row not in scored:
            axes.text(0.01, place, "does not fit all of it", va="center", color="#57606a")
    axes.set_yticks(range(len(rows)), rows, fontsize=_WORDS)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(min(-0.05, max(-0.5, means["low"].min())), 1.15)
    axes.axvline(0, color="black", lw=0.8)
    axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f}")
    axes.tick_params(axis="x", labelsize=_SMALL)
    axes.set_title("By capability, mean of its problems, in %", loc="left", fontsize=_WORDS)
    axes.grid(axis="x", alpha=0.35)
    if own:
        axes.legend(fontsize=_SMALL, loc="upper center", bbox_to_anchor=(0.4, -0.04), ncols=2)
    despine(axes)


def _draw_curves(path: Path, submission: Submission, ends: dict[str, Ends]) -> None:
    """Regret by round on every problem that was played."""
    played = [one for one in problems() if any(r.setup.problem == one for r in submission.runs)]
    with own_look():
        rows = -(-len(played) // 3)
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
    """The target of the suite that a run claims, the nearest one above."""
    claim = run.certificate.claimed_epsilon
    return min((e for e in epsilons() if claim <= e), default=inf)


def _of(table: pd.DataFrame, name: str) -> list[float]:
    """Epsilons at which an agent has scores."""
    return sorted(set(table.loc[table["agent"] == name, "epsilon"]))


def _at(epsilon: float) -> str:
    return "no ε" if epsilon == inf else f"ε {epsilon:g}"


def _broken(name: str) -> str:
    """A name in lines that fit above its columns."""
    return name.replace(":", ":\n")


def _facts(submission: Submission, *, verified: bool) -> dict[str, str]:
    made = submission.runs[0].provenance
    return {
        "numbers": "played, tested and audited by who verified the result"
        if verified
        else "of who made this page: `dpbandit suite verify` plays them again",
        "suite": f"version {version()}, {submission.size}: {len(problems())} problems, "
        f"{replicas(submission.size)} replicas",
        "seconds of computing": f"{sum(run.seconds for run in submission.runs):,.0f}",
        "made with": ", ".join(f"{key} {value}" for key, value in made.items()),
    }


def _agent(
    name: str, submission: Submission, table: pd.DataFrame, best: pd.DataFrame
) -> dict[str, Any]:
    """What the page says of one agent."""
    own = table[(table["agent"] == name) & (table["problem"] != "")]
    runs = [run for run in submission.runs if run.name == name]
    ours = {(r.problem, r.epsilon): r for r in best.itertuples() if r.problem}
    rows = [{**row, "ours": ours.get((row["problem"], row["epsilon"]))} for row in _records(own)]
    return {
        "name": name,
        "rows": rows,
        "failing": [_weakness(row) for row in rows if _weakness(row)],
        "unfit": submission.findings[name]["unfit"],
        "tests": submission.findings[name]["tests"],
        "failed": submission.findings[name]["failed"],
        "audit": submission.findings[name]["audit"],
        "proofs": [(run.setup.problem, run.certificate) for run in runs],
    }


def _weakness(row: dict[str, Any]) -> str:
    """Where an agent is no better than uniform play, or surely worse than the best of ours."""
    at = f"{row['problem']} at {_at(row['epsilon'])}"
    if row["low"] <= 0:
        return f"{at}: not surely better than uniform play."
    ours = row["ours"]
    if ours is not None and row["high"] < ours.low:
        return f"{at}: {100 * row['score']:.0f} %, where {ours.by} has {100 * ours.score:.0f} %."
    return ""


def _records(table: pd.DataFrame) -> Iterable[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]
