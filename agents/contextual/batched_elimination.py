"""Batched elimination: arms that an earlier epoch's release refutes are not played."""

from dataclasses import dataclass
from math import inf, log, sqrt

import numpy as np
import numpy.typing as npt

from dpbandit.agents.contextual.epochs import EpochPlayer, EpochSettings, Regression
from dpbandit.base import Floats, Ints, Streams, clip_norm, inside, positive
from dpbandit.specs import BanditSpec, ContextualSpec, ScoringAgent, fits

_DESIGN_STEPS = 3


@dataclass(frozen=True, kw_only=True)
class BatchedElimination(EpochSettings):
    """Elimination with one release an epoch, at a fraction of widths that are proved.

    A design of this project, from parts that are well known. In epoch m = 0, 1, ..., M, of first,
    2 first, 4 first, ... rounds::

        1. every user's arms survive epoch j = 0..m-1 in turn where
               x_a . theta_j + w_j(a) >= max over the survivors of x_b . theta_j - w_j(b)
        2. play a survivor, drawn from their G-optimal design (three steps p_a <- p_a
           |x_a|^2_{V(p)^-1} / d from the uniform; arms with parameters of their own: uniform)
        3. at the end release Gram matrix G and moment u of the epoch, with noise:
               A = G + shift I,    theta_m = A^-1 u,    shift = max(2 Gamma, C^2 / d),
               w_m(x) = width [ z h |x|_{A^-1} + (z s_u + (Gamma + shift) S) |A^-1 x| ],
               z = sqrt(2 ln(8 K T M / failure)),
               Gamma = s (2 sqrt(d) + 2 sqrt(ln(4 M G / failure)))

    h is half the range of rewards, s and s_u are the standard deviations of the noise off the
    diagonal and in u, S bounds `|theta|`, G counts matrices.

    Code:
        Steps 1 and 2 are `EliminationPlayer._choose`, step 3 is `EliminationPlayer._learn` with
        `Regression.widths` (epochs.py).

    Guarantee:
        (epsilon, delta)-joint DP for replacing one user's round, exactly mu-GDP, as `EpochPlayer`
        proves: she is in one release. **Widths**, with `width` = 1, linear mean rewards and
        contexts that do not react to rewards: with probability 1 - `failure` the best arm survives,
        so that a round of epoch m + 1 costs at most 4 max_a w_m(x_a). Actions of epoch m depend on
        earlier epochs only; given its contexts and arms its noises eta are independent, and::

            theta_m - theta = A^-1 (sum of eta x + nu - (N + shift I) theta),   |N| <= Gamma,

        whose three parts the terms of w bound, because A >= G + Gamma I. With independent
        users and G-optimal play `E |x|^2_{(E V)^-1} <= d^2` for every surviving row, which is
        attained: regret of order z h d sqrt(T) + (z s_u + (Gamma + shift) S) d / sqrt(lambda) for a
        first epoch much longer than d ln d (a sketch), lambda the least eigenvalue of the average
        Gram matrix.

    **Proved widths eliminate little**: at T = 5,000 with 3 features they lose 89, 62 and 51 % of
    what uniform play loses at epsilon 1, 4 and 8; with 5 features at epsilon 1 they
    never eliminate anything, and every arm is played at random to the end. The default is
    therefore a fiftieth of the proved width, without a theorem about regret; privacy is the same at
    every width.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=20, dim=3, horizon=5000, shared=True)
    >>> round(certify(BatchedElimination(epsilon=4.0), spec).epsilon, 6)
    4.0
    """

    width: float = 0.02
    """of the proved one; 1 is proved, and plays at random unless there are few features"""
    parameter_norm: float | None = None
    """S, a bound on `|theta|`; if None, the largest that half the range of rewards allows"""
    failure: float = 0.05
    """probability with which the best arm may be eliminated (utility only, never privacy)"""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("width", self.width)
        if self.parameter_norm is not None:
            positive("parameter_norm", self.parameter_norm)
        inside("failure", self.failure, 0, 1, ends=False)

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        return EliminationPlayer(self, fits(self, spec, ContextualSpec), streams)


class EliminationPlayer(EpochPlayer):
    """See `BatchedElimination`."""

    def __init__(self, config: BatchedElimination, spec: ContextualSpec, streams: Streams) -> None:
        super().__init__(config, spec, streams)
        K, T, M, d = spec.n_actions, spec.horizon, len(config.ends(spec)), spec.dim
        G = 1 if spec.shared else K
        norm = config.parameter_norm
        S = spec.parameter_norm * spec.half_range / spec.reward_bound if norm is None else norm
        z = sqrt(2 * log(8 * K * T * max(M, 1) / config.failure))
        tail = 2 * sqrt(d) + 2 * sqrt(log(4 * max(M, 1) * G / config.failure))
        self._user, self._Gamma = self._statistic.context_bound**2 / d, tail * self._gram_noise
        self._shift = max(2 * self._Gamma, self._user)
        self._first_width = config.width * z * spec.half_range
        self._second_width = config.width * (
            z * self._moment_noise + (self._Gamma + self._shift) * S
        )
        self._epochs: list[Regression] = []

    def scores(self, context: Floats) -> Floats:
        """What the last epoch predicts, in units of the reward, (R, K)."""
        if not self._epochs:
            return np.full((len(context), self._spec.n_actions), self._middle)
        return self._middle + self._epochs[-1].means(context)

    def _choose(self, context: Floats, luck: Floats) -> Ints:
        alive = self._survivors(context)
        share = alive / np.maximum(alive.sum(axis=1, keepdims=True), 1)
        if self._spec.shared:
            x = clip_norm(context, self._statistic.context_bound)  # else a loud user has no design
            share = _optimal_design(x, share, 1e-9 * self._user)
        drawn: Ints = (share.cumsum(axis=1) > luck[:, None]).argmax(axis=1)
        return drawn

    def _survivors(self, context: Floats) -> npt.NDArray[np.bool_]:
        """Who is not refuted, (R, K)."""
        alive = np.ones((len(context), self._spec.n_actions), bool)
        for epoch in self._epochs:
            means = epoch.means(context)
            widths = self._first_width * epoch.widths(context)
            widths += self._second_width * epoch.widths(context, power=1.0)
            best = np.where(alive, means - widths, -inf).max(axis=1, keepdims=True)
            alive &= means + widths >= best
        return alive

    def _learn(self, gram: Floats, moment: Floats) -> None:
        least = self._shift - self._Gamma  # A is above it where |N| <= Gamma
        self._epochs.append(
            Regression.of(gram, moment, ridge=self._shift, least=least, noise=self._moment_noise)
        )


def _optimal_design(x: Floats, share: Floats, ridge: float) -> Floats:
    """Rows (R, K, d) and shares of those who may be played -> nearly G-optimal shares, (R, K)."""
    for _ in range(_DESIGN_STEPS):
        V = x.swapaxes(1, 2) @ (share[..., None] * x) + ridge * np.eye(x.shape[-1])
        share = share * np.vecdot(np.linalg.solve(V, x.swapaxes(1, 2)).swapaxes(1, 2), x)
        total = share.sum(axis=1, keepdims=True)
        share = share / np.where(total > 0, total, 1.0)
    return share
