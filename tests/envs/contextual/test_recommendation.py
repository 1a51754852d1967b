"""Recommendation, simulated and fitted to a log."""

from math import sqrt

import numpy as np
import pytest
from scipy.special import expit, logit

from dpbandit import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import Recommendation, RecommendationFromLog
from tests.each import each
from tests.envs.contextual.logs import CLICKS, clicks

LIMIT = 5.0  # |z| beyond it: probability 6e-7 under the null


def users(count=100, replicas=3, **arguments):
    """A started problem and its first `count` users."""
    problem = Recommendation(**arguments)
    problem.reset(Streams([(1, r) for r in range(replicas)]))
    return problem, problem._users(count)


def slates(problem, context):
    """The catalogue index of every candidate, (n, R, K), read off its features."""
    taste = problem.taste
    v = context[..., 1 : 1 + taste] / context[..., :1]  # (n, R, K, taste)
    distance = np.linalg.norm(v[:, :, :, None] - problem._items[None, :, None], axis=-1)
    assert distance.min(axis=-1).max() < 1e-12  # every candidate is in the catalogue
    return distance.argmin(axis=-1)


def test_features_are_unit_rows_built_from_item_and_taste():
    """phi ~ (1, v, u * v): |v| = 1, and one u of norm sqrt(taste) explains the whole slate."""
    problem, drawn = users(taste=4)
    np.testing.assert_allclose(np.linalg.norm(drawn.context, axis=-1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(problem._items, axis=-1), 1, rtol=1e-12)
    constant, v, uv = np.split(drawn.context, [1, 5], axis=-1)
    assert (constant > 0).all()
    u = uv / v
    np.testing.assert_allclose(u, np.broadcast_to(u[:, :, :1], u.shape), rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(u[:, :, 0], axis=-1), 2, rtol=1e-6)


def test_slates_hold_distinct_items_of_the_catalogue():
    problem, drawn = users(n_actions=6, n_items=8)
    items = np.sort(slates(problem, drawn.context), axis=-1)
    assert (np.diff(items, axis=-1) > 0).all()
    problem, drawn = users(n_actions=7, n_items=7)
    items = np.sort(slates(problem, drawn.context), axis=-1)
    assert (items == np.arange(7)).all()  # the whole catalogue


def test_every_item_is_on_as_many_slates():
    """z test for each of 12 items: false alarm 7e-6 together; 15 % off is caught (asserted)."""
    problem, drawn = users(4000, replicas=1, n_actions=3, n_items=12)
    share = np.bincount(slates(problem, drawn.context).ravel(), minlength=12) / 4000
    stderr = sqrt(0.25 * 0.75 / 4000)
    assert np.abs(share - 0.25).max() < LIMIT * stderr < 0.15 * 0.25


def test_click_probabilities_follow_the_stated_law():
    """Oracle: the formula of the docstring, term by term."""
    problem, drawn = users(base_rate=0.3, appeal=2.0, taste=3)
    signal = np.einsum("nrkd,rd->nrk", drawn.context, problem._theta)
    truth = expit(logit(0.3) + 2.0 * sqrt(7) * signal)
    np.testing.assert_allclose(drawn.mean, truth, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(problem._theta, axis=-1), 1, rtol=1e-12)


def test_appeal_is_the_standard_deviation_of_the_click_logit():
    """z test of the variance over 3,000 episodes: false alarm 6e-7; 20 % off is caught (asserted).

    |phi| = 1 and theta is uniform on the sphere, so sqrt(dim) phi . theta has mean 0, variance 1.
    """
    _, drawn = users(1, replicas=3000, base_rate=0.5, appeal=0.8, n_actions=2, n_items=3)
    squares = (logit(drawn.mean[0, :, 0]) / 0.8) ** 2
    stderr = squares.std() / sqrt(3000)
    assert abs(squares.mean() - 1) < LIMIT * stderr < 0.2


def test_clicks_come_as_often_as_they_should():
    """z test over 60,000 clicks: false alarm 6e-7; 0.01 on the click rate is caught (asserted)."""
    _, drawn = users(20_000, n_items=20)
    assert set(np.unique(drawn.reward)) == {0.0, 1.0}
    surprise = (drawn.reward - drawn.mean)[..., 0]
    stderr = sqrt((drawn.mean * (1 - drawn.mean))[..., 0].mean() / surprise.size)
    assert abs(surprise.mean()) < LIMIT * stderr < 0.011


def test_the_best_arm_has_no_regret_and_the_others_some():
    problem = Recommendation()
    problem.reset(Streams([1, 2]))
    shadow = Recommendation()
    shadow.reset(Streams([1, 2]))
    mean = shadow._users(50).mean
    for t in range(50):
        problem.context()
        best, worst = mean[t].argmax(axis=1), mean[t].argmin(axis=1)
        step = problem.step(best if t % 2 else worst)
        assert (step.oracle == mean[t].max(axis=1)).all()
        assert (step.regret == 0).all() if t % 2 else (step.regret > 0).all()


def test_the_truth_comes_back():
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


def wrong(**columns):
    return clicks(n=900).assign(**columns)


RARE = [0] * 20 + [0, 1] * 440
WRONG = [
    ({"frame": wrong(click=2)}, "'click' to hold 0 and 1 only, got 2"),
    ({"frame": wrong().head(150)}, "at least 200 rows, got 150"),
    ({"frame": wrong(click=0)}, "click is always 0"),
    ({"frame": wrong(click=[1] * 20 + [0] * 880)}, "at least 30 rows of either answer"),
    ({"frame": wrong(item="news")}, "'sport' was never shown"),
    ({"frame": wrong(item=["games"] * 20 + ["news", "news", "sport", "sport"] * 220, click=RARE)},
     "0 and 1 where item is games, got 0 in all 20"),
    ({"frame": clicks(n=900, appeal=0.0)}, "they are not told apart"),
    ({"frame": wrong(item="weather")}, r"hold only items=.*got 'weather' in 900 rows"),
    ({"items": None}, "Expected items=, such as"),
    ({"items": ("news", "news")}, "two or more, each once"),
    ({"features": None}, "Expected features= with public bounds"),
    ({"features": {"item": ("news", "sport", "games")}}, "features without 'item'"),
]  # fmt: skip


@each(("change", "says"), WRONG, ids=[says for _, says in WRONG])
def test_one_sentence_each(change, says):
    with pytest.raises(InputError, match=says) as caught:
        RecommendationFromLog(**{"frame": clicks(n=900), **CLICKS, **change})
    assert "\n" not in str(caught.value)
