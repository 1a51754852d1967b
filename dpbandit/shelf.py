"""Access of the core to its shelves, optional modules each of which can be deleted.

The core imports no shelf by name, but looks it up here, in `shelves.csv`: a row names a package of
the core, a module of a shelf, and names of that module that the package exports. A module without
such names registers objects when it is imported, as `dpbandit.auditing.buyers` does with the users
of an audit. To delete a shelf, delete its files (`SHELVES` in `tools/measures.py`), and the rows of
the tables that name them.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from dpbandit.base import InputError
from dpbandit.lazy import catalogue, lazily


@cache
def open_shelves(package: str) -> None:
    """Import every shelf module that registers objects with a package of the core."""
    for row in catalogue("dpbandit", "shelves.csv"):
        if row["package"] == package and not row["names"]:
            import_module(f"dpbandit.{row['module']}")


def homes(package: str) -> dict[str, str]:
    """Return the names that shelves add to a package, each with the full name of its module."""
    rows = [row for row in catalogue("dpbandit", "shelves.csv") if row["package"] == package]
    return {name: f"dpbandit.{row['module']}" for row in rows for name in row["names"].split()}


def from_shelf(package: str, name: str, use: str) -> Any:
    """Import the object that a shelf adds to a package.

    Raises `InputError` if the shelf was deleted; `use` says in the message what needs the object.
    """
    if name not in (home := homes(package)):
        raise InputError(
            f"Expected no {use}, as its shelf is not here: {name} of dpbandit.{package}."
        )
    return getattr(import_module(home[name]), name)


def face(
    package: str, inside: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a core package, whose names are imported when used.

    Args:
        package: Full name of the package.
        inside: Module of the package -> names, separated by spaces, that it defines; those that
            shelves add come from `shelves.csv`.
    """
    own_homes = {
        name: f"{package}.{module}" for module, names in inside.items() for name in names.split()
    }
    return lazily(package, own_homes | homes(package.removeprefix("dpbandit.")))
