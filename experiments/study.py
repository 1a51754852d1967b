"""Studies as tables: a `study.toml` lists what is played, tabulated and drawn.

::

    name, summary      title of the stored results; help of the command
    [sizes], [quick]   numbers by name, among them replicas and seed; values of --quick
    [problems]         label -> environment, ID:ARGUMENT=VALUE
    [data]             the same problems for `data_agents`, which observe data, not rewards
    [titles]           name of a panel -> its title
    [agents.GROUP]     label -> agent, ID:SETTING=VALUE
    [every]            default keys of each [[figure]]
    [[figure]]         an experiment and its plot, see `figure.Figure`; panels, see `figure.Panel`

Strings may contain {name} for one of [sizes] or a variable of a panel. T is the horizon. A study
with measurements of its own reads these tables in its `__main__.py`.
"""

import re
import sys
import tomllib
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from importlib.resources import files
from itertools import product
from math import floor, log10
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import typer
from pydantic import Field, model_validator
from rich.console import Console

from dpbandit.base import (
    Floats,
    InputError,
    check_writable,
    exit_with,
    parse_settings,
    whole,
    write_atomically,
    write_csv,
)
from dpbandit.base.tables import Table
from dpbandit.experiments.figure import (
    Figure,
    LineGroup,
    Pane,
    Panel,
    RunLines,
    Strict,
    computed,
    draw,
    named_function,
    place_of,
    value_of,
)
from dpbandit.results.problems import Setup
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, Slope, slope, standard_error
from dpbandit.running.settings import parse_agent
from dpbandit.shelf import from_shelf
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration, LastRound, Study, run_sweep, setup_of

Quick: TypeAlias = Annotated[bool, typer.Option("--quick", help="Seconds instead of minutes.")]
Out: TypeAlias = Annotated[Path, typer.Option(help="Where results go, and are taken up again.")]
Replicas: TypeAlias = Annotated[int | None, typer.Option(help="Independent repetitions, >= 2.")]
Sizes: TypeAlias = Mapping[str, Any]
"""Name of a parameter of a study -> number, list of numbers or string"""
Lines: TypeAlias = Mapping[str, Sequence[Configuration]]
"""Label of a line -> a configuration for each value of the axis, or a single one (baseline)"""
Panels: TypeAlias = Mapping[str, Lines]
"""Name of a panel -> its lines"""


_LOG_KINDS = {"marks": Configuration, "last": LastRound}
"""`log` of a study -> class of its configurations, but for "release" """


class Found(NamedTuple):
    """Results of a study that its command writes and prints."""

    frames: Mapping[str, pd.DataFrame]
    """Name -> frame, to be written as NAME.csv"""
    figures: Iterable[Path]
    """Paths of figures, which are written already"""
    tables: Iterable[Table | str] = ()
    """Tables to be printed at the end"""


class Answers(NamedTuple):
    """Runs of a study: question (name of an experiment) -> panel -> label of a line -> runs."""

    runs: Mapping[str, Mapping[str, RunLines]]

    def lines(self) -> Iterator[tuple[str, str, str, Sequence[AgentRun]]]:
        """Yield question, panel, label and runs of every line."""
        for question, found in self.runs.items():
            for panel, lines in found.items():
                for label, runs in lines.items():
                    yield question, panel, label, runs

    def slopes(self, question: str, x: str) -> dict[tuple[str, str], Slope]:
        """Fit exponents of regret in variable x, by (panel, label), for lines of 3 runs or more."""
        found = {}
        for answered, panel, label, runs in self.lines():
            places = [place_of(run, x) for run in runs] if answered == question else []
            if len(set(places)) > 2:
                found[panel, label] = slope(places, [run.regret[-1] for run in runs])
        return found

    def table(self, more: Callable[[AgentRun], Mapping[str, Any]] = lambda run: {}) -> pd.DataFrame:
        """Return the summary of every run, one row for each question that uses the run."""
        every = [(q, panel, label, run) for q, panel, label, line in self.lines() for run in line]
        rows = Results(tuple(run for _, _, _, run in every)).summary().to_dict("records")
        return pd.DataFrame(
            [
                {"question": question, "panel": panel, "line": label, **row, **more(run)}
                for (question, panel, label, run), row in zip(every, rows, strict=True)
            ]
        )


class StudyFile(Strict):
    """Content of a `study.toml`, as the docstring of this module describes it."""

    name: str
    summary: str
    log: Literal["marks", "last", "release"] = "marks"
    """Logged rounds, "marks" (of `log_marks`), "last", or "release" (that of an evaluated point)"""
    targets: tuple[str, ...] = ()
    """Entries of [sizes], such as epsilon, passed to every agent with a setting of this name"""
    data_agents: tuple[str, ...] = ()
    """Ids of agents that play the problems of [data], as they observe data, not rewards"""
    sizes: dict[str, Any]
    quick: dict[str, Any]
    problems: dict[str, str]
    data: dict[str, str] = {}
    titles: dict[str, str] = {}
    agents: dict[str, dict[str, str]] = {}
    figures: list[Figure] = Field(alias="figure")

    @model_validator(mode="before")
    @classmethod
    def _share_every(cls, table: dict[str, Any]) -> dict[str, Any]:
        every = table.pop("every", {})
        named = ({"question": figure.get("file"), **every, **figure} for figure in table["figure"])
        return {**table, "figure": list(named)}

    @cached_property
    def words(self) -> dict[str, str]:
        """Label of an agent -> its id and settings as text."""
        groups = reversed(self.agents.values())  # of several the first
        return {label: words for group in groups for label, words in group.items()}

    @property
    def questions(self) -> dict[str, Figure]:
        """Question (name of an experiment) -> the figure that lists its lines."""
        return {figure.question: figure for figure in self.figures if figure.asks_for_runs}

    def panes(self, figure: Figure, sizes: Sizes) -> list[Pane]:
        """Return the panels of a figure, with values for sizes and variables."""
        known, found = {**self.sizes, **sizes}, []
        for panel in figure.panels or [Panel()]:
            changes = {key: getattr(panel, key) for key in panel.model_fields_set}
            table = figure.model_copy(update=changes)
            for bound in _bindings(table, known):
                at = _places(table, bound)[-1]
                name = (table.name or table.problem).format(**at)
                title = table.title.format(**at) or self.titles.get(name, name)
                found.append(Pane(name, title, table, bound, at))
        return found

    def configurations(self, sizes: Sizes) -> dict[str, Panels]:
        """Return the configurations at these sizes, by experiment (question), panel and label."""
        return {
            question: {pane.name: self._lines(pane) for pane in self.panes(figure, sizes)}
            for question, figure in self.questions.items()
        }

    def _lines(self, pane: Pane) -> Lines:
        lines: dict[str, list[Configuration]] = {}
        for some in pane.table.lines:
            some = LineGroup(agents=[some]) if isinstance(some, str) else some
            for bound in _bindings(some, pane.known):
                places = _places(pane.table, bound, some.let)
                places = places[-1:] if some.last else places
                for label, words in self._chosen(some, bound):
                    line = [self._run(pane, some, label, words, at) for at in places]
                    if some.then:
                        last = (some.then, self.words[some.then], places[-1])
                        line[-1] = self._run(pane, LineGroup(agents=[]), *last)
                    if adapt := some.adapt and named_function(some.adapt):
                        line = [*filter(None, map(adapt, line, places))]
                    once = {one.key: one for one in line}  # a baseline is one run at all places
                    lines[label.format(**places[-1])] = [*once.values()]
        return {label: line for label, line in lines.items() if line}

    def _chosen(self, some: LineGroup, known: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        for name in (one.format(**known) for one in some.agents):
            group = self.agents[name] if name in self.agents else {name: self.words[name]}
            yield from ((label, words) for label, words in group.items() if label not in some.but)

    def _run(
        self, pane: Pane, some: LineGroup, label: str, words: str, known: Mapping[str, Any]
    ) -> Configuration:
        data = words.partition(":")[0] in self.data_agents
        setup = self.setup(some.problem or pane.table.problem, known, data=data)
        label, axes = label.format(**known), (*pane.table.over, *some.each)
        varied = any(axis in self.targets or f"{{{axis}" in words for axis in axes)
        name = some.run.format(label=label, **known) if some.run and varied else label
        kind = _LOG_KINDS.get(self.log)
        if kind is None:
            kind = from_shelf("experiments", "ReleaseConfiguration", f"log={self.log!r}")
        return kind(setup, name, self.config(words, known))

    def setup(self, problem: str, known: Mapping[str, Any], *, data: bool = False) -> Setup:
        """Return the problem of this label; with `data`, the variant that `data_agents` play."""
        if problem not in self.problems:
            problem = problem.format(**known)
        place = (self.data if data and problem in self.data else self.problems)[problem]
        how = {"horizon": known["T"], "seed": known["seed"], "label": problem.format(**known)}
        return setup_in_words(place.format(**known), **how)

    def config(self, words: str, known: Mapping[str, Any]) -> AgentConfig:
        """Parse an agent's id and settings, after replacing the variables by values."""
        targets = {name: known[name] for name in self.targets if name in known}
        return parse_agent(words.format(**known), **targets)

    def measure(self, sizes: Sizes, out: Path, *, progress: bool = True) -> Answers:
        """Run missing configurations, in a folder for each number of replicas; return all runs."""
        known, wanted = {**self.sizes, **sizes}, self.configurations(sizes)
        by_replicas = grouped(wanted, lambda question: self.questions[question].replicas)
        found: dict[str, Mapping[str, RunLines]] = {question: {} for question in wanted}
        for replicas, some in by_replicas.items():
            panels = (lines for question in some for lines in wanted[question].values())
            every = [one for lines in panels for line in lines.values() for one in line]
            folder = out if replicas == "replicas" else out / replicas
            how = {"replicas": known[replicas], "progress": progress}
            runs = runs_of(self.name, every, folder, **how)
            for question in some:
                found[question] = self._found(question, wanted[question], runs)
        return Answers(found)

    def _found(
        self, question: str, wanted: Panels, runs: Mapping[str, AgentRun]
    ) -> Mapping[str, RunLines]:
        found, name = dict[str, RunLines](), self.questions[question].labels
        label: Any = named_function(name) if name else lambda one, some: one
        for panel, lines in wanted.items():
            line = {one: [runs[each.key] for each in some] for one, some in lines.items()}
            found[panel] = {label(one, some): some for one, some in line.items()}
        return found

    def draw(self, found: Answers, sizes: Sizes, out: Path) -> Iterator[Path]:
        """Write all figures into a folder; yield their paths."""
        for figure in (one for one in self.figures if one.file):
            panes = self.panes(figure, sizes)
            lines = {pane.name: found.runs[figure.question][pane.name] for pane in panes}
            exponents = self._exponents(found, figure) if figure.exponent_format else {}
            job = partial(draw, figure=figure, panes=panes, found=lines, exponents=exponents)
            if figure.program:
                program: Callable[..., None] = named_function(figure.program)
                job = partial(program, figure=figure, panes=panes, found=lines)
            yield write_atomically(out / f"{figure.file}.png", job)

    def _exponents(self, found: Answers, figure: Figure) -> dict[tuple[str, str], Slope]:
        return found.slopes(figure.question, figure.exponent) if figure.exponent else {}

    def slopes(self, found: Answers) -> pd.DataFrame:
        """Return the fitted exponents of regret of all experiments, one row each."""
        return pd.DataFrame(
            [
                {"question": name, "axis": one.exponent, "panel": p, "line": label, **s._asdict()}
                for name, one in self.questions.items()
                for (p, label), s in self._exponents(found, one).items()
            ]
        )

    def tables(self, found: Answers, sizes: Sizes) -> Iterator[Table]:
        """Yield a table for each panel, except those of figures drawn by a program of their own."""
        for question, figure in self.questions.items():
            if figure.program:
                continue
            exponents = self._exponents(found, figure)
            for pane in self.panes(figure, sizes):
                lines = found.runs[question][pane.name]
                fitted = {label: str(s) for (p, label), s in exponents.items() if p == pane.name}
                yield along(
                    f"{question}, {pane.name}: {pane.table.cell or pane.table.ylabel or 'regret'}",
                    lines,
                    partial(_heading, x=pane.table.x),
                    partial(_cell, name=pane.table.cell or pane.table.value, lines=lines),
                    last=(f"exponent in {figure.exponent}", fitted) if fitted else None,
                    every=pane.table.every,
                )

    def run(self, sizes: Sizes, out: Path) -> Found:
        """Measure, draw and tabulate everything. Resumes where it stopped."""
        found = self.measure(sizes, out)
        frames = {"summary": found.table()}
        if any(figure.exponent for figure in self.figures):
            frames["slopes"] = self.slopes(found)
        return Found(frames, self.draw(found, sizes, out), self.tables(found, sizes))


def setup_in_words(words: str, **how: Any) -> Setup:
    """Parse a problem ID:ARGUMENT=VALUE; `how` has its horizon, seed and label."""
    environment, *arguments = re.split(r":(?=\w+=)", words)
    return setup_of(environment, parse_settings(arguments), **how)


def read(folder: str) -> StudyFile:
    """Read the `study.toml` of a folder in `experiments`."""
    text = (files("dpbandit.experiments") / folder / "study.toml").read_text()
    return StudyFile.model_validate(tomllib.loads(text))


def _bindings(table: Panel | LineGroup, known: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield `known` variables with each combination of values of the variables `table.each`."""
    axes = [computed(values, known) for values in table.each.values()]
    for values in product(*axes):
        yield {**known, **dict(zip(table.each, values, strict=True))}


def _places(
    table: Panel, known: Mapping[str, Any], more: Mapping[str, Any] = MappingProxyType({})
) -> list[dict[str, Any]]:
    """Return all variables at each value of the axis; formulas `let` and `more` add variables."""
    ((name, values),) = table.over.items() or [("", [None])]
    found = []
    for value in computed(values, known):
        at = {**known, name: value}
        for key, text in {**table.let, **more}.items():
            at[key] = computed(text, at)
        found.append(at)
    return found


def _cell(run: AgentRun, name: str, lines: RunLines) -> str:
    return mean(value_of(name, run, lines))


def _heading(run: AgentRun, x: str) -> str:
    try:
        place = place_of(run, x)
    except KeyError:  # a baseline without that setting
        return ""
    return f"claims {place:g}" if x == "epsilon" else f"{x} = {place:,g}"


def command(
    name: str,
    study: Callable[[Any, Path], Found],
    full: Any,
    quick: Any,
    summary: str | None = None,
) -> Callable[..., None]:
    """Make the command of a study, which runs missing configurations and shows all results.

    Args:
        name: default folder of results, in out/.
        study: function of (sizes, folder) that returns the results.
        full: sizes of the study, a dictionary or a dataclass with a field `replicas`.
        quick: smaller sizes, for `--quick`.
        summary: the command's help; the study's docstring if left out.
    """

    def main(few: Quick = False, out: Out = Path("out") / name, replicas: Replicas = None) -> None:
        check_writable(out / "summary.csv")
        sizes = quick if few else full
        if replicas is not None:
            whole("replicas", replicas, 2)  # there are standard errors
            chosen = {"replicas": replicas}
            sizes = {**sizes, **chosen} if isinstance(sizes, dict) else replace(sizes, **chosen)
        found = study(sizes, out)
        written = [write_csv(out / f"{name}.csv", frame) for name, frame in found.frames.items()]
        written = [*found.figures, *written]
        for table in found.tables:
            print(table) if isinstance(table, str) else Console().print(table)
        for path in written:
            print(f"Written to {path}.")

    main.__doc__ = summary or study.__doc__
    return main


def command_of(folder: str) -> Callable[..., None]:
    """Make the command of a study that its `study.toml` describes completely."""
    study = read(folder)
    return command(folder, study.run, {}, study.quick, study.summary)


def start(main: Callable[..., None]) -> None:
    """Run a command; print InputErrors (exit code 2) and warnings as sentences."""
    warnings.showwarning = lambda message, *where, **how: print(message)

    def program() -> int:
        try:
            typer.run(main)
        except InputError as mistake:
            print(f"dpbandit: {mistake}", file=sys.stderr)
            return 2
        return 0

    exit_with(program)


def measured(study: Study, out: Path, *, progress: bool = True) -> Results:
    """Run the missing configurations of a study in the folder `out`, and load all results.

    Raises:
        InputError: if `run_sweep` raises it, such as for blocks of another version.
    """
    done = run_sweep(study, out, backend="threading", resume=True, progress=progress)
    if done.found.corrupt:
        files = ", ".join(map(str, done.found.corrupt))
        warnings.warn(f"Damaged files were renamed and run again: {files}.", stacklevel=2)
    for failure in done.failed:
        raise InputError(str(failure))
    return Results.load(out)


def runs_of(
    name: str,
    configurations: Iterable[Configuration],
    out: Path,
    *,
    replicas: int,
    progress: bool = True,
) -> dict[str, AgentRun]:
    """Load the runs of these configurations by key, after running the missing ones (`measured`)."""
    every = {one.key: one for one in configurations}
    study = Study(name=name, configurations=tuple(every.values()), replicas=replicas)
    return {run.key: run for run in measured(study, out, progress=progress).runs}


def grouped(things: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    """Group things by `key` of each; groups are in order of first appearance."""
    found: dict[Any, list[Any]] = {}
    for one in things:
        found.setdefault(key(one), []).append(one)
    return found


def tabulated(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Iterable[str]],
    *,
    left: Collection[str] = (),
    **how: Any,
) -> Table:
    """Tabulate rows; the first column, or the columns named in `left`, are text, others numbers."""
    table = Table(title=title, **how)
    for heading in headings:
        words = heading in (left or headings[:1])
        table.add_column(heading, justify="left" if words else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def along(
    title: str,
    lines: RunLines,
    heading: Callable[[AgentRun], str],
    cell: Callable[[AgentRun], str],
    *,
    last: tuple[str, Mapping[str, str]] | None = None,
    every: int = 1,
) -> Table:
    """Tabulate lines as rows; columns are every `every`-th value of the axis, from the last.

    `last` has the heading of one more column, and its text for each line by label.
    """
    table = Table(title=title)
    table.add_column("agent", no_wrap=True)
    longest = max(lines.values(), key=len)
    headings = [heading(run) for run in longest[::-every][::-1]]
    for words in [*headings, *([last[0]] if last else [])]:
        table.add_column(words, justify="right")
    for label, runs in lines.items():
        cells = {heading(run): cell(run) for run in runs}
        if len(runs) == 1 and headings[-1] not in cells:  # a baseline that has no place
            cells = {headings[-1]: cell(runs[0])}
        row = [cells.get(words, "") for words in headings]
        table.add_row(label, *row, *([last[1].get(label, "")] if last else []))
    return table


def mean(values: Floats) -> str:
    """Format a mean with its standard error, to two digits of the error.

    >>> mean(np.array([1.0, 1.2, 1.4]))
    '1.20 ± 0.12'
    """
    error = standard_error(values)
    digits = max(0, 1 - floor(log10(error))) if 0 < error < np.inf else 4
    return f"{values.mean():,.{digits}f} ± {error:,.{digits}f}"
