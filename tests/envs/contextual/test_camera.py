"""Selling cameras: the frozen values of prices and offers, and play that agrees with them."""

import copy
import pickle
from math import sqrt

import numpy as np
import pytest
from scipy.special import expit

from dpbandit import InputError
from dpbandit.agents.contextual.demand import demand_rows
from dpbandit.base.random_streams import Streams
from dpbandit.envs import CameraOffer, CameraPricing
from dpbandit.envs.contextual.camera_people import camera, camera_people
from tests.each import each

PRICES = np.array([0.79, 1.04, 1.29, 1.54, 1.79, 2.04, 2.29, 2.54, 2.79])
LIMIT = 5.0  # |z| beyond it: probability 6e-7 under the null


def values(problem):
    """Uniform play, the best fixed arm and which, and the oracle, a round; exact sums."""
    w = problem._people.weights
    means = problem._worth * problem._chances
    each = w @ means
    return [each.mean(), each.max(), w @ means.max(axis=1)], each.argmax()


def person_known(cameras, price, margins):
    return (margins * expit(camera_people().utility(cameras, price))).max(axis=1).mean()


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
    for value, golden in zip(found, expected, strict=True):
        if golden is not None:
            assert value == pytest.approx(golden, abs=5e-5)


def test_demand_and_margins_at_each_price():
    """Golden, and which price is best for which share of the customers."""
    problem = CameraPricing()
    w, buys = problem._people.weights, problem._chances
    demand = [0.7473, 0.6814, 0.6134, 0.5477, 0.4875, 0.4331, 0.3836, 0.3395, 0.3005]
    margins = [0.2167, 0.3680, 0.4846, 0.5696, 0.6289, 0.6669, 0.6867, 0.6925, 0.6881]
    assert problem.spec.prices == pytest.approx(tuple(PRICES))
    np.testing.assert_allclose(w @ buys, demand, atol=5.1e-5)
    np.testing.assert_allclose(w @ (problem._worth * buys), margins, atol=5.1e-5)
    best = np.bincount((problem._worth * buys).argmax(axis=1), w, minlength=9)
    assert (best > 0).all()
    assert best[[0, 8]].round(2).tolist() == [0.13, 0.32]


def test_more_answers_are_worth_more():
    """Golden: the oracle's value by the number of tasks answered; 4 is the default's above."""
    golden = {1: 0.7572, 2: 0.7761, 3: 0.7887, 5: 0.8160}
    for tasks, value in golden.items():
        assert values(CameraPricing(tasks=tasks))[0][2] == pytest.approx(value, abs=5e-5)
        assert camera_people(tasks).weights.sum() == pytest.approx(1, abs=1e-12)


def test_a_flagship_is_best_at_the_highest_price():
    """Golden: context adds 10 % there, in place of 17."""
    (_, fixed, oracle), best = values(
        CameraPricing(attributes=("canon", "pixels", "zoom", "video", "swivel", "wifi"))
    )
    assert best == 8
    assert oracle / fixed == pytest.approx(1.10, abs=0.005)


@pytest.mark.parametrize(
    ("contexts", "additive", "interactions"),
    [
        ("posterior", 0.7438, 0.7968),
        ("answers", 0.7399, 0.8007),
        ("score", 0.7387, 0.7977),
    ],
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
        played = (problem._worth * expit(every @ theta)).argmax(axis=1)
        earned = (problem._worth * buys)[np.arange(625), played]
        assert w @ earned == pytest.approx(golden, abs=5e-5)


def test_the_values_of_offers():
    """Golden: 0.3774 / 0.6280, the Sony at the highest price / 0.7440 / 0.9321."""
    problem = CameraOffer()
    found, best = values(problem)
    assert found == pytest.approx([0.3774, 0.6280, 0.7440], abs=5e-5)
    assert best == 9
    names = (("canon", "video", "wifi"), ("sony", "zoom", "video", "wifi"), ("panasonic", "pixels"))
    products = np.repeat([camera(*each) for each in names], 5, axis=0)
    price = np.tile([0.79, 1.29, 1.79, 2.29, 2.79], 3)
    margins = price - np.repeat([0.60, 0.70, 0.50], 5)
    np.testing.assert_allclose(problem._worth, margins)
    assert person_known(products, price, margins) == pytest.approx(0.9321, abs=5e-5)


@pytest.mark.parametrize("kind", [CameraPricing, CameraOffer])
def test_play_agrees_with_the_sums(kind):
    """z tests of each arm over 60,000 customers: false alarm 2e-5 together; the oracle's mean
    within 1 %. Purchases are rewards of the arm's margin, else nothing."""
    problem = kind()
    problem.reset(Streams([(1, r) for r in range(3)]))
    users = problem._users(20_000)
    surprise = users.reward - users.mean
    assert (np.abs(surprise.mean(axis=(0, 1))) < LIMIT * users.reward.std(axis=(0, 1)) / 245).all()
    assert users.mean.max(axis=2).mean() == pytest.approx(values(problem)[0][2], rel=0.01)
    assert ((users.reward == 0) | np.isclose(users.reward, problem._worth)).all()
    assert problem.spec.reward_high == users.reward.max() == pytest.approx(2.29)


def test_demand_falls_for_everybody():
    """Property: nobody who buys at a price would not buy at a lower one, same luck."""
    problem = CameraPricing()
    problem.reset(Streams([4]))
    sold = problem._users(3000).reward > 0
    assert sold.any()
    assert (np.diff(sold.astype(int), axis=2) <= 0).all()


def test_the_same_customers_in_all_contexts():
    first = []
    for contexts in ("posterior", "answers", "score"):
        problem = CameraPricing(contexts=contexts)
        problem.reset(Streams([5]))
        users = problem._users(50)
        first.append(users.reward)
        assert users.context.shape[2] == problem.spec.dim
        assert np.linalg.norm(users.context, axis=2).max() <= 1 + 1e-12
    assert (first[0] == first[1]).all()
    assert (first[0] == first[2]).all()
    assert users.context[:, 0, 0] == pytest.approx(1 / sqrt(2))


def test_copies_share_the_people():
    problem = CameraPricing()
    assert copy.deepcopy(problem)._people is problem._people
    assert len(pickle.dumps(problem)) < 200_000


@each(
    ("arguments", "said"),
    [
        ({"unit_cost": 0.9}, "unit_cost=0.9"),
        ({"unit_cost": float("nan")}, "unit_cost"),
        ({"tasks": 0}, "tasks=0"),
        ({"tasks": [4]}, "tasks"),
        ({"contexts": "age"}, "contexts='age'"),
        ({"attributes": "sony"}, "attributes='sony'"),
        ({"attributes": None}, "attributes=None"),
        ({"attributes": ("sony", "lens")}, "attribute='lens'"),
        ({"attributes": ("zoom",)}, "one brand"),
        ({"attributes": ("sony", "canon")}, "one brand"),
    ],
)
def test_what_is_refused(arguments, said):
    with pytest.raises(InputError, match=said):
        CameraPricing(**arguments)
