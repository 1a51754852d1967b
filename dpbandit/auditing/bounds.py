"""Bounds of epsilon, proven from scores of runs or from exact laws of releases.

An adversary scores a run on data set A or its neighbour B, and calls it "B" if the score is high.
FPR is the rate of runs on A that are called "B", TPR that of runs on B. Privacy bounds TPR by a
function of FPR, the trade-off curve. Rates are known up to Clopper-Pearson bounds only; findings
use an upper bound of FPR and a lower bound of TPR, and are wrong with probability <= `failure`.
"""

from dataclasses import dataclass
from math import exp, inf

import numpy as np
from scipy.special import betaincinv, expit, log_ndtr, ndtri

from dpbandit.base import (
    Floats,
    Ints,
    inside,
    privacy_target,
)
from dpbandit.privacy import Ledger, curves

_THRESHOLDS = expit(np.linspace(-8, 8, 129))
"""Levels of the quantiles of all runs' scores that are tried as thresholds."""
_CHOICE_CAUTION = 20
"""Divisor of `failure` while thresholds are chosen, as the best of many rates is too high; only
power depends on the divisor: from 4 to 250, bounds of epsilon differ by at most a tenth."""
_MAX_EPSILON = 700.0
"""Epsilon from which on a claim counts as no claim, because e^epsilon would overflow."""
_CURVE_POINTS = 24
"""Number of pairs (epsilon, delta) that represent the trade-off curve of a claim without GDP."""


@dataclass(frozen=True)
class Claim:
    """A privacy claim to be tested: (epsilon, delta), mu of GDP or None, and the trade-off curve.

    `curve` holds further pairs (epsilon, delta), all of which are claimed, too.
    """

    epsilon: float
    delta: float
    mu: float | None = None
    curve: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        if self.epsilon > 0:
            privacy_target(self.epsilon, self.delta)

    @classmethod
    def of(cls, ledger: Ledger, delta: float) -> "Claim":
        """Return the claim that a ledger proves at `delta`, with mu or, without GDP, a curve."""
        epsilon = ledger.epsilon(delta)
        if ledger.mu is not None or epsilon == inf:
            return cls(epsilon, delta, ledger.mu)
        points = np.linspace(0, min(2.5 * epsilon, ledger.pure), _CURVE_POINTS).tolist()
        return cls(epsilon, delta, None, tuple((e, ledger.delta(e)) for e in points))

    @property
    def pairs(self) -> tuple[tuple[float, float], ...]:
        """All claimed pairs (epsilon, delta), the points of the curve first."""
        return (*self.curve, (self.epsilon, self.delta))

    def highest(self, fpr: Floats) -> Floats:
        """Return the largest true positive rate that the claim allows at `fpr`, elementwise."""
        if self.mu is not None and self.mu < inf:
            return np.exp(log_ndtr(ndtri(fpr) + self.mu))
        allowed = np.ones_like(fpr)
        for epsilon, delta in self.pairs:
            if epsilon < _MAX_EPSILON:
                allowed = np.minimum(allowed, delta + exp(epsilon) * fpr)
                allowed = np.minimum(allowed, 1 - exp(-epsilon) * (1 - delta - fpr))
        return allowed


@dataclass(frozen=True)
class Finding:
    """Result of an audit; all its statements hold together with probability 1 - `failure`.

    `eps_lower` and `mu_lower` (None without a claim of GDP) are the largest lower bounds of epsilon
    and mu that an evaluated threshold proves. (`fpr`, `tpr`), bounds of the false and true positive
    rate, is the evaluated point furthest above the claim's curve or, if all lie below, nearest it.
    """

    eps_lower: float
    mu_lower: float | None
    fpr: float
    tpr: float
    above_curve: bool
    flagged: bool
    failure: float
    score: str
    direction: str


def clopper_pearson(hits: Floats | Ints, runs: int, failure: float) -> tuple[Floats, Floats]:
    """Return bounds of a probability by `hits` in `runs`, EACH wrong with probability <= `failure`.

    Clopper and Pearson, Biometrika 1934.

    >>> low, high = clopper_pearson(np.array([0, 10]), 10, 0.05)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.7411], [0.2589, 1.0])
    """
    inside("failure", failure, 0, 1, ends=False)
    k, n = np.asarray(hits, dtype=float), float(runs)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, failure), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1), 1 - failure), 1.0)
    return low, high


def judge(
    selection: dict[str, tuple[Floats, Floats]],
    evaluation: dict[str, tuple[Floats, Floats]],
    claim: Claim,
    *,
    failure: float,
) -> Finding:
    """Choose score, threshold and direction on one half of the runs, evaluate once on the other.

    Each of two criteria, epsilon at delta and the excess over the trade-off curve (mu if GDP is
    claimed), chooses one test; for a pure-DP claim both choose the same. `failure` is divided by
    the number of different tests before the other half is read, and by two for the bounds of
    the false positive rate (FPR) and the true positive rate (TPR) of a test.

    Args:
        selection: name of a score -> its values in runs on the neighbouring data sets A and B.
        evaluation: the same scores of other runs.
        claim: the claim to be tested.
        failure: largest probability that anything in the result is wrong.
    """
    choices = [
        (name, *choice)
        for name, (a, b) in selection.items()
        for choice in _choices(a, b, failure / (_CHOICE_CAUTION * len(selection)))
    ]
    fpr, tpr = np.array([choice[3:] for choice in choices]).T
    best = {int(np.argmax(rate(claim, fpr, tpr))) for rate in (_epsilons, _excess)}
    chosen = [choices[i][:3] for i in sorted(best)]
    fpr, tpr = np.array(
        [
            _rates(*evaluation[name], np.array([cut]), forward, failure / (2 * len(chosen)))
            for name, cut, forward in chosen
        ]
    )[:, ::-1, 0].T
    eps_lower = max(0.0, float(_epsilons(claim, fpr, tpr).max()))
    mu_lower = None if claim.mu is None else max(0.0, float((ndtri(tpr) - ndtri(fpr)).max()))
    above = bool((tpr > np.nextafter(claim.highest(fpr), inf)).any())
    furthest = int(np.argmax(_excess(claim, fpr, tpr)))
    name, _, forward = chosen[furthest]
    return Finding(
        eps_lower=eps_lower,
        mu_lower=mu_lower,
        fpr=float(fpr[furthest]),
        tpr=float(tpr[furthest]),
        above_curve=above,
        flagged=above or eps_lower > claim.epsilon,
        failure=failure,
        score=name,
        direction="A to B" if forward else "B to A",
    )


def _choices(a: Floats, b: Floats, failure: float) -> list[tuple[float, bool, float, float]]:
    """Return (threshold, forward, upper bound of FPR, lower bound of TPR) of all tests."""
    cuts = np.unique(np.quantile(np.concatenate([a, b]), _THRESHOLDS, method="nearest"))
    found = []
    for forward in (True, False):
        low, high = _rates(a, b, cuts, forward, failure)
        found += [(c, forward, f, t) for c, f, t in zip(cuts, high, low, strict=True)]
    return found


def _rates(
    a: Floats, b: Floats, cuts: Floats, forward: bool, failure: float
) -> tuple[Floats, Floats]:
    """Return lower TPRs and upper FPRs of calling runs >= cut B, or backward runs < cut A."""
    below_a, below_b = (np.searchsorted(np.sort(s), cuts) for s in (a, b))
    hits, false = (len(b) - below_b, len(a) - below_a) if forward else (below_a, below_b)
    n_hits, n_false = (len(b), len(a)) if forward else (len(a), len(b))
    low, _ = clopper_pearson(hits, n_hits, failure)
    _, high = clopper_pearson(false, n_false, failure)
    return low, high


def _epsilons(claim: Claim, fpr: Floats, tpr: Floats) -> Floats:
    """Return the proven epsilon, log((TPR - delta) / FPR), or -infinity where TPR <= delta."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(tpr > claim.delta, np.log(np.maximum(tpr - claim.delta, 0) / fpr), -inf)


def _excess(claim: Claim, fpr: Floats, tpr: Floats) -> Floats:
    """Return mu proven by each (FPR, TPR); without GDP, its largest excess over claims."""
    if claim.mu is not None:
        return np.asarray(ndtri(tpr) - ndtri(fpr))
    each = [
        _epsilons(Claim(0, delta), fpr, tpr) - epsilon
        for epsilon, delta in claim.pairs
        if epsilon < inf
    ]
    return np.max(each, axis=0) if each else _epsilons(claim, fpr, tpr)


def epsilon_of_mu(mu_lower: float | None, delta: float) -> float | None:
    """Convert a lower bound of mu to a bound of epsilon at delta; None without mu or at delta 0."""
    return None if mu_lower is None or delta == 0 else curves.epsilon_of(mu_lower, delta)


def exact_delta(p: Floats, q: Floats, epsilon: float) -> float:
    """Return the smallest delta that holds at `epsilon` for laws p and q, in both directions.

    >>> exact_delta(np.array([0.75, 0.25]), np.array([0.25, 0.75]), 0.0)
    0.5
    """
    factor = exp(min(epsilon, _MAX_EPSILON))
    return max(float(np.maximum(x - factor * y, 0).sum()) for x, y in ((p, q), (q, p)))


def exact_epsilon(p: Floats, q: Floats, delta: float = 0.0) -> float:
    """Return the smallest epsilon at which `exact_delta` is <= delta, to 1e-9, or infinity."""
    either = (p > 0) | (q > 0)
    with np.errstate(divide="ignore"):
        ratios = np.abs(np.log(p[either]) - np.log(q[either]))
    if delta == 0:
        return float(ratios.max())
    low, high = 0.0, float(ratios[np.isfinite(ratios)].max(initial=0.0))
    if exact_delta(p, q, high) > delta:
        return inf
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if exact_delta(p, q, middle) > delta else (low, middle)
    return high
