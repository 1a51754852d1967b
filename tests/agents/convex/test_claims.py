"""What all agents of convex losses owe: a certificate that is the claim, points of the domain, the
round that late data belong to, and one sentence where something does not fit."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import inf, log2, sqrt

import numpy as np
import pytest

from dpbandit import InputError, certify, play as play_loop
from dpbandit.agents import (
    DPFTRL,
    FKM,
    FTAL,
    OGD,
    PFTAL,
    POCP,
    PQFTL,
    WDPCOCOL,
    WDPCOCOP,
    BanditFTAL,
    BanditPFTAL,
    BestFixed,
    Centre,
    GarberKretzu,
    LinearFTRL,
    NoisyOCO,
    OnlineConditionalGradient,
    PrivateBandit,
    Uniform,
)
from dpbandit.base import Streams
from dpbandit.domains import (
    Ball,
    Box,
    Hypersimplex,
    IndependentSets,
    L1Ball,
    Simplex,
    SpanningTrees,
)
from dpbandit.envs import OnlineConvex
from dpbandit.losses import (
    Absolute,
    Experts,
    Hinge,
    Kink,
    Linear,
    Logistic,
    Quadratic,
    Ridge,
    Squared,
    TiltedQuadratic,
)
from dpbandit.results.runs import log_marks
from dpbandit.specs import ConvexSpec
from tests.agents.convex.convex_runs import (
    BALL,
    LAWS,
    NONE,
    node_stddev,
    play,
    sphere,
    targets,
    told,
    valued,
)
from tests.each import each, each_wrong, refused
from tests.harness import SHARED

FLAT, CURVED = Linear(BALL), Quadratic(BALL)
NOISES = [{"noise": law} for law in LAWS]
LOCAL = {"noise": "local"}


def claims():
    """Agents with their settings, on problems; each with all noises that it has."""
    for T, anytime in product((2, 5, 1024), (False, True)):
        yield partial(PFTAL, anytime=anytime), told(Kink(BALL), T), NOISES
    for T, loss in product((2, 1024), (CURVED, Experts(Simplex(4)))):
        yield BanditPFTAL, valued(loss, T), [*NOISES, LOCAL]
    for T in (7, 1024):
        yield PrivateBandit, valued(FLAT, T), [*NOISES, LOCAL]
    for word in ("euclidean", "entropic"):
        yield partial(NoisyOCO, map=word), told(Linear(Simplex(4)), 30), NOISES
    for mode, window in product(("lazy", "exact"), (1, 3, 100)):
        yield partial(WDPCOCOP, mode=mode, window=window), told(Kink(BALL), 500), NOISES
    for window in (1, 6, 200):
        yield partial(WDPCOCOL, window=window), told(Quadratic(Simplex(10)), 300), NOISES
    yield LinearFTRL, told(FLAT, 100), NOISES
    yield DPFTRL, told(Squared(Ball(2), bound=0.9), 1000), NOISES
    yield PQFTL, told(Ridge(Ball(3), bound=2.0), 1000), [{}]
    yield POCP, told(CURVED, 20), [{}]


@each(("kind", "spec", "noises"), claims, ids=str)
def test_certificates_are_the_claims(kind, spec, noises):
    """For the window, where there is one; without noise nothing is promised."""
    for noise, epsilon in product(noises, (0.1, 1.0, 10.0)):
        config = kind(**noise, epsilon=epsilon)
        proof = certify(config, spec, accountants=False)
        assert proof.holds
        assert proof.epsilon == pytest.approx(epsilon, rel=1e-6)
        assert proof.notion.window == getattr(config, "window", None)
        assert certify(kind(**noise, epsilon=inf), spec, accountants=False).epsilon == inf


def test_noise_scales():
    """Golden: a leaf lies in h = 10 nodes and moves by S: c = S h / epsilon, per coordinate times
    sqrt(k + 1) for K-norm and sqrt(2 k) for Laplace; sigma = S sqrt(h) / mu, mu(1) = 0.236704. S
    is 2 L = 4 of quadratics, sqrt(10) of 10 experts in the 9 dimensions of sum zero, W k / beta =
    20 of values at beta = 1/2, 3.8 of squares. Printed: c = 2 log2(1024) = 20."""
    for kind, spec, S, k in (
        (PFTAL, told(CURVED, 1024), 4, 5),
        (PFTAL, told(Experts(Simplex(10)), 1024), sqrt(10), 9),
        (partial(BanditPFTAL, beta=0.5), valued(CURVED, 1024), 20, 5),
        (DPFTRL, told(Squared(Ball(2), bound=0.9), 1000), 3.8, 2),
    ):
        for epsilon in (0.1, 1.0, 10.0):
            c, gauss = S * 10 / epsilon, kind(noise="gaussian", epsilon=epsilon)
            mu = certify(gauss, spec, accountants=False).mu
            assert epsilon != 1 or mu == pytest.approx(0.236704, abs=1e-6)
            stddevs = c * sqrt(k + 1), c * sqrt(2 * k), S * sqrt(10) / mu
            for noise, stddev in zip(LAWS, stddevs, strict=True):
                config = kind(noise=noise, epsilon=epsilon)
                assert node_stddev(config, spec) == pytest.approx(stddev, rel=1e-9)
    paper = node_stddev(PFTAL(calibration="paper"), told(CURVED, 1024))
    assert paper == pytest.approx(20 * sqrt(6), rel=1e-12)


@pytest.mark.parametrize("T", [5, 100, 1024, 1025])
def test_printed_noise_costs_more_than_the_claim(T):
    """Golden: 2 bit_length(T-1) / log2(T) epsilon, 2.58 at T = 5. Values: c = (k M / beta) log2(T)
    / epsilon; moved by W k / beta in bit_length(T-1) nodes that costs epsilon h / log2(T) where 0
    <= f <= M = W, and twice that for signed values, W = 2 M."""
    ratio = (T - 1).bit_length() / log2(T)
    assert T != 5 or 2 * ratio == pytest.approx(2.58, abs=0.005)
    for kind, spec, times in (
        (PFTAL, told(Kink(BALL), T), 2 * ratio),
        (BanditPFTAL, valued(CURVED, T), ratio),
        (BanditPFTAL, valued(FLAT, T), 2 * ratio),
    ):
        proof = certify(kind(calibration="paper", epsilon=0.5), spec, accountants=False)
        assert proof.epsilon == pytest.approx(0.5 * times, rel=1e-9)
        assert proof.holds == (proof.epsilon <= 0.5)


TWINS = [
    *((PFTAL(anytime=anytime, **n), FTAL()) for anytime in (False, True) for n in NOISES),
    *((WDPCOCOP(mode=m, window=w), FTAL()) for m in ("lazy", "exact") for w in (1, 3, 64)),
    *((BanditPFTAL(beta=0.1, **n), BanditFTAL(beta=0.1)) for n in (*NOISES, LOCAL)),
]


@each(("config", "public"), TWINS, ids=repr)
def test_without_privacy_it_is_the_public_agent_bit_for_bit(config, public):
    """Directions come from a stream of their own: any noise leaves them as they are."""
    feedback = "value" if isinstance(config, BanditPFTAL) else "datum"
    for loss, data in (
        (CURVED, targets(40, 3)),
        (Kink(BALL), np.zeros((40, 3, 5))),
        (Experts(Simplex(4)), np.random.default_rng(0).random((40, 3, 4))),
    ):
        free, wanted, noisy = (
            play(agent, loss, data, feedback=feedback).actions
            for agent in (replace(config, epsilon=inf), public, config)
        )
        np.testing.assert_array_equal(free, wanted)
        np.testing.assert_allclose(noisy[0], wanted[0], rtol=0, atol=1e-15)
        assert (noisy[2:] != wanted[2:]).any()


@dataclass(frozen=True)
class Flat(Quadratic):
    """A loss without a slope."""

    curvature = 0.0
    lipschitz = 0.0

    def value(self, x, z):
        return np.zeros(len(x))


class Constant(Linear):
    lipschitz = 0.0


def test_who_learns_nothing_spends_nothing():
    """No batch of `PrivateBandit` that influences a point is over before round 7; and of a loss
    that is constant nobody leaves the centre."""
    flat = told(Flat(BALL), 10)
    for config, spec in (
        *((BanditPFTAL(**noise), valued(FLAT, 1)) for noise in (*NOISES, LOCAL)),
        *((PrivateBandit(**n), valued(FLAT, T)) for n in (*NOISES, LOCAL) for T in (1, 6)),
        *((config, flat) for config in (PFTAL(), FTAL())),
    ):
        assert certify(config, spec, accountants=False).epsilon == 0.0
        if spec is flat:
            np.testing.assert_array_equal(config.make(spec, Streams([0])).act(NONE), 0.0)
    spec, data = valued(Constant(Ball(3)), 200), np.ones((200, 1, 3))
    for settings in ({}, {"parameters": "tuned"}, LOCAL):
        config = PrivateBandit(**settings)
        points = play(config, spec.loss, data, feedback="value").actions
        assert np.linalg.norm(points, axis=-1) == pytest.approx(config.plan(spec).zeta, rel=1e-12)
        assert config.plan(spec).regret_bound() == 0


@each("noise", LAWS)
@each("agent", [PFTAL, LinearFTRL, NoisyOCO])
def test_a_positive_delta_buys_less_noise(agent, noise):
    """Of pure laws on a tree; the certificate is the claim again. By default they stay pure. It
    buys nothing of the hybrid tree, where the sum of epsilons alone is known at every horizon."""
    spec = told(FLAT, 1024)
    config, default = agent(noise=noise, delta=1e-6), agent(noise=noise)
    proof = certify(config, spec, accountants=False)
    assert proof.holds
    assert proof.epsilon == pytest.approx(1.0, rel=1e-4)
    assert default.delta == (1e-6 if noise == "gaussian" else 0.0)
    share = node_stddev(config, spec) / node_stddev(default, spec)
    if noise == "gaussian":
        assert share == 1.0
    else:
        assert share < {"k-norm": 0.6, "laplace": 1.0}[noise]
        assert config.make(spec, Streams([0])).ledger.delta(0.99) > 1e-6
    one, two = (PFTAL(anytime=True, delta=delta) for delta in (1e-6, None))
    assert node_stddev(one, spec) == node_stddev(two, spec)
    assert certify(one, spec, accountants=False).holds


@each("domain", [Box(3), L1Ball(3), Simplex(4), Hypersimplex(5, 2)], ids=repr)
@each("noise", [*LAWS, "local"])
def test_points_stay_in_the_domain(noise, domain):
    """Also with next to no privacy budget, and with the longest step there is."""
    longest = 0.99 * domain.inner_radius
    configs = [BanditPFTAL(noise=noise, epsilon=1e-6), BanditPFTAL(noise=noise, beta=longest)]
    if noise != "local":
        configs += [PFTAL(noise=noise, epsilon=epsilon) for epsilon in (1e-6, 1.0)]
    data = sphere(np.random.default_rng(0), 50, 2, domain.dim)
    for config in configs:
        feedback = "value" if isinstance(config, BanditPFTAL) else "datum"
        run = play(config, Linear(domain), data, feedback=feedback)
        assert domain.contains(run.actions.reshape(100, -1), 1e-9).all(), config


@pytest.mark.parametrize("feedback", ["value", "datum"])
@pytest.mark.parametrize("domain", [BALL, Box(2), Simplex(3)], ids=lambda d: type(d).__name__)
def test_baselines_play_points(domain, feedback):
    """Uniform play is fresh and in the domain, the centre is the centre, the best fixed point is
    what it was told; nobody looks at data but the last."""
    spec = ConvexSpec(loss=Linear(domain), feedback=feedback, horizon=5)
    uniform, centre = (c.make(spec, Streams([0, 1, 2])) for c in (Uniform(), Centre()))
    first, second = uniform.act(NONE), uniform.act(NONE)
    assert domain.contains(first).all()
    assert (first != second).any(axis=1).all()
    np.testing.assert_array_equal(centre.act(NONE), np.tile(domain.centre, (3, 1)))
    told = BestFixed().with_answer(first)
    assert hash(told) == hash(BestFixed().with_answer(first.copy()))
    np.testing.assert_array_equal(told.make(spec, Streams([0, 1, 2])).act(NONE), first)
    alone = BestFixed().make(spec, Streams([0])).act(NONE)
    np.testing.assert_array_equal(alone, domain.centre[None])
    for config in (Uniform(), Centre()):
        assert certify(config, spec, accountants=False).epsilon == 0.0


def test_gradient_steps_stay_in_domains_without_a_projection():
    """Against one fixed slope descent ends near the best corner: regret within 1.5 L D sqrt T."""
    domain, T = SpanningTrees(4), 100
    data = np.tile(domain.embedded(np.eye(domain.affine_dim)[0]), (T, 1, 1))
    for config, feedback in ((OGD(), "datum"), (FKM(), "value")):
        run = play(config, Linear(domain), data, feedback=feedback)
        assert domain.contains(run.actions.reshape(T, -1), 1e-9).all()
        assert config != OGD() or run.regret <= 1.5 * domain.diameter * sqrt(T)


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
        class Recorded:
            def make(self, spec, streams, path=path):
                agent = config.make(spec, streams)
                act = agent.act
                agent.act = lambda context: path.append(act(context)) or path[-1]
                return agent

        problem = OnlineConvex(horizon=20, delay=delay)
        play_loop(problem, Recorded(), [0, 1], marks=log_marks(20))
    assert not np.any(paths[3][:4])
    assert np.any(paths[3][4])
    np.testing.assert_array_equal(paths[3][3:], paths[0][:-3])


# What does not fit

GAUSSIAN, PRINTED = {"noise": "gaussian"}, {"calibration": "paper"}
BAD = [
    *((kind, {}, {"curvature": [-1.0]}) for kind in (FTAL, OGD, BanditPFTAL)),
    *((kind, {}, {"curvature": [0.0]}) for kind in (OnlineConditionalGradient, PFTAL, WDPCOCOP)),
    *((kind, {}, {"delta": [0.0], "curvature": [0.0]}) for kind in (POCP, PQFTL)),
    *((kind, GAUSSIAN, {"delta": [0.0]}) for kind in (PFTAL, NoisyOCO, BanditPFTAL, WDPCOCOP)),
    (PFTAL, {}, {"epsilon": [0.0], "noise": ["cauchy"], "anytime": [1]}),
    (PFTAL, PRINTED, {"noise": ["gaussian"], "anytime": [True]}),
    (LinearFTRL, {}, {"epsilon": [-1.0], "noise": ["none"], "rate": [0.0], "delta": [1.5]}),
    (NoisyOCO, {}, {"eta": [0.0], "gradient_bound": [-1.0]}),
    (BanditPFTAL, {}, {"epsilon": [0.0], "noise": ["none"], "beta": ["printed", 0.0]}),
    (BanditPFTAL, {}, {"offset": [inf]}),
    *((kind, PRINTED, {"noise": ["local"]}) for kind in (BanditPFTAL, PrivateBandit)),
    (WDPCOCOP, {}, {"window": [0, 2.5], "mode": ["eager"], "rule": ["paper"]}),
    (WDPCOCOP, PRINTED, {"noise": ["laplace"]}),
    (WDPCOCOL, {}, {"parameters": ["tuned"], "step": ["newton"], "geometry": [0.0]}),
    (WDPCOCOL, {}, {"failure": [1.0], "window": [0]}),
    (WDPCOCOL, {"parameters": "paper"}, {"noise": ["laplace"]}),
    (DPFTRL, {}, {"tuning": ["printed", 0.0, True], "delta": [0.0]}),
    (DPFTRL, {"noise": "k-norm"}, {"tuning": ["paper"]}),
    (PrivateBandit, {}, {"delta": [0.0], "zeta": [1.0, -1.0], "eta": [0.0], "batch": [0]}),
    (PrivateBandit, {}, {"noise": ["knorm"]}),
    (PrivateBandit, PRINTED, {"noise": ["k-norm"]}),
    (FKM, {}, {"zeta": [0.0, 1.0], "nu": [-1.0]}),
]


@each_wrong(BAD)
def test_bad_settings_get_one_sentence(kind, settings, name):
    """When they are said, or when a domain is known that does not allow them."""
    feedback = "value" if kind in (BanditPFTAL, PrivateBandit, FKM) else "datum"
    spec = ConvexSpec(loss=FLAT, feedback=feedback, horizon=9)
    sentence = f"^Expected .*({name}|calibration=)"
    refused(sentence, lambda: kind(**settings).make(spec, Streams([0])))


@dataclass(frozen=True)
class Mine(Quadratic):
    """Claims what a quadratic has; nobody has looked."""


class Worthless(Linear):
    lipschitz, value_range = 0.0, (0.0, 0.0)


class Segment(Ball):
    inner_radius = 0.0


BALL_2, TREES = Ball(2), SpanningTrees(4)
TELLS, SAYS = "learns from feedback='datum'", "feedback='value'"
MISFITS = [
    *((kind(), valued(FLAT, 9), TELLS) for kind in (PFTAL, FTAL, NoisyOCO, WDPCOCOP)),
    (OnlineConditionalGradient(), valued(FLAT, 9), TELLS),
    *((kind(), told(FLAT, 50), SAYS) for kind in (FKM, GarberKretzu, PrivateBandit)),
    *((kind(), valued(Worthless(Ball(3)), 50), "more than one") for kind in (FKM, GarberKretzu)),
    (PrivateBandit(), replace(valued(FLAT, 9), delay=1), "delay"),
    (PrivateBandit(projection="exact"), valued(Linear(TREES), 9), "projection"),
    (PrivateBandit(), valued(Linear(Segment(2)), 9), "contains none"),
    (BanditFTAL(beta=1.0), valued(FLAT, 9), r"beta=1\.0"),
    *((kind(beta=0.9995), valued(FLAT, 9), r"beta=0\.9995") for kind in (BanditFTAL, BanditPFTAL)),
    *((kind(), SHARED, "convex") for kind in (PFTAL, PrivateBandit)),
    (LinearFTRL(), told(CURVED, 9), "linear losses, got Quadratic"),
    (NoisyOCO(map="entropic"), told(FLAT, 9), "only on a simplex"),
    *((POCP(), told(kind(BALL), 9), "is not verified") for kind in (Kink, Hinge, Mine)),
    (POCP(), told(Quadratic(TREES), 9), "is not verified"),
    *((PQFTL(), told(k(BALL), 9), "plays squared losses") for k in (Quadratic, Logistic, Linear)),
    (WDPCOCOL(), told(Quadratic(IndependentSets(4, 2)), 9), "No local linear oracle is known"),
    *(
        (DPFTRL(tuning=tuning), told(loss, 9), "never negative")
        for tuning in ("certified", "paper")
        for loss in (Linear(BALL_2), Linear(Simplex(3)), Absolute(BALL_2), TiltedQuadratic(BALL_2))
    ),
]


@each(("config", "spec", "words"), MISFITS, ids=repr)
def test_problems_that_do_not_fit_are_refused_in_one_sentence(config, spec, words):
    with pytest.raises(InputError, match=words) as caught:
        config.make(spec, Streams([0]))
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize("config", [FTAL(), PFTAL(), LinearFTRL()], ids=str)
def test_data_of_a_wrong_shape_are_refused(config):
    """A slope (R, 1) would be copied to all coordinates: noise for one, a movement of k."""
    agent = config.make(ConvexSpec(loss=Linear(BALL), feedback="datum", horizon=9), Streams([0, 1]))
    refused("shape", agent.update, NONE, agent.act(NONE), np.ones((2, 1)))
