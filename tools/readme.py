"""Write what README.md shows of a run: outputs, the curves, and the page to play with::

    python tools/readme.py

Blocks of a console get what their command prints (some lines are left out, as "..." says), and a
block `text` below one of Python what that one prints. The address of the repository comes from
`project.urls`. The program draws docs/regret.png, and docs/play.png where there is a browser;
`tests/docs/test_pages.py` compares.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from matplotlib import rcParams
from matplotlib.figure import Figure
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpbandit import Results  # noqa: E402
from dpbandit.results.plots import (  # noqa: E402
    COLOURS,
    despine,
    figure_style,
    rounds,
    save_figure,
)
from dpbandit.suite.play import write_page  # noqa: E402

README = ROOT / "README.md"
CURVES, SCREENSHOT = ROOT / "docs" / "regret.png", ROOT / "docs" / "play.png"
COMMAND = "dpbandit compare OJPricing"
"""Command whose output README shows."""
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome", "chrome")
COLUMNS = "130"  # of the terminal
_CONSOLE = re.compile(r"(?s)```console\n\$ ([^\n]+)\n.*?```\n")  # a command, and what it prints
_PYTHON = re.compile(r"(?s)```python\n((?:(?!```).)*)```\n\n```text\n.*?```\n")
_CLONE = re.compile(r"(?m)^git clone \S+")
_WIDTH, _HEIGHT = 1000, 880  # of the screenshot, in pixels
_ZEROS = {"Uniform": "random prices", "BestFixed": "one fixed price"}  # agent -> label of its line


def url() -> str:
    """Return the address of the repository that pyproject.toml states."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["urls"]["Repository"])


def played(command: str) -> str:
    """Return what a shell command or a program in Python prints."""
    how: dict[str, Any] = {"capture_output": True, "text": True, "check": True}
    environment = {**os.environ, "COLUMNS": COLUMNS, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    words = [sys.executable, "-c", command]
    if command.startswith("dpbandit "):
        words = [sys.executable, "-m", *command.split()]
    with TemporaryDirectory() as folder:
        return subprocess.run(words, cwd=folder, env=environment, **how).stdout


def shortened(printed: str) -> str:
    """Return the table of `compare` and its last sentence, without certificates and notes.

    >>> print(shortened("a\\n┏━┓\\n└─┘\\n(1) none\\nWith privacy ...\\nProofs are"))
    ┏━┓
    └─┘
    ...
    With privacy ...
    """
    lines = [line.rstrip() for line in printed.splitlines()]
    top, foot, first, last = (
        next(place for place, line in enumerate(lines) if line.startswith(begin))
        for begin in ("┏", "└", "With privacy ", "Proofs ")
    )
    return "\n".join([*lines[top : foot + 1], "...", *lines[first:last]])


def written(text: str) -> str:
    """Return the text of README with the address, and outputs of a new run."""

    def console(found: re.Match[str]) -> str:
        return f"```console\n$ {found[1]}\n{shortened(played(found[1]))}\n```\n"

    def python(found: re.Match[str]) -> str:
        return f"```python\n{found[1]}```\n\n```text\n{played(found[1])}```\n"

    text = _CLONE.sub(f"git clone {url()}", text)
    return _PYTHON.sub(python, _CONSOLE.sub(console, text))


def draw(results: Results, path: Path) -> None:
    """Draw the curves of three agents with labels at their ends, and of both zeros in grey."""
    with figure_style():
        rcParams.update(dict.fromkeys(("font.size", "xtick.labelsize", "ytick.labelsize"), 13.0))
        figure = Figure(figsize=(5.0, 3.3), layout="constrained")
        axes = figure.subplots()
        colours = iter((COLOURS[2], COLOURS[0], COLOURS[1]))
        ends = {run.name: run.regret[-1].mean() for run in results.runs}
        close = 0.08 * max(ends.values())  # the height of a label
        for run in sorted(results.runs, key=lambda run: -run.certificate.claimed_epsilon):
            epsilon = run.certificate.claimed_epsilon
            label = "no privacy" if epsilon == inf else f"epsilon {epsilon:g}"
            label = _ZEROS.get(run.name, label)
            colour, dashes = ("0.45", "--") if run.name in _ZEROS else (next(colours), "-")
            rounds(axes, run.marks, run.regret, label, color=colour, dashes=dashes)
            place, height = run.marks[-1], ends[run.name]
            near = [end > height for end in ends.values() if 0 < abs(end - height) < close]
            va = "center" if not near else "top" if near[0] else "bottom"  # labels do not overlap
            how: dict[str, Any] = {"textcoords": "offset points", "va": va, "color": colour}
            axes.annotate(label, (place, height), (5, 0), annotation_clip=False, **how)
        axes.set_xlim(0, int(results.runs[0].marks[-1]))
        axes.set_ylim(bottom=0)
        axes.set_xticks([0, 5_000, 10_000], ["0", "5,000", "10,000 customers"])
        axes.set_title("dollars lost", loc="left", pad=8)
        axes.yaxis.set_major_formatter("{x:,g}")
        despine(axes)
        save_figure(figure, path)


def browser() -> str | None:
    """Return the path of an installed browser."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def photograph(browser: str, path: Path) -> None:
    """Write a screenshot of the page to play with."""
    with TemporaryDirectory() as folder:
        page = write_page(Path(folder) / "play.html").resolve()
        size = f"--window-size={_WIDTH},{_HEIGHT}"
        how = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size]
        words = [browser, *how, f"--user-data-dir={folder}", f"--screenshot={path}", page.as_uri()]
        subprocess.run(words, check=True, capture_output=True)
    with Image.open(path) as image:
        image.convert("RGB").quantize(256, Image.Quantize.FASTOCTREE).save(path, optimize=True)


def curves(folder: Path) -> Results:
    """Run the command of README in a new folder, and return its results."""
    played(f"{COMMAND} --out {folder}")
    return Results.load(folder)


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
    with TemporaryDirectory() as place:
        draw(curves(Path(place) / "out"), CURVES)
    if found := browser():
        photograph(found, SCREENSHOT)
