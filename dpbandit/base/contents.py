"""Search for the objects that an object refers to by attributes, containers and methods."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import BuiltinMethodType, MethodType, ModuleType
from typing import Any

import numpy as np

_LEAF_TYPES = (float, int, str, type, ModuleType)
"""Types that the search leaves out, with whatever classes and modules refer to."""


def reached(thing: Any, *closed: type) -> Iterator[tuple[str, Any]]:
    """Yield every object reachable from `thing`, with its path such as `.ledger.0`.

    Follows attributes, containers and bound methods, enters each object once, and enters no
    instance of the `closed` classes. Numbers, strings, classes and modules are left out.
    """
    opened: set[int] = set()
    waiting = [("", thing)]
    while waiting:
        path, item = waiting.pop()
        yield path, item
        if id(item) not in opened and not isinstance(item, closed):
            opened.add(id(item))
            waiting += [(f"{path}.{name}", part) for name, part in _parts_of(item)]


def outermost(thing: Any, wanted: Callable[[Any], bool], closed: tuple[type, ...]) -> Iterator[Any]:
    """Yield the `wanted` objects inside `thing`, each once, but none inside another one.

    It enters no instance of the `closed` classes, nor yields it.
    """
    opened, waiting = {id(thing)}, [part for _, part in _parts_of(thing)]
    while waiting:
        item = waiting.pop()
        if isinstance(item, closed) or id(item) in opened:
            continue
        opened.add(id(item))
        if wanted(item):
            yield item
        else:
            waiting += [part for _, part in _parts_of(item)]


def _parts_of(item: Any) -> list[tuple[Any, Any]]:
    """Return the objects that `item` refers to directly, each with its key, index or attribute."""
    every = [*_contained(item), *_attributes(item)]
    return [(name, part) for name, part in every if not isinstance(part, _LEAF_TYPES)]


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
