"""Tables and figures: lines over T, d and epsilon, a histogram of switches, the lower bound."""

from collections.abc import Callable, Iterator
from functools import partial
from math import inf, log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from dpbandit.base import write_atomically
from dpbandit.base.tables import Table
from dpbandit.experiments.experts import PUBLIC, QUICK, Sizes, least_regret, news, questions
from dpbandit.experiments.questions import (
    Answers,
    Found,
    Place,
    RunLines,
    along,
    answers,
    claim,
    command,
    draw_frontier,
    draw_lines,
    horizon,
    mean,
    panes,
    per_1000,
    slopes_table,
    start,
)
from dpbandit.results.plots import final, legend_below, loglog, panels
from dpbandit.results.runs import AgentRun, Slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FAILURE = 0.01
"""That any of all honest agents is called a liar."""


class Verdict(NamedTuple):
    """An agent's mean regret beside what no private agent can undercut."""

    judged_at: float
    """epsilon, what is certified, or of the instance where nothing is certified"""
    mean: float
    upper: float
    """of the expected regret, with the stated confidence"""
    least: float
    """that an agent as private as that loses at least"""

    @property
    def refuted(self) -> bool:
        """Whether it cannot be as private as that."""
        return self.upper < self.least


def verdict(run: AgentRun, statements: int) -> Verdict:
    """Judge a run on the lower bound's instance, one of so many.

    Regret lies in [0, k], k the rounds with news, so that by Hoeffding its expectation exceeds the
    mean of R replicas by k sqrt(ln(statements / `FAILURE`) / 2 R) with probability `FAILURE` /
    statements at most, whatever its law.
    """
    d, asked = run.setup.env_kwargs["n_actions"], run.setup.env_kwargs["epsilon"]
    k, proof, regret = news(d, asked), run.certificate, run.regret[-1]
    epsilon = proof.epsilon if 0 < proof.epsilon < inf else asked
    mean = float(regret.mean())
    margin = k * sqrt(log(statements / FAILURE) / (2 * len(regret)))
    least = least_regret(d, epsilon, proof.claimed_delta, tail=k)
    return Verdict(epsilon, mean, mean + margin, least)


_GREY = (*PUBLIC, "centre")


class Question(NamedTuple):
    """What is drawn of its lines, along which axis."""

    heading: str
    axis: str
    ylabel: str = "regret (loss)"
    size: tuple[float, float] = (14.5, 7.6)


_CLICKS = "clicks lost per 1,000 users"
QUESTIONS = {
    "growth": Question("Regret at epsilon 1, one of many experts never errs", "T"),
    "sizes": Question("Regret at epsilon 1 against the number of experts", "ln d"),
    "prices": Question("Regret against epsilon, one expert never errs", "epsilon", size=(8.5, 7.4)),
    "counterexample": Question(
        "The potential's test (Algorithm 5) and the test of one's own loss (Algorithm 1)",
        "T",
        size=(17, 7.2),
    ),
    "points": Question(
        "DP-FTRL where its bound holds and where it does not, and points as experts",
        "T",
        size=(17, 7.2),
    ),
    "policies": Question("Following the best of many rankers", "epsilon", _CLICKS, (13.5, 7.2)),
}


def experts(run: AgentRun) -> float:
    """d."""
    return float(run.setup.env_kwargs["n_actions"])


_PLACES: dict[str, tuple[Place, Callable[[AgentRun], str]]] = {
    "T": (horizon, lambda run: f"T = {run.setup.horizon:,}"),
    "ln d": (lambda run: log(experts(run)), lambda run: f"d = {experts(run):,.0f}"),
    "epsilon": (lambda run: run.certificate.claimed_epsilon, claim),
}
"""Axis -> where a run stands for its exponent, and in words"""


def slopes(answers: Answers) -> dict[str, dict[tuple[str, str], Slope]]:
    """question -> (panel, label) -> the exponent; in epsilon, of what is claimed."""
    return {name: answers.slopes(name, _PLACES[one.axis][0]) for name, one in QUESTIONS.items()}


def slopes_csv(answers: Answers) -> pd.DataFrame:
    """One row for each exponent."""
    every = slopes(answers).items()
    return pd.concat(
        [slopes_table(found, question=name, axis=QUESTIONS[name].axis) for name, found in every]
    )


def verdicts(answers: Answers) -> dict[str, dict[str, Verdict]]:
    """panel -> label -> what the lower bound says."""
    tails = answers.runs["tails"]
    statements = sum(len(lines) for lines in tails.values())
    return {
        panel: {label: verdict(line[0], statements) for label, line in lines.items()}
        for panel, lines in tails.items()
    }


def tables(answers: Answers) -> Iterator[Table]:
    """One for each panel of a question, the switches, and the lower bound."""
    exponents = slopes(answers)
    for name, one in QUESTIONS.items():
        value = per_1000 if name == "policies" else final
        for panel, lines in answers.runs[name].items():
            own = {label: str(s) for (p, label), s in exponents[name].items() if p == panel}
            yield along(
                f"{one.heading}: {panel}: {one.ylabel}",
                lines,
                _PLACES[one.axis][1],
                lambda run, value=value: mean(value(run)),  # type: ignore[misc]
                last=(f"exponent in {one.axis}", own),
            )
    yield _switches_table(answers)
    yield _verdicts_table(answers)


def _switches_table(answers: Answers) -> Table:
    table = Table(title="switches on halving")
    table.add_column("agent", no_wrap=True)
    for heading in ("mean", "most"):
        table.add_column(heading, justify="right")
    for panel, lines in answers.runs["switches"].items():
        for label, (run,) in lines.items():
            many = run.switches[-1]
            table.add_row(f"{panel}: {label}", mean(many.astype(float)), f"{many.max():.0f}")
    return table


def _verdicts_table(answers: Answers) -> Table:
    title = "the lower bound's instance: nobody private is below"
    table = Table(title=title)
    table.add_column("agent", no_wrap=True)
    for heading in ("at epsilon", "mean regret", "upper limit", "lower bound", ""):
        table.add_column(heading, justify="right")
    for panel, found in verdicts(answers).items():
        for label, one in found.items():
            numbers = (f"{number:.2f}" for number in (one.mean, one.upper, one.least))
            caught = "not as private as that" if one.refuted else ""
            table.add_row(f"{panel}: {label}", f"{one.judged_at:.3g}", *numbers, caught)
    return table


def figures(answers: Answers, out: Path) -> Iterator[Path]:
    """Write all of them into `out`."""
    drawings: dict[str, Callable[[Path], None]] = {
        name: partial(_lines, answers, name) for name in QUESTIONS
    }
    drawings |= {"switches": partial(_switches, answers), "tails": partial(_tails, answers)}
    for name, draw in drawings.items():
        yield write_atomically(out / f"{name}.png", draw)


def _lines(answers: Answers, name: str, path: Path) -> None:
    one, found, exponents = QUESTIONS[name], answers.runs[name], slopes(answers)[name]
    with panes(path, found, one.heading, one.size) as row:
        for axes, (panel, lines) in zip(row, found.items(), strict=True):
            own = {label: s for (p, label), s in exponents.items() if p == panel}
            if name == "policies":  # an exponent there says nothing
                own = {}
            words = {label: f"{label}: {s.value:.2f} ± {s.se:.2f}" for label, s in own.items()}
            _panel(axes, one, lines, words, per_1000 if name == "policies" else final)
            axes.set_ylabel(one.ylabel)
            legend_below(axes, f"agent: exponent of {one.axis} ± error" if own else "agent")


def _panel(
    axes: "Axes",
    question: Question,
    lines: RunLines,
    words: dict[str, str],
    value: Callable[[AgentRun], np.ndarray],
) -> None:
    """Learners in colour, whoever is not private or learns nothing in grey."""
    if question.axis == "epsilon":
        draw_frontier(axes, lines, value, names=words, log=True)
        return
    place, name = (experts, "number of experts d")
    if question.axis == "T":
        place, name = (horizon, "horizon T (rounds)")
    draw_lines(axes, lines, place, names=words, grey=_GREY)
    loglog(axes, sorted({place(run) for line in lines.values() for run in line}))
    axes.set_xlabel(name)


def _switches(answers: Answers, path: Path) -> None:
    found = answers.runs["switches"]
    run = next(iter(next(iter(found.values())).values()))[0]
    heading = f"How often lazy agents change on halving, epsilon 1, {run.setup.horizon:,} rounds"
    heading += f"\n{len(run.replicas)} runs"
    with panels(path, list(found), heading=heading, size=(15, 5.2)) as row:
        for axes, lines in zip(row, found.values(), strict=True):
            most = max(int(run.switches[-1].max()) for (run,) in lines.values())
            for look, (label, (run,)) in enumerate(lines.items()):
                many = run.switches[-1]
                share = np.bincount(many, minlength=most + 1)
                axes.bar(
                    np.arange(most + 1) + 0.4 * (look - 0.5),
                    share / share.sum(),
                    0.4,
                    color=("#0173b2", "#de8f05")[look],
                    edgecolor="black",
                    hatch=("", "//")[look],
                    label=f"{label}: mean {many.mean():.2f}",
                )
            axes.set_xticks(range(0, most + 1, max(1, most // 8)))
            axes.set(xlabel="switches in one run", ylabel="share of runs")
            axes.legend(frameon=False, fontsize="small", loc="upper right")
            axes.set_ylim(top=1.25 * axes.get_ylim()[1])


def _tails(answers: Answers, path: Path) -> None:
    found = verdicts(answers)
    heading = "The lower bound as an audit: a dot is a mean, its line ends at the upper limit;\n"
    heading += "a bar is what an agent as private as that loses at least; crosses are caught"
    with panels(path, list(found), heading=heading, size=(16, 7.2)) as row:
        for place, (axes, rows) in enumerate(zip(row, found.values(), strict=True)):
            for height, v in enumerate(rows.values()):
                color = "#d55e00" if v.refuted else "#0173b2"
                axes.plot([v.mean, v.upper], [height] * 2, color=color, lw=1.8)
                axes.plot([v.mean], [height], "Xo"[not v.refuted], color=color, ms=7)
                axes.plot([v.least], [height], "|", color="black", ms=15, mew=2)
            axes.set_yticks(range(len(rows)), list(rows) if place == 0 else [""] * len(rows))
            axes.invert_yaxis()
            axes.set_xlim(left=0)
            axes.set_xlabel("regret (loss)")


def measure(sizes: Sizes, out: Path, *, progress: bool = True) -> Answers:
    """All questions; those with many replicas in a folder of their own."""
    few, many = questions(sizes)
    name = "Experts, one of whom never errs"
    one = answers(name, few, out, replicas=sizes.replicas, progress=progress)
    other = answers(name, many, out / "audited", replicas=sizes.audited, progress=progress)
    return Answers({**one.runs, **other.runs})


def run(sizes: Sizes, out: Path) -> Found:
    """Regret against T, d and epsilon where one expert never errs. Resumes where it stopped."""
    found = measure(sizes, out)
    frames = {"summary": found.table(), "slopes": slopes_csv(found)}
    return Found(frames, figures(found, out), tables(found))


main = command("experts", run, Sizes(), QUICK)

if __name__ == "__main__":
    start(main)
