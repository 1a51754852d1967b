"""Checks of all prefix-sum noise processes; `make(node, stddev, leaves)` builds one."""

from itertools import count
from math import sin

import numpy as np

from dpbandit.base import Streams
from dpbandit.privacy import ClippedVectors, Gaussian, GaussianSpend, PrefixSum
from dpbandit.privacy.prefix_sums import leaves

WIDE = ClippedVectors(dim=2, bound=1e9)


def script(draws):
    """A node sampler that yields the given noises, the first one first."""
    source = iter(draws)
    return lambda: next(source)


def streamed(make, m, draws):
    """B of the first m releases, (m, draws): node noise number i is the i-th unit vector."""
    noise = make(script(np.eye(draws)), 1.0, m)
    return np.array([noise() for _ in range(m)])


def dense(prefixes, m):
    """B (m, n) and C (n, m) written down from the definition.

    `prefixes[t - 1]` is a dict {(start, size): coefficient in N_t} in the order in which nodes
    are first used; node (start, size) holds the leaves start + 1 .. start + size.
    """
    index = {}
    for used in prefixes:
        for node in used:
            index.setdefault(node, len(index))
    B, C = np.zeros((m, len(index))), np.zeros((len(index), m))
    for t, used in enumerate(prefixes):
        for node, coefficient in used.items():
            B[t, index[node]] = coefficient
    for (start, size), i in index.items():
        C[i, start : start + size] = 1
    return B, C


def prefix_matrix(m):
    """A: row t adds up the leaves 1..t."""
    return np.tril(np.ones((m, m)))


def check_noiseless(make, most=200):
    """Oracle: without noise releases are the cumsum, and nothing is released after the m leaves."""
    users = np.random.default_rng(0).integers(-9, 9, (most + 1, 3, 2)).astype(float)
    sums = users.cumsum(axis=0)
    edges = (*range(1, 18), 26, 27, 28, 31, 32, 33, 63, 64, 65, 81, 129)  # of powers of 2, 3 and 4
    for m in {min(m, most) for m in edges}:
        noise = make(lambda: np.zeros((3, 2)), 0.0, m)
        mechanism = PrefixSum(WIDE, noise, GaussianSpend(0, ""), horizon=m + 1)
        for t in range(m):
            assert (mechanism(users[t]) == sums[t]).all()
        assert mechanism(users[m]) is None
        assert mechanism.stddev == 0


def check_batches(make):
    """Oracle: a release after every 4 of 27 rounds makes 6 leaves; the process never ticks
    else."""
    ticks, rounds = count(1), np.ones((1, 2))
    noise = make(lambda: np.zeros((1, 2)), 1.0, leaves(27, 4))
    called = []
    mechanism = PrefixSum(
        WIDE,
        lambda: (called.append(next(ticks)), noise())[1],
        GaussianSpend(0, ""),
        horizon=27,
        refresh_every=4,
    )
    for t in range(1, 28):
        release = mechanism(rounds)
        assert (release is not None) == (t % 4 == 0 and t <= 24)
        assert len(called) == min(t // 4, 6)


def check_company(make, m=70):
    """Oracle: six replicas equal groups of 2, 3 and 1 joined, bit for bit, over several blocks."""

    def noises(chosen):
        node = Gaussian(2.0).sampler(Streams([10 + i for i in chosen]), "node", (3,))
        noise = make(node, 2.0, m)
        return np.array([noise().copy() for _ in range(m)])

    groups = [noises(chosen) for chosen in ([0, 1], [2, 3, 4], [5])]
    assert (noises([0, 1, 2, 3, 4, 5]) == np.concatenate(groups, axis=1)).all()


def check_common(make, most=200):
    """Run the checks that every process has to pass."""
    check_noiseless(make, most)
    check_batches(make)
    check_company(make, min(most, 70))


def check_coupling(make, C, m):
    """Oracle, the privacy proof executed: users react to releases; user R moves by Delta, chosen
    after the releases before R; the node noises move by -C_R Delta. Returns, for every R, how far
    each release is from that of the other world, (m, m): a process hides R where that is 0."""
    z = np.random.default_rng(3).standard_normal(len(C))

    def run(z, changed=0):
        noise, exact, releases, moved = make(script(z), 1.0, m), 0.0, [0.0], 0.0
        for t in range(1, m + 1):
            x = sin(0.3 * releases[-1] + t)
            if t == changed:
                moved = 1.5 + sin(releases[-1])
                x += moved
            exact += x
            releases.append(exact + float(noise()))
        return np.array(releases[1:]), moved

    original, _ = run(z)
    gaps = []
    for user in range(1, m + 1):
        past = original[user - 2] if user > 1 else 0.0
        delta = 1.5 + sin(past)
        other, moved = run(z - C[:, user - 1] * delta, changed=user)
        gaps.append(np.abs(other - original))
        assert abs(moved - delta) < 1e-9  # Delta is what both worlds would choose
    return np.array(gaps)
