"""What the sweep in a folder asks for, as its files say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dpbandit.files import is_there, parse_json, read_text
from dpbandit.inputs import BadInput


class Planned(NamedTuple):
    """A sweep as it was run last."""

    name: str
    configurations: frozenset[str]
    """keys of the runs"""
    replicas: int
    """of each"""
    audits: tuple[str, ...]
    """keys of the audits"""


def planned(folder: Path) -> Planned | None:
    """The sweep in `folder`, None where there is none.

    Raises:
        BadInput: its sweep.json is damaged or cannot be read.
    """
    file = folder / "sweep.json"
    if not is_there(file):
        return None
    parts = {"name": str, "configurations": list, "replicas": int, "audits": list}
    document = read_document(file, parts, "resume the sweep (--resume), which writes it anew")
    return Planned(
        name=document["name"],
        configurations=frozenset(document["configurations"]),
        replicas=document["replicas"],
        audits=tuple(document["audits"]),
    )


def read_document(file: Path, parts: Mapping[str, type], remedy: str) -> dict[str, Any]:
    """The JSON object in `file`, which has these parts of these types.

    Raises:
        BadInput: it has not, with the `remedy`; or it cannot be read.
    """
    try:
        document = parse_json(read_text(file))
    except BadInput:
        raise
    except ValueError:  # no JSON, or no text
        document = None
    if isinstance(document, dict) and all(
        isinstance(document.get(name), kind) for name, kind in parts.items()
    ):
        return document
    raise BadInput(f"Expected {file} as a sweep wrote it, it is damaged: {remedy}.")
