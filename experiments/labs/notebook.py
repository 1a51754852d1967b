"""From a lab's text to a notebook for Jupyter: hints folded, solutions folded or left out."""

from importlib import import_module
from os.path import exists
from pathlib import Path
from typing import Any

from dpbandit.base.files import write_atomically
from dpbandit.base.inputs import InputError
from dpbandit.experiments.labs.catalogue import Lab

INSTALL = "pip install '.[labs]' in a checkout"
"""What brings jupytext and JupyterLab to where dpbandit is installed."""
_HINT = "\n\nSolutions are folded: click the three dots, or the triangle, below an exercise."
_FOLDED = {"jupyter": {"source_hidden": True, "outputs_hidden": True}}
_DETAILS = "<details>\n<summary>{}</summary>\n\n{}\n\n</details>"
_SUMMARIES = {"hint": "Hint", "check": "Check yourself", "solution": "Solution"}


def notebook(lab: Lab, *, solutions: bool = True) -> Any:
    """The lab as an `nbformat` notebook without outputs; the same text gives the same bytes.

    1. Every run of cells tagged `solution` gets an empty code cell before it, for one's own.
    2. Solutions stay, folded: code by `source_hidden` (JupyterLab) and the tag `hide-cell`
       (myst-nb), text by an HTML `details` element; or they are left out.
    3. Text tagged `hint` or `check` is folded, too, and always stays; so does a check in code.
    4. Cells are numbered in place of random ids.

    Raises `InputError` without jupytext.
    """
    try:
        jupytext = import_module("jupytext")
    except ImportError:
        raise InputError(
            f"Expected jupytext, which makes notebooks, to be installed: {INSTALL}."
        ) from None
    made = jupytext.reads(lab.text, fmt="py:percent")
    made.metadata.pop("jupytext", None)
    if solutions:
        made.cells[0].source += _HINT
    cells: list[Any] = []
    solving = False
    for cell in made.cells:
        begun, solving = solving, _tagged(cell, "solution")
        if solving and not begun:
            cells.append(_own_attempt())
        if solutions or not solving:
            cells.append(_folded(cell))
    for place, cell in enumerate(cells):
        cell["id"] = f"lab-{lab.number}-{place}"
    made.cells = cells
    return made


def write_or_keep(
    lab: Lab, folder: Path, *, solutions: bool = True, overwrite: bool = False
) -> tuple[Path, str]:
    """The notebook in `folder`, written unless it is there, and a sentence that says which."""
    target = folder / f"{lab.path.stem}.ipynb"
    if exists(target) and not overwrite:
        return target, f"{target} is there already and stays as it is (--overwrite starts afresh)."
    write(lab, folder, solutions=solutions, overwrite=overwrite)
    return target, f"Written to {target}."


def write(lab: Lab, folder: Path, *, solutions: bool = True, overwrite: bool = False) -> Path:
    """Write the notebook into `folder`; a file that is there may be somebody's work, and stays.

    Raises `InputError` where there is one, unless `overwrite`.
    """
    target = folder / f"{lab.path.stem}.ipynb"
    if exists(target) and not overwrite:
        raise InputError(
            f"Expected no file {target} yet: move it away, or overwrite it on purpose."
        )
    made = notebook(lab, solutions=solutions)
    text: str = import_module("nbformat").writes(made)
    return write_atomically(target, lambda path: path.write_text(text + "\n", encoding="utf-8"))


def _own_attempt() -> Any:
    return import_module("nbformat").v4.new_code_cell("# your own attempt\n")


def _tagged(cell: Any, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])


def _folded(cell: Any) -> Any:
    if cell.cell_type == "markdown":
        for tag, summary in _SUMMARIES.items():
            if _tagged(cell, tag):
                cell.source = _DETAILS.format(summary, cell.source)
    elif _tagged(cell, "solution"):
        cell.source = f"# solution\n{cell.source}"  # JupyterLab shows the first line of a fold
        cell.metadata.update(_FOLDED)
        cell.metadata["tags"] = [*cell.metadata["tags"], "hide-cell"]
    return cell
