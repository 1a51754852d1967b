"""Results of comparisons and sweeps as tables, plots and files."""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from glob import glob
from math import isinf
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dpbandit.base import (
    InputError,
    Ints,
    abbrev,
    html_table,
    is_there,
    one_of,
    plain,
    rounded,
    text_of,
    write_atomically,
    write_csv,
    write_folder,
    write_json,
)
from dpbandit.privacy import Certificate
from dpbandit.results.comparisons import Needed, epsilon_for
from dpbandit.results.problems import as_words, labels, listed, several_problems
from dpbandit.results.runs import AgentRun, as_text, label, merged, standard_error
from dpbandit.results.shortfalls import shortfalls
from dpbandit.results.store import (
    CorruptFileError,
    ForeignFileError,
    Planned,
    frame_of,
    planned,
    read_runs,
    stored,
    write_runs,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_MAX_DISPLAYED_RUNS = 30
"""Largest number of runs that `repr` shows; a sweep may have thousands."""
# headings of the tables that display runs
_HEAD = ("agent", "regret", "se", "claimed epsilon", "certified epsilon", "at delta", "privacy")


def runs_as_text(runs: Sequence[AgentRun]) -> str:
    """Describe runs as a text table with a line for each of the first 30."""
    rows = [_HEAD, *_rows(runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place in (0, len(_HEAD) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([_title(runs), *lines, *_left_out(runs)])


def _title(runs: Sequence[AgentRun]) -> str:
    problems = {run.place[0] for run in runs}
    where = {(run.setup.horizon, run.setup.reward_unit) for run in runs}
    if len(problems) != 1 or len(where) != 1:
        many = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        return f"{len(runs)} runs on {many}{_horizons(runs)}"
    problem, ((horizon, unit),) = runs[0].setup.problem, where
    replicas = sorted({len(run.replicas) for run in runs})
    counts = " to ".join(f"{count:,}" for count in dict.fromkeys((replicas[0], replicas[-1])))
    return f"{problem}: regret ({unit}) after {horizon:,} rounds, mean of {counts} replicas"


def _horizons(runs: Sequence[AgentRun]) -> str:
    several = sorted({run.setup.horizon for run in runs})
    return f", for {', '.join(f'{one:,}' for one in several)} rounds" if several else ""


def _rows(runs: Sequence[AgentRun]) -> list[tuple[str, ...]]:
    names = labels(run.setup for run in runs)
    horizons = len({run.setup.horizon for run in runs}) > 1

    def called(run: AgentRun) -> str:
        on = f" on {names[run.place[0]]}" if len(names) > 1 else ""
        return run.name + on + (f", {run.setup.horizon:,} rounds" if horizons else "")

    return [
        (
            called(run),
            rounded(run.regret[-1].mean(), 4),
            rounded(standard_error(run.regret[-1]), 2),
            *_privacy(run),
        )
        for run in runs[:_MAX_DISPLAYED_RUNS]
    ]


def _privacy(run: AgentRun) -> tuple[str, str, str, str]:
    proof = run.certificate
    if isinf(proof.epsilon) and isinf(proof.claimed_epsilon):
        return "-", "-", "-", "not private"
    if proof.pure == 0:
        return "-", "-", "-", proof.ledger.brief or "no data used"
    excess = "" if proof.holds else "EXCEEDS THE CLAIM"
    words = " ".join(filter(None, [proof.ledger.brief or proof.notion.kind, excess]))
    claimed, certified = rounded(proof.claimed_epsilon, 6), rounded(proof.epsilon, 4)
    return claimed, certified, rounded(proof.claimed_delta, 6), words


def _left_out(runs: Sequence[AgentRun]) -> list[str]:
    more = len(runs) - _MAX_DISPLAYED_RUNS
    return [f"and {more:,} runs more, see summary()"] if more > 0 else []


FILES = ("frame.parquet", "regret.png", "results.json", "summary.csv")
"""Files that `Results.save` writes."""
FORMATS = (".png", ".svg", ".pdf")
"""Suffixes of paths to which figures can be written."""
_CHOICES = {
    "environment": lambda run: run.setup.environment,
    "horizon": lambda run: run.setup.horizon,
    "seed": lambda run: run.setup.seed,
    "agent": lambda run: run.name,
    "epsilon": lambda run: run.certificate.claimed_epsilon,
    "delta": lambda run: run.certificate.claimed_delta,
}
"""Argument of `Results.where`, other than the problem -> function that returns a run's value."""
_SPENT_ROWS = 20
"""Number of rounds for which `Results.spent` has rows."""


@dataclass(frozen=True, repr=False)
class Results:
    """Results of `compare` (on one problem) or of a sweep (on many).

    A notebook displays a table of regret and certificates. `results["FADE"]` selects the runs of an
    agent; `len(results)` is the number of runs.
    """

    runs: tuple[AgentRun, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    """name of each agent that failed, and has no runs -> sentence about its exception"""

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, agent: str) -> "Results":
        """Return the runs of the agent with this name; raise `InputError` if there are none."""
        one_of("agent", agent, dict.fromkeys(run.name for run in self.runs))
        return self.where(agent=agent)

    def __add__(self, other: "Results") -> "Results":
        """Return the runs of both results."""
        return Results(self.runs + other.runs) if isinstance(other, Results) else NotImplemented

    def __iter__(self) -> Iterator[AgentRun]:
        return iter(self.runs)

    def __repr__(self) -> str:
        return runs_as_text(self.runs)

    def _repr_html_(self) -> str:
        return html_table(
            _HEAD, _rows(self.runs), ". ".join([_title(self.runs), *_left_out(self.runs)])
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Results":
        """Load runs from a file, from the folder of a sweep or of `save`, or from a glob pattern.

        Blocks of replicas of one run are joined. Files that are corrupt or not from dpbandit are
        left out with a warning; so are runs in the folder of a sweep that its latest plan does not
        contain. Another warning tells how many replicas of a sweep are missing.

        Raises:
            InputError: no file can be read, none has runs of the sweep, pieces of a run do not fit
                together, or the sweep's plan is damaged.
        """
        text = text_of("path", path)
        found = [text] if is_there(text) else glob(text, recursive=True)
        places = [Path(place) for place in found]
        files = {
            file.resolve()
            for place in places
            for file in (stored(place) if place.is_dir() else [place])
            if file.is_file() and not file.name.startswith(".")
        }
        pieces: dict[str, list[AgentRun]] = {}
        damaged: list[str] = []
        for file in sorted(files):
            try:
                runs = read_runs(file)
            except (CorruptFileError, ForeignFileError) as mistake:
                damaged.append(str(mistake))
                continue
            for run in runs:
                pieces.setdefault(run.key, []).append(run)
        if not pieces:
            why = f": {damaged[0].rstrip('.')}" if damaged else ""
            raise InputError(
                f"Expected path={text!r} to hold results of dpbandit, found none{why}."
            )
        for each in damaged:
            warnings.warn(f"Left out: {each}", stacklevel=2)
        runs = [merged(parts) for parts in pieces.values()]
        plan = planned(places[0]) if len(places) == 1 else None
        if plan is not None:
            runs = _as_planned(runs, plan)
            if not runs:
                raise InputError(
                    f"Expected path={text!r} to hold results that its sweep asks for, found none: "
                    f"the {len(pieces)} runs that are there are of another one. Resume the sweep."
                )
            if missing := plan.missing(len(runs), sum(len(run.replicas) for run in runs)):
                warnings.warn(f"Unfinished: {missing}; the sweep can be resumed.", stacklevel=2)
        return cls(tuple(sorted(runs, key=_place)))

    def where(self, **choice: Any) -> "Results":
        """Select runs by problem, environment, horizon, seed, agent, epsilon or delta.

        A problem is selected by its label in `summary()`, or by its label in results on it alone.

        Raises:
            InputError: an unknown argument, no such run, or a label that several problems have.
        """
        for name, value in choice.items():
            one_of("choice", name, ["problem", *_CHOICES])
            if not isinstance(value, str | Number | np.generic):
                raise InputError(f"Expected {name}={abbrev(value)} to be one word or one number.")
        problem = self._called(choice["problem"]) if "problem" in choice else None
        wanted = {name: value for name, value in choice.items() if name != "problem"}
        runs = [
            run
            for run in self.runs
            if (problem is None or run.place[0] == problem)
            and all(_CHOICES[name](run) == value for name, value in wanted.items())
        ]
        if not runs:
            raise InputError(
                f"Expected runs with {choice}, found none of {len(self.runs)}: there are those on "
                f"{listed(run.setup for run in self.runs)}."
            )
        return Results(tuple(runs))

    @cached_property
    def _labels(self) -> dict[str, str]:
        """Distinct labels of the problems, each by the `identity` of the problem."""
        return labels(run.setup for run in self.runs)

    def label(self, run: AgentRun) -> str:
        """Return the label of a run's problem, which no other problem in these results has."""
        return self._labels[run.place[0]]

    def _called(self, label: object) -> str:
        """Return the `identity` of the problem with this label, "" if there is none."""
        found = {key for key, name in self._labels.items() if name == label}
        found = found or {run.place[0] for run in self.runs if run.setup.problem == label}
        if len(found) > 1:
            names = ", ".join(sorted(self._labels[key] for key in found))
            raise InputError(f"Expected problem={label!r} to be one of several: {names}.")
        return found.pop() if found else ""

    @property
    def environment(self) -> str:
        """Id of the environment, if all runs are on one problem."""
        return self._one().setup.environment

    @property
    def env_kwargs(self) -> Mapping[str, Any]:
        """Arguments of the environment, if all runs are on one problem."""
        return self._one().setup.env_kwargs

    @property
    def seed(self) -> int:
        """Seed of the users, if all runs are on one problem."""
        return self._one().setup.seed

    @property
    def reward_unit(self) -> str:
        """Unit of rewards, such as dollars, if all runs are on one problem."""
        return self._one().setup.reward_unit

    @property
    def marks(self) -> Ints:
        """Logged rounds, in increasing order, if all runs are on one problem."""
        return self._one().marks

    @property
    def certificates(self) -> dict[str, Certificate]:
        """Certificates by name of the agent, if every agent has a single run.

        Raises:
            InputError: an agent has several runs, of which `where` can select one.
        """
        found = {run.name: run.certificate for run in self.runs}
        if len(found) < len(self.runs):
            raise InputError(
                f"Expected one run of each agent, got {len(self.runs)} of {len(found)} agents: "
                "choose with where(epsilon=..., problem=...)."
            )
        return found

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about runs that learned little by the middle or the end of their horizon.

        A run of 1,000 rounds or more has one if its regret up to that round is above 0.9 times the
        regret of random play, or above both 0.2 times the regret of random play and 1.5 times the
        regret of the best fixed action, on the same users. A warning quotes the regrets, and gives
        advice if measurements permit it.
        """
        return shortfalls(self.runs)

    def spent(self) -> "pd.DataFrame":
        """Return a table of the privacy spent up to about 20 rounds, beside the claim.

        It has a row per agent and round: `agent`, `t`, `epsilon` spent at `delta`, and `claimed`. A
        row is valid for a round fixed beforehand, not for one chosen after looking at releases
        (`Certificate.spent`). Budget that mechanisms may still spend is reserved from round 1 on.
        """
        import pandas as pd

        rows = []
        for run in self.runs:
            proof, T = run.certificate, run.setup.horizon
            for t in np.unique(np.geomspace(1, T, _SPENT_ROWS).round().astype(int)).tolist():
                spent = run.name, t, proof.spent(t), proof.claimed_delta, proof.claimed_epsilon
                rows.append(spent)
        return pd.DataFrame(rows, columns=["agent", "t", "epsilon", "delta", "claimed"])

    def to_pandas(self) -> "pd.DataFrame":
        """Return `frame()`, under the name that other libraries use."""
        return self.frame()

    def frame(self) -> "pd.DataFrame":
        """Return a table with one row for each run, logged round and replica.

        Columns: `problem`, `environment`, `horizon`, `seed`, `agent`, `epsilon` and `delta`
        (claimed; infinity without a claim, 0 if no data is used), `replica`, `round`, the
        cumulative `regret`, `reward` and `switches` (rounds whose action differs from the previous
        one) up to and including that round, and `config`, a hash of all that the numbers depend on.
        """
        return frame_of(self.runs)

    def summary(self, by: str | None = None) -> "pd.DataFrame":
        """Return a table with a row for each run: final regret, switches, seconds and privacy.

        `mean`, `se` (standard error of the mean), quantiles `q05`, `q50`, `q95` of the regret and
        the mean number of `switches` are over replicas. `clipped` is the share of rounds whose
        context, datum or reward was beyond the bounds of the spec, to which agents clip (NaN if an
        older file has none). It is counted on raw data, and no certificate covers it.

        With `by`, a column by which runs were counted (`compare(..., by="shop")`), there is a row
        for each run and level of the column: `segment`, the mean number of `rounds`, and `mean` and
        `se` of the regret of these rounds. No certificate covers them, either.

        Raises:
            InputError: a run was not counted by this column.
        """
        import pandas as pd

        if by is not None:
            return pd.DataFrame([row for run in self.runs for row in self._by(run, by)])
        return pd.DataFrame([self._summary(run) for run in self.runs])

    def _by(self, run: AgentRun, by: str) -> Iterator[dict[str, Any]]:
        """Yield a row of `summary` for each level of the column `by`."""
        start = f"regret by {by}: "
        levels = [name.removeprefix(start) for name in run.measures if name.startswith(start)]
        if not levels:
            raise InputError(
                f"Expected by={abbrev(by)} to be the column by which {run.name} was counted: "
                f"compare(..., by={abbrev(by)}) counts regret by a column."
            )
        for level in levels:
            regret = run.measures[start + level]
            yield {
                "problem": self.label(run),
                "horizon": run.setup.horizon,
                "agent": run.name,
                "segment": level,
                "replicas": len(run.replicas),
                "rounds": float(run.measures[f"rounds by {by}: {level}"].mean()),
                "mean": float(regret.mean()),
                "se": standard_error(regret),
            }

    def records(self) -> list[dict[str, Any]]:
        """Return the summary as dictionaries with each agent's `config`; infinity becomes "inf"."""
        return [plain({**self._summary(run), "config": run.config}) for run in self.runs]

    def _summary(self, run: AgentRun) -> dict[str, Any]:
        return {"problem": self.label(run), **_summary(run)}

    @overload
    def plot(self, path: str | os.PathLike[str]) -> Path: ...
    @overload
    def plot(self, path: None = None, *, ax: "Axes | None" = None) -> "Axes": ...
    def plot(
        self, path: str | os.PathLike[str] | None = None, *, ax: "Axes | None" = None
    ) -> "Path | Axes":
        """Plot regret curves with 95 % confidence bands, if all runs are on one problem.

        Args:
            path: file to write, as PNG, SVG or PDF by its ending; it is returned.
            ax: without a path, the axes to draw on, by default new ones; they are returned.

        Raises:
            InputError: several problems, a path with another ending, or both a path and axes.
        """
        from dpbandit.results.plots import Curve, draw_regret, regret_curves

        one = self._one()
        curves = [Curve(label(run), run.regret) for run in self.runs]
        title = f"{_titled(one)}, 95 % bands"
        how: dict[str, Any] = {"title": title, "unit": one.setup.reward_unit}
        return _drawn(
            path,
            ax,
            lambda p: regret_curves(p, one.marks, curves, **how),
            lambda axes: draw_regret(axes, one.marks, curves, **how),
        )

    def frontier(
        self, path: str | os.PathLike[str] | None = None, *, ax: "Axes | None" = None
    ) -> "Path | Axes":
        """Plot final regret over certified epsilon, if all runs are on one problem.

        An agent that claims an epsilon is a line over its runs; other agents are horizontal lines.
        The arguments are those of `plot`.
        """
        from dpbandit.results.plots import drawn, frontier, fronts_of

        one = self._one()
        fronts, levels = fronts_of(self.runs)

        def draw(axes: "Axes") -> None:
            frontier(axes, fronts, levels)
            axes.set_title(_titled(one), loc="left", pad=10)
            axes.set_ylabel(f"regret after {one.setup.horizon:,} rounds ({one.setup.reward_unit})")

        def draw_alone(axes: "Axes") -> None:
            draw(axes)
            axes.legend(frameon=False)

        def write(place: Path) -> None:
            with drawn(place, _titled(one)) as axes:
                draw(axes)

        return _drawn(path, ax, write, draw_alone)

    def epsilon_for(self, regret: float, *, agent: str | None = None) -> Needed:
        """Return the smallest certified epsilon at which mean regret is at most `regret`.

        The result has a 95 % interval, see `dpbandit.results.comparisons.epsilon_for`. `agent` is a
        name without epsilon, which is needed if several agents are private.
        """
        return epsilon_for(self.runs, regret, agent=agent)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write frame.parquet, summary.csv, results.json and regret.png into `folder`.

        `Results.load` reads frame.parquet, which has all numbers and ledgers. The four files
        are replaced together, see `dpbandit.base.write_folder`; other files in `folder` stay.
        """
        folder = Path(text_of("folder", folder))
        names = Counter(run.name for run in self.runs)
        document = {
            "environment": self.environment,
            "env_kwargs": as_words(self.env_kwargs),
            "seed": self.seed,
            "agents": self.records(),
            "warnings": list(self.warnings),
            "certificates": {
                run.name if names[run.name] == 1 else run.key: run.certificate.as_dict()
                for run in self.runs
            },
        }

        def write(place: Path) -> None:
            write_runs(place / "frame.parquet", self.runs)
            write_csv(place / "summary.csv", self.summary())
            write_json(place / "results.json", document)
            self.plot(place / "regret.png")

        write_folder(folder, write)
        return folder

    def _one(self) -> AgentRun:
        """Return any run if all are on one problem; otherwise raise `InputError`."""
        if len({run.place for run in self.runs}) != 1:
            raise several_problems(run.setup for run in self.runs)
        return self.runs[0]


def _titled(run: AgentRun) -> str:
    return f"{as_text(run.setup.problem)}: mean of {len(run.replicas)} replicas"


def _drawn(
    path: str | os.PathLike[str] | None,
    ax: "Axes | None",
    write: Callable[[Path], None],
    draw: Callable[["Axes"], None],
) -> "Path | Axes":
    """Write a figure to `path`, or draw it on `ax` (by default new axes); return path or axes."""
    if path is not None:
        if ax is not None:
            raise InputError("Expected a path or ax, got both: a file has axes of its own.")
        one_of("suffix of the plot", Path(text_of("path", path)).suffix, FORMATS)
        return write_atomically(Path(path), write)
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(9.5, 5.6), layout="constrained")
    if not hasattr(ax, "plot"):
        raise InputError(f"Expected ax={ax!r} to be Matplotlib axes, as plt.subplots() makes.")
    draw(ax)
    return ax


def _as_planned(runs: list[AgentRun], plan: Planned) -> list[AgentRun]:
    """Return the runs and replicas in a sweep's plan; warn of the number of unplanned runs."""
    wanted = frozenset(plan.configurations)
    planned_runs = [run for run in runs if run.key in wanted]
    if len(planned_runs) < len(runs):
        warnings.warn(
            f"Left out: {len(runs) - len(planned_runs)} runs that the sweep does not ask for (any "
            "more).",
            stacklevel=3,
        )
    return [run.only(run.replicas < plan.replicas) for run in planned_runs]


def _place(run: AgentRun) -> tuple[Any, ...]:
    """Return the sort key of a loaded run, by problem, agent and claim."""
    proof = run.certificate
    claims = (proof.claimed_epsilon, proof.claimed_delta)
    return (run.setup.problem, *run.place, run.name, *claims, run.key)


def _summary(run: AgentRun) -> dict[str, Any]:
    final, proof = run.regret[-1], run.certificate
    q05, q50, q95 = np.quantile(final, [0.05, 0.5, 0.95])
    return {
        "horizon": run.setup.horizon,
        "agent": run.name,
        "replicas": len(run.replicas),
        "mean": float(final.mean()),
        "se": standard_error(final),
        "q05": float(q05),
        "q50": float(q50),
        "q95": float(q95),
        "switches": float(run.switches[-1].mean()),
        "clipped": float(run.clipped.mean()),
        "seconds": run.seconds,
        "notion": str(proof.notion),
        "claimed_epsilon": proof.claimed_epsilon,
        "claimed_delta": proof.claimed_delta,
        "certified_epsilon": proof.epsilon,
        "certified_delta": proof.delta,
    }


def plot_certificate(proof: Certificate, path: Path, *, title: str) -> Path:
    """Plot a certificate's delta(epsilon) and claim, and epsilon by rounds since a user's visit."""
    one_of("suffix of the plot", path.suffix, FORMATS)
    if proof.claimed_delta == 0 or isinf(proof.claimed_epsilon):
        raise InputError("Expected an agent with a claim (epsilon, delta > 0) to plot a curve of.")
    from dpbandit.results.plots import delta_curve

    brief = proof.ledger.brief
    draw = partial(
        delta_curve,
        delta_at=proof.ledger.delta,
        title=title,
        claim=(proof.claimed_epsilon, proof.claimed_delta),
        certified=proof.epsilon,
        curve=f"certified curve ({brief})" if brief else "certified curve",
        ages=proof.ages(),
    )
    return write_atomically(path, draw)
