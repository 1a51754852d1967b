"""Reference cases of points, experts and windows; and every case by its name.

Online convex problems in five dimensions, told values or data, and what was measured on them.

Tree noise at epsilon 1; pure where it is K-norm, Laplace or local noise, delta 1e-6 where it is
Gaussian. Where the paper's own W, L and beta are not said, they are those of the problem.

Experts of whom one loses next to nothing, and points of a ball of whom one does.

Replicas meet the losses of one public table, as where the references were measured. There epsilon
was converted more loosely: `LOOSE_..` have the noise that those tables have at epsilon 1, 10 and
100. Cells of plans that no setting gives (delta > 0 with certified sparse vectors, the dartboard),
or whose settings were not told (the repaired potential), are left out.

Privacy that expires: a ball and a simplex, and what an independent program measured on them.

Its Gaussian noise is calibrated by zCDP, rho = (sqrt(epsilon + l) - sqrt(l))^2, l = ln(1/delta);
ours, exact, needs less. `_LOOSE` is the epsilon at which ours is as large as its at epsilon 10. Its
trees of T leaves are charged a level more than is in use: there epsilon is a little lower.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf, log, sqrt
from typing import Any, TypeAlias

from dpbandit.agents import CONVEX, EXPERTS
from dpbandit.experiments.case import (
    FIGURE_5_1,
    GENERALISED_LINEAR_CASES,
    LINEAR,
    P1,
    P2,
    Case,
    Reference,
    Settings,
)
from dpbandit.experiments.experts import least_regret, news
from dpbandit.privacy import Certificate, epsilon_of

_TOLD_DATA = (
    *("pftal", "ftal", "ogd", "linear-ftrl", "noisy-oco", "dp-ftrl"),
    *("wdp-cocop", "wdp-cocol", "online-conditional-gradient"),
)
_CHOOSY = ("pocp", "pqftl", "net-experts", "ball-experts")
"""Agents that do not play all of these losses."""
_LOCAL_ORACLE = ("wdp-cocol",)
"""Agents that know no way to play products and flows."""
_OBLIVIOUS = {"beta": "oblivious"}
_PAPER = {"calibration": "paper"}
_LAPLACE, _KNORM, _GAUSSIAN, _LOCAL = (
    {"noise": law} for law in ("laplace", "k-norm", "gaussian", "local")
)
_FRANK_WOLFE = {"projection": "frank-wolfe", "tolerance": 0.25}
"""The reference's own stopping rule is not known: the gap 2 R'^2 / (b + 2), R' the radius of the
shrunk domain, a quarter of what the regret bound needs, fits all six numbers; the whole four."""
_COLUMNS: tuple[Settings, ...] = (_LAPLACE, _KNORM, _GAUSSIAN, _LOCAL)
"""Of PrivateBandit's tables, after the one without privacy."""


def _convex_case(
    instance: str,
    summary: str,
    *rows: Iterable[Reference],
    linear: bool = False,
    without: tuple[str, ...] = (),
) -> Case:
    """The reference problem, and all agents that play its losses on its domain."""
    unfit = {*_CHOOSY, *without, *(() if linear else ("linear-ftrl",))}
    return Case(
        name=f"convex/{instance}",
        summary=summary,
        pure_noise=True,
        environment="dpbandit/ConvexBandit-v0",
        env_kwargs={"instance": instance},
        data_environment="dpbandit/OnlineConvex-v0",
        told_data=_TOLD_DATA,
        agents={name: {} for name in CONVEX if name not in unfit},
        references=tuple(row for some in rows for row in some),
    )


def _convex_rows(
    horizon: int, agent: str, measured: Iterable[tuple[Settings, float, float]]
) -> tuple[Reference, ...]:
    """(settings, mean, se) of one agent, as references."""
    return tuple(
        Reference(agent=agent, settings=settings, mean=mean, se=se, horizon=horizon)
        for settings, mean, se in measured
    )


def _private_bandit(
    horizon: int, public: tuple[float, float], *noisy: tuple[float, float], **extra: Any
) -> tuple[Reference, ...]:
    """A line of the table: without privacy, the columns, and any printed noise."""
    certified = [({**law, **extra}, *value) for law, value in zip(_COLUMNS, noisy, strict=False)]
    printed = [
        ({**law, **_PAPER, **extra}, *value)
        for law, value in zip((_LAPLACE, _GAUSSIAN), noisy[4:], strict=False)
    ]
    return _convex_rows(horizon, "garber-kretzu", [(extra, *public)]) + _convex_rows(
        horizon, "private-bandit", [*certified, *printed]
    )


def _pftal(horizon: int, *measured: tuple[float, float]) -> tuple[Reference, ...]:
    """PFTAL at epsilon 1: K-norm noise, the same as printed, Laplace and Gaussian noise."""
    columns = zip(({}, _PAPER, _LAPLACE, _GAUSSIAN), measured, strict=True)
    return _convex_rows(horizon, "pftal", [(settings, *value) for settings, value in columns])


P_LIN = _convex_case(
    "p-lin",
    "<e_1, x> on the unit ball, the same every round",
    _private_bandit(1024, (570, 1), (840, 9), (803, 8), (761, 7), (767, 16), (981, 11), (1019, 10)),
    _private_bandit(
        4096, (2179, 2), (2645, 15), (2537, 13), (2414, 9), (2555, 22), (3847, 44), (3975, 43)
    ),
    _private_bandit(
        10_000, (4746, 3), (5424, 22), (5232, 20), (4998, 12), (5310, 44), (8983, 104), (9877, 112)
    ),
    _convex_rows(1024, "fkm", [({}, 553.4, 5.0)]),
    _convex_rows(4096, "fkm", [({}, 1760.9, 14.2)]),
    linear=True,
)

P_QUAD = _convex_case(
    "p-quad",
    "|x - c|^2 / 2 on the unit ball, half of c random",
    _private_bandit(4096, (598, 1), (1080, 12), (1039, 10), (930, 8), (924, 20), (1499, 21)),
    _pftal(1024, (346.09, 4.43), (192.48, 2.41), (398.67, 5.44), (214.78, 2.31)),
    _pftal(4096, (536.16, 6.29), (263.25, 2.94), (675.75, 7.83), (268.88, 2.57)),
    _convex_rows(1024, "pftal", [({"epsilon": 0.1}, 598.47, 8.66), ({"epsilon": 10}, 37.82, 0.68)]),
    _convex_rows(
        4096, "pftal", [({"epsilon": 0.1}, 2216.05, 27.39), ({"epsilon": 10}, 47.56, 0.76)]
    ),
    _convex_rows(1024, "ftal", [({}, 1.18, 0.02)]),
    _convex_rows(4096, "ftal", [({}, 1.36, 0.02)]),
    _convex_rows(1024, "bandit-ftal", [(_OBLIVIOUS, 145, 2), ({"beta": "adaptive"}, 147, 2)]),
    _convex_rows(4096, "bandit-ftal", [(_OBLIVIOUS, 253, 5), ({"beta": "adaptive"}, 535, 2)]),
    *(
        _convex_rows(
            horizon,
            "bandit-pftal",
            [
                ({**_OBLIVIOUS, **_PAPER}, *paper),
                (_OBLIVIOUS, *knorm),
                ({**_OBLIVIOUS, **_GAUSSIAN}, *gaussian),
                ({**_OBLIVIOUS, **_LOCAL}, *local),
                ({"beta": "adaptive"}, *adaptive),
                ({"beta": "adaptive", **_GAUSSIAN}, *both),
                ({**_OBLIVIOUS, "epsilon": 10}, *loose),
                ({**_OBLIVIOUS, **_GAUSSIAN, "epsilon": 10}, *last),
            ],
        )
        for horizon, paper, knorm, gaussian, local, adaptive, both, loose, last in (
            (
                1024,
                (357, 4),
                (358, 6),
                (338, 3),
                (286, 10),
                (361, 4),
                (350, 5),
                (221, 2),
                (201, 3),
            ),
            (
                4096,
                (1398, 23),
                (1403, 26),
                (1173, 17),
                (1031, 44),
                (1226, 15),
                (1040, 11),
                (512, 7),
                (423, 7),
            ),
        )
    ),
    _convex_rows(1024, "fkm", [({}, 96.1, 1.2)]),
    _convex_rows(4096, "fkm", [({}, 304.5, 3.7)]),
)

P_KINK = _convex_case(
    "p-kink",
    "|x| + |x|^2 / 2 on the unit ball: strongly convex, not smooth",
    _pftal(1024, (1112.46, 6.54), (698.67, 3.24), (1253.69, 5.60), (763.50, 3.94)),
    _pftal(4096, (2112.99, 11.46), (1186.77, 4.69), (2557.04, 12.46), (1208.07, 4.26)),
    _convex_rows(
        1024, "pftal", [({"epsilon": 0.1}, 1534.38, 0.03), ({"epsilon": 10}, 185.68, 1.03)]
    ),
    _convex_rows(
        4096, "pftal", [({"epsilon": 0.1}, 6081.33, 3.65), ({"epsilon": 10}, 282.64, 1.22)]
    ),
    _convex_rows(1024, "ftal", [({}, 4.72, 0.005)]),
    _convex_rows(4096, "ftal", [({}, 5.41, 0.005)]),
)

P_TILT = _convex_case("p-tilt", "|x|^2 / 2 - 2 x_1 on the unit ball: the optimum is on its surface")

SQRT_INSTANCE = _convex_case(
    "sqrt-instance",
    "<e_1, x> / (2 sqrt T): regularised leaders lose sqrt(T) / 4",
    _convex_rows(10_000, "ftal", [({"curvature": 0.01}, 0.01 * 9_999 / 4 + 0.005, 0.0)]),
    linear=True,
)

HYPERSIMPLEX = _convex_case(
    "hypersimplex-3-6",
    "choose 3 of 6, half of them good, the same every round",
    *(
        _convex_rows(10_000, "garber-kretzu", [(settings, *public)])
        + _convex_rows(
            10_000,
            "private-bandit",
            [({**_KNORM, **settings}, *knorm), ({**_GAUSSIAN, **settings}, *gaussian)],
        )
        for settings, public, knorm, gaussian in (
            (_FRANK_WOLFE, (6402.1, 3.2), (7585.2, 54.2), (7077.4, 28.6)),
            (
                {**_FRANK_WOLFE, "parameters": "tuned"},
                (5519.3, 39.3),
                (8490.7, 59.3),
                (7803.2, 56.4),
            ),
        )
    ),
    linear=True,
)

PARTITION_MATROID = _convex_case(
    "partition-matroid",
    "choose 2 of 4 in each of 3 groups, half of them good, half of a loss noise",
    linear=True,
    without=_LOCAL_ORACLE,
)

FLOWS = _convex_case(
    "flows",
    "9 paths through 2 layers of 3 nodes, one of them faster, half of a loss noise",
    linear=True,
    without=_LOCAL_ORACLE,
)

STRONGLY_ADAPTIVE = _convex_case(
    "strongly-adaptive",
    "an offset that follows the sign of the exploration: no one-point method survives it",
)

CONVEX_CASES = (
    *(P_LIN, P_QUAD, P_KINK, P_TILT, SQRT_INSTANCE, HYPERSIMPLEX, PARTITION_MATROID, FLOWS),
    STRONGLY_ADAPTIVE,
)


LOOSE_DRAWS = {1: 0.8372, 10: 9.267}
"""epsilon of a table -> ours, for what is accounted by zCDP, at delta = 1e-6"""
LOOSE_NORMALS = {1: 0.7756, 10: 8.7044, 100: 94.24}
"""the same for Gaussian noise alone"""
_ROUNDING = 0.03
"""The error of a number that is known exactly and printed with one digit."""
_TINY = 1e-9
"""In place of epsilon = 0, which uniform play has."""
_OURS = "se not printed: ours"
_PRINTED = {"calibration": "paper"}

Cell: TypeAlias = tuple[float, float]
"""mean, standard error"""


def _experts_case(
    name: str, summary: str, references: Iterable[Reference] = (), **more: Any
) -> Case:
    """A problem that all agents for experts play."""
    arguments = {"kind": "bernoulli", "n_actions": 256, "shared_table": True, **more}
    return Case(
        name=f"experts/{name}",
        summary=summary,
        environment="dpbandit/Experts-v0",
        env_kwargs=arguments,
        agents={agent: {} for agent in EXPERTS},
        references=tuple(references),
        common=("epsilon",) if name == "lower-bound" else (),
        least=_least if name == "lower-bound" else None,
    )


def _least(proof: Certificate, arguments: Settings) -> float:
    """What an agent that is as private as certified loses at least."""
    if proof.epsilon == inf:
        return 0.0
    d = arguments["n_actions"]
    tail = arguments.get("tail") or news(d, arguments.get("epsilon", 1.0))
    return least_regret(d, max(proof.epsilon, _TINY), proof.claimed_delta, tail=tail)


_PLAYERS: tuple[tuple[str, Callable[[int], Settings]], ...] = (
    ("sparse-vector-experts", lambda epsilon: {"epsilon": epsilon, **_PRINTED}),
    ("sparse-vector-experts", lambda epsilon: {"epsilon": epsilon, **_PRINTED, "delta": 1e-6}),
    ("sparse-vector-experts", lambda epsilon: {"epsilon": epsilon}),
    ("sparse-vector-experts", lambda epsilon: {"epsilon": epsilon, "beta": 0.05}),
    (
        "adaptive-sparse-vector-experts",
        lambda epsilon: {"epsilon": epsilon, "first_loss": 10 / epsilon},
    ),
    ("noisy-ftrl", lambda epsilon: {"epsilon": LOOSE_NORMALS[epsilon]}),
    (
        "binary-tree-experts",
        lambda epsilon: {"epsilon": LOOSE_DRAWS[epsilon], "parameters": "small"},
    ),
    ("potential-experts", lambda epsilon: {"epsilon": epsilon, **_PRINTED}),
)
_TABLE_E = """
 1  1000   16  467.3 8.4  463.5 9.0  134.0 4.6  93.6 2.7 148.7 4.7 258.0 6.2  317.3 12.3  461.6 9.0
 1  1000  256  501.0 1.1  500.4 1.1  337.9 6.6 234.3 4.4 350.9 6.3 490.3 2.7  385.3 5.9   497.8 2.7
 1  1000 4096  498.3 1.0  499.3 1.2  479.4 3.8 425.1 4.5 482.1 3.4 499.8 2.0  475.2 5.8   498.4 1.1
 1 10000   16 3287.2 97.1 2350.8 76.9 168.8 5.7 98.1 3.0 173.6 5.6 324.3 7.6 3655.6 98.5 4656.9 90.6
10  1000   16  264.5 7.8  207.2 7.0   14.1 0.4  10.1 0.3  15.2 0.5  32.2 0.8  173.8 14.8  465.9 8.7
10  1000  256  456.4 5.6  386.2 6.6   33.5 0.7  26.3 0.6  36.5 0.6 190.6 4.6  185.0 13.8  494.6 3.7
10  1000 4096  495.6 2.1  481.2 3.5   59.1 0.9  47.4 0.7  61.6 0.9 495.8 2.2  215.0 13.0  499.7 1.0
10 10000   16  351.8 10.7 240.3 8.5   17.4 0.6  10.3 0.3 19.4 0.7 67.5 0.9 3608.6 136.8 2888.9 152.0
"""
"""epsilon, T, d; mean and standard error of each of `_PLAYERS`"""
_KNOWN_E = """
 1  1000   16  466.4  19.6  3.8  370.8
 1  1000  256  498.8  28.0  7.5  489.2
 1  1000 4096  499.7  34.7 11.2  499.1
 1 10000   16 4696.1  59.8  3.8 1483.5
10  1000   16  466.4  19.6  3.8   54.2
10  1000  256  498.8  28.0  7.5  108.2
10  1000 4096  499.7  34.7 11.2  162.3
10 10000   16 4696.1  59.8  3.8  169.4
"""
"""epsilon, T, d; exact means of uniform play, Hedge, Hedge at rate 1, a draw a round"""
_LEADER = ((1000, 16, 1.9, 0.1), (1000, 256, 4.0, 0.14), (1000, 4096, 5.7, 0.17))
"""T, d, mean and error of following the leader"""
_LONG: tuple[tuple[int, float, float, float], ...] = (
    (10_000, 1.0, 375.0, 7.0),
    (100_000, 0.1, 4431.0, 110.0),
    (100_000, 1.0, 442.0, 11.0),
    (100_000, 10.0, 45.2, 1.1),
)
"""T, epsilon, mean and error of the certified pure agent at d = 256"""


def _numbers(table: str) -> Iterator[tuple[int, int, int, list[float]]]:
    """epsilon, T, d and the rest of each line."""
    for line in table.strip().splitlines():
        epsilon, T, d, *rest = line.split()
        yield int(epsilon), int(T), int(d), [float(number) for number in rest]


def _bernoulli() -> Iterator[Reference]:
    for epsilon, T, d, numbers in _numbers(_TABLE_E):
        cells = zip(_PLAYERS, numbers[::2], numbers[1::2], strict=True)
        for (agent, settings), mean, se in cells:
            yield from _experts_references(
                (agent, {**settings(epsilon), "n_actions": d}, mean, se), horizon=T
            )
    for epsilon, T, d, (uniform, careful, bold, draws) in _numbers(_KNOWN_E):
        loose = {"epsilon": LOOSE_DRAWS[epsilon], "n_actions": d}
        yield from _experts_references(
            ("exponential-mechanism", loose, draws, _ROUNDING), horizon=T
        )
        if epsilon == 1:
            yield from _experts_references(
                ("uniform", {"n_actions": d}, uniform, _ROUNDING),
                ("hedge", {"n_actions": d}, careful, _ROUNDING),
                ("hedge", {"n_actions": d, "rate": 1.0}, bold, _ROUNDING),
                horizon=T,
            )
    for T, d, mean, se in _LEADER:
        yield from _experts_references(("follow-the-leader", {"n_actions": d}, mean, se), horizon=T)
    for T, target, mean, se in _LONG:
        row = ("sparse-vector-experts", {"epsilon": target}, mean, se)
        yield from _experts_references(row, horizon=T, note=_OURS)


def _experts_references(
    *rows: tuple[str, Settings, float, float], **more: Any
) -> Iterator[Reference]:
    """(agent, settings, mean, se), under one horizon and note."""
    for agent, settings, mean, se in rows:
        yield Reference(agent=agent, settings=settings, mean=mean, se=se, **more)


_HARD = {"env.best_loss": 0.1}
BERNOULLI = _experts_case("bern", "coins; one expert never errs: Table E", _bernoulli())
HALVING = _experts_case(
    "halving",
    "of the experts without loss half begin to err, log2 d times",
    _experts_references(
        ("follow-the-leader", {"lazy": True, "n_actions": 16}, 2.0185, 0.016),
        ("follow-the-leader", {"lazy": True, "n_actions": 256}, 3.998, 0.022),
        horizon=1000,
    ),
    kind="halving",
)
SMALL_LOSS = _experts_case(
    "small-loss",
    "coins; the best expert errs a little, too: Table S",
    _experts_references(
        ("uniform", {}, 4967.5, _ROUNDING),
        ("hedge", {}, 84.9, _ROUNDING),
        ("hedge", {"rate": 1.0}, 7.5, _ROUNDING),
        ("sparse-vector-experts", {"best_loss": 20.0}, 412.6, 10.4),
        ("adaptive-sparse-vector-experts", {}, 717.5, 13.1),
        ("exponential-mechanism", {"epsilon": LOOSE_DRAWS[1]}, 2956.2, _ROUNDING),
        ("uniform", _HARD, 4020.2, _ROUNDING),
        ("hedge", _HARD, 85.3, _ROUNDING),
        ("hedge", {**_HARD, "rate": 1.0}, 7.5, _ROUNDING),
        ("sparse-vector-experts", {**_HARD, "best_loss": 1200.0}, 1816.6, 58.5),
        ("adaptive-sparse-vector-experts", _HARD, 569.6, 10.7),
        ("exponential-mechanism", {**_HARD, "epsilon": LOOSE_DRAWS[1]}, 2900.6, _ROUNDING),
        horizon=10_000,
    ),
    best_loss=0.001,
)
LOWER_BOUND = _experts_case(
    "lower-bound",
    "no news but in the last rounds: nobody private loses less than `least_regret`",
    _experts_references(("hedge", {"rate": 1.0, "epsilon": 0.1}, 6.04, 0.005), horizon=1000),
    kind="lower-bound",
    shared_table=False,
)
COUNTEREXAMPLE = _experts_case(
    "counterexample",
    "two experts, losses (0, 1): a potential stands still at the wrong one",
    _experts_references(
        ("potential-experts", {"epsilon": 10.0, **_PRINTED}, 55_500.0, 3514.0),
        ("potential-experts", {"epsilon": 100.0, **_PRINTED}, 55_500.0, 3514.0),
        ("sparse-vector-experts", {"epsilon": 10.0}, 5.4, 0.4),
        ("sparse-vector-experts", {"epsilon": 100.0}, 0.6, 0.05),
        horizon=100_000,
        note="200 runs; se of a coin or, of sparse vectors, ours",
    ),
    kind="counterexample",
    n_actions=2,
)

_POINTS = ("uniform", "centre", "ogd", "dp-ftrl", "net-experts", "ball-experts")
_DP_FTRL: dict[tuple[int, int], tuple[tuple[float | str, float, float], ...]] = {
    (1000, 1): ((120.3, 192.9, 4.6), ("certified", 133.9, 1.9), ("general", 140.7, 1.7)),
    (1000, 10): ((51.0, 34.2, 0.4), ("certified", 43.8, 0.2), ("general", 69.2, 0.3)),
    (1000, 100): ((36.1, 9.4, 0.05), ("certified", 13.4, 0.05), ("general", 31.8, 0.05)),
    (10_000, 1): ((241.4, 676.6, 6.1), ("certified", 497.5, 2.2), ("general", 739.9, 2.3)),
    (10_000, 10): ((77.1, 169.4, 1.1), ("certified", 117.9, 0.2), ("general", 270.5, 0.2)),
    (10_000, 100): ((41.7, 29.8, 0.1), ("certified", 35.7, 0.05), ("general", 116.0, 0.05)),
}
"""(T, epsilon) -> lambda, the printed one as a number, and total loss: Table F"""

DP_FTRL = Case(
    name="oco/dp-ftrl",
    summary="(<a, x> - <a, x*>)^2 / 2, a uniform on the sphere: the loss of x* is 0",
    pure_noise=True,
    environment="dpbandit/OnlineConvex-v0",
    env_kwargs={"instance": "realizable-squared", "dim": 2},
    agents={agent: {} for agent in _POINTS},
    references=tuple(
        Reference(
            agent="dp-ftrl",
            settings={"epsilon": LOOSE_NORMALS[epsilon], "tuning": tuning},
            mean=mean,
            se=se,
            horizon=T,
            note="one sequence",
        )
        for (T, epsilon), cells in _DP_FTRL.items()
        for tuning, mean, se in cells
    ),
)


def _net(dim: int, epsilon: int, net: Cell, leader: Cell) -> Iterator[Reference]:
    line = {"dim": 1, "size": 0.3} if dim == 1 else {}
    spacing = 0.002 if dim == 1 else 0.02
    yield from _experts_references(
        ("net-experts", {**line, "epsilon": epsilon, "spacing": spacing, "net_loss": 0.0}, *net),
        ("dp-ftrl", {**line, "epsilon": LOOSE_NORMALS[epsilon], "tuning": "general"}, *leader),
        horizon=10_000,
        note=_OURS,
    )


NET = Case(
    name="oco/net",
    summary="max(0, <a, x> - <a, x*>) / 2, a uniform on the sphere, on a disc or (dim=1) a line",
    pure_noise=True,
    environment="dpbandit/OnlineConvex-v0",
    env_kwargs={"loss": "ramp", "dim": 2, "gap": 1.0, "size": 0.5},
    agents={agent: {} for agent in _POINTS},
    references=(
        *_net(1, 1, (325.0, 8.0), (128.0, 2.0)),
        *_net(1, 10, (57.9, 1.0), (39.1, 0.3)),
        *_net(2, 1, (500.0, 9.0), (194.0, 2.0)),
        *_net(2, 10, (88.9, 1.0), (65.9, 0.3)),
    ),
)

EXPERTS_CASES = (BERNOULLI, HALVING, SMALL_LOSS, LOWER_BOUND, COUNTEREXAMPLE, DP_FTRL, NET)


_DELTA = 1e-6
_T = 8192
_AGENTS = (
    *("wdp-cocop", "wdp-cocol", "pftal", "pocp", "noisy-oco", "dp-ftrl"),
    *("ftal", "online-conditional-gradient", "ogd", "centre", "uniform", "best-fixed"),
)
_EXACT = {"mode": "exact"}


def _loose(factor: float = 1.0) -> float:
    """`_LOOSE`, for noise that is 1 / `factor` times as large."""
    nats = log(1 / _DELTA)
    return round(epsilon_of(factor * sqrt(2) * (sqrt(10 + nats) - sqrt(nats)), _DELTA), 4)


_LOOSE = _loose()
_PURE: Settings = {"epsilon": 10.0}
_NORMAL: Settings = {"epsilon": _LOOSE, "noise": "gaussian", "delta": _DELTA}
_PRINTED_NORMAL: Settings = {**_NORMAL, "epsilon": 10.0, **_PAPER}
_EVER: Settings = {"epsilon": round(10 * 13 / 14, 4)}
_EVER_NORMAL: Settings = {**_NORMAL, "epsilon": _loose(sqrt(13 / 14))}


def _window_rows(
    agent: str,
    columns: Iterable[Settings],
    measured: Iterable[tuple[float, float]],
    *,
    horizon: int = _T,
    **extra: Any,
) -> tuple[Reference, ...]:
    """(mean, se) of one agent under several settings, as references."""
    return tuple(
        Reference(agent=agent, settings={**extra, **own}, mean=mean, se=se, horizon=horizon)
        for own, (mean, se) in zip(columns, measured, strict=True)
    )


def _ball_row(window: int, *measured: tuple[float, float]) -> tuple[Reference, ...]:
    """Gamma noise as printed, certified on exact and on lazy trees; Gaussian noise alike."""
    pure, normal = (_PURE, _NORMAL) if window < _T else (_EVER, _EVER_NORMAL)
    columns: Sequence[Settings] = (
        {**_PURE, **_PAPER},
        {**pure, **_EXACT},
        pure,
        _PRINTED_NORMAL,
        {**normal, **_EXACT},
        normal,
    )
    return _window_rows("wdp-cocop", columns, measured, window=window)


def _simplex_row(window: int, *measured: tuple[float, float]) -> tuple[Reference, ...]:
    """Projections, local oracles, these with line search, all Gaussian; the first two with Gamma
    noise; printed steps."""
    pure, normal = (_PURE, _NORMAL) if window < _T else (_EVER, _EVER_NORMAL)
    searched, printed = {"step": "line-search"}, {"parameters": "paper"}
    projected = _window_rows("wdp-cocop", (normal, pure), (measured[0], measured[3]), window=window)
    columns = (normal, {**normal, **searched}, pure, {**normal, **printed})
    local = (measured[1], measured[2], measured[4], measured[5])
    return projected + _window_rows("wdp-cocol", columns, local, window=window)


def _window_case(name: str, summary: str, *rows: Iterable[Reference]) -> Case:
    return Case(
        name=f"window/{name}",
        summary=summary,
        pure_noise=True,
        environment="dpbandit/OnlineConvex-v0",
        env_kwargs={"instance": name},
        agents={agent: {} for agent in _AGENTS},
        references=tuple(row for some in rows for row in some),
    )


COCOP_BALL = _window_case(
    "cocop-ball",
    "|x - z|^2 / 2 on the unit ball of R^5, z = 0.4 e_1 + 0.3 v; --noise gamma is K-norm noise",
    *(
        _ball_row(window, *measured)
        for window, *measured in (
            (1, (2.0, 0.1), (1.9, 0.1), (1.9, 0.1), (32.2, 0.2), (4.5, 0.1), (4.5, 0.1)),
            (4, (8.1, 0.1), (7.5, 0.1), (7.2, 0.2), (141.5, 0.6), (11.1, 0.1), (10.5, 0.2)),
            (16, (18.0, 0.3), (16.5, 0.3), (14.2, 0.3), (314.7, 1.1), (19.1, 0.2), (16.7, 0.3)),
            (64, (27.0, 0.4), (24.4, 0.3), (21.5, 0.3), (535.6, 2.1), (23.7, 0.4), (21.3, 0.3)),
            (256, (33.8, 0.5), (30.6, 0.4), (28.8, 0.4), (774.3, 4.7), (26.0, 0.4), (24.9, 0.4)),
            (1024, (40.9, 0.6), (37.1, 0.5), (36.3, 0.5), (1004.9, 7.3), (28.4, 0.4), (27.9, 0.4)),
            (_T, (52.3, 0.7), (47.6, 0.7), (47.6, 0.7), (1033.7, 8.4), (32.0, 0.5), (32.0, 0.5)),
        )
    ),
    _window_rows("wdp-cocop", [{**_NORMAL, "window": 16}], [(16.48, 0.25)], horizon=1024),
    _window_rows(
        "wdp-cocop",
        [{**_NORMAL, "epsilon": _loose(sqrt(10 / 11)), "window": 1024}],
        [(27.26, 0.44)],
        horizon=1024,
    ),
    _window_rows("pocp", [{"epsilon": _LOOSE}], [(130.0, 0.4)], horizon=1024),
)

COCOL_SIMPLEX = _window_case(
    "cocol-simplex",
    "|x - z|^2 / 2 on the simplex of R^10, z one of its first three corners",
    *(
        _simplex_row(window, *measured)
        for window, *measured in (
            (1, (5.1, 0.1), (5.0, 0.1), (6.0, 0.2), (3.9, 0.1), (3.9, 0.1), (1016.2, 0.1)),
            (16, (12.4, 0.3), (9.9, 0.2), (13.9, 0.3), (13.4, 0.2), (11.0, 0.2), (1016.3, 0.1)),
            (256, (17.1, 0.4), (13.3, 0.3), (19.1, 0.4), (26.0, 0.5), (20.1, 0.4), (1017.7, 0.2)),
            (_T, (21.2, 0.4), (16.4, 0.3), (23.6, 0.5), (41.3, 0.7), (31.4, 0.6), (1018.9, 0.9)),
        )
    ),
)

WINDOW_CASES = (COCOP_BALL, COCOL_SIMPLEX)
"""The paper's Table I is a table, see `paper_tables`."""


CASES = {
    case.name: case
    for case in (
        *(P1, P2, FIGURE_5_1, *GENERALISED_LINEAR_CASES),
        *(*CONVEX_CASES, LINEAR, *EXPERTS_CASES, *WINDOW_CASES),
    )
}
