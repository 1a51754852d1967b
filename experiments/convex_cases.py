"""Online convex problems in five dimensions, told values or data, and what was measured on them.

Tree noise at epsilon 1; pure where it is K-norm, Laplace or local noise, delta 1e-6 where it is
Gaussian. Where the paper's own W, L and beta are not said, they are those of the problem.
"""

from collections.abc import Iterable
from typing import Any

from dpbandit.agents import CONVEX
from dpbandit.experiments.case import Case, Reference, Settings

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


def _case(
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


def _rows(
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
    return _rows(horizon, "garber-kretzu", [(extra, *public)]) + _rows(
        horizon, "private-bandit", [*certified, *printed]
    )


def _pftal(horizon: int, *measured: tuple[float, float]) -> tuple[Reference, ...]:
    """PFTAL at epsilon 1: K-norm noise, the same as printed, Laplace and Gaussian noise."""
    columns = zip(({}, _PAPER, _LAPLACE, _GAUSSIAN), measured, strict=True)
    return _rows(horizon, "pftal", [(settings, *value) for settings, value in columns])


P_LIN = _case(
    "p-lin",
    "<e_1, x> on the unit ball, the same every round",
    _private_bandit(1024, (570, 1), (840, 9), (803, 8), (761, 7), (767, 16), (981, 11), (1019, 10)),
    _private_bandit(
        4096, (2179, 2), (2645, 15), (2537, 13), (2414, 9), (2555, 22), (3847, 44), (3975, 43)
    ),
    _private_bandit(
        10_000, (4746, 3), (5424, 22), (5232, 20), (4998, 12), (5310, 44), (8983, 104), (9877, 112)
    ),
    _rows(1024, "fkm", [({}, 553.4, 5.0)]),
    _rows(4096, "fkm", [({}, 1760.9, 14.2)]),
    linear=True,
)

P_QUAD = _case(
    "p-quad",
    "|x - c|^2 / 2 on the unit ball, half of c random",
    _private_bandit(4096, (598, 1), (1080, 12), (1039, 10), (930, 8), (924, 20), (1499, 21)),
    _pftal(1024, (346.09, 4.43), (192.48, 2.41), (398.67, 5.44), (214.78, 2.31)),
    _pftal(4096, (536.16, 6.29), (263.25, 2.94), (675.75, 7.83), (268.88, 2.57)),
    _rows(1024, "pftal", [({"epsilon": 0.1}, 598.47, 8.66), ({"epsilon": 10}, 37.82, 0.68)]),
    _rows(4096, "pftal", [({"epsilon": 0.1}, 2216.05, 27.39), ({"epsilon": 10}, 47.56, 0.76)]),
    _rows(1024, "ftal", [({}, 1.18, 0.02)]),
    _rows(4096, "ftal", [({}, 1.36, 0.02)]),
    _rows(1024, "bandit-ftal", [(_OBLIVIOUS, 145, 2), ({"beta": "adaptive"}, 147, 2)]),
    _rows(4096, "bandit-ftal", [(_OBLIVIOUS, 253, 5), ({"beta": "adaptive"}, 535, 2)]),
    *(
        _rows(
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
    _rows(1024, "fkm", [({}, 96.1, 1.2)]),
    _rows(4096, "fkm", [({}, 304.5, 3.7)]),
)

P_KINK = _case(
    "p-kink",
    "|x| + |x|^2 / 2 on the unit ball: strongly convex, not smooth",
    _pftal(1024, (1112.46, 6.54), (698.67, 3.24), (1253.69, 5.60), (763.50, 3.94)),
    _pftal(4096, (2112.99, 11.46), (1186.77, 4.69), (2557.04, 12.46), (1208.07, 4.26)),
    _rows(1024, "pftal", [({"epsilon": 0.1}, 1534.38, 0.03), ({"epsilon": 10}, 185.68, 1.03)]),
    _rows(4096, "pftal", [({"epsilon": 0.1}, 6081.33, 3.65), ({"epsilon": 10}, 282.64, 1.22)]),
    _rows(1024, "ftal", [({}, 4.72, 0.005)]),
    _rows(4096, "ftal", [({}, 5.41, 0.005)]),
)

P_TILT = _case("p-tilt", "|x|^2 / 2 - 2 x_1 on the unit ball: the optimum is on its surface")

SQRT_INSTANCE = _case(
    "sqrt-instance",
    "<e_1, x> / (2 sqrt T): regularised leaders lose sqrt(T) / 4",
    _rows(10_000, "ftal", [({"curvature": 0.01}, 0.01 * 9_999 / 4 + 0.005, 0.0)]),
    linear=True,
)

HYPERSIMPLEX = _case(
    "hypersimplex-3-6",
    "choose 3 of 6, half of them good, the same every round",
    *(
        _rows(10_000, "garber-kretzu", [(settings, *public)])
        + _rows(
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

PARTITION_MATROID = _case(
    "partition-matroid",
    "choose 2 of 4 in each of 3 groups, half of them good, half of a loss noise",
    linear=True,
    without=_LOCAL_ORACLE,
)

FLOWS = _case(
    "flows",
    "9 paths through 2 layers of 3 nodes, one of them faster, half of a loss noise",
    linear=True,
    without=_LOCAL_ORACLE,
)

STRONGLY_ADAPTIVE = _case(
    "strongly-adaptive",
    "an offset that follows the sign of the exploration: no one-point method survives it",
)

CONVEX_CASES = (
    *(P_LIN, P_QUAD, P_KINK, P_TILT, SQRT_INSTANCE, HYPERSIMPLEX, PARTITION_MATROID, FLOWS),
    STRONGLY_ADAPTIVE,
)
