"""Mechanisms that release no sum: each has a test that knows the law of what it releases."""

from dpbandit.agents.contextual.epochs import EpisodeMoments
from dpbandit.agents.contextual.private_glm import NewtonRefits
from dpbandit.agents.convex.descent import NoisyDescent
from dpbandit.agents.experts.ball import BallDraws
from dpbandit.agents.experts.trees_and_potentials import PotentialDraws
from dpbandit.agents.streams.gradient_descent import Phase, Snowball
from dpbandit.agents.streams.sampled_descent import MirrorPhase, Sampled
from dpbandit.privacy.batches import CountedSums, RestartingTrees
from dpbandit.privacy.bits import BitSum
from dpbandit.privacy.choices import (
    EpochSelection,
    ExponentialMechanism,
    NoisyTotal,
    OneShotTopK,
    RemainingTopK,
    ReportNoisyMax,
)
from dpbandit.privacy.filters import FilteredSum
from dpbandit.privacy.messages import LocalDirections, LocalVectors
from dpbandit.privacy.peeling import NoisyHardThresholding
from dpbandit.privacy.sparse_vector import AboveThreshold, RedrawBit, SegmentAboveThreshold
from dpbandit.privacy.vertices import NoisyVertex

_CHOICES, _SUMS = "tests/privacy/choices/test_", "tests/privacy/sums/test_"
_MESSAGES = "tests/privacy/messages/test_"
_EPOCHS = "tests/agents/contextual/test_epochs.py::"
_EXPERTS = "tests/agents/experts/test_"
_BLOCKS = "tests/agents/streams/test_descent.py::"
TESTED = {
    AboveThreshold: _CHOICES + "sparse_vector.py::test_above_threshold_has_the_promised_law",
    BallDraws: _EXPERTS + "ball.py::test_points_have_the_law_they_are_paid_for",
    BitSum: _MESSAGES + "messages.py::test_sums_are_as_noisy_as_they_pay_for",
    CountedSums: _SUMS + "batches.py::test_counted_noise_has_the_promised_size",
    EpisodeMoments: _EPOCHS + "test_episodes_are_as_noisy_as_they_pay_for",
    EpochSelection: _CHOICES + "selection.py::test_law_of_an_epoch",
    ExponentialMechanism: _CHOICES + "selection.py::test_law",
    FilteredSum: _SUMS + "filters.py::test_readings_are_as_noisy_as_they_pay_for",
    LocalDirections: _MESSAGES + "messages.py::test_messages_have_the_law_they_are_paid_for",
    LocalVectors: _MESSAGES + "messages.py::test_messages_are_as_noisy_as_they_pay_for",
    MirrorPhase: _BLOCKS + "test_noise_has_the_size_of_the_certificate",
    NewtonRefits: _EPOCHS + "test_refits_are_as_noisy_as_they_pay_for",
    NoisyDescent: "tests/agents/convex/test_descent.py::test_its_noise",
    NoisyHardThresholding: _CHOICES + "hard_thresholding.py::test_peeling_has_its_exact_law",
    NoisyTotal: _CHOICES + "selection.py::test_noisy_total",
    NoisyVertex: _CHOICES + "noisy_vertex.py::test_choices_are_as_noisy_as_the_ledger_says",
    OneShotTopK: _CHOICES + "selection.py::test_law",
    Phase: _BLOCKS + "test_noise_has_the_size_of_the_certificate",
    PotentialDraws: _EXPERTS + "trees_and_potentials.py::test_tests_and_draws_have_their_laws",
    RedrawBit: _EXPERTS + "multiplicative.py::test_bits_have_the_law_they_are_paid_for",
    RemainingTopK: _CHOICES
    + "selection.py::test_an_instalment_is_peeling_among_those_who_are_left",
    ReportNoisyMax: _CHOICES + "selection.py::test_law",
    RestartingTrees: _SUMS + "batches.py::test_restarted_noise_has_the_promised_size",
    SegmentAboveThreshold: _CHOICES + "sparse_vector.py::test_segments_have_the_promised_law",
    Sampled: _BLOCKS + "test_noise_has_the_size_of_the_certificate",
    Snowball: _BLOCKS + "test_noise_has_the_size_of_the_certificate",
}
"""By the id of that test."""
