"""The buffered linear Toeplitz noise against its dense matrices."""

from math import sqrt

import numpy as np
import pytest
from scipy.linalg import toeplitz

from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Draws
from dpbandit.privacy import prefix_sums as module
from dpbandit.privacy.calibrated import least_multiplier
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.prefix_sums import BLT, Tree, mu_after


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


def coefficients(decay, scale, count):
    """c_0 = 1, c_{k+1} = sum_j scale_j decay_j^k, as privacy.md section 4 prints it."""
    return np.concatenate([[1.0], scale @ decay[:, None] ** np.arange(count - 1)])


def dense_rows(count):
    """B = A C^-1 with A the prefix sums and C^-1 solved from C, nothing of the recursion."""
    C = np.tril(toeplitz(coefficients(module._BUF_DECAY, module._OUTPUT_SCALE, count)))
    return np.linalg.solve(C.T, np.tril(np.ones((count, count))).T).T


def test_blt_is_the_dense_matrix_at_64():
    """Oracle: fed with the columns of the identity as known z, the blocked recursion is the dense
    B = A C^-1 entry by entry; with random z in several replicas it is B z."""
    blt = BLT().of(known(np.eye(64)[:, None]), stddev=1.0)
    streamed = np.array([blt()[0] for _ in range(64)])
    np.testing.assert_allclose(streamed, dense_rows(64), rtol=0, atol=2e-13)
    z = np.random.default_rng(1).standard_normal((64, 3, 2, 2))
    blt = BLT().of(known(z), stddev=1.0)
    dense = np.einsum("ts,srij->trij", dense_rows(64), z)
    for row in dense:
        np.testing.assert_allclose(blt(), row, rtol=0, atol=64 * 2e-13)


def test_inverse_parameters_invert_c():
    """Oracle: the product of C and C^-1 (first columns, convolved) is the identity at T = 3000."""
    c = coefficients(module._BUF_DECAY, module._OUTPUT_SCALE, 3000)
    inverse = coefficients(module._INV_DECAY, module._INV_SCALE, 3000)
    identity = np.convolve(c, inverse)[:3000]
    np.testing.assert_allclose(identity, np.eye(3000)[0], rtol=0, atol=2e-13)


def test_blt_column_norm():
    """Golden: 1.797 1.987 2.171 2.331 at 10^3..10^6 (privacy.md section 4), and oracle: the closed
    form is the direct sum of c_k^2 for short and long streams; nothing to release costs nothing."""
    printed = [f"{BLT().column_norm(10**n):.3f}" for n in (3, 4, 5, 6)]
    assert printed == ["1.797", "1.987", "2.171", "2.331"]
    c = coefficients(module._BUF_DECAY, module._OUTPUT_SCALE, 10**5)
    for m in (1, 2, 3, 17, 1000, 10**5):
        direct = sqrt(np.sum(c[:m] ** 2))
        assert BLT().column_norm(m) == pytest.approx(direct, rel=1e-12)
    assert BLT().column_norm(0) == Tree().column_norm(0) == mu_after(0, 0.0) == 0


def test_blt_reports_the_norm_of_its_row():
    """Oracle: `.stddev` after t releases is |row t of the dense B| for t in 1..200."""
    blt, rows = BLT().of(known(np.zeros((208, 1))), stddev=3.0), dense_rows(200)
    for t in range(200):
        blt()
        assert blt.stddev == pytest.approx(3.0 * np.linalg.norm(rows[t]), rel=1e-12)


def test_blt_refuses_more_than_a_million_releases():
    """A million is served, one more is refused by the norm and by the calibration alike."""
    target = {"refresh_every": 1, "epsilon": 1.0, "delta": 1e-5}
    assert least_multiplier(BLT(), horizon=10**6 + 1, **target) > 0
    with pytest.raises(InputError, match="at most 1000000"):
        least_multiplier(BLT(), horizon=10**6 + 2, **target)
    assert least_multiplier(Tree(), horizon=10**6 + 2, **target) > 0


def test_worst_prefixes_at_ten_thousand():
    """Golden, privacy.md sections 2 and 4, with m = 10^4 leaves, sensitivity 1, target (1, 1e-4):
    a tree node has sqrt(14) / mu = 11.92; its worst prefix t = 8191 has 13 nodes, 42.98; in units
    1 / mu = sqrt(1 / 2 rho) max sqrt(14 x 13) = 13.49 and rms 9.51 over t = 1..m; BLT 4.01 / 3.84.
    Printed 12.74 for the worst BLT prefix is 3.998 / mu, the exact square root's (the sum of its
    c_k^2); the BLT's own is 0.4 % larger, 12.78."""
    mu, m = mu_of(1.0, 1e-4), 10_000
    tree = Tree().of(lambda: np.zeros(1), stddev=Tree().column_norm(m))
    blt = BLT().of(known(np.zeros((m, 1))), stddev=BLT().column_norm(m))
    sizes = {}
    for name, noise in (("tree", tree), ("blt", blt)):
        sizes[name] = np.array([(noise(), noise.stddev)[1] for _ in range(m)])
    root = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / np.arange(1, m)]))
    figures = [
        Tree().column_norm(m) / mu,
        *(f(sizes["tree"]) for f in (np.max, lambda s: sqrt(np.mean(s**2)))),
        *(f(sizes["blt"]) for f in (np.max, lambda s: sqrt(np.mean(s**2)))),
        np.max(sizes["tree"]) / mu,
        np.max(sizes["blt"]) / mu,
        np.sum(root**2) / mu,
    ]
    printed = ["11.92", "13.49", "9.51", "4.01", "3.84", "42.98", "12.78", "12.74"]
    assert [f"{x:.2f}" for x in figures] == printed
