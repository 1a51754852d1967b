"""Files: what is no file gets one sentence and never a hang, and nothing is replaced but files."""

import os
import sys

import pandas as pd
import pytest

from dpbandit import InputError, Results, cli
from dpbandit.base.files import check_writable, parse_json, read_text, write_atomically, write_csv
from dpbandit.envs.contextual.recommendation import read_ratings
from dpbandit.results.store import planned, read_runs
from dpbandit.studies import Sweep
from tests.each import each, refused


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
    """As /dev/stdout is one; also to what is not there yet."""
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
