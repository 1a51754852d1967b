"""An environment and its arguments in a TOML file, which stands wherever its id does."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dpbandit.base.files import named, read_text, write_atomically
from dpbandit.base.inputs import InputError, shown

ENDING = ".toml"
_KEYS = ("id", "arguments")


class EnvironmentFile(NamedTuple):
    """What such a file says."""

    id: str
    arguments: dict[str, Any]
    """paths among them, under `frame` and `path`, as seen from here"""


def is_file(environment: str) -> bool:
    """Whether an environment is named by a file."""
    return environment.endswith(ENDING)


def read_environment(path: str) -> EnvironmentFile:
    """The environment in a file: `id`, and a table `arguments`.

    Paths of tables are relative to the file, whoever reads it from wherever.

    Raises:
        InputError: no such file, no TOML, another key.
    """
    try:
        told = tomllib.loads(read_text(path))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"Expected {named(path)} to be TOML: {error}.") from None
    if unknown := [key for key in told if key not in _KEYS]:
        raise InputError(
            f"Expected {named(path)} to hold id and [arguments] of an environment, got "
            f"{unknown[0]!r}"
            + (": a sweep is run by `dpbandit sweep`." if "agents" in told else ".")
        )
    name, arguments = told.get("id"), told.get("arguments", {})
    if not isinstance(name, str) or is_file(name) or not isinstance(arguments, Mapping):
        raise InputError(
            f"Expected {named(path)} to hold id, of an environment, and a table [arguments], got "
            f"{shown(told)}."
        )
    found = dict(arguments)
    for key in ("frame", "path"):
        if isinstance(found.get(key), str):
            found[key] = os.path.join(os.path.dirname(path), found[key])
    return EnvironmentFile(name, found)


def write_environment(path: Path, name: str, arguments: Mapping[str, Any]) -> Path:
    """Such a file; what is None is left out, and the path `frame` is made relative to it."""
    told = {key: value for key, value in arguments.items() if value is not None}
    if isinstance(told.get("frame"), str | os.PathLike):
        told["frame"] = os.path.relpath(told["frame"], path.parent)
    lines = [f"id = {_toml(name)}", "", "[arguments]"]
    lines += [f"{_key(k)} = {_toml(v)}" for k, v in told.items() if not isinstance(v, Mapping)]
    for key, table in told.items():
        if isinstance(table, Mapping):
            lines += ["", f"[arguments.{_key(key)}]"]
            lines += [f"{_key(k)} = {_toml(v)}" for k, v in table.items()]
    text = "\n".join(lines) + "\n"
    return write_atomically(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value: Any) -> str:
    """Numbers, words, truth and lists are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)
