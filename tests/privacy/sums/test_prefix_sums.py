"""Prefix sums: the mechanism, its noise, calibration, and what others print."""

from math import inf, log, sqrt

import numpy as np
import pytest

from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy import curves
from dpbandit.privacy.calibrated import (
    ShariffSheffet,
    Target,
    exact_prefix_sum,
    least_multiplier,
    noisy_prefix_sum,
    tail_bound,
)
from dpbandit.privacy.factors import FACTORISATIONS, Window, factorisation
from dpbandit.privacy.ledger import Ledger, least_noise
from dpbandit.privacy.mechanism import BudgetExceededError
from dpbandit.privacy.moments import ClippedVectors, SecondMoments
from dpbandit.privacy.prefix_sums import BLT, SquareRoot, Tree, leaves
from dpbandit.privacy.pure import BoundedRangeSpend, KNormSpend, LaplaceSpend
from dpbandit.privacy.spends import GaussianSpend
from tests.each import each
from tests.privacy.sums.prefix_checks import WIDE


@pytest.mark.parametrize("kind", [Tree(), BLT()], ids=str)
def test_calls_that_are_refused(kind):
    """Golden, by hand: T = 8, k = 2 gives m = 3 useful releases after rounds 2, 4, 6 (the one after
    round 8 precedes no action); call 9 raises. Broadcast over the noise, a round of a wrong shape
    would be released twice for the price of one."""

    def made(every):
        shape = {"horizon": 8, "refresh_every": every, "noise_multiplier": 1.0}
        return noisy_prefix_sum(kind, WIDE, Streams([1, 2]), **shape)

    mechanism = made(2)
    released = [mechanism(np.ones((2, 2))) is not None for _ in range(8)]
    assert released == [False, True] * 3 + [False, False]
    with pytest.raises(BudgetExceededError, match="call 9 exceeds uses=8"):
        mechanism(np.ones((2, 2)))
    for wrong in ((2, 1), (2,), (2, 2, 2)):
        with pytest.raises(InputError, match="shape"):
            made(1)(np.ones(wrong))


def test_leaves_by_hand():
    """Golden: m = floor((T - 1) / k): the release after round T, or after it, reaches nobody."""
    table = {(1, 1): 0, (2, 1): 1, (10, 1): 9, (10, 5): 1, (11, 5): 2, (10, 10): 0, (5, 9): 0}
    assert {key: leaves(*key) for key in table} == table
    empty = exact_prefix_sum(WIDE, horizon=1, refresh_every=1)
    assert empty(np.ones((2, 2))) is None
    assert empty.spend.mu == 0


WINDOWS = (Window(8), Window(8, lazy=True))
PAIRS = [(made, law) for made in (*FACTORISATIONS.values(), *WINDOWS) for law in made.laws]


@each(("process", "law"), PAIRS)
@each("delta", [0.0, 1e-5])
def test_least_noise_is_certified_at_the_target(process, law, delta):
    """Oracle: the certificate of what is made meets epsilon; 0.1 % less noise does not; no release
    needs none."""
    target = {"horizon": 65, "refresh_every": 2}
    wanted = {"epsilon": 1.0, "delta": delta, "law": law, "dim": 3}
    if law == "gaussian" and delta == 0:
        with pytest.raises(InputError, match=r"delta=0.* .*no pure"):
            least_multiplier(process, **target, **wanted)
        return
    least = least_multiplier(process, **target, **wanted)
    for factor in (1.0, 0.999):
        how = {**target, "noise_multiplier": factor * least, "law": law}
        mechanism = noisy_prefix_sum(process, ClippedVectors(3), Streams([0]), **how)
        ledger = Ledger((mechanism.spend,), window=16 if process in WINDOWS else None)
        assert (ledger.delta(1.0) <= delta) == (factor == 1.0)
    assert least_multiplier(process, horizon=2, refresh_every=7, **wanted) == 0
    assert least_multiplier(process, **target, **wanted | {"epsilon": inf}) == 0


@each(("process", "law"), PAIRS)
def test_the_noise_has_the_size_it_says(process, law):
    """Statistical, against `.stddev`: 6 errors, false alarm below 1e-6 a case; 5 % off in scale is
    caught (asserted). By hand, of a tree: 13 = 1101b has three nodes."""
    shape = {"horizon": 17, "refresh_every": 1, "noise_multiplier": 2.0, "law": law}
    mechanism = noisy_prefix_sum(process, ClippedVectors(240, 0.7), Streams(range(100)), **shape)
    for _ in range(13):
        release = mechanism(np.zeros((100, 240)))
    ratio = np.square(release / mechanism.stddev)
    error = 6 * ratio.mean(axis=1).std() / sqrt(100)
    assert abs(ratio.mean() - 1) < error < 0.1
    if process == Tree() and law == "gaussian":
        assert mechanism.stddev == pytest.approx(2.0 * 1.4 * sqrt(3), rel=1e-12)


def test_least_noise_inverts_any_certificate():
    """Oracle: Gaussian against mu*, Laplace against the plain sum; others by their own curves."""
    mu = curves.mu_of(1.0, 1e-5)
    found = least_noise(lambda x: GaussianSpend(1 / x, "g"), epsilon=1.0, delta=1e-5)
    assert found == pytest.approx(1 / mu, rel=2e-6)
    assert found >= (1 - 1e-12) / mu
    pure = least_noise(lambda x: LaplaceSpend(1 / x, count=3), epsilon=2.0, delta=0.0)
    assert pure == pytest.approx(1.5, rel=2e-6)
    spends = (
        lambda x: KNormSpend(4, 1 / x, count=5),
        lambda x: BoundedRangeSpend.of("em", [1 / x] * 20),
    )
    for spend in spends:
        x = least_noise(spend, epsilon=1.0, delta=1e-5)
        assert Ledger((spend(x),)).delta(1.0) <= 1e-5 < Ledger((spend(0.999 * x),)).delta(1.0)
    assert least_noise(spends[0], epsilon=inf, delta=0.0) == 0.0


@pytest.mark.parametrize(
    ("n", "node", "mf"), [(10**3, 8.14, 3.265), (10**4, 11.9, 3.998), (10**5, 15.4, 4.731)]
)
def test_noise_at_three_horizons(n, node, mf):
    """Golden: stochastic_and_contextual.md c2, at epsilon 1, delta 1/n: a tree node's stddev, and
    the square root's worst prefix, which the BLT reaches within 0.5 %."""
    shape = {"horizon": n + 1, "refresh_every": 1, "epsilon": 1.0, "delta": 1 / n}
    assert least_multiplier(Tree(), **shape) == pytest.approx(node, rel=5e-3)
    z = least_multiplier(BLT(), **shape)
    noise = BLT().of(Streams([0]).normals("z", 1), stddev=z)
    for _ in range(n):
        noise()
    assert noise.stddev * curves.mu_of(1.0, 1 / n) == pytest.approx(mf, rel=5e-3)


def test_laws_of_noise_and_combinations_that_do_not_exist():
    """The plain sum of K-norms is dear: at delta 1e-5 the same tree needs half of its noise."""
    shape = {"horizon": 1000, "refresh_every": 1, "epsilon": 1.0}
    pure = least_multiplier(Tree(), **shape, law="k-norm", dim=5, delta=0.0)
    assert pure == pytest.approx(10)
    assert least_multiplier(Tree(), **shape, law="k-norm", dim=5, delta=1e-5) < 0.55 * pure
    with pytest.raises(InputError, match=r"gaussian for BLT\(\)"):
        least_multiplier(BLT(), **shape, delta=1e-5, law="laplace")
    with pytest.raises(InputError, match=r"gaussian for SquareRoot\(\)"):
        least_multiplier(SquareRoot(), **shape, delta=1e-5, law="k-norm")
    with pytest.raises(InputError, match="window=None"):
        Window(None)
    with pytest.raises(InputError, match="did you mean tree"):
        factorisation("tre")


STATISTIC = SecondMoments(n_actions=2, dim=3, context_bound=2.0, reward_high=1.5)
TARGET = Target(epsilon=0.5, delta=1e-4, horizon=1000, refresh_every=1)
L2 = 2.0**2 + 1.5**2
M = 11  # 1 + ceil(log2 1000)


def gamma(theirs):
    """The bound on the noise's norm that the agent computes, in the units of the Gram matrix."""
    spectrum = theirs.spectrum(0.05)
    return spectrum.gram_factor * spectrum.stddev * 2.0**2 / sqrt(2), spectrum.shift_factor


def test_constants_by_hand():
    """Golden, Gaussian: s = 4 sqrt(m) L^2 ln(4/delta) / eps, Upsilon = s sqrt(2m) (4 sqrt(D) + 2
    ln(2T/a)), a shift by 2 Upsilon. Wishart: k and Upsilon as printed, a shift by 3/2 Upsilon."""
    theirs = ShariffSheffet(STATISTIC, TARGET, "gaussian")
    s = 4 * sqrt(M) * L2 * log(4e4) / 0.5
    assert theirs.stddev * 2.0**2 / sqrt(2) == pytest.approx(s, rel=1e-12)
    upsilon = s * sqrt(2 * M) * (4 * sqrt(3) + 2 * log(2000 / 0.05))
    assert gamma(theirs) == (pytest.approx(upsilon, rel=1e-12), 2.0)
    theirs = ShariffSheffet(STATISTIC, TARGET, "wishart")
    k = 4 + int(224 * M / 0.25 * log(8e4 * M) * log(2e4)) + 1
    assert theirs.degrees == k
    upsilon = 4 * sqrt(M * k) * L2 * (sqrt(3) + sqrt(2 * log(8000 / 0.05)))
    assert gamma(theirs) == (pytest.approx(upsilon / 2, rel=1e-12), 3.0)


@pytest.mark.parametrize("noise", ["gaussian", "wishart"])
@pytest.mark.parametrize("printed", [True, False])
def test_without_privacy_there_is_no_noise(noise, printed):
    """By hand: one user's round comes back as it went in."""
    theirs = ShariffSheffet(STATISTIC, TARGET._replace(epsilon=inf), noise, printed=printed)
    assert theirs.stddev == 0.0
    datum = (np.array([[1.0, 0.0, 1.0]]), np.array([1]), np.array([0.5]))
    release = theirs.sums(Streams([0]))(*datum)
    np.testing.assert_array_equal(release, STATISTIC.total(*(a[None] for a in datum)))


def test_symmetric_noise_stays_inside_the_tail_bound():
    """Statistical: of 2,000 symmetric Gaussian matrices none has a norm above the bound, which
    allows 100, and all are above half of it: the bound is not idle."""
    rng, D = np.random.default_rng(0), 20
    Z = rng.standard_normal((2000, D, D))
    norms = np.linalg.norm((Z + Z.transpose(0, 2, 1)) / sqrt(2), ord=2, axis=(1, 2))
    bound = tail_bound(D, 1, failure=0.05).gram_factor
    assert bound / 2 < norms.min()
    assert norms.max() < bound
