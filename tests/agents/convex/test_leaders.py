"""Leaders of convex losses, told data or values: FTAL and OGD, one vertex a round, LinearFTRL and
PFTAL, BanditPFTAL and its public numbers, and what they win."""

from dataclasses import replace
from functools import cache
from itertools import product
from math import inf, log, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize

from dpbandit.agents import (
    FTAL,
    OGD,
    PFTAL,
    BanditFTAL,
    BanditPFTAL,
    LinearFTRL,
    OnlineConditionalGradient,
)
from dpbandit.agents.convex.leaders import Leader, curvature_of
from dpbandit.agents.convex.one_point import Noise
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box, Hypersimplex, L1Ball, Simplex, SpanningTrees
from dpbandit.envs.convex.online_losses import ConvexPricing
from dpbandit.experiments.window import counting
from dpbandit.losses import Experts, Kink, Linear, Quadratic, TiltedQuadratic
from dpbandit.privacy.prefix_sums import Padded
from tests.agents.convex.convex_runs import (
    BALL,
    LAWS,
    NONE,
    assert_agrees,
    data_of,
    play,
    sphere,
    targets,
    told,
    valued,
)
from tests.each import each


@each("case", range(10))
def test_leader_minimises_the_surrogates(case):
    """Oracle: SLSQP on sum <g_s, w> + (H/2) |w - a_s|^2 over a box, 10 random cases, to 1e-6."""
    rng = np.random.default_rng(case)
    d, t, H = rng.integers(1, 5), rng.integers(1, 8), rng.uniform(0.1, 3)
    box, anchored = Box(int(d)), bool(case % 2)
    leader = Leader(box, 1, curvature=H, anchored=anchored)
    slopes, points = rng.standard_normal((t, d)), rng.uniform(-1, 1, (t, d))
    for s in range(t):
        leader.follow(points[s : s + 1], slopes[: s + 1].sum(axis=0)[None])
    anchors = points if anchored else np.zeros((t, d))

    def surrogates(w):
        return slopes.sum(axis=0) @ w + H / 2 * np.square(w - anchors).sum()

    def slope(w):
        return slopes.sum(axis=0) + H * (t * w - anchors.sum(axis=0))

    best = minimize(
        surrogates,
        np.zeros(d),
        jac=slope,
        bounds=[(-box.half_width, box.half_width)] * d,
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(leader.point[0], best.x, rtol=0, atol=1e-6)


def test_leader_is_gradient_descent_where_no_constraint_binds():
    """Oracle: unconstrained, mean(w_1..w_t) - v_t / (H t) is w_t - z_t / (H t), to 1e-14; here
    the loss is quadratic with targets near the centre, and both stay inside."""
    data = targets(500, 3) - 0.5 * np.eye(5)[0]
    one, two = (play(config, Quadratic(BALL), data) for config in (FTAL(), OGD()))
    assert np.linalg.norm(two.actions, axis=2).max() < 0.999
    np.testing.assert_allclose(one.actions, two.actions, rtol=0, atol=1e-14)


def test_regrets_of_still_losses():
    """Golden: f = (H/2) <e_1, x> on the unit ball and the regularised leader -min(1, 1/2) e_1 from
    round 2 on: H/4 a round and H/2 in the first, exactly; and a kink, L = 2, H = 1, w_1 = 0, by an
    independent program."""
    H, T = 0.25, 512
    data = np.tile(H / 2 * np.eye(5)[0], (T, 1, 1))
    regret = play(FTAL(curvature=H), Linear(BALL), data).regret[0]
    assert regret == pytest.approx(H * (T - 1) / 4 + H / 2, rel=1e-12)
    regret = play(FTAL(), Kink(BALL), np.zeros((1024, 2, 5))).regret
    assert regret == pytest.approx([4.72] * 2, abs=0.005)


def test_leaders_without_an_exact_projection():
    """Oracle: on the trees of a triangle, {x in [0, 1]^3, sum 2}, Frank-Wolfe's leaders are in the
    domain and within 1e-3 D of those on the hypersimplex, the same set with a projection."""
    domain = SpanningTrees(3)
    assert not domain.has_projection
    data = sphere(np.random.default_rng(0), 4, 2, domain.dim)
    run = play(FTAL(), Linear(domain), data)
    assert domain.contains(run.actions.reshape(8, -1)).all()
    exact = play(FTAL(), Linear(Hypersimplex(3, 2)), data)
    np.testing.assert_allclose(run.actions, exact.actions, rtol=0, atol=1e-3 * domain.diameter)
    assert np.abs(run.actions[1:] - run.actions[:-1]).max() > 0.1


PROJECTION_FREE = [
    *(Quadratic(domain) for domain in (Simplex(4), L1Ball(3), Hypersimplex(5, 2))),
    Kink(Ball(3)),
    *(Linear(domain) for domain in (Simplex(4), Ball(3))),
]


@pytest.mark.parametrize("loss", PROJECTION_FREE, ids=str)
def test_a_step_goes_to_the_lowest_vertex_as_far_as_it_falls(loss):
    """Oracle: of 201 points between x_t and the vertex none is lower than x_{t+1}, which is one
    of that segment, with J_t from its definition; the vertex is the domain's for its gradient."""
    T, domain, slopes = 20, loss.domain, []
    data = data_of(loss, T, 3)
    actions = play(OnlineConditionalGradient(), loss, data).actions
    start = actions[0]
    kappa = 4 * loss.lipschitz * T**0.75 / domain.diameter
    for t in range(T - 1):
        gradient = loss.gradient(actions[t], data[t])
        slopes.append(domain.embedded(domain.coordinates(gradient)))
        anchors = actions[: t + 1] if loss.curvature else start[None]
        pull = 1.0 if loss.curvature else kappa
        total = np.sum(slopes, axis=0)

        def J(x, anchors=anchors, pull=pull, total=total):
            """At points (R, P, N), from its definition."""
            squares = sum(np.square(x - a[:, None]).sum(-1) for a in anchors)
            return np.einsum("rpn,rn->rp", x, total) + pull / 2 * squares

        slope = total + pull * (len(anchors) * actions[t] - anchors.sum(axis=0))
        share = np.linspace(0, 1, 201)[:, None]
        segment = actions[t][:, None] + share * (domain.lowest(slope) - actions[t])[:, None]
        following = actions[t + 1][:, None]
        assert (J(following)[:, 0] <= J(segment).min(axis=1) + 1e-9).all()
        nearest = np.linalg.norm(segment - following, axis=-1).min(axis=1)
        assert nearest.max() <= domain.diameter / 400 + 1e-12


def test_late_data_are_anchored_where_they_were_taken_and_steps_are_cheap():
    """Golden, by hand: a delay of one round. x_1 = x_2 = centre 0 of the ball of R^1; told z_1 = 1,
    slope -1 at x_1 = 0: J_1 = -x + x^2 / 2 is least at 1; told z_2 = 1 for x_2 = 0: J_2 = -2 x +
    x^2, least at 1; told z_3 = -1 for x_3 = 1, slope 2: J_3 = x^2 + (x - 1)^2 / 2, least at 1/3. A
    round asks for one linear minimisation and for no projection."""
    spec = told(Quadratic(Ball(1)), 10, delay=1)
    agent, points = OnlineConditionalGradient().make(spec, Streams([0])), []
    for taken, z in ((0.0, 1.0), (0.0, 1.0), (1.0, -1.0)):
        agent.update(NONE, np.array([[taken]]), np.array([[z]]))
        points.append(agent.act(NONE)[0, 0])
    assert points == pytest.approx([1.0, 1.0, 1 / 3])
    for word in (Quadratic, Linear):
        domain, calls = counting(Simplex(4))
        agent = OnlineConditionalGradient().make(told(word(domain), 30), Streams([0]))
        data = data_of(word(domain), 30, 1)
        calls.clear()
        for z in data:
            agent.update(NONE, agent.act(NONE), z)
        assert calls == {"minimisations": 29}  # what the last round tells reaches no point


def test_without_privacy_it_is_the_regularised_leader():
    """Oracle: Proj(c0 - eta v) with eta = R / (L sqrt T), written out. And with privacy every sum
    carries equally much noise."""
    data = sphere(np.random.default_rng(0), 100, 3, 5)
    run = play(LinearFTRL(epsilon=inf), Linear(BALL), data)
    sums = np.cumsum(data, axis=0)[:-1] * 0.1
    leaders = -sums / np.maximum(1, np.linalg.norm(sums, axis=2, keepdims=True))
    np.testing.assert_allclose(run.actions[1:], leaders, rtol=0, atol=1e-12)
    assert (run.regret <= sqrt(100)).all()
    for noise in LAWS:
        sums = LinearFTRL(noise=noise).make(told(Linear(BALL), 100), Streams([0])).sums
        assert isinstance(sums._noise, Padded)
        assert len({(sums(np.zeros((1, 5))), sums.stddev)[1:] for _ in range(99)}) == 1


@each("anytime", [False, True])
@each("noise", LAWS)
def test_short_runs(noise, anytime):
    """A horizon of 1 never feeds back; then there is noise, and points stay in the domain."""
    for T, loss in product((1, 2, 5), (Linear(BALL), Quadratic(Ball(1)))):
        data = np.ones((T, 2, loss.domain.dim))
        run = play(PFTAL(noise=noise, anytime=anytime), loss, data)
        assert loss.domain.contains(run.actions.reshape(2 * T, -1)).all()
        assert np.isfinite(run.regret).all()
        np.testing.assert_array_equal(run.actions[0], 0.0)
        assert len([r for r in run.releases if r is not None]) == (T if anytime else T - 1)


@cache
def linear_curvature():
    return curvature_of(Linear(BALL), 1024, epsilon=1.0)


def test_default_regularisation():
    """Golden: 0.5 sqrt(5 ln^2.5 T / T) = 0.3929 at T = 1024, epsilon = 1 on the unit ball, and
    without privacy sqrt(ln T / T), which is also the least with very little noise."""
    assert linear_curvature() == pytest.approx(0.3929, abs=5e-5)
    assert curvature_of(Linear(BALL), 1024) == pytest.approx(sqrt(log(1024) / 1024), rel=1e-12)
    assert curvature_of(Linear(BALL), 1024, epsilon=1e9) == curvature_of(Linear(BALL), 1024)
    assert curvature_of(Kink(BALL), 1024, epsilon=0.1) == 1.0


def test_worst_linear_reference():
    """Statistical, against an independent program, f = (H/2) <e_1, x> with the private H: without
    noise H (T-1) / 4 + H / 2 = 100.7 (see above), with noise little more."""
    data = np.tile(linear_curvature() / 2 * np.eye(5)[0], (1024, 48, 1))
    assert_agrees(play(PFTAL(noise="gaussian"), Linear(BALL), data).regret, 117.2, 2.2)


BETAS = ("oblivious", "adaptive", "tuned", "noiseless")


def played(config, loss, data, **settings):
    return play(config, loss, data, feedback="value", **settings)


def test_exploration_lengths_and_offsets():
    """Golden, by hand, on the unit ball with k = 5, M = 2, L = 2, H = 1 (q = 2 + R/r = 3) at T =
    10^6: 5 T^(-1/3) = 0.05, 5 T^(-1/4) = 0.158114, and the minimiser (25 x 4 ln T / (2 T 3))^(1/3)
    = 0.0613. At T = 100 all are cut to r / 2. Values far from zero, of profits, are moved there."""
    spec = valued(Quadratic(BALL), 10**6)
    tuned = (100 * log(1e6) / 6e6) ** (1 / 3)
    for beta, length in (
        ("oblivious", 0.05),
        ("adaptive", 5 * 10**-1.5),
        ("tuned", tuned),
        ("noiseless", tuned),
        (0.7, 0.7),
    ):
        plan = BanditFTAL(beta=beta).plan(spec)
        assert plan.beta == pytest.approx(length, rel=1e-4 if length == tuned else 1e-12)
        assert plan.curvature == 1.0
        if beta != 0.7:
            short = BanditFTAL(beta=beta).plan(valued(Quadratic(BALL), 100))
            assert short.beta == pytest.approx(0.5, abs=1e-6)
    assert BanditFTAL().plan(spec).estimates.offset == 0.0
    pricing = ConvexPricing(horizon=100).spec
    low, high = pricing.loss.value_range
    assert low < high < 0
    assert BanditFTAL().plan(pricing).estimates.offset == (low + high) / 2
    assert BanditFTAL(offset=0.0).plan(pricing).estimates.offset == 0.0


def test_tuned_length_pays_for_noise():
    """Longer steps make shorter estimates, and so less noise: the more of it, the longer; where
    the bound is least it is no larger than at either printed length. Golden: an estimate of y +
    Laplace(W / epsilon) has the root mean square of M^2 + 2 W^2 / epsilon^2, and beta grows with
    it, as M^(2/3)."""
    spec, lengths = valued(Quadratic(BALL), 10**6), []
    for noise in (Noise(law="none"), *(Noise(law="k-norm", epsilon=e) for e in (1, 0.3))):
        plans = {beta: BanditFTAL(beta=beta).plan(spec, noise) for beta in BETAS}
        lengths.append(plans["tuned"].beta)
        assert all(plans["tuned"].regret_bound <= p.regret_bound + 1e-6 for p in plans.values())
    assert lengths == sorted(lengths)
    assert lengths[0] < 0.9 * lengths[1] < 0.9 * lengths[2]
    deafening = Noise(law="k-norm", epsilon=1e-6)
    assert BanditFTAL().plan(spec, deafening).beta == 0.5
    deaf = BanditFTAL(beta="noiseless").plan(spec, deafening)
    assert deaf.beta == pytest.approx(lengths[0], rel=1e-12)
    assert deaf.noise.epsilon == 1e-6
    long = valued(Quadratic(BALL), 10**8)
    local = BanditFTAL().plan(long, Noise(law="local", epsilon=0.5))
    growth = (1 + 2 / 0.5**2) ** 0.5
    assert local.beta / BanditFTAL().plan(long).beta == pytest.approx(growth ** (2 / 3), rel=1e-3)


@pytest.mark.parametrize("word", [Quadratic, Linear])
def test_tuned_length_minimises_the_bound(word):
    """Oracle: T beta L q + (k M / beta)^2 ln T / (2 H) grows on both sides of the minimiser, and so
    does T beta L q + G^2 ln T / (2 H) + H T R^2 / 2 where H is the regulariser's."""
    T, loss = 10**6, word(BALL)
    L, M, plan = loss.lipschitz, max(map(abs, loss.value_range)), BanditFTAL().plan(valued(loss, T))

    def curvature(beta):
        return loss.curvature or 5 / beta * sqrt(log(T) / T)

    def bound(beta):
        H = curvature(beta)
        regulariser = 0 if loss.curvature else H * T / 2
        return T * beta * L * 3 + (5 * M / beta) ** 2 * log(T) / (2 * H) + regulariser

    assert plan.curvature == pytest.approx(curvature(plan.beta), rel=1e-12)
    assert bound(plan.beta) < min(bound(0.97 * plan.beta), bound(1.03 * plan.beta))


@pytest.mark.parametrize("word", [Quadratic, Linear])
def test_steps_are_the_algorithm(word):
    """Oracle: steps 1 to 4 written out, with the mean of leaders, not of points, or the centre."""
    config, loss, data = BanditFTAL(beta=0.4), word(BALL), targets(40, 2)
    run, H = played(config, loss, data), config.plan(valued(loss, 40)).curvature
    w, leaders, v = np.zeros((2, 5)), [], np.zeros((2, 5))
    for t in range(1, 41):
        leaders.append(w if loss.curvature else 0 * w)
        u = (run.actions[t - 1] - w) / 0.4
        np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1.0, rtol=0, atol=1e-9)
        y = loss.value(run.actions[t - 1], data[t - 1])
        v = v + 5 / 0.4 * y[:, None] * u
        q = np.mean(leaders, axis=0) - v / (H * t)
        w = q * 0.6 / np.maximum(0.6, np.linalg.norm(q, axis=1, keepdims=True))


def test_values_may_be_of_any_number_type():
    """Unsigned numbers and truth values have no minus sign of their own."""
    points = []
    for reward in (np.ones(1), np.ones(1, np.uint8), np.ones(1, np.bool_)):
        agent = BanditFTAL().make(valued(Linear(BALL), 9), Streams([0]))
        agent.update(NONE, agent.act(NONE), reward)
        points.append(agent.act(NONE))
    np.testing.assert_array_equal(points[0], points[1])
    np.testing.assert_array_equal(points[0], points[2])


BERNOULLI = np.random.default_rng(0).random((1024, 30, 10)) < np.r_[0.3, np.full(9, 0.5)]
"""Ten experts with costs 0 or 1, of means 0.5 and, for the first, 0.3."""
EXPERTS = Experts(Simplex(10)), BERNOULLI * 1.0
QUADRATIC = Quadratic(BALL), targets(1024, 24)
OBLIVIOUS = BanditPFTAL(beta="oblivious", epsilon=10.0)
REFERENCE = [
    (FTAL(), *QUADRATIC, 1.18, 0.02), (PFTAL(calibration="paper"), *QUADRATIC, 192.48, 2.41),
    (PFTAL(), *QUADRATIC, 346.09, 4.43), (PFTAL(noise="laplace"), *QUADRATIC, 398.67, 5.44),
    (PFTAL(noise="gaussian"), *QUADRATIC, 214.78, 2.31),
    (PFTAL(noise="gaussian"), Kink(BALL), np.zeros((1024, 24, 5)), 763.50, 3.94),
    (PFTAL(epsilon=0.1), TiltedQuadratic(BALL, tilt=1e-9), np.zeros((1024, 8, 5)), 510, 0.36),
    (FTAL(), *EXPERTS, 6.0, 0.4), (PFTAL(), *EXPERTS, 172.8, 2.7),
    (BanditFTAL(beta="oblivious"), *QUADRATIC, 145, 2),
    (BanditPFTAL(beta="oblivious", noise="local"), *QUADRATIC, 286, 10),
    (OBLIVIOUS, *QUADRATIC, 221, 2),
    (replace(OBLIVIOUS, noise="gaussian", delta=None), *QUADRATIC, 201, 3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "loss", "data", "mean", "error"), REFERENCE, ids=[str(row[0]) for row in REFERENCE]
)
def test_references(config, loss, data, mean, error):
    """Statistical, against an independent program: within 4 combined standard errors. Power: a
    tenth more or less noise is caught of data, a quarter less of values."""
    run = played if isinstance(config, BanditFTAL | BanditPFTAL) else play
    assert_agrees(run(config, loss, data).regret, mean, error)
    power = {PFTAL(): (24, 0.85, 1.2), OBLIVIOUS: (50, 13.0)}
    if config in power and loss is QUADRATIC[0]:
        replicas, *epsilons = power[config]
        for epsilon in epsilons:
            other = run(replace(config, epsilon=epsilon), loss, targets(1024, replicas)).regret
            with pytest.raises(AssertionError):
                assert_agrees(other, mean, error)
