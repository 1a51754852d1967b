"""The study of lists: shares of what uniform lists lose, and its command."""

from dataclasses import replace

import pandas as pd
import pytest

from dpbandit import Results
from dpbandit.experiments.lists import __main__ as command
from dpbandit.experiments.lists.__main__ import by_size, table
from tests.experiments.runs import made_up, quick


def sized(run, length, n_items):
    kwargs = {"length": length, "n_items": n_items}
    return replace(run, setup=replace(run.setup, env_kwargs=kwargs))


def test_shares_are_of_what_uniform_lists_lose():
    """Golden, by hand: 20 and 40 of a mean of 200 are 10 and 20 per cent; short ones come first."""
    long = [made_up("fade", 20, 40, claimed=1.0), made_up("Uniform", 100, 300, claimed=0.0)]
    runs = [sized(run, 5, 40) for run in long] + [sized(long[1], 1, 200)]
    found = by_size(Results(tuple(runs)))
    assert list(found) == [(1, 200), (5, 40)]
    row = table(found[5, 40]).set_index("agent").loc["fade"]
    assert (row["share"], row["share_se"]) == pytest.approx((15, 5))
    assert (row["length"], row["n_items"], row["mean"]) == (5, 40, 30)


def test_the_command(tmp_path):
    """Every size has every agent, and two figures are drawn."""
    said = quick(command, {"horizons": [10], "epsilons": [1.0]}, tmp_path)
    assert said.count("│ private-cascade") == 9
    found = pd.read_csv(tmp_path / "summary.csv")
    assert (found.groupby(["length", "n_items"])["agent"].count() == 6).all()
    assert (found["certified_epsilon"] <= found["claimed_epsilon"]).all()
    assert {path.name for path in tmp_path.glob("*.png")} == {"epsilon.png", "sizes.png"}
