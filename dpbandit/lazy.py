"""Lazy imports of a package's names, and CSV tables that list its contents without imports."""

import ast
import csv
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any


def lazily(
    package: str, homes: Mapping[str, str], made: Callable[[Any], None] = lambda found: None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are imported on first use.

    Args:
        package: full name of the package.
        homes: name -> full name of the module that defines it.
        made: called once with each object that was imported.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(homes[name])
        found = module if homes[name] == f"{package}.{name}" else getattr(module, name)
        made(found)
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted({*vars(sys.modules[package]), *homes})


def typed_imports(package: str) -> dict[str, str]:
    """Return name -> full name of its module, for what a package imports for type checkers alone.

    These are the imports below `if _TYPE_CHECKING` of its `__init__.py`, given to `lazily`.
    """
    tree = ast.parse((files(package) / "__init__.py").read_text(encoding="utf-8"))
    checked = [one for one in tree.body if isinstance(one, ast.If)]
    imports = (one for block in checked for one in block.body if isinstance(one, ast.ImportFrom))
    found = {alias.name: str(one.module) for one in imports for alias in one.names}
    return {name: home if home != package else f"{home}.{name}" for name, home in found.items()}


@cache
def catalogue(package: str, file: str = "catalogue.csv") -> tuple[dict[str, str], ...]:
    """Return the rows of a CSV file in a package, such as the list of its agents."""
    text = (files(package) / file).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))
