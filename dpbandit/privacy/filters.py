"""Privacy filter: noisy releases of a sum, of adaptively chosen precision, within one budget."""

import numpy as np

from dpbandit.base import AnyArray, Floats, InputError, Paced, Streams, inside, shaped, whole
from dpbandit.privacy.mechanism import Mechanism, Statistic
from dpbandit.privacy.premises import SUMMED
from dpbandit.privacy.spends import GaussianSpend

_BUDGET_ROUNDING = 1e-12
"""Relative tolerance when requests are compared with the budget; it is added to the noise"""
_MIN_BUDGET, _MAX_BUDGET = 1e-150, 1e150
"""Bounds of a budget mu, whose square must neither underflow nor overflow"""


def _added_up(a: Floats, b: Floats) -> Floats:
    """Return a + b rounded up, never less than the true sum."""
    total = a + b
    back = total - a
    lost = (a - (total - back)) + (b - back)  # exactly, Knuth's TwoSum
    return np.where(lost > 0, np.nextafter(total, np.inf), total)


class FilteredSum(Mechanism):
    """Running sum released with noise, at times and precisions that an agent chooses.

    A filter in the sense of Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters", NIPS
    2016; for Gaussian releases by Smith and Thakurta, "Fully adaptive composition for Gaussian
    differential privacy" (arXiv 2210.17520); by Feldman and Zrnic, "Individual privacy accounting
    via a Renyi filter", NeurIPS 2021, and Whitehouse, Ramdas, Rogers and Wu, ICML 2023, for zCDP::

        granted = ask(mu_t (R,))        cost of the next release; 0 or NaN requests none
            where used + mu_t^2 <= mu^2:   used += mu_t^2, now, before the release
            elsewhere:                     refused, and nothing is used
        call(*datum)    S += the clipped round;  release S + N(0, (sensitivity / mu_t)^2) where it
                        was granted, NaN elsewhere; None if no replica has a grant

    Guarantee:
        If mu_t is a function of earlier releases (and of public facts and coins), all releases
        together are mu-GDP for replacing one user's round. *Proof.* Refusals keep used <= mu^2;
        assume equality, by a last Gaussian release at the rest of the budget, which only reveals
        more. With z_t the noises in standard deviations, neighbours' log-likelihood ratio is X +
        mu^2 / 2, X = sum of mu_t z_t. As mu_t is known before z_t, exp(i s X_t + s^2 used_t / 2) is
        a martingale, and used ends at mu^2 whatever was requested, so that X is N(0, mu^2): the
        ratio has the law of one mu-GDP Gaussian release. A user who moves a release by less, or
        came after it, loses less.

    An exhausted budget is no error: the agent goes on with its earlier releases. `used` is public,
    but no certificate: the certificate is mu from round 1 on, whatever is requested, also in
    `Ledger.spent`.

    Where every user is in one batch alone, batches compose in parallel (`CountedSums`), and a
    filter saves nothing: filters are for sums that are released several times.

    Args:
        statistic: the clipped function of a round that is summed.
        streams: the random streams of the replicas.
        name: name of the random stream of the noise.
        mu: budget of all releases together, 1e-150 to 1e150.
        horizon: number of rounds.

    >>> from dpbandit.privacy.moments import ClippedVectors
    >>> sums = FilteredSum(ClippedVectors(1), Streams([0]), "sum", mu=1.0, horizon=9)
    >>> sums.ask(np.array([0.8])), sums(np.ones((1, 1))).shape, sums.used
    (array([ True]), (1, 1), array([0.64]))
    >>> sums.ask(np.array([0.7])), sums(np.ones((1, 1))), sums.left.round(6)
    (array([False]), None, array([0.6]))
    """

    # "If mu_t is a function of earlier releases (and of public facts and coins)"
    needs = SUMMED

    def __init__(
        self, statistic: Statistic, streams: Streams, name: str, *, mu: float, horizon: int
    ) -> None:
        inside("mu", mu, _MIN_BUDGET, _MAX_BUDGET, ends=True)
        whole("horizon", horizon, 1)
        self.mu, self.sensitivity, self.uses = mu, statistic.sensitivity, horizon
        self.spend = GaussianSpend(mu, f"{name}: readings of mu {mu:.4g} in all")
        self._statistic = statistic
        self._noise = Paced(streams.normals(name, *statistic.shape))
        self._exact: Floats | float = 0.0  # never leaves here
        self.used: Floats = np.zeros(len(streams))
        """granted budget so far, the sum of mu_t^2, (R,)"""
        self._booked: Floats = np.zeros(len(streams))
        self._booked_at = -1

    @property
    def public(self) -> tuple[Floats, Floats]:  # type: ignore[override]
        return self.used, self._booked

    @property
    def left(self) -> Floats:
        """Largest cost mu of a noisy release that the rest of the budget grants, (R,)."""
        return np.sqrt(np.maximum(self.mu**2 - self.used, 0.0))

    def ask(self, mu: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Request releases of cost `mu` (R,) at the next call; return the mask (R,) of grants."""
        if self._booked_at == self._used:
            raise InputError("Expected one ask(mu) a round: the next reading is booked already.")
        shaped("mu", mu, self.used.shape)
        mu = np.asarray(mu, np.float64)  # a cost in fewer digits may be rounded down
        cost = np.square(np.where(mu > 0, np.minimum(mu, 2 * self.mu), 0.0))
        total = _added_up(self.used, cost)
        granted = (cost > 0) & (total <= self.mu**2 * (1 + _BUDGET_ROUNDING))
        self.used = np.where(granted, total, self.used)
        self._booked, self._booked_at = np.where(granted, mu, 0.0), self._used
        return granted

    def query(self, *datum: AnyArray) -> Floats:
        return self._statistic.total(*(array[None] for array in datum)) / self._statistic.units

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        """Return the round for `dpbandit.testing`, unchanged, as `query` clips it."""
        return datum

    def _release(self, *datum: AnyArray) -> Floats | None:
        self._exact = self._exact + self.query(*datum)
        reads = (self._booked > 0) & (self._booked_at == self._used - 1)
        if not reads.any():
            return None
        axes = (slice(None), *(None for _ in self._statistic.shape))
        mu = np.where(reads, self._booked, np.nan)[axes]
        noise = self.sensitivity * (1 + _BUDGET_ROUNDING) / mu * self._noise(reads)
        return np.asarray((self._exact + noise) * self._statistic.units)
