"""The banded square root of prefix sums against its dense matrices."""

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.signal import lfilter

from dpbandit.base.random_streams import Streams
from dpbandit.privacy.noise.laws import Gaussian
from dpbandit.privacy.sums.banded import BandedNoise
from dpbandit.privacy.sums.processes import Banded, SquareRoot
from dpbandit.privacy.sums.square_root import SquareRootNoise, coefficients
from tests.privacy.sums.test_blt import known


def factors(count, width):
    """C, cut off, and B = A C^-1, solved for: nothing of the recursion."""
    c = np.where(np.arange(count) < width, coefficients(count), 0.0)
    C = np.tril(toeplitz(c))
    return C, np.linalg.solve(C.T, np.tril(np.ones((count, count))).T).T


@pytest.mark.parametrize("width", [1, 2, 7, 50, 80])
def test_noise_is_the_dense_matrix(width):
    """Oracle: fed with the identity, and with random z in several replicas, it is B z, and it
    reports the norm of its row. A wrong coefficient, order or cut-off would show."""
    C, B = factors(50, width)
    noise = BandedNoise(known(np.eye(50)[:, None]), stddev=1.0, width=width)
    np.testing.assert_allclose([noise()[0] for _ in range(50)], B, rtol=0, atol=1e-13)
    assert Banded(width).column_norm(50) == pytest.approx(np.linalg.norm(C, axis=0).max())
    z = np.random.default_rng(1).standard_normal((50, 3, 2, 2))
    noise = BandedNoise(known(z), stddev=1.5, width=width)
    for row, expected in zip(B, np.einsum("ts,srij->trij", 1.5 * B, z), strict=True):
        np.testing.assert_allclose(noise(), expected, rtol=0, atol=1e-13)
        assert noise.stddev == pytest.approx(1.5 * np.linalg.norm(row), rel=1e-12)


def test_as_wide_as_the_stream_it_is_the_square_root():
    """Oracle: the same streams of another name, the same noise."""
    z = np.random.default_rng(2).standard_normal((40, 2, 3))
    ours = BandedNoise(known(z), stddev=2.0, width=40)
    root = SquareRootNoise(known(z), stddev=2.0, leaves=40)
    for _ in range(40):
        np.testing.assert_allclose(ours(), root(), rtol=0, atol=1e-13)
    assert Banded(40).column_norm(40) == SquareRoot().column_norm(40)


@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_replicas_do_not_depend_on_their_company(shape):
    """Oracle: six replicas equal groups of 2, 3 and 1 joined, bit for bit."""

    def noises(chosen):
        streams = Streams([10 + i for i in chosen])
        noise = Banded(9).noise(Gaussian(2.0), streams, shape, 50)
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
