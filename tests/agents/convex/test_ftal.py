"""Convex agents with full information and no privacy, linear leaders, and the baselines."""

from dataclasses import dataclass
from math import inf, log, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize

from dpbandit import InputError, certify
from dpbandit.agents import FTAL, OGD, PFTAL, BestFixed, Centre, LinearFTRL, NoisyOCO, Uniform
from dpbandit.agents.convex.leaders import Leader
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box, Hypersimplex, Simplex, SpanningTrees
from dpbandit.envs.convex.online_losses import OnlineConvex
from dpbandit.losses import Kink, Linear, Quadratic
from dpbandit.privacy.prefix_sums import Padded
from dpbandit.results.runs import log_marks
from dpbandit.running.loop import play as play_loop
from dpbandit.specs.convex import ConvexSpec
from tests.agents.convex.convex_runs import Adversary, play, sphere, targets
from tests.each import each

BALL = Ball(5)


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


def test_regret_of_a_constant_slope():
    """Golden: f = (H/2) <e_1, x> on the unit ball and the regularised leader -min(1, 1/2) e_1 from
    round 2 on: H/4 a round and H/2 in the first, exactly."""
    H, T = 0.25, 512
    data = np.tile(H / 2 * np.eye(5)[0], (T, 1, 1))
    regret = play(FTAL(curvature=H), Linear(BALL), data).regret[0]
    assert regret == pytest.approx(H * (T - 1) / 4 + H / 2, rel=1e-12)


def test_regret_of_a_still_kink():
    """Golden, an independent program: deterministic, L = 2, H = 1, w_1 the kink."""
    regret = play(FTAL(), Kink(BALL), np.zeros((1024, 2, 5))).regret
    assert regret == pytest.approx([4.72] * 2, abs=0.005)


def against(t, actions):
    """A unit vector towards the point just played: strongly adaptive."""
    x = actions[-1] + 1e-3 * np.eye(actions[-1].shape[1])[0]
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("config", [FTAL(), OGD()], ids=str)
def test_regret_of_curved_losses_is_logarithmic(config):
    """Property: at most L^2 / (2 H) (1 + ln T) on every run, whoever chooses the losses."""
    T, R = 300, 3
    for loss, data in (
        (Quadratic(BALL), targets(T, R)),
        (Quadratic(BALL), Adversary(lambda t, a: -against(t, a), (T, R))),
        (Kink(BALL), np.zeros((T, R, 5))),
        (Quadratic(Simplex(3)), np.eye(3)[np.random.default_rng(0).integers(0, 3, (T, R))]),
    ):
        bound = loss.lipschitz**2 / 2 * (1 + log(T))
        assert (play(config, loss, data).regret <= bound).all()


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


class TestLinearFTRL:
    def test_without_privacy_it_is_the_regularised_leader(self):
        """Oracle: Proj(c0 - eta v) with eta = R / (L sqrt T), written out."""
        data = sphere(np.random.default_rng(0), 100, 3, 5)
        run = play(LinearFTRL(epsilon=inf), Linear(BALL), data)
        sums = np.cumsum(data, axis=0)[:-1] * 0.1
        leaders = -sums / np.maximum(1, np.linalg.norm(sums, axis=2, keepdims=True))
        np.testing.assert_allclose(run.actions[1:], leaders, rtol=0, atol=1e-12)
        assert (run.regret <= sqrt(100)).all()

    @pytest.mark.parametrize("noise", ["k-norm", "laplace", "gaussian"])
    def test_every_sum_carries_equally_much_noise(self, noise):
        spec = ConvexSpec(loss=Linear(BALL), feedback="datum", horizon=100)
        sums = LinearFTRL(noise=noise).make(spec, Streams([0])).sums
        assert isinstance(sums._noise, Padded)
        spread = [(sums(np.zeros((1, 5))), sums.stddev)[1] for _ in range(99)]
        assert len(set(spread)) == 1
        proof = certify(LinearFTRL(noise=noise), spec, accountants=False)
        assert proof.holds
        assert proof.epsilon == pytest.approx(1.0, rel=1e-6)

    def test_noise_is_paid_for_once(self):
        """Statistical: mean regret at most R L sqrt T + D E|B|, E|B| <= sqrt(h k (k+1)) c, plus 6
        standard errors (false alarm below 1e-8)."""
        T, R, epsilon = 1000, 40, 5.0
        data = np.tile(np.eye(5)[0], (T, R, 1))
        regret = play(LinearFTRL(epsilon=epsilon), Linear(BALL), data).regret
        bound = sqrt(T) + 2 * sqrt(10 * 5 * 6) * 2 * 10 / epsilon
        assert regret.mean() <= bound + 6 * regret.std() / sqrt(R)
        assert bound < 0.2 * T

    def test_curved_losses_are_refused(self):
        spec = ConvexSpec(loss=Quadratic(BALL), feedback="datum", horizon=9)
        with pytest.raises(InputError, match="linear losses, got Quadratic"):
            LinearFTRL().make(spec, Streams([0]))

    @pytest.mark.parametrize(
        "arguments", [{"epsilon": -1.0}, {"noise": "none"}, {"rate": 0.0}, {"delta": 1.5}], ids=str
    )
    def test_bad_arguments(self, arguments):
        with pytest.raises(InputError, match="Expected"):
            LinearFTRL(**arguments)


@pytest.mark.parametrize("feedback", ["value", "datum"])
@pytest.mark.parametrize("domain", [BALL, Box(2), Simplex(3)], ids=lambda d: type(d).__name__)
def test_baselines_play_points(domain, feedback):
    """Uniform play is fresh and in the domain, the centre is the centre, the best fixed point is
    what it was told; nobody looks at data but the last."""
    spec = ConvexSpec(loss=Linear(domain), feedback=feedback, horizon=5)
    uniform, centre = (c.make(spec, Streams([0, 1, 2])) for c in (Uniform(), Centre()))
    first, second = uniform.act(np.zeros(())), uniform.act(np.zeros(()))
    assert domain.contains(first).all()
    assert (first != second).any(axis=1).all()
    np.testing.assert_array_equal(centre.act(np.zeros(())), np.tile(domain.centre, (3, 1)))
    told = BestFixed().with_answer(first)
    assert hash(told) == hash(BestFixed().with_answer(first.copy()))
    np.testing.assert_array_equal(told.make(spec, Streams([0, 1, 2])).act(np.zeros(())), first)
    alone = BestFixed().make(spec, Streams([0])).act(np.zeros(()))
    np.testing.assert_array_equal(alone, domain.centre[None])
    for config in (Uniform(), Centre()):
        assert certify(config, spec, accountants=False).epsilon == 0.0


@pytest.mark.parametrize("config", [FTAL, OGD])
def test_bad_curvature(config):
    with pytest.raises(InputError, match="curvature"):
        config(curvature=-1.0)


def test_gradient_descent_plays_domains_without_a_projection():
    """Against one fixed slope it ends near the best corner: regret within 1.5 L D sqrt T."""
    domain, T = SpanningTrees(4), 100
    data = np.tile(domain.embedded(np.eye(domain.affine_dim)[0]), (T, 1, 1))
    run = play(OGD(), Linear(domain), data)
    assert domain.contains(run.actions.reshape(T, -1), 1e-9).all()
    assert run.regret <= 1.5 * domain.diameter * sqrt(T)


@pytest.mark.parametrize("config", [FTAL(), PFTAL(), LinearFTRL()], ids=str)
def test_data_of_a_wrong_shape_are_refused(config):
    """A slope (R, 1) would be copied to all coordinates: noise for one, a movement of k."""
    agent = config.make(ConvexSpec(loss=Linear(BALL), feedback="datum", horizon=9), Streams([0, 1]))
    with pytest.raises(InputError, match="shape"):
        agent.update(np.zeros(()), agent.act(np.zeros(())), np.ones((2, 1)))


@pytest.mark.parametrize(
    "config", [FTAL(), OGD(), PFTAL(epsilon=20.0), NoisyOCO(), LinearFTRL()], ids=str
)
def test_late_data_reach_the_round_they_belong_to(config):
    """Linear losses told 3 rounds late: the same points, 3 rounds late. The loop calls `update`
    once a datum is there, with its own round, never with what stands in for data before."""
    paths = {}
    for delay in (0, 3):
        path = paths[delay] = []

        @dataclass(frozen=True)
        class Watched:
            def make(self, spec, streams, path=path):
                agent = config.make(spec, streams)
                act = agent.act
                agent.act = lambda context: path.append(act(context)) or path[-1]
                return agent

        problem = OnlineConvex(horizon=20, delay=delay)
        play_loop(problem, Watched(), [0, 1], marks=log_marks(20))
    assert not np.any(paths[3][:4])
    assert np.any(paths[3][4])
    np.testing.assert_array_equal(paths[3][3:], paths[0][:-3])
