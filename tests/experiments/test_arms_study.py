"""The study of arms: its lower bound, and its command."""

from math import log

import pandas as pd
import pytest

from dpbandit.experiments.arms import __main__ as command
from dpbandit.experiments.arms.__main__ import lower_bound
from tests.experiments.runs import quick


def test_the_lower_bound_by_hand():
    """Golden: of `two` the divergence is .2 ln(3/2) + .2 ln(3/2) = .081; at a small epsilon an arm
    costs 1 / (6 epsilon)."""
    kl = 0.4 * log(0.4 / 0.6) + 0.6 * log(0.6 / 0.4)
    assert lower_bound((0.6, 0.4), 9.0) == pytest.approx(0.2 / kl)
    assert lower_bound((0.7, 0.5, 0.5), 0.001) == pytest.approx(2 / 0.006)


def test_the_command_and_the_second_does_no_work(tmp_path, monkeypatch):
    """Every instance has every agent at both sizes, and two figures are drawn. As in all studies of
    sweeps, nothing is played again."""
    sizes = {"horizons": [20, 30], "epsilons": [1.0]}
    said = quick(command, sizes, tmp_path)
    found = pd.read_csv(tmp_path / "summary.csv")
    assert set(found["means"]) == {"two", "ten", "steps", "close"}
    assert (found["certified_epsilon"] <= found["claimed_epsilon"]).all()
    assert {path.name for path in tmp_path.glob("*.png")} == {"epsilon.png", "rounds.png"}
    monkeypatch.setattr("dpbandit.studies.configurations.play_any", None)  # would not be callable
    monkeypatch.setattr(command, "figures", lambda *_: [*tmp_path.glob("*.png")])
    assert set(quick(command, sizes, tmp_path).splitlines()) <= set(said.splitlines())
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "summary.csv"), found)
