"""What people pass by mistake gets one sentence, and what they rightly pass is taken."""

from dataclasses import fields

import numpy as np
import pytest

from dpbandit import ENVIRONMENTS, InputError, audit, certify, compare
from dpbandit.agents import (
    AGENTS,
    DPFTRL,
    DPPOFW,
    DPTOFW,
    WDPCOCOP,
    BanditPFTAL,
    DPHDBChoices,
    LinUCB,
    LocalisedTOFW,
    NoisyOCO,
    PrivateBandit,
)
from dpbandit.base.inputs import inside
from dpbandit.base.random_streams import Streams
from dpbandit.envs import (
    ConvexBandit,
    ConvexPricing,
    GLMBandit,
    OnlineConvex,
    StreamingRegression,
)
from dpbandit.envs.convex.corners import Corners
from dpbandit.envs.streams.noise import HalfNormals
from dpbandit.running.environments import problem_maker
from dpbandit.specs.protocols import ContextualSpec
from tests.each import each
from tests.envs.contextual.ratings_files import ARGUMENTS

SPEC = ContextualSpec(n_actions=2, dim=2, horizon=20)


def test_numpy_s_whole_numbers_are_settings():
    made = []
    for whole in (int, np.int64):
        values, data = ConvexBandit(horizon=whole(50)).spec, OnlineConvex(horizon=whole(50)).spec
        bandit = PrivateBandit(batch=whole(2)).make(values, Streams([0]))
        window = WDPCOCOP(window=whole(3)).make(data, Streams([0]))
        prices = ConvexPricing(horizon=50, retention=whole(8))
        made.append((bandit.ledger, window.ledger, prices.spec))
    assert made[0] == made[1]
    first = OnlineConvex(horizon=5, direction=np.array([1.0, 0, 0, 0, 0]))
    first.reset(Streams([0]))


@each("name", ENVIRONMENTS)
def test_numpy_s_whole_numbers_are_arguments(name):
    """Every whole number among the arguments of every environment."""
    given = {**ARGUMENTS.get(name, {}), "horizon": 20}
    problem = problem_maker(name)(**given)
    usual = {field.name: getattr(problem, field.name) for field in fields(problem)}
    whole = {key: np.int64(value) for key, value in usual.items() if type(value) is int}
    problem = problem_maker(name)(**{**given, **whole})
    problem.reset(Streams([0]))
    assert type(problem.spec.horizon) is type(problem.spec.delay) is int


@pytest.mark.filterwarnings("error")
def test_numpy_s_short_numbers_are_settings():
    """A float32 cannot hold the largest setting it is compared with, an int8 not its own size."""
    LinUCB(alpha=np.float32(0.5))
    BanditPFTAL(offset=np.float32(0.5))
    inside("x", np.int8(-128), -200, 200, ends=True)
    with pytest.raises(InputError, match=r"np.float32\(nan\)"):
        LinUCB(alpha=np.float32("nan"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("noise", [1e-300, 250.0])
def test_extreme_noise_is_noise(noise):
    """Next to none, and the widest allowed: uniform on [-room, room], mean square room^2 / 3."""
    square = HalfNormals(noise, 0.25).square
    assert square == pytest.approx(min(noise**2, 0.25**2 / 3), rel=1e-6)
    StreamingRegression(noise=noise, horizon=5).reset(Streams([0]))


@pytest.mark.parametrize("env", [StreamingRegression, OnlineConvex])
def test_arrays_beside_what_replaces_them(env):
    """An array can be compared with no default, yet is refused like any other value."""
    wrong = {"data": "oj", "theta": np.zeros(5)}
    if env is OnlineConvex:
        wrong = {"instance": "p-lin", "direction": np.ones(5)}
    with pytest.raises(InputError, match="which has its own"):
        env(**wrong)


@pytest.mark.parametrize("config", [LinUCB, None, b"linucb", 3], ids=str)
def test_what_is_no_config(config):
    for use in (
        lambda: certify(config, SPEC),
        lambda: audit(config, SPEC, runs=400, progress=False),
        lambda: compare("GLMBandit", {"a": config}, horizon=5, replicas=1, progress=False),
    ):
        with pytest.raises(InputError, match=r"to be a config, such as LinUCB\("):
            use()


@pytest.mark.parametrize(
    ("env", "agents", "arguments", "sentence"),
    [
        ("GLMBandit", [LinUCB(), 1], {}, r"Expected agent 1 to be a config, such as LinUCB\("),
        ("GLMBandit", {1: LinUCB()}, {}, "words for names, got 1"),
        ("GLMBandit", {"Uniform": LinUCB()}, {}, "a baseline has it"),
        ("GLMBandit", {"BestFixed": LinUCB()}, {}, "a baseline has it"),
        ("GLMBandit", {}, 1, "dictionary whose keys are names"),
        (None, {}, {}, "Expected env=None"),
        (".x:GLM", {}, {}, "full name of its module"),
    ],
)
def test_natural_mistakes_in_a_comparison(env, agents, arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        compare(env, agents, horizon=5, replicas=1, env_kwargs=arguments, progress=False)


@each(
    "make",
    [
        lambda: LocalisedTOFW(shares=0.5),
        lambda: ConvexPricing(high="abc"),
        lambda: ConvexPricing(high=None),
        lambda: StreamingRegression(noise=1e300),
        lambda: StreamingRegression(level="abc"),
        lambda: StreamingRegression(digit=77),
        lambda: StreamingRegression(sparsity="x"),
        lambda: ConvexBandit(radius=1e200),
        lambda: ConvexBandit(rank="abc"),
        lambda: OnlineConvex(direction=np.ones(3)).reset(Streams([0])),
        lambda: DPPOFW(noise=""),
        lambda: DPPOFW(clip=0),
        lambda: DPPOFW(clip=False),
        lambda: DPHDBChoices(selection=""),
        lambda: DPHDBChoices(bound=0),
        lambda: DPTOFW(noise=""),
        lambda: DPTOFW(prefix_sums=0),
        lambda: BanditPFTAL(delta=""),
        lambda: BanditPFTAL(offset=1e300),
        lambda: PrivateBandit(delta=""),
        lambda: DPFTRL(noise="laplace", delta=""),
        lambda: GLMBandit(context_order=True),
        lambda: StreamingRegression(noise=251.0),
        lambda: ConvexBandit(adversary=Corners((1.0,)), gap="x"),
        lambda: NoisyOCO(delta=""),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(InputError, match=r"^Expected "):
        make()


@each("name", [name for name, kind in AGENTS.items() if fields(kind)])
def test_arrays_and_huge_numbers_are_refused_in_one_sentence(name):
    """Every setting of every agent: two numbers in place of one, 10^400, a numpy word."""
    kind = AGENTS[name]
    for field in fields(kind):
        if field.name == "agent":
            continue
        for value in (np.array([1.0, 2.0]), 10**400):
            said = ""
            try:
                kind(**{field.name: value})
            except InputError as mistake:
                said = str(mistake)
            assert len(said) < 600
            assert "\n" not in said
