"""Convex bandits, online convex optimisation and prices of several goods: reference values, laws of
the data, refusals."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dpbandit.agent import with_feedback
from dpbandit.agents import CONVEX
from dpbandit.base import InputError, Streams, parse_setting
from dpbandit.domains import DOMAINS, Ball, ConcaveBase, Simplex, SubmodularBase
from dpbandit.envs import ConvexBandit, ConvexPricing, OnlineConvex
from dpbandit.envs.convex.online_losses import LOSSES, Scenario
from dpbandit.losses import Kink, Linear, Quadratic, Squared
from dpbandit.testing import check_problem
from tests.each import each, refused

KINDS = ("iid", "fixed", "switching", "drift", "adaptive", "strongly-adaptive")


def played(problem, choose, T, R=8, seed=3):
    """Play choose(t) -> (R, N) for T rounds; the steps and the regret (R,)."""
    problem.reset(Streams([(seed, r) for r in range(R)]).child("environment"))
    steps = []
    for t in range(T):
        problem.context()
        steps.append(problem.step(choose(t)))
    return steps, sum(step.regret for step in steps) + problem.hindsight()


def uniform(problem, R=8, seed=4):
    draw = problem.spec.loss.domain.sampler(Streams([(seed, r) for r in range(R)]), "play")
    return lambda t: draw()


def centre(problem, R=8):
    points = np.tile(problem.spec.loss.domain.centre, (R, 1))
    return lambda t: points


@each(
    ("instance", "expected", "error"),
    [
        ("p-lin", 1.0, 1e-9), ("p-quad", 0.125, 0.005), ("p-kink", 0.0, 1e-9),
        ("p-tilt", 1.5, 1e-9), ("hypersimplex-3-6", 1.5**0.5, 1e-9), ("experts", 0.18, 0.01),
        ("sqrt-instance", 0.5 / 3000**0.5, 1e-9),
    ],
)  # fmt: skip
def test_centre_play(instance, expected, error):
    """Golden: regret / T of staying in the centre, as in the specification (P-quad 1/2 |0.5 e|^2 =
    1/8; experts gap (1 - 1/10); U(3, 6) 1.2247; the rest |gradient| times the way)."""
    problem = ConvexBandit(instance=instance, horizon=3000)
    _, regret = played(problem, centre(problem), 3000)
    assert regret.mean() / 3000 == pytest.approx(expected, abs=error)


def test_regret_of_the_best_point_and_of_the_square_root_instance():
    """Golden: 0 of the best fixed point; with f = H/2 <e_1, x>, w_{t+1} = Proj(-v_t / (H t)) and H
    = 1 / sqrt(T) it is H (T - 1) / 4 + H / 2 exactly."""
    for word in LOSSES:
        domain = "simplex" if word == "experts" else "ball"
        settings = {"loss": word, "domain": domain, "dim": 3, "horizon": 40}
        problem = ConvexBandit(**settings)
        played(problem, uniform(problem), 40)
        best = problem.best_fixed()
        _, regret = played(ConvexBandit(**settings), lambda t, x=best: x, 40)
        assert np.abs(regret).max() <= 40e-6
    T = 400
    problem, H, v = OnlineConvex(instance="sqrt-instance", horizon=T), T**-0.5, np.zeros((2, 5))
    problem.reset(Streams([0, 1]))
    total, w = 0.0, np.zeros((2, 5))
    for t in range(1, T + 1):
        step = problem.step(w)
        total, v = total + step.regret, v + problem.spec.loss.gradient(w, step.datum)
        w = -v / (H * t)
    np.testing.assert_allclose(total + problem.hindsight(), H * (T - 1) / 4 + H / 2, rtol=1e-12)


@each("cls", [ConvexBandit, OnlineConvex])
@each("kind", KINDS)
@each("loss", ["linear", "quadratic", "squared", "hinge", "tilted-quadratic"])
def test_the_contract(cls, kind, loss):
    """Replicas, copies, and data that are admissible, see `check_problem`, of every loss and every
    adversary that seeds change; data are told a round later, and are what is paid for."""
    problem = cls(loss=loss, adversary=kind, dim=3, horizon=10)
    if kind != "fixed" and (kind == "iid" or loss == "quadratic"):
        assert len(check_problem(problem, rounds=6)) == 9
    told = np.zeros((3, *problem.spec.context_shape))
    problem.reset(Streams([5, 6, 7]))
    for _ in range(3):
        x = np.full((3, 3), 0.3)
        np.testing.assert_array_equal(problem.context(), told)
        step = problem.step(x)
        np.testing.assert_array_equal(step.reward, -step.regret)
        assert (step.datum is None) == (cls is ConvexBandit)
        if cls is OnlineConvex:
            told = step.datum
            np.testing.assert_array_equal(-problem.spec.loss.value(x, told), step.reward)


@each("kind", KINDS[:4])
def test_oblivious_data_do_not_depend_on_what_was_played(kind):
    problem = OnlineConvex(adversary=kind, dim=3, horizon=20)
    one = [s.datum for s in played(problem, uniform(problem), 20)[0]]
    two = [s.datum for s in played(problem, centre(problem), 20)[0]]
    np.testing.assert_array_equal(one, two)


@each("word", ["linear", "quadratic"])
def test_blocks_change_no_value(word, monkeypatch):
    problem = OnlineConvex(loss=word, adversary="drift", horizon=50)
    one = [s.datum for s in played(problem, centre(problem), 50)[0]]
    with monkeypatch.context() as patch:
        patch.setattr("dpbandit.envs.convex.problems._VALUES_AHEAD", 3)
        again = [s.datum for s in played(problem, centre(problem), 50)[0]]
    np.testing.assert_array_equal(one, again)


def slopes(T=4000, R=2, **settings):
    problem = OnlineConvex(horizon=T, dim=3, **settings)
    return np.array([s.datum for s in played(problem, centre(problem, R), T, R)[0]])


def test_slopes_follow_their_course_and_law():
    """Switches and turns where they are asked for; a whole number is a unit vector or the best
    expert; gap 0.6 flips 20 % of labels; directions are uniform: mean and covariance, 8 errors."""
    a = slopes(gap=1.0, adversary="switching", switches=3, T=1000)[:, 0]
    moved = np.flatnonzero((a[1:] != a[:-1]).any(axis=1)) + 1
    assert moved.tolist() == [250, 500, 750]
    a = slopes(gap=1.0, adversary="drift", turns=2.0, T=1000)[:, 0]
    angle = np.linspace(0, 4 * np.pi, 1000, endpoint=False)
    np.testing.assert_allclose(a[:, 0], np.cos(angle), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(a, axis=1), 1)
    a = slopes(gap=1.0, direction="random", T=3)
    assert (a[0] == a[1]).all()
    assert not (a[:, 0] == a[:, 1]).any()
    text, value = parse_setting("direction=3")
    a = slopes(gap=1.0, T=2, **{text: value})
    np.testing.assert_array_equal(a, np.broadcast_to([0.0, 0.0, 1.0], a.shape))
    np.testing.assert_array_equal(slopes(T=9, direction=1), slopes(T=9))
    costs = slopes(loss="experts", domain="simplex", direction=2, T=2000, R=8, gap=0.2)
    assert set(np.unique(costs)) == {0.0, 1.0}
    np.testing.assert_allclose(costs.mean((0, 1)), [0.5, 0.3, 0.5], atol=0.02)
    z = slopes(gap=0.6, loss="hinge").reshape(-1, 4)
    flipped = (z[:, 3] != np.sign(z[:, 0])).mean()
    assert flipped == pytest.approx(0.2, abs=0.025)
    z = slopes(gap=0.6, loss="absolute").reshape(-1, 4)
    noise = (z[:, 3] - 0.6 * z[:, 0]) / 0.4  # uniform on [-1, 1], whatever the features
    assert [noise.min(), noise.max()] == pytest.approx([-1, 1], abs=0.01)
    assert [noise.mean(), noise.var(), noise @ z[:, 0] / len(z)] == pytest.approx(
        [0, 1 / 3, 0], abs=0.04
    )
    z = slopes(gap=0.4, loss="ramp", size=0.5).reshape(-1, 4)
    slack = z[:, 3] - 0.5 * z[:, 0]  # nobody loses anything at half a unit vector
    assert [slack.min(), slack.max()] == pytest.approx([0, 0.6], abs=0.01)
    assert slack.mean() == pytest.approx(0.3, abs=0.02)
    a = slopes(gap=0.3).reshape(-1, 3)
    v = (a - [0.3, 0, 0]) / 0.7
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), 1, atol=1e-12)
    assert np.abs(v.mean(0)).max() < 8 * (1 / 3 / len(v)) ** 0.5
    assert np.abs(v.T @ v / len(v) - np.eye(3) / 3).max() < 8 / len(v) ** 0.5


@each("strongly", [False, True])
def test_adaptive_slopes_point_to_where_the_agent_was(strongly):
    """gap = 1: the unit vector towards the mean of x_1..x_{t-1}, or to x_t."""
    kind = "strongly-adaptive" if strongly else "adaptive"
    problem = OnlineConvex(adversary=kind, gap=1.0, dim=3, horizon=9)
    problem.reset(Streams([0]))
    xs = Ball(3).project(np.random.default_rng(0).standard_normal((9, 3))) / 2
    for t, x in enumerate(xs):
        towards = x if strongly else xs[:t].mean(0) if t else np.eye(3)[0]
        a = problem.step(x[None]).datum[0]
        np.testing.assert_allclose(a, towards / np.linalg.norm(towards), atol=1e-12)


def one_point_climb(adversary, T=1000, R=20):
    """Bandit FTAL without noise in one dimension: regret / T, on average."""
    problem = ConvexBandit(loss="offset-quadratic", dim=1, adversary=adversary, horizon=T, gap=0.0)
    problem.reset(Streams(range(R)))
    beta, rng = T ** (-1 / 3), np.random.default_rng(1)
    w, mean, total, q = np.zeros((R, 1)), np.zeros((R, 1)), 0.0, np.zeros((R, 1))
    for t in range(1, T + 1):
        u = rng.choice([-1.0, 1.0], (R, 1))
        step = problem.step(w + beta * u)
        total = total + step.regret
        mean += (w - mean) / t
        q += step.regret[:, None] / beta * u
        w = np.clip(mean - q / t, -(1 - beta), 1 - beta)
    return (total + problem.hindsight()).mean() / T


def test_a_strongly_adaptive_adversary_defeats_one_point_estimates():
    """An adversary that knows the sign of this round's exploration reverses gradient estimates:
    regret is 1.71 T (standard error 0.02 T), near the largest, 2 T. One that knows the sign of
    the last round, or none, does not (0.06 T)."""
    assert one_point_climb("strongly-adaptive") > 1.6
    assert one_point_climb("adaptive") < 0.3
    assert one_point_climb("iid") < 0.3


@each(
    "wrong",
    [
        np.zeros((2, 4)), np.zeros(3), 0.5, None, "x", [["a"] * 3] * 2, np.full((2, 3), np.nan),
        np.full((2, 3), np.inf), np.full((2, 3), 0.7), np.array([[0, 0, 0], [1 + 1e-8, 0, 0]]),
    ],
)  # fmt: skip
def test_points_outside_are_refused(wrong):
    """Outside is relative to the radius."""
    problem = ConvexBandit(dim=3)
    problem.reset(Streams([0, 1]))
    problem.step(np.array([[1 + 1e-10, 0, 0], [0, -1, 0]]))
    with pytest.raises(InputError):
        problem.step(wrong)
    for radius in (1e-9, 1e-3, 1e9):
        problem = ConvexBandit(dim=3, radius=radius)
        problem.reset(Streams([0]))
        problem.step(np.array([[radius * (1 + 1e-10), 0, 0]]))
        refused("points of", problem.step, np.array([[radius * (1 + 1e-8), 0, 0]]))


TINY = Ball(3, 1e-9), ConcaveBase((3e-9, 2e-9, 0.5e-9))
BY_FRANK_WOLFE = SubmodularBase(lambda items: 1e-6 * len(items) ** 0.5, 4)


@each("domain", [*TINY, BY_FRANK_WOLFE], ids=["ball", "base", "frank-wolfe"])
@pytest.mark.parametrize("name", CONVEX)
def test_agents_stay_inside_tiny_domains(name, domain):
    """The room for rounding is 1e-9 of their radius, 1e-6 without an exact projection."""
    played = 0
    for cls in (ConvexBandit, OnlineConvex):
        for loss in (Linear(domain), Quadratic(domain)):
            problem = cls(loss=loss, horizon=8)
            try:
                agent = CONVEX[name]().make(problem.spec, Streams([0, 1]))
            except InputError:  # wants the other feedback, curvature or a projection
                continue
            problem.reset(Streams([2, 3]))
            for _ in range(8):
                context = problem.context().copy()
                action = agent.act(context)
                step = problem.step(action)
                agent.update(context, action, step.reward if step.datum is None else step.datum)
            played += 1
    choosy = name in ("pqftl", "net-experts") or (
        name in ("wdp-cocol", "ball-experts") and not isinstance(domain, Ball)
    )
    assert played or choosy or not domain.has_projection


@each("domain", DOMAINS)
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_meets_every_domain(loss, domain):
    simplices = ("simplex", "hypersimplex", "uniform-matroid")  # of rank 1 both are one
    if loss == "experts" and domain not in simplices:
        refused("simplex", ConvexBandit, loss=loss, domain=domain)
        return
    problem = ConvexBandit(loss=loss, domain=domain, horizon=2)
    point = uniform(problem, R=1)(0)
    _, regret = played(problem, lambda t: point, 2, R=1)
    assert (regret >= -1e-4).all()  # of a point that stays, whatever the seed


def test_objects_in_place_of_words():
    """Domains, losses and functions that make adversaries; and the refusal of an agent names the
    feedback to set, whether it is an argument there or not."""
    assert ConvexBandit(domain=Simplex(4)).spec.loss == Linear(Simplex(4))
    loss = Squared(Ball(2, 3.0), bound=2.0)
    assert ConvexBandit(loss=loss).spec.loss == loss

    def opposite(loss, streams, horizon):
        return lambda x: -x

    problem = OnlineConvex(dim=2, adversary=opposite)
    _, regret = played(problem, lambda t: np.full((8, 2), 0.5), 10)
    np.testing.assert_allclose(regret, -5 + 10 * 0.5**0.5)
    moving = ConvexBandit(loss=Kink(Ball(2), spread=0.5), adversary=Scenario(gap=0.1), horizon=20)
    assert (played(moving, centre(moving), 20)[1] >= 0).all()
    with pytest.raises(InputError, match=r"or, where it can be set, feedback='datum'\.") as told_so:
        with_feedback(object(), ConvexPricing().spec, "datum")
    assert "OnlineConvex" not in str(told_so.value)
    spec = ConvexPricing(feedback="datum").spec
    assert with_feedback(object(), spec, "datum").feedback == "datum"


def started(R=16, **arguments):
    problem = ConvexPricing(**arguments)
    problem.reset(Streams(range(R)))
    return problem


def test_profits_are_dollars_and_as_the_page_says():
    """profit = sum over goods of (price - cost) (a - own price + cross (other prices)); whoever is
    told the reward alone meets the same customers. Three profits to a cent and a half, the best
    prices to two cents and as scipy, range and slope those of extreme demands; goods that share
    `common` of what moves them, to 4 errors of a covariance."""
    problem = started(feedback="datum", goods=2, spread=0.1)
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (16, 2))
    step, p = problem.step(x), 1.5 + x
    units = step.datum - p + 0.1 * p[:, ::-1]
    np.testing.assert_allclose(step.reward, ((p - 0.4) * units).sum(1), rtol=1e-12)
    np.testing.assert_allclose(step.reward, -problem.spec.loss.value(x, step.datum), rtol=0)
    assert problem.spec.reward_unit == "dollars"
    assert (units > 0).all()
    told, shown = started(), started(feedback="datum")
    x = np.zeros((16, 3))
    for _ in range(50):
        a, b = told.step(x), shown.step(x)
        np.testing.assert_array_equal(a.reward, b.reward)
        assert a.datum is None
        np.testing.assert_array_equal(shown.context(), b.datum)
        np.testing.assert_array_equal(told.context(), np.zeros((16, 1)))
    T, rng = 3000, np.random.default_rng(1)
    for low, high, profit in ((0.0, 0.0, 3.84), (-0.5, 0.5, 3.59)):
        problem = started()
        total = sum(problem.step(rng.uniform(low, high, (16, 3))).reward.mean() for _ in range(T))
        assert total / T == pytest.approx(profit, abs=0.015)
    assert problem.hindsight().mean() / T == pytest.approx(3.92, abs=0.015)
    np.testing.assert_allclose(1.5 + problem.best_fixed().mean(0), [1.63, 1.68, 1.73], atol=0.02)
    problem = started(R=9000, feedback="datum", common=0.8)
    w = problem.step(np.zeros((9000, 3))).datum / problem.spec.loss.demand / 0.2 - 5
    np.testing.assert_allclose(3 * np.cov(w.T), 0.8**2 + 0.2**2 * np.eye(3), atol=0.03)
    problem = started(R=2, feedback="datum", variety=0.6)
    data = np.array([problem.step(np.zeros((2, 3))).datum for _ in range(30)])
    loss, best = problem.spec.loss, problem.hindsight()
    for r in range(2):
        found = minimize(
            lambda x, r=r: sum(loss.value(x[None], z[None])[0] for z in data[:, r]),
            np.zeros(3),
            bounds=[(-0.5, 0.5)] * 3,
        )
        assert -best[r] == pytest.approx(found.fun, abs=1e-4)
    loss = ConvexPricing().spec.loss
    rng = np.random.default_rng(0)
    x = 0.5 * rng.choice([-1.0, 0.3, 1.0], size=(5000, 3))
    a = np.array(loss.demand) * (1 + 0.2 * rng.choice([-1.0, 1.0], size=(5000, 3)))
    values, slopes = loss.value(x, a), np.linalg.norm(loss.gradient(x, a), axis=1)
    low, high = loss.value_range
    assert low <= values.min() < low + 0.1
    assert values.max() == pytest.approx(high, rel=1e-12)
    assert slopes.max() == pytest.approx(loss.lipschitz, rel=1e-12)
    assert (loss.curvature, loss.smoothness) == (pytest.approx(1.6), pytest.approx(2.2))
