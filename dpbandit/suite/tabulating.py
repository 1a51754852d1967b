"""Write results of `freeze_suite`: runs, the table of answers, and tests and audits."""

import re
from collections.abc import Iterable, Iterator, Sequence
from math import inf, nan
from pathlib import Path
from shutil import copyfile

import numpy as np

from dpbandit.base import Floats, provenance, write_atomically, write_json
from dpbandit.results.comparisons import ratio_band
from dpbandit.results.problems import Setup
from dpbandit.results.runs import AgentRun, standard_error
from dpbandit.results.store import write_runs
from dpbandit.running.answers import (
    CANDIDATE,
    CHOSEN,
    HORIZON,
    TRUST,
    ZERO,
    Answer,
    answer_file,
    answers,
    arguments_text,
    written,
)
from dpbandit.running.environments import environment_label
from dpbandit.suite.candidates import Group, candidates, groups
from dpbandit.suite.catalogue import problems, spec_of, suite, version
from dpbandit.suite.freezing import Findings, Frozen
from dpbandit.suite.playing import finalists, findings, findings_file, frozen, frozen_file

CHOICE = "Choice and report"  # line of the table's header on runs of `freeze_suite`
USERS = "Other numbers of users"  # line of the table's header on runs of `grow`
_ZERO_SHARE = 1e-9
"""A fixed action's regret below this share of uniform play's regret counts as 0."""


def write_frozen(done: Frozen, folder: Path) -> list[Path]:
    """Write runs, the table of answers, and tests and audits into a folder; return the files.

    Problems that are not in `done` keep their shipped runs and rows. All problems keep the
    shipped rows that `dpbandit.suite.growing` made at horizons other than the suite's.
    """
    names = {run.setup.problem for run in done.reported}
    compared = [
        choice.screened[one.name].as_run(one)
        for place, choice in done.choices.items()
        for one in candidates(place)
        if one.name in choice.finalists
    ]
    others = [run for run in (*frozen("small"), *finalists()) if run.setup.problem not in names]
    unchanged = [one for one in _shipped() if one.problem not in names or one.role == HORIZON]
    rows = [*unchanged, *answers_of(done)]
    return write_renewed([*others, *done.reported, *compared], rows, done.findings, folder)


def write_renewed(
    runs: Sequence[AgentRun], rows: Iterable[Answer], examined: Findings, folder: Path
) -> list[Path]:
    """Write all runs and rows, and the shipped findings with new ones; return the files."""
    found = {**findings(), **examined}
    return [
        write_runs(folder / frozen_file("small").name, runs),
        write_table(rows, folder, CHOICE),
        write_json(folder / findings_file().name, found),
    ]


def write_grown(rows: Sequence[Answer], folder: Path) -> list[Path]:
    """Write the shipped table of answers, with new rows that `grow` returned; return the file."""
    names = {one.problem for one in rows}
    unchanged = [one for one in _shipped() if one.role != HORIZON or one.problem not in names]
    return [write_table([*unchanged, *rows], folder, USERS)]


def write_table(rows: Iterable[Answer], folder: Path, measured: str) -> Path:
    """Write the table of answers; its header states that this program measured part `measured`."""
    order = [*problems()]
    text = written(sorted(rows, key=lambda one: order.index(one.problem)), _head(measured))
    table = folder / answer_file().name
    return write_atomically(table, lambda path: path.write_text(text, "utf-8"))


def ship_frozen(written_files: Iterable[Path]) -> list[Path]:
    """Copy the files into the package, which ships them; return their new paths."""
    homes = [Path(str(home)) for home in (frozen_file("small"), answer_file(), findings_file())]
    places = {home.name: home for home in homes}
    return [Path(copyfile(file, places[file.name])) for file in written_files]


def _shipped() -> tuple[Answer, ...]:
    return answers() if answer_file().is_file() else ()


def _head(measured: str) -> str:
    """Return the header of the table: seeds, and the versions and CPU of each measurement."""
    made = provenance()
    libraries = ", ".join(f"{name} {made[name]}" for name in ("numpy", "scipy"))
    shipped = answer_file().read_text("utf-8") if answer_file().is_file() else ""
    lines = dict(re.findall(f"(?m)^# ({CHOICE}|{USERS}): (.*)$", shipped))
    lines[measured] = (
        f"dpbandit {made['dpbandit']}, Python {made['python']}, {libraries}, {made['cpu']}"
    )
    return "\n".join(
        [
            f"Written by `suite freeze`: version {version()} of the suite, chosen on seed "
            f"{suite().selection_seed}, reported on seed {suite().seed}.",
            *(f"{name}: {lines[name]}" for name in (CHOICE, USERS) if name in lines),
        ]
    )


def answers_of(done: Frozen) -> list[Answer]:
    """Return the rows of all problems: chosen agents, baselines, and all that competed."""
    by_problem: dict[str, list[AgentRun]] = {}
    for run in done.reported:
        by_problem.setdefault(run.setup.problem, []).append(run)
    return [one for name, runs in by_problem.items() for one in _rows_of(name, runs, done)]


def _rows_of(name: str, runs: Sequence[AgentRun], done: Frozen) -> Iterator[Answer]:
    """Yield all rows of one problem; `runs` are those of `report`, in its order."""
    places = groups([name])
    best, zeros = runs[: len(places)], runs[len(places) :]
    last = {run.name: run.regret[-1] for run in zeros}
    ends = (best[0].regret[-1], last["uniform"], last["best-fixed"])
    columns = [(run, CHOSEN, place.epsilon) for run, place in zip(best, places, strict=True)]
    columns += [(run, ZERO, run.certificate.claimed_epsilon) for run in zeros]
    for run, role, epsilon in columns:
        yield answer_row(run.setup, role, epsilon, run.name, run.regret[-1], *ends)
    free = done.choices[Group(name, inf)]
    base = free.screened[free.chosen].regret[-1]
    for place in places:
        for agent, outcome in done.choices[place].screened.items():
            regret, setup = outcome.regret[-1], runs[0].setup
            yield answer_row(setup, CANDIDATE, place.epsilon, agent, regret, base, *ends[1:])


def answer_row(
    setup: Setup,
    role: str,
    epsilon: float,
    agent: str,
    regret: Floats,
    base: Floats,
    uniform: Floats,
    fixed: Floats,
) -> Answer:
    """Return a row of the table of answers.

    Args:
        setup: the problem, labelled by its name in the suite.
        role, epsilon, agent: see `Answer`.
        regret: final regret of the agent, (R,).
        base: final regret of the best non-private agent; if (R,), ratios get 95 % intervals.
        uniform, fixed: final regret of uniform play, and of the best fixed action.
    """
    one, spec = problems()[setup.problem], spec_of(setup.problem)
    means = [float(some.mean()) for some in (regret, base, uniform, fixed)]
    mean, at_best, at_worst, at_fixed = means
    times, saved = (mean / at_best, nan, nan), ((at_worst - mean) / (at_worst - at_best), nan, nan)
    if len(regret) == len(base) == len(uniform):
        times = ratio_band(regret[None], base[None])
        saved = ratio_band((uniform - regret)[None], (uniform - base)[None])
    nothing = abs(at_fixed) <= _ZERO_SHARE * abs(at_worst)
    return Answer(
        problem=setup.problem,
        kind=spec.measured_as if one.trust == "central" else TRUST,
        environment=environment_label(setup.environment),
        arguments=arguments_text(setup.env_kwargs),
        role=role,
        epsilon=epsilon,
        agent=agent,
        horizon=setup.horizon,
        replicas=len(regret),
        mean=mean,
        se=standard_error(regret),
        median=float(np.median(regret)),
        q95=float(np.quantile(regret, 0.95)),
        worst=float(regret.max()),
        times=times[0],
        times_low=times[1],
        times_high=times[2],
        score=saved[0],
        score_low=saved[1],
        score_high=saved[2],
        above_fixed=inf if nothing else mean / at_fixed,
    )
