"""The study of returning customers: regret by visit by hand, and its command."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpbandit.experiments.returning_prices import __main__ as command, by_visit
from tests.experiments.runs import quick


def test_regret_by_visit():
    """By hand: ten people, 3 a round up to the fifth visit, 1 a round from then on."""
    marks = np.arange(5, 401, 5)
    regret = np.where(marks <= 50, 3.0 * marks, 100.0 + marks)[:, None]
    run = SimpleNamespace(setup=SimpleNamespace(horizon=400), marks=marks, regret=regret)
    assert by_visit(run)[:, 0] == pytest.approx([3, 3, 3, 3, 1, 1, 1, 1])


def test_the_command(tmp_path):
    """Both sweeps are played and one figure is drawn; what is certified keeps its claim, and own
    history with a survey, be it wrong, or a guess spends nothing."""
    quick(command, {"horizons": [40]}, tmp_path)
    found = pd.read_csv(tmp_path / "summary.csv")
    assert set(zip(found["shift"], found["spread"], strict=True)) == {
        (0, 1),
        (1, 1),
        (-1, 1),
        (0, 0.5),
    }
    own = found[found["agent"].isin(["own history, public survey", "own history alone"])]
    assert (own["certified_epsilon"] == 0).all()
    assert len(own) == 5
    assert {path.name for path in tmp_path.glob("*.png")} == {"visits.png"}
