"""The state of a running agent in a file, which goes on once."""

import json
import os
import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np

from dpbandit.base.files import (
    PROGRAM,
    check_readable,
    named,
    provenance,
    text_of,
    write_atomically,
)
from dpbandit.base.inputs import InputError
from dpbandit.clients.encoding import Decoder, Encoder
from dpbandit.specs.protocols import AgentConfig, Spec

_FORMAT = 1
_WHAT = "dpbandit state"


class _Promising(Protocol):
    ledger: Any


def write_state(
    path: str | os.PathLike[str], parts: list[Any], *, config: AgentConfig, spec: Spec
) -> str:
    """Write `parts`, the agent first; the path as text.

    The file is an npz: arrays, what they are part of as JSON, and one hash over all of it. Only its
    owner may read it.
    """
    where, own = text_of("path", path), _package(config)
    encoder = Encoder(own)
    facts = {
        "what": _WHAT,
        "format": _FORMAT,
        "ticket": secrets.token_hex(16),
        "program": _program(),
        "config": _fingerprint(config, own),
        "spec": _fingerprint(spec, own),
        "root": encoder.put(parts),
        "nodes": encoder.nodes,
    }
    text = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    arrays = {f"array{i}": array for i, array in enumerate(encoder.arrays)}
    digest = np.array(_digest(text, arrays))

    def write(partial: Path) -> None:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            np.savez(file, allow_pickle=False, facts=text, digest=digest, **arrays)

    write_atomically(Path(where), write)
    return where


def read_state(
    path: str | os.PathLike[str], *, config: AgentConfig, spec: Spec, ledger: Any
) -> list[Any]:
    """What `write_state` wrote, once.

    Raises:
        InputError: no such state, a damaged one, one of another program, config or environment, or
            one that was loaded before on this machine.
    """
    where, own = text_of("path", path), _package(config)
    facts, arrays = _contents(where)
    for name, value, right in (
        ("format", facts["format"], _FORMAT),
        ("program", facts["program"], _program()),
        ("config", facts["config"], _fingerprint(config, own)),
        ("environment, bounds and horizon", facts["spec"], _fingerprint(spec, own)),
    ):
        if value != right:
            told = f", which is {value} there and {right} here" if name != "program" else ""
            raise InputError(f"Expected {named(where)} to be of this {name}{told}.")
    try:
        parts: list[Any] = Decoder(facts["nodes"], arrays, own).get(facts["root"])
        agent: _Promising = parts[0]
        kept = agent.ledger == ledger
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"Expected a state in {named(where)}, got: {error}") from error
    if not kept:
        raise InputError(f"Expected the promise of {config} in {named(where)}, got another.")
    _use_up(facts["ticket"], where)
    return parts


def _contents(where: str) -> tuple[Mapping[str, Any], list[Any]]:
    check_readable(where)
    try:
        with open(where, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
        text, digest = stored.pop("facts"), stored.pop("digest")
        facts = json.loads(text.tobytes())
        if facts["what"] != _WHAT:
            raise ValueError("it is something else")
        if digest.item() != _digest(text, stored):
            raise ValueError("its hash is another, so it was changed")
        return facts, [stored[f"array{i}"] for i in range(len(stored))]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, EOFError) as error:
        raise InputError(f"Expected a state in {named(where)}, got none: {error}.") from error
    except BadZipFile as error:
        raise InputError(f"Expected a whole state in {named(where)}: {error}.") from error


def _use_up(ticket: str, where: str) -> None:
    """Note that a state goes on; at most one process can."""
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    note = Path(home).expanduser() / "dpbandit" / "loaded" / ticket
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch(exist_ok=False)
    except FileExistsError:
        raise InputError(
            f"Expected a state that has not gone on yet, {named(where)} was loaded before: the "
            "same noise on other users' data is covered by no certificate."
        ) from None
    except OSError as error:
        raise InputError(
            f"Cannot note in {note.parent} that {named(where)} goes on: {error.strerror}."
        ) from error


def _package(config: AgentConfig) -> str:
    return type(config).__module__.partition(".")[0]


def _program() -> dict[str, str]:
    return {name: provenance()[name] for name in PROGRAM}


def _fingerprint(value: Any, own: str) -> str:
    encoder = Encoder(own, facts=True)
    encoder.put(value)
    arrays = {str(i): array for i, array in enumerate(encoder.arrays)}
    return _digest(np.frombuffer(json.dumps(encoder.nodes).encode(), dtype=np.uint8), arrays)[:12]


def _digest(text: Any, arrays: Mapping[str, Any]) -> str:
    digest = sha256(text.tobytes())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
