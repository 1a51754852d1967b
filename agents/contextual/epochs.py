"""Epochs with public ends, each of which releases one Gram matrix and one moment of its users."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from dpbandit.base import Floats, Ints, Streams, gaussian_target, positive, whole
from dpbandit.privacy import FadingSum, SecondMoments, certified_fading_sum, ledger_of, mu_of
from dpbandit.privacy.fading import growing_batches
from dpbandit.specs import ContextualSpec

_LEAST_EIGENVALUE = 0.3
"""Of a noisy Gram matrix, in units of the noise's spectral norm."""


@dataclass(frozen=True, kw_only=True)
class EpochSettings:
    """Base of configs whose users are in one release each: a target, the first epoch, clips."""

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    first_epoch: int | None = None
    """rounds of uniform play; if None, about as many as the noise asks for, at most a tenth of T"""
    context_clip: float | None = None
    """Euclidean norm contexts are clipped to; if None, the environment's public bound"""
    moment_clip: float | None = None
    """norm r x is clipped to, r from the middle of its range, on top of the clips of r and x"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        if self.first_epoch is not None:
            whole("first_epoch", self.first_epoch, 1)
        for name in ("context_clip", "moment_clip"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))

    def ends(self, spec: ContextualSpec) -> tuple[int, ...]:
        """Of epochs of first, 2 first, 4 first, ... rounds."""
        mu = inf if self.epsilon == inf else mu_of(self.epsilon, self.delta)
        blocks = 1 if spec.shared else spec.n_actions
        usual = ceil(max(30.0, 8 * sqrt(spec.dim) * blocks / mu))
        first = self.first_epoch or max(1, min(usual, spec.horizon // 10))
        return growing_batches(spec.horizon, first=first, growth=1.0)


class EpochPlayer(ABC):
    """Plays at random in the first epoch, and feeds every round to the mechanism.

    Rewards count from the middle of their public range.

    Guarantee:
        A user is in one release, whose Gram matrix and moment she moves by 2 sqrt(2) together at
        moment weight sqrt(2), by 3 with a moment clip (`SecondMoments`): the run is mu-GDP with the
        whole mu for each release, which carries noise of stddev 2 / mu, or 3 / (sqrt(2) mu)
        (parallel composition, `FadingSum` with fade 0). The ends of epochs are public. Everybody
        else's action is post-processing.
    """

    def __init__(self, config: EpochSettings, spec: ContextualSpec, streams: Streams) -> None:
        self._spec, self._middle = spec, (spec.reward_low + spec.reward_high) / 2
        self._statistic = SecondMoments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared" if spec.shared else "disjoint",
            context_bound=min(spec.context_norm, config.context_clip or inf),
            reward_low=-spec.half_range,
            reward_high=spec.half_range,
            moment_clip=config.moment_clip,
            moment_weight=sqrt(2),
        )
        self._sums: FadingSum = certified_fading_sum(
            self._statistic,
            streams,
            ends=config.ends(spec),
            horizon=spec.horizon,
            fade=0.0,
            epsilon=config.epsilon,
            delta=config.delta,
        )
        self.ledger = ledger_of(config.epsilon, self._sums.spend)
        self._luck = streams.uniforms("exploration")
        self._releases = 0
        # of one release: off the diagonal of its Gram matrices, and in its moments
        self._gram_noise = self._statistic.context_bound**2 * self._sums.stddev / sqrt(2)
        self._moment_noise = self._statistic.moment_bound * self._sums.stddev / sqrt(2)

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        luck = self._luck()
        if not self._releases:
            return (luck * self._spec.n_actions).astype(np.int64)
        return self._choose(context, luck)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed the mechanism; learn when it releases."""
        release = self._sums(context, action, np.asarray(feedback, np.float64) - self._middle)
        if release is not None:
            self._releases += 1
            self._learn(*self._statistic.unpack(release))

    @abstractmethod
    def _choose(self, context: Floats, luck: Floats) -> Ints:
        """Arms (R,) from the second epoch on; `luck` is uniform, (R,)."""

    @abstractmethod
    def _learn(self, gram: Floats, moment: Floats) -> None:
        """From a release, (R, G, d, d) and (R, G, d)."""


class Regression(NamedTuple):
    """theta = A^-1 u of each block, A = U diag(eigenvalues) U'."""

    theta: Floats
    """(R, G, d)"""
    U: Floats
    """(R, G, d, d)"""
    eigenvalues: Floats
    """(R, G, d)"""
    noise: float
    """standard deviation of the noise in u"""

    def means(self, context: Floats) -> Floats:
        """x . theta_a, (R, K)."""
        if context.ndim == 3:
            return np.matvec(context, self.theta[:, 0])
        return np.matvec(self.theta, context)

    def widths(self, context: Floats, power: float = 0.5) -> Floats:
        """`|A_a^-power x|`, at 1/2 the norm of x in A_a^-1: (R, K)."""
        root = self.U / self.eigenvalues[..., None, :] ** power
        moved = context @ root[:, 0] if context.ndim == 3 else np.vecmat(context[:, None], root)
        return np.sqrt(np.vecdot(moved, moved))

    @classmethod
    def of(cls, gram: Floats, moment: Floats, *, ridge: float, least: float, noise: float) -> Self:
        """A = gram + ridge I, no eigenvalue of it below `least`."""
        eigenvalues, U = np.linalg.eigh(gram)
        positive = np.maximum(eigenvalues + ridge, least)
        return cls(np.matvec(U, np.vecmat(moment, U) / positive), U, positive, noise)


Worth: TypeAlias = Callable[[Floats, Regression], Floats]
"""What each arm is worth above the middle of the rewards, context, regression -> (R, K)."""


class SummedEpochs(EpochPlayer):
    """Plays the arm that is worth most by one regression on all k releases.

    A = sum of the Gram matrices + Gamma I, Gamma = 2 sqrt(d k) (noise of one off the diagonal), no
    eigenvalue of which is below 0.3 Gamma.
    """

    def __init__(
        self, config: EpochSettings, spec: ContextualSpec, streams: Streams, worth: Worth
    ) -> None:
        super().__init__(config, spec, streams)
        self._worth = worth
        self._gram: Floats | float = 0.0
        self._moment: Floats | float = 0.0
        self._regression: Regression | None = None

    def scores(self, context: Floats) -> Floats:
        """What each arm is worth, in units of the reward, (R, K)."""
        if self._regression is None:
            return np.full((len(context), self._spec.n_actions), self._middle)
        return self._middle + self._worth(context, self._regression)

    def _choose(self, context: Floats, luck: Floats) -> Ints:
        best: Ints = self.scores(context).argmax(axis=1)
        return best

    def _learn(self, gram: Floats, moment: Floats) -> None:
        self._gram, self._moment = self._gram + gram, self._moment + moment
        user = self._statistic.context_bound**2 / self._spec.dim
        Gamma = 2 * sqrt(self._spec.dim * self._releases) * self._gram_noise
        self._regression = Regression.of(
            self._gram,
            self._moment,
            ridge=max(Gamma, user),
            least=max(_LEAST_EIGENVALUE * Gamma, user),
            noise=sqrt(self._releases) * self._moment_noise,
        )
