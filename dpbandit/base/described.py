"""Fields of a dataclass as people read them: default, kinds of values, and docstring."""

import ast
import inspect
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from textwrap import dedent
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from dpbandit.base.checked import hints_of

_KINDS: dict[Any, str] = {
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
    """One field."""

    name: str
    default: str
    """as it is written on the command line; "" where there is none"""
    values: str
    """kinds of values, or all words that are allowed; "" of anything else"""
    text: str
    """the docstring below the field"""


def described(kind: Any) -> tuple[Described, ...]:
    """The fields of a dataclass that it is made from.

    >>> from dpbandit.specs.protocols import PriceSpec
    >>> described(PriceSpec)[0]
    Described(name='horizon', default='', values='a whole number', text='rounds T')
    """
    hints, texts = hints_of(kind), _texts(kind)
    return tuple(
        Described(f.name, _default(f), _values(hints.get(f.name)), texts.get(f.name, ""))
        for f in fields(kind)
        if f.init
    )


def first_line(documented: Any) -> str:
    """Of its docstring."""
    return (inspect.getdoc(documented) or "").partition("\n")[0]


def section(documented: Any, heading: str) -> str:
    """What stands below `heading:` in a docstring; "" if nothing does.

    A paragraph, an item of a list and a line of a table is a line each.
    """
    lines = (inspect.getdoc(documented) or "").splitlines()
    if f"{heading}:" not in lines:
        return ""
    below = lines[lines.index(f"{heading}:") + 1 :]
    ends = [place for place, line in enumerate(below) if line and not line.startswith(" ")]
    return "\n".join(_joined(dedent("\n".join(below[: ends[0] if ends else None])).strip()))


def _joined(text: str) -> list[str]:
    """Lines put together, but in a table, which has three rules."""
    found, rules = [""], 0
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
    """`Literal["a", "b"] | float` is `a, b or a number`."""
    parts = [hint] if hint in _KINDS or get_origin(hint) is Literal else [*get_args(hint)]
    words = [str(word) for part in parts if get_origin(part) is Literal for word in get_args(part)]
    if any(part is not NoneType and part not in _KINDS and not get_args(part) for part in parts):
        return ""
    kinds = [_KINDS[part] for part in parts if part in _KINDS]
    every = [*words, *kinds, *(["none"] if NoneType in parts else [])]
    *most, last = every or [""]
    return f"{', '.join(most)} or {last}" if most else last


def _texts(kind: type) -> dict[str, str]:
    """Docstrings of fields, which Python itself forgets: read in the source of its classes."""
    found: dict[str, str] = {}
    for part in reversed(kind.__mro__):
        try:
            (tree,) = ast.parse(dedent(inspect.getsource(part))).body
        except (OSError, TypeError, SyntaxError, ValueError):  # made without a file
            continue
        for field, below in pairwise(getattr(tree, "body", [])):
            text = getattr(below.value, "value", None) if isinstance(below, ast.Expr) else None
            if isinstance(field, ast.AnnAssign) and isinstance(text, str):
                found[ast.unparse(field.target)] = " ".join(text.split())
    return found
