"""setuptools, but that an editable install is seen by type checkers and editors, too.

Its strict mode puts a tree of links, one for each file, on the path, where files that are new are
missing. Here they are links to folders: only a new module in dpbandit/ itself wants another
`pip install -e`. Where there are no links, as on some Windows machines, it is left as it is.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from linktree import link
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403


def build_editable(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """The hook of PEP 660."""
    strict = {**(config_settings or {}), "editable_mode": "strict"}
    wheel = build_meta.build_editable(wheel_directory, strict, metadata_directory)
    with ZipFile(Path(wheel_directory, wheel)) as file, suppress(OSError):
        (pth,) = (name for name in file.namelist() if name.endswith(".pth"))
        link(Path(file.read(pth).decode().strip()) / "dpbandit")
    return wheel
