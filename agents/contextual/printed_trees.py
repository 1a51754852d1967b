"""Two running Gram matrices in one stream, from the trees of a program's two revisions."""

from dataclasses import dataclass, field
from math import ceil, inf, log, log2, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base import Floats, Streams
from dpbandit.privacy import GaussianSpend, Mechanism
from dpbandit.privacy.moments import Grams
from dpbandit.privacy.prefix_sums import mu_after


@dataclass(frozen=True, kw_only=True)
class RoutedGrams:
    """Sums of x x' of the rows that warm up, V, and of the others, H: two rows of `Grams`.

    A row is clipped to `|x| <= 1` where it goes to V, to `|x|^2` <= `slope` / e where it goes to H;
    the units of H are `slope` times those of V.

    Sensitivity. Replacing a row moves V by at most sqrt(2) or H by sqrt(2) / e of its units, or
    both, by 1 and 1 / e: sqrt(2) at most.
    """

    dim: int
    slope: float
    _grams: tuple[Grams, Grams] = field(init=False, repr=False, compare=False)
    units: Floats = field(init=False, repr=False, compare=False)
    sensitivity: float = field(init=False, repr=False, compare=False, default=sqrt(2))

    def __post_init__(self) -> None:
        V = Grams(dim=self.dim)
        H = Grams(dim=self.dim, bound=sqrt(self.slope / np.e))
        object.__setattr__(self, "_grams", (V, H))
        object.__setattr__(self, "units", np.array([V.units, self.slope * V.units]))

    @property
    def shape(self) -> tuple[int, ...]:
        """(2, dim (dim + 1) / 2)."""
        return (2, *self._grams[0].shape)

    def total(self, *batch: npt.NDArray[Any]) -> Floats:
        """Rows (n, R, dim), and which of them warm up, (n, R) -> `(R, *shape)`."""
        x, warm = batch
        routed = (warm[..., None] > 0, warm[..., None] <= 0)
        parts = zip(self._grams, routed, strict=True)
        return np.stack([gram.total(np.where(there, x, 0.0)) for gram, there in parts], axis=1)

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats]:
        """`(R, *shape)` -> V and H, (R, dim, dim) each."""
        V, H = self._grams
        return V.unpack(vectors[:, 0]), H.unpack(vectors[:, 1])


def printed_multiplier(horizon: int, epsilon: float, delta: float) -> float:
    """Noise of a node over sqrt(2), by zCDP: rho = (sqrt(epsilon + l) - sqrt(l))^2, l = ln 1/delta.

    The program divides rho by the number of levels and takes the sensitivity for 1.
    """
    if epsilon == inf:
        return 0.0
    nats, levels = log(1 / delta), ceil(log2(horizon)) + 1
    rho = (epsilon / (sqrt(epsilon + nats) + sqrt(nats))) ** 2
    return sqrt(levels / (2 * rho)) / sqrt(2)


class NeighbourTree(Mechanism):
    """The tree of the first revision, which adds up other nodes than a prefix has.

    Leaves 1.. lie at 2^L, 2^L + 1, ... of a heap. After round t the program walks from leaf t to
    the root and adds, wherever it stands on an even node, the node on its left: a neighbour, and no
    sibling, which in the leftmost branch is the last node of the level above.

    Guarantee:
        mu-GDP, mu = sqrt(max(L + 1, 2 L - 1)) / noise_multiplier. A user moves her leaf and the odd
        nodes above it, each of which has one noise and is complete when it is released: at most L
        of them. But the root is added throughout the first half, with one noise and all users so
        far: hers are in it from round t on. Move its noise, and back before t: the rounds before t
        are the left siblings of the odd nodes above her leaf, and each has one noise that only it
        adds, its left neighbour's (a leaf has its own). So in the first half she is at most as far
        as a move of the root's noise, two of leaves and two of each of L - 2 levels between. (What
        is released is no prefix sum, which is no matter of privacy.)
    """

    def __init__(
        self, statistic: RoutedGrams, streams: Streams, *, horizon: int, noise_multiplier: float
    ) -> None:
        self.sensitivity, self.uses = statistic.sensitivity, horizon
        self._statistic, self._leaves = statistic, 2 ** ceil(log2(horizon))
        levels = self._leaves.bit_length()
        mu = mu_after(sqrt(max(levels, 2 * levels - 3)), noise_multiplier)
        self.spend = GaussianSpend(mu, f"wrong tree, {horizon} Gaussian releases")
        self._stddev = noise_multiplier * self.sensitivity
        self._normals = streams.normals("node noise", *statistic.shape)
        zeros = np.zeros((len(streams), *statistic.shape))
        self._nothing = zeros
        self._sums: dict[int, Floats] = {}
        self._noises: dict[int, Floats] = {}

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped statistic of one round in its units, `(R, *shape)`."""
        return self._statistic.total(*(array[None] for array in datum)) / self._statistic.units

    def _release(self, *datum: npt.NDArray[Any]) -> Floats:
        exact = self._statistic.total(*(np.asarray(a, np.float64)[None] for a in datum))
        leaf = self._leaves + self._used - 1
        path = [leaf >> level for level in range(leaf.bit_length())]
        for node in path:
            self._sums[node] = self._sums.get(node, self._nothing) + exact
        return sum((self._noisy(n - 1) for n in path if n % 2 == 0), self._noisy(leaf))

    def _noisy(self, node: int) -> Floats:
        if node not in self._noises:
            self._noises[node] = self._stddev * self._normals() * self._statistic.units
        return self._sums.get(node, self._nothing) + self._noises[node]
