"""A logit of yes and no on the rows of a log: its fit, its errors, and when there is none."""

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit, fdtrc

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError

_STEPS = 200
_CLOSE = 1e-10
_SEPARATED = 1e-7
"""What a linear program of n rows may miss by, over sqrt(n)"""


def fit_logit(x: Floats, yes: Floats, penalty: Floats) -> Floats:
    """The coefficients (p,) that maximise mean log-likelihood - sum penalty b^2 / 2.

    Newton's method, with steps halved where they would lose; to 1e-10.
    """
    b = np.zeros(x.shape[1])
    value = _objective(x, yes, penalty, b)
    for _ in range(_STEPS):
        s = expit(x @ b)
        slope = x.T @ (yes - s) / len(x) - penalty * b
        step = np.linalg.lstsq(_information(x, s, penalty), slope, rcond=None)[0]
        while (new := _objective(x, yes, penalty, b + step)) < value - 1e-14:
            step = step / 2
        b, value = b + step, new
        if np.abs(step).max() < _CLOSE:
            break
    return b


def _objective(x: Floats, yes: Floats, penalty: Floats, b: Floats) -> float:
    return float(log_likelihoods(x @ b, yes).mean() - (penalty * b * b).sum() / 2)


def _information(x: Floats, s: Floats, penalty: Floats) -> Floats:
    return np.asarray((x * (s * (1 - s))[:, None]).T @ x / len(x) + np.diag(penalty))


def log_likelihoods(logits: Floats, yes: Floats) -> Floats:
    """Of each row, (n,)."""
    return np.asarray(-np.logaddexp(0, np.where(yes > 0, -logits, logits)))


def covariance(
    x: Floats, yes: Floats, penalty: Floats, b: Floats, groups: Ints | None = None
) -> Floats:
    """The sandwich of the coefficients, (p, p), by rows, or by `groups` of rows (n,)."""
    s, n = expit(x @ b), len(x)
    scores = x * (yes - s)[:, None] / n
    if groups is not None:
        sums = np.zeros((groups.max() + 1, x.shape[1]))
        np.add.at(sums, groups, scores)
        scores = sums
    bread = np.linalg.pinv(_information(x, s, penalty))
    return np.asarray(bread @ (scores.T @ scores) @ bread)


def explained(target: Floats, x: Floats) -> tuple[float, float]:
    """R2 of least squares of `target` (n,) on 1 and `x` (n, d), and F's p-value for "nothing"."""
    n, total = len(target), float(np.square(target - target.mean()).sum())
    design = np.column_stack([np.ones(n), x])
    coefficients, _, rank, _ = np.linalg.lstsq(design, target, rcond=None)
    left = float(np.square(target - design @ coefficients).sum())
    used, free = int(rank) - 1, n - int(rank)
    if total == 0 or used == 0 or free < 1:
        return 0.0, 1.0
    share = max(0.0, 1 - left / total)
    if left == 0:
        return share, 0.0
    return share, float(fdtrc(used, free, share / used / (left / total / free)))


def refuse_separated(
    x: Floats, yes: Floats, names: tuple[str, ...], *, name: str, lone: dict[str, Any]
) -> None:
    """Raise `InputError` where some coefficients b tell yes from no without an error.

    Exactly then there is no fit (Albert and Anderson, Biometrika 1984): the linear program max sum
    s_i x_i . b with all s_i x_i . b >= 0 and every |b_j| <= 1, s = 1 for yes and -1 for no, is 0
    unless rows are separated, wholly or in part (Konis 2007).

    Args:
        x, yes: rows (n, p) and their answers (n,).
        names: of the columns, (p,), as people know them.
        name: of the column of answers.
        lone: masks of rows (n,) that people know by a name, such as one level of a feature.
    """
    signed = np.unique(x * np.where(yes > 0, 1, -1)[:, None], axis=0, return_counts=True)
    rows, counts = signed
    found: Any = linprog(-(counts @ rows), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1))
    if -found.fun <= _SEPARATED * np.sqrt(len(x)):
        return
    for words, mask in lone.items():
        if mask.any() and np.ptp(yes[mask]) == 0:
            answer = "1" if yes[mask][0] else "0"
            raise InputError(
                f"Expected {name!r} to be both 0 and 1 where {words}, got {answer} in all "
                f"{int(mask.sum())} rows (separation): no model can be fitted, leave it out or "
                "join it with another."
            )
    used = dict.fromkeys(names[j] for j in np.flatnonzero(np.abs(found.x) > _SEPARATED))
    raise InputError(
        f"Expected {name!r} not to be told exactly by {', '.join(used)} (separation): some rows "
        "are all 0 beyond a line and all 1 before it, and no model can be fitted."
    )
