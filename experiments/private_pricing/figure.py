"""Tables and a figure: regret against T, its exponent, and the one that was proved."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.table import Table

from dpbandit.base.files import write_atomically
from dpbandit.experiments.drawing import draw_lines, panes
from dpbandit.experiments.private_pricing.questions import PROVED, SHOPS
from dpbandit.experiments.questions import Answers, along, horizon, mean
from dpbandit.results.plots import legend_below, loglog
from dpbandit.results.runs import AgentRun, Slope

BASELINE = "best fixed price"


def slopes(answers: Answers) -> dict[tuple[str, str], Slope]:
    """(panel, label) -> the exponent of growth in T."""
    return answers.slopes("horizons", horizon)


def tables(answers: Answers) -> Iterator[Table]:
    """One for each panel."""
    exponents = slopes(answers)
    for panel, lines in answers.runs["horizons"].items():
        own = {
            label: f"{exponents[panel, label].value:.2f} ± {exponents[panel, label].se:.2f}"
            + (f", {PROVED[label]}" if label in PROVED else "")
            for label in lines
        }
        title = f"{panel}: regret ({lines[BASELINE][0].setup.reward_unit})"
        last = ("exponent, the bound's", own)
        yield along(title, lines, _t, _regret, last=last, every=2)


def _t(run: AgentRun) -> str:
    return f"T = {run.setup.horizon:,}"


def _regret(run: AgentRun) -> str:
    return mean(run.regret[-1])


def figures(answers: Answers, out: Path) -> Iterator[Path]:
    """Write regret.png into `out`."""
    yield write_atomically(out / "regret.png", partial(_growth, answers))


def _growth(answers: Answers, path: Path) -> None:
    found, exponents = answers.runs["horizons"], slopes(answers)
    size = (5.4 * len(found) / len(SHOPS), 10.4)
    heading = "Private pricing: regret against T"
    with panes(path, found, heading, size, rows=len(SHOPS)) as grid:
        for axes, (panel, lines) in zip(grid, found.items(), strict=True):
            names = {label: f"{label}: {exponents[panel, label].value:.2f}" for label in lines}
            draw_lines(axes, lines, horizon, names=names, grey=[BASELINE])
            loglog(axes, [horizon(run) for run in lines[BASELINE][::2]])
            axes.tick_params(labelbottom=True)  # of every panel
            axes.set_xlabel("customers T")
            axes.set_ylabel(f"regret ({lines[BASELINE][0].setup.reward_unit})")
            legend_below(axes, "agent: exponent on the larger half of T")
