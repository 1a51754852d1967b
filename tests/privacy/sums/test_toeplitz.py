"""Noise of Toeplitz matrices, plain, banded and staggered, against the dense ones."""

from math import comb, log, pi, sqrt

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.signal import lfilter

from dpbandit import certify
from dpbandit.agents import DPHDB
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Draws, Streams
from dpbandit.privacy import prefix_sums as module
from dpbandit.privacy.calibrated import least_multiplier
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.factors import Staggered
from dpbandit.privacy.prefix_sums import BLT, Banded, SquareRoot, Tree, coefficients, mu_after
from dpbandit.specs.protocols import ContextualSpec
from tests.each import each


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
    """Oracle: the product of C and C^-1 (first columns, convolved) is the identity. A million
    releases are served, one more is refused."""
    c = by_decay(module._BUF_DECAY, module._OUTPUT_SCALE, 3000)
    inverse = by_decay(module._INV_DECAY, module._INV_SCALE, 3000)
    identity = np.convolve(c, inverse)[:3000]
    np.testing.assert_allclose(identity, np.eye(3000)[0], rtol=0, atol=2e-13)
    target = {"refresh_every": 1, "epsilon": 1.0, "delta": 1e-5}
    assert least_multiplier(BLT(), horizon=10**6 + 1, **target) > 0
    with pytest.raises(InputError, match="at most 1000000"):
        least_multiplier(BLT(), horizon=10**6 + 2, **target)
    assert least_multiplier(Tree(), horizon=10**6 + 2, **target) > 0


def test_worst_prefixes_at_ten_thousand():
    """Golden, privacy.md sections 2 and 4, m = 10^4 leaves, target (1, 1e-4): a tree node, worst
    and rms prefixes of tree and BLT in units 1 / mu, and the worst ones (t = 8191 of the tree).
    Printed 12.74 for the BLT's is the exact square root's; its own is 0.4 % larger, 12.78."""
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
    """Oracle: fed with the identity, the recursion is B entry by entry; with random z in several
    replicas it is B z; `.stddev` is the norm of a row."""
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
    """Golden, privacy.md section 4 at 10^3..10^6, and for the square root |c|^2 at 10^3..10^5 with
    its asymptotics ln(n) / pi + 1.0662. Oracle: direct sums of c_k^2; nothing costs nothing."""
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
    """k visits b apart of 10,000, noise scaled to S(k, b), in units of noise of one release: to all
    printed digits. A band that is cut elsewhere, or an S of another pattern, would show."""
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
    """Statistical: 2,000 replicas, variances of a row's steps within 6 standard errors of one BLT's
    (false alarm below 1e-4), rows and coordinates uncorrelated; a process that ticks while it rests
    is off by 20, a shared draw by 40 errors."""
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
