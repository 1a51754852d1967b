"""The study of trust and of people who return: its figures, and its command."""

import pandas as pd

from dpbandit.experiments.trust import __main__ as command
from tests.experiments.runs import quick


def test_the_command(tmp_path):
    """Every world has every agent, two figures are drawn, certificates keep their claims."""
    trust, people = {"horizons": [20], "epsilons": [1.0]}, {"people": 5, "visits": 4}
    said = quick(command, {"trust": trust, "people": people}, tmp_path)
    assert said.count("│ shuffler: flipped bits") == 3
    assert said.count("│ first visits, and memory") == 1
    found = pd.read_csv(tmp_path / "summary.csv")
    assert (found["certified_epsilon"] <= found["claimed_epsilon"]).all()
    assert {path.name for path in tmp_path.glob("*.png")} == {"trust.png", "returning.png"}
