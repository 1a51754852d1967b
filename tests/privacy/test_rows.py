"""Rows of one release (arms, blocks, candidates, coordinates) have independent noise.

Every mechanism is fed with users who say nothing. What it releases is then noise alone: values,
which must be uncorrelated between rows, and choices, which must hit every candidate equally often,
in one row whatever they are in another. Noisy sums: see `tests/agents/test_noise.py`.
"""

import numpy as np
import pytest
from scipy.stats import chi2

from dpbandit.agents.contextual.epochs import EpisodeMoments
from dpbandit.agents.contextual.private_glm import NewtonRefits
from dpbandit.agents.convex.descent import NoisyDescent
from dpbandit.agents.experts.ball import BallDraws
from dpbandit.agents.experts.trees_and_potentials import PotentialDraws
from dpbandit.agents.streams.gradient_descent import Phase, Snowball
from dpbandit.agents.streams.sampled_descent import MirrorPhase, Sampled
from dpbandit.base import Draws, Streams
from dpbandit.domains import Ball
from dpbandit.losses import Linear
from dpbandit.privacy import (
    ClippedVectors,
    FilteredSum,
    NoisyHardThresholding,
    NoisyVertex,
    OneShotTopK,
    SegmentAboveThreshold,
)
from dpbandit.privacy.batches import CountedSums, RestartingTrees
from dpbandit.privacy.bits import BitSum, SignBits
from dpbandit.privacy.choices import (
    EpochSelection,
    ExponentialMechanism,
    GivenScores,
    NoisyTotal,
    RemainingTopK,
    ReportNoisyMax,
)
from dpbandit.privacy.gradients import RecursiveGradients
from dpbandit.privacy.messages import LocalDirections, LocalVectors
from dpbandit.privacy.peeling import GumbelPeeling, LaplacePeeling, SparseRows
from dpbandit.privacy.sparse_vector import AboveThreshold, RedrawBit
from dpbandit.specs import LINKS
from tests.broken.shared_draws import one_for_all
from tests.noise_laws import TESTED

R, N = 600, 4
FLAT = Linear(Ball(3, 1e4))
YES, NO, NOTHING = np.ones(R, dtype=bool), np.zeros(R, dtype=bool), np.zeros((R, N))
SAMPLED = {"steps": 2, "sigma": 5.0, "eta": 0.7}
ALONE = {AboveThreshold, SegmentAboveThreshold, RedrawBit, NoisyTotal, BallDraws}
ALONE |= {LocalDirections, LocalVectors, PotentialDraws}
"""They release one number, or one draw."""


def hits(choice, candidates=N):
    """(R,) or (R, rows) -> (R, rows, candidates), 1 for the candidate that was chosen."""
    return 1.0 * (choice.reshape(R, -1, 1) == np.arange(candidates))


def selected(kind, **settings):
    """The first pick out of N."""

    def released(streams):
        made = kind(GivenScores(N), streams, "pick", epsilon=1.0, uses=1, **settings)
        return None, hits(made(NOTHING).reshape(R, -1)[:, 0])

    return released


def vertices(noise):
    def released(streams):
        gradients = RecursiveGradients(n_actions=3, dim=2, mean=lambda z: z, residual_clip=1.0)
        how = {"noise": noise, "budgets": np.ones(1), "horizon": 1}
        zeros, steps = np.zeros((R, 3, 2)), np.ones(3, dtype=int)
        users = zeros[:, 0], NO.astype(int), np.zeros(R)
        return None, hits(NoisyVertex(gradients, streams, "v", **how)(zeros, zeros, steps, *users))

    return released


def thresholded(peeling):
    def released(streams):
        bounds = {"entry_bound": 1.0, "norm_bound": 1.0, "residual_clip": 1.0}
        rows = SparseRows(blocks=3, dim=N, reward_low=0.0, reward_high=1.0, **bounds)
        how = {"episodes": (1,), "uses": 1, "sparsity": 1, "joint": False, "iterations": 1}
        how |= {"step_size": 1.0, "radius": 1e9}
        mechanism = NoisyHardThresholding(rows, peeling, streams, **how)
        beta = mechanism(NOTHING, NO.astype(int), np.zeros(R))
        return beta.sum(axis=2, keepdims=True), 1.0 * (beta != 0)

    return released


def descended(kind, **how):
    def released(streams):
        block = kind(FLAT, streams, users=1, **how)
        block.begin(np.zeros((R, 3)))
        return block(np.zeros((R, 3)))[:, :, None], None

    return released


def noisily_descended(streams):
    mechanism = NoisyDescent(FLAT, streams, regulariser=1.0, noise_multiplier=1.0, horizon=2)
    return mechanism(np.zeros((R, 3)))[:, :, None], None


def restarted(streams):
    trees = RestartingTrees(streams, "t", width=3, law="laplace", scale=1.0, horizon=2)
    return trees(NOTHING, np.tile([0, 1, 2], (R, 1)), YES)[:, :, None], None


def filtered(streams):
    sums = FilteredSum(ClippedVectors(3, 2.0), streams, "sum", mu=1.0, horizon=1)
    sums.ask(np.full(R, 0.5))
    return sums(np.zeros((R, 3)))[:, :, None], None


def counted(streams):
    sums = CountedSums(streams, 3, low=0, high=1, epsilon=1.0, uses=1)
    return sums(np.zeros(R), np.zeros(R, dtype=int), np.ones((R, 3), dtype=bool))[..., None], None


def of_an_epoch(streams):
    pick = EpochSelection(N, streams, "pick", epsilon=1.0, draws=1, uses=1)
    return None, hits(pick(NOTHING, YES, np.zeros(R), NO))


def of_the_rest(streams):
    pick = RemainingTopK(N, streams, "pick", k=2, epsilon=1.0, draws=1, uses=1)
    return None, hits(pick(NOTHING, YES, NOTHING > 0)[:, 0])


def refitted(streams):
    noise = np.array(streams.normals("noise", 2, 1, 3).take(1)[0])
    refits = NewtonRefits(LINKS["logistic"], noise, mu=1.0, uses=9, norm=1e6)
    user = np.zeros((R, 3)), np.zeros(R), YES, np.zeros((R, 3)), np.tile(np.eye(3), (R, 1, 1))
    return np.stack([refits(*user), refits(*user)], axis=1), None  # both from the same start


def of_episodes(streams):
    noise = np.array(streams.normals("noise", 2, 3).take(1)[0])
    sums = EpisodeMoments(noise, mu=1.0, uses=9, context_bound=1.0, reward_bound=1.0)
    first = sums(np.zeros((R, 3)), np.zeros(R), YES)
    return np.stack([first, sums(np.zeros((R, 3)), np.zeros(R), YES) - first], axis=1), None


def of_bits(streams):
    bits, target = SignBits(n_actions=3, dim=2), {"epsilon": 1.0, "delta": 1e-5}
    sums = BitSum(bits, streams, cover="coins", ends=[1], horizon=2, **target)
    return sums(np.zeros((R, 2)), np.zeros(R, dtype=int), np.zeros(R)), None


QUIET = [
    (NewtonRefits, refitted), (EpisodeMoments, of_episodes), (BitSum, of_bits),
    (OneShotTopK, selected(OneShotTopK, k=2)),
    (ExponentialMechanism, selected(ExponentialMechanism)),
    (ReportNoisyMax, selected(ReportNoisyMax)), (EpochSelection, of_an_epoch),
    (RemainingTopK, of_the_rest), (NoisyVertex, vertices("gumbel")),
    (NoisyVertex, vertices("laplace")),
    (NoisyHardThresholding, thresholded(GumbelPeeling(1.0, 1.0))),
    (NoisyHardThresholding, thresholded(LaplacePeeling(1.0))), (RestartingTrees, restarted),
    (CountedSums, counted), (FilteredSum, filtered), (NoisyDescent, noisily_descended),
    (Phase, descended(Phase, eta=0.7, mu=1.0)), (Snowball, descended(Snowball, mu=1.0)),
    (Sampled, descended(Sampled, **SAMPLED)),
    (MirrorPhase, descended(MirrorPhase, **SAMPLED, radius=99.0)),
]  # fmt: skip
"""Mechanisms -> releases of quiet users: values (R, rows, 1), hits (R, rows, candidates)."""


def test_every_mechanism_is_here():
    assert {kind for kind, _ in QUIET} | ALONE == set(TESTED)


def largest_error(values, chosen):
    """The correlation of two rows, in any feature, in its own standard errors."""
    features = np.concatenate([part for part in (values, chosen) if part is not None], axis=2)
    centred = features - features.mean(axis=0)
    errors = [0.0]
    for g in range(features.shape[1]):
        for h in range(g):
            one, two = centred[:, g], centred[:, h]
            errors.append(np.abs(one.T @ two / np.sqrt((one**2).T @ two**2)).max())
    return max(errors)


def least_p_value(chosen):
    """Chi-square, of the row whose candidates are hit most unequally."""
    if chosen is None:
        return 1.0
    counts = chosen.sum(axis=0)
    assert (counts.sum(axis=-1) == R).all()
    expected = R / counts.shape[-1]
    return chi2.sf(((counts - expected) ** 2 / expected).sum(axis=-1), counts.shape[-1] - 1).min()


@pytest.mark.parametrize("released", [r for _, r in QUIET], ids=[k for k, _ in QUIET])
def test_rows_and_candidates_do_not_share_their_noise(released, monkeypatch):
    """Statistical: no two rows correlate by 6 standard errors (false alarm 1e-7 a case), no
    candidate is hit too often or too seldom (1e-6). With one draw for all rows, or all candidates,
    either shows (asserted)."""
    found = released(Streams(range(R)))
    assert largest_error(*found) < 6
    assert least_p_value(found[1]) > 1e-6
    monkeypatch.setattr(Draws, "fill", one_for_all)
    shared = released(Streams(range(R)))
    assert largest_error(*shared) > 6 or least_p_value(shared[1]) < 1e-6
