"""Bare mechanisms in two neighbouring worlds, many runs at once, for audits of known power."""

import numpy as np

from dpbandit.audit_bounds import Claim
from dpbandit.audit_scores import Columns
from dpbandit.auditing import audit_views
from dpbandit.privacy.gdp import mu_of
from dpbandit.privacy.prefix_sums import PrefixSum, TreeNoise
from dpbandit.privacy.sparse_vector import AboveThreshold, SegmentAboveThreshold
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.privacy.statistics import ClippedVectors

RUNS = 20_000
GDP = Claim(1.0, 1e-4, mu_of(1.0, 1e-4))
PURE = Claim(1.0, 0.0)


def columns(values, *, categorical=False):
    kinds = np.full(values.shape[1], categorical)
    return Columns(values, ("releases",) * values.shape[1], kinds)


def identical(world, seeds):
    """Noise that knows nothing: the correct mechanism of epsilon 0."""
    rng = np.random.default_rng((*seeds[0], world))
    return columns(rng.standard_normal((len(seeds), 3)))


def gaussian_tree(factor=1.0, horizon=16):
    """A tree's prefix sums with mu-GDP for (1, 1e-4), noise times `factor`; user 1 turns around."""
    leaves = horizon - 1
    stddev = factor * 2 * TreeNoise.column_norm(leaves) / GDP.mu

    def sample(world, seeds):
        rng, n = np.random.default_rng(seeds[0]), len(seeds)
        noise = TreeNoise(lambda: stddev * rng.standard_normal((n, 1)), stddev=stddev)
        spend = GaussianSpend(GDP.mu, "tree")
        sums = PrefixSum(ClippedVectors(1), noise, spend, horizon=horizon)
        hers, nothing = np.full((n, 1), 2.0 * world - 1), np.zeros((n, 1))
        released = [sums(nothing if t else hers) for t in range(leaves)]
        return columns(np.concatenate(released, axis=1))

    return sample


def laplace(factor=1.0):
    """One number with Laplace noise for pure epsilon 1."""

    def sample(world, seeds):
        rng = np.random.default_rng(seeds[0])
        return columns(world + factor * rng.laplace(size=(len(seeds), 1)))

    return sample


class Together:
    """Streams of n replicas from one generator: other numbers than `Streams`, and 20 times faster.

    The audit gives every chunk a seed of its own, and a whole part of the runs is one chunk.
    """

    def __init__(self, seeds):
        self._rng, self._n = np.random.default_rng(seeds[0]), len(seeds)

    def __len__(self):
        return self._n

    def exponentials(self, name, *shape):
        return lambda: self._rng.standard_exponential((self._n, *shape))

    def uniforms(self, name, *shape):
        return lambda: self._rng.random((self._n, *shape))


def svt(kind=AboveThreshold, *, queries=8, threshold=0.0, epsilon=1.0):
    """Sparse vector at pure `epsilon`; what is seen is when it fires.

    The user moves every query but the last from 0 to 1, the last one from 1 to 0.
    """

    def sample(world, seeds):
        n = len(seeds)
        door, fired = kind(Together(seeds), "svt", epsilon=epsilon, uses=queries), np.zeros(n)
        for i in range(1, queries + 1):
            query = np.full(n, float(world != (i == queries)))
            fired += i * door(query, np.full(n, threshold))
        return columns(fired[:, None], categorical=True)

    return sample


def segments(kind=SegmentAboveThreshold, *, before=12, hers=4, threshold=2.0, epsilon=1.0):
    """Sparse vector on segments; the user is first in the last one, with loss 0 or 1.

    What is seen: how often others' segments of one round fired, and how long hers lasted.
    """

    def sample(world, seeds):
        n = len(seeds)
        door = kind(Together(seeds), "svt", epsilon=epsilon, uses=before + hers)
        nothing, every, level = np.zeros(n), np.ones(n, dtype=bool), np.full(n, threshold)
        early = sum(door(nothing, level, every).astype(int) for _ in range(before))
        lasts, open_ = np.zeros(n), every
        for i in range(hers):
            open_ = open_ & ~door(np.full(n, float(world and i == 0)), level, every & (i == 0))
            lasts += open_
        return columns((early * 100 + lasts)[:, None], categorical=True)

    return sample


def audited(sample, claim, *, seed=0, runs=RUNS):
    return audit_views(sample, claim, runs=runs, seed=seed, chunk=10**6)
