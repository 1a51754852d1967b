"""Grids of runs: resumed where they stopped, run anew where anything differs."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from dpbandit import InputError, compare
from dpbandit.agents import DPUCB, BestFixed, LinUCB, Priced, Uniform
from dpbandit.experiments import grid
from dpbandit.experiments.grid import Cell, run_grid

SIZE = {"environment": "OJPricing", "horizon": 60, "replicas": 3, "seed": 4}
CELLS = {
    "uniform": Cell(config=Uniform(), **SIZE),
    "best fixed": Cell(config=BestFixed(), **SIZE),
    "linucb": Cell(config=LinUCB(), **SIZE),
    "dp-ucb/epsilon-2": Cell(config=DPUCB(epsilon=2.0, delta=1e-4), **SIZE),
}


@pytest.fixture
def played(monkeypatch):
    """The configs that were really played."""
    names, play = [], grid.play_any

    def watched(problem, config, *args, **kwargs):
        names.append(type(config).__name__)
        return play(problem, config, *args, **kwargs)

    monkeypatch.setattr(grid, "play_any", watched)
    return names


def same(one, two):
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_a_grid_is_compare_bit_for_bit(tmp_path, monkeypatch):
    """Oracle, also when replicas run two at a time: they depend on (seed, r) only."""
    monkeypatch.setattr(grid, "_AT_ONCE", 2)
    found = run_grid(CELLS, tmp_path, progress=False)
    agents = {name: cell.config for name, cell in CELLS.items()}
    kwargs = {"horizon": 60, "replicas": 3, "seed": 4, "progress": False}
    for run in compare("OJPricing", agents, **kwargs).runs:
        outcome = found[run.name]
        assert same((outcome.regret, outcome.reward), (run.regret, run.reward))
        assert outcome.epsilon == run.certificate.epsilon
        assert outcome.delta == run.certificate.claimed_delta
    assert found["linucb"].epsilon == inf


def test_an_interrupted_grid_goes_on_where_it_stopped(tmp_path, monkeypatch, played):
    """Interrupted in the third cell, as by Control-C; then again, then with nothing left to do."""
    whole = run_grid(CELLS, tmp_path / "whole", progress=False)
    played.clear()
    watched, calls = grid._run, []

    def interrupted(name, *rest):
        calls.append(name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return watched(name, *rest)

    monkeypatch.setattr(grid, "_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_grid(CELLS, tmp_path / "cells", progress=False)
    monkeypatch.setattr(grid, "_run", watched)
    assert len(list((tmp_path / "cells").rglob("*.parquet"))) == 2
    played.clear()
    resumed = run_grid(CELLS, tmp_path / "cells", progress=False)
    assert played == ["LinUCB", "DPUCB"]
    again = run_grid(CELLS, tmp_path / "cells", progress=False)
    assert played == ["LinUCB", "DPUCB"]
    assert list(whole) == list(resumed) == list(again) == list(CELLS)
    for name in CELLS:
        assert same(whole[name], resumed[name])
        assert same(whole[name], again[name])


@pytest.mark.parametrize(
    "change",
    [
        {"config": LinUCB(alpha=0.5)},
        {"config": Priced(LinUCB())},
        {"seed": 5},
        {"horizon": 61},
        {"replicas": 2},
        {"environment": "GLMBandit"},
        {"env_kwargs": {"delay": 1}},
    ],
    ids=str,
)
def test_a_cell_of_something_else_is_run_anew(tmp_path, played, change):
    cell = CELLS["linucb"]
    if "environment" in change:
        change = {**change, "config": LinUCB()}
    run_grid({"a": cell}, tmp_path, progress=False)
    run_grid({"a": replace(cell, **change)}, tmp_path, progress=False)
    once = ["LinUCB", type(replace(cell, **change).config).__name__]
    assert played == once
    run_grid({"a": replace(cell, **change)}, tmp_path, progress=False)
    assert played == once


def test_another_version_runs_anew(tmp_path, played, monkeypatch):
    run_grid({"a": CELLS["uniform"]}, tmp_path, progress=False)
    monkeypatch.setattr(grid, "VERSION", "another")
    run_grid({"a": CELLS["uniform"]}, tmp_path, progress=False)
    assert played == ["Uniform", "Uniform"]


def test_half_a_file_is_run_anew(tmp_path, played):
    run_grid({"a": CELLS["uniform"]}, tmp_path, progress=False)
    whole = (tmp_path / "a.parquet").read_bytes()
    for broken in (whole[: len(whole) // 2], b"", b"no table"):
        (tmp_path / "a.parquet").write_bytes(broken)
        run_grid({"a": CELLS["uniform"]}, tmp_path, progress=False)
        assert (tmp_path / "a.parquet").read_bytes()[:4] == b"PAR1"
    assert played == ["Uniform"] * 4


def test_mistakes_get_one_sentence(tmp_path):
    with pytest.raises(InputError, match="replicas=0"):
        Cell(**{**SIZE, "replicas": 0}, config=Uniform())
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write"):
        run_grid({"a": CELLS["uniform"]}, tmp_path / "file", progress=False)
