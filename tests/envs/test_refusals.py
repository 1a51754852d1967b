"""What environments refuse, in one sentence that names the argument, or says what is written here.

Tables and logs of one's own that cannot be used are refused in the tests of what reads them.
"""

import numpy as np
import pytest

from dpbandit.base import InputError, Streams
from dpbandit.envs import (
    ApplePricing,
    Arms,
    AssortmentBandit,
    CameraOffer,
    CameraPricing,
    ClassificationBandit,
    ConvexBandit,
    ConvexPricing,
    Experts,
    GLMBandit,
    Minority,
    OJContinuousPricing,
    OJPricing,
    RatingsBandit,
    RatingsLists,
    Recommendation,
    ReferencePricing,
    ReturningPricing,
    ReturningUsers,
    StockPricing,
    StreamingRegression,
    SyntheticPricing,
    TwoArms,
    TwoPhase,
)
from dpbandit.envs.adapters import make_problem
from tests.each import asserting
from tests.envs.contextual.ratings_files import example

ARRAY = np.random.default_rng(7).random((60, 3))
NO_TIDES = [{"season": (1, 0)}, {"drift": (0, 1)}, {"drift": 3}, {"shock": (1.5, 1)}]
NO_NUMBERS = ("abc", float("nan"), -2.0, None)
NEEDED = {
    RatingsBandit: {"path": example()},
    RatingsLists: {"path": example(), "n_items": 20, "length": 3},
    ReturningUsers: {"people": 6, "visits": 4, "horizon": 24, "n_actions": 3, "dim": 2},
}
REFUSED = {
    ApplePricing: [{"unit_cost": cost} for cost in (-0.1, 0.59, 2.0, float("nan"))],
    Arms: [
        ({"means": [0.5]}, r"means=\[0.5\].*at least 2 arms"), {"means": [0.5, 1.2]},
        {"means": [0.5, float("nan")]}, ({"means": "tow"}, "did you mean two"),
        ({"means": "0.5,0.4"}, r"such as \[0.6, 0.4\], or one of two"),
        ({"resample": True}, "resample=True with a table="), {"law": "normal"},
        ({"law": "table"}, "both or neither"),
        ({"law": "table", "table": [[0.5], [0.5]]}, "K >= 2 arms"),
        ({"law": "table", "table": [0.5, 0.5]}, "to be .T, K."),
        ({"law": "table", "table": "nowhere.csv"}, "nowhere"),
        ({"law": "table", "table": [[0.5, 0.5]], "horizon": 3}, "horizon=3"),
        {"drift": "fast"}, ({"drift": "walk", "adversary": "switching"}, "one of"),
        {"adversary": "cunning"}, {"blocks": 1},
    ],
    AssortmentBandit: NO_TIDES,
    CameraOffer: NO_TIDES,
    CameraPricing: [
        ({"unit_cost": 0.9}, "unit_cost=0.9"), {"unit_cost": float("nan")},
        *({"tasks": tasks} for tasks in (0, 6, 2.5, "4", [4])),
        ({"contexts": "age"}, "contexts='age'"),
        ({"attributes": "sony"}, "attributes='sony'"), ({"attributes": None}, "attributes=None"),
        ({"attributes": ("sony", "lens")}, "attribute='lens'"),
        ({"attributes": ("zoom",)}, "one brand"), ({"attributes": ("sony", "canon")}, "one brand"),
    ],
    ClassificationBandit: [
        {"data": "cats"}, {"pool": 3}, {"pool": True}, {"pool": 1.0}, {"horizon": 0},
    ],
    ConvexBandit: [
        ({"loss": "lineer"}, "linear"), ({"domain": "bal"}, "ball"), ({"adversary": "idd"}, "iid"),
        ({"instance": "p-line"}, "p-lin"), {"gap": 1.5}, {"size": 2}, {"switches": -1},
        {"turns": "x"}, {"horizon": 0}, {"delay": -1}, {"dim": 0}, {"radius": 0},
        ({"direction": "second"}, "first"), {"direction": (1.0,)}, {"direction": 0},
        {"direction": 6}, {"direction": True}, {"direction": 1.0}, {"direction": (0.0,) * 5},
        {"direction": (1.0,) * 5, "domain": "simplex"}, {"gap": 0.7, "instance": "p-lin"},
        {"dim": 4, "instance": "experts"}, ({"loss": "experts"}, "simplex"),
        {"rank": 9, "domain": "hypersimplex"}, ({"adversary": 7}, "iid"),
        ({"loss": "offset-quadratic", "adversary": "drift"}, "drift"),
        {"feedback": "datum"},  # which the class fixes
    ],
    ConvexPricing: [
        {"goods": 0}, {"goods": 13}, {"low": 2.0}, {"unit_cost": 1.0}, {"demand": 1.0},
        {"spread": 1.2}, {"own_effect": 0.0}, ({"cross_effect": 0.5}, "positive definite 3 x 3"),
        {"common": 2}, {"feedback": "both"},
        {"high": float("inf")}, {"horizon": 0}, {"variety": -1}, ({"retention": 0}, "retention=0"),
    ],
    Experts: [
        ({"kind": "bernouli"}, "did you mean bernoulli"),
        ({"n_actions": 0}, "n_actions=0 to be a whole number >= 1"),
        ({"best_loss": 0.6}, r"best_loss=0.6 <= other_loss=0.5"),
        ({"best_loss": -0.1}, r"best_loss=-0.1 to be a number in \[0, 1\]"),
        ({"kind": "small-loss", "other_loss": 0.7}, r"other_loss=0.7 to be a number in \[0, 0.5\]"),
        ({"kind": "halving", "n_actions": 12}, "n_actions=12 to be a power of 2"),
        ({"kind": "counterexample", "n_actions": 3}, "n_actions=3 to be 2"),
        ({"kind": "lower-bound", "epsilon": 1e-3, "horizon": 9}, "horizon=9 to hold the tail"),
        ({"kind": "lower-bound", "tail": 0}, "tail=0 to be a whole number >= 1"),
        ({"switches": -1}, "switches=-1 to be a whole number >= 0"),
        ({"kind": "table"}, "both or neither"), ({"table": [[0.0]]}, "both or neither"),
        ({"kind": "table", "table": ARRAY}, "horizon=10000 <= 60, the table's rows"),
        ({"kind": "table", "table": [[0.1, 1.5]]}, "got 1.5 of expert 1 in round 1 of table"),
        ({"kind": "table", "table": [[0.1], [np.nan]]}, "got nan of expert 0 in round 2"),
        ({"kind": "table", "table": [0.1, 0.2]}, r"shape \(2,\) to be \(T, d\)"),
        ({"kind": "table", "table": [["a"]]}, "to be rows of numbers"),
        ({"kind": "table", "table": ARRAY * 1j}, "to be rows of numbers"),
        ({"kind": "table", "table": [[10**400, 0]]}, "to be rows of numbers"),
        ({"kind": "table", "table": ARRAY.astype("m8[D]")}, "to be rows of numbers"),
        ({"kind": "table", "table": "nowhere.csv"}, "table='nowhere.csv' to be rows of numbers"),
        ({"kind": "table", "table": ARRAY, "n_actions": 4, "horizon": 9}, "n_actions=4 to be 3"),
        ({"shared_table": 1}, "shared_table=1 to be true or false"),
    ],
    GLMBandit: [
        *({name: value} for name in ("n_actions", "dim", "horizon", "sparsity", "cap", "delay")
          for value in ("two", 2.5, -1, None)),
        *(({name: value}, f"{name}|reward_low") for name in ("signal", "noise")
          for value in NO_NUMBERS),
        *({name: value} for name in ("correlation", "drift_rate") for value in NO_NUMBERS),
        {"correlation": 1.5}, {"context_order": 3}, {"context_order": "two"}, {"shared": "maybe"},
        {"contexts": "spheres"}, {"parameters": "dens"}, {"link": "logit"}, {"drift": "jump"},
        {"drift": "walk", "parameters": "sparse-draws"}, {"noise_law": "normal"},
        {"drift_every": 0}, {"n_actions": 1}, ({"noise": float("inf")}, "noise|reward_low"),
    ],
    Minority: [({"share": -1}, "Expected share=")],
    OJContinuousPricing: NO_TIDES,
    OJPricing: NO_TIDES,
    RatingsBandit: [
        ({"path": None}, "none is shipped"),
        ({"path": "no/such.csv"}, "Cannot read ratings from path='no/such.csv': No such file"),
        ({"path": "."}, "Cannot read ratings"),
        ({"path": "a\0b"}, "Cannot read ratings from path="),
        ({"path": 3}, "path=3 to be the name of a file"), ({"low": "a"}, "low='a'"),
        ({"high": np.inf}, "high=inf"), ({"n_actions": 31}, "n_actions=31 <= 30"),
        {"n_actions": 1}, ({"rank": 30}, "rank=30 below"), {"ridge": 0},
        ({"low": 5.0}, "high - low"), ({"high": 4.0}, "rating from low=0.5 to high=4 in line"),
    ],
    RatingsLists: [
        ({"path": None}, "none is shipped"), ({"n_items": 31}, "n_items=31 <= 30"),
        ({"length": 20}, "length=20"), ({"click_rate": 1.5}, "click_rate=1.5"),
        ({"clicks": "all"}, "clicks='all'"), ({"high": "a"}, "high='a'"),
    ],
    Recommendation: [
        *({"n_items": value} for value in (5, "many", 20.5)),
        *({"base_rate": value} for value in (0, 1, -0.1, float("nan"), "abc")),
        *({"appeal": value} for value in (0, -1.0, float("nan"), float("inf"), "abc")),
        *({"taste": value} for value in (0, 1.5, "abc")), {"n_actions": 1}, {"n_actions": "two"},
    ],
    ReferencePricing: [
        ({"reference": "old"}, "reference='old'"), ({"memory": 2}, "memory=2"), {"weight": -1},
    ],
    ReturningPricing: [
        ({"cost": 5.0}, "cost=5.0"), ({"survey_spread": 0.0}, "survey_spread=0.0"),
        ({"survey_shift": np.inf}, "survey_shift=inf"),
        ({"horizon": 20_001}, "people . visits = 20000"),
    ],
    ReturningUsers: [
        ({"horizon": 25}, "horizon=25 to be at most people . visits = 24"),
        ({"arrivals": "always"}, "arrivals='always'"), ({"people": 0}, "people=0"),
        ({"visits": 0}, "visits=0"), ({"visits": 10**9}, "to be at most 100000000, of which"),
        ({"empty": 2.0}, "empty=2.0"), ({"tastes": -1.0}, "tastes=-1.0"),
        ({"link": "probit"}, "link='probit'"),
    ],
    StockPricing: [
        ({"stock": 0}, "stock=0"), ({"stock": 2.5}, "stock=2.5"),
        ({"oversold": "sorry"}, "oversold='sorry'"), ({"order_cost": -1}, "order_cost=-1"),
    ],
    StreamingRegression: [
        ({"family": "liner"}, "linear"), ({"p": 0.5}, "p="), ({"p": "two"}, "p="), {"dim": 0},
        {"radius": -1}, {"bound": 0.0}, {"bound": 0.9}, {"level": 1.0, "family": "quantile"},
        ({"theta": "dens"}, "dense"), {"theta": (1.0,)}, {"theta": (2.0, 2.0, 0.0, 0.0, 0.0)},
        {"theta": (np.nan, *[0.0] * 4)}, {"sparsity": 6, "theta": "sparse"}, {"norm": 2.5},
        {"noise": -1.0}, {"contamination": 0.6},
        {"noise": 0.0, "family": "quantile"}, ({"outliers": "flop"}, "flip"),
        ({"data": "juice"}, "oj"), {"horizon": 0}, {"dim": 3, "data": "oj"}, {"delay": -1},
        {"contamination": 0.1, "data": "oj"}, {"digit": 11, "data": "digits"},
    ],
    SyntheticPricing: [({"slope": 0}, "slope=0")],
    TwoArms: [({"gap": 0.9}, "Expected gap=")],
    TwoPhase: [({"change": 1.5}, "Expected change=")],
}  # fmt: skip
"""Arguments, or they and what is said."""


def started(environment, arguments):
    make_problem(environment, **arguments).reset(Streams([0]))


@pytest.mark.parametrize("environment", REFUSED, ids=lambda environment: environment.__name__)
def test_wrong_arguments(environment):
    for row in REFUSED[environment]:
        wrong, says = row if isinstance(row, tuple) else (row, next(iter(row)))
        with asserting(wrong), pytest.raises(InputError, match=says):
            started(environment, {**NEEDED.get(environment, {}), **wrong})
