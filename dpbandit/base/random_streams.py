"""Random streams: one for each replica and each place in the code that draws.

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
"""Values drawn at once for a replica and a call site, at most. Changes speed, never values."""
_WIDE = 64
"""From so many values a round on, those of a replica lie side by side, as they are drawn."""
FIRST = 16
"""Rounds drawn at once by the first call."""

Seed: TypeAlias = int | tuple[int, ...]


class Streams:
    """The streams of R replicas.

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
                if type(part) is not int or part < 0:  # of so many seeds most are
                    whole("seed", part, 0)
        self._seeds = tuple(seeds)
        self._taken: dict[int, str] = {}
        self.world = self
        """where a problem draws its parameters, see `in_world`"""

    def __len__(self) -> int:
        """The number of replicas R."""
        return len(self._seeds)

    def child(self, name: str) -> "Streams":
        """An independent family of streams, e.g. the environment's and the agent's.

        Its seeds are hashes of these, so that an agent, which holds a child, cannot compute the
        streams of the problem that it plays. Whoever guesses the seeds can: they are public where a
        run is to be repeated.
        """
        self._take(name)
        return Streams([_hashed(seed, name) for seed in self._seeds])

    def in_world(self, seed: int | None) -> "Streams":
        """These streams, before any is taken, with a `world` that is the same in every replica.

        Without a seed of its own the world is the streams themselves.
        """
        made = Streams(self._seeds)
        if seed is not None:
            made.world = Streams([_hashed(seed, "world")] * len(self))
        return made

    def normals(self, name: str, *shape: int) -> "Draws":
        """Standard normals for the call site `name`, `(R, *shape)` a call."""
        return self._draws(name, shape, "standard_normal")

    def uniforms(self, name: str, *shape: int) -> "Draws":
        """Uniforms on [0, 1) for the call site `name`, `(R, *shape)` a call."""
        return self._draws(name, shape, "random")

    def chi_squares(self, name: str, degrees: Sequence[float]) -> "Draws":
        """Chi-square variables with the given degrees of freedom, (R, len(degrees)) a call."""
        return self._draws(name, (len(degrees),), "chisquare", tuple(degrees))

    def exponentials(self, name: str, *shape: int) -> "Draws":
        """Exponentials of mean 1 for the call site `name`, `(R, *shape)` a call."""
        return self._draws(name, shape, "standard_exponential")

    def gammas(self, name: str, order: float, *shape: int) -> "Draws":
        """Gamma variables of shape parameter `order` and scale 1, `(R, *shape)` a call."""
        return self._draws(name, shape, "standard_gamma", order)

    def binomials(self, name: str, count: int, *shape: int) -> "Draws":
        """Heads of `count` fair coins for the call site `name`, `(R, *shape)` a call."""
        return self._draws(name, shape, "binomial", count, 0.5)

    def generators(self, name: str) -> list[np.random.Generator]:
        """Each replica's generator for the call site `name`, where laws change as it goes on."""
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
        """Its place in the spawn key: names that share one would draw the same numbers."""
        key = crc32(name.encode())
        if key in self._taken:
            other = self._taken[key]
            why = "is taken" if name == other else f"would draw the numbers of {other!r}"
            raise InputError(f"The stream {name!r} {why}: give each call site its own name.")
        self._taken[key] = name
        return key


def _hashed(seed: Seed, name: str) -> int:
    """128 bits of SHA-256 of a seed and a name."""
    parts = [int(part) for part in (seed if isinstance(seed, tuple) else (seed,))]
    return int.from_bytes(sha256(f"{parts} {name}".encode()).digest()[:16])


class Source(ABC):
    """Random numbers for all replicas: call it for a round, or `take` a block. Use one of them."""

    ahead: int
    """rounds that are taken at once behind the calls, at most; changes speed, never values"""
    _block: Floats = np.empty(0)
    _next = 0

    def __call__(self) -> Floats:
        """The next round's numbers, `(R, *shape)`."""
        if (draws := _draws_of_block.get()) is not None:
            return draws.one(self)
        return self._one()

    def _one(self) -> Floats:
        self._refill()
        self._next += 1
        return self._block[self._next - 1]

    def several(self, count: int) -> Floats:
        """What as many calls would return, `(count, R, *shape)`."""
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
        """Numbers for a round, `lead` (R,), or for n rounds, (n, R): `(*lead, *shape)`."""
        return self() if len(lead) == 1 else self.several(lead[0])

    def _refill(self) -> None:
        if self._next == len(self._block):  # twice as many each time: short runs draw few in vain
            count = min(self.ahead, 2 * len(self._block) or FIRST)
            self._block, self._next = self.take(count), 0

    @abstractmethod
    def take(self, count: int) -> Floats:
        """The next `count` rounds' numbers, `(count, R, *shape)`."""


class BlockDraws:
    """The numbers that sources gave while a block of rounds was played, to give some again.

    A source is asked for all rounds of the block at once, by `several`, or round after round.
    """

    def __init__(self, rounds: int) -> None:
        self._rounds, self._row = rounds, -1
        self._at_once: dict[Source, list[Floats]] = {}
        self._in_turn: dict[Source, list[Floats]] = {}

    def one(self, source: Source) -> Floats:
        """The numbers of one round: the next, or, of a row that is asked again, those it had."""
        if self._row < 0:
            self._in_turn.setdefault(source, []).append(source._one())
            return self._in_turn[source][-1]
        if self._again.get(source) is None:
            self._again[source] = self._of_row(source)
        if not self._again[source]:
            raise InputError("Expected act to draw as often for a round alone as in a block.")
        return self._again[source].pop(0)

    def several(self, source: Source, count: int) -> Floats:
        """The numbers of several rounds, as `one` gives those of a single one."""
        if self._row < 0 and count == self._rounds:
            self._at_once.setdefault(source, []).append(source._several(count))
            return self._at_once[source][-1]
        return np.array([self.one(source) for _ in range(count)])

    @contextmanager
    def again(self, row: int) -> Iterator[None]:
        """Give the numbers of this row of the block again, without drawing any."""
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
    """Keep the numbers that sources give in this thread, for a block of so many rounds.

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
    """Numbers of a source of which each replica takes the next one when it needs it.

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
        """The next numbers of the replicas `here` (R,), `(R, *shape)`; 0 elsewhere."""
        if not self._next.size:
            self._next = np.zeros(len(here), dtype=np.int64)
        if self._next.max() >= len(self._stock):
            used = int(self._next.min())
            fresh = self._source.take(min(self._source.ahead, 2 * len(self._stock) or FIRST))
            remaining = self._stock[used:].reshape(-1, *fresh.shape[1:])
            self._stock, self._next = np.concatenate([remaining, fresh]), self._next - used
        values: Floats = self._stock[self._next, rows(len(here))]
        values[~here] = 0.0
        self._next += here
        return values


class Draws(Source):
    """One call site's numbers, straight from its generators; `distinct_of` (R,) is the place of
    each replica's, where replicas of one seed share theirs."""

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
        if prod(self.shape) >= _WIDE:
            block = np.empty((self.replicas, count, *self.shape))
            self.fill(block)
            return block.swapaxes(0, 1)
        block = np.empty((count, self.replicas, *self.shape))
        self.fill(block.swapaxes(0, 1))
        return block

    def fill(self, block: Floats) -> None:
        """Write the next rounds' numbers into `block`, `(R, count, *shape)`, a row a replica."""
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
