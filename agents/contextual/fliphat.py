"""FLIPHAT: sparse regression by private hard thresholding, in episodes that forget."""

from dataclasses import dataclass
from math import ceil, inf, log, sqrt
from typing import Literal

import numpy as np

from dpbandit.base import (
    MOST_ROUNDS,
    Floats,
    Ints,
    Streams,
    gaussian_target,
    inside,
    one_of,
    positive,
    whole,
)
from dpbandit.privacy import Ledger, NoisyHardThresholding, ledger_of
from dpbandit.privacy.peeling import Peeling, SparseRows, least_peeling, printed_peeling
from dpbandit.specs import BanditSpec, ContextualSpec, fits

_MOST_ITERATIONS = 10_000
"""Of hard thresholding, an episode: each is a release that has to be paid for"""


@dataclass(frozen=True, kw_only=True)
class FLIPHAT:
    """Greedy play on sparse estimates, each from the episode before and from nothing else.

    Chakraborty, Roy and Basu, "FLIPHAT: joint differential privacy for high dimensional sparse
    linear bandits", arXiv 2405.14038, 2024: ForgetfuL Iterative Private HArd Thresholding::

        episodes l = 0, 1, ... of lengths N_l = 2^l first_episode:
          1. in the first, arms take turns;  later, play argmax_a  x . beta_a
          2. at its end, beta from its N_l rounds alone, by `NoisyHardThresholding`:
             beta = 0;  M times:  a gradient step of least squares, rewards clipped,
                                  keep s coordinates by private peeling,
                                  project onto an l_1 ball
          3. forget the rounds

    Code:
        Step 1 is `FLIPHATAgent.act`, steps 2 and 3 are its `update`.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, with
        the epsilon of the certificate: a user is in one episode, and the whole run costs what one
        episode costs, M peelings of s picks and s values. Step 1 reads the current user's context
        and writes nothing. An episode that ends with the run, or is cut by it, is not used.

    Fields left None follow the calibration::

        field           "paper"                              "certified"
        peeling         Laplace, (epsilon / M, delta / M)    Gumbel picks, Gaussian values, least
                        each, the scale below                noise with certificate <= claim
        arms            joint, K s picks of K d coordinates  each arm, s picks of d coordinates
        iterations M    ceil(ln(n + 1)), longest episode n   2
        first_episode   1                                    ceil(horizon / 31), four estimates
        residual_clip   B + X radius, never binds            B / 10

    for rewards up to B and contexts with entries up to X. The printed Laplace scale is
    2 lam sqrt(3 s ln(M / delta)) M / epsilon, lam the movement of v under one user. These
    constants were *not checked against the paper's text*; the scale,
    its split over M, the doubling from 1 and M growing with ln n are in the authors' public code.

    Differs from the paper:
        1. lam is the movement (2 step_size / n) X (B + X radius) of v that follows from the clips;
           the public code has (step_size / n) (B + X radius) beside a gradient of twice the size, 4
           X times less.
        2. M is the same in all episodes, so that all cost the same.
        3. Contexts are clipped, whatever the environment sends.
        4. Every arm has its own ball.
        5. Disjoint arms are played through the joint feature map, with the row x in block a; the
           paper's arms share one parameter.
        6. "certified" only: exact composition.
        7. Gumbel noise in one shot, and Gaussian values.
        8. every arm is peeled by itself: a user moves one arm by lam, or two by half, and pays for
           s picks instead of K s.
        9. residuals are clipped, which matters most, because the noise is in proportion to the
           clip.
        10. the first episode is longer.

    Defaults were chosen on four other problems than the reference cases: K = 2 to 5, d = 30 to 60,
    3 or 5 non-zero coordinates of Gaussian or equal size, noise 0.1 or 0.2; contexts uniform on a
    sphere or in a box, or autoregressive; epsilon 1, 10 and infinity.

    Memory: the rounds of the longest episode that is used, R x n x d numbers.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=50, horizon=10_000)
    >>> round(certify(FLIPHAT(epsilon=1.0, delta=1e-4), spec).epsilon, 6)
    1.0
    >>> round(certify(FLIPHAT(epsilon=1.0, delta=1e-4, calibration="paper"), spec).epsilon, 2)
    0.17
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""
    sparsity: int = 5
    """s, coordinates of each arm's parameter that are kept; all where there are fewer"""
    iterations: int | None = None
    """M, gradient steps of an estimate"""
    first_episode: int | None = None
    """rounds until the first estimate"""
    step_size: float = 0.5
    """1 inverts the curvature when all coordinates of a context share its norm bound equally"""
    residual_clip: float | None = None
    """largest `|reward - prediction|` that a gradient is told, in units of the reward"""
    context_clip: float | None = None
    """Euclidean norm contexts are clipped to; if None, the environment's public bound"""
    radius: float | None = None
    """of the l_1 ball for one arm; if None, the largest that rewards within B allow s
    coordinates"""
    pick_share: float = 0.5
    """share of the zCDP budget of the picks against the values ("certified")"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("calibration", self.calibration, ("certified", "paper"))
        whole("sparsity", self.sparsity, 1)
        positive("step_size", self.step_size)
        inside("pick_share", self.pick_share, 0, 1, ends=False)
        for name, most in (("iterations", _MOST_ITERATIONS), ("first_episode", MOST_ROUNDS)):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 1, most)
        for name in ("residual_clip", "context_clip", "radius"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))

    def make(self, spec: BanditSpec, streams: Streams) -> "FLIPHATAgent":
        """A running agent; raises `InputError` for anything but finitely many arms."""
        spec = fits(self, spec, ContextualSpec)
        paper, rows = self.calibration == "paper", self._rows(spec)
        episodes = self._episodes(spec)
        M = self.iterations or (ceil(log(max(episodes, default=1) + 1)) if paper else 2)
        s = min(self.sparsity, spec.dim) * (rows.blocks if paper else 1)
        peeling: Peeling
        if paper:
            peeling = printed_peeling(self.epsilon, self.delta, picks=s, repeats=M)
        else:
            peeling = least_peeling(
                self.epsilon, self.delta, picks=s, repeats=M, share=self.pick_share
            )
        estimates = NoisyHardThresholding(
            rows,
            peeling,
            streams,
            episodes=episodes,
            uses=spec.horizon,
            sparsity=s,
            joint=paper,
            iterations=M,
            step_size=self.step_size * rows.blocks * spec.dim / spec.context_norm**2,
            radius=self._radius(spec),
        )
        parts, free = estimates.spend.parts, "peeling without noise"
        ledger = ledger_of(self.epsilon, *parts, without=free)
        return FLIPHATAgent(spec, len(streams), estimates, ledger)

    def _episodes(self, spec: ContextualSpec) -> tuple[int, ...]:
        """Lengths of the episodes whose estimate somebody meets: all but the last."""
        default = 1 if self.calibration == "paper" else ceil(spec.horizon / 31)
        length, lengths = self.first_episode or default, list[int]()
        while sum(lengths) + length < spec.horizon - spec.delay:
            lengths.append(length)
            length *= 2
        return tuple(lengths)

    def _radius(self, spec: ContextualSpec) -> float:
        """`|beta|_1` for s coordinates of a beta with `|x . beta| <= B` for every context."""
        if self.radius is not None:
            return self.radius
        s = min(self.sparsity, spec.dim)
        growth = {1: float(s), 2: sqrt(s), inf: 1.0}[spec.context_order]
        return growth * spec.reward_bound / spec.context_bound

    def _rows(self, spec: ContextualSpec) -> SparseRows:
        B, X = spec.reward_bound, spec.context_bound
        default = B + X * self._radius(spec) if self.calibration == "paper" else B / 10
        return SparseRows(
            blocks=1 if spec.shared else spec.n_actions,
            dim=spec.dim,
            entry_bound=X,
            norm_bound=min(spec.context_norm, self.context_clip or inf),
            reward_low=spec.reward_low,
            reward_high=spec.reward_high,
            residual_clip=self.residual_clip or default,
        )


class FLIPHATAgent:
    """See `FLIPHAT`."""

    def __init__(
        self,
        spec: ContextualSpec,
        replicas: int,
        estimates: NoisyHardThresholding,
        ledger: Ledger,
    ) -> None:
        self.ledger = ledger
        self._spec, self._estimates, self._round = spec, estimates, 0
        blocks = 1 if spec.shared else spec.n_actions
        self._beta: Floats = np.zeros((replicas, blocks, spec.dim))  # zeros until `_released`
        self._released = False

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        if not self._released:
            return np.full(len(self._beta), self._round % self._spec.n_actions)
        best: Ints = self.scores(context).argmax(axis=1)
        return best

    def scores(self, context: Floats) -> Floats:
        """Estimated mean rewards, (R, K)."""
        if self._spec.shared:
            return np.matvec(context, self._beta[:, 0])
        return np.matvec(self._beta, context)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed the mechanism; take over the estimate at the end of an episode."""
        self._round += 1
        release = self._estimates(context, action, feedback)
        if release is not None:
            self._beta, self._released = release, True
