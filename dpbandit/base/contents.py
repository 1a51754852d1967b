"""Everything that an object holds: by attributes, containers and bound methods."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import BuiltinMethodType, MethodType, ModuleType
from typing import Any

import numpy as np

PLAIN = (float, int, str, type, ModuleType)
"""Kinds that hold nothing of interest"""


def reached(thing: Any, *closed: type) -> Iterator[tuple[str, Any]]:
    """All that an object holds, by attributes, containers and methods, with the way to each.

    Nothing is opened twice, nor what is of a kind that is `closed`.
    """
    opened: set[int] = set()
    waiting = [("", thing)]
    while waiting:
        path, item = waiting.pop()
        yield path, item
        if id(item) not in opened and not isinstance(item, (*closed, *PLAIN)):
            opened.add(id(item))
            waiting += [(f"{path}.{name}", part) for name, part in parts_of(item)]


def parts_of(item: Any) -> Iterable[tuple[Any, Any]]:
    """The parts that an object holds itself, each with the last step of the way to it."""
    return [*_contained(item), *_attributes(item)]


def _contained(item: Any) -> Iterable[tuple[Any, Any]]:
    """The parts that it holds as a container or a bound method."""
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
    """Attributes and slots of an object; `__slots__` may be one word, and names private."""
    inside: list[tuple[Any, Any]] = []
    for kind in type(item).__mro__:
        names = vars(kind).get("__slots__", ())
        for name in [names] if isinstance(names, str) else names:
            private = name[:2] == "__" != name[-2:]
            full = f"_{kind.__name__.lstrip('_')}{name}" if private else name
            if hasattr(item, full):
                inside.append((full, getattr(item, full)))
    return [*inside, *getattr(item, "__dict__", {}).items()]
