"""Tables 1 and 2 of Smith and Thakurta: regret of leaders told losses, and of those told values.

Smith and Thakurta, "(Nearly) optimal algorithms for private online learning in full-information
and bandit settings", NIPS 2013. Experts are ten corners of a simplex, one cheaper by 0.2;
Lipschitz losses are linear on the unit ball, a fifth of each the same; strongly convex ones |x -
c|² / 2, half of c the same (`p-quad`), and for the adaptive row c follows the mean of the points
played.
"""

from collections.abc import Mapping
from math import log, sqrt
from typing import Any

from dpbandit.agents import PFTAL, POCP, BanditPFTAL
from dpbandit.experiments.rates.rate import DELTA, Point, Rate, readings_of

_PAPER = {"calibration": "paper"}


def _experts(at: Point) -> Mapping[str, Any]:
    return {"loss": "experts", "domain": "simplex", "dim": at.d, "gap": 0.2}


def _lipschitz(at: Point) -> Mapping[str, Any]:
    return {"loss": "linear", "dim": at.d, "gap": 0.2}


def _curved(at: Point) -> Mapping[str, Any]:
    return {"loss": "quadratic", "dim": at.d, "gap": 0.5}


def _answering(at: Point) -> Mapping[str, Any]:
    return {**_curved(at), "adversary": "adaptive"}


def _log(at: Point) -> float:
    return log(at.T) ** 2.5


_LEADER = readings_of(PFTAL, _PAPER)

TABLE_1 = (
    Rate(
        number=1,
        setting="experts",
        source="our algorithm",
        bound="sqrt(p T log^2.5 T)/ε",
        value=lambda at: sqrt(at.d * at.T * _log(at)) / at.epsilon,
        exponents={"T": 0.5, "d": 0.5, "epsilon": -1.0},
        environment="OnlineConvex",
        arguments=_experts,
        agents=_LEADER,
    ),
    Rate(
        number=2,
        setting="Lipschitz",
        source="our algorithm",
        bound="sqrt(p T log^2.5 T)/ε",
        value=lambda at: sqrt(at.d * at.T * _log(at)) / at.epsilon,
        exponents={"T": 0.5, "d": 0.5, "epsilon": -1.0},
        environment="OnlineConvex",
        arguments=_lipschitz,
        agents=_LEADER,
        dim=5,
    ),
    Rate(
        number=3,
        setting="Lipschitz and strongly convex",
        source="our algorithm",
        bound="p log^2.5 T/ε",
        value=lambda at: at.d * _log(at) / at.epsilon,
        exponents={"T": 0.0, "d": 1.0, "epsilon": -1.0},
        environment="OnlineConvex",
        arguments=_curved,
        agents=_LEADER,
        dim=5,
    ),
    Rate(
        number=4,
        setting="experts",
        source="previous, Dwork et al. 2010",
        bound="p sqrt T/ε",
        value=lambda at: at.d * sqrt(at.T) / at.epsilon,
        exponents={"T": 0.5},
    ),
    Rate(
        number=5,
        setting="Lipschitz",
        source="previous, Jain et al. 2012",
        bound="sqrt(p) T^(2/3) log(1/δ)/ε",
        value=lambda at: sqrt(at.d) * at.T ** (2 / 3) / at.epsilon,
        exponents={"T": 2 / 3},
        environment="OnlineConvex",
        arguments=_lipschitz,
        agents=readings_of(POCP, delta=DELTA),
        dim=5,
    ),
    Rate(
        number=6,
        setting="Lipschitz and strongly convex",
        source="previous, Jain et al. 2012",
        bound="sqrt(p T) log²(1/δ)/ε",
        value=lambda at: sqrt(at.d * at.T) / at.epsilon,
        exponents={"T": 0.5},
        environment="OnlineConvex",
        arguments=_curved,
        agents=readings_of(POCP, delta=DELTA),
        dim=5,
    ),
)

_VALUES, _OBLIVIOUS, _ADAPTIVE = (
    readings_of(BanditPFTAL, _PAPER, **settings)
    for settings in ({}, {"beta": "oblivious"}, {"beta": "adaptive"})
)

TABLE_2 = (
    Rate(
        number=1,
        setting="experts",
        source="our result",
        bound="p T^(3/4)/ε",
        value=lambda at: at.d * at.T**0.75 / at.epsilon,
        exponents={"T": 0.75},
        environment="ConvexBandit",
        arguments=_experts,
        agents=_VALUES,
    ),
    Rate(
        number=2,
        setting="Lipschitz",
        source="our result",
        bound="p T^(3/4)/ε",
        value=lambda at: at.d * at.T**0.75 / at.epsilon,
        exponents={"T": 0.75},
        environment="ConvexBandit",
        arguments=_lipschitz,
        agents=_VALUES,
        dim=5,
    ),
    Rate(
        number=3,
        setting="Lipschitz and strongly convex, adaptive",
        source="our result",
        bound="p T^(3/4)/ε",
        value=lambda at: at.d * at.T**0.75 / at.epsilon,
        exponents={"T": 0.75},
        environment="ConvexBandit",
        arguments=_answering,
        agents=_ADAPTIVE,
        dim=5,
    ),
    Rate(
        number=4,
        setting="Lipschitz and strongly convex, oblivious",
        source="our result",
        bound="p T^(2/3)/ε",
        value=lambda at: at.d * at.T ** (2 / 3) / at.epsilon,
        exponents={"T": 2 / 3},
        environment="ConvexBandit",
        arguments=_curved,
        agents=_OBLIVIOUS,
        dim=5,
    ),
)
