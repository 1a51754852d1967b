"""Running agents as plain values and arrays, and back: no pickle, and no code comes from a file.

What may be stored is listed here: plain values, containers, arrays, generators of random numbers,
objects of dpbandit's classes (or of the module of one's own agent) as their attributes, and
functions by name. What is held twice is held twice again.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import _lru_cache_wrapper, partial
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.inputs import InputError

_CONTAINERS: dict[str, Callable[..., Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "slice": lambda parts: slice(*parts),
    "range": lambda parts: range(*parts),
    "partial": lambda parts: partial(parts[0], *parts[1], **parts[2]),
    "method": lambda parts: getattr(*parts),
    "counter": lambda parts: Counter(parts[0]),
    "deque": lambda parts: deque(parts[0], parts[1]),
}
_BIT_GENERATORS = {"SFC64": np.random.SFC64, "PCG64": np.random.PCG64}
_SLOTS = "__slots__"


class Encoder:
    """One value as nodes, each of which may name others by their number.

    Args:
        own: the package of one's own agent, whose classes may be stored, too.
        facts: for comparisons: dataclasses are their fields, and what is held twice is told twice.
    """

    def __init__(self, own: str = "dpbandit", *, facts: bool = False) -> None:
        self.nodes: list[Any] = []
        """[kind, ...], JSON"""
        self.arrays: list[npt.NDArray[Any]] = []
        self._own, self._facts, self._seen = own, facts, dict[int, int]()
        self._alive: list[Any] = []  # so that no id is given twice

    def put(self, value: Any) -> int:
        """The number of its node."""
        if id(value) in self._seen and not self._facts:
            return self._seen[id(value)]
        number = self._seen[id(value)] = len(self.nodes)
        self._alive.append(value)
        self.nodes.append(None)
        self.nodes[number] = self._node(value)
        return number

    def _node(self, value: Any) -> list[Any]:
        if self._facts and type(value) is int and abs(value) < 2**53:
            value = float(value)  # epsilon=1 is epsilon=1.0
        if value is None or type(value) in (bool, int, float, str):
            return ["plain", value]
        if isinstance(value, np.ndarray | np.generic):
            if value.dtype.hasobject or isinstance(value, np.ma.MaskedArray | np.matrix):
                raise InputError(f"Expected arrays of numbers in an agent, got {value.dtype}.")
            self.arrays.append(np.asarray(value))
            return ["array" if isinstance(value, np.ndarray) else "scalar", len(self.arrays) - 1]
        if isinstance(value, np.random.Generator):
            return ["generator", self.put(value.bit_generator.state)]
        if isinstance(value, list):
            return ["list", [self.put(item) for item in value]]
        if type(value) is dict:
            return ["dict", [[self.put(key), self.put(item)] for key, item in value.items()]]
        if (parts := _parts(value)) is not None:
            return [parts[0], [self.put(part) for part in parts[1]]]
        if isinstance(value, type | FunctionType | _lru_cache_wrapper | np.ufunc):
            return ["name", *_name_of(value, self._own)]
        kind = type(value)
        module, name = _name_of(kind, self._own)
        if issubclass(kind, tuple):
            return ["named", module, name, [self.put(item) for item in value]]
        if self._facts and is_dataclass(value):
            held = {field.name: getattr(value, field.name) for field in fields(value)}
            return ["object", module, name, self.put(held)]
        return ["object", module, name, self.put(_attributes(value))]


class Decoder:
    """What an `Encoder` was given, of its nodes and arrays."""

    def __init__(self, nodes: list[Any], arrays: list[Any], own: str = "dpbandit") -> None:
        self._nodes, self._arrays, self._own = nodes, arrays, own
        self._made = dict[int, Any]()

    def get(self, number: int) -> Any:
        """The value of this node."""
        if number not in self._made:
            self._made[number] = self._value(number, *self._nodes[number])
        return self._made[number]

    def _value(self, number: int, kind: str, *rest: Any) -> Any:
        if kind == "plain":
            return rest[0]
        if kind == "array":
            return self._arrays[rest[0]]
        if kind == "scalar":
            return self._arrays[rest[0]][()]
        if kind == "generator":
            state = self.get(rest[0])
            bits: Any = _BIT_GENERATORS[state["bit_generator"]]()
            bits.state = state
            return np.random.Generator(bits)
        if kind == "list":
            items = self._made[number] = []
            items.extend(self.get(part) for part in rest[0])
            return items
        if kind == "dict":
            table = self._made[number] = {}
            for key, item in rest[0]:
                table[self.get(key)] = self.get(item)
            return table
        if kind == "name":
            return _named(rest[0], rest[1], self._own)
        if kind == "named":
            named = _named(rest[0], rest[1], self._own)
            return tuple.__new__(named, [self.get(part) for part in rest[2]])
        if kind == "object":
            made = self._made[number] = object.__new__(_named(rest[0], rest[1], self._own))
            for name, value in self.get(rest[2]).items():
                object.__setattr__(made, name, value)
            return made
        return _CONTAINERS[kind]([self.get(part) for part in rest[0]])


def _parts(value: Any) -> tuple[str, list[Any]] | None:
    if type(value) in (tuple, set, frozenset):
        return type(value).__name__, list(value)
    if isinstance(value, slice | range):
        return type(value).__name__, [value.start, value.stop, value.step]
    if isinstance(value, partial):
        return "partial", [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return "method", [value.__self__, value.__name__]
    if type(value) is Counter:
        return "counter", [dict(value)]
    if isinstance(value, deque):
        return "deque", [list(value), value.maxlen]
    return None


def _attributes(value: Any) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in vars(kind).get(_SLOTS, ())]
    return {
        **{name: getattr(value, name) for name in slots if hasattr(value, name)},
        **getattr(value, "__dict__", {}),
    }


def _name_of(thing: Any, own: str) -> tuple[str, str]:
    """Where it is found; raises `InputError` for what may not be stored."""
    if isinstance(thing, np.ufunc):
        module, name = ("numpy" if hasattr(np, thing.__name__) else "scipy.special"), thing.__name__
    else:
        module, name = str(thing.__module__), str(thing.__qualname__)
    if _named(module, name, own) is not thing:
        raise InputError(f"Expected a state to be kept of plain parts, got {module}.{name}.")
    return module, name


def _named(module: str, name: str, own: str) -> Any:
    """A class or function of dpbandit or of one's own, or a function of NumPy's kind."""
    root = module.partition(".")[0]
    found: Any = None
    if root in ("dpbandit", own) or module in ("numpy", "scipy.special"):
        found = import_module(module)
        for part in name.split("."):
            found = getattr(found, part, None)
    kinds = type | FunctionType | _lru_cache_wrapper if root in ("dpbandit", own) else np.ufunc
    if not isinstance(found, kinds):
        raise InputError(f"Expected a state to be kept of plain parts, got {module}.{name}.")
    return found
