"""What each mechanism may be told: every datum, moved into its public bounds beforehand."""

from functools import singledispatch
from typing import Any

import numpy as np

from dpbandit.agents.contextual.printed_trees import NeighbourTree
from dpbandit.agents.contextual.public_contexts import EpisodeMoments
from dpbandit.agents.contextual.refits import Refits
from dpbandit.agents.convex.descent import NoisyDescent
from dpbandit.agents.experts.ball import BallDraws
from dpbandit.agents.experts.trees_and_potentials import PotentialDraws
from dpbandit.agents.streams.gradient_descent import Block
from dpbandit.base.arrays import clip_norm, clip_range
from dpbandit.privacy.aggregated import BitSum
from dpbandit.privacy.batches import CountedSums, RestartingTrees
from dpbandit.privacy.choices import OneShotTopK
from dpbandit.privacy.gradients import RecursiveLossGradients
from dpbandit.privacy.messages import LocalDirections, LocalVectors
from dpbandit.privacy.peeling import NoisyHardThresholding
from dpbandit.privacy.sparse_vector import RedrawBit, SegmentAboveThreshold
from dpbandit.privacy.vertices import NoisyVertex
from dpbandit.testing.expectations import expect
from dpbandit.testing.noise_laws import SUMS


@singledispatch
def admitted(mechanism: Any, *datum: Any) -> tuple[Any, ...]:
    """The same datum, but within bounds; what is no number is a public constant.

    A mechanism of yours that releases no sum is made known by `admitted.register`, a decorator of a
    function like this one.
    """
    name = type(mechanism).__name__
    expect(
        isinstance(mechanism, SUMS),
        f"Expected admitted.register to say what a {name} may be told.",
    )
    return datum  # all that enters is its query, of which `noises` takes account


@admitted.register(NoisyDescent)
@admitted.register(Block)
@admitted.register(BallDraws)
def _(mechanism: Any, z: Any, *public: Any) -> tuple[Any, ...]:
    return mechanism._loss.admissible(z), *public


@admitted.register(OneShotTopK)
@admitted.register(PotentialDraws)
@admitted.register(RestartingTrees)
@admitted.register(SegmentAboveThreshold)
@admitted.register(RedrawBit)
def _(mechanism: Any, losses: Any, *public: Any) -> tuple[Any, ...]:
    return clip_range(losses, 0.0, 1.0), *public


@admitted.register
def _(mechanism: CountedSums, value: Any, cell: Any, due: Any) -> tuple[Any, ...]:
    shares = mechanism._shares
    return clip_range(value, shares.low, shares.high), cell, due


@admitted.register
def _(mechanism: NoisyHardThresholding, context: Any, action: Any, reward: Any) -> tuple[Any, ...]:
    rows = mechanism._spec
    x = clip_norm(context, rows.norm_bound).clip(-rows.entry_bound, rows.entry_bound)
    return x, action, clip_range(reward, rows.reward_low, rows.reward_high)


@admitted.register
def _(mechanism: BitSum, x: Any, action: Any, reward: Any) -> tuple[Any, ...]:
    known = np.isfinite(x).all(axis=-1) & np.isfinite(reward)
    signs = np.sign(np.where(known[:, None], x, 0.0))
    return signs, action, np.where(known, reward, mechanism._statistic.centre)


@admitted.register(LocalVectors)
@admitted.register(LocalDirections)
def _(mechanism: Any, g: Any) -> tuple[Any, ...]:
    return (clip_norm(g, 1.0),)


@admitted.register
def _(mechanism: Refits, x: Any, y: Any, *public: Any) -> tuple[Any, ...]:
    return clip_norm(x, 1.0), clip_range(y, 0.0, 1.0), *public


@admitted.register
def _(mechanism: EpisodeMoments, x: Any, r: Any, ends: Any) -> tuple[Any, ...]:
    C, B = mechanism._bounds
    return clip_norm(x, C), clip_range(r, -B, B), ends


@admitted.register
def _(mechanism: NeighbourTree, x: Any, warm: Any) -> tuple[Any, ...]:
    return clip_norm(x, 1.0), warm


@admitted.register
def _(mechanism: NoisyVertex, *datum: Any) -> tuple[Any, ...]:
    *public, user = datum
    gradients: Any = mechanism._gradients
    if isinstance(gradients, RecursiveLossGradients):
        return *public, gradients.loss.admissible(user)
    *public, context, action = public
    features = np.where(np.isfinite(context), context, 0.0)
    features = features.clip(-gradients.context_bound, gradients.context_bound)
    reward = clip_range(user, gradients.reward_low, gradients.reward_high)
    return *public, features, action, reward
