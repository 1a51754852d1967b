"""Agents on regression oracles that play an arm less often the larger its predicted gap.

SquareCB learns from every round, without privacy. The others play in batches: each batch of users
is in one release, and a regression fitted to it plays the next batch.
"""

from math import sqrt

import numpy as np

from dpbandit.agent import Least0, Positive
from dpbandit.agents.contextual.epochs import Epochs, Regression
from dpbandit.agents.contextual.linear import Exact
from dpbandit.base import Bools, Floats, Ints, drawn


def inverse_gaps(predicted: Floats, gamma: float, among: Bools | bool = True) -> Floats:
    """Return probabilities 1 / (K + gamma gap) of arms, the rest for the best arm, (R, K).

    gap is the distance to the best predicted reward, gamma its factor, and K the number of arms in
    the mask `among`, to which the best arm must belong; arms outside the mask get 0.

    >>> inverse_gaps(np.array([[0.5, 0.25, 0.5]]), 8.0).round(3).tolist()
    [[0.467, 0.2, 0.333]]
    """
    best = predicted.max(axis=1, keepdims=True)
    K = np.broadcast_to(among, predicted.shape).sum(axis=1, keepdims=True)
    return _with_rest(np.where(among, 1 / (K + gamma * (best - predicted)), 0.0), predicted)


def _with_rest(chances: Floats, predicted: Floats) -> Floats:
    """Return probabilities `chances`, with the first best arm's replaced so that they sum to 1."""
    best = np.arange(predicted.shape[1]) == predicted.argmax(axis=1)[:, None]
    others = np.where(best, 0.0, chances)
    return np.where(best, 1 - others.sum(axis=1, keepdims=True), others)


class SquareCB(Exact):
    """Play arms by the inverse of their predicted gap, on a ridge regression of all rows.

    Foster and Rakhlin, "Beyond UCB: optimal and efficient contextual bandits with regression
    oracles", ICML 2020, Algorithm 1::

        1. y_a = x . theta_a, as a share of the range of rewards;  b = argmax y
        2. play a != b with probability 1 / (K + gamma (y_b - y_a)), b with the rest
        3. update the online oracle by (x, a, r)

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. The oracle is ridge regression, clipped to the public range of rewards.
        2. gamma = `gamma_scale` sqrt(t) after t rounds, in place of one from the oracle's regret
           bound; 16 is the middle of the values among which Ryabchenko et al. (`VPO`) tune it.
    """

    gamma_scale: Least0 = 16.0
    """gamma divided by sqrt(t) after t rounds; larger explores less, 0 plays uniformly"""

    def start(self) -> None:
        super().start()
        self.uniforms = self.streams.uniforms("exploration")

    def act(self, context: Floats) -> Ints:
        spec = self.spec
        rewards = self.scores(context).clip(spec.reward_low, spec.reward_high)
        gamma = self.gamma_scale * sqrt(max(1, self.round)) / (2 * spec.half_range)
        return drawn(inverse_gaps(rewards, gamma), self.uniforms())


class OracleBatches(Epochs):
    """Base class of agents that play by regressions of past batches, the first batch at random.

    The Gram matrix is G + Gamma I, G the released one, Gamma = 2 sqrt(d) times the stddev of noise
    off G's diagonal; its eigenvalues are at least 0.3 Gamma. Predictions are clipped to [0, 1].
    """

    def start(self) -> None:
        super().start()
        self.released: list[Regression] = []
        self.sizes: list[int] = []

    def refit(self, gram: Floats, moment: Floats) -> None:
        self.released.append(self.regression_of(gram, moment))
        self.sizes.append(self.round - sum(self.sizes))

    def scores(self, context: Floats) -> Floats:
        if not self.released:
            return np.full((len(context), self.spec.n_actions), self.middle)
        return self.middle + self.released[-1].means(context)

    def predicted(self, context: Floats, regression: Regression) -> Floats:
        """Return predicted rewards of arms, scaled to [0, 1] and clipped to it, (R, K)."""
        return (0.5 + regression.means(context) / (2 * self.spec.half_range)).clip(0.0, 1.0)

    def choose(self, context: Floats, uniforms: Floats) -> Ints:
        return drawn(self.chances(context), uniforms)

    def chances(self, context: Floats) -> Floats:
        """Return the probability of each arm to be played, up to a factor, (R, K)."""
        raise NotImplementedError


class FALCON(OracleBatches):
    """SquareCB on batches, each played by a regression fitted to the batch before.

    Simchi-Levi and Xu, "Bypassing the monster: a faster and simpler optimal algorithm for
    contextual bandits under realizability", Mathematics of Operations Research 2022, Algorithm 1,
    with a private oracle as in Ryabchenko et al., arXiv 2609.33888 (their program's `squarecb`)::

        1. y_a, predicted by the last batch as a share of the range of rewards;  b = argmax y
        2. play a != b with probability 1 / (K + gamma (y_b - y_a)), b with the rest,
           gamma = `gamma_scale` sqrt(rounds before the batch)
        3. at the end of the batch release its Gram matrix and moment, with noise

    Guarantee:
        (epsilon, delta)-joint DP for replacing one user's round, exactly mu-GDP, as `Epochs`
        proves: a user is in one release. epsilon = inf plays without privacy.

    Differs from the paper:
        1. gamma_scale is 16 for all problems, in place of the theory's: the middle of the values
           among which the private program's authors tune it for every problem and epsilon.
        2. The first batch is longer the larger the noise (`Epochs`), not one round.
    """

    gamma_scale: Least0 = 16.0
    """gamma divided by sqrt(rounds before the batch); larger explores less, 0 plays uniformly"""

    def chances(self, context: Floats) -> Floats:
        predicted = self.predicted(context, self.released[-1])
        return inverse_gaps(predicted, self.gamma_scale * sqrt(sum(self.sizes)))


class FastCB(OracleBatches):
    """FALCON that explores less where the best arm's predicted loss is small.

    Foster and Krishnamurthy, "Efficient first-order contextual bandits: prediction, allocation, and
    triangular discrimination", NeurIPS 2021, on batches as in Ryabchenko et al., arXiv 2609.33888::

        f_a = 1 - y_a, y_a the predicted reward as a share of its range;  b = argmin f
        play a != b with probability f_b / (K f_b + gamma (f_a - f_b)), b with the rest

    Guarantee:
        The guarantee of `FALCON`.

    Differs from the paper:
        1. Ridge regression in place of a logistic one; arms as good as b have probability 1 / K.
        2. gamma_scale is 10, the middle of the values among which Ryabchenko et al. tune it.
        3. Batches as in `FALCON`.
    """

    gamma_scale: Least0 = 10.0
    """gamma divided by sqrt(rounds before the batch); larger explores less, 0 plays uniformly"""

    def chances(self, context: Floats) -> Floats:
        predicted = self.predicted(context, self.released[-1])
        gamma = self.gamma_scale * sqrt(sum(self.sizes))
        best = predicted.max(axis=1, keepdims=True)
        gap, loss = best - predicted, 1 - best
        behind = loss / np.where(gap > 0, predicted.shape[1] * loss + gamma * gap, 1.0)
        return _with_rest(np.where(gap > 0, behind, 1 / predicted.shape[1]), predicted)


class RegCB(OracleBatches):
    """Play at random among arms that may be best, by intervals around the last predictions.

    Foster, Agarwal, Dudik, Luo and Schapire, "Practical contextual bandits with regression
    oracles", ICML 2018, the elimination variant, on batches as in Ryabchenko et al., arXiv
    2609.33888, with y_a the predicted reward as a share of its range, w_a = `width`
    sqrt(x' A^-1 x), and A the regularised sum of all released Gram matrices::

        play uniformly the arms with y_a + w_a >= max_b (y_b - w_b)

    Guarantee:
        The guarantee of `FALCON`.

    Differs from the paper:
        1. Widths of linear models in place of the range over all regressors of small loss.
        2. width is 0.1 for all problems, the default of Ryabchenko et al., who tune it.
        3. Batches as in `FALCON`.
    """

    width: Least0 = 0.1
    """half-width of intervals divided by sqrt(x' A^-1 x), as a share of the range of rewards"""

    def start(self) -> None:
        super().start()
        self.gram: Floats = np.zeros(1)

    def refit(self, gram: Floats, moment: Floats) -> None:
        super().refit(gram, moment)
        self.gram = self.gram + gram
        self.geometry = self.regression_of(self.gram, moment, self.releases)

    def chances(self, context: Floats) -> Floats:
        predicted = self.predicted(context, self.released[-1])
        width = self.width * self.geometry.widths(context)
        return 1.0 * (predicted + width >= (predicted - width).max(axis=1, keepdims=True))


class AdaCB(RegCB):
    """FALCON among the arms that RegCB does not eliminate; other arms are not played.

    RECONSTRUCTED from the program of Ryabchenko et al., arXiv 2609.33888, after Foster, Rakhlin,
    Simchi-Levi and Xu, "Instance-dependent complexity of contextual bandits and reinforcement
    learning: a disagreement-based perspective", COLT 2021, of which we read the abstract alone::

        1. C = the arms with y_a + w_a >= max_b (y_b - w_b), as in `RegCB`;  b = argmax y
        2. play a != b of C with probability 1 / (|C| + gamma (y_b - y_a)), b with the rest

    Guarantee:
        The guarantee of `FALCON`.

    Differs from the program:
        1. Widths, gamma and batches are those of `RegCB` and `FALCON`.
    """

    gamma_scale: Least0 = 16.0
    """gamma divided by sqrt(rounds before the batch); larger explores less, 0 plays uniformly"""

    def chances(self, context: Floats) -> Floats:
        survive, predicted = (
            super().chances(context) > 0,
            self.predicted(context, self.released[-1]),
        )
        return inverse_gaps(predicted, self.gamma_scale * sqrt(sum(self.sizes)), survive)


class VPO(OracleBatches):
    """Play each batch by the average of virtual policies: vanilla policy optimisation.

    RECONSTRUCTED from the program of Ryabchenko et al., "Vanilla policy optimization is both
    optimal and differentially private for stochastic contextual bandits", arXiv 2609.33888, not
    from its text, which was not available. After a batch of B users, with predicted losses f_a::

        1. q_0 uniform,  q_(k+1)(a) ~ q_k(a) exp(-eta f_a),   eta = rate min(1/K, 1/sqrt(K B))
        2. for every user draw k from 0..B-1 and draw an arm from q_k
        3. at the end of the batch release its Gram matrix and moment, with noise

    Guarantee:
        The guarantee of `FALCON`.

    Differs from the program:
        1. rate is 32 for all problems, the middle of the values among which the program tunes it.
        2. One Gaussian mechanism of exact cost for Gram matrix and moment, in place of two in zCDP;
           the middle of their range is subtracted from rewards. Contexts are not transformed.
        3. A ridge as large as the noise (`OracleBatches`), not a tuned one; only quadratic loss.
        4. The first batch is longer the larger the noise (`Epochs`), not one round.
    """

    rate: Positive = 32.0
    """step size of a virtual policy, in units of min(1/K, 1/sqrt(K B)) for batches of B users"""

    def start(self) -> None:
        super().start()
        self.step = self.streams.uniforms("virtual step")

    def chances(self, context: Floats) -> Floats:
        predicted, B, K = (
            self.predicted(context, self.released[-1]),
            self.sizes[-1],
            self.spec.n_actions,
        )
        eta = self.rate * min(1 / K, 1 / sqrt(K * B))
        return _softmax(np.floor(self.step() * B)[:, None] * eta * predicted)


class BPO(OracleBatches):
    """Play by policy optimisation with a bonus, over all released regressions for every user.

    RECONSTRUCTED from the program of Ryabchenko et al., arXiv 2609.33888, as `VPO` is. For every
    user, q starts uniform and D, an arm's expected number of plays, at 0; over past batches j of
    N_j users, whose regression predicts the losses f_j,a in [0, 1]::

        1. b_a = min(1, bonus sqrt(N_1 + .. + N_j) / sqrt(K) / (1 + D_a))
        2. D_a += N_j q(a)
        3. q(a) ~ q(a) exp(-rate N_j max(0, f_j,a - b_a))

    and an arm is drawn from the last q.

    Guarantee:
        The guarantee of `FALCON`: a user is in one release, and reuse of releases costs nothing.

    Differs from the program:
        As in `VPO`; rate is 0.1 and bonus 0.01 for all problems; the program tunes them, the rate
        from 0.001 to 1, the bonus from 0.001 to 0.1.
    """

    rate: Positive = 0.1
    """step size of the policy's update, per user of the batch"""
    bonus: Least0 = 0.01
    """factor of the bonus for arms that were rarely played"""

    def chances(self, context: Floats) -> Floats:
        K = self.spec.n_actions
        log_q: Floats = np.zeros((len(context), K))
        exposure, users = np.zeros_like(log_q), 0
        for N, regression in zip(self.sizes, self.released, strict=True):
            users += N
            bonus = np.minimum(1.0, self.bonus * sqrt(users / K) / (1 + exposure))
            exposure += N * _softmax(log_q)
            losses = 1 - self.predicted(context, regression)
            log_q = log_q - self.rate * N * np.maximum(0.0, losses - bonus)
        return _softmax(log_q)


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
