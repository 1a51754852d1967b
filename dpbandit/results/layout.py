"""The folder of a sweep: where its files are, and the number of their format."""

from pathlib import Path

from dpbandit.base.files import check_writable
from dpbandit.base.inputs import InputError

FORMAT = 1
"""Of all that is said here and in sweep.json; files without a number are older, and of this one."""


def plan_file(folder: Path) -> Path:
    """What the sweep asks for, as it was run last."""
    return folder / "sweep.json"


def block_file(folder: Path, key: str, first: int, last: int) -> Path:
    """Replicas `first` to `last` of the configuration with this key."""
    return folder / "blocks" / f"{key}-{first:06d}-{last:06d}.parquet"


def audit_file(folder: Path, key: str) -> Path:
    """The audit with this key."""
    return folder / "audits" / f"{key}.json"


def block_files(folder: Path) -> list[Path]:
    """The blocks that are there; what a killed process left half-written begins with a dot."""
    files = sorted(block_file(folder, "any", 0, 0).parent.glob("*.parquet"))
    return [file for file in files if not file.name.startswith(".")]


def key_of(block: Path) -> str:
    """The key in a block's name, or whatever stands in its place."""
    return block.name.partition("-")[0]


def stored(folder: Path) -> list[Path]:
    """The runs of a sweep or of `Results.save`; folders below it are somebody else's."""
    if plan_file(folder).is_file():
        return block_files(folder)
    return list(folder.glob("*.parquet"))


def check_places(folder: Path, *, audits: bool) -> None:
    """Raise `InputError` unless blocks, and audits if there are any, can be written."""
    check_writable(block_file(folder, "any", 0, 0))
    if audits:
        check_writable(audit_file(folder, "any"))


def check_format(file: Path, number: object) -> None:
    """Raise `InputError` unless sweep.json is of the format that this program knows."""
    if number != FORMAT:
        raise InputError(
            f"Expected {file} in format={FORMAT}, which this program knows, got format={number!r}: "
            "read it with the program that wrote it, or choose another folder."
        )
