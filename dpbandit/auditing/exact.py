"""Exact likelihood-ratio scores for audits of mechanisms whose laws are known.

Mechanisms that draw by losses are scored by each release's log-ratio, given earlier releases::

    mechanism                        a release                    its law, given all losses
    OneShotTopK and subclasses       candidates, best first       softmax without replacement
    SegmentAboveThreshold            whether the segment ends     an integral over threshold noise
    RedrawBit                        whether to draw anew         a bit, see `RedrawBit.keeps`

An adversary knows all losses but the differing user's, so total losses on B are the total
losses on A plus her loss on B minus her loss on A. All noisy maxima are scored by Gumbel's law.

Scores of other releases are log-likelihood ratios of data set B to its neighbour A::

    release v                                      score
    Gaussian, means a and b, covariance Sigma      <v, Sigma^-1 (b - a)>             matched_filter
    Laplace of scale c on every coordinate         |v - a|_1 / c - |v - b|_1 / c     LaplaceRatio
    one of finitely many, laws p and q             log q(v) - log p(v)               outcomes
    choices by Gumbel noise, given all scores      sum of log softmax_B - log softmax_A

No score tells A and B apart better (Neyman and Pearson 1933), and no runs are spent on training.
The laws are the claimed ones. If the mechanism has other laws, the score has less power, and
findings remain valid. So the ratio of a mechanism with a suspected fault may be a score, too.

`audit_rehearsed` fixes score, threshold and direction before the audited mechanism is run at all:
`rehearsal` samples a mechanism with a suspected fault, in as many runs as one likes, and every run
of the audited mechanism is evaluated. A wrong suspicion costs power, never validity.

Exact audits compare two laws on finitely many releases with a claim; nothing is sampled::

    law of a release on a data set   what is released
    randomised_response              one of n answers
    choice                           the index of the largest of scores + noise

    exact_audit(p, q, claim)         epsilon, delta, the trade-off curve; is the claim refuted?

The two laws belong to one pair of neighbours. An audit that does not refute a claim proves it only
if no other pair of neighbours is easier to tell apart.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import log_softmax, ndtr, softmax

from dpbandit.auditing.audit import Sampler
from dpbandit.auditing.bounds import (
    _MAX_EPSILON,
    Claim,
    Finding,
    exact_delta,
    exact_epsilon,
    judge,
)
from dpbandit.auditing.users import twin
from dpbandit.auditing.views import _SCORE_DECIMALS, Columns, LogRatios, Score, Scorer
from dpbandit.auditing.witness import LISTENERS, Listener
from dpbandit.base import (
    MOST_RUNS,
    Floats,
    InputError,
    Ints,
    Seed,
    at_least,
    inside,
    one_of,
    positive,
    whole,
)
from dpbandit.privacy import Mechanism, OneShotTopK, SegmentAboveThreshold
from dpbandit.privacy.choices import CumulativeLosses, EpochSelection
from dpbandit.privacy.sparse_vector import RedrawBit

ChoiceNoise: TypeAlias = Literal["gumbel", "laplace", "gaussian"]
TestNoise: TypeAlias = Literal["laplace", "exponential"]

_CURVE_TOLERANCE = 1e-12
"""Distance above the claim's trade-off curve up to which an attack counts as a rounding error."""
_NOISE_REACH = 40.0
"""Multiple of the noise scale at which integrals end; the probability beyond is < 1e-17."""
_MAX_SCORE_GAP = 800.0
"""Largest distance of a score to the best score, in noise scales; beyond it, exp underflows."""
_RULE_NODES, _RULE_WEIGHTS = np.polynomial.legendre.leggauss(10)  # on [-1, 1]


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
    return (ends[:-1, None] + half * (1 + _RULE_NODES)).ravel(), (half * _RULE_WEIGHTS).ravel()


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


_MAX_LOG_RATIO = 700.0
"""Log-ratio of a release that is impossible on one of two neighbouring data sets."""
_MAX_CANDIDATES = 256
"""Largest number of candidates whose draws are scored exactly; nets of points have thousands."""
_MIN_PROBABILITY = 1e-300  # floor on integrals, so that their logarithms are finite
# ends of the pieces of Gauss-Legendre integration, in units of the noise scale
_PIECE_ENDS = np.concatenate([np.arange(-8.0, 8.5, 0.5), [16.0, 40.0]])
_PIECE_ENDS = np.unique(np.concatenate([-_PIECE_ENDS, _PIECE_ENDS]))  # symmetric about 0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)  # on [-1, 1]
# points of the Gauss-Legendre rules on all pieces
_NODES = (_PIECE_ENDS[:-1, None] + np.diff(_PIECE_ENDS)[:, None] / 2 * (1 + _NODES)).ravel()
_WEIGHTS = (np.diff(_PIECE_ENDS)[:, None] / 2 * _WEIGHTS).ravel()  # of these points


class Draws:
    """Score of a mechanism's draws of candidates by total losses; observes all calls."""

    def __init__(self, mechanism: OneShotTopK, runs: int) -> None:
        self._mechanism, self._differed = mechanism, False
        self._sums, self._gap = np.zeros((2, runs, mechanism.source.n))  # of an epoch
        self._drawn, self._found = np.zeros(runs, dtype=int), np.zeros(runs)

    def observe(self, datum: Any, release: Any, *, differs: bool) -> None:
        losses, chosen = self._mechanism.query(*datum), release.reshape(len(release), -1)
        self._sums += losses
        if differs:
            self._gap, self._differed = twin(losses) - losses, True
        drawing = np.flatnonzero(chosen[:, 0] >= 0)
        if self._differed and len(drawing):
            sums, scale = self._sums[drawing], self._mechanism.scale[self._drawn[drawing], None]
            laws = [
                log_order(self._mechanism.scores(S, drawing, *datum[2:]) / scale, chosen[drawing])
                for S in (sums + self._gap[drawing], sums)
            ]
            self._found[drawing] += np.subtract(*laws)
        self._drawn[drawing] += 1
        if isinstance(self._mechanism, EpochSelection):  # a new epoch is without her
            ends = datum[3]
            self._sums[ends], self._gap[ends], self._drawn[ends] = 0.0, 0.0, 0

    def ratios(self) -> Floats | None:
        return self._found[:, None] if self._differed else None


class Segments:
    """Score of the length of the differing user's segment in a sparse vector on segments.

    Given the threshold noise r, of density p, tests are independent: a segment fires at its k-th
    test with probability int p(r) prod_{i < k} F(z_i) (1 - F(z_k)) dr, where z_i = threshold + r -
    sum of losses at test i, and F is the distribution function of a test's noise.
    """

    def __init__(self, mechanism: SegmentAboveThreshold, runs: int) -> None:
        self._mechanism = mechanism
        r, self._scale = mechanism.scales
        self._law = NOISES[mechanism.noise]
        self._r, self._weights = r * _NODES, _WEIGHTS * self._law.pdf(_NODES)
        self._here, self._there = np.ones((2, runs, len(self._r)))
        self._sum, self._gap, self._found = np.zeros((3, runs))
        self._ended, self._differed = np.ones(runs, dtype=bool), False

    def observe(self, datum: Any, release: Any, *, differs: bool) -> None:
        loss, begins = self._mechanism.query(*datum), self._ended.copy()
        if len(datum) > 2:
            begins |= datum[2]
        self._found += np.where(begins & ~self._ended, self._lasted(), 0.0)
        self._here[begins], self._there[begins] = 1.0, 1.0
        self._sum[begins], self._gap[begins] = 0.0, 0.0
        self._sum += loss
        if differs:
            self._gap, self._differed = twin(loss) - loss, True
        z = (datum[1] - self._sum)[:, None] + self._r
        here, there = z / self._scale, (z - self._gap[:, None]) / self._scale
        fires = self._ratio(
            self._there * self._law.above(there), self._here * self._law.above(here)
        )
        self._found += np.where(release, fires, 0.0)
        self._here, self._there = (
            self._here * self._law.cdf(here),
            self._there * self._law.cdf(there),
        )
        self._ended = release

    def ratios(self) -> Floats | None:
        found = self._found + np.where(self._ended, 0.0, self._lasted())
        return found[:, None] if self._differed else None

    def _lasted(self) -> Floats:
        """Return the log-ratios (2 R,) of segments in which no test has fired so far."""
        return self._ratio(self._there, self._here)

    def _ratio(self, there: Floats, here: Floats) -> Floats:
        """Return log-ratios (2 R,) of the integrals of `there` and `here`, (2 R, points)."""
        integrals = np.maximum([there @ self._weights, here @ self._weights], _MIN_PROBABILITY)
        return np.subtract(*np.log(integrals))


class Bits:
    """Score of the `RedrawBit` that depends on the differing user's loss; observes all calls."""

    def __init__(self, mechanism: RedrawBit) -> None:
        self._mechanism = mechanism
        self._found: Floats | None = None

    def observe(self, datum: Any, release: Any, *, differs: bool) -> None:
        if not differs:
            return
        loss, active = self._mechanism.query(*datum), datum[1]
        keeps = self._mechanism.keeps(np.stack([twin(loss), loss]))
        with np.errstate(divide="ignore"):
            there, here = np.log(np.where(release, 1 - keeps, keeps))
        self._found = np.where(active, there - here, 0.0)[:, None]

    def ratios(self) -> Floats | None:
        return self._found


def log_order(scores: Floats, chosen: Ints) -> Floats:
    """Return the log-probability (R,) of the order `chosen` (R, k) of the k largest noisy scores.

    The noise is Gumbel noise; -1 in `chosen` is no candidate.

    >>> log_order(np.log([[1.0, 2.0, 3.0]]), np.array([[2, 0]])).round(6) == np.log(1 / 6).round(6)
    array([ True])
    """
    left, found = scores.copy(), np.zeros(len(scores))
    for pick in chosen.T:
        there = pick >= 0
        of_all = log_softmax(left[there], axis=1)
        found[there] += of_all[np.arange(len(of_all)), pick[there]]
        left[there, pick[there]] = -np.inf
    return found


def listener(mechanism: Mechanism, runs: int) -> Listener | None:
    """Make the `Listener` that scores a noisy mechanism drawing by losses; None for others."""
    if isinstance(mechanism, RedrawBit) and mechanism.rate < inf:
        return Bits(mechanism)
    if isinstance(mechanism, SegmentAboveThreshold) and min(mechanism.scales) > 0:
        return Segments(mechanism, runs)
    if isinstance(mechanism, OneShotTopK) and (mechanism.scale > 0).all():
        source = mechanism.source
        if isinstance(source, CumulativeLosses) and source.n <= _MAX_CANDIDATES:
            return Draws(mechanism, runs)
    return None


LISTENERS.append(listener)


def matched_filter(difference: Floats, covariance: Floats) -> Score:
    """Return the score for Gaussian columns whose means differ by `difference` (p,).

    The score is the log-likelihood ratio up to a constant and a factor, also if the `covariance`
    (p, p) of the columns is known up to a factor only.

    >>> filtered = matched_filter(np.array([1.0, 0.0]), np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> filtered.weights.round(4).tolist()
    [1.3333, -0.6667]
    """
    p = len(difference)
    if covariance.shape != (p, p):
        raise InputError(f"Expected covariance of shape {covariance.shape} to be {(p, p)}.")
    return Score(np.arange(p), np.linalg.solve(covariance, difference), {})


@dataclass(frozen=True)
class LaplaceRatio:
    """Score for columns with independent Laplace noise, means `first` on A, `second` on B, (p,)."""

    first: Floats
    second: Floats
    scale: float

    def __post_init__(self) -> None:
        positive("scale", self.scale)

    def __call__(self, columns: Columns) -> Floats:
        """Return the scores (n,) of n runs, large if a run looks like data set B."""
        v = columns.values
        nearer = np.abs(v - self.first) - np.abs(v - self.second)
        return np.round(nearer / self.scale, _SCORE_DECIMALS).sum(axis=1)


def outcomes(*laws: tuple[Floats, Floats]) -> Score:
    """Return the score for independent columns of outcomes 0, 1, ..., given (p, q) of each column.

    p and q are the laws of outcomes on data sets A and B, such as `bounds.choice`. An outcome that
    is impossible on A scores 700, one that is impossible on B scores -700.

    >>> score = outcomes((np.array([0.5, 0.5]), np.array([0.75, 0.25])))
    >>> seen = Columns(np.array([[0.0], [1.0]]), ("releases",), np.array([True]))
    >>> score(seen).round(4).tolist()
    [0.4055, -0.6931]
    """
    tables = {
        j: LogRatios(np.arange(len(p), dtype=float), _ratio(p, q)) for j, (p, q) in enumerate(laws)
    }
    return Score(np.arange(len(laws)), np.ones(len(laws)), tables)


def gumbel_ratio(chosen: Ints, first: Floats, second: Floats, scale: Floats | float) -> Floats:
    """Return the log-ratios (R,), data set B to A, of choices argmax(scores + Gumbel noise).

    If later scores depend on earlier choices, a sampler adds up the ratios of all choices and shows
    the sum as a column: the auditor knows the releases and the data of all other users.

    Args:
        chosen: released indices, (R,).
        first: exact scores of n candidates on data set A, (R, n), given all earlier releases.
        second: exact scores on data set B, (R, n).
        scale: scale of the noise.
    """
    one, two = (log_softmax(scores / scale, axis=-1) for scores in (first, second))
    return np.take_along_axis(two - one, chosen[:, None], axis=-1)[:, 0].round(_SCORE_DECIMALS)


def _ratio(p: Floats, q: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((p > 0) | (q > 0), np.log(q) - np.log(p), 0.0)
    return ratio.clip(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)


def first_above(
    queries: Floats,
    thresholds: Floats | float,
    *,
    threshold_scale: float,
    query_scale: float,
    noise: TestNoise = "laplace",
) -> Floats:
    """Return the law (n + 1,) of the first sparse-vector test that fires; entry n is for none.

    Given the threshold noise r, of density p, tests are independent: test k fires first with
    probability int p(r) prod_{i < k} F(z_i) (1 - F(z_k)) dr, where z_i = threshold_i + r - query_i
    and F is the distribution function of a query's noise. With sensitivity s, `AboveThreshold` has
    scales 2 s / epsilon (threshold) and 4 s / epsilon (queries); a segment of
    `SegmentAboveThreshold`, whose queries are prefix sums, has s / epsilon for both.

    >>> first_above(np.zeros(2), 0.0, threshold_scale=0.0, query_scale=1.0).tolist()
    [0.5, 0.25, 0.25]
    """
    one_of("noise", noise, ("laplace", "exponential"))
    at_least("threshold_scale", threshold_scale, 0)
    positive("query_scale", query_scale)
    at, c = NOISES[noise], query_scale
    r: Floats = np.zeros(1)
    weights: Floats = np.ones(1)
    if threshold_scale > 0:
        reach = _NOISE_REACH * threshold_scale
        start = 0.0 if noise == "exponential" else -reach
        kinks = np.append(queries - thresholds, 0.0)
        r, weights = _nodes(start, reach, kinks, step=0.5 * min(threshold_scale, c))
        weights = weights * at.pdf(r / threshold_scale) / threshold_scale
    alive: Floats = np.ones_like(r)
    law = []
    for gap in thresholds - queries:
        law.append(weights @ (alive * at.above((r + gap) / c)))
        alive = alive * at.cdf((r + gap) / c)
    return np.array([*law, weights @ alive])


_REHEARSAL_STAGE, _PLAY_STAGE = 5, 6
"""Second entries of the seeds of rehearsals and of evaluated runs; no other audit uses them."""


def audit_rehearsed(
    sample: Sampler,
    rehearsal: Sampler,
    claim: Claim,
    *,
    scores: Mapping[str, Scorer],
    runs: int,
    rehearsals: int = 200_000,
    seed: int = 0,
    failure: float = 0.05,
    chunk: int = 500,
) -> Finding:
    """Test `claim` on runs of `sample`, with the score and threshold that suit `rehearsal` best.

    Args:
        sample: function that runs the mechanism, see `auditing.Sampler`.
        rehearsal: function that runs the mechanism with the suspected fault, on seeds of its own.
        claim: the claim to be tested.
        scores: known scores, such as the ratios of this module.
        runs: number of runs of `sample` on each data set, all evaluated, >= 400.
        rehearsals: number of runs of `rehearsal` on each data set; ten times `runs` is enough.
        seed: random seed; the finding depends on it alone.
        failure: largest probability that anything in the finding is wrong.
        chunk: number of runs in one call of a sampler.
    """
    whole("runs", runs, 400, MOST_RUNS)
    whole("rehearsals", rehearsals, 400, MOST_RUNS)
    inside("failure", failure, 0, 1, ends=False)
    choosing = _scored(rehearsal, scores, seed, _REHEARSAL_STAGE, rehearsals, chunk)
    played = _scored(sample, scores, seed, _PLAY_STAGE, runs, chunk)
    return judge(choosing, played, claim, failure=failure)


def _scored(
    sample: Sampler, scores: Mapping[str, Scorer], seed: int, stage: int, runs: int, chunk: int
) -> dict[str, tuple[Floats, Floats]]:
    """Return for each score its values in `runs` runs on data set A and on data set B."""
    parts: dict[str, tuple[list[Floats], list[Floats]]] = {name: ([], []) for name in scores}
    for start in range(0, runs, chunk):
        seeds: list[Seed] = [(seed, stage, run) for run in range(start, min(start + chunk, runs))]
        for world in (0, 1):
            columns = sample(world, seeds)
            for name, score in scores.items():
                parts[name][world].append(score(columns))
    return {name: (np.concatenate(a), np.concatenate(b)) for name, (a, b) in parts.items()}
