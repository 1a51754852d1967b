"""A report as one HTML page without scripts, links outside or files beside it."""

import json
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.resources import files
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, StrictUndefined

from dpbandit.comparisons import differences
from dpbandit.files import write_atomically
from dpbandit.inputs import one_of
from dpbandit.privacy.certificate import HONESTY
from dpbandit.report.figures import Problem, pictures, problems
from dpbandit.results import Results
from dpbandit.runs import AgentRun, run_key

if TYPE_CHECKING:
    import pandas as pd

_ENDINGS = (".svg", ".png")


class Report(NamedTuple):
    """What `write_report` wrote."""

    page: Path
    figures: list[Path]


def write_report(
    folder: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    baseline: str = "Uniform",
) -> Report:
    """Write index.html and its figures (PNG and SVG) from the results below `folder`.

    Args:
        folder: of a sweep, or of `Results.save`.
        out: folder of the report; `folder`/report if left out.
        baseline: the agent that all others are compared with, on the same users.

    Raises:
        BadInput: no results there, no agent called `baseline`, a file that cannot be written.
    """
    folder = Path(folder)
    target = Path(out) if out is not None else folder / "report"
    results = Results.load(folder)
    one_of("baseline", baseline, sorted({run.name for run in results.runs}))
    sections, written = [], []
    for problem in problems(results):
        shown = []
        for picture in pictures(problem):
            vector, bitmap = (picture.save(target, ending) for ending in _ENDINGS)
            written += [vector, bitmap]
            shown.append({"caption": picture.caption, "source": _inlined(vector)})
        sections.append(_section(problem, shown))
    page = _template().render(
        title=_title(folder),
        facts=_facts(results),
        sections=sections,
        differences=_differences(results, baseline),
        baseline=baseline,
        certificates=_certificates(results.runs),
        audits=_audits(folder),
        configs=_configs(results.runs),
        honesty=HONESTY,
    )
    return Report(
        write_atomically(target / "index.html", lambda p: p.write_text(page, "utf-8")), written
    )


def _template() -> Any:
    text = files("dpbandit.report").joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["number"] = _number
    return environment.from_string(text)


def _inlined(figure: Path) -> str:
    return "data:image/svg+xml;base64," + b64encode(figure.read_bytes()).decode()


def _title(folder: Path) -> str:
    plan = _plan(folder)
    return str(plan.get("name") or folder.resolve().name or "results")


def _plan(folder: Path) -> dict[str, Any]:
    """What the sweep in `folder` was asked for; nothing where it is no sweep's."""
    file = folder / "sweep.json"
    plan: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return plan


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


def _section(problem: Problem, shown: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    rows = _rows(problem.results.summary())
    return {"name": problem.name, "figures": shown, "rows": rows}


def _differences(results: Results, baseline: str) -> list[dict[str, Any]]:
    return _rows(differences(results, baseline))


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


def _audits(folder: Path) -> list[dict[str, Any]]:
    """Those that the sweep asks for and that are there."""
    files = [folder / "audits" / f"{key}.json" for key in _plan(folder).get("audits", [])]
    found = [json.loads(file.read_text("utf-8")) for file in files if file.is_file()]
    return sorted(found, key=lambda audit: (audit["problem"], audit["agent"], str(audit["config"])))


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
