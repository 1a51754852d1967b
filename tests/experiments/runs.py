"""Runs with regrets made up, for tests of what is said about them; commands, as documented."""

from dataclasses import replace
from functools import cache
from math import inf

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from dpbandit import compare
from dpbandit.agents import DPUCB
from dpbandit.experiments.study import command


@cache
def _real():
    return compare("GLMBandit", {"dp": DPUCB()}, horizon=2, replicas=1, progress=False).runs[0]


def made_up(name, *final, claimed=inf, certified=None, horizon=500):
    """A run of two logged rounds that ends with these regrets, one for each replica."""
    run, epsilon = _real(), claimed if certified is None else certified
    regret = np.array([[0.0] * len(final), final], dtype=float)
    return replace(
        run,
        name=name,
        setup=replace(run.setup, horizon=horizon, problem="made up", reward_unit="dollars"),
        certificate=replace(run.certificate, epsilon=epsilon, claimed_epsilon=claimed),
        marks=np.array([1, horizon]),
        replicas=np.arange(len(final)),
        regret=regret,
        reward=-regret,
        switches=np.zeros((2, len(final)), np.int64),
        clipped=np.zeros(len(final)),
    )


def run_command(main, *words):
    """What `python -m ...` prints, and its exit code."""
    app = typer.Typer()
    app.command()(main)
    wide = {"COLUMNS": "200"}
    return CliRunner().invoke(app, [str(word) for word in words], env=wide)


def quick(study, sizes, folder, replicas=2):
    """What the command of a study, a module, prints with `--quick` on `sizes`."""
    main = command("tiny", study.run, None, sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpbandit.base.progress.PATIENCE", 1e9)
        done = run_command(main, "--quick", "--out", folder, "--replicas", replicas)
    assert done.exit_code == 0, done.output
    return done.output


def figures_of(folder):
    """The names of the images there."""
    images = {path.stem: path.read_bytes()[:4] for path in folder.glob("*.png")}
    assert set(images.values()) == {b"\x89PNG"}
    return set(images)
