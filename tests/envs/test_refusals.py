"""Errors of environments are one sentence, which names the argument or has the text here."""

import numpy as np
import pandas as pd
import pytest

from dpbandit import envs
from dpbandit.base import Streams
from dpbandit.envs.adapters import make_problem
from tests.each import asserting, refused
from tests.envs.contextual.logs import CLICKS, DRINKS, SHOP, clicks, drinks, shop
from tests.envs.contextual.ratings_files import example

ARRAY = np.random.default_rng(7).random((60, 3))
NO_TIDES = [{"season": (1, 0)}, {"drift": (0, 1)}, {"drift": 3}, {"shock": (1.5, 1)}]
NO_NUMBERS = ("abc", float("nan"), -2.0, None)
NEEDED = {
    "AssortmentFromLog": {"frame": drinks(), **DRINKS},
    "ClassificationBandit of one's own": {
        "features": [[0, 10], [5, 0], [10, 10], [0, 10]],
        "labels": ["b", "a", "c", "b"],
        "low": 0,
        "high": 10,
    },
    "PricingFromLog": {"frame": shop(n=250).assign(sold=7), **SHOP},
    "RecommendationFromLog": {"frame": clicks(n=900), **CLICKS},
    "RatingsBandit": {"path": example()},
    "RatingsLists": {"path": example(), "n_items": 20, "length": 3},
    "ReturningUsers": {"people": 6, "visits": 4, "horizon": 24, "n_actions": 3, "dim": 2},
}
REFUSED = {
    "ApplePricing": [{"unit_cost": cost} for cost in (-0.1, 0.59, 2.0, float("nan"))],
    "Arms": [
        ({"means": [0.5]}, r"means=\[0.5\].*at least 2 arms"), {"means": [0.5, 1.2]},
        {"means": [0.5, float("nan")]}, ({"means": "tow"}, "did you mean two"),
        ({"means": "0.5,0.4"}, r"such as \[0.6, 0.4\], or one of two"),
        ({"resample": True}, "resample=True with a table="), {"law": "normal"},
        ({"law": "table"}, "both or neither"),
        ({"law": "table", "table": [[0.5], [0.5]]}, "K >= 2 arms"),
        ({"law": "table", "table": [0.5, 0.5]}, "to be .T, K."),
        ({"law": "table", "table": "nowhere.csv"}, "nowhere"),
        ({"reward_range": (0, 15)}, r"reward_range=\(0, 15\) with a table= alone"),
        ({"law": "table", "table": [[0, 1]], "reward_range": (1, 1)}, "low < high"),
        ({"law": "table", "table": [[0.5, 0.5]], "horizon": 3}, "horizon=3"),
        {"drift": "fast"}, ({"drift": "walk", "adversary": "switching"}, "one of"),
        {"adversary": "cunning"}, {"blocks": 1},
    ],
    "AssortmentBandit": NO_TIDES,
    "CameraOffer": NO_TIDES,
    "CameraPricing": [
        ({"unit_cost": 0.9}, "unit_cost=0.9"), {"unit_cost": float("nan")},
        *({"tasks": tasks} for tasks in (0, 6, 2.5, "4", [4])),
        ({"contexts": "age"}, "contexts='age'"),
        ({"attributes": "sony"}, "attributes='sony'"), ({"attributes": None}, "attributes=None"),
        ({"attributes": ("sony", "lens")}, "attribute='lens'"),
        ({"attributes": ("zoom",)}, "one brand"), ({"attributes": ("sony", "canon")}, "one brand"),
    ],
    "ClassificationBandit": [
        {"data": "cats"}, {"pool": 3}, {"pool": True}, {"pool": 1.0}, {"horizon": 0},
    ],
    "ConvexBandit": [
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
    "ConvexPricing": [
        {"goods": 0}, {"goods": 13}, {"low": 2.0}, {"unit_cost": 1.0}, {"demand": 1.0},
        {"spread": 1.2}, {"own_effect": 0.0}, ({"cross_effect": 0.5}, "positive definite 3 x 3"),
        {"common": 2}, {"feedback": "both"},
        {"high": float("inf")}, {"horizon": 0}, {"variety": -1}, ({"retention": 0}, "retention=0"),
    ],
    "Experts": [
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
        ({"kind": "table", "table": "nowhere.csv"}, "Cannot read nowhere.csv: No such file"),
        ({"kind": "table", "table": ARRAY, "n_actions": 4, "horizon": 9}, "n_actions=4 to be 3"),
        ({"shared_table": 1}, "shared_table=1 to be true or false"),
    ],
    "GLMBandit": [
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
    "Minority": [({"share": -1}, "Expected share=")],
    "OJContinuousPricing": NO_TIDES,
    "OJPricing": NO_TIDES,
    "RatingsBandit": [
        ({"path": None}, "none is shipped"),
        ({"path": "no/such.csv"}, "Cannot read ratings from path='no/such.csv': No such file"),
        ({"path": "."}, "Cannot read ratings"),
        ({"path": "a\0b"}, "Cannot read ratings from path="),
        ({"path": 3}, "path=3 to be the name of a file"), ({"low": "a"}, "low='a'"),
        ({"high": np.inf}, "high=inf"), ({"n_actions": 31}, "n_actions=31 <= 30"),
        {"n_actions": 1}, ({"rank": 30}, "rank=30 below"), {"ridge": 0},
        ({"low": 5.0}, "high - low"), ({"high": 4.0}, "rating from low=0.5 to high=4 in line"),
    ],
    "RatingsLists": [
        ({"path": None}, "none is shipped"), ({"n_items": 31}, "n_items=31 <= 30"),
        ({"length": 20}, "length=20"), ({"click_rate": 1.5}, "click_rate=1.5"),
        ({"clicks": "all"}, "clicks='all'"), ({"high": "a"}, "high='a'"),
    ],
    "Recommendation": [
        *({"n_items": value} for value in (5, "many", 20.5)),
        *({"base_rate": value} for value in (0, 1, -0.1, float("nan"), "abc")),
        *({"appeal": value} for value in (0, -1.0, float("nan"), float("inf"), "abc")),
        *({"taste": value} for value in (0, 1.5, "abc")), {"n_actions": 1}, {"n_actions": "two"},
    ],
    "ReferencePricing": [
        ({"reference": "old"}, "reference='old'"), ({"memory": 2}, "memory=2"), {"weight": -1},
    ],
    "ReturningPricing": [
        ({"cost": 5.0}, "cost=5.0"), ({"survey_spread": 0.0}, "survey_spread=0.0"),
        ({"survey_shift": np.inf}, "survey_shift=inf"),
        ({"horizon": 20_001}, "people . visits = 20000"),
    ],
    "ReturningUsers": [
        ({"horizon": 25}, "horizon=25 to be at most people . visits = 24"),
        ({"arrivals": "always"}, "arrivals='always'"), ({"people": 0}, "people=0"),
        ({"visits": 0}, "visits=0"), ({"visits": 10**9}, "to be at most 100000000, of which"),
        ({"empty": 2.0}, "empty=2.0"), ({"tastes": -1.0}, "tastes=-1.0"),
        ({"link": "probit"}, "link='probit'"),
    ],
    "StockPricing": [
        ({"stock": 0}, "stock=0"), ({"stock": 2.5}, "stock=2.5"),
        ({"oversold": "sorry"}, "oversold='sorry'"), ({"order_cost": -1}, "order_cost=-1"),
    ],
    "StreamingRegression": [
        ({"family": "liner"}, "linear"), ({"p": 0.5}, "p="), ({"p": "two"}, "p="), {"dim": 0},
        {"radius": -1}, {"bound": 0.0}, {"bound": 0.9}, {"level": 1.0, "family": "quantile"},
        ({"theta": "dens"}, "dense"), {"theta": (1.0,)}, {"theta": (2.0, 2.0, 0.0, 0.0, 0.0)},
        {"theta": (np.nan, *[0.0] * 4)}, {"sparsity": 6, "theta": "sparse"}, {"norm": 2.5},
        {"noise": -1.0}, {"contamination": 0.6}, {"noise": 0.0, "family": "quantile"},
        ({"outliers": "flop"}, "flip"), ({"data": "juice"}, "oj"), {"horizon": 0}, {"delay": -1},
        {"dim": 3, "data": "oj"}, {"contamination": 0.1, "data": "oj"},
        {"digit": 11, "data": "digits"},
    ],
    "SyntheticPricing": [({"slope": 0}, "slope=0")],
    "TwoArms": [({"gap": 0.9}, "Expected gap=")],
    "TwoPhase": [({"change": 1.5}, "Expected change=")],
}  # fmt: skip
"""Arguments, or they and what is said."""

FEW = shop(n=250)
TOLD = drinks()
SEEN = clicks(n=900)
SHOWN = ["games"] * 20 + ["news", "news", "sport", "sport"] * 220
CLICKED = [0] * 20 + [0, 1] * 440


class Lying(dict):
    """Table that claims to have every column."""

    def __contains__(self, name):
        return True

    def __getitem__(self, name):
        return [1] * 250 if name == "price" else super().__getitem__(name if name != "sold" else 0)


OWN = {
    "AssortmentFromLog": [
        ({"products": None}, "products="), ({"products": {"cola": "cola"}}, "column 'cola'"),
        ({"products": {"none": "price_cola"}}, "different names"),
        ({"price_range": None}, "price_range="),
        ({"price_range": (1.5, 3.0)}, r"every price in price_range=\(1.5, 3\)"),
        ({"unit_cost": None}, "unit_cost="), ({"unit_cost": {"cola": 1}}, "a cost for each"),
        ({"features": None}, "features="),
        *(
            ({"frame": frame}, says)
            for frame, says in (
                (drinks(100), "at least 200 rows"),
                (drinks(slope=1.5), "rises in this log"),
                (drinks(slope=0.0), "differ significantly|rises"),
                (TOLD.assign(bought="tea"), "one of"),
                (TOLD.assign(bought="cola"), "was shown"),
                (TOLD.assign(bought="none"), "'cola' to be taken in at least 10 visits"),
                (TOLD.assign(bought=pd.NA), "'cola' to be taken in at least 10 visits"),
                (TOLD.assign(price_cola="much"), "hold prices"),
                (TOLD.assign(price_cola=b"1"), "hold prices, .* got b'1'"),
                (TOLD.assign(price_cola=pd.Timestamp("2020-01-01")), "prices, .* got Timestamp"),
                ({**TOLD, "price_cola": [2.0]}, "'price_cola' to hold one entry for each of"),
                (TOLD.assign(price_cola=np.inf), "finite prices"),
                (TOLD.assign(**dict.fromkeys(DRINKS["products"].values(), 2.0)), "than one price"),
            )
        ),
    ],
    "ClassificationBandit of one's own": [
        ({"labels": None}, "Expected labels beside features, low, high"),
        ({"low": None}, "Expected low beside"),
        ({"labels": [0, 1]}, r"features \(n, d\) and labels"),
        ({"features": [1, 2, 3, 4]}, "features"),
        ({"features": [[0, 1], [2, np.nan], [0, 0], [0, 0]]}, "row 1"),
        ({"labels": [1, 1, 1, 1]}, "two classes"), ({"low": 10}, "low=10"),
        ({"high": [1, 2, 3]}, "high="), ({"high": np.inf}, "high=inf, finite numbers"),
        ({"low": -np.inf}, "low=-inf"), ({"low": -1e308, "high": 1e308}, "low="),
        ({"low": [0, np.nan]}, "low="), ({"low": "a"}, "low to be numbers, got 'a'"),
        ({"low": 10**400}, "low to be numbers, got 10000"),
        ({"low": -1j}, "low to be numbers, got "),
        ({"features": [["a", "b"]] * 4}, "features to be numbers"),
        ({"features": [[1], [1, 2], [1], [1]]}, "features to be numbers"),
        ({"labels": ["a", None, "b", "a"]}, "labels .* got None in row 1"),
        ({"labels": [0, 1, np.nan, 0]}, "labels .* got nan in row 2"),
        ({"labels": [0, 1, "1", 0]}, "labels .* got '1' in row 2"),
    ],
    "PricingFromLog": [
        ({"frame": None}, "Expected frame="),
        ({"features": None}, "Expected features= with public bounds"),
        ({"features": ["age"]}, r"bounds of feature 'age', .* no certificate covers"),
        ({"features": {"age": None}}, r"bounds of feature 'age', such as \(18, 90\)"),
        ({"features": {"wage": (0, 1)}}, "a column 'wage', the table has"),
        ({"features": {"price": (0, 1)}}, "features without 'price'"),
        ({"features": {"shop": ("A", "B")}}, "only the levels .* got 'C'"),
        ({"price_range": None}, r"price_range=, such as \(1.0, 3.0\)"),
        ({"price_range": (3, 1)}, r"price_range=\(3, 1\) to be \(low, high\)"),
        ({"unit_cost": None}, "Expected unit_cost="),
        ({"unit": 3}, "unit=3 to name a currency"),
        ({"unit_cost": 1.2}, "every price above unit_cost=1.2, got 1.1"),
        ({"prices": (1.5,)}, "two or more, each once"), ({"ridge": -1}, "ridge=-1"),
        ({"monotone": "yes"}, "monotone='yes'"), ({"clusters": "day"}, "a column 'day'"),
        ({"clusters": "shop"}, "at least 5 clusters in 'shop', .* got 3"),
        (
            {"frame": {**FEW, "day": [[1]] + [7] * 249}, "clusters": "day"},
            r"column 'day' to be all text or all numbers, .* got \[1\] in row 0",
        ),
        ({"sha256": "ab"}, "sha256 with the path of a file only"),
        ({"frame": FEW.head(0)}, "at least 200 rows, got 0"),
        ({"frame": {**FEW, "sold": [1, 0]}}, "of one length, got .2, 250."),
        ({"frame": {**FEW, "sold": "01" * 125}}, "'sold' to hold one entry for each row"),
        ({"frame": {**FEW, "sold": np.ma.masked_all(250)}}, "'sold', got 250 of 250"),
        ({"frame": {**FEW, "sold": [np.ones(1)] * 250}}, "0 and 1 only, got array"),
        ({"frame": {**FEW, "age": [10**400] * 250}}, "'age' to hold numbers, .* got 1000"),
        ({"frame": Lying(FEW)}, "a column 'sold', the table has"),
        ({"features": {"age": (-1e308, 1e308)}}, "range of 'age' to be"),
        ({"price_range": (-1e308, 1e308)}, "end of price_range=-1e.308"),
        ({"units": "sold"}, "at_most= with units='sold', such as 5: .* no certificate covers"),
        ({"at_most": 3}, "units=, a column, with at_most=3"),
        ({"units": "sold", "at_most": 0}, "at_most=0"),
        ({"units": "age", "at_most": 3, "features": {}}, "'age' is always 1|'age' to be both"),
        ({"frame": {**FEW, "n": [0.5] * 250}, "units": "n", "at_most": 3}, "whole numbers .* 0.5"),
        ({"unit_cost": "cost"}, r"unit_cost='cost', a column, to have a public range, features="),
        ({"unit_cost": "shop"}, r"features=.'shop': .low, high...*: who sets a price"),
        ({"unit_cost": "age"}, "every price above 90, the largest cost in 'age', got"),
        (
            {"unit_cost": "age", "features": {"age": (0, 1)}, "person": "shop"},
            "unit_cost='age' to be one number with person=",
        ),
    ],
    "RecommendationFromLog": [
        ({"frame": SEEN.assign(click=2)}, "'click' to hold 0 and 1 only, got 2"),
        ({"frame": SEEN.head(150)}, "at least 200 rows, got 150"),
        ({"frame": SEEN.assign(click=0)}, "click is always 0"),
        ({"frame": SEEN.assign(click=[1] * 20 + [0] * 880)}, "at least 30 rows of either answer"),
        ({"frame": SEEN.assign(item="news")}, "got 'sport' in no row"),
        (
            {"frame": SEEN.assign(item=SHOWN, click=CLICKED)},
            "0 and 1 where item is games, got 0 in all 20",
        ),
        ({"frame": clicks(n=900, appeal=0.0)}, "does not show that they do"),
        ({"frame": SEEN.assign(item="weather")}, r"hold only items=.*got 'weather' in 900 rows"),
        ({"items": None}, "Expected items=, such as"),
        ({"items": ("news", "news")}, "two or more, each once"),
        ({"features": None}, "Expected features= with public bounds"),
        ({"features": {"item": ("news", "sport", "games")}}, "features without 'item'"),
    ],
}  # fmt: skip
"""Tables and logs, too. Public facts come first: that of prices would be refused as well."""


def started(name, arguments):
    kind = getattr(envs, name.split()[0])
    problem = make_problem(kind, **{**NEEDED.get(name, {}), **arguments})
    if name.startswith("Returning"):  # visits are counted at the start
        problem.reset(Streams([0]))


@pytest.mark.parametrize("environment", REFUSED | OWN)
def test_wrong_arguments(environment):
    for row in (REFUSED | OWN)[environment]:
        wrong, says = row if isinstance(row, tuple) else (row, next(iter(row)))
        with asserting(str(wrong)[:200]):
            refused(says, started, environment, wrong)
