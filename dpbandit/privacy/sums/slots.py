"""How the rounds of a running sum enter its releases: what several visits of a person add up to."""

from dataclasses import dataclass
from functools import cache

from dpbandit.privacy.people import fading_norm
from dpbandit.privacy.sums.prefix_sums import Factorisation


@dataclass(frozen=True)
class FadingSlots:
    """Of a fading sum with these ends of batches."""

    ends: tuple[int, ...]
    fade: float
    moving: float = 2.0
    """see `Slots`"""

    def person_norm(self, cap: int, separation: int) -> float:
        """S(k, b) per unit of a round."""
        return _fading(self.ends, self.fade, cap, separation)


@dataclass(frozen=True)
class PrefixSlots:
    """Of prefix sums of `leaves` releases, one after `every` rounds."""

    factorisation: Factorisation
    leaves: int
    every: int
    moving: float = 2.0
    """see `Slots`"""

    def person_norm(self, cap: int, separation: int) -> float:
        """S(k, b) per unit of a round."""
        return _prefix(self.factorisation, self.leaves, self.every, cap, separation)


_fading = cache(fading_norm)


@cache
def _prefix(
    factorisation: Factorisation, leaves: int, every: int, cap: int, separation: int
) -> float:
    return factorisation.person_norm(leaves, every, cap, separation)
