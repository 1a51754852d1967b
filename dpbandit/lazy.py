"""Tables of what a package has, and names that are imported when somebody asks for them."""

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
    """`__getattr__` and `__dir__` of a package.

    Args:
        package: its full name.
        homes: of each name the module that has it, by its full name.
        made: is called with what was found, once.
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


@cache
def catalogue(package: str, file: str = "catalogue.csv") -> tuple[dict[str, str], ...]:
    """Rows of a table of a package: what it has, in lines that nobody need import."""
    text = (files(package) / file).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))
