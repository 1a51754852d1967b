"""Private hard thresholding: the s largest coordinates of a vector, found and released with noise::

    peeling          picks                                           values
    LaplacePeeling   s times the largest of |v| + fresh Laplace      v + Laplace
                     noise among those that are left
    GumbelPeeling    the s largest of |v| + Gumbel noise, at once    v + Gaussian

Scales are multiples of how far one user moves v: one coordinate by at most `move` (l_inf), any s
of them together by at most `move_2` (l_2). A scale of 0 is plain hard thresholding, by the same
code, ties to the lowest index.

**Several rows**, s picks from each, cost no more than one row if a user who moves two of them moves
each by at most half of `move` and of `move_2`. For given all earlier picks, the j-th picks of the
two rows are independent and cost half of the epsilon, or range over half, each: together they are
one step of the whole epsilon or range. Gaussian values move by sqrt(2) / 2 of `move_2`; two Laplace
values moved by a half cost no more than one moved by the whole (`pure`).
"""

from dataclasses import dataclass
from functools import cache
from math import inf, log, sqrt
from typing import Protocol

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import at_least, gaussian_target, inside
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.ledger import Sequential, least_noise
from dpbandit.privacy.noise.laws import Gaussian, Gumbel, Laplace
from dpbandit.privacy.noise.samplers import Sampler
from dpbandit.privacy.pure import BoundedRangeSpend, LaplaceSpend, PureSpend
from dpbandit.privacy.spends import GaussianSpend


class Peel(Protocol):
    """A peeling that has been opened: what is released of a vector."""

    def __call__(self, v: Floats, move: float, move_2: float) -> Floats:
        """(R, P, D) -> the same with s noisy coordinates left in each of the P rows."""
        ...


class Peeling(Protocol):
    """What the two ways of peeling share."""

    def spend(self, picks: int, repeats: int, where: str) -> Sequential:
        """The cost of `repeats` peelings of `picks` coordinates each: picks, then values."""
        ...

    def sampler(self, streams: Streams, picks: int, shape: tuple[int, int]) -> Peel:
        """The peeling with its streams, of vectors `(R, *shape)`."""
        ...


@dataclass(frozen=True)
class LaplacePeeling:
    """Peeling as printed: s noisy maxima, one after the other, then s noisy values.

    Dwork, Su and Zhang, "Differentially private false discovery rate control", Journal of Privacy
    and Confidentiality 2021; in regression, Cai, Wang and Zhang, "The cost of privacy", Annals of
    Statistics 2021.

    Guarantee:
        If one user moves every coordinate by at most `move`, each its own way, then a pick is (2 /
        multiplier)-DP (`selection.ReportNoisyMax`), because `|v|` moves no further than v, and a
        value is a Laplace mechanism with movement over scale 1 / multiplier.
    """

    multiplier: float
    """Laplace scale over `move`, of picks and values"""

    def __post_init__(self) -> None:
        at_least("multiplier", self.multiplier, 0)

    def spend(self, picks: int, repeats: int, where: str) -> Sequential:
        """Pure picks and Laplace values."""
        ratio, count = 1 / self.multiplier if self.multiplier else inf, picks * repeats
        chosen = PureSpend.alike(f"{where}: {count} noisy maxima", 2 * ratio, count)
        values = LaplaceSpend(ratio if count else 0.0, count, f"{where}: {count} Laplace values")
        return Sequential((chosen, values), f"{where}: Laplace peeling")

    def sampler(self, streams: Streams, picks: int, shape: tuple[int, int]) -> Peel:
        """Each call draws (R, s, P, D) for the picks and (R, P, s) for the values."""
        law = Laplace(self.multiplier)
        return _OneByOne(
            picks,
            law.sampler(streams, "peeling picks", (picks, *shape)),
            law.sampler(streams, "peeling values", (shape[0], picks)),
        )


@dataclass(frozen=True)
class GumbelPeeling:
    """Peeling in one shot, with Gaussian noise on the values.

    Durfee and Rogers, NeurIPS 2019: the s largest of `|v|` + Gumbel noise have the law of s
    exponential mechanisms, one after the other (as `selection.OneShotTopK`).

    Guarantee:
        If one user moves every coordinate by at most `move`, each its own way, and any s of them by
        at most `move_2` in l_2, then a pick has bounded range 2 / pick, because `|v|` moves no
        further than v, and the values of one peeling are (1 / value)-GDP.
    """

    pick: float
    """Gumbel scale over `move`"""
    value: float
    """standard deviation over `move_2`"""

    def __post_init__(self) -> None:
        at_least("pick", self.pick, 0)
        at_least("value", self.value, 0)

    @classmethod
    def split(cls, noise: float, share: float, picks: int, repeats: int) -> "GumbelPeeling":
        """All together 1 / (2 noise^2)-zCDP, of which the picks spend `share`.

        The picks cost picks x repeats x (2 / pick)^2 / 8, the values repeats / (2 value^2).
        """
        return cls(noise * sqrt(picks * repeats / share), noise * sqrt(repeats / (1 - share)))

    def spend(self, picks: int, repeats: int, where: str) -> Sequential:
        """Picks of bounded range and Gaussian values."""
        count, eta = picks * repeats, 2 / self.pick if self.pick else inf
        mu = sqrt(repeats) / self.value if self.value else inf
        chosen = BoundedRangeSpend.alike(f"{where}: {count} Gumbel picks", eta, count)
        values = GaussianSpend(mu if count else 0.0, f"{where}: {count} Gaussian values")
        return Sequential((chosen, values), f"{where}: Gumbel peeling")

    def sampler(self, streams: Streams, picks: int, shape: tuple[int, int]) -> Peel:
        """Each call draws (R, P, D) for the picks and (R, P, s) for the values."""
        return _OneShot(
            picks,
            Gumbel(self.pick).sampler(streams, "peeling picks", shape),
            Gaussian(self.value).sampler(streams, "peeling values", (shape[0], picks)),
        )


def printed_peeling(epsilon: float, delta: float, *, picks: int, repeats: int) -> LaplacePeeling:
    """Each peeling claimed (epsilon / M, delta / M)-DP, for M = `repeats` of them.

    Laplace scale 2 move sqrt(3 s ln(M / delta)) M / epsilon.
    """
    gaussian_target(epsilon, delta)
    if epsilon == inf:
        return LaplacePeeling(0.0)
    return LaplacePeeling(2 * sqrt(3 * picks * log(repeats / delta)) * repeats / epsilon)


@cache
def least_peeling(
    epsilon: float, delta: float, *, picks: int, repeats: int, share: float
) -> GumbelPeeling:
    """The least noise with which all peelings together are certified (epsilon, delta)-DP.

    >>> peeling = least_peeling(1.0, 1e-4, picks=5, repeats=2, share=0.5)
    >>> peeling.spend(5, 2, "").delta(1.0) <= 1e-4
    True
    """
    gaussian_target(epsilon, delta)
    inside("share", share, 0, 1, ends=False)

    def spend(noise: float) -> Sequential:
        return GumbelPeeling.split(noise, share, picks, repeats).spend(picks, repeats, "")

    noise = least_noise(spend, epsilon=epsilon, delta=delta)
    return GumbelPeeling.split(noise, share, picks, repeats)


@dataclass
class _OneByOne:
    picks: int
    maxima: Sampler
    values: Sampler

    def __call__(self, v: Floats, move: float, move_2: float) -> Floats:
        noise, left = move * self.maxima(), np.abs(v)
        chosen = np.empty((*v.shape[:2], self.picks), dtype=np.int64)
        for j in range(self.picks):
            chosen[..., j] = (left + noise[:, j]).argmax(axis=-1)
            np.put_along_axis(left, chosen[..., j : j + 1], -inf, axis=-1)
        return _kept(v, chosen, move * self.values())


@dataclass
class _OneShot:
    picks: int
    gumbel: Sampler
    values: Sampler

    def __call__(self, v: Floats, move: float, move_2: float) -> Floats:
        noisy = np.abs(v) + move * self.gumbel()
        chosen = np.argsort(-noisy, axis=-1, kind="stable")[..., : self.picks]
        return _kept(v, chosen, move_2 * self.values())


def _kept(v: Floats, chosen: Ints, noise: Floats) -> Floats:
    """v + noise on the chosen coordinates (R, P, s), 0 elsewhere."""
    kept = np.zeros_like(v)
    np.put_along_axis(kept, chosen, np.take_along_axis(v, chosen, axis=-1) + noise, axis=-1)
    return kept
