"""NoisySGD with all of its T^2 steps: the rows of Table 5.1, and panel (c) of Figure 5.2.

Steps are sequential, so that one loop moves all rows, step scales and replicas of one T together,
with the noise of many steps drawn ahead. Law and constants are those of the agent `noisy-sgd` with
calibration="paper", steps = T^2, and the L = 4 of the authors' program in place of the true 6.5.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import hypot, log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpbandit.base import AnyArray, Floats, whole
from dpbandit.experiments.paper_tables import Reproduced, Request, reproduced, selected
from dpbandit.experiments.sgd.printed import STATED, Row, rows
from dpbandit.experiments.study import grouped, tabulated
from dpbandit.privacy.subsampling import SampledGaussianSpend
from dpbandit.results.plots import log_ticks, panels, style
from dpbandit.results.runs import standard_error

if TYPE_CHECKING:
    from dpbandit.base.tables import Table

SCALES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Factors of the paper's step size; the paper does not say which it tried"""
_BOUND, _NOISE, _RADIUS = 1.25, 0.05, 2.0  # of answers, their standard deviation; of the box
_TRUE_LIPSCHITZ = 6.5  # of (y - <x, w>)^2 on the box, |x|_1 = 1
_BLOCK, _STOPS = 500, 10  # steps whose noise is drawn together; points of a curve
_LARGEST_HORIZON = 2000  # default largest T; each step takes some 30 microseconds


class Problem(NamedTuple):
    """A regression on the box, with d equal entries of theta* or with five and zeros."""

    dim: int
    sparse: bool

    @property
    def theta(self) -> Floats:
        """True parameter, (d,), of largest entry 1."""
        return (np.arange(self.dim) < (5 if self.sparse else self.dim)).astype(np.float64)

    def users(self, rng: np.random.Generator, replicas: int, count: int) -> tuple[Floats, Floats]:
        """Draw features (R, n, d) of l_1 norm 1, and answers (R, n)."""
        x = rng.standard_normal((replicas, count, self.dim))
        x /= np.abs(x).sum(axis=-1, keepdims=True)
        y = x @ self.theta + _NOISE * rng.standard_normal((replicas, count))
        return x, np.clip(y, -_BOUND, _BOUND)

    def suboptimality(self, w: Floats) -> Floats:
        """Return the exact excess risk of points (..., d) over that of 0, as E x x' = c I."""
        theta = self.theta
        return np.square(w - theta).sum(axis=-1) / np.square(theta).sum()


def noise_of(T: int) -> float:
    """Return sigma as the paper prints it, for epsilon 1 and delta 1 / T."""
    return STATED.lipschitz * sqrt(8 * log(T))


def step_of(T: int, d: int) -> float:
    """Return the paper's step size eta for T^2 steps, epsilon 1 and delta 1 / T."""
    return _RADIUS * sqrt(d) / (STATED.lipschitz * T * max(sqrt(T), sqrt(d * log(T))))


def curves(problems: Sequence[Problem], T: int, replicas: int, *, seed: int) -> list[Floats]:
    """Return SubOpt of the mean iterate at `_STOPS` stops, (S, R, stops) for each problem.

    All step scales (S) of a replica see the same users, draws and noise.
    """
    rng = np.random.default_rng([seed, T])
    P, S, R, D = len(problems), len(SCALES), replicas, max(one.dim for one in problems)
    x, y = np.zeros((P, R, T, D), np.float32), np.zeros((P, R, T), np.float32)
    for p, one in enumerate(problems):
        x[p, ..., : one.dim], y[p] = one.users(rng, R, T)
    scales = [[c * step_of(T, one.dim) for c in SCALES] for one in problems]
    eta = np.array(scales, dtype=np.float32)[..., None, None]
    sigma, steps = np.float32(noise_of(T)), T * T
    stops = [steps * j // _STOPS for j in range(1, _STOPS + 1)]
    w, total = np.zeros((P, S, R, D), np.float32), np.zeros((P, S, R, D))
    places, everybody = np.arange(P)[:, None], np.arange(R)
    found = []
    for start, stop in zip([0, *stops], stops, strict=False):
        for first in range(start, stop, _BLOCK):
            B = min(_BLOCK, stop - first)
            who = rng.integers(T, size=(B, P, R))
            noise = np.zeros((B, P, 1, R, D), np.float32)
            for p, one in enumerate(problems):
                drawn = rng.standard_normal((B, 1, R, one.dim), dtype=np.float32)
                np.multiply(drawn, sigma, out=noise[:, p, ..., : one.dim])
            x_t, y_t = (data[places, everybody, who][:, :, None] for data in (x, y))
            total += descend(w, x_t, y_t, noise, eta)
        mean = total / stop
        found.append([one.suboptimality(mean[p, ..., : one.dim]) for p, one in enumerate(problems)])
    return [np.stack([at[p] for at in found], axis=-1) for p in range(P)]


def descend(w: AnyArray, x: AnyArray, y: AnyArray, noise: AnyArray, eta: AnyArray) -> AnyArray:
    """Make a step for each row of `x`, `y` and `noise`, in place; return the sum of iterates."""
    g, total = np.empty_like(w), np.zeros_like(w)
    for a, b, z in zip(x, y, noise, strict=True):
        slope = np.einsum("psrd,pqrd->psr", w, a)
        slope -= b
        slope *= 2
        np.multiply(a, slope[..., None], out=g)
        g += z
        g *= eta
        w -= g
        np.minimum(w, _RADIUS, out=w)
        np.maximum(w, -_RADIUS, out=w)
        total += w
    return total


def epsilons(T: int) -> tuple[float, float]:
    """Return exact epsilons at delta 1 / T, with gradients clipped to L = 4 and as they are."""
    stated, true = (
        SampledGaussianSpend(2 * L / noise_of(T), 1 / T, T * T).least_epsilon(1 / T)
        for L in (STATED.lipschitz, _TRUE_LIPSCHITZ)
    )
    return stated, true


def reproduce(request: Request) -> Reproduced:
    """Run the printed rows of NoisySGD with T^2 steps; rows choose a T, such as "T=1000"."""
    whole("replicas", request.replicas, 2)  # there are standard errors
    _, values = selected(request.name, request.rows, {}, {"T": int})
    (most,) = values.get("T", [_LARGEST_HORIZON])
    whole("T", most, 2)
    printed = [row for row in rows() if row.algorithm == "NoisySGD"]
    at_most = [row for row in printed if row.setting.users <= most]
    if not at_most:  # a small size, to see that things run
        first = [row for row in printed if row.setting.users == printed[0].setting.users]
        at_most = [row._replace(setting=row.setting._replace(users=most)) for row in first]
    records: list[dict[str, object]] = []
    for T, some in grouped(at_most, lambda row: row.setting.users).items():
        problems = [Problem(row.setting.dim, row.sparse) for row in some]
        curves_of_rows = curves(problems, T, request.replicas, seed=request.seed)
        for row, found in zip(some, curves_of_rows, strict=True):
            records += _records(row, found, epsilons(T))
    drawings = {"figure-5-2-c": partial(_draw, records)} if request.saved else {}
    return reproduced(request, "all-steps", records, [_table(records)], drawings)


def _records(row: Row, found: Floats, epsilon: tuple[float, float]) -> list[dict[str, object]]:
    """Return the records of a row of the table, by step scale and stop."""
    made: list[dict[str, object]] = []
    for scale, values in zip(SCALES, np.moveaxis(found, 2, 1), strict=True):
        for share, at in enumerate(values, start=1):
            mean, se = float(at.mean()), standard_error(at)
            made.append(
                {
                    "T": row.setting.users,
                    "d": row.setting.dim,
                    "theta": "sparse" if row.sparse else "equal",
                    "scale": scale,
                    "steps": share / _STOPS,
                    "suboptimality": mean,
                    "suboptimality_se": se,
                    "printed_suboptimality": row.suboptimality,
                    "z_printed": (mean - row.suboptimality) / hypot(se, row.se),
                    "epsilon_clipped": epsilon[0],
                    "epsilon_as_it_is": epsilon[1],
                    "replicas": len(at),
                }
            )
    return made


def _last(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [record for record in records if record["steps"] == 1]


def _table(records: Sequence[Mapping[str, Any]]) -> "Table":
    headings = ("T", "d", "theta*", "printed", *(f"scale {scale:g}" for scale in SCALES), "epsilon")
    cells = []
    by_row = grouped(_last(records), lambda record: (record["T"], record["d"]))
    for (T, d), some in by_row.items():
        values = [f"{r['suboptimality']:.3g} ± {r['suboptimality_se']:.2g}" for r in some]
        place = [f"{T:,}", str(d), str(some[0]["theta"]), f"{some[0]['printed_suboptimality']:g}"]
        cells.append([*place, *values, f"{some[0]['epsilon_clipped']:.3g}"])
    caption = (
        "SubOpt after T^2 steps with L = 4, on the theta* that the printed row implies; "
        "epsilon: exact at delta = 1/T, if gradients were clipped to L"
    )
    return tabulated("NoisySGD with all steps", headings, cells, caption=caption, keys=3)


def _draw(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw training curves by step scale for the largest T, a panel for each d."""
    T = max(record["T"] for record in records)
    groups = grouped((r for r in records if r["T"] == T), lambda record: record["d"])
    heading = (
        f"NoisySGD, p = infinity, all $T^2$ steps, T = {T:,}: training curves by step scale\n"
        f"mean of {records[0]['replicas']} replicas, bands of 1 standard deviation"
    )
    with panels(path, [f"d = {d}" for d in groups], heading=heading, size=(14.5, 5.4)) as row:
        for axes, group in zip(row, groups.values(), strict=True):
            for look, one in enumerate(grouped(group, lambda record: record["scale"]).values()):
                color, dashes = style(look)
                where = [r["steps"] for r in one]
                mean, se = (np.array([r[f"suboptimality{s}"] for r in one]) for s in ("", "_se"))
                sd = se * sqrt(one[0]["replicas"])
                axes.plot(where, mean, color=color, ls=dashes, label=f"{one[0]['scale']:g}")
                low = np.maximum(mean - sd, 0.1 * mean)
                axes.fill_between(where, low, mean + sd, color=color, alpha=0.15, lw=0)
            printed = group[0]["printed_suboptimality"]
            axes.axhline(printed, color="0.4", ls=":", lw=1.4, label="Table 5.1")
            axes.set_yscale("log")
            log_ticks(axes.yaxis)
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("")
            axes.set(xlabel="share of the $T^2$ steps", ylabel="SubOpt")
            axes.legend(framealpha=0.9, edgecolor="none", fontsize="small", ncols=2)
