"""How large the house is::

    python tools/measures.py

A line for each measure: what it is now, the most that is allowed, and the goal. What is allowed
falls with every rewrite; the program fails where a measure is above it. `make lint` runs it: it
reads text and imports nothing of the project. What takes a run is in `tools/reading.py`.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Measure(NamedTuple):
    """One row."""

    name: str
    now: float
    most: float
    goal: float


def table(measures: Iterable[Measure]) -> int:
    """Print the measures; 1 if one is above what is allowed."""
    found = list(measures)
    print(f"{'':44}{'now':>9}{'most':>9}{'goal':>9}")
    for one in found:
        mark = "   too many" if one.now > one.most else ""
        print(f"{one.name:44}{one.now:9,.6g}{one.most:9,.6g}{one.goal:9,.6g}{mark}")
    return int(any(one.now > one.most for one in found))


def measures() -> list[Measure]:
    """All of them, of what git tracks."""
    source = [file for file in tracked("*.py") if not file.is_relative_to(ROOT / "tests")]
    source = [file for file in source if "notebooks" not in file.parts]
    sizes = [lines(file) for file in source]
    text = {file: file.read_text() for file in source}
    tests = sum(lines(file) for file in tracked("tests/*.py"))
    asked = sum(len(re.findall(r"isinstance\(spec,", each)) for each in text.values())
    imports = sum(len(re.findall(r"^ *(?:from|import) ", each, re.M)) for each in text.values())
    pictures = sum(file.stat().st_size for file in tracked("*.png")) / 1e6
    return [
        Measure("lines of source", sum(sizes), 81_700, 74_500),
        Measure("files of source", len(source), 330, 230),
        Measure("median lines of a file", median(sizes), 244, 220),
        Measure("nine files of ten have at most", quantiles(sizes, n=10)[-1], 520, 480),
        Measure("lines of the longest file", max(sizes), 740, 700),
        Measure("import statements", imports, 3_460, 2_300),
        Measure("questions which kind a spec is", asked, 5, 5),
        Measure("lines of tests", tests, 41_400, 37_800),
        Measure("megabytes of PNG", pictures, 6, 3),
    ]


def tracked(pattern: str) -> list[Path]:
    """Files of the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", pattern]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).exists()]


def lines(file: Path) -> int:
    """Of one file."""
    return len(file.read_text().splitlines())


if __name__ == "__main__":
    sys.exit(table(measures()))
