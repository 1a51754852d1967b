"""Write a sweep as figures and one self-contained HTML page without scripts."""

import json
import os
import warnings
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from itertools import filterfalse
from math import inf, isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from dpbandit.agents.catalogue import is_reconstructed
from dpbandit.base import Floats, is_there, one_of, rounded, write_atomically, write_folder
from dpbandit.privacy.certificate import HONESTY
from dpbandit.results.comparisons import bootstrap_band, differences
from dpbandit.results.plots import (
    COLOURS,
    Curve,
    Front,
    despine,
    drawn,
    figure_style,
    final,
    from_zero,
    frontier,
    line,
    line_count,
    log_ticks,
    placed,
    regret_curves,
    save_figure,
)
from dpbandit.results.problems import labels
from dpbandit.results.results import Results
from dpbandit.results.runs import (
    AgentRun,
    as_text,
    label,
    restricted,
    run_key,
    slope,
    standard_error,
)
from dpbandit.results.store import AuditFile, Planned, audit_file, planned, read_audit
from dpbandit.running.cost_of_privacy import cost_of_privacy
from dpbandit.specs import CLIPPED

if TYPE_CHECKING:
    import pandas as pd


_MOST_TARGETS = 3  # claimed epsilons with a figure of regret by round
_MOST_MARKS = 150  # rounds at which a curve of regret is drawn
_ZERO_REGRET = 1e-9
"""A mean regret below this share of the largest one counts as 0."""
_EARLY_AGE = 100
"""Age of a visit, in rounds, at which the table of certificates states a second epsilon."""
MOST_IN_FULL = 12
"""Largest number of problems drawn with all figures; if there are more, each has only one."""


class Picture(NamedTuple):
    """A figure of the report: its name, its caption, and the function that draws it."""

    name: str
    """name of the figure's file, without ending"""
    caption: str
    draw: Callable[[Path], None]

    def save(self, folder: Path, ending: str) -> Path:
        """Draw the figure to the file `name` + `ending` in `folder` atomically; return the path."""
        return write_atomically(folder / f"{self.name}{ending}", self.draw)


class Look(NamedTuple):
    """Properties of a run that decide its colour and dashes in all figures of a report."""

    name: str
    private: bool
    """True if the run claims an epsilon between 0 and infinity"""
    delta: float
    """claimed delta"""

    @classmethod
    def of(cls, run: AgentRun) -> "Look":
        """Return the properties of a run that decide its colour and dashes."""
        proof = run.certificate
        return cls(run.name, 0 < proof.claimed_epsilon < inf, proof.claimed_delta)


Looks = dict[Look, int]
"""Properties of runs -> index into the lists of colours, dashes and markers."""


class ProblemRuns(NamedTuple):
    """Runs on one problem, with all horizons and privacy targets."""

    number: int
    name: str
    results: Results
    looks: Looks
    """colours and dashes of all runs of the report, the same for an agent on every problem"""

    @property
    def longest(self) -> Results:
        """Runs with the largest horizon."""
        return self.results.where(horizon=max(run.setup.horizon for run in self.results.runs))


def problems(results: Results, order: Sequence[str] = ()) -> list[ProblemRuns]:
    """Split results by problem; sort problems by their first run in `order`, then by name."""
    places = {key: place for place, key in enumerate(order)}
    first: dict[str, int] = {}
    for run in results.runs:
        name = results.label(run)
        first[name] = min(first.get(name, len(places)), places.get(run.key, len(places)))
    looks = {look: n for n, look in enumerate(sorted(set(map(Look.of, results.runs))))}
    names = sorted(first, key=lambda name: (first[name], name))
    return [
        ProblemRuns(n, name, results.where(problem=name), looks) for n, name in enumerate(names, 1)
    ]


def pictures(problem: ProblemRuns) -> Iterator[Picture]:
    """Yield all figures of one problem for which there are enough runs."""
    longest = problem.longest
    T = longest.runs[0].setup.horizon
    looks = problem.looks
    yield from _curves(problem, looks)
    if len(_targets(longest)) > 1 and any(map(placed, longest.runs)):
        yield Picture(
            f"frontier-{problem.number}",
            f"Regret after {T:,} rounds against the certified epsilon, not the claimed one. "
            "Bars: 95 % bootstrap intervals of the mean. Levels: epsilon 0 or infinity, or nearly.",
            partial(_frontier, runs=longest.runs, looks=looks, title=problem.name),
        )
    horizons = sorted({run.setup.horizon for run in problem.results.runs})
    if len(horizons) > 2:
        yield Picture(
            f"horizons-{problem.number}",
            "Regret against the horizon, of private agents for their largest claim. Exponents are "
            "fitted to the larger half of the horizons, with twice their jackknife standard error.",
            partial(_horizons, runs=problem.results.runs, looks=looks, title=problem.name),
        )
    yield Picture(
        f"cost-{problem.number}",
        f"Changes of action in {T:,} rounds, and microseconds of one replica's round "
        "(environment, agent and log).",
        partial(_cost, runs=longest.runs, title=problem.name),
    )


def _targets(results: Results) -> list[float]:
    """Return the positive finite epsilons that runs claim, sorted."""
    claims = {run.certificate.claimed_epsilon for run in results.runs}
    return sorted(claim for claim in claims if 0 < claim < inf)


def _curves(problem: ProblemRuns, looks: Looks) -> Iterator[Picture]:
    """Yield figures of regret by round at the largest horizon, for at most three epsilons."""
    longest = problem.longest
    if longest.runs[0].marks[0] > 1:  # only the last round was logged
        return
    every = targets = _targets(longest)
    if len(every) > _MOST_TARGETS:
        middle = 1.0 if 1.0 in every[1:-1] else every[len(every) // 2]
        targets = [every[0], middle, every[-1]]
    left_out = [rounded(epsilon, 6) for epsilon in every if epsilon not in targets]
    note = f" Not drawn: epsilon {', '.join(left_out)}." if left_out else ""
    public = [run for run in longest.runs if not 0 < run.certificate.claimed_epsilon < inf]
    for place, target in enumerate(targets or [inf], 1):
        private = [run for run in longest.runs if run.certificate.claimed_epsilon == target < inf]
        claim = f"claims of epsilon {rounded(target, 6)}" if private else "not private"
        yield Picture(
            f"regret-{problem.number}-{place}",
            f"Mean cumulative regret, {claim}; pointwise 95 % bootstrap bands. In the legend: what "
            f"is certified.{note}",
            partial(
                _regret, runs=[*private, *public], looks=looks, title=f"{problem.name}: {claim}"
            ),
        )


def _regret(path: Path, runs: Sequence[AgentRun], looks: Looks, title: str) -> None:
    marks = runs[0].marks
    some = np.unique(np.linspace(0, len(marks) - 1, _MOST_MARKS).round().astype(int))
    curves = [Curve(label(run), run.regret[some], looks[Look.of(run)]) for run in runs]
    unit = runs[0].setup.reward_unit
    regret_curves(path, marks[some], curves, title=as_text(title), unit=unit, band=bootstrap_band)


def _frontier(path: Path, runs: Sequence[AgentRun], looks: Looks, title: str) -> None:
    lines: dict[Look, list[AgentRun]] = {}
    for run in filter(placed, runs):
        lines.setdefault(Look.of(run), []).append(run)
    several = len({look.delta for look in lines}) > 1
    fronts = [
        Front(_name(same[0], delta=several), same, looks[k]) for k, same in sorted(lines.items())
    ]
    levels = [(label(run), final(run)) for run in filterfalse(placed, runs)]
    with drawn(path, title) as axes:
        frontier(axes, fronts, levels, band=bootstrap_band)
        from_zero(axes)
        axes.set_ylabel(f"regret ({runs[0].setup.reward_unit})")


def _horizons(path: Path, runs: Sequence[AgentRun], looks: Looks, title: str) -> None:
    lines: dict[tuple[Look, float], list[AgentRun]] = {}
    for run in sorted(runs, key=lambda run: run.setup.horizon):
        lines.setdefault((Look.of(run), run.certificate.claimed_epsilon), []).append(run)
    most = dict(sorted(lines))  # of each look the largest epsilon, which comes last
    several = len({look.delta for look in most if look.private}) > 1
    least = _ZERO_REGRET * max(run.regret[-1].mean() for run in runs)
    with drawn(path, title) as axes:
        for look, epsilon in most.items():
            same = lines[look, epsilon]
            where = [run.setup.horizon for run in same]
            values = [run.regret[-1] for run in same]
            claim = f", claims {rounded(epsilon, 6)}" if look.private else ""
            name = _name(same[0], claim, delta=several)
            if min(value.mean() for value in values) <= least:
                axes.plot([], [], " ", label=f"{name}: not drawn, a mean is ≤ 0")
                continue
            name += _exponent(where, values)
            line(axes, where, values, name, looks[look], band=bootstrap_band)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set(xlabel="horizon (rounds)", ylabel=f"regret ({runs[0].setup.reward_unit})")
        axes.xaxis.set_major_locator(FixedLocator(sorted({run.setup.horizon for run in runs})))
        log_ticks(axes.yaxis)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:,.6g}")
        axes.minorticks_off()


def _exponent(horizons: Sequence[int], values: Sequence[Floats]) -> str:
    if len(horizons) < 3 or len(values[0]) < 2 or len({len(value) for value in values}) > 1:
        return ""
    found = slope(horizons, values)
    return f": exponent {found.value:.2f} ± {2 * found.se:.2f}"


def _cost(path: Path, runs: Sequence[AgentRun], title: str) -> None:
    ranked = sorted(runs, key=lambda run: (run.name, run.certificate.claimed_epsilon))
    names = [label(run) for run in ranked]
    switches = [run.switches[-1].mean() for run in ranked]
    rounds = [run.setup.horizon * len(run.replicas) for run in ranked]
    micros = [1e6 * run.seconds / n for run, n in zip(ranked, rounds, strict=True)]
    with figure_style():
        slot = 0.16 + 0.2 * max(line_count([name]) for name in names)
        figure = Figure(figsize=(10.5, 1.4 + slot * len(names)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        blue, orange, *_ = COLOURS
        left.barh(range(len(names)), switches, color=blue)
        left.set_yticks(range(len(names)), names)
        left.set_xlabel("changes of action (mean)")
        left.xaxis.set_major_formatter("{x:,.6g}")
        right.barh(range(len(names)), micros, color=orange)
        right.set_xlabel("microseconds a round")
        left.set_ylim(len(names) - 0.4, -0.6)  # the first on top
        for axes in (left, right):
            axes.grid(axis="x", alpha=0.35)
            despine(axes)
        figure.suptitle(as_text(title), x=0.01, ha="left")
        save_figure(figure, path)


def _name(run: AgentRun, claim: str = "", *, delta: bool) -> str:
    """Return a run's name in a legend: agent, limits of its privacy, `claim` (epsilon), delta."""
    proof = run.certificate
    name = restricted(run.name, [run])
    at = f", δ = {rounded(proof.claimed_delta, 6)}" if delta and Look.of(run).private else ""
    none = ", not private" if proof.claimed_epsilon == inf else ""
    return f"{as_text(name)}{claim}{at}{none}"


BASELINES = ("Uniform", "BestFixed")
"""Names of uniform random play and of the best fixed action in hindsight, as runs have them."""
_HEADLINE_COLUMNS = ["problem", "agent", "horizon", "regret", "se", "claimed_epsilon"]
_HEADLINE_COLUMNS += ["certified_epsilon", "delta"]
_HEADLINE_COLUMNS += [f"from_{one}{end}" for one in BASELINES for end in ("", "_low", "_high")]


def headline(problem: ProblemRuns) -> "pd.DataFrame":
    """Return a table with a row for each run at the largest horizon, sorted by mean regret.

    `regret` is a mean with its standard error `se`. `from_Uniform` and `from_BestFixed` are the
    mean differences from these `BASELINES` on the same users, each with a 95 % interval, such as
    `from_Uniform_low` to `from_Uniform_high`; they are NaN if the baseline did not run.
    """
    import pandas as pd

    longest = problem.longest
    rows = [
        {
            "problem": problem.name,
            "agent": run.name,
            "horizon": run.setup.horizon,
            "regret": float(run.regret[-1].mean()),
            "se": standard_error(run.regret[-1]),
            "claimed_epsilon": run.certificate.claimed_epsilon,
            "certified_epsilon": run.certificate.epsilon,
            "delta": run.certificate.claimed_delta,
        }
        for run in longest.runs
    ]
    table = pd.DataFrame(rows, columns=_HEADLINE_COLUMNS)
    where = pd.MultiIndex.from_frame(table[["agent", "claimed_epsilon", "delta"]])
    for name in {run.name for run in longest.runs}.intersection(BASELINES):
        found = differences(longest.runs, name).set_index(["agent", "epsilon", "delta"])
        for end in ("", "_low", "_high"):
            table[f"from_{name}{end}"] = found[end[1:] or "difference"].reindex(where).to_numpy()
    return table.sort_values("regret", kind="stable", ignore_index=True)


def write_table(table: "pd.DataFrame", folder: Path, name: str) -> list[Path]:
    """Write a table as CSV and as LaTeX (booktabs); return the paths."""
    latex = table.to_latex(index=False, float_format="%.4g", escape=True, na_rep="--")
    return [
        write_atomically(folder / f"{name}.csv", lambda p: table.to_csv(p, index=False)),
        write_atomically(folder / f"{name}.tex", lambda p: p.write_text(latex, "utf-8")),
    ]


_ENDINGS = (".svg", ".png", ".pdf")  # of figures' files; the page shows the first
_DEFAULT_BASELINE = "Uniform"
"""Default of `baseline` in `write_report`; any other baseline has to be among the runs."""


class Report(NamedTuple):
    """Files that `write_report` wrote."""

    page: Path
    figures: list[Path]
    tables: list[Path]
    """paths of the tables `headline` and `differences`, as CSV and as LaTeX"""
    answer: list[str]
    """sentences on the cost of privacy, problem by problem"""


def write_report(
    folder: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    baseline: str = _DEFAULT_BASELINE,
    problem: str | None = None,
) -> Report:
    """Write index.html, its figures (PNG, SVG, PDF) and tables (CSV, LaTeX) from `folder`.

    Args:
        folder: folder of a sweep, or of `Results.save`.
        out: folder for the report; by default `folder`/report.
        baseline: name of the agent with which all others are compared, on the same users. If the
            default "Uniform" did not run, the report compares none.
        problem: label of the only problem to report; by default all problems. If there are
            more than `MOST_IN_FULL`, each has a single figure, as SVG.

    The report of an unfinished sweep states at the top how many runs and audits are missing. Its
    files are replaced together, see `dpbandit.base.write_folder`; other files stay.

    Raises:
        InputError: if `folder` has no results or a damaged file, if no agent has the name
            `baseline`, or if a file cannot be written.
    """
    folder = Path(folder)
    target = Path(out) if out is not None else folder / "report"
    plan, results = planned(folder), Results.load(folder)
    audits = _audits(folder, plan)
    unfinished = ""  # number of runs and audits that a sweep lacks, in words
    if plan:
        there = sum(len(run.replicas) for run in results.runs)
        missing = (plan.missing(len(results.runs), there), _missing(audits, plan))
        unfinished = "; ".join(filter(None, missing))
    results = results if problem is None else results.where(problem=problem)
    names = sorted({run.name for run in results.runs})
    one_of("baseline", baseline, sorted({_DEFAULT_BASELINE, *names}))
    facts: dict[str, Any] = {
        "title": (plan and plan.name) or folder.resolve().name or "results",
        "unfinished": unfinished,
        "audits": audits,
    }
    order = plan.configurations if plan else ()
    made = write_folder(target, lambda place: _write(place, results, order, baseline, facts))
    figures, tables = (
        [target / file.name for file in some] for some in (made.figures, made.tables)
    )
    return Report(target / made.page.name, figures, tables, made.answer)


def _write(
    target: Path, results: Results, order: Sequence[str], baseline: str, facts: Mapping[str, Any]
) -> Report:
    """Write a report's files; `facts` has its title, and the runs and audits that a sweep lacks."""
    sections, written, heads = [], [], []
    every = problems(results, order)
    brief = len(every) > MOST_IN_FULL
    for problem in every:
        figures, drawings = [], list(pictures(problem))
        if brief:  # one figure, of regret by epsilon or else by round
            drawings = sorted(drawings, key=lambda one: not one.name.startswith("frontier"))[:1]
        for picture in drawings:
            saved = [picture.save(target, ending) for ending in _ENDINGS[: 1 if brief else None]]
            written += saved
            figures.append({"caption": picture.caption, "source": inlined(saved[0])})
        heads.append(headline(problem))
        sections.append(_section(problem, figures, heads[-1]))
    import pandas as pd

    tables = write_table(pd.concat(heads), target, "headline")
    ran = any(run.name == baseline for run in results.runs)
    compared = differences(results.runs, baseline) if ran else None
    if compared is not None:
        tables += write_table(compared, target, "differences")
    page = rendered(
        files("dpbandit.report").joinpath("page.html").read_text(encoding="utf-8"),
        results.runs,
        facts=_facts(results),
        sections=sections,
        differences=None if compared is None else _rows(compared),
        baseline=baseline,
        certificates=_certificates(results.runs),
        configs=_configs(results.runs),
        honesty=HONESTY,
        clipped=CLIPPED,
        most_in_full=MOST_IN_FULL if brief else None,
        **facts,
    )
    there = write_atomically(target / "index.html", lambda p: p.write_text(page, "utf-8"))
    several = len(sections) > 1
    answer = [
        f"{section['name']}: {sentence}" if several else sentence
        for section in sections
        for sentence in section["answer"]
    ]
    return Report(there, written, tables, answer)


def rendered(page: str, runs: Sequence[AgentRun], **context: Any) -> str:
    """Render a page's template in the common style; names of reconstructed agents are marked."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["number"] = _number
    rebuilt = {run.name for run in runs if is_reconstructed(run.config)}
    environment.filters["marked"] = lambda name: (
        f"{name} (reconstructed)" if name in rebuilt else name
    )
    style = files("dpbandit.report").joinpath("style.css").read_text(encoding="utf-8")
    return environment.from_string(page).render(style=style, **context)


def inlined(figure: Path) -> str:
    """Return a PNG or SVG file as a data URL, by which a page contains the image."""
    kind = {".svg": "svg+xml", ".png": "png"}[figure.suffix]
    return f"data:image/{kind};base64,{b64encode(figure.read_bytes()).decode()}"


def _missing(audits: Sequence[Any], plan: Planned | None) -> str:
    wanted = len(plan.audits) if plan else 0
    return f"{len(audits):,} of {wanted:,} audits are there" if len(audits) < wanted else ""


def _facts(results: Results) -> dict[str, str]:
    runs = results.runs
    programs = sorted({json.dumps(dict(run.provenance), sort_keys=True) for run in runs})
    return {
        "problems": str(len({run.place[0] for run in runs})),
        "configurations": f"{len(runs):,}",
        "replicas": f"{sum(len(run.replicas) for run in runs):,}",
        "rounds": f"{sum(len(run.replicas) * run.setup.horizon for run in runs):,}",
        "seconds of computing": f"{sum(run.seconds for run in runs):,.0f}",
        "made with": "; ".join(
            ", ".join(f"{key} {value}" for key, value in json.loads(program).items())
            for program in programs
        ),
    }


def _section(
    problem: ProblemRuns, figures: Sequence[Mapping[str, str]], head: "pd.DataFrame"
) -> dict[str, Any]:
    rows = _rows(problem.results.summary())
    clips = any(row["clipped"] for row in rows)
    unit = problem.longest.runs[0].setup.reward_unit
    return {
        "name": problem.name,
        "figures": figures,
        "rows": rows,
        "clips": clips,
        "head": _rows(head),
        "baselines": [one for one in BASELINES if head[f"from_{one}"].notna().any()],
        "answer": [
            sentence
            for seed in sorted({run.setup.seed for run in problem.longest.runs})
            for sentence in cost_of_privacy(problem.longest.where(seed=seed))
        ],
        "unit": unit,
    }


def _rows(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """Return the rows of a table, with None in place of NaN."""
    return [
        {str(key): None if value != value else value for key, value in row.items()}
        for row in table.to_dict("records")
    ]


def _certificates(runs: Sequence[AgentRun]) -> list[dict[str, Any]]:
    """Return the rows of the table of certificates, one for each run."""
    names = labels(run.setup for run in runs)
    return [
        {
            "problem": names[run.place[0]],
            "horizon": run.setup.horizon,
            "agent": run.name,
            "proof": run.certificate,
            "soon": run.certificate.by_age(_EARLY_AGE),
        }
        for run in runs
    ]


def _audits(folder: Path, plan: Planned | None) -> list[AuditFile]:
    """Read the finished audits of a sweep, sorted by problem; warn if some are missing."""
    files = [audit_file(folder, key) for key in (plan.audits if plan else ())]
    found = [read_audit(file) for file in files if is_there(file)]
    if missing := _missing(found, plan):
        warnings.warn(f"Unfinished: {missing}; the sweep can be resumed.", stacklevel=3)
    return sorted(found, key=lambda audit: (audit.problem, audit.agent, str(audit.config)))


def _configs(runs: Sequence[AgentRun]) -> list[dict[str, str]]:
    texts = {}
    for run in runs:
        configured = {"agent": run.name, "config": run.config}
        settings = ", ".join(f"{k}={v}" for k, v in run.config.items() if k != "agent")
        texts[run_key(configured)] = {
            "agent": run.name,
            "config": f"{run.config['agent']}({settings})",
        }
    return sorted(texts.values(), key=lambda text: (text["agent"], text["config"]))


def _number(value: Any, digits: int = 4) -> str:
    """Format a number for a table: infinity as a symbol, None as a dash.

    >>> _number(float("inf")), _number(None), _number(1234567), _number(0.0123456)
    ('∞', '-', '1,234,567', '0.01235')
    """
    if value is None:
        return "-"
    value = float(value) if isinstance(value, str) else value  # JSON has no infinity
    if isinstance(value, float) and isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:,}" if isinstance(value, int) else rounded(value, digits)
