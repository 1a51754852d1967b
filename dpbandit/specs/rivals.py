"""The public facts of a price that a customer compares with offers of rivals."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from dpbandit.base import Floats, InputError, shown
from dpbandit.specs.models import Prior
from dpbandit.specs.protocols import PriceListSpec

_STEEPEST = 10.0
"""The logarithm of what a unit of the price takes away, at most; more overflows"""


@dataclass(frozen=True, kw_only=True)
class RivalsSpec(PriceListSpec):
    """Prices of one offer beside J public offers of rivals, of which a customer takes one.

    An offer is a row of D numbers, attributes and its price last. A customer has theta in R^D, and
    with the logistic function s and u_j = row_j . (theta_1, .., theta_D-1, -exp(theta_D))::

        P(she takes ours at price k) = s(u_k - log sum_j exp(u_j))

    Context (R, 1 + J D): 1, then the rows of the rivals over `largest`, all over sqrt(1 + J D).
    """

    kind: ClassVar[str] = "prices beside those of rivals"
    rivals: int
    """J"""
    offer: tuple[float, ...]
    """attributes of ours, D - 1"""
    largest: tuple[float, ...]
    """of each attribute and of rivals' prices, D, > 0"""
    survey: Prior
    """what a public survey says of theta in the population"""
    guess: Prior
    """what may be believed of theta without it"""
    dim: int = field(init=False)

    def __post_init__(self) -> None:
        D = len(self.largest)
        for name, size in (("offer", len(self.offer) + 1), *self._laws()):
            if size != D:
                raise InputError(f"Expected {name} to fit largest={shown(self.largest)}.")
        if self.survey.mu or self.guess.mu:
            raise InputError(
                "Expected survey and guess to be public, got one that cost the people of "
                f"{shown(self.survey.source or self.guess.source)}: no ledger would say so."
            )
        object.__setattr__(self, "dim", 1 + self.rivals * D)
        super().__post_init__()

    def _laws(self) -> Any:
        return (("survey", len(self.survey.mean)), ("guess", len(self.guess.mean)))

    def shown(self, offers: Floats) -> Floats:
        """Contexts `(..., dim)` of rivals' offers `(..., J, D)`."""
        scaled = (offers / self.largest).reshape(*offers.shape[:-2], -1)
        one = np.ones((*scaled.shape[:-1], 1))
        return np.concatenate([one, scaled], axis=-1) / np.sqrt(self.dim)

    def offers(self, context: Floats) -> Floats:
        """Rivals' offers `(..., J, D)` of contexts `(..., dim)`, the inverse of `shown`."""
        rows = context[..., 1:] * np.sqrt(self.dim)
        return rows.reshape(*rows.shape[:-1], self.rivals, -1) * self.largest

    def leads(self, theta: Floats, offers: Floats) -> tuple[Floats, Floats]:
        """How far ours is ahead of the rivals at price 0, in utility, and what a cent changes.

        Of theta `(..., M, D)` and offers `(..., J, D)`, both `(..., M)`.
        """
        slope = -np.exp(np.minimum(theta[..., -1], _STEEPEST))
        worth = np.concatenate([theta[..., :-1], slope[..., None]], axis=-1)
        theirs = worth @ offers.swapaxes(-1, -2)
        most = theirs.max(axis=-1)
        rivals = most + np.log(np.exp(theirs - most[..., None]).sum(axis=-1))
        return worth[..., :-1] @ np.array(self.offer) - rivals, slope

    def sales(self, theta: Floats, offers: Floats) -> Floats:
        """P(sale) at each price, `(..., M, K)`."""
        ahead, slope = self.leads(theta, offers)
        return np.asarray(expit(ahead[..., None] + slope[..., None] * np.array(self.prices)))
