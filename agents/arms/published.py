"""Published private bandits: elimination, doubling episodes, trees, and Tsallis-INF."""

from math import ceil, inf, log

import numpy as np

from dpbandit.agent import Epsilon, Positive, started
from dpbandit.agents.arms.play import (
    ArmAgent,
    Bools,
    OneArmBatches,
    ReleasedArms,
    kl_upper,
    tsallis_chances,
)
from dpbandit.base import Floats, Ints, Paced, drawn, rows
from dpbandit.privacy import PrefixSum, Target, Tree, certified_sum, ledger_of
from dpbandit.privacy.moments import ArmRewards
from dpbandit.privacy.premises import Fact


class DPSE(ReleasedArms):
    """Successive elimination in epochs, with one Laplace release for each arm and epoch.

    Sajed and Sheffet, "An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule", ICML 2019, Algorithm 2; its constants are reconstructed from recollection::

        S = all arms, beta = 1 / T;  in epoch i = 1, 2, .. while `|S|` > 1, with D = 2^-i
          1. R = ceil(max(32 ln(8 A) / D^2, 8 ln(4 A) / (epsilon D))) + 1,  A = `|S|` i^2 / beta
          2. play every arm of S for R rounds, one arm after another in a random order;
             m_a = (sum of its rewards + Laplace(1 / epsilon)) / R
          3. h = sqrt(ln(8 A) / (2 R)),  c = ln(4 A) / (R epsilon)
          4. remove from S the arms with m_a < max m - 2 h - 2 c
        then play the arm that is left in all rounds

    Guarantee:
        epsilon-DP of all actions, for replacing one user's whole row of rewards: an epoch's rounds
        are fresh, so that a user is in one release (`CountedSums`).

    **Regret** is O(sum_a log T / D_a + K log T / epsilon), D_a the gaps, which is the optimal
    order; with its constants, short runs consist of exploration alone.

    Differs from the paper:
        1. Constants are reconstructed from recollection.
        2. Sums are released at the end of an epoch; rounds beyond R, which delayed rewards cause,
           enter the means, too.
    """

    epsilon: Epsilon = 1.0
    """target, > 0; inf adds no noise"""

    def reset(self) -> None:
        self.active: Bools = np.ones((self.R, self.K), dtype=np.bool_)
        self.epoch: Ints = np.ones(self.R, dtype=np.int64)
        self.order: Floats = 1 + self.streams.uniforms("order", self.K)()
        self.need: Floats = self.rounds()

    def logs(self) -> tuple[Floats, Floats]:
        """Return ln(8 A) and ln(4 A), (R,) each, for A = arms left x epoch^2 x horizon."""
        arms = self.active.sum(axis=1) * self.epoch**2 * float(self.spec.horizon)
        return np.log(8 * arms), np.log(4 * arms)

    def rounds(self) -> Floats:
        """Return the rounds (R,) of each remaining arm in this epoch; inf if one arm is left."""
        D, (one, two) = 0.5**self.epoch, self.logs()
        R = np.ceil(np.maximum(32 * one / D**2, 8 * two / (self.epsilon * D))) + 1
        return np.where(self.active.sum(axis=1) > 1, R, inf)

    def choose(self) -> Ints:
        lacks = self.active & (self.pending < self.need[:, None])
        return np.where(lacks, self.order, 0.0).argmax(axis=1)

    @property
    def rounds_to_release(self) -> Ints:
        lacks = self.need - self.pending[rows(self.R), self.choose()]
        return np.ceil(np.minimum(lacks, float(self.spec.horizon))).astype(np.int64)

    @property
    def chances(self) -> Floats:
        return np.eye(self.K)[self.choose()]

    def at_release(self) -> Bools:
        full: Bools = np.asarray((~self.active | (self.pending >= self.need[:, None])).all(axis=1))
        return self.active & full[:, None] if full.any() else self.nothing

    def take(self, release: Floats, count: Floats, at_release: Bools) -> None:
        # Take steps 3 and 4, and begin another epoch
        here: Bools = np.asarray(at_release.any(axis=1))
        R, (one, two) = np.where(here, self.need, 1.0), self.logs()
        width = 2 * np.sqrt(one / (2 * R)) + 2 * two / (R * self.epsilon)
        m = np.where(at_release, release / np.maximum(count, 1), -inf)
        stays = m >= np.where(here, m.max(axis=1, initial=-1e9) - width, -inf)[:, None]
        self.active = self.active & (stays | ~here[:, None])
        self.epoch = self.epoch + here
        self.need = np.where(here, self.rounds(), self.need)


class AdaPKLUCB(OneArmBatches):
    """kl-UCB in doubling episodes; each arm's index uses its last episode alone.

    Azize and Basu, "When privacy meets partial information: a refined analysis of differentially
    private bandits", NeurIPS 2022, Algorithm 1 with the index of AdaP-KLUCB::

        every arm for one round, then  a = argmax I_a  after every episode, t rounds so far
          1. play a for twice as many rounds as in its last episode, N_a
          2. m_a = (sum of its rewards + Laplace(1 / epsilon)) / N_a
        I_a = the largest q with N_a kl(min(1, m_a + alpha ln(t) / (epsilon N_a)), q) <= alpha ln t

    Guarantee:
        epsilon-DP of all actions, for replacing one user's whole row of rewards: she is in the sum
        of one episode, whose end depends on counts (`CountedSums`).

    **Regret** is of the optimal order, O(sum_a log T / D_a + K log T / epsilon) for gaps D_a,
    although the mean of the last episode omits half of an arm's rounds.

    Differs from the paper:
        1. Means are kept within [0, 1] before the divergence is solved.
    """

    epsilon: Epsilon = 1.0
    """target, > 0; inf adds no noise"""
    alpha: Positive = 3.1
    """factor of the confidence width; the proof needs more than 3"""

    def reset(self) -> None:
        super().reset()
        self.N, self.m = np.zeros((self.R, self.K)), np.zeros((self.R, self.K))

    def take(self, release: Floats, count: Floats, at_release: Bools) -> None:
        # Take step 2, and choose where an episode has ended
        self.m = np.where(at_release, release / np.maximum(count, 1), self.m)
        self.N = np.where(at_release, count, self.N)
        here = np.flatnonzero(at_release.any(axis=1))
        index = np.where(self.N[here] > 0, self.index(self.m[here], self.N[here]), inf)
        self.arm[here] = index.argmax(axis=1)
        doubled = 2 * self.N[rows(self.R), self.arm]
        self.length[here] = np.maximum(doubled, 1)[here]

    def index(self, m: Floats, N: Floats) -> Floats:
        """Return indices (n, K) of arms with noisy means m of N rounds; arbitrary where N is 0."""
        lg, N = self.alpha * log(max(self.t, 2)), np.maximum(N, 1)
        return kl_upper(m + lg / (self.epsilon * N), lg / N)


class AdaPUCB(AdaPKLUCB):
    """UCB in doubling episodes; each arm's index uses its last episode alone.

    Azize and Basu, NeurIPS 2022, Algorithm 1 with the index of AdaP-UCB, in the episodes of
    `adap-klucb`, for the noisy mean m_a of the N_a rounds of an arm's last episode::

        I_a = m_a + sqrt(alpha ln(t) / (2 N_a)) + alpha ln(t) / (epsilon N_a)

    Guarantee:
        epsilon-DP of all actions, as for `adap-klucb`.
    """

    def index(self, m: Floats, N: Floats) -> Floats:
        lg, N = self.alpha * log(max(self.t, 2)), np.maximum(N, 1)
        return m + np.sqrt(lg / (2 * N)) + lg / (self.epsilon * N)


class TreeUCB(ArmAgent):
    """UCB1 on sums of each arm's rewards, which a binary tree releases after every round.

    After Mishra and Thakurta, "(Nearly) optimal differentially private stochastic multi-arm
    bandits", UAI 2015, and Tossou and Dimitrakakis, "Algorithms for differentially private
    multi-armed bandits", AAAI 2016; reconstructed from recollection::

        every arm for one round, then in round t + 1, arm a having been played n_a times
          1. play argmax_a  s_a / n_a + sqrt(2 ln(t) / n_a) + w / n_a
          2. s <- noisy sums (K,) of the rewards of each arm in t + 1 rounds
        with h = bit_length(T - 1) nodes for a user, and Laplace noise of scale b = h / epsilon:
          w = 8 b ln t

    Guarantee:
        epsilon-DP of all actions, for replacing one user's whole row of rewards: her reward of the
        arm that was played is in at most h nodes, in one coordinate.

    **Regret** has a price of privacy of order K log^2(T) / epsilon: rewards of an arm have to
    outweigh the noise of a tree over all rounds before its gap shows.

    Differs from the paper:
        1. One tree over all rounds, not one for each arm over its own rounds: a user is in equally
           many nodes, and a sum's noise depends on t, not on n_a.
        2. w is the tail bound proved on the page of `kl-ucb-sums`, for the e <= log2(t) + 1
           noises of a sum, fewer than 4 ln t where t >= 2.
    """

    # "n", exact counts of plays: an arm, and that somebody played it, must be known anyway
    remembers = frozenset({Fact.CELL, Fact.PRESENCE})

    epsilon: Epsilon = 1.0
    """target, > 0; with inf the agent plays as UCB1"""
    sums = started(PrefixSum)

    def start(self) -> None:
        self.begin()
        target = Target(self.epsilon, 0.0, self.spec.horizon, refresh_every=1)
        self.sums = certified_sum(
            Tree(), ArmRewards(self.K, self.low, self.high), self.streams, target, law="laplace"
        )
        self.ledger = ledger_of(self.epsilon, self.sums.spend)
        self.scale = Tree().nodes(self.spec.horizon - 1) / self.epsilon
        self.n, self.s = np.zeros((self.R, self.K)), np.zeros((self.R, self.K))

    def choose(self) -> Ints:
        lg, n = log(max(self.t, 2)), np.maximum(self.n, 1)
        index = (self.s + 8 * self.scale * lg) / n + np.sqrt(2 * lg / n)
        return np.where(self.n == 0, inf, index).argmax(axis=1)

    def learn(self, arm: Ints, reward: Floats) -> None:
        # Count, and take step 2
        self.n[rows(self.R), arm] += 1
        release = self.sums(arm, reward)
        if release is not None:
            self.s[:] = release


class PrivateTsallis(OneArmBatches):
    """Tsallis-INF on noisy losses of batches of 1 / epsilon rounds, for adversarial losses.

    Asi, Raman and Talwar, "Faster rates for private adversarial bandits", ICML 2025, whose
    reduction plays any bandit algorithm on noisy losses of batches; reconstructed from the abstract
    and the statement, with the algorithm of Zimmert and Seldin, JMLR 2021::

        L = 0 (K,), estimated losses;  in batch b = 1, 2, .. of tau = ceil(1 / epsilon) rounds
          1. w = Tsallis-INF of L at rate 2 / sqrt(b);  play one arm a ~ w for tau rounds
          2. l = 1 - (sum of their rewards + Laplace(1 / epsilon)) / tau;  L_a += l / w_a

    Guarantee:
        epsilon-DP of all actions, for replacing one user's whole row of rewards: she is in one
        batch, and batches end by count (`CountedSums`).

    **Regret** of the paper's conversion is O(sqrt(K T / epsilon)) in the mean for every oblivious
    adversary, epsilon <= 1. This variant has no proof: the proof of Tsallis-INF requires losses in
    [0, 1], but noisy losses may lie outside.

    Differs from the paper:
        1. Reconstructed from the abstract: the rates and constants are not the paper's.
        2. Noisy losses are not clipped.
    """

    epsilon: Epsilon = 1.0
    """target, > 0; with inf the agent plays as Tsallis-INF"""
    uniforms = started(Paced)

    def reset(self) -> None:
        super().reset()
        self.tau = max(1, ceil(1 / self.epsilon))
        self.length = np.full(self.R, float(self.tau))
        self.lost, self.batch = np.zeros((self.R, self.K)), np.ones(self.R)
        self.uniforms = Paced(self.streams.uniforms("arms"))
        self.w: Floats = np.full((self.R, self.K), 1 / self.K)
        self.arm = drawn(self.w, self.uniforms(np.ones(self.R, dtype=np.bool_)))

    @property
    def rounds_to_release(self) -> Ints:
        # Batches are too short to be played as blocks
        return np.zeros(self.R, dtype=np.int64)

    def take(self, release: Floats, count: Floats, at_release: Bools) -> None:
        # Take step 2, and step 1 of the next batch
        here: Bools = np.asarray(at_release.any(axis=1))
        loss = np.where(at_release, 1 - release / np.maximum(count, 1), 0.0)
        self.lost = self.lost + loss / self.w
        self.batch = self.batch + here
        fresh = tsallis_chances(self.lost, 2 / np.sqrt(self.batch)[:, None])
        self.w = np.where(here[:, None], fresh, self.w)
        self.arm = np.where(here, drawn(self.w, self.uniforms(here)), self.arm)
