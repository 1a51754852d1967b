"""Sensitivities of choices against brute force, and epochs that no noise makes private."""

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dpbandit import InputError, audit
from dpbandit.agents import MNLBandit, MNLCounts
from dpbandit.privacy.sales import ChoiceScores, Purchases
from dpbandit.specs.choice import AssortmentSpec
from dpbandit.testing.checks import billboard_differences, two_worlds
from tests.broken.choice import EpochsOfNoisyCounts
from tests.harness import CHOICE


def log_likelihood(theta, x, bought):
    """Of one choice among rows (S, D), S for nothing, written down anew."""
    utility = np.append(x @ theta, 0.0)
    return utility[bought] - np.log(np.exp(utility).sum())


def added(statistic, theta, x, bought, there=None):
    """By one user, in units: (p,)."""
    there = np.ones(len(x), bool) if there is None else there
    datum = (theta[None, None], x[None, None], there[None, None], np.array([[bought]]))
    return statistic.total(*datum)[0] / statistic.units


def test_scores_are_derivatives_of_the_likelihood():
    """Oracle: q - H theta is the gradient, H minus the Hessian, by central differences; and the
    half-vectorisation keeps Frobenius norms."""
    rng, h = np.random.default_rng(0), 1e-4
    statistic = ChoiceScores(dim=3, at_most=4, information_clip=9.0, response_clip=9.0)
    for bought in range(5):
        theta, x = rng.normal(size=3), rng.normal(size=(4, 3)) / 4
        unit = added(statistic, theta, x, bought)
        q, H = statistic.unpack(unit * statistic.units)
        steps = h * np.eye(3)

        def slope(at, x=x, bought=bought, steps=steps):
            up, down = ([log_likelihood(at + s * e, x, bought) for e in steps] for s in (1, -1))
            return (np.array(up) - down) / (2 * h)

        np.testing.assert_allclose(q - H @ theta, slope(theta), atol=1e-7)
        hessian = [(slope(theta + e) - slope(theta - e)) / (2 * h) for e in steps]
        np.testing.assert_allclose(-H, hessian, atol=1e-6)
        assert np.linalg.norm(unit[3:]) == pytest.approx(np.linalg.norm(H))


def test_a_user_moves_scores_by_their_sensitivity_at_most():
    """Brute force: the two farthest apart of 1,500 users at the bounds, and far beyond them, at
    each of 8 reference points. They meet 98 % of the bound, so it is no guess."""
    rng, n = np.random.default_rng(1), 1500
    statistic = ChoiceScores(dim=2, at_most=3)
    assert statistic.sensitivity == pytest.approx(sqrt(2.75))
    farthest = []
    for size in (0, 1, 1, 3, 3, 8, 8, 30):
        theta = rng.normal(size=2)
        theta *= size / np.linalg.norm(theta)
        x = rng.normal(size=(1, n, 3, 2)) * rng.choice([10.0, 1e9], size=(1, n, 1, 1))
        there, bought = rng.random((1, n, 3)) < 0.9, rng.integers(4, size=(1, n))
        found = statistic.total(np.broadcast_to(theta, (1, n, 2)), x, there, bought)
        farthest.append(pdist(found / statistic.units).max() / statistic.sensitivity)
    assert 0.97 < max(farthest) <= 1 + 1e-12


def test_a_user_moves_purchases_by_root_two():
    """Brute force over all sets of at most 3 of 4 products and all that can be bought of them."""
    statistic, found = Purchases(n_items=4, at_most=3), []
    for size in range(4):
        for members in combinations(range(4), size):
            offered = np.isin(np.arange(4), members)[None, None]
            found += [statistic.total(offered, np.array([[y]]))[0] for y in range(5)]
    gaps = np.linalg.norm(np.array(found)[:, None] - found, axis=2)
    assert gaps.max() == pytest.approx(statistic.sensitivity) == pytest.approx(sqrt(2))


def test_epochs_are_not_private_whatever_noise_is_added_to_counts():
    """With all noisy counts held fixed, the next user's set still shows whether the last bought: in
    half of the pairs of users and more. The honest agent with public batches shows nothing."""
    for config, leaks in ((EpochsOfNoisyCounts(), True), (MNLCounts(), False)):
        found = billboard_differences(*two_worlds(config, CHOICE, (7,)))
        assert ("other users' actions" in found) == leaks


def test_an_audit_flags_epochs():
    """In the set that is remembered a purchase shows at once."""
    spec = AssortmentSpec(n_products=2, at_most=1, dim=2, horizon=24, margins=(0.5, 1.0))
    quick = {"runs": 1000, "progress": False}
    assert audit(EpochsOfNoisyCounts(epsilon=1.0), spec, **quick).flagged
    assert not audit(MNLCounts(epsilon=1.0), spec, **quick).flagged


def test_a_claim_of_epochs_is_refused_with_its_reason():
    with pytest.raises(InputError, match=r"delta >= 1 - p at every epsilon.*Use MNLCounts"):
        MNLBandit(epsilon=1.0)
