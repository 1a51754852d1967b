"""What a file says, as dataclasses: every value of the type that its field declares."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from math import inf
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_LONGEST = 10_000
"""Letters of a name or sentence; more would be no line of a legend or table"""
_PLAIN: dict[Any, Callable[[Any], bool]] = {
    Any: lambda value: True,
    bool: lambda value: isinstance(value, bool),
    int: lambda value: _is_number(value, int) and value < 2**63,
    float: lambda value: _is_number(value, int | float) and (value < 2.0**1023 or value == inf),
    str: lambda value: isinstance(value, str) and len(value) <= _LONGEST,
    NoneType: lambda value: value is None,
}

T = TypeVar("T")


def made(kind: type[T], values: Any) -> T:
    """A dataclass `kind` with these values, by name; what it has no field for is left out.

    Lists become tuples where those are declared, "inf" infinity. Numbers are >= 0, as all that we
    store under a declared type; what is declared `Any`, or was made before, stays as it is.

    Raises:
        ValueError: a value is missing, or not of the type of its field.
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"{kind.__name__} is no object")
    hints, found = get_type_hints(kind), {}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.init and field.name in values:
            found[field.name] = as_declared(hints[field.name], values[field.name], field.name)
        elif field.init and field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{field.name} of {kind.__name__} is missing")
    return kind(**found)


def with_floats(kind: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a dataclass `kind`, with floats where those are declared: 1 is 1.0.

    Of anything else than such a class they stay as they are.
    """
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return dict(settings)
    hints = hints_of(kind)
    return {
        name: float(value)
        if type(value) is int and _takes_floats(hints.get(name)) and abs(value) <= 2**53
        else value
        for name, value in settings.items()
    }


def hints_of(kind: Any) -> dict[str, Any]:
    """Types of its fields; none where a name among them cannot be found, as in somebody's module
    that imports it for type checkers only.
    """
    try:
        return get_type_hints(kind)
    except NameError:
        return {}


def _takes_floats(hint: Any) -> bool:
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return float in kinds and int not in kinds


def as_declared(hint: Any, value: Any, name: str) -> Any:
    """`value` as a `hint`; raises `ValueError` with its `name` if it is none."""
    origin, parts = get_origin(hint), get_args(hint)
    if is_dataclass(value):
        return value
    if hint is float and value == "inf":
        return inf
    if hint in _PLAIN and _PLAIN[hint](value):
        return value
    if is_dataclass(hint):
        return made(hint, value)  # type: ignore[arg-type]
    if origin is Literal and value in parts:
        return value
    if origin in (Union, UnionType):
        return _first(parts, value, name)
    if origin is tuple and isinstance(value, list | tuple):
        kinds = parts[:1] * len(value) if parts[1:] == (...,) else parts
        if len(kinds) == len(value):
            pairs = zip(kinds, value, strict=True)
            return tuple(as_declared(kind, item, name) for kind, item in pairs)
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return {str(key): as_declared(parts[1], item, name) for key, item in value.items()}
    raise ValueError(f"{name} is of another type")


def _first(hints: tuple[Any, ...], value: Any, name: str) -> Any:
    for hint in hints:
        try:
            return as_declared(hint, value, name)
        except ValueError:
            continue
    raise ValueError(f"{name} is of another type")


def _is_number(value: Any, kinds: Any) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool) and value >= 0
