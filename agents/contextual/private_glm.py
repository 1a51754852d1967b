"""PrivateGLM: a private generalised linear model that is refitted a few times."""

from math import ceil, inf, log2, sqrt

import numpy as np

from dpbandit.agent import Arms, Positive, Private
from dpbandit.agents.contextual.one_model import OneModel
from dpbandit.agents.contextual.refits import NewtonRefits
from dpbandit.base import Floats, Ints, pick
from dpbandit.privacy import BLT, ledger_of, mu_of
from dpbandit.privacy.calibrated import noisy_prefix_sum
from dpbandit.privacy.moments import Grams
from dpbandit.privacy.prefix_sums import leaves
from dpbandit.specs import ContextualSpec

_GRAM = 0.2
"""Share of mu^2 that the Gram matrix has; the refits have the rest."""
_STEPS = 3
"""Newton steps of a refit."""
_LEAST_EIGENVALUE = 0.3
"""Of A, in units of the noise's spectral norm."""


class PrivateGLM(Private[ContextualSpec], Arms):
    """Greedy play on a generalised linear model, refitted when its Gram matrix has doubled.

    After Sarmasarkar, "Shuffle and joint differential privacy for generalized linear contextual
    bandits", arXiv 2602.00417 (2026), with the noise that exact accounting asks for; the authors'
    program is `PrivateGLMAsCoded`. With M = ceil(log2(T / first))::

          1. the first rounds: uniformly at random, until the first refit
          2. G = sum of x x', released every ceil(T / 100) rounds with noise of spectral norm Gamma:
             A = G + (Gamma + 1) I
          3. a refit after the first rounds, then where the largest eigenvalue of A_last^-1 A
             exceeds 2, at most M in all: three times, over all rows so far,
                 theta <- theta - P^-1 (sum of (zeta(x . theta) - r) x + N(0, s^2 I)),
                 P = zeta'(0) A + s sqrt(d)/S I,  then |theta| <= S
          4. play argmax x_a . theta

    `first` is 8 sqrt(d) / mu, at least 30 and at most T / 10. The link is that of the environment,
    or logistic where it is neither logistic nor probit; rewards are scaled to [0, 1], contexts to
    norm 1.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        exactly mu-GDP: G is a Gaussian prefix sum of sensitivity sqrt(2), with a fifth of mu^2;
        when to refit is a function of G; each of at most 3 M steps adds N(0, s^2 I) to a sum that
        one row moves by at most 2, at a released parameter, s = 2 sqrt(3 M / .8) / mu. How many
        rows there are is public. Everybody else's action is post-processing.

    Differs from the paper:
        1. No optimism: the bonus that its theory asks for is larger than the signal at T = 10^4.
        2. no warm-up rounds, no elimination.
        3. exact composition; a cap M on refits that is public.
        4. all rows in every step, and a released Gram matrix as preconditioner, where DP-SGD takes
           tens of steps.
        5. an unweighted Gram matrix, from a BLT in place of a tree.

    **It does not pay.** A refit touches all rows again, sqrt(3 M) = 4 to 5 times, against 1.4 of a
    fading sum: `FADE`, which fits a linear model though it is wrong here, loses less.

    >>> from dpbandit import certify
    >>> round(certify(PrivateGLM(epsilon=4.0), "Recommendation").epsilon, 6)
    4.0
    """

    parameter_norm: Positive = 4.0
    """S, a bound on `|theta|`, for contexts of norm 1"""

    def start(self) -> None:
        """Build both mechanisms; raises `InputError` unless all arms share a parameter."""
        self.model = OneModel(self, self.spec)
        R, T, d, streams = self.R, self.spec.horizon, self.spec.dim, self.streams
        mu = inf if self.epsilon == inf else mu_of(self.epsilon, self.delta)
        self.first = max(1, min(max(ceil(8 * sqrt(d) / mu), 30), T // 10))
        refits, every = max(1, ceil(log2(T / self.first))), ceil(T / 100)
        self.left = np.full(R, refits)
        self.statistic = Grams(dim=d)
        multiplier = BLT().column_norm(leaves(T, every)) / (sqrt(_GRAM) * mu)
        self.grams = noisy_prefix_sum(
            BLT(),
            self.statistic,
            streams,
            horizon=T,
            refresh_every=every,
            noise_multiplier=multiplier,
        )
        self.refits = NewtonRefits(
            self.model.link,
            np.array(streams.normals("refit noise", refits, _STEPS, d).take(1)[0]),
            mu=sqrt(1 - _GRAM) * mu,
            uses=T,
            norm=self.parameter_norm,
        )
        self.ledger = ledger_of(self.epsilon, self.grams.spend, self.refits.spend)
        self.luck = streams.uniforms("exploration")
        self.theta: Floats = np.zeros((R, d))
        # before the first release there is no Gram matrix, and its noise stands for it
        self.A, _ = self.shifted(np.zeros((R, *self.statistic.shape)), multiplier * sqrt(2))
        self.A_last = self.A

    def act(self, context: Floats) -> Ints:
        """Arms (R,); at random before the first refit."""
        if self.round < self.first:
            return (self.luck() * self.spec.n_actions).astype(np.int64)
        return self.predictors(context).argmax(axis=1)

    def scores(self, context: Floats) -> Floats:
        """Predicted rewards, (R, K)."""
        return self.model.reward(self.predictors(context))

    def predictors(self, context: Floats) -> Floats:
        """x . theta, (R, K)."""
        return np.matvec(self.model.rows(context), self.theta)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed both mechanisms; the second one refits where A has doubled, and the first time."""
        x = pick(self.model.rows(context), action)
        due = np.full(len(x), self.round == self.first)
        release = self.grams(x)
        if release is not None:
            self.A, raw = self.shifted(release, self.grams.stddev)
            if self.round > self.first:
                due = largest_ratio(raw, self.A_last) > 2
        due &= self.left > 0
        P = self.model.link.largest_slope * self.A
        fitted = self.refits(x, self.model.share(feedback), due, self.theta, P)
        if fitted is not None:
            self.theta = fitted
            self.left = self.left - due
            self.A_last = np.where(due[:, None, None], self.A, self.A_last)

    def shifted(self, release: Floats, stddev: float) -> tuple[Floats, Floats]:
        """A with its eigenvalues bounded from below, and without that: (R, D, D) each."""
        d = self.spec.dim
        Gamma = 2 * sqrt(d) * stddev / sqrt(2)
        raw = self.statistic.unpack(release) + (Gamma + 1) * np.eye(d)
        eigenvalues, U = np.linalg.eigh(raw)
        positive = np.maximum(eigenvalues, max(_LEAST_EIGENVALUE * Gamma, 1e-12))
        return (U * positive[:, None]) @ U.swapaxes(1, 2), raw


def largest_ratio(A: Floats, B: Floats) -> Floats:
    """The largest eigenvalue of B^-1 A for symmetric A and positive B, (R,)."""
    root = np.linalg.inv(np.linalg.cholesky(B))
    return np.linalg.eigvalsh(root @ A @ root.swapaxes(1, 2))[:, -1]
