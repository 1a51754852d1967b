"""What every mechanism adds to what it is fed: a law stated here, or a test that knows it."""

from math import prod

from dpbandit.agents.convex.pocp import NoisyDescent
from dpbandit.agents.experts.ball_draws import BallDraws
from dpbandit.agents.experts.potential_experts import PotentialDraws
from dpbandit.agents.streams.local_md import MirrorMechanism
from dpbandit.agents.streams.noisy_sgd import SGDMechanism
from dpbandit.agents.streams.phased_sgd import PhaseMechanism
from dpbandit.agents.streams.snowball_sgd import SnowballMechanism
from dpbandit.privacy.accounting.k_norm import KNormSpend, LaplaceSpend
from dpbandit.privacy.accounting.pure import PureSpend
from dpbandit.privacy.accounting.wishart import WishartSpend
from dpbandit.privacy.choices.epochs import EpochSelection
from dpbandit.privacy.choices.hard_thresholding import NoisyHardThresholding
from dpbandit.privacy.choices.noisy_total import NoisyTotal
from dpbandit.privacy.choices.noisy_vertex import NoisyVertex
from dpbandit.privacy.choices.redraw_bits import RedrawBit
from dpbandit.privacy.choices.remaining import RemainingTopK
from dpbandit.privacy.choices.selection import ExponentialMechanism, OneShotTopK, ReportNoisyMax
from dpbandit.privacy.choices.sparse_vector import AboveThreshold, SegmentAboveThreshold
from dpbandit.privacy.noise.generalised_gaussian import (
    GeneralisedGaussian,
    GeneralisedGaussianSpend,
)
from dpbandit.privacy.noise.laws import KNorm, Laplace
from dpbandit.privacy.sums.fading import FadingSum, column_norm
from dpbandit.privacy.sums.padded_tree import PaddedTreeNoise
from dpbandit.privacy.sums.prefix_sums import BLTNoise, PrefixSum
from dpbandit.privacy.sums.restarting_trees import RestartingTrees
from dpbandit.privacy.sums.staggered import StaggeredNoise
from dpbandit.privacy.sums.unknown_horizon import DoublingSum
from dpbandit.privacy.sums.window_tree import WindowTreeNoise

HEAVY = (LaplaceSpend, KNormSpend, PureSpend)
"""Their noise has heavier tails than a normal."""


def first_stddev(sums):
    """Of the first release of one of `SUMS`, in units: what its spend promises, computed anew."""
    spend, S = getattr(sums.spend, "part", sums.spend), sums.sensitivity
    if isinstance(sums, FadingSum):
        return S * column_norm(len(sums._ends), sums.fade) / spend.mu
    nodes, drawn = nodes_of(sums)
    assert getattr(spend, "count", getattr(spend, "nodes", nodes)) == nodes  # each is paid for
    k = prod(sums._statistic.shape) if isinstance(sums, PrefixSum) else 1
    if isinstance(spend, GeneralisedGaussianSpend):
        return (drawn * GeneralisedGaussian(S / spend.ratio, spend.r).variance(spend.dim)) ** 0.5
    if isinstance(spend, HEAVY):
        law = Laplace(k**0.5) if "laplace" in spend.note else KNorm(1.0)
        return S / (spend.pure / nodes) * (drawn * law.variance(k)) ** 0.5
    if isinstance(spend, WishartSpend):
        rows = sums._statistic
        L2 = rows.context_bound**2 + rows.reward_bound**2
        return (2 * spend.degrees) ** 0.5 * L2 / rows.context_bound**2
    return S * (drawn * nodes) ** 0.5 / spend.mu


def nodes_of(sums):
    """The squared norm of what a user is in, in noises, and how many the first release carries."""
    if not isinstance(sums, PrefixSum):
        return 1, 1
    noise, leaves = sums._noise, sums.leaves
    if isinstance(noise, StaggeredNoise):
        others = sums._statistic.shape[0] - 1
        return BLTNoise.column_norm(leaves - others * noise._turns) ** 2, 1
    if isinstance(noise, BLTNoise):
        return noise.column_norm(leaves) ** 2, 1
    settings = (noise._W, leaves) if isinstance(noise, WindowTreeNoise) else (leaves,)
    norm = type(noise).column_norm(*settings) ** 2
    nodes = round(norm) if isinstance(norm, float) and abs(norm - round(norm)) < 1e-9 else norm
    return nodes, nodes if isinstance(noise, PaddedTreeNoise) else 1


_CHOICES, _SUMS = "tests/privacy/choices/test_", "tests/privacy/sums/test_"
_EXPERTS, _BLOCKS = "tests/agents/experts/test_", "tests/agents/streams/test_blocks.py::"
TESTED = {
    AboveThreshold: _CHOICES + "sparse_vector.py::test_above_threshold_has_the_promised_law",
    BallDraws: _EXPERTS + "ball_sampling.py::test_points_have_the_law_they_are_paid_for",
    DoublingSum: _SUMS + "unknown_horizon.py::test_doubling_restarts_the_sum_and_the_noise",
    EpochSelection: _CHOICES + "epochs.py::test_law",
    ExponentialMechanism: _CHOICES + "selection.py::test_law",
    MirrorMechanism: _BLOCKS + "test_noise_has_the_size_of_the_certificate",
    NoisyDescent: "tests/agents/convex/test_pocp_and_pqftl.py::test_its_noise",
    NoisyHardThresholding: _CHOICES + "hard_thresholding.py::test_peeling_has_its_exact_law",
    NoisyTotal: _CHOICES + "epochs.py::test_noisy_total",
    NoisyVertex: _CHOICES + "noisy_vertex.py::test_choices_are_as_noisy_as_the_ledger_says",
    OneShotTopK: _CHOICES + "selection.py::test_law",
    PhaseMechanism: _BLOCKS + "test_noise_has_the_size_of_the_certificate",
    PotentialDraws: _EXPERTS + "potential_experts.py::test_tests_and_draws_have_their_laws",
    RedrawBit: _EXPERTS + "shrinking_dartboard.py::test_bits_have_the_law_they_are_paid_for",
    RemainingTopK: _CHOICES
    + "remaining.py::test_an_instalment_is_peeling_among_those_who_are_left",
    ReportNoisyMax: _CHOICES + "selection.py::test_law",
    RestartingTrees: _SUMS + "restarting_trees.py::test_noise_has_the_promised_size",
    SegmentAboveThreshold: _CHOICES + "sparse_vector.py::test_segments_have_the_promised_law",
    SGDMechanism: _BLOCKS + "test_noise_has_the_size_of_the_certificate",
    SnowballMechanism: _BLOCKS + "test_noise_has_the_size_of_the_certificate",
}
"""All others: each has a test that knows the law of what it releases, by its id."""
