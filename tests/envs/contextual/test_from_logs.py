"""A shop of one's own, and items: the fit against published numbers, quadrature and the truth,
every refusal, and regret under it; and a shop whose customers come back."""

import re
import warnings
from dataclasses import replace
from math import inf

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from scipy.special import expit, logit
from scipy.stats import binom, chi2, linregress
from typer.testing import CliRunner

from dpbandit import InputError, certify, cli, compare, recommend
from dpbandit.agents import PersonalPricing, Uniform
from dpbandit.base import Streams
from dpbandit.envs import (
    AssortmentFromLog,
    PricingFromLog,
    RecommendationFromLog,
    ReturningPricing,
)
from dpbandit.envs.contextual.logs import (
    fit_logit,
    log_likelihoods,
    separation,
)
from dpbandit.envs.contextual.tastes import (
    FALSE_ALARM,
    Coefficients,
    Offers,
    around_modes,
    fit_tastes,
    likelihood,
    maximise,
    refuse_alike,
)
from dpbandit.envs.data import fit_camera
from dpbandit.envs.people.returning_pricing import frozen
from dpbandit.specs import Visits, begin
from dpbandit.studies.configurations import Sweep, plan
from dpbandit.testing import check_agent, check_problem
from tests.each import each, in_turn, refused
from tests.envs.contextual.logs import CLICKS, DRINKS, SHOP, clicks, drinks, shop
from tests.slopes import comparing, differences

OJ = {
    "price": "SalePriceMM", "features": {"SalePriceCH": (1.39, 2.09), "LoyalCH": (0, 1)},
    "price_range": (1.19, 2.29), "unit_cost": 0.8, "clusters": "week",
}  # fmt: skip


def juice():
    table = pd.read_csv("envs/data/oj.csv.gz")
    table["sold"] = 1 * (table["Purchase"] == "MM")
    table["week"] = [f"{s} {w}" for s, w in zip(table.StoreID, table.WeekofPurchase, strict=True)]
    return table


def quietly(*args, kind=PricingFromLog, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return kind(*args, **settings)


MANY = {"price_range": (1, 3), "prices": (1.5, 2, 2.5), "units": "units", "at_most": 3}
COSTS = {"features": {"cost": (0.4, 1.0)}, "unit_cost": "cost", "unit": "EUR"}


def many(n=4000):
    """Units sold, binomial of 3; the logit of a unit is 3 - 2 price + 5 (cost - .7) / 3."""
    rng = np.random.default_rng(0)
    price, cost = rng.choice(MANY["prices"], n), rng.uniform(0.4, 1.0, n).round(2)
    units = rng.binomial(3, expit(3 - 2 * price + 5 * (cost - 0.7) / 3))
    return pd.DataFrame({"price": price, "cost": cost, "units": units})


def units_drawn(problem, rounds=60, replicas=300):
    """Units that each customer would buy at each price: rewards over public margins."""
    problem.reset(Streams(range(replicas)))
    problem.context()
    x, _, reward, _ = (None if a is None else a[:rounds] for a in problem._table)
    return reward / problem.spec.margins_at(x)


def test_units_and_costs_of_rows():
    """Oracle: the law that made the log is fitted and simulated, with each row's margin; one unit
    at most is what `sold` is, bit for bit; what is clipped is said. False alarm 1e-4."""
    log = many()
    problem = PricingFromLog(log, **MANY, **COSTS, interactions=False)
    found, spec, users = problem.diagnostics, problem.spec, problem.user_table
    assert [*found.coefficients.values()] == pytest.approx([-1.0, 0.5, -2.0], abs=0.15)
    margins = np.array(MANY["prices"]) - log.cost.to_numpy()[:, None]
    assert spec.margins_at(users.context) == pytest.approx(margins)
    assert users.reward == pytest.approx(margins[..., None] * np.arange(4))
    assert (spec.reward_unit, spec.reward_high) == ("EUR", pytest.approx(3 * 2.1))
    chance = expit(3 - 2 * np.array(MANY["prices"]) + 5 * (log.cost.to_numpy()[:, None] - 0.7) / 3)
    assert np.abs(users.chance - binom.pmf(range(4), 3, chance[..., None])).max() < 0.06
    assert [x for _, x, _ in found.curve] == pytest.approx(3 * problem._chances.mean(axis=0))
    drawn = units_drawn(problem)
    for k, share in enumerate(users.chance.mean(axis=(0, 1))):  # 54,000 values of 18,000 people
        tolerance = 4.4 * np.sqrt(share / 18_000)
        assert (np.abs(drawn - k) < 1e-9).mean() == pytest.approx(share, abs=tolerance)
    check_problem(problem)
    clock = PricingFromLog(log, **MANY, **COSTS, season=(0.5, 100), clock=True)
    drawn = units_drawn(clock)
    assert drawn == pytest.approx(drawn.round(), abs=1e-9)

    frame = shop(n=1500)
    alone = quietly(frame, **SHOP)
    same = quietly(frame.assign(sold="?", n=frame.sold), units="n", at_most=1, **SHOP)
    assert (same.diagnostics, same.spec) == (alone.diagnostics, alone.spec)
    assert np.array_equal(same._chances, alone._chances)
    plain = {**MANY, "features": {}, "unit_cost": 0.5}
    with pytest.warns(UserWarning, match=r"2 of 4000 rows .0.05 %. sold more than at_most=3 units"):
        PricingFromLog(log.assign(units=[9, 9, *log.units[2:]]), **plain)
    with pytest.warns(UserWarning, match="Units vary .* times as much as the model's"):
        PricingFromLog(log.assign(units=3 * (log.units > 1)), **plain)


def test_regret_by_segment(monkeypatch):
    """Oracle: rounds and regret by the shop of each context, played by hand; parts add up in blocks
    where users could be drawn as counts; columns without levels are refused."""
    monkeypatch.setattr("dpbandit.running.user_counts.MIN_COUNTED_HORIZON", 1)
    monkeypatch.setattr("dpbandit.running.user_counts.MIN_ROUNDS_PER_RECORD", 0)
    world = quietly(shop(n=1500), **SHOP)
    shops = ["ABC"[level] for level in world.segments["shop"].of(world._known)]
    assert shops == shop(n=1500).shop.tolist()
    how = {"horizon": 300, "replicas": 3, "by": "shop", "progress": False}
    found = compare(world, "fade:first_batch=30", **how)
    table = found.summary(by="shop").set_index(["agent", "segment"])
    for run in found:
        sums = table.loc[run.name, ["rounds", "mean"]].sum()
        assert sums.tolist() == pytest.approx([300, run.regret[-1].mean()])
    plain = compare(world, "fade:first_batch=30", **how | {"by": None, "counts": False})
    assert np.array_equal(plain.runs[0].regret, found.runs[0].regret)
    agent, world.spec = Uniform(), replace(world.spec, horizon=300)
    streams = Streams([(0, r) for r in range(3)])
    begin(world, streams)
    player, seen = agent.make(world.spec, streams.child("agent")), np.zeros((2, 3))
    for _ in range(300):
        x = world.context()
        regret = world.step(player.act(x)).regret
        where = np.where(x[:, 2] > 0, 1, np.where(x[:, 3] > 0, 2, 0))
        np.add.at(seen.T, where, np.column_stack([np.ones(3), regret]) / 3)
    assert np.allclose(table.loc["Uniform", ["rounds", "mean"]].to_numpy().T, seen)
    refused("'age' to be one of 'shop': a segment is a", compare, world, "fade", by="age")
    refused("by='shop' to be left out here", compare, "OJPricing", "fade", by="shop", horizon=20)
    says = r"by='shop' to be the column by which .* was counted: compare\(..., by='shop'\)"
    refused(says, plain.summary, by="shop")


def test_orange_juice_as_somebody_else_fitted_it():
    """Golden, of an independent program: coefficients to 3 decimals, z by rows and by 250 store
    weeks to 2, R2 to 3, the slope of what is held out to 2."""
    found = quietly(juice(), **OJ, interactions=False).diagnostics
    assert np.allclose([*found.coefficients.values()], [-0.038, 1.297, -3.213, -1.493], atol=5e-4)
    assert found.slope == pytest.approx(-2.714, abs=5e-4)
    assert (round(found.z, 2), round(found.z_clustered, 2)) == (-7.38, -6.09)
    assert (round(found.r_squared, 3), found.rising) == (0.029, 0)
    assert found.held_out.slope == pytest.approx(0.991, abs=0.02)
    assert found.held_out.calibrated


def test_prices_that_follow_demand_and_chances_by_hand():
    """Raised where demand was high: refused. Lowered where it was high: a slope several times too
    steep, which nothing notices, as it says of itself. P(buy) is the logit of the printed
    coefficients; no slope is flatter than -0.05."""
    with pytest.raises(InputError, match=r"it rises in this log: .* confounded"):
        PricingFromLog(shop(slope=-1.0, hidden=0.8), **SHOP)
    wrong = quietly(shop(slope=-1.0, hidden=-0.8), **SHOP)
    assert wrong.diagnostics.slope < -2
    assert wrong.diagnostics.held_out.calibrated
    assert all("extrapolates" in caution for caution in wrong.diagnostics.cautions)
    assert "no diagnostic finds it" in repr(wrong)
    assert "never a row of your log" in repr(wrong).splitlines()[0]
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


def test_every_number_that_is_said_of_a_log():
    """Oracle: sandwiches by rows and by days, and five fits that have not seen their days; a sum
    that leaves one out, takes other rows, or forgets the ridge, would show."""
    log, days = shop(n=600), np.arange(600) % 30
    public = {**SHOP, "price_range": (0.5, 3.5), "prices": (1.5, 2.0, 2.5), "ridge": 0.01}
    log["day"] = [f"day {day:02}" for day in days]
    problem = quietly(log, **public, clusters="day")
    found, F, yes = problem.diagnostics, problem._known * 2, log["sold"].to_numpy()
    q, ridge = (log["price"].to_numpy() - 2) / 1.5, np.array([0.0, *[0.01] * 7])
    x, b = np.hstack([F, F * q[:, None]]), np.array([*found.coefficients.values()])
    slopes, fold = F @ b[4:], (np.random.default_rng(20_221).permutation(30) % 5)[days]

    def error(x, b, ridge, along, groups):
        scores, s = x * (yes - expit(x @ b))[:, None] / 600, expit(x @ b)
        H = (x.T * s * (1 - s)) @ x / 600 + np.diag(ridge)
        sums = [scores[groups == group].sum(axis=0) for group in np.unique(groups)]
        return np.linalg.norm(sums @ np.linalg.solve(H, along))

    along = np.append(np.zeros(4), F.mean(axis=0))  # the price's slope, averaged over rows
    z = [slopes.mean() / error(x, b, ridge, along, groups) for groups in (np.arange(600), days)]
    told = (found.slope * 1.5, found.rising, found.z, found.z_clustered)
    assert told == pytest.approx((slopes.mean(), (slopes >= 0).mean(), *z))
    chances = expit((F @ b[:4])[:, None] + slopes[:, None] * np.array([-1, 0, 1]) / 3)
    margins = chances * np.array([0.7, 1.2, 1.7])
    curve = np.column_stack([(1.5, 2.0, 2.5), chances.mean(axis=0), margins.mean(axis=0)])
    np.testing.assert_allclose(found.curve, curve)
    assert found.oracle == pytest.approx(margins.max(axis=1).mean())
    logits, flat, held = np.empty(600), np.empty(600), found.held_out
    for out in (fold == k for k in range(5)):
        logits[out] = x[out] @ fit_logit(x[~out], yes[~out], ridge)
        flat[out] = logit(yes[~out].mean())
    line, none = np.column_stack([np.ones(600), logits]), np.zeros(2)
    b = fit_logit(line, yes, none)
    told = (held.log_likelihood, held.constant, held.slope, held.slope_error)
    likely = (log_likelihoods(each, yes).mean() for each in (logits, flat))
    assert told == pytest.approx((*likely, b[1], error(line, b, none, [0.0, 1.0], days)))
    tenths = np.argsort(logits, kind="stable").reshape(10, 60)
    np.testing.assert_allclose(held.predicted, expit(logits)[tenths].mean(axis=1))
    np.testing.assert_allclose(held.observed, yes[tenths].mean(axis=1))


SOLD = shop(n=400)


AGES = np.random.default_rng(1).integers(18, 91, 400)
FEW, RARE = [1] * 39 + [0] * 361, [0] * 9 + [1, 0] * 195 + [1]
REFUSED = [  # in this order; the first ones have the next fault, too
    ("'age', got 3 of 400", SOLD.assign(age=[None] * 3 + [20] * 397, sold=7)),
    ("'sold' to hold 0 and 1 only, got 7", SOLD.assign(sold=7).head(100)),
    ("at least 200 rows, got 100", SOLD.assign(sold=1).head(100)),
    ("sold is always 1", SOLD.assign(sold=1, price=2.0)),
    ("at least 40 rows of either answer .* 8 coefficients, got 39", SOLD.assign(sold=FEW)),
    ("all are 9", SOLD.assign(price=9.0)),
    (r"in price_range=\(1, 3\), got 9, and 400 of 400 rows", SOLD.assign(price=[9.0, 8.0] * 200)),
    ("determined by .*price", SOLD.assign(price=[1.0, 3.0] * 200, sold=[1, 0] * 200)),
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
    refused(says, PricingFromLog, frame, **SHOP)


def test_what_is_warned_of():
    """Rows outside, few clusters, prices beyond the log or not randomised, or that followed
    tastes."""
    frame = shop(n=2000).assign(day=[i % 20 for i in range(2000)])
    frame.loc[:150, "age"] = 95
    with pytest.warns(UserWarning, match="rows|clusters|prices") as caught:
        problem = PricingFromLog(frame, **SHOP, clusters="day", prices=(0.9, 2.0))
    said = [str(warning.message) for warning in caught]
    assert problem.diagnostics.cautions == tuple(said)
    for words in (
        "151 of 2000 rows", "20 clusters are few", "Demand at 1 of 2 prices extrapolates",
    ):  # fmt: skip
        assert any(words in sentence for sentence in said)
        assert words in repr(problem)
    with warnings.catch_warnings(
        action="error"
    ):  # the second time nothing is fitted, and nothing said
        PricingFromLog(frame, **SHOP, clusters="day", prices=(0.9, 2.0))
    chosen = frame.assign(price=frame["price"].clip(1.0, np.where(frame["shop"] == "A", 2, 3)))
    assert any("not randomised" in c for c in quietly(chosen, **SHOP).diagnostics.cautions)
    log = visits()
    habit = log.groupby("who")["sold"].transform("mean")
    log["price"] = (1 + log["price"] / 2 + 0.6 * (habit - 0.5)).clip(1, 3)
    with pytest.warns(UserWarning, match="they differ between people"):
        PricingFromLog(log.assign(who=[f"n{i}" for i in log["who"]]), **PERSONAL, prices=(1.5, 2.5))


def test_separation_is_exact():
    """Against arithmetic: four points on a line are separated wholly, in part (0 and 1 at 2), or
    not. A penalty that was asked for is honoured."""
    known = {"name": "y", "lone": {}}
    for x, answers in (
        ([1.0, 2, 3, 4], [0.0, 0, 1, 1]), ([1.0, 2, 3, 4], [1.0, 1, 0, 0]),
        ([1.0, 2, 3, 4], [0.0, 0, 0, 1]), ([1.0, 2, 2, 3], [0.0, 0, 1, 1]),
    ):  # fmt: skip
        apart = line(x), np.array(answers), ("1", "x")
        refused(
            "determined by .* set ridge=", separation, *apart, **known, penalty=np.full(2, 1e-6)
        )
        (said,) = separation(*apart, **known, penalty=np.array([0, 0.1]))
        assert "determined by 1, x (separation), so what is fitted there is ridge=0.1" in said
    fine = line([1.0, 2, 3, 4]), np.array([0.0, 1, 0, 1]), ("1", "x")
    assert separation(*fine, **known, penalty=np.zeros(2)) == []


def test_rare_levels_are_fitted_with_a_ridge():
    """Three rows of one level, all of one answer: refused with what to do, and fitted where the
    user says ridge=; oracle: there the slope of the penalised likelihood is 0."""
    frame = shop(n=2000)
    frame.loc[:2, ["shop", "sold"]] = ["D", 0]
    four = {**SHOP, "features": {**SHOP["features"], "shop": ("A", "B", "C", "D")}}
    refused("shop is D, got 0 in all 3 rows .* merge it .* set ridge=", quietly, frame, **four)
    found = quietly(frame, **four, ridge=0.01, interactions=False).diagnostics
    said = "'sold' is 0 in all 3 rows where shop is D (separation), so what is fitted there is "
    assert f"{said}ridge=0.01, not the log." in found.cautions
    b = np.array([*found.coefficients.values()])
    x = np.column_stack(
        [
            np.ones(2000), (frame["age"] - 54) / 36, *(1 * (frame["shop"] == s) for s in "BCD"),
            frame["price"] - 2,
        ]
    )  # fmt: skip
    score = x.T @ (frame["sold"] - expit(x @ b)) / 2000
    np.testing.assert_allclose(score, 0.01 * b * [0, 1, 1, 1, 1, 1], atol=1e-8)
    page = clicks()
    page.loc[:2, ["item", "click"]] = ["maps", 1]
    items = {**CLICKS, "items": (*CLICKS["items"], "maps")}
    refused("where item is maps, got 1 in all 3", RecommendationFromLog, page, **items)
    for ridge in (0.01, 10):
        problem = quietly(page, kind=RecommendationFromLog, **items, ridge=ridge)
        assert f"item is maps (separation), so what is fitted there is ridge={ridge}" in str(
            problem.diagnostics
        )
    visits = drinks().assign(shop="A")
    visits.loc[:2, "shop"], visits.loc[:2, "bought"] = "D", "none"
    known = {**DRINKS, "features": {**DRINKS["features"], "shop": ("A", "D")}, "ridge": 0.01}
    (said,) = quietly(visits, kind=AssortmentFromLog, **known).diagnostics.cautions
    who = r"Nobody took ('\w+' or )*'juice' in the 3 rows where shop is D \(separation\)"
    assert re.match(f"{who}, so what is fitted there is ridge=0.01, not the log", said)
    visits.loc[:2, "price_water"] = None  # nor was that taken, but it was not offered either
    visits.loc[:2, ["price_cola", "bought"]] = 2.0, "cola"
    (said,) = quietly(visits, kind=AssortmentFromLog, **known).diagnostics.cautions
    assert said.startswith("Nobody took 'juice' or 'none' in the 3 rows where shop is D")


def line(x):
    return np.column_stack([np.ones(4), x])


def test_what_people_click_at_comes_back():
    """P(click) within 0.04 of the truth for everybody (the worst of 10 seeds is 0.031), and so the
    share of clicks on the best item for each. Items that follow features are warned of."""
    frame = clicks(n=20_000)
    problem = RecommendationFromLog(frame, **CLICKS)
    x = (frame["age"].to_numpy() - 54) / 36
    truth = expit(-1 + x[:, None] * [0, 1.5, -1.5])
    assert np.abs(problem._chances - truth).max() < 0.04
    found = problem.diagnostics
    assert found.p_value < 1e-12
    assert found.freedom == 4
    shares = [linregress(x, frame["item"] == item) for item in CLICKS["items"]]
    assert found.r_squared_p == pytest.approx(min(1, 3 * min(one.pvalue for one in shares)))
    assert found.r_squared == pytest.approx(max(one.rvalue**2 for one in shares))
    assert found.held_out.calibrated
    assert found.cautions == ()
    assert found.oracle == pytest.approx(truth.max(axis=1).mean(), abs=0.01)
    assert "never a row of your log" in repr(problem).splitlines()[0]
    assert problem.items == CLICKS["items"]
    frame = clicks()
    old = frame["age"] > 60
    keep = ~old | (frame["item"] == "sport") | (np.arange(len(frame)) % 4 == 0)
    with pytest.warns(UserWarning, match="Items were not randomised"):
        RecommendationFromLog(frame[keep], **CLICKS)


PERSONAL = {"features": {"age": (18, 90)}, "price_range": (1.0, 3.0), "unit_cost": 0.8}
PERSONAL["person"] = "who"


def visits(people=100, times=8, *, tastes=(1.0, 0.5), seed=0):
    """Offers at random prices to people of one age each; the logit falls by 1.2 a dollar or so."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), times)
    age, price = rng.integers(18, 91, people)[who], rng.choice(np.linspace(1, 3, 9), len(who))
    level, slope = (sd * rng.standard_normal(people)[who] for sd in tastes)
    logit = 0.3 + 0.4 * (age - 54) / 36 + level - 1.2 * np.exp(slope) * (price - 2)
    sold = 1 * (rng.random(len(who)) < expit(logit))
    return pd.DataFrame({"who": who, "age": age, "price": price, "sold": sold})


def electricity(people, times, seed=0):
    """A log of `ReturningPricing`, prices at random, whose three rivals are all alike.

    They charge 8 cents, are well known, not local, and bind for a year: the logit of a sale is then
    (theta_loc - theta_wk - theta_cl - log 3) - exp(theta_pf) (price - 8), and both are normal.
    """
    problem = ReturningPricing(people=people, visits=times, horizon=people * times)
    problem._offers = np.tile([1.0, 0.0, 1.0, 0.0, 0.0, 8.0], (1, 3, 1))
    problem._design_cdf = np.ones(1)
    problem.reset(Streams([seed]))
    rng, found = np.random.default_rng(seed), []
    for _ in range(people * times):
        who, k = int(problem.context()[0, 0]), rng.integers(9)
        found.append((who, 5.0 + k, 1 * (problem.step(np.array([k])).reward[0] > 0)))
    return pd.DataFrame(found, columns=["who", "price", "sold"])


def test_the_likelihood_is_an_integral(monkeypatch):
    """Oracle: a sum over 201 x 201 points, its logit written out, within 1e-3 a person; scores are
    its differences. Rows in another order, or a part of L in another place, would show. A fit with
    a ridge, which counts for every row, is handed the slope of what it maximises."""
    log = visits(12, 6)
    x = (log["age"].to_numpy() - 54) / 36
    F, q = np.column_stack([np.ones(72), x]), log["price"].to_numpy() - 2
    yes, who = log["sold"].to_numpy(float), log["who"].to_numpy()
    shuffled = np.random.default_rng(1).permutation(72)
    offers = Offers.of(*(part[shuffled] for part in (F, F, q, yes, who)))
    values = np.array([0.3, 0.4, 0.1, -0.2, 0.9, 0.3, 0.5])
    line = np.linspace(-6, 6, 201)
    z1, z2 = np.meshgrid(line, line, indexing="ij")
    weight = np.exp(-(z1**2 + z2**2) / 2) * (line[1] - line[0]) ** 2 / (2 * np.pi)

    def by_hand(values):
        a, c, b, d, one, two, three = values
        found = []
        for i in range(12):
            product = np.ones_like(z1)
            for row in np.flatnonzero(who == i):
                slope = np.exp(b + d * x[row] + two * z1 + three * z2)
                chance = expit(a + c * x[row] + one * z1 - slope * q[row])
                product = product * (chance if yes[row] else 1 - chance)
            found.append(np.log((weight * product).sum()))
        return np.array(found)

    at = Coefficients(values, 2)
    found, scores, _ = likelihood(at, offers, around_modes(at, offers))
    np.testing.assert_allclose(found, by_hand(values), atol=1e-3)
    np.testing.assert_allclose(scores.T, differences(by_hand, values, 1e-4), atol=0.02)
    points, ridge = [], np.array([0.0, 0.1, 0.0, 0.1, 0.0, 0.0, 0.0])
    monkeypatch.setattr("scipy.optimize.minimize", comparing(scipy.optimize.minimize, points))
    maximise(at, offers, ridge, around_modes, 7)
    assert len(points) == 2


def test_electricity_comes_back():
    """The population that a log was drawn from, mean and standard deviations, within 4 standard
    errors (false alarm 3e-4), which are small enough to see a tenth of people's spread."""
    log = electricity(300, 10)
    public = {"features": {}, "price_range": (3.0, 13.0), "prices": range(5, 14), "unit_cost": 4.0}
    problem = quietly(log, **public, person="who", unit="cents")
    found = problem.diagnostics.tastes
    mean, C = (np.array(frozen()[name]) for name in ("mean", "covariance"))
    along = np.array([-1.0, 1.0, -1.0, 0.0, 0.0, 0.0])
    truth = {"level": (along @ C @ along) ** 0.5, "slope": C[-1, -1] ** 0.5}
    for name, sd in truth.items():
        estimate, error = getattr(found, name)
        assert abs(estimate - sd) < 4 * error < 0.6 * sd, name
    level, slope = found.law.mean
    assert abs(level - (along @ mean - np.log(3))) < 4 * truth["level"] / 300**0.5 * 1.5
    assert abs(slope - mean[-1] - np.log(5)) < 4 * truth["slope"] / 300**0.5 * 1.5
    assert found.held_out > found.alike + 0.05
    assert found.correlation == pytest.approx(
        along @ C[:, -1] / truth["level"] / truth["slope"], abs=0.3
    )


@in_turn(0, slow=True)
def test_a_sampler_finds_the_same(monkeypatch):
    """Oracle: the Metropolis within Gibbs that fitted cameras, with its priors: estimates within
    one of its posterior standard deviations, and errors within a fifth of these."""
    monkeypatch.setattr(fit_camera, "SWEEPS", 5000)
    monkeypatch.setattr(fit_camera, "BURN_IN", 1500)
    log = electricity(300, 10).sort_values("who", kind="stable")
    found = tastes_of(log, start=(0.0, 1.0), middle=8.0, unit=5.0)
    shown = np.zeros((300, 10, 2, 2))
    q = (log["price"].to_numpy() - 8) / 5
    shown[:, :, 0] = np.column_stack([np.ones(3000), q]).reshape(300, 10, 2)
    m, C = fit_camera.chain(shown, 1 - log["sold"].to_numpy().reshape(300, 10), 0)
    sd = np.sqrt(np.diagonal(C, axis1=1, axis2=2))
    assert np.all(np.abs(np.array(found.law.mean) - m.mean(axis=0)) < m.std(axis=0))
    for j, (estimate, error) in enumerate((found.level, found.slope)):
        assert abs(estimate - sd[:, j].mean()) < sd[:, j].std()
        assert error == pytest.approx(sd[:, j].std(), rel=0.2)


def tastes_of(log, start=(0.0, 0.0), middle=2.0, unit=1.0):
    """Fitted to a log without features."""
    q, yes, who = (log[name].to_numpy() for name in ("price", "sold", "who"))
    one = np.ones((len(log), 1))
    offers = Offers.of(one, one, (q - middle) / unit, yes.astype(float), who)
    return fit_tastes(offers, np.array(start), np.zeros(2))


@pytest.mark.parametrize("logs", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_people_who_are_alike_are_seldom_taken_to_differ(logs):
    """In at most 1 % of logs: of 100 more than 5 by chance with probability 6e-4, of 6 more than 1
    with 1.5e-3. People who differ are told in every one of a tenth as many, by the likelihood
    ratio of the population that is reported to a logit of all rows; a visit of each is held out,
    and said by a sum over tastes given her others."""
    log = visits(60, 6, tastes=(0.0, 0.0))
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(logs):
        chance = expit(0.3 - 1.2 * (log["price"] - 2))
        again = log.assign(sold=1 * (rng.random(len(log)) < chance))
        alarms += tastes_of(again).p_value < FALSE_ALARM
    assert alarms <= (1 if logs == 6 else 5)
    for seed in range(max(1, logs // 10)):
        log = visits(80, 8, tastes=(1.5, 0.5), seed=seed)
        found = tastes_of(log)
        assert found.p_value < FALSE_ALARM
    law, q, yes = np.array(found.law.matrix), log["price"].to_numpy() - 2, log["sold"].to_numpy()
    (u, _), (v, _), one = found.level, found.slope, np.ones((640, 1))
    along = found.correlation * u * v
    np.testing.assert_allclose(law - 1e-6 * np.eye(2), [[u**2, along], [along, v**2]])
    offers = Offers.of(one, one, q, yes.astype(float), log["who"].to_numpy())
    root = np.linalg.cholesky(law - 1e-6 * np.eye(2))
    at = Coefficients(np.array([*found.law.mean, *root[np.tril_indices(2)]]), 1)
    say = "about .* such people", refuse_alike, "who", replace(found, p_value=0.1, ratio=5.0)
    enough = 5 * float(re.search(r"about ([\d,]+) such", refused(*say))[1]) / found.people
    assert (chi2.sf(enough, 2) + chi2.sf(enough, 3)) / 2 == pytest.approx(FALSE_ALARM, rel=0.02)
    differ, scores, _ = likelihood(at, offers, around_modes(at, offers))
    turn = differences(lambda b: np.array([abs(b[2]), np.hypot(*b[3:])]), at.values)  # of L
    errors = np.sqrt(np.diag(turn.T @ np.linalg.inv(scores.T @ scores) @ turn))
    assert (found.level[1], found.slope[1]) == pytest.approx(tuple(errors), rel=0.01)
    differ = differ.sum()
    x = np.column_stack([one, q])
    alike = log_likelihoods(x @ fit_logit(x, yes, np.zeros(2)), yes).sum()
    assert found.ratio == pytest.approx(2 * (differ - alike), rel=1e-3)
    assert found.p_value == pytest.approx((chi2.sf(found.ratio, 2) + chi2.sf(found.ratio, 3)) / 2)
    uniforms = np.random.default_rng(20_221).random((80, 8))
    held = (uniforms == uniforms.min(axis=1, keepdims=True)).ravel()  # one row in five, of each
    b = fit_logit(x[~held], yes[~held], np.zeros(2))
    assert found.alike == pytest.approx(log_likelihoods(x[held] @ b, yes[held]).mean(), abs=1e-4)
    z = np.stack(np.meshgrid(*[np.linspace(-5, 5, 41)] * 2), axis=-1).reshape(-1, 2)
    u, v = (z @ root.T + found.law.mean).T
    chance = expit(u - np.exp(v) * q[:, None])
    chance = np.where(yes[:, None] > 0, chance, 1 - chance).reshape(80, 8, -1)
    out = held.reshape(80, 8, 1)
    weight = np.where(out, 1.0, chance).prod(axis=1) * np.exp(-(z**2).sum(axis=1) / 2)
    chosen_chance = (weight * np.where(out, chance, 1.0).prod(axis=1)).sum(axis=1) / weight.sum(
        axis=1
    )
    assert found.held_out == pytest.approx(np.log(chosen_chance).mean(), abs=0.01)


def test_a_visit_by_hand():
    """People keep their age and taste; chances, regret and contexts are those of their own logit;
    a person's theta that moved, or features of others, would show, as rows are in no order."""
    log = visits().sample(frac=1, random_state=0)
    problem = quietly(log, **PERSONAL, people=7, visits=6, horizon=42, empty=0.2)
    problem.reset(Streams(range(3)))
    ages, action = {}, np.array([0, 4, 8])
    for _ in range(42):
        context = problem.context().copy()
        step = problem.step(action)
        for r in range(3):
            who, one, age = context[r]
            if who < 0:
                assert not step.reward[r]
                assert not step.regret[r]
                continue
            assert one == pytest.approx(0.5**0.5)
            assert ages.setdefault((r, who), age) == age
            a, c, b, d = problem._customers.theta[r, int(who)]
            x = age * 2**0.5
            prices = np.array(problem.spec.visit.prices)
            margins = (prices - 0.8) * expit(a + c * x - np.exp(b + d * x) * (prices - 2))
            assert step.expected[r] == pytest.approx(margins[action[r]])
            assert step.oracle[r] == pytest.approx(margins.max())
            assert step.reward[r] in (0, prices[action[r]] - 0.8)
    assert len(ages) == 21
    assert len(set(ages.values())) > 10
    few = quietly(visits(), **PERSONAL, people=5, visits=10, horizon=50, arrivals="exactly")
    check_problem(few)
    small = replace(few.spec, people=3, visits=Visits(3, 1), horizon=9)
    assert check_agent(PersonalPricing(particles=8, first_batch=2), small)


def test_what_is_said_of_people_is_their_average():
    """Oracle: Gauss and Hermite over tastes, of as many visits at 18 as at 90, in another order in
    the first half of people; within 0.02. The guess without a survey by hand."""
    rng, who = np.random.default_rng(0), np.repeat(np.arange(80), 8)
    old = (who < 40) == (np.arange(640) % 8 < 4)
    price, tastes = rng.choice(np.linspace(1, 3, 9), 640), rng.standard_normal((2, 80))[:, who]
    logit = 3.0 * old - 1.2 + 1.5 * tastes[0] - 1.2 * np.exp(0.5 * tastes[1]) * (price - 2)
    log = {"who": who, "age": np.where(old, 90, 18), "price": price}
    problem = quietly(
        {**log, "sold": 1 * (rng.random(640) < expit(logit))}, **PERSONAL, prices=(1.5, 2.5)
    )
    law, guess = problem.spec.visit.survey, np.diag(problem.spec.visit.guess.matrix)
    assert guess.tolist() == [2**2, 1, 1, 0.5**2]
    node, weight = np.polynomial.hermite_e.hermegauss(24)
    z = np.stack(np.meshgrid(node, node), axis=-1) @ np.linalg.cholesky(law.matrix[::2, ::2]).T
    each, (a, c, b, d) = np.outer(weight, weight) / 2 / np.pi, law.mean
    share, earned = np.zeros(2), 0.0
    for x in (-1, 1):
        steep = np.exp(b + d * x + z[..., 1])[..., None] * np.array([-0.5, 0.5])
        chance = expit((a + c * x + z[..., 0])[..., None] - steep)
        share += np.einsum("ij,ijk->k", each, chance) / 2
        earned += (each * (chance * [0.7, 1.7]).max(axis=2)).sum() / 2
    curve = np.column_stack([(1.5, 2.5), share, share * [0.7, 1.7]])
    np.testing.assert_allclose(problem.diagnostics.curve, curve, atol=0.02)
    assert problem.diagnostics.oracle == pytest.approx(earned, abs=0.02)


def test_it_is_one_environment_everywhere(tmp_path, monkeypatch):
    """A path, a frame, gym.make and what `dpbandit fit` writes; results keep no rows, the ledger is
    of a person."""
    monkeypatch.chdir(tmp_path)
    visits().to_csv("visits.csv", index=False)
    line = "fit visits.csv --feature age=18:90 --price-range 1:3 --unit-cost 0.8 --person who"
    line += " --people 20 --visits 5 --sweep sweep.toml"
    said = CliRunner().invoke(cli.app, line.split()).output
    assert "100 people, 8 offers each" in said
    best = "personal-pricing,personal-pricing:population=survey:epsilon=inf"
    assert f"--agents {best} --horizon 100" in said
    planned = plan(Sweep.read("sweep.toml")).configurations
    epsilons = {o.config.epsilon for o in planned if "personal-pricing" in o.name}
    assert epsilons == {0.3, 1.0, 3.0, 10.0, inf}
    assert "never a person of your log" in " ".join(said.split())
    few = {**PERSONAL, "people": 20, "visits": 5}
    frame = gym.make("dpbandit/PricingFromLog-v0", frame=visits(), **few)
    runs = [
        compare(problem, "personal-pricing", horizon=60, replicas=2)
        for problem in ("shop.toml", quietly("visits.csv", **few), frame)
    ]
    for results in runs:
        assert results.summary()["mean"].equals(runs[0].summary()["mean"])
        assert len(str(results.env_kwargs)) < 400
    assert recommend(frame).startswith("personal-pricing")
    proof = certify("personal-pricing", "shop.toml", horizon=60, accountants=False)
    assert proof.holds
    assert "person" in proof.ledger.brief


LOG = visits()
PRICES = 1 + LOG["who"] % 9 / 4
HIS = 1 * (expit(4 - 2 * PRICES) > np.random.default_rng(2).random(800))


@each(
    ("change", "says"),
    [
        ({"frame": visits(tastes=(0, 0))}, "'who' whose tastes differ by more than noise, got"),
        ({"frame": visits(150, 3)}, "at least 5 rows each, in the median, got 3"),
        ({"frame": LOG.assign(who=1)}, "at least 30 people in 'who', got 1"),
        ({"frame": LOG.assign(who=[None] * 3 + ["a"] * 797)}, "'who', got 3 of 800"),
        ({"frame": LOG.assign(price=PRICES, sold=HIS)}, "visits of a person, got R2 = 1.00000"),
        ({"frame": LOG.assign(sold=1)}, "sold is always 1"),
        ({"frame": LOG.assign(sold=0)}, "sold is always 0"),
        ({"frame": LOG.assign(price=2.0)}, "more than one price in the log"),
        ({"person": "name"}, "a column 'name', the table has"),
        ({"person": "price"}, "person='price' to be a column of its own"),
        ({"person": "sold"}, "person='sold' to be a column of its own"),
        ({"person": "age"}, "person='age' to be a column of its own"),
        ({"person": None, "people": 7}, "Expected person= with people=7"),
        ({"season": (1, 9)}, r"no season= with person=, got \(1, 9\)"),
        ({"clusters": "age"}, "no clusters= with person=, got 'age'"),
        ({"arrivals": "loyal"}, "arrivals='loyal'"),
        ({"people": 0}, "people=0"),
        ({"frame": {**LOG, "who": LOG["who"][1:]}}, "'who' to hold one entry for each of 800"),
        ({"frame": {**LOG, "w": [1]}, "person": None, "clusters": "w"}, "'w' to hold one entry"),
        ({"features": 5}, "Expected bounds of feature 'age'"),
    ],
)
def test_refusals_in_one_sentence(change, says):
    with pytest.raises(InputError, match=says) as caught:
        quietly(**{"frame": LOG, **PERSONAL, **change})
    assert "\n" not in str(caught.value)
    assert str(caught.value).count(". ") == 0
