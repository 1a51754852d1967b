"""An algorithm is read in its file: few others run in a round, and the docstring names them."""

import re
from functools import cache
from statistics import median

import pytest

from dpbandit.agents import AGENTS
from tools.reading import (
    MEDIAN_FILES,
    MEDIAN_LINES,
    MOST_FILES,
    ROOT,
    explained,
    files_read,
    own_file,
    unnamed,
)

ROUNDS = 60
CODE = re.compile(r"`(\w+)(?:\.(\w+))?` +\(([\w/]+\.py)\)")


@cache
def read(name):
    return frozenset(files_read(AGENTS[name], ROUNDS))


@pytest.mark.parametrize("name", AGENTS)
def test_every_file_that_runs_is_its_own_or_named(name):
    """A step that moved to another file, or a helper that came into a round, without a word."""
    assert unnamed(AGENTS[name], read(name)) == []


@pytest.mark.parametrize("name", AGENTS)
def test_what_docstrings_name_is_there(name):
    """A class, function or method that was renamed, or moved out of the file that is named."""
    folder, missing = own_file(AGENTS[name]).parent, []
    for outer, inner, file in CODE.findall(" ".join(explained(AGENTS[name]).split())):
        (found,) = [folder / file] if (folder / file).exists() else ROOT.glob(f"agents/*/{file}")
        missing += [
            f"{word} in {file}"
            for word in filter(None, (outer, inner))
            if not re.search(rf"^ *(class|def) {word}\b", found.read_text(), re.M)
        ]
    assert missing == []


def test_a_round_is_short_to_read():
    """The bar of the house: half of all agents are read in five files, none in more than ten."""
    lines = [sum(len(file.read_text().splitlines()) for file in read(name)) for name in AGENTS]
    assert median(len(read(name)) for name in AGENTS) <= MEDIAN_FILES
    assert median(lines) <= MEDIAN_LINES
    assert max(len(read(name)) for name in AGENTS) <= MOST_FILES


def test_a_file_without_a_word_is_seen():
    """The check bites: of the files of DP-UCB none but its own is named by Hedge."""
    strange = unnamed(AGENTS["hedge"], read("dp-ucb"))
    assert {file.name for file in strange} == {"agent.py", "linear.py"}
