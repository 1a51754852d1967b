"""How many files and lines somebody reads who follows one round of an agent::

    python tools/reading.py              # a line for each agent, then median and worst
    python tools/reading.py linucb fade  # the files of some agents

Every agent plays rounds of its kind of problem, with its default settings and with privacy where it
has any; counted are files of which a line runs in a round, beside what all share: base, specs,
privacy, domains and losses. The docstring of the config or of its file names every other one.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpbandit import InputError  # noqa: E402
from dpbandit.agents import AGENTS  # noqa: E402
from dpbandit.base.random_streams import Streams  # noqa: E402
from dpbandit.domains import Ball  # noqa: E402
from dpbandit.losses import Ridge  # noqa: E402
from dpbandit.specs.convex import ConvexSpec  # noqa: E402
from dpbandit.testing.worlds import World, extreme_users  # noqa: E402
from tests.harness import SPECS, variants  # noqa: E402

SHARED = tuple(
    str(ROOT / "dpbandit" / name)
    for name in ("base", "specs", "privacy", "domains", "losses", "testing")
)
ROUNDS = 300
RIDGE = ConvexSpec(loss=Ridge(Ball(3)), horizon=ROUNDS, feedback="datum")
MOST_FILES, MEDIAN_FILES, MEDIAN_LINES = 10, 5, 800
"""What the house allows."""


def main(names: list[str]) -> int:
    """Print the table; 1 if a bar is missed."""
    warnings.simplefilter("ignore")
    read = {name: set(files_read(AGENTS[name])) for name in names or sorted(AGENTS)}
    lines = {name: sum(len(f.read_text().splitlines()) for f in read[name]) for name in read}
    for name, files in read.items():
        missing = ", ".join(file.name for file in unnamed(AGENTS[name], files))
        note = f"   not named: {missing}" if missing else ""
        print(f"{name:28} {len(files):3} files {lines[name]:5} lines{note}")
        if name in names:
            print(*(f"    {file.relative_to(ROOT)}" for file in sorted(files)), sep="\n")
    counts = [len(files) for files in read.values()]
    print(
        f"median {median(counts):g} files, {median(lines.values()):g} lines; at most {max(counts)}"
    )
    return int(
        median(counts) > MEDIAN_FILES
        or median(lines.values()) > MEDIAN_LINES
        or max(counts) > MOST_FILES
    )


def files_read(agent: Any, rounds: int = ROUNDS) -> Iterator[Path]:
    """The files that run in its rounds, beside what all share."""
    running, spec = _made(agent, rounds)
    world: World = extreme_users(spec, 1, 0).tame()
    seen: set[str] = set()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        seen.add(frame.f_code.co_filename)

    sys.setprofile(watch)
    try:
        for t in range(rounds - spec.delay):
            context = world.context[t]
            action = running.act(context)
            running.update(context, action, world.answer(spec, t, action))
    finally:
        sys.setprofile(None)
    for name in seen:
        if name.startswith((str(ROOT / "dpbandit"), str(ROOT / "agents"))) and not (
            name.startswith(SHARED)
        ):
            yield Path(name)


def own_file(agent: Any) -> Path:
    """Where its config stands."""
    return Path(sys.modules[agent.__module__].__file__ or "")


def explained(agent: Any) -> str:
    """What its config and the file of that say."""
    return f"{sys.modules[agent.__module__].__doc__}\n{agent.__doc__}"


def unnamed(agent: Any, files: Iterable[Path]) -> list[Path]:
    """Those that are neither its own nor named in the docstrings."""
    said, own = explained(agent), own_file(agent)
    return sorted(file for file in files if file != own and f"({file.name})" not in said)


def _made(agent: Any, rounds: int) -> tuple[Any, Any]:
    """The agent, running, with the first settings that fit a kind of problem."""
    for config in variants(agent):
        for known in (*SPECS.values(), RIDGE):
            with suppress(InputError):
                spec = replace(known, horizon=rounds)
                return config.make(spec, Streams([0])), spec
    raise InputError(f"Expected {agent.__name__} to fit one of {', '.join(SPECS)}.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
