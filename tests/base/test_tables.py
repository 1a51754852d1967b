"""Printed tables: keys are whole and nothing is cut, at any width, in a pipe too."""

import os
import re
import sys
from io import StringIO
from itertools import zip_longest

from rich.console import Console

from dpbandit import cli
from dpbandit.base.tables import Table
from tests.each import each

LONG = "shariff-sheffet-ucb:calibration=paper"


def printed(table, width):
    file = StringIO()
    Console(file=file, width=width).print(table)
    return file.getvalue()


def columns(text):
    """The letters of the first column, of the second, ..., of all lines of all blocks together."""
    lines = [re.split("[│┃]", line)[1:-1] for line in text.splitlines() if line[:1] in "│┃"]
    return ["".join(part.strip() for part in parts) for parts in zip_longest(*lines, fillvalue="")]


@each("width", [200, 80, 60, 48])
def test_keys_stand_in_every_block_and_nothing_is_cut(width):
    """It would catch rows that nobody can tell apart: Rich takes the letters of columns that do not
    fit, keys first, where a table is wider than the terminal, and in a pipe that has 80."""
    table = Table("row", "reading", "agent", keys=3, title="Exponents", caption="two runs")
    for heading in ("measured there", "at the last", "printed"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("privacy")
    for row in range(3):
        numbers = (f"{row}.33 ± 0.10", f"95{row} ± 7", "0.5")
        table.add_row(f"{row}", "certified", "NoisyFTRL", *numbers, "of rewards, contexts public")
    text = printed(table, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    blocks = text.count("reading")
    for row in range(3):
        key = rf"{row} +│ certified +│ NoisyFTRL "
        assert len(re.findall(key, text)) == blocks
        for number in (f" {row}.33 ± 0.10 ", f" 95{row} ± 7 "):
            assert text.count(number) == 1
    assert (blocks == 1) == (width == 200)
    assert text.count("Exponents") == text.count("two runs") == 1
    assert all(text.count(word) >= 3 for word in ("rewards,", "contexts", "public"))


@each("width", [80, 50, 30, 12])
def test_long_keys_fold(width):
    """A name of 37 letters is whole in every block, over several lines; where there is no room
    for a number, that folds, too."""
    table = Table("agent", keys=1, letters=14)
    for heading in ("mean", "median"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_row(LONG, "123.4", "5678901")
    text = printed(table, width)
    assert max(map(len, text.splitlines())) <= width
    names, *numbers = columns(text)
    assert names == f"agent{LONG}" * names.count("agent")
    assert "123.4" in "".join(numbers)
    assert "5678901" in "".join(numbers)


PIPED = {
    "suite": ["lists of 1,000", "lists for people", "secure aggregation", "65,536"],
    "reproduce --list": ["contextual/p1", "public", "shariff-sheffet-ucb"],
    "reproduce experts/table-1 --rows 1,T=256 --replicas 2": [
        "certified │ NoisyFTRL", "public    │ NoisyFTRL", "measured",
    ],
}  # fmt: skip
"""Commands that print tables -> words that are whole in them."""


@each("words", PIPED)
def test_in_a_pipe(words, capfd, monkeypatch):
    """Without a terminal and COLUMNS."""

    def no_terminal(descriptor=1):
        raise OSError("a pipe")

    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "get_terminal_size", no_terminal)
    monkeypatch.setattr(sys, "argv", ["dpbandit", *words.split()])
    try:
        cli.main()
    except SystemExit as end:
        if end.code:
            raise
    text = capfd.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert all(part in text for part in PIPED[words]), text
