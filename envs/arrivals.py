"""Who may come in which slot of the public clock: candidates, fixed before anybody comes."""

from typing import Literal, TypeAlias

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams

Arrivals: TypeAlias = Literal["exactly", "robin", "poisson", "loyal"]
MOST_VISITS = 100_000_000
"""Of all people together, where their order is drawn"""
ARRIVALS: tuple[Arrivals, ...] = ("exactly", "robin", "poisson", "loyal")


def candidates(
    arrivals: Arrivals, streams: Streams, *, people: int, cap: int, horizon: int
) -> Ints:
    """Who may come in each slot, (T, R). A slot has one candidate, so nobody is ever displaced.

    "exactly" and "loyal": everybody has `cap` slots, in uniformly random order. "robin": all take
    turns, in the same order. "poisson": every slot is somebody's with probability in proportion to
    a rate of hers, an exponential variable; most come rarely, some beyond the cap.
    """
    N, T, R = people, horizon, len(streams)
    if arrivals != "poisson" and N * cap < T:
        raise InputError(
            f"Expected horizon={T} to be at most people * visits = {N * cap}: allow more visits "
            "or invite more people."
        )
    if arrivals == "robin":
        return np.repeat(np.arange(T)[:, None] % N, R, axis=1)
    if arrivals == "poisson":
        rates = streams.exponentials("rates", N)()
        share = np.cumsum(rates, axis=1) / rates.sum(axis=1, keepdims=True)
        luck = streams.uniforms("candidates").take(T)
        found = [np.searchsorted(share[r], luck[:, r]) for r in range(R)]
        return np.minimum(np.column_stack(found), N - 1)
    if N * cap > MOST_VISITS:
        raise InputError(
            f"Expected people * visits = {N * cap} to be at most {MOST_VISITS}, of which slots are "
            'drawn: choose fewer visits, or arrivals="robin" or "poisson".'
        )
    order: Floats = streams.uniforms("candidates", N * cap)()
    return np.asarray((np.argsort(order, axis=1)[:, :T] % N).T)
