"""Write what was frozen: runs, the table of answers (`dpbandit.running.answers`), findings."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from shutil import copyfile

import numpy as np

from dpbandit.base import Floats, provenance, write_atomically, write_json
from dpbandit.results.comparisons import ratio_band
from dpbandit.results.runs import AgentRun, standard_error
from dpbandit.results.store import write_runs
from dpbandit.running.answers import (
    CANDIDATE,
    CHOSEN,
    TRUST,
    ZERO,
    Answer,
    answer_file,
    answers,
    arguments_text,
    written,
)
from dpbandit.running.environments import environment_label
from dpbandit.running.recommend import kind_of
from dpbandit.suite.candidates import Group, candidates, groups
from dpbandit.suite.catalogue import problems, spec_of, suite, version
from dpbandit.suite.freezing import Choice, Frozen
from dpbandit.suite.playing import finalists, findings, findings_file, frozen, frozen_file

_NOTHING = 1e-9
"""Share of uniform play's regret below which a fixed action loses nothing but rounding"""


def write_frozen(done: Frozen, folder: Path) -> list[Path]:
    """Write runs, the table of answers, and findings, into a folder; returns the files.

    Problems that were not frozen now keep the runs and the rows that are shipped.
    """
    names = {run.setup.problem for run in done.reported}
    compared = [
        choice.screened[one.name].as_run(one)
        for place, choice in done.choices.items()
        for one in candidates(place)
        if one.name in choice.finalists
    ]
    others = [run for run in (*frozen("small"), *finalists()) if run.setup.problem not in names]
    kept = [row for row in _shipped() if row.problem not in names]
    rows = sorted([*kept, *answers_of(done)], key=lambda row: [*problems()].index(row.problem))
    found = {**findings(), **done.findings}
    runs = write_runs(folder / frozen_file("small").name, [*others, *done.reported, *compared])
    table = folder / answer_file().name
    write_atomically(table, lambda path: path.write_text(written(rows, head()), "utf-8"))
    return [runs, table, write_json(folder / findings_file().name, found)]


def ship_frozen(written_files: Iterable[Path]) -> list[Path]:
    """Copy the files into the package, where everything reads them."""
    homes = [Path(str(home)) for home in (frozen_file("small"), answer_file(), findings_file())]
    places = {home.name: home for home in homes}
    return [Path(copyfile(file, places[file.name])) for file in written_files]


def _shipped() -> tuple[Answer, ...]:
    return answers() if answer_file().is_file() else ()


def head() -> str:
    """What the numbers were made with."""
    made = provenance()
    libraries = ", ".join(f"{name} {made[name]}" for name in ("numpy", "scipy"))
    return (
        f"Written by `dpbandit suite freeze`: version {version()} of the suite, chosen on seed "
        f"{suite().selection_seed}, reported on seed {suite().seed}.\n"
        f"dpbandit {made['dpbandit']}, Python {made['python']}, {libraries}, {made['cpu']}."
    )


def answers_of(done: Frozen) -> list[Answer]:
    """The rows of every problem: the chosen, play that learns nothing, and who competed."""
    by_problem: dict[str, list[AgentRun]] = {}
    for run in done.reported:
        by_problem.setdefault(run.setup.problem, []).append(run)
    return [
        row for name, runs in by_problem.items() for row in _Rows(name, runs, done.choices).all()
    ]


@dataclass
class _Rows:
    """The rows of one problem."""

    problem: str
    runs: list[AgentRun]
    """on the report seed: the agent without privacy, one for each epsilon, then zeros"""
    choices: Mapping[Group, Choice]

    def __post_init__(self) -> None:
        self.places = groups([self.problem])  # the order of `report`
        many = len(self.places)
        self.chosen, self.zeros = self.runs[:many], self.runs[many:]
        self.base = self.chosen[0].regret[-1]
        last = {run.name: run.regret[-1] for run in self.zeros}
        self.uniform, self.fixed = last["uniform"], last["best-fixed"]

    def all(self) -> Iterator[Answer]:
        """Every row."""
        for place, run in zip(self.places, self.chosen, strict=True):
            yield self._reported(run, CHOSEN, place.epsilon)
        for run in self.zeros:
            yield self._reported(run, ZERO, run.certificate.claimed_epsilon)
        for place in self.places:
            yield from self._candidates(place)

    def _reported(self, run: AgentRun, role: str, epsilon: float) -> Answer:
        regret = run.regret[-1]
        times = ratio_band(regret[None], self.base[None])
        saved = ratio_band((self.uniform - regret)[None], (self.uniform - self.base)[None])
        return self._row(run.name, role, epsilon, regret, times, saved)

    def _candidates(self, place: Group) -> Iterator[Answer]:
        free = self.choices[Group(self.problem, inf)]
        base = free.screened[free.chosen].regret[-1].mean()
        uniform = self.uniform.mean()
        for name, outcome in self.choices[place].screened.items():
            regret = outcome.regret[-1]
            times, score = regret.mean() / base, (uniform - regret.mean()) / (uniform - base)
            row = self._row(name, CANDIDATE, place.epsilon, regret)
            yield row._replace(times=float(times), score=float(score))

    def _row(
        self,
        agent: str,
        role: str,
        epsilon: float,
        regret: Floats,
        times: tuple[float, float, float] = (nan, nan, nan),
        saved: tuple[float, float, float] = (nan, nan, nan),
    ) -> Answer:
        setup, one = self.runs[0].setup, problems()[self.problem]
        fixed = self.fixed.mean()
        nothing = abs(fixed) <= _NOTHING * abs(self.uniform.mean())
        return Answer(
            problem=self.problem,
            kind=kind_of(spec_of(self.problem)) if one.trust == "central" else TRUST,
            environment=environment_label(setup.environment),
            arguments=arguments_text(setup.env_kwargs),
            role=role,
            epsilon=epsilon,
            agent=agent,
            horizon=setup.horizon,
            replicas=len(regret),
            mean=float(regret.mean()),
            se=standard_error(regret),
            q95=float(np.quantile(regret, 0.95)),
            worst=float(regret.max()),
            times=times[0],
            times_low=times[1],
            times_high=times[2],
            score=saved[0],
            score_low=saved[1],
            score_high=saved[2],
            above_fixed=inf if nothing else float(regret.mean() / fixed),
        )
