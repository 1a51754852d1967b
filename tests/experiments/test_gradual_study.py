"""The study of gradual expiration: equal epsilons at an age, and its command."""

import pandas as pd
import pytest

from dpbandit.experiments.gradual import __main__ as command
from dpbandit.experiments.gradual.__main__ import Sizes
from tests.experiments.runs import quick

TINY = Sizes(horizon=70, ages=(1,), epsilons=(1.0,), replicas=2)


def test_the_command(tmp_path):
    """All sums of a panel have the same epsilon for those who watch so long, and a window is left
    out where it has ended. Catches a claim that is solved for at another age, or by another law."""
    said = quick(command, TINY, tmp_path, replicas=2)
    assert said.count("│ gradual sum") == 4
    assert said.count("│ window of 64 rounds") == 1
    found = pd.read_csv(tmp_path / "gradual.csv")
    private = found.query("agent != 'no privacy'")
    assert private["then"].to_numpy() == pytest.approx(private["epsilon"].to_numpy(), rel=1e-6)
    assert (private["then"] <= private["ever"] * (1 + 1e-9)).all()
    assert (private.query("watched == @command.EVER")["agent"] != "window of 64 rounds").all()
    assert {path.name for path in tmp_path.glob("*.png")} == {"gradual.png"}
