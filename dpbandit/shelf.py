"""Access of the core to optional modules that may be deleted, called shelves.

The core imports no shelf by name, but looks it up in `shelves.csv`, where a row names a package of
the core, a module of a shelf, and names of that module that the package exports. A module without
such names registers objects when it is imported, as `dpbandit.auditing.buyers` does with the users
of an audit. To delete a shelf, delete its files (`SHELVES` in `tools/measures.py`) and the rows of
tables that name them.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from dpbandit.base import InputError
from dpbandit.lazy import catalogue, lazily, typed_imports


@cache
def open_shelves(package: str) -> None:
    """Import the optional modules that register objects with a package of the core."""
    for row in catalogue("dpbandit", "shelves.csv"):
        if row["package"] == package and not row["names"]:
            import_module(f"dpbandit.{row['module']}")


def homes(package: str) -> dict[str, str]:
    """Return name -> full name of its module, for names that optional modules add to a package."""
    rows = [row for row in catalogue("dpbandit", "shelves.csv") if row["package"] == package]
    return {name: f"dpbandit.{row['module']}" for row in rows for name in row["names"].split()}


def from_shelf(package: str, name: str, use: str) -> Any:
    """Import an object that an optional module (a "shelf") adds to a package of the core.

    Raises `InputError` if the module was deleted; `use` names the purpose in the message.
    """
    if name not in (home := homes(package)):
        raise InputError(
            f"Expected no {use}, as its shelf is not here: {name} of dpbandit.{package}."
        )
    return getattr(import_module(home[name]), name)


def face(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a core package, which import its names on first use.

    The names are those of its `typed_imports`, and those of optional modules in `shelves.csv`.
    """
    return lazily(package, typed_imports(package) | homes(package.removeprefix("dpbandit.")))
