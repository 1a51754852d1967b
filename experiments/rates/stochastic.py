"""Tables 1.1 and 1.2 of Han et al.: excess risk after n users, and regret over T of them.

Han, Liang, Liang, Wang, Yao and Zhang, "On private online convex optimization: optimal algorithms
in l_p-geometry and high dimensional contextual bandits" (2022). Problems are linear regressions
whose theta* has normal entries and l_p norm 1: "convex" rows in the ball of radius 1, on whose
surface it lies, so that nothing but convexity helps Frank-Wolfe; "strongly convex" ones in that
of radius 2, in which it lies (Assumption 3.1). Frank-Wolfe agents
have the theorems' steps, not our shorter defaults.
"""

from collections.abc import Callable, Mapping
from math import inf, log, sqrt
from typing import Any

from dpbandit.agents import (
    DPPOFW,
    DPTOFW,
    PFTAL,
    POCP,
    LinearFTRL,
    LocalMD,
    NoisySFW,
    NoisySGD,
    SnowballSGD,
)
from dpbandit.experiments.rates.rate import DELTA, Axis, Point, Rate, readings_of

_P = 1.5
_FRANK_WOLFE: dict[str, Any] = {"delta": DELTA, "step": 1.0}
_PAPER = {"calibration": "paper", "beyond_validity": True}


def _ball(p: float, radius: float) -> Callable[[Point], Mapping[str, Any]]:
    return lambda at: {"p": p, "dim": at.d, "radius": radius, "theta": "gaussian"}


def _kappa(at: Point) -> float:
    return min(1 / (_P - 1), 2 * log(at.d))


_SURFACE, _INSIDE = 1.0, 2.0
_STREAM = "StreamingRegression"
_HALF: Mapping[Axis, float] = {"T": -0.5}
_OFW = readings_of(DPTOFW, _PAPER, **_FRANK_WOLFE)
_POFW = readings_of(DPPOFW, _PAPER, **_FRANK_WOLFE)

TABLE_1_1 = (
    Rate(
        number=1,
        setting="convex, p = 2",
        source="Bassily et al. 2019, Thm. 3.2",
        bound="sqrt(1/n) + sqrt(d)/(ε n)",
        value=lambda at: sqrt(1 / at.T) + sqrt(at.d) / (at.epsilon * at.T),
        exponents=_HALF,
    ),
    Rate(
        number=2,
        setting="convex, p = 2",
        source="Feldman et al. 2020, Thm. 3.5",
        bound="sqrt(1/n) + sqrt(d)/(ε n)",
        value=lambda at: sqrt(1 / at.T) + sqrt(at.d) / (at.epsilon * at.T),
        exponents=_HALF,
        environment=_STREAM,
        arguments=_ball(2.0, _SURFACE),
        agents=readings_of(SnowballSGD, delta=DELTA, refit="once"),
    ),
    Rate(
        number=3,
        setting="convex, p = 1",
        source="Asi et al. 2021, Thm. 7",
        bound="sqrt(log d/n) + (log d/(ε n))^(2/3)",
        value=lambda at: sqrt(log(at.d) / at.T) + (log(at.d) / (at.epsilon * at.T)) ** (2 / 3),
        exponents=_HALF,
    ),
    Rate(
        number=4,
        setting="convex, p = 1",
        source="Bassily et al. 2021, Thm. 3.2",
        bound="log d/(ε sqrt n)",
        value=lambda at: log(at.d) / (at.epsilon * sqrt(at.T)),
        exponents=_HALF,
    ),
    Rate(
        number=5,
        setting="convex, p = 1",
        source="Theorem 3.5",
        bound="log d/(ε sqrt n)",
        value=lambda at: log(at.d) / (at.epsilon * sqrt(at.T)),
        exponents={"T": -0.5, "epsilon": -1.0},
        environment=_STREAM,
        arguments=_ball(1.0, _SURFACE),
        agents=_POFW,
    ),
    Rate(
        number=6,
        setting="convex, 1 < p < 2",
        source="Bassily et al. 2021, Thm. 5.4",
        bound="κ/sqrt n + κ sqrt(d)/(ε n^(3/4))",
        value=lambda at: _kappa(at) * (at.T**-0.5 + sqrt(at.d) / (at.epsilon * at.T**0.75)),
        exponents=_HALF,
        environment=_STREAM,
        arguments=_ball(_P, _SURFACE),
        agents=readings_of(NoisySFW, _PAPER, delta=DELTA, scale=1.0),
    ),
    Rate(
        number=7,
        setting="convex, 1 < p <= 2",
        source="Asi et al. 2021, Thm. 13",
        bound="1/sqrt((p-1) n) + sqrt(d)/((p-1) n ε)",
        value=lambda at: 1 / sqrt((_P - 1) * at.T) + sqrt(at.d) / ((_P - 1) * at.T * at.epsilon),
        exponents=_HALF,
        environment=_STREAM,
        arguments=_ball(_P, _SURFACE),
        agents=readings_of(LocalMD, delta=DELTA),
    ),
    Rate(
        number=8,
        setting="convex, 1 < p <= 2",
        source="Theorem 3.2",
        bound="sqrt(κ/n) + sqrt(κ d)/(n ε)",
        value=lambda at: sqrt(_kappa(at) / at.T) + sqrt(_kappa(at) * at.d) / (at.T * at.epsilon),
        exponents={"T": -0.5, "epsilon": -1.0},
        environment=_STREAM,
        arguments=_ball(_P, _SURFACE),
        agents=_OFW,
    ),
    Rate(
        number=9,
        setting="convex, 2 < p <= ∞",
        source="Bassily et al. 2021, Prop. 6.1",
        bound="d^(1/2-1/p)/sqrt n + d^(1-1/p)/(ε n)",
        value=lambda at: sqrt(at.d / at.T) + at.d / (at.epsilon * at.T),
        exponents=_HALF,
        environment=_STREAM,
        arguments=_ball(inf, _SURFACE),
        agents=readings_of(NoisySGD, delta=DELTA, refit="once"),
    ),
    Rate(
        number=10,
        setting="convex, 2 < p <= ∞",
        source="Theorem 3.2",
        bound="d^(1/2-1/p)/sqrt n + d^(1-1/p)/(ε n)",
        value=lambda at: sqrt(at.d / at.T) + at.d / (at.epsilon * at.T),
        exponents=_HALF,
        environment=_STREAM,
        arguments=_ball(inf, _SURFACE),
        agents=_OFW,
    ),
    Rate(
        number=11,
        setting="strongly convex, p = 1",
        source="Asi et al. 2021, Thm. 9",
        bound="log d/n + (log d/(ε n))^(4/3)",
        value=lambda at: log(at.d) / at.T + (log(at.d) / (at.epsilon * at.T)) ** (4 / 3),
        exponents={"T": -1.0},
    ),
    Rate(
        number=12,
        setting="strongly convex, p = 1",
        source="Theorem 3.6",
        bound="log² d/(ε² n)",
        value=lambda at: log(at.d) ** 2 / (at.epsilon**2 * at.T),
        exponents={"T": -1.0, "epsilon": -2.0},
        environment=_STREAM,
        arguments=_ball(1.0, _INSIDE),
        agents=_POFW,
    ),
    Rate(
        number=13,
        setting="strongly convex, 1 < p <= 2",
        source="Theorem 3.3",
        bound="κ/n + κ d/(ε² n²)",
        value=lambda at: _kappa(at) * (1 / at.T + at.d / (at.epsilon * at.T) ** 2),
        exponents={"T": -1.0, "epsilon": -2.0},
        environment=_STREAM,
        arguments=_ball(_P, _INSIDE),
        agents=_OFW,
    ),
    Rate(
        number=14,
        setting="strongly convex, 2 < p <= ∞",
        source="Theorem 3.3",
        bound="d^(1-2/p)/n + d^(2-2/p)/(ε² n²)",
        value=lambda at: at.d / at.T + (at.d / (at.epsilon * at.T)) ** 2,
        exponents={"T": -1.0},
        environment=_STREAM,
        arguments=_ball(inf, _INSIDE),
        agents=_OFW,
    ),
)


def _linear(at: Point) -> Mapping[str, Any]:
    return {"loss": "linear", "gap": 0.2, "dim": at.d}


TABLE_1_2 = (
    Rate(
        number=1,
        setting="linear, adversarial, p = 2",
        source="Agarwal and Singh 2017, Cor. 3.2",
        bound="sqrt T + d/ε",
        value=lambda at: sqrt(at.T) + at.d / at.epsilon,
        exponents={"T": 0.5},
        environment="OnlineConvex",
        arguments=_linear,
        agents=readings_of(LinearFTRL, noise="gaussian", delta=DELTA),
    ),
    Rate(
        number=2,
        setting="convex, adversarial, p = 2",
        source="Jain et al. 2012, Thm. 2",
        bound="sqrt(d) T^(2/3)/ε",
        value=lambda at: sqrt(at.d) * at.T ** (2 / 3) / at.epsilon,
        exponents={"T": 2 / 3},
        environment="OnlineConvex",
        arguments=_linear,
        agents=readings_of(POCP, delta=DELTA),
    ),
    Rate(
        number=3,
        setting="convex, adversarial, p = 2",
        source="Smith and Thakurta 2013, Thm. 11",
        bound="sqrt(d T)/ε",
        value=lambda at: sqrt(at.d * at.T) / at.epsilon,
        exponents={"T": 0.5},
        environment="OnlineConvex",
        arguments=_linear,
        agents=readings_of(PFTAL, noise="gaussian", delta=DELTA),
    ),
    Rate(
        number=4,
        setting="stochastic, 1 < p <= 2",
        source="Theorem 3.2, Corollary 3.1",
        bound="sqrt T + sqrt(d)/ε",
        value=lambda at: sqrt(at.T) + sqrt(at.d) / at.epsilon,
        exponents={"T": 0.5},
        environment=_STREAM,
        arguments=_ball(_P, _SURFACE),
        agents=_OFW,
    ),
    Rate(
        number=5,
        setting="stochastic, strongly convex (in the text)",
        source="Corollary 3.2",
        bound="log² T + d log⁴ T/ε²",
        value=lambda at: log(at.T) ** 2 + at.d * log(at.T) ** 4 / at.epsilon**2,
        exponents={"T": 0.0},
        environment=_STREAM,
        arguments=_ball(_P, _INSIDE),
        agents=_OFW,
    ),
)
