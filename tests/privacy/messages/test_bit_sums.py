"""Sums of bits: their noise, their means, the honest, and that the number of messages is public."""

from math import inf

import numpy as np
import pytest

from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.messages.bit_sums import BitSum
from dpbandit.privacy.statistics.sign_bits import SignBits

R, n = 2000, 40


def release(cover, reward, *, replicas=R, epsilon=4.0, honest=1.0):
    """The first batch's, of users who play arm 1 with x = (1, -2): (R, 2, 2), and the mechanism."""
    settings = {"epsilon": epsilon, "delta": 1e-5, "honest": honest}
    bits = SignBits(n_actions=2, dim=2)
    sums = BitSum(bits, Streams(range(replicas)), cover=cover, ends=[n], horizon=n + 1, **settings)
    x, arm = np.tile([1.0, -2.0], (replicas, 1)), np.ones(replicas, dtype=int)
    told = [sums(x, arm, np.full(replicas, reward)) for _ in range(n)]
    assert told[:-1] == [None] * (n - 1)
    return told[-1], sums


@pytest.mark.parametrize("cover", ["coins", "flips"])
@pytest.mark.parametrize("honest", [1.0, 0.4])
def test_sums_are_as_noisy_as_they_pay_for(cover, honest):
    """Of silent users, in 2,000 replicas: variance N + n for coins, n / (1 - 2 p)^2 for flips, with
    N and p the ones that are paid for; 6 standard errors (false alarm 1e-8), and means are 0. A
    tenth less is seen (asserted)."""
    found, sums = release(cover, 0.0, honest=honest)
    spend = sums.spend if cover == "coins" else sums.spend.parts[0]
    N = spend.coins if cover == "coins" else 0
    N = N if honest == 1 else int(np.ceil(N / (honest * n))) * n
    wanted = N + n if cover == "coins" else n / (1 - 2 * spend.flip) ** 2
    squares = (found**2).reshape(-1)
    error = squares.std(ddof=1) / np.sqrt(squares.size)
    assert abs(squares.mean() - wanted) < 6 * error
    assert abs(0.9 * squares.mean() - wanted) > 6 * error
    assert np.abs(found.mean(axis=0)).max() < 6 * np.sqrt(wanted / R)
    assert sums.noise(0) == pytest.approx(wanted - n / 2)  # of which half is what random signs do


@pytest.mark.parametrize("cover", ["coins", "flips"])
def test_sums_are_unbiased(cover):
    """The arm played says sign(r) sign(x), n times, the other nothing; 6 standard errors."""
    found, _ = release(cover, -3.0)
    error = found.std(axis=0, ddof=1) / np.sqrt(R)
    assert (np.abs(found.mean(axis=0) - [[0, 0], [-n, n]]) < 6 * error).all()


def test_no_noise_is_exact_where_bits_are_sent():
    """With epsilon = inf the block of the arm is n signs; the others are fair coins all the same,
    as those of NaN are: how many messages there are tells nothing."""
    found, _ = release("coins", 1.0, replicas=3, epsilon=inf)
    np.testing.assert_array_equal(found[:, 1], np.tile([n, -n], (3, 1)))
    assert (found[:, 0] % 2 == 0).all()
    assert np.abs(found[:, 0]).max() <= n
    lost, _ = release("coins", np.nan, replicas=200, epsilon=inf)
    assert lost.std() == pytest.approx(np.sqrt(n), rel=0.2)


def test_mistakes_get_one_sentence():
    for settings, sentence in (({"honest": 0.0}, "honest=0"), ({"honest": 0.01}, "honest device")):
        with pytest.raises(InputError, match=sentence):
            release("flips", 0.0, replicas=1, **settings)
    with pytest.raises(InputError, match="cover='dust'"):
        release("dust", 0.0, replicas=1)
