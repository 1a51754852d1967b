"""Sparse vector: exact laws of all transcripts, the code against those laws, and broken variants.

Given the threshold noise r the tests are independent: a transcript has probability int p(r) prod
F(z_t) or G(z_t) dr, z_t = threshold + r - q_t, one integral for each segment.
"""

from functools import cache
from itertools import product
from math import inf, prod

import numpy as np
import pytest
from scipy.stats import chi2, expon, laplace

from dpbandit.base import Streams
from dpbandit.privacy import Ledger, SegmentAboveThreshold
from dpbandit.privacy.sparse_vector import AboveThreshold
from tests.each import refused

EPS, THETA, T = 0.6, 3.0, 5
NODES, WEIGHTS = np.polynomial.legendre.leggauss(10)


class Law:
    """The transcript law of a sparse vector with the given noise; `broken` is known to be wrong."""

    def __init__(self, noise, threshold_scale, query_scale, broken=None, theta=THETA):
        self.theta, self.broken = theta, broken
        self.noise, self.query_scale = noise, query_scale
        end = np.ceil(40 * threshold_scale)
        pieces = np.arange(0 if noise is expon else -end, end, 0.5)
        self.r = (pieces[:, None] + (NODES + 1) / 4).ravel()
        self.w = np.tile(WEIGHTS / 4, len(pieces))
        self.w = self.w * noise.pdf(self.r, scale=threshold_scale)
        if broken == "no threshold noise":
            self.r, self.w = np.zeros(1), np.ones(1)
        elif broken == "wrong side":
            self.r = -self.r
        self.given = cache(self._given)
        self.mass = cache(lambda *segment: self.w @ self.given(*segment))

    def _given(self, queries, fires):
        """P(no test fires but, if `fires`, the last | r)."""
        z = self.theta + self.r - np.array(queries)[:, None]
        quiet = self.noise.cdf(z, scale=self.query_scale)
        if fires:
            quiet[-1] = self.noise.sf(z[-1], scale=self.query_scale)
        return quiet.prod(axis=0)

    def of(self, segments):
        """The probability of a transcript: its segments as (queries, fires)."""
        if self.broken == "threshold noise used again":
            return self.w @ np.prod([self.given(*segment) for segment in segments], axis=0)
        return prod(self.mass(*segment) for segment in segments)

    def firing_times(self, queries):
        """P(the first firing is test 1, ..., n; none)."""
        n = len(queries)
        ends = [[(tuple(queries[: k + 1]), True)] for k in range(n)]
        return np.array([self.of(end) for end in [*ends, [(tuple(queries), False)]]])


def segments(sequence, fired):
    """Losses (T, 2) and firings (T,) as segments: expert 0 first, the other after a firing."""
    expert, sums, found = 0, [], []
    for losses, fires in zip(sequence, fired, strict=True):
        sums.append((sums[-1] if sums else 0) + losses[expert])
        if fires:
            found.append((tuple(sums), True))
            expert, sums = 1 - expert, []
    return [*found, (tuple(sums), False)] if sums else found


TRANSCRIPTS = list(product((False, True), repeat=T))
LOSSES = list(product((0, 1), repeat=2))


def transcript_law(law, sequence):
    return np.array([law.of(segments(sequence, fired)) for fired in TRANSCRIPTS])


def worst_ratio(law):
    """The largest log-ratio of any transcript over all 0/1 losses of two experts, one round
    replaced."""
    P = np.array([transcript_law(law, s) for s in product(LOSSES, repeat=T)])
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-9)
    P = P.reshape(*[4] * T, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(P)
        return max(np.nanmax(log.max(axis=i) - log.min(axis=i)) for i in range(T))


LAWS = {
    "exponential": (expon, 1 / EPS, 1 / EPS),
    "laplace": (laplace, 1 / EPS, 1 / EPS),
    "textbook": (laplace, 2 / EPS, 4 / EPS),
}
BROKEN = ["no threshold noise", "wrong side", "threshold noise used again"]


def test_segments_cost_no_more_than_epsilon():
    """Exact, Lemma A: all segments together cost 0.6; exponential noise is tight; broken ones cost
    more."""
    for noise, expected in (("exponential", 0.6000), ("laplace", 0.5917), ("textbook", 0.2642)):
        assert worst_ratio(Law(*LAWS[noise])) == pytest.approx(expected, abs=5e-5)
        assert worst_ratio(Law(*LAWS[noise], theta=1.0)) <= EPS + 1e-9
    for noise, broken in (*(("exponential", b) for b in BROKEN), ("laplace", BROKEN[0])):
        assert worst_ratio(Law(*LAWS[noise], broken)) > EPS + 0.05


def test_any_queries_need_the_textbook_scales():
    """Exact, all queries in {0, 1}^5: 0.6 is kept by Lap(2/eps), Lap(4/eps) alone."""

    def ratio(law):
        P = np.array([law.firing_times(q) for q in product((0, 1), repeat=T)])
        return np.max(np.log(P.max(axis=0) / P.min(axis=0)))

    assert 0.45 < ratio(Law(*LAWS["textbook"], theta=0.0)) < EPS
    assert ratio(Law(*LAWS["laplace"], theta=0.0)) > EPS
    assert ratio(Law(*LAWS["textbook"], "no threshold noise", theta=0.0)) > EPS


def p_value(counts, law):
    """Chi-square; cells that expect less than 10 are one cell."""
    expected = counts.sum() * law / law.sum()
    rare = expected < 10
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    return chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1)


R, BLOCKS = 200, 1000
RESTART = np.ones(R, dtype=bool)


def segment_test(noise="exponential", epsilon=EPS, **kwargs):
    return SegmentAboveThreshold(
        Streams(range(R)), "svt", epsilon=epsilon, uses=BLOCKS * T, noise=noise, **kwargs
    )


def above_test(**kwargs):
    kwargs = {"epsilon": EPS, "uses": BLOCKS * T, "runs": BLOCKS * T} | kwargs
    return AboveThreshold(Streams(range(R)), "svt", **kwargs)


SEQUENCE = ((1, 0), (1, 1), (1, 0), (1, 1), (1, 1))


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_segments_have_the_promised_law(noise):
    """Statistical: 200,000 transcripts, false alarm 1e-6; scales 5 % off are caught (asserted)."""
    mechanism, counts = segment_test(noise), np.zeros(len(TRANSCRIPTS))
    for _ in range(BLOCKS):
        expert, code = np.zeros(R, dtype=int), np.zeros(R, dtype=int)
        for t, losses in enumerate(SEQUENCE):
            loss = np.array(losses, dtype=float)[expert]
            fired = mechanism(loss, np.full(R, THETA), RESTART if t == 0 else ~RESTART)
            expert, code = expert ^ fired, 2 * code + fired
        counts += np.bincount(code, minlength=len(counts))
    law, scale, _ = LAWS[noise]
    assert p_value(counts, transcript_law(Law(law, scale, scale), SEQUENCE)) > 1e-6
    for threshold, query in ((1.05, 1.05), (1 / 1.05, 1 / 1.05), (1.1, 1), (1, 1.1)):
        wrong = Law(law, threshold * scale, query * scale)
        assert p_value(counts, transcript_law(wrong, SEQUENCE)) < 1e-6


def test_above_threshold_has_the_promised_law():
    """Statistical: 200,000 runs, false alarm 1e-6; scales 10 % off are caught (asserted)."""
    mechanism, counts, place = above_test(), np.zeros(5), np.zeros(R, dtype=int)
    for _ in range(BLOCKS * T):
        fired = mechanism(np.array([1.0, 2.0, 3.0, 4.0, 1e9])[place], np.full(R, THETA))
        counts += np.bincount(place[fired], minlength=5)
        place = np.where(fired, 0, place + 1)
    assert counts.sum() > 2e5
    for factor in (1, 1.1, 1 / 1.1):
        law = Law(laplace, 2 * factor / EPS, 4 * factor / EPS).firing_times((1, 2, 3, 4))
        assert (p_value(counts, law) > 1e-6) == (factor == 1)


def test_sensitivity_scales_the_noise():
    """Everything twice as large: the same firings, bit for bit; losses are clipped at the
    mechanism."""
    one, two = segment_test(), segment_test(high=2.0)
    small, large = above_test(), above_test(sensitivity=2.0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        x, theta = rng.random(R), rng.random(R) * 4
        assert (one(x, theta) == two(2 * x, 2 * theta)).all()
        assert (small(x, theta) == large(2 * x, 2 * theta)).all()
    segment = SegmentAboveThreshold(Streams(range(6)), "svt", epsilon=1.0, uses=1, low=-1.0)
    loss = np.array([0.3, 9.0, -9.0, np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(segment.query(loss), [0.3, 1, -1, -1, -1, -1])
    assert segment.sensitivity == 2.0


def test_no_noise_at_infinite_epsilon():
    """Without noise the same code follows the exact rule, strict for segments."""
    segment, above = segment_test(epsilon=inf), above_test(epsilon=inf, runs=1)
    rng, total, halted = np.random.default_rng(0), np.zeros(R), np.zeros(R, dtype=bool)
    for _ in range(20):
        x = rng.integers(0, 2, R).astype(float)
        total += x
        fired = segment(x, np.full(R, 3.0))
        assert (fired == (total > 3)).all()
        total[fired] = 0
        fired = above(total, np.full(R, 3.0))
        assert (fired == ((total >= 3) & ~halted)).all()
        halted |= fired
        assert (above.halted == halted).all()
    assert segment.spend.pure == above.spend.pure == inf


def test_budgets():
    """Segments cost the larger epsilon in all, runs one each; calls beyond `uses` raise."""
    assert segment_test().spend.pure == EPS
    for own, of_queries in ((EPS, 2 * EPS), (2 * EPS, EPS), (2 * EPS, None)):
        assert segment_test(epsilon=own, query_epsilon=of_queries).spend.pure == 2 * EPS
    assert above_test(runs=3).spend.pure == pytest.approx(3 * EPS)
    assert Ledger((segment_test().spend,)).epsilon(1e-9) <= EPS * (1 + 1e-6)
    for mechanism in (segment_test(), above_test()):
        mechanism.uses = 2
        mechanism(np.zeros(R), np.zeros(R))
        mechanism(np.zeros(R), np.zeros(R))
        refused("call 3 exceeds uses=2", mechanism, np.zeros(R), np.zeros(R))
    fired = above_test(runs=3)
    total = sum(fired(np.full(R, 1e9), np.zeros(R)).astype(int) for _ in range(9))
    assert (total == 3).all()
    assert fired.halted.all()


def test_bad_input():
    for make, message in (
        (lambda: segment_test(epsilon=0.0), "epsilon=0.0"),
        (lambda: segment_test(query_epsilon=-1.0), "epsilon=-1.0"),
        (lambda: segment_test(low=1.0), "high - low"),
        (lambda: segment_test("exponental"), "did you mean exponential"),
        (lambda: above_test(runs=0), "runs=0"),
        (lambda: above_test(sensitivity=0.0), "sensitivity=0.0"),
        (lambda: above_test()(np.zeros(3), np.zeros(3)), r"shape \(3,\)"),
    ):
        refused(message, make)
