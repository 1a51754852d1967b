"""Posterior of demand in which the effects of customers' features are shrunk by empirical Bayes."""

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from dpbandit.agents.contextual.released_scores import Fit
from dpbandit.base import Floats

WIDTHS = ((0.3, 0.1), (2.0, 0.1), (8.0, 0.1), (2.0, 1.0), (8.0, 1.0), (8.0, 4.0))
"""Candidate prior standard deviations of the effects of customers' features on utility, and on its
slope in the price"""
_COMMON_STDDEV = 27.0, 15.0
"""Prior standard deviations of the constant, and of the price slope and the effects of products
that all customers share"""
_FIT_STDDEV = 4.0, 2.0
"""Prior standard deviations, in place of `WIDTHS`, of the one fit to the releases"""


def ridge_of(
    dim: int, length: int, widths: tuple[float, float] = _FIT_STDDEV, *, bends: Sequence[float] = ()
) -> Floats:
    """Return prior precisions of the `length` parameters of "shrunk" or "curve" `demand_rows`.

    The effect of a product has the same prior for each feature as that feature's on utility.
    `bends` are the prior standard deviations of the parameters of a curve's bends.
    """
    constant, shared = _COMMON_STDDEV
    level, slope = np.full(dim, widths[0]), np.full(dim, widths[1])
    products = (length - len(bends)) // (dim + 1) - 2  # directions in which products differ
    common, of_product = np.array([constant, shared]), np.append(shared, level)
    every = [level, common, slope, *[of_product] * products, np.asarray(bends, float)]
    return np.concatenate(every) ** -2.0


class Averaged(NamedTuple):
    """Posterior of demand under all `WIDTHS`."""

    mean: Floats
    """mean parameter over priors, weighted by their evidence, (R, D)"""
    precision: Floats
    """precision of the likeliest prior's posterior, (R, D, D)"""
    evidence: Floats
    """log evidence, minus that of the one prior of the fit, (R,)"""


def averaged(
    fit: Fit, dim: int, *, bends: Sequence[float] = (), below: float | None = None
) -> Averaged:
    """Return the posterior under all candidate priors, for `dim` features of a customer.

    A fit with `ridge_of` gives a quadratic likelihood exp(b . theta - theta' L theta / 2), from
    which every prior of `WIDTHS` has its posterior and its evidence in closed form. Means are
    averaged with the evidence as weights. If the price slope that all customers share has to be
    smaller than `below`, a prior's mean is the mean given a slope of `below` where it would exceed
    it, and its evidence is that of smaller slopes, which have half the probability a priori.
    """
    mode, precision, slope = fit.theta, fit.precision, dim + 1
    fitted = ridge_of(dim, mode.shape[1], bends=bends)
    b = np.matvec(precision, mode)
    if below is not None:  # a fit that ends at the bound is no mode
        b = b + fit.gradient
    likelihood = precision - np.diag(fitted)
    ridges = np.array([ridge_of(dim, mode.shape[1], widths, bends=bends) for widths in WIDTHS])
    ridges = ridges[:, None]  # (6, 1, D)
    precisions = likelihood + ridges[..., None] * np.eye(mode.shape[1])  # (6, R, D, D)
    covariances = np.linalg.inv(precisions)
    means = np.matvec(covariances, b)
    evidence = (np.log(ridges).sum(axis=-1) - np.linalg.slogdet(precisions)[1]) / 2
    evidence = evidence + np.vecdot(b, means) / 2  # (6, R), in logarithms
    if below is not None:
        column = covariances[..., slope]
        above, variance = means[..., slope] - below, column[..., slope]
        evidence = evidence + log_ndtr(-above / np.sqrt(variance)) + log(2)
        means = means - np.maximum(above / variance, 0)[..., None] * column
    of_fit = (np.log(fitted).sum() - np.linalg.slogdet(precision)[1]) / 2
    of_fit = of_fit + np.vecdot(b - np.matvec(precision, mode) / 2, mode)
    highest = evidence.max(axis=0)
    weights = np.exp(evidence - highest)
    total = weights.sum(axis=0)
    best = precisions[evidence.argmax(axis=0), np.arange(len(mode))]
    # not one product, whose order of summation would depend on the number of replicas
    mean = np.asarray((weights[..., None] / total[:, None] * means).sum(axis=0))
    return Averaged(mean, best, highest + np.log(total / len(WIDTHS)) - of_fit)
