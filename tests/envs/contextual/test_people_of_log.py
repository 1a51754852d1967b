"""A shop of one's own whose customers come back: tastes against quadrature and the truth, and every
refusal."""

import re
from dataclasses import replace
from math import inf

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from scipy.special import expit
from scipy.stats import chi2
from typer.testing import CliRunner

from dpbandit import InputError, certify, cli, compare, recommend
from dpbandit.agents import PersonalPricing
from dpbandit.base import Streams
from dpbandit.envs import (
    ReturningPricing,
)
from dpbandit.envs.contextual.logs import (
    fit_logit,
    log_likelihoods,
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
from dpbandit.specs import Visits
from dpbandit.studies import Sweep, plan
from dpbandit.testing import check_agent, check_problem
from tests.each import each, in_turn, marks, refused
from tests.envs.contextual.logs import PERSONAL, quietly, visits
from tests.slopes import comparing, differences


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


@pytest.mark.parametrize("logs", [6, pytest.param(100, marks=marks(1, 3, slow=True))])
def test_people_who_are_alike_are_seldom_taken_to_differ(logs):
    """In at most 1 % of logs: of 100, at one commit in three, more than 5 by chance with
    probability 6e-4, of 6 more than 1 with 1.5e-3. People who differ are told in every one of a
    tenth as many, by the likelihood ratio of the population that is reported to a logit of all
    rows; a visit of each is held out, and said by a sum over tastes given her others."""
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
