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


def test_the_command(tmp_path):
    """Every instance has every agent at both sizes, and two figures are drawn."""
    quick(command, {"horizons": [30, 60], "epsilons": [1.0]}, tmp_path, replicas=2)
    found = pd.read_csv(tmp_path / "summary.csv")
    assert set(found["means"]) == {"two", "ten", "steps", "close"}
    assert (found["certified_epsilon"] <= found["claimed_epsilon"]).all()
    assert {path.name for path in tmp_path.glob("*.png")} == {"epsilon.png", "rounds.png"}
