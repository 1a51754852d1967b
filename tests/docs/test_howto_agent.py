"""The agent that the documentation writes keeps what it promises."""

import sys
from types import ModuleType

import pytest

from dpbandit.testing import check_agent
from tests.docs.markdown import ROOT, blocks
from tests.harness import DISJOINT


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


def test_it_keeps_what_it_promises(private_segments):
    found = check_agent(private_segments.PrivateSegments(), DISJOINT)
    assert [line.partition(":")[0] for line in found] == [
        "certificate",
        "replicas",
        "copies",
        "ledger",
        "sensitivity",
        "billboard",
        "noise",
    ]


def test_a_wrong_sensitivity_is_seen(private_segments, monkeypatch):
    """Forgets that a user of another arm moves two cells."""
    monkeypatch.setattr(private_segments.ArmSums, "sensitivity", 2**0.5)
    with pytest.raises(AssertionError, match="their sensitivity"):
        check_agent(private_segments.PrivateSegments(), DISJOINT)
