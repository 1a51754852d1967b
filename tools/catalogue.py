"""The catalogue: what agents and environments there are, `agents/catalogue.csv` and a page.

    python tools/catalogue.py

The table has a row for each agent, in the order of the page: what it plays, what it is told, what
is private, its page, and a mark, "start here" or "reconstructed" (from an abstract or a sketch).
The class and its first line are written here, as is `docs/catalogue.md`. Listings read the table.
`tests/docs/test_algorithm_pages.py` fails where one of them is stale.
"""

import csv
import sys
from collections.abc import Iterable
from inspect import getsourcefile
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import gymnasium as gym  # noqa: E402
from gymnasium.envs.registration import load_env_creator  # noqa: E402

from dpbandit.agents import AGENTS  # noqa: E402
from dpbandit.agents.catalogue import RECONSTRUCTED, START, Entry, entries  # noqa: E402
from dpbandit.base import first_line  # noqa: E402

TABLE, PAGE = ROOT / "agents" / "catalogue.csv", ROOT / "docs" / "catalogue.md"
HEAD = """# Catalogue

All agents, grouped by what they play, and all environments. Start with the **bold** agents: the
best certified one for its kind of problem, and a good one without privacy. *Is told* says what the
agent learns after each round. The column *code* leads to the class, whose docstring has the steps
and the guarantee. On the command line, `dpbandit agents --for OJPricing --private` lists the
private agents that fit a problem, `dpbandit agents fade` shows the settings of one, and `dpbandit
envs OJPricing` the arguments of an environment.
"""
DRAWER = """
Reconstructed from an abstract or a sketch, because the full text was not available or leaves steps
open; our tables never present them as the published algorithm:
"""
WORLDS = """
## Environments

| id | what happens |
|---|---|
"""


def written() -> str:
    """The table, its last column from the classes."""
    out = StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(Entry._fields)
    for one in entries():
        kind = AGENTS[one.id]
        rows.writerow(one._replace(config=kind.__name__, line=first_line(kind)))
    return out.getvalue()


def page() -> str:
    """`docs/catalogue.md`."""
    parts = [HEAD]
    for group in dict.fromkeys(one.plays for one in entries()):
        some = [one for one in entries() if one.plays == group]
        parts.append(f"\n## {group}\n")
        parts.append(_rows(one for one in some if one.mark != RECONSTRUCTED))
        if drawer := [one for one in some if one.mark == RECONSTRUCTED]:
            parts += [DRAWER, _rows(drawer)]
    parts.append(WORLDS)
    for name, entry in gym.registry.items():
        if "problem" in entry.kwargs:
            what = first_line(load_env_creator(entry.kwargs["problem"]))
            parts.append(f"| `{name}` | {what} |\n")
    return "".join(parts)


def _rows(some: Iterable[Entry]) -> str:
    lines = ["\n| id | what it does | is told | privacy | code |\n|---|---|---|---|---|\n"]
    for one in some:
        link = f"[`{one.id}`](algorithms/{one.page}.md)"
        name = f"**{link}**" if one.mark == START else link
        line = one.line.replace("|", r"\|")
        file = Path(getsourcefile(AGENTS[one.id]) or "").resolve().relative_to(ROOT)
        code = f"[{file.stem}](../{file.as_posix()})"
        lines.append(f"| {name} | {line} | {one.told} | {one.privacy} | {code} |\n")
    return "".join(lines)


if __name__ == "__main__":
    TABLE.write_text(written())
    entries.cache_clear()
    PAGE.write_text(page())
