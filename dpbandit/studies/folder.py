"""A sweep's folder: which replicas of which configuration it holds, and what is wrong with it."""

import warnings
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from dpbandit.base.files import PROGRAM, cpu_of, provenance
from dpbandit.base.inputs import InputError
from dpbandit.base.progress import Progress
from dpbandit.results.runs import AgentRun
from dpbandit.results.store import (
    CorruptFileError,
    ForeignFileError,
    block_file,
    block_files,
    key_of,
    plan_file,
    read_runs,
    write_runs,
)
from dpbandit.studies.configuration import Configuration


@dataclass
class Found:
    """What of a sweep lies in its folder."""

    replicas: dict[str, set[int]] = field(default_factory=dict)
    """key of a configuration -> numbers of the replicas that are done"""
    corrupt: list[Path] = field(default_factory=list)
    """moved aside, under a name that ends in .corrupt"""
    foreign: list[Path] = field(default_factory=list)
    """not of this sweep; neither read nor changed"""
    files: list[Path] = field(default_factory=list)
    """of this sweep and whole; there before, or written now"""

    cpus: set[str] = field(default_factory=set)
    """types of CPU that blocks were made on"""

    def met(self, cpu: str) -> None:
        """Warn where a second type of CPU turns up."""
        if self.cpus and cpu not in self.cpus:
            warnings.warn(
                f"Blocks are made on {' and '.join(sorted(self.cpus))} and on {cpu}: between types "
                "of CPU numbers may differ in their last bits.",
                stacklevel=3,
            )
        self.cpus.add(cpu)

    def missing(self, configuration: Configuration, replicas: int) -> list[int]:
        """The replicas that are still to be run."""
        done = self.replicas.get(configuration.key, set())
        return [r for r in range(replicas) if r not in done]

    def check_folder(self, folder: Path) -> None:
        """Raise `InputError` where the folder has disappeared: writing would make an empty one."""
        if not plan_file(folder).exists():
            self.check_files(folder)
            raise InputError(f"Expected {folder} to stay: it disappeared. Go on with --resume.")

    def check_files(self, folder: Path) -> None:
        """Raise `InputError` where a file that was there is gone."""
        left = sum(file.exists() for file in self.files)
        if left < len(self.files):
            raise InputError(
                f"Expected {folder} to keep what is written: {left} of {len(self.files)} files "
                "are left. Go on with --resume."
            )


def survey(folder: Path, keys: Collection[str], *, progress: bool) -> Found:
    """Read and verify every block of these configurations below `folder`. Nothing is deleted.

    Raises:
        InputError: a block of this sweep was made by another program, whose numbers may differ.
    """
    found, files = Found(), block_files(folder)
    with Progress(len(files), shown=progress) as bar:
        bar.working_on("verifying", rate=1)
        for file in files:
            _look_at(file, keys, found)
            bar.advance(1)
    return found


def _look_at(file: Path, keys: Collection[str], found: Found) -> None:
    key = key_of(file)
    if key not in keys:
        found.foreign.append(file)
        return
    try:
        runs = read_runs(file)
    except (CorruptFileError, ForeignFileError):
        runs = []
    if [run.key for run in runs] != [key]:
        found.corrupt.append(moved_aside(file))
        return
    check_program(runs[0], file)
    found.files.append(file)
    found.met(cpu_of(runs[0].provenance))
    found.replicas.setdefault(key, set()).update(runs[0].replicas.tolist())


def check_program(run: AgentRun, source: Path | str) -> None:
    """Raise `InputError` unless a run was made by this program: others may draw other numbers."""
    ours = provenance()
    for part in PROGRAM:
        if run.provenance[part] != ours[part]:
            raise InputError(
                f"Expected {source} to be made with {part} {ours[part]}, as this program is, got "
                f"{run.provenance[part]}: choose another --out, or run that program again."
            )


def write_block(folder: Path, run: AgentRun) -> Path:
    """One block of replicas, under its own name."""
    first, last = int(run.replicas[0]), int(run.replicas[-1])
    return write_runs(block_file(folder, run.key, first, last), [run])


def moved_aside(file: Path) -> Path:
    """The file under a new name, which ends in .corrupt."""
    aside = file.with_name(f"{file.name}.corrupt")
    number = 1
    while aside.exists():
        number += 1
        aside = file.with_name(f"{file.name}.{number}.corrupt")
    return file.rename(aside)
