"""Measure the size of the code::

    python tools/measures.py

It prints for each measure its value, limit and goal. The limits fall with every rewrite, and the
program fails if a value is above its limit. `make lint` runs it: it reads text and imports
nothing of the project. Measures that need a run are in `tools/reading.py`.

The source has a core and optional parts, called shelves, each of which can be deleted. The core
imports no shelf: a shelf registers with the core whatever it needs (`dpbandit/shelf.py`).
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("dpbandit", "agents", "envs", "experiments")  # folders of source
CORE = (
    "dpbandit",
    *("agents/__init__.py", "agents/baselines.py", "agents/catalogue.py"),
    *("agents/arms", "agents/contextual", "agents/convex", "agents/experts", "agents/streams"),
    *(
        "envs/__init__.py",
        "envs/adapters.py",
        "envs/nonstationarity.py",
        "envs/tables.py",
        "envs/data",
    ),
    *("envs/arms", "envs/contextual", "envs/convex", "envs/experts", "envs/streams"),
    "experiments",
)
"""Folders and files of the core, except those in `SHELVES`; entries are never removed."""
SHELVES = {
    "sets": (
        *("agents/choice", "envs/choice", "dpbandit/auditing/buyers.py"),
        *("dpbandit/privacy/sales.py", "dpbandit/specs/choice.py"),
    ),
    "lists": (
        *("agents/lists", "envs/lists", "experiments/lists", "dpbandit/auditing/readers.py"),
        *("dpbandit/losses/click_models.py", "dpbandit/privacy/clicks.py"),
        "dpbandit/specs/lists.py",
    ),
    "people": (
        *("agents/people", "envs/people", "envs/arrivals.py", "envs/lists/returning_lists.py"),
        *("envs/contextual/people_of_log.py", "envs/contextual/tastes.py"),
        *("experiments/returning_prices", "dpbandit/auditing/returning.py"),
        *("dpbandit/privacy/person_sums.py", "dpbandit/specs/people.py"),
        "dpbandit/specs/rivals.py",
        "dpbandit/testing/returning.py",
    ),
    "trust": (
        *("agents/contextual/devices.py", "agents/contextual/ldp_greedy.py"),
        *("dpbandit/privacy/bits.py", "dpbandit/privacy/messages.py"),
        "experiments/trust",
    ),
    "off-policy": (
        *("dpbandit/offline/cases.py", "dpbandit/offline/estimators.py"),
        *("dpbandit/offline/evaluation.py", "dpbandit/offline/intervals.py"),
        *("dpbandit/offline/logs.py", "dpbandit/offline/policies.py"),
        *("dpbandit/offline/replays.py", "dpbandit/offline/unrecorded.py"),
        "dpbandit/commands/logs.py",
    ),
    "libraries": (
        *("dpbandit/clients/from_gymnasium.py", "dpbandit/clients/policies.py"),
        "dpbandit/running/strangers.py",
    ),
    "others' logs": (
        *("dpbandit/clients/log_columns.py", "dpbandit/clients/logs.py"),
        *("dpbandit/clients/priors.py", "dpbandit/clients/recording.py"),
    ),
    "suite": ("dpbandit/commands/suite.py", "dpbandit/suite", "tools/scoreboard.py"),
    "limits": (
        *("agents/contextual/full_budget_fade.py", "dpbandit/limits.py"),
        "experiments/limits",
    ),
    "maps": ("agents/contextual/mapped.py",),
    "streams": (
        *("agents/streams", "envs/streams", "experiments/releases.py"),
        *("dpbandit/domains/lp_balls.py", "dpbandit/losses/regressions.py"),
        *("dpbandit/privacy/generalised.py", "dpbandit/privacy/subsampling.py"),
    ),
    "polytopes": (
        *("dpbandit/domains/flows.py", "dpbandit/domains/matroids.py"),
        *("dpbandit/domains/polytopes.py", "dpbandit/domains/submodular.py"),
    ),
    "ball experts": ("agents/experts/ball.py", "agents/experts/sampling.py"),
    "slopes from values": ("agents/convex/slope_bandit.py",),
    "projection-free": ("agents/convex/projection_free.py",),
    "windows": ("agents/convex/window.py",),
    "exact audits": ("dpbandit/auditing/exact.py", "dpbandit/auditing/peelings.py"),
    "bets": ("dpbandit/auditing/sequential.py",),
    "gradual": ("dpbandit/privacy/gradual.py", "experiments/gradual"),
    "stock": ("envs/contextual/stock.py",),
    "players": (
        *("dpbandit/clients/bridge.py", "dpbandit/clients/player.py"),
        "dpbandit/clients/states.py",
    ),
    "guard": ("agents/contextual/guard.py",),
    "epochs": ("agents/contextual/epochs.py", "agents/contextual/inverse_gaps.py"),
    "Frank-Wolfe": (
        *("agents/contextual/dp_hdb.py", "dpbandit/privacy/gradients.py"),
        "dpbandit/privacy/vertices.py",
    ),
    "sparse": ("agents/contextual/sparse.py", "dpbandit/privacy/peeling.py"),
    "course": ("dpbandit/commands/labs.py", "experiments/labs"),
    "ledgers": ("dpbandit/privacy/exchange.py",),
    "filters": ("dpbandit/privacy/filters.py",),
    "studies": (
        "dpbandit/commands/studies.py",
        *("experiments/arms", "experiments/cases.py", "experiments/choosing"),
        *("experiments/convex", "experiments/estimation", "experiments/experts"),
        *("experiments/figure.py", "experiments/figure_5_1", "experiments/paper_tables.py"),
        *("experiments/pricing", "experiments/rates", "experiments/sgd", "experiments/study.py"),
        "experiments/window",
    ),
    "sweeps": ("dpbandit/commands/sweeps.py", "dpbandit/report", "dpbandit/studies"),
    "fits": (
        *("envs/data/fit_apple.py", "envs/data/fit_camera.py", "envs/data/fit_electricity.py"),
        *("envs/data/fit_oj.py", "envs/data/fit_thornton.py"),
    ),
    "tools": ("benchmarks", "conftest.py", "docs", "tools"),
}
"""Name of an optional part ("shelf") -> its folders and files."""


class Measure(NamedTuple):
    """A measure of the code with its value, its upper limit and its goal."""

    name: str
    now: float
    most: float
    goal: float


def table(measures: Iterable[Measure]) -> int:
    """Print the measures; return 1 if one is above its limit."""
    found = list(measures)
    print(f"{'':44}{'now':>9}{'most':>9}{'goal':>9}")
    for one in found:
        mark = "   too many" if one.now > one.most else ""
        print(f"{one.name:44}{one.now:9,.6g}{one.most:9,.6g}{one.goal:9,.6g}{mark}")
    return int(any(one.now > one.most for one in found))


def measures() -> list[Measure]:
    """Return all measures of the files that git tracks."""
    source = [file for file in tracked("*.py") if not file.is_relative_to(ROOT / "tests")]
    source = [file for file in source if "notebooks" not in file.parts]
    sizes = [lines(file) for file in source]
    text = {file: file.read_text() for file in source}
    core = [file for file in source if shelf(file) is None]
    inward = sorted({*imports_of_shelves(core)})
    tests = sum(lines(file) for file in tracked("tests/*.py"))
    spec_checks = sum(len(re.findall(r"isinstance\(spec,", each)) for each in text.values())
    imports = sum(len(re.findall(r"^ *(?:from|import) ", each, re.M)) for each in text.values())
    pictures = sum(file.stat().st_size for file in tracked("*.png")) / 1e6
    return [
        Measure("lines of source", sum(sizes), 89_147, 74_500),
        Measure("lines of the core", sum(map(lines, core)), 43_468, 48_000),
        Measure("lines of shelves", sum(sizes) - sum(map(lines, core)), 45_679, 24_000),
        Measure("names of shelves that the core imports", len(inward), 0, 0),
        Measure("files of source", len(source), 395, 230),
        Measure("median lines of a file", median(sizes), 205, 220),
        Measure("nine files of ten have at most", quantiles(sizes, n=10)[-1], 490, 480),
        Measure("lines of the longest file", max(sizes), 703, 700),
        Measure("import statements", imports, 3_870, 2_300),
        Measure("questions which kind a spec is", spec_checks, 5, 5),
        Measure("lines of tests", tests, 45_462, 37_800),
        Measure("megabytes of PNG", pictures, 4, 3),
    ]


@cache
def shelf(file: Path) -> str | None:
    """Return the optional part ("shelf") to which a file is assigned; None in the core."""
    name = file.relative_to(ROOT).as_posix()
    places: dict[str, str | None] = dict.fromkeys(CORE)
    places |= {place: shelf for shelf, places in SHELVES.items() for place in places}
    found = [place for place in places if name == place or name.startswith(f"{place}/")]
    if not found:
        raise SystemExit(f"Expected {name} to be in the core or on a shelf (tools/measures.py).")
    return places[max(found, key=len)]


def imports_of_shelves(core: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield (file of the core, `FILE:NAME`) for each name imported from FILE, an optional part."""
    for file in core:
        for home, name in imported(file):
            if home != file and shelf(home) is not None:
                importer, source = (one.relative_to(ROOT).as_posix() for one in (file, home))
                yield importer, f"{source}:{name}"


def imported(file: Path) -> Iterator[tuple[Path, str]]:
    """Yield (defining file, name) for each name of this project that a file imports, lazily too."""
    for node in statements(ast.parse(file.read_text()).body):
        if isinstance(node, ast.ImportFrom):
            named = [(str(node.module), alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            named = [(alias.name, "*") for alias in node.names]
        else:
            continue
        for module, name in named:
            if home := defined_in(module, name):
                yield home, name


def statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield statements, however deep, but no expressions, which are most nodes of a file."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, part, ()))


@cache
def defined_in(module: str, name: str) -> Path | None:
    """Return the file that defines a module's name, re-exported or not; None for other projects."""
    top, *rest = module.split(".")
    if top not in PACKAGES:
        return None
    inner = rest if top == "dpbandit" else [top, *rest]
    beside = top != "dpbandit" or (inner and inner[0] in PACKAGES)
    place = ROOT.joinpath(*inner) if beside else ROOT.joinpath("dpbandit", *inner)
    for file in (place / f"{name}.py", place / name / "__init__.py", place.with_suffix(".py")):
        if file.exists():
            return file
    if not place.is_dir() or name == "*":
        return place / "__init__.py" if place.is_dir() else None
    homes = [file for file in sorted(place.rglob("*.py")) if name in definitions(file)]
    return homes[0] if len(homes) == 1 else place / "__init__.py"


@cache
def definitions(file: Path) -> frozenset[str]:
    """Return the names that a file defines at its top level, imported ones excepted."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {part.id for each in targets for part in ast.walk(each) if hasattr(part, "id")}
    return frozenset(found)


def tracked(pattern: str) -> list[Path]:
    """Return the files of the repository that match a pattern and that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", pattern]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).exists()]


def lines(file: Path) -> int:
    """Return the number of lines of a file."""
    return len(file.read_text().splitlines())


if __name__ == "__main__":
    sys.exit(table(measures()))
