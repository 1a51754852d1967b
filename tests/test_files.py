"""Files: what is no file gets one sentence and never a hang, nothing is replaced but files, and
tables are read as what they say at every door or refused."""

import os
import sys

import pandas as pd
import pytest

from dpbandit import InputError, Results, cli
from dpbandit.base.files import check_writable, parse_json, read_text, write_atomically, write_csv
from dpbandit.clients import read_lists, read_log, read_observed, read_open_bandit, read_prices
from dpbandit.envs import (
    Arms,
    AssortmentFromLog,
    Experts,
    PricingFromLog,
    RatingsBandit,
    RecommendationFromLog,
)
from dpbandit.envs.contextual.recommendation import read_ratings
from dpbandit.results.store import planned, read_runs
from dpbandit.studies import Sweep
from tests.each import asserting, each, refused
from tests.envs.contextual.logs import CLICKS, DRINKS, SHOP, clicks, drinks, shop
from tests.envs.contextual.ratings_files import example


@pytest.fixture(params=["pipe", "folder", "long", "long parent", "NUL", "below a file", "loop"])
def odd(request, tmp_path):
    """A path at which there is no file to be read or written."""
    (tmp_path / "file").touch()
    name = {"pipe": "p", "folder": "f", "loop": "l", "long": "x" * 300, "NUL": "a\0b"}
    name |= {"long parent": "x" * 300 + "/a", "below a file": "file/a"}
    path = tmp_path / name[request.param]
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "folder":
        path.mkdir()
    elif request.param == "loop":
        path.symlink_to(path)
    return path


def test_what_is_no_file_is_one_sentence_and_stays(odd):
    """A pipe without a writer would be read for ever."""
    before = os.lstat(odd) if "\0" not in str(odd) and os.path.lexists(odd) else None
    for read in (read_text, Sweep.read, read_ratings, read_runs):
        with pytest.raises(InputError, match=r"Cannot read .*: .*") as error:
            read(odd)
        assert len(str(error.value)) < 500
    for write in (check_writable, lambda path: write_atomically(path, lambda p: p.touch())):
        refused(r"Cannot write .*: .*", write, odd)
    for place in (odd, odd / "sweep.json"):
        with pytest.raises(InputError):
            Results.load(place)
    assert before is None or os.lstat(odd).st_mode == before.st_mode


@each("name", ["x" * 250 + ".json", "a." + "y" * 253, "ä" * 125 + ".json", "a"])
def test_names_as_long_as_can_be(tmp_path, name):
    """A temporary name is no longer than the name that is wanted."""
    check_writable(tmp_path / name)
    assert not list(tmp_path.iterdir())
    write_atomically(tmp_path / name, lambda partial: partial.write_text("whole"))
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {name: "whole"}
    (tmp_path / name).unlink()


def test_links_are_followed(tmp_path):
    """A link, such as /dev/stdout, stays a link, and its target is written, even a new one."""
    for there in (True, False):
        target, link = tmp_path / f"target {there}", tmp_path / f"link {there}.png"
        if there:
            target.write_text("old")
        link.symlink_to(target)
        seen = []
        write_atomically(link, lambda p, seen=seen: (p.write_text("new"), seen.append(p.suffix)))
        assert link.is_symlink()
        assert target.read_text() == "new"
        assert seen == [".png"]


def test_formulas_in_cells_are_text(tmp_path):
    """Numbers, also negative ones, stay numbers."""
    words = ["=1+1", "+1", "-x", "@a", "\tb", "fine", None]
    table = pd.DataFrame({"=name": words, "number": [-1.5, *range(6)]})
    write_csv(tmp_path / "x.csv", table)
    back = pd.read_csv(tmp_path / "x.csv")
    assert list(back) == ["'=name", "number"]
    assert back["number"].tolist() == table["number"].tolist()
    assert back["'=name"].tolist()[:6] == ["'=1+1", "'+1", "'-x", "'@a", "'\tb", "fine"]
    assert table["=name"].tolist()[:6] == words[:6]


def test_files_beyond_reason_are_refused(tmp_path):
    """JSON and TOML of many levels, digits or keys; and a plan that is a pipe."""
    assert parse_json("[" * 50 + "]" * 50)
    for levels in (51, 1500, 200_000):
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            with pytest.raises(ValueError, match="50 levels"):
                parse_json(opening * levels + "1" + closing * levels)
    file = tmp_path / "sweep.toml"
    for value in (" = " + "[" * 3000 + "]" * 3000, " = " + "9" * 5000, ".a" * 3000 + " = 1"):
        file.write_text(f"a{value}")
        with pytest.raises(InputError) as error:
            Sweep.read(file)
        assert len(str(error.value)) < 500
    os.mkfifo(tmp_path / "sweep.json")
    refused("pipe or a device", planned, tmp_path)


@each(
    ("error", "sentence"),
    [
        (MemoryError("Unable to allocate 80. GiB"), "Not enough memory: Unable to allocate 80."),
        (MemoryError(), "Not enough memory. "),
        (RecursionError("maximum depth"), "nested less deeply"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (PermissionError(13, "Permission denied", "a" * 999), "Cannot use aaa"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates"), "what is no text"),
        (InputError("Cannot read \udcff\n\x1b[1m\0."), r"Cannot read \udcff\n\x1b[1m\x00."),
    ],
)
def test_every_failure_is_one_line(run, monkeypatch, error, sentence):
    """Whatever a command runs into; what is a mistake of ours keeps its traceback."""

    def fails(**how):
        raise error

    monkeypatch.setattr(cli, "app", fails)
    code, _, errors = run("envs")
    (line,) = errors.splitlines()
    assert code == 2
    assert line.startswith("dpbandit: ")
    assert sentence in line


def test_output_that_is_no_text_is_escaped(monkeypatch, capfdbinary):
    """A path whose bytes are no UTF-8, printed to a terminal that is strict."""
    strict = open(os.dup(1), "w", encoding="ascii")  # noqa: SIM115
    monkeypatch.setattr(sys, "stdout", strict)
    monkeypatch.setattr(cli, "app", lambda **how: print("Written to \udcff ε.", flush=True))
    with pytest.raises(SystemExit):
        cli.main()
    assert capfdbinary.readouterr().out == b"Written to \\udcff \\u03b5.\n"
    strict.close()


LOGS = pd.DataFrame(
    {"a": ["x", "y"], "r": [0, 1], "b": [0, 1], "c": [2, 2], "d": [1, 0], "p": [0.5, 0.5]}
)
LOGS = LOGS.assign(item_id=[0, 1], position=[1, 2], click=[0, 1], propensity_score=0.5)
LOGS = pd.concat([LOGS] * 3)
NUMBERS = pd.DataFrame({"one": [0.25, 0.5, 0.75], "two": 0.5})
ARMS = {"action": "a", "reward": "r", "reward_range": (0, 1)}
LISTS = {"n_items": 3, "items": ["b", "c"], "clicks": ["r", "d"], "prefix": ["p", "p"]}
ASKED = {"price": "p", "reward": "r", "density": "p", "price_range": (0, 1), "reward_range": (0, 1)}
ROUNDS = {"horizon": 3}
FIT = "fit {} --price-range 1:3 --unit-cost 0.5 --feature age=18:90"
DOORS = {
    "PricingFromLog": (shop(n=300), lambda path: PricingFromLog(path, **SHOP)),
    "RecommendationFromLog": (clicks(n=900), lambda path: RecommendationFromLog(path, **CLICKS)),
    "AssortmentFromLog": (drinks(n=300), lambda path: AssortmentFromLog(path, **DRINKS)),
    "read_log": (LOGS, lambda path: read_log(path, **ARMS)),
    "read_observed": (LOGS, lambda path: read_observed(path, **ARMS)),
    "read_open_bandit": (LOGS, lambda path: read_open_bandit(path, n_items=2)),
    "read_lists": (LOGS, lambda path: read_lists(path, **LISTS)),
    "read_prices": (LOGS, lambda path: read_prices(path, **ASKED)),
    "Arms": (NUMBERS, lambda path: Arms(law="table", table=path, **ROUNDS)),
    "Experts": (NUMBERS, lambda path: Experts(kind="table", table=path, **ROUNDS)),
    "RatingsBandit": (
        pd.read_csv(example()),
        lambda path: RatingsBandit(path=path, low=0.5, high=5),
    ),
    "fit": (shop(n=300), FIT),
    "fit --items": (clicks(n=900), "fit {} --items news,sport,games --feature age=18:90"),
    "fit --product": (
        drinks(n=300),
        FIT + "".join(f" --product {name}={price}" for name, price in DRINKS["products"].items()),
    ),
    "evaluate": (LOGS, "evaluate {} --policy uniform --action a --reward r"),
}
"""A table that is taken, and whoever takes the path of a file, or a command that does."""
CELLS = r"Expected \d+ cells in line {} of .*, as many as in the header, got \d+\.|time in line {}"
HARMED = {
    "a comma more": (lambda head, rows: [head, *(f"{row}," for row in rows)], CELLS, 2),
    "a comma more below": (lambda head, rows: [head, rows[0], f"{rows[1]},", *rows[2:]], CELLS, 3),
    "cells too few": (lambda head, rows: [head, rows[0], rows[1][:1], *rows[2:]], CELLS, 3),
    "a gap": (lambda head, rows: [head, rows[0], "", *rows[1:]], CELLS, 3),
    "a name twice": (
        lambda head, rows: [f"{head},{head}", *(f"{row},{row}" for row in rows)],
        "name of its own, got '.*' twice|rating,time in line {}", 2,
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tables_are_what_they_say_at_every_door(tmp_path, monkeypatch, run):
    """pandas takes the first column for an index where rows end in a comma, fills short rows, and
    numbers names that stand there twice; UTF-16 and Latin-1 are named. Unharmed all are taken."""
    monkeypatch.chdir(tmp_path)

    def taken(door, path):
        if callable(door):
            return door(path)
        code, _, errors = run(*door.format(path).split())
        if code:
            raise InputError(errors.strip())
        return code

    for name, (table, door) in DOORS.items():
        with asserting(name):
            head, *rows = table.to_csv(index=False).splitlines()
            marked = "\ufeff" + "\r\n".join([head, *rows, "", ""])
            (tmp_path / "good.csv").write_bytes(marked.encode())
            assert taken(door, "good.csv") is not None
            for harm, (change, says, line) in HARMED.items():
                with asserting(harm):
                    (tmp_path / "bad.csv").write_text("\n".join(change(head, rows)))
                    refused(says.replace("{}", str(line)), taken, door, "bad.csv")
            for encoding in ("UTF-16", "UTF-16-LE", "Latin-1"):
                with asserting(encoding):
                    text = "\n".join([f"{head},Größe", *(f"{row},1" for row in rows)])
                    (tmp_path / "bad.csv").write_bytes(text.encode(encoding))
                    says = f"bad.csv to be UTF-8, got .*{encoding[:6]}.*: save it as UTF-8"
                    refused(says, taken, door, "bad.csv")
