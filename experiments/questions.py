"""What studies share: options of their commands, questions as lines of runs, panels, tables."""

import re
import sys
import tomllib
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib.resources import files
from math import floor, log, log2, log10, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pandas as pd
import typer
from rich.console import Console

from dpbandit.agents import AGENTS
from dpbandit.base import (
    Floats,
    InputError,
    check_writable,
    exit_with,
    parse_settings,
    whole,
    write_csv,
)
from dpbandit.base.tables import Table
from dpbandit.results.plots import (
    Front,
    Overlay,
    claims,
    final,
    from_zero,
    frontier,
    level,
    line,
    log_ticks,
    panels,
)
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, Slope, slope, standard_error
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration, Study, Sweep, run_sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Thing = TypeVar("Thing")
Key = TypeVar("Key")
Quick: TypeAlias = Annotated[bool, typer.Option("--quick", help="Seconds instead of minutes.")]
Out: TypeAlias = Annotated[Path, typer.Option(help="Where results go, and are taken up again.")]
Replicas: TypeAlias = Annotated[int | None, typer.Option(help="Independent repetitions, >= 2.")]


class Found(NamedTuple):
    """What a study has to say."""

    frames: Mapping[str, pd.DataFrame]
    """written as CSV, under these names"""
    figures: Iterable[Path]
    """written where they are"""
    tables: Iterable[Table | str] = ()
    """printed, once all is written"""


def command(
    name: str, study: Callable[[Any, Path], Found], full: Any, quick: Any
) -> Callable[..., None]:
    """The command of a study, which measures what is missing in a folder and tells all of it.

    Args:
        name: of the folder in out/ where results go unless another is asked for.
        study: (sizes, folder) -> what is found; its docstring is the command's help.
        full: its sizes, a dictionary or a dataclass with a field `replicas`.
        quick: smaller ones, for `--quick`.
    """

    def main(few: Quick = False, out: Out = Path("out") / name, replicas: Replicas = None) -> None:
        check_writable(out / "summary.csv")
        sizes = quick if few else full
        if replicas is not None:
            whole("replicas", replicas, 2)  # there are standard errors
            told = {"replicas": replicas}
            sizes = {**sizes, **told} if isinstance(sizes, dict) else replace(sizes, **told)
        found = study(sizes, out)
        written = [write_csv(out / f"{name}.csv", frame) for name, frame in found.frames.items()]
        written = [*found.figures, *written]
        for table in found.tables:
            print(table) if isinstance(table, str) else Console().print(table)
        for path in written:
            print(f"Written to {path}.")

    main.__doc__ = study.__doc__
    return main


def swept(file: Path, update: Mapping[str, Any], out: Path) -> Results:
    """What a sweep file asks for, with other values of some of its keys, see `measured`."""
    return measured(Sweep.read(file).model_copy(update=update), out)


def measured(study: Study | Sweep, out: Path, *, progress: bool = True) -> Results:
    """Run what is missing of a study in the folder `out`, and load all of it.

    Raises:
        InputError: whatever `run_sweep` refuses, such as blocks that another program has made.
    """
    done = run_sweep(study, out, backend="threading", resume=True, progress=progress)
    if done.found.corrupt:
        files = ", ".join(map(str, done.found.corrupt))
        warnings.warn(f"Corrupt, moved aside and run anew: {files}.", stacklevel=2)
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
    """The runs of these configurations by key, each run once, see `measured`."""
    every = {one.key: one for one in configurations}
    study = Study(name=name, configurations=tuple(every.values()), replicas=replicas)
    return {run.key: run for run in measured(study, out, progress=progress).runs}


def start(main: Callable[..., None]) -> None:
    """Run a command; bad input becomes one sentence and exit code 2, warnings are sentences."""
    warnings.showwarning = lambda message, *where, **how: print(message)

    def program() -> int:
        try:
            typer.run(main)
        except InputError as mistake:
            print(f"dpbandit: {mistake}", file=sys.stderr)
            return 2
        return 0

    exit_with(program)


def agents_in(folder: str) -> dict[str, dict[str, str]]:
    """agents.toml of a study: group -> label -> agent in words, with sizes in braces."""
    return tomllib.loads((files(f"dpbandit.experiments.{folder}") / "agents.toml").read_text())


def agent_of(words: str, **sizes: Any) -> AgentConfig:
    """The agent in words, ID:KEY=VALUE, with these sizes.

    >>> agent_of("pftal:epsilon={epsilon}", epsilon=0.5).epsilon
    0.5
    """
    name, *settings = words.format(**sizes).split(":")
    return AGENTS[name](**parse_settings(settings))


def formula(text: str, **known: Any) -> float:
    """What a formula of a table says, in numbers that are known and sqrt, log, log2 and max.

    >>> formula("sqrt(d) / epsilon", d=4, epsilon=0.5)
    4.0
    """
    return float(eval(text, {"__builtins__": {}, **_FUNCTIONS}, known))


_FUNCTIONS = {"sqrt": sqrt, "log": log, "log2": log2, "max": max}


def rows_and_sizes(
    text: str, last: int, sizes: Mapping[str, Callable[[str], Any]], hint: str
) -> tuple[set[int], dict[str, Any]]:
    """Rows of a table and sizes, "1-3,5,T=4096"; no row named, or "all", is all rows.

    Raises:
        InputError: anything else.

    >>> rows_and_sizes("4-5,T=1024", 7, {"T": int}, "the horizon (T=4096)")
    ({4, 5}, {'T': 1024})
    """
    wrong = InputError(
        f"Expected rows to be numbers from 1 to {last} (1-3,5) and {hint}, got {text!r}."
    )
    numbers, told = set[int](), dict[str, Any]()
    for term in (part.strip() for part in text.split(",")):
        key, equals, value = term.partition("=")
        span = re.fullmatch(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", term)
        try:
            if equals and key not in told:
                told[key] = sizes[key](value)
            elif span and (chosen := range(int(span[1]), int(span[2] or span[1]) + 1)):
                numbers |= set(chosen)
            elif term != "all":
                raise wrong
        except (KeyError, ValueError):
            raise wrong from None
    every = set(range(1, last + 1))
    if not numbers <= every:
        raise wrong
    return numbers or every, told


Lines: TypeAlias = Mapping[str, Sequence[Configuration]]
"""label -> configurations along an axis; one alone is a baseline"""
Panels: TypeAlias = Mapping[str, Lines]
"""title -> its lines"""
RunLines: TypeAlias = Mapping[str, Sequence[AgentRun]]
Place: TypeAlias = Callable[[AgentRun], float]
"""Where on its line a run stands"""


def grouped(things: Iterable[Thing], key: Callable[[Thing], Key]) -> dict[Key, list[Thing]]:
    """Key -> what has it, in order."""
    found: dict[Key, list[Thing]] = {}
    for one in things:
        found.setdefault(key(one), []).append(one)
    return found


def name_of(run: AgentRun) -> str:
    """What its agent is called."""
    return run.name


@dataclass(frozen=True)
class Answers:
    """What was found: question -> panel -> label -> its runs."""

    runs: Mapping[str, Mapping[str, RunLines]]

    def lines(self) -> Iterator[tuple[str, str, str, Sequence[AgentRun]]]:
        """Question, panel, label and runs of every line."""
        for question, found in self.runs.items():
            for panel, lines in found.items():
                for label, runs in lines.items():
                    yield question, panel, label, runs

    def slopes(self, question: str, place: Place) -> dict[tuple[str, str], Slope]:
        """(panel, label) -> the exponent of regret, of lines of three places or more."""
        return {
            (panel, label): slope([place(run) for run in line], [run.regret[-1] for run in line])
            for asked, panel, label, line in self.lines()
            if asked == question and len({place(run) for run in line}) > 2
        }

    def table(self, more: Callable[[AgentRun], Mapping[str, Any]] = lambda run: {}) -> pd.DataFrame:
        """The summary of every run, once for each question that it answers."""
        runs = [
            (question, panel, label, run)
            for question, panel, label, line in self.lines()
            for run in line
        ]
        told = Results(tuple(run for _, _, _, run in runs)).summary().to_dict("records")
        return pd.DataFrame(
            [
                {"question": question, "panel": panel, "line": label, **row, **more(run)}
                for (question, panel, label, run), row in zip(runs, told, strict=True)
            ]
        )


def answers(
    name: str, questions: Mapping[str, Panels], out: Path, *, replicas: int, progress: bool = True
) -> Answers:
    """Run what is missing of all questions, in the folder `out`; what several ask for runs once."""
    asked = [
        one
        for panels in questions.values()
        for lines in panels.values()
        for line in lines.values()
        for one in line
    ]
    found = runs_of(name, asked, out, replicas=replicas, progress=progress)
    return Answers(
        {
            question: {
                panel: {label: [found[one.key] for one in line] for label, line in lines.items()}
                for panel, lines in panels.items()
            }
            for question, panels in questions.items()
        }
    )


def slopes_table(slopes: Mapping[tuple[str, str], Slope], **more: Any) -> pd.DataFrame:
    """One row for each exponent."""
    rows = [{**more, "panel": p, "line": name, **s._asdict()} for (p, name), s in slopes.items()]
    return pd.DataFrame(rows)


def along(
    title: str,
    lines: RunLines,
    heading: Callable[[AgentRun], str],
    cell: Callable[[AgentRun], str],
    *,
    last: tuple[str, Mapping[str, str]] | None = None,
    every: int = 1,
) -> Table:
    """A row for each line, a column for every so many places of the longest from its last one.

    `last` is the heading of one column more, and its cells by label.
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
    """With its standard error, to two digits of that.

    >>> mean(np.array([1.0, 1.2, 1.4]))
    '1.20 ± 0.12'
    """
    error = standard_error(values)
    digits = max(0, 1 - floor(log10(error))) if 0 < error < np.inf else 4
    return f"{values.mean():,.{digits}f} ± {error:,.{digits}f}"


def per_1000(run: AgentRun) -> Floats:
    """Regret in the end for every 1,000 rounds, (R,)."""
    return 1000 * run.regret[-1] / run.setup.horizon


def claim(run: AgentRun) -> str:
    """A heading of what is claimed, which is not what is certified."""
    return f"claims {run.certificate.claimed_epsilon:g}"


def horizon(run: AgentRun) -> float:
    """T."""
    return run.setup.horizon


def panes(
    path: Path,
    found: Mapping[str, RunLines],
    heading: str,
    size: tuple[float, float],
    titles: Mapping[str, str] | None = None,
    *,
    rows: int = 1,
) -> "AbstractContextManager[list[Axes]]":
    """A panel for each of `found`, in rows, under a heading that says of how many replicas."""
    run = next(iter(next(iter(found.values())).values()))[0]
    sample = f"mean of {len(run.replicas)} replicas, 95 % intervals"
    names = [(titles or {}).get(name, name) for name in found]
    return panels(path, names, heading=f"{heading}\n{sample}", size=size, rows=rows)


def draw_frontier(
    axes: "Axes",
    lines: RunLines,
    value: Callable[[AgentRun], Floats] = final,
    *,
    names: Mapping[str, str] | None = None,
    log: bool = False,
    overlays: Iterable[Overlay] = (),
) -> None:
    """Whoever claims an epsilon over what is certified, all others as levels, beside `overlays`.

    `names` are the legend's words, where these are others; `log` is of the values.
    """
    words = dict(names or {})
    private = {label: runs for label, runs in lines.items() if any(map(claims, runs))}
    fronts = [Front(words.get(n, n), runs, look) for look, (n, runs) in enumerate(private.items())]
    levels = [(label, value(runs[0])) for label, runs in lines.items() if label not in private]
    frontier(axes, fronts, levels, value=value, overlays=overlays)
    if log:
        axes.set_yscale("log")
        log_ticks(axes.yaxis)
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.minorticks_off()
    else:
        from_zero(axes)


def regret(values: Floats, rounds: Any) -> Floats:
    """As it is."""
    return values


def draw_lines(
    axes: "Axes",
    lines: RunLines,
    place: Place,
    value: Callable[[Floats, Any], Floats] = regret,
    *,
    names: Mapping[str, str] | None = None,
    grey: Collection[str] = (),
) -> None:
    """Every line with its bars; one run alone over its rounds if these are the axis, else a level.

    Args:
        axes: where.
        lines: label -> runs.
        place: where a run stands; `horizon` where rounds are the axis.
        value: (regret, rounds) -> what is drawn.
        names: label -> the legend's words, where these are others.
        grey: labels of further lines that are drawn as baselines.
    """
    words = dict(names or {})
    learners = {n: runs for n, runs in lines.items() if len(runs) > 1 and n not in grey}
    for look, (label, runs) in enumerate(learners.items()):
        values = [_end(run, value) for run in runs]
        line(axes, [place(run) for run in runs], values, words.get(label, label), look)
    for number, label in enumerate(name for name in lines if name not in learners):
        runs, (shade, dashes) = lines[label], level(number)
        how: dict[str, Any] = {"color": shade, "ls": dashes, "lw": 1.4}
        how["label"] = words.get(label, label)
        if len(runs) > 1:
            means = [_end(run, value).mean() for run in runs]
            axes.plot([place(run) for run in runs], means, **how)
        elif place is horizon:
            first = min(place(run[0]) for run in learners.values())
            marks, table = runs[0].marks, value(runs[0].regret, runs[0].marks[:, None])
            axes.plot(marks[marks >= first], table[marks >= first].mean(axis=1), **how)
        else:
            axes.axhline(_end(runs[0], value).mean(), **how)


def _end(run: AgentRun, value: Callable[[Floats, Any], Floats]) -> Floats:
    return value(run.regret[-1], run.setup.horizon)
