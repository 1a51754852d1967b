"""Update the numbers of the pages from the stores that commands have written::

    python tools/measured.py                 write the tables of all pages anew
    python tools/measured.py FILE.csv ...    run the commands of these stores again
    python tools/measured.py FILE.csv:NAME,...   or those of some names alone

A store, `experiments/QUESTION/numbers.csv`, begins with a named command for each of its runs:

    # one: dpbandit compare GLMBandit --set dim=10 --agents fade,broadcast --horizon 10000
    # bound: limits.csv of python -m dpbandit.experiments.limits
    # p1: dpbandit reproduce contextual/p1 --agent dp-moments
    # theirs: not run: an independent program

and holds the rows of `summary.csv`, or of the named file, with the command's name in the column
`run`. `reproduce` makes one row, with its reference; rows that are "not run" are written by hand.
To publish a number write such a line, run it as above, and put into the page a comment,

    numbers: numbers.csv by agent where run == "one"
    epsilon 1 = mean where claimed_epsilon == 1
    epsilon 4 = mean where claimed_epsilon == 4
    certified = certified_epsilon where claimed_epsilon == 1

before a line `<!-- end of numbers -->`. This program writes the table between them, with a row for
each agent and a column for each line of the comment. A cell is `mean ± se`, `value ± se` or
`x ± x_se`, to two digits of the error, or the number alone if the store has no such error. A
divisor (`mean / 20`) divides both. Queries are those of `pandas.DataFrame.query`.

The answers of the suite, `dpbandit/running/answers.csv`, are a store as well.

In prose a number that looks measured has to occur in such a table of the same page, or of a page
to which the paragraph links; `<!-- not measured: why -->` in a paragraph or before a table exempts
it. `tests/docs/test_numbers.py` fails where pages and stores differ.
"""

import json
import re
import shlex
import subprocess
import sys
from math import floor, inf, isfinite, log10
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpbandit.agents import AGENTS  # noqa: E402

FOLDERS = ("docs", "experiments")  # of pages and stores
SUMMARY = ("agent", "horizon", "replicas", "mean", "se", "claimed_epsilon", "certified_epsilon")
"""Columns copied from summary.csv to a store; of other files all columns except times."""
NOT_RUN = "not run: "
"""Beginning of a line that has no command, as another program measured the numbers."""
BLOCK = re.compile(  # comment that describes a table, and the table
    r"<!-- numbers: (?P<file>\S+) by (?P<by>.+?)(?: where (?P<where>.+?))?\n(?P<columns>.*?)-->\n"
    r"(?P<table>.*?)<!-- end of numbers -->",
    re.DOTALL,
)
# line of a store: name of a run, its command, and the file it writes, if not summary.csv
_COMMAND = re.compile(r"(?m)^# (?P<run>[\w-]+): (?:(?P<file>\S+\.csv) of )?(?P<command>.+)$")
_SEE_PAGE = re.compile(r"See \[([\w./]+\.md)\]\(\S+\)\.\s*")  # page that shows this file


def pages() -> list[Path]:
    """Return the pages whose numbers are checked, with the file that a page only shows."""
    found = [page for folder in FOLDERS for page in sorted((ROOT / folder).rglob("*.md"))]
    links = [_SEE_PAGE.fullmatch(page.read_text()) for page in found]
    found = [ROOT / see[1] if see else page for see, page in zip(links, found, strict=True)]
    return [*dict.fromkeys([ROOT / "README.md", *found])]


def written(page: Path, text: str) -> str:
    """Return the text of a page with all its tables updated."""
    return BLOCK.sub(lambda block: _with_table(page, block), text)


def _with_table(page: Path, block: re.Match[str]) -> str:
    head = block[0][: block.start("table") - block.start()]
    return head + table(page.parent / block["file"], block) + "<!-- end of numbers -->"


def table(store: Path, block: re.Match[str]) -> str:
    """Return the Markdown table of a store's rows that a comment `numbers:` describes."""
    rows = with_costs(pd.read_csv(store, comment="#"))
    if "problem" not in rows and "run" in rows:  # the name of its run, in words
        rows["problem"] = rows["run"].str.replace("-", " ")
    rows = rows.query(block["where"] or "index >= 0")
    by = [name.strip() for name in block["by"].split(",")]
    columns: dict[str, dict[Any, str]] = {}
    for line in block["columns"].strip().splitlines():
        heading, _, rest = line.partition(" = ")
        cell, _, where = rest.partition(" where ")
        some = rows.query(where) if where else rows
        columns[heading] = {}
        for _, row in some.iterrows():
            key, words = tuple(row[by]), formatted(row, cell.strip())
            if columns[heading].setdefault(key, words) != words:
                raise ValueError(f"{store.name} has several rows {key} for {heading!r} ({line!r}).")
    keys = dict.fromkeys(tuple(row) for row in rows[by].itertuples(index=False))
    keys = [key for key in keys if any(column.get(key) for column in columns.values())]
    lines = [[*by, *columns], ["---"] * (len(by) + len(columns))]
    lines += [
        [*map(_label, key), *(each.get(key, "") for each in columns.values())] for key in keys
    ]
    return "".join(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in row)}|\n" for row in lines)


def with_costs(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Add columns that compare regret with the best agent without privacy, and with uniform play.

    With A the agent's regret, U that of uniform play and B that of the best non-private agent of
    the same run, `times` is A / B to two digits, `ratio` and `ratio_se` are A / B and its standard
    error, and `saved` is (U - A) / (U - B).

    >>> rows = {"run": "x", "agent": ["Uniform", "fade", "linucb", "BestFixed"]}
    >>> rows |= {"mean": [100.0, 40.0, 20.0, 10.0], "certified_epsilon": [0.0, 1.0, inf, inf]}
    >>> rows |= {"claimed_epsilon": rows["certified_epsilon"]}
    >>> with_costs(pd.DataFrame(rows)).loc[1, ["times", "saved"]].to_list()
    ['2', '75 %']
    """
    if not {"agent", "mean", "certified_epsilon"} <= {*rows}:
        return rows
    free = rows[(rows["certified_epsilon"] == inf) & (rows["agent"] != "BestFixed")]
    free = free[free["claimed_epsilon"] == inf]
    free = free.sort_values("mean").groupby("run").first()
    best = rows["run"].map(free["mean"])
    uniform = rows["run"].map(rows[rows["agent"] == "Uniform"].groupby("run")["mean"].first())
    saved = (uniform - rows["mean"]) / (uniform - best)
    if "se" in rows:  # of a quotient of two means, as if their users were not the same
        errors = rows["se"] / rows["mean"], rows["run"].map(free["se"]) / best
        rows = rows.assign(ratio=rows["mean"] / best)
        rows["ratio_se"] = rows["ratio"] * (errors[0] ** 2 + errors[1] ** 2) ** 0.5
    return rows.assign(
        least=best,
        times=[f"{x:.2g}" if x < 9.95 else f"{x:.0f}" for x in rows["mean"] / best],
        saved=[f"{100 * x:.0f} %" for x in saved],
    )


def _label(key: Any) -> str:
    if not isinstance(key, str):
        return _number(key)
    return f"`{key}`" if key in AGENTS or re.fullmatch(r"[a-z-]+:\S+", key) else key


def formatted(row: "pd.Series[Any]", cell: str) -> str:
    """Format a value with its standard error, to two digits of the error, or alone.

    >>> formatted(pd.Series({"mean": 1234.56, "se": 12.3, "T": 20_000, "x": 0.01234}), "mean")
    '1,235 ± 12'
    >>> formatted(pd.Series({"mean": 1234.56, "se": 12.3}), "mean / 20")
    '61.73 ± 0.61'
    >>> formatted(pd.Series({"mean": 4746.0, "se": 3.0}), "mean")
    '4,746 ± 3'
    >>> formatted(pd.Series({"x": 0.01234}), "x")
    '0.0123'
    """
    name, _, divisor = (cell, "", "") if cell in row else cell.partition(" / ")
    value, over = row[name], float(divisor or 1)
    if isinstance(value, str) or pd.isna(value):
        return _label(value) if isinstance(value, str) else ""
    if abs(value) < 1e-9:  # a sum of rounding
        return "0"
    errors = ("se",) if name in ("mean", "value") else (f"{name}_se", f"{name} se")
    error = next((row[each] for each in errors if each in row), 0.0) / over
    if not 1e-12 * abs(value / over) < error < inf:  # less is rounding
        return _number(value / over if divisor else value)
    stored = max(len(f"{x:.9g}".partition(".")[2]) for x in (value / over, error))
    digits = min(max(0, 1 - floor(log10(error))), stored)
    return f"{value / over:,.{digits}f} ± {error:,.{digits}f}"


def _number(value: float) -> str:
    """Format a number to three digits; whole numbers, and numbers from 100 on, in full."""
    if not isfinite(value):
        return "∞"
    whole = value == round(value) or abs(value) >= 100
    return f"{value:,.0f}" if whole else f"{value:.3g}"


def measure(store: Path, names: str = "") -> None:
    """Run the commands of a store, each once, and write their results into it as rows."""
    everything = list(_COMMAND.finditer(store.read_text()))
    ours = [one for one in everything if not one["command"].startswith(NOT_RUN)]
    requested = names.split(",") if names else [one["run"] for one in ours]
    commands = [one for one in ours if one["run"] in requested]
    tables = []
    if len(commands) < len(everything):
        before = pd.read_csv(store, comment="#")
        tables.append(before[~before["run"].isin(requested)])
    with TemporaryDirectory() as out:
        folders = {one["command"]: Path(out, str(n)) for n, one in enumerate(commands)}
        for command, folder in folders.items():
            to = ["--json" if "--agent" in command.split() else "--out", str(folder)]
            subprocess.run([*shlex.split(command), *to], check=True, stdout=subprocess.DEVNULL)
        for one in commands:
            folder = folders[one["command"]]
            if folder.is_file():
                found = _row(one["command"], json.loads(folder.read_text()))
            else:
                found = pd.read_csv(folder / (one["file"] or "summary.csv"))
                found = found if one["file"] else found[[*SUMMARY]]
            tables.append(found.drop(columns="seconds", errors="ignore").assign(run=one["run"]))
    rows = pd.concat(tables, ignore_index=True)
    places = {one["run"]: place for place, one in enumerate(everything)}
    rows = rows.sort_values("run", key=lambda run: run.map(places), kind="stable")
    head = "".join(f"{one[0]}\n" for one in everything)
    rows = rows[["run", *rows.columns.drop("run")]]
    store.write_text(head + rows.to_csv(index=False, float_format="%.6g"))


def _row(command: str, record: dict[str, Any]) -> "pd.DataFrame":
    """Return the row of `dpbandit reproduce CASE --agent ID`, with the settings of the agent.

    >>> record = {"agent": "hedge", "config": {"rate": 1.0}, "mean": 7.4, "se": 0.1}
    >>> record |= {"certified_epsilon": inf, "reference": {"mean": 7.5, "se": 0.03}}
    >>> made = _row("dpbandit reproduce c --agent hedge --set d=256 --set rate=1", record)
    >>> made[["agent", "mean", "reference", "reference_se"]].to_numpy().tolist()
    [['hedge:rate=1', 7.4, 7.5, 0.03]]
    """
    options = re.findall(r"--(?:set |(calibration|noise) )(\S+)", command)
    words = [f"{key}={value}" if key else value for key, value in options]
    settings = [word for word in words if word.partition("=")[0] in record["config"]]
    row = {name: record.get(name) for name in SUMMARY} | {
        "agent": ":".join([record["agent"], *settings])
    }
    row["claimed_epsilon"] = record["config"].get("epsilon", record["certified_epsilon"])
    theirs = record["reference"] or {"mean": None, "se": None}
    return pd.DataFrame([{**row, "reference": theirs["mean"], "reference_se": theirs["se"]}])


def main() -> None:
    """Run the commands of the named stores; without a name, update the tables of all pages."""
    for name in sys.argv[1:]:
        store, _, names = name.partition(":")
        measure(Path(store), names)
    if len(sys.argv) == 1:
        for page in pages():
            if (new := written(page, text := page.read_text())) != text:
                page.write_text(new)
                print(f"Written: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
