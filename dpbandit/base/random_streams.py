"""Random streams, one for each replica and each place in the code that draws numbers.

Why so many. A replica's numbers must not depend on which other replicas run beside it (6 replicas
equal 3 runs of 2), an agent's privacy noise must not shift its exploration (epsilon = inf equals
the non-private agent bit for bit), and all agents must face the same users. So every replica has
its own seed, every call site its own name, and the pair makes a generator of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from math import prod
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.base.inputs import InputError, abbrev, whole

_VALUES_AHEAD = 2048
"""Largest number of values drawn ahead for a replica and a call site; affects only speed."""
_REPLICA_MAJOR_VALUES = 64
"""Smallest number of values per round for which blocks are stored replica by replica, as drawn."""
FIRST_DRAWN_ROUNDS = 16
"""Number of rounds that a source draws first; it doubles with each later draw, up to a maximum."""

Seed: TypeAlias = int | tuple[int, ...]


class Streams:
    """Random streams of R replicas.

    Args:
        seeds: one seed (an int or a tuple of ints >= 0) for each replica.

    >>> streams = Streams([7, 8])
    >>> noise = streams.normals("noise", 3)
    >>> noise().shape                                      # one round for both replicas
    (2, 3)
    >>> alone = Streams([8]).normals("noise", 3)
    >>> bool((noise()[1] == (alone(), alone())[1][0]).all())
    True
    """

    def __init__(self, seeds: Sequence[Seed]) -> None:
        if not hasattr(seeds, "__len__"):
            raise InputError(f"Expected seeds={abbrev(seeds)} to be several, such as range(20).")
        if len(seeds) < 1:
            raise InputError("Expected at least one seed, one for each replica.")
        for seed in seeds:
            for part in seed if isinstance(seed, tuple) else (seed,):
                if type(part) is not int or part < 0:  # fast for the usual valid seed
                    whole("seed", part, 0)
        self._seeds = tuple(seeds)
        self._taken: dict[int, str] = {}
        self.world = self
        """streams from which a problem draws its parameters, see `in_world`"""

    def __len__(self) -> int:
        """Return the number of replicas R."""
        return len(self._seeds)

    def child(self, name: str) -> "Streams":
        """Return an independent family of streams, such as the environment's or the agent's.

        A child's seeds are hashes of the parent's, so that an agent, which holds a child, cannot
        compute the streams of the problem it plays unless it knows the seeds of the run.
        """
        self._take(name)
        return Streams([_hashed(seed, name) for seed in self._seeds])

    def in_world(self, seed: int | None) -> "Streams":
        """Return streams of the same seeds, whose `world` draws equal numbers in all replicas.

        A problem draws its parameters from `world`. With seed None the numbers differ by replica.
        """
        made = Streams(self._seeds)
        if seed is not None:
            made.world = Streams([_hashed(seed, "world")] * len(self))
        return made

    def normals(self, name: str, *shape: int) -> "Draws":
        """Return a source of standard normals for the call site `name`, `(R, *shape)` per call."""
        return self._draws(name, shape, "standard_normal")

    def uniforms(self, name: str, *shape: int) -> "Draws":
        """Return a source of uniforms in [0, 1) for call site `name`, `(R, *shape)` per call."""
        return self._draws(name, shape, "random")

    def chi_squares(self, name: str, degrees: Sequence[float]) -> "Draws":
        """Return a source of chi-squares with these degrees of freedom, (R, len(degrees))."""
        return self._draws(name, (len(degrees),), "chisquare", tuple(degrees))

    def exponentials(self, name: str, *shape: int) -> "Draws":
        """Return a source of exponentials of mean 1 for the call site `name`, `(R, *shape)`."""
        return self._draws(name, shape, "standard_exponential")

    def gammas(self, name: str, order: float, *shape: int) -> "Draws":
        """Return a source of Gamma(`order`) variables with scale 1, `(R, *shape)` per call."""
        return self._draws(name, shape, "standard_gamma", order)

    def binomials(self, name: str, count: int, *shape: int) -> "Draws":
        """Return a source of Binomial(`count`, 1/2) numbers, `(R, *shape)` per call."""
        return self._draws(name, shape, "binomial", count, 0.5)

    def generators(self, name: str) -> list[np.random.Generator]:
        """Return each replica's generator for the call site `name`, for laws that vary by round."""
        return self._generators(name, self._seeds)

    def _generators(self, name: str, seeds: Iterable[Seed]) -> list[np.random.Generator]:
        key = self._take(name)
        sequences = [np.random.SeedSequence(seed, spawn_key=(key,)) for seed in seeds]
        return [np.random.Generator(np.random.SFC64(s)) for s in sequences]

    def _draws(self, name: str, shape: tuple[int, ...], law: str, *parameters: Any) -> "Draws":
        place = {seed: i for i, seed in enumerate(dict.fromkeys(self._seeds))}
        alike = len(place) < len(self._seeds)
        distinct_of = np.array([place[seed] for seed in self._seeds]) if alike else None
        return Draws(self._generators(name, place), shape, law, parameters, distinct_of)

    def _take(self, name: str) -> int:
        """Reserve a call site's name and return its spawn key; raise `InputError` if taken."""
        key = crc32(name.encode())
        if key in self._taken:
            other = self._taken[key]
            why = "is taken" if name == other else f"would draw the numbers of {other!r}"
            raise InputError(f"The stream {name!r} {why}: give each call site its own name.")
        self._taken[key] = name
        return key


def _hashed(seed: Seed, name: str) -> int:
    """Return 128 bits of SHA-256 of a seed and a name as an integer."""
    parts = [int(part) for part in (seed if isinstance(seed, tuple) else (seed,))]
    return int.from_bytes(sha256(f"{parts} {name}".encode()).digest()[:16])


class Source(ABC):
    """Random numbers for all replicas; either call the source each round, or `take` blocks."""

    ahead: int
    """largest number of rounds drawn ahead of the calls; affects speed, not values"""
    _block: Floats = np.empty(0)
    _next = 0

    def __call__(self) -> Floats:
        """Return the next round's numbers, `(R, *shape)`."""
        if (draws := _draws_of_block.get()) is not None:
            return draws.one(self)
        return self._one()

    def _one(self) -> Floats:
        self._refill()
        self._next += 1
        return self._block[self._next - 1]

    def several(self, count: int) -> Floats:
        """Return the next `count` rounds' numbers, equal to `count` calls: `(count, R, *shape)`."""
        if (draws := _draws_of_block.get()) is not None:
            return draws.several(self, count)
        return self._several(count)

    def _several(self, count: int) -> Floats:
        parts = []
        while count:
            self._refill()
            parts.append(self._block[self._next : self._next + count])
            self._next += len(parts[-1])
            count -= len(parts[-1])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def over(self, lead: tuple[int, ...]) -> Floats:
        """Return the numbers of the next round, if `lead` is (R,), or n rounds, if it is (n, R)."""
        return self() if len(lead) == 1 else self.several(lead[0])

    def _refill(self) -> None:
        if self._next == len(self._block):  # twice as many each time: short runs draw few in vain
            count = min(self.ahead, 2 * len(self._block) or FIRST_DRAWN_ROUNDS)
            self._block, self._next = self.take(count), 0

    @abstractmethod
    def take(self, count: int) -> Floats:
        """Draw `count` rounds' numbers, `(count, R, *shape)`, after those drawn ahead so far."""


class BlockDraws:
    """Record of the numbers that sources returned during a block of rounds, to replay a round.

    An agent may draw all rounds of the block at once, by `Source.several`, or round after round.
    """

    def __init__(self, rounds: int) -> None:
        self._rounds, self._row = rounds, -1
        self._at_once: dict[Source, list[Floats]] = {}
        self._in_turn: dict[Source, list[Floats]] = {}

    @property
    def used(self) -> bool:
        """True if a source returned numbers in the block."""
        return bool(self._at_once or self._in_turn)

    def one(self, source: Source) -> Floats:
        """Return and record the next round's numbers, or return the replayed round's numbers."""
        if self._row < 0:
            self._in_turn.setdefault(source, []).append(source._one())
            return self._in_turn[source][-1]
        if self._again.get(source) is None:
            self._again[source] = self._of_row(source)
        if not self._again[source]:
            raise InputError("Expected act to draw as often for a round alone as in a block.")
        return self._again[source].pop(0)

    def several(self, source: Source, count: int) -> Floats:
        """Return and record `count` rounds' numbers; in a replay, return `count` recorded draws."""
        if self._row < 0 and count == self._rounds:
            self._at_once.setdefault(source, []).append(source._several(count))
            return self._at_once[source][-1]
        return np.array([self.one(source) for _ in range(count)])

    @contextmanager
    def again(self, row: int) -> Iterator[None]:
        """Make sources return the numbers of round `row` of the block again, without drawing."""
        self._row, self._again = row, dict[Source, list[Floats]]()
        token = _draws_of_block.set(self)
        try:
            yield
        finally:
            _draws_of_block.reset(token)

    def _of_row(self, source: Source) -> list[Floats]:
        in_turn = self._in_turn.get(source, [])
        each = len(in_turn) // self._rounds
        found = [numbers[self._row] for numbers in self._at_once.get(source, [])]
        return found + in_turn[self._row * each : (self._row + 1) * each]


_draws_of_block: ContextVar[BlockDraws | None] = ContextVar("draws of a block", default=None)


@contextmanager
def drawn_in(rounds: int) -> Iterator[BlockDraws]:
    """Record all numbers that sources return in a `with` block, for a block of `rounds` rounds.

    >>> uniforms = Streams([7]).uniforms("uniforms")
    >>> with drawn_in(3) as draws:
    ...     block = uniforms.several(3)
    >>> with draws.again(1):
    ...     alone = uniforms()
    >>> bool((alone == block[1]).all())
    True
    """
    draws = BlockDraws(rounds)
    token = _draws_of_block.set(draws)
    try:
        yield draws
    finally:
        _draws_of_block.reset(token)


class Paced:
    """Random numbers that each replica consumes at its own pace.

    >>> paced = Paced(Streams([7, 8]).uniforms("uniforms"))
    >>> one, two = paced(np.array([True, False])), paced(np.array([True, True]))
    >>> alone = Streams([8]).uniforms("uniforms")
    >>> bool(one[1] == 0), bool(two[1] == alone()[0])
    (True, True)
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._stock: Floats = np.empty(0)
        self._next = np.zeros(0, dtype=np.int64)

    def __call__(self, here: npt.NDArray[np.bool_]) -> Floats:
        """Return the next numbers, `(R, *shape)`, of replicas in mask `here` (R,); 0 for others."""
        if not self._next.size:
            self._next = np.zeros(len(here), dtype=np.int64)
        if self._next.max() >= len(self._stock):
            used = int(self._next.min())
            count = min(self._source.ahead, 2 * len(self._stock) or FIRST_DRAWN_ROUNDS)
            fresh = self._source.take(count)
            remaining = self._stock[used:].reshape(-1, *fresh.shape[1:])
            self._stock, self._next = np.concatenate([remaining, fresh]), self._next - used
        values: Floats = self._stock[self._next, rows(len(here))]
        values[~here] = 0.0
        self._next += here
        return values


class Draws(Source):
    """Source of the numbers of one call site, with one generator for each distinct seed.

    `distinct_of` (R,) is the index of each replica's generator; None if all seeds differ.
    """

    def __init__(
        self,
        generators: list[np.random.Generator],
        shape: tuple[int, ...],
        law: str,
        parameters: tuple[Any, ...],
        distinct_of: Ints | None = None,
    ) -> None:
        self._laws = [(generator, law) for generator in generators]
        self._distinct_of = distinct_of
        self.replicas, self.shape = len(generators if distinct_of is None else distinct_of), shape
        self._parameters = parameters
        self.ahead = max(1, _VALUES_AHEAD // max(1, prod(shape)))

    def take(self, count: int) -> Floats:
        if prod(self.shape) >= _REPLICA_MAJOR_VALUES:
            block = np.empty((self.replicas, count, *self.shape))
            self.fill(block)
            return block.swapaxes(0, 1)
        block = np.empty((count, self.replicas, *self.shape))
        self.fill(block.swapaxes(0, 1))
        return block

    def fill(self, block: Floats) -> None:
        """Fill `block`, `(R, count, *shape)`, with the numbers of the next `count` rounds."""
        if self._distinct_of is None:
            self._fill(block)
            return
        distinct = np.empty((len(self._laws), *block.shape[1:]))
        self._fill(distinct)
        block[...] = distinct[self._distinct_of]

    def _fill(self, block: Floats) -> None:
        for row, (generator, law) in zip(block, self._laws, strict=True):
            draw = getattr(generator, law)
            if row.flags.c_contiguous and not self._parameters:
                draw(out=row)
            else:
                row[...] = draw(*self._parameters, size=row.shape)
