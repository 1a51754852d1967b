"""From a privacy target to a mechanism: no agent computes a noise scale by hand."""

from math import inf
from typing import Literal, TypeAlias

from dpbandit.inputs import gaussian_target, one_of
from dpbandit.privacy.gdp import mu_of
from dpbandit.privacy.ledger import GaussianSpend
from dpbandit.privacy.noise import Gaussian
from dpbandit.privacy.prefix_sums import (
    BLTNoise,
    ExactNoise,
    PrefixSum,
    TreeNoise,
    leaves,
    mu_after,
)
from dpbandit.privacy.statistics import Statistic
from dpbandit.streams import Streams

Kind: TypeAlias = Literal["tree", "blt"]
_NOISES: dict[str, type[TreeNoise] | type[BLTNoise]] = {"tree": TreeNoise, "blt": BLTNoise}


def least_multiplier(
    kind: Kind, *, horizon: int, refresh_every: int, epsilon: float, delta: float
) -> float:
    """Least noise stddev / sensitivity for which all releases are (epsilon, delta)-DP.

    Exact: the column norm of the factorisation over mu*(epsilon, delta).

    >>> round(least_multiplier("tree", horizon=10_001, refresh_every=1, epsilon=1, delta=1e-4), 2)
    11.92
    """
    gaussian_target(epsilon, delta)
    one_of("prefix_sums", kind, _NOISES)
    return _NOISES[kind].column_norm(leaves(horizon, refresh_every)) / mu_of(epsilon, delta)


def gaussian_prefix_sum(
    kind: Kind,
    statistic: Statistic,
    streams: Streams,
    *,
    horizon: int,
    refresh_every: int,
    noise_multiplier: float,
) -> PrefixSum:
    """A running sum; each node (or z) has stddev `noise_multiplier` x sensitivity."""
    m = leaves(horizon, refresh_every)
    stddev = noise_multiplier * statistic.sensitivity
    norm = _NOISES[kind].column_norm(m)
    spend = GaussianSpend(mu_after(norm, noise_multiplier), f"{kind} sum, {m} Gaussian releases")
    noise: TreeNoise | BLTNoise
    if kind == "tree":
        node = Gaussian(stddev).sampler(streams, "tree noise", statistic.shape)
        noise = TreeNoise(node, stddev=stddev)
    else:
        noise = BLTNoise(streams.normals("blt noise", *statistic.shape), stddev=stddev)
    return PrefixSum(statistic, noise, spend, horizon=horizon, refresh_every=refresh_every)


def exact_prefix_sum(statistic: Statistic, *, horizon: int, refresh_every: int) -> PrefixSum:
    """A running sum without noise: its ledger says infinity."""
    m = leaves(horizon, refresh_every)
    spend = GaussianSpend(inf if m else 0.0, f"exact sum, {m} releases")
    return PrefixSum(statistic, ExactNoise(), spend, horizon=horizon, refresh_every=refresh_every)
