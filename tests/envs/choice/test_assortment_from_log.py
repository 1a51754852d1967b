"""A log of choices becomes a shop: what is fitted, what is refused, and who plays on it."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dpbandit import InputError, compare
from dpbandit.agents import MNLUCB, FadeMNL
from dpbandit.envs import AssortmentFromLog
from dpbandit.envs.choice.choice_fit import Visits, fit_choice, price_z
from tests.each import each
from tests.envs.contextual.logs import DRINKS, drinks


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


def test_errors_are_those_of_many_logs():
    """The spread of the slope over 60 logs, against its sandwich; by 4 errors of a spread."""
    fits = [(seen, fit_choice(seen, 1e-6)) for seen in (visits(seed=s) for s in range(60))]
    slopes = np.array([fit.slope for _, fit in fits])
    errors = [fit.slope / price_z(seen, fit, 1e-6, None) for seen, fit in fits]
    assert np.mean(errors) == pytest.approx(slopes.std(ddof=1), rel=4 / np.sqrt(2 * 59))
    assert slopes.mean() == pytest.approx(-1, abs=4 * slopes.std() / np.sqrt(60))


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


def changed(**columns):
    return drinks().assign(**columns)


@each(
    ("frame", "told", "words"),
    [
        (drinks(), {"products": None}, "products="),
        (drinks(), {"products": {"cola": "cola"}}, "column 'cola'"),
        (drinks(), {"price_range": None}, "price_range="),
        (drinks(), {"price_range": (1.5, 3.0)}, r"every price in price_range=\(1.5, 3\)"),
        (drinks(), {"unit_cost": None}, "unit_cost="),
        (drinks(), {"unit_cost": {"cola": 1}}, "a cost for each"),
        (drinks(), {"features": None}, "features="),
        (drinks(100), {}, "at least 200 rows"),
        (drinks(slope=1.5), {}, "rises in this log"),
        (drinks(slope=0.0), {}, "told apart from 0|rises"),
        (changed(bought="tea"), {}, "one of"),
        (changed(bought="cola"), {}, "was shown"),
        (changed(bought="none"), {}, "'cola' to be taken in at least 10 visits"),
        (changed(price_cola="much"), {}, "hold prices"),
        (changed(price_cola=np.inf), {}, "finite prices"),
        (changed(price_cola=2.0, price_water=2.0, price_juice=2.0), {}, "more than one price"),
    ],
)
def test_what_cannot_be_fitted_is_refused(frame, told, words):
    with pytest.raises(InputError, match=words):
        AssortmentFromLog(frame, **{**DRINKS, **told})
