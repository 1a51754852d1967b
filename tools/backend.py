"""Build backend: setuptools, with editable installs that type checkers and editors can follow.

The strict mode of setuptools puts a tree of links on the path, one for each file; new files are
missing from it. This backend links folders: only a new module in dpbandit/ itself needs another
`pip install -e`. If links cannot be made, as on some Windows machines, setuptools' tree is used.
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
    """Build an editable wheel (a hook of PEP 660), and link its folders in place of its files."""
    strict = {**(config_settings or {}), "editable_mode": "strict"}
    wheel = build_meta.build_editable(wheel_directory, strict, metadata_directory)
    with ZipFile(Path(wheel_directory, wheel)) as file, suppress(OSError):
        (pth,) = (name for name in file.namelist() if name.endswith(".pth"))
        link(Path(file.read(pth).decode().strip()) / "dpbandit")
    return wheel
