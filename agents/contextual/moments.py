"""Greedy play on released moments: one running agent for BatchMoment and for FADE.

It sees the releases of a `FadingSum` of signed directions and nothing else.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from dpbandit.base import Floats, Ints, Streams
from dpbandit.privacy import FadingSum, Ledger, SignedDirections

_RIDGE = 0.05
"""Added to the moment matrices, as a share of their mean eigenvalue."""
_IMAGINED = 2000
"""Imagined users for each evaluation."""


class MomentPlayer:
    """Plays argmax_a x . theta_a, theta from released moments of signed directions.

    The first batch is played uniformly at random. Release k adds up N_k rounds (faded ones count
    less) with noise of stddev sigma; a round adds sampling noise of variance v = 1 / (d blocks) to
    a coordinate. Release k gets the weight w_k = N_k / (sigma^2 + N_k v), in which only public
    numbers enter - the realised pulls of an arm would not be public. Then::

        z = sum_k w_k release_k / stddev,       theta = shrink(z),
        stddev^2 = sigma^2 sum_k w_k^2 + v sum_b n_b (sum_{k >= b} w_k fade^(k-b))^2,

    all blocks of a replica together; n_b is the length of batch b. With `debias` each block is
    first multiplied by the inverse of the expected moment matrix of the policies played
    (`SelectedMoments`), and z has that stddev up to the spread of its eigenvalues.
    """

    def __init__(
        self,
        sums: FadingSum,
        statistic: SignedDirections,
        streams: Streams,
        ledger: Ledger,
        *,
        shrink: Callable[[Floats], Floats],
        debias: bool,
    ) -> None:
        self.ledger = ledger
        self._sums, self._shrink = sums, shrink
        R, (blocks, d), K = len(streams), statistic.shape, statistic.n_actions
        self._difference, self._blocks = statistic.layout == "difference", blocks
        self._luck = streams.uniforms("exploration")
        self._selected = SelectedMoments(streams, K) if debias else None
        self._end, self._round, self._released = 0, 0, 0
        self._moment, self._private = np.zeros((R, blocks, d)), 0.0
        self._lengths, self._faded, self._weights = np.zeros((3, 0))  # of each batch so far
        self._recent: Floats = np.zeros((1, K, d, d))  # expected moment matrix, faded like the sum
        self._matrix: Floats = np.zeros((1, K, d, d))
        self._arms = K
        self._theta: Floats = np.zeros((R, K, d))

    def act(self, context: Floats) -> Ints:
        """Arms (R,); at random before the first release and where all scores are equal."""
        score = self.scores(context)
        greedy = score.argmax(axis=1)
        random = (self._luck() * self._arms).astype(np.int64)
        tied = score.max(axis=1) == score.min(axis=1)
        return np.where(tied, random, greedy)

    def scores(self, context: Floats) -> Floats:
        """x . theta_a, (R, K), on a scale of its own that all arms share."""
        return np.matvec(self._theta, context)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed the mechanism; look again when it releases."""
        self._round += 1
        release = self._sums(context, action, feedback)
        if release is None:
            return
        count, self._end = self._round - self._end, self._round
        v = 1 / (self._blocks * release.shape[-1])
        self._lengths = np.append(self._lengths, count)
        self._faded = np.append(self._sums.fade * self._faded, 1.0)
        users = float(self._lengths @ self._faded)
        weight = users / (self._sums.stddev**2 + users * v)
        self._weights = np.append(self._weights, 0.0) + weight * self._faded
        self._moment += weight * release
        self._private += (weight * self._sums.stddev) ** 2
        stddev = sqrt(self._private + v * float(self._lengths @ self._weights**2))
        self._theta = self._estimate(weight, count, stddev)
        self._released += 1

    def _estimate(self, weight: float, count: int, stddev: float) -> Floats:
        if self._difference:
            z = self._shrink(self._moment[:, 0] / stddev)  # (R, d)
            return np.stack([z, -z], axis=1)
        R, K, d = self._theta.shape
        scale: Any = stddev
        moment = self._moment
        if self._selected is not None:
            now = self._selected(self._theta) if self._released else uniform_moments(K, d)
            self._recent = self._sums.fade * self._recent + count * now
            self._matrix = self._matrix + weight * self._recent
            size = np.trace(self._matrix, axis1=2, axis2=3)[..., None] / d  # mean eigenvalue
            ridge = _RIDGE * size.mean(axis=1, keepdims=True)[..., None] * np.eye(d)
            moment = np.linalg.solve(self._matrix + ridge, moment[..., None])[..., 0]
            scale = stddev / size
        z = self._shrink((moment / scale).reshape(R, -1)).reshape(R, K, d)
        return z * scale


class SelectedMoments:
    """E[u u' 1(arm a is played)] of a greedy policy on contexts u uniform on the unit sphere.

    An arm is played where its score is the largest, so the contexts it is seen with are stretched
    along its own parameter. A moment sum r x of those rounds is E[x x'] theta_a of *selected*
    contexts, not theta_a: it repeats what the policy believed already. If contexts are isotropic,
    E[x x'] follows from the policy alone, which is public.

    With theta = U S V' (thin singular value decomposition, rank K), the scores depend on u through
    the K numbers V'u, nearly N(0, I / d). Off that span nothing is selected::

        E[u u' 1_a]  =  ( P(a) (I - V V') + V E[c c' 1_a] V' ) / d,      c ~ N(0, I_K),

    where the inner expectation is taken over imagined users. No data is looked at. Shapes: theta
    (R, K, d) -> (R, K, d, d).
    """

    def __init__(self, streams: Streams, n_actions: int) -> None:
        self._users = streams.normals("imagined users", _IMAGINED, n_actions)

    def __call__(self, theta: Floats) -> Floats:
        """The matrices for the policy argmax_a u . theta_a."""
        R, K, d = theta.shape
        U, S, Vt = np.linalg.svd(theta, full_matrices=False)  # (R, K, m), (R, m), (R, m, d)
        m = S.shape[1]  # min(K, d)
        c = self._users()[..., :m].transpose(0, 2, 1)  # (R, m, n)
        scores = (U * S[:, None]) @ c  # (R, K, n)
        played = 1.0 * (scores == scores.max(axis=1, keepdims=True))  # (R, K, n)
        played /= played.sum(axis=1, keepdims=True)  # ties are played at random
        V = Vt.transpose(0, 2, 1)
        off_span = np.eye(d) - V @ Vt
        moments = np.empty((R, K, d, d))
        for arm in range(K):
            chosen = played[:, arm, None]  # (R, 1, n)
            inside = (c * chosen) @ c.transpose(0, 2, 1) / c.shape[2]  # (R, m, m)
            share = chosen.mean(axis=2, keepdims=True)  # (R, 1, 1)
            moments[:, arm] = share * off_span + V @ inside @ Vt
        moments /= d
        return moments


def uniform_moments(n_actions: int, dim: int) -> Floats:
    """The same for arms drawn at random: I / (K d), shape (1, K, d, d)."""
    return np.tile(np.eye(dim) / (n_actions * dim), (1, n_actions, 1, 1))
