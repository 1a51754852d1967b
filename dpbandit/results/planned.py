"""What the sweep in a folder asks for, and its audits, as its files say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dpbandit.base.fields import as_declared, made
from dpbandit.base.files import is_there, parse_json, read_text
from dpbandit.base.inputs import InputError, whole
from dpbandit.results.layout import FORMAT, check_format, plan_file
from dpbandit.results.runs import run_key

_KEY = re.compile(r"[0-9a-f]{16}")
T = TypeVar("T")


class Damaged(InputError):
    """Not what a sweep wrote."""


class Planned(NamedTuple):
    """A sweep as it was run last."""

    name: str
    configurations: tuple[str, ...]
    """keys of the runs, in the order of the file"""
    replicas: int
    """of each"""
    audits: tuple[str, ...]
    """keys of the audits"""

    def missing(self, begun: int, there: int) -> str:
        """How much is there of what is asked for, nothing where that is all.

        `begun` configurations have replicas, `there` together.
        """
        wanted, told = len(self.configurations), []
        if there < wanted * self.replicas:
            told.append(f"{there:,} of {wanted * self.replicas:,} replicas are there")
        if begun < wanted:
            told.append(f"{wanted - begun:,} of {wanted:,} configurations have none")
        return "; ".join(told)


@dataclass(frozen=True)
class _Plan:
    """What of a sweep.json is read."""

    name: str
    configurations: tuple[str, ...]
    replicas: int
    audits: tuple[str, ...]
    format: Any = FORMAT

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 1)
        if not all(map(_KEY.fullmatch, self.configurations + self.audits)):
            raise ValueError("keys")  # they are names of files


@dataclass(frozen=True, kw_only=True)
class AuditFile:
    """What of an audit is shown: what it measured, or why there is none."""

    agent: str
    problem: str
    config: Mapping[str, Any]
    env_kwargs: Mapping[str, Any]
    not_audited: str | None = None
    claimed_epsilon: float | None = None
    delta: float | None = None
    certified_epsilon: float | None = None
    eps_lower: float | None = None
    runs: int | None = None
    failure: float | None = None
    flagged: bool | None = None
    verdict: str | None = None

    def __post_init__(self) -> None:
        whole("horizon", self.env_kwargs["horizon"], 1)
        if self.not_audited is None:
            measured = (self.claimed_epsilon, self.delta, self.certified_epsilon, self.eps_lower)
            if None in (*measured, self.runs, self.failure, self.flagged, self.verdict):
                raise ValueError("nothing was measured")
        else:
            for name in ("epsilon", "delta"):
                as_declared(float, self.config.get(name, 0), name)


def planned(folder: Path) -> Planned | None:
    """The sweep in `folder`, None where there is none.

    Raises:
        InputError: its sweep.json is damaged, of an unknown format, or cannot be read.
    """
    file = plan_file(folder)
    if not is_there(file):
        return None
    found = _read(file, _Plan, "resume the sweep (--resume), which writes it anew")
    check_format(file, found.format)
    return Planned(found.name, found.configurations, found.replicas, found.audits)


def read_audit(file: Path) -> AuditFile:
    """An audit of a sweep.

    Raises:
        InputError: it is not what was written, as its hash or a type says, or cannot be read.
    """
    return _read(file, AuditFile, "resume the sweep (--resume), which audits again", hashed=True)


def audit_hash(key: str, document: Mapping[str, Any]) -> str:
    """Of all that an audit says, and of which it is: none stands for another."""
    return run_key({**document, "key": key})


def _read(file: Path, kind: type[T], remedy: str, *, hashed: bool = False) -> T:
    text = read_text(file, errors="replace")
    try:
        document = parse_json(text)
        if hashed and document.pop("hash") != audit_hash(file.stem, document):
            raise ValueError("another hash")
        return made(kind, document)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise Damaged(f"Expected {file} as a sweep wrote it, it is damaged: {remedy}.") from None
