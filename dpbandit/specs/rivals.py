"""Specs of pricing problems in which each customer has her own demand coefficients."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from dpbandit.base import MOST_DIM, Floats, InputError, abbrev, positive, vector, whole
from dpbandit.specs.models import Prior
from dpbandit.specs.selling import PriceListSpec

_MAX_LOG_SLOPE = 10.0
"""Largest log of the utility lost per unit of price; a larger one overflows."""


@dataclass(frozen=True, kw_only=True)
class TastesSpec(PriceListSpec):
    """Prices of one offer; each customer buys by a logit model with her own coefficients theta."""

    visited_as: ClassVar[str] = "prices for people"
    survey: Prior
    """prior of theta in the population, from a public survey"""
    guess: Prior
    """prior of theta in the population without the survey"""

    def __post_init__(self) -> None:
        self._check_priors()
        super().__post_init__()

    def _check_priors(self) -> None:
        """Raise `InputError` unless `survey` and `guess` are priors without a privacy cost."""
        for name in ("survey", "guess"):
            if not isinstance(prior := getattr(self, name), Prior):
                raise InputError(f"Expected {name}={abbrev(prior)} to be a Prior.")
        if self.survey.mu or self.guess.mu:
            raise InputError(
                "Expected survey and guess to be public, got one that cost the people of "
                f"{abbrev(self.survey.source or self.guess.source)}: no ledger would say so."
            )

    def with_features(self, dim: int) -> Self:
        raise InputError(
            f"Expected contexts as they are for a {type(self).__name__}, whose survey is of their "
            f"own features, got a map to dim={dim}."
        )

    def seen(self, context: Floats) -> Floats:
        """Return features of contexts `(..., dim)` in the form that the method `leads` takes."""
        raise NotImplementedError

    def held(self, theta: Floats) -> Floats:
        """Return M samples of D numbers theta, `(..., M, D)`, in the form that `leads` takes."""
        return theta

    def leads(self, held: Floats, seen: Floats) -> tuple[Floats, Floats]:
        """Return the logit of a sale at price 0 and its slope in the price for M samples of theta.

        The arguments are results of the methods `held` and `seen`; both results are `(..., M)`.
        """
        raise NotImplementedError

    def sales(self, theta: Floats, seen: Floats) -> Floats:
        """Return P(sale) at each of K prices, `(..., M, K)`, for M samples theta `(..., M, D)`."""
        ahead, slope = self.leads(self.held(theta), seen)
        return np.asarray(expit(ahead[..., None] + slope[..., None] * np.array(self.prices)))


@dataclass(frozen=True, kw_only=True)
class OwnLogitSpec(TastesSpec):
    """Prices for customers with known features x, who buy by their own logit coefficients.

    A customer has coefficients theta = (a, b). With the logistic function s, F = (1, x), G = F or
    (1,), and prices q scaled to be -1 and 1 at the ends of the public `price_range`::

        P(she buys at price q) = s(F . a - exp(G . b) q)

    The context is F / sqrt(dim), (R, dim).
    """

    kind: ClassVar[str] = "prices and a customer's own logit"
    price_range: tuple[float, float]

    def __post_init__(self) -> None:
        self._check_priors()
        D = len(self.survey.mean)
        if D not in (self.dim + 1, 2 * self.dim) or len(self.guess.mean) != D:
            raise InputError(
                f"Expected survey and guess to be of {self.dim + 1} or {2 * self.dim} numbers, got "
                f"{D} and {len(self.guess.mean)}."
            )
        super().__post_init__()

    def seen(self, context: Floats) -> Floats:
        return context * np.sqrt(self.dim)

    def leads(self, theta: Floats, seen: Floats) -> tuple[Floats, Floats]:
        # See `TastesSpec`; `seen` is F `(..., dim)`
        (low, high), b = self.price_range, theta[..., self.dim :]
        G = seen[..., : b.shape[-1]]
        slope = -np.exp(np.minimum(_scalar_products(b, G), _MAX_LOG_SLOPE)) * 2 / (high - low)
        return _scalar_products(theta[..., : self.dim], seen) - slope * (low + high) / 2, slope


def _scalar_products(theta: Floats, seen: Floats) -> Floats:
    """Return scalar products of M vectors, `(..., M, k)`, and features `(..., k)`."""
    return np.asarray((theta @ seen[..., None])[..., 0])


@dataclass(frozen=True, kw_only=True)
class RivalsSpec(TastesSpec):
    """Prices of our offer beside J public offers of rivals; a customer takes one of all.

    An offer is a row of D numbers, its attributes and then its price. A customer has D coefficients
    theta, and the utility u_j = row_j . (theta_1, .., theta_D-1, -exp(theta_D)) of offer j; with
    our utility u_k at price k and the logistic function s::

        P(she takes ours at price k) = s(u_k - log sum_j exp(u_j))

    The context (R, 1 + J D) is 1 and the rivals' rows divided by `largest`, all / sqrt(1 + J D).
    """

    kind: ClassVar[str] = "prices beside those of rivals"
    rivals: int
    """number of rivals"""
    offer: tuple[float, ...]
    """attributes of our offer"""
    largest: tuple[float, ...]
    """largest absolute value, > 0, of each attribute and, as last entry, of the rivals' prices"""
    dim: int = field(init=False)

    def __post_init__(self) -> None:
        self._check_priors()
        whole("rivals", self.rivals, 1, MOST_DIM)
        largest = vector("largest", self.largest, None)
        positive("the smallest of largest", float(largest.min()))
        D = len(largest)
        offer = vector("offer", self.offer, D - 1)
        for name in ("survey", "guess"):
            if len(getattr(self, name).mean) != D:
                raise InputError(f"Expected {name} to fit largest={abbrev(self.largest)}.")
        object.__setattr__(self, "largest", tuple(largest.tolist()))
        object.__setattr__(self, "offer", tuple(offer.tolist()))
        object.__setattr__(self, "dim", 1 + self.rivals * D)
        super().__post_init__()

    def context_of(self, offers: Floats) -> Floats:
        """Return contexts `(..., dim)` of rivals' offers, `(..., rivals, attributes and price)`."""
        scaled = (offers / self.largest).reshape(*offers.shape[:-2], -1)
        one = np.ones((*scaled.shape[:-1], 1))
        return np.concatenate([one, scaled], axis=-1) / np.sqrt(self.dim)

    def offers(self, context: Floats) -> Floats:
        """Return the rivals' offers in contexts `(..., dim)`, inverting `context_of`."""
        rows = context[..., 1:] * np.sqrt(self.dim)
        return rows.reshape(*rows.shape[:-1], self.rivals, -1) * self.largest

    seen = offers

    def held(self, theta: Floats) -> Floats:
        # Utility of a unit of each attribute, and of the price: `(..., M, D)`
        slope = -np.exp(np.minimum(theta[..., -1:], _MAX_LOG_SLOPE))
        return np.concatenate([theta[..., :-1], slope], axis=-1)

    def leads(self, parameters: Floats, offers: Floats) -> tuple[Floats, Floats]:
        # Utility of our offer at price 0 less the rivals' log-sum-exp, and utility per unit of
        # price, both `(..., M)`, from parameters `(..., M, D)` and offers `(..., J, D)`
        theirs = offers @ parameters.swapaxes(-1, -2)  # (..., J, M): sums over few run along many
        most = theirs.max(axis=-2)
        theirs -= most[..., None, :]
        rivals = most + np.log(np.exp(theirs, out=theirs).sum(axis=-2))
        return parameters[..., :-1] @ np.array(self.offer) - rivals, parameters[..., -1]
