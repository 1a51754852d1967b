"""Linear bandits: ridge regressions of rewards on contexts, on exact data or on noisy sums.

Arms have a parameter each ("disjoint", contexts (R, d)), or all share one (contexts (R, K, d)).
Base classes come first, then the agents; the regressions are in ridge.py.
"""

from dataclasses import replace
from math import ceil, inf, log, sqrt
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np

from dpbandit.agent import (
    Arms,
    Chance,
    Count,
    Count0,
    Inside01,
    Least0,
    Positive,
    PrivateAgent,
    started,
)
from dpbandit.agents.contextual.ridge import JointRidge, OnlineRidge, Ridge
from dpbandit.base import Bools, Floats, InputError, Ints, best_allowed, predictions, random_allowed
from dpbandit.privacy import (
    Moments,
    PrefixSum,
    SecondMoments,
    Target,
    certified_sum,
    ledger_of,
    no_privacy,
)
from dpbandit.privacy.calibrated import ShariffSheffet, Spectrum, tail_bound
from dpbandit.privacy.factors import factorisation
from dpbandit.specs import ContextualSpec

Width: TypeAlias = Least0 | Literal["theory"]
Layout: TypeAlias = Literal["disjoint", "joint"]


class Exact(Arms):
    """Base class of agents on exact ridge regressions of all rows so far, without privacy."""

    regularization: Positive = 1.0
    """ridge, the number added to the diagonal of Gram matrices"""
    ridge = started(OnlineRidge)
    masks = ("public", "user")

    def start(self) -> None:
        self.ledger = no_privacy("exact ridge regressions")
        self.ridge = OnlineRidge(self.spec, self.R, regularization=self.regularization)

    def scores(self, context: Floats) -> Floats:
        return self.ridge.means(context)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        self.ridge.learn(context, action, feedback)


class Summed(PrivateAgent[ContextualSpec], Arms):
    """Base class of agents on prefix sums of a clipped statistic, which a mechanism releases.

    Until the first release disjoint arms are played in turn, since all have equal scores.
    """

    refresh_every: Count | None = None
    """rounds from one release to the next; if None, ceil(horizon / 100)"""
    context_clip: Positive | None = None
    """Euclidean norm to which contexts are clipped; if None, the environment's public bound"""
    sums = started(PrefixSum)

    def target(self, usual: int | None = None) -> Target:
        """Return budget and rounds of releases; `usual` is the default of `refresh_every`."""
        every = self.refresh_every or usual or ceil(self.spec.horizon / 100)
        return Target(self.epsilon, self.delta, self.spec.horizon, every)

    def rounds(self, arms: Layout) -> dict[str, Any]:
        """Return the sizes, layout and clipping bounds of a round as a statistic's arguments."""
        spec = self.spec
        return {
            "n_actions": spec.n_actions,
            "dim": spec.dim,
            "layout": "shared" if spec.shared else arms,
            # no context is longer than the public bound: a larger clip only adds noise
            "context_bound": min(spec.context_norm, self.context_clip or inf),
            "reward_low": spec.reward_low,
            "reward_high": spec.reward_high,
        }

    def feed(self, sums: PrefixSum) -> None:
        """Set the mechanism `sums`, which gets every round from now on, and its `ledger`."""
        self.sums, self.ledger = sums, ledger_of(self.epsilon, sums.spend)
        self.turns_first = 0.0 if self.spec.shared else inf

    @property
    def rounds_to_release(self) -> int:
        return 1 if self.round < self.turns_first else self.sums.rounds_to_release

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        release = self.sums.take_rounds(action.shape, context, action, feedback)
        if release is not None:
            self.turns_first = 0.0
            self.refit(release)

    def refit(self, release: Floats) -> None:
        """Fit the model by which the agent plays to a new release."""
        raise NotImplementedError


class Optimist(Arms):
    """Base class of optimistic agents, which play argmax x . theta_a + radius sqrt(x' V_a^-1 x)."""

    alpha: Width | None = None
    """factor of confidence widths, in units of 2 `reward_noise` (0 is greedy), or "theory" """
    regularization: Positive = 1.0
    """ridge, the number added to the diagonal of Gram matrices"""
    reward_noise: Least0 | None = None
    """sub-Gaussian parameter sigma of rewards; if None, half their range"""
    parameter_norm: Positive | None = None
    """bound on `|theta_a|` with alpha="theory"; if None, the largest that public bounds allow"""
    failure: Inside01 = 0.05
    """largest probability that tail bounds fail (affects utility only, never privacy)"""
    ridge = started(Ridge)

    def scores(self, context: Floats) -> Floats:
        radius = self.radius()
        if not radius > 0:
            return self.ridge.means(context)
        score, variance = self.ridge.predicted(context)
        return score + radius * np.sqrt(variance)

    @property
    def sigma(self) -> float:
        """Sub-Gaussian parameter of rewards, `reward_noise` or half their range."""
        return self.spec.half_range if self.reward_noise is None else self.reward_noise

    def radius(self) -> float:
        """Return the factor of sqrt(x' V_a^-1 x) in this round, 2 sigma alpha or the theory's."""
        raise NotImplementedError

    def theory(self, low: float, high: float, error: float, *, dim: int, norm: float) -> float:
        """Return the radius after t rounds, which is valid with probability 1 - failure::

            sigma sqrt(2 ln(2/failure) + d ln(high/low + t L^2 / (d low))) + S sqrt(high) + error

        Abbasi-Yadkori, Pal and Szepesvari (NeurIPS 2011), Theorem 2, as extended by Shariff and
        Sheffet (NeurIPS 2018), Proposition 4, to a noisy regulariser with eigenvalues in [low,
        high] and a moment noise nu with sqrt(nu' V^-1 nu) <= `error`. L is the bound `norm` of
        contexts, d their dimension `dim`, S that of parameters.
        """
        S = self.spec.parameter_norm if self.parameter_norm is None else self.parameter_norm
        growth = log(high / low + self.round * norm**2 / (dim * low))
        deviation = self.sigma * sqrt(2 * log(2 / self.failure) + dim * growth)
        return deviation + S * sqrt(high) + error


class SummedUCB(Optimist, Summed):
    """Base class of optimistic agents on released Gram matrices, shifted by more than the noise.

    Noise of off-diagonal stddev s has spectral norm at most Gamma = gram_factor s with high
    probability; V is the released Gram matrix + max(regularization, shift_factor Gamma) I.
    """

    usual_alpha = cast(Width, 1.0)
    """default of `alpha`, the factor of confidence widths"""
    masks = ("public", "user")
    statistic = started(SecondMoments)
    spectrum = started(Spectrum)

    def start(self) -> None:
        self.statistic = self.moments()
        sums, self.spectrum = self.noisy_sums()
        self.feed(sums)
        each_round = sums.rounds_to_release == 1  # then every release predicts for one context
        kind = JointRidge if each_round and self.statistic.layout == "joint" else Ridge
        self.ridge = kind(self.spec, self.R, regularization=self.regularization)
        self._radius = self._radius_at(self.regularization, 0.0, 0.0)

    def moments(self) -> SecondMoments:
        """Return the statistic of one round whose sums are released."""
        raise NotImplementedError

    def noisy_sums(self) -> tuple[PrefixSum, Spectrum]:
        """Return the mechanism that sums `statistic`, and bounds on its noise's eigenvalues."""
        raise NotImplementedError

    def radius(self) -> float:
        return self._radius

    def refit(self, release: Floats) -> None:
        statistic, noise = self.statistic, self.spectrum
        stddev = self.sums.stddev if noise.stddev is None else noise.stddev
        moment = statistic.moment_bound * stddev / statistic.moment_weight
        gamma = noise.gram_factor * (statistic.context_bound**2 * stddev / sqrt(2))
        shift = max(self.regularization, noise.shift_factor * gamma)
        self.ridge.refit(*statistic.unpack(release), shift)
        self._radius = self._radius_at(shift, gamma, moment)

    def _radius_at(self, shift: float, gamma: float, moment: float) -> float:
        alpha = self.usual_alpha if self.alpha is None else self.alpha
        if alpha != "theory":
            return 2 * alpha * self.sigma
        D, low, norm = self.statistic.block_dim, shift - gamma, self.statistic.context_bound
        tail = sqrt(2 * log(2 * self.spec.horizon / self.failure))
        error = moment * (sqrt(D) + tail) / sqrt(low)
        return self.theory(low, shift + gamma, error, dim=D, norm=norm)


class LinUCB(Optimist, Exact):
    """Optimism: play argmax x . theta_a + 2 sigma alpha sqrt(x' V_a^-1 x), by ridge regression.

    V_a is the regularised Gram matrix of arm a, sigma the `reward_noise`.

    Li, Chu, Langford and Schapire, "A contextual-bandit approach to personalized news article
    recommendation", WWW 2010, Algorithm 1 (disjoint arms); with an environment whose arms share
    one parameter, the shared model of Chu, Li, Reyzin and Schapire, AISTATS 2011. The radius
    `alpha="theory"` is that of Abbasi-Yadkori, Pal and Szepesvari, NeurIPS 2011, Theorem 2 (OFUL).

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        Ties go to the lowest arm. alpha is in units of 2 sigma, by default the public range of
        rewards: every reward is sub-Gaussian with half its range. So alpha has the meaning of Li et
        al., whose rewards are clicks, and play does not depend on the unit of rewards.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/GLMBandit-v0", {"LinUCB": LinUCB()}, horizon=500, replicas=4,
    ...                   progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["LinUCB"] < mean["Uniform"] / 2)
    True
    """

    alpha: Width = 1.0
    """factor of confidence widths, in units of 2 `reward_noise` (0 is greedy), or "theory" """
    ridge = started(OnlineRidge)

    def radius(self) -> float:
        if self.alpha != "theory":
            return 2 * self.alpha * self.sigma
        ridge, norm = self.regularization, self.spec.context_norm
        return self.theory(ridge, ridge, 0.0, dim=self.spec.dim, norm=norm)


class LinTS(Exact):
    """Thompson sampling: play the best arm for a parameter drawn from N(V^-1 u, v^2 V^-1).

    Agrawal and Goyal, "Thompson sampling for contextual bandits with linear payoffs", ICML 2013,
    Algorithm 1, with V the regularised Gram matrix and u the sum of r x. For disjoint arms the
    sampled rewards of different arms are independent normals, drawn directly; a shared parameter is
    drawn through a Cholesky factor of V^-1.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. v = 2 sigma `scale`, sigma the `reward_noise`; the paper has sigma times a function of T,
           d and the confidence level.
        2. Disjoint arms have regressions of their own.
        3. `regularization` times the identity matrix in place of the identity matrix.
    """

    scale: Least0 = 0.2
    """standard deviation of draws, in units of 2 `reward_noise` V^-1/2, V the Gram matrix"""
    reward_noise: Least0 | None = None
    """sub-Gaussian parameter sigma of rewards; if None, half their range"""

    def start(self) -> None:
        super().start()
        noise = self.spec.half_range if self.reward_noise is None else self.reward_noise
        self.v = 2 * self.scale * noise
        size = self.spec.dim if self.spec.shared else self.spec.n_actions
        self.normals = self.streams.normals("exploration", size)

    def scores(self, context: Floats) -> Floats:
        return self.ridge.sampled(context, self.v, self.normals())


class Greedy(Exact):
    """Play the arm with the largest reward predicted by ridge regression.

    Bastani, Bayati and Khosravi, "Mostly exploration-free algorithms for contextual bandits",
    Management Science 2021: diverse contexts suffice as exploration. If contexts are not diverse,
    an arm may never be played again.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        Ridge regression in place of least squares; ties go to the lowest arm; if all arms share a
        parameter, play is greedy from the start.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/GLMBandit-v0", {"Greedy": Greedy()}, horizon=500, replicas=4,
    ...                   progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["Greedy"] < mean["Uniform"] / 2)
    True
    """

    turns: Count0 = 1
    """rounds for which each arm is first played if arms have their own parameters"""

    def start(self) -> None:
        super().start()
        self.turns_first = 0 if self.spec.shared else self.turns * self.spec.n_actions


class EpsilonGreedy(Exact):
    """Play the arm of the largest predicted reward, or a random arm with probability `exploration`.

    Sutton and Barto, "Reinforcement learning", 2nd ed. 2018, section 2.4, on ridge regressions.

    Guarantee:
        None: exact data reaches later actions.
    """

    exploration: Chance = 0.05
    """probability of a random arm, in [0, 1]"""

    def start(self) -> None:
        super().start()
        self.uniforms = self.streams.uniforms("exploration", 2)

    def act(self, context: Floats) -> Ints:
        coin, which = self.uniforms().T  # two a round, whatever they decide
        random = (which * self.spec.n_actions).astype(np.int64)
        return np.where(coin < self.exploration, random, self.scores(context).argmax(axis=1))

    def act_among(self, context: Floats, mask: Bools) -> Ints:
        coin, which = self.uniforms().T
        random = random_allowed(which, mask)
        best = best_allowed(self.scores(context), mask)
        return np.where(coin < self.exploration, random, best)


class ShariffSheffetUCB(SummedUCB):
    """LinUCB on noisy running sums from a tree, with the noise of Shariff and Sheffet.

    Shariff and Sheffet, "Differentially private contextual linear bandits", NeurIPS 2018. Fields
    left None follow the calibration::

        field           "paper" (see above)       "certified"
        noise scale     see `ShariffSheffet`      least that meets the claim
        arms            joint, dimension K d      disjoint, K regressions
        alpha           theory                    1
        refresh_every   1                         ceil(horizon / 100)

    Guarantee:
        The guarantee of `DPUCB`; all releases together are mu-GDP (Gaussian noise), or their cost
        follows from an exact law of the privacy loss (Wishart, see `dpbandit.privacy.wishart`).

    Differs from the paper:
        1. x and r are clipped by the agent.
        2. A tree node that no prefix uses is never drawn.
        3. The shift is at least `regularization`, so that without privacy it is LinUCB.
        4. Disjoint arms take turns until the first release.
        5. Wishart noise is centred; we could not check its constants against the paper.
        6. "certified": the least noise for the claim; a regression for each arm; releases every
           ceil(T / 100) rounds; the shift is twice a tail bound of this release's noise.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=5, horizon=10_000)
    >>> round(certify(ShariffSheffetUCB(epsilon=1.0, calibration="paper"), spec).epsilon, 3)
    0.055
    """

    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is the least noise that meets the claim, "paper" the paper's noise"""
    noise: Literal["gaussian", "wishart"] = "gaussian"
    """distribution of the noise in sums, Gaussian or Wishart"""
    arms: Layout | None = None
    """layout, "disjoint" models of each arm or one "joint" model; if None, by the calibration"""

    def start(self) -> None:
        self.usual_alpha = "theory" if self.calibration == "paper" else 1.0
        super().start()

    def moments(self) -> SecondMoments:
        # One symmetric matrix over rows (x, r), as in the paper: the noise of r x is that of a
        # Gram entry off the diagonal
        rounds = self.rounds(self.arms or ("joint" if self.calibration == "paper" else "disjoint"))
        weight = sqrt(2) * self.spec.reward_bound / rounds["context_bound"]
        return SecondMoments(**rounds, moment_weight=weight)

    def noisy_sums(self) -> tuple[PrefixSum, Spectrum]:
        paper = self.calibration == "paper"
        target = self.target(usual=1 if paper else None)
        proposal = ShariffSheffet(self.statistic, target, self.noise, printed=paper)
        return proposal.sums(self.streams), proposal.spectrum(self.failure)


class DPUCB(SummedUCB):
    """LinUCB that learns only from noisy running sums of Gram matrices and rewarded contexts.

    After Shariff and Sheffet, "Differentially private contextual linear bandits", NeurIPS 2018,
    whose own algorithm is `ShariffSheffetUCB(calibration="paper")`::

        for t = 1..T:
          1. V = G + shift I,  theta = V^-1 u                 from released sums G, u only
          2. play argmax_a  x . theta_a + 2 sigma alpha sqrt(x' V_a^-1 x)
          3. clip x and r;  G += x x',  u += r x              through one prefix sum

    sigma is the `reward_noise`. If noise requires a shift far above G, V^-1 is nearly a multiple of
    I and G has no use: `DPMoments` does not release it. Inside `Priced` all prices share one
    regression of sales, with alpha 0 and shift 0.05.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, with
        the epsilon of the certificate: step 2 reads the current user's context and writes nothing;
        step 3 is the only use of (x, r), of L2 sensitivity sqrt(4.5) in unit scale (see
        `SecondMoments`), and all releases together are mu-GDP. Actions of all other users are
        post-processing.

    Differs from the paper:
        1. Exact Gaussian composition replaces basic composition of a loose tail bound: 13.8 times
           less noise at T = 10^4, epsilon 1, delta 1e-4, equal clips and units.
        2. Disjoint arms have their own sums, to which each round adds a row (0 if not played).
        3. BLT in place of the tree; releases every `refresh_every` rounds.
        4. The shift is twice a tail bound of this release's noise, and at least `regularization`,
           so that epsilon = inf is LinUCB.
        5. x, r and optionally r x are clipped by the agent.
        6. Disjoint arms take turns until the first release; the width is 1, not the theory's.
        7. If arms have one Gram matrix together and r x no clip of its own, the trace has smaller
           noise at no cost (`PreciseTrace`).

    >>> from dpbandit import certify
    >>> round(certify(DPUCB(epsilon=1.0, delta=1e-5), "GLMBandit").epsilon, 6)
    1.0
    """

    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim; "paper" plays `ShariffSheffetUCB` if the agent is named
    by its id, and is refused in Python"""
    prefix_sums: Literal["tree", "blt", "gradual"] = "blt"
    """mechanism that releases running sums, by a binary tree, BLT noise or gradual releases"""
    arms: Layout = "disjoint"
    """layout, a model for each arm ("disjoint") or one model of all arms' features ("joint")"""
    alpha: Width | None = None
    """factor of confidence widths, in units of 2 `reward_noise` (0 is greedy), or "theory", which
    needs a shift above 1; if None, 1, or 0 for a model of demand"""
    moment_clip: Positive | None = None
    """norm to which r x is clipped after r and x are clipped; None does not clip it"""
    moment_weight: Positive = 1.0
    """weight of the moment divided by that of the Gram matrix in their joint release"""
    shift: Positive | None = None
    """ridge of Gram matrices, in tail bounds of their noise's norm, > 0; utility only, not privacy.
    If None, 2, or 0.05 for a model of demand. Smaller values shrink theta less; below 1 noise may
    make the matrices indefinite"""

    def check(self) -> None:
        super().check()
        if self.calibration == "paper":
            raise InputError(
                "Expected DPUCB without calibration='paper': the algorithm of its paper is "
                "ShariffSheffetUCB(calibration='paper')."
            )
        if self.alpha == "theory" and self.shift is not None and self.shift <= 1:
            raise InputError(
                f"Expected shift={self.shift!r} > 1 with alpha='theory': V has to stay above 0."
            )

    def for_demand(self) -> Self:
        """Return the config, with alpha 0 and shift 0.05 for None unless alpha is "theory"."""
        if self.alpha == "theory":
            return self
        return replace(
            self,
            alpha=0.0 if self.alpha is None else self.alpha,
            shift=0.05 if self.shift is None else self.shift,
        )

    def moments(self) -> SecondMoments:
        # a single block allows smaller noise in the trace; without noise that would only round
        lone = self.spec.shared or self.arms == "joint"
        free = self.moment_clip is None and self.epsilon < inf
        return SecondMoments(
            **self.rounds(self.arms),
            moment_clip=self.moment_clip,
            moment_weight=self.moment_weight,
            precise_trace=lone and free,
        )

    def noisy_sums(self) -> tuple[PrefixSum, Spectrum]:
        statistic, target = self.statistic, self.target()
        process = factorisation(self.prefix_sums)
        bound = tail_bound(
            statistic.block_dim,
            target.horizon,
            failure=self.failure,
            shift_factor=2.0 if self.shift is None else self.shift,
            trace_variance=statistic.trace_variance,
        )
        return certified_sum(process, statistic, self.streams, target), bound


class DPMoments(Summed):
    """Play greedily on noisy sums of reward times context, which have the whole budget.

    A design of this project for noise so large that the Gram matrices of `DPUCB` are useless::

        for t = 1..T:
          1. play argmax_a  x . u_a                            from released u only
          2. clip x and r;  u_a += r x                         through one prefix sum

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round: step 1
        reads the current user's context and writes nothing; step 2 is the only use of (x, r), of L2
        sensitivity 2 moment_clip (see `Moments`), and all releases together are mu-GDP. There is no
        regret bound, and a bias unless contexts are isotropic and arms are played equally often.

    >>> from dpbandit import certify
    >>> round(certify(DPMoments(epsilon=1.0, delta=1e-5), "GLMBandit").epsilon, 6)
    1.0
    """

    prefix_sums: Literal["tree", "blt", "gradual"] = "blt"
    """mechanism that releases running sums, by a binary tree, BLT noise or gradual releases"""
    arms: Layout = "disjoint"
    """layout, a model for each arm ("disjoint") or one model of all arms' features ("joint")"""
    moment_clip: Positive | None = None
    """norm to which r x is clipped after r and x are clipped; None does not clip it"""

    def for_demand(self) -> Self:
        """Raise `InputError`, since this agent's scores are no probabilities of a sale."""
        raise InputError("Expected an agent that scores arms by chances of a sale, not by moments.")

    def start(self) -> None:
        process = factorisation(self.prefix_sums)
        self.feed(certified_sum(process, self.moments(), self.streams, self.target()))
        groups = 1 if self.spec.shared else self.spec.n_actions
        self.u: Floats = np.zeros((self.R, groups, self.spec.dim))

    def moments(self) -> Moments:
        """Return the statistic of one round whose sums are released."""
        return Moments(**self.rounds(self.arms), moment_clip=self.moment_clip)

    def scores(self, context: Floats) -> Floats:
        # x . u_a, (R, K), not in units of the reward: with isotropic contexts and arms played
        # equally often E u_a is proportional to the parameter, with one factor for all arms
        return predictions(context, self.u, shared=self.spec.shared)

    def refit(self, release: Floats) -> None:
        self.u = release.reshape(self.u.shape)
