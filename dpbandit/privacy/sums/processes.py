"""How noises make up the noise N_1, N_2, ... of a running sum: small values, one for each way::

    process            gaussian   laplace, k-norm     one user is in
    BLT                yes        no                  |c| in L2, one column of C
    SquareRoot         yes        no                  the same, O(m) memory: for reference
    Banded(p)          yes        no                  the first p entries of the square root's
    Tree, Padded       yes        yes                 bit_length(m) nodes
    Honaker            yes        yes                 bit_length(m) nodes
    KAry               yes        yes, the default    few levels
    Window(W)          yes        yes                 log2(W) + 1 nodes, for window DP
    Independent        yes        yes                 1

m is the number of releases. Each says how many nodes a user is in (None where noises are correlated
and there are no nodes), the Euclidean norm of what she touches, and makes the noise itself.
"""

from dataclasses import dataclass
from math import prod, sqrt
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, one_of, whole
from dpbandit.base.random_streams import Draws, Streams
from dpbandit.privacy.accounting.person_norms import leaves_norm, tree_norm
from dpbandit.privacy.noise.laws import Gaussian, KNorm, Laplace
from dpbandit.privacy.noise.samplers import Sampler
from dpbandit.privacy.sums.banded import BandedNoise
from dpbandit.privacy.sums.honaker import HonakerNoise
from dpbandit.privacy.sums.k_ary import KAryNoise
from dpbandit.privacy.sums.padded_tree import PaddedTreeNoise
from dpbandit.privacy.sums.prefix_sums import BLTNoise, PrefixNoise, TreeNoise
from dpbandit.privacy.sums.square_root import SquareRootNoise, coefficients
from dpbandit.privacy.sums.unknown_horizon import IndependentNoise
from dpbandit.privacy.sums.window_tree import WindowTreeNoise

NodeLaw: TypeAlias = Gaussian | Laplace | KNorm
NoiseLaw: TypeAlias = Literal["gaussian", "laplace", "k-norm"]
LAWS: tuple[NoiseLaw, ...] = ("gaussian", "laplace", "k-norm")


class Process(Protocol):
    """A way to make up N_1, N_2, ...; `word` is its name in settings, notes and streams."""

    laws: ClassVar[tuple[NoiseLaw, ...]]

    def __hash__(self) -> int: ...

    @property
    def word(self) -> str:
        """Name of the process in settings and notes."""
        ...

    def nodes(self, leaves: int) -> int | None:
        """How many noises one user is in; None: they are correlated."""
        ...

    def column_norm(self, leaves: int) -> float:
        """The Euclidean norm of what she touches, in units of her own contribution."""
        ...

    def person_norm(self, leaves: int, every: int, cap: int, separation: int) -> float:
        """That of `cap` rounds of one person, any two `separation` apart, where `every` rounds are
        a leaf: exact, or from above; a multiple of `column_norm` where nothing better is known."""
        ...

    def noise(
        self, law: NodeLaw, streams: Streams, shape: tuple[int, ...], leaves: int
    ) -> PrefixNoise:
        """The noise `(R, *shape)` of `leaves` releases, its nodes drawn from `law`."""
        ...


class _Correlated:
    """What all processes share whose noises are correlated, and so Gaussian."""

    laws: ClassVar[tuple[NoiseLaw, ...]] = ("gaussian",)
    word: ClassVar[str]

    def nodes(self, leaves: int) -> None:
        """None: noises are correlated."""

    def column(self, leaves: int) -> Floats:
        """The first of C, (leaves,): it falls and is >= 0, and each of the others is it, later."""
        raise NotImplementedError

    def person_norm(self, leaves: int, every: int, cap: int, separation: int) -> float:
        """By `leaves_norm`."""
        return leaves_norm(self.column(leaves), every, cap, separation)

    def noise(
        self, law: NodeLaw, streams: Streams, shape: tuple[int, ...], leaves: int
    ) -> PrefixNoise:
        """Correlated normals; raises `InputError` where `law` is not Gaussian."""
        if not isinstance(law, Gaussian):
            raise InputError(f"Expected law={law!r} to be Gaussian for {self!r}.")
        return self._of(streams.normals(_place(self.word), *shape), law.stddev, leaves)

    def _of(self, normals: Draws, stddev: float, leaves: int) -> PrefixNoise:
        raise NotImplementedError


@dataclass(frozen=True)
class BLT(_Correlated):
    """Five buffers, within half a percent of the best there is: see `BLTNoise`."""

    word: ClassVar[str] = "blt"

    def column_norm(self, leaves: int) -> float:
        """`|c|`."""
        return BLTNoise.column_norm(leaves)

    def column(self, leaves: int) -> Floats:
        """c."""
        return BLTNoise.column(leaves)

    def _of(self, normals: Draws, stddev: float, leaves: int) -> PrefixNoise:
        return BLTNoise(normals, stddev=stddev)


@dataclass(frozen=True)
class SquareRoot(_Correlated):
    """The square root of prefix sums, with all noises in memory: see `SquareRootNoise`."""

    word: ClassVar[str] = "square-root"

    def column_norm(self, leaves: int) -> float:
        """`|c|`."""
        return SquareRootNoise.column_norm(leaves)

    def column(self, leaves: int) -> Floats:
        """c."""
        return coefficients(leaves)

    def _of(self, normals: Draws, stddev: float, leaves: int) -> PrefixNoise:
        return SquareRootNoise(normals, stddev=stddev, leaves=leaves)


@dataclass(frozen=True)
class Banded(_Correlated):
    """The square root of prefix sums, its first `width` diagonals: see `BandedNoise`."""

    width: int
    word: ClassVar[str] = "banded"

    def __post_init__(self) -> None:
        whole("width", self.width, 1)

    def column_norm(self, leaves: int) -> float:
        """`|c|`."""
        return BandedNoise.column_norm(leaves, self.width)

    def column(self, leaves: int) -> Floats:
        """c, and 0 behind the band."""
        c = coefficients(min(self.width, leaves))
        return np.pad(c, (0, leaves - len(c)))

    def _of(self, normals: Draws, stddev: float, leaves: int) -> PrefixNoise:
        return BandedNoise(normals, stddev=stddev, width=min(self.width, leaves))


class _Nodes:
    """What all processes share that add up independent nodes."""

    laws: ClassVar[tuple[NoiseLaw, ...]] = LAWS
    word: ClassVar[str]

    def nodes(self, leaves: int) -> int:
        """One node for each binary digit of the leaves."""
        return int(leaves).bit_length()  # NumPy's integers may have no such method

    def column_norm(self, leaves: int) -> float:
        """The square root of the number of nodes."""
        return sqrt(self.nodes(leaves))

    def person_norm(self, leaves: int, every: int, cap: int, separation: int) -> float:
        """Group privacy."""
        return cap * self.column_norm(leaves)

    def noise(
        self, law: NodeLaw, streams: Streams, shape: tuple[int, ...], leaves: int
    ) -> PrefixNoise:
        """Nodes of that law, added up."""
        node = law.sampler(streams, _place(self.word), shape)
        return self._of(node, sqrt(law.variance(prod(shape))), leaves)

    def _of(self, node: Sampler, stddev: float, leaves: int) -> PrefixNoise:
        raise NotImplementedError


@dataclass(frozen=True)
class Tree(_Nodes):
    """The binary tree: see `TreeNoise`."""

    word: ClassVar[str] = "tree"

    def person_norm(self, leaves: int, every: int, cap: int, separation: int) -> float:
        """By `tree_norm`: left nodes alone have noises."""
        return tree_norm(leaves, cap, separation, every)

    def _of(self, node: Sampler, stddev: float, leaves: int) -> PrefixNoise:
        return TreeNoise(node, stddev=stddev)


@dataclass(frozen=True)
class Padded(_Nodes):
    """The binary tree with as many noises in every prefix: see `PaddedTreeNoise`."""

    word: ClassVar[str] = "padded"

    def _of(self, node: Sampler, stddev: float, leaves: int) -> PrefixNoise:
        return PaddedTreeNoise(node, stddev=stddev, leaves=leaves)


@dataclass(frozen=True)
class Honaker(_Nodes):
    """The binary tree, read with every node it has released: see `HonakerNoise`."""

    word: ClassVar[str] = "honaker"

    def _of(self, node: Sampler, stddev: float, leaves: int) -> PrefixNoise:
        return HonakerNoise(node, stddev=stddev, leaves=leaves)


@dataclass(frozen=True)
class KAry(_Nodes):
    """A tree of many children that may also subtract: see `KAryNoise`."""

    word: ClassVar[str] = "k-ary"

    def nodes(self, leaves: int) -> int:
        """One node a level."""
        return KAryNoise.nodes_per_leaf(leaves)

    def _of(self, node: Sampler, stddev: float, leaves: int) -> PrefixNoise:
        return KAryNoise(node, stddev=stddev, leaves=leaves)


@dataclass(frozen=True)
class Independent(_Nodes):
    """Fresh noise on every leaf: see `IndependentNoise`."""

    word: ClassVar[str] = "independent"

    def person_norm(self, leaves: int, every: int, cap: int, separation: int) -> float:
        """By `leaves_norm`: a leaf is seen once."""
        return leaves_norm(np.eye(1, leaves)[0], every, cap, separation)

    def nodes(self, leaves: int) -> int:
        """Every release is one node."""
        return int(leaves > 0)

    def _of(self, node: Sampler, stddev: float, leaves: int) -> PrefixNoise:
        return IndependentNoise(node, stddev=stddev)


@dataclass(frozen=True)
class Window(_Nodes):
    """A tree that protects the users of the last `window` releases only: see `WindowTreeNoise`."""

    window: int
    lazy: bool = False
    """keep a block's root until the next block is full; fewer nodes in use"""

    def __post_init__(self) -> None:
        whole("window", self.window, 1)

    @property
    def word(self) -> str:  # type: ignore[override]  # a constant of the others
        """Name of the process in settings and notes."""
        return "window-lazy" if self.lazy else "window"

    def nodes(self, leaves: int) -> int:
        """One node a level of the window."""
        return WindowTreeNoise.nodes_per_leaf(self.window, leaves)

    def _of(self, node: Sampler, stddev: float, leaves: int) -> PrefixNoise:
        mode: Literal["lazy", "exact"] = "lazy" if self.lazy else "exact"
        return WindowTreeNoise(node, stddev=stddev, window=self.window, mode=mode, leaves=leaves)


PROCESSES: dict[str, Process] = {
    process.word: process
    for process in (BLT(), SquareRoot(), Tree(), Padded(), Honaker(), KAry(), Independent())
}
"""Processes by the words of agents' settings."""


def process_named(word: str) -> Process:
    """The process of that name; raises `InputError` where there is none."""
    one_of("prefix_sums", word, tuple(PROCESSES))
    return PROCESSES[word]


def _place(word: str) -> str:
    """The call site of a process's random numbers."""
    return f"{word} noise"
