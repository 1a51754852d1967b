"""Greedy play by a model that is broadcast at the end of every batch."""

import numpy as np

from dpbandit.agents.contextual.channels import Channel
from dpbandit.agents.contextual.imagined_people import ImaginedPeople
from dpbandit.base import Floats, Ints, Streams, pick
from dpbandit.privacy import Ledger
from dpbandit.specs import ContextualSpec

_RIDGE = 0.05
"""Added to the moments, as a share of their mean eigenvalue"""


class BroadcastPlayer:
    """Plays argmax_a x . theta_a; theta from the noisy sums of batches.

    The server weighs the sum of batch k, of n_k people (faded ones count less), by w_k = n_k / (V_k
    + n_k v), V_k the variance of its noise and v that of one person's entry. What greedy play did
    to the rows that were seen is undone::

        z = sum_k w_k sum_k,     M = sum_k w_k n_k E_k[f(x) x' 1(block)],
        theta = (M + .05 (mean eigenvalue) I)^-1 z,

    E_k of the policy played in batch k, by `ImaginedPeople`.
    """

    def __init__(
        self,
        spec: ContextualSpec,
        channel: Channel,
        imagined: ImaginedPeople,
        streams: Streams,
        ledger: Ledger,
        *,
        spread: float,
    ) -> None:
        self.ledger = ledger
        R, K, d = len(streams), spec.n_actions, spec.dim
        self._shared, self._channel, self._imagined = spec.shared, channel, imagined
        self._luck = streams.uniforms("ties", K)
        self._spread, self._batch, self._round, self._end = spread, 0, 0, 0
        self._theta: Floats = np.zeros((R, 1 if spec.shared else K, d))
        self._told = np.zeros_like(self._theta)
        self._seen = np.zeros((*self._theta.shape, d))
        self._recent: Floats | float = 0.0
        self._people = 0.0

    def act(self, context: Floats) -> Ints:
        """Arms (R,); ties uniformly at random, as at first."""
        scores = self.scores(context)
        ties = scores >= scores.max(axis=1, keepdims=True)
        arms: Ints = np.where(ties, 1 + self._luck(), 0.0).argmax(axis=1)
        return arms

    def scores(self, context: Floats) -> Floats:
        """x . theta_a, (R, K), on a scale of its own that all arms share."""
        if self._shared:
            return np.matvec(context, self._theta[:, 0])
        return np.matvec(self._theta, context)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """The device sends what its user's round says; a new model at the end of a batch."""
        row = pick(context, action) if self._shared else context
        block = np.zeros_like(action) if self._shared else action
        self._round += 1
        release = self._channel(row, block, feedback)
        if release is None:
            return
        count, self._end = self._round - self._end, self._round
        self._people = self._channel.fade * self._people + count
        self._recent = self._channel.fade * self._recent + count * self._imagined.moments(
            self._theta
        )
        noise = self._channel.noise(self._batch)
        weight = self._people / (noise + self._people * self._spread)
        self._batch += 1
        self._told += weight * release
        self._seen += weight * self._recent
        self._theta = self._solved()

    def _solved(self) -> Floats:
        d = self._told.shape[-1]
        size = np.trace(self._seen, axis1=2, axis2=3).mean(axis=1) / d  # (R,)
        ridge = _RIDGE * size[:, None, None, None] * np.eye(d)
        theta: Floats = np.linalg.solve(self._seen + ridge, self._told[..., None])[..., 0]
        return theta
