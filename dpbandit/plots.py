"""Figures a person wants to look at: colour-blind safe, labelled, with bands and direct labels."""

from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING

import seaborn as sns
from matplotlib.figure import Figure
from scipy.stats import t as student

from dpbandit.results import AgentRun, Results, standard_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = ("solid", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1)))


def regret_curves(results: Results, path: Path) -> None:
    """Mean cumulative regret of every agent with 95 % bands for the mean, saved to `path`."""
    with sns.axes_style("ticks"), sns.plotting_context("notebook"):
        figure = Figure(figsize=(9.5, 5.6), layout="constrained")
        axes = figure.add_subplot()
        palette = sns.color_palette("colorblind", len(results.runs))
        order = sorted(results.runs, key=lambda run: -run.regret[-1].mean())
        for place, run in enumerate(order):
            _curve(axes, results, run, palette[place], _DASHES[place % len(_DASHES)])
        horizon, replicas = int(results.marks[-1]), results.runs[0].regret.shape[1]
        axes.set(
            xlabel="round (one user each)",
            ylabel=f"cumulative regret ({results.reward_unit})",
            xlim=(0, horizon),
        )
        axes.set_ylim(bottom=0)
        axes.ticklabel_format(style="plain", useOffset=False)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.set_title(
            f"{results.environment}: mean of {replicas} replicas, 95 % bands", loc="left", pad=12
        )
        axes.grid(axis="y", alpha=0.35)
        sns.despine(ax=axes)
        axes.legend(
            title="agent, and the joint DP it certifiably has",
            loc="upper left",
            frameon=True,
            framealpha=0.9,
            alignment="left",
        )
        figure.savefig(path, dpi=160)


def _curve(axes: "Axes", results: Results, run: AgentRun, colour: object, dashes: object) -> None:
    mean, replicas = run.regret.mean(axis=1), run.regret.shape[1]
    axes.plot(results.marks, mean, color=colour, ls=dashes, lw=2, label=_label(run))
    if replicas > 1:
        quantile = float(student.ppf(0.975, replicas - 1))
        half = [quantile * standard_error(row) for row in run.regret]
        axes.fill_between(results.marks, mean - half, mean + half, color=colour, alpha=0.2, lw=0)


def _label(run: AgentRun) -> str:
    proof = run.certificate
    if isinf(proof.epsilon):
        return f"{run.name} (not private)"
    if proof.epsilon == 0:
        return f"{run.name} (no data used)"
    delta = f"{proof.claimed_delta:g}".replace("e-0", "e-")
    return rf"{run.name} ($\epsilon$ = {proof.epsilon:.3g}, $\delta$ = {delta})"
