"""What is run: lines of step scales, for each printed row and agent, and wider for a figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from dpbandit.base.inputs import MOST_REPLICAS, InputError, one_of, whole
from dpbandit.experiments.questions import Lines, Panels
from dpbandit.experiments.releases import ReleaseConfiguration
from dpbandit.experiments.sgd.printed import Row, Setting, chosen_rows, rows
from dpbandit.experiments.sgd.readings import READINGS, Line, lines, varied_lines
from dpbandit.results.runs import Setup
from dpbandit.specs.protocols import AgentConfig
from dpbandit.studies import setup_of

THETAS = {"equal": "dense", "stated": "gaussian"}
"""Of the table's program, and of Section 5.3 -> what the environment calls it"""

ROWS, SCALES = "rows", "step scales"
"""The two questions"""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Of both questions."""

    rows: Sequence[Row] = field(default_factory=rows)
    readings: tuple[str, ...] = READINGS
    scales_at: Sequence[Setting] = (Setting(1.5, 10, 5000), Setting(inf, 10, 5000))
    """where everybody's step scale is varied, for a figure"""
    theta: str = "equal"
    """whose theta*, of `THETAS`"""
    replicas: int = 40
    seed: int = 0

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2, MOST_REPLICAS)  # there are standard errors
        one_of("theta", self.theta, THETAS)
        for reading in self.readings:
            one_of("reading", reading, READINGS)
        if not self.rows or not self.readings:
            raise InputError("Expected at least one row and one reading.")


QUICK = Sizes(
    rows=chosen_rows("T=1000,d=5"),
    scales_at=(Setting(1.5, 5, 1000), Setting(inf, 5, 1000)),
    replicas=3,
)


def questions(sizes: Sizes) -> Mapping[str, Panels]:
    """Panels are printed rows, by number, and settings; along a line the step scale varies."""
    return {
        ROWS: {
            str(row.number): _along(row.setting, lines(row, sizes.readings), sizes)
            for row in sizes.rows
        },
        SCALES: {
            f"p = {at.p:g}, d = {at.dim}, T = {at.users:,}": _along(at, varied_lines(at), sizes)
            for at in sizes.scales_at
        },
    }


def _along(setting: Setting, some: Sequence[Line], sizes: Sizes) -> Lines:
    how: dict[str, Any] = {"seed": sizes.seed, "theta": sizes.theta}
    return {
        line.label: [
            on(setting, f"{line.label} {scale:g}" if line.tried else line.label, config, **how)
            for scale, config in line.configs.items()
        ]
        for line in some
    }


def on(
    setting: Setting, name: str, config: AgentConfig, *, seed: int, theta: str = "equal"
) -> ReleaseConfiguration:
    """An agent on a regression of the table."""
    setup = setup_of_regression(setting, seed=seed, theta=theta)
    return ReleaseConfiguration(setup, name, config)


def setup_of_regression(setting: Setting, *, seed: int, theta: str) -> Setup:
    """Its problem, with equal entries of theta* or others (see `THETAS`)."""
    arguments: dict[str, Any] = {"p": setting.p, "dim": setting.dim}
    label = f"p = {setting.p:g}, d = {setting.dim}"
    if theta != "equal":
        arguments["theta"] = THETAS[theta]
        label += f", theta* as {theta}"
    return setup_of("StreamingRegression", arguments, horizon=setting.users, seed=seed, label=label)
