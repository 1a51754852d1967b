"""How large the house is, and how far one has to walk in it::

    python tools/measures.py

A line for each measure: what it is now, the most that is allowed, and the goal. What is allowed
falls with every rewrite; the program fails where a measure is above it. `make lint` runs it.
"""

import re
import subprocess
import sys
import warnings
from pathlib import Path
from statistics import median, quantiles
from types import CodeType, FrameType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpbandit import certify  # noqa: E402
from dpbandit.specs import ContextualSpec  # noqa: E402
from tools.reading import AGENTS, OURS, medians, reading  # noqa: E402

EPSILON = 0.7310585786
"""A number that nothing else is."""


class Measure(NamedTuple):
    """One row."""

    name: str
    now: float
    most: float
    goal: float


def main() -> int:
    """Print the table; 1 if a measure is above what is allowed."""
    warnings.simplefilter("ignore")
    found = list(measures())
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
    files, all_lines, in_functions, of_agents = medians(reading(name) for name in AGENTS)
    tests = sum(lines(file) for file in tracked("tests/*.py"))
    asked = sum(len(re.findall(r"isinstance\(spec,", each)) for each in text.values())
    imports = sum(len(re.findall(r"^ *(?:from|import) ", each, re.M)) for each in text.values())
    pictures = sum(file.stat().st_size for file in tracked("*.png")) / 1e6
    return [
        Measure("lines of source", sum(sizes), 78_325, 46_000),
        Measure("files of source", len(source), 315, 230),
        Measure("median lines of a file", median(sizes), 244, 220),
        Measure("nine files of ten have at most", quantiles(sizes, n=10)[-1], 520, 480),
        Measure("lines of the longest file", max(sizes), 740, 700),
        Measure("import statements", imports, 3_220, 2_300),
        Measure("make and a round: files, median", files, 9, 9),
        Measure("make and a round: lines, median", all_lines, 3_930, 2_000),
        Measure("make and a round: lines of functions, median", in_functions, 350, 230),
        Measure("make and a round: files of agents, most", of_agents, 8, 2),
        Measure("functions that the epsilon of DP-UCB passes", passed(), 20, 16),
        Measure("questions which kind a spec is", asked, 4, 5),
        Measure("lines of tests", tests, 38_900, 32_000),
        Measure("megabytes of PNG", pictures, 3, 3),
    ]


def tracked(pattern: str) -> list[Path]:
    """Files of the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", pattern]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).exists()]


def lines(file: Path) -> int:
    """Of one file."""
    return len(file.read_text().splitlines())


def has_epsilon(value: object) -> bool:
    """Whether an argument is that number, words with it, or something that was made with it."""
    if isinstance(value, str):
        return str(EPSILON) in value
    if isinstance(value, tuple):
        return any(isinstance(part, float) and part == EPSILON for part in value)
    return value == EPSILON if isinstance(value, float) else False


def passed() -> int:
    """Functions that are told that number, from the words of a command to the certificate."""
    told: set[CodeType] = set()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(OURS):
            given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + 9]]
            if any(has_epsilon(value) for value in given):
                told.add(code)

    spec = ContextualSpec(n_actions=3, dim=2, horizon=100)
    sys.setprofile(watch)
    try:
        certify(f"dp-ucb:epsilon={EPSILON}", spec)
    finally:
        sys.setprofile(None)
    return len(told)


if __name__ == "__main__":
    sys.exit(main())
