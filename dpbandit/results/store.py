"""Runs as parquet files: a tidy table that anything reads, and every fact about it inside.

Columns are those of `Results.frame`; the metadata under "dpbandit" is JSON: for every run its
problem, config, certificate, seconds and provenance, and one hash over all numbers and facts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandit.base.fields import made
from dpbandit.base.files import check_readable, parse_json, write_atomically
from dpbandit.base.inputs import InputError, whole
from dpbandit.privacy.certificate import certificate_from_dict
from dpbandit.results.marks import log_marks
from dpbandit.results.runs import AgentRun, Setup

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_KEY = b"dpbandit"
_FORMAT = 1
_NUMBERS = ("replica", "round", "regret", "reward", "switches")
_LARGEST = 1e60
"""More than a billion rounds can bring at the largest range of rewards"""
_WORDS = ("problem", "environment", "horizon", "seed", "agent", "epsilon", "delta", "config")


class ForeignFileError(InputError):
    """A parquet file, but none that dpbandit wrote."""


class CorruptFileError(InputError):
    """Not a whole file, or not the numbers that were written."""


def write_runs(path: Path, runs: Sequence[AgentRun]) -> Path:
    """Write runs, or pieces of them, into one parquet file; atomically."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pandas(frame_of(runs), preserve_index=False)
    facts = json.dumps([_facts(run) for run in runs], default=_plainly)
    document = {"format": _FORMAT, "runs": facts, "hash": _hash(table, facts)}
    table = table.replace_schema_metadata({_KEY: json.dumps(document)})
    return write_atomically(path, lambda partial: parquet.write_table(table, partial))


def read_runs(path: Path) -> list[AgentRun]:
    """The runs in a file that `write_runs` wrote, with every hash verified.

    Raises:
        ForeignFileError: a parquet file of somebody else, or of another format.
        CorruptFileError: not parquet, or not what was written.
        InputError: there is no such file, or it may not be read.
    """
    import pyarrow as pa
    from pyarrow import parquet

    check_readable(path)
    try:
        table = parquet.read_table(path, partitioning=None)
    except PermissionError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from None
    except (OSError, pa.ArrowException) as error:
        raise CorruptFileError(
            f"Cannot read {path} as parquet: {str(error).splitlines()[0]}"
        ) from None
    try:
        document = parse_json((table.schema.metadata or {}).get(_KEY, b"{}"))
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise ForeignFileError(f"Expected {path} to hold runs of dpbandit in format {_FORMAT}.")
        if document["hash"] != _hash(table, document["runs"]):
            raise CorruptFileError(
                f"Expected {path} to hold the numbers that were written: they differ."
            )
        runs = _runs(table, [made(_Facts, facts) for facts in parse_json(document["runs"])])
        frame, told = frame_of(runs), table.to_pandas()
        if not all(np.array_equal(told[name], frame[name]) for name in _WORDS):
            raise CorruptFileError(
                f"Expected {path} to name what was run: its columns say otherwise."
            )
    except (ForeignFileError, CorruptFileError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise CorruptFileError(f"Expected {path} to hold whole runs: {why.rstrip('.')}.") from None
    return runs


@dataclass(frozen=True)
class _Facts:
    """What the metadata say of a run."""

    setup: Setup
    name: str
    config: Mapping[str, Any]
    certificate: Mapping[str, Any]
    shape: tuple[int, int]
    """(marks, replicas)"""
    seconds: float
    provenance: Mapping[str, str]
    clipped: Any = None
    """by replica, which older files do not say"""
    measures: Mapping[str, Any] = field(default_factory=dict)
    """name -> a number for each replica"""


def _runs(table: "pa.Table", every: Sequence[_Facts]) -> list[AgentRun]:
    columns = {name: table[name].to_numpy() for name in _NUMBERS}
    runs, start = list[AgentRun](), 0
    for facts in every:
        size = facts.shape[0] * facts.shape[1]
        part = {name: values[start : start + size] for name, values in columns.items()}
        runs.append(_run(facts, {name: part[name].reshape(facts.shape) for name in part}))
        start += size
    if not runs or start < len(table):
        raise ValueError("rows without facts")
    return runs


def frame_of(runs: Sequence[AgentRun]) -> "pd.DataFrame":
    """One row for each run, mark and replica; see `Results.frame` for the columns."""
    import pandas as pd

    sizes = np.array([run.regret.size for run in runs], np.int64)

    def words(values: list[str]) -> Any:
        names = list(dict.fromkeys(values))
        codes = np.repeat(np.array([names.index(value) for value in values], np.int64), sizes)
        return pd.Categorical.from_codes(codes, categories=pd.Index(names))

    def numbers(values: list[Any]) -> Any:
        return np.repeat(np.array(values), sizes)

    def stacked(tables: list[Any], kind: type = np.int64) -> Any:
        return np.concatenate([np.empty(0, kind), *(table.ravel() for table in tables)])

    return pd.DataFrame(
        {
            "problem": words([run.setup.problem for run in runs]),
            "environment": words([run.setup.environment for run in runs]),
            "horizon": numbers([run.setup.horizon for run in runs]),
            "seed": numbers([run.setup.seed for run in runs]),
            "agent": words([run.name for run in runs]),
            "epsilon": numbers([run.certificate.claimed_epsilon for run in runs]),
            "delta": numbers([run.certificate.claimed_delta for run in runs]),
            "replica": stacked([np.tile(run.replicas, len(run.marks)) for run in runs]),
            "round": stacked([np.repeat(run.marks, len(run.replicas)) for run in runs]),
            "regret": stacked([run.regret for run in runs], np.float64),
            "reward": stacked([run.reward for run in runs], np.float64),
            "switches": stacked([run.switches for run in runs]),
            "config": words([run.key for run in runs]),
        }
    )


def _facts(run: AgentRun) -> dict[str, Any]:
    return {
        "setup": vars(run.setup),
        "name": run.name,
        "config": run.config,
        "certificate": run.certificate.as_dict(),
        "shape": run.regret.shape,
        "clipped": run.clipped.tolist(),
        "measures": {name: values.tolist() for name, values in run.measures.items()},
        "seconds": run.seconds,
        "provenance": run.provenance,
    }


def _plainly(value: Any) -> Any:
    """What JSON does not know: NumPy's numbers as Python's, anything else in words."""
    return value.item() if isinstance(value, np.generic) else repr(value)


def _run(facts: _Facts, tables: Mapping[str, Any]) -> AgentRun:
    """The run, if its numbers can be those of one."""
    marks, R = log_marks(facts.setup.horizon), facts.shape[1]
    marks = marks[-1:] if facts.shape[0] == 1 else marks  # the last round alone may be logged
    _refuse("replicas at the rounds of its horizon", R and facts.shape[0] == len(marks))
    clipped = [nan] * R if facts.clipped is None else facts.clipped
    run = AgentRun(
        setup=facts.setup,
        name=facts.name,
        config=facts.config,
        certificate=certificate_from_dict(dict(facts.certificate)),
        marks=marks,
        replicas=tables["replica"][0],
        regret=tables["regret"],
        reward=tables["reward"],
        switches=tables["switches"],
        clipped=np.array(clipped, np.float64).reshape(R),
        seconds=facts.seconds,
        provenance=facts.provenance,
        measures={
            name: np.array(values, np.float64).reshape(R) for name, values in facts.measures.items()
        },
    )
    whole("seed", run.setup.seed, 0, 2**32 - 1)
    for name in ("replica", "round", "switches"):
        _refuse(f"{name} >= 0", tables[name].dtype.kind in "iu" and (tables[name] >= 0).all())
    for name in ("regret", "reward"):
        fits = tables[name].dtype.kind == "f" and (np.abs(tables[name]) <= _LARGEST).all()
        _refuse(f"finite {name}", fits)
    _refuse("the rounds of its horizon", (marks == tables["round"].T).all())
    _refuse("every replica once", (tables["replica"] == run.replicas).all())
    _refuse("every replica once", len(np.unique(run.replicas)) == R)
    _refuse("shares clipped", not ((run.clipped < 0) | (run.clipped > 1)).any())
    _refuse("finite seconds", run.seconds < inf)
    _refuse("names", run.name and run.setup.problem and isinstance(run.config["agent"], str))
    return run


def _refuse(what: str, fits: object) -> None:
    if not fits:
        raise ValueError(f"no {what}")


def _hash(table: "pa.Table", facts: str) -> str:
    """Of the numbers, bit for bit, and of the facts."""
    digest = sha256(facts.encode())
    for name in _NUMBERS:
        digest.update(table[name].to_numpy().tobytes())
    return digest.hexdigest()
