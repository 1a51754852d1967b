"""Privacy that expires: a ball and a simplex, and what an independent program measured on them.

Its Gaussian noise is calibrated by zCDP, rho = (sqrt(epsilon + l) - sqrt(l))^2, l = ln(1/delta);
ours, exact, needs less. `_LOOSE` is the epsilon at which ours is as large as its at epsilon 10. Its
trees of T leaves are charged a level more than is in use: there epsilon is a little lower.
"""

from collections.abc import Iterable, Sequence
from math import log, sqrt
from typing import Any

from dpbandit.experiments.case import Case, Reference, Settings
from dpbandit.privacy.curves import epsilon_of

_DELTA = 1e-6
_T = 8192
_AGENTS = (
    *("wdp-cocop", "wdp-cocol", "pftal", "pocp", "noisy-oco", "dp-ftrl"),
    *("ftal", "online-conditional-gradient", "ogd", "centre", "uniform", "best-fixed"),
)
_EXACT = {"mode": "exact"}
_PAPER = {"calibration": "paper"}


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


def _rows(
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
    return _rows("wdp-cocop", columns, measured, window=window)


def _simplex_row(window: int, *measured: tuple[float, float]) -> tuple[Reference, ...]:
    """Projections, local oracles, these with line search, all Gaussian; the first two with Gamma
    noise; printed steps."""
    pure, normal = (_PURE, _NORMAL) if window < _T else (_EVER, _EVER_NORMAL)
    searched, printed = {"step": "line-search"}, {"parameters": "paper"}
    projected = _rows("wdp-cocop", (normal, pure), (measured[0], measured[3]), window=window)
    columns = (normal, {**normal, **searched}, pure, {**normal, **printed})
    local = (measured[1], measured[2], measured[4], measured[5])
    return projected + _rows("wdp-cocol", columns, local, window=window)


def _case(name: str, summary: str, *rows: Iterable[Reference]) -> Case:
    return Case(
        name=f"window/{name}",
        summary=summary,
        pure_noise=True,
        environment="dpbandit/OnlineConvex-v0",
        env_kwargs={"instance": name},
        agents={agent: {} for agent in _AGENTS},
        references=tuple(row for some in rows for row in some),
    )


COCOP_BALL = _case(
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
    _rows("wdp-cocop", [{**_NORMAL, "window": 16}], [(16.48, 0.25)], horizon=1024),
    _rows(
        "wdp-cocop",
        [{**_NORMAL, "epsilon": _loose(sqrt(10 / 11)), "window": 1024}],
        [(27.26, 0.44)],
        horizon=1024,
    ),
    _rows("pocp", [{"epsilon": _LOOSE}], [(130.0, 0.4)], horizon=1024),
)

COCOL_SIMPLEX = _case(
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
