"""Run one command line and say what is wrong with how it went."""

import io
import json
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from math import isfinite, isnan
from pathlib import Path
from typing import Any, NamedTuple

from dpbandit import InputError, Results, cli
from dpbandit.privacy.notion import Notion

CODES = (0, 1, 2)
PATIENCE = 4
_ALWAYS = ("mean", "q05", "q50", "q95", "switches", "seconds", "notion", "delta", "epsilon")
_ALWAYS += ("claimed_epsilon", "claimed_delta", "certified_epsilon", "certified_delta")
_NAN = re.compile(r"(?<![\w=:.'-])[+-]?nan(?![\w'.-])", re.IGNORECASE)


class Fault(NamedTuple):
    """What should not happen."""

    kind: str
    what: str


class Outcome(NamedTuple):
    """How a line ended."""

    code: Any
    faults: list[Fault]


class Hang(BaseException):
    """The alarm; no `except Exception` keeps it."""


def run(words: list[str], folder: Path, *, limit: float = 20.0) -> Outcome:
    """Run `dpbandit WORDS` in this process, in the current folder, which is `folder`."""
    faults: list[Fault] = []
    out, err = _Stream("strict"), _Stream("backslashreplace")
    code: Any = 0
    with _streams(words, out, err), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with _alarm(limit):
                cli.main()
        except SystemExit as end:
            code = end.code or 0
        except Hang:
            faults.append(Fault("hang", f"over {limit} s"))
        except BaseException:
            faults.append(Fault("traceback", traceback.format_exc(limit=-4)))
    said, complained = out.text(), err.text()
    if "Traceback (most recent call last)" in complained + said:
        faults.append(Fault("traceback", complained))
    faults += [Fault("warning", str(one.message)) for one in caught]
    if faults:
        return Outcome(code, faults)
    if code not in CODES:
        faults.append(Fault("exit code", repr(code)))
    if code == 2 and not _one_sentence(complained):
        faults.append(Fault("no sentence", complained))
    if code == 0:
        wrong = [*_in_table(said), *_in_files(words, folder)]
        faults += [Fault("impossible number", what) for what in wrong]
    return Outcome(code, faults)


class _Stream(io.TextIOWrapper):
    """Standard output or error of a process, as far as a surrogate can tell."""

    def __init__(self, errors: str) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]


@contextmanager
def _streams(words: list[str], out: _Stream, err: _Stream) -> Iterator[None]:
    before = sys.argv, sys.stdout, sys.stderr
    sys.argv, sys.stdout, sys.stderr = ["dpbandit", *words], out, err
    try:
        yield
    finally:
        sys.argv, sys.stdout, sys.stderr = before


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """After so much work, or after `PATIENCE` times as long by the clock, which may be shared."""

    def ring(*_: Any) -> None:
        raise Hang

    before = {kind: signal.signal(kind, ring) for kind in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _one_sentence(text: str) -> bool:
    """Ours, on one line, or Typer's in a box."""
    ours = text.startswith("dpbandit: ") and text.endswith((".\n", ").\n"))
    return (ours and text.count("\n") == 1) or text.startswith("Usage: ")


def _in_table(said: str) -> Iterator[str]:
    if _NAN.search(said):
        yield next(line for line in said.splitlines() if _NAN.search(line))


def _in_files(words: list[str], folder: Path) -> Iterator[str]:
    """What is wrong in the files that a command says it has written."""
    named = dict(pairwise(words))
    printed = re.search(r"calibration=(?!certified)", " ".join(words))
    if "--json" in named:
        document = json.loads(Path(named["--json"]).read_text())
        for record in document if isinstance(document, list) else [document]:
            promise = {} if printed or words[0] != "certify" else {"config": {}}
            yield from impossible({**promise, **record})
    if words[0] == "audit" and "--out" in named:
        yield from impossible(json.loads(Path(named["--out"]).read_text()))
    if words[0] in ("compare", "sweep") and "--out" in named:
        with warnings.catch_warnings(action="ignore"):  # somebody else's, or damaged: left out
            try:
                records = Results.load(named["--out"]).records()
            except InputError as refusal:  # numbers that no file may hold
                yield str(refusal)
                records = []
        for record in records:
            yield from impossible(record)
    if words[0] == "report":
        page = Path(named.get("--out", f"{words[1]}/report")) / "index.html"
        yield from _in_table(re.sub(r"<[^>]*>", " ", page.read_text()))


def impossible(record: dict[str, Any]) -> Iterator[str]:
    """The numbers of a summary, a certificate or an audit that no run can have."""
    numbers = {key: float(value) for key, value in record.items() if _number(value)}
    for key, value in numbers.items():
        wrong = isnan(value)
        wrong |= key in ("se", "seconds", "switches", "least", "eps_lower") and value < 0
        wrong |= key in ("delta", "claimed_delta", "certified_delta") and not 0 <= value <= 1
        wrong |= key in ("clipped", "fpr", "tpr", "failure") and not 0 <= value <= 1
        wrong |= key.endswith("epsilon") and value < 0
        wrong |= key in ("mean", "se", "q05", "q50", "q95", "seconds") and not isfinite(value)
        if wrong:
            yield f"{key} = {value}"
    several = record.get("replicas", 1) > 1
    for key, value in record.items():
        if value is None and (key in _ALWAYS or (key == "se" and several)):
            yield f"{key} is missing or nan"
    low, middle, high = (numbers.get(key, 0.0) for key in ("q05", "q50", "q95"))
    if not low <= middle <= high:
        yield f"quantiles {low}, {middle}, {high}"
    yield from _beyond_its_claim(record, numbers)


def _beyond_its_claim(record: dict[str, Any], numbers: dict[str, float]) -> Iterator[str]:
    """A certified calibration costs no more than it says, where its problem is covered at all."""
    if record.get("notion") == str(Notion(covers=frozenset())):
        return
    config = record.get("config")
    if isinstance(config, dict) and config.get("calibration", "certified") != "certified":
        return
    if isinstance(config, str) and re.search(r"calibration='(?!certified')", config):
        return
    certified = numbers.get("certified_epsilon", numbers.get("epsilon"))
    claimed = numbers.get("claimed_epsilon")
    if config is not None and certified is not None and claimed is not None:
        if certified > claimed * (1 + 1e-9):
            yield f"certified epsilon {certified} > claimed {claimed}"
        if numbers.get("certified_delta", 0.0) > numbers.get("claimed_delta", 1.0) * (1 + 1e-9):
            yield f"certified delta {record['certified_delta']} > {record['claimed_delta']}"


def _number(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("inf", "-inf")
    return isinstance(value, int | float) and not isinstance(value, bool)
