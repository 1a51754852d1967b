"""Folders that are one thing: all that was written together, or all that was there before."""

import ctypes
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from errno import ENOTDIR
from pathlib import Path
from typing import TypeVar

from dpbandit.base.files import claimed, in_one_sentence, is_left_over, unique_name
from dpbandit.base.inputs import InputError

_Made = TypeVar("_Made")
_NEW, _OLD, _PUT = "new", "old", "put"
"""Endings of temporary folders: being filled; whole, and to be or being swapped with the target;
whole, and being put into the target file by file"""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux


def write_folder(folder: Path, write: Callable[[Path], _Made]) -> _Made:
    """Let `write` fill an empty folder, put it in place of `folder`, and return what it returns.

    The new folder is filled beside the old one. Linux swaps the two in one step, so a process that
    is killed leaves the old files or the new ones, never some of each. Elsewhere, and where
    `folder` cannot be moved (it is the current one, a mount, or in a folder that may not be
    written), the old files are removed and the new ones moved in. What `folder` holds under other
    names stays, and links are followed. What a killed process left is finished or removed first.
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
    except InputError as mistake:  # in which the user finds no temporary name
        raise InputError(str(mistake).replace(str(place), str(folder))) from mistake
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return made


def tidy_folder(folder: Path) -> None:
    """Finish or remove what killed processes left of writing `folder`; not what others write."""
    target = Path(os.path.realpath(folder))
    for place in (target.parent, target):
        for left in place.glob(f"{unique_name(target)}.*"):
            ending = left.suffix[1:]
            if ending not in (_NEW, _OLD, _PUT) or not is_left_over(left):
                continue
            if ending == _NEW:
                shutil.rmtree(left, ignore_errors=True)
            elif target.is_dir():  # otherwise somebody took it away, and may want the rest
                _merge(left, target, newer=ending == _PUT)


def _is_movable(target: Path) -> bool:
    """Return whether a folder, which need not exist, can be renamed without anybody's notice."""
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
    """Move what is in `source` into `target`; of each name the file of the newer one is left.

    Two processes may do so at the same time.
    """
    entries = list(source.iterdir())
    for entry in entries:
        doomed = target / entry.name if newer else entry
        if os.path.lexists(target / entry.name):
            _remove(doomed)
    for entry in entries:
        with suppress(FileNotFoundError):  # removed above
            entry.rename(target / entry.name)
    with suppress(FileNotFoundError):
        source.rmdir()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step; returns whether the system can."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or an old one
        return False
    names = os.fsencode(one), os.fsencode(other)
    failed: int = rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)
    return failed == 0
