"""Count the code that runs when an agent is made and plays::

    python tools/reading.py              # a line for each agent, then medians and limits
    python tools/reading.py linucb fade  # the files of some agents

Every agent is made and plays rounds of a fitting problem, with privacy if it has any. The program
counts the lines that run, each once, and their files, except checks of inputs, arrays and streams,
which every file uses, and `tapes`, which replaces an environment. Without names it fails if a
median, or the number of functions that pass epsilon on to the certificate, is above its limit.
"""

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpbandit import certify  # noqa: E402
from dpbandit.agents import AGENTS  # noqa: E402
from dpbandit.base import Streams  # noqa: E402
from dpbandit.domains import Ball  # noqa: E402
from dpbandit.losses import Ridge  # noqa: E402
from dpbandit.specs import ContextualSpec, ConvexSpec  # noqa: E402
from dpbandit.testing.tapes import World, extreme_users  # noqa: E402
from tests.harness import SPECS, fitting  # noqa: E402
from tools.measures import Measure, table  # noqa: E402

SOURCE_FOLDERS = tuple(f"{ROOT / name}/" for name in ("dpbandit", "agents"))  # lines counted
UNCOUNTED_FILES = {  # whose lines are not counted: every agent uses them; tapes.py is for tests
    str(ROOT / "dpbandit" / "base" / f"{name}.py")
    for name in ("inputs", "arrays", "random_streams")
} | {str(ROOT / "dpbandit" / "testing" / "tapes.py")}
ROUNDS_PLAYED = 60  # by each agent
EPSILON = 0.7310585786
"""Value of epsilon that no other variable has, so that functions that get it can be found."""
RIDGE = ConvexSpec(loss=Ridge(Ball(3)), horizon=ROUNDS_PLAYED, feedback="datum")  # data agents


@dataclass(frozen=True)
class Reading:
    """Number of lines of code that run when one agent is made and plays, and their files."""

    name: str
    files: frozenset[Path]
    lines: int
    """number of lines that run, each counted once"""

    @property
    def agent_files(self) -> int:
        """Number of files in agents/ that run."""
        return sum(file.is_relative_to(ROOT / "agents") for file in self.files)


def reading(name: str, rounds: int = ROUNDS_PLAYED) -> Reading:
    """Make an agent, play it, and record which lines run."""
    known = (*SPECS.values(), RIDGE)
    config, spec = fitting(AGENTS[name], [replace(one, horizon=rounds) for one in known])
    world: World = extreme_users(spec, 1, 0).within_bounds()
    seen: set[tuple[str, int]] = set()

    def line(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, argument: object) -> Any:
        file = frame.f_code.co_filename
        return line if file.startswith(SOURCE_FOLDERS) and file not in UNCOUNTED_FILES else None

    sys.settrace(call)
    try:
        running = config.make(spec, Streams([0]))
        for t in range(rounds - spec.delay):
            context = world.context[t]
            action = running.act(context)
            running.update(context, action, world.answer(spec, t, action))
    finally:
        sys.settrace(None)
    return Reading(name, frozenset(Path(file) for file, _ in seen), len(seen))


def has_epsilon(value: object) -> bool:
    """Return True if a value is `EPSILON`, or a string or tuple that contains it."""
    if isinstance(value, str):
        return str(EPSILON) in value
    if isinstance(value, tuple):
        return any(isinstance(part, float) and part == EPSILON for part in value)
    return value == EPSILON if isinstance(value, float) else False


def passed() -> int:
    """Count the functions that receive `EPSILON` while an agent given as text is certified."""
    receivers: set[CodeType] = set()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE_FOLDERS):
            names = code.co_varnames[: code.co_argcount + 9]
            if any(has_epsilon(frame.f_locals.get(name)) for name in names):
                receivers.add(code)

    spec = ContextualSpec(n_actions=3, dim=2, horizon=100)
    sys.setprofile(watch)
    try:
        certify(f"dp-ucb:epsilon={EPSILON}", spec)
    finally:
        sys.setprofile(None)
    return len(receivers)


def medians(readings: Iterable[Reading]) -> tuple[float, float, int]:
    """Return medians over agents of files and lines that run, and most files in agents/ of one."""
    every = list(readings)
    return (
        median(len(one.files) for one in every),
        median(one.lines for one in every),
        max(one.agent_files for one in every),
    )


def main(names: list[str]) -> int:
    """Print lines per agent; without `names`, also limits; return 1 if one is exceeded."""
    warnings.simplefilter("ignore")
    readings = [reading(name) for name in names or sorted(AGENTS)]
    for one in readings:
        print(
            f"{one.name:28} {one.lines:4} lines that run in {len(one.files):3} files, "
            f"{one.agent_files} of agents"
        )
        if names:
            print(*(f"    {file.relative_to(ROOT)}" for file in sorted(one.files)), sep="\n")
    if names:
        return 0
    files, lines, agents = medians(readings)
    return table(
        (
            Measure("make and a round: files, median", files, 11, 9),
            Measure("make and a round: lines that run, median", lines, 185, 150),
            Measure("make and a round: files of agents, most", agents, 6, 3),
            Measure("functions that the epsilon of DP-UCB passes", passed(), 19, 16),
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
