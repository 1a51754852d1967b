"""Play by the population's model and a person's own memory, exactly."""

import numpy as np

from dpbandit.base.arrays import Floats, Ints, clip_norm, clip_range, pick
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.memory import PersonalMemory
from dpbandit.specs.links import link_of
from dpbandit.specs.returning import ReturningSpec


class PersonalPlayer:
    """The arm with the best posterior mean for whoever has come; ties uniformly at random.

    Her parameter is theta_i ~ N(m_0, W + tastes^2 I/d), rewards are origin + x . theta_i + noise
    N(0, 1), where origin = zeta(0) of the public link zeta, 0, or 1/2 for clicks. m_0 and W are
    the population's, replaced whenever that learns, and her exact sums of xx' and (r - origin) x
    over all her visits lie in her memory.
    """

    def __init__(
        self,
        spec: ReturningSpec,
        streams: Streams,
        *,
        tastes: float,
        noise: float,
        remembers: bool,
    ) -> None:
        visit, R = spec.arms, len(streams)
        d = visit.dim
        self._spec, self._norm, self._variance = spec, visit.context_norm, noise**2
        self._apart = tastes**2 * np.eye(d) / d
        self.origin = float(link_of(visit.link).mean(np.zeros(())))
        """what a row of zeros earns"""
        self._luck = streams.uniforms("ties", visit.n_actions)
        self._memory = (
            PersonalMemory(R, people=spec.people, shape=(d + 1, d)) if remembers else None
        )
        self.believe(np.zeros((R, d)), np.broadcast_to(np.eye(d) / d, (R, d, d)))

    def believe(self, mean: Floats, covariance: Floats) -> None:
        """The population's parameter is N(mean, covariance), (R, d) and (R, d, d)."""
        self._mean = mean
        self._precision = np.linalg.inv(covariance + self._apart)

    def play(self, context: Floats) -> Ints:
        """Arms (R,)."""
        spec = self._spec
        scores = np.matvec(self._rows(context), self._expected(spec.person(context)))
        ties = scores >= scores.max(axis=1, keepdims=True)
        arms: Ints = np.where(ties, 1 + self._luck(), 0.0).argmax(axis=1)
        return arms

    def remember(
        self, context: Floats, action: Ints, reward: Floats
    ) -> tuple[Ints, Floats, Floats]:
        """Keep a visit for her own use; who it was, the row she was served, her reward, clipped."""
        spec = self._spec
        person, x = spec.person(context), pick(self._rows(context), action)
        r = clip_range(reward, spec.reward_low, spec.reward_high)
        if self._memory is not None:
            outer = x[:, :, None] * x[:, None, :]
            told = (r - self.origin)[:, None] * x
            self._memory.add(person, np.concatenate([outer, told[:, None]], axis=1))
        return person, x, r

    def _rows(self, context: Floats) -> Floats:
        return clip_norm(self._spec.shown(context), self._norm)

    def _expected(self, person: Ints) -> Floats:
        """Her posterior mean, (R, d)."""
        if self._memory is None:
            return self._mean
        sums, P = self._memory.of(person), self._precision
        told = np.matvec(P, self._mean) + sums[:, -1] / self._variance
        found: Floats = np.linalg.solve(P + sums[:, :-1] / self._variance, told[..., None])[..., 0]
        return found
