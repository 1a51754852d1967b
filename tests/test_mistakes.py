"""Natural mistakes of a new user, each answered by one sentence: argument, value, what is right.

In Python, in a notebook, with other people's code, and sizes beyond reason before memory is asked
for. tests/test_cli.py has those on the command line, tests/running/test_own_code.py one's own code.
"""

import inspect
from dataclasses import fields
from functools import partial
from threading import Lock

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from gymnasium.envs.registration import load_env_creator

from dpbandit import ENVIRONMENTS, InputError, Results, audit, certify, compare, play
from dpbandit.agents import (
    AGENTS,
    DPFTRL,
    DPPOFW,
    DPTOFW,
    FADE,
    WDPCOCOP,
    BanditPFTAL,
    DPHDBChoices,
    Guard,
    LinUCB,
    LocalisedTOFW,
    NoisyOCO,
    PrivateBandit,
)
from dpbandit.base import Streams, inside
from dpbandit.clients import Foreign, FromGymnasium, Player, mabwiser_policy, read_log, river_policy
from dpbandit.envs import (
    ConvexBandit,
    ConvexPricing,
    GLMBandit,
    OJPricing,
    OnlineConvex,
    StreamingRegression,
)
from dpbandit.envs.contextual.recommendation import read_ratings
from dpbandit.envs.convex.problems import Corners
from dpbandit.envs.streams.populations import HalfNormals
from dpbandit.running.environments import problem_maker
from dpbandit.specs import ContextualSpec
from dpbandit.studies import Configuration, Study, Sweep, plan, run_sweep
from tests.each import asserting, each, refused
from tests.envs.contextual.ratings_files import ARGUMENTS
from tests.experiments.runs import made_up
from tests.studies.studies import TINY

SPEC = ContextualSpec(n_actions=2, dim=2, horizon=20)
RESULTS = Results((made_up("fade", 10, 20, claimed=1.0), made_up("Uniform", 40, 50)))
CARTS, OJ = "CartPole-v1", "dpbandit/OJPricing-v0"


def compared(env="GLMBandit", agents="fade", **more):
    how = {"horizon": 5, "replicas": 2, "progress": False}
    return lambda: compare(env, agents, **{**how, **more})


def limited(horizon):
    """The limit of an id is its horizon, and no other is played."""
    how = {"max_episode_steps": 3, "kwargs": {"problem": "dpbandit.envs:OJPricing"}}
    gym.register("mine/Short-v0", "dpbandit.envs.adapters:BanditEnv", **how)
    try:
        assert compare("mine/Short-v0", "linucb", replicas=1).runs[0].setup.horizon == 3
        compare("mine/Short-v0", "linucb", horizon=horizon)
    finally:
        del gym.registry["mine/Short-v0"]


def stepped(action):
    def step():
        env = gym.make(OJ).unwrapped
        env.reset(seed=0)
        env.step(action)

    return step


def logged(**more):
    table = {"shown": ["a", "b"], "click": [0, 1], "age": [20, 30]}
    how = {"action": "shown", "reward": "click", "reward_range": (0, 1), **more}
    return lambda: read_log(table, **how)


def seated(agent, env, context_bound=1):
    how = {"horizon": 5, "reward_range": (0, 1), "context_bound": context_bound}
    return lambda: Player(agent, env, **how)


def asked_of(config):
    return lambda: config.make(GLMBandit().spec, Streams([1, 2]))


class Unspeakable:
    """Something whose repr fails."""

    def __repr__(self):
        raise RuntimeError("no\nwords")


UNSPEAKABLE = Unspeakable()
LOCK = Lock()
LOCKED = Foreign(policy=lambda spec, seed, lock=LOCK: lock)
NAMELESS = Foreign(policy=lambda spec, seed: None)
LOCKED_SWEEP = Study(
    configurations=(Configuration(RESULTS.runs[0].setup, "mine", LOCKED),), replicas=2
)

PYTHON = {
    "env misspelt": (compared("OJPrice"), "environment='OJPrice' .did you mean OJPricing"),
    "env shortened": (compared("OJ"), "environment='OJ' .did you mean OJPricing"),
    "agent misspelt": (compared(agents="fad"), "agent='fad' .did you mean fade"),
    "swapped": (compared("fade", "OJPricing"), "the agent 'fade': compare .* environment first"),
    "swapped in certify": (lambda: certify("OJPricing", "fade"), "the environment 'OJPricing': c"),
    "an unknown setting": (compared(agents="fade:epsilom=1"), "'epsilom' .did you mean epsilon"),
    "settings in brackets": (compared(agents="fade(epsilon=1)"), "to be fade:KEY=VALUE, with col"),
    "settings after a blank": (compared(agents="fade epsilon=1"), "to be fade:KEY=VALUE, with c"),
    "settings by commas": (compared(agents="fade:epsilon=1,delta=0"), "'delta=0'"),
    "epsilon 0": (compared(agents="fade:epsilon=0"), "epsilon=0.0 to be a number > 0"),
    "a horizon that is a float": (compared(horizon=1e4), "horizon=10000.0 to be a whole number"),
    "a horizon that is text": (compared(horizon="100"), "horizon='100' to be a whole number"),
    "a horizon that is no number": (compared(horizon=np.nan), "horizon=nan to be a whole number"),
    "no replicas": (compared(replicas=0), "replicas=0 to be a whole number >= 1"),
    "no seed": (compared(seed=None), "seed=None to be a whole number"),
    "no jobs": (compared(jobs=0), "jobs=0 to be a whole number >= 1"),
    "classes of agents": (compared(agents=[FADE]), r"to be a config, such as FADE\(\)"),
    "a running agent": (compared(agents=FADE().make(SPEC, Streams([0]))), "config, .*, not the"),
    "the same agent twice": (compared(agents=["fade", "fade"]), "every agent once: fade"),
    "numbers for names": (compared(agents={1: "fade"}), "words for names, got 1"),
    "a baseline's name": (compared(agents={"Uniform": FADE()}), "other than 'Uniform'"),
    "another family": (compared("ConvexBandit"), "FADE plays finitely many arms, got a Convex"),
    "no environment": (compared(None), "env=None to be an id .* or a class"),
    "a spec": (compared(OJPricing().spec), "to be an id .* or a class"),
    "a table of ratings": (lambda: read_ratings(pd.DataFrame({"a": [1]})), "path=.* to be a path"),
    "a table": (compared(pd.DataFrame({"a": [1]})), "Of a table of prices PricingFromLog"),
    "somebody else's id": (compared(CARTS), "reports no regret: wrap it in .*FromGymnasium"),
    "somebody else's environment": (compared(gym.make(CARTS)), "to be an id, a class, or a prob"),
    "an unknown argument": (compared(env_kwargs={"n_arms": 3}), "'n_arms' .did you mean n_acti"),
    "of a class, too": (compared(GLMBandit, env_kwargs={"n_arms": 3}), "'n_arms' .did you mean"),
    "arguments in a list": (compared(env_kwargs=["dim"]), "env_kwargs=.'dim'. to be a diction"),
    "a number in quotes": (compared(env_kwargs={"dim": "3"}), "dim='3' to be a whole number"),
    "a limit of steps": (
        compared(gym.make(OJ, max_episode_steps=3)),
        "in TimeLimit: say horizon=3",
    ),
    "a registered limit": (lambda: limited(4), "horizon=4 to be at most the max_episode_steps=3"),
    "no reward in time": (compared(env_kwargs={"delay": 9}), "delay=9 to be at most horizon=5"),
    "the horizon twice": (compared(env_kwargs={"horizon": 3}), "horizon by --horizon .horizon=."),
    "a guard misspelt": (compared(agents="guarded:fad"), "agent='fad' .did you mean fade"),
    "a guard of nobody": (compared(agents="guarded:"), "behind per-person:, guarded:, priced: and"),
    "two guards": (compared(agents="guarded:guarded:fade"), "once, in this order"),
    "a guard of an id": (lambda: Guard("fade"), "agent 'fade' to be a config"),
    "a guard of LinUCB": (compared(agents="guarded:linucb"), "one mechanism that is Gaussian"),
    "too short an audit": (lambda: audit("fade", "GLMBandit", runs=9), "runs=9 to be a whole num"),
    "an unknown view": (lambda: audit("fade", "GLMBandit", view="all"), "view='all' to be one of"),
    "one seed": (lambda: play("GLMBandit", "fade", 5), "seeds=5 to be several, such as range"),
    "a problem of gym": (lambda: gym.make(OJ, horizon=0), "horizon=0 to be"),
    "an argument of gym": (
        lambda: gym.make(OJ, n_arms=3),
        "OJPricing='n_arms' to be one of season",
    ),
    "a step before reset": (lambda: gym.make(OJ).unwrapped.step(0), r"call reset\(\) first"),
    "an arm too many": (stepped(99), r"actions in \[0, 12\), got 99"),
    "an arm that is a word": (stepped("a"), "Expected numbers as actions"),
    "no arm": (stepped(None), r"an action in Discrete\(12\), got None"),
    "options of reset": (
        lambda: gym.make(OJ).unwrapped.reset(options={"start": 1}),
        "options=.'start': 1. to be N",
    ),
    "options of several": (
        lambda: gym.make_vec(OJ, num_envs=2).reset(options={"start": 1}),
        "but 'reset_mask'",
    ),
    "options in a list": (lambda: gym.make_vec(OJ, num_envs=2).reset(options=[1]), "=.1. to be N"),
    "a seed of several": (lambda: gym.make_vec(OJ, num_envs=2).reset(seed=1.5), "=1.5 to be one"),
    "a lock in several processes": (
        compared(GLMBandit, {"mine": LOCKED}, jobs=2),
        "'mine' .*jobs=1",
    ),
    "a lock in a sweep": (
        lambda: run_sweep(LOCKED_SWEEP, "x", jobs=2),
        "'mine' on 'made up'.*jobs=1",
    ),
    "a lambda in an audit": (
        lambda: audit(NAMELESS, SPEC, runs=400, jobs=2),
        "Foreign to .*jobs=1",
    ),
    "an arm that is no number": (stepped(np.nan), "whole numbers as actions, got nan"),
    "another baseline's name": (compared(agents={"BestFixed": LinUCB()}), "a baseline has it"),
    "beside it": (compared(agents={"Uniform": LinUCB(), "u": AGENTS["uniform"]()}), "has it"),
    "a number of arguments": (compared(agents={}, env_kwargs=1), "dictionary whose keys are names"),
    "a relative module": (compared(".x:GLM", {}), "full name of its module"),
    "a stream and theta": (lambda: StreamingRegression(data="oj", theta=np.ones(5)), "has its own"),
    "a direction": (lambda: OnlineConvex(instance="p-lin", direction=np.ones(5)), "has its own"),
}
for wrong in ("", [], {}, None, False, np.array(0.2), np.array([0.2, 0.3]), pd.Series([0.2])):
    call = partial(gym.make, OJ, absent=wrong)
    PYTHON[f"absent={wrong!r}"] = call, r"absent=.* to be a number in \[0, 1\]"
for mistake, call in {
    "problem": compared(UNSPEAKABLE), "agent": compared(agents=UNSPEAKABLE),
    "horizon": compared(horizon=UNSPEAKABLE), "run": lambda: RESULTS.where(agent=UNSPEAKABLE),
    "name": lambda: RESULTS[UNSPEAKABLE], "log": logged(arms=UNSPEAKABLE),
    "path": lambda: Results.load(UNSPEAKABLE),
}.items():  # fmt: skip
    PYTHON[f"{mistake} without a repr"] = call, "a Unspeakable that cannot be shown"
for config in (LinUCB, None, b"linucb", 3):
    for use, call in {
        "certify": partial(certify, config, SPEC),
        "audit": partial(audit, config, SPEC, runs=400, progress=False),
        "compare": compared(agents={"a": config}),
    }.items():
        PYTHON[f"{use} of {config}"] = call, r"to be a config, such as LinUCB\("
NONSENSE = [
    lambda: LocalisedTOFW(shares=0.5), lambda: ConvexPricing(high="abc"),
    lambda: ConvexPricing(high=None), lambda: StreamingRegression(noise=1e300),
    lambda: StreamingRegression(level="abc"), lambda: StreamingRegression(digit=77),
    lambda: StreamingRegression(sparsity="x"), lambda: ConvexBandit(radius=1e200),
    lambda: ConvexBandit(rank="abc"),
    lambda: OnlineConvex(direction=np.ones(3)).reset(Streams([0])), lambda: DPPOFW(noise=""),
    lambda: DPPOFW(clip=0), lambda: DPPOFW(clip=False), lambda: DPHDBChoices(selection=""),
    lambda: DPHDBChoices(bound=0), lambda: DPTOFW(noise=""), lambda: DPTOFW(prefix_sums=0),
    lambda: BanditPFTAL(delta=""), lambda: BanditPFTAL(offset=1e300),
    lambda: PrivateBandit(delta=""), lambda: DPFTRL(noise="laplace", delta=""),
    lambda: GLMBandit(context_order=True), lambda: StreamingRegression(noise=251.0),
    lambda: ConvexBandit(adversary=Corners((1.0,)), gap="x"), lambda: NoisyOCO(delta=""),
]  # fmt: skip
"""Settings of the wrong kind or size: refused in a sentence that begins with Expected."""

NOTEBOOK = {
    "an agent that is not there": (lambda: RESULTS["fad"], "agent='fad' .did you mean fade"),
    "a number in brackets": (lambda: RESULTS[0], "agent=0 to be one of fade, Uniform"),
    "an unknown choice": (lambda: RESULTS.where(agents="fade"), "'agents' .did you mean agent"),
    "several agents": (lambda: RESULTS.where(agent=np.array(["fade", "a"])), "=array.* one word"),
    "a list of agents": (
        lambda: RESULTS.epsilon_for(1.0, agent=[True]),
        r"agent=\[True\] to be a private one of fade",
    ),
    "no such runs": (lambda: RESULTS.where(epsilon=7.0), "runs with .'epsilon': 7.0., found none"),
    "axes that are none": (lambda: RESULTS.plot(ax=3), "ax=3 to be Matplotlib axes"),
    "a path that is none": (lambda: RESULTS.plot(3), "path=3 to be a path, such as"),
    "a figure of another kind": (lambda: RESULTS.plot("x.gif"), "'.gif' .* one of .png, .svg"),
    "a path and axes": (lambda: RESULTS.plot("x.png", ax=3), "a path or ax, got both"),
    "no results": (lambda: Results.load("nowhere"), "path='nowhere' to hold results"),
    "a number for a folder": (lambda: Results.load(3), "path=3 to be a path"),
    "a folder that is a number": (lambda: RESULTS.save(3), "folder=3 to be a path"),
}

CLIENTS = {
    "a policy, not a function": (lambda: Foreign(policy=3), "policy=3 to be a function"),
    "a policy of one argument": (
        asked_of(Foreign(policy=lambda spec: 0)), r"take \(spec, seed\), it",
    ),
    "a policy of nothing": (asked_of(Foreign(policy=lambda spec, seed: None)), "policy, got None"),
    "a policy without act": (
        asked_of(Foreign(policy=lambda spec, seed: 0)), "policy returns to have",
    ),
    "a bandit of mabwiser": (lambda: mabwiser_policy(3), "make=3 .* lambda arms, seed: MAB"),
    "no bandit": (asked_of(mabwiser_policy(lambda arms, seed: 3)), "to return a MAB, got a int"),
    "a policy of river": (lambda: river_policy(3), "make=3 to be a function .* lambda seed"),
    "no policy": (asked_of(river_policy(lambda seed: None)), "to return a policy, got None"),
    "no regret": (lambda: FromGymnasium(CARTS), "one of oracle= .* and regret='info:KEY'"),
    "a made environment": (
        lambda: FromGymnasium(gym.make(CARTS), regret="info:r"), "lambda: gym.make",
    ),
    "a misspelt environment": (
        compared(FromGymnasium("CartPol-v1", regret="info:r", reward_range=(0, 1))),
        "Cannot make environment 'CartPol-v1'",
    ),
    "a player of a class": (seated(FADE, gym.make(CARTS)), r"to be a config, such as FADE\(\)"),
    "a player of an id": (seated(FADE(), CARTS), "='CartPole-v1' to be a Gymnasium environment"),
    "no bound": (
        seated("fade", gym.make(CARTS), context_bound=None), "a number > 0, a public bound",
    ),
    "no range of rewards": (logged(reward_range=None), "reward_range=None to be two finite num"),
    "a column that is not there": (logged(reward="clicks"), "a column 'clicks', the table has"),
    "a sale too few": (
        lambda: read_log(
            {"asked": [2.0, 3.0], "bought": [1]}, action="asked", sold="bought", prices=[2, 3],
            unit_cost=0.5,
        ), "column 'bought' to hold one entry for each of 2 rows",
    ),
    "an arm not on offer": (logged(arms=["a"]), "actions among arms=.'a'., got 'b'"),
}  # fmt: skip


@pytest.mark.parametrize("table", [PYTHON, NOTEBOOK, CLIENTS], ids=["all", "notebook", "clients"])
def test_in_python(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for mistake, (call, sentence) in table.items():
        with asserting(mistake):
            assert len(refused(sentence, call)) < 500
            assert not list(tmp_path.iterdir())


def test_nonsense():
    for make in NONSENSE:
        with asserting(inspect.getsource(make)):
            refused("^Expected ", make)


@pytest.mark.filterwarnings("error")
def test_numpy_s_numbers_are_settings():
    """Whole ones; and a float32, which cannot hold the largest setting it is compared with, an int8
    not its own size."""
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
    LinUCB(alpha=np.float32(0.5))
    BanditPFTAL(offset=np.float32(0.5))
    inside("x", np.int8(-128), -200, 200, ends=True)
    refused(r"np.float32\(nan\)", LinUCB, alpha=np.float32("nan"))
    for noise in (1e-300, 250.0):  # next to none, and the widest: uniform on [-room, room]
        square = HalfNormals(noise, 0.25).square
        assert square == pytest.approx(min(noise**2, 0.25**2 / 3), rel=1e-6)
        StreamingRegression(noise=noise, horizon=5).reset(Streams([0]))


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


CREATORS = [
    load_env_creator(entry.kwargs["problem"])
    for entry in gym.registry.values()
    if "problem" in entry.kwargs
]
SIZES = {"dim", "n_actions", "n_items", "taste", "rank", "goods", "horizon", "delay"}
SIZES &= {field.name for creator in CREATORS for field in fields(creator)}


@each("creator", CREATORS, ids=lambda creator: creator.__name__)
def test_environments_say_how_large_they_can_be(creator):
    """Every size of every environment, and with 400 digits every argument: a sentence at once."""
    needed = next(
        (given for name, given in ARGUMENTS.items() if f"/{creator.__name__}-" in name), {}
    )
    for field in fields(creator):
        if field.init and field.name in SIZES:
            for size in (10**10, 10**22):
                too_large = {**needed, field.name: size}
                refused(r"<= \d|at most|=None|agents|none of|only", creator, **too_large)
        if field.init and field.name not in ("prices", "n_actions"):
            huge = {**needed, field.name: 10**400}
            assert len(refused("Expected|Unknown|such|Cannot", creator, **huge)) < 500


@each(
    ("name", "setting", "value"), [
        ("fliphat", "iterations", 10**6), ("fliphat", "first_episode", 10**22),
        ("noisy-sgd", "steps", 10**22), ("potential-experts", "draws", 10**9),
        ("ball-experts", "reach", 1e-300), ("ball-experts", "epsilon", 5e-324),
        ("local-md", "epsilon", 1e-310), ("exponential-mechanism", "delta", 1e-310),
        ("binary-tree-experts", "c", 5e-324), ("binary-tree-experts", "beta", 5e-324),
    ],
)  # fmt: skip
def test_agents_say_what_is_too_many_and_too_small(name, setting, value):
    """Each ended in a traceback, for want of memory or digits."""
    refused(f"{setting}=", AGENTS[name], **{setting: value})


GRID = [{"id": "linucb", "grid": {f"x{number}": list(range(10)) for number in range(30)}}]
"""A plan that would never end."""


@each(
    ("ask", "sentence"),
    [
        (lambda n: compare("GLMBandit", {}, horizon=n), "horizon=.* <= 1000000000"),
        (lambda n: compare("GLMBandit", {}, replicas=n), "replicas=.* <= 100000"),
        (lambda n: audit(LinUCB(), GLMBandit().spec, runs=n), "runs=.* <= 10000000"),
        (lambda n: audit(LinUCB(), GLMBandit().spec, jobs=n), "jobs=.* <= 1024"),
        (lambda n: gym.make_vec("dpbandit/GLMBandit-v0", num_envs=n), "num_envs=.* <= 100000"),
        (lambda n: run_sweep(Sweep.of(TINY), "x", jobs=n), "jobs=.* <= 1024"),
        (lambda n: Sweep.of({**TINY, "replicas": n}), "replicas=.* 100000"),
        (lambda n: Sweep.of({**TINY, "audit": {"runs": n}}), "audit.runs=.* 10000000"),
        (
            lambda n: plan(Sweep.of({**TINY, "agents": GRID})),
            "at most 100,000 combinations of .*12",
        ),
    ],
)
def test_numbers_of_runs_have_bounds(ask, sentence):
    for number in (10**9 + 1, 10**400):
        assert len(refused(f"{sentence}|at most 1e.50", ask, number)) < 300
