"""Storage of runs in parquet files, and of sweeps in folders with a plan and audits.

Columns are those of `Results.frame`, where a problem has the same label whatever the other runs in
the file are. The metadata under "dpbandit" is JSON: problem, config, claim, ledger, seconds and
provenance of every run, and one hash of all numbers and metadata. Certificates are recomputed from
ledgers when a file is read; those in files are not trusted.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from zlib import compress, decompressobj, error as ZipError

import numpy as np

from dpbandit.base import (
    AnyArray,
    InputError,
    as_declared,
    check_readable,
    check_writable,
    is_there,
    made,
    parse_json,
    read_text,
    remove_leftovers,
    whole,
    write_atomically,
)
from dpbandit.privacy.certificate import Certificate, certificate, ledger_as_dict, ledger_from_dict
from dpbandit.results.problems import Setup, labels
from dpbandit.results.runs import AgentRun, early_marks, log_marks, run_key

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_KEY = b"dpbandit"  # of our entry in a parquet file's metadata
_FORMAT, _FORMATS = 2, (1, 2)
"""Format that is written, and those that are read; in format 1 the ledger is in a certificate."""
_NUMBER_COLUMNS = ("replica", "round", "regret", "reward", "switches")  # which the hash covers
PACKED = 1000
"""Largest number of blocks (files with some replicas of a run) that one file, a pack, joins."""
UNPACKED = 100
"""Largest number of small blocks that remain single files when a sweep is resumed or finished."""
_MAX_SMALL_BYTES = 1 << 16
"""Largest size in bytes of a block that a pack may contain; larger metadata are compressed."""
_MAX_UNZIPPED_BYTES = PACKED * _MAX_SMALL_BYTES
"""Largest number of bytes of metadata that are compressed, or that a reader decompresses."""
_PACK = "pack"  # first word of the names of packs
_MAX_REGRET = 1e60
"""Bound on sums of regret in a valid file, more than 10^9 rounds of rewards up to 1e50 can give."""
# columns that have one value for each run
_FACT_COLUMNS = ("problem", "environment", "horizon", "seed", "agent", "epsilon", "delta", "config")
_NUMBER_FACTS = {"horizon": np.int64, "seed": np.int64, "epsilon": np.float64, "delta": np.float64}


class ForeignFileError(InputError):
    """A parquet file that dpbandit did not write."""


class CorruptFileError(InputError):
    """A file that is damaged, or was changed after it was written."""


def write_runs(path: Path, runs: Sequence[AgentRun]) -> Path:
    """Write runs, or blocks of their replicas, to one parquet file, atomically; return the path."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = {
        name: pa.DictionaryArray.from_arrays(part.codes, part.names)
        if isinstance(part, _Categories)
        else pa.array(part)
        for name, part in _columns(runs, [run.setup.problem for run in runs]).items()
    }
    table = pa.table(columns)
    facts = json.dumps([_facts(run) for run in runs], default=_plainly)
    packed = facts.encode()
    zips = _MAX_SMALL_BYTES <= len(packed) <= _MAX_UNZIPPED_BYTES
    metadata = {"zipped": b64encode(compress(packed)).decode()} if zips else {"runs": facts}
    document = {"format": _FORMAT, **metadata, "hash": _hash(table, facts)}
    table = table.replace_schema_metadata({_KEY: json.dumps(document)})
    return write_atomically(path, lambda partial: parquet.write_table(table, partial))


def read_runs(path: Path) -> list[AgentRun]:
    """Read the runs in a file of `write_runs`, and verify every hash.

    Raises:
        ForeignFileError: a parquet file that dpbandit did not write, or of an unknown format.
        CorruptFileError: the file is no parquet file, or its content was changed.
        InputError: the file does not exist or cannot be read.
    """
    import pyarrow as pa
    from pyarrow import parquet

    check_readable(path)
    try:
        with parquet.ParquetFile(path) as file:
            table = file.read(use_threads=False)
    except PermissionError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from None
    except (OSError, pa.ArrowException) as error:
        raise CorruptFileError(
            f"Cannot read {path} as parquet: {str(error).splitlines()[0]}"
        ) from None
    try:
        document = parse_json((table.schema.metadata or {}).get(_KEY, b"{}"))
        if not isinstance(document, dict) or document.get("format") not in _FORMATS:
            raise ForeignFileError(
                f"Expected {path} to hold runs of dpbandit in format 1 or {_FORMAT}."
            )
        facts = _unzipped(document["zipped"]) if "zipped" in document else document["runs"]
        if document["hash"] != _hash(table, facts):
            raise CorruptFileError(
                f"Expected {path} to hold the numbers that were written: they differ."
            )
        runs = _runs(table, [_read_facts(each) for each in parse_json(facts)])
        if not _columns_match(table, runs):
            raise CorruptFileError(
                f"Expected {path} to name what was run: its columns say otherwise."
            )
    except (ForeignFileError, CorruptFileError):
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ZipError,
        pa.ArrowException,
    ) as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise CorruptFileError(f"Expected {path} to hold whole runs: {why.rstrip('.')}.") from None
    return runs


@dataclass(frozen=True)
class _Facts:
    """Metadata of a run in a parquet file."""

    setup: Setup
    name: str
    config: Mapping[str, Any]
    ledger: Mapping[str, Any]
    claim: tuple[float, float]
    """claimed epsilon and delta, or those of the ledger if nothing is claimed"""
    shape: tuple[int, int]
    """numbers of logged rounds and of replicas"""
    seconds: float
    provenance: Mapping[str, str]
    clipped: Any = None
    """share of clipped rounds of each replica; None in older files"""
    measures: Mapping[str, Any] = field(default_factory=dict)
    """further measurements, name -> value of each replica"""


def _runs(table: "pa.Table", every: Sequence[_Facts]) -> list[AgentRun]:
    columns = {name: table[name].to_numpy() for name in _NUMBER_COLUMNS}
    runs, start = list[AgentRun](), 0
    for facts in every:
        size = facts.shape[0] * facts.shape[1]
        part = {name: values[start : start + size] for name, values in columns.items()}
        runs.append(_run(facts, {name: part[name].reshape(facts.shape) for name in part}))
        start += size
    if not runs or start < len(table):
        raise ValueError("rows without facts")
    return runs


class _Categories(NamedTuple):
    """A column of few distinct words, as an index into `names` for each row."""

    codes: AnyArray
    names: list[str]


def frame_of(runs: Sequence[AgentRun]) -> "pd.DataFrame":
    """Return a table by run, logged round and replica, with the columns of `Results.frame`."""
    import pandas as pd

    def column(part: Any) -> Any:
        if not isinstance(part, _Categories):
            return part
        return pd.Categorical.from_codes(part.codes, categories=pd.Index(part.names))

    names = labels(run.setup for run in runs)
    called = [names[run.place[0]] for run in runs]
    return pd.DataFrame({name: column(part) for name, part in _columns(runs, called).items()})


def _columns(runs: Sequence[AgentRun], called: Sequence[str]) -> dict[str, Any]:
    """Return the columns of `frame_of`; `called` are labels of the runs' problems."""
    sizes = [run.regret.size for run in runs]

    def repeated(name: str) -> Any:
        values = [row[name] for row in every]
        if kind := _NUMBER_FACTS.get(name):
            return np.repeat(np.array(values or np.empty(0, kind)), np.array(sizes, np.int64))
        place = {name: code for code, name in enumerate(dict.fromkeys(values))}
        codes = np.repeat(np.array([place[value] for value in values], np.int32), sizes)
        return _Categories(codes, list(place))

    def stacked(tables: list[Any], kind: type = np.int64) -> Any:
        return np.concatenate([np.empty(0, kind), *(table.ravel() for table in tables)])

    every = [{**_row_values(run), "problem": name} for run, name in zip(runs, called, strict=True)]
    facts = {name: repeated(name) for name in _FACT_COLUMNS}
    return {
        **{name: column for name, column in facts.items() if name != "config"},
        "replica": stacked([np.tile(run.replicas, len(run.marks)) for run in runs]),
        "round": stacked([np.repeat(run.marks, len(run.replicas)) for run in runs]),
        "regret": stacked([run.regret for run in runs], np.float64),
        "reward": stacked([run.reward for run in runs], np.float64),
        "switches": stacked([run.switches for run in runs]),
        "config": facts["config"],
    }


def _row_values(run: AgentRun) -> dict[str, Any]:
    """Return the values of the columns that are equal in all rows of a run."""
    return {
        "problem": run.setup.problem,
        "environment": run.setup.environment,
        "horizon": run.setup.horizon,
        "seed": run.setup.seed,
        "agent": run.name,
        "epsilon": run.certificate.claimed_epsilon,
        "delta": run.certificate.claimed_delta,
        "config": run.key,
    }


def _columns_match(table: "pa.Table", runs: Sequence[AgentRun]) -> bool:
    """Return True if the columns of each run's problem, agent and claim agree with its metadata."""
    sizes = [run.regret.size for run in runs]
    starts = np.cumsum([0, *sizes[:-1]])
    expected = [_row_values(run) for run in runs]
    for name in _FACT_COLUMNS:
        column = table[name].combine_chunks()
        if isinstance(expected[0][name], str):
            words = column.dictionary_encode()
            names, column = words.dictionary.to_pylist(), words.indices
            at_start = [names[code] for code in column.to_numpy()[starts]]
        else:
            at_start = column.to_numpy()[starts].tolist()
        values = column.to_numpy()
        alike = (values == np.repeat(values[starts], sizes)).all()
        if not alike or at_start != [values_of_run[name] for values_of_run in expected]:
            return False
    return True


def _unzipped(text: str) -> str:
    """Decompress the metadata of runs; raise `ValueError` if they are too long for one pack."""
    unpacking = decompressobj()
    text_bytes = unpacking.decompress(b64decode(text, validate=True), _MAX_UNZIPPED_BYTES)
    if unpacking.unconsumed_tail:
        raise ValueError("the facts of runs are too long")
    return text_bytes.decode()


def _read_facts(each: Any) -> "_Facts":
    setup = _setup(json.dumps(each["setup"]))
    if "certificate" in each:  # format 1
        proof = each.pop("certificate")
        if "ledger" not in proof:
            raise InputError("it has no ledger, only a certificate, which nothing confirms")
        claim = proof["claimed_epsilon"], proof["claimed_delta"]
        each |= {"ledger": proof["ledger"], "claim": claim}
    return made(_Facts, {**each, "setup": setup})


@lru_cache(PACKED)
def _setup(text: str) -> Setup:
    return made(Setup, json.loads(text))


@lru_cache(PACKED)
def _certificate(text: str) -> Certificate:
    """Compute the certificate of a stored ledger and claim, given as JSON."""
    ledger, (epsilon, delta) = json.loads(text)
    _refuse("claim", epsilon >= 0 and 0 <= delta <= 1)
    return certificate(ledger_from_dict(ledger), claim=(epsilon, delta), accountants=False)


def _facts(run: AgentRun) -> dict[str, Any]:
    return {
        "setup": run.setup.facts(),
        "name": run.name,
        "config": run.config,
        "ledger": ledger_as_dict(run.certificate.ledger),
        "claim": (run.certificate.claimed_epsilon, run.certificate.claimed_delta),
        "shape": run.regret.shape,
        "clipped": run.clipped.tolist(),
        "measures": {name: values.tolist() for name, values in run.measures.items()},
        "seconds": run.seconds,
        "provenance": run.provenance,
    }


def _plainly(value: Any) -> Any:
    """Convert a value unknown to JSON: a NumPy number to Python's, any other to its `repr`."""
    return value.item() if isinstance(value, np.generic) else repr(value)


def _run(facts: _Facts, tables: Mapping[str, Any]) -> AgentRun:
    """Build a run from stored metadata and columns; raise `ValueError` if values are invalid."""
    marks, R = log_marks(facts.setup.horizon), facts.shape[1]
    if facts.shape[0] < len(marks):  # logged at `early_marks`, or at the last round alone
        marks = early_marks(facts.setup.horizon) if facts.shape[0] == 2 else marks[-1:]
    _refuse("replicas at the rounds of its horizon", R and facts.shape[0] == len(marks))
    clipped = [nan] * R if facts.clipped is None else facts.clipped
    run = AgentRun(
        setup=facts.setup,
        name=facts.name,
        config=facts.config,
        certificate=_certificate(json.dumps((facts.ledger, facts.claim))),
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
        fits = tables[name].dtype.kind == "f" and (np.abs(tables[name]) <= _MAX_REGRET).all()
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
    """Return a hash of the number columns' bytes and of the metadata `facts`."""
    digest = sha256(facts.encode())
    for name in _NUMBER_COLUMNS:
        digest.update(table[name].to_numpy().tobytes())
    return digest.hexdigest()


FORMAT = 1
"""Version of the format of a sweep's folder, also of a sweep.json that states no version."""


def plan_file(folder: Path) -> Path:
    """Return the path of a sweep's plan, which lists configurations, replicas and audits."""
    return folder / "sweep.json"


def block_file(folder: Path, key: str, first: int, last: int) -> Path:
    """Return the path of the file with replicas `first` to `last` of the configuration `key`."""
    return folder / "blocks" / f"{key}-{first:06d}-{last:06d}.parquet"


def pack(files: Sequence[Path], *, rest: bool = False) -> list[Path]:
    """Join small blocks into packs of 1,000, delete the joined files, return the files that remain.

    A block is a file with some replicas of one run. With `rest`, the last blocks form a smaller
    pack if they are more than 100. A killed process may leave a block twice, but loses none.
    """
    blocks = [file for file in files if file.suffix == ".parquet" and not is_pack(file)]
    single = [file for file in blocks if file.stat().st_size <= _MAX_SMALL_BYTES]
    packs, packed = list[Path](), set[Path]()
    for first in range(0, len(single), PACKED):
        some = single[first : first + PACKED]
        if len(some) < PACKED and not (rest and len(some) > UNPACKED):
            break
        runs = [run for file in some for run in read_runs(file)]
        name = sha256("".join(file.name for file in some).encode()).hexdigest()[:16]
        packs.append(write_runs(some[0].with_name(f"{_PACK}-{name}.parquet"), runs))
        packed.update(some)
        for file in some:
            file.unlink()
    return [*(file for file in files if file not in packed), *packs]


def audit_file(folder: Path, key: str) -> Path:
    """Return the path of the audit with this key."""
    return folder / "audits" / f"{key}.json"


def block_files(folder: Path) -> list[Path]:
    """Return the blocks and packs in a sweep's folder, sorted by name."""
    files = sorted(block_file(folder, "any", 0, 0).parent.glob("*.parquet"))
    return [file for file in files if not file.name.startswith(".")]  # dots: half-written files


def is_pack(file: Path) -> bool:
    """Return True if a file is a pack, which joins blocks of several configurations."""
    return key_of(file) == _PACK


def key_of(block: Path) -> str:
    """Return the key of the configuration in a block's file name; "pack" for a pack of blocks."""
    return block.name.partition("-")[0]


def stored(folder: Path) -> list[Path]:
    """Return the parquet files in a folder that a sweep or `Results.save` wrote."""
    if plan_file(folder).is_file():
        return block_files(folder)
    return list(folder.glob("*.parquet"))


def check_places(folder: Path, *, audits: bool) -> None:
    """Raise `InputError` unless a sweep's plan, blocks and, with `audits`, audits can be written.

    Half-written files of killed sweeps are removed.
    """
    places = [block_file(folder, "any", 0, 0), *([audit_file(folder, "any")] if audits else [])]
    check_writable(plan_file(folder), *places)
    for place in places:
        remove_leftovers(place.parent)


def check_format(file: Path, number: object) -> None:
    """Raise `InputError` unless the format number in sweep.json is the one of this program."""
    if number != FORMAT:
        raise InputError(
            f"Expected {file} in format={FORMAT}, which this program knows, got format={number!r}: "
            "read it with the program that wrote it, or choose another folder."
        )


_HASH = re.compile(r"[0-9a-f]{16}")  # key of a run or an audit
T = TypeVar("T")  # class of a checked file's content


class Damaged(InputError):
    """Error about a file of a plan or an audit that was changed or damaged after it was written."""


@dataclass(frozen=True)
class Planned:
    """Configurations, replicas and audits of a sweep when it was last run, as in sweep.json."""

    name: str
    configurations: tuple[str, ...]
    """keys of the configurations, in the order of the sweep's file"""
    replicas: int
    """number of replicas of each configuration"""
    audits: tuple[str, ...]
    """keys of the audits"""
    format: Any = FORMAT

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 1)
        if not all(map(_HASH.fullmatch, self.configurations + self.audits)):
            raise ValueError("keys")  # keys become names of files, so they must be plain hashes

    def missing(self, begun: int, there: int) -> str:
        """Describe how many planned replicas and configurations are missing, "" if none is.

        `begun` is the number of configurations with stored replicas, `there` the number of all
        stored replicas.
        """
        wanted, lines = len(self.configurations), []
        if there < wanted * self.replicas:
            lines.append(f"{there:,} of {wanted * self.replicas:,} replicas are there")
        if begun < wanted:
            lines.append(f"{wanted - begun:,} of {wanted:,} configurations have none")
        return "; ".join(lines)


@dataclass(frozen=True, kw_only=True)
class AuditFile:
    """Content of a stored audit for reports: its measurements, or the reason for having none."""

    agent: str
    problem: str
    config: Mapping[str, Any]
    env_kwargs: Mapping[str, Any]
    not_audited: str | None = None
    claimed_epsilon: float | None = None
    delta: float | None = None
    certified_epsilon: float | None = None
    eps_lower: float | None = None
    runs: int | None = None
    failure: float | None = None
    flagged: bool | None = None
    verdict: str | None = None

    def __post_init__(self) -> None:
        whole("horizon", self.env_kwargs["horizon"], 1)
        if self.not_audited is None:
            measured = (self.claimed_epsilon, self.delta, self.certified_epsilon, self.eps_lower)
            if None in (*measured, self.runs, self.failure, self.flagged, self.verdict):
                raise ValueError("nothing was measured")
        else:
            for name in ("epsilon", "delta"):
                as_declared(float, self.config.get(name, 0), name)


def planned(folder: Path) -> Planned | None:
    """Read the plan of the sweep in `folder`; return None if there is no sweep.

    Raises:
        InputError: sweep.json is damaged, of an unknown format, or cannot be read.
    """
    file = plan_file(folder)
    if not is_there(file):
        return None
    found = _read(file, Planned, "resume the sweep (--resume), which writes it anew")
    check_format(file, found.format)
    return found


def read_audit(file: Path) -> AuditFile:
    """Read an audit of a sweep.

    Raises:
        InputError: the file cannot be read, or its hash or a value's type is wrong.
    """
    return _read(file, AuditFile, "resume the sweep (--resume), which audits again", hashed=True)


def audit_hash(key: str, document: Mapping[str, Any]) -> str:
    """Return the hash of an audit's document and key, so that no audit can be taken for another."""
    return run_key({**document, "key": key})


def _read(file: Path, kind: type[T], remedy: str, *, hashed: bool = False) -> T:
    text = read_text(file, errors="replace")
    try:
        document = parse_json(text)
        if hashed and document.pop("hash") != audit_hash(file.stem, document):
            raise ValueError("another hash")
        return made(kind, document)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise Damaged(f"Expected {file} as a sweep wrote it, it is damaged: {remedy}.") from None
