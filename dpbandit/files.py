"""Files that are never half: plain JSON, atomic writing."""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from dpbandit.inputs import BadInput


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


def check_writable(path: Path) -> None:
    """Raise `BadInput` unless a file can be written at `path`: better asked before the work."""
    if path.is_dir():
        raise BadInput(f"Cannot write {path}: it is a folder.")
    probe = path.parent / f".{path.name}.{os.getpid()}.probe"
    try:
        write_atomically(probe, lambda partial: partial.touch())
        probe.unlink()
    except BadInput as mistake:
        raise BadInput(str(mistake).replace(str(probe), str(path))) from None


def write_atomically(path: Path, write: Callable[..., Any]) -> Path:
    """Let `write` fill a temporary file beside `path`, then rename it: never half a file."""
    partial = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(partial)
        partial.replace(path)
    except OSError as error:
        raise BadInput(f"Cannot write {path}: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return path
