"""Episodes on exact Gram matrices: privacy for rewards alone, where anybody may see contexts."""

from math import ceil, inf, log, log2, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.agents.contextual.epochs import EpochSettings, Regression, Worth
from dpbandit.base import Floats, InputError, Ints, Streams, clip_norm, clip_range, pick
from dpbandit.privacy import BudgetExceededError, GaussianSpend, Mechanism, ledger_of, mu_of
from dpbandit.specs import ContextualSpec


class EpisodeMoments(Mechanism):
    """Sums of r x over episodes, each released once with noise of its own, added up.

    A call takes the row x and the reward r of a round, (R, d) and (R,), and whose episode `ends`
    with it, (R,). It returns the total of what was released so far, (R, d), or None where nobody's
    ends. Rows are clipped to `context_bound`, rewards to `reward_bound`.

    Guarantee:
        mu-GDP for replacing a reward where rows and ends of episodes are public: it moves one sum
        by at most 2 reward_bound context_bound = mu stddev.
    """

    def __init__(
        self, noise: Floats, *, mu: float, uses: int, context_bound: float, reward_bound: float
    ) -> None:
        R, most, d = noise.shape
        self.spend, self.uses = GaussianSpend(mu, f"{most} Gaussian episodes"), uses
        self.sensitivity = 2 * reward_bound * context_bound
        self.stddev = self.sensitivity / mu
        self._noise, self._bounds = noise, (context_bound, reward_bound)
        self._exact, self._total = np.zeros((R, d)), np.zeros((R, d))
        self._ended = np.zeros(R, np.int64)

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped r x, (R, d)."""
        x, r = datum[:2]
        C, B = self._bounds
        return clip_range(r, -B, B)[:, None] * clip_norm(x, C)

    def _release(self, *datum: npt.NDArray[Any]) -> Floats | None:
        self._exact += self.query(*datum)
        (ends,) = np.nonzero(datum[2])
        if not ends.size:
            return None
        if self._ended[ends].max() >= self._noise.shape[1]:
            raise BudgetExceededError(f"{self.spend.note}: one more.")
        self._total[ends] += self._exact[ends] + self.stddev * self._noise[ends, self._ended[ends]]
        self._exact[ends] = 0.0
        self._ended[ends] += 1
        return self._total.copy()


class PublicContexts:
    """Plays the arm that is worth most by a regression with the exact V = C^2 I + sum of x x'.

    The regression is renewed when an episode ends: where det V has doubled, or after public
    `ends`. Rewards count from the middle of their public range.
    """

    def __init__(
        self,
        config: EpochSettings,
        spec: ContextualSpec,
        streams: Streams,
        worth: Worth,
        *,
        ends: tuple[int, ...] = (),
    ) -> None:
        if not spec.shared:
            raise InputError(
                f"{type(config).__name__} is printed for arms that share a parameter, got arms "
                "with their own: choose calibration='certified' or another environment."
            )
        R, d, T = len(streams), spec.dim, spec.horizon
        self._spec, self._worth, self._ends = spec, worth, ends
        self._middle = (spec.reward_low + spec.reward_high) / 2
        self._C = min(spec.context_norm, config.context_clip or inf)
        mu = inf if config.epsilon == inf else mu_of(config.epsilon, config.delta)
        most = len(ends) or ceil(d * log2(1 + T / d))  # det V <= C^2d (1 + T / d)^d
        self._moments = EpisodeMoments(
            np.array(streams.normals("episode noise", most, d).take(1)[0]),
            mu=mu,
            uses=T,
            context_bound=self._C,
            reward_bound=spec.half_range,
        )
        self.ledger = ledger_of(config.epsilon, self._moments.spend, public_contexts=True)
        self._round = 0
        self._gram = np.zeros((R, d, d))
        self._ended = np.zeros(R)  # episodes
        self._V_last = self._C**2 * np.tile(np.eye(d), (R, 1, 1))
        self._regression = self._fitted(np.zeros((R, d)))

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        best: Ints = self._worth(context, self._regression).argmax(axis=1)
        return best

    def scores(self, context: Floats) -> Floats:
        """What each arm is worth, in units of the reward, (R, K)."""
        return self._middle + self._worth(context, self._regression)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed the mechanism; renew the regression where an episode ends."""
        self._round += 1
        x = clip_norm(pick(context, action), self._C)
        self._gram += x[:, :, None] * x[:, None, :]
        V = self._C**2 * np.eye(self._spec.dim) + self._gram
        ends = np.full(len(x), self._round in self._ends)
        if not self._ends:
            grown = np.linalg.slogdet(V)[1] - np.linalg.slogdet(self._V_last)[1]
            ends = grown >= log(2)
        total = self._moments(x, np.asarray(feedback, np.float64) - self._middle, ends)
        if total is not None:
            self._ended += ends
            self._V_last = np.where(ends[:, None, None], V, self._V_last)
            self._regression = self._fitted(total)

    def _fitted(self, total: Floats) -> Regression:
        gram, moment = self._V_last[:, None], total[:, None]
        noise = sqrt(self._ended.max()) * self._moments.stddev
        return Regression.of(gram, moment, ridge=0.0, least=1e-12, noise=noise)
