"""The runs behind the figure: three panels of agents on the paper's bandit problem."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from dpbandit.base.files import write_json
from dpbandit.base.inputs import whole
from dpbandit.experiments.cases import CASES
from dpbandit.experiments.grid import Cell, Outcome, run_grid
from dpbandit.privacy.certificate import Certificate
from dpbandit.results.runs import describe, standard_error
from dpbandit.running.certify import certify
from dpbandit.running.environments import problem_maker

CASE = CASES["contextual/figure-5-1"]


class Published(NamedTuple):
    """A printed curve: a straight line from 0, as far as the eye can tell."""

    label: str
    regret: float
    """after `ROUNDS` rounds"""
    reading: float
    """how far off our reading may be"""


ROUNDS = 10_000
PUBLISHED = (Published("DP-UCB", 940, 80), Published("DP-HDB", 62, 10))
"""Read off the picture in the authors' public notebook; the numbers behind it are not there."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One agent in one panel or more."""

    label: str
    agent: str
    """command-line id"""
    panels: str
    """letters"""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """on top of the case's"""
    context_order: float = inf
    """the norm in which contexts have length 1"""


_PRINTED = {"calibration": "paper"}
_GUMBEL = {"selection": "gumbel", "residual_clip": 0.3, "radius": 0.2}
_SMALL_BALL = {"gradient_clip": 0.4, "radius": 0.2}

LINES = {
    "uniform": Line(label="uniform play", agent="uniform", panels="abc"),
    "uniform-l1": Line(
        label="uniform play, contexts of $\\ell_1$ norm 1",
        agent="uniform",
        panels="a",
        context_order=1,
    ),
    "dp-ucb-paper": Line(
        label="DP-UCB", agent="shariff-sheffet-ucb", panels="b", settings=_PRINTED
    ),
    "dp-hdb-paper": Line(label="DP-HDB", agent="dp-hdb", panels="b", settings=_PRINTED),
    "dp-ucb": Line(label="DP-UCB, theory radius", agent="dp-ucb", panels="c"),
    "dp-ucb-greedy": Line(
        label="DP-UCB, greedy", agent="dp-ucb", panels="c", settings={"alpha": 0}
    ),
    "dp-ucb-moment": Line(label="DP-UCB, moments alone", agent="dp-moments", panels="c"),
    "dp-hdb-gumbel": Line(
        label="DP-HDB, Gumbel choices", agent="dp-hdb", panels="c", settings=_GUMBEL
    ),
    "dp-hdb": Line(label="DP-HDB, Gaussian sums", agent="dp-hdb", panels="c", settings=_SMALL_BALL),
    "fliphat": Line(label="FLIPHAT", agent="fliphat", panels="c"),
    "batch-moment": Line(label="BatchMoment", agent="batch-moment", panels="c"),
    "fade": Line(label="FADE", agent="fade", panels="c"),
    "online-frank-wolfe": Line(label="online Frank-Wolfe", agent="online-frank-wolfe", panels="ac"),
    "linucb": Line(label="LinUCB", agent="linucb", panels="c"),
}
"""By the names of their files."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much to run; delta is 1 / horizon, as in the paper."""

    horizon: int = ROUNDS
    replicas: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2)  # there are confidence bands
        whole("horizon", self.horizon, 100)  # at 100 rounds there is room for the warm-up


QUICK = Plan(horizon=500, replicas=3)


class Found(NamedTuple):
    """One line, run."""

    line: Line
    outcome: Outcome
    proof: Certificate


def study(plan: Plan, out: Path, *, progress: bool = True) -> dict[str, Found]:
    """Run what is missing below `out`/cells and write `out`/certificates.json."""
    cells = {name: cell_of(line, plan) for name, line in LINES.items()}
    outcomes = run_grid(cells, out / "cells", progress=progress)
    found = {name: Found(line, outcomes[name], _proof(cells[name])) for name, line in LINES.items()}
    table = {name: _row(cells[name], one) for name, one in found.items()}
    write_json(out / "certificates.json", table)
    return found


def cell_of(line: Line, plan: Plan) -> Cell:
    """The run of a line."""
    target = {"epsilon": 1.0, "delta": 1 / plan.horizon}
    own = {key: value for key, value in target.items() if key in CASE.agents[line.agent]}
    arms = CASE.env_kwargs["n_actions"]
    settings = {**own, **line.settings}
    return Cell(
        environment=CASE.environment,
        config=CASE.config(line.agent, settings, rounds_an_arm=plan.horizon / arms),
        horizon=plan.horizon,
        replicas=plan.replicas,
        seed=plan.seed,
        env_kwargs={**CASE.env_kwargs, "context_order": line.context_order},
    )


def _proof(cell: Cell) -> Certificate:
    make = problem_maker(cell.environment)
    spec = make(**{**cell.env_kwargs, "horizon": cell.horizon}).spec
    return certify(cell.config, spec, accountants=False)


def _row(cell: Cell, found: Found) -> dict[str, Any]:
    regret, proof = found.outcome.regret[-1], found.proof
    return {
        "label": found.line.label,
        "panels": found.line.panels,
        "context_order": found.line.context_order,
        "claimed_epsilon": proof.claimed_epsilon,
        "delta": proof.claimed_delta,
        "certified_epsilon": proof.epsilon,
        "mu": proof.mu,
        "notion": proof.notion,
        "horizon": cell.horizon,
        "replicas": cell.replicas,
        "regret": float(regret.mean()),
        "regret_se": standard_error(regret),
        "config": describe(cell.config),
    }
