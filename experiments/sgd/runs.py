"""One run: an agent on a problem of the table, how good the point is that it releases."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dpbandit.base.arrays import Floats
from dpbandit.experiments.command import measured
from dpbandit.experiments.releases import ReleaseConfiguration
from dpbandit.experiments.sgd.printed import Problem
from dpbandit.specs.protocols import AgentConfig
from dpbandit.studies import Study, setup_of


class Found(NamedTuple):
    """What was found, of R replicas."""

    suboptimality: Floats
    risk: Floats
    seconds: float
    """of one replica, run beside the others"""
    epsilon: float
    """certified, at delta = 1/T"""


def on(problem: Problem, name: str, config: AgentConfig, *, seed: int) -> ReleaseConfiguration:
    """An agent on a problem."""
    setup = setup_of(
        "StreamingRegression",
        {"p": problem.p, "dim": problem.dim},
        horizon=problem.users,
        seed=seed,
        label=f"p = {problem.p:g}, d = {problem.dim}",
    )
    return ReleaseConfiguration(setup, name, config)


def run_releases(
    asked: Mapping[str, ReleaseConfiguration], folder: Path, *, replicas: int, progress: bool = True
) -> dict[str, Found]:
    """What all found, run where it is missing in `folder`."""
    one_each = {one.key: one for one in asked.values()}
    study = Study(name="Table 5.1", configurations=tuple(one_each.values()), replicas=replicas)
    runs = {run.key: run for run in measured(study, folder, progress=progress).runs}
    return {
        name: Found(
            run.measures["suboptimality"],
            run.measures["risk"],
            float(run.measures["seconds"].mean()),
            run.certificate.epsilon,
        )
        for name, one in asked.items()
        for run in [runs[one.key]]
    }
