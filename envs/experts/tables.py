"""Tables of losses that are fixed in advance: coins, halving, a tail of bad news, a user's own::

    table       loss of expert i in round t
    Coins       1 with probability p_i (or uniform on [0, 2 p_i]), independent over rounds
    Switching   the same, but which expert has the small p changes a few times
    Halving     in stage s all but d / 2^s experts always lose, each stage half of those before
    Tail        0 for everybody, and in the last k rounds 1 for all experts but one
    Given       row t of an array

Numbers come from one stream for each replica, or from NumPy's default generator with a public
seed where all replicas share a table. Rounds are made block by block, and a block's size never
changes a value. Recommendation policies are experts, too: a user's click tells which of them would
have been right.
"""

from zlib import crc32

import numpy as np

from dpbandit.base import Draws, Floats, Ints, Streams, norms, rows


class Luck:
    """Where the numbers of one table come from, or of one table for each replica.

    Args:
        streams: of the replicas, each with a table of its own.
        shared_seed: one table for all of them; its losses, or their order, come from
            `numpy.random.default_rng(shared_seed)`, whatever else it needs from others.
    """

    def __init__(self, streams: Streams, shared_seed: int | None = None) -> None:
        self._streams, self._seed = streams, shared_seed
        self.replicas = len(streams) if shared_seed is None else 1

    @property
    def world(self) -> "Luck":
        """Where it is decided which experts are good."""
        return Luck(self._streams.world, self._seed)

    def uniforms(self, name: str, *shape: int) -> Draws:
        """Uniforms on [0, 1): `take` gives `(count, replicas, *shape)`."""
        if self._seed is None:
            return self._streams.uniforms(name, *shape)
        return Draws([_generator(self._seed, name)], shape, "random", ())

    def normals(self, name: str, *shape: int) -> Draws:
        """Standard normals: `take` gives `(count, replicas, *shape)`."""
        if self._seed is None:
            return self._streams.normals(name, *shape)
        return Draws([_generator(self._seed, name)], shape, "standard_normal", ())

    def order(self, n: int) -> Ints:
        """A uniformly random order of n things, (replicas, n)."""
        if self._seed is None:
            return self._streams.uniforms("order", n).take(1)[0].argsort(axis=1)
        return np.random.default_rng(self._seed).permutation(n)[None]


def _generator(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng(seed if name == "losses" else (seed, crc32(name.encode())))


class Coins:
    """Independent losses with means (replicas or 1, d): 0 or 1, or uniform on [0, 2 mean]."""

    def __init__(self, luck: Luck, means: Floats, *, fractions: bool = False) -> None:
        self._means, self._fractions = means, fractions
        self._uniforms = luck.uniforms("losses", means.shape[1])
        self.values = luck.replicas * means.shape[1]

    def __call__(self, first: int, count: int) -> Floats:
        """[U < p] or 2 p U, (count, replicas, d)."""
        return _losses(self._uniforms.take(count), self._means, fractions=self._fractions)


class Switching:
    """Coins whose best expert changes `switches` times, at evenly spaced rounds.

    Each is another than the one before, the first uniform.
    """

    def __init__(
        self, luck: Luck, n: int, low: float, high: float, *, switches: int, horizon: int
    ) -> None:
        moves = luck.world.uniforms("switches", switches + 1).take(1)[0]  # (replicas, segments)
        best = (moves[:, :1] * n).astype(np.int64)
        further = 1 + (moves[:, 1:] * max(1, n - 1)).astype(np.int64)  # 1 .. n - 1
        self._best = np.concatenate([best, further], axis=1).cumsum(axis=1) % n
        self._low, self._high, self._horizon = low, high, horizon
        self._uniforms = luck.uniforms("losses", n)
        self.values = luck.replicas * n

    def __call__(self, first: int, count: int) -> Floats:
        """[U < p of the round's segment], (count, replicas, d)."""
        U = self._uniforms.take(count)
        segments = self._best.shape[1]
        which = np.minimum((first + rows(count)) * segments // self._horizon, segments - 1)
        is_best = self._best.T[which][..., None] == rows(U.shape[2])
        return _losses(U, np.where(is_best, self._low, self._high), fractions=False)


class Halving:
    """Stage s of log2(d) stages: the first d / 2^s experts of a random order lose 0, others 1.

    Stages have floor(T / log2 d) rounds, the last one takes the rest; d is a power of 2.
    """

    def __init__(self, luck: Luck, n: int, *, horizon: int) -> None:
        self._place = luck.world.order(n).argsort(axis=1)  # of each expert in the order
        self._stages = max(1, n.bit_length() - 1)
        self._rounds = max(1, horizon // self._stages)
        self.values = luck.replicas * n

    def __call__(self, first: int, count: int) -> Floats:
        """[place >= d / 2^s], (count, replicas, d)."""
        n = self._place.shape[1]
        stage = np.minimum((first + rows(count)) // self._rounds + 1, self._stages)
        return 1.0 * (self._place >= (n >> stage)[:, None, None])


class Tail:
    """T - k rounds of zeros; then k rounds in which only expert j, uniform, loses nothing."""

    def __init__(self, luck: Luck, n: int, *, horizon: int, tail: int) -> None:
        good = (luck.world.uniforms("good expert").take(1)[0] * n).astype(np.int64)
        self._good = good[:, None] == rows(n)  # (replicas, d)
        self._start = horizon - tail
        self.values = luck.replicas * n

    def __call__(self, first: int, count: int) -> Floats:
        """[t > T - k][i != j], (count, replicas, d)."""
        late = first + rows(count) >= self._start
        return 1.0 * (late[:, None, None] & ~self._good)


class Given:
    """The rows of an array (T, d), for all replicas."""

    def __init__(self, array: Floats) -> None:
        self._array, self.values = array, array.shape[1]

    def __call__(self, first: int, count: int) -> Floats:
        """(count or fewer, 1, d)."""
        return self._array[first : first + count, None]


def _losses(U: Floats, means: Floats, *, fractions: bool) -> Floats:
    return 2 * means * U if fractions else 1.0 * (means > U)


_ITEMS = 200
"""The catalogue's size."""
_TASTE = 4
"""Features of users and items."""
_SLATE = 5
"""Items that a user is shown."""


class Policies:
    """Every expert is a ranker of a slate; she loses 1 if the user's favourite is not her first.

    An episode has a catalogue of 200 unit vectors v_i in R^4 and weights theta of their features::

        phi = (v_i, u * v_i)                                                  in R^8

    for a user with tastes u, uniform on the sphere of radius 2. A user sees 5 items of the
    catalogue and clicks on the one with the largest phi . theta, or, with probability `whims`, on
    any of the five. Policy i ranks by theta + s_i g_i, g_i uniform on the unit sphere, so that one,
    with s = 0, knows everybody's favourite and the others, s from 0.2 to 3, are ever more ignorant;
    which is which is drawn. A policy that guesses loses 4/5.
    """

    def __init__(self, luck: Luck, n: int, *, whims: float) -> None:
        self.values = luck.replicas * (n + _ITEMS + _SLATE * 2 * _TASTE)
        self._items = _unit(luck.world.normals("catalogue", _ITEMS, _TASTE).take(1)[0])
        theta = _unit(luck.world.normals("theta", 1, 2 * _TASTE).take(1)[0])
        ignorance = _unit(luck.world.normals("ignorance", n, 2 * _TASTE).take(1)[0])
        ranks = luck.world.order(n)[..., None]  # (replicas, d, 1)
        steps = np.concatenate([[0.0], np.geomspace(0.2, 3.0, n)[: n - 1]])
        self._theta, self._whims = theta, whims
        self._rankers = np.swapaxes(theta + steps[ranks] * ignorance, 1, 2)  # (replicas, 8, d)
        self._tastes = luck.normals("tastes", _TASTE)
        self._slates = luck.uniforms("slates", _ITEMS)
        self._moods = luck.uniforms("whims", 2)

    def __call__(self, first: int, count: int) -> Floats:
        """[policy's first item != the click], (count, replicas, d)."""
        u = 2 * _unit(self._tastes.take(count))[:, :, None]  # (n, replicas, 1, taste)
        slate = self._slates.take(count).argpartition(_SLATE - 1, axis=-1)[..., :_SLATE]
        v = self._items[rows(self._items.shape[0])[:, None], slate]  # (n, replicas, slate, taste)
        phi = np.concatenate([v, u * v], axis=-1)
        favourite = np.matvec(phi, self._theta[:, 0]).argmax(axis=-1)
        whim, wish = np.moveaxis(self._moods.take(count), -1, 0)
        click = np.where(whim < self._whims, (wish * _SLATE).astype(np.int64), favourite)
        firsts = (phi @ self._rankers).argmax(axis=2)  # (n, replicas, d)
        return 1.0 * (firsts != click[..., None])


def _unit(x: Floats) -> Floats:
    return x / norms(x)
