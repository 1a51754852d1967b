"""Sums that counts release: their noise, and privacy by counting transcripts."""

from itertools import product
from math import exp, inf, log

import numpy as np
import pytest

from dpbandit.base.random_streams import Paced, Streams
from dpbandit.privacy.batches import CountedSums
from dpbandit.privacy.curves import mu_of

ALWAYS, ONE = np.array([[True]]), np.array([0])


def made(R=1, K=1, **settings):
    return CountedSums(Streams(range(R)), K, **{"low": 0, "high": 1, "uses": 10**6, **settings})


@pytest.mark.parametrize("delta", [1e-5, 0.3])
def test_noise_has_the_promised_size(delta):
    """Statistical: 20 releases of 1,000 replicas, of three cells, of which two are due. Mean
    square against what the spend pays for; false alarm 1e-6 (5 errors), 5 % off in scale is caught
    (asserted)."""
    R, epsilon = 1000, 0.5
    sums = made(R, 3, epsilon=epsilon, delta=delta)
    due = np.tile([True, False, True], (R, 1))
    scale = 2**0.5 / epsilon if delta < 0.1 else 1 / mu_of(epsilon, delta)
    spent, target = (sums.spend.pure, epsilon) if delta < 0.1 else (sums.spend.mu, 1 / scale)
    assert target * (1 - 1e-11) < spent <= target
    releases = [sums(np.ones(R), np.zeros(R, np.int64), due) - [1, 0, 0] for _ in range(20)]
    noise = np.concatenate(releases)[:, [0, 2]] / scale
    error = 5 * np.square(noise).std() / noise.size**0.5
    assert abs(np.square(noise).mean() - 1) < error < 0.09
    assert abs(np.corrcoef(noise.T)[0, 1]) < 5 / len(noise) ** 0.5


def test_sums_are_emptied_and_clipped():
    """Golden, by hand, without noise: shares of [-1, 3], NaN as -1, cells apart, a block."""
    sums = made(2, 2, low=-1, high=3, epsilon=inf)
    none = np.zeros((2, 2), bool)
    first = np.array([[True, False], [False, False]])
    assert sums(np.array([1.0, 9.0]), np.array([0, 1]), none) is None
    release = sums(np.array([np.nan, 3.0]), np.array([0, 1]), first)
    np.testing.assert_array_equal(release, [[0.5, 0], [0, 0]])
    counts = np.array([[2.0, 0.0], [0.0, 3.0]])
    release = sums(np.array([[1.5, 0.0], [0.0, 7.0]]), counts, ~none)
    np.testing.assert_array_equal(release, [[1.5, 0], [0, 5]])  # 3 rounds bring 3 at most


def test_replicas_take_noise_at_their_own_pace():
    """Whoever releases more often shifts nobody else's noise: six replicas equal lone ones."""
    here = np.random.default_rng(1).random((60, 6)) < np.linspace(0.1, 0.9, 6)
    together = Paced(Streams(range(6)).normals("noise", 2))
    found = np.array([together(row) for row in here])
    for r in range(6):
        alone = Paced(Streams([r]).normals("noise", 2))
        np.testing.assert_array_equal(found[:, [r]], [alone(row[[r]]) for row in here])


EPSILON = 0.6
RATE = exp(-EPSILON)


def transcripts(rewards, policy, rounds):
    """Law of all releases over the integers, with geometric noise of ratio e^-EPSILON in place of
    Laplace noise, in a world where a round's reward is known: {transcript: probability}.

    `policy(counts, releases, exact)` says which of two arms is played and whether it is released.
    Noise beyond 2 is cut off, and probabilities are left as they are.
    """
    states = {((), (0, 0), (0, 0)): 1.0}
    for t in range(rounds):
        after = {}
        for (releases, counts, exact), mass in states.items():
            arm, due = policy(counts, releases, exact)
            n = tuple(c + (a == arm) for a, c in enumerate(counts))
            s = tuple(x + rewards[t][arm] * (a == arm) for a, x in enumerate(exact))
            arm, due = policy(n, releases, s, arm)
            if not due:
                key = releases, n, s
                after[key] = after.get(key, 0.0) + mass
                continue
            n = tuple(c * (a != arm) for a, c in enumerate(n))
            total, s = s[arm], tuple(x * (a != arm) for a, x in enumerate(s))
            for z in range(-3, 4):
                key = (*releases, (t, arm, total + z)), n, s
                after[key] = after.get(key, 0.0) + mass * (1 - RATE) / (1 + RATE) * RATE ** abs(z)
        states = after
    law = {}
    for (releases, _, _), mass in states.items():
        law[releases] = law.get(releases, 0.0) + mass
    return law


def by_counts(counts, releases, exact, arm=None):
    """The arm of the larger released total; a batch grows with its releases."""
    totals = [sum(s for _, a, s in releases if a == b) for b in (0, 1)]
    arm = int(totals[1] > totals[0]) if arm is None else arm
    return arm, counts[arm] >= 1 + sum(a == arm for _, a, _ in releases)


def by_an_exact_sum(counts, releases, exact, arm=None):
    """The same arm, but a batch ends when its exact sum is 1: what must not be."""
    arm, _ = by_counts(counts, releases, exact, arm)
    return arm, exact[arm] >= 1 or counts[arm] >= 3


def worst(policy, rounds=4):
    """The largest log ratio over neighbouring worlds, and how many transcripts only one has."""
    largest, alone, looked = 0.0, 0, 0
    worlds = list(product([(0, 0), (1, 0), (0, 1), (1, 1)], repeat=rounds))
    for world in worlds[:: max(1, len(worlds) // 24)]:
        law = transcripts(world, policy, rounds)
        for t in range(rounds):
            swapped = (*world[:t], tuple(1 - x for x in world[t]), *world[t + 1 :])
            other = transcripts(swapped, policy, rounds)
            inner = {k for k in law if all(abs(s) <= 2 for _, _, s in k)}
            for key in inner:
                looked += 1
                if key not in other:
                    alone += 1
                else:
                    largest = max(largest, abs(log(law[key] / other[key])))
    assert looked > 1000
    return largest, alone


def test_all_releases_together_are_private_by_enumeration():
    """Exact: with rules that look at counts and releases the worst log ratio over all transcripts
    is epsilon itself, however many releases there are and however adaptive."""
    largest, _ = worst(by_counts)
    assert largest == pytest.approx(EPSILON, abs=1e-9)


def test_a_batch_that_an_exact_sum_ends_is_not():
    """Power: when that decides the end, some transcripts are possible in one world only."""
    assert worst(by_an_exact_sum)[1] > 100
