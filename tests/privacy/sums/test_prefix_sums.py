"""Prefix sums: their mechanism, calibration, and the noise of Toeplitz matrices."""

from itertools import product
from math import comb, inf, log, pi, sqrt

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.signal import lfilter

from dpbandit import certify
from dpbandit.agents import DPHDB
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Draws, Streams
from dpbandit.privacy import curves, prefix_sums as module
from dpbandit.privacy.calibrated import (
    ShariffSheffet,
    Target,
    exact_prefix_sum,
    least_multiplier,
    noisy_prefix_sum,
    tail_bound,
)
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.factors import FACTORISATIONS, Staggered, Window, factorisation
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.moments import ClippedVectors, SecondMoments
from dpbandit.privacy.notion import Notion
from dpbandit.privacy.prefix_sums import (
    BLT,
    Banded,
    SquareRoot,
    Tree,
    coefficients,
    leaves,
    mu_after,
)
from dpbandit.shelf import open_shelves
from dpbandit.specs.protocols import ContextualSpec
from tests.each import each, refused
from tests.privacy.sums.prefix_checks import WIDE


@pytest.mark.parametrize("kind", [Tree(), BLT()], ids=str)
def test_releases_that_are_counted_empty_or_refused(kind):
    """With T = 8 and k = 2, sums are released after rounds 2, 4, 6; call 9 raises, as does a shape
    that, broadcast, would be released twice for the price of one."""

    def made(every):
        shape = {"horizon": 8, "refresh_every": every, "noise_multiplier": 1.0}
        return noisy_prefix_sum(kind, WIDE, Streams([1, 2]), **shape)

    mechanism = made(2)
    released = [mechanism(np.ones((2, 2))) is not None for _ in range(8)]
    assert released == [False, True] * 3 + [False, False]
    refused("call 9 exceeds uses=8", mechanism, np.ones((2, 2)))
    table = {(1, 1): 0, (2, 1): 1, (10, 1): 9, (10, 5): 1, (11, 5): 2, (10, 10): 0, (5, 9): 0}
    assert {key: leaves(*key) for key in table} == table
    empty = exact_prefix_sum(WIDE, horizon=1, refresh_every=1)
    assert empty(np.ones((2, 2))) is None
    assert empty.spend.mu == 0
    for wrong in ((2, 1), (2,), (2, 2, 2)):
        refused("shape", made(1), np.ones(wrong))


WINDOWS = (Window(8), Window(8, lazy=True))
open_shelves("privacy.factors")
PAIRS = [(made, law) for made in (*FACTORISATIONS.values(), *WINDOWS) for law in made.laws]


@each(("process", "law"), PAIRS)
@each("delta", [0.0, 1e-5])
def test_least_noise_is_certified_at_the_target(process, law, delta):
    """Oracle: the certificate meets epsilon, with 0.1 % less noise it does not; no release needs
    none."""
    target = {"horizon": 65, "refresh_every": 2}
    wanted = {"epsilon": 1.0, "delta": delta, "law": law, "dim": 3}
    if law == "gaussian" and delta == 0:
        refused(r"delta=0.* .*no pure", least_multiplier, process, **target, **wanted)
        return
    least = least_multiplier(process, **target, **wanted)
    for factor in (1.0, 0.999):
        how = {**target, "noise_multiplier": factor * least, "law": law}
        mechanism = noisy_prefix_sum(process, ClippedVectors(3), Streams([0]), **how)
        ledger = Ledger((mechanism.spend,), Notion(window=16 if process in WINDOWS else None))
        assert (ledger.delta(1.0) <= delta) == (factor == 1.0)
    assert least_multiplier(process, horizon=2, refresh_every=7, **wanted) == 0
    assert least_multiplier(process, **target, **wanted | {"epsilon": inf}) == 0


@each(("process", "law"), PAIRS)
def test_the_noise_has_the_size_it_says(process, law):
    """Statistical: 6 errors, false alarm below 1e-6 a case; 5 % is caught (asserted)."""
    shape = {"horizon": 17, "refresh_every": 1, "noise_multiplier": 2.0, "law": law}
    mechanism = noisy_prefix_sum(process, ClippedVectors(240, 0.7), Streams(range(100)), **shape)
    for _ in range(13):
        release = mechanism(np.zeros((100, 240)))
    ratio = np.square(release / mechanism.stddev)
    error = 6 * ratio.mean(axis=1).std() / sqrt(100)
    assert abs(ratio.mean() - 1) < error < 0.1
    if process == Tree() and law == "gaussian":
        assert mechanism.stddev == pytest.approx(2.0 * 1.4 * sqrt(3), rel=1e-12)


@pytest.mark.parametrize(
    ("n", "node", "mf"), [(10**3, 8.14, 3.265), (10**4, 11.9, 3.998), (10**5, 15.4, 4.731)]
)
def test_noise_at_three_horizons(n, node, mf):
    """Golden, stochastic_and_contextual.md c2: a tree's node; the BLT is within 0.5 % of the square
    root."""
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
    refused(r"gaussian for BLT\(\)", least_multiplier, BLT(), **shape, delta=1e-5, law="laplace")
    with pytest.raises(InputError, match=r"gaussian for SquareRoot\(\)"):
        least_multiplier(SquareRoot(), **shape, delta=1e-5, law="k-norm")
    refused("window=None", Window, None)
    refused("did you mean tree", factorisation, "tre")


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


def test_without_privacy_there_is_no_noise():
    """Without noise, the sum of one user's round is that round."""
    datum = (np.array([[1.0, 0.0, 1.0]]), np.array([1]), np.array([0.5]))
    for noise, printed in product(("gaussian", "wishart"), (True, False)):
        theirs = ShariffSheffet(STATISTIC, TARGET._replace(epsilon=inf), noise, printed=printed)
        assert theirs.stddev == 0.0
        release = theirs.sums(Streams([0]))(*datum)
        np.testing.assert_array_equal(release, STATISTIC.total(*(a[None] for a in datum)))


def test_symmetric_noise_stays_inside_the_tail_bound():
    """Statistical: of 2,000 none is above a bound that allows 100, all are above half of it."""
    rng, D = np.random.default_rng(0), 20
    Z = rng.standard_normal((2000, D, D))
    norms = np.linalg.norm((Z + Z.transpose(0, 2, 1)) / sqrt(2), ord=2, axis=(1, 2))
    bound = tail_bound(D, 1, failure=0.05).gram_factor
    assert bound / 2 < norms.min()
    assert norms.max() < bound


class Scripted:
    """A generator whose numbers the test chose, row by row."""

    def __init__(self, z):
        self.z = z

    def standard_normal(self, out):
        out[...], self.z = self.z[: len(out)], self.z[len(out) :]


def known(z):
    """The normals source of a call site that yields z, (n, R, *shape)."""
    generators = [Scripted(z[:, r]) for r in range(z.shape[1])]
    return Draws(generators, z.shape[2:], "standard_normal", ())


def by_decay(decay, scale, count):
    """c_0 = 1, c_{k+1} = sum_j scale_j decay_j^k, as privacy.md section 4 prints it."""
    return np.concatenate([[1.0], scale @ decay[:, None] ** np.arange(count - 1)])


def dense_rows(count):
    """B = A C^-1 with A the prefix sums and C^-1 solved from C, nothing of the recursion."""
    C = np.tril(toeplitz(by_decay(module._BUF_DECAY, module._OUTPUT_SCALE, count)))
    return np.linalg.solve(C.T, np.tril(np.ones((count, count))).T).T


def test_blt_s_parameters_and_limit():
    """Oracle: C C^-1 is the identity. A million releases are served, one more is refused."""
    c = by_decay(module._BUF_DECAY, module._OUTPUT_SCALE, 3000)
    inverse = by_decay(module._INV_DECAY, module._INV_SCALE, 3000)
    identity = np.convolve(c, inverse)[:3000]
    np.testing.assert_allclose(identity, np.eye(3000)[0], rtol=0, atol=2e-13)
    target = {"refresh_every": 1, "epsilon": 1.0, "delta": 1e-5}
    assert least_multiplier(BLT(), horizon=10**6 + 1, **target) > 0
    refused("at most 1000000", least_multiplier, BLT(), horizon=10**6 + 2, **target)
    assert least_multiplier(Tree(), horizon=10**6 + 2, **target) > 0


def test_worst_prefixes_at_ten_thousand():
    """Golden, privacy.md sections 2 and 4, at (1, 1e-4): nodes, worst and rms prefixes of tree and
    BLT; printed 12.74 for the worst of the BLT is the exact square root's."""
    mu, m = mu_of(1.0, 1e-4), 10_000
    tree = Tree().of(lambda: np.zeros(1), stddev=Tree().column_norm(m))
    blt = BLT().of(known(np.zeros((m, 1))), stddev=BLT().column_norm(m))
    of_tree, of_blt = (
        np.array([(noise(), noise.stddev)[1] for _ in range(m)]) for noise in (tree, blt)
    )
    node, root = Tree().column_norm(m) / mu, np.cumprod([1.0, *(1 - 0.5 / np.arange(1, m))])
    figures = [node, of_tree.max(), sqrt(np.mean(of_tree**2)), of_blt.max()]
    figures += [sqrt(np.mean(of_blt**2)), of_tree.max() / mu, of_blt.max() / mu]
    figures += [np.sum(root**2) / mu]
    wanted = ["11.92", "13.49", "9.51", "4.01", "3.84", "42.98", "12.78", "12.74"]
    assert [f"{x:.2f}" for x in figures] == wanted


def root(count):
    """C, whose k-th subdiagonal is binom(2k, k) / 4^k, nothing of the recursion."""
    return np.tril(toeplitz([comb(2 * k, k) / 4**k for k in range(count)]))


def factors(count, width):
    """C, cut off, and B = A C^-1, solved for: nothing of the recursion."""
    c = np.where(np.arange(count) < width, coefficients(count), 0.0)
    C = np.tril(toeplitz(c))
    return C, np.linalg.solve(C.T, np.tril(np.ones((count, count))).T).T


DENSE = [
    (BLT(), dense_rows, 2e-13, 64 * 2e-13),
    (SquareRoot(), root, 2e-15, 1e-14),
    *((Banded(w), lambda n, w=w: factors(n, w)[1], 1e-13, 1e-13) for w in (1, 2, 7, 50, 80)),
]


@each(("process", "matrix", "exact", "close"), DENSE)
def test_noise_is_the_dense_matrix(process, matrix, exact, close):
    """Oracle: the recursion is B entry by entry, and B z in replicas; `.stddev` is the norm of a
    row."""
    B = matrix(65)
    noise = process.of(known(np.eye(80, 65)[:, None]), stddev=1.0, leaves=65)
    np.testing.assert_allclose([noise()[0] for _ in B], B, rtol=0, atol=exact)
    z = np.random.default_rng(1).standard_normal((80, 3, 2, 2))
    noise = process.of(known(z), stddev=1.5, leaves=65)
    for row in np.einsum("ts,srij->trij", 1.5 * B, z[:65]):
        np.testing.assert_allclose(noise(), row, rtol=0, atol=close)
    noise = process.of(known(np.zeros((208, 1))), stddev=3.0, leaves=200)
    for row in matrix(200):
        noise()
        assert noise.stddev == pytest.approx(3.0 * np.linalg.norm(row), rel=1e-12)


def test_column_norms():
    """Golden, privacy.md section 4, and the asymptotics ln(n) / pi + 1.0662; direct sums of
    c_k^2."""
    found = [f"{BLT().column_norm(10**n):.3f}" for n in (3, 4, 5, 6)]
    assert found == ["1.797", "1.987", "2.171", "2.331"]
    c = by_decay(module._BUF_DECAY, module._OUTPUT_SCALE, 10**5)
    for m in (1, 2, 3, 17, 1000, 10**5):
        direct = sqrt(np.sum(c[:m] ** 2))
        assert BLT().column_norm(m) == pytest.approx(direct, rel=1e-12)
    assert BLT().column_norm(0) == Tree().column_norm(0) == mu_after(0, 0.0) == 0
    squares = [SquareRoot().column_norm(10**n) ** 2 for n in (3, 4, 5)]
    assert [f"{s:.3f}" for s in squares] == ["3.265", "3.998", "4.731"]
    assert [SquareRoot().column_norm(n) ** 2 for n in (0, 1, 2)] == pytest.approx([0, 1, 1.25])
    assert squares[2] == pytest.approx(log(10**5) / pi + 1.0662, abs=1e-4)
    for width in (1, 2, 7, 50, 80):
        longest = np.linalg.norm(factors(50, width)[0], axis=0).max()
        assert Banded(width).column_norm(50) == pytest.approx(longest)


@each("count", [1, 2, 17, 300])
def test_the_root_is_a_root(count):
    """Oracle: C C is the matrix of prefix sums, and the recursion gives the columns of C."""
    C = root(count)
    np.testing.assert_allclose(C @ C, np.tril(np.ones((count, count))), rtol=0, atol=1e-13)
    np.testing.assert_allclose(coefficients(count), C[:, 0], rtol=1e-13)
    assert len(coefficients(0)) == 0


# k, b, width: largest and rms error of the square root, of the band
FOR_PEOPLE = {
    (5, 1, 4096): (18.3, 17.6, 19.5, 17.5),
    (5, 2000, 4000): (11.06, 10.61, 10.67, 9.54),
    (20, 500, 1000): (34.97, 33.55, 30.03, 23.72),
    (100, 100, 512): (162.1, 155.6, 118.4, 89.1),
}


def test_errors_for_people_of_an_independent_program():
    """k visits b apart of 10,000, to all printed digits; a band cut elsewhere would show."""
    T, impulse = 10_000, np.eye(1, 10_000)[0]
    for (k, b, width), wanted in FOR_PEOPLE.items():
        found = []
        for process in (SquareRoot(), Banded(width)):
            column = process.column(T)[: getattr(process, "width", T)]
            row = lfilter([1.0], column, impulse).cumsum()
            stddev = process.person_norm(T, 1, k, b) * np.sqrt(np.square(row).cumsum())
            found += [stddev.max(), np.sqrt(np.square(stddev).mean())]
        digits = 0.055 if max(wanted) > 100 or b == 1 else 0.0055
        np.testing.assert_allclose(found, wanted, rtol=0, atol=digits)


K, D = 3, 2


@pytest.mark.parametrize("turns", [1, 16, 19, 40])
def test_every_row_has_the_law_of_its_own_process(turns):
    """Statistical: variances of one BLT's, and no correlations, 6 errors (false alarm below 1e-4);
    a process that ticks while it rests is off by 20, a shared draw by 40."""
    steps = turns + 20
    noise = Staggered(Streams(range(2000)), "noise", (K, D), stddev=0.5, turns=turns)
    released = np.array([noise() for _ in range(K * turns + 20)])  # (rounds, R, K, D)
    plain = BLT().of(Streams(range(3)).normals("plain"), stddev=0.5)
    stddevs = []
    for _ in range(steps):
        plain()
        stddevs.append(plain.stddev)
    for k in range(K):
        own = [*range(k * turns, (k + 1) * turns), *range(K * turns, K * turns + 20)]
        variances = released[own, :, k].var(axis=1)  # (steps, D)
        expected = np.square(stddevs)[:, None]
        assert (np.abs(variances / expected - 1) < 6 * np.sqrt(2 / 2000)).all()
        resting = released[(k + 1) * turns - 1 : K * turns, :, k]
        assert (resting == resting[0]).all()
        assert not released[: k * turns, :, k].any()
    for latest in (released[K * turns - 1], released[-1]):  # alone, and side by side
        correlations = np.corrcoef(latest.reshape(2000, K * D).T) - np.eye(K * D)
        assert np.abs(correlations).max() < 6 / np.sqrt(2000)
    assert noise.stddev == pytest.approx(stddevs[-1])


def test_an_arm_pays_for_its_own_steps():
    """Golden: n = T - (K - 1) t_0 = 800 steps, 799 releases; the claim is met exactly."""
    spec = ContextualSpec(n_actions=K, dim=D, horizon=1000)
    proof = certify(DPHDB(warm_up=100), spec, accountants=False)
    assert proof.epsilon == pytest.approx(1, abs=1e-6)
    assert "799 Gaussian releases of every arm" in str(proof.ledger)
