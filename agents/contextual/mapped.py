"""Wrapper by which any agent over arms plays on public features of contexts."""

from collections.abc import Callable
from dataclasses import field, replace
from functools import cache
from math import sqrt
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from dpbandit.agent import Around, Count, Count0, Inner, Positive
from dpbandit.base import Bools, Floats, InputError, Ints, clip_norm
from dpbandit.privacy.premises import ALL_FACTS
from dpbandit.specs import ContextualSpec, ScoringAgent, Spec, fits, gaussian

Basis: TypeAlias = Literal["fourier", "products"]
N_FEATURES = 300  # default number of Fourier features, see `BANDWIDTH`
BANDWIDTH = 0.4
"""Default bandwidth of the Fourier basis. For LinUCB on digits (regularization 0.1, alpha 0.2, four
runs) 0.4 was as good as 0.3, and 300 features as good as 600; not tuned on other problems"""


@cache
def frequencies(dim: int, n_features: int, bandwidth: float, seed: int) -> Floats:
    """Return public frequencies drawn from N(0, I / bandwidth^2), (n_features / 2, dim)."""
    draw = np.random.Generator(np.random.SFC64(seed)).standard_normal
    return draw((n_features // 2, dim)) / bandwidth


def fourier(x: Floats, W: Floats) -> Floats:
    """Return cosines and sines of W x, together of norm 1, for m frequencies W: (..., 2 m).

    >>> fourier(np.zeros(3), np.ones((2, 3))).round(3).tolist()
    [0.707, 0.707, 0.0, 0.0]
    """
    phase = np.matvec(W, x)  # row by row: bits must not depend on the number of rows
    return np.concatenate([np.cos(phase), np.sin(phase)], axis=-1) / sqrt(len(W))


def products(x: Floats) -> Floats:
    """Return coordinates, and products of two (also squares): (..., d) -> (..., d + d (d + 1) / 2).

    The norm is at most 1 if that of x is, because all products together have norm `|x|^2`.

    >>> products(np.array([0.6, 0.8])).round(3).tolist()
    [0.424, 0.566, 0.255, 0.48, 0.453]
    """
    i, j = np.triu_indices(x.shape[-1])
    pairs = x[..., i] * x[..., j] * np.where(i == j, 1.0, sqrt(2))
    return np.concatenate([x, pairs], axis=-1) / sqrt(2)


class Mapped(Around[ContextualSpec]):
    """Wrapper by which an agent over arms plays on public features of contexts.

    If no linear model of the context fits, one of D features z(x) may; the fair baseline is then an
    agent without privacy on the same features. With x the context, or an arm's row of it, clipped
    to its public bound and divided by it::

        basis       z(x)
        fourier     (cos w_1 . x, .., cos w_m . x, sin w_1 . x, .., sin w_m . x) / sqrt(m)
        products    (x_i; x_i^2, sqrt(2) x_i x_j for i < j) / sqrt(2)

    The inner product of z(x) and z(y) is about exp(-|x - y|^2 / (2 bandwidth^2)) for "fourier", and
    (x . y + (x . y)^2) / 2 for "products".

    Random Fourier features: Rahimi and Recht, "Random features for large-scale kernel machines",
    NIPS 2007, with w_1, .., w_m drawn from N(0, I / bandwidth^2) by a public seed before the data.

    Guarantee:
        The guarantee and the ledger of `agent`. z is fixed before the data, so that the input of
        `agent` is a function of one user's round, and the wrapper stores nothing. `|z| <= 1`, which
        is the bound of contexts to which `agent` clips. A context with a NaN (no user came) stays
        NaN, for which statistics are 0.

    Differs from the paper:
        1. A cosine and a sine of each frequency in place of one cosine with a random phase: rows
           have norm 1 exactly, so that clipping to norm 1 loses nothing.
        2. Bandits in place of regression and classification.

    >>> from dpbandit.agents import LinUCB
    >>> from dpbandit.base import Streams
    >>> spec = ContextualSpec(n_actions=2, dim=3, horizon=9)
    >>> Mapped(LinUCB(), basis="products").make(spec, Streams([0])).inner.spec.dim
    9
    """

    # z(x) replaces x; actions and rounds are passed on unchanged
    hands_on = ALL_FACTS

    plays = ContextualSpec
    agent: Inner = field(kw_only=False)
    """config of the agent that plays on the features z(x)"""
    basis: Basis = "fourier"
    """kind of features z(x), random Fourier features or products of coordinates"""
    n_features: Count | None = None
    """number of features D = 2 m of "fourier", even; if None, 300"""
    bandwidth: Positive | None = None
    """length scale of "fourier", in units of the bound of contexts; if None, 0.4"""
    map_seed: Count0 | None = None
    """public seed of the frequencies of "fourier"; if None, 0"""

    def check(self) -> None:
        if self.n_features is not None and self.n_features % 2:
            raise InputError(f"Expected n_features={self.n_features} to be even.")
        for name in ("n_features", "bandwidth", "map_seed"):
            if self.basis != "fourier" and (value := getattr(self, name)) is not None:
                raise InputError(
                    f"Expected no {name}={value} with basis={self.basis!r}: it belongs to "
                    "basis='fourier'."
                )

    def start(self) -> None:
        if self.spec.constant_context:
            raise InputError(
                f"Mapped({type(self.agent).__name__}) needs contexts that differ, got an "
                f"{type(self.spec).__name__}, where all are 1: use the agent alone."
            )
        self.inner = self.agent.make(self.mapped(self.spec), self.streams)
        self.ledger = self.inner.ledger
        vars(self).update(masks=getattr(self.inner, "masks", ()))

    def mapped(self, spec: Spec) -> ContextualSpec:
        """Return the spec of the problem with contexts z(x), of dimension D and norm at most 1."""
        arms = fits(self, spec, ContextualSpec, shared=True)
        return arms.with_features(self._map(np.zeros(arms.dim)).size)

    def matrix_entries(self, spec: Any) -> int:
        """Return the number of matrix entries that `agent` may store for one replica."""
        visit = getattr(spec, "visit", spec)
        known = self.mapped(visit) if hasattr(visit, "with_features") else spec
        return int(known.matrix_entries)

    def gaussian(self, spec: Any) -> "Mapped":
        """Return this config with `agent` in a form that uses Gaussian noise alone."""
        return replace(self, agent=gaussian(self.agent, self.mapped(spec)))

    def for_demand(self) -> "Mapped":
        """Return this config with the defaults of `agent` for models of demand in `Priced`."""
        ready = getattr(self.agent, "for_demand", lambda: self.agent)
        return replace(self, agent=ready())

    def features(self, context: Floats) -> Floats:
        """Return the features z(x) of contexts, (..., d) -> (..., D)."""
        bound = self.spec.context_norm
        z = self._map(clip_norm(context, bound) / bound)
        lost = ~np.isfinite(context).all(axis=-1)
        if lost.any():
            z[lost] = np.nan
        return z

    def _map(self, x: Floats) -> Floats:
        if self.basis == "products":
            return products(x)
        chosen = self.n_features or N_FEATURES, self.bandwidth or BANDWIDTH, self.map_seed or 0
        return fourier(x, frequencies(x.shape[-1], *chosen))

    @property
    def rounds_to_release(self) -> Any:
        """Number of rounds until the policy of `agent` may change."""
        return getattr(self.inner, "rounds_to_release", [1])

    @property
    def scores(self) -> Callable[[Floats], Floats]:
        """Function from contexts to `agent`'s scores of arms; `agent` must have `scores`, too."""
        inner = cast(ScoringAgent, self.inner).scores
        return lambda context: inner(self.features(context))

    def act(self, context: Floats) -> Ints:
        action: Ints = self.inner.act(self.features(context))
        return action

    def act_among(self, context: Floats, mask: Bools) -> Ints:
        action: Ints = cast(Any, self.inner).act_among(self.features(context), mask)
        return action

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        self.inner.update(self.features(context), action, feedback)
