"""Atomic writing of files and folders, JSON, tables of notebooks, provenance of numbers."""

import ctypes
import json
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import EISDIR, ENOTDIR, ESPIPE
from functools import cache
from hashlib import sha256
from html import escape
from importlib import import_module
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_info

from dpbandit.base.inputs import InputError, abbrev
from dpbandit.version import VERSION

try:
    import fcntl
except ImportError:  # Windows has none: temporary files of killed processes stay there
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import pandas as pd

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""First letters of a cell that spreadsheets evaluate as a formula."""
_MAX_JSON_LEVELS = 50
"""Largest depth of nested lists and objects in a JSON file that is read."""
_Made = TypeVar("_Made")
_NEW, _OLD, _PUT = "new", "old", "put"
"""Endings of names of temporary folders. One is "new" while it is filled, "old" when it is complete
and about to be exchanged with the target, "put" while its files are moved into the target."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux
_PARTIAL = re.compile(r"\.[0-9a-f]{16}\.\d+(\..{0,8})?")
"""Pattern of the names of the temporary files of `write_atomically`"""


def plain(value: Any) -> Any:
    """Convert a value to types that JSON can hold; infinity becomes "inf", NaN null."""
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
    """Write a document as plain JSON, atomically; return the path."""
    text = json.dumps(plain(document), indent=2, allow_nan=False, default=repr) + "\n"
    return write_atomically(path, lambda partial: partial.write_text(text))


def write_csv(path: Path, table: "pd.DataFrame") -> Path:
    """Write a table as CSV, atomically; put a ' before text that spreadsheets run as a formula."""
    safe = table.rename(columns=_defused)
    for name in safe.select_dtypes(exclude="number"):
        safe[name] = safe[name].map(_defused)
    return write_atomically(path, lambda partial: safe.to_csv(partial, index=False))


def _defused(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) else cell


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text; raise `ValueError` if it is malformed or nested deeper than 50 levels."""
    try:
        value = json.loads(text)
    except RecursionError:
        value = None
    else:
        if _levels_within(value, _MAX_JSON_LEVELS):
            return value
    raise ValueError(f"more than {_MAX_JSON_LEVELS} levels")


def _levels_within(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]
    return not level


def text_of(name: str, path: Any) -> str:
    """Return a path as text; raise `InputError` if it is neither text nor a path."""
    if isinstance(path, str | os.PathLike) and isinstance(text := os.fspath(path), str):
        return text
    raise InputError(f"Expected {name}={abbrev(path)} to be a path, such as 'results'.")


def read_text(path: str | os.PathLike[str], *, errors: str = "strict", called: str = "{}") -> str:
    """Read a text file in UTF-8, with or without a byte order mark.

    Error messages name the file by the text `called`, in which {} stands for its path.

    Raises:
        InputError: the file does not exist or cannot be read, see `check_readable`.
        UnicodeDecodeError: its bytes are no UTF-8, unless `errors` says how to decode them.
    """
    check_readable(path, called=called)
    with in_one_sentence("read", path, OSError, called=called):
        return Path(path).read_text(encoding="utf-8-sig", errors=errors)


def check_readable(path: str | os.PathLike[str], *, called: str = "{}") -> None:
    """Raise `InputError` unless `path` is an existing file (reading a pipe may hang)."""
    with in_one_sentence("read", path, called=called):
        _check_kind(path)


def is_there(path: str | os.PathLike[str]) -> bool:
    """Return True if `path` exists; raise `InputError` if the system cannot tell."""
    with in_one_sentence("read", path), suppress(FileNotFoundError, NotADirectoryError):
        os.stat(path)
        return True
    return False


def check_writable(*paths: Path | None) -> None:
    """Raise `InputError` unless each path can be written and no two are the same file.

    Temporary files that killed processes left beside the targets are removed.
    """
    taken = set[str]()
    for path in (path for path in paths if path is not None):
        write_atomically(path, lambda partial: partial.touch(), keep=False)
        target = os.path.realpath(path)
        if target in taken:
            raise InputError(
                f"Expected a file of its own for each option, got {short_path(path)} twice."
            )
        taken.add(target)
        remove_leftovers(Path(target).parent, unique_name(target))


def write_atomically(
    path: Path, write: Callable[..., Any], *, keep: bool = True, mode: int = 0o666
) -> Path:
    """Let `write` fill a temporary file beside `path`, then rename it: no reader sees half a file.

    Links are followed; pipes and devices are not replaced. With keep=False the temporary file is
    deleted instead. `mode` is the permission of the new file, less the umask. Returns the path.
    """
    target = _target(path)
    partial = target.with_name(f"{unique_name(target)}.{os.getpid()}{path.suffix[:9]}")
    try:
        with in_one_sentence("write", path, OSError), claimed(partial, mode):
            write(partial)
            if keep:
                partial.replace(target)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return path


def unique_name(target: str | os.PathLike[str]) -> str:
    """Return a short hash with which a file's temporary names begin; systems refuse long names."""
    return f".{sha256(os.fsencode(target)).hexdigest()[:16]}"


@contextmanager
def claimed(partial: Path, mode: int = 0o666) -> Iterator[None]:
    """Lock a temporary file (created if missing) or folder to show that its writer is alive."""
    held = None
    while held is None and fcntl is not None:
        flags = os.O_RDONLY if partial.is_dir() else os.O_RDWR | os.O_CREAT
        held = os.open(partial, flags, mode)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(held, fcntl.LOCK_EX)
        there = os.path.exists(partial) and os.path.samestat(os.fstat(held), os.stat(partial))
        if not there:  # another process deleted it as a leftover before it was locked
            os.close(held)
            held = None
    try:
        yield
    finally:
        if held is not None:
            os.close(held)


def is_left_over(partial: Path) -> bool:
    """Return True if the writer of a temporary file or folder has died; False if unknown."""
    try:
        held = os.open(partial, os.O_RDONLY)
    except OSError:
        return False
    try:
        if fcntl is None:
            return False
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(held)


def remove_leftovers(folder: Path, begin: str = "") -> None:
    """Delete the temporary files of killed processes whose names start with `begin`."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            ours = entry.name.startswith(begin) and _PARTIAL.fullmatch(entry.name)
            if ours and entry.is_file(follow_symlinks=False) and is_left_over(Path(entry.path)):
                os.unlink(entry.path)


def write_folder(folder: Path, write: Callable[[Path], _Made]) -> _Made:
    """Let `write` fill an empty folder, put it in place of `folder`, return the result of `write`.

    The new folder is filled beside the old one. Linux exchanges the two in one step, so a killed
    process leaves either the old files or the new ones, never a mixture. On other systems, and
    where `folder` cannot be moved (the current folder, a mount, a parent without write permission),
    old files are removed and new ones moved in. Files of other names in `folder` stay; links are
    followed. Unfinished work of a killed process is finished or removed first.
    """
    with in_one_sentence("write", folder):
        target = Path(os.path.realpath(folder))
        if os.path.lexists(target) and not target.is_dir():
            raise NotADirectoryError(ENOTDIR, "it is no folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        tidy_folder(target)
        beside = target.parent if _is_movable(target) else target
        place = beside / f"{unique_name(target)}.{os.getpid()}.{_NEW}"
        place.mkdir()
    try:
        with claimed(place):
            made = write(place)
            with in_one_sentence("write", folder):
                _put(place, target)
    except InputError as mistake:  # the user should read the folder's name, not the temporary one
        raise InputError(str(mistake).replace(str(place), str(folder))) from mistake
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return made


def tidy_folder(folder: Path) -> None:
    """Finish or remove temporary folders that killed writers of `folder` left behind."""
    target = Path(os.path.realpath(folder))
    for place in (target.parent, target):
        for left in place.glob(f"{unique_name(target)}.*"):
            ending = left.suffix[1:]
            if ending not in (_NEW, _OLD, _PUT) or not is_left_over(left):
                continue
            if ending == _NEW:
                shutil.rmtree(left, ignore_errors=True)
            elif target.is_dir():  # otherwise a user moved it away, and may need these files
                _merge(left, target, newer=ending == _PUT)


def _is_movable(target: Path) -> bool:
    """Return True if a folder can be renamed: no mount, not in use here, in a writable parent."""
    used = Path.cwd()
    free = target not in (used, *used.parents) and not os.path.ismount(target)
    return free and os.access(target.parent, os.W_OK | os.X_OK)


def _put(place: Path, target: Path) -> None:
    if place.parent != target:
        if target.is_dir():
            shutil.copymode(target, place)
        with suppress(OSError):  # the target is not empty
            place.rename(target)
            return
        whole = place.rename(place.with_suffix(f".{_OLD}"))
        if _exchange(whole, target):
            _merge(whole, target, newer=False)
            return
        place = whole
    _merge(place.rename(place.with_suffix(f".{_PUT}")), target, newer=True)


def _merge(source: Path, target: Path, *, newer: bool) -> None:
    """Move the files of `source` into `target`; of two equal names the newer folder's file stays.

    `newer` says that `source` is the newer folder. Safe if two processes merge at the same time.
    """
    entries = list(source.iterdir())
    for entry in entries:
        doomed = target / entry.name if newer else entry
        if os.path.lexists(target / entry.name):
            if doomed.is_dir() and not doomed.is_symlink():
                shutil.rmtree(doomed, ignore_errors=True)
            else:
                doomed.unlink(missing_ok=True)
    for entry in entries:
        with suppress(FileNotFoundError):  # removed above
            entry.rename(target / entry.name)
    with suppress(FileNotFoundError):
        source.rmdir()


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return False if the system cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or an old one
        return False
    names = os.fsencode(one), os.fsencode(other)
    failed: int = rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)
    return failed == 0


def _target(path: Path) -> Path:
    """Resolve the links of a path to be written, and create its folder."""
    with in_one_sentence("write", path):
        os.fspath(path).encode()  # pyarrow and HTML pages need names that are valid text
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            _check_kind(path)
        return Path(os.path.realpath(path))


def short_path(path: str | os.PathLike[str]) -> str:
    """Return a path for a message, without the middle if it has more than 200 letters."""
    text = os.fspath(path)
    return text if len(text) <= 200 else f"{text[:80]}...{text[-80:]}"


@contextmanager
def in_one_sentence(
    what: str, path: str | os.PathLike[str], kinds: Any = (OSError, ValueError), called: str = "{}"
) -> Iterator[None]:
    """In a `with` block, convert the system's errors about `path` to an `InputError`."""
    try:
        yield
    except kinds as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"Cannot {what} {called.format(short_path(path))}: {why}.") from error


def _check_kind(path: str | os.PathLike[str]) -> None:
    mode = os.stat(path).st_mode
    if S_ISDIR(mode):
        raise IsADirectoryError(EISDIR, "it is a folder")
    if not S_ISREG(mode):
        raise OSError(ESPIPE, "it is a pipe or a device, not a file")


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return an HTML table with a head, rows of escaped text and an optional caption.

    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    top = f"<caption>{escape(caption)}</caption>" if caption else ""
    heading = _row("th", head)
    body = "".join(_row("td", row) for row in rows)
    return f"<table>{top}<thead>{heading}</thead><tbody>{body}</tbody></table>"


def html_lines(text: str) -> str:
    """Return lines `word  explanation` as an HTML table of two columns."""
    rows = [_row("td", line.strip().split("  ", 1)) for line in text.splitlines()]
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def _row(cell: str, texts: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{cell}>{escape(text.strip())}</{cell}>" for text in texts) + "</tr>"


PROGRAM = ("dpbandit", "source", "numpy", "scipy")
"""Keys of a provenance whose values (versions, code hash) can change a run's numbers."""
_HASHED_SUFFIXES = (".py", ".csv", ".gz", ".json", ".parquet", ".toml")
"""Suffixes of files of code and data that enter `source_digest`."""
# libraries whose versions a provenance records
_LIBRARIES = ("numpy", "scipy", "gymnasium", "pandas", "pyarrow", "dp-accounting")


@cache
def source_digest() -> str:
    """Return a hash of the package's code and data; another hash may mean other numbers."""
    packages = ("dpbandit", "dpbandit.agents", "dpbandit.envs")
    files = [Path(import_module(name).__file__ or "").resolve() for name in packages]  # no links
    return digest_of([file.parent for file in files])


def digest_of(folders: Iterable[Path]) -> str:
    """Return a hash of the names and contents of all files in `folders` that may change results.

    Left out are pages and their style, the suite's list of problems and shipped results, and
    hidden files.
    """
    digest = sha256()
    for folder in folders:
        for file in sorted(folder.rglob("*")):
            name = file.relative_to(folder).as_posix()
            listed = file.parent == folder / "suite" and file.suffix != ".py"
            hidden = f"/{name}".count("/.")
            if file.suffix in _HASHED_SUFFIXES and not listed and not hidden and file.is_file():
                digest.update(name.encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _cpu() -> str:
    """Return the processor type, as the names of the kernels that NumPy and BLAS chose for it."""
    found = {library.get("architecture", "") for library in threadpool_info()}
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    return " ".join([platform.machine(), *sorted(found - {""}), *simd.get("found", [])[-1:]])


def cpu_of(made_with: Mapping[str, str]) -> str:
    """Return the CPU type in a provenance; older stores recorded only the platform."""
    return made_with.get("cpu", made_with.get("platform", "unknown"))


@cache
def provenance() -> Mapping[str, str]:
    """Return versions, code hash, Python, platform and CPU of this process, for result files."""
    return {
        "dpbandit": VERSION,
        "source": source_digest(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        **{library: version(library) for library in _LIBRARIES},
    }
