"""Greedy bandits that learn each arm's parameter by online Frank-Wolfe on the l_1 ball.

The agents learn from rewards through a mechanism alone, which releases noisy gradient sums or
chosen vertices; all else is public. Without noise all agents here are the same algorithm.
"""

from dataclasses import dataclass
from math import inf, log
from typing import Annotated, Any, Literal, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from dpbandit.agent import Arms, Count, Positive, PrivateAgent, Share, started
from dpbandit.base import (
    Floats,
    InputError,
    Ints,
    gaussian_target,
    inside,
    positive,
    predictions,
    printed_target,
    privacy_target,
    rows,
)
from dpbandit.privacy import (
    BLT,
    GaussianSpend,
    Mechanism,
    PrefixSum,
    exact_prefix_sum,
    ledger_of,
    no_privacy,
)
from dpbandit.privacy.calibrated import least_multiplier
from dpbandit.privacy.factors import Staggered
from dpbandit.privacy.gradients import RecursiveGradients
from dpbandit.privacy.prefix_sums import mu_after
from dpbandit.privacy.vertices import (
    NoisyVertex,
    Profile,
    SelectionNoise,
    best_vertices,
    certified_budgets,
    paper_budgets,
)
from dpbandit.specs import ContextualSpec, LinkName, link_of

Moving: TypeAlias = npt.NDArray[np.bool_]
"""Mask of the parameters (one per arm, or one shared) that take a Frank-Wolfe step this round"""
_GRADIENT_CLIP_SHARE = 0.2
"""Default gradient clip, as a share of the largest `|r x|`; smaller clips need less noise"""
_MAX_PAPER_EPSILON = 5.0
"""Largest epsilon at which the composition theorem behind the paper's printed noise is valid"""


def _gap(name: str, value: Any) -> None:
    inside(name, value, 0, inf, ends=True)
    if value < inf:
        positive(name, value)


class FrankWolfe:
    """Frank-Wolfe iterates of G parameter vectors in an l_1 ball, computed from releases only.

    Frank and Wolfe (1956), with the step sizes of Han et al. (see `DPHDB`). G is the number of
    arms, or 1 if they share a parameter. theta_1 = 0, and in the i-th step of a parameter::

        theta_{i+1} = theta_i + c / (i+1) (v_i - theta_i),          v_i a vertex of the ball,

    so that with c = 1 theta_i is the mean of v_1..v_{i-1} and 0. `theta` and the iterates before
    it, `previous`, are (R, G, d); `steps`, the number of steps of each parameter, is (G,).
    """

    def __init__(self, replicas: int, shape: tuple[int, int], *, radius: float, step: float):
        self.theta: Floats = np.zeros((replicas, *shape))
        self.previous: Floats = np.zeros((replicas, *shape))
        self.steps: Ints = np.zeros(shape[0], dtype=np.int64)
        self._radius, self._step = radius, step

    def next_steps(self, moving: Moving) -> Ints:
        """Return the number of each parameter's next step, 0 for those that are not `moving`."""
        return np.where(moving, self.steps + 1, 0)

    def move(self, vertices: Ints, moving: Moving) -> None:
        """Move the `moving` parameters by a step towards `vertices`, given as indices (R, G)."""
        R, G, d = self.theta.shape
        self.steps = self.steps + moving
        weight = np.where(moving, self._step / (self.steps + 1), 0.0)
        theta = self.theta * (1 - weight)[:, None]
        sign = np.where(vertices < d, self._radius, -self._radius)
        theta[rows(R)[:, None], rows(G), vertices % d] += weight * sign
        self.previous = np.where(moving[:, None], self.theta, self.previous)
        self.theta = theta


@dataclass(frozen=True)
class Schedule:
    """Public schedule of warm-up pulls and of the parameters that take a step in each round.

    If each arm has its own parameter, arms are pulled one after the other for `warm_up` rounds,
    and only the pulled arm's parameter steps; afterwards all step in every round (arms that are not
    played have gradient 0). A shared parameter always steps; arms take turns for `warm_up` rounds.
    """

    n_actions: int
    shared: bool
    warm_up: int

    @property
    def rounds(self) -> int:
        """Length of the whole warm-up, in rounds."""
        return self.warm_up * (1 if self.shared else self.n_actions)

    def pull(self, n: int) -> int | None:
        """Return the arm to pull in round n, counted from 0; None once the warm-up is over."""
        if n >= self.rounds:
            return None
        return n % self.n_actions if self.shared else n // self.warm_up

    def moving(self, n: int) -> Moving:
        """Return the mask of parameters that take a step in round n, counted from 0."""
        arm = self.pull(n)
        if self.shared or arm is None:
            return np.ones(1 if self.shared else self.n_actions, dtype=np.bool_)
        return rows(self.n_actions) == arm

    def steps(self, horizon: int) -> int:
        """Return the number of steps that each parameter has taken after `horizon` rounds."""
        return horizon if self.shared else horizon - (self.n_actions - 1) * self.warm_up


def default_warm_up(spec: ContextualSpec, *, epsilon: float = inf, share: float = inf) -> int:
    """Return the warm-up rounds per arm, ln(d T) ln T / epsilon^2, at most `share` T for all arms.

    The order is from Han et al. (2022), the constant 1 from their code; epsilon inf counts as 1.
    """
    T, arms = spec.horizon, 1 if spec.shared else spec.n_actions
    wanted = log(spec.dim * T) * log(T) / (1.0 if epsilon == inf else max(epsilon, 1e-9)) ** 2
    return max(1, int(min(wanted, share * T / arms)))


class FrankWolfeBandit(Arms):
    """Base class of agents that warm up, then play the candidate arm of the largest mean reward.

    The mean reward is zeta(x . theta_a), zeta the inverse link. Candidates are the arms whose mean
    reward at the estimate after the warm-up is within h_sub / 2 (`subset_gap`) of the largest. With
    delayed rewards the agent does not learn from the first `delay` users, who all get arm 0.
    """

    radius: Positive | None = None
    """radius R of the l_1 ball of parameters; if None, 1, but with the identity link the largest
    reward divided by the bound of contexts. Inside `Priced` it bounds the parameter of the logits,
    and steep demand needs more than 1"""
    step: Share = 1.0
    """factor c of the step sizes, in (0, 1]; smaller values suit parameters well inside the ball"""
    warm_up: Count | None = None
    """rounds t_0 for which every arm is pulled first (for a shared parameter, rounds in all)"""
    subset_gap: Annotated[float, _gap] = inf
    """gap h_sub, in units of the reward; arms that the warm-up's estimate puts h_sub / 2 or more
    below the best are excluded; inf excludes none"""
    residual_clip: Positive | None = None
    """bound to which `|residual|` is clipped; if None, the largest that the model allows"""
    link: LinkName | None = None
    """link of the model; if None, the environment's, or identity if it is none of these"""
    walk = started(FrankWolfe)
    schedule = started(Schedule)
    mechanism = cast(Mechanism, None)

    def for_demand(self) -> Self:
        """Return the config itself; raise `InputError` if it excludes arms by `subset_gap`."""
        if self.subset_gap < inf:
            raise InputError(
                f"Expected subset_gap={self.subset_gap!r} to be inf for a model of demand: prices "
                "differ in margins too."
            )
        return self

    def start(self) -> None:
        spec, link = self.spec, link_of(self.link or self.spec.link)
        self.mean, self.zeta = link.mean, link.name
        usual = spec.reward_bound / spec.context_bound if link.name == "identity" else 1.0
        self.ball = self.radius or usual
        self.fit()
        self.schedule = Schedule(spec.n_actions, spec.shared, self.warm_up or self.usual_warm_up())
        if spec.horizon <= self.schedule.rounds:
            raise InputError(
                f"Expected horizon={spec.horizon} > {self.schedule.rounds} rounds of warm-up, "
                f"warm_up={self.schedule.warm_up}: choose a longer horizon or a smaller warm_up."
            )
        groups = 1 if spec.shared else spec.n_actions
        self.walk = FrankWolfe(self.R, (groups, spec.dim), radius=self.ball, step=self.step)
        self.frozen = self.walk.theta
        self.begin()

    def fit(self) -> None:
        """Raise `InputError` for problems that the agent cannot play."""

    def usual_warm_up(self) -> int:
        """Return the default warm-up in rounds per arm, or rounds in all for a shared parameter."""
        return default_warm_up(self.spec, share=0.1)

    def begin(self) -> None:
        """Set `mechanism`, which releases what steps need, and the privacy ledger `ledger`."""
        raise NotImplementedError

    def gradients(
        self, *, bound: str = "exact", gradient_clip: float | None = None
    ) -> RecursiveGradients:
        """Return the statistic of clipped gradients.

        Residuals are clipped to `residual_clip`, and at most to their bound by formula `bound`, for
        contexts of max-norm at most M, rewards r within +-B, radius R, step c, inverse link zeta::

            printed  (beta D + L) / M,  beta = M^2 max zeta', D = 2R, L = M max |zeta - r|
            exact    1.5 M R + B with the identity link, else (c beta D + L) / M
        """
        spec, link, M = self.spec, link_of(self.link or self.spec.link), self.spec.context_bound
        reach = M * self.ball
        lipschitz = link.lipschitz(reach, spec.reward_low, spec.reward_high)
        travel = self.step if bound == "exact" else 1.0
        natural = 2 * travel * link.largest_slope * reach + lipschitz
        if bound == "exact" and link.name == "identity":
            natural = 1.5 * reach + spec.reward_bound
        return RecursiveGradients(
            n_actions=spec.n_actions,
            dim=spec.dim,
            shared=spec.shared,
            mean=link.mean,
            context_bound=M,
            reward_low=spec.reward_low,
            reward_high=spec.reward_high,
            residual_clip=min(self.residual_clip or inf, natural),
            gradient_clip=gradient_clip,
        )

    @property
    def theta(self) -> Floats:
        """Estimated parameters, (R, K, d), or (R, 1, d) if shared."""
        return self.walk.theta

    def act(self, context: Floats) -> Ints:
        arm = self.schedule.pull(self.round)
        if arm is not None:
            return np.full(len(context), arm)
        score = self.scores(context)
        if self.subset_gap < inf:
            frozen = self.means(self.frozen, context)
            candidate = frozen > frozen.max(axis=1, keepdims=True) - self.subset_gap / 2
            score = np.where(candidate, score, -inf)
        return score.argmax(axis=1)

    def scores(self, context: Floats) -> Floats:
        return self.means(self.walk.theta, context)

    def means(self, theta: Floats, context: Floats) -> Floats:
        """Return the mean rewards of arms by the model, the inverse link of x . theta_a, (R, K)."""
        return self.mean(predictions(context, theta, shared=context.ndim == 3))

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        walk, n = self.walk, self.round - 1 - self.spec.delay
        if n < 0:
            return
        moving = self.schedule.moving(n)
        steps = walk.next_steps(moving)
        release = self.mechanism(walk.theta, walk.previous, steps, context, action, feedback)
        if release is None:
            return
        walk.move(self.vertices(release), moving)
        if n < self.schedule.rounds:
            self.frozen = walk.theta

    def vertices(self, release: Floats) -> Ints:
        """Return, for each parameter, the index of the vertex towards which it steps, (R, G)."""
        return best_vertices(release)


class OnlineFrankWolfe(FrankWolfeBandit):
    """DP-HDB without noise, for sparse parameters in many dimensions.

    Algorithm 3 of Han, Liang, Liang, Wang, Yao and Zhang, "On private online convex optimization:
    optimal algorithms in l_p-geometry and high dimensional contextual bandits" (2022), at epsilon
    = inf; the recursion is that of Xie, Shen, Zhang, Wang and Qian, AAAI 2020::

        1. warm-up: pull every arm t_0 times (`warm_up`), one after the other
        2. then play argmax_a zeta(x . theta_a) among the candidates (`FrankWolfeBandit`)
        3. played arm: G_a += g_i, the recursive gradient (see `RecursiveGradients`);
           every arm, in its i-th step:   v = argmin <G_a, v> over the vertices +-R e_j of the l_1
                                          ball,   theta_a += c/(i+1) (v - theta_a), c the `step`

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        As in `DPHDBChoices`. `warm_up=None` is ln(d T) ln T rounds per arm, at most T / 10 in all.

    >>> from dpbandit import compare
    >>> sparse = {"dim": 30, "n_actions": 2, "context_order": float("inf"),
    ...           "contexts": "signs", "parameters": "sparse-signs"}
    >>> results = compare("dpbandit/GLMBandit-v0", {"OFW": OnlineFrankWolfe()}, horizon=1000,
    ...                   replicas=4, env_kwargs=sparse, progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["OFW"] < mean["Uniform"] / 2)
    True
    """

    gradient_clip: Positive | None = None
    """Euclidean norm to which a gradient is clipped; None does not clip"""

    def begin(self) -> None:
        statistic = self.gradients(gradient_clip=self.gradient_clip)
        self.mechanism = exact_prefix_sum(statistic, horizon=self.spec.horizon, refresh_every=1)
        self.ledger = no_privacy("exact gradient sums")


class DPHDBChoices(FrankWolfeBandit):
    """DP-HDB as in its paper: every arm steps towards a noisily chosen vertex each round.

    Han, Liang, Liang, Wang, Yao and Zhang, "On private online convex optimization: optimal
    algorithms in l_p-geometry and high dimensional contextual bandits" (2022), Algorithms 2 and 3::

        1. warm-up: pull every arm t_0 times, one after the other, for every context
        2. then play argmax_a zeta(x . theta_a) among the candidates of the warm-up
        3. the played arm's gradient joins its sum d_a, clipped (see `RecursiveGradients`)
        4. every arm takes a step, the others with the record (0, zeta(0)), whose gradient is 0:
              release only v = argmin <d_a, v> + noise over the 2d vertices +-R e_j
              theta_a += c/(i+1) (v - theta_a)

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, with
        the epsilon of the certificate: step 2 reads the current user's context and writes nothing;
        step 3 is the only use of (x, r), and vertices are released through one mechanism, whose
        class proves that all arms together cost as much as one. Actions of all other users are
        post-processing. If only the played arm took a step, counters would reveal it.

    Fields left None follow the calibration::

        field       "paper" (Han et al.)                    "certified"
        selection   laplace                                 gumbel
        noise       4 D k M sqrt(ln n ln(1/delta) / t) / e  least that meets the claim
        profile     inverse-sqrt                            uniform
        bound       printed: k = (beta D + L) / M           exact: k = 1.5 M R + B (identity link)
        warm_up     int(ln(d T) ln T / epsilon^2)           the same, at most T / 10 in all

    Here n is the number of steps, t the step, e epsilon, R the `radius`, D = 2R; M and B bound
    contexts and rewards; `L = M max |zeta - r|`, beta = M^2 max zeta', zeta the inverse link.

    Differs from the paper:
        Points 1 and 2 apply to "certified" only, the others to both calibrations.

        1. Exact composition: 1.9 times less Laplace noise, 3.4 times with Gumbel (at equal bounds).
        2. The exact bound of a gradient of the identity link.
        3. d_0 = 0 in the recursion, because starting with the first gradient counts user 1 twice.
        4. Gradients are weighted by the step counter of their own arm.
        5. Warm-up data goes to the arm that was pulled (in the paper to the next one).
        6. x, r and the residual are clipped.
        7. Ties go to the lowest index.
        8. "paper" refuses a single step (ln n = 0), and epsilon > 5 unless `beyond_validity`. The
           paper states `subset_gap` for x . theta, but compares zeta(x . theta) with it, as we do.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=50, horizon=1000, context_order=inf)
    >>> round(certify(DPHDBChoices(epsilon=1.0, calibration="paper"), spec).epsilon, 2)
    0.47
    """

    epsilon: float = 1.0
    """target epsilon, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target delta, in (0, 1); 0 is possible if certified"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is the least noise that meets the claim, "paper" the paper's noise"""
    selection: Literal["gumbel", "laplace"] | None = None
    """distribution of the noise on the scores of vertices"""
    profile: Profile | None = None
    """privacy budget of step t, in proportion to 1 / sqrt(t), or the same for all steps"""
    bound: Literal["exact", "printed"] | None = None
    """bound of a residual, the paper's or the exact one (see the table)"""
    scale: Literal["fixed", "adaptive"] = "fixed"
    """scale of a choice's noise, fixed or (identity link) "adaptive", in proportion to the largest
    bound of a residual so far, which is below the exact bound only if `step` is less than 1"""
    beyond_validity: bool = False
    """True to run also at epsilon > 5 with "paper"; the certificate holds the resulting epsilon"""

    def check(self) -> None:
        privacy_target(self.epsilon, self.delta)
        if self.calibration == "certified":
            return
        gaussian_target(self.epsilon, self.delta)
        if (*self.choice, self.scale) != ("laplace", "inverse-sqrt", "fixed"):
            raise InputError(
                "Expected calibration='paper' with selection='laplace', profile='inverse-sqrt', "
                "scale='fixed'."
            )
        beyond = self.beyond_validity
        printed_target(
            self.epsilon, self.calibration, beyond_validity=beyond, most=_MAX_PAPER_EPSILON
        )

    @property
    def choice(self) -> tuple[SelectionNoise, Profile]:
        """Noise distribution and budget profile, with the calibration's defaults for None."""
        if self.calibration == "paper":
            return self.selection or "laplace", self.profile or "inverse-sqrt"
        return self.selection or "gumbel", self.profile or "uniform"

    def fit(self) -> None:
        if self.scale == "adaptive" and self.zeta != "identity":
            raise InputError(
                f"Expected scale='adaptive' with the identity link, got {self.zeta!r}."
            )

    def usual_warm_up(self) -> int:
        # as printed there is no limit in rounds
        share = inf if self.calibration == "paper" else 0.1
        return default_warm_up(self.spec, epsilon=self.epsilon, share=share)

    def begin(self) -> None:
        paper, T, (noise, profile) = self.calibration == "paper", self.spec.horizon, self.choice
        n, target = self.schedule.steps(T), {"epsilon": self.epsilon, "delta": self.delta}
        if self.epsilon == inf:
            budgets = np.full(n, inf)
        elif paper:
            budgets = paper_budgets(n, **target)
        else:
            budgets = certified_budgets(n, noise=noise, profile=profile, **target)
        self.mechanism = NoisyVertex(
            self.gradients(bound=self.bound or ("printed" if paper else "exact")),
            self.streams,
            "vertices",
            noise=noise,
            budgets=budgets,
            horizon=T,
            adaptive=self.scale == "adaptive",
        )
        spend = self.mechanism.spend
        self.ledger = ledger_of(self.epsilon, spend, without="choices without noise")

    def vertices(self, release: Floats) -> Ints:
        return release.astype(np.int64)


class DPHDB(PrivateAgent[ContextualSpec], FrankWolfeBandit):
    """Greedy play for sparse parameters: every arm takes a private Frank-Wolfe step each round.

    After Han, Liang, Liang, Wang, Yao and Zhang, "On private online convex optimization: optimal
    algorithms in l_p-geometry and high dimensional contextual bandits" (2022), Algorithms 2 and 3,
    which choose vertices noisily, as `DPHDBChoices` does. Here gradient sums get noise instead::

        1. warm-up: pull every arm t_0 times, one after the other, for every context
        2. then play argmax_a zeta(x . theta_a) among the candidates of the warm-up
        3. the played arm's gradient, clipped (see `RecursiveGradients`) to Euclidean norm c_g,
           joins its sum d_a; all sums are released with noise
        4. every arm takes a step, the others with the record (0, zeta(0)), whose gradient is 0:
              v = argmin <d_a, v> over +-R e_j;   theta_a += c/(i+1) (v - theta_a)

    c_g is `gradient_clip`. Noise is that of BLT prefix sums over each arm's steps, the least whose
    certificate meets the claim; an arm that takes no step in the warm-up draws no new noise.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round: step 2
        reads the current user's context and writes nothing; step 3 is the only use of (x, r), and
        all releases are mu-GDP with the mu of one arm, as a user moves the sum of one arm. Actions
        of other users are post-processing. If only the played arm stepped, counters would show it.

    Differs from the paper:
        1. A noisy sum in place of a noisy choice.
        2. The rest as in `DPHDBChoices`, with the exact bound of a gradient.

    >>> from dpbandit import certify
    >>> round(certify(DPHDB(epsilon=1.0), "GLMBandit").epsilon, 6)
    1.0
    """

    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim; "paper" plays `DPHDBChoices` if the agent is named by its
    id, and is refused in Python"""
    gradient_clip: Positive | None = None
    """Euclidean norm to which a gradient is clipped; if None, a fifth of the largest `|r x|`, and
    no clip at epsilon = inf or without the identity link (most gradients are large then)"""

    def check(self) -> None:
        super().check()
        if self.calibration == "paper":
            raise InputError(
                "Expected DPHDB without calibration='paper': the algorithm of its paper is "
                "DPHDBChoices(calibration='paper')."
            )

    def usual_warm_up(self) -> int:
        return default_warm_up(self.spec, epsilon=self.epsilon, share=0.1)

    def begin(self) -> None:
        spec, n = self.spec, self.schedule.steps(self.spec.horizon)
        natural = self.gradients().residual_clip * spec.context_norm
        cut = self.epsilon < inf and self.zeta == "identity"
        default = _GRADIENT_CLIP_SHARE * spec.reward_bound * spec.context_norm if cut else inf
        clip = min(self.gradient_clip or default, natural)  # no gradient is larger
        statistic = self.gradients(gradient_clip=clip)
        multiplier = least_multiplier(
            BLT(), horizon=n, refresh_every=1, epsilon=self.epsilon, delta=self.delta
        )
        noise = Staggered(
            self.streams,
            "blt noise",
            statistic.shape,
            stddev=multiplier * statistic.sensitivity,
            turns=self.schedule.warm_up,
        )
        mu = mu_after(BLT().column_norm(n - 1), multiplier)
        spend = GaussianSpend(mu, f"blt sums, {n - 1} Gaussian releases of every arm")
        self.mechanism = PrefixSum(statistic, noise, spend, horizon=spec.horizon)
        self.ledger = ledger_of(self.epsilon, spend)
