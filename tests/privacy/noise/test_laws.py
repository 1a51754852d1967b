"""Noise laws: the size and the direction promised, and what other programs print."""

from itertools import product
from math import inf, log, sqrt

import numpy as np
import pytest
from scipy import stats
from scipy.special import beta
from scipy.stats import chi2, kstest

from dpbandit.base import Streams, norms
from dpbandit.domains import LpBall
from dpbandit.losses import LinearRegression
from dpbandit.privacy import Gaussian, Gumbel, KNorm, Laplace, Ledger, SecondMoments
from dpbandit.privacy.generalised import (
    GeneralisedGaussian,
    Printed,
    PrintedGaussian,
    RecursiveLossGradients,
    certified_tree_sum,
    printed_tree_sum,
)
from dpbandit.privacy.noise import OneSidedExponential, Wishart
from tests.each import each, refused

LAWS = [kind(1.7) for kind in (Laplace, KNorm, Gaussian, OneSidedExponential, Gumbel)]


def sample(law, shape, count, seed=5):
    """`count` independent blocks, (count, *shape): 100 replicas, called count / 100 times."""
    draw = law.sampler(Streams([(seed, i) for i in range(100)]), "noise", shape)
    return np.concatenate([draw() for _ in range(count // 100)])


def first(x):
    return x[:, 0]


def length(x):
    return norms(x)[:, 0]


def whole(x):
    return length(x.reshape(len(x), -1))


def square(r):
    return lambda x: norms(x.reshape(len(x), -1), r)[:, 0] ** 2


L_35, L_2, L_3, L_50 = (GeneralisedGaussian(2.5, r) for r in (3.5, 2, 3, 50))
NORMAL, ALONG = stats.norm(scale=2.5), np.array([0.6, 0, 0, 0.8, 0])
SIZES = {
    "laplace": (Laplace(2.5), (2,), 100_000, first, stats.laplace(scale=2.5)),
    "k-norm, 1": (KNorm(2.5), (1,), 100_000, first, stats.laplace(scale=2.5)),
    "k-norm, 5": (KNorm(2.5), (5,), 40_000, length, stats.gamma(5, scale=2.5)),
    "k-norm, 1000": (KNorm(2.5), (1000,), 2_000, length, stats.gamma(1000, scale=2.5)),
    "k-norm, 3 x 2": (KNorm(2.5), (3, 2), 20_000, whole, stats.gamma(6, scale=2.5)),
    "gaussian": (Gaussian(2.5), (2,), 100_000, first, NORMAL),
    "l_3.5 in 5": (L_35, (5,), 100_000, square(3.5), stats.gamma(2.5, scale=2 * 2.5**2)),
    "l_3 in 3 x 2": (L_3, (3, 2), 20_000, square(3), stats.gamma(3, scale=2 * 2.5**2)),
    "l_2 in 5": (L_2, (5,), 100_000, lambda x: x @ ALONG, NORMAL),
    "l_3 in 1": (L_3, (1,), 100_000, first, NORMAL),
    "l_50 in 1": (L_50, (1,), 100_000, first, NORMAL),
    "one-sided": (OneSidedExponential(2.5), (2,), 100_000, first, stats.expon(scale=2.5)),
    "gumbel": (Gumbel(2.5), (2,), 100_000, first, stats.gumbel_r(scale=2.5)),
}


@each("case", SIZES.values(), ids=SIZES.keys())
def test_size(case):
    """Statistical: KS against the exact law of one number of a block, false alarm 1e-6 each. A
    scale 5 % off either way is caught (asserted). K-norm in one dimension is Laplace, l_2 is
    isotropic normal, one dimension of any l_r too; the norm is that of the whole block."""
    law, shape, count, statistic, expected = case
    x = statistic(sample(law, shape, count))
    for factor in (1, 1.05, 1 / 1.05):
        p = stats.kstest(x * factor, expected.cdf, method="asymp").pvalue
        assert (p > 1e-6) == (factor == 1)


@pytest.mark.parametrize("k", [2, 5, 40])
def test_k_norm_direction_is_uniform_and_knows_nothing_of_the_radius(k):
    """Statistical: (1 + cos) / 2 ~ Beta((k-1)/2, (k-1)/2) along any line, also among the longest
    half of the draws. False alarm 6e-6; a direction drawn from the cube is caught at k = 2
    (asserted)."""
    x = sample(KNorm(1.0), (k,), 40_000)
    line = np.linspace(-1, 2, k)
    law = stats.beta((k - 1) / 2, (k - 1) / 2).cdf
    cosine = x @ line / length(x) / np.linalg.norm(line)
    for some in (cosine, cosine[length(x) > np.median(length(x))]):
        assert stats.kstest((1 + some) / 2, law, method="asymp").pvalue > 1e-6
    if k == 2:
        cube = np.random.default_rng(1).uniform(-1, 1, (40_000, k))
        assert stats.kstest((1 + cube[:, 0] / length(cube)) / 2, law, method="asymp").pvalue < 1e-6


def test_variance():
    """Golden: that of the laws which the tests above show; of K-norms E r^2 / k, r ~ Gamma(k); of a
    generalised Gaussian E r^2 E b^2."""
    for law, shape, _, statistic, expected in SIZES.values():
        if statistic is first:
            assert law.variance(*shape) == pytest.approx(expected.var(), rel=1e-9)
    assert KNorm(0.6).variance(4) == pytest.approx(5 * 0.6**2)
    for r, d in ((3, 4), (9, 6)):
        square = beta(3 / r, (d - 1) / r) / beta(1 / r, (d - 1) / r)
        assert GeneralisedGaussian(0.6, r).variance(d) == pytest.approx(d * 0.36 * square)


@each("law", [*LAWS, GeneralisedGaussian(1.7, 3.3)])
def test_the_law_depends_neither_on_the_scale_nor_on_blocks_ahead(law, monkeypatch):
    """Scale 0 is exactly no noise by the same code, and twice the scale is twice the noise."""
    name = next(iter(vars(law)))

    def values(scale, count=1):
        scaled = type(law)(**{**vars(law), name: scale})
        draw = scaled.sampler(Streams([1, 2]), "noise", (3, 4))
        return np.array([draw() for _ in range(count)])

    assert (values(0.0) == 0).all()
    np.testing.assert_allclose(values(2.0), 2 * values(1.0), rtol=1e-13)
    expected = values(1.7, 300)
    for ahead in (1, 50, 10_000):
        monkeypatch.setattr("dpbandit.base.random_streams._VALUES_AHEAD", ahead)
        np.testing.assert_array_equal(values(1.7, 300), expected)


def test_extreme_dimensions_are_finite_and_bad_input_is_named():
    for law, dim in product((KNorm(1e-3), GeneralisedGaussian(1.0, 50)), (1, 1000)):
        x = sample(law, (dim,), 20_000 if dim == 1 else 1000)
        assert np.isfinite(x).all()
        assert (x != 0).all()
    for make in (
        lambda: Laplace(-1.0), lambda: KNorm(inf), lambda: Gaussian(-0.1),
        lambda: Laplace(float("nan")), lambda: GeneralisedGaussian(1.0, 0.6),
        lambda: GeneralisedGaussian(-1.0, 2), lambda: OneSidedExponential(-1.0),
        lambda: Gumbel(-1.0),
    ):  # fmt: skip
        refused("Expected", make)


COUNT, D, DEGREES, C, B = 40_000, 3, 11.5, 2.0, 1.5
L2 = C**2 + B**2
# moment_weight = sqrt 2 B / C gives every packed coordinate of a Wishart matrix one size
STATISTIC = SecondMoments(
    n_actions=COUNT,
    dim=D,
    context_bound=C,
    reward_low=-B,
    reward_high=B,
    moment_weight=sqrt(2) * B / C,
)


@pytest.fixture(scope="module")
def packed():
    """40,000 independent blocks of one draw in unit scale, (COUNT, D (D + 1) / 2 + D)."""
    return Wishart(DEGREES, STATISTIC).sampler(Streams([3]), "noise")()[0]


@pytest.fixture(scope="module")
def matrices(packed):
    """The same as matrices (COUNT, D, D) and moments (COUNT, D), in the units of the data."""
    gram, moment = STATISTIC.unpack(packed * STATISTIC.units)
    return gram, moment


def spread(x):
    """Mean and variance of a sample, each with its standard error."""
    centred = np.square(x - x.mean())
    return x.mean(), sqrt(centred.mean() / len(x)), centred.mean(), centred.std() / sqrt(len(x))


def test_wishart_laws_are_exact(matrices):
    """Statistical: Anderson's exact laws L^-2 u'u / u'A^-1 u ~ chi^2(k - D + 1) for every direction
    u, and L^-2 b'A^-1 b ~ chi^2(D), A the D x D part and b the moment column. False alarm 3e-6; 5 %
    of scale and one degree of freedom are caught (asserted)."""
    gram, b = matrices
    A = gram + DEGREES * L2 * np.eye(D)
    laws = []
    for u in (np.eye(D)[0], np.array([1.0, -2.0, 0.5])):
        quotient = u @ u / np.einsum("i,nij,j->n", u, np.linalg.inv(A), u)
        laws.append((quotient / L2, DEGREES - D + 1))
    laws.append((np.einsum("ni,nij,nj->n", b, np.linalg.inv(A), b) / L2, D))
    for sample, freedom in laws:
        assert kstest(sample, chi2(freedom).cdf, method="asymp").pvalue > 1e-6
        for factor in (1.05**2, 1.05**-2):
            assert kstest(sample * factor, chi2(freedom).cdf, method="asymp").pvalue < 1e-6
        for wrong in (freedom - 1, freedom + 1):
            assert kstest(sample, chi2(wrong).cdf, method="asymp").pvalue < 1e-6


def test_wishart_packed_layout(packed, matrices):
    """Oracle: the vector is (G_ii / C^2, sqrt 2 G_ij / C^2, w m_i / c_u), row by row of the upper
    triangle; every coordinate has variance 2 k L^4 / C^4 (5.3 errors)."""
    gram, moment = matrices
    at = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    for place, (i, j) in enumerate(at):
        scale = 1 if i == j else sqrt(2)
        np.testing.assert_allclose(packed[:, place], scale * gram[:, i, j] / C**2, rtol=1e-12)
    np.testing.assert_allclose(packed[:, 6:], moment * sqrt(2) / C**2, rtol=1e-12)
    for coordinate in packed.T:
        _, _, variance, error = spread(coordinate)
        assert abs(variance - 2 * DEGREES * L2**2 / C**4) < 5.3 * error


def test_wishart_coordinates_are_uncorrelated_across_and_inside_blocks(packed):
    """Statistical: distinct coordinates of a block, of neighbouring blocks, and of successive
    nodes, 6 errors for 198 pairs: false alarm 4e-7."""
    unit = packed / packed.std(axis=0)
    sampler = Wishart(DEGREES, STATISTIC).sampler(Streams([4]), "noise")
    first, second = sampler()[0], sampler()[0]
    inside = np.tril(unit.T @ unit / COUNT, -1)
    across = unit[::2].T @ unit[1::2] / (COUNT / 2) / sqrt(2)
    later = (first / first.std(axis=0)).T @ (second / second.std(axis=0)) / COUNT
    # products of two entries of one Wishart matrix have at most twice the independent variance
    assert np.abs(inside).max() < 6 * sqrt(2 / COUNT)
    assert np.abs(across).max() < 6 / sqrt(COUNT)
    assert np.abs(later).max() < 6 / sqrt(COUNT)


DRAWS = 20_000


def drawn(law, dim, seed=0):
    return law.sampler(Streams([seed]), "noise", (dim,)).take(DRAWS)[:, 0]


def r_norm(x, r):
    return (np.abs(x) ** r).sum(axis=-1) ** (1 / r)


def radius_p(x, r, sigma):
    """|b|_r^2 ~ Gamma(d/2, scale 2 sigma^2), Kolmogorov-Smirnov."""
    law = stats.gamma(x.shape[1] / 2, scale=2 * sigma**2)
    return stats.kstest(r_norm(x, r) ** 2, law.cdf, method="asymp")[1]


def test_the_radius_has_the_tail_of_lemma_3_1():
    """Han et al. (2022): |Z|^2 > E + 2 sigma^2 (sqrt(d x) + x) with probability e^-x at most, for
    |Z|^2 ~ Gamma(d/2, 2 sigma^2), whose tail is exact here. With the printed scale 2 sigma the
    lemma fails for every sigma < 1."""
    d, x = np.array([1, 2, 5, 20, 100, 1000])[:, None], np.array([0.01, 0.1, 0.5, 1, 3, 10, 30])
    for sigma in (0.5, 3.0):
        excess = 2 * sigma**2 * (np.sqrt(d * x) + x)
        right, printed = (stats.gamma(d / 2, scale=2 * s) for s in (sigma**2, sigma))
        assert (right.sf(right.mean() + excess) <= np.exp(-x)).all()
        assert (printed.sf(printed.mean() + excess) <= np.exp(-x)).all() == (sigma > 1)


def direction_p(x, r):
    """|b_1|^r / |b|_r^r ~ Beta(1/r, (d-1)/r) of the cone measure, Kolmogorov-Smirnov."""
    share = (np.abs(x[:, 0]) / r_norm(x, r)) ** r
    return stats.kstest(share, stats.beta(1 / r, (x.shape[1] - 1) / r).cdf, method="asymp")[1]


@each(("r", "dim"), [(0.609, 5), (1.3, 5), (3.0, 5), (3, 10), (2.4, 10), (8, 3)])
def test_only_the_printed_direction_has_another_law(r, dim):
    """Statistical: |b_1|^r / |b|_r^r ~ Beta(1/r, (d-1)/r), apart from the radius, with fair signs,
    false alarm 1e-6 each; the printed direction is rejected at 1e-6 (asserted), its radius is
    right."""
    right, wrong = (
        drawn(PrintedGaussian(1.7, r, direction), dim) for direction in ("corrected", "printed")
    )
    both = [right, drawn(GeneralisedGaussian(1.7, r), dim)] if r > 2 else [right]
    for x in both:
        radius = r_norm(x, r)
        assert direction_p(x, r) > 1e-6
        assert direction_p(x[radius > np.median(radius)], r) > 1e-6
    assert direction_p(wrong, r) < 1e-6 or dim != 5
    for x in (*both, wrong):
        assert radius_p(x, r, 1.7) > 1e-6
        assert radius_p(x, r, 1.6) < 1e-6
        for negative in (x[:, :3] < 0).sum(axis=0):  # signs are fair in all
            assert stats.binomtest(int(negative), DRAWS).pvalue > 1e-6


def loss_of(dim, p):
    return LinearRegression(LpBall(dim, p, 2.0), bound=1.25)


def statistic_of(loss):
    """Clipped to L + beta D = 8, S = 16, as in the authors' programs."""
    return RecursiveLossGradients(loss=loss, order=max(2.0, loss.order), gradient_clip=8.0)


def printed(loss, *, horizon=10_000, **words):
    """The printed tree at epsilon 1, delta 1 / T."""
    target = {"horizon": horizon, "epsilon": 1.0, "delta": 1 / horizon}
    how = {"q": loss.order, "printed": Printed(**words)}
    return printed_tree_sum(statistic_of(loss), Streams([0]), **target, **how)


def node_noise(loss, **words):
    """Noises of its nodes, (20,000, d)."""
    return printed(loss, **words)._noise.source.take(DRAWS)[:, 0]


SIGMA = 15 * sqrt(8 * 2 * log(15e4)) * 8
"""m sqrt(8 kappa ln(m / delta)) (beta D + L) with m = 15, kappa = 2 at n = 10^4, q = 3."""


def test_printed_sizes():
    """Golden, by hand and statistical (false alarm 1e-6): sigma_+ = 1657 is printed as if it were
    its square; kappa is that of the norm used, (r - 1) d^(2/r - 2/q), r = ln 10; for p = infinity
    it cancels, N(0, m^2 8 ln(m / delta) 8^2)."""
    loss, r = loss_of(10, 1.5), log(10)
    kappa = (r - 1) * 10 ** (2 / r - 2 / 3)
    assert round(SIGMA) == 1657
    sigma = SIGMA * sqrt(kappa / 2)
    b = node_noise(loss)
    assert radius_p(b, r, sigma) > 1e-6
    assert radius_p(b, r, 1.05 * sigma) < 1e-6
    assert direction_p(b, r) > 1e-6
    b = node_noise(loss, radius="printed")
    assert radius_p(b, r, sqrt(sigma)) > 1e-6
    b = node_noise(loss, norm_index="printed", radius="printed", direction="printed")
    assert radius_p(b, log(10) - 1, sqrt(SIGMA)) > 1e-6
    assert direction_p(b, log(10) - 1) < 1e-6
    for word, size in (("corrected", SIGMA / sqrt(2)), ("printed", sqrt(SIGMA / sqrt(2)))):
        b = node_noise(loss_of(10, inf), radius=word, norm_index=word)
        assert stats.kstest(b[:, 3] / size, stats.norm.cdf, method="asymp")[1] > 1e-6
        assert radius_p(b, 2, size) > 1e-6
        assert radius_p(b, 2, 1.05 * size) < 1e-6


def test_what_has_no_proof_says_infinity():
    """A norm index below 2 and the printed direction; ln 20 - 1 < 2, ln 50 - 1 = 2.9 is one."""
    for loss, words, proved in (
        (loss_of(20, 1.5), {"norm_index": "printed"}, False),
        (loss_of(50, 1.2), {"norm_index": "printed"}, True),
        (loss_of(50, 1.2), {"direction": "printed"}, False),
        (loss_of(20, inf), {"direction": "printed"}, False),
        (loss_of(20, 1.5), {}, True),
    ):
        sums = printed(loss, **words)
        epsilon = Ledger((sums.spend,)).epsilon(1e-4)
        assert (epsilon < 1.0) == proved
        assert proved or epsilon == inf
        assert "printed" in sums.spend.note or proved
    refused("dim=3", printed, loss_of(3, 1.5), norm_index="printed")


def hockey_stick(r, dim, v, sigma, epsilon, draws=200_000):
    """E (1 - e^(epsilon - loss))+ under the exact density, and its standard error."""
    law, rng = PrintedGaussian(sigma, r, "corrected"), np.random.default_rng(2)
    seeds = rng.integers(1 << 30, size=draws // DRAWS)
    z = np.concatenate([drawn(law, dim, int(seed)) for seed in seeds])
    loss = (r_norm(z + v, r) ** 2 - r_norm(z, r) ** 2) / (2 * sigma**2)
    gain = np.maximum(-np.expm1(epsilon - loss), 0.0)
    return gain.mean(), gain.std() / sqrt(len(gain))


def test_the_literal_norm_index_is_not_private():
    """Negative control, Monte Carlo with exact densities: a node of the printed tree at n = 10^4, d
    = 5, q = 3 is to be (1/15, 6.7e-6)-DP. With l_0.609, as printed, it has delta 1.1e-2 to 2.3e-2
    by the direction of the movement; with r = 3 or 2, less than 5e-8."""
    epsilon, S, found = 1 / 15, 16.0, []
    for v in (S * np.eye(5)[0], S * np.full(5, 5 ** (-1 / 3))):
        delta, error = hockey_stick(log(5) - 1, 5, v, SIGMA, epsilon)
        assert error < 0.05 * delta
        found.append(delta)
        for r in (2.0, 3.0):
            assert hockey_stick(r, 5, v, SIGMA, epsilon, draws=DRAWS)[0] < 5e-8
    assert 0.9e-2 < min(found) < max(found) < 2.6e-2


@each("p", [1.05, 1.5, 2.0, 4.0, inf])
@each("horizon", [2, 1000])
@each("epsilon", [0.1, 1.0, 8.0])
def test_the_certified_tree_just_keeps_its_target(p, horizon, epsilon):
    """Property: the certificate is the claim, to 1e-3; Gaussian ones (q <= 2) exactly."""
    sums = certified_tree_sum(
        statistic_of(loss_of(20, p)), Streams([0]), horizon=horizon, epsilon=epsilon, delta=1e-5
    )
    ledger = Ledger((sums.spend,))
    assert ledger.delta(epsilon) <= 1e-5
    assert ledger.epsilon(1e-5) == pytest.approx(epsilon, rel=2e-3)
    assert (ledger.mu is not None) == (p >= 2)
