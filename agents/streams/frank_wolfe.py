"""Online Frank-Wolfe on a stream, with one step per round; every point is released.

An agent learns only from the releases of a mechanism, which are noisy gradient sums or chosen
vertices; without noise all agents coincide.
"""

from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from dpbandit.agent import Least0, Points, Positive, PrivateAgent, Share
from dpbandit.base import (
    Floats,
    InputError,
    Ints,
    gaussian_target,
    printed_target,
    privacy_target,
    rows,
)
from dpbandit.domains import L1Ball, LpBall
from dpbandit.domains.domain import Domain
from dpbandit.losses.loss import Loss
from dpbandit.losses.regressions import LinearRegression, Regression
from dpbandit.privacy import (
    Mechanism,
    Target,
    certified_sum,
    exact_prefix_sum,
    ledger_of,
    no_privacy,
)
from dpbandit.privacy.factors import factorisation
from dpbandit.privacy.generalised import (
    Printed,
    Reading,
    RecursiveLossGradients,
    certified_tree_sum,
    longest,
    printed_tree_sum,
)
from dpbandit.privacy.vertices import (
    NoisyVertex,
    Profile,
    SelectionNoise,
    best_vertices,
    certified_budgets,
    paper_budgets,
)
from dpbandit.specs import ConvexSpec

Clip: TypeAlias = Literal["gradient", "residual", "lipschitz"]
Calibration: TypeAlias = Literal["certified", "paper"]
STEP = 0.4
"""Default step size; 1 suits a best point on the boundary, less suits one near the centre."""
_ANSWER_SHARE = 0.2
"""Typical size of labels divided by their bound; the bias of a low clip costs less than noise."""
_MAX_PAPER_EPSILON = 5.0
"""Largest epsilon for which the composition behind the paper's noise of DP-POFW meets its claim."""


class Bounds(NamedTuple):
    """Lipschitz constant, smoothness and diameter, with gradients in a norm, points in its dual."""

    lipschitz: float
    smoothness: float
    diameter: float

    def of_gradient(self, step: float) -> float:
        """Return a bound on recursive gradients if step i is at most `step` x `diameter` / i."""
        return self.lipschitz + step * self.smoothness * self.diameter

    def overridden(self, *others: float | None) -> "Bounds":
        """Return the three bounds, each replaced by its entry of `others` if this is not None."""
        return self._replace(
            **{k: v for k, v in zip(self._fields, others, strict=False) if v is not None}
        )


def bounds_of(loss: Loss) -> Bounds:
    """Return a loss's bounds, in l_p and its dual for regressions on an l_p ball, else in l_2."""
    if isinstance(loss, Regression):
        return Bounds(loss.dual_lipschitz, loss.dual_smoothness, 2 * loss.domain.radius)
    return Bounds(loss.lipschitz, loss.smoothness, loss.domain.diameter)


def lowest(domain: Domain, sums: Floats) -> Floats:
    """Return points v (R, N) of the domain that minimise <sum, v>, for sums (R, k) in coordinates.

    On the l_1 ball ties go to the first vertex in the order of `vertex_scores`, as in noisy
    selections.
    """
    radius = cross_polytope(domain)
    if radius is None:
        return domain.lowest(domain.embedded(sums))
    return corner(domain.dim, radius, best_vertices(sums))


def cross_polytope(domain: Domain) -> float | None:
    """Return the radius of an l_1 ball, or None for other domains."""
    if isinstance(domain, L1Ball) or (isinstance(domain, LpBall) and domain.p == 1):
        return domain.radius
    return None


def corner(dim: int, radius: float, vertices: Ints) -> Floats:
    """Return points (R, dim) for vertices (R,); j < dim is +radius e_j, dim + j is -radius e_j."""
    points = np.zeros((len(vertices), dim))
    points[rows(len(vertices)), vertices % dim] = np.where(vertices < dim, radius, -radius)
    return points


def usual_clip(loss: Loss, clip: Clip) -> float:
    """Return the default clip, which is a typical slope at the centre x the norm of dense features.

    It depends on public numbers alone. Steps follow the direction of a sum, so that clipping all
    gradients to one length changes only their weights. Squared losses have slopes in proportion to
    labels, typically a fifth of the bound; slopes of other losses have similar sizes. Dense
    features of l_q norm 1 have l_2 norm near N^(1/2 - 1/q) in N dimensions. For losses other than
    regressions the clip is half the Lipschitz constant.
    """
    if not isinstance(loss, Regression):
        return loss.lipschitz / 2
    zero = np.zeros(())
    steepest = max(abs(float(loss.slope(zero, zero + y))) for y in (-loss.bound, loss.bound))
    typical = _ANSWER_SHARE * steepest if isinstance(loss, LinearRegression) else steepest
    return typical * (1 if clip == "residual" else loss.domain.dim ** (1 / 2 - 1 / loss.order))


class Walk(Points):
    """Base class of agents that move by theta_{i+1} = theta_i + c / (i+1) (v_i - theta_i).

    theta_1 is the domain's centre, v_i a vertex, c the step size; with c = 1 theta_i is the mean of
    theta_1 and v_1..v_{i-1}.
    """

    c = STEP

    def begin(self) -> None:
        self.set_out()

    def set_out(self) -> None:
        """Restart the count of steps at the current point, which becomes the previous one, too."""
        self.previous, self.moves = self.point, 0

    def move(self, vertex: Floats) -> None:
        """Move one step towards `vertex`, (R, N)."""
        self.moves += 1
        weight = self.c / (self.moves + 1)
        self.previous, self.point = self.point, self.point + weight * (vertex - self.point)


class FrankWolfe(Walk):
    """Base class of Frank-Wolfe agents: each datum enters one mechanism, each release is a step.

    The last datum reaches no point: the mechanism counts the round without its gradient. Gradients
    of delayed data are taken at the current point, not at the point of their rounds.
    """

    step: Share | None = None
    """step size in (0, 1], small if the best point is inside; if None, 1 for "paper", else 0.4"""
    clip_bound: Positive | None = None
    """bound to which `clip` clips; if None, `usual_clip`, or no clip without privacy"""
    mechanism = cast(Mechanism, None)

    def statistic(
        self, clip: Clip, bounds: Bounds, *, step: float, private: bool, order: float = 2.0
    ) -> RecursiveLossGradients:
        """Return the statistic of recursive gradients g_i, with sensitivity in l_order, order >= 2.

        clip       g_i is clipped to                            loss
        gradient   l_2 norm `clip_bound`                        any
        residual   `clip_bound` times its features              regressions
        lipschitz  `Bounds.of_gradient`, its largest norm       any that is smooth
        """
        loss = self.loss
        residual = bounds.of_gradient(step)
        natural = residual * (longest(loss, order) if isinstance(loss, Regression) else 1.0)
        bound = self.clip_bound or (usual_clip(loss, clip) if private else inf)
        if private:  # a larger clip than the natural bound would only add noise
            bound = min(bound, residual if clip == "residual" else natural)
        if clip == "gradient":
            return RecursiveLossGradients(loss=loss, gradient_clip=bound)
        if clip == "residual":
            return RecursiveLossGradients(loss=loss, order=order, residual_clip=bound)
        if natural == inf:
            raise InputError(f"Expected clip='lipschitz' only with smooth losses, got {loss}.")
        return RecursiveLossGradients(loss=loss, order=order, gradient_clip=natural)

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        useful = self.moves < self.spec.horizon - 1
        number = np.asarray(self.moves + 1 if useful else 0)
        release = self.mechanism(self.point, self.previous, number, feedback)
        if useful:
            self.move(self.vertex(release))

    def vertex(self, release: Any) -> Floats:
        """Return the point (R, N) to move towards, given a release."""
        return lowest(self.domain, release)


class RecursiveFrankWolfe(FrankWolfe):
    """Online Frank-Wolfe with recursive gradients: DP-TOFW and DP-POFW without noise.

    Xie, Shen, Zhang, Wang and Qian, "Efficient projection-free online methods with stochastic
    recursive gradient", AAAI 2020, ORGFW with rho_t = eta_t = 1 / (t+1)::

        theta_0 = theta_1 = the centre of the domain C; for t = 1..T:
          1. play theta_t
          2. g_t = (t+1) grad f(theta_t; z_t) - t grad f(theta_{t-1}; z_t),   d_t = sum g / (t+1)
          3. v_t = argmin over C of <d_t, v>,   theta_{t+1} = theta_t + c / (t+1) (v_t - theta_t)

    Guarantee:
        None: exact data reach later points.

    Differs from the paper:
        1. d_0 = 0, where d_1 = grad f(theta_1; z_1) counts the first datum twice (see `DPTOFW`).
        2. Steps have a factor c, `step`; the paper has c = 1.
        3. Gradients can be clipped, as the private agents clip them.

    >>> from dpbandit.base.random_streams import Streams
    >>> from dpbandit.specs.convex import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(1, 2.0)), horizon=1000)
    >>> agent = RecursiveFrankWolfe(step=1.0).make(spec, Streams([0]))
    >>> for _ in range(1000):
    ...     point = agent.act(np.zeros((1, 2)))
    ...     agent.update(np.zeros((1, 2)), point, np.array([[1.0, 0.5]]))  # a = 1, y = 0.5
    >>> round(float(point[0, 0]), 2)
    0.5
    """

    clip: Clip = "gradient"
    """quantity that `clip_bound` bounds, see `FrankWolfe.statistic`"""

    def begin(self) -> None:
        super().begin()
        self.c = self.step or STEP
        statistic = self.statistic(self.clip, bounds_of(self.loss), step=self.c, private=False)
        self.mechanism = exact_prefix_sum(statistic, horizon=self.spec.horizon, refresh_every=1)
        self.ledger = no_privacy("exact gradient sums")


class PrintedNoise(PrivateAgent[ConvexSpec]):
    """Base class of agents with certified noise, or that of a paper, as printed or corrected."""

    calibration: Calibration = "certified"
    """"certified" is the smallest noise that meets epsilon and delta, "paper" the noise that the
    paper prints, whatever epsilon it meets"""
    norm_index: Reading = "corrected"
    """index of the norm in the noise's density, corrected or as printed in the paper"""
    radius: Reading = "corrected"
    """distribution of the noise's radius, corrected or as printed in the paper"""
    direction: Reading = "corrected"
    """distribution of the noise's direction, corrected or as printed in the paper"""
    lipschitz: Positive | None = None
    """Lipschitz constant that the paper's noise assumes; if None, the loss's constant"""
    smoothness: Least0 | None = None
    """smoothness that the paper's noise assumes; if None, the loss's smoothness"""

    @property
    def printed(self) -> Printed:
        """Parts of the noise law that are as printed in the paper, errors included."""
        return Printed(self.norm_index, self.radius, self.direction)


class DPTOFW(PrintedNoise, FrankWolfe):
    """Online Frank-Wolfe on noisy tree sums of gradients; every point is released.

    Han, Liang, Liang, Wang, Yao and Zhang, "On private online convex optimization: optimal
    algorithms in l_p-geometry and high dimensional contextual bandits" (2022), Algorithm 1::

        theta_0 = theta_1 = the centre of the domain C; for t = 1..T:
          1. play theta_t
          2. g_t = (t+1) grad f(theta_t; z_t) - t grad f(theta_{t-1}; z_t), clipped by `clip`
          3. d_t = (g_1 + ... + g_t + noise) / (t+1)           one mechanism: noisy prefix sums
          4. v_t = argmin over C of <d_t, v>,   theta_{t+1} = theta_t + c / (t+1) (v_t - theta_t)

    Guarantee:
        (epsilon, delta)-DP of all points under continual observation for replacing one datum, even
        if later data depend on the points, with the epsilon of the certificate: given the points,
        only the user's g_i differs, and the clip bounds it (`RecursiveLossGradients`). Gaussian
        noise is exact GDP (column norm times L2 sensitivity, divided by its stddev); a generalised
        Gaussian tree is zCDP (`GeneralisedGaussianSpend`; exact GDP at r = 2), with bit_length(T-1)
        nodes for a datum. g_T reaches no point.

    Settings of None follow the calibration; L, beta and D are the constants in `Bounds`::

        field        "paper", as printed                     "certified"
        noise        generalised-gaussian                    gaussian
        prefix_sums  tree                                    blt (tree for generalised-gaussian)
        clip         lipschitz: L + beta D, for any step     gradient: l_2 norm `clip_bound`
        size         sigma_+ of equation (3.2)               least that meets the target
        step         1                                       0.4

    Domains: regressions on l_p balls, 1 < p <= infinity, allow all settings; Gaussian noise with
    the clips "gradient" and "lipschitz" allows any loss on any domain.

    Differs from the paper:
        Items 1, 2 and 3 do not apply with calibration="paper".

        1. g_t is clipped in l_2. The paper bounds it by beta, L and D, a bound it hardly ever
           reaches; the clip saves most noise.
        2. The tree is composed exactly, with six times less noise at T = 10^4, or replaced by
           correlated Gaussian noise, 2.5 times less again (in the mean square of a prefix).
        3. Steps have a factor c.
        4. In both calibrations d_0 = 0 in the recursion of step 3; with the paper's d_1 = grad
           f(theta_1; z_1) the first datum would count twice, and move a sum by 4 L.
        5. For gradients in l_q and d features the norm index is min(q, max(2, ln d)) or, if
           certified, the index of least smoothness. The paper prints min(q - 1, ln d - 1), the
           norm's smoothness.
        6. The noise's radius has law Gamma(d/2, 2 sigma_+^2), in the paper Gamma(d/2, 2 sigma_+).
        7. Its directions follow the cone measure. `norm_index`, `radius` and `direction` =
           "printed" undo items 5, 6 and 7, certified at the true cost, which is infinite for an
           index below 2 and for printed directions; `lipschitz`, `smoothness` and `diameter`
           replace the true L, beta and D in the paper's size and clip.
        8. Claims beyond the proof (epsilon / (ceil(log2 T) + 1) > 3) are refused, unless
           `beyond_validity`. The authors' programs have the paper's directions, L = 4, beta = 1
           and D = 4, and do not clip.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.convex import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(20, 1.5, 2.0)), horizon=1000)
    >>> def epsilon(**fields):
    ...     return round(certify(DPTOFW(delta=1e-3, **fields), spec, accountants=False).epsilon, 2)
    >>> epsilon(), epsilon(calibration="paper"), epsilon(calibration="paper", radius="printed")
    (1.0, 0.15, 13.67)
    """

    noise: Literal["gaussian", "generalised-gaussian"] | None = None
    """distribution of the noise; if None, by `calibration`"""
    prefix_sums: Literal["tree", "blt", "square-root", "gradual"] | None = None
    """mechanism that releases running sums; if None, by `noise`"""
    clip: Clip | None = None
    """quantity that is clipped to bound the sensitivity; if None, by `calibration`"""
    diameter: Positive | None = None
    """diameter that the paper's noise assumes; if None, the domain's diameter"""
    beyond_validity: bool = False
    """True to run the paper's noise at any epsilon, certified at the epsilon that it meets"""

    def check(self) -> None:
        super().check()
        shaped, process, clip = self.means
        if shaped and process != "tree":
            raise InputError(f"Expected prefix_sums={process!r} with gaussian noise.")
        if shaped and clip == "gradient":
            raise InputError("Expected clip='gradient' with gaussian noise: it is Euclidean.")
        _check_bound(clip, self.clip_bound)
        others = (self.printed, self.lipschitz, self.smoothness, self.diameter)
        if self.calibration == "paper":
            if not shaped or clip != "lipschitz":
                raise InputError(
                    "Expected calibration='paper' with generalised-gaussian noise and clip="
                    "'lipschitz'."
                )
        elif others != (Printed(), None, None, None):
            raise InputError("Expected printed laws and other constants with calibration='paper'.")

    @property
    def means(self) -> tuple[bool, str, Clip]:
        """Flag of generalised Gaussian noise, `prefix_sums` and `clip`, with defaults for None."""
        paper = self.calibration == "paper"
        shaped = paper if self.noise is None else self.noise == "generalised-gaussian"
        usual: Clip = "lipschitz" if paper else "residual" if shaped else "gradient"
        return shaped, self.prefix_sums or ("tree" if shaped else "blt"), self.clip or usual

    def begin(self) -> None:
        super().begin()
        loss, T, streams = self.loss, self.spec.horizon, self.streams
        paper = self.calibration == "paper"
        target = {"epsilon": self.epsilon, "delta": self.delta}
        shaped, process, clip = self.means
        q = 2.0
        if shaped:
            if not isinstance(loss, Regression) or loss.domain.p == 1:
                raise InputError(
                    f"Expected generalised-gaussian noise only for regressions, p > 1; got {loss}."
                )
            q = loss.order
        self.c = self.step or (1.0 if paper else STEP)
        statistic = self.statistic(
            clip,
            bounds_of(loss).overridden(self.lipschitz, self.smoothness, self.diameter),
            step=1.0 if paper else self.c,
            private=self.epsilon < inf,
            order=max(2.0, q),
        )
        if self.epsilon == inf:
            sums = exact_prefix_sum(statistic, horizon=T, refresh_every=1)
        elif not shaped:
            every_round = Target(**target, horizon=T, refresh_every=1)
            sums = certified_sum(factorisation(process), statistic, streams, every_round)
        elif not paper:
            sums = certified_tree_sum(statistic, streams, horizon=T, **target)
        else:
            sums = printed_tree_sum(
                statistic,
                streams,
                q=q,
                horizon=T,
                **target,
                printed=self.printed,
                beyond_validity=self.beyond_validity,
            )
        self.mechanism = sums
        self.ledger = ledger_of(self.epsilon, sums.spend, without="exact gradient sums")


class DPPOFW(FrankWolfe):
    """Online Frank-Wolfe towards noisily chosen vertices, for sparse points.

    Han, Liang, Liang, Wang, Yao and Zhang, "On private online convex optimization: optimal
    algorithms in l_p-geometry and high dimensional contextual bandits" (2022), Algorithm 2::

        theta_0 = theta_1 = 0, the domain the l_1 ball of radius R, D = 2R; for t = 1..T:
          1. play theta_t
          2. g_t = (t+1) grad f(theta_t; z_t) - t grad f(theta_{t-1}; z_t), clipped by `clip`
          3. v_t = argmin <d_t, v> + noise_v over vertices +-R e_j, d_t = (g_1 + .. + g_t) / (t+1)
          4. theta_{t+1} = theta_t + c / (t+1) (v_t - theta_t)

    The noise of step 3 has scale b_t = D S / ((t+1) epsilon_t), S = 2 x the clip of g_i in the
    maximum norm. d_t is never released.

    Guarantee:
        (epsilon, delta)-DP of all points under continual observation for replacing one datum, even
        if later data depend on the points, with the epsilon of the certificate: given the points,
        only the user's g_i differs, which moves the range of scores by at most D S / (t+1) in step
        t; Laplace noise makes step t epsilon_t-DP, Gumbel noise gives it bounded range epsilon_t
        (`NoisyVertex`). Step T reaches no point and is not taken.

    Settings of None follow the calibration; n = T - 1, e = epsilon, L and beta as in `Bounds`::

        field       "paper", as printed                              "certified"
        noise       laplace                                          gumbel
        size        b_t = 2 D S sqrt(ln n ln(1/delta) / t) / e       least that meets the target
        profile     inverse-sqrt: epsilon_t ~ 1 / sqrt t             uniform
        clip        lipschitz: |g|_inf <= L + beta D                 residual: `clip_bound`
        step        1                                                0.4

    For d up to some thousands, `DPTOFW` with Gaussian noise on the same ball learns faster.

    Differs from the paper:
        Items 1, 2 and 3 do not apply with calibration="paper".

        1. Composition is exact, with 1.8 times less Laplace noise at T = 10^4, or 3.4 times less
           as Gumbel noise.
        2. Residuals are clipped.
        3. Steps have a factor c.
        4. In both calibrations d_0 = 0 in the recursion, see `DPTOFW`.
        5. There are T - 1 steps; "paper" refuses a single step, whose noise would be ln 1 = 0, and
           refuses epsilon > 5 unless `beyond_validity`.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.convex import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(50, 1.0)), horizon=300)
    >>> round(certify(DPPOFW(delta=1e-3), spec, accountants=False).epsilon, 2)
    1.0
    >>> round(certify(DPPOFW(delta=1e-3, calibration="paper"), spec, accountants=False).epsilon, 2)
    0.38
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1); 0 is possible if certified"""
    calibration: Calibration = "certified"
    """"certified" is the smallest noise that meets epsilon and delta, "paper" the noise that the
    paper prints, whatever epsilon it meets"""
    noise: SelectionNoise | None = None
    """distribution of the noise; if None, by `calibration`"""
    profile: Profile | None = None
    """division of the budget among rounds; if None, by `calibration`"""
    clip: Literal["residual", "lipschitz"] | None = None
    """quantity that is clipped to bound the sensitivity; if None, by `calibration`"""
    beyond_validity: bool = False
    """True to run the paper's noise at epsilon > 5, too, certified at the epsilon that it meets"""

    def check(self) -> None:
        _check_bound(self.means[2], self.clip_bound)
        if self.calibration == "certified":
            privacy_target(self.epsilon, self.delta)
            return
        gaussian_target(self.epsilon, self.delta)
        if self.means != ("laplace", "inverse-sqrt", "lipschitz"):
            raise InputError(
                "Expected calibration='paper' with Laplace noise, inverse-sqrt, clip='lipschitz'."
            )
        beyond = self.beyond_validity
        printed_target(
            self.epsilon, self.calibration, beyond_validity=beyond, most=_MAX_PAPER_EPSILON
        )

    @property
    def means(self) -> tuple[SelectionNoise, Profile, Clip]:
        """Settings `noise`, `profile` and `clip`, by default those of the calibration."""
        paper = self.calibration == "paper"
        return (
            self.noise or ("laplace" if paper else "gumbel"),
            self.profile or ("inverse-sqrt" if paper else "uniform"),
            self.clip or ("lipschitz" if paper else "residual"),
        )

    def fit(self) -> None:
        if cross_polytope(self.domain) is None or not isinstance(self.loss, Regression):
            raise InputError(
                f"DPPOFW plays regressions on an LpBall with p = 1, got {self.loss}: choose "
                "another agent (DP-TOFW plays all) or environment."
            )

    def begin(self) -> None:
        super().begin()
        paper, T = self.calibration == "paper", self.spec.horizon
        noise, profile, clip = self.means
        target = {"epsilon": self.epsilon, "delta": self.delta}
        self.c = self.step or (1.0 if paper else STEP)
        statistic = self.statistic(
            clip,
            bounds_of(self.loss),
            step=1.0 if paper else self.c,
            private=self.epsilon < inf,
            order=inf,
        )
        n = max(1, T - 1)
        if self.epsilon == inf:
            self.mechanism = exact_prefix_sum(statistic, horizon=T, refresh_every=1)
        else:
            if paper:
                budgets = paper_budgets(n, **target)
            else:
                budgets = certified_budgets(n, noise=noise, profile=profile, **target)
            self.mechanism = NoisyVertex(
                statistic, self.streams, "vertices", noise=noise, budgets=budgets, horizon=T
            )
        spend = self.mechanism.spend
        self.ledger = ledger_of(self.epsilon, spend, without="exact gradient sums")

    def vertex(self, release: Any) -> Floats:
        # The vertex chosen with noise, or the best one for exact sums
        if self.epsilon == inf:
            return super().vertex(release)
        return corner(self.domain.dim, cast(LpBall, self.domain).radius, release)


def _check_bound(clip: Clip, bound: float | None) -> None:
    if clip == "lipschitz" and bound is not None:
        raise InputError(f"Expected no clip_bound={bound!r}: 'lipschitz' has its own.")
