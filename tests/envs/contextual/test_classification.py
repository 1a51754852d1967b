"""Classification as a bandit: one right class, public scaling, the user's own tables."""

import sys
from math import sqrt

import numpy as np
import pytest

from dpbandit import InputError, compare
from dpbandit.agents import LinUCB, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.envs.contextual.classification import ClassificationBandit, _pooled
from dpbandit.envs.tables import images
from tests.each import each


def own(**changed):
    """Four rows of two features, three classes."""
    table = {
        "features": [[0, 10], [5, 0], [10, 10], [0, 10]],
        "labels": ["b", "a", "c", "b"],
        "low": 0,
        "high": 10,
    }
    return ClassificationBandit(**{**table, **changed})


def users(problem, count=400, replicas=2):
    problem.reset(Streams([(1, r) for r in range(replicas)]))
    return problem._users(count)


def test_one_class_is_right_and_the_oracle_knows_it():
    drawn = users(ClassificationBandit())
    assert (drawn.reward.sum(axis=2) == 1).all()
    assert set(np.unique(drawn.reward)) == {0.0, 1.0}
    assert drawn.mean is drawn.reward  # nothing is random once the example is drawn
    assert np.linalg.norm(drawn.context, axis=-1).max() <= 1


@pytest.mark.filterwarnings("ignore:.*outside")
def test_sets_by_word():
    """Golden: rows, features and classes as their authors have them, with few rows clipped; the
    mean of Friedman's function, above which its second class begins, by quadrature."""
    known = {"breast-cancer": (569, 30, 2), "wine": (178, 13, 3), "friedman": (40_768, 10, 2)}
    known |= {"phishing": (1250, 9, 2), "segments": (2310, 18, 7), "bananas": (5300, 2, 2)}
    for word, (rows, features, classes) in (known | {"shuttle": (49_097, 9, 2)}).items():
        problem = ClassificationBandit(data=word)
        found = (problem.outside.users, problem.spec.dim - 1, problem.spec.n_actions)
        assert found == (rows, features, classes), word
        assert problem.outside.contexts < rows / 100, word
    u = (np.arange(400) + 0.5) / 400
    mean = 10 * np.sin(np.pi * np.outer(u, u)).mean() + 20 / 12 + 7.5
    assert mean == pytest.approx(14.413, abs=5e-4)


def test_every_example_is_as_likely_and_the_horizon_may_exceed_the_rows():
    """Chi-square over 1,797 images, 40,000 draws: |z| < 5 in the normal approximation (false alarm
    6e-7). A single pass, repeated, would have a chi-square near 0 (power)."""
    problem = ClassificationBandit(horizon=40_000)
    drawn = users(problem, 40_000, replicas=1)
    truth = problem._examples @ np.sqrt(np.arange(2.0, 19.0))  # tells images apart
    seen = drawn.context[:, 0] @ np.sqrt(np.arange(2.0, 19.0))
    values, copies = np.unique(truth.round(9), return_counts=True)
    counts = np.bincount(np.searchsorted(values, seen.round(9)), minlength=len(values))
    expected = 40_000 * copies / copies.sum()
    chi2, df = ((counts - expected) ** 2 / expected).sum(), len(values) - 1
    assert abs(chi2 - df) / sqrt(2 * df) < 5


def test_pooled_digits():
    """Golden: means of 2 x 2 squares, by hand; 64, 16 and 4 features."""
    image = np.arange(64.0)[None]
    assert _pooled(image, 2)[0, :2].tolist() == [4.5, 6.5]  # (0+1+8+9)/4, (2+3+10+11)/4
    assert (_pooled(image, 1) == image).all()
    for pool, dim in ((1, 65), (2, 17), (4, 5)):
        assert ClassificationBandit(pool=pool).spec.dim == dim
    assert ClassificationBandit().spec.n_actions == 10


def test_the_scale_is_public():
    """Golden: [0, 10] to [-1, 1] over sqrt(3); nothing else of the table matters: a single row has
    the context it has in company. What lies outside is clipped if that was asked for."""
    problem = own()
    wanted = np.array([[1, -1, 1], [1, 0, -1], [1, 1, 1], [1, -1, 1]]) / sqrt(3)
    np.testing.assert_allclose(problem._examples, wanted)
    far = {"features": [[0, 10], [5, 0], [10, 10], [-3, 99]]}
    with pytest.raises(
        InputError, match=r"1 % of 4 rows .* feature 0 outside \[0, 10\], got 1 of 4"
    ):
        own(**far)
    with pytest.warns(UserWarning, match=r"1 of 4 rows \(25 %\) lie outside"):
        clipped = own(**far, most_outside=0.25)
    np.testing.assert_allclose(clipped._examples, wanted)
    assert (clipped.outside.contexts, problem.outside.contexts) == (1, 0)
    huge = {"features": [[1.7e308, 0], [-1.7e308, 0], [0, 0], [5, 5]], "low": -5e307, "high": 5e307}
    with pytest.warns(UserWarning, match="2 of 4 rows"):
        huge = own(**huge, most_outside=1)
    np.testing.assert_allclose(huge._examples[:3, 1] * sqrt(3), [1, -1, 0])  # nothing overflows
    alone = own(features=[[5, 0], [5, 0]], labels=[0, 1])
    np.testing.assert_allclose(alone._examples[0], problem._examples[1])
    assert problem.classes.tolist() == ["a", "b", "c"]
    assert problem.spec.n_actions == 3
    each = own(low=[0, -10], high=[10, 10])
    np.testing.assert_allclose(each._examples[1], np.array([1, 0, 0]) / sqrt(3))


def test_rounds_of_clipped_rows_are_counted():
    """By what is shown, 2 * 7 / 10 - 1, over several blocks of users; after a reset anew."""
    with pytest.warns(UserWarning, match="1 of 4 rows"):
        problem = own(features=[[0, 10], [5, 0], [10, 10], [7, 99]], most_outside=0.25)
    for seeds in ([0, 1, 2], [3, 4, 5]):
        problem.reset(Streams(seeds))
        problem._ahead = 7
        seen = np.zeros(3)
        for _ in range(40):
            seen += np.isclose(problem.context()[:, 1], 0.4 / sqrt(3))
            problem.step(np.zeros(3, np.int64))
        assert seen.any()
        np.testing.assert_array_equal(problem.clipped(), seen / 40)


def test_labels_are_arms():
    problem = own()
    drawn = users(problem, 100, 1)
    first = {
        tuple(x): int(r.argmax())
        for x, r in zip(problem._examples, np.eye(3)[[1, 0, 2, 1]], strict=True)
    }
    for x, r in zip(drawn.context[:, 0], drawn.reward[:, 0], strict=True):
        assert r[first[tuple(x)]] == 1


def test_best_fixed_is_the_most_frequent_class():
    problem = own(horizon=300)
    problem.reset(Streams([3, 4]))
    for _ in range(300):
        problem.context()
        step = problem.step(np.array([0, 2]))
        assert (step.oracle == 1).all()
    assert problem.best_fixed().tolist() == [1, 1]


def test_learning_beats_uniform_play():
    """Paired t-test over 20 replicas: false alarm 1e-3 (t = 3.58 at 19 degrees), at 1,000 rounds;
    Uniform with other coins, the null, fails it."""
    results = compare(
        ClassificationBandit, {"learns": LinUCB()}, horizon=1000, replicas=20, progress=False
    )
    regret = {run.name: run.regret[-1] for run in results.runs}
    again = {"again": Uniform()}
    other = (
        compare(ClassificationBandit, again, horizon=1000, replicas=20, progress=False, seed=1)
        .runs[0]
        .regret[-1]
    )
    for gain, wins in (
        (regret["Uniform"] - regret["learns"], True),
        (regret["Uniform"] - other, False),
    ):
        assert (gain.mean() / (gain.std(ddof=1) / sqrt(20)) > 3.58) == wins


@each(
    ("wrong", "says"),
    [
        ({"labels": None}, "Expected labels beside features, low, high"),
        ({"low": None}, "Expected low beside"),
        ({"labels": [0, 1]}, r"features \(n, d\) and labels"),
        ({"features": [1, 2, 3, 4]}, "features"),
        ({"features": [[0, 1], [2, np.nan], [0, 0], [0, 0]]}, "row 1"),
        ({"labels": [1, 1, 1, 1]}, "two classes"), ({"low": 10}, "low=10"),
        ({"high": [1, 2, 3]}, "high="), ({"high": np.inf}, "high=inf, finite numbers"),
        ({"low": -np.inf}, "low=-inf"), ({"low": -1e308, "high": 1e308}, "low="),
        ({"low": [0, np.nan]}, "low="), ({"low": "a"}, "low to be numbers, got 'a'"),
        ({"low": 10**400}, "low to be numbers, got '10000"),
        ({"low": -1j}, "low to be numbers, got '"),
        ({"features": [["a", "b"]] * 4}, "features to be numbers"),
        ({"features": [[1], [1, 2], [1], [1]]}, "features to be numbers"),
        ({"labels": ["a", None, "b", "a"]}, "labels .* got None in row 1"),
        ({"labels": [0, 1, np.nan, 0]}, "labels .* got nan in row 2"),
        ({"labels": [0, 1, "1", 0]}, "labels .* got '1' in row 2"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused(wrong, says):
    with pytest.raises(InputError, match=says):
        own(**wrong)


def test_without_scikit_learn(monkeypatch):
    images.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(InputError, match=r"pip install 'dpbandit\[data\]'"):
        ClassificationBandit()
    assert own().spec.n_actions == 3
    images.cache_clear()
