"""Square roots of prefix sums, whole and banded, against the dense matrix."""

from math import comb, log, pi, sqrt

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.signal import lfilter

from dpbandit.base.random_streams import Streams
from dpbandit.privacy.calibrated import least_multiplier, noisy_prefix_sum
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.moments import ClippedVectors
from dpbandit.privacy.noise import Gaussian
from dpbandit.privacy.prefix_sums import BLT, Banded, SquareRoot, coefficients
from tests.privacy.sums.test_blt import known
from tests.privacy.sums.test_prefix_sums import two_sided


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


@pytest.mark.parametrize("last", [1, 6, 40])
def test_released_noise_has_the_reported_size(last):
    """Statistical: chi-square over 20,000 coordinates of a mechanism fed zeros. False alarm 1e-6 a
    case and change of seed; a scale 5 % off is caught (asserted)."""
    mechanism = noisy_prefix_sum(
        SquareRoot(),
        ClippedVectors(dim=20_000, bound=0.25),
        Streams([5]),
        horizon=64,
        refresh_every=1,
        noise_multiplier=6.0,
    )
    for _ in range(last):
        noise = mechanism(np.zeros((1, 20_000)))
    size = 6.0 * 0.5 * np.linalg.norm(root(last)[-1])
    assert mechanism.stddev == pytest.approx(size, rel=1e-12)
    assert two_sided(noise, size) > 1e-6
    assert min(two_sided(noise, 1.05 * size), two_sided(noise, 0.95 * size)) < 1e-6


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_replicas_do_not_depend_on_their_company(shape):
    """Oracle: six replicas equal groups of 2, 3 and 1 joined, bit for bit."""

    def noises(chosen):
        normals = Streams([10 + i for i in chosen]).normals("z", *shape)
        noise = SquareRoot().of(normals, stddev=2.0, leaves=50)
        return np.array([noise().copy() for _ in range(50)])

    groups = [noises(chosen) for chosen in ([0, 1], [2, 3, 4], [5])]
    assert (noises(range(6)) == np.concatenate(groups, axis=1)).all()


def test_five_buffers_are_as_good():
    """Golden: after 10^4 releases, in units 1 / mu, the worst prefix of the root has its |c|^2 =
    3.998 and the BLT half a percent more, root mean squares 3.81 and 3.84 (12.2 stddev of the
    specification at epsilon 1, delta 1e-4)."""
    m, mu = 10_000, mu_of(1.0, 1e-4)
    worst, mean = {}, {}
    for process, made in (
        (SquareRoot(), SquareRoot().of(known(np.zeros((m, 1))), stddev=1.0, leaves=m)),
        (BLT(), BLT().of(known(np.zeros((m, 1))), stddev=1.0)),
    ):
        target = {"horizon": m + 1, "refresh_every": 1, "epsilon": 1.0, "delta": 1e-4}
        z = least_multiplier(process, **target) * mu
        sizes = np.array([(made(), made.stddev)[1] for _ in range(m)])
        worst[process.word], mean[process.word] = z * sizes.max(), z * sqrt(np.mean(sizes**2))
    assert worst["square-root"] == pytest.approx(3.998, abs=5e-4)
    assert 1 < worst["blt"] / worst["square-root"] < 1.005
    assert mean["square-root"] / mu == pytest.approx(12.2, abs=0.05)
    assert 1 < mean["blt"] / mean["square-root"] < 1.005


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


def test_as_wide_as_the_stream_it_is_the_square_root():
    """Oracle: the same streams of another name, the same noise."""
    z = np.random.default_rng(2).standard_normal((40, 2, 3))
    ours = Banded(40).of(known(z), stddev=2.0)
    root = SquareRoot().of(known(z), stddev=2.0, leaves=40)
    for _ in range(40):
        np.testing.assert_allclose(ours(), root(), rtol=0, atol=1e-13)
    assert Banded(40).column_norm(40) == SquareRoot().column_norm(40)


@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_replicas_do_not_depend_on_their_company_of_banded(shape):
    """Oracle: six replicas equal groups of 2, 3 and 1 joined, bit for bit."""

    def noises(chosen):
        streams = Streams([10 + i for i in chosen])
        noise = Banded(9).start(Gaussian(2.0), streams, shape, 50)
        return np.array([noise().copy() for _ in range(50)])

    groups = [noises(chosen) for chosen in ([0, 1], [2, 3, 4], [5])]
    assert (noises(range(6)) == np.concatenate(groups, axis=1)).all()


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
