"""What playing the best-looking arm does to the contexts an arm is seen with.

An arm is played where its score is the largest, so the contexts it is seen with are stretched
along its own parameter. A moment sum r x of those rounds is E[x x'] theta_a of *selected* contexts,
not theta_a: it repeats what the policy believed already. If contexts are isotropic, E[x x'] follows
from the policy alone, which is public.
"""

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.streams import Streams

_IMAGINED = 2000
"""Imagined users for each evaluation."""


class SelectedMoments:
    """E[u u' 1(arm a is played)] of a greedy policy on contexts u uniform on the unit sphere.

    With theta = U S V' (thin singular value decomposition, rank K), the scores depend on u through
    the K numbers V'u, nearly N(0, I / d). Off that span nothing is selected:

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
