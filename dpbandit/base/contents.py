"""Search for all objects that an object refers to through attributes, containers and methods."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import BuiltinMethodType, MethodType, ModuleType
from typing import Any

import numpy as np

LEAF_TYPES = (float, int, str, type, ModuleType)
"""Types at which the search stops, whatever classes and modules refer to."""


def reached(thing: Any, *closed: type) -> Iterator[tuple[str, Any]]:
    """Yield every object reachable from `thing`, with its path such as `.ledger.0`.

    Follows attributes, containers and bound methods, enters each object once, and enters no
    instance of the `closed` classes.
    """
    opened: set[int] = set()
    waiting = [("", thing)]
    while waiting:
        path, item = waiting.pop()
        yield path, item
        if id(item) not in opened and not isinstance(item, (*closed, *LEAF_TYPES)):
            opened.add(id(item))
            waiting += [(f"{path}.{name}", part) for name, part in parts_of(item)]


def parts_of(item: Any) -> Iterable[tuple[Any, Any]]:
    """Return the objects that `item` refers to directly, each with its key, index or attribute."""
    return [*_contained(item), *_attributes(item)]


def _contained(item: Any) -> Iterable[tuple[Any, Any]]:
    """Return the parts of a container, a partial function or a bound method; else nothing."""
    if isinstance(item, Mapping):
        return [*item.items(), *((f"key {place}", key) for place, key in enumerate(item))]
    if isinstance(item, np.ndarray):
        return enumerate(item.ravel()) if item.dtype == object else ()
    if isinstance(item, list | tuple | set | frozenset | deque):
        return enumerate(item)
    if isinstance(item, partial):
        return enumerate((item.func, item.args, item.keywords))
    if isinstance(item, MethodType | BuiltinMethodType):
        return [("self", item.__self__)]
    return ()


def _attributes(item: Any) -> Iterable[tuple[Any, Any]]:
    """Return the attributes and slots of an object with their names."""
    inside: list[tuple[Any, Any]] = []
    for kind in type(item).__mro__:
        names = vars(kind).get("__slots__", ())
        for name in [names] if isinstance(names, str) else names:  # `__slots__ = "name"` is legal
            private = name[:2] == "__" != name[-2:]  # stored under a mangled name
            full = f"_{kind.__name__.lstrip('_')}{name}" if private else name
            if hasattr(item, full):
                inside.append((full, getattr(item, full)))
    return [*inside, *getattr(item, "__dict__", {}).items()]
