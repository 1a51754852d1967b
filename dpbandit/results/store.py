"""Store runs in parquet files, and sweeps in folders with a plan and audits.

Columns are those of `Results.frame`, with each problem called as it was said, whatever else is in
the file; the metadata under "dpbandit" is JSON: for every run its
problem, config, claim, ledger, seconds and provenance, and one hash over all numbers and facts. A
certificate is computed from the ledger when it is read: none that stands in a file is believed.
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
from dpbandit.privacy.certificate import (
    Certificate,
    certificate,
    ledger_as_dict,
    ledger_from_dict,
)
from dpbandit.results.problems import Setup, labels
from dpbandit.results.runs import AgentRun, early_marks, log_marks, run_key

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_KEY = b"dpbandit"
_FORMAT, _FORMATS = 2, (1, 2)
"""Format that is written, and those that are read; in 1 a whole certificate stands for a ledger"""
_NUMBERS = ("replica", "round", "regret", "reward", "switches")
PACKED = 1000
"""Blocks in a pack, at most"""
UNPACKED = 100
"""Blocks that stay files of their own, at most, once a sweep is begun again or done"""
_SMALL = 1 << 16
"""Bytes of a block that is packed, and of facts as they are, at most"""
_PACK = "pack"
_NOT_WHOLE = (LookupError, TypeError, ValueError, AttributeError, ZipError)
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

    columns = {
        name: pa.DictionaryArray.from_arrays(part.codes, part.names)
        if isinstance(part, _Words)
        else pa.array(part)
        for name, part in _columns(runs, [run.setup.problem for run in runs]).items()
    }
    table = pa.table(columns)
    facts = json.dumps([_facts(run) for run in runs], default=_plainly)
    zips = _SMALL <= len(facts.encode()) <= PACKED * _SMALL  # more is not unpacked
    metadata = {"zipped": _zipped(facts)} if zips else {"runs": facts}
    document = {"format": _FORMAT, **metadata, "hash": _hash(table, facts)}
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
        if not _names(table, runs):
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
    """What the metadata say of a run."""

    setup: Setup
    name: str
    config: Mapping[str, Any]
    ledger: Mapping[str, Any]
    claim: tuple[float, float]
    """(epsilon, delta), that of the ledger itself where nothing is claimed"""
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


class _Words(NamedTuple):
    """A column of few words: a place in `names` for each row."""

    codes: AnyArray
    names: list[str]


def frame_of(runs: Sequence[AgentRun]) -> "pd.DataFrame":
    """One row for each run, mark and replica; see `Results.frame` for the columns."""
    import pandas as pd

    def column(part: Any) -> Any:
        if not isinstance(part, _Words):
            return part
        return pd.Categorical.from_codes(part.codes, categories=pd.Index(part.names))

    names = labels(run.setup for run in runs)
    called = [names[run.place[0]] for run in runs]
    return pd.DataFrame({name: column(part) for name, part in _columns(runs, called).items()})


def _columns(runs: Sequence[AgentRun], called: Sequence[str]) -> dict[str, Any]:
    """The columns of `frame_of`, as arrays and `_Words`, of problems that are called so."""
    sizes = [run.regret.size for run in runs]

    def repeated(values: list[Any]) -> Any:
        if not values or not isinstance(values[0], str):
            return np.repeat(np.array(values), sizes)
        place = {name: code for code, name in enumerate(dict.fromkeys(values))}
        codes = np.repeat(np.array([place[value] for value in values], np.int32), sizes)
        return _Words(codes, list(place))

    def stacked(tables: list[Any], kind: type = np.int64) -> Any:
        return np.concatenate([np.empty(0, kind), *(table.ravel() for table in tables)])

    every = [{**_row_values(run), "problem": name} for run, name in zip(runs, called, strict=True)]
    words = {name: repeated([values_of_run[name] for values_of_run in every]) for name in _WORDS}
    return {
        **{name: column for name, column in words.items() if name != "config"},
        "replica": stacked([np.tile(run.replicas, len(run.marks)) for run in runs]),
        "round": stacked([np.repeat(run.marks, len(run.replicas)) for run in runs]),
        "regret": stacked([run.regret for run in runs], np.float64),
        "reward": stacked([run.reward for run in runs], np.float64),
        "switches": stacked([run.switches for run in runs]),
        "config": words["config"],
    }


def _row_values(run: AgentRun) -> dict[str, Any]:
    """What the columns `_WORDS` say of it in every row."""
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


def _names(table: "pa.Table", runs: Sequence[AgentRun]) -> bool:
    """Whether each run's rows say what was run."""
    sizes = [run.regret.size for run in runs]
    starts = np.cumsum([0, *sizes[:-1]])
    expected = [_row_values(run) for run in runs]
    for name in _WORDS:
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


def _zipped(text: str) -> str:
    return b64encode(compress(text.encode())).decode()


def _unzipped(text: str) -> str:
    """At most what a pack may say, whatever a file claims to be."""
    unpacking = decompressobj()
    text_bytes = unpacking.decompress(b64decode(text, validate=True), PACKED * _SMALL)
    if unpacking.unconsumed_tail:
        raise ValueError("too much is said of runs")
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
    """The epsilon of the ledger at the claimed delta."""
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
    """What JSON does not know: NumPy's numbers as Python's, anything else in words."""
    return value.item() if isinstance(value, np.generic) else repr(value)


def _run(facts: _Facts, tables: Mapping[str, Any]) -> AgentRun:
    """The run, if its numbers can be those of one."""
    marks, R = log_marks(facts.setup.horizon), facts.shape[1]
    if facts.shape[0] < len(marks):  # few rounds alone may be logged
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


FORMAT = 1
"""Of all that is said here and in sweep.json; files without a number are older, and of this one."""


def plan_file(folder: Path) -> Path:
    """What the sweep asks for, as it was run last."""
    return folder / "sweep.json"


def block_file(folder: Path, key: str, first: int, last: int) -> Path:
    """Replicas `first` to `last` of the configuration with this key."""
    return folder / "blocks" / f"{key}-{first:06d}-{last:06d}.parquet"


def pack(files: Sequence[Path], *, rest: bool = False) -> list[Path]:
    """Write every `PACKED` of these blocks that are small into one file and delete them.

    With `rest` fewer are packed as well, if they are more than `UNPACKED`. Returns the files there
    are now. A process that is killed leaves blocks twice, never none.
    """
    blocks = [file for file in files if file.suffix == ".parquet" and not is_pack(file)]
    single = [file for file in blocks if file.stat().st_size <= _SMALL]
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
    """The audit with this key."""
    return folder / "audits" / f"{key}.json"


def block_files(folder: Path) -> list[Path]:
    """The blocks that are there; what a killed process left half-written begins with a dot."""
    files = sorted(block_file(folder, "any", 0, 0).parent.glob("*.parquet"))
    return [file for file in files if not file.name.startswith(".")]


def is_pack(file: Path) -> bool:
    """Whether a file holds many blocks, of any configurations."""
    return key_of(file) == _PACK


def key_of(block: Path) -> str:
    """The key in a block's name, or whatever stands in its place, as in that of a pack."""
    return block.name.partition("-")[0]


def stored(folder: Path) -> list[Path]:
    """The runs of a sweep or of `Results.save`; folders below it are somebody else's."""
    if plan_file(folder).is_file():
        return block_files(folder)
    return list(folder.glob("*.parquet"))


def check_places(folder: Path, *, audits: bool) -> None:
    """Raise `InputError` unless blocks, and audits if there are any, can be written.

    What killed sweeps left half-written there is removed.
    """
    places = [block_file(folder, "any", 0, 0), *([audit_file(folder, "any")] if audits else [])]
    check_writable(plan_file(folder), *places)
    for place in places:
        remove_leftovers(place.parent)


def check_format(file: Path, number: object) -> None:
    """Raise `InputError` unless sweep.json is of the format that this program knows."""
    if number != FORMAT:
        raise InputError(
            f"Expected {file} in format={FORMAT}, which this program knows, got format={number!r}: "
            "read it with the program that wrote it, or choose another folder."
        )


_HASH = re.compile(r"[0-9a-f]{16}")
T = TypeVar("T")


class Damaged(InputError):
    """Not what a sweep wrote."""


class Planned(NamedTuple):
    """A sweep as it was run last."""

    name: str
    configurations: tuple[str, ...]
    """keys of the runs, in the order of the file"""
    replicas: int
    """of each"""
    audits: tuple[str, ...]
    """keys of the audits"""

    def missing(self, begun: int, there: int) -> str:
        """How much is there of what is asked for, nothing where that is all.

        `begun` configurations have replicas, `there` together.
        """
        wanted, lines = len(self.configurations), []
        if there < wanted * self.replicas:
            lines.append(f"{there:,} of {wanted * self.replicas:,} replicas are there")
        if begun < wanted:
            lines.append(f"{wanted - begun:,} of {wanted:,} configurations have none")
        return "; ".join(lines)


@dataclass(frozen=True)
class _Plan:
    """What of a sweep.json is read."""

    name: str
    configurations: tuple[str, ...]
    replicas: int
    audits: tuple[str, ...]
    format: Any = FORMAT

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 1)
        if not all(map(_HASH.fullmatch, self.configurations + self.audits)):
            raise ValueError("keys")  # they are names of files


@dataclass(frozen=True, kw_only=True)
class AuditFile:
    """What of an audit is shown: what it measured, or why there is none."""

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
    """The sweep in `folder`, None where there is none.

    Raises:
        InputError: its sweep.json is damaged, of an unknown format, or cannot be read.
    """
    file = plan_file(folder)
    if not is_there(file):
        return None
    found = _read(file, _Plan, "resume the sweep (--resume), which writes it anew")
    check_format(file, found.format)
    return Planned(found.name, found.configurations, found.replicas, found.audits)


def read_audit(file: Path) -> AuditFile:
    """An audit of a sweep.

    Raises:
        InputError: it is not what was written, as its hash or a type says, or cannot be read.
    """
    return _read(file, AuditFile, "resume the sweep (--resume), which audits again", hashed=True)


def audit_hash(key: str, document: Mapping[str, Any]) -> str:
    """Of all that an audit says, and of which it is: none stands for another."""
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
