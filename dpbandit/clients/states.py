"""Saved states of a `Player`, each of which one other player may continue.

A state is a pickle, and to open a pickle is to run a program. So `save_player` leaves a ticket with
the file's hash in a folder of this user; `restore_player` opens only files that have a ticket, and
deletes the ticket: no file that was written or changed by others is run, and no state is continued
twice.
"""

import json
import os
import pickle
import secrets
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from dpbandit.base import (
    PROGRAM,
    InputError,
    check_readable,
    provenance,
    short_path,
    text_of,
    write_atomically,
)
from dpbandit.clients.player import Player

_FILE_KIND, _FORMAT_VERSION = "dpbandit state", 5
_EQUAL_FIELDS = {"config": "config", "spec": "environment, bounds and horizon"}
"""Fields in which a saved player and the new one must agree, each with its name in messages."""
_STATE_NAMES = (  # attributes of a player that are saved
    *_EQUAL_FIELDS,
    "_agent",
    "_call_log",
    "_ledger_check",
    "_left",
    "_awaiting",
    "_any_arm",
    "_bounds",
)


def save_player(player: Player, path: str | PathLike[str]) -> str:
    """Write a player's state, and the file's hash as a ticket to load it; return the path."""
    return _write(path, {name: getattr(player, name) for name in _STATE_NAMES})


def restore_player(player: Player, path: str | PathLike[str]) -> None:
    """Set a new player to a saved state; delete the file's ticket, which permits one load."""
    state, ticket = _read(path)
    for name, what in _EQUAL_FIELDS.items():
        there, here = state[name], getattr(player, name)
        if not _equal(there, here):
            raise InputError(
                f"Expected {short_path(text_of('path', path))} to be of this {what}, which is "
                f"{there} there and {here} here."
            )
    if state["_agent"].ledger != player._agent.ledger:
        raise InputError(f"Expected the promise of {player.config} in its state, got another.")
    try:
        ticket.unlink()  # of several processes only one succeeds
    except FileNotFoundError:
        raise _used(path) from None
    vars(player).update(state)


def _program() -> dict[str, str]:
    return {name: provenance()[name] for name in PROGRAM}


def _ticket(name: str) -> Path:
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(home).expanduser() / "dpbandit" / "saved" / name


def _write(path: str | PathLike[str], state: dict[str, Any]) -> str:
    """Write a pickle of `state` with metadata, and its hash as a ticket; return the path."""
    where, name = text_of("path", path), secrets.token_hex(16)
    facts = {"what": _FILE_KIND, "format": _FORMAT_VERSION, "program": _program(), "ticket": name}
    try:
        text = json.dumps(facts).encode() + b"\n" + pickle.dumps(state)
    except Exception as error:  # a user's own agent may raise anything
        raise InputError(f"Expected an agent that can be pickled, got: {error}.") from error
    ticket = _ticket(name)
    try:
        ticket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        ticket.write_text(sha256(text).hexdigest())
    except OSError as error:
        raise InputError(f"Cannot leave a ticket in {ticket.parent}: {error.strerror}.") from error

    write_atomically(Path(where), lambda partial: partial.write_bytes(text), mode=0o600)
    return where


def _read(path: str | PathLike[str]) -> tuple[dict[str, Any], Path]:
    """Read a state that `_write` wrote; return it, and the path of its ticket (the file's hash)."""
    where = text_of("path", path)
    check_readable(where)
    text = Path(where).read_bytes()
    head, _, pickled = text.partition(b"\n")
    try:
        facts = json.loads(head)
        name = facts["ticket"]
        if facts["what"] != _FILE_KIND or not name.isalnum():
            raise ValueError("it is something else")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"Expected a state in {short_path(where)}, got none: {error}.") from error
    ticket = _ticket(name)
    if not ticket.exists():
        raise _used(where)
    if ticket.read_text() != sha256(text).hexdigest():
        raise InputError(
            f"Expected a state in {short_path(where)} as it was saved: it was changed."
        )
    if facts["format"] != _FORMAT_VERSION:
        versions = f"which is {facts['format']} there and {_FORMAT_VERSION} here"
        raise InputError(f"Expected {short_path(where)} to be of this format, {versions}.")
    if facts["program"] != _program():
        raise InputError(f"Expected {short_path(where)} to be of this program.")
    try:
        return pickle.loads(pickled), ticket
    except Exception as error:  # a user's own agent may raise anything
        raise InputError(f"Expected a state in {short_path(where)}, got: {error}.") from error


def _equal(there: Any, here: Any) -> bool:
    """Return True if settings are equal, also 1 and 1.0; arrays have to be the same bytes."""
    try:
        return pickle.dumps(there) == pickle.dumps(here) or bool(there == here)
    except ValueError:  # arrays that differ
        return False


def _used(path: str | PathLike[str]) -> InputError:
    return InputError(
        f"Expected a state with a ticket in {_ticket('')}, {short_path(text_of('path', path))} was "
        "loaded before, or saved by somebody else: the same noise on other users' data is covered "
        "by no certificate."
    )
