"""Exact audits: laws of small releases, ratios of likelihoods, and claims against laws."""

from itertools import permutations, product
from math import exp, inf, log

import numpy as np
import pytest
from scipy.special import log_softmax, ndtr
from scipy.stats import expon, laplace as laplace_law, multivariate_normal

from dpbandit.agents import FLIPHAT, BinaryTreeExperts, ShrinkingDartboard, SparseVectorExperts
from dpbandit.auditing.audit import users_of
from dpbandit.auditing.bounds import Claim, exact_delta, exact_epsilon
from dpbandit.auditing.exact import (
    Bits,
    Draws,
    LaplaceRatio,
    Segments,
    choice,
    exact_audit,
    first_above,
    gumbel_ratio,
    matched_filter,
    outcomes,
    randomised_response,
)
from dpbandit.auditing.peelings import log_chosen
from dpbandit.auditing.users import twin
from dpbandit.auditing.views import Columns, columns_of
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.choices import EpochSelection
from dpbandit.privacy.curves import delta_of
from dpbandit.privacy.sparse_vector import RedrawBit, SegmentAboveThreshold
from dpbandit.specs.convex import ExpertsSpec
from dpbandit.specs.protocols import ContextualSpec
from tests.auditing.mechanisms import (
    PURE,
    SCALES,
    AllForTheQueries,
    NoThresholdNoise,
    laplace_scores,
    shown,
    svt_laws,
    vertices,
)
from tests.broken.audited import QuietPeeling
from tests.each import each
from tests.privacy.choices.test_selection import noisy_max_law
from tests.privacy.choices.test_sparse_vector import Law


def test_randomised_response_by_hand():
    """Golden, truth with probability 3/4: epsilon log 3. One attack is worth making: FPR 1/4, TPR
    3/4. delta(x) = 3/4 - e^x / 4. The corner (1/4, 3/4) is on the GDP curve of mu = 1.349."""
    p, q = (randomised_response(truth, 2, epsilon=log(3)) for truth in (0, 1))
    np.testing.assert_allclose([p, q], [[0.75, 0.25], [0.25, 0.75]])
    found = exact_audit(p, q, Claim(log(3), 0.0))
    assert found.epsilon == pytest.approx(log(3))
    assert found.delta == pytest.approx(0, abs=1e-15)
    np.testing.assert_allclose(found.curve, [(0, 0), (0.25, 0.75), (1, 1)])
    assert not found.flagged
    less = exact_audit(p, q, Claim(0.5, 0.0))
    assert less.flagged
    assert less.delta == pytest.approx(0.75 - exp(0.5) / 4)
    assert not exact_audit(p, q, Claim(0.5, 0.75 - exp(0.5) / 4 + 1e-9)).flagged
    for mu, flagged in ((1.34, True), (1.35, False)):
        assert exact_audit(p, q, Claim(9.0, delta_of(mu, 9.0), mu)).flagged == flagged


def test_epsilon_at_a_delta():
    """Golden: delta(x) of a truth told with probability .8 is .8 - e^x .2; what only one world does
    has to be covered by delta."""
    p, q = np.array([0.8, 0.2]), np.array([0.2, 0.8])
    assert exact_epsilon(p, q) == pytest.approx(log(4))
    assert exact_delta(p, q, 0.5) == pytest.approx(0.8 - exp(0.5) * 0.2)
    assert exact_delta(p, q, inf) == 0.0
    assert exact_epsilon(p, q, 0.8 - exp(0.5) * 0.2) == pytest.approx(0.5)
    never = np.array([1.0, 0.0]), np.array([0.9, 0.1])
    assert exact_epsilon(*never) == exact_epsilon(*never, 0.05) == inf
    assert exact_epsilon(*never, 0.2) < 1e-8
    assert exact_delta(*never, inf) == pytest.approx(0.1)
    for pair in (never, never[::-1]):
        assert exact_audit(*pair, Claim(5.0, 0.05)).flagged
        assert not exact_audit(*pair, Claim(0.2, 0.1)).flagged


SCORES = [(0.0, 1.0, 0.5, -3.0), (2.0, 2.0), (0.0, -500.0, 0.5)]
"""In units of the scale; at its own pieces' ends, where the oracle is exact."""


@each("scores", SCORES)
@each("scale", [0.3, 2.0])
def test_noisy_maxima(scores, scale):
    """Oracle: independent integration with another number of nodes; sums of 1; closed forms of two
    candidates: logistic, (1/2 + z/4) e^-z, and a normal of twice the variance."""
    u = np.array(scores) * scale
    laplace = choice(u, scale, noise="laplace")
    np.testing.assert_allclose(laplace, noisy_max_law(scores, 1.0), atol=1e-12)
    gap, pair = abs(u[0] - u[1]) / scale, np.sort(u[:2])
    for noise, least in (
        ("gumbel", 1 / (1 + np.exp(gap))),
        ("laplace", (1 / 2 + gap / 4) * np.exp(-gap)),
        ("gaussian", ndtr(-gap / np.sqrt(2))),
    ):
        assert choice(u, scale, noise=noise).sum() == pytest.approx(1, abs=1e-12)
        assert choice(pair, scale, noise=noise)[0] == pytest.approx(least)
    assert choice(np.array([0.0, 2.0, 2.0]), 0.0).tolist() == [0.0, 1.0, 0.0]


@each("noise", ["gumbel", "laplace"])
def test_selections_keep_their_claim_and_half_the_noise_does_not(noise):
    """Exact, three candidates, all scores on a grid and all moves by -1, 0, 1: scale 2 is epsilon 1
    (up to .98 attained here), scale 1 is not, nor is Gaussian noise (which has no pure epsilon)."""
    starts = [np.array([0.0, *rest]) for rest in product((0.0, 2.0, 6.0), repeat=2)]
    moves = list(product((-1.0, 0.0, 1.0), repeat=3))
    for scale, low, high in ((2.0, 0.95, 1), (1.0, 1.8, 2)):
        laws = [[choice(u + v, scale, noise=noise) for v in ((0, 0, 0), *moves)] for u in starts]
        pairs = [(first, other) for first, *others in laws for other in others]
        assert any(exact_audit(*pair, PURE).flagged for pair in pairs) == (scale == 1.0)
        assert low < max(exact_epsilon(*pair) for pair in pairs) <= high


@each("queries", [(1.0, 2.0, 3.0, 4.0), (0.0, 3.0, 1.0)])
def test_firing_laws(queries):
    """Oracle: the integration of the tests of the mechanisms themselves."""
    for name, law, rho, query in (("laplace", laplace_law, 2.0, 4.0), ("exponential", expon, 1, 1)):
        scales = {"threshold_scale": rho, "query_scale": query, "noise": name}
        found = first_above(np.array(queries), 3.0, **scales)
        np.testing.assert_allclose(found, Law(law, rho, query).firing_times(queries), atol=1e-10)
    noiseless = first_above(np.array(queries), 3.0, threshold_scale=0.0, query_scale=4.0)
    expected = Law(laplace_law, 1.0, 4.0, "no threshold noise").firing_times(queries)
    np.testing.assert_allclose(noiseless, expected, atol=1e-12)


@pytest.mark.parametrize("kind", [NoThresholdNoise, AllForTheQueries])
def test_without_threshold_noise_every_query_costs(kind):
    """Exact: no claim holds for any number of queries. Golden: at threshold 1 a test that does not
    fire is log((1 - e^(-1/b) / 2) / (1/2)) more likely where the query is 0 than where it is 1; the
    last test takes one away."""
    _, b = SCALES[kind]
    each = log((1 - exp(-1 / b) / 2) * 2)
    epsilons = [exact_epsilon(*svt_laws(kind, queries=n, threshold=1.0)) for n in (4, 8, 12, 24)]
    quiet = [(n - 2) * each for n in (4, 8, 12, 24)]
    assert (np.array(epsilons) >= quiet).all()
    np.testing.assert_allclose(np.diff(epsilons), np.diff(quiet))
    assert exact_audit(*svt_laws(kind, queries=12, threshold=1.0), PURE).flagged


def test_bad_input():
    fair = np.array([0.5, 0.5])
    for bad in (np.array([0.5, 0.4]), np.array([1.5, -0.5]), np.ones(1)):
        with pytest.raises(InputError, match="Expected q="):
            exact_audit(fair, bad, PURE)
    with pytest.raises(InputError, match="truth"):
        randomised_response(2, 2, epsilon=1.0)
    with pytest.raises(InputError, match="noise"):
        choice(fair, 1.0, noise="cauchy")
    with pytest.raises(InputError, match="query_scale"):
        first_above(fair, 0.0, threshold_scale=1.0, query_scale=0.0)


def seen(values):
    return Columns(values, ("releases",) * values.shape[1], np.full(values.shape[1], False))


def test_ratios_are_those_of_densities():
    """Oracle: scipy's; of normals up to a constant. Golden, by hand, of two candidates at scale 1:
    P(0) = 1/2 in A, e / (1 + e) in B; and outcomes add up over columns."""
    rng = np.random.default_rng(1)
    root, gap, v = rng.normal(size=(3, 3)), np.array([1.0, -2.0, 0.5]), rng.normal(size=(50, 3))
    covariance = root @ root.T
    ratio = [multivariate_normal(mean, covariance).logpdf(v) for mean in (np.zeros(3), gap)]
    score = matched_filter(gap, covariance)(seen(v))
    np.testing.assert_allclose(np.ptp(ratio[1] - ratio[0] - score), 0, atol=1e-9)
    with pytest.raises(InputError, match="covariance"):
        matched_filter(gap, np.eye(2))
    v, first, second = rng.normal(size=(50, 2)), np.array([0.0, 1.0]), np.array([2.0, 0.5])
    ratio = [laplace_law.logpdf(v, loc=m, scale=1.5).sum(axis=1) for m in (first, second)]
    score = LaplaceRatio(first, second, 1.5)(seen(v))
    np.testing.assert_allclose(score, ratio[1] - ratio[0], atol=1e-8)
    found = gumbel_ratio(np.array([0, 1]), np.zeros((2, 2)), np.tile([1.0, 0.0], (2, 1)), 1.0)
    expected = [np.log(2 * np.e / (1 + np.e)), np.log(2 / (1 + np.e))]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    fair, coin, never = np.array([0.5, 0.5]), np.array([0.25, 0.75]), np.array([1.0, 0.0])
    score = outcomes((fair, coin), (fair, coin), (never, fair), (fair, never))
    found = score(seen(np.array([[0, 1, 0, 0], [1, 1, 1, 1]], dtype=float)))
    expected = [np.log(0.5 * 1.5 * 0.5 * 2), np.log(1.5**2) + 700 - 700]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_equal_ratios_are_equal_numbers():
    """Property: beyond both means the ratio is constant, to the last bit, or digits that differ
    between 1 + x and x would tell the worlds apart."""
    far = np.random.default_rng(3).exponential(size=(10_000, 1))
    assert np.unique(laplace_scores()["ratio"](seen(1 + far))).tolist() == [1.0]
    assert np.unique(laplace_scores()["ratio"](seen(-far))).tolist() == [-1.0]
    sample = vertices()
    both = np.concatenate([shown(sample(world, [(1, 2)] * 2000)) for world in (0, 1)])
    exact = np.unique(both)
    assert len(exact) < 500
    assert np.diff(exact).min() > 1e-8


TWINS = [*range(30)] * 2
"""Seeds of 30 runs of the first world, then of the second."""
NOBODY = np.zeros(len(TWINS), dtype=bool)


def in_worlds(first, second):
    """One user's numbers in all runs of both worlds."""
    return np.repeat([first, second], len(TWINS) // 2, axis=0).astype(float)


@each("scale", [0.5, 5.0])
def test_chosen_sets_have_their_probability(scale):
    """Oracle: all orders in which three of seven may come first."""
    scores = scale * np.random.default_rng(1).standard_normal((4, 7))
    chosen = np.isin(np.arange(7), [1, 4, 5]) & np.full((4, 1), True)
    wanted, weights = np.zeros(4), np.exp(scores)
    for order in permutations([1, 4, 5]):
        left, p = weights.sum(axis=1), np.ones(4)
        for i in order:
            p, left = p * weights[:, i] / left, left - weights[:, i]
        wanted += p
    np.testing.assert_allclose(log_chosen(scores, chosen), np.log(wanted), atol=1e-6)
    np.testing.assert_array_equal(log_chosen(scores, np.full((4, 7), True)), 0.0)


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_segments_have_the_law_of_their_first_firing(noise):
    """Oracle: `first_above`, for one segment of eight tests; what fires once it is over does not
    know her."""
    mechanism = SegmentAboveThreshold(Streams(TWINS), "svt", epsilon=0.8, uses=12, noise=noise)
    ear, threshold = Segments(mechanism, len(TWINS)), np.full(len(TWINS), 3.0)
    fired = np.full(len(TWINS), 12)
    for t in range(12):
        loss = in_worlds(1, 0) if t == 1 else np.ones(len(TWINS))
        release = mechanism(loss, threshold)
        ear.observe((loss, threshold), release, differs=t == 1)
        fired = np.where(release, np.minimum(fired, t), fired)
    scales = {"threshold_scale": 1 / 0.8, "query_scale": 1 / 0.8, "noise": noise}
    sums = np.cumsum(np.ones((2, 12)), axis=1) - [[0.0], [1.0]] * (np.arange(12) >= 1)
    laws = [first_above(queries, 3.0, **scales) for queries in sums]
    ratio = np.log(laws[1] / laws[0])[fired] * in_worlds(1, -1)
    assert len(np.unique(fired)) > 4
    met = fired > 0  # her segment is the first
    np.testing.assert_allclose(ear.ratios()[met, 0], ratio[met], atol=2e-3)


def test_draws_and_bits_have_the_laws_of_their_losses():
    """Golden, by hand: softmax of -eta max(S, floor) / 2 over three experts, in two epochs, the
    second of which does not know her; and the keep probability of the one bit she decides."""
    mechanism = EpochSelection(3, Streams(TWINS), "em", epsilon=0.7, draws=2, uses=4)
    ear = Draws(mechanism, 60)
    differing, rest = in_worlds([1, 0, 0], [0, 1, 1]), in_worlds([0, 0, 1], [0, 0, 1])
    S, wanted = 0.0, np.zeros(len(TWINS))
    for losses, ends in ((differing, NOBODY), (rest, NOBODY), (rest, ~NOBODY), (rest, NOBODY)):
        datum = (losses, ~ends, np.full(len(TWINS), 0.5), ends)
        chosen, S = mechanism(*datum), S + losses
        ear.observe(datum, chosen, differs=losses is differing)
        own = log_softmax(-0.35 * np.maximum(S, 0.5), axis=1)[np.arange(60), chosen]
        other = log_softmax(-0.35 * np.maximum(twin(S), 0.5), axis=1)[np.arange(60), chosen]
        wanted = wanted + np.where(ends, 0.0, other - own)
        S = np.where(ends[:, None], 0.0, S)
    np.testing.assert_allclose(ear.ratios()[:, 0], wanted, atol=1e-12)
    bit = RedrawBit(Streams(TWINS), "bits", rate=0.3, probability=0.2, uses=2)
    ear, loss, active = Bits(bit), in_worlds(1, 0), np.arange(60) % 5 > 0
    redraw = bit(loss, active)
    ear.observe((loss, active), redraw, differs=True)
    ear.observe((loss, active), bit(loss, active), differs=False)
    keep = 0.8 * np.exp(-0.3 * np.array([twin(loss), loss]))
    wanted = np.where(redraw, np.log((1 - keep[0]) / (1 - keep[1])), np.log(keep[0] / keep[1]))
    np.testing.assert_allclose(ear.ratios()[:, 0], np.where(active, wanted, 0))


BANDIT = ContextualSpec(n_actions=2, dim=3, horizon=8, reward_low=-1.0)
ADVICE = ExpertsSpec(n_actions=3, horizon=16)
HATS = {"sparsity": 1, "epsilon": 4.0, "delta": 1e-4}


@pytest.mark.parametrize(
    ("config", "spec", "among", "right"),
    [
        (FLIPHAT(**HATS), BANDIT, "who agree", True),
        (QuietPeeling(**HATS), BANDIT, "who agree", False),
        (ShrinkingDartboard(epsilon=4.0), ADVICE, "where all lose", True),
        (SparseVectorExperts(epsilon=5.0, beta=0.5), ADVICE, "where all lose", True),
        (BinaryTreeExperts(epsilon=8.0, size=1, threshold=1.0), ADVICE, "where all lose", True),
    ],
    ids=["FLIPHAT", "FLIPHAT with half its noise", "dartboard", "sparse vector", "sets"],
)
def test_ratios_of_whole_transcripts_are_ratios(config, spec, among, right):
    """Statistical: E_A[e^L] = 1 of the sum over mechanisms and rounds; 5 standard errors (false
    alarm 6e-7). With half the noise the mean is off (asserted)."""
    pair = next(
        p for p in users_of(spec).extreme_pairs(np.random.default_rng(0)) if among in p.note
    )
    seeds = [(1, 2, run) for run in range(2000)]
    one, _ = columns_of(config, spec, pair, seeds, "released", [None] * 4)
    weight = np.exp(one.values[:, np.array(one.family) == "ratios"].sum(axis=1))
    off = abs(weight.mean() - 1) / (weight.std() / np.sqrt(len(weight)))
    assert weight.std() > 0.1
    assert (off < 5) == right
