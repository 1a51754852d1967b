"""What the first release of a sum adds to it, computed anew from what its ledger pays."""

from math import prod
from typing import Any

from dpbandit.privacy.aggregated import AggregatedSum
from dpbandit.privacy.batches import BatchSum, LocalValues
from dpbandit.privacy.factors import Staggered
from dpbandit.privacy.fading import FadingSum, PersonSum, column_norm
from dpbandit.privacy.generalised import GeneralisedGaussian, GeneralisedGaussianSpend
from dpbandit.privacy.messages import LocalStatistic
from dpbandit.privacy.noise import KNorm, Laplace
from dpbandit.privacy.prefix_sums import BLT, Padded, PrefixSum
from dpbandit.privacy.pure import KNormSpend, LaplaceSpend, PureSpend
from dpbandit.privacy.wishart import WishartSpend
from dpbandit.testing.expectations import expect

SUMS = (PrefixSum, FadingSum, PersonSum, AggregatedSum, BatchSum, LocalStatistic, LocalValues)
"""Mechanisms that release a sum with noise added."""
HEAVY = (LaplaceSpend, KNormSpend, PureSpend)
"""Their noise has heavier tails than a normal."""


def first_stddev(sums: Any) -> float:
    """Of the first release of one of `SUMS`, in units: what its spend promises, computed anew."""
    spend, S = getattr(sums.spend, "part", sums.spend), sums.sensitivity
    if isinstance(sums, PersonSum):
        return float(S * sums.person_norm / spend.mu / sums.honest**0.5)
    if isinstance(sums, AggregatedSum):
        return float(S / spend.mu / sums.honest**0.5)
    if isinstance(sums, FadingSum):
        return float(S * column_norm(len(sums._ends), sums.fade) / spend.mu)
    nodes, drawn = nodes_of(sums)
    paid = getattr(spend, "count", getattr(spend, "nodes", nodes))
    expect(paid == nodes, f"Expected {spend.note!r} to pay for {nodes} nodes, got {paid}.")
    k = prod(sums._statistic.shape) if isinstance(sums, PrefixSum) else 1
    if isinstance(spend, GeneralisedGaussianSpend):
        return (drawn * GeneralisedGaussian(S / spend.ratio, spend.r).variance(spend.dim)) ** 0.5
    if isinstance(spend, HEAVY):
        l1 = getattr(getattr(sums, "_statistic", None), "l1_sensitivity", S * k**0.5)
        law = Laplace(l1 / S) if "laplace" in spend.note else KNorm(1.0)
        return S / (spend.pure / nodes) * (drawn * law.variance(k)) ** 0.5
    if isinstance(spend, WishartSpend):
        rows = sums._statistic
        L2 = rows.context_bound**2 + rows.reward_bound**2
        return (2 * spend.degrees) ** 0.5 * L2 / rows.context_bound**2
    return S * (drawn * nodes) ** 0.5 / spend.mu


def nodes_of(sums: Any) -> tuple[float, int]:
    """The squared norm of what a user is in, in noises, and how many the first release carries."""
    if not isinstance(sums, PrefixSum):
        return 1, 1
    noise: Any = sums._noise
    leaves = sums.leaves
    if isinstance(noise, Staggered):
        others = sums._statistic.shape[0] - 1
        return BLT().column_norm(leaves - others * noise.turns) ** 2, 1
    norm = noise.column_norm(leaves) ** 2
    nodes = round(norm) if isinstance(norm, float) and abs(norm - round(norm)) < 1e-9 else norm
    return nodes, nodes if isinstance(noise, Padded) else 1
