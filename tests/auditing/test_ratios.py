"""Ratios of likelihoods, of numbers and of choices."""

from itertools import permutations

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import laplace, multivariate_normal

from dpbandit.agents import FLIPHAT, BinaryTreeExperts, ShrinkingDartboard, SparseVectorExperts
from dpbandit.auditing.audit import users_of
from dpbandit.auditing.bounds import first_above
from dpbandit.auditing.users import twin
from dpbandit.auditing.views import (
    Columns,
    LaplaceRatio,
    columns_of,
    gumbel_ratio,
    matched_filter,
    outcomes,
)
from dpbandit.auditing.witness import Bits, Draws, Segments, log_chosen
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.choices import EpochSelection
from dpbandit.privacy.sparse_vector import RedrawBit, SegmentAboveThreshold
from dpbandit.privacy.vertices import NoisyVertex
from dpbandit.specs.convex import ExpertsSpec
from dpbandit.specs.protocols import ContextualSpec
from tests.auditing.mechanisms import (
    GDP,
    gaussian_tree,
    laplace_scores,
    shown,
    tree_scores,
    vertices,
)
from tests.broken.audited import QuietPeeling
from tests.broken.leaks import HalfTheNoise


def seen(values):
    return Columns(values, ("releases",) * values.shape[1], np.full(values.shape[1], False))


def test_matched_filter_is_the_ratio_of_normal_densities():
    """Oracle: scipy's densities, up to a constant."""
    rng = np.random.default_rng(1)
    root, gap, v = rng.normal(size=(3, 3)), np.array([1.0, -2.0, 0.5]), rng.normal(size=(50, 3))
    covariance = root @ root.T
    ratio = [multivariate_normal(mean, covariance).logpdf(v) for mean in (np.zeros(3), gap)]
    score = matched_filter(gap, covariance)(seen(v))
    np.testing.assert_allclose(np.ptp(ratio[1] - ratio[0] - score), 0, atol=1e-9)
    with pytest.raises(InputError, match="covariance"):
        matched_filter(gap, np.eye(2))


def test_matched_filter_of_a_tree_has_its_whole_mu():
    """Golden: the worlds' mean scores are exactly mu standard deviations apart, for the leaf that
    is in every level of the tree. Statistical: 20,000 runs, standard deviation to 3 % (6 sigma)."""
    score = tree_scores()["matched filter"]
    one, two = (score(gaussian_tree()(world, [(0, 0)] * 20_000)) for world in (0, 1))
    np.testing.assert_allclose(two - one, (two - one)[0])  # twins share their noise
    assert (two - one)[0] / one.std() == pytest.approx(GDP.mu, rel=0.03)


def test_laplace_ratio():
    """Oracle: scipy's densities."""
    rng = np.random.default_rng(2)
    v, first, second = rng.normal(size=(50, 2)), np.array([0.0, 1.0]), np.array([2.0, 0.5])
    ratio = [laplace.logpdf(v, loc=mean, scale=1.5).sum(axis=1) for mean in (first, second)]
    score = LaplaceRatio(first, second, 1.5)(seen(v))
    np.testing.assert_allclose(score, ratio[1] - ratio[0], atol=1e-8)


def test_equal_ratios_are_equal_numbers():
    """Property: beyond both means the ratio is constant, to the last bit. Were it not, digits that
    differ between 1 + x and x would tell the worlds apart."""
    far = np.random.default_rng(3).exponential(size=(10_000, 1))
    assert np.unique(laplace_scores()["ratio"](seen(1 + far))).tolist() == [1.0]
    assert np.unique(laplace_scores()["ratio"](seen(-far))).tolist() == [-1.0]
    sample = vertices()
    both = np.concatenate([shown(sample(world, [(1, 2)] * 2000)) for world in (0, 1)])
    exact = np.unique(both)
    assert len(exact) < 500
    assert np.diff(exact).min() > 1e-8


def test_outcomes_add_up_over_columns():
    fair, coin = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    never = np.array([1.0, 0.0])
    score = outcomes((fair, coin), (fair, coin), (never, fair), (fair, never))
    found = score(seen(np.array([[0, 1, 0, 0], [1, 1, 1, 1]], dtype=float)))
    expected = [np.log(0.5 * 1.5 * 0.5 * 2), np.log(1.5**2) + 700 - 700]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("kind", [NoisyVertex, HalfTheNoise])
def test_gumbel_ratios_are_ratios(kind):
    """Statistical: a log-likelihood ratio L obeys E_A[e^L] = 1, so does the honest mechanism's with
    all its adaptive steps; 40,000 runs, 5 standard errors (false alarm 6e-7). With half the noise
    the claimed ratio is another function, and its mean is off (asserted)."""
    L = shown(vertices(kind)(0, [(3, 4)] * 40_000))
    weight = np.exp(L)
    off = abs(weight.mean() - 1) / (weight.std() / np.sqrt(len(L)))
    assert (off < 5) == (kind is NoisyVertex)


def test_gumbel_ratio_by_hand():
    """Golden: two candidates, scale 1: P(0) = 1/2 in A, e / (1 + e) in B."""
    found = gumbel_ratio(np.array([0, 1]), np.zeros((2, 2)), np.tile([1.0, 0.0], (2, 1)), 1.0)
    expected = [np.log(2 * np.e / (1 + np.e)), np.log(2 / (1 + np.e))]
    np.testing.assert_allclose(found, expected, atol=1e-9)


TWINS = [*range(30)] * 2
"""Seeds of 30 runs of the first world, then of the second."""
NOBODY = np.zeros(len(TWINS), dtype=bool)


def in_worlds(first, second):
    """One user's numbers in all runs of both worlds."""
    return np.repeat([first, second], len(TWINS) // 2, axis=0).astype(float)


@pytest.mark.parametrize("scale", [0.5, 5.0])
def test_chosen_sets_have_their_probability(scale):
    """Oracle: all orders in which three of seven may come first."""
    scores = scale * np.random.default_rng(1).standard_normal((4, 7))
    chosen = np.zeros((4, 7), dtype=bool)
    chosen[:, [1, 4, 5]] = True
    wanted = np.zeros(4)
    for order in permutations([1, 4, 5]):
        left, weights = np.exp(scores).sum(axis=1), np.exp(scores)
        p = np.ones(4)
        for i in order:
            p, left = p * weights[:, i] / left, left - weights[:, i]
        wanted += p
    np.testing.assert_allclose(log_chosen(scores, chosen), np.log(wanted), atol=1e-6)
    np.testing.assert_array_equal(log_chosen(scores, np.full((4, 7), True)), 0.0)


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_segments_have_the_law_of_their_first_firing(noise):
    """Oracle: `exact.first_above`, for one segment of eight tests; what fires once it is over does
    not know her. She is second, so that the first test says nothing."""
    mechanism = SegmentAboveThreshold(Streams(TWINS), "svt", epsilon=0.8, uses=12, noise=noise)
    ear, threshold = Segments(mechanism, len(TWINS)), np.full(len(TWINS), 3.0)
    fired = np.full(len(TWINS), 12)
    for t in range(12):
        loss = in_worlds(1, 0) if t == 1 else np.ones(len(TWINS))
        release = mechanism(loss, threshold)
        ear.hear((loss, threshold), release, hers=t == 1)
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
    ear, hers, rest = (
        Draws(mechanism, 60),
        in_worlds([1, 0, 0], [0, 1, 1]),
        in_worlds([0, 0, 1], [0, 0, 1]),
    )
    S, wanted = 0.0, np.zeros(len(TWINS))
    for losses, ends in ((hers, NOBODY), (rest, NOBODY), (rest, ~NOBODY), (rest, NOBODY)):
        datum = (losses, ~ends, np.full(len(TWINS), 0.5), ends)
        chosen, S = mechanism(*datum), S + losses
        ear.hear(datum, chosen, hers=losses is hers)
        own = log_softmax(-0.35 * np.maximum(S, 0.5), axis=1)[np.arange(60), chosen]
        other = log_softmax(-0.35 * np.maximum(twin(S), 0.5), axis=1)[np.arange(60), chosen]
        wanted = wanted + np.where(ends, 0.0, other - own)
        S = np.where(ends[:, None], 0.0, S)
    np.testing.assert_allclose(ear.ratios()[:, 0], wanted, atol=1e-12)
    bit = RedrawBit(Streams(TWINS), "bits", rate=0.3, probability=0.2, uses=2)
    ear, loss, active = Bits(bit), in_worlds(1, 0), np.arange(60) % 5 > 0
    redraw = bit(loss, active)
    ear.hear((loss, active), redraw, hers=True)
    ear.hear((loss, active), bit(loss, active), hers=False)
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
    """Statistical: a log-likelihood ratio L obeys E_A[e^L] = 1, so does the sum over mechanisms and
    rounds; 2,000 runs, 5 standard errors (false alarm 6e-7). With half the noise the claimed
    ratio is another function, and its mean is off (asserted)."""
    pair = next(p for p in users_of(spec).handful(np.random.default_rng(0)) if among in p.note)
    seeds = [(1, 2, run) for run in range(2000)]
    one, _ = columns_of(config, spec, pair, seeds, "released", [None] * 4)
    weight = np.exp(one.values[:, np.array(one.family) == "ratios"].sum(axis=1))
    off = abs(weight.mean() - 1) / (weight.std() / np.sqrt(len(weight)))
    assert weight.std() > 0.1
    assert (off < 5) == right
