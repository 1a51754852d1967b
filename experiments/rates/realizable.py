"""Table 1 of Asi et al.: regret with and without an expert, or a point, that loses nothing.

Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in the
realizable regime", ICML 2023. Experts throw coins, 1 with probability 1/2; the best one never
errs, or with probability 0.4 where nothing is realizable. Points: linear losses, a fifth of each
the same (not realizable) or all of it (the best point always has the least value there is);
squared losses of a noisy regression, and of one without noise.
"""

from collections.abc import Mapping
from math import log, sqrt
from typing import Any

from dpbandit.agents import (
    DPFTRL,
    BallExperts,
    NoisyFTRL,
    ShrinkingDartboard,
    SparseVectorExperts,
)
from dpbandit.experiments.rates.rate import DELTA, Point, Rate, readings_of

_BEST = 0.4
_DIMS = (16, 64, 256, 1024)


def _coins(at: Point) -> Mapping[str, Any]:
    return {"n_actions": at.d}


def _hard_coins(at: Point) -> Mapping[str, Any]:
    return {"n_actions": at.d, "best_loss": _BEST}


def _sqrt(at: Point) -> float:
    return sqrt(at.T * sqrt(at.d) / at.epsilon)


_GENERAL = readings_of(DPFTRL, tuning="general", delta=DELTA)

TABLE_1 = (
    Rate(
        number=1,
        setting="experts, not realizable",
        source="Agarwal and Singh 2017",
        bound="sqrt(T log d) + sqrt(d)/ε",
        value=lambda at: sqrt(at.T * log(at.d)) + sqrt(at.d) / at.epsilon,
        exponents={"T": 0.5},
        environment="Experts",
        arguments=_hard_coins,
        agents=readings_of(NoisyFTRL, delta=DELTA),
        dim=64,
    ),
    Rate(
        number=2,
        setting="experts, not realizable",
        source="Asi et al. 2022",
        bound="sqrt(T log d) + T^(1/3) log d/ε",
        value=lambda at: sqrt(at.T * log(at.d)) + at.T ** (1 / 3) * log(at.d) / at.epsilon,
        exponents={"T": 0.5},
        environment="Experts",
        arguments=_hard_coins,
        agents={
            "certified": lambda at: ShrinkingDartboard(
                epsilon=at.epsilon, delta=DELTA, best_loss=_BEST * at.T
            ),
        },
        dim=64,
    ),
    Rate(
        number=3,
        setting="experts, realizable",
        source="this work",
        bound="log^1.5 d/ε",
        value=lambda at: log(at.d) ** 1.5 / at.epsilon,
        exponents={"T": 0.0, "d": 0.0, "epsilon": -1.0},
        environment="Experts",
        arguments=_coins,
        agents={
            "certified": lambda at: SparseVectorExperts(epsilon=at.epsilon, delta=DELTA),
            "printed": lambda at: SparseVectorExperts(
                epsilon=at.epsilon, delta=DELTA, calibration="paper"
            ),
        },
        dim=64,
        dims=_DIMS,
    ),
    Rate(
        number=4,
        setting="points, not realizable",
        source="Kairouz et al. 2021",
        bound="(T sqrt(d)/ε)^(1/2)",
        value=_sqrt,
        exponents={"T": 0.5, "epsilon": -0.5},
        environment="OnlineConvex",
        arguments=lambda at: {"loss": "linear", "gap": 0.2, "dim": at.d},
        agents=_GENERAL,
    ),
    Rate(
        number=5,
        setting="points, realizable",
        source="this work",
        bound="d^1.5/ε",
        value=lambda at: at.d**1.5 / at.epsilon,
        exponents={"T": 0.0, "d": 1.5, "epsilon": -1.0},
        environment="OnlineConvex",
        arguments=lambda at: {"instance": "p-lin", "dim": at.d},
        agents={"certified": lambda at: BallExperts(epsilon=at.epsilon, delta=DELTA)},
        dim=2,
        dims=(1, 2, 3, 4),
    ),
    Rate(
        number=6,
        setting="smooth, not realizable",
        source="Kairouz et al. 2021",
        bound="(T sqrt(d)/ε)^(1/2)",
        value=_sqrt,
        exponents={"T": 0.5},
        environment="OnlineConvex",
        arguments=lambda at: {"loss": "squared", "gap": 0.5, "dim": at.d},
        agents=_GENERAL,
        dim=2,
    ),
    Rate(
        number=7,
        setting="smooth, realizable",
        source="this work",
        bound="(sqrt(T d)/ε)^(2/3)",
        value=lambda at: (sqrt(at.T * at.d) / at.epsilon) ** (2 / 3),
        exponents={"T": 1 / 3, "epsilon": -2 / 3},
        environment="OnlineConvex",
        arguments=lambda at: {"instance": "realizable-squared", "dim": at.d},
        agents=readings_of(DPFTRL, {"tuning": "paper"}, tuning="certified", delta=DELTA),
        dim=2,
    ),
)
