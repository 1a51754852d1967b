"""A shop of one's own, and items: the fit against published numbers and the truth, every refusal,
and regret under it."""

import warnings

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from dpbandit import InputError, certify, compare
from dpbandit.envs import PricingFromLog, RecommendationFromLog
from dpbandit.envs.contextual.logs import refuse_separated
from tests.each import each
from tests.envs.contextual.logs import CLICKS, SHOP, clicks, shop

OJ = {
    "price": "SalePriceMM",
    "features": {"SalePriceCH": (1.39, 2.09), "LoyalCH": (0, 1)},
    "price_range": (1.19, 2.29),
    "unit_cost": 0.8,
    "clusters": "week",
}


def juice():
    table = pd.read_csv("envs/data/oj.csv.gz")
    table["sold"] = 1 * (table["Purchase"] == "MM")
    table["week"] = [f"{s} {w}" for s, w in zip(table.StoreID, table.WeekofPurchase, strict=True)]
    return table


def quietly(*args, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return PricingFromLog(*args, **settings)


def test_orange_juice_as_somebody_else_fitted_it():
    """Golden, of an independent program: coefficients to 3 decimals, z by rows and by 250 store
    weeks to 2, R2 to 3; held out by other folds -0.393 and, by weeks, -0.396 (0.003 apart over
    five seeds of folds), slope 0.991 +- 0.058."""
    found = quietly(juice(), **OJ, interactions=False).diagnostics
    assert np.allclose([*found.coefficients.values()], [-0.038, 1.297, -3.213, -1.493], atol=5e-4)
    assert found.slope == pytest.approx(-2.714, abs=5e-4)
    assert (round(found.z, 2), round(found.z_clustered, 2)) == (-7.38, -6.09)
    assert (round(found.r_squared, 3), found.rising) == (0.029, 0)
    assert found.held_out.log_likelihood == pytest.approx(-0.396, abs=0.004)
    assert found.held_out.constant == pytest.approx(-0.669, abs=0.006)
    assert found.held_out.slope == pytest.approx(0.991, abs=0.02)
    assert found.held_out.slope_error == pytest.approx(0.058, abs=0.005)
    assert found.held_out.calibrated
    both = quietly(juice(), **{**OJ, "clusters": None}).diagnostics
    assert (both.rising, both.z_clustered) == (0, None)
    assert both.held_out.log_likelihood == pytest.approx(-0.3937, abs=0.004)


def test_prices_drawn_at_random_tell_the_truth():
    """The truth is -2 and z about -26; |error| < 4 standard errors."""
    found = quietly(shop(), **SHOP).diagnostics
    error = abs(found.slope / found.z)
    assert abs(found.slope + 2) < 4 * error < 0.4
    assert found.z < -20
    assert found.r_squared_p > 1e-4
    assert found.held_out.calibrated


def test_prices_that_follow_demand():
    """Raised where demand was high: refused. Lowered where it was high: a slope several times
    too steep, which nothing notices, as the environment says of itself."""
    with pytest.raises(InputError, match=r"it rises in this log: .* confounded"):
        PricingFromLog(shop(slope=-1.0, hidden=0.8), **SHOP)
    wrong = quietly(shop(slope=-1.0, hidden=-0.8), **SHOP)
    assert wrong.diagnostics.slope < -2
    assert wrong.diagnostics.held_out.calibrated
    assert all("extrapolates" in caution for caution in wrong.diagnostics.cautions)
    assert "no diagnostic here can tell" in repr(wrong)
    assert "never a row of your log" in repr(wrong).splitlines()[0]


def test_chances_by_hand_and_what_a_clipped_slope_is():
    """P(buy) is the logit of the printed coefficients; no slope is flatter than -0.05."""
    frame = shop(slope=-0.5, n=3000)
    plain = {**SHOP, "prices": (1.5, 2.5), "features": {"age": (18, 90)}}
    problem, clipped = quietly(frame, **plain), quietly(frame, **plain, monotone="clip")
    one, age, price, both = problem.diagnostics.coefficients.values()
    x = (frame["age"].to_numpy() - 54) / 36
    for q, chance in zip((-0.5, 0.5), problem._chances.T, strict=True):
        assert np.allclose(chance, expit(one + age * x + (price + both * x) * q), atol=1e-12)
        slope = np.minimum(price + both * x, -0.05)
        index = 0 if q < 0 else 1
        assert np.allclose(clipped._chances[:, index], expit(one + age * x + slope * q))
    assert np.allclose(problem._known, np.column_stack([np.ones(3000), x]) / np.sqrt(2))


SOLD = shop(n=400)


class Lying(dict):
    """Of columns, all of which it says it has."""

    def __contains__(self, name):
        return True

    def __getitem__(self, name):
        return [1] * 250 if name == "price" else super().__getitem__(name if name != "sold" else 0)


AGES = np.random.default_rng(1).integers(18, 91, 400)
FEW, RARE = [1] * 39 + [0] * 361, [0] * 9 + [1, 0] * 195 + [1]
REFUSED = [  # in this order; the first ones have the next fault, too
    ("'age', got 3 of 400", SOLD.assign(age=[None] * 3 + [20] * 397, sold=7)),
    ("'sold' to hold 0 and 1 only, got 7", SOLD.assign(sold=7).head(100)),
    ("at least 200 rows, got 100", SOLD.assign(sold=1).head(100)),
    ("sold is always 1", SOLD.assign(sold=1, price=2.0)),
    ("at least 40 rows of either answer .* 8 coefficients, got 39", SOLD.assign(sold=FEW)),
    ("all are 9", SOLD.assign(price=9.0)),
    (r"in price_range=\(1, 3\), got 9, and 400 rows", SOLD.assign(price=[9.0, 8.0] * 200)),
    ("told exactly by .*price", SOLD.assign(price=[1.0, 3.0] * 200, sold=[1, 0] * 200)),
    ("0 and 1 where shop is C, got 0", SOLD.assign(shop=["C"] * 9 + ["A"] * 391, sold=RARE)),
    ("R2 = 1.00000", SOLD.assign(age=AGES, price=1 + (AGES - 18) / 36)),
    ("it rises in this log", SOLD.assign(sold=1 * (SOLD["price"] + AGES / 40 > 3.5))),
    ("z at most -2, got", shop(n=400, slope=-0.1)),
    ("nine in ten customers, it rises for", None),
]


@each(("says", "frame"), REFUSED, ids=[says for says, _ in REFUSED])
def test_logs_that_cannot_tell_what_a_price_does(says, frame):
    if frame is None:
        age = np.random.default_rng(2).integers(18, 91, 4000)
        price = np.random.default_rng(3).uniform(1, 3, 4000)
        logit = -(price - 2) * (0.6 + (age - 54) / 36)
        sold = 1 * (np.random.default_rng(4).random(4000) < expit(logit))
        frame = pd.DataFrame({"price": price, "sold": sold, "age": age, "shop": "A"})
        assert quietly(frame, **SHOP, monotone="clip").diagnostics.rising > 0.1
    with pytest.raises(InputError, match=says) as caught:
        PricingFromLog(frame, **SHOP)
    assert "\n" not in str(caught.value)


@each(
    ("change", "says"),
    [
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
        ({"unit": 3}, "unit=3 to be what prices are in"),
        ({"unit_cost": 1.2}, "every price above unit_cost=1.2, got 1.1"),
        ({"prices": (1.5,)}, "two or more, each once"),
        ({"ridge": -1}, "ridge=-1"),
        ({"monotone": "yes"}, "monotone='yes'"),
        ({"clusters": "day"}, "a column 'day'"),
        ({"clusters": "shop"}, "at least 5 clusters in 'shop', .* got 3"),
        (
            {"frame": {**shop(n=250), "day": [[1]] + [7] * 249}, "clusters": "day"},
            "at least 5 clusters in 'day', .* got 2",
        ),
        ({"sha256": "ab"}, "sha256 with the path of a file only"),
        ({"frame": shop(n=250).head(0)}, "at least 200 rows, got 0"),
        ({"frame": {**shop(n=250), "sold": [1, 0]}}, "of one length, got .2, 250."),
        ({"frame": {**shop(n=250), "sold": "01" * 125}}, "'sold' to hold one entry for each row"),
        ({"frame": {**shop(n=250), "sold": np.ma.masked_all(250)}}, "'sold', got 250 of 250"),
        ({"frame": {**shop(n=250), "sold": [np.ones(1)] * 250}}, "0 and 1 only, got array"),
        ({"frame": {**shop(n=250), "age": [10**400] * 250}}, "'age' to hold numbers, .* got 1000"),
        ({"frame": Lying(shop(n=250))}, "a column 'sold', the table has"),
        ({"features": {"age": (-1e308, 1e308)}}, "range of 'age' to be"),
        ({"price_range": (-1e308, 1e308)}, "end of price_range=-1e.308"),
    ],
    ids=str,
)
def test_arguments_in_one_sentence(change, says):
    """Public facts come first: this table would be refused, too."""
    with pytest.raises(InputError, match=says) as caught:
        PricingFromLog(**{"frame": shop(n=250).assign(sold=7), **SHOP, **change})
    assert "\n" not in str(caught.value)


def test_what_is_warned_of():
    frame = shop(n=2000).assign(day=[i % 20 for i in range(2000)])
    frame.loc[:150, "age"] = 95
    with pytest.warns(UserWarning, match="rows|clusters|prices") as caught:
        problem = PricingFromLog(frame, **SHOP, clusters="day", prices=(0.9, 2.0))
    said = [str(warning.message) for warning in caught]
    assert problem.diagnostics.cautions == tuple(said)
    for words in (
        "151 of 2000 rows",
        "20 clusters are few",
        "Demand at 1 of 2 prices extrapolates",
    ):
        assert any(words in sentence for sentence in said)
        assert words in repr(problem)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the second time nothing is fitted, and nothing said
        PricingFromLog(frame, **SHOP, clusters="day", prices=(0.9, 2.0))
    chosen = frame.assign(price=frame["price"].clip(1.0, np.where(frame["shop"] == "A", 2, 3)))
    assert any("not randomised" in c for c in quietly(chosen, **SHOP).diagnostics.cautions)


def test_separation_is_exact():
    """Against arithmetic: four points on a line are separated wholly, in part (0 and 1 at 2), or
    not."""
    for x, answers in (
        ([1.0, 2, 3, 4], [0.0, 0, 1, 1]),
        ([1.0, 2, 3, 4], [1.0, 1, 0, 0]),
        ([1.0, 2, 3, 4], [0.0, 0, 0, 1]),
        ([1.0, 2, 2, 3], [0.0, 0, 1, 1]),
    ):
        with pytest.raises(InputError, match="told exactly"):
            refuse_separated(line(x), np.array(answers), ("1", "x"), name="y", lone={})
    refuse_separated(line([1.0, 2, 3, 4]), np.array([0.0, 1, 0, 1]), ("1", "x"), name="y", lone={})


def line(x):
    return np.column_stack([np.ones(4), x])


def test_everything_works_on_it(tmp_path):
    """A path, a frame, gym.make and a problem are one environment; results keep no rows."""
    frame = shop(n=1000)
    frame.to_csv(tmp_path / "prices.csv", index=False)
    settings = {**SHOP, "frame": frame}
    made = gym.make("dpbandit/PricingFromLog-v0", **settings)
    runs = [
        compare("PricingFromLog", "fade", horizon=60, replicas=2, env_kwargs=settings),
        compare(quietly(tmp_path / "prices.csv", **SHOP), "fade", horizon=60, replicas=2),
        compare(made, "fade", horizon=60, replicas=2),
    ]
    for results in runs:
        assert results.summary()["mean"].equals(runs[0].summary()["mean"])
        assert len(str(results.env_kwargs)) < 400
    assert certify("fade", made.unwrapped.problem, accountants=False).holds


def test_what_people_click_at_comes_back():
    """P(click) within 0.04 of the truth for everybody (the worst of 10 seeds is 0.031), and so the
    share of clicks on the best item for each."""
    frame = clicks(n=20_000)
    problem = RecommendationFromLog(frame, **CLICKS)
    x = (frame["age"].to_numpy() - 54) / 36
    truth = expit(-1 + x[:, None] * [0, 1.5, -1.5])
    assert np.abs(problem._chances - truth).max() < 0.04
    found = problem.diagnostics
    assert found.p_value < 1e-12
    assert found.freedom == 4
    assert found.r_squared_p > 1e-4
    assert found.held_out.calibrated
    assert found.cautions == ()
    assert found.oracle == pytest.approx(truth.max(axis=1).mean(), abs=0.01)
    assert "never a row of your log" in repr(problem).splitlines()[0]
    assert problem.items == CLICKS["items"]


def test_items_that_follow_features_are_warned_of():
    frame = clicks()
    old = frame["age"] > 60
    keep = ~old | (frame["item"] == "sport") | (np.arange(len(frame)) % 4 == 0)
    with pytest.warns(UserWarning, match="Items were not randomised"):
        RecommendationFromLog(frame[keep], **CLICKS)


SEEN = clicks(n=900)


SHOWN = ["games"] * 20 + ["news", "news", "sport", "sport"] * 220


CLICKED = [0] * 20 + [0, 1] * 440


NO_CLICKS = [
    ({"frame": SEEN.assign(click=2)}, "'click' to hold 0 and 1 only, got 2"),
    ({"frame": SEEN.head(150)}, "at least 200 rows, got 150"),
    ({"frame": SEEN.assign(click=0)}, "click is always 0"),
    ({"frame": SEEN.assign(click=[1] * 20 + [0] * 880)}, "at least 30 rows of either answer"),
    ({"frame": SEEN.assign(item="news")}, "'sport' was never shown"),
    ({"frame": SEEN.assign(item=SHOWN, click=CLICKED)},
     "0 and 1 where item is games, got 0 in all 20"),
    ({"frame": clicks(n=900, appeal=0.0)}, "they are not told apart"),
    ({"frame": SEEN.assign(item="weather")}, r"hold only items=.*got 'weather' in 900 rows"),
    ({"items": None}, "Expected items=, such as"),
    ({"items": ("news", "news")}, "two or more, each once"),
    ({"features": None}, "Expected features= with public bounds"),
    ({"features": {"item": ("news", "sport", "games")}}, "features without 'item'"),
]  # fmt: skip


@each(("change", "says"), NO_CLICKS, ids=[says for _, says in NO_CLICKS])
def test_logs_of_clicks_in_one_sentence(change, says):
    with pytest.raises(InputError, match=says) as caught:
        RecommendationFromLog(**{"frame": SEEN, **CLICKS, **change})
    assert "\n" not in str(caught.value)
