"""What the docstring of an agent says of other files is there."""

import inspect
import re
import sys
from pathlib import Path

from dpbandit.agents import AGENTS
from tools.reading import ROOT, reading

CODE = re.compile(r"`(\w+)(?:\.(\w+))?` +\(([\w/]+\.py)\)")


def test_what_docstrings_name_is_there():
    """A class, function or method that was renamed, or moved out of the file that is named."""
    missing = []
    for agent in AGENTS.values():
        own = Path(inspect.getfile(agent))
        said = " ".join(f"{sys.modules[agent.__module__].__doc__} {agent.__doc__}".split())
        for outer, inner, file in CODE.findall(said):
            near = own.parent / file
            (found,) = [near] if near.exists() else ROOT.glob(f"agents/*/{file}")
            missing += [
                f"{agent.__name__}: {word} in {file}"
                for word in filter(None, (outer, inner))
                if not re.search(rf"^ *(class|def) {word}\b", found.read_text(), re.M)
            ]
    assert missing == []


def test_what_runs_is_counted():
    """The files that make LinUCB and play a round of it, by hand: its own, the base of agents, the
    problem, and what it promises. A file that is left out makes the measure of the house a lie."""
    found = {file.relative_to(ROOT).as_posix() for file in reading("linucb").files}
    assert {
        "agents/contextual/linear.py",
        "dpbandit/agent.py",
        "dpbandit/specs/protocols.py",
        "dpbandit/privacy/ledger.py",
    } <= found
    assert len(found) < 10
