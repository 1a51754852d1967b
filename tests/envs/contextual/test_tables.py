"""Tables of examples and of ratings: public scales, a known truth recovered, and one sentence for
every bad row or line."""

import os
import sys
from math import sqrt

import numpy as np
import pytest

from dpbandit.base import Streams
from dpbandit.envs import ClassificationBandit, RatingsBandit
from dpbandit.envs.contextual.classification import _pooled
from dpbandit.envs.contextual.recommendation import Ratings, item_model, read_ratings, tastes
from dpbandit.envs.tables import images
from tests.each import each, refused
from tests.envs.contextual.ratings_files import FORMATS, example, truth, write


def own(**changed):
    """Four rows of two features, three classes."""
    table = {
        "features": [[0, 10], [5, 0], [10, 10], [0, 10]], "labels": ["b", "a", "c", "b"], "low": 0,
        "high": 10,
    }  # fmt: skip
    return ClassificationBandit(**{**table, **changed})


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


def test_the_scale_is_public():
    """Golden: [0, 10] to [-1, 1] over sqrt(3); nothing else of the table matters. What lies outside
    is clipped if that was asked for, and its rounds are counted, by what is shown."""
    problem = own()
    wanted = np.array([[1, -1, 1], [1, 0, -1], [1, 1, 1], [1, -1, 1]]) / sqrt(3)
    np.testing.assert_allclose(problem._examples, wanted)
    far = {"features": [[0, 10], [5, 0], [10, 10], [-3, 99]]}
    refused(r"1 % of 4 rows .* feature 0 outside \[0, 10\], got 1 of 4", own, **far)
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
    """Users are examples drawn with equal chances, within 5 standard errors; the arm of their class
    earns 1, others 0. Golden: pooled digits are means of 2 x 2 squares, by hand."""
    problem = own()
    users = drawn(problem, 40_000, 1)
    assert users.mean is users.reward
    for x, chance in zip(problem._examples, (0.5, 0.25, 0.25), strict=False):
        share = (users.context[:, 0] == x).all(axis=1).mean()
        assert abs(share - chance) < 5 * (0.25 / 40_000) ** 0.5
    right = {tuple(x): arm for x, arm in zip(problem._examples, (1, 0, 2, 1), strict=True)}
    for x, r in zip(users.context[:100, 0], users.reward[:100, 0], strict=True):
        assert r.tolist() == np.eye(3)[right[tuple(x)]].tolist()
    image = np.arange(64.0)[None]
    assert _pooled(image, 2)[0, :2].tolist() == [4.5, 6.5]  # (0+1+8+9)/4, (2+3+10+11)/4
    assert (_pooled(image, 1) == image).all()
    for pool, dim in ((1, 65), (2, 17), (4, 5)):
        assert ClassificationBandit(pool=pool).spec.dim == dim
    assert ClassificationBandit().spec.n_actions == 10


def drawn(problem, count=400, replicas=2):
    problem.reset(Streams([(1, r) for r in range(replicas)]))
    return problem._users(count)


def test_without_scikit_learn(monkeypatch):
    images.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    refused(r"pip install 'dpbandit\[data\]'", ClassificationBandit)
    assert own().spec.n_actions == 3
    images.cache_clear()


@each("name", FORMATS)
def test_all_formats_say_the_same(name, tmp_path):
    """A header and times may be missing."""
    stars = np.array([[4.0, 3.5], [1.0, 5.0]])
    path = write(tmp_path / name, stars, np.array([[1, 1], [0, 1]]))
    found = read_ratings(path, low=0.5, high=5)
    assert found.user.tolist() == [0, 0, 1]
    assert found.item.tolist() == [0, 1, 1]
    assert found.rating.tolist() == [4.0, 3.5, 5.0]
    assert found.items == ("m0", "m1")
    path = tmp_path / "ratings.csv"
    path.write_text("7,12,3.5\n7,13,4\n8,12,1\n")
    assert read_ratings(path, low=0.5, high=5).rating.tolist() == [3.5, 4.0, 1.0]


def test_complete_ratings_without_noise_are_recovered():
    """Oracle: tastes on a circle, every cell seen: with next to no ridge the model is the truth,
    singular vectors are tastes, up to a rotation, and a context comes with the means of its row."""
    taste, stars = truth()
    assert stars.min() > 0.5
    assert stars.max() < 5
    path = write(example().parent / "ratings.dat", stars, np.ones_like(stars))
    problem = RatingsBandit(path=path, rank=2, ridge=1e-9, low=0.5, high=5)
    wanted = (stars[:, :10] - 0.5) / 4.5  # all items are rated as often: the first in the file
    np.testing.assert_allclose(problem._fitted.like, wanted, atol=1e-6)
    assert problem.rmse < 1e-6
    assert problem.items == tuple(f"m{i}" for i in range(10))
    found = tastes(read_ratings(path, low=0.5, high=5), 2)
    np.testing.assert_allclose(found @ found.T, taste @ taste.T, atol=1e-6)
    left = np.linalg.svd(stars - stars.mean(axis=0))[0][:, :2]  # the larger first
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(found), np.abs(left), atol=1e-6)
    problem.reset(Streams([1]))
    users = problem._users(500)
    far = np.linalg.norm(users.context - problem._fitted.context, axis=-1)  # (500, 240)
    assert far.min(axis=1).max() == 0
    np.testing.assert_array_equal(users.mean[:, 0], problem._fitted.like[far.argmin(axis=1)])
    assert len(set(far.argmin(axis=1).tolist())) > 150


def test_sparse_noisy_ratings_are_recovered_well():
    """60 % of the cells, noise of 0.5 stars and rounding to halves. Golden: the model misses the
    truth by less than 0.25 stars, item means alone by more than 0.6; arms are the most rated."""
    _, stars = truth()
    problem = RatingsBandit(path=example(), rank=2)
    arms = [int(item[1:]) for item in problem.items]
    wanted = (stars[:, arms] - 0.5) / 4.5
    miss = problem._fitted.like - wanted
    naive = wanted - wanted.mean(axis=0)
    assert 4.5 * sqrt(np.square(miss).mean()) < 0.25
    assert 4.5 * sqrt(np.square(naive).mean()) > 0.6
    assert 0.4 < problem.rmse < 0.6
    found = read_ratings(example(), low=0.5, high=5)
    count = np.bincount(found.item)
    problem = RatingsBandit(path=example(), n_actions=4)
    chosen = [found.items.index(item) for item in problem.items]
    assert sorted(count[chosen]) == sorted(count)[-4:]
    assert np.linalg.norm(problem._fitted.context, axis=1).max() <= 1 + 1e-12
    assert RatingsBandit(path=example()).scale == (0.5, 5)
    wide = RatingsBandit(path=example(), low=0, high=10)
    assert wide.scale == (0, 10)
    narrow = RatingsBandit(path=example())._fitted.like
    np.testing.assert_allclose(wide._fitted.like.clip(0.05, 0.5), (0.5 + 4.5 * narrow) / 10)


def test_a_changed_file_is_read_again(tmp_path):
    """Ratings are fitted again after the file changed; users who all agree are refused."""
    path = tmp_path / "ratings.csv"
    _, stars = truth(users=30, items=6)
    write(path, stars, np.ones_like(stars))
    before = RatingsBandit(path=path, n_actions=3, rank=1)
    assert RatingsBandit(path=path, n_actions=3, rank=1)._fitted is before._fitted
    write(path, np.minimum(stars + 0.3, 5), np.ones_like(stars))
    os.utime(path, ns=(1, 1))
    assert RatingsBandit(path=path, n_actions=3, rank=1)._fitted is not before._fitted
    path = write(tmp_path / "u.data", np.full((5, 4), 3.0), np.ones((5, 4)))
    refused("users who differ", RatingsBandit, path=path, n_actions=2, rank=1)


def test_the_model_stays_on_the_scale(tmp_path):
    """Oracle: the ridge regressions themselves, which leave the scale here, clipped to it. By hand:
    an infinite penalty leaves the mean, none the line."""
    _, stars = truth()
    extreme = (3 + 3 * (stars - 3)).clip(0.5, 5)
    path = write(tmp_path / "ratings.csv", extreme, np.ones_like(extreme))
    problem = RatingsBandit(path=path, rank=2)
    ratings = read_ratings(path, low=0.5, high=5)
    taste = tastes(ratings, 2)
    x = np.column_stack([np.ones(len(taste)), taste])
    free = np.column_stack([x @ item_model(ratings, taste, item, 5.0) for item in range(10)])
    assert free.min() < 0.4
    assert free.max() > 5.1
    np.testing.assert_allclose(problem._fitted.like, (free.clip(0.5, 5) - 0.5) / 4.5)
    three = Ratings(np.arange(3), np.zeros(3, np.int64), np.array([2.0, 3, 4]), ("m",), 1, 5)
    taste = np.array([[-1.0], [0], [1]])
    np.testing.assert_allclose(item_model(three, taste, 0, 1e12), [3, 0], atol=1e-9)
    np.testing.assert_allclose(item_model(three, taste, 0, 1e-12), [3, 1], atol=1e-9)


HEADER = "userId,movieId,rating,timestamp"


@each(
    ("name", "lines", "scale"),
    [
        ("ratings.csv", [HEADER, "1,10,3,0", "2,10,4,0"], (0.5, 5)),
        ("u.data", ["1\t10\t3\t0", "2\t10\t4\t0"], (1, 5)),
        ("ratings.dat", ["1::10::3::0", "2::10::4::0"], None),
        ("ratings.csv", ["1,10,3,0", "2,10,4,0"], None),
        ("ratings.csv", ["user,book,rating", "1,10,3", "2,10,4"], None),
        ("books.tsv", ["user\tbook\trating", "1\t10\t3", "2\t10\t4"], None),
    ],
)
def test_the_scale_is_the_formats_or_told_never_the_datas(name, lines, scale, tmp_path):
    """Ratings here go from 3 to 4 only. ratings.dat has two scales, in MovieLens 1M and 10M."""
    path = tmp_path / name
    path.write_text("\n".join(lines))
    told = read_ratings(path, low=0, high=10)
    assert (told.low, told.high) == (0, 10)
    if scale:
        found, half = read_ratings(path), read_ratings(path, low=2)
        assert ((found.low, found.high), (half.low, half.high)) == (scale, (2, scale[1]))
        return
    for given in ({}, {"low": 1}, {"high": 5}):
        refused(r"low=.* and high=.* public scale of the ratings", read_ratings, path, **given)


GOOD = "1::10::4::978300760"


@each(
    ("lines", "says"), [
        ([GOOD, "1::11"], "user::item::rating::time in line 2 of .*, got '1::11'"),
        ([GOOD, "1::11::five::0"], "line 2"), ([GOOD, "::11::3::0"], "line 2"),
        ([GOOD, "", "1::12::3::0"], "line 2"),
        ([GOOD, "1::11::6::0"], "rating from low=0.5 to high=5 in line 2 of .*, got 6"),
        ([GOOD, "1::11::nan::0"], "rating from low=0.5 to high=5 in line 2"),
        ([GOOD, GOOD], "second one in line 2"),
        (["userId,movieId,rating,timestamp", "1,2,x,0"], "user,item,rating,time in line 2"),
        (["1\t2"], "user<tab>item<tab>rating<tab>time in line 1"),
        (["userId,movieId,rating,timestamp"], "found none"), ([], "found none"),
    ],
)  # fmt: skip
def test_bad_lines_get_one_sentence_with_their_number(lines, says, tmp_path):
    path = tmp_path / "ratings.dat"
    path.write_text("\n".join(lines))
    refused(says, read_ratings, path, low=0.5, high=5)
