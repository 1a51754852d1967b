"""Files that a sweep might have written, but did not: one place of a real one is something else."""

import json
import random
from contextlib import suppress

import pyarrow as pa
from pyarrow import parquet

from dpbandit.results.store import _hash, audit_hash

DEEP = [[]]
for _ in range(300):
    DEEP = [DEEP]
STRANGE = [None, True, -1, 0, 1.5, -1e-9, 1e308, 10**30, 10**400, float("nan"), float("inf")]
STRANGE += ["", "x", "inf", "-inf", "nan", "\ud800", "\x00", "[/]", "$\\frac$", "=1+1", "../../x"]
STRANGE += ["a" * 9999, "a" * 10_001, [], {}, [[]], [-1, -3], [0, 0], [2, 0], [None], ["x"] * 99]
STRANGE += [{"a": DEEP}, DEEP]


def forge(folder, seed):
    """Change one file of a sweep's folder, and mostly its hash, too.

    What was changed, in words, and whether its hash tells.
    """
    rng = random.Random(seed)
    change = rng.choice((_plan, _audit, _facts, _numbers))
    return change(folder, rng, rng.random() < 0.8)


def _plan(folder, rng, signed):
    file = folder / "sweep.json"
    document = json.loads(file.read_text())
    what = _change(document, rng)
    file.write_text(_text(document, rng))
    return f"the plan: {what}", False


def _audit(folder, rng, signed):
    file = rng.choice(sorted(folder.glob("audits/*.json")))
    before = file.read_text()
    document = json.loads(before)
    what = _change(document, rng)
    if signed:
        document.pop("hash", None)
        with suppress(RecursionError):
            document["hash"] = audit_hash(file.stem, document)
    file.write_text(_text(document, rng))
    return f"an audit: {what}", not signed and json.loads(before) != document


def _facts(folder, rng, signed):
    file = rng.choice(sorted(folder.glob("blocks/*.parquet")))
    before = table = parquet.read_table(file)
    document = json.loads(table.schema.metadata[b"dpbandit"])
    before = document["runs"]
    facts = json.loads(before)
    what = _change(facts, rng)
    document["runs"] = _text(facts, rng)
    if signed:
        document["hash"] = _hash(table, document["runs"])
    parquet.write_table(table.replace_schema_metadata({b"dpbandit": json.dumps(document)}), file)
    return f"facts: {what}", not signed and facts != json.loads(before)


def _numbers(folder, rng, signed):
    """A column that is gone, of another type, or holds what is no number of a run; or no rows."""
    file = rng.choice(sorted(folder.glob("blocks/*.parquet")))
    before = table = parquet.read_table(file)
    document = json.loads(table.schema.metadata[b"dpbandit"])
    name = rng.choice(table.column_names)
    place, n = table.column_names.index(name), len(table)
    ways = {
        "gone": lambda: table.remove_column(place),
        "twice": lambda: table.append_column(name, table[name]),
        "words": lambda: table.set_column(place, name, pa.array(["x"] * n)),
        "nothing": lambda: table.set_column(place, name, pa.nulls(n)),
        "lists": lambda: table.set_column(place, name, pa.array([[1]] * n)),
        "times": lambda: table.set_column(place, name, pa.array([0] * n, pa.timestamp("ns"))),
        "nan": lambda: table.set_column(place, name, pa.array([float("nan")] * n)),
        "inf": lambda: table.set_column(place, name, pa.array([float("inf")] * n)),
        "huge": lambda: table.set_column(place, name, pa.array([1e308] * n)),
        "negative": lambda: table.set_column(place, name, pa.array([-1] * n)),
        "zero": lambda: table.set_column(place, name, pa.array([0] * n)),
        "rows": lambda: table.slice(0, 0),
        "half": lambda: table.slice(0, n // 2),
    }
    way = rng.choice(sorted(ways))
    table = ways[way]()
    if signed:
        with suppress(KeyError, pa.ArrowException):
            document["hash"] = _hash(table, document["runs"])
    parquet.write_table(table.replace_schema_metadata({b"dpbandit": json.dumps(document)}), file)
    same = table.num_rows == n and table.to_pydict() == before.to_pydict()  # zeros where were zeros
    return f"column {name}: {way}", not signed and not same


def _text(document, rng):
    text = json.dumps(document)
    if rng.random() < 0.05:
        return text[: rng.randrange(len(text))]
    if rng.random() < 0.05:
        return "[" * 100_000
    return text


def _change(document, rng):
    """Replace, remove or add something at a place chosen level by level."""
    at, where = document, []
    while True:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        key = rng.choice(keys)
        where.append(str(key))
        inner = at[key]
        if not (isinstance(inner, dict | list) and inner and rng.random() < 0.9):
            break
        at = inner
    if rng.random() < 0.1:
        del at[key]
        return f"{'.'.join(where)} gone"
    at[key] = rng.choice(STRANGE)
    return f"{'.'.join(where)} = {str(at[key])[:40]}"
