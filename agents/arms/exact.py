"""Bandits without privacy: UCB1, kl-UCB, Thompson sampling, Tsallis-INF, and Exp3."""

from collections import deque
from math import log

import numpy as np

from dpbandit.agents.arms.play import ExactArms, kl_upper, tsallis_chances
from dpbandit.base import Floats, Ints, drawn, rows

ARRAY_DRAW_ARMS = 15
"""Smallest number of arms whose posteriors are drawn as an array; for fewer, loops are faster."""


class UCB1(ExactArms):
    """Play the arm with the largest mean plus sqrt(2 ln(t) / n) after n plays of it in t rounds.

    Auer, Cesa-Bianchi and Fischer, "Finite-time analysis of the multiarmed bandit problem", Machine
    Learning 2002, Figure 1.

    Guarantee:
        None: exact sums of rewards reach later actions.

    >>> from dpbandit import compare
    >>> results = compare("Arms", {"ucb1": UCB1()}, horizon=1000, replicas=5, progress=False)
    >>> bool(results.summary().set_index("agent")["mean"]["ucb1"] < 80)
    True
    """

    def choose(self) -> Ints:
        n = np.maximum(self.n, 1)
        return self.first_turns(self.s / n + np.sqrt(2 * log(max(self.t, 1)) / n))


class KLUCB(ExactArms):
    """Play the arm with the largest upper confidence bound by the Bernoulli divergence.

    Garivier and Cappe, "The KL-UCB algorithm for bounded stochastic bandits and beyond", COLT 2011,
    with c = 0: the bound is the largest q with n kl(s / n, q) <= ln t, for n plays and sum s.

    Guarantee:
        None: exact sums of rewards reach later actions.
    """

    def choose(self) -> Ints:
        n = np.maximum(self.n, 1)
        return self.first_turns(kl_upper(self.s / n, log(max(self.t, 1)) / n))


class Thompson(ExactArms):
    """Play the arm with the largest draw from its Beta posterior, with a uniform prior.

    Thompson, Biometrika 1933; a reward r in [0, 1] counts as 1 with probability r, else as 0, as in
    Agrawal and Goyal, "Analysis of Thompson sampling for the multi-armed bandit problem", COLT
    2012, Algorithm 2.

    Guarantee:
        None: exact sums of rewards reach later actions.
    """

    def start(self) -> None:
        super().start()
        self.coins, self.uniforms = self.streams.generators("draws"), self.streams.uniforms("coins")

    def choose(self) -> Ints:
        a, b = self.s + 1, self.n - self.s + 1
        if self.K >= ARRAY_DRAW_ARMS:
            return np.array([g.beta(a[r], b[r]).argmax() for r, g in enumerate(self.coins)])
        each = zip(self.coins, a.tolist(), b.tolist(), strict=True)
        return np.array([list(map(g.beta, *shapes)) for g, *shapes in each]).argmax(axis=1)

    def counted_reward(self, reward: Floats) -> Floats:
        return 1.0 * (self.uniforms() < super().counted_reward(reward))


class TsallisINF(ExactArms):
    """Follow the leader regularised by Tsallis entropy, for stochastic and adversarial losses.

    Zimmert and Seldin, "Tsallis-INF: an optimal algorithm for stochastic and adversarial bandits",
    JMLR 2021, Algorithm 1 with power 1/2, rates 2 / sqrt(t) and importance weighting.

    Guarantee:
        None: exact rewards reach later actions.
    """

    def start(self) -> None:
        super().start()
        self.uniforms = self.streams.uniforms("arms")
        self.w: Floats = np.full((self.R, self.K), 1 / self.K)
        self.played = deque([self.w], maxlen=1 + self.spec.delay)  # [0]: of the next feedback

    def choose(self) -> Ints:
        self.played.append(self.w)
        return drawn(self.w, self.uniforms())

    def learn(self, arm: Ints, reward: Floats) -> None:
        # Divide the loss by its arm's probability; `s` sums these estimates
        here = rows(self.R), arm
        self.s[here] += (1 - self.counted_reward(reward)) / self.played[0][here]
        self.w = self.weigh(self.t + 1)

    def weigh(self, t: int) -> Floats:
        """Return the probability of every arm in round t, (R, K)."""
        return tsallis_chances(self.s, np.full((self.R, 1), 2 / t**0.5))


class Exp3(TsallisINF):
    """Play arms with probability proportional to exp(-rate x estimated adversarial loss).

    Auer, Cesa-Bianchi, Freund and Schapire, "The nonstochastic multiarmed bandit problem", SIAM
    Journal on Computing 2002, in the form without mixing, with losses and the rates
    sqrt(ln(K) / (K t)) of Bubeck and Cesa-Bianchi, "Regret analysis of stochastic and nonstochastic
    multi-armed bandit problems", 2012, section 3.1.

    Guarantee:
        None: exact rewards reach later actions.
    """

    def weigh(self, t: int) -> Floats:
        rate = (log(self.K) / (self.K * t)) ** 0.5
        w = np.exp(-rate * (self.s - self.s.min(axis=1, keepdims=True)))
        return w / w.sum(axis=1, keepdims=True)
