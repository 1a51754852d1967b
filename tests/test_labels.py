"""Series and DataFrames are read by their labels, at every door, or refused: never by position."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from gymnasium import spaces

from dpbandit import Prior
from dpbandit.agents import LinUCB
from dpbandit.clients import FromGymnasium, Player, read_lists, read_log, read_prices
from dpbandit.envs import (
    AssortmentFromLog,
    ClassificationBandit,
    PricingFromLog,
    RecommendationFromLog,
)
from dpbandit.offline import (
    ListLaw,
    Logged,
    LoggedLists,
    LoggedPrices,
    Observed,
    TypeLaw,
    assess,
    evaluate,
)
from dpbandit.specs import ContextualSpec, PriceSpec
from tests.each import asserting, refused
from tests.envs.contextual.logs import CLICKS, DRINKS, SHOP, clicks, drinks, shop

N = 90
RNG = np.random.default_rng(0)
ARM, REWARD, X = RNG.integers(0, 2, N), RNG.random(N), RNG.uniform(-1, 1, (N, 2))
LAW = np.column_stack([0.5 + 0.4 * X[:, 0], 0.5 - 0.4 * X[:, 0]])
SPEC = ContextualSpec(n_actions=2, dim=2, horizon=1, context_bound=2.0, reward_low=0.0)
PRICES = PriceSpec(dim=2, low=1.0, high=3.0, horizon=1, context_bound=2.0, reward_low=0.0)
ITEMS = np.argsort(RNG.random((N, 3)), axis=1)[:, :2]


class Given:
    """Wraps what a door is given: what it reads first as it is, all else with other labels."""

    def __init__(self, how):
        self._how = how

    def __call__(self, values, columns=None, *, first=False):
        values = np.asarray(values)
        if self._how == "arrays":
            return values
        rows = [f"row {i}" for i in range(len(values))]
        made = pd.Series(values, rows) if values.ndim == 1 else pd.DataFrame(values, rows, columns)
        if columns and self._how == "reordered":
            made = made[columns[::-1]]
        if columns and self._how == "misnamed":
            made = made.rename(columns={columns[0]: "another"})
        if first or self._how == "misnamed":
            return made
        if self._how == "unknown":
            made.index = [f"another {row}" for row in rows]
        return made.reset_index(drop=True) if self._how == "counted" else made.iloc[::-1]

    def table(self, frame, first):
        """A mapping of columns."""
        return {name: self(frame[name], first=name == first) for name in frame}


def logged(given, kind=Logged, **more):
    rows = {"context": given(X), "action": given(ARM, first=True), "reward": given(REWARD)}
    chances = {"propensity": given(np.full(N, 0.5))} if kind is Logged else {}
    return kind(**{"spec": SPEC, "arms": ("a", "b")} | rows | chances | more)


def prices(given):
    rows = {"context": given(X), "price": given(1 + ARM, first=True), "reward": given(REWARD)}
    return LoggedPrices(spec=PRICES, **rows, density=given(np.full(N, 0.5)))


def lists(given):
    rows = {"clicks": given(ITEMS % 2), "prefix": given(np.tile([0.5, 0.25], (N, 1)))}
    return LoggedLists(n_items=3, items=given(ITEMS, first=True), context=given(X), **rows)


def estimates(given, log, policy, names=None, **more):
    return evaluate(policy, log, names, intervals="betting", **more)["estimate"].to_numpy()


def of_arms(given):
    law, q = given(LAW, ["a", "b"]), given(LAW / 2, ["a", "b"])
    return estimates(given, logged(given), law, ["ips", "dr"], q=q, q_is_honest=True)


def of_features(given):
    law, which = given(LAW, ["a", "b"]), given(1 - ARM)
    feature_law = np.eye(2)[::-1]
    if not isinstance(law, np.ndarray):
        feature_law = pd.DataFrame(feature_law, ["a", "b"])[[1, 0]].iloc[::-1]
    more = {"features": which, "feature_law": feature_law}
    log = logged(given, probabilities=given(np.full((N, 2), 0.5), ["a", "b"]))
    return estimates(given, log, law, "mips", **more)


def of_types(given):
    law, log = given(LAW, ["a", "b"]), logged(given)
    types = TypeLaw(given(ARM), np.full((N, 2, 2), 0.5), given(np.eye(2), ["a", "b"]))
    return evaluate(law, log, "dr", intervals="weighted", law=types)["estimate"].to_numpy()


def of_lists(given):
    law = ListLaw(given(np.tile([0.6, 0.2], (N, 1))), given(np.tile([0.6, 0.3], (N, 1))))
    log, fixed = lists(given), given(ITEMS[::-1])
    return [estimates(given, log, policy, "ips") for policy in (law, fixed)]


def of_examples(given):
    examples = given(X, ["u", "v"], first=True)
    ends = {"low": np.array([-1.0, -2.0]), "high": np.array([1.0, 2.0])}
    if not isinstance(examples, np.ndarray):
        ends = {name: pd.Series(end, ["u", "v"]).iloc[::-1] for name, end in ends.items()}
    problem = ClassificationBandit(features=examples, labels=given(ARM), **ends)
    return np.sort(problem._examples, axis=1), problem._class


class World(gym.Env):
    """Two features, and two arms with means in the other order."""

    observation_space, action_space = spaces.Box(-1, 1, (2,)), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2), {}

    def step(self, action):
        return np.zeros(2), 0.5, False, False, {}


def of_a_prior(given):
    mean, spread = given(X[0], first=True), given(np.array([[2.0, 0.5], [0.5, 1.0]]))
    if not isinstance(mean, np.ndarray):
        spread.columns = ["row 0", "row 1"]
    prior = Prior(mean, spread[["row 1", "row 0"]] if given._how == "reordered" else spread)
    return prior.mean, prior.covariance


def of_a_player(given):
    player = Player(LinUCB(), World(), horizon=9, reward_range=(0, 1), context_bound=2.0)
    return [player._bridge.numbers(given(X[0], first=k == 0)) for k in range(2)]


def of_an_oracle(given):
    means = given([0.2, 0.8])
    if not isinstance(means, np.ndarray):
        means.index = [int(label[-1]) for label in means.index]
    maker = FromGymnasium(World, oracle=lambda env: 0, reward_range=(0, 1), context_bound=1.0)
    return maker(horizon=3)._means(means)


def read(given, reader, frame, **columns):
    log = reader(given.table(frame, next(iter(frame))), **columns)
    return log.context, log.reward


TABLE = pd.DataFrame({"arm": ARM, "reward": REWARD, "age": X[:, 0], "chance": np.full(N, 0.5)})
PAGES = pd.DataFrame(
    {"top": ITEMS[:, 0], "next": ITEMS[:, 1], "c": ARM, "d": 1 - ARM, "x": X[:, 0]}
)
PAGES["p"], PAGES["q"] = 0.5, 0.25
BOUNDS = {"reward_range": (0, 1), "context": {"age": (-1, 1)}}
LISTED = {"items": ["top", "next"], "clicks": ["c", "d"], "prefix": ["p", "q"]}
FITTED = (
    (PricingFromLog, shop(1000), SHOP, "sold"),
    (AssortmentFromLog, drinks(1000), DRINKS, "bought"),
    (RecommendationFromLog, clicks(1000), CLICKS, "click"),
)


def fitted(given, kind, frame, how, first):
    return str(kind(given.table(frame, first), **how).diagnostics)


DOORS = {
    "read_log": lambda g: read(g, read_log, TABLE, action="arm", reward="reward", **BOUNDS),
    "read_prices": lambda g: read(
        g, read_prices, TABLE.assign(arm=1 + ARM), price="arm", reward="reward", density="chance",
        price_range=(1, 3), **BOUNDS,
    ),
    "read_lists": lambda g: read(g, read_lists, PAGES, n_items=3, **LISTED, context={"x": (-1, 1)}),
    "Logged": lambda g: vars(logged(g, probabilities=g(np.full((N, 2), 0.5), ["a", "b"]))),
    "Observed": lambda g: vars(logged(g, Observed)), "LoggedPrices": lambda g: vars(prices(g)),
    "LoggedLists": lambda g: vars(lists(g)), "arms": of_arms, "features": of_features,
    "types": of_types, "lists": of_lists, "examples": of_examples, "player": of_a_player,
    "price policy": lambda g: estimates(g, prices(g), g(2 + X[:, 0]), "ips", bandwidth=0.5),
    "assess": lambda g: assess(g(LAW, ["a", "b"]), logged(g, Observed)).dm,
    "oracle": of_an_oracle, "prior": of_a_prior,
}  # fmt: skip
DOORS |= {kind.__name__: lambda g, row=row: fitted(g, *row) for row in FITTED for kind in row[:1]}
NAMED = ("Logged", "arms", "features", "types", "assess", "examples")
"""Doors of DataFrames whose columns have names."""


def digest(found):
    """All numbers and words in it, without labels."""
    if isinstance(found, dict):
        kept = {name: value for name, value in found.items() if name not in ("spec", "index")}
        return [digest(value) for value in kept.values()]
    return [digest(part) for part in found] if isinstance(found, list | tuple) else str(found)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("door", DOORS)
def test_labels_decide_or_are_refused(door):
    """Rows and columns in another order are the same, bit for bit; of other labels, and of rows
    that pandas numbered itself beside some that have names, one sentence."""
    call = DOORS[door]
    with asserting(door):
        wanted = digest(call(Given("arrays")))
        assert digest(call(Given("reordered"))) == wanted
        for how in ("unknown", "counted") if door != "oracle" else ():
            refused("to have the index of|rename them", call, Given(how))
        if door in NAMED:
            refused("'another'.* rename them, or .to_numpy", call, Given("misnamed"))


class Polars:
    """A stand-in for a DataFrame of polars, which tests do not need to be installed."""

    def __init__(self, values, columns):
        self._values, self.columns = values, columns

    def __getitem__(self, key):
        return Polars(self._values[key], [self.columns[place] for place in key[1]])

    def __array__(self, dtype=None, copy=None):
        return self._values


class Lazy:
    """A stand-in for a query of polars."""

    columns = ("arm",)


def test_polars_has_names_and_no_index(monkeypatch):
    """Numbers as names are those of arms, text or not, as every name there is text; a query that
    was not run is no table."""
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(DataFrame=Polars, LazyFrame=Lazy))
    log = logged(Given("arrays"))
    wanted = evaluate(LAW, log, "ips", intervals="betting")
    for names, numbered in ((["b", "a"], log), (["1", "0"], replace(log, arms=None))):
        law = Polars(LAW[:, ::-1], names)
        assert evaluate(law, numbered, "ips", intervals="betting").equals(wanted)
    refused("rename them", evaluate, Polars(LAW, ["column_0", "column_1"]), log)
    refused(r"a LazyFrame: collect\(\) it first", read_log, Lazy(), action="arm")


def test_a_part_of_a_log_has_a_part_of_its_index():
    """And where nothing has one, rows are numbered in each log; a method's answer is in order."""
    log, law = (
        logged(Given("reordered")),
        pd.DataFrame(LAW, [f"row {i}" for i in range(N)], list("ab")),
    )
    half = evaluate(law[45:][::-1], log[45:], "ips", intervals="betting")
    assert half.equals(evaluate(LAW[45:], log[45:], "ips", intervals="betting"))
    answers = SimpleNamespace(
        probabilities=lambda context: pd.DataFrame(LAW[45:], columns=list("ab"))
    )
    assert half.equals(evaluate(answers, log[45:], "ips", intervals="betting"))
    plain = logged(Given("arrays"))[45:]
    assert half.equals(evaluate(law[45:].reset_index(drop=True), plain, "ips", intervals="betting"))
    refused("index of the log, got 'row 45' beside 0", evaluate, law[45:], plain)
    refused("as many rewards as the index has rows, 90, got 1", replace, log, reward=[1.0])
    refused("to name n_actions=2 arms", logged, Given("arrays"), arms=("a",))
