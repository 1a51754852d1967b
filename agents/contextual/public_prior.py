"""Warm starts from a public prior that is widened if the releases contradict it."""

from copy import copy

import numpy as np

from dpbandit.base import Bools, Floats, InputError
from dpbandit.specs import Prior

_WIDER = 4.0 ** np.arange(25)
"""tau, by how much a covariance may have to be multiplied."""


class NoPrior:
    """Nothing is known: adds nothing to a likelihood."""

    informed = False

    @property
    def precision(self) -> Floats | float:
        """(R, n, n), or 0."""
        return 0.0

    @property
    def weighted_mean(self) -> Floats | float:
        """The precision times the mean, (R, n), or 0."""
        return 0.0

    def one(self, replicas: slice | Bools) -> "NoPrior":
        """That of some replicas."""
        return self

    def widen(self, b: Floats, precision: Floats) -> None:
        """Nothing to widen."""

    def gradient(self, theta: Floats) -> Floats | float:
        """Of the log density at theta, (R, n)."""
        return 0.0

    def loss(self, theta: Floats) -> Floats | float:
        """Minus twice the log density, up to a constant, (R,)."""
        return 0.0


class PublicPrior(NoPrior):
    """N(m, tau S) of a parameter, tau >= 1 chosen by releases: a wrong prior is let go.

    Given a likelihood exp(b . theta - theta' L theta / 2), tau is that of 1, 4, 16, ... for which
    the likelihood, integrated over the prior, is largest: with S = C C', g = C'(b - L m) and the
    eigenvalues l and eigenvectors U of C' L C, that of the largest::

        sum_i  (U' g)_i^2 / (l_i + 1 / tau) - log(1 + tau l_i).
    """

    informed = True

    def __init__(self, prior: Prior, replicas: int, size: int, *, meaning: str) -> None:
        if len(prior.mean) != size:
            raise InputError(f"Expected prior={prior} to be of {size} numbers, {meaning}.")
        covariance = prior.matrix
        self.mean: Floats = np.array(prior.mean)
        self._root = np.linalg.cholesky(covariance)
        inverse = np.linalg.inv(self._root)
        self._precision: Floats = inverse.T @ inverse
        self.tau: Floats = np.ones(replicas)

    @property
    def precision(self) -> Floats:
        return np.asarray(self._precision / self.tau[:, None, None])

    @property
    def weighted_mean(self) -> Floats:
        return np.asarray(self._precision @ self.mean / self.tau[:, None])

    def one(self, replicas: slice | Bools) -> "PublicPrior":
        # That of some replicas: what is learned of its width is learned here, too
        some = copy(self)
        some.tau = self.tau[replicas]
        return some

    def gradient(self, theta: Floats) -> Floats:
        return np.asarray(np.vecmat(self.mean - theta, self._precision) / self.tau[:, None])

    def loss(self, theta: Floats) -> Floats:
        return np.asarray(np.vecdot(self.gradient(theta), self.mean - theta))

    def widen(self, b: Floats, precision: Floats) -> None:
        root = self._root
        eigenvalues, U = np.linalg.eigh(root.T @ precision @ root)
        seen = np.maximum(eigenvalues, 0.0)[..., None]  # (R, n, 1)
        g = np.vecmat(np.vecmat(b - precision @ self.mean, root), U)[..., None]
        evidence = (g**2 / (seen + 1 / _WIDER) - np.log1p(_WIDER * seen)).sum(axis=1)
        self.tau[:] = _WIDER[evidence.argmax(axis=1)]


def prior_of(prior: Prior | None, replicas: int, size: int, *, meaning: str) -> NoPrior:
    """A prior of `size` numbers for a running agent, if there is one."""
    return NoPrior() if prior is None else PublicPrior(prior, replicas, size, meaning=meaning)
