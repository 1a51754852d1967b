"""From a privacy target to a mechanism: no agent computes a noise scale by hand.

A running sum is a process (how noises make up N_t) with a law (how a noise is drawn):

    process        gaussian   laplace, k-norm     one user is in
    blt            yes        no                  |c| in L2, one column of C
    square-root    yes        no                  the same, O(m) memory: for reference
    tree, padded   yes        yes                 bit_length(m) nodes
    honaker        yes        yes                 bit_length(m) nodes
    k-ary          yes        yes, the default    few levels
    window, -lazy  yes        yes                 log2(W) + 1 nodes, for window DP
    independent    yes        yes                 1

`noise_multiplier` is the scale of a node's (or z's) noise over the sensitivity in the norm of the
law: standard deviation over L2, Laplace scale over L1, K-norm scale over L2.
"""

from collections.abc import Callable
from functools import cache
from math import inf, prod, sqrt
from typing import Literal, TypeAlias

from dpbandit.base.inputs import BadInput, gaussian_target, one_of, privacy_target, whole
from dpbandit.base.streams import Streams
from dpbandit.privacy.accounting import zcdp
from dpbandit.privacy.accounting.gdp import mu_of
from dpbandit.privacy.accounting.inversion import most
from dpbandit.privacy.accounting.k_norm import KNormSpend, LaplaceSpend
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.accounting.spends import Expiring, GaussianSpend, Spend
from dpbandit.privacy.noise.laws import Gaussian, KNorm, Laplace
from dpbandit.privacy.noise.samplers import Sampler
from dpbandit.privacy.statistics.moments import Statistic
from dpbandit.privacy.sums.honaker import HonakerNoise
from dpbandit.privacy.sums.k_ary import KAryNoise
from dpbandit.privacy.sums.padded_tree import PaddedTreeNoise
from dpbandit.privacy.sums.prefix_sums import (
    BLTNoise,
    ExactNoise,
    PrefixNoise,
    PrefixSum,
    TreeNoise,
    leaves,
    mu_after,
)
from dpbandit.privacy.sums.square_root import SquareRootNoise
from dpbandit.privacy.sums.unknown_horizon import IndependentNoise
from dpbandit.privacy.sums.window_tree import Mode, WindowTreeNoise

Kind: TypeAlias = Literal["tree", "blt"]
Process: TypeAlias = Literal[
    "blt",
    "square-root",
    "tree",
    "padded",
    "honaker",
    "k-ary",
    "window",
    "window-lazy",
    "independent",
]
NoiseLaw: TypeAlias = Literal["gaussian", "laplace", "k-norm"]
_WINDOWS = ("window", "window-lazy")
_FACTORS = ("blt", "square-root")
_PROCESSES = (*_FACTORS, "tree", "padded", "honaker", "k-ary", *_WINDOWS, "independent")
_LAWS = ("gaussian", "laplace", "k-norm")
_CLOSE = 1 - 1e-6
"""How near a noise, or the epsilon it buys, is found."""
_LARGEST = 1e12
"""Of a noise, and of 1 / noise."""


def law_named(word: str) -> NoiseLaw:
    """The law of that name; "gamma", the length of K-norm noise, is another one for "k-norm"."""
    one_of("noise", word, (*_LAWS, "gamma"))
    law: NoiseLaw = "k-norm" if word == "gamma" else word  # type: ignore[assignment]
    return law


def least_noise(spend: Callable[[float], Spend], *, epsilon: float, delta: float) -> float:
    """The least noise whose certificate meets the target, by inversion; rounded up by 1e-6.

    Args:
        spend: noise > 0 -> the spend of a mechanism with that much; less noise costs more.
        epsilon: target > 0; infinity needs none.
        delta: target in [0, 1).
    """
    privacy_target(epsilon, delta)
    if epsilon == inf:
        return 0.0
    least = _simply_enough(spend, epsilon, delta)
    if delta == 0:
        return least

    def ledger(x: float) -> Ledger:
        return Ledger((spend(1 / x),))

    x = most(ledger, epsilon=epsilon, delta=delta, low=1 / least, high=_LARGEST, close=_CLOSE)
    return 1 / x


def _simply_enough(spend: Callable[[float], Spend], epsilon: float, delta: float) -> float:
    """The least noise that is enough by pure DP or by zCDP, which cost nothing to ask."""

    def enough(noise: float) -> bool:
        made = spend(noise)
        return made.pure <= epsilon or (delta > 0 and zcdp.delta_of(made.rho, epsilon) <= delta)

    low, high = 1 / _LARGEST, _LARGEST
    if not enough(high):
        raise BadInput(f"Expected epsilon={epsilon!r} at delta={delta!r} to be within reach.")
    while low < _CLOSE * high:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def least_multiplier(
    process: Process,
    *,
    horizon: int,
    refresh_every: int,
    epsilon: float,
    delta: float,
    law: NoiseLaw = "gaussian",
    dim: int = 1,
    window: int | None = None,
) -> float:
    """The least `noise_multiplier` for which all releases are (epsilon, delta)-DP.

    Gaussian: exact, column norm over mu*. Laplace and K-norm: the plain sum at delta = 0, else by
    inversion of their loss distribution; `dim` is the number of coordinates a K-norm covers.

    >>> round(least_multiplier("tree", horizon=10_001, refresh_every=1, epsilon=1, delta=1e-4), 2)
    11.92
    """
    m = leaves(horizon, refresh_every)
    _check(process, law, window)
    if law == "gaussian":
        gaussian_target(epsilon, delta)
        return _column_norm(process, m, window) / mu_of(epsilon, delta)
    privacy_target(epsilon, delta)
    count = _nodes(process, m, window)
    if count == 0 or epsilon == inf:
        return 0.0
    if delta == 0:
        return count / epsilon * (1 + 1e-12)
    return _least_pure_multiplier(law, count, dim, epsilon, delta)


@cache
def _least_pure_multiplier(
    law: NoiseLaw, count: int, dim: int, epsilon: float, delta: float
) -> float:
    return least_noise(lambda x: _spend(law, x, count, dim, ""), epsilon=epsilon, delta=delta)


def noisy_prefix_sum(
    process: Process,
    statistic: Statistic,
    streams: Streams,
    *,
    horizon: int,
    refresh_every: int,
    noise_multiplier: float,
    law: NoiseLaw = "gaussian",
    window: int | None = None,
) -> PrefixSum:
    """A running sum of `statistic` with the process and the law of the module's table.

    `window` counts releases and belongs to the window process: its spend is `Expiring`, and a
    ledger must say so. The L1 sensitivity is sqrt(coordinates) x the L2 one.
    """
    _check(process, law, window)
    m, shape = leaves(horizon, refresh_every), statistic.shape
    size = prod(shape)
    name = f"{process} noise"
    note = f"{process} sum, {m} {law} releases"
    spend: Spend
    if law == "gaussian":
        mu = mu_after(_column_norm(process, m, window), noise_multiplier)
        spend = GaussianSpend(mu, note.replace("gaussian", "Gaussian"))
    else:
        spend = _spend(law, noise_multiplier, _nodes(process, m, window), size, note)
    if window is not None:
        spend = Expiring(spend, window * refresh_every)
    scale = noise_multiplier * statistic.sensitivity
    noise: PrefixNoise
    if process == "blt":
        noise = BLTNoise(streams.normals(name, *shape), stddev=scale)
    elif process == "square-root":
        noise = SquareRootNoise(streams.normals(name, *shape), stddev=scale, leaves=m)
    else:
        made: Gaussian | Laplace | KNorm = Gaussian(scale)
        if law == "laplace":
            made = Laplace(scale * sqrt(size))
        elif law == "k-norm":
            made = KNorm(scale)
        node = made.sampler(streams, name, shape)
        noise = _noise(process, node, sqrt(made.variance(size)), m, window)
    return PrefixSum(statistic, noise, spend, horizon=horizon, refresh_every=refresh_every)


def exact_prefix_sum(statistic: Statistic, *, horizon: int, refresh_every: int) -> PrefixSum:
    """A running sum without noise: its ledger says infinity."""
    m = leaves(horizon, refresh_every)
    spend = GaussianSpend(inf if m else 0.0, f"exact sum, {m} releases")
    return PrefixSum(statistic, ExactNoise(), spend, horizon=horizon, refresh_every=refresh_every)


def _spend(law: NoiseLaw, noise_multiplier: float, count: int, dim: int, note: str) -> Spend:
    ratio = 1 / noise_multiplier if noise_multiplier else inf
    if law == "laplace":
        return LaplaceSpend(ratio, count=count, note=note)
    return KNormSpend(dim, ratio, count=count, note=note)


def _noise(
    process: Process, node: Sampler, stddev: float, m: int, window: int | None
) -> PrefixNoise:
    if process == "tree":
        return TreeNoise(node, stddev=stddev)
    if process == "padded":
        return PaddedTreeNoise(node, stddev=stddev, leaves=m)
    if process == "honaker":
        return HonakerNoise(node, stddev=stddev, leaves=m)
    if process == "k-ary":
        return KAryNoise(node, stddev=stddev, leaves=m)
    if process in _WINDOWS:
        mode: Mode = "exact" if process == "window" else "lazy"
        return WindowTreeNoise(node, stddev=stddev, window=window or 1, mode=mode, leaves=m)
    return IndependentNoise(node, stddev=stddev)


def _nodes(process: Process, m: int, window: int | None) -> int:
    """How many noises one user touches."""
    if process == "k-ary":
        return KAryNoise.nodes_per_leaf(m)
    if process in _WINDOWS:
        return WindowTreeNoise.nodes_per_leaf(window or 1, m)
    if process == "independent":
        return int(m > 0)
    return int(m).bit_length()  # NumPy's integers may have no such method


def _column_norm(process: Process, m: int, window: int | None) -> float:
    if process == "square-root":
        return SquareRootNoise.column_norm(m)
    return BLTNoise.column_norm(m) if process == "blt" else sqrt(_nodes(process, m, window))


def _check(process: Process, law: NoiseLaw, window: int | None) -> None:
    one_of("prefix_sums", process, _PROCESSES)
    one_of("law", law, _LAWS)
    if process in _FACTORS and law != "gaussian":
        what = "a BLT" if process == "blt" else "a square root"
        raise BadInput(f"Expected law={law!r} to be gaussian for {what}.")
    if process in _WINDOWS:
        whole("window", window, 1)
    elif window is not None:
        raise BadInput(f"Expected window={window!r} only with the window process.")
