"""A multinomial logit of which product was bought: its fit to a log, its refusals, its errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax

from dpbandit.base import Bools, Floats, InputError, Ints
from dpbandit.envs.contextual.logs import WHO_IS_PROTECTED

_STEPS = 100
_CLOSE = 1e-10
_LARGEST = 25.0
"""Of a coefficient; beyond it products are told apart without an error"""
_LEAST_Z = 2.0
_FOLDS, _SEED = 5, 20_221
_ERRORS = 3.0
"""Standard errors that a calibration may be away from 1"""

ONE_SLOPE = (
    "One multinomial logit: a price costs every customer and product the same utility, and what is "
    "not offered sends its customers to the others in proportion (independence of irrelevant "
    "alternatives). A log cannot show why prices were what they were, nor why products were shown."
)


class Visits(NamedTuple):
    """What was shown to whom, and what she took."""

    design: Floats
    """(n, k), 1 and features"""
    price: Floats
    """(n, N), on [-1, 1]; 0 where it was not offered"""
    offered: Bools
    """(n, N)"""
    choice: Ints
    """(n,), N is none"""

    def of(self, rows: Bools) -> "Visits":
        """Some of the rows."""
        return Visits(self.design[rows], self.price[rows], self.offered[rows], self.choice[rows])


class ChoiceFit(NamedTuple):
    """The coefficients of a logit."""

    tastes: Floats
    """(N, k)"""
    slope: float
    """of utility in the price on [-1, 1]"""

    def utilities(self, visits: Visits) -> Floats:
        """Of the products and of none, which is 0, (n, N + 1); -inf for what is not offered."""
        found = visits.design @ self.tastes.T + self.slope * visits.price
        none = np.zeros((len(found), 1))
        return np.hstack([np.where(visits.offered, found, -np.inf), none])


@dataclass(frozen=True, kw_only=True)
class ChoiceDiagnostics:
    """How well a log of choices tells demand; exact functions of the log, so not private."""

    visits: int
    bought: Mapping[str, int]
    """visits that ended with each product, "none" last"""
    offered: Mapping[str, int]
    """visits to which each was shown"""
    slope: float
    """utility lost for one unit of the price, negated"""
    unit: str
    """what prices are in"""
    z: float
    """slope over its standard error, a sandwich by rows, or by clusters"""
    log_likelihood: float
    """held out, a visit"""
    constant: float
    """the same of a logit without features and prices"""
    calibration: float
    """what held-out utilities are to be multiplied by, 1 where they are calibrated"""
    calibration_error: float
    cautions: tuple[str, ...]

    def __str__(self) -> str:
        shares = [
            f"    {name}: shown {self.offered.get(name, self.visits)}, taken {count}"
            for name, count in self.bought.items()
        ]
        return "\n".join(
            [
                WHO_IS_PROTECTED,
                ONE_SLOPE,
                f"{self.visits} visits; slope {self.slope:.3f} (prices in {self.unit}), "
                f"z {self.z:.2f}",
                f"held-out log-likelihood {self.log_likelihood:.4f} a visit (without features and "
                f"prices: {self.constant:.4f}), calibration {self.calibration:.3f} +- "
                f"{self.calibration_error:.3f}",
                *(f"Caution: {caution}" for caution in self.cautions),
                *shares,
            ]
        )


def fit_choice(visits: Visits, ridge: float) -> ChoiceFit:
    """Largest mean log-likelihood - ridge |b|^2 / 2, without constants there; Newton's method."""
    b, penalty, x = _start(visits, ridge)
    value = _objective(visits, x, penalty, b)
    for _ in range(_STEPS):
        gradient, information, _ = _derivatives(visits, x, penalty, b)
        step = np.linalg.lstsq(information, gradient, rcond=None)[0]
        while (new := _objective(visits, x, penalty, b + step)) < value - 1e-14:
            step = step / 2
        b, value = b + step, new
        if np.abs(step).max() < _CLOSE or np.abs(b).max() > 4 * _LARGEST:
            break
    return _unpacked(visits, b)


def price_z(visits: Visits, fit: ChoiceFit, ridge: float, groups: Ints | None) -> float:
    """The slope over its sandwich error, by rows or by `groups` (n,)."""
    _, penalty, x = _start(visits, ridge)
    b = np.append(fit.tastes.ravel(), fit.slope)
    _, information, scores = _derivatives(visits, x, penalty, b)
    if groups is not None:
        sums = np.zeros((groups.max() + 1, scores.shape[1]))
        np.add.at(sums, groups, scores)
        scores = sums
    bread = np.linalg.pinv(information)[-1] / len(visits.choice)
    return float(fit.slope / np.linalg.norm(scores @ bread))


def check_fit(fit: ChoiceFit, z: float, names: tuple[str, ...]) -> None:
    """Raise `InputError` where the log cannot tell what a price does, in one sentence."""
    worst = np.abs(fit.tastes).max(axis=1)
    if worst.max() > _LARGEST:
        raise InputError(
            f"Expected {names[int(worst.argmax())]!r} not to be told exactly by features "
            "(separation): no model can be fitted, leave a feature out, or the product."
        )
    if fit.slope >= 0:
        raise InputError(
            "Expected demand to fall with the price, it rises in this log: prices were confounded "
            "with demand, or there is a sign error."
        )
    if z > -_LEAST_Z:
        raise InputError(
            f"Expected a price slope with z at most -{_LEAST_Z:g}, got {z:.2f}: what a price does "
            "is not told apart from 0."
        )


class Calibration(NamedTuple):
    """Of five fits, each to what the other folds hold."""

    log_likelihood: float
    constant: float
    scale: float
    error: float

    @property
    def caution(self) -> str:
        """What is to be said, if anything."""
        if abs(self.scale - 1) <= _ERRORS * self.error:
            return ""
        return (
            f"The held-out calibration {self.scale:.3f} +- {self.error:.3f} is more than three "
            "standard errors from 1."
        )


def hold_out(visits: Visits, ridge: float, groups: Ints | None) -> Calibration:
    """Five folds with a fixed seed; rows of one group (n,) are in one fold."""
    n = len(visits.choice)
    groups = np.arange(n) if groups is None else groups
    count = int(groups.max()) + 1
    fold = (np.random.default_rng(_SEED).permutation(count) % min(_FOLDS, count))[groups]
    utilities = np.empty((n, visits.offered.shape[1] + 1))
    plain = utilities.copy()
    flat = visits._replace(design=np.ones((n, 1)), price=np.zeros(visits.price.shape))
    for k in range(fold.max() + 1):
        out = fold == k
        utilities[out] = fit_choice(visits.of(~out), ridge).utilities(visits.of(out))
        plain[out] = fit_choice(flat.of(~out), ridge).utilities(flat.of(out))
    scale, rows = 1.0, np.arange(n)
    for _ in range(_STEPS):
        p = np.exp(log_softmax(np.where(np.isinf(utilities), -np.inf, scale * utilities), axis=1))
        u = np.where(p > 0, utilities, 0.0)
        score = u[rows, visits.choice] - (p * u).sum(axis=1)
        information = float(((p * u**2).sum(axis=1) - (p * u).sum(axis=1) ** 2).sum())
        step = score.sum() / information
        scale += step
        if abs(step) < _CLOSE:
            break
    by_group = np.bincount(groups, weights=score)
    return Calibration(
        log_likelihood=float(log_softmax(utilities, axis=1)[rows, visits.choice].mean()),
        constant=float(log_softmax(plain, axis=1)[rows, visits.choice].mean()),
        scale=float(scale),
        error=float(np.sqrt(np.square(by_group).sum()) / information),
    )


def _start(visits: Visits, ridge: float) -> tuple[Floats, Floats, Floats]:
    """b = 0, tastes first, then the slope; its penalty; rows of products (n, N, D) in it."""
    n, N = visits.offered.shape
    k = visits.design.shape[1]
    penalty = np.append(np.tile(np.where(np.arange(k) == 0, 0.0, ridge), N), ridge)
    x = np.zeros((n, N, N * k + 1))
    for j in range(N):
        x[:, j, j * k : (j + 1) * k] = visits.design
    x[..., -1] = visits.price
    return np.zeros(N * k + 1), penalty, x


def _unpacked(visits: Visits, b: Floats) -> ChoiceFit:
    return ChoiceFit(b[:-1].reshape(-1, visits.design.shape[1]), float(b[-1]))


def _log_chances(visits: Visits, b: Floats) -> Floats:
    return np.asarray(log_softmax(_unpacked(visits, b).utilities(visits), axis=1))


def _objective(visits: Visits, x: Floats, penalty: Floats, b: Floats) -> float:
    chosen = _log_chances(visits, b)[np.arange(len(x)), visits.choice]
    return float(chosen.mean() - (penalty * b * b).sum() / 2)


def _derivatives(
    visits: Visits, x: Floats, penalty: Floats, b: Floats
) -> tuple[Floats, Floats, Floats]:
    """Gradient (D,), information (D, D) of the mean, and scores of rows (n, D)."""
    p = np.exp(_log_chances(visits, b))[:, :-1]
    taken = 1.0 * (np.arange(p.shape[1]) == visits.choice[:, None])
    mean = np.vecmat(p, x)
    scores = np.vecmat(taken, x) - mean
    flat, n = x.reshape(-1, x.shape[-1]), len(x)
    information = (flat * p.reshape(-1, 1)).T @ flat / n - mean.T @ mean / n
    return scores.mean(axis=0) - penalty * b, information + np.diag(penalty), scores
