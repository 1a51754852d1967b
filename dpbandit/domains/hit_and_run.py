"""Uniform points by a walk, where no direct construction is known.

Smith, "Efficient Monte Carlo procedures for generating points uniformly distributed over bounded
regions", Operations Research 1984: go in a uniform direction of V to a uniform point of the chord.
The uniform law is stationary. The walk starts at the centre, so its first points are not uniform,
and successive points are correlated.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from dpbandit.base.arrays import Floats, norms
from dpbandit.base.random_streams import Streams
from dpbandit.domains.domain import Domain

Chord: TypeAlias = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""A point x of C and a unit vector u of V, (R, N) each -> the range (R,), (R,) of t for which
x + t u stays in C."""

_FLAT = 1e-12
"""Slopes below this are rounding: the inequality does not cut the line."""


class Walk:
    """One step of hit-and-run a call, from the centre; stationary law uniform on C."""

    def __init__(self, domain: Domain, chord: Chord, streams: Streams, name: str) -> None:
        self._domain, self._chord = domain, chord
        k = domain.affine_dim
        self._directions = streams.normals(f"{name} direction", k)
        self._shares = streams.uniforms(f"{name} share")
        self._place = np.zeros((len(streams), k))  # in V, so that it cannot drift off the hull

    def __call__(self) -> Floats:
        """The next point of each replica, (R, N)."""
        domain, g = self._domain, self._directions()
        unit = g / norms(g)
        x = domain.centre + domain.embedded(self._place)
        low, high = self._chord(x, domain.embedded(unit))
        self._place = self._place + (low + self._shares() * (high - low))[:, None] * unit
        return domain.centre + domain.embedded(self._place)


def between(room: Floats, slopes: Floats) -> tuple[Floats, Floats]:
    """The chord under inequalities: t slopes <= room for each of M, (R, M) each -> (R,), (R,)."""
    room = np.maximum(room, 0.0)
    times = room / np.where(np.abs(slopes) > _FLAT, slopes, 1.0)
    low = np.where(slopes < -_FLAT, times, -np.inf).max(axis=-1)
    high = np.where(slopes > _FLAT, times, np.inf).min(axis=-1)
    return low, high
