"""Clicks of one's own: the fit against a known truth, every refusal, and play on it."""

import numpy as np
import pytest
from scipy.special import expit

from dpbandit import InputError, compare
from dpbandit.envs import RecommendationFromLog
from tests.each import each
from tests.envs.contextual.logs import CLICKS, clicks


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


def test_agents_learn_on_it():
    """LinUCB's regret is less than that of random play by 4 of its standard errors."""
    settings = {"frame": clicks(), **CLICKS}
    results = compare(
        RecommendationFromLog, "linucb", horizon=1500, replicas=4, env_kwargs=settings
    )
    end = results.summary().set_index("agent")
    assert end["mean"]["linucb"] + 4 * end["se"]["linucb"] < end["mean"]["Uniform"]


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
