"""Whether what somebody else wrote can be called as it will be; one sentence where it cannot."""

from collections.abc import Callable, Collection
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from inspect import signature
from typing import Any

from dpbandit.base.inputs import InputError


def takes(what: str, function: Callable[..., Any], *names: str, **given: Any) -> None:
    """Raise `InputError` unless `function` takes arguments called something like `names`, in place.

    Args:
        what: whose it is, for the sentence.
        function: what will be called; one whose signature nobody knows is believed.
        names: of the arguments in place, as the sentence shows them.
        given: arguments by name.

    >>> takes("act of Mine", lambda context: 0, "context")
    >>> takes("act of Mine", lambda: 0, "context")
    Traceback (most recent call last):
    dpbandit.base.inputs.InputError: Expected act of Mine to take (context), it takes ().
    """
    try:
        shape = signature(function)
    except (TypeError, ValueError):  # of a builtin
        return
    try:
        shape.bind(*names, **given)
    except TypeError:
        asked = ", ".join([*names, *(f"{name}=..." for name in given)])
        own = ", ".join(str(p.replace(annotation=p.empty)) for p in shape.parameters.values())
        raise InputError(f"Expected {what} to take ({asked}), it takes ({own}).") from None


def has_methods(what: str, thing: Any, **methods: tuple[str, ...]) -> None:
    """Raise `InputError` unless `thing` has these methods, which take arguments in place."""
    for name, arguments in methods.items():
        method = getattr(thing, name, None)
        if not callable(method):
            shape = f"{name}({', '.join(arguments)})"
            raise InputError(f"Expected {what} to have a method {shape}, got {of_kind(thing)}.")
        takes(f"{name} of {type(thing).__name__}", method, *arguments)


def unsaid(kind: Any, given: Collection[str]) -> list[str]:
    """Fields of a dataclass that have no default and are not `given`; of anything else none."""
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return []
    needed = [f for f in fields(kind) if f.init and f.default is f.default_factory is MISSING]
    return [field.name for field in needed if field.name not in given]


def of_kind(thing: Any) -> str:
    """What it is, in few words: `None`, or `a Mine`."""
    return "None" if thing is None else f"a {type(thing).__name__}"


def imported(module: str, what: str) -> Any:
    """The module with this full name, wanted for `what`; `InputError` where it cannot be had."""
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
    except Exception as error:  # whatever a module of somebody's does
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        said = " ".join(str(error).split())
        raise InputError(f"Cannot import {module!r} of {what}: {kind}{said}.") from error
