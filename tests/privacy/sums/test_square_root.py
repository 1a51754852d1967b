"""Square roots of prefix sums, whole and banded, against the dense matrix."""

from math import comb, log, pi

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.signal import lfilter

from dpbandit.privacy.prefix_sums import Banded, SquareRoot, coefficients
from tests.privacy.sums.test_blt import known


def root(count):
    """C, whose k-th subdiagonal is binom(2k, k) / 4^k, nothing of the recursion."""
    return np.tril(toeplitz([comb(2 * k, k) / 4**k for k in range(count)]))


@pytest.mark.parametrize("count", [1, 2, 17, 300])
def test_the_root_is_a_root(count):
    """Oracle: C C is the matrix of prefix sums, and the recursion gives the columns of C."""
    C = root(count)
    np.testing.assert_allclose(C @ C, np.tril(np.ones((count, count))), rtol=0, atol=1e-13)
    np.testing.assert_allclose(coefficients(count), C[:, 0], rtol=1e-13)
    assert len(coefficients(0)) == 0


def test_noise_is_the_dense_matrix():
    """Oracle: fed with the columns of the identity as known z, it is C entry by entry; with random
    z in several replicas it is C z."""
    noise = SquareRoot().of(known(np.eye(65)[:, None]), stddev=1.0, leaves=65)
    streamed = np.array([noise()[0] for _ in range(65)])
    np.testing.assert_allclose(streamed, root(65), rtol=0, atol=2e-15)
    z = np.random.default_rng(1).standard_normal((64, 3, 2, 2))
    noise = SquareRoot().of(known(z), stddev=1.5, leaves=64)
    for row in np.einsum("ts,srij->trij", 1.5 * root(64), z):
        np.testing.assert_allclose(noise(), row, rtol=0, atol=1e-14)


def test_column_norm():
    """Golden, the specification: |c|^2 = 3.265, 3.998, 4.731 at 10^3, 10^4, 10^5, one entry is 1,
    two are 1 + 1/4; and the asymptotics ln(n) / pi + 1.0662."""
    squares = [SquareRoot().column_norm(10**n) ** 2 for n in (3, 4, 5)]
    assert [f"{s:.3f}" for s in squares] == ["3.265", "3.998", "4.731"]
    assert [SquareRoot().column_norm(n) ** 2 for n in (0, 1, 2)] == pytest.approx([0, 1, 1.25])
    assert squares[2] == pytest.approx(log(10**5) / pi + 1.0662, abs=1e-4)


def test_it_reports_the_norm_of_its_row():
    noise = SquareRoot().of(known(np.zeros((200, 1))), stddev=3.0, leaves=200)
    for row in root(200):
        noise()
        assert noise.stddev == pytest.approx(3.0 * np.linalg.norm(row), rel=1e-12)


def factors(count, width):
    """C, cut off, and B = A C^-1, solved for: nothing of the recursion."""
    c = np.where(np.arange(count) < width, coefficients(count), 0.0)
    C = np.tril(toeplitz(c))
    return C, np.linalg.solve(C.T, np.tril(np.ones((count, count))).T).T


@pytest.mark.parametrize("width", [1, 2, 7, 50, 80])
def test_noise_is_the_dense_matrix_of_banded(width):
    """Oracle: fed with the identity, and with random z in several replicas, it is B z, and it
    reports the norm of its row. A wrong coefficient, order or cut-off would show."""
    C, B = factors(50, width)
    noise = Banded(width).of(known(np.eye(50)[:, None]), stddev=1.0)
    np.testing.assert_allclose([noise()[0] for _ in range(50)], B, rtol=0, atol=1e-13)
    assert Banded(width).column_norm(50) == pytest.approx(np.linalg.norm(C, axis=0).max())
    z = np.random.default_rng(1).standard_normal((50, 3, 2, 2))
    noise = Banded(width).of(known(z), stddev=1.5)
    for row, expected in zip(B, np.einsum("ts,srij->trij", 1.5 * B, z), strict=True):
        np.testing.assert_allclose(noise(), expected, rtol=0, atol=1e-13)
        assert noise.stddev == pytest.approx(1.5 * np.linalg.norm(row), rel=1e-12)


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
    T = 10_000
    impulse = np.eye(1, T)[0]
    for (k, b, width), wanted in FOR_PEOPLE.items():
        found = []
        for process in (SquareRoot(), Banded(width)):
            row = lfilter(
                [1.0], process.column(T)[: getattr(process, "width", T)], impulse
            ).cumsum()
            stddev = process.person_norm(T, 1, k, b) * np.sqrt(np.square(row).cumsum())
            found += [stddev.max(), np.sqrt(np.square(stddev).mean())]
        digits = 0.055 if max(wanted) > 100 or b == 1 else 0.0055
        np.testing.assert_allclose(found, wanted, rtol=0, atol=digits)
