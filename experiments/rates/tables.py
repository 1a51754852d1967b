"""Tables of rates: leaders, experts and points that lose nothing, stochastic optimisation.

Tables 1 and 2 of Smith and Thakurta: regret of leaders told losses, and of those told values.

Smith and Thakurta, "(Nearly) optimal algorithms for private online learning in full-information
and bandit settings", NIPS 2013. Experts are ten corners of a simplex, one cheaper by 0.2;
Lipschitz losses are linear on the unit ball, a fifth of each the same; strongly convex ones |x -
c|² / 2, half of c the same (`p-quad`), and for the adaptive row c follows the mean of the points
played.

Table 1 of Asi et al.: regret with and without an expert, or a point, that loses nothing.

Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in the
realizable regime", ICML 2023. Experts throw coins, 1 with probability 1/2; the best one never
errs, or with probability 0.4 where nothing is realizable. Points: linear losses, a fifth of each
the same (not realizable) or all of it (the best point always has the least value there is);
squared losses of a noisy regression, and of one without noise.

Tables 1.1 and 1.2 of Han et al.: excess risk after n users, and regret over T of them.

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

import pandas as pd

from dpbandit.agents import (
    DPFTRL,
    DPPOFW,
    DPTOFW,
    PFTAL,
    POCP,
    BallExperts,
    BanditPFTAL,
    LinearFTRL,
    LocalMD,
    NoisyFTRL,
    NoisySFW,
    NoisySGD,
    ShrinkingDartboard,
    SnowballSGD,
    SparseVectorExperts,
)
from dpbandit.base import plain, write_csv
from dpbandit.experiments.rates import (
    DELTA,
    Axis,
    Point,
    Rate,
    draw,
    measure,
    readings_of,
    selected,
    shown,
)
from dpbandit.experiments.reproduce import Asked, Reproduced

_ONLINE = {"calibration": "paper"}


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


_LEADER = readings_of(PFTAL, _ONLINE)

CONVEX_1 = (
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
    readings_of(BanditPFTAL, _ONLINE, **settings)
    for settings in ({}, {"beta": "oblivious"}, {"beta": "adaptive"})
)

CONVEX_2 = (
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


_BEST = 0.4
_DIMS = (16, 64, 256, 1024)


def _coins(at: Point) -> Mapping[str, Any]:
    return {"n_actions": at.d}


def _hard_coins(at: Point) -> Mapping[str, Any]:
    return {"n_actions": at.d, "best_loss": _BEST}


def _sqrt(at: Point) -> float:
    return sqrt(at.T * sqrt(at.d) / at.epsilon)


_GENERAL = readings_of(DPFTRL, tuning="general", delta=DELTA)

EXPERTS_1 = (
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


_P = 1.5
_FRANK_WOLFE: dict[str, Any] = {"delta": DELTA, "step": 1.0}
_STOCHASTIC = {"calibration": "paper", "beyond_validity": True}


def _ball(p: float, radius: float) -> Callable[[Point], Mapping[str, Any]]:
    return lambda at: {"p": p, "dim": at.d, "radius": radius, "theta": "gaussian"}


def _kappa(at: Point) -> float:
    return min(1 / (_P - 1), 2 * log(at.d))


_SURFACE, _INSIDE = 1.0, 2.0
_STREAM = "StreamingRegression"
_HALF: Mapping[Axis, float] = {"T": -0.5}
_OFW = readings_of(DPTOFW, _STOCHASTIC, **_FRANK_WOLFE)
_POFW = readings_of(DPPOFW, _STOCHASTIC, **_FRANK_WOLFE)

SGD_1_1 = (
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
        agents=readings_of(NoisySFW, _STOCHASTIC, delta=DELTA, scale=1.0),
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


SGD_1_2 = (
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


_TABLES: dict[str, tuple[tuple[Rate, ...], int]] = {
    "sgd/table-1-1": (SGD_1_1, 2**14),
    "sgd/table-1-2": (SGD_1_2, 2**14),
    "convex/table-1": (CONVEX_1, 2**15),
    "convex/table-2": (CONVEX_2, 2**16),
    "experts/table-1": (EXPERTS_1, 2**15),
}
"""name -> its rows, and the longest horizon unless another is asked for"""


def reproduce(name: str, asked: Asked) -> Reproduced:
    """The rows chosen under these readings; with a figure if it is to be drawn."""
    rates, longest = _TABLES[name]
    selection = selected(rates, asked.rows, longest)
    entries = measure(
        name, selection, asked.readings, asked.out, replicas=asked.replicas, seed=asked.seed
    )
    records = [plain(entry.record()) for entry in entries]
    written = [write_csv(asked.out / "rates.csv", pd.DataFrame(records))]
    if asked.drawn:
        written.append(draw(asked.out / "rates.png", entries))
    return Reproduced(list(shown(selection, entries)), records, written)
