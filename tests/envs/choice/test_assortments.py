"""Assortments: best sets, fixed and random ones, fits to logs and to the camera study."""

from itertools import combinations, product

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from gymnasium.vector.utils import batch_space
from scipy.optimize import minimize
from scipy.special import lambertw
from scipy.stats import chisquare

from dpbandit import InputError, compare
from dpbandit.agents import MNLUCB, FadeMNL
from dpbandit.base.random_streams import Streams
from dpbandit.envs import AssortmentFromLog, CameraAssortment
from dpbandit.envs.choice.assortment_from_log import Visits, fit_choice
from dpbandit.envs.choice.assortments import Enumerated, Exchanged, every_set
from dpbandit.envs.choice.camera_assortment import PRODUCTS
from dpbandit.envs.contextual.camera import camera
from dpbandit.specs.choice import (
    AssortmentSpec,
    FreelyPricedSpec,
    PricedAssortmentSpec,
    best_levels,
    best_prices,
)
from tests.each import each
from tests.envs.contextual.logs import DRINKS, drinks


def margin_of(v, r):
    return (v * r).sum() / (1 + v.sum())


def enumerated(weight, margins, at_most):
    """The best of all sets at all levels, one by one."""
    N, P = weight.shape
    best = 0.0
    for size in range(1, at_most + 1):
        for members in combinations(range(N), size):
            for levels in product(range(P), repeat=size):
                at = (list(members), list(levels))
                best = max(best, margin_of(weight[at], margins[at]))
    return best


@each(("N", "P", "S"), [(8, 1, 3), (8, 1, 8), (4, 3, 2)])
def test_sets_equal_enumeration(N, P, S):
    """Oracle: 300 random instances altogether, to 1e-12, and the set returned is worth what is
    said."""
    rng = np.random.default_rng(0)
    weight = np.exp(rng.normal(-1, 1.5, (100, N, P)))
    margins = rng.uniform(0.05, 1, (100, N, P))
    best, worth = best_levels(weight, margins, S)
    for i in range(100):
        assert worth[i] == pytest.approx(enumerated(weight[i], margins[i], S), abs=1e-12)
        j = np.flatnonzero(best[i])
        assert 1 <= len(j) <= S
        at = (j, best[i, j] - 1)
        assert margin_of(weight[i][at], margins[i][at]) == pytest.approx(worth[i], abs=1e-12)
    # at N = 200 the best set of any size is {j: r_j > R*}, ordered by revenue
    weight, margins = np.exp(rng.normal(0, 3, (50, 200, 1))), rng.uniform(0, 1, (50, 200, 1))
    best, worth = best_levels(weight, margins, 200)
    np.testing.assert_array_equal(best > 0, margins[..., 0] > worth[:, None])


def test_free_prices_have_a_common_markup():
    """Golden: unbounded, all products, equal slopes: R* = W(sum exp(a - b c - 1)) / b, and every
    price is cost + 1 / b + R* (set the derivative of R(p) to 0)."""
    rng = np.random.default_rng(2)
    a, c, b = rng.normal(1, 1, (20, 5)), rng.uniform(0, 1, 5), 2.0
    prices, worth = best_prices(a, np.array(b), c, 1e-9, 1e9, 5)
    wanted = lambertw(np.exp(a - b * c - 1).sum(axis=1)).real / b
    np.testing.assert_allclose(worth, wanted, rtol=1e-12)
    np.testing.assert_allclose(prices, c + 1 / b + worth[:, None], rtol=1e-6)  # flat at the top


def test_exchanges_find_the_best_set():
    """Oracle: of 50 mixtures of 40 users, 7 products at 2 prices: exchanges end where enumeration
    does; adding one product after the other does in 96 %."""
    rng, R = np.random.default_rng(0), 50
    v, margins = np.exp(rng.normal(-1, 2, (40, R, 7, 2))), rng.uniform(0.1, 1, (7, 2))
    sets = every_set(7, 3, 2)

    def worth(users):
        chosen = (sets[:, :, None] == [1, 2])[None, None]
        w = users[:, :, None] * chosen
        return ((w * margins).sum(axis=(3, 4)) / (1 + w.sum(axis=(3, 4)))).sum(axis=0)

    exact, climbed = Enumerated(sets, worth, R), Exchanged(lambda users: users, margins, 3, R)
    for contest in (exact, climbed):
        for part in np.split(v, 4):
            contest.add(part)
    totals = exact._totals
    earned = np.array(
        [totals[r][(sets == found).all(axis=1)][0] for r, found in enumerate(climbed.best())]
    )
    np.testing.assert_array_equal(earned, totals.max(axis=1))


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
    """Oracle: a general minimiser of the likelihood written out product by product."""
    seen, ridge = visits(), 0.01

    def loss(b):
        total = ridge * (b[1] ** 2 + b[3] ** 2 + b[4] ** 2) / 2
        for x, q, shown, y in zip(*seen, strict=True):
            v = [x @ b[:2] + b[4] * q[0], x @ b[2:4] + b[4] * q[1], 0.0]
            weights = [np.exp(v[j]) for j in range(3) if j == 2 or shown[j]]
            total += (np.log(sum(weights)) - v[y]) / len(seen.choice)
        return total

    found = fit_choice(seen, ridge)
    mine = np.append(found.tastes.ravel(), found.slope)
    best = minimize(loss, np.zeros(5), tol=1e-10).x
    np.testing.assert_allclose(mine, best, atol=1e-5)


def test_the_truth_comes_back_and_agents_play_on_it():
    problem = AssortmentFromLog(drinks(), **DRINKS)
    said = problem.diagnostics
    assert said.slope == pytest.approx(-1.5, abs=4 * abs(said.slope / said.z))
    assert said.log_likelihood > said.constant
    assert abs(said.calibration - 1) < 4 * said.calibration_error
    assert "slope" in repr(problem)
    agents = {"fade": FadeMNL(epsilon=8), "ucb": MNLUCB()}
    results = compare(problem, agents, horizon=400, replicas=2, progress=False)
    mean = results.summary().set_index("agent")["mean"]
    assert mean["ucb"] < mean["Uniform"] / 2
    assert results.certificates["fade"].epsilon == pytest.approx(8)


TOLD = drinks()


@each(
    ("frame", "told", "words"),
    [
        (TOLD, {"products": None}, "products="),
        (TOLD, {"products": {"cola": "cola"}}, "column 'cola'"),
        (TOLD, {"price_range": None}, "price_range="),
        (TOLD, {"price_range": (1.5, 3.0)}, r"every price in price_range=\(1.5, 3\)"),
        (TOLD, {"unit_cost": None}, "unit_cost="),
        (TOLD, {"unit_cost": {"cola": 1}}, "a cost for each"),
        (TOLD, {"features": None}, "features="),
        (drinks(100), {}, "at least 200 rows"),
        (drinks(slope=1.5), {}, "rises in this log"),
        (drinks(slope=0.0), {}, "told apart from 0|rises"),
        (TOLD.assign(bought="tea"), {}, "one of"),
        (TOLD.assign(bought="cola"), {}, "was shown"),
        (TOLD.assign(bought="none"), {}, "'cola' to be taken in at least 10 visits"),
        (TOLD, {"products": {"none": "price_cola"}}, "names of their own"),
        (TOLD.assign(bought=pd.NA), {}, "'cola' to be taken in at least 10 visits"),
        (TOLD.assign(price_cola="much"), {}, "hold prices"),
        (TOLD.assign(price_cola=b"1"), {}, "hold prices, .* got b'1'"),
        (TOLD.assign(price_cola=pd.Timestamp("2020-01-01")), {}, "hold prices, .* got Timestamp"),
        ({**TOLD, "price_cola": [2.0]}, {}, "'price_cola' to hold one entry for each of"),
        (TOLD.assign(price_cola=np.inf), {}, "finite prices"),
        (TOLD.assign(price_cola=2.0, price_water=2.0, price_juice=2.0), {}, "more than one price"),
    ],
)
def test_what_cannot_be_fitted_is_refused(frame, told, words):
    with pytest.raises(InputError, match=words):
        AssortmentFromLog(frame, **{**DRINKS, **told})


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
    assert misfit.believed == pytest.approx(1.1362, abs=5e-5)
    assert misfit.earned == misfit.best == pytest.approx(1.0171, abs=5e-5)


def test_masks_that_are_no_assortments_are_repaired():
    """What a policy of Stable-Baselines3 may send: every product, or none."""
    for offered in (0, 1):
        env = gym.make("dpbandit/AssortmentBandit-v0", horizon=4, n_products=5, at_most=2)
        env.reset(seed=0)
        info = env.unwrapped.step(np.full(5, offered))[4]
        assert info["choice"] in ((0, 1, 5) if offered else (0, 5))
        repaired = env.unwrapped.problem.spec.repaired
        assert repaired(np.full((1, 5), offered)).tolist() == [[1, 1 * offered, 0, 0, 0]]
        assert repaired("x") == "x"
