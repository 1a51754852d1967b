"""What is on offer now: a public board that a problem writes on and everybody reads."""

from hashlib import sha256

import numpy as np

from dpbandit.base.arrays import Floats, Ints, norms, rows
from dpbandit.base.inputs import InputError, whole
from dpbandit.base.random_streams import Streams


class Catalogue:
    """N items with vectors of length 1 in R^q, the same for all replicas or one for each.

    It is public: no user is in it, and whoever is on the board is known to all. Two are equal if
    they are of one size and one seed, whatever is on them; made `of` vectors, if these are equal.

    Args:
        n_items, taste: N and q.
        seed: of a catalogue that all replicas share; None where a problem draws one for each.
    """

    def __init__(self, n_items: int, taste: int, *, seed: int | None = 0) -> None:
        whole("n_items", n_items, 1)
        whole("taste", taste, 1)
        self.n_items, self.taste, self.seed = n_items, taste, seed
        self._given: Floats | None = None
        self._columns: Floats | None = None
        self._refilled = np.zeros((1, n_items), np.int64)
        self.clock = 0
        """refills so far"""
        self._last: tuple[Ints, Floats] | None = None

    @classmethod
    def of(cls, vectors: Floats) -> "Catalogue":
        """Of items whose vectors (N, q) are known, none longer than 1, for all replicas."""
        if vectors.ndim != 2 or not (norms(vectors) <= 1 + 1e-9).all():
            raise InputError(
                "Expected vectors of items (N, q), none longer than 1, got an array of shape "
                f"{vectors.shape} with norms up to {np.max(np.linalg.norm(vectors, axis=-1)):g}."
            )
        made = cls(*vectors.shape, seed=0)
        made._given = vectors[None].copy()
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalogue) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __repr__(self) -> str:
        if self._given is not None:
            return f"Catalogue.of({self._print()}: {self.n_items} x {self.taste})"
        return f"Catalogue({self.n_items}, {self.taste}, seed={self.seed})"

    def _facts(self) -> tuple[int, int, int | None, str]:
        return self.n_items, self.taste, self.seed, self._print()

    def _print(self) -> str:
        """Of the vectors that were given."""
        return "" if self._given is None else sha256(self._given.tobytes()).hexdigest()[:12]

    @property
    def items(self) -> Floats:
        """The vectors, (R, N, q), or (1, N, q) where all replicas share them."""
        if self._columns is None and self._given is not None:
            self._columns = columns(self._given)
        if self._columns is None:
            seed = 0 if self.seed is None else self.seed
            self._columns = columns(drawn(Streams([seed]), self.n_items, self.taste))
        return self._columns.swapaxes(1, 2)

    @property
    def refilled(self) -> Ints:
        """How often each place has got a new item, (R, N) or (1, N)."""
        return self._refilled

    def vectors(self, lists: Ints, clock: int | None = None) -> Floats:
        """Of the items on lists (R, m), (R, m, q), as at `clock`: now or one refill ago."""
        items = self.items
        own = rows(len(lists))[:, None] if len(items) == len(lists) else 0
        found: Floats = items[own, lists]
        if self._last is not None and clock is not None and clock < self.clock:
            place, vector = self._last
            was = (lists == place[:, None])[..., None]
            found = np.where(was, vector[:, None], found)
        return found

    def products(self, directions: Floats) -> Floats:
        """v_i . w_r of every item and every replica's direction w, (R, q) -> (R, N)."""
        return np.matvec(self.items, directions)  # replica by replica, shared or not

    def start(self, streams: Streams, churn: bool) -> None:
        """Empty the board, and fill it anew for an episode."""
        self._columns = None
        if self.seed is None:
            self._columns = columns(drawn(streams, self.n_items, self.taste))
        elif churn:  # places change one by one
            self._columns = columns(np.repeat(self.items, len(streams), axis=0))
        self._refilled = np.zeros((len(self.items), self.n_items), np.int64)
        self.clock, self._last = 0, None

    def refill(self, place: Ints, vector: Floats) -> None:
        """Another item, of vector (R, q), takes a place (R,) in each replica."""
        r = rows(len(place))
        self._last = place, self.items[r, place]
        self.items[r, place] = vector
        self.clock += 1
        self._refilled[r, place] += 1


def drawn(streams: Streams, n_items: int, taste: int) -> Floats:
    """Vectors uniform on the unit sphere, (R, N, q)."""
    z = streams.world.normals("catalogue", n_items, taste)()
    return z / norms(z)


def columns(vectors: Floats) -> Floats:
    """(R, N, q) -> (R, q, N), so that scores of all items are sums of q rows in memory."""
    return np.ascontiguousarray(vectors.swapaxes(1, 2))
