"""Links of generalised linear models, moments of their features, and priors of their parameters.

A GLM bandit has mean reward zeta(x . theta), with a link zeta. For a reward r its loss is M(x .
theta) - r x . theta, where M' = zeta: the gradient is (zeta(x . theta) - r) x, the residual times
the context. This is a quasi-likelihood; the probit log-likelihood has another gradient.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from math import inf, pi, sqrt
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy

from dpbandit.base import (
    Floats,
    InputError,
    abbrev,
    by_index,
    by_name,
    flag,
    index_of,
    inside,
    one_of,
    parse_json,
    read_text,
    reals,
    short_path,
    write_json,
)
from dpbandit.privacy.curves import delta_of, epsilon_of, mu_of
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.spends import GaussianSpend, Parallel

LinkName: TypeAlias = Literal["identity", "logistic", "probit"]


@dataclass(frozen=True)
class Link:
    """Link function zeta of a generalised linear model, and its slope.

    >>> LINKS["logistic"].mean(np.zeros(2)), LINKS["logistic"].largest_slope
    (array([0.5, 0.5]), 0.25)
    """

    name: str
    mean: Callable[[Floats], Floats]
    """link function, increasing, from x . theta to the mean reward"""
    slope: Callable[[Floats], Floats]
    """derivative of the link function, even, largest at 0"""
    largest_slope: float
    """largest slope of the link function, at 0"""

    def lipschitz(self, z: float, reward_low: float, reward_high: float) -> float:
        """Return the largest |mean(x . theta) - r| for |x . theta| <= z and rewards r in a range.

        Times the bound on contexts, it is the constant L in the paper of `DPHDB` (Han et al. 2022).
        """
        low, high = float(self.mean(np.array(-z))), float(self.mean(np.array(z)))
        return max(high - reward_low, reward_high - low)


def _identity(z: Floats) -> Floats:
    return z


def _one(z: Floats) -> Floats:
    return np.ones_like(z)


def _logistic(z: Floats) -> Floats:
    return np.asarray(scipy.special.expit(z))


def _logistic_slope(z: Floats) -> Floats:
    return np.asarray(scipy.special.expit(z) * scipy.special.expit(-z))


def _probit(z: Floats) -> Floats:
    return np.asarray(scipy.special.ndtr(z))


def _probit_slope(z: Floats) -> Floats:
    return np.exp(-z * z / 2) / sqrt(2 * pi)


LINKS = {  # id -> link function
    "identity": Link("identity", _identity, _one, 1.0),
    "logistic": Link("logistic", _logistic, _logistic_slope, 0.25),
    "probit": Link("probit", _probit, _probit_slope, 1 / sqrt(2 * pi)),
}


def link_of(name: str, *, otherwise: str = "identity") -> Link:
    """Return the link of a spec by name; for "other" and "poisson", the link named `otherwise`."""
    if name in ("other", "poisson"):
        name = otherwise
    one_of("link", name, LINKS)
    return LINKS[name]


_SYMMETRY_TOLERANCE = 1e-6
"""Largest asymmetry of a covariance, divided by its largest entry, that passes for rounding."""
_MAX_SIZE = 1e9
"""Bound on |mean| and mu of a prior, and on eigenvalues of its covariance and precision."""


@dataclass(frozen=True, repr=False)
class Prior:
    """Public normal prior of a parameter, N(mean, covariance).

    Releases of a private study are public, so its `Player.learned` may be the prior of the next
    study at no cost. A prior must not be made from data of users whom the certificate covers: a
    person in both studies pays for both. `dpbandit.clients.prior_from` makes a prior from an old
    log, at a privacy cost `mu` that agents add to their ledgers.

    Args:
        mean: n numbers, in an array of any shape; arms (K, d) are read arm by arm.
        covariance: a variance for all, n variances, or a positive definite (n, n) matrix.
        mu: mu-GDP that the release of the prior costs the people in its data; 0 is no cost.
        source: data that the prior was made from, in words for certificates; "" if it is public.
        disjoint: True if none of these people is among the users to come.

    Raises:
        InputError: a value is not as described.

    >>> Prior([0.5, -1.0], 0.25)
    Prior(of 2 numbers)
    """

    mean: Any
    covariance: Any
    mu: float = 0.0
    source: str = ""
    disjoint: bool = False

    def __post_init__(self) -> None:
        names = index_of(self.mean)
        ordered = by_index("covariance", self.covariance, names, "mean")
        if names is not None:
            ordered = by_name("covariance", ordered, names, "those of mean,")
        mean, covariance = _finite(self.mean), _finite(ordered)
        if mean is None or not mean.size or np.abs(mean).max() > _MAX_SIZE:
            raise InputError(
                f"Expected mean={abbrev(self.mean)} of a prior to be numbers of at most "
                f"{_MAX_SIZE:g} in size."
            )
        if covariance is None or not _is_covariance(covariance, mean.size):
            n = mean.size
            raise InputError(
                f"Expected covariance={abbrev(self.covariance)} of a prior to be a variance, {n} "
                f"of them or a symmetric positive definite {n} x {n} matrix, with eigenvalues from "
                f"{1 / _MAX_SIZE:g} to {_MAX_SIZE:g}."
            )
        inside("mu", self.mu, 0, _MAX_SIZE, ends=True)
        flag("disjoint", self.disjoint)
        if not isinstance(self.source, str) or (self.mu and not self.source):
            raise InputError(
                f"Expected source={abbrev(self.source)} of a prior to say in words what was "
                f"released at mu={self.mu:g}."
            )
        object.__setattr__(self, "mean", tuple(mean.ravel().tolist()))
        object.__setattr__(self, "covariance", _tuples(covariance.tolist()))

    def __repr__(self) -> str:
        source = f", from {self.source}" if self.source else ""
        return f"Prior(of {len(self.mean)} numbers{source})"

    @property
    def matrix(self) -> Floats:
        """Covariance as an (n, n) matrix."""
        n, covariance = len(self.mean), np.array(self.covariance)
        if covariance.ndim == 2:
            return (covariance + covariance.T) / 2
        return np.diag(np.broadcast_to(covariance, n))

    def ledger(self, ledger: Ledger) -> Ledger:
        """Return the ledger of an agent that starts with this prior, with the prior's cost added.

        A person in the prior's data who is also a user pays for both, unless `disjoint` is True.
        """
        if not self.source or ledger.mu == inf:
            return ledger
        cost = GaussianSpend(self.mu, f"prior of {self.source}")
        notion = ledger.notion
        if self.mu and notion.trust.model != "central":
            notion = notion.conditional_on("a curator who may see it holds the prior's log")
        if not (self.disjoint and self.mu and len(ledger.spends) == 1):
            return Ledger((*ledger.spends, cost), notion)
        note = f"users, or people of the prior of {self.source}"
        apart = notion.conditional_on("nobody of the prior's log is among the users")
        return Ledger((Parallel((*ledger.spends, cost), note),), apart)

    def left_of(self, epsilon: float, delta: float) -> tuple[float, float]:
        """Return the part of a target (epsilon, delta) that remains after the prior's cost.

        Raises `InputError` if the prior's release cost as much as the target, or more.
        """
        if not self.mu or epsilon == inf:
            return epsilon, delta
        mu = mu_of(epsilon, delta) * (1 - 1e-6)
        if self.mu >= mu and not (self.disjoint and self.mu <= mu_of(epsilon, delta)):
            raise InputError(
                f"Expected a target of more than the prior cost, mu={self.mu:.4g}, got mu={mu:.4g} "
                f"of epsilon={epsilon:g}: release the prior at less, or raise epsilon."
            )
        if self.disjoint:
            return epsilon, delta
        less = sqrt(mu**2 - self.mu**2)
        if epsilon > 1:  # the same mu as (epsilon, delta), whichever is not 0
            return epsilon_of(less, delta), delta
        left = delta_of(less, epsilon)
        if not left:
            raise InputError(
                f"Expected a target of more than the prior cost, mu={self.mu:.6g}, got mu={mu:.6g} "
                f"of epsilon={epsilon:g}: next to nothing is left."
            )
        return epsilon, left

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the prior as JSON, for `load`."""
        write_json(Path(path), asdict(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Prior":
        """Read a prior from a JSON file that `save` wrote, or one with "mean" and "covariance"."""
        text = read_text(path, errors="replace")
        try:
            return cls.of(parse_json(text))
        except ValueError as error:
            why = str(error) if isinstance(error, InputError) else "It is no JSON."
            raise InputError(f"Cannot take a prior from {short_path(path)}: {why}") from error

    @classmethod
    def of(cls, source: Any) -> "Prior":
        """Return `source` as a prior: a `Prior`, a mapping of its fields, or a file's path."""
        if isinstance(source, Prior):
            return source
        if isinstance(source, str | os.PathLike):
            return cls.load(source)
        known = {"mean", "covariance", "mu", "source", "disjoint"}
        if not isinstance(source, Mapping) or not {"mean", "covariance"} <= set(source) <= known:
            raise InputError(
                f"Expected prior={abbrev(source)} to be a Prior, or the path of a JSON file with "
                "its mean and covariance."
            )
        return cls(**source)


def posterior(mean: Floats, precision: Floats) -> Prior:
    """Return the prior N(mean, inverse of `precision`)."""
    covariance = np.linalg.inv(precision)
    return Prior(mean, (covariance + covariance.T) / 2)


def _finite(value: Any) -> Floats | None:
    try:
        array = reals(value)
    except ValueError:  # a word, ragged rows
        return None
    return array if np.isfinite(array).all() else None


def _is_covariance(array: Floats, n: int) -> bool:
    if array.shape in ((), (n,)):
        eigenvalues = array.ravel()
    elif array.shape == (n, n) and (
        np.abs(array - array.T).max() <= _SYMMETRY_TOLERANCE * np.abs(array).max()
    ):
        eigenvalues = np.linalg.eigvalsh((array + array.T) / 2)
    else:
        return False
    return bool(eigenvalues.min() >= 1 / _MAX_SIZE and eigenvalues.max() <= _MAX_SIZE)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
