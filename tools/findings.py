"""Draw the figure of each finding of `docs/findings.md` from its rows of `docs/findings.csv`::

    python tools/findings.py

There are two kinds: dots of agents one below the other, or lines against epsilon or another size,
with horizontal lines for agents that do not depend on it. Error bars are two standard errors.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib import rcParams
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpbandit.results.plots import (  # noqa: E402
    COLOURS,
    despine,
    figure_style,
    level,
    log_ticks,
    save_figure,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

FOLDER = ROOT / "docs" / "findings"  # of the figures
_UCB = "shariff-sheffet-ucb:calibration=paper"  # Shariff and Sheffet's UCB as printed
_TREES = "wdp-cocop:window=256:noise=gamma:calibration=paper"  # an agent as printed
_SIZE = (3.0, 1.875)
"""Width and height of a figure in inches, which are 480 x 300 dots"""
_POINTS = 6.5  # font size of labels, in points
_SMALL_STYLE: dict[Any, Any] = {  # matplotlib settings for small figures
    **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), _POINTS),
    **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), _POINTS - 0.5),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 2.5),
    **dict.fromkeys(("xtick.minor.size", "ytick.minor.size"), 1.5),
    "grid.linewidth": 0.5,
}


@dataclass(frozen=True)
class Row:
    """Run and agent that select a row of docs/findings.csv, and the column to read."""

    run: str
    agent: str
    value: str = "mean"
    """Name of the column; only the column "mean" has errors"""

    def read(self, divisor: float = 1.0) -> tuple[float, float]:
        """Return the number and its standard error, which is 0 unless the number is a mean."""
        rows = _rows()
        (found,) = rows[(rows["run"] == self.run) & (rows["agent"] == self.agent)].to_dict(
            "records"
        )
        error = found["se"] if self.value == "mean" else 0.0
        return found[self.value] / divisor, error / divisor


@cache
def _rows() -> pd.DataFrame:
    return pd.read_csv(FOLDER.with_suffix(".csv"), comment="#")


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure of one finding; all its numbers are divided by `divisor`."""

    title: str
    axis: str
    """Label of the drawn quantity, with its unit"""
    divisor: float = 1.0
    log: bool = True

    def draw(self) -> Figure:
        """Return the figure; the style is set by the context `small`."""
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.subplots()
        self._fill(axes)
        axes.set_title(self.title, loc="left", pad=4)
        axes.grid(alpha=0.35)
        despine(axes)
        return figure

    def _fill(self, axes: "Axes") -> None:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Dots(Picture):
    """A figure of dots, one agent below the other; non-private agents have another colour."""

    private: Mapping[str, Row]
    public: Mapping[str, Row] = field(default_factory=dict)

    def _fill(self, axes: "Axes") -> None:
        rows = {**self.private, **self.public}
        for place, (name, row) in enumerate(rows.items()):
            value, error = row.read(self.divisor)
            colour, marker = (COLOURS[0], "o") if name in self.private else (COLOURS[1], "s")
            axes.plot(value, -place, marker, ms=3.5, color=colour, label=name)
            axes.errorbar(value, -place, xerr=2 * error, fmt="none", color=colour, lw=1.2)
        axes.set_yticks([-place for place in range(len(rows))], list(rows))
        axes.set_ylim(0.6 - len(rows), 0.4)
        axes.set_xlabel(self.axis)
        if self.log:
            axes.set_xscale("log")
            _plain(axes.xaxis)
        else:
            axes.set_xlim(left=0)
            axes.xaxis.set_major_formatter("{x:,g}")


@dataclass(frozen=True, kw_only=True)
class Lines(Picture):
    """A figure of agents' lines against a size such as epsilon, with horizontal lines."""

    over: str
    """Label of the horizontal axis, with its unit"""
    places: Sequence[float]
    lines: Mapping[str, Sequence[Row]]
    levels: Mapping[str, Row] = field(default_factory=dict)

    def _fill(self, axes: "Axes") -> None:
        for place, (name, rows) in enumerate(self.lines.items()):
            values, errors = zip(*(row.read(self.divisor) for row in rows), strict=True)
            look: dict[str, Any] = {"color": COLOURS[place], "lw": 1.2}
            axes.plot(self.places, values, "os"[place] + "-", ms=3, label=name, **look)
            bars = [2 * error for error in errors]
            axes.errorbar(self.places, values, yerr=bars, fmt="none", **look)
        ends = self.places[0], self.places[-1]
        for place, (name, row) in enumerate(self.levels.items()):
            value, error = row.read(self.divisor)
            colour, dashes = level(place)
            axes.plot(ends, (value, value), color=colour, ls=dashes, lw=1, label=name)
            axes.fill_between(
                ends, value - 2 * error, value + 2 * error, color=colour, alpha=0.2, lw=0
            )
        axes.set_xscale("log")
        axes.set_xticks(self.places, [f"{place:g}" for place in self.places], minor=False)
        axes.set_xticks([], minor=True)
        axes.set_xlabel(self.over)
        axes.set_ylabel(self.axis)
        if self.log:
            axes.set_yscale("log")
            _plain(axes.yaxis)
        else:
            axes.set_ylim(bottom=0)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=2)


def _plain(axis: "Axis") -> None:
    """Label a logarithmic axis with plain numbers, such as 100 in place of 10^2."""
    log_ticks(axis)
    axis.set_major_formatter("{x:,g}")
    axis.set_minor_formatter("")


@contextmanager
def small() -> "Iterator[None]":
    """Context in which figures have the common style with a smaller font."""
    with figure_style():
        rcParams.update(_SMALL_STYLE)
        yield


_EPSILONS = (0.1, 1.0, 10.0)  # of figures against epsilon
_NO_PRIVACY = {"without privacy": Row("juice", "fade:epsilon=inf")}  # label -> row of a line
PICTURES: Mapping[int, Picture] = {  # number of a finding -> its figure
    1: Lines(
        title="Orange juice, 20,000 customers",
        axis="dollars per 1,000 customers",
        divisor=20,
        over="epsilon",
        places=_EPSILONS,
        lines={
            "FADE": [
                Row("juice", "fade:epsilon=0.1"),
                Row("juice", "fade"),
                Row("juice", "fade:epsilon=10"),
            ]
        },
        levels={
            **_NO_PRIVACY,
            "best fixed price": Row("juice", "BestFixed"),
            "random": Row("juice", "Uniform"),
        },
    ),
    2: Dots(
        title="Orange juice, 20,000 customers",
        axis="dollars lost per 1,000 customers",
        divisor=20,
        private={
            "DP-UCB, epsilon 1": Row("juice", "dp-ucb"),
            "with demand, epsilon 1": Row("juice", "priced:dp-ucb"),
            "FADE, epsilon 0.1": Row("juice", "fade:epsilon=0.1"),
            "FADE, epsilon 1": Row("juice", "fade"),
        },
        public=_NO_PRIVACY,
    ),
    3: Dots(
        title="Constants as printed",
        axis="epsilon",
        private={
            "UCB, certified": Row("juice", _UCB, value="certified_epsilon"),
            "trees, certified": Row("ridge", _TREES, value="certified_epsilon"),
        },
        public={
            "UCB, claimed": Row("juice", _UCB, value="claimed_epsilon"),
            "trees, claimed": Row("ridge", _TREES, value="claimed_epsilon"),
        },
    ),
    4: Lines(
        title="Two arms, 20,000 rounds",
        axis="rewards lost",
        over="epsilon",
        places=_EPSILONS,
        lines={
            "allocation-ts": [
                Row("arms", f"allocation-ts{each}") for each in (":epsilon=0.1", "", ":epsilon=10")
            ]
        },
        levels={
            "Thompson": Row("arms", "thompson"),
            "without privacy": Row("arms", "local-sgd:epsilon=inf"),
            "random": Row("arms", "Uniform"),
        },
    ),
    5: Dots(
        title="16 experts, 10,000 rounds, epsilon 1",
        axis="losses more than the best expert",
        private={
            "a draw a batch": Row("experts", "batch-leader"),
            "noisy prefix sums": Row("experts", "noisy-ftrl"),
        },
        public={"without privacy": Row("experts", "exponential-mechanism:epsilon=inf")},
    ),
    6: Dots(
        title="10,000 rounds, epsilon 1",
        axis="rewards lost",
        private={
            "trusted server": Row("trust", "broadcast:trust=central"),
            "secure aggregation": Row("trust", "broadcast"),
            "shuffler": Row("trust", "broadcast:trust=shuffled"),
            "nobody": Row("trust", "broadcast:trust=local"),
        },
        public={"without privacy": Row("trust", "glm-ucb")},
    ),
    7: Dots(
        title="100 people, 100 visits each",
        axis="rewards lost in 10,000 visits",
        private={
            "others' releases, epsilon 1": Row("people", "personal-fade:memory=false"),
            "own memory, epsilon 0": Row("people", "memory-alone"),
            "both, epsilon 1": Row("people", "personal-fade"),
        },
        public={"without privacy": Row("people", "mixed-effects")},
    ),
    8: Dots(
        title="200 items, 10,000 users",
        axis="clicks lost",
        private={
            "1 place, epsilon 1": Row("length-1", "list-fade"),
            "15 places, epsilon 1": Row("length-15", "list-fade"),
        },
        public={
            "1 place, no privacy": Row("length-1", "ranked-linucb"),
            "15 places, no privacy": Row("length-15", "ranked-linucb"),
        },
    ),
    9: Dots(
        title="8,192 rounds, epsilon 10",
        axis="excess loss",
        private={
            "the last 16 users": Row("window", "wdp-cocop:window=16:noise=gamma:delta=0"),
            "the last 256 users": Row("window", "wdp-cocop:window=256:noise=gamma:delta=0"),
            "all, for ever": Row("window", "pftal:noise=gamma:delta=0"),
        },
        public={"without privacy": Row("window", "ftal")},
    ),
    10: Dots(
        title="Digits, 5,000 users",
        axis="mistakes",
        log=False,
        private={"FADE, epsilon 1": Row("digits", "fade")},
        public={
            "random": Row("digits", "Uniform"),
            "glm-ucb": Row("digits", "glm-ucb"),
            "without privacy": Row("digits", "mapped:linucb:regularization=0.1:alpha=0.2"),
        },
    ),
}


def main() -> None:
    """Draw the figures of all findings into docs/findings/."""
    FOLDER.mkdir(exist_ok=True)
    for number, picture in PICTURES.items():
        with small():
            save_figure(picture.draw(), FOLDER / f"{number}.png")


if __name__ == "__main__":
    main()
