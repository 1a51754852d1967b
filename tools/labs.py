"""Run labs and store what their cells print and draw, for the pages and slides of docs/labs::

    python tools/labs.py            labs whose code is not the one that was run (`make labs`)
    python tools/labs.py 3 10       these labs

`docs/labs/outputs/lab_NN.json` has the digest of the lab's code, and for each code cell the
printed text and the names of the pictures beside it, `lab_NN.png` for the cell tagged `picture`.
Each PNG has its titles and the ends of its lines as a description. Cells
tagged `check` are run, but neither stored nor in the digest.
"""

import ast
import hashlib
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jupytext
import matplotlib.pyplot as plt
from matplotlib import rc_context
from matplotlib.figure import Figure

from dpbandit.experiments.labs import Lab, find, labs
from dpbandit.results.plots import few_colours, words

ROOT = Path(__file__).resolve().parent.parent
OUTPUTS = ROOT / "docs" / "labs" / "outputs"
_DOTS = 100
"""Resolution of pictures in dots per inch."""


class Output(NamedTuple):
    """Printed text of a code cell, and its figures."""

    text: str
    figures: list[Figure]


def tagged(cell: Any, tag: str) -> bool:
    """Return whether a notebook cell has this tag."""
    return tag in cell.metadata.get("tags", [])


def cells_of(lab: Lab) -> list[Any]:
    """Return the cells of a lab's file."""
    return list(jupytext.reads(lab.text, fmt="py:percent").cells)


def code_of(lab: Lab) -> list[str]:
    """Return the source of each code cell but checks."""
    return [c.source for c in cells_of(lab) if c.cell_type == "code" and not tagged(c, "check")]


def digest(lab: Lab) -> str:
    """Return a hash of the lab's code without comments and layout."""
    code = "\n".join(ast.dump(ast.parse(source)) for source in code_of(lab))
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def run(lab: Lab) -> Iterator[tuple[Any, Output]]:
    """Run a lab as a script, cell by cell; yield each code cell with its output."""
    module = ModuleType("__main__")
    plt.close("all")
    with rc_context({"backend": "agg"}), _as_main(module):
        for cell in cells_of(lab):
            if cell.cell_type == "code":
                printed = io.StringIO()
                with redirect_stdout(printed):
                    _execute(cell.source, vars(module))
                yield cell, Output(printed.getvalue(), [*map(plt.figure, plt.get_fignums())])
                plt.close("all")


@contextmanager
def _as_main(module: ModuleType) -> Iterator[None]:
    """Make a module `__main__`, where pickle looks for the classes of a lab.

    No `patch.dict`: it also takes away what was imported inside, and a second import of a module
    makes new classes, of which no object of the first is an instance.
    """
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        sys.modules["__main__"] = before


def _execute(source: str, scope: dict[str, Any]) -> None:
    """Run a cell; print the value of an expression at its end, as notebooks do."""
    *body, last = ast.parse(source).body or [ast.Pass()]
    value = last.value if isinstance(last, ast.Expr) else None
    body += [] if value else [last]
    exec(compile(ast.Module(body, []), "<cell>", "exec"), scope)
    result = (
        None if value is None else eval(compile(ast.Expression(value), "<cell>", "eval"), scope)
    )
    if result is not None:
        print(result)


def store(lab: Lab) -> None:
    """Run a lab, and replace its stored outputs."""
    stem = f"lab_{lab.number:02}"
    results: list[dict[str, Any]] = []
    pictures: dict[str, bytes] = {}
    for cell, output in run(lab):
        if tagged(cell, "check"):
            continue
        names = []
        for figure in output.figures:
            main = tagged(cell, "picture") and not names
            names.append(f"{stem}.png" if main else f"{stem}_{len(pictures) + 1}.png")
            pictures[names[-1]] = drawn(figure)
        results.append({"text": output.text, "pictures": names})
    for old in OUTPUTS.glob(f"{stem}*.png"):
        old.unlink()
    for name, data in pictures.items():
        (OUTPUTS / name).write_bytes(data)
        few_colours(OUTPUTS / name)
    text = json.dumps({"code": digest(lab), "cells": results}, indent=1, ensure_ascii=False)
    (OUTPUTS / f"{stem}.json").write_text(text + "\n", encoding="utf-8")


def drawn(figure: Figure) -> bytes:
    """Return a figure as PNG, cropped as in a notebook, with its description."""
    data = io.BytesIO()
    figure.savefig(data, dpi=_DOTS, bbox_inches="tight", metadata={"Description": words(figure)})
    return data.getvalue()


def stored(lab: Lab) -> dict[str, Any]:
    """Return what is stored of a lab; nothing of one that was never run."""
    path = OUTPUTS / f"lab_{lab.number:02}.json"
    found: dict[str, Any] = {"code": "", "cells": []}
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else found


def is_fresh(lab: Lab) -> bool:
    """Return whether the stored outputs are those of the lab's code as it is now."""
    return bool(stored(lab)["code"] == digest(lab))


def main(numbers: list[str]) -> None:
    """Store the outputs of these labs, or of those whose code has changed."""
    for lab in map(find, map(int, numbers)) if numbers else labs():
        if numbers or not is_fresh(lab):
            store(lab)
            print(f"lab {lab.number}: stored in {OUTPUTS.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
