"""Running sums of a chosen few, which start again whenever others are chosen."""

from math import inf, sqrt
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints, clip_range, rows
from dpbandit.base.inputs import at_least, one_of, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.noise.laws import Gaussian, Laplace
from dpbandit.privacy.pure import LaplaceSpend
from dpbandit.privacy.spends import GaussianSpend

NodeLaw: TypeAlias = Literal["gaussian", "laplace"]


class RestartingTrees(Mechanism):
    """Noisy sums of the losses of B chosen experts since they were chosen, each replica's own.

    A binary tree for each expert, in Fenwick form (`prefix_sums.Tree`), in a replica's own
    time s: 1 in the first round after a restart, 2 in the next one. With lowbit(s) = s & -s::

        N_s = z_s + N_{s - lowbit(s)},       z_s the round's fresh noise;

        call(losses (R, d), chosen (R, B), restart (R,) bool) -> sums (R, B)

    `chosen` names experts, -1 nobody, whose loss is 0. The call of the last round releases
    nothing (None), for no action follows.

    Guarantee:
        If chosen and restart are public or functions of earlier releases (and of coins that know no
        data), and chosen changes at restarts only, then all releases together cost `spend` for
        replacing one round's losses. *Proof.* Given the releases before it, the round's B losses
        are all that differs: every other round feeds the same numbers to the same places. They
        enter the sums of one segment, between two restarts, in one leaf of its tree. A leaf is in
        at most h = bit_length(T - 1) nodes, as no segment has more than T - 1 leaves that are
        released; all noises z are fresh, so these are h releases of B numbers, each moved by high -
        low at most: B h Laplace mechanisms, or one Gaussian mechanism moved by sqrt(B h) (high -
        low). Other segments, and whatever is chosen for them, are functions of those releases.
        Adaptively chosen losses change nothing: a triangular change of variables.

    Args:
        streams: the random streams of the replicas.
        name: the call site of the noise.
        width: B.
        law: of a node's noise.
        scale: standard deviation or Laplace scale of a node's noise; 0: none.
        horizon: T, calls that will be made.
        low, high: losses are clipped to this range, non-finite ones become `low`.

    >>> trees = RestartingTrees(Streams([0]), "t", width=1, law="laplace", scale=0.0, horizon=5)
    >>> losses, first, new = np.array([[1.0, 0.5]]), np.array([[0]]), np.array([[1]])
    >>> same, restart = np.array([False]), np.array([True])
    >>> [trees(losses, first, same).item(), trees(losses, first, same).item()]
    [1.0, 2.0]
    >>> [trees(losses, new, restart).item(), trees(losses, new, same).item()]
    [0.5, 1.0]
    """

    def __init__(
        self,
        streams: Streams,
        name: str,
        *,
        width: int,
        law: NodeLaw,
        scale: float,
        horizon: int,
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        whole("width", width, 1)
        whole("horizon", horizon, 1)
        one_of("law", law, ("gaussian", "laplace"))
        at_least("scale", scale, 0)
        R, nodes = len(streams), self.nodes(horizon)
        note = f"{name}: {width} restarting trees, {law} nodes"
        ratio = (high - low) / scale if scale else inf
        self.spend: GaussianSpend | LaplaceSpend
        if law == "gaussian":
            self.spend = GaussianSpend(sqrt(width * nodes) * ratio if nodes else 0.0, note)
        else:
            self.spend = LaplaceSpend(ratio, width * nodes, note)
        self.sensitivity, self.uses = sqrt(width) * (high - low), horizon
        self._range, self._width = (low, high), width
        made = Gaussian(scale) if law == "gaussian" else Laplace(scale)
        self._noise = made.sampler(streams, name, (width,))
        self._age = np.zeros(R, dtype=np.int64)  # s
        self._sum = np.zeros((R, width))  # exact: never leaves here
        self._prefix = np.zeros((nodes + 1, R, width))  # [lowbit of s']: N_s' that s builds on

    @staticmethod
    def nodes(horizon: int) -> int:
        """h, the nodes that one round touches at most."""
        return (horizon - 1).bit_length()

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped losses of the chosen, (R, B)."""
        losses, chosen = datum[:2]
        theirs = np.take_along_axis(losses, np.maximum(chosen, 0), axis=1)
        return np.where(chosen < 0, 0.0, clip_range(theirs, *self._range))

    def _release(self, *datum: npt.NDArray[Any]) -> Floats | None:
        restart = datum[2]
        if self._used == self.uses:
            return None
        self._sum = np.where(restart[:, None], 0.0, self._sum) + self.query(*datum)
        self._age = np.where(restart, 0, self._age) + 1
        everyone, below = rows(len(restart)), self._age & (self._age - 1)
        before = np.where(below[:, None] > 0, self._prefix[_level(below), everyone], 0.0)
        N = self._noise() + before
        self._prefix[_level(self._age), everyone] = N
        return self._sum + N


def _level(s: Ints) -> Ints:
    """The place of the lowest bit; 0 for s = 0."""
    return np.maximum(np.frexp((s & -s).astype(float))[1] - 1, 0).astype(np.int64)
