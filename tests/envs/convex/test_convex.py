"""Convex bandits and online convex optimisation: reference values, laws of the data, refusals."""

import numpy as np
import pytest

from dpbandit.agents import CONVEX
from dpbandit.base.fields import parse_setting
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import WORDS, Ball, ConcaveBase, Simplex, SubmodularBase
from dpbandit.envs import ConvexBandit, OnlineConvex
from dpbandit.envs.convex.online_losses import LOSSES, Scenario
from dpbandit.losses import Kink, Linear, Quadratic, Squared
from dpbandit.testing import check_problem
from tests.each import each

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


@pytest.mark.parametrize(
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


def test_the_square_root_instance_costs_what_the_specification_says():
    """Golden: f = H/2 <e_1, x>, w_{t+1} = Proj(-v_t / (H t)): regret H (T - 1) / 4 + H / 2 exactly,
    with H = 1 / sqrt(T)."""
    T = 400
    problem, H, v = OnlineConvex(instance="sqrt-instance", horizon=T), T**-0.5, np.zeros((2, 5))
    problem.reset(Streams([0, 1]))
    total, w = 0.0, np.zeros((2, 5))
    for t in range(1, T + 1):
        step = problem.step(w)
        total, v = total + step.regret, v + problem.spec.loss.gradient(w, step.datum)
        w = -v / (H * t)
    np.testing.assert_allclose(total + problem.hindsight(), H * (T - 1) / 4 + H / 2, rtol=1e-12)


def test_the_best_fixed_point_has_no_regret():
    for word in LOSSES:
        domain = "simplex" if word == "experts" else "ball"
        settings = {"loss": word, "domain": domain, "dim": 3, "horizon": 40}
        problem = ConvexBandit(**settings)
        played(problem, uniform(problem), 40)
        best = problem.best_fixed()
        _, regret = played(ConvexBandit(**settings), lambda t, x=best: x, 40)
        assert np.abs(regret).max() <= 40e-6


@each("cls", [ConvexBandit, OnlineConvex])
@each("kind", KINDS)
@each("loss", ["linear", "quadratic", "squared", "hinge", "tilted-quadratic"])
def test_batched_equals_lone_and_data_are_admissible(cls, kind, loss):
    """Difference exactly 0.0; rewards in the range, data as the public set has them."""
    arguments = {"loss": loss, "adversary": kind, "dim": 3, "horizon": 10}
    batch, lone = cls(**arguments), cls(**arguments)
    batch.reset(Streams([5, 6, 7]))
    lone.reset(Streams([6]))
    rng = np.random.default_rng(0)
    family, told = batch.spec.loss, np.zeros((3, *batch.spec.context_shape))
    for _ in range(10):
        x = family.domain.project(rng.standard_normal((3, 3)))
        np.testing.assert_array_equal(batch.context(), told)
        a, b = batch.step(x), lone.step(x[1:2])
        assert a.reward[1] == b.reward[0]
        assert (batch.spec.reward_low - 1e-12 <= a.reward).all()
        assert (a.reward <= batch.spec.reward_high + 1e-12).all()
        np.testing.assert_array_equal(a.reward, -a.regret)
        if cls is OnlineConvex:
            np.testing.assert_allclose(family.admissible(a.datum), a.datum, rtol=0, atol=1e-12)
            np.testing.assert_array_equal(-family.value(x, a.datum), a.reward)
            told = a.datum
        else:
            assert a.datum is None
    assert batch.hindsight()[1] == lone.hindsight()[0]
    np.testing.assert_array_equal(batch.best_fixed()[1], lone.best_fixed()[0])


@pytest.mark.parametrize("kind", KINDS)
def test_common_random_numbers(kind):
    """Oblivious data do not depend on what was played; adaptive ones do, from the second round on,
    strongly adaptive ones from the first. Whatever they remember is copied."""
    problem = OnlineConvex(adversary=kind, dim=3, horizon=20)
    if kind != "fixed":  # which no seed changes
        check_problem(problem, rounds=6)
    one = [s.datum for s in played(problem, uniform(problem), 20)[0]]
    two = [s.datum for s in played(problem, centre(problem), 20)[0]]
    same = [np.array_equal(a, b) for a, b in zip(one, two, strict=True)]
    if kind == "strongly-adaptive":
        assert same == [False] * 20
    else:
        assert same == [True] * 20 if kind != "adaptive" else same == [True] + [False] * 19


@pytest.mark.parametrize("word", ["linear", "quadratic"])
def test_blocks_change_no_value(word, monkeypatch):
    problem = OnlineConvex(loss=word, adversary="drift", horizon=50)
    one = [s.datum for s in played(problem, centre(problem), 50)[0]]
    monkeypatch.setattr("dpbandit.envs.convex.problems._VALUES_AHEAD", 3)
    np.testing.assert_array_equal(one, [s.datum for s in played(problem, centre(problem), 50)[0]])


def slopes(T=4000, R=2, **settings):
    problem = OnlineConvex(horizon=T, dim=3, **settings)
    return np.array([s.datum for s in played(problem, centre(problem, R), T, R)[0]])


def test_iid_slopes_follow_their_law():
    """a = gap e_1 + (1 - gap) v, v uniform on the sphere: mean and covariance, 8 errors."""
    a = slopes(gap=0.3).reshape(-1, 3)
    v = (a - [0.3, 0, 0]) / 0.7
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), 1, atol=1e-12)
    assert np.abs(v.mean(0)).max() < 8 * (1 / 3 / len(v)) ** 0.5
    assert np.abs(v.T @ v / len(v) - np.eye(3) / 3).max() < 8 / len(v) ** 0.5


def test_switching_and_drift_follow_their_course():
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


@pytest.mark.parametrize("strongly", [False, True])
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


def test_experts_costs_are_coins():
    """Fair, and 0.3 for the first: 8,000 each, 5 standard errors are 0.028."""
    problem = OnlineConvex(instance="experts", horizon=1000)
    costs = np.array([s.datum for s in played(problem, centre(problem), 1000)[0]])
    assert set(np.unique(costs)) == {0.0, 1.0}
    np.testing.assert_allclose(costs.mean((0, 1)), [0.3] + [0.5] * 9, atol=0.028)


def test_a_whole_number_is_a_unit_vector():
    """Counted from 1, as the command line has it; for experts the one who is best."""
    text, value = parse_setting("direction=3")
    a = slopes(gap=1.0, T=2, **{text: value})
    np.testing.assert_array_equal(a, np.broadcast_to([0.0, 0.0, 1.0], a.shape))
    np.testing.assert_array_equal(slopes(T=9, direction=1), slopes(T=9))
    costs = slopes(loss="experts", domain="simplex", direction=2, T=2000, R=8, gap=0.2)
    np.testing.assert_allclose(costs.mean((0, 1)), [0.5, 0.3, 0.5], atol=0.02)


def test_labels_are_flipped_at_the_rate_asked_for():
    """gap 0.6: 20 % of the labels against the sign of a_1. 8,000 of them, 5 standard errors."""
    z = slopes(gap=0.6, loss="hinge").reshape(-1, 4)
    flipped = (z[:, 3] != np.sign(z[:, 0])).mean()
    assert flipped == pytest.approx(0.2, abs=0.025)


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
    """The counterexample: offsets with this round's sign send the agent up the hill, for a regret
    near the largest, 2 T (the specification has 1.90 at T = 65,536, 20 runs of 1,000 have 1.71 with
    a standard error of 0.02); with the last round's sign, or any, they do not (0.06)."""
    assert one_point_climb("strongly-adaptive") > 1.6
    assert one_point_climb("adaptive") < 0.3
    assert one_point_climb("iid") < 0.3


@pytest.mark.parametrize("cls", [ConvexBandit, OnlineConvex])
def test_delay(cls):
    """What is told comes 3 rounds late, zeros before; regret is counted at once."""
    late, prompt = cls(delay=3, horizon=10, dim=2), cls(horizon=10, dim=2)
    x = centre(late, 8)(0) + 0.1
    a, _ = played(late, lambda t: x, 10)
    b, _ = played(prompt, lambda t: x, 10)
    for t in range(10):
        np.testing.assert_array_equal(a[t].reward, b[t - 3].reward if t >= 3 else np.zeros(8))
        np.testing.assert_array_equal(a[t].regret, b[t].regret)
        if cls is OnlineConvex:
            told = b[t - 3].datum if t >= 3 else np.zeros((8, 2))
            np.testing.assert_array_equal(a[t].datum, told)


@each(
    "wrong",
    [
        np.zeros((2, 4)), np.zeros(3), 0.5, None, "x", [["a"] * 3] * 2, np.full((2, 3), np.nan),
        np.full((2, 3), np.inf), np.full((2, 3), 0.7), np.array([[0, 0, 0], [1 + 1e-8, 0, 0]]),
    ],
    ids=str,
)  # fmt: skip
def test_points_outside_are_refused(wrong):
    problem = ConvexBandit(dim=3)
    problem.reset(Streams([0, 1]))
    problem.step(np.array([[1 + 1e-10, 0, 0], [0, -1, 0]]))
    with pytest.raises(InputError):
        problem.step(wrong)


@pytest.mark.parametrize("radius", [1e-9, 1e-3, 1e9])
def test_outside_is_relative_to_the_radius(radius):
    problem = ConvexBandit(dim=3, radius=radius)
    problem.reset(Streams([0]))
    problem.step(np.array([[radius * (1 + 1e-10), 0, 0]]))
    with pytest.raises(InputError, match="points of"):
        problem.step(np.array([[radius * (1 + 1e-8), 0, 0]]))


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


@each("domain", WORDS)
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_meets_every_domain(loss, domain):
    simplices = ("simplex", "hypersimplex", "uniform-matroid")  # of rank 1 both are one
    if loss == "experts" and domain not in simplices:
        with pytest.raises(InputError, match="simplex"):
            ConvexBandit(loss=loss, domain=domain)
        return
    problem = ConvexBandit(loss=loss, domain=domain, horizon=2)
    point = uniform(problem, R=1)(0)
    _, regret = played(problem, lambda t: point, 2, R=1)
    assert (regret >= -1e-4).all()  # of a point that stays, whatever the seed


def test_objects_in_place_of_words():
    """Domains, losses and functions that make adversaries."""
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
