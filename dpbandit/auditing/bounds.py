"""From scores of runs in two neighbouring worlds to what they prove, with a stated failure rate.

The game: a run of world A or of world B is scored, and called B where the score is high. With FPR
the rate of calling A's runs B, and TPR that of calling B's runs B, privacy bounds TPR by a curve of
FPR. Rates are known up to Clopper-Pearson bounds only, so every statement here has an upper bound
of FPR and a lower bound of TPR, and may fail with the probability `failure`.
"""

from dataclasses import dataclass
from math import exp, inf

import numpy as np
from scipy.special import betaincinv, expit, log_ndtr, ndtri

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import inside, privacy_target
from dpbandit.privacy import curves
from dpbandit.privacy.ledger import Ledger

_THRESHOLDS = expit(np.linspace(-8, 8, 129))
"""Quantiles of the pooled scores that are tried."""
_CAUTION = 20
"""Choosing looks at bounds that fail this much more rarely, against the luck of the best of many.
It decides about power alone: between 4 and 250 bounds of epsilon differ by a tenth at most."""
_LARGE = 700.0
"""An epsilon from which on nothing is claimed: e^epsilon is no number."""
_CURVE = 24
"""Points of delta(epsilon) that stand for the curve of a claim that is not Gaussian."""


@dataclass(frozen=True)
class Claim:
    """What is put to the test: (epsilon, delta), GDP where there is one, and the curve.

    `curve` holds points (epsilon, delta(epsilon)), each a claim of its own.
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
        """Everything that a ledger claims at `delta`."""
        epsilon = ledger.epsilon(delta)
        if ledger.mu is not None or epsilon == inf:
            return cls(epsilon, delta, ledger.mu)
        points = np.linspace(0, min(2.5 * epsilon, ledger.pure), _CURVE).tolist()
        return cls(epsilon, delta, None, tuple((e, ledger.delta(e)) for e in points))

    @property
    def pairs(self) -> tuple[tuple[float, float], ...]:
        """All pairs (epsilon, delta) claimed point by point."""
        return (*self.curve, (self.epsilon, self.delta))

    def highest(self, fpr: Floats) -> Floats:
        """The largest TPR that the whole claim allows at `fpr`, elementwise."""
        if self.mu is not None and self.mu < inf:
            return np.exp(log_ndtr(ndtri(fpr) + self.mu))
        allowed = np.ones_like(fpr)
        for epsilon, delta in self.pairs:
            if epsilon < _LARGE:
                allowed = np.minimum(allowed, delta + exp(epsilon) * fpr)
                allowed = np.minimum(allowed, 1 - exp(-epsilon) * (1 - delta - fpr))
        return allowed


@dataclass(frozen=True)
class Finding:
    """What the runs prove, all of it together with probability 1 - `failure`.

    `eps_lower` and `mu_lower`, the GDP parameter (None without a GDP claim), are the best that any
    evaluated threshold proves. (`fpr`, `tpr`) is the point furthest above the claim, or nearest.
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
    """Lower and upper bound of a probability, EACH wrong with probability at most `failure`.

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

    Two criteria, epsilon at delta and the whole trade-off curve (GDP where that is claimed), each
    choose for themselves. `failure` is divided equally among what they choose, which is known
    before the other half is looked at: by two, or by one where both choose the same, as they do
    for a pure claim. FPR and TPR get half each.

    Args:
        selection: name of a score -> its values for runs of worlds A and B.
        evaluation: the same scores of other runs.
        claim: what is tested.
        failure: probability that anything in the result is wrong.
    """
    choices = [
        (name, *choice)
        for name, (a, b) in selection.items()
        for choice in _choices(a, b, failure / (_CAUTION * len(selection)))
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
    """(threshold, direction, upper FPR, lower TPR) of every threshold and both directions."""
    cuts = np.unique(np.quantile(np.concatenate([a, b]), _THRESHOLDS, method="nearest"))
    found = []
    for forward in (True, False):
        low, high = _rates(a, b, cuts, forward, failure)
        found += [(c, forward, f, t) for c, f, t in zip(cuts, high, low, strict=True)]
    return found


def _rates(
    a: Floats, b: Floats, cuts: Floats, forward: bool, failure: float
) -> tuple[Floats, Floats]:
    """Lower TPR and upper FPR of calling B what is >= cut; backward, of calling A what is below."""
    below_a, below_b = (np.searchsorted(np.sort(s), cuts) for s in (a, b))
    hits, false = (len(b) - below_b, len(a) - below_a) if forward else (below_a, below_b)
    n_hits, n_false = (len(b), len(a)) if forward else (len(a), len(b))
    low, _ = clopper_pearson(hits, n_hits, failure)
    _, high = clopper_pearson(false, n_false, failure)
    return low, high


def _epsilons(claim: Claim, fpr: Floats, tpr: Floats) -> Floats:
    """log((TPR - delta) / FPR), -infinity where that proves nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(tpr > claim.delta, np.log(np.maximum(tpr - claim.delta, 0) / fpr), -inf)


def _excess(claim: Claim, fpr: Floats, tpr: Floats) -> Floats:
    """By how much a point exceeds the claim: in mu, or in the worst epsilon of the curve."""
    if claim.mu is not None:
        return np.asarray(ndtri(tpr) - ndtri(fpr))
    each = [
        _epsilons(Claim(0, delta), fpr, tpr) - epsilon
        for epsilon, delta in claim.pairs
        if epsilon < inf
    ]
    return np.max(each, axis=0) if each else _epsilons(claim, fpr, tpr)


def epsilon_of_mu(mu_lower: float | None, delta: float) -> float | None:
    """What a lower bound of mu says about epsilon at delta; None where it says nothing."""
    return None if mu_lower is None or delta == 0 else curves.epsilon_of(mu_lower, delta)
