"""Which cameras to show: exact values, and how wrong one logit is."""

import numpy as np
import pytest

from dpbandit.envs import CameraAssortment
from dpbandit.envs.choice.camera_assortment import PRODUCTS
from dpbandit.envs.contextual.camera_people import camera
from dpbandit.specs.best_sets import best_levels


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


def test_all_eight_earn_less_than_three():
    problem = CameraAssortment(at_most=8)
    assert (problem._people.weights @ problem._values)[-1] == pytest.approx(0.8832, abs=5e-5)


def test_one_logit_finds_the_best_set_and_believes_too_much_of_it():
    misfit = CameraAssortment().misfit()
    assert misfit.offered == (1, 3, 5)
    assert misfit.believed == pytest.approx(1.1362, abs=5e-5)
    assert misfit.earned == misfit.best == pytest.approx(1.0171, abs=5e-5)
