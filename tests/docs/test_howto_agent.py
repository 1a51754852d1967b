"""The agent that the documentation writes passes the tests that watch the mechanism."""

import sys
from types import ModuleType

import numpy as np
import pytest

from tests.docs.markdown import ROOT, blocks
from tests.harness import DISJOINT, billboard_differences, extreme_users, largest_move, run


@pytest.fixture(scope="module")
def private_segments():
    source = next(
        block.text
        for block in blocks((ROOT / "docs" / "howto" / "agent.md").read_text())
        if block.text.startswith("# private_segments.py")
    )
    sys.modules["private_segments"] = module = ModuleType("private_segments")
    exec(source, vars(module))
    yield module
    del sys.modules["private_segments"]


def two_worlds(config, spec, t):
    with np.errstate(all="ignore"):
        first = run(config, spec, world := extreme_users(spec, 60, seed=1))
        other = world.swapped(t, extreme_users(spec, 60, seed=2))
        return first, run(config, spec, other, replay=first)


@pytest.mark.parametrize("t", [0, 7])
def test_its_mechanism_is_as_wide_as_it_says_and_it_remembers_releases_alone(private_segments, t):
    worlds = two_worlds(private_segments.PrivateSegments(), DISJOINT, t)
    assert 0.75 < largest_move(*worlds, t).max() <= 1 + 1e-9
    assert billboard_differences(*worlds, t) == []


def test_a_wrong_sensitivity_would_be_seen(private_segments, monkeypatch):
    """Broken on purpose: forgets that a user of another arm moves two cells."""
    monkeypatch.setattr(private_segments.ArmSums, "sensitivity", 2**0.5)
    moves = largest_move(*two_worlds(private_segments.PrivateSegments(), DISJOINT, 7), 7)
    assert moves.max() > 1.2
