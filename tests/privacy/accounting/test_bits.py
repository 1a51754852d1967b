"""Bits among coins: against enumeration of whole messages, and the table of an independent one."""

from itertools import product
from math import comb

import numpy as np
import pytest

from dpbandit.privacy.aggregated import BitSpend, least_coins, least_flip
from dpbandit.privacy.curves import delta_of, mu_of


def hockey_stick(p, q, epsilon):
    return max(
        np.maximum(p - np.exp(epsilon) * q, 0).sum(), np.maximum(q - np.exp(epsilon) * p, 0).sum()
    )


def coins(n):
    return np.array([comb(n, j) for j in range(n + 1)]) / 2.0**n


def joint(*laws):
    """Of independent counts."""
    found = np.ones(1)
    for law in laws:
        found = np.multiply.outer(found, law)
    return found


@pytest.mark.parametrize(("N", "epsilon"), [(0, 1.0), (9, 0.0), (9, 0.3), (9, 1.0), (9, 2.5)])
def test_fair_coins_are_exact(N, epsilon):
    """Two coordinates of one arm, and of two arms, by their joint law: equal to 2e-5, not below;
    without coins all is told."""
    one, nought, coin = np.append(0, coins(N)), np.append(coins(N), 0), coins(N + 1)
    same = hockey_stick(joint(one, one), joint(nought, nought), epsilon)
    apart = hockey_stick(joint(one, one, coin, coin), joint(coin, coin, one, one), epsilon)
    assert same <= BitSpend.among_coins(N, bits=2).delta(epsilon) <= same + 2e-5
    both = BitSpend.among_coins(N, bits=2, arms=True).delta(epsilon)
    assert max(same, apart) <= both <= max(same, apart) + 2e-5


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.6, 1.5])
def test_flips_are_never_below_the_truth(epsilon):
    """Of all that the others may hold: the count of ones after everybody flipped, by enumeration.
    Her loss among told coins is at least that, and within a third where the others all agree."""
    p, others = 0.2, 4
    bit = {1: np.array([p, 1 - p]), 0: np.array([1 - p, p])}
    worst = 0.0
    for held in product((0, 1), repeat=others):
        count = {}
        for mine in (0, 1):
            law = bit[mine]
            for b in held:
                law = np.convolve(law, bit[b])
            count[mine] = law
        worst = max(worst, hockey_stick(count[1], count[0], epsilon))
    certified = BitSpend.flipped(p, others=others, bits=1).delta(epsilon)
    assert worst <= certified + 1e-15
    assert certified < worst + 0.12


def test_the_table():
    """The least numbers of coins of an independent program; one coin less is refused."""
    table = {(1, 0.5): 203, (10, 0.5): 1979, (50, 1.0): 2784, (1, 4.0): 17, (10, 4.0): 48}
    for (d, epsilon), N in table.items():
        assert least_coins(bits=d, arms=d == 10, epsilon=epsilon, delta=1e-5) == N
        assert BitSpend.among_coins(N - 1, bits=d).delta(epsilon) > 1e-5
        gaussian = delta_of(2 * np.sqrt(d / N), epsilon)  # what many coins tend to
        assert gaussian < 1e-5 if d == 1 else gaussian == pytest.approx(1e-5, rel=0.3)
    assert BitSpend.among_coins(500, bits=1).delta(0.3) == pytest.approx(1.15356e-5, rel=1e-5)
    assert BitSpend.among_coins(500, bits=2).delta(0.3) == pytest.approx(4.39171e-4, rel=1e-5)


def test_the_dishonest_do_not_count():
    """Flips certified for 300 others are not for half of them; with fewer the local guarantee is
    the promise, whatever others do. Golden, by an independent program: .24442, rounded up more."""
    p = least_flip(others=299, bits=10, arms=False, epsilon=1.0, delta=1e-5)
    assert 0.2435 < p <= 0.24442
    half = BitSpend.flipped(0.24442, others=149, bits=10)
    assert half.delta(1.0) == pytest.approx(7.9e-4, rel=0.01)
    assert half.pure == pytest.approx(11.3, abs=0.02)
    alone = least_flip(others=0, bits=3, arms=True, epsilon=1.0, delta=1e-5)
    assert BitSpend.flipped(alone, others=0, bits=3, arms=True).delta(1.0) <= 1e-5
    assert alone == pytest.approx(1 / (1 + np.exp(1 / 3)), rel=1e-3)


def test_what_is_not_composed_is_larger():
    """Losses of one arm compose; of several none is handed out, as either way may be worse."""
    spend = BitSpend.among_coins(558, bits=10)
    (loss,) = spend.losses(spend.step)
    assert loss.count == 10
    assert BitSpend.among_coins(558, bits=10, arms=True).losses(spend.step) is None
    assert spend.least_epsilon(1e-5) == pytest.approx(1.0, abs=2e-3)
    assert mu_of(1.0, 1e-5) == pytest.approx(2 * np.sqrt(10 / 558), rel=2e-3)
