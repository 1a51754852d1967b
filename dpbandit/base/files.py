"""Files that are never half: plain JSON, atomic writing; and what is no file, in one sentence."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EISDIR, ESPIPE
from hashlib import sha256
from math import isfinite
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandit.base.inputs import InputError, shown

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes the rest of a cell for a formula after."""
_LEVELS = 50
"""Lists and objects in each other, at most, in a file that is read."""


def plain(value: Any) -> Any:
    """`value` with everything JSON cannot say said otherwise: infinities as "inf", NaN as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return None if value != value else str(value)
    return value


def write_json(path: Path, document: Any) -> Path:
    """Plain JSON, written atomically."""
    text = json.dumps(plain(document), indent=2, allow_nan=False, default=repr) + "\n"
    return write_atomically(path, lambda partial: partial.write_text(text))


def write_csv(path: Path, table: "pd.DataFrame") -> Path:
    """A table for spreadsheets, written atomically: text that would be a formula begins with '."""
    safe = table.rename(columns=_defused)
    for name in safe.select_dtypes(exclude="number"):
        safe[name] = safe[name].map(_defused)
    return write_atomically(path, lambda partial: safe.to_csv(partial, index=False))


def _defused(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; raises `ValueError` for none, or one of more than 50 levels."""
    try:
        value = json.loads(text)
    except RecursionError:
        value = None
    else:
        if _levels_within(value, _LEVELS):
            return value
    raise ValueError(f"more than {_LEVELS} levels")


def _levels_within(value: Any, most: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return most > 0 and all(_levels_within(item, most - 1) for item in inner)


def text_of(name: str, path: Any) -> str:
    """A path as text; `InputError` for what is none."""
    if isinstance(path, str | os.PathLike) and isinstance(text := os.fspath(path), str):
        return text
    raise InputError(f"Expected {name}={shown(path)} to be a path, such as 'results'.")


def read_text(path: str | os.PathLike[str], *, errors: str = "strict", called: str = "{}") -> str:
    """The text in a file, UTF-8 with or without a mark before it; `called` {} in sentences.

    Raises:
        InputError: there is no such file, or none that can be read, see `check_readable`.
        UnicodeDecodeError: its bytes are no text, unless `errors` says what to do.
    """
    check_readable(path, called=called)
    with _in_one_sentence("read", path, OSError, called=called):
        return Path(path).read_text(encoding="utf-8-sig", errors=errors)


def check_readable(path: str | os.PathLike[str], *, called: str = "{}") -> None:
    """Raise `InputError` unless a file is there, and neither a folder nor a pipe, which may
    hang."""
    with _in_one_sentence("read", path, called=called):
        _check_kind(path)


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether anything is at `path`; raises `InputError` where nothing can be."""
    with _in_one_sentence("read", path), suppress(FileNotFoundError, NotADirectoryError):
        os.stat(path)
        return True
    return False


def check_writable(*paths: Path | None) -> None:
    """Raise `InputError` unless each can be written, a file of its own: better asked at once."""
    taken = set[str]()
    for path in (path for path in paths if path is not None):
        write_atomically(path, lambda partial: partial.touch(), keep=False)
        target = os.path.realpath(path)
        if target in taken:
            raise InputError(
                f"Expected a file of its own for each option, got {named(path)} twice."
            )
        taken.add(target)


def write_atomically(path: Path, write: Callable[..., Any], *, keep: bool = True) -> Path:
    """Let `write` fill a temporary file beside `path`, then rename it: never half a file.

    Links are followed; pipes and devices are not replaced. Without `keep` nothing is renamed.
    """
    target = _target(path)
    unique = sha256(os.fsencode(target)).hexdigest()[:16]  # a name may be as long as can be
    partial = target.with_name(f".{unique}.{os.getpid()}{path.suffix[:9]}")
    try:
        with _in_one_sentence("write", path, OSError):
            write(partial)
            if keep:
                partial.replace(target)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return path


def _target(path: Path) -> Path:
    """Where a file at `path` really is or will be; its folder is made."""
    with _in_one_sentence("write", path):
        os.fspath(path).encode()  # neither pyarrow nor a page takes a name that is no text
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            _check_kind(path)
        return Path(os.path.realpath(path))


def named(path: str | os.PathLike[str]) -> str:
    """A path for a sentence, the middle of a very long one left out."""
    text = os.fspath(path)
    return text if len(text) <= 200 else f"{text[:80]}...{text[-80:]}"


@contextmanager
def _in_one_sentence(
    what: str, path: str | os.PathLike[str], kinds: Any = (OSError, ValueError), called: str = "{}"
) -> Iterator[None]:
    """One sentence in place of what the system says: names too long, a NUL in one, no space."""
    try:
        yield
    except kinds as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"Cannot {what} {called.format(named(path))}: {why}.") from error


def _check_kind(path: str | os.PathLike[str]) -> None:
    mode = os.stat(path).st_mode
    if S_ISDIR(mode):
        raise IsADirectoryError(EISDIR, "it is a folder")
    if not S_ISREG(mode):
        raise OSError(ESPIPE, "it is a pipe or a device, not a file")
