"""Write the catalogue: two tables of agents and environments, and a page.

    python tools/catalogue.py

`agents/catalogue.csv` has a row for each agent, in the order of the page: its class and file, its
kind of problem, its feedback, its guarantee, its page, and the mark "reconstructed" if it is made
from an abstract or a sketch. `envs/catalogue.csv` has the environments. The packages and listings
read both tables. This program writes their last columns (the first lines of the classes),
`docs/catalogue.md`, the stubs of both packages, `agents/__init__.pyi` and `envs/__init__.pyi`, and
what the pages of docs/ repeat of docstrings (`tools/pages.py`).
`tests/docs/test_algorithm_pages.py` fails where one of these files is stale.
"""

import csv
import sys
from collections.abc import Iterable
from inspect import getsourcefile
from io import StringIO
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpbandit import agents, envs  # noqa: E402
from dpbandit.agents.catalogue import (  # noqa: E402
    RECONSTRUCTED,
    Entry,
    entries,
    wrappers,
)
from dpbandit.base import first_line  # noqa: E402
from dpbandit.lazy import catalogue  # noqa: E402
from dpbandit.running.answers import by_score, folded, score, starting  # noqa: E402
from tools import pages  # noqa: E402

LINE_WIDTH = 100
"""Largest number of letters in a line of code."""
PAGE = ROOT / "docs" / "catalogue.md"  # page that is written
HEAD = """# Catalogue

All agents, grouped by what they play, and all environments. The *score* is the mean on the problems
of [the suite](suite.md) that an agent fits, at epsilon 1 if it is private: 0 is random play, 100
the best agent without privacy. **Bold** agents are the best of a kind of problem. *Observes* has
the agent's feedback after each round. The column *code* leads to the class, whose docstring has
the steps and the guarantee. On the command line, `dpbandit agents --for OJPricing --private`
lists the private agents that fit a problem (with `--all` those below 50, too), `dpbandit agents
fade` shows the settings of one, and `dpbandit envs OJPricing` the arguments of an environment.
"""  # beginning of the page
LOW_SCORE_HEAD = """
<details>
<summary>{} more, with a score below 50</summary>
"""  # above a list that is folded
RECONSTRUCTED_HEAD = """
Reconstructed from an abstract or a sketch, because the full text was not available or leaves steps
open; our tables never present them as the published algorithm:
"""  # heading of a list
ENVIRONMENTS_HEAD = """
## Environments

| id | what happens |
|---|---|
"""  # above the rows of environments


def tables() -> dict[Path, str]:
    """Return path -> text of both tables; the last columns are first lines of docstrings."""
    return {
        ROOT / "agents" / "catalogue.csv": _written(agents, "config"),
        ROOT / "envs" / "catalogue.csv": _written(envs, "name"),
    }


def faces() -> dict[Path, str]:
    """Return path -> text of both packages' stubs, which import all classes and type all tables."""
    some = [(one.file, one.config) for one in (*entries(), *wrappers())]
    some += [("catalogue", "Kinds")]
    worlds = [(one["file"], one["name"]) for one in catalogue(envs.__name__)]
    kinds = [name for name in vars(agents) if name.isupper() and not name.startswith("_")]
    tables = "".join(f"{name}: Kinds\n" for name in kinds if name not in agents.__all__)
    return {
        ROOT / "agents" / "__init__.pyi": f"{_imports('agents', some)}\n{tables}",
        ROOT / "envs" / "__init__.pyi": _imports("envs", worlds),
    }


def _imports(folder: str, some: Iterable[tuple[str, str]]) -> str:
    """Return import statements for (file, class) pairs of a folder, sorted as by ruff."""
    lines, homes = [], dict[str, set[str]]()
    for file, name in some:
        homes.setdefault(f"dpbandit.{folder}.{file}", set()).add(name)
    for home in sorted(homes):
        names = sorted(homes[home], key=lambda name: (not name.isupper(), name))
        imports = [name if name == "Kinds" else f"{name} as {name}" for name in names]
        line = f"from {home} import " + ", ".join(imports)
        if len(line) > LINE_WIDTH:
            line = f"from {home} import (\n" + "".join(f"    {one},\n" for one in imports) + ")"
        lines.append(f"{line}\n")
    return "".join(lines)


def _written(package: ModuleType, name: str) -> str:
    out = StringIO()
    some = catalogue(package.__name__)
    rows = csv.DictWriter(out, [*some[0]], lineterminator="\n")
    rows.writeheader()
    rows.writerows(one | {"line": first_line(getattr(package, one[name]))} for one in some)
    return out.getvalue()


def page() -> str:
    """Return the text of `docs/catalogue.md`."""
    parts = [HEAD]
    for group in dict.fromkeys(one.plays for one in entries()):
        some = [one for one in entries() if one.plays == group]
        parts.append(f"\n## {group}\n")
        printed = [one for one in some if one.mark != RECONSTRUCTED]
        more = [one for one in printed if folded(one.id)]
        parts.append(_rows(one for one in printed if one not in more))
        if more:
            parts += [LOW_SCORE_HEAD.format(len(more)), _rows(more), "\n</details>\n"]
        if drawer := [one for one in some if one.mark == RECONSTRUCTED]:
            parts += [RECONSTRUCTED_HEAD, _rows(drawer)]
    parts.append(ENVIRONMENTS_HEAD)
    for one in catalogue(envs.__name__):
        parts.append(f"| `dpbandit/{one['name']}-v0` | {one['line']} |\n")
    return "".join(parts)


def _rows(some: Iterable[Entry]) -> str:
    heads = ("id", "score", "what it does", "observes", "privacy", "code")
    lines = [f"\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|\n"]
    for one in by_score(some):
        link = f"[`{one.id}`](algorithms/{one.page}.md)"
        name = f"**{link}**" if one.id in starting() else link
        mean = score(one.id)
        points = "" if mean is None else f"{100 * mean:.0f}"
        line = one.line.replace("|", r"\|")
        file = Path(getsourcefile(agents.AGENTS[one.id]) or "").resolve().relative_to(ROOT)
        code = f"[{file.stem}](../{file.as_posix()})"
        lines.append(f"| {name} | {points} | {line} | {one.feedback} | {one.privacy} | {code} |\n")
    return "".join(lines)


if __name__ == "__main__":
    for file, text in (tables() | faces()).items():
        file.write_text(text)
    catalogue.cache_clear()
    PAGE.write_text(page())
    for file, text in pages.pages().items():
        file.write_text(text)
