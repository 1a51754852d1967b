"""Posterior of demand in which the effects of customers' features are shrunk by empirical Bayes."""

import numpy as np

from dpbandit.base import Floats

WIDTHS = ((0.3, 0.1), (2.0, 0.1), (8.0, 0.1), (2.0, 1.0), (8.0, 1.0), (8.0, 4.0))
"""Candidate prior standard deviations of the effects of customers' features on utility, and on its
slope in the price"""
_COMMON_STDDEV = 27.0, 15.0
"""Prior standard deviations of the constant, and of the price slope and the effects of products
that all customers share"""
_FIT_STDDEV = 4.0, 2.0
"""Prior standard deviations, in place of `WIDTHS`, of the one fit to the releases"""


def ridge_of(dim: int, length: int, widths: tuple[float, float] = _FIT_STDDEV) -> Floats:
    """Return prior precisions of the `length` parameters of "shrunk" `demand_rows`.

    The effect of a product has the same prior for each feature as that feature's on utility.
    """
    constant, shared = _COMMON_STDDEV
    level, slope = np.full(dim, widths[0]), np.full(dim, widths[1])
    products = length // (dim + 1) - 2  # directions in which products differ
    common, of_product = np.array([constant, shared]), np.append(shared, level)
    return np.concatenate([level, common, slope, *[of_product] * products]) ** -2.0


def averaged(mode: Floats, precision: Floats, dim: int) -> tuple[Floats, Floats]:
    """Return the mean (R, D) over candidate priors, and the likeliest one's precision (R, D, D).

    The `mode` and `precision` of the fit with `ridge_of` give a quadratic likelihood
    exp(b . theta - theta' L theta / 2), from which every prior of `WIDTHS` has its posterior and
    its evidence in closed form. Means are averaged with the evidence as weights.
    """
    D = mode.shape[1]
    b, likelihood = np.matvec(precision, mode), precision - np.diag(ridge_of(dim, D))
    ridges = np.array([ridge_of(dim, D, widths) for widths in WIDTHS])[:, None]  # (6, 1, D)
    precisions = likelihood + ridges[..., None] * np.eye(D)  # (6, R, D, D)
    means = np.linalg.solve(precisions, np.broadcast_to(b[..., None], (*precisions.shape[:-1], 1)))
    means = means[..., 0]
    log_determinant = np.log(ridges).sum(axis=-1) - np.linalg.slogdet(precisions)[1]
    evidence = (log_determinant + np.vecdot(b, means)) / 2  # (6, R), in logarithms
    weights = np.exp(evidence - evidence.max(axis=0))
    weights /= weights.sum(axis=0)
    best = precisions[evidence.argmax(axis=0), np.arange(len(mode))]
    # not one product, whose order of summation would depend on the number of replicas
    return np.asarray((weights[..., None] * means).sum(axis=0)), best
