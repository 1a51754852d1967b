"""The runs behind the figure: three panels of agents on the paper's bandit problem."""

from collections.abc import Mapping
from math import inf
from typing import Any, NamedTuple

from dpbandit.base.inputs import whole
from dpbandit.experiments.cases import CASES
from dpbandit.studies import Configuration, Study, setup_of

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


class Line(NamedTuple):
    """One agent in one panel or more."""

    label: str
    panels: str
    """letters"""
    agent: str
    """command-line id"""
    settings: Mapping[str, Any] = {}
    """on top of the case's"""
    context_order: float = inf
    """the norm in which contexts have length 1"""


_PRINTED = {"calibration": "paper"}
_CLIPPED = {"residual_clip": 0.3, "radius": 0.2}
_SMALL_BALL = {"gradient_clip": 0.4, "radius": 0.2}

LINES = {
    "uniform": Line("uniform play", "abc", "uniform"),
    "uniform-l1": Line(r"uniform play, contexts of $\ell_1$ norm 1", "a", "uniform", {}, 1),
    "dp-ucb-paper": Line("DP-UCB", "b", "shariff-sheffet-ucb", _PRINTED),
    "dp-hdb-paper": Line("DP-HDB", "b", "dp-hdb-choices", _PRINTED),
    "dp-ucb": Line("DP-UCB, theory radius", "c", "dp-ucb"),
    "dp-ucb-greedy": Line("DP-UCB, greedy", "c", "dp-ucb", {"alpha": 0}),
    "dp-ucb-moment": Line("DP-UCB, moments alone", "c", "dp-moments"),
    "dp-hdb-gumbel": Line("DP-HDB, Gumbel choices", "c", "dp-hdb-choices", _CLIPPED),
    "dp-hdb": Line("DP-HDB, Gaussian sums", "c", "dp-hdb", _SMALL_BALL),
    "fliphat": Line("FLIPHAT", "c", "fliphat"),
    "batch-moment": Line("BatchMoment", "c", "batch-moment"),
    "fade": Line("FADE", "c", "fade"),
    "online-frank-wolfe": Line("online Frank-Wolfe", "ac", "online-frank-wolfe"),
    "linucb": Line("LinUCB", "c", "linucb"),
}
"""By the names of their runs"""


def study(*, horizon: int = ROUNDS, replicas: int = 50) -> Study:
    """All lines; delta is 1 / horizon, as in the paper."""
    whole("replicas", replicas, 2)  # there are confidence bands
    whole("horizon", horizon, 100)  # there is room for the warm-up
    configurations = tuple(configuration(name, horizon) for name in LINES)
    return Study(name="Figure 5.1, again", configurations=configurations, replicas=replicas)


def configuration(name: str, horizon: int) -> Configuration:
    """The run of a line."""
    line = LINES[name]
    target = {"epsilon": 1.0, "delta": 1 / horizon}
    own = {key: value for key, value in target.items() if key in CASE.agents[line.agent]}
    per_arm = horizon / CASE.env_kwargs["n_actions"]
    config = CASE.config(line.agent, {**own, **line.settings}, rounds_an_arm=per_arm)
    arguments = {**CASE.env_kwargs, "context_order": line.context_order}
    label = f"contexts of l_{line.context_order:g} norm 1"
    setup = setup_of(CASE.environment, arguments, horizon=horizon, label=label)
    return Configuration(setup, name, config)
