"""Exact laws of the lazy player's whole transcript, two experts, written apart from the code.

A transcript is who plays first, when tests fire and who is drawn then. Given the experts the
threshold noises of segments are independent, so it has a probability that is a product of
integrals, one a segment (`tests.privacy.choices.test_sparse_vector.Law`), and of softmaxes.
"""

from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, product
from math import exp

import numpy as np
from scipy.stats import expon, laplace

from tests.privacy.choices.test_sparse_vector import Law

LOSSES = tuple(product((0, 1), repeat=2))


@dataclass(frozen=True)
class Player:
    """Algorithm 1 of two experts, or with `restarts` its repetition with a doubled L*.

    Tests follow rounds 1..T-1. The remaining fields are mistakes, for the tests to find.
    """

    noise: str = "exponential"
    eps1: float = 0.6
    eta: float = 0.4
    K: int = 1
    margin: float = 3.0
    best_loss: float = 0.0
    restarts: bool = False
    lag: bool = False
    scales: tuple = (1.0, 1.0)
    """of threshold and test noise, times 1 / eps1"""
    weight: float = 0.5
    """draws have weights exp(-weight eta S)"""
    broken: str = ""
    """a mistake of `Law`, or of this class: "overlap", "keeps S\""""

    @cached_property
    def segment(self):
        """P(queries (less the threshold) do not fire but, if asked, the last)."""
        noise = expon if self.noise == "exponential" else laplace
        broken = self.broken if self.broken not in ("overlap", "keeps S") else None
        scales = [factor / self.eps1 for factor in self.scales]
        law = Law(noise, *scales, broken or None, theta=0.0)
        return cache(lambda queries, fires: law.of([(queries, fires)]))

    def transcripts(self, sequence):
        """{transcript: probability} for losses (T, 2)."""
        found = {}
        for x in (0, 1):
            self._segments(found, sequence, (x,), 0.5, start=0, since=0, k=0, best=self.best_loss)
        return found

    def _segments(self, found, sequence, past, p, *, start, since, k, best):
        """All that can follow `past`; a segment of its last expert begins in round `start`.

        `since` is the first round that counts for draws.
        """
        x, T = past[-1], len(sequence)
        first = start - (self.broken == "overlap" and start > 0)
        theta, late = self.margin + best, int(self.lag)
        losses = (losses[x] for losses in sequence[first:])
        q = tuple(total - theta for total in accumulate(losses))[start - first :]
        for n in range(1, T - start - late):
            t = start + n + late  # the rounds that are over when somebody else begins
            fires = p * self.segment(q[:n], True)
            if k < self.K:
                weights = self.weights(sequence, since, t, best)
                for y in (0, 1):
                    arguments = {"start": t, "since": since, "k": k + 1, "best": best}
                    self._segments(found, sequence, (*past, t, y), fires * weights[y], **arguments)
            elif self.restarts:
                for y in (0, 1):
                    new = since if self.broken == "keeps S" else t
                    arguments = {"start": t, "since": new, "k": 0, "best": 2 * best}
                    self._segments(found, sequence, (*past, t, y), fires / 2, **arguments)
            else:
                found[*past, t] = fires
        n = T - start - late - 1
        found[past] = p * self.segment(q[:n], False) if n > 0 else p

    def weights(self, sequence, since, t, best):
        totals = (sum(losses[y] for losses in sequence[since:t]) for y in (0, 1))
        w = [exp(-self.weight * self.eta * max(S, best)) for S in totals]
        return [one / sum(w) for one in w]

    def worst(self, T):
        """The largest log-ratio of any transcript, one round replaced, over all 0/1 losses."""
        laws = [self.transcripts(s) for s in product(LOSSES, repeat=T)]
        P = np.array([list(law.values()) for law in laws])
        assert all(law.keys() == laws[0].keys() for law in laws)
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-9)
        with np.errstate(divide="ignore", invalid="ignore"):  # what never happens has no ratio
            log = np.log(P).reshape(*[4] * T, -1)
            return max(np.nanmax(log.max(axis=i) - log.min(axis=i)) for i in range(T))

    def but(self, **changes):
        return replace(self, **changes)
