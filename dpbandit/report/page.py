"""A report as one HTML page without scripts, links outside or files beside it."""

import json
import os
import warnings
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.resources import files
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, StrictUndefined

from dpbandit.base.files import is_there, write_atomically
from dpbandit.base.inputs import one_of
from dpbandit.privacy.certificate import HONESTY
from dpbandit.report.figures import ProblemRuns, pictures, problems
from dpbandit.report.headline import headline, write_table
from dpbandit.results.comparisons import differences
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, run_key
from dpbandit.results.store import AuditFile, Planned, audit_file, planned, read_audit
from dpbandit.specs.contract import CLIPPED

if TYPE_CHECKING:
    import pandas as pd

_ENDINGS = (".svg", ".png", ".pdf")
_USUAL = "Uniform"
"""The baseline unless told otherwise, which may be missing"""


class Report(NamedTuple):
    """What `write_report` wrote."""

    page: Path
    figures: list[Path]
    tables: list[Path]
    """headline and differences, as CSV and as LaTeX"""


def write_report(
    folder: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    baseline: str = _USUAL,
) -> Report:
    """Write index.html, its figures (PNG, SVG, PDF) and tables (CSV, LaTeX) from `folder`.

    Args:
        folder: of a sweep, or of `Results.save`.
        out: folder of the report; `folder`/report if left out.
        baseline: the agent that all others are compared with, on the same users; without
            Uniform, the usual one, there is a report without differences.

    An unfinished sweep has a report of what is there, which says on top how much that is.

    Raises:
        InputError: no results there, no agent called `baseline`, a damaged file, or one that cannot
            be written.
    """
    folder = Path(folder)
    target = Path(out) if out is not None else folder / "report"
    plan, results = planned(folder), Results.load(folder)
    names = sorted({run.name for run in results.runs})
    one_of("baseline", baseline, sorted({_USUAL, *names}))
    audits = _audits(folder, plan)
    sections, written, heads = [], [], []
    for problem in problems(results, plan.configurations if plan else ()):
        shown = []
        for picture in pictures(problem):
            saved = [picture.save(target, ending) for ending in _ENDINGS]
            written += saved
            shown.append({"caption": picture.caption, "source": _inlined(saved[0])})
        heads.append(headline(problem))
        sections.append(_section(problem, shown, heads[-1]))
    import pandas as pd

    tables = write_table(pd.concat(heads), target, "headline")
    compared = differences(results, baseline) if baseline in names else None
    if compared is not None:
        tables += write_table(compared, target, "differences")
    page = _template().render(
        title=(plan and plan.name) or folder.resolve().name or "results",
        unfinished=_unfinished(plan, results, audits) if plan else "",
        facts=_facts(results),
        sections=sections,
        differences=None if compared is None else _rows(compared),
        baseline=baseline,
        certificates=_certificates(results.runs),
        audits=audits,
        configs=_configs(results.runs),
        honesty=HONESTY,
        clipped=CLIPPED,
    )
    there = write_atomically(target / "index.html", lambda p: p.write_text(page, "utf-8"))
    return Report(there, written, tables)


def _template() -> Any:
    text = files("dpbandit.report").joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["number"] = _number
    return environment.from_string(text)


def _inlined(figure: Path) -> str:
    return "data:image/svg+xml;base64," + b64encode(figure.read_bytes()).decode()


def _unfinished(plan: Planned, results: Results, audits: Sequence[Any]) -> str:
    """How much of a sweep is there; nothing where that is all."""
    there = sum(len(run.replicas) for run in results.runs)
    told = (plan.missing(len(results.runs), there), _missing(audits, plan))
    return "; ".join(filter(None, told))


def _missing(audits: Sequence[Any], plan: Planned | None) -> str:
    wanted = len(plan.audits) if plan else 0
    return f"{len(audits):,} of {wanted:,} audits are there" if len(audits) < wanted else ""


def _facts(results: Results) -> dict[str, str]:
    runs = results.runs
    programs = sorted({json.dumps(dict(run.provenance), sort_keys=True) for run in runs})
    return {
        "problems": str(len({run.setup.problem for run in runs})),
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
    problem: ProblemRuns, shown: Sequence[Mapping[str, str]], head: "pd.DataFrame"
) -> dict[str, Any]:
    rows = _rows(problem.results.summary())
    clips = any(row["clipped"] for row in rows)
    unit = problem.longest.runs[0].setup.reward_unit
    return {
        "name": problem.name,
        "figures": shown,
        "rows": rows,
        "clips": clips,
        "head": _rows(head),
        "unit": unit,
    }


def _rows(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """The rows of a table, with None where it has NaN."""
    return [
        {str(key): None if value != value else value for key, value in row.items()}
        for row in table.to_dict("records")
    ]


def _certificates(runs: Sequence[AgentRun]) -> list[dict[str, Any]]:
    """One line for each agent, target and horizon on each problem."""
    return [
        {
            "problem": run.setup.problem,
            "horizon": run.setup.horizon,
            "agent": run.name,
            "proof": run.certificate,
        }
        for run in runs
    ]


def _audits(folder: Path, plan: Planned | None) -> list[AuditFile]:
    """Those that the sweep asks for and that are there."""
    files = [audit_file(folder, key) for key in (plan.audits if plan else ())]
    found = [read_audit(file) for file in files if is_there(file)]
    if missing := _missing(found, plan):
        warnings.warn(f"Unfinished: {missing}; the sweep can be resumed.", stacklevel=3)
    return sorted(found, key=lambda audit: (audit.problem, audit.agent, str(audit.config)))


def _configs(runs: Sequence[AgentRun]) -> list[dict[str, str]]:
    texts = {}
    for run in runs:
        asked = {"agent": run.name, "config": run.config}
        settings = ", ".join(f"{k}={v}" for k, v in run.config.items() if k != "agent")
        texts[run_key(asked)] = {
            "agent": run.name,
            "config": f"{run.config['agent']}({settings})",
        }
    return sorted(texts.values(), key=lambda text: (text["agent"], text["config"]))


def _number(value: Any, digits: int = 4) -> str:
    """For a table: infinity as a symbol, nothing as a dash.

    >>> _number(float("inf")), _number(None), _number(1234567), _number(0.0123456)
    ('∞', '-', '1,234,567', '0.01235')
    """
    if value is None:
        return "-"
    value = float(value) if isinstance(value, str) else value  # JSON has no infinity
    if isinstance(value, float) and isinf(value):
        return "∞" if value > 0 else "-∞"
    if isinstance(value, int) or abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
