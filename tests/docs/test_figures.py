"""The figure that README shows is what README's command draws.

A figure carries its title and the end of each line as text, so nobody has to compare pixels.
"""

import re
import shlex
import sys

import pytest
import typer
from PIL import Image

from dpbandit import Results, cli
from tests.docs.markdown import ROOT, blocks

COMMAND = next(
    line.partition("/dpbandit ")[2]
    for block in blocks((ROOT / "README.md").read_text())
    for line in block.text.splitlines()
    if "dpbandit compare" in line
)


def ends(picture):
    """Title, and agent -> (mean regret, round) at the end of its line."""
    with Image.open(picture) as image:
        title, *lines = image.text["Description"].split("\n")
    found = [re.fullmatch(r"(\S+) \(.*\): (\S+) at (\S+)", line) for line in lines]
    return title, {line[1]: (float(line[2]), float(line[3])) for line in found}


def test_the_figure_is_of_the_command():
    """Environment, replicas, horizon, every agent and the baselines; no other agent."""
    command = typer.main.get_command(cli.app).commands["compare"]
    given = command.make_context("compare", shlex.split(COMMAND)[1:]).params
    title, found = ends(ROOT / "docs" / "regret.png")
    assert title == f"{given['env']}: mean of {given['replicas']} replicas, 95 % bands"
    assert set(found) == {*given["agents"][0].split(","), "Uniform", "BestFixed"}
    assert {at for _, at in found.values()} == {given["horizon"]}


@pytest.mark.slow
def test_the_command_draws_the_figure(tmp_path, monkeypatch):
    """Within a standard error: another processor may change last bits, and then an action."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dpbandit", *shlex.split(COMMAND)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    title, found = ends(ROOT / "docs" / "regret.png")
    drawn_title, drawn = ends(tmp_path / "out" / "regret.png")
    spread = Results.load(tmp_path / "out").summary().set_index("agent")["se"]
    assert (title, found.keys()) == (drawn_title, drawn.keys())
    assert all(abs(found[name][0] - drawn[name][0]) <= spread[name] for name in found)
