"""Shrinkage: turning a noisy vector whose noise level is public into a better estimate.

All functions take z = (mean + standard normal noise), shape (R, n), and return estimates of the
means, replica by replica. They only see what has been released, so they are free.
"""

from collections.abc import Callable

import numpy as np

from dpbandit.base import Floats

_VARIANCES = np.concatenate([[0.0], np.geomspace(0.25, 256.0, 11)])
"""Prior variances of the scale mixture, in units of the noise."""
_STEPS = 30
"""EM steps: the weights have settled to about 1 %."""


def raw(z: Floats) -> Floats:
    """z itself."""
    return z


def soft_threshold(z: Floats) -> Floats:
    """Every coordinate one standard deviation closer to 0."""
    return np.sign(z) * np.maximum(np.abs(z) - 1.0, 0.0)


def empirical_bayes(z: Floats) -> Floats:
    """The posterior mean under a scale mixture of normals fitted to z itself.

    Stephens, "False discovery rates: a new deal", Biostatistics 2017 (adaptive shrinkage), with
    known noise: means ~ sum_k weight_k N(0, variance_k) on a fixed grid that contains 0; weights
    are found by EM, with one observation's worth of prior on 0. Sparse vectors are thresholded,
    dense ones scaled, and nobody has to know which of the two they are.

    >>> empirical_bayes(np.array([[9.0, 0.5, -0.5, 0.1, 0.2, -0.3]])).round(1) + 0.0
    array([[8.9, 0. , 0. , 0. , 0. , 0. ]])
    """
    total = 1.0 + _VARIANCES
    density = -0.5 * (z[..., None] ** 2 / total + np.log(total))  # (R, n, k)
    likelihood = np.exp(density - density.max(axis=-1, keepdims=True))
    weights = np.full((len(z), 1, len(total)), 1.0 / len(total))
    prior = 1.0 * (_VARIANCES == 0.0)
    for _ in range(_STEPS):
        posterior = likelihood * weights
        posterior /= posterior.sum(axis=-1, keepdims=True)
        weights = (posterior.sum(axis=1, keepdims=True) + prior) / (z.shape[1] + 1)
    posterior = likelihood * weights
    posterior /= posterior.sum(axis=-1, keepdims=True)
    return z * (posterior * (_VARIANCES / total)).sum(axis=-1)


SHRINKAGES: dict[str, Callable[[Floats], Floats]] = {
    "none": raw,
    "soft-threshold": soft_threshold,
    "empirical-bayes": empirical_bayes,
}
