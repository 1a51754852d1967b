"""Bounds of epsilon, proven from scores of runs or from exact laws on finitely many releases.

An adversary scores a run on data set A or its neighbour B, and calls it "B" if the score is high.
FPR is the rate of runs on A that are called "B", TPR that of runs on B. Privacy bounds TPR by a
function of FPR, the trade-off curve. Rates are known up to Clopper-Pearson bounds only; findings
use an upper bound of FPR and a lower bound of TPR, and are wrong with probability <= `failure`.

Exact audits compare two laws on finitely many releases with a claim; nothing is sampled::

    law of a release on a data set   what is released
    randomised_response              one of n answers
    choice                           the index of the largest of scores + noise

    exact_audit(p, q, claim)         epsilon, delta, the trade-off curve; is the claim refuted?

The two laws belong to one pair of neighbours. An audit that does not refute a claim proves it only
if no other pair of neighbours is easier to tell apart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import betaincinv, expit, log_ndtr, ndtr, ndtri, softmax

from dpbandit.base import (
    Floats,
    InputError,
    Ints,
    at_least,
    inside,
    one_of,
    privacy_target,
    whole,
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


ChoiceNoise: TypeAlias = Literal["gumbel", "laplace", "gaussian"]
TestNoise: TypeAlias = Literal["laplace", "exponential"]

_CURVE_TOLERANCE = 1e-12
"""Distance above the claim's trade-off curve up to which an attack counts as a rounding error."""
_NOISE_REACH = 40.0
"""Multiple of the noise scale at which integrals end; the probability beyond is < 1e-17."""
_MAX_SCORE_GAP = 800.0
"""Largest distance of a score to the best score, in noise scales; beyond it, exp underflows."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)  # of Gauss-Legendre quadrature on [-1, 1]


@dataclass(frozen=True)
class ExactFinding:
    """Privacy of a release whose laws on two neighbouring data sets are known, up to rounding."""

    epsilon: float
    """smallest epsilon that holds at the claim's delta; infinity if none does"""
    delta: float
    """smallest delta that holds at the claim's epsilon"""
    curve: tuple[tuple[float, float], ...]
    """corners (false, true positive rate) of the trade-off curve, from (0, 0) to (1, 1)"""
    flagged: bool
    """True if an attack, in either direction, lies above the claim's curve and refutes the claim"""


def exact_audit(p: Floats, q: Floats, claim: Claim) -> ExactFinding:
    """Compare two exact output distributions with a claim.

    By Neyman and Pearson (1933) the best attacks say "B" at the k releases of largest q / p; each k
    gives a corner of the best TPR as a function of FPR. Attacks that exchange the roles of A and B
    say "A" at all other releases. A claim bounds TPR by a concave function of FPR, so the claim
    holds everywhere if it holds at the corners.

    Args:
        p: probability of every release on data set A, (n,).
        q: probability of every release on the neighbouring data set B, (n,).
        claim: the claim to be tested.

    Raises `InputError` unless p and q are distributions on the same releases.

    >>> fair = randomised_response(0, 2, epsilon=1.0), randomised_response(1, 2, epsilon=1.0)
    >>> exact_audit(*fair, Claim(1.0, 0.0)).flagged, exact_audit(*fair, Claim(0.9, 0.0)).flagged
    (False, True)
    """
    for name, law in (("p", p), ("q", q)):
        if law.ndim != 1 or law.shape != p.shape or (law < 0).any() or abs(law.sum() - 1) > 1e-9:
            raise InputError(f"Expected {name}={law} to be a law on {len(p)} releases.")
    with np.errstate(divide="ignore"):
        order = np.argsort(np.log(p) - np.log(np.where(q > 0, q, 1e-320)), kind="stable")
    fpr, tpr = (np.minimum(np.append(0.0, law[order].cumsum()), 1.0) for law in (p, q))
    above = [t > claim.highest(f) + _CURVE_TOLERANCE for f, t in ((fpr, tpr), (1 - tpr, 1 - fpr))]
    return ExactFinding(
        epsilon=exact_epsilon(p, q, claim.delta),
        delta=exact_delta(p, q, claim.epsilon),
        curve=tuple(zip(fpr.tolist(), tpr.tolist(), strict=True)),
        flagged=bool(np.any(above)),
    )


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


# Laws of small releases


def randomised_response(truth: int, n: int, *, epsilon: float) -> Floats:
    """Return the law (n,) of an answer, true with probability e^epsilon / (e^epsilon + n - 1).

    All other answers are equally likely (Warner, JASA 1965, for n = 2). This is epsilon-DP for
    replacing the truth, since the ratio of any two probabilities is at most e^epsilon.

    >>> randomised_response(0, 3, epsilon=np.log(2)).tolist()
    [0.5, 0.25, 0.25]
    """
    whole("n", n, 2)
    whole("truth", truth, 0, n - 1)
    at_least("epsilon", epsilon, 0)
    inside("epsilon", epsilon, 0, _MAX_EPSILON, ends=True)
    return softmax(epsilon * (np.arange(n) == truth))


def choice(scores: Floats, scale: float, *, noise: ChoiceNoise = "gumbel") -> Floats:
    """Return the law (n,) of argmax(scores + noise), for scores (n,) and noise of scale `scale`.

    Gumbel noise gives softmax(scores / scale), the exponential mechanism. With noise of density f
    and distribution function F, candidate i wins with probability int f(x - u_i) prod_{j != i}
    F(x - u_j) dx, where u = scores / scale, by Gauss-Legendre rules on pieces without kinks.
    The scale is 2 x sensitivity / epsilon in `ExponentialMechanism` and `ReportNoisyMax`; without
    noise (`scale` 0) the first of the largest scores wins.

    >>> choice(np.array([1.0, 0.0]), 1.0).round(4).tolist()
    [0.7311, 0.2689]
    """
    one_of("noise", noise, ("gumbel", *NOISES))
    at_least("scale", scale, 0)
    if scale == 0:
        return (np.arange(len(scores)) == np.argmax(scores)).astype(float)
    u = np.maximum((scores - scores.max()) / scale, -_MAX_SCORE_GAP)
    if noise == "gumbel":
        return softmax(u)
    at = NOISES[noise]
    x, weights = _nodes(u.min() - _NOISE_REACH, _NOISE_REACH, u)
    others = at.cdf(x - u[:, None])  # (n, nodes)
    won = [np.delete(others, i, axis=0).prod(axis=0) * at.pdf(x - u[i]) for i in range(len(u))]
    return np.asarray(won) @ weights


def _nodes(low: float, high: float, kinks: Floats, step: float = 0.5) -> tuple[Floats, Floats]:
    """Return points and weights of Gauss-Legendre rules between low, the `kinks` and high."""
    inner = kinks[(kinks > low) & (kinks < high)]
    ends = np.unique(np.concatenate([np.arange(low, high, step), inner, [high]]))
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + _NODES)).ravel(), (half * _WEIGHTS).ravel()


_Function: TypeAlias = Callable[[Floats], Floats]


class _Noise(NamedTuple):
    """A noise of scale 1: density, distribution function P(noise <= x) and tail P(noise > x)."""

    pdf: _Function
    cdf: _Function
    above: _Function


def _half(x: Floats) -> Floats:
    return np.exp(-np.abs(x)) / 2


def _laplace_cdf(x: Floats) -> Floats:
    return np.where(x < 0, _half(x), 1 - _half(x))


def _normal_cdf(x: Floats) -> Floats:
    return np.asarray(ndtr(x))


def _exponential_above(x: Floats) -> Floats:
    return np.exp(-np.maximum(x, 0.0))


NOISES = {  # noises of scale 1 by name
    "laplace": _Noise(_half, _laplace_cdf, lambda x: _laplace_cdf(-x)),
    "gaussian": _Noise(
        lambda x: np.exp(-x * x / 2) / np.sqrt(2 * np.pi), _normal_cdf, lambda x: _normal_cdf(-x)
    ),
    "exponential": _Noise(
        lambda x: np.where(x >= 0, _exponential_above(x), 0.0),
        lambda x: 1 - _exponential_above(x),
        _exponential_above,
    ),
}
