"""Lasso Bandit: sparse parameters, forced samples and two lasso estimates."""

from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np

from dpbandit.agents.contextual.lasso import Lasso
from dpbandit.base.arrays import Floats, Ints, clip_norm, clip_range
from dpbandit.base.inputs import positive, whole
from dpbandit.base.streams import Streams
from dpbandit.privacy.accounting.ledger import no_privacy
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, fits

_GROWTH = 0.05
"""Fits come when the rounds have grown by this share."""


@dataclass(frozen=True, kw_only=True)
class LassoBandit:
    """Greedy on lasso estimates, with forced samples of every arm in a doubling pattern.

    Bastani and Bayati, "Online decision making with high-dimensional covariates", Operations
    Research 2020 (Lasso Bandit). In its letters, for t = 1, 2, ...

        1. if t is in T_i, play arm i:  T_i = {(2^n - 1) K q + j : n >= 0, q (i-1) < j <= q i}
        2. else let K^ be the arms within h/2 of the best one by beta(T_i, lambda_1), fitted to the
           forced samples, and play the best of K^ by beta(S_i, lambda_2t), fitted to all samples
        3. lambda_2t = lambda_20 sqrt((log t + log d) / t)

    beta(S, lambda) minimises |Y - X beta|^2 / |S| + lambda |beta|_1.

    Guarantee. None: exact data reaches later actions.

    Differs from the paper. (1) h, lambda_1 and lambda_20 are shares of the public range of rewards,
    and features count in units of their root mean square, so that one default serves all units.
    (2) Fits are warm-started, on sums, and come when t has grown by 5 % or every `refresh_every`
    rounds, not every round. (3) A parameter shared by all arms is one lasso on all rounds.
    (4) Ties go to the lowest arm.

    The defaults were chosen on 30 features, 3 arms and 4 nonzero coefficients of both signs, 3,000
    rounds: penalties from 0.03 to 0.08 did about as well, h below half of the range did worse.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/GLMBandit-v0", {"Lasso": LassoBandit()}, horizon=500,
    ...                   replicas=4, env_kwargs={"parameters": "sparse", "dim": 20},
    ...                   progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["Lasso"] < mean["Uniform"] / 2)
    True
    """

    forced: int = 1
    """q: forced samples of an arm in a row"""
    margin: float = 1.0
    """h, as a share of the range of rewards"""
    forced_penalty: float = 0.05
    """lambda_1, as a share of the range of rewards"""
    penalty: float = 0.05
    """lambda_20, as a share of the range of rewards"""
    refresh_every: int | None = None
    """rounds from one fit to the next; None: when t has grown by 5 %"""

    def __post_init__(self) -> None:
        whole("forced", self.forced, 1)
        for name in ("margin", "forced_penalty", "penalty"):
            positive(name, getattr(self, name))
        if self.refresh_every is not None:
            whole("refresh_every", self.refresh_every, 1)

    def make(self, spec: BanditSpec, streams: Streams) -> "LassoBanditAgent":
        """A running agent; raises `BadInput` for anything but finitely many arms."""
        return LassoBanditAgent(self, fits(self, spec, ContextualSpec), len(streams))


class LassoBanditAgent:
    """See `LassoBandit`."""

    def __init__(self, config: LassoBandit, spec: ContextualSpec, replicas: int) -> None:
        self.ledger = no_privacy("exact lasso regressions")
        self._config, self._spec, self._replicas = config, spec, replicas
        self._range = spec.reward_high - spec.reward_low
        self._from_forced, self._from_all = Lasso(spec, replicas), Lasso(spec, replicas)
        self._round, self._next_fit = 0, 1

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        arm = forced_arm(self._round, self._spec.n_actions, self._config.forced)
        if arm is not None:
            return np.full(self._replicas, arm)
        first = self._from_forced.means(context)
        slack = self._config.margin * self._range / 2
        kept = first >= first.max(axis=1, keepdims=True) - slack
        best: Ints = np.where(kept, self.scores(context), -np.inf).argmax(axis=1)
        return best

    def scores(self, context: Floats) -> Floats:
        """Rewards predicted from all samples, (R, K)."""
        return self._from_all.means(context)

    def update(self, context: Floats, action: Ints, reward: Floats) -> None:
        """Keep the row; fit when it is time."""
        spec, config = self._spec, self._config
        x = clip_norm(context, spec.context_norm)
        r = clip_range(reward, spec.reward_low, spec.reward_high)
        self._from_all.add(x, action, r)
        chosen_at = max(0, self._round - spec.delay)  # what the clock showed to `act`
        if forced_arm(chosen_at, spec.n_actions, config.forced) is not None:
            self._from_forced.add(x, action, r)
        self._round = t = self._round + 1
        if t >= self._next_fit:
            self._next_fit = t + (config.refresh_every or ceil(_GROWTH * t))
            decay = sqrt((log(t) + log(spec.dim)) / t)
            self._from_forced.fit(config.forced_penalty * self._range)
            self._from_all.fit(config.penalty * self._range * decay)


def forced_arm(rounds: int, n_actions: int, forced: int) -> int | None:
    """The arm to force after so many rounds, i.e. at t = rounds + 1; None: none.

    Laps of K q rounds: number 2^n - 1 is forced, from 0 on, so lap + 1 is a power of two.

    >>> [forced_arm(t, 2, 1) for t in range(8)]
    [0, 1, 0, 1, None, None, 0, 1]
    """
    lap, place = divmod(rounds, n_actions * forced)
    return place // forced if (lap + 1) & lap == 0 else None
