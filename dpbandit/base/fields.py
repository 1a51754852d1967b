"""Checks of values from files, command lines and code against declared types and signatures."""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from itertools import pairwise
from math import inf
from textwrap import dedent
from types import FunctionType, MethodType, NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dpbandit.base.inputs import InputError

_MAX_TEXT_LETTERS = 10_000
"""Largest number of letters of a text read from a file; a longer one fits no line of a table."""
_IS_VALUE_OF: dict[Any, Callable[[Any], bool]] = {  # declared type -> check of a value
    Any: lambda value: True,
    bool: lambda value: isinstance(value, bool),
    int: lambda value: _is_number(value, int) and value < 2**63,
    float: lambda value: _is_number(value, int | float) and (value < 2.0**1023 or value == inf),
    str: lambda value: isinstance(value, str) and len(value) <= _MAX_TEXT_LETTERS,
    NoneType: lambda value: value is None,
}

T = TypeVar("T")  # class of the object that `made` builds
_hints: Callable[[type], dict[str, Any]] = cache(get_type_hints)


@cache
def _signature(function: Callable[..., Any], *, bound: bool) -> inspect.Signature:
    """Return the signature of a class or function; if `bound`, without the argument `self`."""
    return signature(MethodType(function, object()) if bound else function)


def made(kind: type[T], values: Any) -> T:
    """Build the dataclass `kind` from a mapping of field names to values, checking their types.

    Names that are no field are ignored. Lists become tuples where tuples are declared, "inf"
    becomes infinity, and numbers must be >= 0 (no stored number is negative). Values declared
    `Any`, and dataclass instances, are not changed.

    Raises:
        ValueError: a value is missing, or not of the type of its field.
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"{kind.__name__} is no object")
    hints, found = _hints(kind), {}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.init and field.name in values:
            found[field.name] = as_declared(hints[field.name], values[field.name], field.name)
        elif field.init and field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{field.name} of {kind.__name__} is missing")
    return kind(**found)


def check_length(what: str, name: str) -> None:
    """Raise `InputError` if a name is longer than the 10,000 letters that files may hold."""
    if len(name) > _MAX_TEXT_LETTERS:
        raise InputError(
            f"Expected {what} of at most {_MAX_TEXT_LETTERS:,} letters, got {len(name):,}."
        )


def with_floats(kind: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with integers converted to floats where the dataclass `kind` declares floats.

    Settings of anything but a dataclass are returned unchanged.
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
    """Return the types of the fields of `kind`, or none if one of them cannot be resolved."""
    try:
        return _hints(kind)
    except NameError:  # a module of a user that imports the type for type checkers only
        return {}


def _takes_floats(hint: Any) -> bool:
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return float in kinds and int not in kinds


def as_declared(hint: Any, value: Any, name: str) -> Any:
    """Convert `value` to the type `hint`; raise `ValueError` with its `name` if it has another."""
    origin, parts = get_origin(hint), get_args(hint)
    if is_dataclass(value):
        return value
    if hint is float and value == "inf":
        return inf
    if hint in _IS_VALUE_OF and _IS_VALUE_OF[hint](value):
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
    if origin is frozenset and isinstance(value, list | frozenset):
        return frozenset(as_declared(parts[0], item, name) for item in value)
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


def parse_settings(texts: Iterable[str] | None) -> dict[str, Any]:
    """Parse KEY=VALUE texts to a dictionary; raise `InputError` for malformed or repeated keys."""
    pairs = [parse_setting(text) for text in texts or ()]
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise InputError(f"Expected {key} once, got it {keys.count(key)} times.")
    return dict(pairs)


def parse_setting(text: str) -> tuple[str, Any]:
    """Parse KEY=VALUE, where VALUE is a number, true, false, none, a word or a list [1,2].

    >>> parse_setting("refresh_every=50"), parse_setting("alpha=theory")
    (('refresh_every', 50), ('alpha', 'theory'))
    >>> parse_setting("prices=[1,1.5]"), parse_setting("attributes=[canon,video]")
    (('prices', [1, 1.5]), ('attributes', ['canon', 'video']))
    """
    key, equals, value = text.partition("=")
    if re.fullmatch(r"\[[^\[\],=]+(,[^\[\],=]+)*\]", value):
        return key, [_one(part.strip()) for part in value[1:-1].split(",")]
    if re.fullmatch(r"[^,=]+(,\w+=[^,=]+)+", value):
        where = "in each --set, and colons between settings of an agent"
        raise InputError(f"Expected one KEY=VALUE {where}, got {text!r}.")
    if not (key and equals and value):
        raise InputError(f"Expected KEY=VALUE, got {text!r}.")
    return key, _one(value)


def _one(value: str) -> Any:
    """Parse an integer, a float, true, false or none; any other word stays text."""
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return words[value.lower()]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def takes(what: str, function: Callable[..., Any], *names: str, **keywords: Any) -> None:
    """Raise `InputError` unless `function` can be called with these arguments.

    Args:
        what: name of the function in the message, such as "act of Mine".
        function: a callable; passes if its signature cannot be inspected.
        names: one name for each positional argument, for the message.
        keywords: arguments passed by name.

    >>> takes("act of Mine", lambda context: 0, "context")
    >>> takes("act of Mine", lambda: 0, "context")
    Traceback (most recent call last):
    dpbandit.base.inputs.InputError: Expected act of Mine to take (context), it takes ().
    """
    inner = getattr(function, "__func__", None)
    try:
        if isinstance(inner, FunctionType):  # cached by function: agents of a class are made often
            shape = _signature(inner, bound=True)
        else:
            known = isinstance(function, type)
            shape = _signature(function, bound=False) if known else signature(function)
    except (TypeError, ValueError):  # of a builtin
        return
    try:
        shape.bind(*names, **keywords)
    except TypeError:
        signature_text = ", ".join([*names, *(f"{name}=..." for name in keywords)])
        parameters = ", ".join(
            str(p.replace(annotation=p.empty)) for p in shape.parameters.values()
        )
        raise InputError(
            f"Expected {what} to take ({signature_text}), it takes ({parameters})."
        ) from None


def has_methods(what: str, thing: Any, **methods: tuple[str, ...]) -> None:
    """Raise `InputError` unless `thing` has these methods with these positional arguments."""
    for name, arguments in methods.items():
        method = getattr(thing, name, None)
        if not callable(method):
            shape = f"{name}({', '.join(arguments)})"
            raise InputError(f"Expected {what} to have a method {shape}, got {of_kind(thing)}.")
        takes(f"{name} of {type(thing).__name__}", method, *arguments)


def missing_fields(kind: Any, names: Collection[str]) -> list[str]:
    """Return a dataclass's fields without default that `names` lacks; [] for anything else."""
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return []
    needed = [f for f in fields(kind) if f.init and f.default is f.default_factory is MISSING]
    return [field.name for field in needed if field.name not in names]


def of_kind(thing: Any) -> str:
    """Return an object's class in words for a message, such as "a FADE", or "None" for None."""
    return "None" if thing is None else f"a {type(thing).__name__}"


def imported(module: str, what: str) -> Any:
    """Import the module of this full name; raise `InputError`, naming `what`, if that fails."""
    if module.endswith(".py") or "/" in module:
        name = module.rpartition("/")[2].removesuffix(".py")
        raise InputError(
            f"Expected {what} to name a module, not a file: {name}:NAME, from the folder where "
            f"{name}.py is."
        )
    if module.startswith("."):
        raise InputError(f"Expected {what} to give the full name of its module.")
    try:
        return import_module(module)
    except Exception as error:  # a user's module may raise anything
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        message = " ".join(str(error).split())
        if isinstance(error, ModuleNotFoundError) and error.name == module and "." not in module:
            message += f"; run this in the folder of {module}.py, or add that to PYTHONPATH"
        raise InputError(f"Cannot import {module!r} of {what}: {kind}{message}.") from error


_TYPE_WORDS: dict[Any, str] = {  # type of a field -> its values in English
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    Sequence[int]: "whole numbers such as [1,2]",
    Sequence[float]: "numbers such as [1,2]",
    Sequence[str]: "words such as [a,b]",
}


@dataclass(frozen=True)
class Described:
    """Description of one field of a dataclass, as tables of settings print it."""

    name: str
    default: str
    """default as written on the command line; "" if there is none"""
    values: str
    """allowed types or words, in English, such as "a number"; "" if a type has no English name"""
    text: str
    """docstring below the field"""


def described(kind: Any) -> tuple[Described, ...]:
    """Describe the fields that the constructor of a dataclass takes.

    >>> from dpbandit.specs.protocols import PriceSpec
    >>> described(PriceSpec)[0]
    Described(name='horizon', default='', values='a whole number', text='number T of rounds')
    """
    hints, texts = hints_of(kind), _texts(kind)
    return tuple(
        Described(f.name, _default(f), _values(hints.get(f.name)), texts.get(f.name, ""))
        for f in fields(kind)
        if f.init
    )


def first_line(documented: Any) -> str:
    """Return the first line of an object's docstring, "" if it has none."""
    return (inspect.getdoc(documented) or "").partition("\n")[0]


def section(documented: Any, heading: str) -> str:
    """Return the text below `heading:` in a docstring; "" if there is no such heading.

    Each paragraph, list item and table row becomes one line.
    """
    lines = (inspect.getdoc(documented) or "").splitlines()
    if f"{heading}:" not in lines:
        return ""
    below = lines[lines.index(f"{heading}:") + 1 :]
    ends = [place for place, line in enumerate(below) if line and not line.startswith(" ")]
    return "\n".join(_joined(dedent("\n".join(below[: ends[0] if ends else None])).strip()))


def _joined(text: str) -> list[str]:
    """Join wrapped lines of paragraphs and list items; leave rows of tables as they are."""
    found, rules = [""], 0  # a table has three rules; rules % 3 > 0 is inside it
    for line in text.splitlines():
        if line.startswith("=="):
            rules += 1
        elif found[-1] and line and not line.startswith("* ") and not rules % 3:
            found[-1] += " " + line.strip()
        else:
            found.append(line)
    return found[1:]


def _default(field: Any) -> str:
    if field.default is not MISSING:
        plain = {True: "true", False: "false", None: "none"}
        is_plain = isinstance(field.default, bool | NoneType)
        return plain[field.default] if is_plain else str(field.default)
    return "" if field.default_factory is MISSING else str(field.default_factory())


def _values(hint: Any) -> str:
    """Return a type's values in English: "a, b or a number" for `Literal["a", "b"] | float`."""
    parts = [hint] if hint in _TYPE_WORDS or get_origin(hint) is Literal else [*get_args(hint)]
    words = [str(word) for part in parts if get_origin(part) is Literal for word in get_args(part)]
    known = (NoneType, *_TYPE_WORDS)
    if any(part not in known and not get_args(part) for part in parts):
        return ""
    kinds = [_TYPE_WORDS[part] for part in parts if part in _TYPE_WORDS]
    every = [*words, *kinds, *(["none"] if NoneType in parts else [])]
    *most, last = every or [""]
    return f"{', '.join(most)} or {last}" if most else last


def _texts(kind: type) -> dict[str, str]:
    """Return the docstrings below a class's fields, own and inherited, read from the source."""
    parts = reversed(kind.__mro__)
    return {name: text for part in parts for name, text in _texts_of_part(part).items()}


@cache
def _texts_of_part(part: type) -> dict[str, str]:
    """Return the docstrings below the fields that one class defines itself."""
    found: dict[str, str] = {}
    for field, below in pairwise(_classes(part.__module__).get(part.__qualname__, [])):
        text = getattr(below.value, "value", None) if isinstance(below, ast.Expr) else None
        if isinstance(field, ast.AnnAssign) and isinstance(text, str):
            found[ast.unparse(field.target)] = " ".join(text.split())
    return found


@cache
def _classes(module: str) -> dict[str, list[ast.stmt]]:
    """Return the bodies of a module's classes by name; none if its source cannot be read."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, KeyError):
        return {}
    return {one.name: one.body for one in tree.body if isinstance(one, ast.ClassDef)}
